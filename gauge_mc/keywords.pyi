"""Keyword arguments that are declared elsewhere; written by tests/tools/keywords.py."""

# A package that is installed beside gauge-mc may have more options, which are not here.

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from gauge_mc.actions import Action
from gauge_mc.algorithms import Algorithm
from gauge_mc.domain.lattice import Lattice
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import Parameters
from gauge_mc.smearing import Smearing
from gauge_mc.updates.integrators import TrajectoryLevel
from gauge_mc.updates.terms import NamedMonomial

class ParameterKeywords(TypedDict, total=False):
    lattice: Lattice | str | Sequence[int]
    group: str
    beta: float | None
    action: Action | str
    precision: str
    start: str
    seed: int
    rng: str
    luxury: int
    algorithm: Algorithm | str
    chain_version: int
    strict: bool
    tempering: bool
    exchange_every: int
    thermalize: int
    configs: int
    separation: int
    measure: tuple[Measurement, ...] | str
    format: str

class BenchKeywords(TypedDict, total=False):
    group: str
    lattice: Lattice | str | None
    precision: str
    action: Action | str | None
    rng: str
    luxury: int | None
    strict: bool
    seconds: float
    observables: bool | Sequence[str] | str
    updates: Sequence[str] | str
    end_to_end: bool
    hmc: bool | Parameters | str
    chains: int
    anisotropy: float | None
    c1: float | None
    chiral: bool | None
    operator: str | None
    quarks: bool | None
    u0: float | None

class DetermineKeywords(TypedDict, total=False):
    lattice: Lattice | str | Sequence[int]
    group: str
    beta: float | None
    action: Action | str
    precision: str
    start: str
    seed: int
    rng: str
    luxury: int
    algorithm: Algorithm | str
    chain_version: int
    strict: bool
    thermalize: int
    backend: str
    devices: str | None
    threads: int | None
    share_gpus: bool
    checkpoint_every: float
    quiet: bool
    acceptance: float | None
    anisotropy: float | None
    c1: float | None
    failures: int | None
    heatbath: int | None
    integrator: str | None
    length: float | None
    levels: (
        str
        | TrajectoryLevel
        | Mapping[str, object]
        | list[str | TrajectoryLevel | Mapping[str, object]]
        | None
    )
    monomials: (
        str
        | NamedMonomial
        | Mapping[str, object]
        | list[str | NamedMonomial | Mapping[str, object]]
        | None
    )
    overrelax: int | None
    quarks: str | Any | Mapping[str, object] | list[str | Any | Mapping[str, object]] | None
    steps: int | None
    u0: float | None
    nt: int | None
    target: float | None

class FitKeywords(TypedDict, total=False):
    average: bool | None
    bootstrap: int | None
    charge: str | None
    cold: str | None
    critical: str | None
    energy: str | None
    flavours: int | None
    kappa_c: float | None
    least: int | None
    level: int | None
    levels: str | int | list[int] | None
    nt: int | None
    of: str | None
    over: str | None
    phase: str | None
    r_max: int | None
    r_min: int | None
    radius_max: float | None
    radius_min: float | None
    round: bool | None
    samples: bool | None
    scale: str | None
    skip: int | str | None
    source: str | None
    sqrt_t0: float | None
    sqrt_t0_error: float | None
    t: float | None
    t_max: int | None
    t_min: int | None
    target: float | None
    tree_level: bool | None
    w0: float | None
    w0_error: float | None

class GenerateKeywords(TypedDict, total=False):
    lattice: Lattice | str | Sequence[int]
    group: str
    beta: float | None
    action: Action | str
    precision: str
    start: str
    seed: int
    rng: str
    luxury: int
    algorithm: Algorithm | str
    chain_version: int
    strict: bool
    tempering: bool
    exchange_every: int
    thermalize: int
    configs: int
    separation: int
    measure: tuple[Measurement, ...] | str
    format: str
    backend: str
    devices: str | None
    threads: int | None
    share_gpus: bool
    time_limit: str | None
    checkpoint_every: float
    quiet: bool
    acceptance: float | None
    anisotropy: float | None
    c1: float | None
    failures: int | None
    heatbath: int | None
    integrator: str | None
    length: float | None
    levels: (
        str
        | TrajectoryLevel
        | Mapping[str, object]
        | list[str | TrajectoryLevel | Mapping[str, object]]
        | None
    )
    monomials: (
        str
        | NamedMonomial
        | Mapping[str, object]
        | list[str | NamedMonomial | Mapping[str, object]]
        | None
    )
    overrelax: int | None
    quarks: str | Any | Mapping[str, object] | list[str | Any | Mapping[str, object]] | None
    steps: int | None
    u0: float | None

class MeasureKeywords(TypedDict, total=False):
    accuracy: float | None
    action: str | None
    all_gammas: bool | None
    alpha: float | None
    alpha1: float | None
    alpha2: float | None
    alpha3: float | None
    anisotropy: float | None
    approximation: str | None
    beta: float | None
    boundary: str | float | list[float] | None
    c1: float | None
    correlations: bool | None
    csw: float | None
    deflate: int | None
    dilute: str | None
    dims: int | None
    eigenvalues: int | None
    every: float | None
    exclude: str | None
    flow: str | None
    imaginary_mu: float | None
    inner: str | None
    iterations: str | int | list[int] | None
    kappa: str | float | list[float] | None
    limit: int | None
    links: int | None
    method: str | None
    modes: int | None
    mu: str | float | list[float] | None
    multihit: bool | None
    multilevel: str | list[list[int]] | list[int] | None
    noise: str | None
    noise_seed: int | None
    off_axis: bool | None
    orderings: str | None
    overrelax: int | None
    p2_max: int | None
    projection: str | None
    propagators: str | None
    quark: str | Any | Mapping[str, object] | list[str | Any | Mapping[str, object]] | None
    r_max: int | None
    reduction: float | None
    rho: float | None
    seed: int | None
    slices: bool | None
    smear: str | Smearing | list[str | Smearing] | None
    smear_sink: bool | None
    solver: str | None
    source: str | list[str] | None
    sources: int | None
    step: float | None
    stored_modes: str | None
    t_max: int | None
    temporal: str | None
    to: float | None
    together: int | None
    tolerance: float | None
    u0: float | None
    until: float | None
    weight: float | None

class PlotKeywords(TypedDict, total=False):
    average: bool | None
    bootstrap: int | None
    charge: str | None
    cold: str | None
    critical: str | None
    energy: str | None
    flavours: int | None
    hadrons: str | None
    kappa_c: float | None
    least: int | None
    level: int | None
    levels: str | int | list[int] | None
    nt: int | None
    of: str | None
    over: str | None
    path: str | None
    phase: str | None
    r_max: int | None
    r_min: int | None
    radius_max: float | None
    radius_min: float | None
    result: str | None
    round: bool | None
    scale: str | None
    skip: int | str | None
    t: float | None
    t_max: int | None
    t_min: int | None
    target: float | None
    tree_level: bool | None

class ScanKeywords(TypedDict, total=False):
    group: str
    action: Action | str
    precision: str
    start: str
    seed: int
    rng: str
    luxury: int
    algorithm: Algorithm | str
    chain_version: int
    strict: bool
    tempering: bool
    exchange_every: int
    thermalize: int
    configs: int
    separation: int
    measure: tuple[Measurement, ...] | str
    format: str
    backend: str
    devices: str | None
    threads: int | None
    share_gpus: bool
    time_limit: str | None
    checkpoint_every: float
    quiet: bool
    acceptance: float | None
    anisotropy: float | list[float] | None
    c1: float | list[float] | None
    failures: int | None
    heatbath: int | None
    integrator: str | None
    length: float | None
    levels: (
        str
        | TrajectoryLevel
        | Mapping[str, object]
        | list[str | TrajectoryLevel | Mapping[str, object]]
        | None
    )
    monomials: (
        str
        | NamedMonomial
        | Mapping[str, object]
        | list[str | NamedMonomial | Mapping[str, object]]
        | None
    )
    overrelax: int | None
    quarks: str | Any | Mapping[str, object] | list[str | Any | Mapping[str, object]] | None
    refine: bool | None
    steps: int | None
    u0: float | list[float] | None

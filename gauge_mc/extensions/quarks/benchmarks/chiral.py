"""The benchmark of the sign function of overlap quarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gauge_mc.benchmarks import BenchKind
from gauge_mc.benchmarks.timing import Bench, BenchResult, table_of
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.hopping import EVEN, ODD
from gauge_mc.extensions.quarks.modes.chirality import HermitianOperator
from gauge_mc.extensions.quarks.modes.low_modes import random_vector
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.overlap.sign_function import (
    APPROXIMATIONS,
    KernelModes,
    SignFunction,
)
from gauge_mc.extensions.quarks.solvers.overlap import TOGETHER
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.results import documented, result_field

RHO = 1.4
"""rho of the kernel, on which the times of polynomials do not depend."""

EDGE, NORM = 0.1, 2.5
"""Ends of the interval of |eigenvalues| of gamma_5 M for which the sign is approximated."""

ACCURACIES, MODES = (1e-2, 1e-6), (0, 20)
"""Errors of the approximations, and numbers of projected modes."""

LEAST_EXTENT = 4
"""Smallest extent of lattices that are timed besides."""


@documented
@dataclass(frozen=True)
class HermitianTime:
    """The time of an application of H on a lattice."""

    lattice: str = result_field("Extents of the lattice.")
    vectors: int = result_field("Number of vectors at once, for each of which times are.")
    hop_ns: float = result_field("Time of the hopping term alone in ns per site.")
    kernel_ns: float = result_field("Time of an application of H in ns per site.")
    ratio: float = result_field("The second time divided by the first.")


@documented
@dataclass(frozen=True)
class SignTime:
    """The time of a sign function."""

    approximation: str = result_field("Name of the approximation.")
    accuracy: float = result_field("Its largest error.")
    size: int = result_field("Its degree, or its number of poles.")
    modes: int = result_field("Number of modes that are projected.")
    vectors: int = result_field("Number of vectors at once, for each of which times are.")
    steps: int = result_field("Number of applications of H^2.")
    ns: float = result_field("Time in ns per site and vector.")
    ns_per_step: float = result_field("Time in ns per site, vector and step.")
    share: float = result_field("Part of the time that its applications of H take alone.")
    model: float = result_field(
        "Vectors that it moves by the model, divided by those of the first."
    )
    measured: float = result_field("Its time, divided by that of the first one in the list.")


@documented
@dataclass(frozen=True)
class ChiralTime(BenchResult):
    """Times of the sign function of overlap quarks, in double precision."""

    kernels: list[HermitianTime] = result_field("Times of H, by lattice, and of several vectors.")
    signs: list[SignTime] = result_field("Times of sign functions.")
    ns_per_mode: float = result_field("Time of the projection in ns per site and mode.")

    def report(self) -> list[Any]:
        """Return lines and tables of the times."""
        columns = {"lattice": "{0.lattice}", "vectors": "{0.vectors}"}
        columns |= {"hop\nns/site": "{0.hop_ns:.4g}", "H\nns/site": "{0.kernel_ns:.4g}"}
        kernels = table_of(columns | {"ratio": "{0.ratio:.4g}"}, zip(self.kernels))
        columns = {"sign\nfunction": "{0.approximation}{1}", "error": "{0.accuracy:g}"}
        columns |= {name: f"{{0.{name}}}" for name in ("size", "modes", "steps")}
        columns |= {"ns per\nstep": "{0.ns_per_step:.4g}", "part\nof H": "{0.share:.0%}"}
        columns |= {"time": "{0.measured:.3g}", "model": "{0.model:.3g}"}
        several = [f" ×{sign.vectors}" if sign.vectors > 1 else "" for sign in self.signs]
        signs = table_of(columns, zip(self.signs, several, strict=True))
        title = f"sign function of overlap quarks, {self.subject}, double precision"
        modes = (
            f"a projected mode takes {self.ns_per_mode:.3g} ns per site; times are those per site "
            f"and vector, and ×n says that n are computed at once"
        )
        return [title, kernels, signs, modes]


def smaller_lattices(lattice: Lattice) -> list[Lattice]:
    """Return a lattice and those with half its extents, as long as they are even and not tiny."""
    lattices = [lattice]
    while all(n % 4 == 0 and n // 2 >= LEAST_EXTENT for n in lattices[-1].extents):
        lattices.append(Lattice(*(n // 2 for n in lattices[-1].extents)))
    return lattices


def chiral_time(bench: Bench) -> ChiralTime:
    """Time the sign function of overlap quarks and its parts; see `ChiralTime`."""
    lattice = bench.lattice
    kinds = [("polynomial", error, n, 1) for error in ACCURACIES for n in MODES]
    kinds += [("polynomial", ACCURACIES[-1], n, TOGETHER) for n in MODES]
    kinds += [(name, ACCURACIES[-1], 0, 1) for name in APPROXIMATIONS if name != kinds[0][0]]
    volumes = [(x, 1) for x in smaller_lattices(lattice)] + [(lattice, TOGETHER)]
    bench = bench.of(len(volumes) + len(kinds))
    kernels = [kernel_time(bench, volume, count) for volume, count in volumes]
    field = Field.hot(lattice, bench.group, "double", bench.devices)
    signs: list[SignTime] = []
    for name, error, number, count in kinds:
        bench.begin(f"{name}, error {error:g}, {number} modes, vectors {count}")
        operator = HermitianOperator(Wilson(field, 1 / (8 - 2 * RHO)).prepared())
        source = _random_vectors(field, count)
        target, modes = source.like(), _modes(source, number)
        function = SignFunction(operator, modes, error, name)
        call = function.apply(target, source)
        call()
        steps, kernel_ns = function.approximation.steps, kernels[0 if count == 1 else -1].kernel_ns
        ns = 1e9 * bench.time(call) / lattice.sites / count
        form = name, error, function.approximation.size, number, count, steps
        times = ns, ns / steps, (2 * steps + 1) * kernel_ns / ns
        cost, unit = (APPROXIMATIONS[x].cost(modes, y) for x, y, *_ in ((name, error), kinds[0]))
        signs.append(SignTime(*form, *times, cost / unit, ns / signs[0].ns if signs else 1.0))
    per_mode = (signs[1].ns - signs[0].ns) / MODES[1]
    return ChiralTime(*bench.heading, kernels, signs, per_mode)


def kernel_time(bench: Bench, lattice: Lattice, count: int) -> HermitianTime:
    """Return the time of H, and that of the hopping term alone."""
    bench.begin(f"H on {lattice}, vectors {count}")
    field = Field.hot(lattice, bench.group, "double", bench.devices)
    prepared = Wilson(field, 1 / (8 - 2 * RHO)).prepared()
    source = _random_vectors(field, count)
    target = source.like()
    hops = [prepared.prepare(target, source, parity) for parity in (EVEN, ODD)]
    hop, kernel = (
        1e9 * bench.time(*calls) / lattice.sites / count
        for calls in (hops, [HermitianOperator(prepared).apply(target, source)])
    )
    return HermitianTime(str(lattice), count, hop, kernel, kernel / hop)


def _random_vectors(field: Field, count: int) -> SpinorField:
    """Return equal random vectors."""
    vectors, vector = SpinorField.empty(field, count=count), random_vector(SpinorField.empty(field))
    for n in range(count):
        vectors.copy(vector, to=n)
    return vectors


def _modes(like: SpinorField, number: int) -> KernelModes:
    """Return so many vectors of the norm 0 as modes, and the interval of all others."""
    vectors = SpinorField.empty(like.field, like.storage.name, number) if number else None
    values = np.full(number, EDGE / 2)
    return KernelModes(values, np.zeros(number), vectors, EDGE, NORM, values, 1.0, EDGE, 0)


class ChiralBench(BenchKind):
    """The sign function of overlap quarks."""

    name = "chiral"
    options = (
        Option(
            "chiral",
            bool,
            "Time the sign function of overlap quarks instead: its kernel by volume, polynomials "
            "by degree, and low modes.",
            usual=False,
        ),
    )
    results = (f"{__name__}:ChiralTime",)

    def carry_out(self, bench: Bench, values: Mapping[str, Any]) -> BenchResult:
        """Time the sign function."""
        return chiral_time(bench)


CHIRAL = ChiralBench()

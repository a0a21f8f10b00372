"""Benchmark of the sign function of overlap quarks, in units of applications of its kernel.

The axes are the time of an application of H = gamma_5 (D_w - rho) per site, on lattices of several
sizes, that of the sign function per site and degree, and that of projected modes per site and mode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gauge_mc.benchmarks.timing import Bench, BenchResult
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.matrices.hopping import EVEN, ODD
from gauge_mc.extensions.quarks.modes.chirality import HermitianOperator
from gauge_mc.extensions.quarks.modes.low_modes import random_vector
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.overlap.sign_function import (
    APPROXIMATIONS,
    KernelModes,
    SignFunction,
)
from gauge_mc.extensions.quarks.overlap.solver import TOGETHER
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField
from gauge_mc.fields.field import Field
from gauge_mc.results import documented, result_field

RHO = 1.4
"""rho of the kernel, on which the times of polynomials do not depend."""

EDGE, NORM = 0.1, 2.5
"""Ends of the interval of |eigenvalues| of gamma_5 M for which the sign is approximated."""

ACCURACIES = (1e-2, 1e-6)
"""Errors of the approximations."""

MODES = (0, 20)
"""Numbers of projected modes."""

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
        "Vectors that it reads or writes by the model of the cost, divided by those of the first "
        "sign function in the list."
    )
    measured: float = result_field("Its time, divided by that of the first one in the list.")


@documented
@dataclass(frozen=True)
class ChiralTime(BenchResult):
    """Times of the sign function of overlap quarks, in double precision."""

    kernels: list[HermitianTime] = result_field(
        "Times of H, the largest lattice first, and then those of several vectors on it."
    )
    signs: list[SignTime] = result_field("Times of sign functions.")
    ns_per_mode: float = result_field("Time of the projection in ns per site and mode.")


def smaller_lattices(lattice: Lattice) -> list[Lattice]:
    """Return a lattice and those with half its extents, as long as they are even and not tiny."""
    found = [lattice]
    while all(n % 4 == 0 and n // 2 >= LEAST_EXTENT for n in found[-1].extents):
        found.append(Lattice(*(n // 2 for n in found[-1].extents)))
    return found


def chiral_time(bench: Bench) -> ChiralTime:
    """Time the sign function of overlap quarks and its parts; see `ChiralTime`."""
    lattice = bench.lattice
    signs = [("polynomial", error, n, 1) for error in ACCURACIES for n in MODES]
    signs += [("polynomial", ACCURACIES[-1], n, TOGETHER) for n in MODES]
    signs += [(name, ACCURACIES[-1], 0, 1) for name in APPROXIMATIONS if name != signs[0][0]]
    volumes = [(one, 1) for one in smaller_lattices(lattice)] + [(lattice, TOGETHER)]
    bench = bench.of(len(volumes) + len(signs))
    kernels = []
    for one, count in volumes:
        bench.begin(f"H on {one}, vectors {count}")
        kernels.append(_kernel_time(bench, one, count))
    field = Field.hot(lattice, bench.group, "double", bench.devices)
    found: list[SignTime] = []
    for name, error, number, count in signs:
        bench.begin(f"{name}, error {error:g}, {number} modes, vectors {count}")
        kernel = kernels[0 if count == 1 else -1]
        found.append(_sign_time(bench, field, name, error, number, kernel, found[:1]))
    without, with_modes = found[:2]
    per_mode = (with_modes.ns - without.ns) / MODES[1]
    return ChiralTime(*bench.heading, kernels, found, per_mode)


def _kernel_time(bench: Bench, lattice: Lattice, count: int) -> HermitianTime:
    """Return the time of H, and that of the hopping term alone."""
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


def _sign_time(
    bench: Bench,
    field: Field,
    name: str,
    error: float,
    number: int,
    kernel: HermitianTime,
    first: list[SignTime],
) -> SignTime:
    """Return the time of a sign function with modes that only take the time of modes."""
    operator = HermitianOperator(Wilson(field, 1 / (8 - 2 * RHO)).prepared())
    source = _random_vectors(field, kernel.vectors)
    modes = _modes(source, number)
    sign = SignFunction(operator, modes, error, name)
    target = source.like()
    call = sign.apply(target, source)
    call()
    steps = sign.approximation.steps
    ns = 1e9 * bench.time(call) / field.lattice.sites / kernel.vectors
    begin = (first[0].approximation, first[0].accuracy) if first else (name, error)
    cost, unit = (APPROXIMATIONS[kind].cost(modes, one) for kind, one in ((name, error), begin))
    form = name, error, sign.approximation.size, number, kernel.vectors, steps
    times = ns, ns / steps, (2 * steps + 1) * kernel.kernel_ns / ns
    return SignTime(*form, *times, cost / unit, ns / first[0].ns if first else 1.0)


def _random_vectors(field: Field, count: int) -> SpinorField:
    """Return so many equal random vectors."""
    vectors, one = SpinorField.empty(field, count=count), random_vector(SpinorField.empty(field))
    for n in range(count):
        vectors.copy(one, to=n)
    return vectors


def _modes(like: SpinorField, number: int) -> KernelModes:
    """Return so many vectors of the norm 0 as modes, and the interval of all others."""
    vectors = SpinorField.empty(like.field, like.storage.name, number) if number else None
    values = np.full(number, EDGE / 2)
    return KernelModes(values, np.zeros(number), vectors, EDGE, NORM, values, 1.0, EDGE, 0)

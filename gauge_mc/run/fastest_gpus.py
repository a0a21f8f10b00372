"""How many of the GPUs of a process a run with dynamical quarks uses.

On small lattices several GPUs wait for each other longer than they compute. The results do not
depend on their number, so that a short trial decides.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.errors import NoMemoryError
from gauge_mc.fields.field import Field
from gauge_mc.quarks.forces.normal import QuarkSolver
from gauge_mc.quarks.forces.replica_solver import QuarkSystem
from gauge_mc.quarks.operators import Wilson
from gauge_mc.run.parameters import Parameters

SITES_PER_GPU = 2**20
"""Sites of a GPU from which on more GPUs are never slower, so that nothing is tried."""

KAPPA, TOLERANCES = 0.13, (1e-3, 1e-10)
"""Hopping parameter of the quarks of the trial, and the residuals of their solutions. On random
links these take few iterations."""

ITERATIONS = 500
"""Iterations of a solution in a run, about. Its time follows from those of the trial."""

SOLVES = 4
"""Number of solutions, of which the fastest one counts. The first one loads kernels, and the second
one records them."""


@dataclass(frozen=True)
class ChosenGpus:
    """The GPUs that a run uses, and why."""

    devices: DeviceGroup
    """The group with these alone."""
    reason: str = ""
    """A sentence, if they are not all."""


def fastest_gpus(devices: DeviceGroup, parameters: Parameters) -> ChosenGpus:
    """Return the GPUs on which solutions for quarks take the shortest time.

    All are used by a run without quarks, on large lattices, if the user has divided the lattice,
    and if several processes share it.
    """
    count, sites = len(devices.devices), parameters.lattice.sites
    fixed = devices.processes.size > 1 or devices.slices is not None
    if fixed or count == 1 or devices.devices[0].in_host_memory:
        return ChosenGpus(devices)
    if not parameters.algorithm.labels or sites >= count * SITES_PER_GPU:
        return ChosenGpus(devices)
    found = {n: solver_seconds(_first(devices, n), parameters) for n in _numbers(count)}
    best = min(sorted(found, reverse=True), key=lambda n: found[n])
    if best == count:
        return ChosenGpus(devices)
    return ChosenGpus(
        _first(devices, best),
        f"On this lattice quarks are fastest on {best} of the {count} GPUs: {ITERATIONS} "
        f"iterations for them take {1e3 * found[best]:.3g} ms there, and {1e3 * found[count]:.3g} "
        "ms on all. The others are not used.",
    )


def solver_seconds(devices: DeviceGroup, parameters: Parameters) -> float:
    """Return the time of a solution for Wilson quarks with `ITERATIONS` iterations, in seconds.

    It is infinite if there is not enough memory.
    """
    try:
        return _solver_seconds(devices, parameters)
    except NoMemoryError:
        return math.inf


def _solver_seconds(devices: DeviceGroup, parameters: Parameters) -> float:
    p = parameters
    devices.compute(p.strict)
    field = Field.hot(p.lattice, p.group, p.precision, devices)
    system = QuarkSystem(Wilson(field, KAPPA), QuarkSolver())
    system.phi.put_equal_slices()

    def solution(tolerance: float) -> tuple[float, int]:
        """Return the shortest time of a solution, and its iterations."""
        times = []
        for _ in range(SOLVES):
            began = time.perf_counter()
            found = system.solve(tolerance, np.ones(1, np.bool_))
            found.check()
            devices.synchronize()
            times.append(time.perf_counter() - began)
        return min(times), int(found.iterations.max())

    (few_s, few), (many_s, many) = map(solution, TOLERANCES)
    return many_s + (many_s - few_s) / (many - few) * (ITERATIONS - many)


def _numbers(count: int) -> list[int]:
    """Return the numbers of GPUs that are tried: powers of 2, and all."""
    return [*(2**k for k in range(count.bit_length()) if 2**k < count), count]


def _first(devices: DeviceGroup, number: int) -> DeviceGroup:
    """Return a group of the first of its devices."""
    return replace(devices, devices=devices.devices[:number])

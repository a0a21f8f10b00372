"""Calculations with quarks on several GPUs; see `tests.emulator.orders`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.extensions.quarks.hopping import ODD, System
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.operators.domain_wall import DomainWall
from gauge_mc.extensions.quarks.overlap import Overlap
from gauge_mc.extensions.quarks.vectors import SpinorField
from tests.emulator.orders import LATTICE, links_on
from tests.extensions.quarks.reference import dirac, walls


def wilson(devices: DeviceGroup) -> bytes:
    """Return a solution with Wilson quarks."""
    psi = dirac.random_spinor(LATTICE.extents, 2, np.random.default_rng(6))
    return bytes(Wilson(links_on(devices), 0.1).solve(psi, 1e-6, inner="double"))


def domain_wall(devices: DeviceGroup) -> bytes:
    """Return a solution with domain-wall quarks."""
    psi = walls.random_spinor(LATTICE.extents, 4, 2, np.random.default_rng(7))
    operator = DomainWall(links_on(devices), 0.1, 4, 1.7)
    return bytes(operator.solve(psi, 1e-6, inner="double"))


def reduction(devices: DeviceGroup) -> bytes:
    """Return the reduced right-hand sides, for which vectors are needed only for a short time."""
    psi = walls.random_spinor(LATTICE.extents, 4, 2, np.random.default_rng(7))
    operator = DomainWall(links_on(devices), 0.1, 4, 1.7)
    source = SpinorField.from_numpy(operator.field, psi, fifth=4)
    return bytes(System(operator, source, True).reduced.to_numpy())


def products(devices: DeviceGroup) -> bytes:
    """Return products with vectors that change between them, which nobody waits for."""
    psi = dirac.random_spinor(LATTICE.extents, 2, np.random.default_rng(6))
    operator = Wilson(links_on(devices), 0.1)
    prepared = operator.prepared()
    even = SpinorField.from_numpy(operator.field, psi, parity=0)
    sums = []
    for n in range(4):
        odd = even.like(parity=ODD)
        prepared.prepare(odd, even, ODD)()
        prepared.prepare(even, odd, 0)(0.1 * n)
        sums.append(odd)
    return b"".join(bytes(one.to_numpy()) for one in (even, *sums))


def overlap(devices: DeviceGroup) -> bytes:
    """Return a product with the overlap operator."""
    psi = dirac.random_spinor(LATTICE.extents, 2, np.random.default_rng(8))
    phases = [1, 1, 1, -1]
    return bytes(Overlap(links_on(devices), 1.4, 0.3, phases, 1e-2, 2).apply(psi, 0.1))


SCENARIOS: dict[str, Callable[[DeviceGroup], bytes]] = {
    "wilson": wilson,
    "domain-wall": domain_wall,
    "reduction": reduction,
    "products": products,
    "overlap": overlap,
}
"""Calculations, which return bytes that do not depend on the devices."""

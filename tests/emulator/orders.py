"""Calculations on several GPUs, and the orders in which emulated ones can do their work."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from gauge_mc.actions import Coupling
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.gradient_flow import GradientFlow
from gauge_mc.fields.random_field import Random
from gauge_mc.flows import FLOWS
from gauge_mc.updates.heatbath import heatbath
from gauge_mc.updates.integrators import INTEGRATORS
from tests.reference.fields import random_field
from tests.samples import all_of
from tests.updates.moving import Moving

LATTICE = Lattice(4, 4, 4, 12)

EXTREMES = ("lazy", "copies", "0", "1", "even", "odd", "random")
"""Orders that find a missing wait; see `tests/emulator/pycuda/driver.py`."""


@contextmanager
def order_of(driver: Any, order: str, seed: int = 1) -> Iterator[None]:
    """Let emulated GPUs do their work in an order, and in the usual one afterwards."""
    schedule = driver._schedule
    before, schedule.order = schedule.order, order
    schedule.random.seed(seed)
    try:
        yield
    finally:
        schedule.order = before


def links_on(devices: DeviceGroup) -> Field:
    """Return the same links on any devices."""
    links = random_field(LATTICE.extents, "su2", np.random.default_rng(5))
    return Field.from_slices(LATTICE, "su2", links, "double", devices)


def updates(devices: DeviceGroup, action: str) -> bytes:
    """Return the links after heatbath sweeps."""
    field = links_on(devices)
    heatbath(field, 2.3, Random.for_field(field, seed=3), 3, action)
    return bytes(field.to_numpy())


def flow(devices: DeviceGroup, kind: str) -> bytes:
    """Return the links of a flow, which is not waited for meanwhile."""
    field = links_on(devices)
    one = GradientFlow(FLOWS[kind], field)
    one.start(field)
    for _ in range(3):
        one.step(0.02)
    return bytes(one.field.to_numpy())


def dynamics(devices: DeviceGroup, integrator: str) -> bytes:
    """Return the links after two trajectories."""
    field = links_on(devices)
    moving = Moving(field, Coupling.of(2.3), Random.for_field(field, seed=9))
    for _ in range(2):
        moving.draw()
        moving.move(INTEGRATORS[integrator].trajectory(0.2, 3))
        moving.go_on()
    return bytes(moving.links.to_numpy())


SCENARIOS: dict[str, Callable[[DeviceGroup], bytes]] = {
    "heatbath": lambda devices: updates(devices, "wilson"),
    "rectangles": lambda devices: updates(devices, "iwasaki"),
    "flow": lambda devices: flow(devices, "wilson"),
    "zeuthen": lambda devices: flow(devices, "zeuthen"),
    **{
        f"hmc {name}": lambda devices, name=name: dynamics(devices, name)
        for name in sorted(INTEGRATORS)
    },
}
"""Calculations, which return bytes that do not depend on the devices."""


def scenarios() -> Mapping[str, Callable[[DeviceGroup], bytes]]:
    """Return the calculations, with those of extensions."""
    return ChainMap(SCENARIOS, *all_of("SCENARIOS", "orders"))

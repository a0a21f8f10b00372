"""Updates of the interior of slabs of time slices, whose boundaries do not change.

The lattice is divided into slabs of equal thickness. The links in space on the first slice of every
slab are its boundary and are not updated. If the loops of the action extend over one slice in time,
no loop contains links that are updated in two slabs. All slabs are then independent: they can be
updated at the same time, and devices that share the lattice need no halo exchange.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gauge_mc import defaults
from gauge_mc.actions import Action, Coupling
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.domain.slab import Slab, work
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.chain_versions import norms_of
from gauge_mc.updates.heatbath import HEATBATH
from gauge_mc.updates.independence import check_independence
from gauge_mc.updates.overrelaxation import OVERRELAXATION
from gauge_mc.updates.replicas import ONE_REPLICA
from gauge_mc.updates.schedule import Stage
from gauge_mc.updates.sweep import NO_TARGETS, SlabSweep

TIME = 3
"""The direction of time."""


class SubLatticeUpdates:
    """Updates of the interior of slabs: heatbath and overrelaxation sweeps.

    The random numbers are those of Philox for the sites of the whole lattice, so that the links do
    not depend on how it is divided among devices.

    Parameters
    ----------
    field : Field
        Updated in place, except for its halos.
    thickness : int
        Number of time slices of a slab.
    coupling : Coupling
        Action and couplings of the ensemble.
    seed : int
        Seed of the random numbers of all sites.
    overrelax : int
        Overrelaxation sweeps after each heatbath sweep.

    Raises
    ------
    UsageError
        If the action is unknown or extends over more than one time slice, or if the slabs do not
        fit the division of the lattice among devices.
    """

    def __init__(
        self, field: Field, thickness: int, coupling: Coupling, seed: int, overrelax: int
    ) -> None:
        chosen = coupling.action
        if chosen.halo_depth != 1:
            raise UsageError(
                f"The action {chosen.name} has loops that extend over {chosen.halo_depth} time "
                "slices, so that slabs are not independent; measure without multilevel averages."
            )
        norms = norms_of(field.precision)
        check_independence(field, coupling, OVERRELAXATION, norms)
        check_division(field, thickness)
        coefficients = coupling.coefficients(field.group)
        random = Random.for_field(field, defaults.START_RNG, seed)
        shared = {"action": coefficients, "actions": None}
        self._overrelax = overrelax
        self._heatbath = _sweeps(
            field,
            thickness,
            HEATBATH,
            chosen,
            (random.choice, ONE_REPLICA, norms),
            lambda number: {"stream": random.stream(number), "keys": None, **shared},
        )
        self._reflection = _sweeps(
            field, thickness, OVERRELAXATION, chosen, (norms,), lambda _: shared
        )

    def __call__(self, step: int) -> None:
        """Do one heatbath sweep and the overrelaxation sweeps.

        Parameters
        ----------
        step : int
            Number of the heatbath sweep, which selects its random numbers.
        """
        for slab in self._heatbath:
            slab.run(1, step)
        for slab in self._reflection if self._overrelax else ():
            slab.run(self._overrelax, None)


def check_division(field: Field, thickness: int) -> None:
    """Refuse slabs that do not fit the division of a lattice among devices.

    Raises
    ------
    UsageError
        If a device would have a part of a slab.
    """
    if field.lattice.t % thickness:
        raise UsageError(
            f"Slabs of {thickness} time slices do not make up the lattice {field.lattice}; choose "
            f"a thickness that divides {field.lattice.t}."
        )
    for layout in field.layouts:
        if layout.first % thickness or layout.slices % thickness:
            raise UsageError(
                f"Slabs of {thickness} time slices do not fit a device with the slices "
                f"{layout.first} to {layout.first + layout.slices - 1} of {field.lattice}; choose "
                "thinner slabs or another number of devices."
            )


def _sweeps(
    field: Field,
    thickness: int,
    kernel: Kernel,
    action: Action,
    choices: Sequence[Choice],
    values: Callable[[int], Mapping[str, Any]],
) -> list[SlabSweep]:
    """Return a sweep over the interior of the slabs on each device of this process."""
    return [
        SlabSweep(
            slab,
            kernel,
            (*action.choices, *choices),
            [Stage(tuple(_interior(slab, action, thickness)))],
            None,
            {**values(number), "halo": NO_TARGETS},
        )
        for number, slab in enumerate(field.slabs)
    ]


def _interior(slab: Slab, action: Action, thickness: int) -> list[ctypes.Structure]:
    """Return the work of a sweep, in the order of execution: one slice of every slab at a time."""
    count = slab.layout.slices // thickness
    return [
        work(t, thickness, count, one.parity, one.mu)
        for one in action.update_sets(slab.layout.lattice)
        for t in range(0 if one.mu == TIME else 1, thickness)
    ]

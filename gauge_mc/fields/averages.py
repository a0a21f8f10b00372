"""Averages of plaquettes and links, which the headers of files state, and the action."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.actions import Action, Coupling
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import PLAQUETTES, Loops
from gauge_mc.domain.slab import BOTH_PARITIES, Slab, work
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums, lattice_sums
from gauge_mc.files.columns import Averages
from gauge_mc.signatures import checks_types

PLAQUETTE = PLAQUETTES.kernel
LINK_TRACE = Kernel("link_trace")
AVERAGED = {PLAQUETTE: 2, LINK_TRACE: 1}
"""Kernels whose sums are averaged, with their numbers of values."""

PLANES = 3
"""Number of spatial planes, which equals the number of temporal planes."""


def averages(field: Field) -> Averages:
    """Return the averages over a field, in the precision of the field."""
    sums = [lattice_sums(field, kernel, values=values) for kernel, values in AVERAGED.items()]
    return normalised(np.concatenate(sums), field.group.colours, field.lattice.sites)


def slice_sums(slab: Slab, place: int) -> NDArray[np.float64]:
    """Return the sums of Re Tr over spatial plaquettes, temporal ones and links of a slice.

    Parameters
    ----------
    slab : Slab
        The slab that has the slice and the next one.
    place : int
        Position of the slice in the memory of the slab. The temporal plaquettes are those between
        this slice and the next one.
    """
    found = []
    for kernel, values in AVERAGED.items():
        sums = SlabSums(slab, values, 1, work(place, 1, 1, BOTH_PARITIES))
        sums.launch(kernel, {"links": slab.buffer.address})
        found.append(sums.by_slice()[0, 0])
    return np.concatenate(found)


def normalised(sums: NDArray[np.float64], colours: int, sites: int) -> Averages:
    """Return averages, given the sums that `slice_sums` returns, over the whole lattice."""
    spatial, temporal = (float(one) / (PLANES * colours * sites) for one in sums[:2])
    link_trace = float(sums[2]) / (4 * colours * sites)
    return Averages((spatial + temporal) / 2, spatial, temporal, link_trace)


@checks_types
def action_density(
    field: Field, beta: float, action: str | Action = defaults.ACTION, **options: float
) -> float:
    """Return the action of a field, divided by the number of sites; 0 if all links are 1.

    Parameters
    ----------
    field : Field
        A field of one replica, whose halos are up to date.
    beta : float
        The coupling; 2 N / g^2 for most actions.
    action : str or Action
        The action or its name.
    **options : float
        Options of the action by name, such as ``anisotropy`` or ``c1``.

    Raises
    ------
    UsageError
        If the action is unknown, declares no loops, or an option is invalid.
    """
    coupling = Coupling.of(beta, action, **options)
    averages = {one: loop_averages(field, one) for one in coupling.action.loops}
    return float(coupling.density(averages))


def loop_averages(field: Field, loops: Loops) -> NDArray[np.float64]:
    """Return the averages of Re Tr U / N over the loops of each kind."""
    sums = lattice_sums(field, loops.kernel, values=len(loops.kinds))
    return normalised_loops(sums, loops, field.group.colours, field.lattice.sites)


def normalised_loops(
    sums: NDArray[np.float64], loops: Loops, colours: int, sites: int
) -> NDArray[np.float64]:
    """Return averages over loops of each kind, given the sums along the last axis."""
    return np.asarray(sums / (np.array(loops.kinds) * colours * sites))

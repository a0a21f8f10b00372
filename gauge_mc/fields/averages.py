"""Averages of plaquettes and links, which the headers of files state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.domain.loops import PLAQUETTES
from gauge_mc.domain.slab import Slab, work
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums, lattice_sums
from gauge_mc.files.averages import Averages

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

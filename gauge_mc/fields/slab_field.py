"""Numbers for every link of a lattice on its slabs, with their halo exchange."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.halo import HaloExchange, SliceRange, transfers_of
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import Layout
from gauge_mc.domain.slab import Slab
from gauge_mc.groups import Group


@dataclass(frozen=True)
class SlabField:
    """Numbers for every link of a lattice, in the memory of one or more devices."""

    lattice: Lattice
    """Extents of the lattice."""
    group: Group
    """The gauge group."""
    precision: str
    """``single`` or ``double``."""
    devices: DeviceGroup
    """The devices that hold the numbers."""
    slabs: tuple[Slab, ...]
    """The slabs of this process, one per device."""
    layouts: tuple[Layout, ...]
    """The layouts of all slabs, including those of other processes."""

    def halo(self, depth: int | None = 1) -> HaloExchange:
        """Return the exchange of some slices on either side of each slab; None means all."""
        if depth not in self._exchanges:
            transfers = transfers_of(self.layouts, depth)
            self._exchanges[depth] = HaloExchange(self.devices, self.slabs, transfers)
        return self._exchanges[depth]

    @cached_property
    def _exchanges(self) -> dict[int | None, HaloExchange]:
        return {}

    def exchange_halo(self, depth: int | None = 1) -> None:
        """Update some slices of the halo on either side of each slab; None means all."""
        halo = self.halo(depth)
        halo.post(SliceRange(0, self.slabs[0].slice_bytes))
        halo.wait()

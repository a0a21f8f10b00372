"""Link fields resident on devices, to and from NumPy and files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.devices import Device
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.halo import HaloExchange, Window, transfers_of
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import REALS, Layout, split_lanes
from gauge_mc.domain.slab import Slab
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.groups import GROUPS, Group
from gauge_mc.random import GENERATORS, stream

HOT = Kernel("hot")

START_STEP = 2**64 - 1
"""The number of the sweep whose random numbers make a start; no chain ever reaches it."""


@dataclass(frozen=True)
class Field:
    """The links U_mu(x) of a lattice, in the memory of one or more devices.

    Make one with `cold`, `hot`, `load` or `from_slices`. Updates and observables take it as their
    argument. If several processes share a lattice, all of them make all calls.

    Attributes
    ----------
    lattice : Lattice
    group : Group
    precision : str
        ``single`` or ``double``.
    devices : DeviceGroup
        The devices that hold the links.
    slabs : tuple of Slab
        The time slices on each of this process's devices.
    layouts : tuple of Layout
        The layouts of all slabs, of this and of other processes.
    """

    lattice: Lattice
    group: Group
    precision: str
    devices: DeviceGroup
    slabs: tuple[Slab, ...]
    layouts: tuple[Layout, ...]

    @classmethod
    def empty(
        cls,
        lattice: Lattice,
        group: str,
        precision: str = defaults.PRECISION,
        device: Device | DeviceGroup | None = None,
        above: int = 1,
    ) -> Field:
        """Return a field of zeros, which is not a configuration.

        Parameters
        ----------
        lattice : Lattice
        group : str
            The name of a group, such as ``su3``.
        precision : str
            ``single`` or ``double``.
        device : Device or DeviceGroup, optional
            The devices to hold the links; by default the one that `open_device` opens.
        above : int
            Halo depth above, if there are several slabs.

        Raises
        ------
        UsageError
            If there is no such group or precision, or there are too few time slices.
        GaugeError
            If the device cannot be opened or has too little memory.
        """
        if precision not in REALS:
            known = " and ".join(REALS)
            raise UsageError(f"There is no precision '{precision}'; there are {known}.")
        links_of, devices = GROUPS[group], DeviceGroup.of(device)
        first = devices.devices[0]
        split = split_lanes(lattice, first.lanes(precision))
        times = devices.slabs(lattice)
        halo = (above, 1) if len(times) > 1 else (0, 0)
        layouts = tuple(
            Layout(lattice, precision, split, first.packet_bytes, one.start, len(one), *halo)
            for one in times
        )
        here = zip(devices.devices, layouts[devices.first_slab :], strict=False)
        slabs = tuple(
            Slab(links_of, one, layout, one.allocate(layout.field_bytes(links_of.components)))
            for one, layout in here
        )
        return cls(lattice, links_of, precision, devices, slabs, layouts)

    @classmethod
    def cold(
        cls,
        lattice: Lattice,
        group: str,
        precision: str = defaults.PRECISION,
        device: Device | DeviceGroup | None = None,
    ) -> Field:
        """Return a field with all links 1. Parameters and errors as of `empty`."""
        field = cls.empty(lattice, group, precision, device)
        x, y, z, _ = lattice.extents
        one = field.group.stored(np.eye(field.group.colours, dtype=np.complex128))
        links = np.broadcast_to(one.astype(REALS[precision]), (z, y, x, 4, one.size))
        for slab in field.slabs:
            for t in slab.layout.times:
                slab.write(t, links)
        field.exchange_halo()
        return field

    @classmethod
    def hot(
        cls,
        lattice: Lattice,
        group: str,
        precision: str = defaults.PRECISION,
        device: Device | DeviceGroup | None = None,
        seed: int = defaults.SEED,
    ) -> Field:
        """Return a field of Haar-random links, a function of `seed`. Otherwise as `empty`."""
        field = cls.empty(lattice, group, precision, device)
        generator = GENERATORS[defaults.START_RNG]
        numbers = stream(generator.key(seed), START_STEP)
        for slab in field.slabs:
            links = slab.buffer.address
            slab.launch(HOT, slab.whole(), generator.choice(), links=links, stream=numbers)
        field.exchange_halo()
        return field

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        precision: str | None = None,
        device: Device | DeviceGroup | None = None,
    ) -> Field:
        """Read a configuration file of any format that is known.

        Parameters
        ----------
        path : str or path-like
        precision : str, optional
            ``single`` or ``double``; by default that of the file.
        device : Device or DeviceGroup, optional
            As for `empty`.

        Raises
        ------
        GaugeError
            If the file cannot be read or is damaged, or the device has too little memory.
        """
        from gauge_mc.formats import open_configuration

        found = open_configuration(path)
        header = found.header
        width = precision or header.precision
        return cls.from_slices(header.lattice, header.group, found.slices(), width, device)

    @classmethod
    def from_slices(
        cls,
        lattice: Lattice,
        group: str,
        slices: Iterable[NDArray[np.complexfloating[Any, Any]]],
        precision: str = defaults.PRECISION,
        device: Device | DeviceGroup | None = None,
    ) -> Field:
        """Return a field with the given matrices.

        Parameters
        ----------
        lattice, group, precision, device
            As for `empty`.
        slices : iterable of ndarray, shape (Z, Y, X, 4, N, N)
            The matrices ``U[z, y, x, mu, a, b]`` of every time slice from t = 0 on; an array with
            an axis for t in front is one. They are taken to be in the group: what is not stored is
            dropped. Of several processes only the root uses it.

        Raises
        ------
        UsageError, GaugeError
            As of `empty`; GaugeError also if a slice is missing, left over or of another shape.
        """
        field = cls.empty(lattice, group, precision, device)
        checked = _checked(slices, lattice, field.group)
        field.restore(checked)
        if field.devices.root:
            list(checked)  # a file is checked when its last slice has been read
        return field

    def save(
        self,
        path: str | os.PathLike[str],
        format: str = defaults.FORMAT,
        precision: str | None = None,
        provenance: Mapping[str, str] | None = None,
    ) -> None:
        """Write the links as a configuration file, whole or not at all.

        Parameters
        ----------
        path : str or path-like
        format : str
            The name of a format, such as ``nersc``.
        precision : str, optional
            Precision of the links in the file; by default that of the field.
        provenance : mapping of str to str, optional
            Free text fields of the file's header.

        Raises
        ------
        UsageError
            If there is no such format, or it cannot hold such links.
        GaugeError
            If the file cannot be written.
        """
        from gauge_mc.formats import write_configuration

        if not self.devices.root:
            list(self.packed_slices())
            return
        width, name = precision or self.precision, self.group.name
        write_configuration(path, self.slices(), self.lattice, name, width, format, provenance)

    def __repr__(self) -> str:
        group, where = self.group, self.devices.name
        return f"<Field {group} {self.lattice}, {self.precision} precision, on {where}>"

    @property
    def nbytes(self) -> int:
        """The bytes of the links, without halos."""
        return self.layouts[0].slice_bytes(self.group.components) * self.lattice.t

    @cached_property
    def halo(self) -> HaloExchange:
        """The exchange of the slices next to slabs."""
        return HaloExchange(self.devices, self.slabs, transfers_of(self.layouts, nearest=True))

    @cached_property
    def _whole_halo(self) -> HaloExchange:
        """The exchange of all slices of the halos."""
        return HaloExchange(self.devices, self.slabs, transfers_of(self.layouts, nearest=False))

    @cached_property
    def prepared(self) -> dict[tuple[object, ...], object]:
        """What is prepared once for repeated use on this field, such as sweeps, by its key."""
        return {}

    def window(self, mu: int, parity: int) -> Window:
        """Return where the links of one direction and parity are in a slice."""
        nbytes = self.slabs[0].slice_bytes // 8
        return Window((4 * parity + mu) * nbytes, nbytes)

    def exchange_halo(self, nearest: bool = True) -> None:
        """Bring the halos up to date: the slices next to slabs, or all."""
        halo = self.halo if nearest else self._whole_halo
        halo.post(Window(0, self.slabs[0].slice_bytes))
        halo.wait()

    def packed_slices(self) -> Iterator[NDArray[Any]]:
        """Return the links as they are stored, to the bit.

        Yields
        ------
        ndarray, shape (Z, Y, X, 4, components), float32 or float64
            The stored components for t = 0, 1, … in the root; nothing in other processes.
        """
        return self.devices.gather_slices(self.lattice, lambda t: self._slab(t).read(t))

    def restore(self, slices: Iterator[NDArray[Any]]) -> None:
        """Put back what `packed_slices` returned."""

        def put(t: int, links: NDArray[Any]) -> None:
            self._slab(t).write(t, links)

        self.devices.scatter_slices(self.lattice, slices, put)
        self.exchange_halo()

    def _slab(self, t: int) -> Slab:
        return next(slab for slab in self.slabs if t in slab.layout.times)

    def slices(self) -> Iterator[NDArray[np.complex128]]:
        """Return the links as matrices, one time slice at a time.

        Yields
        ------
        ndarray, shape (Z, Y, X, 4, N, N), complex128
            ``U[z, y, x, mu, a, b]`` for t = 0, 1, … in the root; nothing in other processes.
        """
        return map(self.group.matrices, self.packed_slices())

    def to_numpy(self) -> NDArray[np.complex128]:
        """Return all links as matrices, ``U[t, z, y, x, mu, a, b]``, complex128."""
        return np.stack(list(self.slices()))


def _checked(
    slices: Iterable[NDArray[np.complexfloating[Any, Any]]], lattice: Lattice, group: Group
) -> Iterator[NDArray[np.float64]]:
    """Yield the stored components of exactly as many slices as the lattice has."""
    x, y, z, extent_t = lattice.extents
    t = -1
    for t, matrices in enumerate(slices):
        if t == extent_t or matrices.shape != (z, y, x, 4, group.colours, group.colours):
            raise GaugeError(
                f"The links are not those of {group.label} on {lattice}: slice {t} has the "
                f"shape {matrices.shape}."
            )
        yield group.stored(matrices)
    if t + 1 < extent_t:
        raise GaugeError(f"The links end after {t + 1} of {extent_t} time slices.")

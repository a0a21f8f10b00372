"""Link fields resident on devices; to and from NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import Device
from gauge_mc.devices.base import repeated
from gauge_mc.devices.structures import GeometryStruct, StreamStruct, WorkStruct
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.lattice import Lattice
from gauge_mc.layout import COMPONENTS, REALS, Layout, split_lanes
from gauge_mc.ring import Ring
from gauge_mc.ring.exchange import Exchange, Window, transfers_of
from gauge_mc.ring.slab import Slab


class _HotArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("links", ctypes.c_void_p),
        ("stream", StreamStruct),
    ]


@dataclass(frozen=True)
class Field:
    """The links U_mu(x) of a lattice, in the memory of one or more devices.

    Make one with `cold`, `hot` or `load`; updates and observables take it as their argument. Where
    several processes share a lattice, all make all calls.

    Attributes
    ----------
    lattice : Lattice
        The lattice.
    group : str
        ``su2`` or ``su3``.
    precision : str
        ``single`` or ``double``.
    ring : Ring
        Where the links are.
    slabs : tuple of Slab
        The time slices on each of this process's devices.
    layouts : tuple of Layout
        How the slices lie in every slab of the ring.
    """

    lattice: Lattice
    group: str
    precision: str
    ring: Ring
    slabs: tuple[Slab, ...]
    layouts: tuple[Layout, ...]

    @classmethod
    def empty(
        cls,
        lattice: Lattice,
        group: str,
        precision: str = "single",
        device: Device | Ring | None = None,
        above: int = 1,
    ) -> Field:
        """A field of zeros, to be filled; not a configuration.

        Parameters
        ----------
        lattice : Lattice
        group : str
            ``su2`` or ``su3``.
        precision : str
            ``single`` or ``double``.
        device : Device or Ring, optional
            Where; by default what `open_device` finds.
        above : int
            Of how many slices that follow slabs have copies, where there are several slabs.

        Raises
        ------
        UsageError
            If there is no such group or precision, or there are too few time slices.
        GaugeError
            If the device cannot be opened or has too little memory.
        """
        for name, value, known in (("group", group, COMPONENTS), ("precision", precision, REALS)):
            if value not in known:
                raise UsageError(f"The {name} '{value}' is unknown; there are {', '.join(known)}.")
        ring = Ring.of(device)
        first = ring.devices[0]
        split = split_lanes(lattice, first.lanes(precision))
        times = ring.slabs(lattice)
        beside = (above, 1) if len(times) > 1 else (0, 0)
        layouts = tuple(
            Layout(lattice, precision, split, first.group_bytes, one.start, len(one), *beside)
            for one in times
        )
        slabs = tuple(
            Slab(group, device, layout, device.allocate(layout.field_bytes(COMPONENTS[group])))
            for device, layout in zip(ring.devices, layouts[ring.first_slab :], strict=False)
        )
        return cls(lattice, group, precision, ring, slabs, layouts)

    @classmethod
    def cold(
        cls,
        lattice: Lattice,
        group: str,
        precision: str = "single",
        device: Device | Ring | None = None,
    ) -> Field:
        """All links one. Arguments and errors as for `empty`."""
        field = cls.empty(lattice, group, precision, device)
        x, y, z, _ = lattice.extents
        one = np.zeros((z, y, x, 4, field.components), REALS[precision])
        one[..., [0] if group == "su2" else [0, 8]] = 1
        for slab in field.slabs:
            for t in slab.layout.times:
                slab.restore(t, one)
        field.exchange()
        return field

    @classmethod
    def hot(
        cls,
        lattice: Lattice,
        group: str,
        precision: str = "single",
        device: Device | Ring | None = None,
        seed: int = 1,
    ) -> Field:
        """All links Haar-random, a function of `seed`. Arguments and errors as for `empty`."""
        field = cls.empty(lattice, group, precision, device)
        # The all-ones step is one that no sweep of a chain reaches.
        stream = StreamStruct.of(seed, 2**64 - 1)
        for slab in field.slabs:
            arguments = _HotArguments(slab.geometry, slab.work(), slab.buffer.address, stream)
            slab.kernel("hot")(repeated([arguments], 1))
        field.exchange()
        return field

    @classmethod
    def load(
        cls,
        lattice: Lattice,
        group: str,
        slices: Iterable[NDArray[np.complexfloating[Any, Any]]],
        precision: str = "single",
        device: Device | Ring | None = None,
    ) -> Field:
        """A field from matrices.

        Parameters
        ----------
        lattice, group, precision, device
            As for `empty`.
        slices : iterable of ndarray, shape (Z, Y, X, 4, N, N)
            The matrices ``U[z, y, x, mu, a, b]`` of every time slice, t = 0 first. They are
            taken to be in the group; what the stored components do not hold is dropped. Of several
            processes only the root uses it.

        Raises
        ------
        UsageError, GaugeError
            As for `empty`; GaugeError also if a slice is missing, left over or of another shape.
        """
        field = cls.empty(lattice, group, precision, device)
        checked = _checked(slices, lattice, group)
        field.restore(checked)
        if field.ring.root:
            list(checked)  # files are checked at their end
        return field

    @property
    def components(self) -> int:
        """Stored reals of a link."""
        return COMPONENTS[self.group]

    @property
    def device(self) -> Device:
        """The first device of this process."""
        return self.ring.devices[0]

    @property
    def layout(self) -> Layout:
        """How the first slices lie in memory."""
        return self.slabs[0].layout

    @property
    def nbytes(self) -> int:
        """Bytes of the links, without copies."""
        return self.layouts[0].slice_bytes(self.components) * self.lattice.t

    @cached_property
    def halo(self) -> Exchange:
        """What renews the copies of slices next to slabs."""
        return Exchange(self.ring, self.slabs, transfers_of(self.layouts, nearest=True))

    @cached_property
    def _all_copies(self) -> Exchange:
        """What renews all copies of slices."""
        return Exchange(self.ring, self.slabs, transfers_of(self.layouts, nearest=False))

    def window(self, mu: int, parity: int) -> Window:
        """Where in a slice the links of one direction and parity are."""
        nbytes = self.slabs[0].slice_bytes // 8
        return Window((4 * parity + mu) * nbytes, nbytes)

    def exchange(self, nearest: bool = True) -> None:
        """Renew the copies that slabs have of slices, those next to them or all."""
        copies = self.halo if nearest else self._all_copies
        copies.start(Window(0, self.slabs[0].slice_bytes))
        copies.finish()

    def stored(self) -> Iterator[NDArray[Any]]:
        """The links as they are stored, to the bit.

        Yields
        ------
        ndarray, shape (Z, Y, X, 4, components), float32 or float64
            For t = 0, 1, … as `Slab.stored` gives them; nothing but in the root.
        """
        return self.ring.gathered(self.lattice, lambda t: self._slab(t).stored(t))

    def restore(self, slices: Iterator[NDArray[Any]]) -> None:
        """Put back what `stored` gave."""
        self.ring.spread(self.lattice, slices, lambda t, links: self._slab(t).restore(t, links))
        self.exchange()

    def _slab(self, t: int) -> Slab:
        return next(slab for slab in self.slabs if t in slab.layout.times)

    def slices(self) -> Iterator[NDArray[np.complex128]]:
        """The links as matrices, one time slice at a time.

        Yields
        ------
        ndarray, shape (Z, Y, X, 4, N, N), complex128
            ``U[z, y, x, mu, a, b]`` for t = 0, 1, …; nothing but in the root.
        """
        return map(matrices_of, self.stored())

    def to_numpy(self) -> NDArray[np.complex128]:
        """All links as matrices, ``U[t, z, y, x, mu, a, b]``, complex128."""
        return np.stack(list(self.slices()))


def _checked(
    slices: Iterable[NDArray[np.complexfloating[Any, Any]]], lattice: Lattice, group: str
) -> Iterator[NDArray[np.float64]]:
    """Yield the stored components of so many slices of matrices as a lattice has."""
    x, y, z, extent_t = lattice.extents
    n = int(group[2])
    t = -1
    for t, matrices in enumerate(slices):
        if t == extent_t or matrices.shape != (z, y, x, 4, n, n):
            raise GaugeError(
                f"The links are not those of {group.upper()} on {lattice}: slice {t} has the "
                f"shape {matrices.shape}."
            )
        yield components_of(matrices)
    if t + 1 < extent_t:
        raise GaugeError(f"The links end after {t + 1} of {extent_t} time slices.")


def matrices_of(links: NDArray[Any]) -> NDArray[np.complex128]:
    """Matrices from stored components.

    Parameters
    ----------
    links : ndarray, shape (..., 4) for SU(2), (..., 12) for SU(3)
        Stored components.

    Returns
    -------
    ndarray, shape (..., N, N), complex128
        The matrices; SU(3)'s third row is the conjugate of the cross product of the others.
    """
    reals = np.ascontiguousarray(links, dtype=np.float64)
    if reals.shape[-1] == 4:
        a = np.moveaxis(reals, -1, 0)
        top = np.stack([a[0] + 1j * a[3], a[2] + 1j * a[1]], axis=-1)
        bottom = np.stack([-top[..., 1].conj(), top[..., 0].conj()], axis=-1)
        return np.stack([top, bottom], axis=-2)
    rows = reals.view(np.complex128).reshape(*reals.shape[:-1], 2, 3)
    third = np.cross(rows[..., 0, :], rows[..., 1, :]).conj()
    return np.concatenate([rows, third[..., np.newaxis, :]], axis=-2)


def components_of(matrices: NDArray[np.complexfloating[Any, Any]]) -> NDArray[np.float64]:
    """Stored components from matrices, the inverse of `matrices_of`."""
    if matrices.shape[-1] == 2:
        a, b = matrices[..., 0, 0], matrices[..., 0, 1]
        return np.stack([a.real, b.imag, b.real, a.imag], axis=-1).astype(np.float64)
    rows = np.ascontiguousarray(matrices[..., :2, :], dtype=np.complex128)
    return rows.reshape(*rows.shape[:-2], 6).view(np.float64)

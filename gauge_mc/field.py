"""Link fields resident on a device; to and from NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import Buffer, Device, Kernel, open_device
from gauge_mc.devices.base import repeated
from gauge_mc.devices.source import DEFAULT_LUXURY, Variant
from gauge_mc.devices.structures import GeometryStruct, StreamStruct, WorkStruct
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.lattice import Lattice
from gauge_mc.layout import BOTH_PARITIES, COMPONENTS, REALS, Layout, split_lanes

MOST_STATE_BYTES = 80
"""Of a random number generator, a site."""


class _HotArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("links", ctypes.c_void_p),
        ("stream", StreamStruct),
    ]


@dataclass(frozen=True)
class Field:
    """The links U_mu(x) of a lattice, in the memory of a device.

    Make one with `cold`, `hot` or `load`; updates and observables take it as their argument.

    Attributes
    ----------
    lattice : Lattice
        The lattice.
    group : str
        ``su2`` or ``su3``.
    precision : str
        ``single`` or ``double``.
    device : Device
        Where the links are.
    layout : Layout
        How they lie there.
    buffer : Buffer
        The memory.
    """

    lattice: Lattice
    group: str
    precision: str
    device: Device
    layout: Layout
    buffer: Buffer

    @classmethod
    def empty(
        cls,
        lattice: Lattice,
        group: str,
        precision: str = "single",
        device: Device | None = None,
    ) -> Field:
        """A field of zeros, to be filled; not a configuration.

        Raises
        ------
        UsageError
            If there is no such group or precision.
        GaugeError
            If the device cannot be opened or has too little memory.
        """
        for name, value, known in (("group", group, COMPONENTS), ("precision", precision, REALS)):
            if value not in known:
                raise UsageError(f"The {name} '{value}' is unknown; there are {', '.join(known)}.")
        device = device or open_device()
        split = split_lanes(lattice, device.lanes(precision))
        layout = Layout(lattice, precision, split, device.group_bytes, 0, lattice.t)
        buffer = device.allocate(layout.slice_bytes(COMPONENTS[group]) * lattice.t)
        return cls(lattice, group, precision, device, layout, buffer)

    @classmethod
    def cold(
        cls,
        lattice: Lattice,
        group: str,
        precision: str = "single",
        device: Device | None = None,
    ) -> Field:
        """All links one. Arguments and errors as for `empty`."""
        field = cls.empty(lattice, group, precision, device)
        x, y, z, t = lattice.extents
        one = np.zeros((z, y, x, 4, field.components), REALS[precision])
        one[..., [0] if group == "su2" else [0, 8]] = 1
        for slice_t in range(t):
            field.restore(slice_t, one)
        return field

    @classmethod
    def hot(
        cls,
        lattice: Lattice,
        group: str,
        precision: str = "single",
        device: Device | None = None,
        seed: int = 1,
    ) -> Field:
        """All links Haar-random, a function of `seed`. Arguments and errors as for `empty`."""
        field = cls.empty(lattice, group, precision, device)
        words = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
        # The all-ones step is one that no sweep of a chain reaches.
        stream = StreamStruct(seed=tuple(words), step=(2**32 - 1, 2**32 - 1))
        work = field.work(parity=BOTH_PARITIES)
        arguments = _HotArguments(field.geometry, work, field.buffer.address, stream)
        field.kernel("hot")(repeated([arguments], 1))
        return field

    @classmethod
    def load(
        cls,
        lattice: Lattice,
        group: str,
        slices: Iterable[NDArray[np.complexfloating[Any, Any]]],
        precision: str = "single",
        device: Device | None = None,
    ) -> Field:
        """A field from matrices.

        Parameters
        ----------
        lattice, group, precision, device
            As for `empty`.
        slices : iterable of ndarray, shape (Z, Y, X, 4, N, N)
            The matrices ``U[z, y, x, mu, a, b]`` of every time slice, t = 0 first. They are
            taken to be in the group; what the stored components do not hold is dropped.

        Raises
        ------
        UsageError, GaugeError
            As for `empty`; GaugeError also if a slice is missing, left over or of another shape.
        """
        field = cls.empty(lattice, group, precision, device)
        x, y, z, extent_t = lattice.extents
        n = int(group[2])
        t = 0
        for matrices in slices:
            if t == extent_t or matrices.shape != (z, y, x, 4, n, n):
                raise GaugeError(
                    f"The links are not those of {group.upper()} on {lattice}: slice {t} has the "
                    f"shape {matrices.shape}."
                )
            field.restore(t, components_of(matrices))
            t += 1
        if t < extent_t:
            raise GaugeError(f"The links end after {t} of {extent_t} time slices.")
        return field

    @property
    def components(self) -> int:
        """Stored reals of a link."""
        return COMPONENTS[self.group]

    @property
    def geometry(self) -> GeometryStruct:
        """The kernels' geometry."""
        return self.layout.geometry

    def work(self, parity: int = BOTH_PARITIES, mu: int = 0) -> WorkStruct:
        """A launch on all time slices."""
        return WorkStruct(0, self.layout.slices, parity, mu)

    def kernel(self, name: str, random: str = "philox", luxury: int = DEFAULT_LUXURY) -> Kernel:
        """A kernel for this field's group, precision and lanes."""
        return self.device.kernel(name, self.variant(random, luxury))

    def variant(self, random: str = "philox", luxury: int = DEFAULT_LUXURY) -> Variant:
        """What kernels for this field are compiled for."""
        layout = self.layout
        largest = max(self.buffer.nbytes, MOST_STATE_BYTES * self.lattice.sites)
        large = bool(layout.group_bytes) and largest // layout.group_bytes >= 2**32
        return Variant(self.group, self.precision, random, luxury, layout.lanes, large)

    def stored(self, t: int) -> NDArray[Any]:
        """The links of time slice `t` as they are stored, to the bit.

        Returns
        -------
        ndarray, shape (Z, Y, X, 4, components), float32 or float64
            The components: (a0, a1, a2, a3) for SU(2); real and imaginary parts of the first
            two rows for SU(3).
        """
        nbytes = self.layout.slice_bytes(self.components)
        data = self.device.read(self.buffer, t * nbytes, nbytes).view(self.layout.real)
        return self.layout.links_of(data, t, self.components)

    def restore(self, t: int, links: NDArray[Any]) -> None:
        """Put back what `stored` gave."""
        data = self.layout.stored_slice(links, t)
        self.device.write(self.buffer, t * data.nbytes, data)

    def slices(self) -> Iterator[NDArray[np.complex128]]:
        """The links as matrices, one time slice at a time.

        Yields
        ------
        ndarray, shape (Z, Y, X, 4, N, N), complex128
            ``U[z, y, x, mu, a, b]`` for t = 0, 1, ….
        """
        for t in range(self.lattice.t):
            yield matrices_of(self.stored(t))

    def to_numpy(self) -> NDArray[np.complex128]:
        """All links as matrices, ``U[t, z, y, x, mu, a, b]``, complex128."""
        return np.stack(list(self.slices()))


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

"""Link fields on devices, and their conversion to and from NumPy arrays and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.devices import Device
from gauge_mc.devices.base import BufferPart
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.halo import SliceRange
from gauge_mc.domain.lattice import Lattice, OddLattice, odd_extents
from gauge_mc.domain.slab import BOTH_PARITIES, REALS, Layout, Slab, real_type, split_lanes
from gauge_mc.errors import GaugeError, NoKernelsError, UnsupportedError
from gauge_mc.fields.file_links import FieldBlocks, SlabField
from gauge_mc.groups import GROUPS, Group
from gauge_mc.random import GENERATORS, stream
from gauge_mc.signatures import checks_types
from gauge_mc.storage import links as host_links
from gauge_mc.storage.links import Block, StoredLinks

COLD = Kernel("cold")
HOT = Kernel("hot")

HALO = 2
"""Default depth of halos in time slices, so that fields can be updated with every action."""

START_STEP = 2**64 - 1
"""Number of the sweep whose random numbers make a hot start; no chain ever reaches it."""


@dataclass(frozen=True)
class Field(SlabField):
    """The links U_mu(x) of a lattice, in the memory of one or more devices.

    Create a field with `cold`, `hot`, `load` or `from_slices`, and pass it to updates and
    observables. If several processes share a lattice, all of them must make the same calls.

    Attributes
    ----------
    lattice : Lattice
        Extents of the lattice.
    group : Group
        The gauge group.
    precision : str
        ``single`` or ``double``.
    devices : DeviceGroup
        The devices that hold the links.
    slabs : tuple of Slab
        The slabs of this process, one per device.
    layouts : tuple of Layout
        The layouts of all slabs, including those of other processes.
    """

    @classmethod
    def empty(
        cls,
        lattice: Lattice,
        group: str,
        precision: str = defaults.PRECISION,
        device: Device | DeviceGroup | None = None,
        above: int = HALO,
        replicas: int = 1,
        below: int = HALO,
    ) -> Field:
        """Return a field whose components are all zero; it is not a valid configuration.

        Parameters
        ----------
        lattice : Lattice
            Extents of the lattice.
        group : str
            Name of the group, such as ``su3``.
        precision : str
            ``single`` or ``double``.
        device : Device or DeviceGroup, optional
            The devices that hold the links; by default the one that `open_device` opens.
        above, below : int
            Halo depth above and below a slab, in time slices, if there are several slabs.
        replicas : int
            Number of independent lattices, which must be 1 if there are several slabs.

        Raises
        ------
        UsageError
            If the group or precision is unknown, or there are too few time slices for the devices.
        UnsupportedError
            If an extent of the lattice is odd.
        GaugeError
            If the device cannot be opened or has too little memory.
        """
        real_type(precision)  # which refuses an unknown one
        if isinstance(lattice, OddLattice):
            raise odd_extents(lattice)
        links_of, devices = GROUPS[group], DeviceGroup.of(device)
        first = devices.devices[0]
        split = split_lanes(lattice, first.lanes(precision))
        times = devices.slabs(lattice)
        halo = (above, below) if len(times) > 1 else (0, 0)
        assert replicas == 1 or len(times) == 1
        layouts = tuple(
            Layout(
                lattice,
                precision,
                split,
                first.packet_bytes,
                time.start,
                len(time),
                *halo,
                replicas,
            )
            for time in times
        )
        pairs = zip(devices.devices, layouts[devices.first_slab :], strict=False)
        slabs = tuple(
            Slab(links_of, x, layout, x.allocate(layout.field_bytes(links_of.components)))
            for x, layout in pairs
        )
        return cls(lattice, links_of, precision, devices, slabs, layouts)

    @classmethod
    @checks_types
    def cold(
        cls,
        lattice: Lattice,
        group: str,
        precision: str = defaults.PRECISION,
        device: Device | DeviceGroup | None = None,
    ) -> Field:
        """Return a field whose links are all 1 (cold start).

        For the parameters and errors see `empty`.
        """
        field = cls.empty(lattice, group, precision, device)
        for slab in field.slabs:
            slab.launch(COLD, slab.whole(), links=slab.buffer.address)
        field.exchange_halo()
        return field

    @classmethod
    @checks_types
    def hot(
        cls,
        lattice: Lattice,
        group: str,
        precision: str = defaults.PRECISION,
        device: Device | DeviceGroup | None = None,
        seed: int = defaults.SEED,
    ) -> Field:
        """Return a field of Haar-random links (hot start).

        The links depend only on the lattice, group, precision and `seed`. For the other parameters
        and the errors see `empty`.
        """
        field = cls.empty(lattice, group, precision, device)
        generator = GENERATORS[defaults.START_RNG]
        numbers = stream(generator.key(seed), START_STEP)
        for slab in field.slabs:
            links = slab.buffer.address
            slab.launch(HOT, slab.whole(), generator.choice(), links=links, stream=numbers)
        field.exchange_halo()
        return field

    @classmethod
    @checks_types
    def load(
        cls,
        path: str | os.PathLike[str],
        precision: str | None = None,
        device: Device | DeviceGroup | None = None,
        *,
        lattice: Lattice | str | None = None,
        group: str | None = None,
    ) -> Field:
        """Read a configuration file; the format is detected automatically.

        Where no kernel can be compiled, or if an extent is odd, the links can still be looked at
        and written, unless a device is given; see `Configuration.load`.

        Parameters
        ----------
        path : str or path-like
            The configuration file.
        precision : str, optional
            ``single`` or ``double``; by default the precision of the file.
        device : Device or DeviceGroup, optional
            See `empty`.
        lattice, group : Lattice or str, str, optional
            Extents and group of links of which the file itself says nothing; see
            `open_configuration`.

        Raises
        ------
        GaugeError
            If the file cannot be read or is damaged, or a device has too little memory.
        """
        from gauge_mc.configurations.reading import open_configuration

        return open_configuration(path, lattice, group).load(precision, device)

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
            See `empty`.
        slices : iterable of ndarray, shape (Z, Y, X, 4, N, N)
            The matrices ``U[z, y, x, mu, a, b]`` of the time slices t = 0, 1, …; an array with t
            as its first axis is also allowed. The matrices must be in the group: components that
            the field does not store are ignored. Only the root process uses the slices.

        Raises
        ------
        UsageError, GaugeError
            If a slice is missing, superfluous or of the wrong shape, or for the reasons given in
            `empty`.
        """
        field = cls.empty(lattice, group, precision, device)
        checked = _checked(slices, lattice, field.group)
        FieldBlocks(field, field._as_matrices).restore(checked)
        return field

    def save(
        self,
        path: str | os.PathLike[str],
        format: str = defaults.FORMAT,
        precision: str | None = None,
        provenance: Mapping[str, str] | None = None,
    ) -> None:
        """Write a configuration file; if this fails, an existing file is left unchanged.

        Parameters
        ----------
        path : str or path-like
            Checkpoint file.
        format : str
            Name of the file format, such as ``nersc``.
        precision : str, optional
            Precision of the links in the file; by default the precision of the field.
        provenance : mapping of str to str, optional
            Additional text for the file's header, by key.

        Raises
        ------
        UsageError
            If the format is unknown or does not support the group or precision.
        GaugeError
            If the file cannot be written.
        """
        from gauge_mc.configurations.writing import write_field

        write_field(self, path, precision or self.precision, format, provenance)

    def __repr__(self) -> str:
        group, where = self.group, self.devices.name
        return f"<Field {group} {self.lattice}, {self.precision} precision, on {where}>"

    @property
    def nbytes(self) -> int:
        """The size of the links of a replica in bytes, without halos."""
        return self.layouts[0].slice_bytes(self.group.components) * self.lattice.t

    def empty_like(self) -> Field:
        """Return an empty field of the same kind, with as many replicas and as deep halos.

        Raises
        ------
        GaugeError
            If a device has too little memory.
        """
        layout, kind = self.layouts[0], (self.lattice, self.group.name, self.precision)
        return Field.empty(*kind, self.devices, layout.above, layout.replicas, layout.below)

    def repeated(self, count: int) -> Field:
        """Return an empty field of several replicas, each of the kind of this field.

        Kernels update and measure all replicas in one launch, which keeps a device busy if the
        lattices are small.

        Raises
        ------
        GaugeError
            If the device has too little memory.
        """
        kind = (self.lattice, self.group.name, self.precision, self.devices)
        return Field.empty(*kind, replicas=count)

    def copy(self, source: Field) -> None:
        """Copy the links of another field on the same devices, whose halos may have other depths.

        The halos are not changed: neighbours may send to them at any time.
        """
        for mine, slab in zip(self.slabs, source.slabs, strict=True):
            mine.device.copy(mine.own_slices, slab.own_slices)

    @property
    def replicas(self) -> tuple[Field, ...]:
        """The independent lattices as fields in the same memory; usually only the field itself."""
        # The field must not refer to itself, which would delay freeing its memory.
        return self._parts or (self,)

    @cached_property
    def _parts(self) -> tuple[Field, ...]:
        layout = self.layouts[0]
        numbers = range(layout.replicas) if layout.replicas > 1 else ()
        return tuple(
            replace(self, slabs=(self.slabs[0].replica(n),), layouts=(layout.of_replica,))
            for n in numbers
        )

    def part(self, first: int, count: int) -> Field:
        """Return consecutive replicas as a field in the same memory."""
        slab = self.slabs[0].part(first, count)
        return replace(self, slabs=(slab,), layouts=(slab.layout,))

    @cached_property
    def prepared(self) -> dict[tuple[object, ...], object]:
        """Objects prepared once and used repeatedly on this field, such as sweeps, by a key."""
        return {}

    def window(self, mu: int, parity: int) -> SliceRange:
        """Return a range of bytes of a slice with the links of one direction and parity.

        For `BOTH_PARITIES` this is the range from the even to the odd sites, which holds links of
        other directions too.
        """
        nbytes = self.slabs[0].slice_bytes // 8
        if parity == BOTH_PARITIES:
            return SliceRange(mu * nbytes, 5 * nbytes)
        return SliceRange((4 * parity + mu) * nbytes, nbytes)

    def packed_slices(self) -> Iterator[NDArray[Any]]:
        """Return the stored components of the links, without conversion.

        Yields
        ------
        ndarray, shape (Z, Y, X, 4, components), float32 or float64
            The stored components for t = 0, 1, … in the root process; nothing in other processes.
        """
        x, y, z, _ = self.lattice.extents
        for block in FieldBlocks(self, self._as_stored).blocks():
            yield block.view(REALS[self.precision]).reshape(z, y, x, 4, self.group.reals)

    def restore(self, slices: Iterator[NDArray[Any]]) -> None:
        """Set the links to the stored components that `packed_slices` returned."""
        real, stored = REALS[self.precision], islice(slices, self.lattice.t)
        blocks = (np.ascontiguousarray(x, real).reshape(-1).view(np.uint8) for x in stored)
        FieldBlocks(self, self._as_stored).restore(blocks)

    @property
    def _as_stored(self) -> StoredLinks:
        """The form of `packed_slices`."""
        dtype = np.dtype(REALS[self.precision]).str
        return StoredLinks(self.lattice, self.group, dtype, as_stored=True)

    @property
    def _as_matrices(self) -> StoredLinks:
        """The form of `slices`."""
        return StoredLinks(self.lattice, self.group, "<f8")

    def slices(self) -> Iterator[NDArray[np.complex128]]:
        """Return the links as matrices, one time slice at a time.

        Yields
        ------
        ndarray, shape (Z, Y, X, 4, N, N), complex128
            ``U[z, y, x, mu, a, b]`` for t = 0, 1, … in the root process; nothing in others.
        """
        x, y, z, _ = self.lattice.extents
        n = self.group.colours
        for block in FieldBlocks(self, self._as_matrices).blocks():
            yield block.view(np.complex128).reshape(z, y, x, 4, n, n)

    def to_numpy(self) -> NDArray[np.complex128]:
        """Return all links as matrices.

        Returns
        -------
        ndarray, shape (T, Z, Y, X, 4, N, N), complex128
            The links ``U[t, z, y, x, mu, a, b]``.
        """
        return np.stack(list(self.slices()))


def _checked(
    slices: Iterable[NDArray[np.complexfloating[Any, Any]]], lattice: Lattice, group: Group
) -> Iterator[Block]:
    """Yield the bytes of each slice; check the shapes and the number of slices."""
    x, y, z, extent_t = lattice.extents
    t = -1
    for t, matrices in enumerate(slices):
        if t == extent_t or matrices.shape != (z, y, x, 4, group.colours, group.colours):
            raise GaugeError(
                f"The links are not those of {group.label} on {lattice}: slice {t} has the "
                f"shape {matrices.shape}, and there must be {extent_t} slices of the shape "
                f"{(z, y, x, 4, group.colours, group.colours)}."
            )
        yield np.ascontiguousarray(matrices, np.complex128).reshape(-1).view(np.uint8)
    if t + 1 < extent_t:
        raise GaugeError(
            f"The links end after {t + 1} of {extent_t} time slices; give all of them."
        )


PART = 2**16
"""Number of zeros in bytes that the host sends to set a field to 0."""


class AlgebraField(SlabField):
    """One element of the Lie algebra for every link, such as momenta or forces.

    ``cuda_src/group/algebra.h`` declares how kernels see it, as ``GROUP::AlgebraField``.
    """

    @classmethod
    def like(cls, field: SlabField) -> Self:
        """Return a field with arbitrary content on the slabs of another one, with its halos."""
        components = field.group.algebra_components

        def empty(slab: Slab) -> Slab:
            buffer = slab.device.allocate(slab.layout.field_bytes(components))
            return replace(slab, buffer=buffer, components=components)

        slabs = tuple(map(empty, field.slabs))
        kind = field.lattice, field.group, field.precision, field.devices
        return cls(*kind, slabs, field.layouts)

    def clear(self) -> None:
        """Set all elements to 0, in copies of parts that are twice as long every time."""
        for slab in self.slabs:
            buffer, cleared = slab.buffer, min(slab.buffer.nbytes, PART)
            slab.device.write(buffer, 0, np.zeros(cleared, np.uint8))
            while cleared < buffer.nbytes:
                size = min(cleared, buffer.nbytes - cleared)
                slab.device.copy(BufferPart(buffer, cleared, size), BufferPart(buffer, 0, size))
                cleared += size


def is_local(slab: Slab, depth: int, compute: Callable[[], bytes]) -> bool:
    """Return whether a result in the first slice has the same bits if links far away change."""
    random, real = np.random.default_rng(1), slab.layout.real
    shape = slab.layout.slices, slab.slice_bytes // real.itemsize
    near, far = (random.uniform(-0.5, 0.5, shape).astype(real) for _ in range(2))
    beyond = near.copy()
    away = slice(depth + 1, len(near) - depth)
    beyond[away] = far[away]
    results = []
    for links in (near, beyond):
        slab.device.write(slab.buffer, 0, links.reshape(-1).view(np.uint8))
        results.append(compute())
    return results[0] == results[1]


ON_DEVICES = {"devices", "slabs", "layouts"}
"""Attributes of a field by which kernels find its links."""


class HostField(Field):
    """Links in NumPy arrays. Whatever needs kernels is refused with the reason why there are none.

    Parameters
    ----------
    lattice, group, precision
        See `Field.empty`.
    slices : iterable of ndarray, shape (Z, Y, X, 4, N, N)
        The matrices of the time slices t = 0, 1, …
    reason : NoKernelsError or UnsupportedError
        The reason: the missing compiler, or a lattice that kernels cannot take.
    """

    def __init__(
        self,
        lattice: Lattice,
        group: str,
        precision: str,
        slices: Iterable[NDArray[np.complex128]],
        reason: NoKernelsError | UnsupportedError,
    ) -> None:
        kind = np.result_type(real_type(precision), np.complex64)
        values = {"lattice": lattice, "group": GROUPS[group], "precision": precision}
        stored = {"_links": [slice_.astype(kind) for slice_ in slices], "_reason": reason}
        for name, value in (values | stored).items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Refuse what needs a device."""
        if name in ON_DEVICES:
            reason = vars(self)["_reason"]
            raise type(reason)(str(reason))
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"<Field {self.group} {self.lattice}, {self.precision} precision, without kernels>"

    def slices(self) -> Iterator[NDArray[np.complex128]]:
        """Return the links as matrices, one time slice at a time; see `Field.slices`."""
        n = self.group.colours
        for links in vars(self)["_links"]:
            matrices = links.reshape(-1, n, n).astype(np.complex128)
            yield host_links.in_group(self.group, matrices).reshape(links.shape)

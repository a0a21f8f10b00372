"""Spinor fields on devices: how their numbers are stored, and arrays of NumPy with them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.arrays import Array
from gauge_mc.devices.base import BufferPart, Launch, repeated
from gauge_mc.devices.kernels import REAL_BYTES, Choice, Kernel
from gauge_mc.devices.source import source_file, structure
from gauge_mc.domain.halo import HaloExchange, SliceRange, transfers_of
from gauge_mc.domain.slab import BOTH_PARITIES, Layout, Slab, split_lanes, work
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.quoting import counted
from gauge_mc.registry import nearest

Complex = NDArray[np.complex128]
"""Complex numbers in double precision."""

ELSEWHERE = source_file("dirac/elsewhere.h")
"""The header that declares the structure ``Elsewhere``."""


@dataclass(frozen=True)
class Storage:
    """A type of stored numbers; ``cuda_src/dirac/storage.h`` declares it."""

    name: str
    """Name on the command line: ``double``, ``single`` or ``half``."""
    arithmetic: str
    """Precision in which kernels compute, ``single`` or ``double``."""
    cpp: str
    """Name of the class in C++."""
    number_bytes: int
    """Bytes of a number."""
    norm_bytes: int
    """Bytes of the norm that all numbers of a site share."""
    rounding: float
    """Largest relative rounding error of a number, or error in units of the site's largest one."""

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of this type."""
        return Choice.of("storage", self.cpp, "dirac/storage.h", self.cpp)

    def bytes(self, numbers: int) -> int:
        """Return the bytes of the numbers of a site."""
        return self.number_bytes * numbers + self.norm_bytes

    def unit_bytes(self, numbers: int) -> int:
        """Return the bytes of the numbers of a link, which need no norm."""
        return self.number_bytes * numbers

    def layouts(self, field: Field) -> tuple[Layout, ...]:
        """Return the layouts of a field's sites for the precision of the arithmetic.

        They are those of all slabs of the field; the number of lanes depends on the precision.
        """
        if field.precision == self.arithmetic:
            return field.layouts
        lanes = field.devices.devices[0].lanes(self.arithmetic)
        return _layouts(field.layouts, self.arithmetic, lanes)


@cache
def _layouts(layouts: tuple[Layout, ...], precision: str, lanes: int) -> tuple[Layout, ...]:
    """Return layouts for another precision; their tables are computed once."""
    split = split_lanes(layouts[0].lattice, lanes)
    return tuple(replace(layout, precision=precision, split=split) for layout in layouts)


STORAGES = {
    x.name: x
    for x in (
        Storage("double", "double", "Reals", REAL_BYTES["double"], 0, 2.0**-53),
        Storage("single", "single", "Reals", REAL_BYTES["single"], 0, 2.0**-24),
        Storage("half", "single", "FixedPoint", 2, 4, 0.5 / 32767),
    )
}
"""All types of stored numbers, by name."""


def storage_of(name: str) -> Storage:
    """Return a type of stored numbers."""
    if name not in STORAGES:
        raise UsageError(f"There is no precision '{name}' of spinors{nearest(name, STORAGES)}")
    return STORAGES[name]


def precisions_from(inner: str) -> list[str]:
    """Return the precisions that are tried one after the other, from `inner` to double."""
    return list(STORAGES)[list(STORAGES).index(inner) :: -1]


@dataclass(frozen=True)
class StoredSlab(Slab):
    """The part of a field with its own type of storage that one device holds, with its halo."""

    bytes_per_slice: int = 0
    """Bytes of a time slice."""

    @cached_property
    def slice_bytes(self) -> int:
        """The bytes of a time slice."""
        return self.bytes_per_slice

    def prepared(
        self, kernel: Kernel, work: ctypes.Structure, *choices: Choice, **values: Any
    ) -> tuple[Any, Launch]:
        """Return the arguments of a kernel, which may be changed, and a call that launches it.

        See `Slab.launch`.
        """
        step = repeated([self.arguments(kernel, work, *choices, **values)], 1)
        return step[0], self.kernel(kernel, *choices).prepared(step)


def empty_slabs(
    field: Field, layouts: Sequence[Layout], bytes_per_site: float
) -> tuple[StoredSlab, ...]:
    """Return slabs of a field with so many bytes per site, which are zero."""
    slabs = []
    for old, layout in zip(field.slabs, layouts[field.devices.first_slab :], strict=False):
        nbytes = round(bytes_per_site * 2 * layout.slots * layout.lanes)
        buffer = old.device.allocate(layout.slices_in_memory * nbytes)
        slabs.append(StoredSlab(field.group, old.device, layout, buffer, None, nbytes))
    return tuple(slabs)


@dataclass(frozen=True)
class StorageMap:
    """Where kernels find the numbers of a field that has another type of storage."""

    number_bytes: int
    """Bytes of a number."""
    layout: Layout
    """The layout on which a kernel works."""
    other: Layout
    """The layout of the field."""

    @cached_property
    def structure(self) -> ctypes.Structure:
        """The structure ``Elsewhere`` for kernels; it is valid as long as this object exists."""
        mapping: ctypes.Structure = structure("Elsewhere", (ELSEWHERE,))(
            number_bytes=self.number_bytes,
            slots=self.other.slots,
            lanes=self.other.lanes,
            places=None if self._places is None else self._places.ctypes.data,
        )
        return mapping

    @cached_property
    def _places(self) -> NDArray[np.int32] | None:
        return self.layout.places_in(self.other)


@cache
def elsewhere(number_bytes: int, layout: Layout, target: Layout) -> StorageMap:
    """Return a `StorageMap`, whose table is computed once."""
    return StorageMap(number_bytes, layout, target)


READ_SPINORS = Kernel("read_spinors")
WRITE_SPINORS = Kernel("write_spinors")
CONVERT_SPINORS = Kernel("convert_spinors")

SPINORS = source_file("dirac/spinors.h")
"""The header that declares the structure ``Spinors``."""


def in_turn(*calls: Callable[[], object]) -> Callable[[], None]:
    """Return a call that makes several ones, in their order."""

    def call() -> None:
        for each in calls:
            each()

    return call


SPINS = 4
"""Number of spin components."""


@dataclass(frozen=True)
class SpinorField:
    """Vectors psi(x) with spin and colour on the sites of a lattice, in the memory of devices.

    Create a field with `empty` or `from_numpy`. Its slabs are those of a field of links. Kernels
    take it as the structure ``Spinors`` that `structure` returns. If several processes share the
    lattice, all of them must make the same calls.
    """

    field: Field
    """A field of links on the same lattice and devices."""
    storage: Storage
    """Type of the stored numbers."""
    parities: tuple[int, ...]
    """The parities of the sites: ``(0,)``, ``(1,)`` or ``(0, 1)``."""
    count: int
    """Number of vectors (right-hand sides), which kernels treat together, on all replicas."""
    slabs: tuple[StoredSlab, ...]
    """The slabs of this process, one per device."""
    layouts: tuple[Layout, ...]
    """The layouts of all slabs, including those of other processes."""
    fifth: int | None = None
    """Extent of a fifth direction, if a vector is psi_s(x) with s = 0, 1, …."""

    @classmethod
    def empty(
        cls,
        field: Field,
        precision: str = "double",
        count: int = 1,
        parity: int | None = None,
        fifth: int | None = None,
    ) -> SpinorField:
        """Return a spinor field that is zero.

        Parameters
        ----------
        field : Field
            A field of links, which says on which lattice and devices.
        precision : str
            ``double``, ``single`` or ``half``, which is independent of that of the links.
        count : int
            Number of vectors, on each replica of the field of links.
        parity : int, optional
            0 or 1 for a field on the even or odd sites; by default it is on all sites.
        fifth : int, optional
            Extent of the fifth direction; by default there is none.

        Raises
        ------
        UsageError
            If the precision is unknown.
        GaugeError
            If a device has too little memory.
        """
        storage = storage_of(precision)
        layouts = storage.layouts(field)
        parities = (0, 1) if parity is None else (parity,)
        reals = 2 * SPINS * field.group.colours
        bytes_per_site = len(parities) * count * (fifth or 1) * storage.bytes(reals) / 2
        slabs = empty_slabs(field, layouts, bytes_per_site)
        return cls(field, storage, parities, count * layouts[0].replicas, slabs, layouts, fifth)

    @classmethod
    def from_numpy(
        cls,
        field: Field,
        array: NDArray[np.complexfloating[Any, Any]],
        precision: str = "double",
        parity: int | None = None,
        fifth: int | None = None,
    ) -> SpinorField:
        """Return a spinor field with given values.

        Parameters
        ----------
        field, precision, parity, fifth
            See `empty`.
        array : ndarray, shape (T, Z, Y, X, 4, N) or (count, T, Z, Y, X, 4, N)
            ``psi[t, z, y, x, spin, colour]``, or several of them. With a fifth direction its
            extent is before T. Only the root process uses it.

        Raises
        ------
        GaugeError
            If the array has the wrong shape, or for the reasons given in `empty`.
        """
        vectors = checked_vectors(field, array, fifth)
        numpy = cls.empty(field, precision, len(vectors), parity, fifth)
        numpy.restore(vectors)
        return numpy

    def like(
        self, precision: str | None = None, parity: int | None = None, count: int | None = None
    ) -> SpinorField:
        """Return an empty field.

        By default it has the same precision, is on the same sites, and has as many vectors.
        """
        if parity is None and len(self.parities) == 1:
            parity = self.parities[0]
        name = precision or self.storage.name
        each = count or self.count // self.replicas
        return SpinorField.empty(self.field, name, each, parity, self.fifth)

    @property
    def replicas(self) -> int:
        """Number of lattices, each with vectors of its own, which follow each other in memory."""
        return self.layouts[0].replicas

    def part(self, some: range) -> SpinorField:
        """Return the vectors on consecutive replicas as a field in the same memory."""
        if len(some) == self.replicas:
            return self  # which may be divided over devices
        layout = replace(self.layouts[0], replicas=len(some))
        old, period = self.slabs[0], layout.period * self.slabs[0].slice_bytes
        memory = BufferPart(old.buffer, some.start * period, len(some) * period)
        slab = replace(old, layout=layout, buffer=memory)
        count = self.count // self.replicas * len(some)
        field = self.field.part(some.start, len(some))
        return replace(self, field=field, count=count, slabs=(slab,), layouts=(layout,))

    @property
    def launched(self) -> int:
        """The parity of a launch on all sites of the field: 0, 1 or `BOTH_PARITIES`."""
        return self.parities[0] if len(self.parities) == 1 else BOTH_PARITIES

    @property
    def vectors(self) -> int:
        """Number of vectors psi(x) in memory: those of all right-hand sides and all s.

        Those of a right-hand side follow each other.
        """
        return self.count * (self.fifth or 1)

    @property
    def per_site(self) -> int:
        """Number of vectors on each replica, which are those of a site to a kernel."""
        return self.vectors // self.replicas

    def __repr__(self) -> str:
        names = ("even sites", "odd sites", "all sites")
        sites = names[2 if len(self.parities) == 2 else self.parities[0]]
        lattice = f"{self.field.lattice}{f' x {self.fifth}' if self.fifth else ''}"
        vectors = f"{counted(self.count, 'vector')} on {sites}"
        return f"<SpinorField {lattice}, {vectors}, {self.storage.name}>"

    def structure(self, slab: StoredSlab, first: int = 0) -> ctypes.Structure:
        """Return the structure ``Spinors`` of the vectors from `first` on for kernels on a slab.

        If there are several replicas, it is that of all of them for a vector of the first one, and
        that of a single one for another vector, which may be one before the first replica.
        """
        return self._structure(slab, first, self._vector_bytes(slab))

    def by_vector(self, slab: StoredSlab, first: int = 0) -> ctypes.Structure:
        """Return the same for kernels of linear algebra, to which vectors are replicas.

        They are those from `first` on, or on several replicas those of this number on each.
        """
        if self.replicas == 1:
            return self.structure(slab, first)
        return self._structure(slab, first, slab.layout.period * slab.slice_bytes)

    def _vector_bytes(self, slab: StoredSlab) -> int:
        """Return the bytes between the vectors on a site."""
        return slab.slice_bytes // len(self.parities) // self.per_site

    def _structure(self, slab: StoredSlab, first: int, vector: int) -> ctypes.Structure:
        """Return the structure of vectors that are so many bytes apart."""
        replica, number = divmod(first, self.per_site)
        start = replica * slab.layout.period * slab.slice_bytes
        spinors: ctypes.Structure = structure("Spinors", (SPINORS,))(
            data=slab.buffer.address + start + number * self._vector_bytes(slab),
            slice=slab.slice_bytes,
            parity=slab.slice_bytes // 2 if len(self.parities) == 2 else 0,
            vector=vector,
        )
        return spinors

    def window(self, parity: int) -> SliceRange:
        """Return the range of bytes of a slice that holds the vectors on one parity."""
        nbytes = self.slabs[0].slice_bytes // len(self.parities)
        return SliceRange(self.parities.index(parity) * nbytes, nbytes)

    @cached_property
    def halo(self) -> HaloExchange:
        """The halo exchange of the slices next to each slab; post a `window` of it."""
        return HaloExchange(self.field.devices, self.slabs, transfers_of(self.layouts, 1))

    def exchange_halo(self) -> None:
        """Update the halos of all vectors."""
        self.halo.post(SliceRange(0, self.slabs[0].slice_bytes))
        self.halo.wait()

    def copy(self, source: SpinorField, first: int = 0, to: int = 0) -> None:
        """Copy vectors of any precision on the sites that both fields have; halos are not updated.

        Parameters
        ----------
        source : SpinorField
            The vectors.
        first, to : int
            The first vector that is copied, and the place of its copy. Vectors are copied until
            one of the fields ends.
        """
        self.copying(source, first, to)()

    def copying(self, source: SpinorField, first: int = 0, to: int = 0) -> Callable[[], None]:
        """Return a call that does `copy`, for repeated use."""
        extent, choice, launches = self.fifth or 1, self.storage.choice, []
        vectors = min(source.count - first, self.count - to) * extent // self.replicas
        parities = [parity for parity in self.parities if parity in source.parities]
        if len(parities) > 1:
            parities = [BOTH_PARITIES]
        for slab, old in zip(self.slabs, source.slabs, strict=True):
            where = elsewhere(source.storage.number_bytes, slab.layout, old.layout)
            for parity in parities:
                _, launch = slab.prepared(
                    CONVERT_SPINORS,
                    slab.whole(parity),
                    choice,
                    target=self.structure(slab, to * extent),
                    source=source.structure(old, first * extent),
                    elsewhere=where.structure,
                    vectors=vectors,
                )
                launches.append(launch)

        def call(_fields: tuple[SpinorField, SpinorField] = (self, source)) -> None:
            for launch in launches:  # while the fields own the memory
                launch()

        return call

    def restore(self, array: NDArray[np.complexfloating[Any, Any]]) -> None:
        """Set the vectors to those of an array, as `from_numpy` does; halos are not updated."""
        lattice, vectors = self.field.lattice, checked_vectors(self.field, array, self.fifth)
        if len(vectors) != self.count:
            raise GaugeError(
                f"The array has {counted(len(vectors), 'vector')}, but the field has "
                f"{self.count}; give as many."
            )
        vectors = vectors.reshape(-1, *vectors.shape[-6:])
        slices = (vectors[:, t] for t in range(lattice.t))
        self.field.devices.scatter_slices(lattice, slices, self._put)

    def put_slice(self, t: int, values: NDArray[np.complexfloating[Any, Any]]) -> None:
        """Set the vectors on a time slice, in the process that has it; halos are not updated.

        Parameters
        ----------
        t : int
            The time slice.
        values : ndarray, shape (vectors, Z, Y, X, 4, N)
            ``psi[n, z, y, x, spin, colour]``, in all processes.
        """
        if any(t in slab.layout.times for slab in self.slabs):
            self._put(t, values)

    def put_equal_slices(self) -> None:
        """Set the vectors to random ones whose time slices are all the same, for benchmarks.

        They are made in less time than other ones.
        """
        values = np.random.default_rng(1).normal(size=self._slice_shape).astype(complex)
        for t in range(self.field.lattice.t):
            self.put_slice(t, values)

    def slices(self) -> Iterator[Complex]:
        """Return the vectors, one time slice at a time.

        Yields
        ------
        ndarray, shape (vectors, Z, Y, X, 4, N), complex128
            ``psi[n, z, y, x, spin, colour]`` for t = 0, 1, … in the root process; nothing in
            others. Sites of a parity that the field does not have are zero.
        """
        return self.field.devices.gather_slices(self.field.lattice, self._get)

    def to_numpy(self) -> Complex:
        """Return all vectors, in every process.

        Returns
        -------
        ndarray, shape (count, T, Z, Y, X, 4, N), complex128
            ``psi[n, t, z, y, x, spin, colour]`` of all vectors n. With a fifth direction its extent
            is before T.
        """
        devices, slices = self.field.devices, list(self.slices())
        vectors = np.stack(slices, axis=1) if devices.root else np.empty(0, complex)
        if devices.root and self.fifth:
            vectors = vectors.reshape(self.count, self.fifth, *vectors.shape[1:])
        return devices.processes.broadcast(vectors)

    @property
    def _slice_shape(self) -> tuple[int, ...]:
        return (self.vectors, *self.field.lattice.extents[2::-1], SPINS, self.field.group.colours)

    def _put(self, t: int, values: NDArray[np.complexfloating[Any, Any]]) -> None:
        slab, block = self._slab(t), np.ascontiguousarray(values, np.complex128)
        device, address = slab.device, block.ctypes.data
        if not device.in_host_memory:
            buffer = device.scratch("spinors", block.nbytes)
            device.write(buffer, 0, block)
            address = buffer.address
        self._convert(READ_SPINORS, slab, t, address, block.nbytes)
        device.event().synchronize()

    def _get(self, t: int) -> Complex:
        slab, block = self._slab(t), np.zeros(self._slice_shape, np.complex128)
        device = slab.device
        if device.in_host_memory:
            self._convert(WRITE_SPINORS, slab, t, block.ctypes.data, block.nbytes)
            device.event().synchronize()
            return block
        buffer = device.scratch("spinors", block.nbytes)
        device.write(buffer, 0, block)
        self._convert(WRITE_SPINORS, slab, t, buffer.address, block.nbytes)
        return device.read(buffer, 0, block.nbytes).view(np.complex128).reshape(block.shape)

    def _convert(self, kernel: Kernel, slab: StoredSlab, t: int, words: int, nbytes: int) -> None:
        for parity in self.parities:
            for vector in range(self.vectors):
                slab.launch(
                    kernel,
                    work(t - slab.layout.first, 1, 1, parity),
                    self.storage.choice,
                    spinors=self.structure(slab),
                    words=words + vector * (nbytes // self.vectors),
                    vector=vector,
                )

    def _slab(self, t: int) -> StoredSlab:
        return next(slab for slab in self.slabs if t in slab.layout.times)


def zeroth(vectors: SpinorField, some: range | None) -> int:
    """Return the number of the first vector of all replicas, from which kernels count."""
    return -some.start * vectors.per_site if some else 0


def checked_vectors(
    field: Field, array: NDArray[np.complexfloating[Any, Any]], fifth: int | None = None
) -> NDArray[np.complexfloating[Any, Any]]:
    """Return vectors as an array of the shape (count, T, Z, Y, X, 4, N).

    With a fifth direction its extent is before T.
    """
    extents = (*((fifth,) if fifth else ()), *field.lattice.extents[::-1])
    shape = (*extents, SPINS, field.group.colours)
    vectors = np.asarray(array)
    if vectors.shape == shape:
        vectors = vectors[None]
    if vectors.shape[1:] != shape or not len(vectors):
        names = f"{'s, ' * bool(fifth)}t, z, y, x, spin, colour"
        raise GaugeError(
            f"The spinors have the shape {np.shape(array)}, but on {field.lattice} with "
            f"{field.group.label} they must have the shape {shape} [{names}], or this with the "
            "number of vectors before it."
        )
    return vectors


def in_units(
    field: Field, array: NDArray[np.complexfloating[Any, Any]], fifth: int | None = None
) -> tuple[SpinorField, Array]:
    """Return vectors in double precision, divided by units, and these.

    The units are powers of 2, so that nothing is rounded, and make squares of the numbers neither
    too large nor too small.
    """
    vectors = np.asarray(checked_vectors(field, array, fifth), complex)
    largest = np.abs(vectors).max(axis=tuple(range(1, vectors.ndim)), keepdims=True)
    unit = np.where((largest > 0) & np.isfinite(largest), np.exp2(np.frexp(largest)[1]), 1.0)
    scaled = np.asarray(vectors / unit, complex)
    return SpinorField.from_numpy(field, scaled, fifth=fifth), unit

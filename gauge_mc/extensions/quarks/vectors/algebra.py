"""Linear combinations and scalar products of spinor fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from gauge_mc.arrays import Array, Integers
from gauge_mc.devices.base import Launch, repeated
from gauge_mc.devices.kernels import Kernel
from gauge_mc.devices.source import constants, source_file, structure, zero
from gauge_mc.domain.slab import BOTH_PARITIES, Layout, work
from gauge_mc.extensions.quarks.vectors import Complex, SpinorField
from gauge_mc.fields.sums import SUM_BYTES, SlabSums, add_slices

ADVANCE_DIRECTION = Kernel("advance_direction")
ADVANCE_SHIFTS = Kernel("advance_shifts")
ADVANCE_SPINORS = Kernel("advance_spinors")
COMBINE_SPINORS = Kernel("combine_spinors")
MULTIPLY_SPINORS = Kernel("multiply_spinors")

PRODUCTS_HEADER = source_file("dirac/products.h")
HEADER = constants(PRODUCTS_HEADER)
PRODUCTS = HEADER["PRODUCTS"]
"""Number of sums: the real and imaginary part of <w, r>, and <r, r>."""

MOST_VECTORS = HEADER["MOST_VECTORS"]
"""Number of vectors that a launch with factors can treat."""

MOST_SHIFTS = constants(source_file("dirac/shifts.h"))["MOST_SHIFTS"]
"""Number of shifts that a launch can treat."""

MOST_ROWS = 2**16 - 1
"""Largest z T times the number of vectors of a launch, since no grid of a GPU has more blocks along
its third direction (CUDA C++ Programming Guide, table of compute capabilities)."""

Factors = Complex | Array | complex
"""A factor for every vector, or the same for all."""


@dataclass(frozen=True)
class Products:
    """Scalar products of every vector, summed in an order that depends on the lattice alone."""

    mixed: Complex
    """<w, r>, the sum of w^* r, of shape (count,)."""
    norm2: Array
    """<r, r>, of shape (count,)."""


@dataclass(frozen=True)
class OnDevice:
    """Numbers in the memory of a slab's device, with which launches need not wait for the host.

    Attributes
    ----------
    factors : mapping of str to int
        Addresses of complex factors of all vectors, by the names of those of the kernel.
    halted : int
        Address of an integer, with which the launches do nothing unless it is 0; 0 if there is
        none.
    """

    factors: Mapping[str, int] = field(default_factory=dict)
    halted: int = 0


@dataclass(frozen=True)
class GroupSums:
    """Sums of products of vectors that a launch treats together.

    Attributes
    ----------
    first : int
        The number of the first of these vectors.
    sums : sequence of SlabSums
        The sums on every slab.
    """

    first: int
    sums: Sequence[SlabSums]


class _LaunchSet:
    """The launches of a kernel for every slab and all vectors of some spinor fields of one kind.

    The factors named are complex numbers for every vector, those of the calls or, with `scalars`,
    in the memory of the device of every slab.
    """

    def __init__(
        self,
        kernel: Kernel,
        fields: dict[str, SpinorField | None],
        factors: tuple[str, ...],
        parity: int | None,
        scalars: Sequence[OnDevice] = (),
    ) -> None:
        self._fields = fields  # which own the memory
        first = next(field for field in fields.values() if field)
        self._devices = first.field.devices
        launched = first.launched if parity is None else parity
        rows = math.prod(first.field.lattice.extents[2:]) * (2 if launched == BOTH_PARITIES else 1)
        most = max(1, min(MOST_VECTORS if factors else MOST_ROWS, MOST_ROWS // rows))
        self._fifth = first.fifth or 1
        self._vectors = first.vectors
        self._groups = [
            _VectorGroup(numbers[start : start + most], self._fifth)
            for numbers in _equally_far_apart(first)
            for start in range(0, len(numbers), most)
        ]
        for n, group in product(range(len(first.slabs)), self._groups):
            group.prepare(
                kernel, fields, factors, launched, n, scalars[n] if scalars else OnDevice()
            )

    def launch(self, **factors: Factors) -> None:
        """Launch the kernel for all vectors."""
        for group in self._groups:
            group.launch(factors)

    @property
    def sums(self) -> list[GroupSums]:
        """The sums of all vectors, by those that a launch treats together."""
        return [GroupSums(group.first, group.slab_sums) for group in self._groups]

    def products(self) -> Products:
        """Wait for the scalar products of the last launch."""
        sums = np.empty((self._vectors, PRODUCTS))
        for group in self._groups:
            sums[group.numbers] = add_slices(self._devices, group.sums())
        if self._fifth > 1:
            sums = sums.reshape(-1, self._fifth, PRODUCTS).sum(axis=1)
        return Products(sums[:, 0] + 1j * sums[:, 1], sums[:, 2])


class _VectorGroup:
    """Vectors of some fields that a launch treats together, as replicas of the slab's geometry.

    They may be vectors on one lattice or on several replicas. Consecutive ones along a fifth
    direction have the same factor.
    """

    def __init__(self, numbers: Integers, fifth: int) -> None:
        self.first, self._count = int(numbers[0]), len(numbers)
        step = int(numbers[1]) - self.first if self._count > 1 else 1
        self.numbers = slice(self.first, int(numbers[-1]) + 1, step)
        """The vectors among all of them; a slice is faster than their numbers."""
        self._owners = self.numbers if fifth == 1 else numbers // fifth
        self._values: dict[str, list[Complex]] = {}
        self._launches: list[Launch] = []
        self.slab_sums: list[SlabSums] = []

    def prepare(
        self,
        kernel: Kernel,
        fields: dict[str, SpinorField | None],
        factors: tuple[str, ...],
        parity: int,
        n: int,
        scalars: OnDevice,
    ) -> None:
        """Prepare the launch for slab number n of this process."""
        like = next(field for field in fields.values() if field)
        slab, choice = like.slabs[n], like.storage.choice
        over = work(0, 1, self._count * slab.layout.slices, parity)
        kind = type(like.by_vector(slab))
        row: dict[str, Any] = {"halted": scalars.halted} if kernel.takes("halted") else {}
        if kernel.sums:
            self.slab_sums.append(SlabSums(slab, PRODUCTS, 1, over, own_memory=True, wide=True))
            row["sums"] = self.slab_sums[-1].partial_sums(0)
        arguments = kernel.arguments(
            slab.variant(choice),
            geometry=_vectors_as_replicas(slab.layout, self._count).geometry,
            work=over,
            **{
                name: field.by_vector(field.slabs[n], self.first) if field else zero(kind)
                for name, field in fields.items()
            },
            **{name: self._factors(scalars.factors.get(name)) for name in factors},
            **row,
        )
        step = repeated([arguments], 1)
        for name in factors:
            values = np.frombuffer(getattr(step[0], name).own, np.complex128)
            self._values.setdefault(name, []).append(values[: self._count])
        self._launches.append(slab.kernel(kernel, choice).prepared(step))

    def _factors(self, address: int | None) -> Any:
        """Return the structure ``Factors``, given the address of those of all vectors, if any."""
        first = address + self.first * np.dtype(complex).itemsize if address else 0
        kind = structure("Factors", (PRODUCTS_HEADER,))
        return kind(own=(0.0,) * 2 * MOST_VECTORS, found=first)

    def launch(self, factors: dict[str, Factors]) -> None:
        """Launch the kernel with factors of all vectors of the fields."""
        for name, factor in factors.items():
            scale = factor[self._owners] if isinstance(factor, np.ndarray) else factor
            for values in self._values[name]:
                values[:] = scale
        for launch in self._launches:
            launch()

    def sums(self) -> list[Array]:
        """Wait for the sums over time slices, of shape (vectors, slices, values), of every slab."""
        return [s.by_slice(1).reshape(self._count, -1, PRODUCTS) for s in self.slab_sums]


def _equally_far_apart(field: SpinorField) -> list[Integers]:
    """Return the numbers of vectors that are equally far apart in memory, of all together.

    They are all vectors on one lattice, or those that have the same number on each of several ones.
    """
    numbers = np.arange(field.vectors)
    return [*numbers.reshape(field.replicas, -1).T] if field.replicas > 1 else [numbers]


@cache
def _vectors_as_replicas(layout: Layout, count: int) -> Layout:
    """Return a layout whose replicas are vectors on the slices of a slab without its halo."""
    return replace(layout, above=0, below=0, replicas=count)


class Advance(_LaunchSet):
    """x += a p + b r and r += c t, with scalar products of the new r.

    Parameters
    ----------
    r, t : SpinorField
        The vectors r and t of the formula; r changes.
    x, p : SpinorField, optional
        If they are missing, only r changes.
    w : SpinorField, optional
        For <w, r>.
    parity : int, optional
        The sites; by default all those of the first field.
    scalars : sequence of OnDevice, optional
        For every slab, factors that take the place of those of the calls.
    """

    def __init__(
        self,
        r: SpinorField,
        t: SpinorField,
        x: SpinorField | None = None,
        p: SpinorField | None = None,
        w: SpinorField | None = None,
        parity: int | None = None,
        scalars: Sequence[OnDevice] = (),
    ) -> None:
        fields = {"r": r, "t": t, "x": x, "p": p, "w": w}
        super().__init__(ADVANCE_SPINORS, fields, ("a", "b", "c"), parity, scalars)

    def __call__(self, c: Factors, a: Factors = 0, b: Factors = 0) -> None:
        """Carry out the step; the factors are those of every vector."""
        self.launch(a=a, b=b, c=c)


class AdvanceDirection(_LaunchSet):
    """x += a p and then p = b p + s.

    Parameters
    ----------
    x, p, s : SpinorField
        The vectors of the formula; x and p change.
    parity, scalars
        See `Advance`.
    """

    def __init__(
        self,
        x: SpinorField,
        p: SpinorField,
        s: SpinorField,
        parity: int | None = None,
        scalars: Sequence[OnDevice] = (),
    ) -> None:
        fields: dict[str, SpinorField | None] = {"x": x, "p": p, "s": s}
        super().__init__(ADVANCE_DIRECTION, fields, ("a", "b"), parity, scalars)

    def __call__(self, a: Factors = 0, b: Factors = 0) -> None:
        """Carry out the step; the factors are those of every vector."""
        self.launch(a=a, b=b)


class Combine(_LaunchSet):
    """p = a p + b r + c v + d w; a field with the factor 0 is not read.

    Parameters
    ----------
    p, r : SpinorField
        The vectors p and r of the formula; p changes.
    v, w : SpinorField, optional
        The vectors v and w of the formula; by default there is no such term.
    parity, scalars
        See `Advance`.
    """

    def __init__(
        self,
        p: SpinorField,
        r: SpinorField,
        v: SpinorField | None = None,
        parity: int | None = None,
        w: SpinorField | None = None,
        scalars: Sequence[OnDevice] = (),
    ) -> None:
        fields: dict[str, SpinorField | None] = {"p": p, "r": r, "v": v, "w": w}
        super().__init__(COMBINE_SPINORS, fields, ("a", "b", "c", "d"), parity, scalars)

    def __call__(self, a: Factors, b: Factors, c: Factors = 0, d: Factors = 0) -> None:
        """Carry out the combination; the factors are those of every vector."""
        self.launch(a=a, b=b, c=c, d=d)


class Multiply(_LaunchSet):
    """The scalar products <w, r> and <r, r>.

    Parameters
    ----------
    r : SpinorField
        The vectors whose norms are computed.
    w : SpinorField, optional
        The vectors on the left of the scalar products; by default only norms are computed.
    parity : int, optional
        See `Advance`.
    """

    def __init__(
        self, r: SpinorField, w: SpinorField | None = None, parity: int | None = None
    ) -> None:
        super().__init__(MULTIPLY_SPINORS, {"r": r, "w": w}, (), parity)

    def __call__(self) -> Products:
        """Compute the products."""
        self.launch()
        return self.products()


class PairAlgebra:
    """Combinations and scalar products of pairs of fields, each of which is prepared once."""

    def __init__(self) -> None:
        self._combinations: dict[tuple[int, int], Combine] = {}
        self._products: dict[tuple[int, int], Multiply] = {}

    def combine(self, p: SpinorField, a: Factors, r: SpinorField, b: Factors) -> None:
        """Set p to a p + b r."""
        key = id(p), id(r)  # of fields that the launches keep
        if key not in self._combinations:
            self._combinations[key] = Combine(p, r)
        self._combinations[key](a, b)

    def products(self, r: SpinorField, w: SpinorField | None = None) -> Products:
        """Return <w, r> and <r, r>."""
        key = id(r), id(w)
        if key not in self._products:
            self._products[key] = Multiply(r, w)
        return self._products[key]()


class AdvanceShifts:
    """y_i += a_i p_i and then p_i = b_i p_i + c_i r, for several shifts i of every vector of r.

    Parameters
    ----------
    y, p : SpinorField
        The vectors of all shifts, number i n + j for shift i and the j-th of the n vectors of r, on
        each replica.
    r : SpinorField
        The vectors r.

    scalars : sequence of OnDevice, optional
        For every slab, the factors of `launch`, as ``factors``.

    Raises
    ------
    ValueError
        If there are more than `MOST_SHIFTS` shifts.
    """

    def __init__(
        self, y: SpinorField, p: SpinorField, r: SpinorField, scalars: Sequence[OnDevice] = ()
    ) -> None:
        self._fields = (y, p, r)  # which own the memory
        shifts = y.count // r.count
        if shifts > MOST_SHIFTS:
            raise ValueError(f"{shifts} shifts are too many for a launch.")
        self._launches: list[tuple[int, Any, Launch]] = []
        for number, slab in enumerate(r.slabs):
            geometry = _vectors_as_replicas(slab.layout, 1).geometry
            device = scalars[number] if scalars else OnDevice({"factors": 0})
            for vector in range(r.vectors):
                replica, column = divmod(vector, r.per_site)
                owner, first = vector // (r.fifth or 1), replica * y.per_site + column
                factors = device.factors["factors"]
                arguments = ADVANCE_SHIFTS.arguments(
                    slab.variant(r.storage.choice),
                    geometry=geometry,
                    work=work(0, 1, slab.layout.slices, r.launched),
                    y=y.structure(y.slabs[number], first),
                    p=p.structure(p.slabs[number], first),
                    r=r.structure(slab, vector),
                    **{name: (0.0,) * MOST_SHIFTS for name in ("a", "b", "c")},
                    found=factors + owner * SUM_BYTES if scalars else 0,
                    halted=device.halted,
                    shifts=shifts,
                    stride=r.per_site,
                    distance=r.count,
                )
                step = repeated([arguments], 1)
                launch = slab.kernel(ADVANCE_SHIFTS, r.storage.choice).prepared(step)
                self._launches.append((owner, step, launch))

    def __call__(self, a: Array, b: Array, c: Array) -> None:
        """Carry out the step for the first shifts, with factors of the shape (shifts, vectors).

        A vector whose factors are all 0 is left unchanged.
        """
        for vector, step, _ in self._launches:
            step[0].shifts = len(a)
            for name, values in (("a", a), ("b", b), ("c", c)):
                getattr(step[0], name)[: len(a)] = values[:, vector].tolist()
        self.launch()

    def launch(self) -> None:
        """Carry out the step for all shifts, with factors in the memory of the devices."""
        for _, _, launch in self._launches:
            launch()

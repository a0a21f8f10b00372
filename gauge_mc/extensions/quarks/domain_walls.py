"""Operators with a fifth direction, along which the part that is diagonal in the sites acts.

Its matrices act on psi_s(x) by s and by chirality. They are ratios of two bidiagonal matrices with
a corner, which a recursion applies in O(L) operations, where L is the extent of the fifth
direction.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np

from gauge_mc.arrays import Array
from gauge_mc.devices.base import Buffer, Launch, Registers
from gauge_mc.devices.host import geometry_structure
from gauge_mc.devices.kernels import REAL_BYTES, Choice, Kernel
from gauge_mc.devices.source import source_file, structure, zero
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks import hopping
from gauge_mc.extensions.quarks.diagonal import finite
from gauge_mc.extensions.quarks.operators import DiracOperator
from gauge_mc.extensions.quarks.vectors import SpinorField, Storage, zeroth
from gauge_mc.extensions.quarks.vectors.transport import ANTIPERIODIC, Phases, shares_of
from gauge_mc.fields.field import Field

FIFTH_DIRECTION = Kernel("fifth_direction")

FIFTH = source_file("dirac/fifth.h")
"""The header that declares the structure ``Fifth``."""


UP, DOWN = 0, 1
"""Chirality of the upper and of the lower two components of a spinor."""

CHIRALITIES = 2
"""Number of chiralities."""

REALS = 4
"""Number of reals of a colour and a chirality, which a thread treats together."""

COLUMN_BYTES = 512
"""Bytes of such numbers in all slices that a thread of a GPU keeps in registers, at most."""

BOUNDS = ((256, (256, 2)), (COLUMN_BYTES, (128, 2)))
"""Threads per block and minimum number of resident blocks per multiprocessor, by these bytes."""


@cache
def column_of(extent: int, number_bytes: int) -> Choice:
    """Return the choice of a kernel that keeps numbers of all slices of a site in registers."""
    if not extent:
        return Choice.of("column", "", "dirac/column.h", "0")
    size = REALS * extent * number_bytes
    bounds = next(bounds for most, bounds in BOUNDS if size <= most)
    choice = Choice.of("column", f"{extent} slices", "dirac/column.h", str(extent))
    return replace(choice, launch_bounds=bounds)


def along_of(extent: int) -> Choice:
    """Return the choice of a hop with a product along the fifth direction after it."""
    name = f"along {extent} slices" if extent else "along"
    return Choice.of("reflection", name, "dirac/along_fifth.h", "AlongFifth", COLUMN=extent)


def kept_extent(field: Field, storage: Storage, extent: int | None, together: bool = False) -> int:
    """Return the extent of the fifth direction if threads keep numbers of all slices, else 0."""
    extent, size = extent or 1, REAL_BYTES[storage.arithmetic]
    fits = REALS * extent * size <= COLUMN_BYTES and (together or not storage.norm_bytes)
    return extent if fits and not field.devices.devices[0].in_host_memory else 0


@dataclass(frozen=True)
class Bidiagonal:
    """A matrix with two elements in a row, the second one next to the diagonal."""

    here: Array
    """The diagonal, for both chiralities, of shape (2, L)."""
    there: Array
    """The coefficients of the neighbours, which `FifthMatrix` defines, by row, of shape (2, L)."""

    @classmethod
    def of(
        cls, diagonal: Sequence[float] | Array, offdiagonal: Sequence[float] | Array
    ) -> Bidiagonal:
        """Return the matrix with the same coefficients, shape (L,), for both chiralities."""
        return cls(*(np.array([x, x], np.float64) for x in (diagonal, offdiagonal)))

    @classmethod
    def diagonal(cls, coefficients: Sequence[float] | Array) -> Bidiagonal:
        """Return a matrix that is diagonal."""
        return cls.of(coefficients, np.zeros(len(coefficients)))


@dataclass(frozen=True)
class FifthMatrix:
    """N Q^-1, where N and Q are bidiagonal with a corner.

    For the upper components (Q z)_s = here_s z_s + there_s z_{s-1} with z_{-1} = -m z_{L-1}, and
    for the lower ones z_{s+1} instead of z_{s-1}, with z_L = -m z_0. The same holds for N.
    """

    numerator: Bidiagonal
    """N."""
    denominator: Bidiagonal
    """Q."""
    mass: float
    """The number m."""
    exchanged: bool = False
    """Whether the two directions are exchanged."""

    @property
    def inverse(self) -> FifthMatrix:
        """The inverse, Q N^-1."""
        return replace(self, numerator=self.denominator, denominator=self.numerator)

    def with_directions_exchanged(self) -> FifthMatrix:
        """Return the matrix that acts on each chirality as this one does on the other."""
        parts = self.numerator, self.denominator
        n, q = (Bidiagonal(part.here[::-1], part.there[::-1]) for part in parts)
        return FifthMatrix(n, q, self.mass, not self.exchanged)

    @property
    def coefficients(self) -> Array:
        """Numbers [chirality][s][4] for the kernel: 1 / q, -q' / q, n and n'."""
        n, q = self.numerator, self.denominator
        return np.stack([1 / q.here, -q.there / q.here, n.here, n.there], axis=-1)

    @property
    def elements(self) -> Array:
        """The elements of the matrices on the upper and the lower components, shape (2, L, L)."""
        rows = self.coefficients
        matrices = np.zeros((*rows.shape[:2], rows.shape[1]))
        for up_or_down, (factors, corner) in enumerate(zip(rows, self.corner, strict=True)):
            unit = np.eye(len(factors))
            ascending = (up_or_down == UP) != self.exchanged
            order = range(len(factors)) if ascending else range(len(factors) - 1, -1, -1)
            z = np.zeros(len(factors))
            for s in order:
                z = factors[s, 0] * unit[s] + factors[s, 1] * z
            z *= corner
            for s in order:
                before, z = z, factors[s, 0] * unit[s] + factors[s, 1] * z
                matrices[up_or_down, s] = factors[s, 2] * z + factors[s, 3] * before
        return matrices

    @property
    def norm(self) -> float:
        """An upper bound of the norm: the root of the largest sum of a row times that of a column.

        It has the same bits on all machines, unlike singular values.
        """

        def largest_sum(lines: Array) -> float:
            return max(math.fsum(line) for line in lines.tolist())

        return math.sqrt(max(largest_sum(x) * largest_sum(x.T) for x in np.abs(self.elements)))

    @property
    def corner(self) -> tuple[float, float]:
        """The factor from the last z, found with z_{-1} = 0, to z_{-1}, for each chirality.

        It is -m / (1 + m R), since z_{L-1} has the part R z_{-1}, with the product R of all -q' /
        q. It is 0 if z_{-1} does not matter.
        """
        ratios = -self.denominator.there / self.denominator.here
        matters = (self.denominator.there != 0) | (self.numerator.there != 0)
        up, down = (
            -self.mass / (1 + self.mass * math.prod(row)) if any(x) else 0.0
            for row, x in zip(ratios.tolist(), matters.tolist(), strict=True)
        )
        return up, down


def adjoint(matrix: Bidiagonal, mass: float) -> FifthMatrix:
    """Return the adjoint of a bidiagonal matrix with a corner, which is another one."""
    diagonal = matrix.here
    offdiagonal = np.stack([np.roll(matrix.there[UP], -1), np.roll(matrix.there[DOWN], 1)])
    unit = Bidiagonal.diagonal(np.ones(diagonal.shape[1]))
    return FifthMatrix(Bidiagonal(diagonal, offdiagonal), unit, mass, exchanged=True)


class FifthProduct:
    """A matrix that acts on the fifth direction, in the memory of devices.

    Parameters
    ----------
    matrix : FifthMatrix
        The matrix.
    """

    def __init__(self, matrix: FifthMatrix) -> None:
        self.matrix = matrix
        self._buffers: dict[Any, Buffer] = {}

    def structure(
        self,
        slab: int,
        target: SpinorField,
        source: SpinorField,
        addend: SpinorField | None,
        some: range | None = None,
    ) -> ctypes.Structure:
        """Return the structure ``Fifth`` of a product on a slab of this process, with factor 1."""
        stored, first = source.slabs[slab], zeroth(source, some)
        psi = source.structure(stored, first)
        product: ctypes.Structure = structure("Fifth", (FIFTH,))(
            source=psi,
            target=target.structure(target.slabs[slab], first),
            other=addend.structure(addend.slabs[slab], first) if addend else zero(type(psi)),
            coefficients=self.address(stored.device, stored.layout.real),
            corner=self.matrix.corner,
            factor=1.0,
            extent=source.fifth,
            vectors=source.per_site,
            reversed=self.matrix.exchanged,
        )
        return product

    def address(self, device: Any, real: np.dtype[Any]) -> int:
        """Return the address of the coefficients, as reals of a type, in the memory of a device."""
        key = device, real
        if key not in self._buffers:
            values = np.ascontiguousarray(self.matrix.coefficients, real)
            self._buffers[key] = device.allocate(values.nbytes)
            device.write(self._buffers[key], 0, values)
        return self._buffers[key].address


class PreparedProduct:
    """The launches of u + factor N Q^-1 psi on all slabs of this process, for repeated use.

    Parameters
    ----------
    product : FifthProduct
        The matrix N Q^-1.
    target, source : SpinorField
        The result, and the vectors psi.
    parities : sequence of int
        Parities of the sites of the result.
    addend : SpinorField, optional
        The vectors u.
    some : range, optional
        The replicas on which to do it, whose vectors alone the fields have; by default all.
    """

    def __init__(
        self,
        product: FifthProduct,
        target: SpinorField,
        source: SpinorField,
        parities: Sequence[int],
        addend: SpinorField | None = None,
        some: range | None = None,
    ) -> None:
        if target is source or (addend is target and source.storage.norm_bytes):
            raise ValueError("The result of a product must not take the place of its source.")
        self._used = product, target, source, addend  # which own the memory
        self._launches: list[tuple[Any, Launch]] = []
        # All numbers of a site have a unit in common, or chiralities and colours are independent.
        each = 1 if source.storage.norm_bytes else CHIRALITIES * source.field.group.colours
        parts = each * source.count // source.replicas
        extent = kept_extent(source.field, source.storage, source.fifth)
        choices = source.storage.choice, column_of(extent, source.storage.number_bytes)
        for n, slab in enumerate(source.slabs):
            for parity in parities:
                part = slab.whole(parity, some=some)
                sites = part.slices * slab.layout.slots
                threads, blocks = (1, parts) if extent else shares_of(parts, sites, 1)
                shares = geometry_structure("Shares")(threads, blocks)
                fifth = product.structure(n, target, source, addend, some)
                values = {"fifth": fifth, "shares": shares}
                self._launches.append(slab.prepared(FIFTH_DIRECTION, part, *choices, **values))

    def __call__(self, factor: float = 1.0) -> None:
        """Compute the product."""
        for arguments, _ in self._launches:
            arguments.fifth.factor = factor
        for _, launch in self._launches:
            launch()


MOST_THREADS = 8
"""Largest number of threads of a block that share a site in a hop with a product after it.

The more there are, the fewer sites has a block, whose vectors it reads again for the product."""


class CoupledOperator(DiracOperator):
    """An operator M = A - kappa D on spinors with a fifth direction, along which A acts.

    Attributes
    ----------
    fifth : int
        The extent of the fifth direction.
    diagonal_matrix : FifthMatrix
        A, whose adjoint is A with the two chiralities exchanged.
    """

    fifth: int
    diagonal_matrix: FifthMatrix


class PreparedWalls(hopping.PreparedOperator):
    """M of an operator with a fifth direction for spinors in one type of storage.

    A hop is the hopping term alone, and a product along the fifth direction before or after it.
    After it, both are one launch where they can be: what a site needs is still in a cache then.
    """

    operator: CoupledOperator

    @cached_property
    def diagonals(self) -> dict[tuple[bool, bool], FifthProduct]:
        """A by whether it is inverted, and whether it is the adjoint."""
        a = self.operator.diagonal_matrix
        return {
            (inverted, dagger): FifthProduct(two.with_directions_exchanged() if dagger else two)
            for inverted, two in ((False, a), (True, a.inverse))
            for dagger in (False, True)
        }

    @cached_property
    def _spares(self) -> dict[tuple[int, int], SpinorField]:
        return {}

    def spare(self, like: SpinorField, parity: int, some: range | None = None) -> SpinorField:
        """Return memory for vectors on one parity and some replicas, which all products share."""
        each = like.count // like.replicas
        if (each, parity) not in self._spares:
            kind = self.operator.field, like.storage.name, each, parity, like.fifth
            self._spares[each, parity] = SpinorField.empty(*kind)
        vectors = self._spares[each, parity]
        return vectors if some is None else vectors.part(some)

    def prepare(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        form: int = hopping.DIVIDED,
        addend: SpinorField | None = None,
        dagger: bool = False,
        some: range | None = None,
    ) -> hopping.PreparedHop:
        """Return a call that carries out a hop; see `PreparedOperator.prepare`."""
        u, parities = addend or target, (parity,)
        along = self.diagonals[form != hopping.WHOLE, dagger]
        if self.in_one and form != hopping.WHOLE and not (form == hopping.ADDED and u is target):
            more = ProductOfHop(along, target, u if form == hopping.ADDED else None, some)
            first = (hopping.ADDED, u) if form == hopping.SOLVED else (hopping.DIVIDED, target)
            joint = hopping.Hop(self, target, source, parity, *first, dagger, more, some)
            return HopInOne(joint, form)
        spare = self.spare(source, parity, some)
        if form == hopping.WHOLE:
            product = PreparedProduct(along, spare, u, parities, None, some)
            hop = super().prepare(target, source, parity, hopping.ADDED, spare, dagger, some)
        elif form == hopping.SOLVED:
            hop = super().prepare(spare, source, parity, hopping.ADDED, u, dagger, some)
            product = PreparedProduct(along, target, spare, parities, None, some)
        else:
            hop = super().prepare(spare, source, parity, hopping.DIVIDED, None, dagger, some)
            added = u if form == hopping.ADDED else None
            product = PreparedProduct(along, target, spare, parities, added, some)
        return HopAndProduct(hop, product, form)

    @property
    def in_one(self) -> bool:
        """Whether a hop and the product after it are one launch.

        The product takes the place of the result of the hop. If all numbers of a site have a unit
        in common, it can only where threads keep what they have read.
        """
        kind = self.operator.field, self.storage, self.operator.fifth
        return not self.storage.norm_bytes or kept_extent(*kind, together=True) > 0


@dataclass(frozen=True)
class ProductOfHop:
    """A product along the fifth direction of the result of a hop; see `Completion`."""

    product: FifthProduct
    """The product."""
    target: SpinorField
    """The result of the hop, whose place the product takes."""
    added: SpinorField | None
    """Vectors to which the product is added."""
    some: range | None
    """The replicas on which it is done; all if it is None."""

    @property
    def reflection(self) -> Choice:
        """The compile-time selection."""
        vectors = self.target
        return along_of(kept_extent(vectors.field, vectors.storage, vectors.fifth, together=True))

    def addends(self, kind: type[ctypes.Structure], slab: int) -> ctypes.Structure:
        """Return the product on a slab; see `Completion.addends`."""
        fields = self.target, self.target, self.added
        return kind(fifth=self.product.structure(slab, *fields, self.some))

    def shares(self, usual: tuple[int, int], sites: int) -> tuple[int, int]:
        """Return threads of one block, which wait for each other; see `Completion.shares`."""
        vectors, serial = self.target.per_site, usual[0] == 1
        threads = 1 if serial else max(n for n in range(2, MOST_THREADS + 1) if vectors % n == 0)
        if self.target.storage.norm_bytes:
            threads = max(threads, CHIRALITIES * self.target.field.group.colours)
        return threads, 1


@dataclass(frozen=True)
class HopInOne:
    """A hop and a product along the fifth direction in one launch."""

    hop: hopping.Hop
    """The launches."""
    form: int
    """See `PreparedOperator.prepare`."""

    def __call__(self, factor: float = 1.0) -> None:
        """Carry out the hop with this factor."""
        for addend in self.hop.added:
            addend.fifth.factor = factor if self.form == hopping.ADDED else 1.0
        self.hop(factor if self.form == hopping.SOLVED else 1.0)

    @property
    def registers(self) -> Registers | None:
        """Register usage of the kernel on a GPU."""
        return self.hop.registers


@dataclass(frozen=True)
class HopAndProduct:
    """A hop of a domain-wall operator."""

    hop: hopping.PreparedHop
    """The hopping term."""
    product: PreparedProduct
    """The product with A or its inverse."""
    form: int
    """See `PreparedOperator.prepare`."""

    def __call__(self, factor: float = 1.0) -> None:
        """Carry out the hop with this factor."""
        if self.form == hopping.WHOLE:
            self.product()
            self.hop(factor)
        elif self.form == hopping.SOLVED:
            self.hop(factor)
            self.product()
        else:
            self.hop()
            self.product(factor if self.form == hopping.ADDED else 1.0)

    @property
    def registers(self) -> Registers | None:
        """Register usage of the kernel of the hopping term on a GPU."""
        return self.hop.registers


class TwistedDoublet(CoupledOperator):
    """M = 1 + 2 i kappa mu_sigma gamma_5 tau_1 + 2 kappa mu_delta tau_3 - kappa D on two flavours.

    tau are Pauli matrices in the space of the flavours. R. Frezzotti and G. C. Rossi, Nucl. Phys. B
    Proc. Suppl. 128 (2004) 193 (hep-lat/0311008); T. Chiarappa et al., Eur. Phys. J. C 50 (2007)
    373 (hep-lat/0606011). The flavours are the two vectors along a fifth direction. They are
    rotated such that tau_1 is tau_2, with which A = 1 + a gamma_5 i tau_2 + b tau_3 is real and has
    the form of a matrix of domain walls, without a change of determinants and norms. det M is real.

    Parameters
    ----------
    field : Field
        The links, whose halos must be up to date. Call `refresh` after they have changed.
    kappa : float
        The hopping parameter.
    mu_sigma, mu_delta : float
        The twisted mass and the splitting. At maximal twist the masses of the two flavours are
        proportional to mu_sigma / Z_P +- mu_delta / Z_S.
    boundary : complex or sequence of complex
        See `DiracOperator`.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    name = "twisted-doublet"
    qcdml: ClassVar = {
        "wilsonTmMassSplitQuarkAction": {
            "kappa": "kappa",
            "muTwist": "mu_sigma",
            "muMassSplit": "mu_delta",
        }
    }
    prepared_kind = PreparedWalls
    fifth = 2

    def __init__(
        self,
        field: Field,
        kappa: float,
        mu_sigma: float,
        mu_delta: float,
        boundary: Phases = ANTIPERIODIC,
    ) -> None:
        super().__init__(field, kappa, boundary)
        a = 2 * kappa * finite("mu_sigma", mu_sigma)
        b = 2 * kappa * finite("mu_delta", mu_delta)
        if abs(b) >= 1:
            raise UsageError(
                f"mu_delta is {mu_delta:g}, but 2 kappa mu_delta must be below 1; choose a smaller "
                "one."
            )
        bidiagonal = Bidiagonal.of((1 + b, 1 - b), (-a, -a))
        self.diagonal_matrix = FifthMatrix(bidiagonal, Bidiagonal.diagonal((1.0, 1.0)), 1.0)
        if field.devices.strict:
            mean = math.sqrt(1 + a * a)
            self.sizes = mean + abs(b), mean - abs(b)
        else:
            largest, smallest = np.linalg.svd([[1 + b, a], [-a, 1 - b]], compute_uv=False)
            self.sizes = float(largest), float(smallest)

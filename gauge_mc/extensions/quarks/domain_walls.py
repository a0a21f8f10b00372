"""Matrices that act on the fifth direction of spinors psi_s(x), and on chirality.

They are ratios of two bidiagonal matrices with a corner, which a recursion applies in O(L)
operations, where L is the extent of the fifth direction.
"""

from __future__ import annotations

import ctypes
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Buffer, Launch, Registers
from gauge_mc.devices.host import geometry_structure
from gauge_mc.devices.kernels import REAL_BYTES, Choice, Kernel
from gauge_mc.devices.source import source_file, structure, zero
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks import hopping
from gauge_mc.extensions.quarks.diagonal import finite
from gauge_mc.extensions.quarks.operators import DiracOperator
from gauge_mc.extensions.quarks.solvers import Solution, SolverParameters, solve
from gauge_mc.extensions.quarks.spectroscopy import contractions
from gauge_mc.extensions.quarks.vectors import SpinorField, Storage, zeroth
from gauge_mc.extensions.quarks.vectors.basis import GAMMA_5, arithmetic_of
from gauge_mc.extensions.quarks.vectors.transport import (
    ANTIPERIODIC,
    LINKS_ALONE,
    Phases,
    shares_of,
)
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums, slices_of_all_slabs


class WallOperator(DiracOperator):
    """An operator D5 with coefficients b_s and c_s along a fifth direction.

    Attributes
    ----------
    fifth : int
        The extent of the fifth direction.
    weights, b, c : ndarray of float64, shape (fifth,)
        The weights w_s, and the coefficients with them.
    """

    fifth: int
    weights: NDArray[np.float64]
    b: NDArray[np.float64]
    c: NDArray[np.float64]

    @classmethod
    @abstractmethod
    def has_midpoint(cls, **parameters: Any) -> bool:
        """Return whether there are a midpoint and conserved currents, given the parameters."""

    @abstractmethod
    def to_solver(self, target: SpinorField, right: SpinorField) -> None:
        """Compute the right-hand sides for solvers from those of D5 x = b."""

    @abstractmethod
    def from_solver(self, target: SpinorField, solution: SpinorField) -> None:
        """Compute the solutions of D5 x = b from those that solvers find."""

    @abstractmethod
    def hopping_term(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        addend: SpinorField | None = None,
    ) -> hopping.PreparedHop:
        """Return a call that computes D psi, or u + factor D psi, on one parity, for every s.

        Parameters
        ----------
        target, source : SpinorField
            The result, and the vectors psi.
        parity : int
            Parity of the sites of the result.
        addend : SpinorField, optional
            The vectors u.
        """


FIFTH_DIRECTION = Kernel("fifth_direction")

FIFTH = source_file("dirac/fifth.h")
"""The header that declares the structure ``Fifth``."""

Array = NDArray[np.float64]

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

    def prepare(
        self,
        target: SpinorField,
        source: SpinorField,
        parities: Sequence[int],
        addend: SpinorField | None = None,
        some: range | None = None,
    ) -> PreparedProduct:
        """Return a call that computes u + factor N Q^-1 psi on some parities, given the factor."""
        if target is source or (addend is target and source.storage.norm_bytes):
            raise ValueError("The result of a product must not take the place of its source.")
        return PreparedProduct(self, target, source, parities, addend, some)

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
    """The launches of a product on all slabs of this process, for repeated use.

    Parameters
    ----------
    product, target, source, parities, addend, some
        See `FifthProduct.prepare`.
    """

    def __init__(
        self,
        product: FifthProduct,
        target: SpinorField,
        source: SpinorField,
        parities: Sequence[int],
        addend: SpinorField | None,
        some: range | None,
    ) -> None:
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
        """Return a call that carries out `hop`; see `PreparedOperator.prepare`."""
        u, parities = addend or target, (parity,)
        along = self.diagonals[form != hopping.WHOLE, dagger]
        if self.in_one and form != hopping.WHOLE and not (form == hopping.ADDED and u is target):
            more = ProductOfHop(along, target, u if form == hopping.ADDED else None, some)
            first, added = (
                (hopping.ADDED, u) if form == hopping.SOLVED else (hopping.DIVIDED, target)
            )
            joint = hopping.Hop(self, target, source, parity, first, added, dagger, more, some)
            return HopInOne(joint, form)
        spare = self.spare(source, parity, some)
        if form == hopping.WHOLE:
            product = along.prepare(spare, u, parities, None, some)
            hop = super().prepare(target, source, parity, hopping.ADDED, spare, dagger, some)
        elif form == hopping.SOLVED:
            hop = super().prepare(spare, source, parity, hopping.ADDED, u, dagger, some)
            product = along.prepare(target, spare, parities, None, some)
        else:
            hop = super().prepare(spare, source, parity, hopping.DIVIDED, None, dagger, some)
            product = along.prepare(
                target, spare, parities, u if form == hopping.ADDED else None, some
            )
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
    """See `PreparedOperator.hop`."""

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
    """See `PreparedOperator.hop`."""

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


JOIN_CHIRALITIES = Kernel("join_chiralities")
WALL_CURRENTS = Kernel("wall_currents")

CURRENTS = WALL_CURRENTS.constant("VALUES")
"""Number of sums: of the axial and of the vector current."""

BOTH = (hopping.EVEN, hopping.ODD)

NORMALISED = 0.5
"""The hopping parameter for which a propagator is not multiplied by 2 kappa in correlators."""


@dataclass(frozen=True)
class EffectivePropagator:
    """A propagator of a domain-wall quark.

    Attributes
    ----------
    quark : Propagator
        The columns q of S; its hopping parameter is such that correlators use S as it is.
    midpoint : Propagator or None
        P_- psi_{L/2} + P_+ psi_{L/2-1} for the same sources; None if L is odd, or if the weights
        are not those of the reflected fifth direction.
    axial, vector : ndarray of float64, shape (T,), or None
        Sums over columns and space of the conserved currents from t to t + 1, counted from the
        source; see `WallCurrents`. None unless there is a midpoint, and the weights are all 1.
    source : Propagator
        The sources b, as a propagator has its columns.
    solver, inner : str
        The solver and the precision of the last iterations.
    iterations, updates : int
        Numbers of iterations and of reliable updates for all columns together.
    iterated, residual : float
        The largest iterated and true residual of a column; see `gauge_mc.DomainWall.solve`.
    notes : tuple of str
        What the user should know, such as a change of the precision.
    """

    quark: contractions.Propagator
    midpoint: contractions.Propagator | None
    axial: NDArray[np.float64] | None
    vector: NDArray[np.float64] | None
    source: contractions.Propagator
    solver: str
    inner: str
    iterations: int
    updates: int
    iterated: float
    residual: float
    notes: tuple[str, ...]


def effective_propagator(
    operator: WallOperator,
    source: SpinorField,
    solver: str,
    request: SolverParameters,
    place: tuple[int, int, int, int] = (0, 0, 0, 0),
    together: int = 1,
) -> EffectivePropagator:
    """Return the propagator S of a domain-wall quark for some sources.

    By default one column is solved after the other, so that memory holds the fifth direction once.

    Parameters
    ----------
    operator : WallOperator
        The operator.
    source : SpinorField
        The sources in four dimensions on all sites, in double precision.
    solver : str
        Name of a registered solver.
    request : SolverParameters
        Tolerance, limits and precision.
    place : tuple of int
        x, y, z and t of the source.
    together : int
        Largest number of columns that are solved together, each with its own coefficients, so that
        kernels load a link for all of them. The memory of the solver is as many times larger.

    Raises
    ------
    GaugeError
        If the tolerance cannot be reached.
    """
    extent, half = operator.fifth, operator.fifth // 2
    symmetric = extent % 2 == 0 and np.array_equal(operator.weights, operator.weights[::-1])
    quark, middle = source.like(), source.like() if symmetric else None
    currents = WallCurrents(operator) if symmetric and (operator.weights == 1).all() else None
    solved: list[Solution] = []
    memory: tuple[SpinorField, ...] = ()
    for first in range(0, source.count, together):
        numbers = range(first, min(first + together, source.count))
        if not memory or memory[0].count != len(numbers):
            kind = source.field, source.storage.name, len(numbers)
            memory = ()  # before there is other memory
            memory = tuple(SpinorField.empty(*kind, fifth=extent) for _ in range(2))
        right, psi = memory
        physical_source(operator, right, source, numbers)
        operator.to_solver(psi, right)
        solution = solve(operator, psi, solver, request)
        if currents:
            currents.add(solution.x)
        operator.from_solver(psi, solution.x)
        for n, of in enumerate(numbers):
            begin = n * extent
            _join(quark, of, psi, begin + extent - 1, begin)
            if middle:
                _join(middle, of, psi, begin + half - 1, begin + half)
        solved.append(replace(solution, x=quark))  # the memory of x is free
        del solution, right, psi
    boundary = operator.boundary
    return EffectivePropagator(
        contractions.Propagator(quark, NORMALISED, boundary, place),
        contractions.Propagator(middle, NORMALISED, boundary, place) if middle else None,
        np.roll(currents.axial, -place[3]) if currents else None,
        np.roll(currents.vector, -place[3]) if currents else None,
        contractions.Propagator(source, NORMALISED, boundary, place),
        solved[-1].solver,
        solved[-1].inner,
        sum(x.iterations for x in solved),
        sum(x.updates for x in solved),
        max(float(x.iterated.max()) for x in solved),
        max(float(x.residual.max()) for x in solved),
        tuple(dict.fromkeys(note for x in solved for note in x.notes)),
    )


def physical_source(
    operator: WallOperator, target: SpinorField, source: SpinorField, numbers: range
) -> None:
    """Set vectors with a fifth direction to sources of the quark q.

    It is (1 - c D_w) of a vector that has the upper components of the source at s = 0 and the lower
    ones at s = L - 1.
    """
    extent = operator.fifth
    for n, of in enumerate(numbers):
        for s in range(extent):
            ends = of if s == 0 else None, of if s == extent - 1 else None
            _join(target, n * extent + s, source, *ends)
    if not operator.c.any():
        return
    product, scale = target.like(), 2 * operator.kappa
    for parity in BOTH:
        operator.hopping_term(product, target, parity, target)(-operator.kappa)  # 2 kappa D_w
    minus_c, unit = Bidiagonal.diagonal(-operator.c / scale), Bidiagonal.diagonal(np.ones(extent))
    FifthProduct(FifthMatrix(minus_c, unit, 0.0)).prepare(target, product, BOTH, target)()


class WallCurrents:
    """The conserved currents of a domain-wall quark with the pion, at rest.

    The sum over s of the axial current from x to x + t is, with the columns y = (b + c L) psi of a
    solution,

        A(x) = sum_s e_s Re y_{L-1-s}(x)^dagger gamma_5 (gamma_t - 1) U_t(x) y_s(x + t) / (b + c),

    where e_s is -1 for s < L / 2 and 1 for others. It fulfils

        A(t) - A(t - 1) = 2 m P(t) + 2 J_5q(t),

    summed over space, on every configuration and at any L, with the correlators P of the pion and
    J_5q of the midpoint, at times at which the source is not; unless c is 0, nor at the next ones,
    to which D_w spreads the source. The vector current, with 1 in place of e_s and the imaginary
    part, does not depend on t between such times. For Shamir's operator it is that of V. Furman and
    Y. Shamir, Nucl. Phys. B439 (1995) 54, hep-lat/9405004.

    Parameters
    ----------
    operator : WallOperator
        The operator, with an even extent of the fifth direction and the weights 1.

    Attributes
    ----------
    axial, vector : ndarray of float64, shape (T,)
        The sums over all columns so far, by t on the lattice.
    """

    def __init__(self, operator: WallOperator) -> None:
        self._scale = -1 / float(operator.b[0] + operator.c[0])
        self._transport = operator.prepared().transport
        self.axial, self.vector = (np.zeros(operator.field.lattice.t) for _ in range(2))

    def add(self, y: SpinorField) -> None:
        """Add the currents of columns, given the solutions that the solver has found."""
        if len(y.layouts) > 1:
            y.exchange_halo()
        local, extent = [], y.fifth or 1
        choices = y.storage.choice, self._transport.reals.choice, LINKS_ALONE
        for n, slab in enumerate(y.slabs):
            sums = SlabSums(slab, CURRENTS, y.count, choices=choices, wide=True)
            transport = self._transport.structure(n)
            columns = [y.structure(slab, extent * column) for column in range(y.count)]
            steps = ({"transport": transport, "y": column, "extent": extent} for column in columns)
            sums.launch(WALL_CURRENTS, *steps)
            local.append(sums.by_slice())
        for slice_ in slices_of_all_slabs(y.field.devices, local):
            self.axial += self._scale * slice_[:, 0]
            self.vector += self._scale * slice_[:, 1]


def _join(
    target: SpinorField, to: int, source: SpinorField, up: int | None, down: int | None
) -> None:
    """Set a vector in memory to the upper components of one vector, and the lower ones of another.

    None stands for the vector 0.
    """
    for n, slab in enumerate(source.slabs):
        slab.launch(
            JOIN_CHIRALITIES,
            slab.whole(),
            source.storage.choice,
            target=target.structure(target.slabs[n]),
            source=source.structure(slab),
            to=to,
            up=-1 if up is None else up,
            down=-1 if down is None else down,
        )


def contact_correlator(propagator: EffectivePropagator) -> NDArray[np.float64]:
    """Return Re <b, S b>, summed over spins, colours and space, of all 4 N columns.

    Its sum over t is m times that of the pion's correlator plus that of the midpoint's, at any
    extent of the fifth direction, and defines the residual mass for any weights (T.-W. Chiu,
    arXiv:1205.6151).
    """
    tensor = contractions.spin_tensor(propagator.quark, propagator.source)
    einsum = arithmetic_of(propagator.quark.field.devices.strict).einsum
    return np.asarray(einsum("tijij->t", tensor).real)


def midpoint_correlator(propagator: EffectivePropagator) -> NDArray[np.complex128]:
    """Return the correlator of the pseudoscalar density J_5q at the midpoint with the pion's.

    Returns
    -------
    ndarray, shape (T,), complex128
        The correlator at every distance in time from the source, positive as that of the pion.

    Raises
    ------
    UsageError
        If there is no midpoint, because the extent of the fifth direction is odd, or because the
        weights are not those of the reflected direction.
    """
    if propagator.midpoint is None:
        raise UsageError(
            "The midpoint needs an even number of slices, and weights that are the same from both "
            "ends; choose them so."
        )
    return _pseudoscalar(propagator.midpoint)


def residual_mass(propagator: EffectivePropagator) -> NDArray[np.float64]:
    """Return m_res(t), the ratio of `midpoint_correlator` to the correlator of the pion.

    It becomes constant at times at which the pion dominates (hep-lat/0007038).

    Returns
    -------
    ndarray, shape (T,), float64
        The ratio at every distance in time from the source.

    Raises
    ------
    UsageError
        See `midpoint_correlator`.
    """
    return np.asarray(midpoint_correlator(propagator).real / _pseudoscalar(propagator.quark).real)


def _pseudoscalar(quark: contractions.Propagator) -> NDArray[np.complex128]:
    return contractions.meson(contractions.spin_tensor(quark, quark), GAMMA_5, GAMMA_5)

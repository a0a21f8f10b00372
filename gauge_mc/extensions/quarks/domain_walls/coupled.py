"""Operators with a fifth direction along which the part that is diagonal in the sites acts.

Effective propagators of domain-wall quarks in four dimensions, residual mass and currents.

A quark in four dimensions is q = P_- psi_0 + P_+ psi_{L-1}. Its propagator S is the inverse of D_c
+ m with a D_c that does not depend on m, S = (D^-1 - 1) / (1 - m) with the effective operator D =
(1 + m) / 2 + (1 - m) / 2 gamma_5 S_L(H), where S_L is the approximation of the sign by L slices.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Registers
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.diagonal import finite
from gauge_mc.extensions.quarks.domain_walls.fifth_direction import (
    CHIRALITIES,
    Bidiagonal,
    FifthMatrix,
    FifthProduct,
    PreparedProduct,
    WallOperator,
    along_of,
    kept_extent,
)
from gauge_mc.extensions.quarks.hopping import (
    ADDED,
    DIVIDED,
    EVEN,
    ODD,
    SOLVED,
    WHOLE,
    Hop,
    PreparedHop,
    PreparedOperator,
)
from gauge_mc.extensions.quarks.operators import DiracOperator
from gauge_mc.extensions.quarks.solvers import Solution, SolverParameters, solve
from gauge_mc.extensions.quarks.spectroscopy.contractions import (
    Array,
    Propagator,
    meson,
    spin_tensor,
)
from gauge_mc.extensions.quarks.vectors.basis import GAMMA_5, arithmetic_of
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField
from gauge_mc.extensions.quarks.vectors.transport import ANTIPERIODIC, LINKS_ALONE, Phases
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums, slices_of_all_slabs

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


class PreparedWalls(PreparedOperator):
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
        form: int = DIVIDED,
        addend: SpinorField | None = None,
        dagger: bool = False,
        some: range | None = None,
    ) -> PreparedHop:
        """Return a call that carries out `hop`; see `PreparedOperator.prepare`."""
        u, parities = addend or target, (parity,)
        along = self.diagonals[form != WHOLE, dagger]
        if self.in_one and form != WHOLE and not (form == ADDED and u is target):
            more = ProductOfHop(along, target, u if form == ADDED else None, some)
            first, added = (ADDED, u) if form == SOLVED else (DIVIDED, target)
            joint = Hop(self, target, source, parity, first, added, dagger, more, some)
            return HopInOne(joint, form)
        spare = self.spare(source, parity, some)
        if form == WHOLE:
            product = along.prepare(spare, u, parities, None, some)
            hop = super().prepare(target, source, parity, ADDED, spare, dagger, some)
        elif form == SOLVED:
            hop = super().prepare(spare, source, parity, ADDED, u, dagger, some)
            product = along.prepare(target, spare, parities, None, some)
        else:
            hop = super().prepare(spare, source, parity, DIVIDED, None, dagger, some)
            product = along.prepare(target, spare, parities, u if form == ADDED else None, some)
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

    hop: Hop
    """The launches."""
    form: int
    """See `PreparedOperator.hop`."""

    def __call__(self, factor: float = 1.0) -> None:
        """Carry out the hop with this factor."""
        for addend in self.hop.added:
            addend.fifth.factor = factor if self.form == ADDED else 1.0
        self.hop(factor if self.form == SOLVED else 1.0)

    @property
    def registers(self) -> Registers | None:
        """Register usage of the kernel on a GPU."""
        return self.hop.registers


@dataclass(frozen=True)
class HopAndProduct:
    """A hop of a domain-wall operator."""

    hop: PreparedHop
    """The hopping term."""
    product: PreparedProduct
    """The product with A or its inverse."""
    form: int
    """See `PreparedOperator.hop`."""

    def __call__(self, factor: float = 1.0) -> None:
        """Carry out the hop with this factor."""
        if self.form == WHOLE:
            self.product()
            self.hop(factor)
        elif self.form == SOLVED:
            self.hop(factor)
            self.product()
        else:
            self.hop()
            self.product(factor if self.form == ADDED else 1.0)

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

BOTH = (EVEN, ODD)

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

    quark: Propagator
    midpoint: Propagator | None
    axial: NDArray[np.float64] | None
    vector: NDArray[np.float64] | None
    source: Propagator
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
        Propagator(quark, NORMALISED, boundary, place),
        Propagator(middle, NORMALISED, boundary, place) if middle else None,
        np.roll(currents.axial, -place[3]) if currents else None,
        np.roll(currents.vector, -place[3]) if currents else None,
        Propagator(source, NORMALISED, boundary, place),
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
    tensor = spin_tensor(propagator.quark, propagator.source)
    einsum = arithmetic_of(propagator.quark.field.devices.strict).einsum
    return np.asarray(einsum("tijij->t", tensor).real)


def midpoint_correlator(propagator: EffectivePropagator) -> Array:
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


def _pseudoscalar(quark: Propagator) -> Array:
    return meson(spin_tensor(quark, quark), GAMMA_5, GAMMA_5)

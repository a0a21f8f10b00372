"""The domain-wall operator, and effective quarks: propagators, midpoint and conserved currents.

A quark in four dimensions is q = P_- psi_0 + P_+ psi_{L-1}. Its propagator S is the inverse of D_c
+ m with a D_c that does not depend on m, S = (D^-1 - 1) / (1 - m) with the effective operator D =
(1 + m) / 2 + (1 - m) / 2 gamma_5 S_L(H), where S_L is the approximation of the sign by L slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.arrays import Array
from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks import hopping
from gauge_mc.extensions.quarks.diagonal import LARGEST, finite
from gauge_mc.extensions.quarks.domain_walls import (
    Bidiagonal,
    CoupledOperator,
    FifthMatrix,
    FifthProduct,
    PreparedProduct,
    PreparedWalls,
    adjoint,
)
from gauge_mc.extensions.quarks.modes.chirality import measured_ends
from gauge_mc.extensions.quarks.operators import OPERATORS, QUARK_MASS, DiracOperator
from gauge_mc.extensions.quarks.solvers import Solution, SolverParameters, solve
from gauge_mc.extensions.quarks.spectroscopy import contractions
from gauge_mc.extensions.quarks.vectors import SPINS, Complex, SpinorField, in_turn, in_units
from gauge_mc.extensions.quarks.vectors.basis import GAMMA_5, arithmetic_of
from gauge_mc.extensions.quarks.vectors.transport import ANTIPERIODIC, LINKS_ALONE, Phases
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums, slices_of_all_slabs
from gauge_mc.options import Option
from gauge_mc.quoting import cosine, counted, exponential, square
from gauge_mc.signatures import checks_types

BOTH = (hopping.EVEN, hopping.ODD)

MOST_RATE = 69.0
"""Minus the logarithm of a nome so small that S is 1 within rounding errors."""

LEAST_TERM = 40.0
"""Minus the logarithm of terms that are left out."""

ROUNDS = 64
"""Bisections of an interval below pi, after which it is smaller than rounding errors."""


@cache
def optimal_weights(extent: int, least: float, most: float) -> tuple[float, ...]:
    """Return the weights w_s for which the sign of H is approximated best.

    The effective operator has S = (1 - T) / (1 + T) in place of the sign, with the product T of all
    (1 - w_s H) / (1 + w_s H). S - 1 then has the smallest maximum for the eigenvalues in an
    interval, and takes it, with alternating signs, at L + 1 points (T.-W. Chiu, Phys. Rev. Lett. 90
    (2003) 071601, hep-lat/0209153). The 1 / w_s are the points at which S is 1. With H = least /
    dn(u), where dn has the modulus k', k = least / most, S is inversely proportional to a dn whose
    nome is the L-th power and whose period is the L-th part.

    Parameters
    ----------
    extent : int
        The extent L of the fifth direction.
    least, most : float
        The smallest and the largest modulus of the eigenvalues of H for which S is optimal.

    Returns
    -------
    tuple of float
        The weights of s = 0, …, L - 1, descending. They may be exchanged.

    Raises
    ------
    UsageError
        If a value is invalid.
    """
    if extent < 1:
        raise UsageError(f"The fifth direction has {extent} sites; give at least 1.")
    if not (0 < least < most < math.inf and least / most > 0):
        raise UsageError(
            f"The eigenvalues are from {least:g} to {most:g}; give two numbers above 0, the "
            "smaller one first."
        )
    k = least / most
    ratio = _mean(1.0, k) / _mean(1.0, math.sqrt((1 - k) * (1 + k)))  # K(k) / K(k')
    inner = _scaled_dn(math.pi * ratio)
    outer = _scaled_dn(min(MOST_RATE, math.pi * ratio * extent))
    smallest = outer(math.pi / 2)
    level = 2 * smallest / (1 + smallest)  # S is 1, amid its smallest and its largest value
    low, high = 0.0, math.pi / 2
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if outer(middle) > level else (low, middle)
    crossings = (j * math.pi + sign * low for j in range(extent) for sign in (-1, 1))
    places = sorted(z for z in crossings if 0 < z < extent * math.pi / 2)
    return tuple(inner(z / extent) / least for z in places)


def _mean(a: float, b: float) -> float:
    """Return the arithmetic-geometric mean."""
    while abs(a - b) > 1e-15 * a:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return (a + b) / 2


def _scaled_dn(rate: float) -> Callable[[float], float]:
    """Return dn(2 K z / pi) / dn(0), given minus the logarithm of the nome.

    It is a quotient of theta functions, theta_3(z) / theta_4(z) times theta_4(0) / theta_3(0); see
    E. T. Whittaker and G. N. Watson, A Course of Modern Analysis, section 22.11.
    """
    terms = range(1, 2 + math.isqrt(math.ceil(LEAST_TERM / rate)))
    powers = [2 * exponential(-rate * n * n) for n in terms]

    def ratio(z: float) -> float:
        waves = [power * cosine(2 * n * z) for n, power in zip(terms, powers, strict=True)]
        signed = [wave if n % 2 == 0 else -wave for n, wave in zip(terms, waves, strict=True)]
        return math.fsum([1, *waves]) / math.fsum([1, *signed])

    first = ratio(0.0)
    return lambda z: ratio(z) / first


MOST_SLICES = 1000
"""Largest extent of the fifth direction, to catch typing errors."""

LS = Option(
    "ls", int, "Extent of the fifth direction.", usual=16, least=1, most=MOST_SLICES, written="LS"
)
M5 = Option(
    "m5",
    float,
    "Height M₅ of the domain wall.",
    usual=1.8,
    least=0,
    most=2,
    inside=True,
    written="M5",
)
B = Option("b", float, "Coefficient b along the fifth direction.", usual=1.0, least=0, most=LARGEST)
C = Option("c", float, "Coefficient c along the fifth direction.", usual=0.0, least=0, most=LARGEST)

MEASURED = "measured"
"""Word for the ends of the spectrum of the links at hand."""

OPTIMAL = Option(
    "optimal",
    str,
    "Chiu's optimal weights, given the smallest and the largest modulus of the eigenvalues of H; "
    f"{MEASURED} measures them on every configuration, which needs b = c.",
    metavar=f"MIN,MAX|{MEASURED}",
    least=1 / LARGEST,
    most=LARGEST,
    each=float,
)

ANY_ENDS = (0.1, 10.0)
"""Ends of a spectrum for rehearsals, where weights do not matter."""

ACCURACY = 0.01
"""Largest relative error of measured squares of eigenvalues, by which the interval is wider."""


class ReducedWalls(hopping.PreconditionedOperator):
    """M of a domain-wall operator on the even sites, divided by A; its adjoint is known as well.

    Parameters
    ----------
    prepared : PreparedWalls
        M on all sites.
    """

    def __init__(self, prepared: PreparedWalls) -> None:
        super().__init__(prepared, with_adjoint=False)
        self._whole = prepared
        # Two hops and two products along the fifth direction, one of the four with the source. Both
        # products of M, and one of its adjoint, can be in one launch with a hop.
        self.vectors_moved = 6 if prepared.in_one else 9

    def apply(
        self, target: SpinorField, source: SpinorField, dagger: bool = False
    ) -> hopping.Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        if not dagger:
            return super().apply(target, source)
        walls, some = self._whole, self.some
        even, odd = walls.spare(source, hopping.EVEN, some), self._odd(source)
        kappa2 = square(walls.operator.kappa, source.field.devices.strict)
        along, even_sites = walls.diagonals[True, True], (hopping.EVEN,)
        product = PreparedProduct(along, even, source, even_sites, None, some)
        first = walls.prepare(odd, even, hopping.ODD, hopping.DIVIDED, None, True, some)
        last = walls.prepare_term(target, odd, hopping.EVEN, source, True, some)
        return in_turn(product, first, partial(last, -kappa2))

    def left_part(self, target: SpinorField, source: SpinorField) -> hopping.Apply:
        """Return a call that computes A^-dagger X; see `PreconditionedOperator.left_part`."""
        return PreparedProduct(self._whole.diagonals[True, True], target, source, (hopping.EVEN,))


@OPERATORS.register
class DomainWall(CoupledOperator):
    """The domain-wall operator with coefficients b_s and c_s along the fifth direction.

    D5 = D_w K + 1 - L with the Wilson operator D_w at the mass -M5, and K = b + c L, where b and c
    are diagonal in s, and (L psi)_s = P_- psi_{s+1} + P_+ psi_{s-1}, with P_- psi_L = -m P_- psi_0
    and P_+ psi_{-1} = -m P_+ psi_{L-1}. Weights w_s make b_s = (w_s (b + c) + b - c) / 2 and c_s =
    (w_s (b + c) - b + c) / 2. For large L the effective operator has the sign of H = (b + c)
    H_w (2 + (b - c) gamma_5 H_w)^-1 with H_w = gamma_5 D_w: b = 1 and c = 0 is the operator of
    Shamir (hep-lat/9303005), other numbers that of Moebius (arXiv:1206.5214), and b = c that of
    Borici (hep-lat/9912040), which with weights from Zolotarev is that of Chiu (hep-lat/0209153).

    Solvers see M = 2 kappa w^-1/2 D5 K^-1 w^1/2 = A - kappa D with 2 kappa = 1 / (4 - M5), the
    hopping term D and A = 1 + 2 kappa w^-1/2 (1 - L) K^-1 w^1/2, which is diagonal in the sites.
    The adjoint of A is A with the two chiralities exchanged, for any weights
    (arXiv:1101.0423).

    Parameters
    ----------
    field : Field
        The links, whose halos must be up to date. Call `refresh` after they have changed.
    mass : float
        The mass m of the quark. In the normalisation of the overlap operator it is m_q = 2 M5 m.
    ls : int
        The extent L of the fifth direction.
    m5 : float
        M5, between 0 and 2.
    b, c : float
        The coefficients; c is from 0 to b.
    weights : sequence of float, optional
        The weights w_s, by default all 1.
    optimal : str or sequence of float, optional
        Instead of weights: the smallest and the largest modulus of the eigenvalues of H for which
        the weights are optimal
        (`gauge_mc.extensions.quarks.operators.domain_wall.optimal_weights`), or ``measured``
        for those of H on these links, which needs b = c.
    boundary : complex or sequence of complex
        See `DiracOperator`.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    name = "domain-wall"
    quark = QUARK_MASS
    propagator: ClassVar[str] = "S = (D_c + m)^-1"
    parameters: ClassVar[tuple[Option, ...]] = (LS, M5, B, C, OPTIMAL)
    prepared_kind = PreparedWalls

    @checks_types
    def __init__(
        self,
        field: Field,
        mass: float,
        ls: int = LS.usual,
        m5: float = M5.usual,
        b: float = B.usual,
        c: float = C.usual,
        weights: Sequence[float] | None = None,
        boundary: Phases = ANTIPERIODIC,
        optimal: str | Sequence[float] | None = None,
    ) -> None:
        self.check_parameters(ls, m5, b, c, optimal)
        if optimal and weights is not None:
            raise UsageError("There are weights and ends of a spectrum; give only one of them.")
        super().__init__(field, self.hopping_parameter(m5), boundary)
        if optimal:
            ends = self.measured_interval(b) if isinstance(optimal, str) else optimal
            weights = optimal_weights(ls, *ends)
        w = np.ones(ls) if weights is None else np.array(weights, np.float64)
        if w.shape != (ls,) or not (np.isfinite(w).all() and (w > 0).all()):
            raise UsageError(f"Give {ls} weights, one for each s, all of them above 0.")
        self.quark_mass, self.m5 = finite("The mass of the quark", mass), float(m5)
        self.check_masses((self.quark_mass,), ls=ls, b=b, c=c)
        self.fifth, self.weights = int(ls), w
        self.b, self.c = (w * (b + c) + b - c) / 2, (w * (b + c) - b + c) / 2
        roots, scale = np.sqrt(w), 2 * self.kappa
        self._k = Bidiagonal.of(self.b / roots, self.c / roots)
        bidiagonal = Bidiagonal.of((self.b + scale) / roots, (self.c - scale) / roots)
        self.diagonal_matrix = FifthMatrix(bidiagonal, self._k, self.quark_mass)
        self.sizes = self.diagonal_matrix.norm, 1 / self.diagonal_matrix.inverse.norm
        unit = Bidiagonal.diagonal(np.ones(ls))
        self._to_w = FifthProduct(FifthMatrix(self._k, unit, self.quark_mass))
        self._from_w = FifthProduct(FifthMatrix(unit, self._k, self.quark_mass))
        self._to_w_adjoint = FifthProduct(adjoint(self._k, self.quark_mass))
        self._roots = FifthProduct(FifthMatrix(Bidiagonal.diagonal(roots), unit, 0.0))
        self._unrooted = FifthProduct(FifthMatrix(Bidiagonal.diagonal(1 / roots), unit, 0.0))

    @classmethod
    def check_parameters(
        cls,
        ls: int = LS.usual,
        m5: float = M5.usual,
        b: float = B.usual,
        c: float = C.usual,
        optimal: str | Sequence[float] | None = None,
        **parameters: Any,
    ) -> None:
        """Refuse parameters that do not fit, before there are links.

        Raises
        ------
        UsageError
            If a value is invalid.
        """
        super().check_parameters(ls=ls, m5=m5, b=b, c=c, optimal=optimal)
        if c > b or b == 0:
            raise UsageError(f"b is {b:g} and c is {c:g}; give b above 0, and c from 0 to b.")
        if isinstance(optimal, str) and optimal != MEASURED:
            raise UsageError(f"The eigenvalues are '{optimal}'; give two numbers, or {MEASURED}.")
        if optimal == MEASURED and b != c:
            raise UsageError(
                f"The eigenvalues of H are measured only for b = c, but b is {b:g} and c is "
                f"{c:g}; give two numbers instead of {MEASURED}."
            )
        if optimal and not isinstance(optimal, str):
            if len(optimal) != 2:
                raise UsageError(
                    f"{OPTIMAL.name} has {counted(len(optimal), 'number')}; give two, the smallest "
                    "and the largest modulus of the eigenvalues of H."
                )
            optimal_weights(ls, *optimal)

    @classmethod
    def check_masses(
        cls,
        masses: Sequence[float],
        ls: int = LS.usual,
        b: float = B.usual,
        c: float = C.usual,
        **parameters: Any,
    ) -> None:
        """Refuse masses for which b + c L has no inverse: 1 + m (-c / b)^L is 0.

        Raises
        ------
        UsageError
            If there is one.
        """
        for mass in masses:
            if 1 + mass * (-c / b) ** ls == 0:
                raise UsageError(
                    f"The matrix b + c L has no inverse for m = {mass:g} and {ls} sites in the "
                    "fifth direction; choose an even number of them."
                )

    @classmethod
    def hopping_parameter(cls, m5: float = M5.usual, **parameters: Any) -> float:
        """Return kappa = 1 / (8 - 2 M5), that of the Wilson operator with the mass -M5."""
        return 1 / (8 - 2 * m5)

    @classmethod
    def other_masses(
        cls, masses: Sequence[float], m5: float = M5.usual, **parameters: Any
    ) -> dict[str, str]:
        """Return the masses in the normalisation of the overlap operator, m_q = 2 M5 m."""
        return {"m_q = 2 M5 m": ",".join(f"{2 * m5 * m:g}" for m in masses)}

    @classmethod
    def has_midpoint(
        cls, ls: int = LS.usual, optimal: str | Sequence[float] | None = None, **parameters: Any
    ) -> bool:
        """Return whether there are a midpoint and conserved currents: L is even, all weights 1."""
        return ls % 2 == 0 and not optimal

    @classmethod
    def rehearsed(cls, **parameters: Any) -> dict[str, Any]:
        """Return parameters with an interval in place of a measured one."""
        measured = parameters.get(OPTIMAL.name) == MEASURED
        return parameters | ({OPTIMAL.name: ANY_ENDS} if measured else {})

    def measured_interval(self, b: float) -> tuple[float, float]:
        """Return an interval that has the moduli of all eigenvalues of H = b H_w on the links.

        They follow from the ends of the spectrum of H_w^2, found by the method of Lanczos, with
        the bounds of their errors added.

        Raises
        ------
        ConvergenceError
            If they are not accurate after very many iterations.
        """
        wilson = DiracOperator(self.field, self.kappa, self.boundary.phases)
        extents, colours = self.field.lattice.extents[::-1], self.field.group.colours
        numbers, shape = np.random.default_rng(1), (1, *extents, SPINS, colours)
        # Normal numbers depend on logarithms of the C library, uniform ones on whole numbers alone.
        strict = self.field.devices.strict
        start = numbers.random(shape) - 0.5 if strict else numbers.normal(size=shape)
        vector = SpinorField.from_numpy(self.field, start.astype(complex))
        ends = measured_ends(hopping.NormalOperator(wilson.prepared()), vector, ACCURACY)
        wilson.release()
        squares = ends.smallest - ends.smallest_error, ends.largest + ends.largest_error
        low, high = (b / (2 * self.kappa) * math.sqrt(square) for square in squares)
        return low, high

    def reduced(
        self, with_adjoint: bool, precision: str = "double", reals: int | None = None
    ) -> hopping.PreconditionedOperator:
        """Return M on the even sites; see `HoppingOperator.reduced`."""
        return ReducedWalls(cast(PreparedWalls, self.prepared(precision, reals)))

    def apply(
        self,
        array: NDArray[np.complexfloating[Any, Any]],
        dagger: bool = False,
        precision: str | None = None,
        reals: int | None = None,
    ) -> Complex:
        """Return D5 psi, or D5^dagger psi.

        Parameters
        ----------
        array : ndarray, shape (L, T, Z, Y, X, 4, N) or (count, L, T, Z, Y, X, 4, N)
            ``psi[s, t, z, y, x, spin, colour]``, or several of them.
        dagger, precision, reals
            See `DiracOperator.apply`.

        Returns
        -------
        ndarray, complex128
            An array of the same shape.

        Raises
        ------
        GaugeError
            If the array has the wrong shape.
        """
        prepared = self.prepared(precision or self.field.precision, reals)
        source = SpinorField.from_numpy(self.field, array, prepared.storage.name, fifth=self.fifth)
        image, product = source.like(), source.like()
        first, last = (self._roots, self._to_w_adjoint) if dagger else (self._to_w, self._roots)
        PreparedProduct(first, image, source, prepared.parities)()
        prepared.apply(product, image, dagger)()
        PreparedProduct(last, source, product, prepared.parities)(1 / (2 * self.kappa))
        return source.to_numpy().reshape(np.shape(array))

    def solve(
        self,
        source: NDArray[np.complexfloating[Any, Any]],
        tolerance: float = defaults.TOLERANCE,
        solver: str = defaults.WALL_SOLVER,
        **request: Any,
    ) -> Complex:
        """Return the solution x of D5 x = source.

        Parameters
        ----------
        source : ndarray, shape (L, T, Z, Y, X, 4, N) or (count, L, T, Z, Y, X, 4, N)
            ``b[s, t, z, y, x, spin, colour]``, or several of them, which are solved together.
        tolerance : float
            Largest norm of w^-1/2 (source - D5 x), divided by that of w^-1/2 source.
        solver : str
            Name of a solver. BiCGstab hardly converges, because the real parts of eigenvalues have
            both signs.
        **request : object
            See `DiracOperator.solve`.

        Returns
        -------
        ndarray, complex128
            An array of the same shape.

        Raises
        ------
        UsageError
            If a value is invalid.
        GaugeError
            If the tolerance cannot be reached, or the array has the wrong shape.
        """
        field, unit = in_units(self.field, source, self.fifth)
        right = field.like()
        self.to_solver(right, field)
        solution = solve(self, right, solver, SolverParameters(tolerance=tolerance, **request))
        self.from_solver(field, solution.x)
        return (field.to_numpy() * unit).reshape(np.shape(source))

    def to_solver(self, target: SpinorField, right: SpinorField) -> None:
        """Compute the right-hand sides of M y = 2 kappa w^-1/2 b from those of D5 x = b."""
        PreparedProduct(self._unrooted, target, right, BOTH)(2 * self.kappa)

    def from_solver(self, target: SpinorField, solution: SpinorField) -> None:
        """Compute the solutions of D5 x = b from those of M y = 2 kappa w^-1/2 b."""
        PreparedProduct(self._from_w, target, solution, BOTH)()


JOIN_CHIRALITIES = Kernel("join_chiralities")
WALL_CURRENTS = Kernel("wall_currents")

CURRENTS = WALL_CURRENTS.constant("VALUES")
"""Number of sums: of the axial and of the vector current."""

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
    axial: Array | None
    vector: Array | None
    source: contractions.Propagator
    solver: str
    inner: str
    iterations: int
    updates: int
    iterated: float
    residual: float
    notes: tuple[str, ...]


def effective_propagator(
    operator: DomainWall,
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
    operator : DomainWall
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
    operator: DomainWall, target: SpinorField, source: SpinorField, numbers: range
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
    prepared, product = operator.prepared(target.storage.name), target.like()
    scale = 2 * operator.kappa
    for parity in prepared.parities:
        hop = prepared.prepare_term(product, target, parity, target)
        hop(-operator.kappa)  # 2 kappa D_w
    minus_c, unit = Bidiagonal.diagonal(-operator.c / scale), Bidiagonal.diagonal(np.ones(extent))
    spread = FifthProduct(FifthMatrix(minus_c, unit, 0.0))
    PreparedProduct(spread, target, product, prepared.parities, target)()


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
    operator : DomainWall
        The operator, with an even extent of the fifth direction and the weights 1.

    Attributes
    ----------
    axial, vector : ndarray of float64, shape (T,)
        The sums over all columns so far, by t on the lattice.
    """

    def __init__(self, operator: DomainWall) -> None:
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


def contact_correlator(propagator: EffectivePropagator) -> Array:
    """Return Re <b, S b>, summed over spins, colours and space, of all 4 N columns.

    Its sum over t is m times that of the pion's correlator plus that of the midpoint's, at any
    extent of the fifth direction, and defines the residual mass for any weights (T.-W. Chiu,
    arXiv:1205.6151).
    """
    tensor = contractions.spin_tensor(propagator.quark, propagator.source)
    einsum = arithmetic_of(propagator.quark.field.devices.strict).einsum
    return np.asarray(einsum("tijij->t", tensor).real)


def midpoint_correlator(propagator: EffectivePropagator) -> Complex:
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


def residual_mass(propagator: EffectivePropagator) -> Array:
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


def _pseudoscalar(quark: contractions.Propagator) -> Complex:
    return contractions.meson(contractions.spin_tensor(quark, quark), GAMMA_5, GAMMA_5)

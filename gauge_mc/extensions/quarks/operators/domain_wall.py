"""Domain-wall operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks import hopping
from gauge_mc.extensions.quarks.diagonal import LARGEST, finite
from gauge_mc.extensions.quarks.domain_walls import (
    Bidiagonal,
    CoupledOperator,
    FifthMatrix,
    FifthProduct,
    PreparedWalls,
    WallOperator,
    adjoint,
)
from gauge_mc.extensions.quarks.modes.chirality import measured_ends
from gauge_mc.extensions.quarks.operators import OPERATORS, QUARK_MASS, DiracOperator
from gauge_mc.extensions.quarks.solvers import SolverParameters, solve
from gauge_mc.extensions.quarks.vectors import SPINS, SpinorField, in_turn, in_units
from gauge_mc.extensions.quarks.vectors.transport import ANTIPERIODIC, Phases
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.quoting import cosine, counted, exponential, square
from gauge_mc.signatures import checks_types

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
        product = walls.diagonals[True, True].prepare(even, source, (hopping.EVEN,), None, some)
        first = walls.prepare(odd, even, hopping.ODD, hopping.DIVIDED, None, True, some)
        last = walls.prepare_term(target, odd, hopping.EVEN, source, True, some)
        return in_turn(product, first, partial(last, -kappa2))

    def left_part(self, target: SpinorField, source: SpinorField) -> hopping.Apply:
        """Return a call that computes A^-dagger X; see `ReducedOperator.left_part`."""
        return self._whole.diagonals[True, True].prepare(target, source, (hopping.EVEN,))


@OPERATORS.register
class DomainWall(WallOperator, CoupledOperator):
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
                f"The eigenvalues of H are measured for b = c alone, but b is {b:g} and c is "
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
        """Return whether L is even and all weights are 1; see `WallOperator.has_midpoint`."""
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
    ) -> hopping.ReducedOperator:
        """Return M on the even sites; see `HoppingOperator.reduced`."""
        return ReducedWalls(cast(PreparedWalls, self.prepared(precision, reals)))

    def apply(
        self,
        array: NDArray[np.complexfloating[Any, Any]],
        dagger: bool = False,
        precision: str | None = None,
        reals: int | None = None,
    ) -> NDArray[np.complex128]:
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
        first.prepare(image, source, prepared.parities)()
        prepared.apply(product, image, dagger)()
        last.prepare(source, product, prepared.parities)(1 / (2 * self.kappa))
        return source.to_numpy().reshape(np.shape(array))

    def solve(
        self,
        source: NDArray[np.complexfloating[Any, Any]],
        tolerance: float = defaults.TOLERANCE,
        solver: str = defaults.WALL_SOLVER,
        **request: Any,
    ) -> NDArray[np.complex128]:
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
        self._unrooted.prepare(target, right, (hopping.EVEN, hopping.ODD))(2 * self.kappa)

    def from_solver(self, target: SpinorField, solution: SpinorField) -> None:
        """Compute the solutions of D5 x = b from those of M y = 2 kappa w^-1/2 b."""
        self._from_w.prepare(target, solution, (hopping.EVEN, hopping.ODD))()

    def hopping_term(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        addend: SpinorField | None = None,
    ) -> hopping.PreparedHop:
        """Return a call that computes the hopping term; see `WallOperator.hopping_term`."""
        return self.prepared(source.storage.name).prepare_term(target, source, parity, addend)

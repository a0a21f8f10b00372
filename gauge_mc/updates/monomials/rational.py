"""One flavour of quarks, or any other power of a determinant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from gauge_mc.errors import ConvergenceError, UsageError
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.random_field import Random
from gauge_mc.files.columns import Column
from gauge_mc.quarks.forces.normal import NormalOperator, NormalPairs, QuarkSolver
from gauge_mc.quarks.matrices.linear import EVEN, LinearOperator
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.rational.lanczos import SpectrumEnds
from gauge_mc.quarks.rational.multishift import ShiftedSystem
from gauge_mc.quarks.rational.rational_functions import LEAST_ERROR, PartialFractions, approximate
from gauge_mc.quarks.solvers import Failures, Mask
from gauge_mc.quarks.vectors.algebra import Combine
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.rounded import square
from gauge_mc.updates.energy import Energy
from gauge_mc.updates.monomials import MONOMIALS, Monomial
from gauge_mc.updates.pseudofermions import draw_all, local_norms

ACCURACY = 1e-12
"""Default of the relative error of the rational function of the action."""

LEAST_FLAVOURS, MOST_FLAVOURS = 0.04, 1.8
"""Bounds of the number of flavours, from those of the powers that can be approximated."""

RATIO = 1e-6
"""Ratio of the ends of the range, unless it is given."""

MARGIN = 2.0
"""Factor between the ends of a spectrum and those of the range that a message proposes."""

TOGETHER = 4
"""Number of poles whose forces are computed together, which memory is needed for."""


class NormalPowers:
    """Powers of Mh Mh^dagger as rational functions, for |det Mh|^f with f flavours.

    Parameters
    ----------
    operator : DiracOperator
        The operator M, on links that are updated before a method is called.
    request : QuarkSolver
        See `Rational`.
    flavours : float
        Number of flavours.
    power : float
        The power of which forces follow.
    ends : tuple of float, optional
        See `Rational`.
    accuracy : float
        Largest relative error of `root`.
    owner : Monomial
        The monomial, whose iterations are counted.

    Attributes
    ----------
    root, inverse_root : PartialFractions
        The function R(x) ~ x^(-f/4), and its inverse but for a constant.
    force_function : PartialFractions
        The function of which forces follow, of the tolerance for forces.
    spectra : list of SpectrumEnds or None
        The ends of the spectrum of Mh Mh^dagger when they were last measured, for every chain.

    Raises
    ------
    UsageError
        If the functions are out of reach.
    """

    def __init__(
        self,
        operator: DiracOperator,
        request: QuarkSolver,
        flavours: float,
        power: float,
        ends: tuple[float, float] | None,
        accuracy: float,
        owner: Monomial,
    ) -> None:
        self._operator, self._request = operator, request
        self._owner, self.ends = owner, ends or default_ends(operator)
        self.root = approximate(-flavours / 4, *self.ends, error=accuracy)
        poles = len(self.root.shifts)
        self.inverse_root = approximate(flavours / 4, *self.ends, poles=poles)
        error = max(request.force_tolerance, LEAST_ERROR)
        self.force_function = approximate(power, *self.ends, error=error)
        self.spectra: list[SpectrumEnds | None] = [None] * owner.chains
        self._b = SpinorField.empty(operator.field, parity=EVEN, fifth=operator.fifth)
        most = max(poles, len(self.force_function.shifts))
        parameters = request.parameters(request.action_tolerance)
        self._system = ShiftedSystem(self._normal_operator, self._b, most, parameters)
        self._even, self._x, self._y = (
            SpinorField.empty(operator.field, "double", TOGETHER, parity, operator.fifth)
            for parity in (EVEN, None, None)
        )
        self._pairs = NormalPairs(operator, self._even, self._x, self._y)

    def _normal_operator(self, precision: str) -> LinearOperator:
        return NormalOperator(self._operator.reduced(True, precision))

    def multiply(
        self,
        target: SpinorField,
        function: PartialFractions,
        b: SpinorField,
        failures: Failures,
    ) -> None:
        """Set a vector to a function times another one, and measure the spectrum."""
        wanted = failures.left(np.ones(self._owner.chains, np.bool_))
        tolerance = self._request.action_tolerance
        solutions = self.solutions(b, function, tolerance, wanted, failures)
        Combine(target, b)(0, function.constant)
        for y, residue in zip(solutions, function.residues.tolist(), strict=True):
            Combine(target, y)(1, residue)
        for n in np.flatnonzero(failures.left(wanted)).tolist():
            self._check_spectrum(n, failures)

    def solutions(
        self,
        b: SpinorField,
        function: PartialFractions,
        tolerance: float,
        wanted: Mask,
        failures: Failures,
    ) -> Iterator[SpinorField]:
        """Yield the solutions for all poles, from the smallest shift to the largest."""
        Combine(self._b, b)(0, 1)
        yield from self._system.solutions_on(wanted, function.shifts.tolist(), tolerance)
        self._owner.iterations += self._system.progress.iterations
        failures.errors.update(self._system.progress.errors)

    def add_force(
        self, force: AlgebraField, vectors: Iterable[SpinorField], weights: Sequence[float]
    ) -> None:
        """Add the forces of -sum_i weight_i X_i^dagger (Mh Mh^dagger) X_i, for fixed X_i.

        dS is the sum of -2 weight Re X^dagger (dMh) Y with Y = Mh^dagger X. With the solution for a
        pole and its residue, this is the derivative of residue phi^dagger X.

        Parameters
        ----------
        force : AlgebraField
            The field to which they are added.
        vectors : iterable of SpinorField
            The vectors X_i on the even sites.
        weights : sequence of float
            The weights.
        """
        together = [0.0] * TOGETHER
        for n, (x, weight) in enumerate(zip(vectors, weights, strict=True), 1):
            self._even.copy(x, to=n % TOGETHER)
            together[n % TOGETHER] = weight
            if n % TOGETHER == 0 or n == len(weights):
                self._pairs.complete()
                self._operator.add_force(force, self._x, self._y, together)
                together = [0.0] * TOGETHER

    def _check_spectrum(self, chain: int, failures: Failures) -> None:
        """Measure the spectrum in the last search, and refuse one that leaves the range."""
        self.spectra[chain] = found = self._system.lanczos[chain].ends()
        lower, upper = self.ends
        if found.smallest >= lower and found.largest <= upper:
            return
        low, high = min(lower, found.smallest / MARGIN), max(upper, found.largest * MARGIN)
        failures.errors[chain] = ConvergenceError(
            f"The eigenvalues of Mh Mh^dagger are from {found.smallest:.3g} to "
            f"{found.largest:.3g}, but the rational function of {self._owner.title} is for "
            f"{lower:.3g} to {upper:.3g}: choose a range such as {low:.1g} to {high:.2g}."
        )


@MONOMIALS.register
class Rational(Monomial):
    """S = |R(Mh Mh^dagger) phi|^2 on the even sites with R(x) ~ x^(-f/4), for |det Mh|^f.

    f is the number of flavours; one flavour needs the weight det M = det A_oo det Mh, so that
    `Determinant` with as many flavours accompanies this term. R is the best rational function on a
    range that must contain the spectrum of Mh Mh^dagger, which is measured whenever phi is drawn or
    the action is computed. phi = R(Mh Mh^dagger)^-1 eta is drawn with the inverse function. So the
    distribution is exact for the determinant of R^-2, which differs from that of Mh by less than
    twice the accuracy times the number of components of phi, in the logarithm. Forces are those of
    phi^dagger R'(Mh Mh^dagger) phi with R'(x) ~ x^(-f/2) of the tolerance for forces, for which the
    acceptance corrects. A. D. Kennedy, I. Horvath and S. Sint, Nucl. Phys. B Proc. Suppl. 73 (1999)
    834 (hep-lat/9809092); M. A. Clark and A. D. Kennedy, Phys. Rev. Lett. 98 (2007) 051601
    (hep-lat/0608015).

    The weight of an odd number of flavours is |det M|^f. Without a twisted mass det M is real, and
    it is negative if an odd number of real eigenvalues of M are, which becomes likely only for
    light quarks on coarse lattices. The sign is not part of the weight: averages must be multiplied
    with it. With a twisted mass det M of a single flavour is complex, and its phase is left out. A
    doublet of Wilson quarks of different masses is two terms with one flavour each. A doublet with
    twisted and different masses has an operator on spinors with two flavours (`TwistedDoublet`),
    with whose determinant to the power 1 both flavours are simulated.

    Parameters
    ----------
    operator : DiracOperator
        The operator M, on links that are updated before a method is called.
    request : QuarkSolver
        How the solutions are computed: by conjugate gradients for all poles at once. Its `solver`
        and `history` are not used.
    number : int
        Number of the field of pseudofermions among those of the run, from 0.
    flavours : float
        Number of flavours, between `LEAST_FLAVOURS` and `MOST_FLAVOURS`.
    ends : tuple of float, optional
        The range. By default it ends where the spectrum of Wilson quarks without a clover term
        ends for any links, and begins at `RATIO` times that.
    accuracy : float
        Largest relative error of R.
    title : str
        See `Monomial`.

    Attributes
    ----------
    powers : NormalPowers
        The functions R, its inverse, and R', with the spectrum.
    phi : SpinorField
        The pseudofermions.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    name = "rational"
    summary = "pseudofermions of one flavour, or of a doublet, with a rational function"
    chosen_by = "quarks"
    solves = True
    vectors = 180  # 40 poles, two vectors for each and these in two precisions
    columns = (
        Column(
            "smallest_eigenvalue",
            float,
            "Smallest eigenvalue of Mh Mh^dagger at the end of the trajectory.",
        ),
        Column("largest_eigenvalue", float, "Largest eigenvalue of Mh Mh^dagger."),
    )

    def __init__(
        self,
        operator: DiracOperator,
        request: QuarkSolver,
        number: int,
        flavours: float = 1,
        ends: tuple[float, float] | None = None,
        accuracy: float = ACCURACY,
        title: str = "rational",
    ) -> None:
        super().__init__(operator.field, title)
        if not LEAST_FLAVOURS <= flavours <= MOST_FLAVOURS:
            raise UsageError(
                f"The number of flavours is {flavours:g}; give one from {LEAST_FLAVOURS} to "
                f"{MOST_FLAVOURS}, and the term for two flavours in addition if there are more."
            )
        self._request, self._number = request, number
        self.powers = NormalPowers(operator, request, flavours, -flavours / 2, ends, accuracy, self)
        self.phi, self._eta, self._z = (
            SpinorField.empty(operator.field, parity=EVEN, fifth=operator.fifth) for _ in range(3)
        )

    def _draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw phi = R^-1 eta, for normal random vectors eta; see `Monomial.draw`."""
        draw_all(self._eta, randoms, self._number, failures)
        self.powers.multiply(self.phi, self.powers.inverse_root, self._eta, failures)
        return local_norms(self._eta)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return |R phi|^2; see `Monomial.actions`."""
        self.powers.multiply(self._z, self.powers.root, self.phi, failures)
        return local_norms(self._z)

    def measured(self, chain: int) -> tuple[float, ...]:
        """Return the ends of the spectrum when they were last measured, and 0 if they were not."""
        found = self.powers.spectra[chain]
        return (found.smallest, found.largest) if found else (0.0, 0.0)

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces; see `Monomial.add_force`."""
        function, tolerance = self.powers.force_function, self._request.force_tolerance
        solutions = self.powers.solutions(self.phi, function, tolerance, wanted, failures)
        self.powers.add_force(force, solutions, function.residues.tolist())


def default_ends(operator: DiracOperator) -> tuple[float, float]:
    """Return a range that quarks without a clover term seldom leave at its lower end.

    They never leave the upper one: the norm of Mh = A - kappa^2 D A^-1 D is at most |A| + 64
    kappa^2 |A^-1|, since that of D between the parities is at most 8. If Mh is divided by A, it is
    at most 1 + 64 kappa^2 |A^-1|^2. A clover term is left out.
    """
    largest, smallest = operator.sizes
    strict = operator.field.devices.strict
    hops = 64 * square(operator.kappa, strict) / smallest
    divided = operator.reduced(True).divided
    upper = square(1 + hops / smallest if divided else largest + hops, strict)
    return RATIO * upper, upper

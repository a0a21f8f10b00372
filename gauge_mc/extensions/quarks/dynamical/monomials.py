"""Monomials of quarks: determinants, ratios, rational functions, and two degenerate flavours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from gauge_mc.devices.kernels import Kernel
from gauge_mc.devices.source import zero
from gauge_mc.errors import ConvergenceError, UsageError
from gauge_mc.extensions.quarks import hopping, rational_functions
from gauge_mc.extensions.quarks.diagonal import shared_on
from gauge_mc.extensions.quarks.dynamical import normal_systems
from gauge_mc.extensions.quarks.dynamical.normal_systems import QuarkSystem
from gauge_mc.extensions.quarks.operators import DiracOperator
from gauge_mc.extensions.quarks.solvers.multishift import ShiftedSystem
from gauge_mc.extensions.quarks.vectors import SPINS, SpinorField
from gauge_mc.extensions.quarks.vectors.algebra import MULTIPLY_SPINORS, PRODUCTS, Combine
from gauge_mc.fields.field import AlgebraField
from gauge_mc.fields.random_field import Random
from gauge_mc.fields.sums import SlabSums, slices_of_all_slabs
from gauge_mc.files.columns import Column
from gauge_mc.quoting import square
from gauge_mc.updates.momenta import Energy, replica_sums
from gauge_mc.updates.monomials import MONOMIALS, Failures, Mask, Monomial

PSEUDOFERMIONS = Kernel("pseudofermions")

FIRST_SUBSTREAM = 1
"""Sub-stream of the first field; that of the momenta is 0."""


def draw_vectors(vectors: SpinorField, random: Random, number: int) -> None:
    """Draw vectors eta on the sites of one parity with the weight exp(-eta^dagger eta).

    The numbers of a site depend only on the seed, the site, `random.step` and the field's number,
    and differ from those of the momenta. Generators with a state go on with it instead.
    """
    for vector in range(vectors.vectors):
        for n, slab in enumerate(vectors.slabs):
            slab.launch(
                PSEUDOFERMIONS,
                slab.whole(vectors.parities[0]),
                vectors.storage.choice,
                random.choice,
                vectors=vectors.structure(slab),
                stream=random.stream(n),
                vector=vector,
                substream=FIRST_SUBSTREAM + number + vector,
            )


def draw_all(
    vectors: SpinorField, randoms: Sequence[Random], number: int, failures: Failures
) -> Mask:
    """Draw the vectors of the chains without failures as `draw_vectors` does, and return these."""
    active = failures.left(np.ones(vectors.replicas, np.bool_))
    for n in np.flatnonzero(active).tolist():
        replica = vectors.part(range(n, n + 1)) if vectors.replicas > 1 else vectors
        draw_vectors(replica, randoms[n], number)
    return active


def local_norms(vectors: SpinorField) -> list[Energy]:
    """Return the sum of |v|^2 over the even sites of every replica, as parts from blocks."""
    sums = []
    for slab in vectors.slabs:
        choices, count = (vectors.storage.choice,), vectors.per_site
        slab_sums = SlabSums(
            slab, PRODUCTS, count, slab.whole(hopping.EVEN), choices=choices, wide=True
        )
        spinors = [vectors.by_vector(slab, n) for n in range(count)]
        slab_sums.launch(
            MULTIPLY_SPINORS, *({"w": zero(type(this)), "r": this} for this in spinors)
        )
        sums.append(slab_sums.by_block())
    totals = slices_of_all_slabs(vectors.field.devices, sums)[..., PRODUCTS - 1]
    each = totals.reshape(len(totals), vectors.replicas, -1)
    return [Energy.of(each[:, n]) for n in range(vectors.replicas)]


class QuarkMonomial(Monomial):
    """A term of dynamical quarks, which a run has for its option ``quarks``."""

    chosen_by = "quarks"
    solves = True
    vectors = 48

    def _half_norms(
        self, system: QuarkSystem, tolerance: float, failures: Failures
    ) -> list[Energy]:
        """Return |Mh^-1 phi|^2 for every chain, of which the solution fails for some."""
        active = self._left(failures)
        self._take(system.solve(tolerance, active, both=False), active, failures)
        return local_norms(system.y)


@MONOMIALS.register
class Determinant(QuarkMonomial):
    """S = -(flavours / 2) ln det (A A^dagger) on the odd sites, for flavours with det M each.

    It accompanies the pseudofermions for Mh, the operator on the even sites, because
    det M = det A_oo det Mh. A A^dagger is H^2 + m^2, of which S is the sum over sites.

    Parameters
    ----------
    operator : DiracOperator
        The operator M, on links that are updated before a method is called.
    flavours : int
        Number of flavours.
    title : str
        See `Monomial`.

    Raises
    ------
    UsageError
        If A is not composed of terms.
    """

    name = "determinant"
    summary = "determinant of the diagonal part of a Dirac operator on the odd sites"

    def __init__(
        self, operator: DiracOperator, flavours: int = 2, title: str = "determinant"
    ) -> None:
        super().__init__(operator.field, title)
        if operator.diagonal not in hopping.FORMS:
            raise UsageError(
                f"The determinant of the diagonal part of the operator {operator.name} is not "
                "known; choose an operator that is composed of terms."
            )
        self._operator, self._flavours = operator, flavours

    def actions(self, failures: Failures) -> list[Energy]:
        """Return the value of the term for every chain, as the contributions of blocks of sites."""
        part, weight = self._operator.hermitian, -self._flavours / 2
        if self._operator.diagonal == hopping.HERMITIAN:
            sums = replica_sums(
                self.field.devices, normal_systems.log_determinants(part), self.chains
            )
            return [Energy.of(weight * parts) for parts in sums]
        count = self.field.lattice.sites // 2 * SPINS * self.field.group.colours
        return [Energy.of(weight * count * math.log1p(part.mass**2))] * self.chains

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces of all chains."""
        if self._operator.diagonal == hopping.HERMITIAN:
            derivative = shared_on(self.field, normal_systems.DiagonalDerivative)
            blocks = derivative.of_determinant(self._operator.hermitian, -self._flavours)
            self._operator.add_term_forces(force, blocks)


@MONOMIALS.register
class Ratio(QuarkMonomial):
    """S = |Mh1^-1 Mh2 phi|^2 on the even sites, for det(Mh1 Mh1^dagger) / det(Mh2 Mh2^dagger).

    Together with `TwoFlavours` of the heavier mass it replaces that of the lighter one.
    M. Hasenbusch, Phys. Lett. B 519 (2001) 177 (hep-lat/0107019).

    Parameters
    ----------
    light, heavy : DiracOperator
        The operators M1 and M2, on links that are updated before a method is called.
    request : QuarkSolver
        How the solutions are computed.
    number : int
        Number of the field of pseudofermions among those of the run, from 0.
    title : str
        See `Monomial`.
    """

    name = "ratio"
    summary = "ratio of the determinants of two masses of two flavours"

    def __init__(
        self,
        light: DiracOperator,
        heavy: DiracOperator,
        request: normal_systems.QuarkSolver,
        number: int,
        title: str = "ratio",
    ) -> None:
        super().__init__(light.field, title)
        self._light, self._heavy = light, heavy
        self._request, self._number, self._system = request, number, QuarkSystem(light, request)
        self._drawing = QuarkSystem(heavy, replace(request, history=0))
        empty = partial(SpinorField.empty, light.field, fifth=light.fifth)
        self._eta = empty(parity=hopping.EVEN)
        # phi and X on all sites, whose other parts are those of the heavy operator.
        self._phi, self._x = (empty() for _ in range(2))
        self._take_x = self._drawing.reduced().left_part(self._x, self._system.even)
        self._lift_phi = normal_systems.OddSites(heavy, self._phi)
        self._lift_x = normal_systems.OddSites(heavy, self._x, dagger=True)
        self._copy_phi = Combine(self._phi, self._drawing.y, parity=hopping.EVEN)
        self._multiply_eta = self._system.reduced().apply(self._drawing.phi, self._eta)
        self._multiply_phi = self._drawing.reduced().apply(self._system.phi, self._phi)

    def _draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw phi = Mh2^-1 Mh1 eta, for normal random vectors eta; see `Monomial.draw`."""
        active = draw_all(self._eta, randoms, self._number, failures)
        self._multiply_eta()
        progress = self._drawing.solve(self._request.action_tolerance, active, both=False)
        self._take(progress, active, failures)
        self._copy_phi(0, 1)
        self._system.forget()
        return local_norms(self._eta)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return |Mh1^-1 Mh2 phi|^2; see `Monomial.actions`."""
        self._multiply_phi()
        return self._half_norms(self._system, self._request.action_tolerance, failures)

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces; see `Monomial.add_force`.

        dS is 2 Re X^dagger (dMh2 phi - dMh1 Y) with Y = Mh1^-1 Mh2 phi and X = Mh1^-dagger Y.
        """
        self._multiply_phi()
        system = self._system
        self._take(system.solve(self._request.force_tolerance, wanted), wanted, failures)
        self._light.add_force(force, system.x, system.y, [1.0])
        self._take_x()
        self._lift_x()
        self._lift_phi()
        self._heavy.add_force(force, self._x, self._phi, [-1.0])


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
        request: normal_systems.QuarkSolver,
        flavours: float,
        power: float,
        ends: tuple[float, float] | None,
        accuracy: float,
        owner: Monomial,
    ) -> None:
        self._operator, self._request = operator, request
        self._owner, self.ends = owner, ends or default_ends(operator)
        self.root = rational_functions.approximate(-flavours / 4, *self.ends, error=accuracy)
        poles = len(self.root.shifts)
        self.inverse_root = rational_functions.approximate(flavours / 4, *self.ends, poles=poles)
        error = max(request.force_tolerance, rational_functions.LEAST_ERROR)
        self.force_function = rational_functions.approximate(power, *self.ends, error=error)
        self.spectra: list[rational_functions.SpectrumEnds | None] = [None] * owner.chains
        self._b = SpinorField.empty(operator.field, parity=hopping.EVEN, fifth=operator.fifth)
        most = max(poles, len(self.force_function.shifts))
        parameters = request.parameters(request.action_tolerance)
        self._system = ShiftedSystem(self._normal_operator, self._b, most, parameters)
        self._even, self._x, self._y = (
            SpinorField.empty(operator.field, "double", TOGETHER, parity, operator.fifth)
            for parity in (hopping.EVEN, None, None)
        )
        self._pairs = normal_systems.NormalPairs(operator, self._even, self._x, self._y)

    def _normal_operator(self, precision: str) -> hopping.LinearOperator:
        return hopping.NormalOperator(self._operator.reduced(True, precision))

    def multiply(
        self,
        target: SpinorField,
        function: rational_functions.PartialFractions,
        b: SpinorField,
        failures: Failures,
    ) -> None:
        """Set a vector to a function times another one, and measure the spectrum."""
        active = failures.left(np.ones(self._owner.chains, np.bool_))
        tolerance = self._request.action_tolerance
        solutions = self.solutions(b, function, tolerance, active, failures)
        Combine(target, b)(0, function.constant)
        for y, residue in zip(solutions, function.residues.tolist(), strict=True):
            Combine(target, y)(1, residue)
        for n in np.flatnonzero(failures.left(active)).tolist():
            self._check_spectrum(n, failures)

    def solutions(
        self,
        b: SpinorField,
        function: rational_functions.PartialFractions,
        tolerance: float,
        active: Mask,
        failures: Failures,
    ) -> Iterator[SpinorField]:
        """Yield the solutions for all poles, from the smallest shift to the largest."""
        Combine(self._b, b)(0, 1)
        yield from self._system.solutions_on(active, function.shifts.tolist(), tolerance)
        self._owner.iterations += self._system.progress.iterations
        failures.errors.update(self._system.progress.errors)

    def add_force(
        self, force: AlgebraField, vectors: Iterable[SpinorField], weights: Sequence[float]
    ) -> None:
        """Add the forces of -sum_i weight_i X_i^dagger (Mh Mh^dagger) X_i, for fixed X_i.

        dS is the sum of -2 weight Re X^dagger (dMh) Y with Y = Mh^dagger X. With the solution for a
        pole and its residue, this is the derivative of residue phi^dagger X.
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
        self.spectra[chain] = spectrum = self._system.lanczos[chain].ends()
        lower, upper = self.ends
        if spectrum.smallest >= lower and spectrum.largest <= upper:
            return
        low, high = min(lower, spectrum.smallest / MARGIN), max(upper, spectrum.largest * MARGIN)
        failures.errors[chain] = ConvergenceError(
            f"The eigenvalues of Mh Mh^dagger are from {spectrum.smallest:.3g} to "
            f"{spectrum.largest:.3g}, but the rational function of {self._owner.title} is for "
            f"{lower:.3g} to {upper:.3g}: choose a range such as {low:.1g} to {high:.2g}."
        )


@MONOMIALS.register
class Rational(QuarkMonomial):
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
        request: normal_systems.QuarkSolver,
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
            SpinorField.empty(operator.field, parity=hopping.EVEN, fifth=operator.fifth)
            for _ in range(3)
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
        spectrum = self.powers.spectra[chain]
        return (spectrum.smallest, spectrum.largest) if spectrum else (0.0, 0.0)

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


@MONOMIALS.register
class RationalRatio(Rational):
    """S = |R1 Q2 phi|^2 on the even sites, for |det Mh1 / det Mh2|^f with f flavours.

    R1(x) ~ x^(-f/4) is a function of Mh1 Mh1^dagger and Q2(x) ~ x^(f/4) one of Mh2 Mh2^dagger, with
    the exactness and the range of `Rational`. For quarks on domain walls the second operator is
    that of Pauli-Villars. As the fields of both are the same, their noise cancels as far as the two
    operators are alike, which two terms would not do.

    Parameters
    ----------
    light, heavy : DiracOperator
        The operators M1 and M2, on links that are updated before a method is called.
    request, number, flavours, ends, accuracy, title
        See `Rational`; the ends are those of Mh1 Mh1^dagger.

    Attributes
    ----------
    heavy : NormalPowers
        The functions of Mh2 Mh2^dagger.
    """

    name = "rational-ratio"
    summary = "pseudofermions of one flavour on domain walls, with rational functions of two masses"
    vectors = 400  # twice those of a rational function, and the poles of which a force follows

    def __init__(
        self,
        light: DiracOperator,
        heavy: DiracOperator,
        request: normal_systems.QuarkSolver,
        number: int,
        flavours: float = 1,
        ends: tuple[float, float] | None = None,
        accuracy: float = ACCURACY,
        title: str = "rational_ratio",
    ) -> None:
        super().__init__(light, request, number, flavours, ends, accuracy, title)
        self.heavy = NormalPowers(heavy, request, flavours, flavours / 4, None, accuracy, self)
        self._psi, self._chi, self._sum = (self.phi.like() for _ in range(3))
        self._of_phi = [self.phi.like() for _ in self.heavy.force_function.residues]

    def _draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw phi = Q2^-1 R1^-1 eta, for normal random vectors eta; see `Monomial.draw`."""
        draw_all(self._eta, randoms, self._number, failures)
        self.powers.multiply(self._z, self.powers.inverse_root, self._eta, failures)
        self.heavy.multiply(self.phi, self.heavy.root, self._z, failures)
        return local_norms(self._eta)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return |R1 Q2 phi|^2; see `Monomial.actions`."""
        self.heavy.multiply(self._psi, self.heavy.inverse_root, self.phi, failures)
        self.powers.multiply(self._z, self.powers.root, self._psi, failures)
        return local_norms(self._z)

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces; see `Monomial.add_force`.

        With psi = Q2 phi and chi = R1^2 psi, dS is the sum of psi^dagger (d R1^2) psi and
        2 Re phi^dagger (dQ2) chi. A pole of Q2 contributes -residue 2 Re X^dagger
        d(Mh2 Mh2^dagger) Z to the latter, with its solutions X and Z for phi and chi.
        """
        heavy, light, tolerance = self.heavy, self.powers, self._request.force_tolerance
        residues = heavy.force_function.residues.tolist()
        solutions = heavy.solutions(self.phi, heavy.force_function, tolerance, wanted, failures)
        Combine(self._psi, self.phi)(0, heavy.force_function.constant)
        for x, solution, residue in zip(solutions, self._of_phi, residues, strict=True):
            Combine(solution, x)(0, 1)
            Combine(self._psi, x)(1, residue)
        Combine(self._chi, self._psi)(0, light.force_function.constant)
        solutions = light.solutions(self._psi, light.force_function, tolerance, wanted, failures)
        weights = light.force_function.residues.tolist()
        light.add_force(force, self._added(solutions, weights), weights)
        solutions = heavy.solutions(self._chi, heavy.force_function, tolerance, wanted, failures)
        halves = [sign * residue / 2 for residue in residues for sign in (1, -1)]
        heavy.add_force(force, self._sums(solutions), halves)

    def _added(
        self, solutions: Iterator[SpinorField], residues: Sequence[float]
    ) -> Iterator[SpinorField]:
        """Yield the solutions of R1^2 for psi, and add them to chi."""
        for x, residue in zip(solutions, residues, strict=True):
            Combine(self._chi, x)(1, residue)
            yield x

    def _sums(self, solutions: Iterator[SpinorField]) -> Iterator[SpinorField]:
        """Yield X + Z and X - Z for all poles, as 4 Re X^dagger N Z is the difference of theirs."""
        for x, z in zip(self._of_phi, solutions, strict=True):
            for sign in (1, -1):
                Combine(self._sum, x)(0, 1)
                Combine(self._sum, z)(1, sign)
                yield self._sum


@MONOMIALS.register
class TwoFlavours(QuarkMonomial):
    """S = phi^dagger (Mh Mh^dagger)^-1 phi on the even sites, for det(Mh Mh^dagger).

    Mh = A_ee - kappa^2 D_eo A_oo^-1 D_oe, so that |det M|^2 is |det A_oo|^2 det(Mh Mh^dagger).
    With a twisted mass the two flavours have opposite signs of it. S. A. Gottlieb et al., Phys.
    Rev. D 35 (1987) 2531; T. DeGrand and P. Rossi, Comput. Phys. Commun. 60 (1990) 211.

    Parameters
    ----------
    operator : DiracOperator
        The operator M, on links that are updated before a method is called.
    request : QuarkSolver
        How the solutions are computed.
    number : int
        Number of the field of pseudofermions among those of the run, from 0.
    title : str
        See `Monomial`.
    """

    name = "two-flavours"
    summary = "pseudofermions of two flavours of one mass"

    def __init__(
        self,
        operator: DiracOperator,
        request: normal_systems.QuarkSolver,
        number: int,
        title: str = "two_flavours",
    ) -> None:
        super().__init__(operator.field, title)
        self._operator, self._request, self._number = operator, request, number
        self._system = QuarkSystem(operator, request)
        self._eta = SpinorField.empty(operator.field, parity=hopping.EVEN)
        self._multiply = self._system.reduced().apply(self._system.phi, self._eta)

    def _draw(self, randoms: Sequence[Random], failures: Failures) -> list[Energy]:
        """Draw phi = Mh eta, for normal random vectors eta; see `Monomial.draw`."""
        draw_all(self._eta, randoms, self._number, failures)
        self._multiply()
        self._system.forget()
        return local_norms(self._eta)

    def actions(self, failures: Failures) -> list[Energy]:
        """Return |Mh^-1 phi|^2; see `Monomial.actions`."""
        return self._half_norms(self._system, self._request.action_tolerance, failures)

    def add_force(self, force: AlgebraField, wanted: Mask, failures: Failures) -> None:
        """Add the forces; see `Monomial.add_force`."""
        system = self._system
        self._take(system.solve(self._request.force_tolerance, wanted), wanted, failures)
        self._operator.add_force(force, system.x, system.y, [1.0])

"""Actions and forces of quarks against NumPy in extended precision, and what they must fulfil."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.dynamical.flavours import operator_on
from gauge_mc.extensions.quarks.dynamical.monomials import Ratio, TwoFlavours
from gauge_mc.extensions.quarks.dynamical.normal_systems import MOST_PAIRS, QuarkSolver
from gauge_mc.extensions.quarks.operators import TwistedMass
from gauge_mc.extensions.quarks.vectors import SpinorField
from tests.domain.conftest import GPUS
from tests.extensions.quarks.dynamical.weights import (
    QuarksOnLinks,
    check_rate,
    check_trajectories,
    check_weights,
    direction,
    near_one,
)
from tests.extensions.quarks.links import check_divisions, field_of
from tests.extensions.quarks.reference import pseudofermions as reference
from tests.extensions.quarks.reference.dirac import random_spinor
from tests.extensions.quarks.reference.pseudofermions import Quark
from tests.reference.fields import dagger, gauge_transform, random_field, random_su, trace
from tests.reference.flow import algebra, exponential
from tests.reference.molecular_dynamics import derivative
from tests.updates.monomials.trajectories import empty_momenta, matrices

LATTICE = Lattice(2, 4, 2, 2)
ANTIPERIODIC = (1, 1, 1, -1)
TWISTED = (np.exp(0.3j), 1, np.exp(-0.7j), -1)
KAPPA = 0.12
HEAVY = 0.1
EXACT = QuarkSolver(force_tolerance=1e-13, action_tolerance=1e-14)
TWO_SOLVES = QuarkSolver("bicgstab", force_tolerance=1e-13, action_tolerance=1e-14)

WEIGHTS = 50
"""Number of fields of pseudofermions over which weights are averaged."""


class Quarks(QuarksOnLinks):
    """A monomial on random links, and its action in NumPy."""

    def __init__(self, links, device, light, heavy=None, solver=EXACT):
        def make(on):
            operators = [self.operator(on, quark) for quark in (light, heavy) if quark]
            return (Ratio if heavy else TwoFlavours)(*operators, solver, 0)

        self.light, self.heavy = light, heavy
        super().__init__(links, device, make)

    @staticmethod
    def operator(links, quark):
        name, values = ("twisted-mass", {"mu": quark.mu}) if quark.mu else ("wilson", {})
        if quark.csw:
            name, values = "wilson-clover", {"csw": quark.csw, "mu": quark.mu}
        return operator_on(links, name, quark.kappa, quark.phases, **values)

    def draw(self):
        """Draw pseudofermions, and return them."""
        self.monomial.draw(self.random)
        return reference.even(self.phi.to_numpy()[0])

    @property
    def phi(self):
        """The pseudofermions."""
        return self.monomial.term._phi if self.heavy else self.monomial.term._system.phi

    def reference(self, links, phi):
        """The action in NumPy."""
        if self.heavy:
            return reference.ratio(links, phi, self.light, self.heavy)
        return reference.two_flavours(links, phi, self.light)


CASES = {
    "wilson": (Quark(KAPPA, ANTIPERIODIC), None, EXACT),
    "periodic": (Quark(KAPPA, (1, 1, 1, 1)), None, TWO_SOLVES),
    "twisted mass": (Quark(KAPPA, TWISTED, 0.3), None, EXACT),
    "two solves": (Quark(KAPPA, TWISTED, 0.3), None, TWO_SOLVES),
    "ratio": (Quark(KAPPA, ANTIPERIODIC), Quark(HEAVY, ANTIPERIODIC), EXACT),
    "clover": (Quark(KAPPA, ANTIPERIODIC, 0, 1.7), None, EXACT),
    "twisted clover": (Quark(KAPPA, TWISTED, 0.3, 1.7), None, TWO_SOLVES),
    "clover ratio": (Quark(KAPPA, TWISTED, 0.1, 1.7), Quark(KAPPA, TWISTED, 0.4, 1.7), EXACT),
    "twisted ratio": (Quark(KAPPA, TWISTED, 0.1), Quark(KAPPA, TWISTED, 0.4), TWO_SOLVES),
}


@pytest.mark.first_quick
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("group", ["su3", *(f"su{n}" for n in (2, 4))])
def test_the_force_is_the_derivative_of_the_action(group, case, rng, best_device):
    light, heavy, solver = CASES[case]
    links = random_field(LATTICE.extents, group, rng)
    quarks = Quarks(links, best_device, light, heavy, solver)
    phi = quarks.draw()
    drawn = float(quarks.monomial.drawn)
    assert drawn == pytest.approx(quarks.action(), rel=1e-12)
    assert drawn == pytest.approx(float(quarks.reference(links, phi)), rel=1e-12)
    found, force = quarks.kick()
    squares = -2 * trace(force @ force).real
    assert found.mean == pytest.approx(np.sqrt(squares.mean()), rel=1e-11)
    assert found.largest == pytest.approx(np.sqrt(squares.max()), rel=2e-7)
    assert float(found.kinetic) == pytest.approx(0.25**2 * squares.sum() / 2, rel=1e-11)

    towards, wide = direction(links, rng), phi.astype(np.clongdouble)
    expected = derivative(lambda u: quarks.reference(u, wide), links, towards)
    check_rate(force, towards, expected, least=0)


@pytest.mark.longer
@pytest.mark.parametrize("case", ["twisted mass", "twisted ratio", "twisted clover"])
def test_gauge_transformations_turn_the_force(case, rng, best_device):
    links = random_field(LATTICE.extents, "su3", rng)
    g = random_su(3, links.shape[:4], rng)
    light, heavy, solver = CASES[case]
    found, phi = [], None
    for u in (links, gauge_transform(links, g)):
        quarks = Quarks(u, best_device, light, heavy, solver)
        drawn = quarks.draw()
        phi = drawn if phi is None else np.einsum("...ab,...sb->...sa", g, phi)
        quarks.phi.restore(phi)
        found.append((quarks.action(), quarks.kick()[1]))
    (before, force), (after, turned) = found
    assert after == pytest.approx(before, rel=1e-13)
    at = g[..., None, :, :]
    assert np.abs(at @ force @ dagger(at) - turned).max() < 1e-11 * np.abs(force).max()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
@pytest.mark.parametrize("case", ["wilson", "two solves", "twisted ratio", "twisted clover"])
def test_slabs_and_threads_give_the_same_bytes(case, kind, rng):
    links = random_field((4, 2, 4, 6), "su3", rng)

    def calculate(devices):
        return Quarks(links, devices, *CASES[case]).short_trajectory()

    check_divisions(kind, [(6,), (2, 4), (2, 2, 2)], calculate)


@pytest.mark.longer
@pytest.mark.parametrize("case", ["wilson", "two solves", "twisted ratio", "clover"])
def test_trajectories_are_reversible_and_of_second_order(case, rng, best_device):
    links = near_one(Lattice(4, 4, 2, 4), 3, rng)
    light, heavy, solver = CASES[case]
    # Iterations in single precision repeat their steps to within the tolerance: that of a run is
    # enough for conjugate gradients, but BiCGstab amplifies rounding errors.
    usual = QuarkSolver() if solver is EXACT else QuarkSolver("bicgstab", force_tolerance=1e-11)
    quarks = Quarks(links, best_device, light, heavy, usual)
    assert check_trajectories(quarks, links, 12 if light.csw else 8, 1e-11) < 1e-10


@pytest.mark.longer
def test_earlier_solutions_cost_reversibility(rng, best_device):
    """Starts from them leave the residual in the force: the way back is another one by about it."""
    lattice, tolerance, left, iterations = Lattice(4, 2, 2, 4), 1e-9, [], []
    links = near_one(lattice, 3, rng)
    for history in (0, 4):
        solver = QuarkSolver(force_tolerance=tolerance, history=history)
        quarks = Quarks(links, best_device, Quark(0.14, ANTIPERIODIC), None, solver)
        quarks.draw()
        drawn = quarks.monomial.iterations
        trajectory = quarks.trajectory()
        trajectory.leapfrog(0.8, 8)
        iterations.append(quarks.monomial.iterations - drawn)
        trajectory.leapfrog(-0.8, 8)
        left.append(np.abs(quarks.field.to_numpy() - links).max())
    assert left[0] < 1e-3 * tolerance
    assert 0.01 * tolerance < left[1] < 10 * tolerance
    assert iterations[1] < iterations[0]


@pytest.mark.longer
@pytest.mark.parametrize("case", ["twisted mass", "ratio"])
def test_weights_of_pseudofermions_are_determinants(case, rng, best_device):
    """<exp(S(U) - S(U'))> over fields phi drawn for U is det(U') / det(U)."""
    lattice = Lattice(2, 2, 2, 2)
    links = random_field(lattice.extents, "su3", rng)
    light, heavy, _ = CASES[case]
    quarks = Quarks(links, best_device, light, heavy, QuarkSolver())
    noise = rng.normal(size=(2, *links.shape))
    moved = exponential(0.05 * algebra(noise[0] + 1j * noise[1])) @ links
    logs = []
    for u in (links, moved):
        one, *other = reference.determinants(u, [q for q in (light, heavy) if q])
        logs.append(one - sum(other))
    check_weights(quarks, moved, logs, 4 * 3 * lattice.sites // 2, WEIGHTS)


@pytest.mark.longer
@pytest.mark.parametrize(
    ("pairs", "lattice"), [(3, Lattice(4, 4, 4, 2)), (MOST_PAIRS + 2, Lattice(2, 2, 2, 2))]
)
def test_pairs_have_weights(pairs, lattice, rng, device):
    """The force is the derivative of -sum_i w_i 2 Re X_i^dagger M Y_i."""
    quark = Quark(0.13, TWISTED, 0.2)
    links = random_field(lattice.extents, "su3", rng)
    field = field_of(links, device)
    operator = TwistedMass(field, quark.kappa, quark.mu, quark.phases)
    vectors = rng.normal(size=(2, pairs, *random_spinor(lattice.extents, 3, rng).shape)) + 0j
    vectors += 1j * rng.normal(size=vectors.shape)
    x, y = (SpinorField.from_numpy(field, one) for one in vectors)
    weights, force = rng.normal(size=pairs), empty_momenta(field)
    operator.add_force(force, x, y, list(weights))
    found = matrices(field, force)

    def action(u):
        terms = zip(weights, *vectors, strict=True)
        products = (w * np.vdot(a, quark.apply(u, b)).real for w, a, b in terms)
        return -2 * sum(products)

    towards = direction(links, rng)
    check_rate(found, towards, derivative(action, links, towards), least=0)

    # Forces add up.
    operator.add_force(force, x, y, list(-weights))
    assert np.abs(matrices(field, force)).max() < 1e-12 * np.abs(found).max()

"""Actions and forces of quarks against NumPy in extended precision, and what they must fulfil."""

import numpy as np
import pytest

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.dynamical.flavours import operator_on
from gauge_mc.extensions.quarks.dynamical.monomials import Ratio, TwoFlavours
from gauge_mc.extensions.quarks.dynamical.normal_systems import QuarkSolver
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.terms import TermLinks
from tests.conftest import open_by_name
from tests.domain.conftest import GPUS, open_group
from tests.extensions.quarks.dynamical.weights import check_weights
from tests.extensions.quarks.reference import pseudofermions as reference
from tests.extensions.quarks.reference.pseudofermions import Quark
from tests.reference.fields import dagger, gauge_transform, random_field, random_su, trace
from tests.reference.flow import algebra, exponential
from tests.reference.molecular_dynamics import derivative, rates
from tests.updates.monomials.trajectories import OneChain, Trajectory, empty_momenta, matrices

LATTICE = Lattice(2, 4, 2, 2)
ANTIPERIODIC = (1, 1, 1, -1)
TWISTED = (np.exp(0.3j), 1, np.exp(-0.7j), -1)
KAPPA = 0.12
HEAVY = 0.1
EXACT = QuarkSolver(force_tolerance=1e-13, action_tolerance=1e-14)
TWO_SOLVES = QuarkSolver("bicgstab", force_tolerance=1e-13, action_tolerance=1e-14)

WEIGHTS = 50
"""Number of fields of pseudofermions over which weights are averaged."""


class Quarks:
    """A monomial on random links, and its action in NumPy."""

    def __init__(self, links, group, device, light, heavy=None, solver=EXACT, lattice=LATTICE):
        self.field = Field.from_slices(lattice, group, links, "double", device)
        self.links = TermLinks(self.field)
        self.light, self.heavy = light, heavy
        operators = [self.operator(one) for one in (light, heavy) if one]
        kind = Ratio if heavy else TwoFlavours
        self.monomial = OneChain(kind(*operators, solver, 0))
        self.random = Random.for_field(self.field, seed=3)
        self.random.step = 1

    def operator(self, quark):
        name, values = ("twisted-mass", {"mu": quark.mu}) if quark.mu else ("wilson", {})
        if quark.csw:
            name, values = "wilson-clover", {"csw": quark.csw, "mu": quark.mu}
        return operator_on(self.links, name, quark.kappa, quark.phases, **values)

    def draw(self):
        """Draw pseudofermions, and return them."""
        self.monomial.draw(self.random)
        own = self.monomial.term._phi if self.heavy else self.monomial.term._system.phi
        return reference.even(own.to_numpy()[0])

    def action(self):
        """The value of the action on the links now."""
        self.links.take(self.field)
        return float(self.monomial.action())

    def kick(self, size=0.25):
        """What a kick says about the force, and the force that it exerts."""
        momenta = empty_momenta(self.field)
        found = self.monomial.kick(momenta, size)
        return found, matrices(self.field, momenta) / size

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
    quarks = Quarks(links, group, best_device, light, heavy, solver)
    phi = quarks.draw()
    drawn = float(quarks.monomial.drawn)
    assert drawn == pytest.approx(quarks.action(), rel=1e-12)
    assert drawn == pytest.approx(float(quarks.reference(links, phi)), rel=1e-12)
    found, force = quarks.kick()
    squares = -2 * trace(force @ force).real
    assert found.mean == pytest.approx(np.sqrt(squares.mean()), rel=1e-11)
    assert found.largest == pytest.approx(np.sqrt(squares.max()), rel=2e-7)
    assert float(found.kinetic) == pytest.approx(0.25**2 * squares.sum() / 2, rel=1e-11)

    noise = rng.normal(size=(2, *links.shape))
    towards = algebra(noise[0] + 1j * noise[1])
    towards /= np.sqrt(-2 * trace(towards @ towards).real)[..., None, None]
    wide = phi.astype(np.clongdouble)
    expected = derivative(lambda u: quarks.reference(u, wide), links, towards)
    changes = rates(force, towards)
    assert abs(changes.sum() - expected) < 1e-11 * np.abs(changes).sum()


def near_one(lattice, group, rng, size):
    """Links around 1, as those of a configuration are."""
    noise = rng.normal(size=(2, *random_field(lattice.extents, group, rng).shape))
    return exponential(size * algebra(noise[0] + 1j * noise[1]))


@pytest.mark.longer
@pytest.mark.parametrize("case", ["twisted mass", "twisted ratio", "twisted clover"])
def test_gauge_transformations_turn_the_force(case, rng, best_device):
    links = random_field(LATTICE.extents, "su3", rng)
    g = random_su(3, links.shape[:4], rng)
    light, heavy, solver = CASES[case]
    found, phi = [], None
    for u in (links, gauge_transform(links, g)):
        quarks = Quarks(u, "su3", best_device, light, heavy, solver)
        drawn = quarks.draw()
        phi = drawn if phi is None else np.einsum("...ab,...sb->...sa", g, phi)
        own = quarks.monomial.term._phi if heavy else quarks.monomial.term._system.phi
        own.restore(phi)
        found.append((quarks.action(), quarks.kick()[1]))
    (before, force), (after, turned) = found
    assert after == pytest.approx(before, rel=1e-13)
    at = g[..., None, :, :]
    assert np.abs(at @ force @ dagger(at) - turned).max() < 1e-11 * np.abs(force).max()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
@pytest.mark.parametrize("case", ["wilson", "two solves", "twisted ratio", "twisted clover"])
def test_slabs_and_threads_give_the_same_bytes(case, kind, rng):
    lattice = Lattice(4, 2, 4, 6)
    links, found = random_field(lattice.extents, "su3", rng), []
    light, heavy, solver = CASES[case]
    groups = [open_group(kind, slices) for slices in ((6,), (2, 4), (2, 2, 2))]
    if kind.startswith("cpu"):
        groups.append(DeviceGroup.of(open_by_name(kind)))  # with two threads
    for devices in groups:
        quarks = Quarks(links, "su3", devices, light, heavy, solver, lattice)
        phi = quarks.draw()
        begin = quarks.monomial.drawn.parts
        trajectory = Trajectory(quarks.links, quarks.field, quarks.monomial, quarks.random)
        trajectory.leapfrog(0.2, 2)
        end, kinetic = trajectory.action().parts, trajectory.kinetic.parts
        parts = (phi, begin, end, kinetic, quarks.field.to_numpy())
        found.append([one.tobytes() for one in parts])
        devices.close()
    assert all(one == found[0] for one in found[1:])


@pytest.mark.longer
@pytest.mark.parametrize("case", ["wilson", "two solves", "twisted ratio", "clover"])
def test_trajectories_are_reversible_and_of_second_order(case, rng, best_device):
    lattice = Lattice(4, 4, 2, 4)
    links = near_one(lattice, "su3", rng, 0.3)
    light, heavy, solver = CASES[case]
    # Iterations in single precision repeat their steps to within the tolerance: that of a run is
    # enough for conjugate gradients, but BiCGstab amplifies rounding errors.
    usual = QuarkSolver() if solver is EXACT else QuarkSolver("bicgstab", force_tolerance=1e-11)
    quarks = Quarks(links, "su3", best_device, light, heavy, usual, lattice)
    quarks.draw()
    changes, fine = [], 12 if light.csw else 8
    for steps in (fine // 2, fine):
        quarks.field.copy(Field.from_slices(lattice, "su3", links, "double", best_device))
        quarks.field.exchange_halo()
        trajectory = Trajectory(quarks.links, quarks.field, quarks.monomial, quarks.random)
        kinetic, before = trajectory.kinetic, trajectory.action()
        trajectory.leapfrog(0.8, steps)
        changes.append(trajectory.kinetic.minus(kinetic) + trajectory.action().minus(before))
    assert abs(changes[1]) > 1e-4
    assert changes[0] / changes[1] == pytest.approx(4, rel=0.15)
    away = quarks.field.to_numpy()
    assert np.abs(away - links).max() > 0.1
    trajectory.leapfrog(-0.8, fine)
    assert np.abs(quarks.field.to_numpy() - links).max() < 1e-11
    assert trajectory.kinetic.minus(kinetic) == pytest.approx(0, abs=1e-10 * float(kinetic))


@pytest.mark.longer
def test_earlier_solutions_cost_reversibility(rng, best_device):
    """Starts from them leave the residual in the force: the way back is another one by about it."""
    lattice, tolerance, left, iterations = Lattice(4, 2, 2, 4), 1e-9, [], []
    links = near_one(lattice, "su3", rng, 0.3)
    for history in (0, 4):
        solver = QuarkSolver(force_tolerance=tolerance, history=history)
        light = Quark(0.14, ANTIPERIODIC)
        quarks = Quarks(links, "su3", best_device, light, None, solver, lattice)
        quarks.draw()
        drawn = quarks.monomial.iterations
        trajectory = Trajectory(quarks.links, quarks.field, quarks.monomial, quarks.random)
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
    quarks = Quarks(links, "su3", best_device, light, heavy, QuarkSolver(), lattice)
    noise = rng.normal(size=(2, *links.shape))
    moved = exponential(0.05 * algebra(noise[0] + 1j * noise[1])) @ links
    logs = []
    for u in (links, moved):
        one, *other = reference.determinants(u, [q for q in (light, heavy) if q])
        logs.append(one - sum(other))
    check_weights(quarks, moved, logs, 4 * 3 * lattice.sites // 2, WEIGHTS)

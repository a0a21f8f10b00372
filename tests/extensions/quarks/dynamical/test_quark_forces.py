"""Actions and forces of quarks against NumPy in extended precision, and what they must fulfil."""

import numpy as np
import pytest

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.dynamical.flavours import operator_on
from gauge_mc.extensions.quarks.dynamical.monomials import Ratio, TwoFlavours
from gauge_mc.extensions.quarks.forces.normal import QuarkSolver
from gauge_mc.extensions.quarks.forces.replica_solver import QuarkSystem
from gauge_mc.updates.terms import TermLinks
from tests.conftest import open_by_name
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
from tests.reference.fields import random_field, trace
from tests.reference.flow import algebra, exponential
from tests.reference.molecular_dynamics import derivative

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
            operators = [operator_of(on, one) for one in (light, heavy) if one]
            return (Ratio if heavy else TwoFlavours)(*operators, solver, 0)

        super().__init__(links, device, make)
        self.light, self.heavy = light, heavy

    @property
    def phi(self):
        term = self.monomial.term
        return term._phi if self.heavy else term._system.phi

    def draw(self):
        self.monomial.draw(self.random)
        return reference.even(self.phi.to_numpy()[0])

    def reference(self, links, phi):
        if self.heavy:
            return reference.ratio(links, phi, self.light, self.heavy)
        return reference.two_flavours(links, phi, self.light)


def operator_of(links, quark):
    name, values = ("twisted-mass", {"mu": quark.mu}) if quark.mu else ("wilson", {})
    if quark.csw:
        name, values = "wilson-clover", {"csw": quark.csw, "mu": quark.mu}
    return operator_on(links, name, quark.kappa, quark.phases, **values)


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
    links = random_field(LATTICE.extents, group, rng)
    quarks = Quarks(links, best_device, *CASES[case])
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
@pytest.mark.parametrize("case", ["wilson", "two solves", "twisted ratio", "twisted clover"])
def test_slabs_and_threads_give_the_same_bytes(case, kind, rng):
    links = random_field((4, 2, 4, 6), "su3", rng)

    def calculate(devices):
        return Quarks(links, devices, *CASES[case]).short_trajectory()

    check_divisions(kind, [(6,), (2, 4), (2, 2, 2)], calculate)
    if kind.startswith("cpu"):
        groups = (DeviceGroup.of(open_by_name(kind, threads)) for threads in (1, 2))
        assert all(map(np.array_equal, *map(calculate, groups)))


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
    tolerance, left, iterations = 1e-9, [], []
    links = near_one(Lattice(4, 2, 2, 4), 3, rng)
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
    links = random_field((2, 2, 2, 2), "su3", rng)
    light, heavy, _ = CASES[case]
    quarks = Quarks(links, best_device, light, heavy, QuarkSolver())
    noise = rng.normal(size=(2, *links.shape))
    moved = exponential(0.05 * algebra(noise[0] + 1j * noise[1])) @ links
    logs = []
    for u in (links, moved):
        one, *other = reference.determinants(u, [q for q in (light, heavy) if q])
        logs.append(one - sum(other))
    check_weights(quarks, moved, logs, 4 * 3 * 16 // 2, WEIGHTS)


def solution(links, phi, system=None):
    system = system or QuarkSystem(operator_on(links, "twisted-mass", 0.13, mu=0.2), QuarkSolver())
    system.phi.restore(phi)
    count = system.solve(1e-9, np.ones(1, bool)).iterations[0]
    return system, system.x.to_numpy(), count


def test_operators_see_new_links(rng, best_device):
    phi = random_spinor((4, 2, 4, 6), 3, rng)
    first, other = (field_of(random_field((4, 2, 4, 6), "su3", rng), best_device) for _ in range(2))
    links = TermLinks(first)
    system, before, _ = solution(links, phi)
    links.take(other)
    _, after, count = solution(links, phi, system)
    assert not np.array_equal(before, after)
    # The bytes and the iterations are those of new operators, in every precision.
    _, expected, expected_count = solution(TermLinks(other), phi)
    assert np.array_equal(after, expected)
    assert count == expected_count

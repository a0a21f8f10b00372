"""One flavour of quarks: its action, its force and its weights, against dense matrices."""

from functools import partial

import numpy as np
import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.dynamical.flavours import operator_on
from gauge_mc.extensions.quarks.dynamical.monomials import Rational, default_ends
from gauge_mc.extensions.quarks.dynamical.normal_systems import QuarkSolver
from gauge_mc.extensions.quarks.operators import PlainWilson
from tests.extensions.quarks.dynamical.weights import (
    QuarksOnLinks,
    check_rate,
    check_trajectories,
    check_weights,
    difference,
    direction,
)
from tests.extensions.quarks.links import check_divisions, field_of
from tests.extensions.quarks.reference import dirac
from tests.extensions.quarks.reference.pseudofermions import even, even_sites
from tests.reference.fields import random_field
from tests.reference.flow import algebra, exponential

LATTICE = Lattice(2, 4, 2, 2)
PHASES = (1, np.exp(0.4j), 1, -1)
KAPPA = 0.12
ENDS = (0.01, 4.0)
EXACT = QuarkSolver(inner="double", force_tolerance=1e-13, action_tolerance=1e-14)
CASES = {
    "wilson": ("wilson", {}),
    "clover": ("wilson-clover", {"csw": 1.3}),
    "twisted mass": ("twisted-mass", {"mu": 0.2}),
}

WEIGHTS = 40
"""Number of fields of pseudofermions over which weights are averaged."""


class Quarks(QuarksOnLinks):
    """A rational monomial on some links."""

    def __init__(self, links, device, case="wilson", solver=EXACT, **options):
        def make(on):
            name, values = CASES[case]
            operator = operator_on(on, name, KAPPA, PHASES, **values)
            return Rational(operator, solver, 0, **{"ends": ENDS, **options})

        super().__init__(links, device, make)

    def draw(self):
        self.monomial.draw(self.random)
        return even(self.monomial.term.phi.to_numpy()[0])


def normal_matrix(links, case):
    """Mh Mh^dagger on the even sites."""
    is_even = even_sites(links)
    inverse = np.linalg.inv(dirac.dense(links, KAPPA, PHASES, **CASES[case][1]))
    mh = np.linalg.inv(inverse[np.ix_(is_even, is_even)])
    return mh @ mh.conj().T


def power_action(links, phi, case, power):
    """phi^dagger (Mh Mh^dagger)^power phi, from eigenvectors."""
    values, vectors = np.linalg.eigh(normal_matrix(links, case))
    parts = vectors.conj().T @ phi.reshape(-1)[even_sites(links)]
    return float((values**power * np.abs(parts) ** 2).sum())


@pytest.mark.first_quick
@pytest.mark.parametrize("flavours", [1, 0.5, 1.5])
@pytest.mark.parametrize("case", CASES)
def test_action_and_force_of_a_power_of_a_dense_matrix(case, flavours, best_device, rng):
    links = random_field(LATTICE.extents, "su3", rng)
    quarks = Quarks(links, best_device, case, flavours=flavours)
    phi = quarks.draw()
    value = power_action(links, phi, case, -flavours / 2)
    assert float(quarks.monomial.drawn) == pytest.approx(value, rel=1e-10)
    assert quarks.action() == pytest.approx(value, rel=1e-10)
    towards = direction(links, rng)
    expected = difference(lambda u: power_action(u, phi, case, -flavours / 2), links, towards)
    check_rate(quarks.kick()[1], towards, expected)


def test_poles_in_several_launches_exert_the_force_of_all(rng):
    """Forces with other numbers of poles agree as far as their accuracy goes."""
    links, found = random_field(LATTICE.extents, "su3", rng), []
    for tolerance in (1e-13, 3e-4):
        solver = QuarkSolver(inner="double", force_tolerance=tolerance)
        quarks = Quarks(links, CpuDevice(1), solver=solver)
        quarks.draw()
        poles = len(quarks.monomial.term.powers.force_function.shifts)
        found.append((poles, quarks.kick(1.0)[1]))
    (many, force), (few, rough) = found
    assert many > 12 > few
    assert 1e-9 < np.abs(force - rough).max() / np.abs(force).max() < 1e-2


@pytest.mark.longer
def test_weights_are_determinants(best_device, rng):
    """<exp(S(U) - S(U'))> over fields phi drawn for U is |det Mh(U') / det Mh(U)|."""
    links = random_field((2, 2, 2, 2), "su3", rng)
    moved = exponential(0.12 * direction(links, rng)) @ links
    quarks = Quarks(links, best_device, solver=QuarkSolver())
    logs = [np.linalg.slogdet(normal_matrix(u, "wilson"))[1] / 2 for u in (links, moved)]
    check_weights(quarks, moved, logs, 4 * 3 * 16 // 2, WEIGHTS)


@pytest.mark.slow
def test_the_distribution_of_pseudofermions(rng):
    """Their covariance is (Mh Mh^dagger)^(1/2), if the eigenvectors are rotated away."""
    links = random_field((2, 2, 2, 2), "su3", rng)
    quarks = Quarks(links, CpuDevice(1), solver=QuarkSolver())
    values, vectors = np.linalg.eigh(normal_matrix(links, "wilson"))
    parts = []
    for quarks.random.step in range(1, 201):
        phi = quarks.draw().reshape(-1)[even_sites(links)]
        parts.append(vectors.conj().T @ phi / values**0.25)
    squares = np.abs(parts) ** 2
    for half in (squares[:, : len(values) // 2], squares[:, len(values) // 2 :]):
        assert abs(half.mean() - 1) < 4 / np.sqrt(half.size)
    assert abs((squares**2).mean() - 2) < 4 * np.sqrt(20 / squares.size)


@pytest.mark.slow
@pytest.mark.parametrize("inner", ["double", "single"])
def test_slabs_give_the_same_bytes(inner, rng):
    links = random_field((4, 2, 4, 6), "su3", rng)
    solver = QuarkSolver(inner=inner, force_tolerance=1e-6)

    def calculate(devices):
        quarks = Quarks(links, devices, solver=solver)
        return [*quarks.short_trajectory(), str(quarks.monomial.term.powers.spectra[0])]

    check_divisions("cpu-16", [(6,), (2, 4), (2, 2, 2)], calculate)


@pytest.mark.longer
def test_trajectories_are_reversible_and_of_second_order(best_device, rng):
    """With the poles and the precision of a run."""
    links = exponential(0.3 * algebra(rng.normal(size=(4, 2, 4, 4, 4, 3, 3)) + 0j))
    quarks = Quarks(links, best_device, solver=QuarkSolver())
    check_trajectories(quarks, links, 8, 1e-10)


@pytest.mark.slow
def test_the_spectrum_is_measured_and_compared_with_the_range(rng):
    links = random_field(LATTICE.extents, "su3", rng)
    values = np.linalg.eigvalsh(normal_matrix(links, "wilson"))
    make = partial(Quarks, links, CpuDevice(1))
    quarks = make()
    quarks.draw()
    found = quarks.monomial.term.powers.spectra[0]
    assert found.smallest == pytest.approx(values[0], rel=0.02)
    assert found.largest == pytest.approx(values[-1], rel=0.02)
    count = quarks.monomial.iterations
    assert count > 0
    quarks.draw()
    assert quarks.monomial.iterations == count
    for ends in ((2 * values[0], 4.0), (0.01, 0.5 * values[-1])):
        quarks = make(ends=ends)
        with pytest.raises(
            GaugeError, match=r"function of rational is for .*: choose a range such"
        ):
            quarks.draw()
    # A range that the links of the beginning do not leave, but those of the end.
    lower = values[0] * 0.98
    quarks = make(ends=(lower, 4.0))
    quarks.draw()
    rough = random_field(LATTICE.extents, "su3", rng)
    while np.linalg.eigvalsh(normal_matrix(rough, "wilson"))[0] > 0.9 * lower:
        rough = random_field(LATTICE.extents, "su3", rng)
    quarks.trajectory(rough)
    with pytest.raises(GaugeError, match="The eigenvalues of Mh"):
        quarks.action()


def test_the_default_range_follows_from_the_norm_of_the_hopping_term(rng):
    """It is the largest on links of 1, and Mh = 1 - kappa^2 D_eo D_oe."""
    kappa, norms = 0.12, []
    cold = np.broadcast_to(np.eye(3), (2, 2, 2, 2, 4, 3, 3)).astype(complex)
    for links in (cold, random_field((2, 2, 2, 2), "su3", rng)):
        is_even = even_sites(links)
        hopping = (np.eye(len(is_even)) - dirac.dense(links, kappa, (1, 1, 1, 1))) / kappa
        there, back = hopping[np.ix_(is_even, ~is_even)], hopping[np.ix_(~is_even, is_even)]
        norms.append(np.linalg.norm(there, 2))
        lower, upper = default_ends(PlainWilson(field_of(links, CpuDevice(1)), kappa))
        values = np.linalg.svd(np.eye(len(there)) - kappa**2 * there @ back, compute_uv=False) ** 2
        assert lower < values[-1]
        assert values[0] < upper
    assert norms[1] < norms[0]
    assert upper == pytest.approx((1 + (kappa * norms[0]) ** 2) ** 2, rel=1e-12)


def test_solutions_that_are_not_found(rng):
    links = random_field(LATTICE.extents, "su3", rng)
    quarks = Quarks(links, CpuDevice(1), solver=QuarkSolver(iterations=3))
    with pytest.raises(GaugeError, match=r"were not found within 3 iterations: allow more"):
        quarks.draw()
    assert quarks.monomial.iterations == 3

"""Solutions for the forces of quarks."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.quarks.forces import normal
from gauge_mc.quarks.forces.normal import NormalConjugateGradients, QuarkSolver, QuarkSystem
from gauge_mc.quarks.operators.twisted_mass import TwistedMass
from gauge_mc.quarks.solvers import StagnationError
from tests.reference.dirac import random_spinor
from tests.reference.fields import random_field
from tests.reference.pseudofermions import Quark, even

LATTICE = Lattice(4, 2, 4, 6)
PHASES = (np.exp(0.3j), 1, np.exp(-0.7j), -1)
QUARK = Quark(0.13, PHASES, 0.2)


def system(links, device, **request):
    """The system of an operator with a twisted mass."""
    field = Field.from_slices(LATTICE, "su3", links, "double", device)
    operator = TwistedMass(field, QUARK.kappa, QUARK.mu, PHASES)
    return QuarkSystem(operator, QuarkSolver(**request))


def adjoint(links, psi):
    """Mh^dagger psi = gamma_5 Mh(-mu) gamma_5 psi."""
    five = np.array([1, 1, -1, -1])[:, None]
    return five * Quark(QUARK.kappa, PHASES, -QUARK.mu).reduced(links, five * psi)


def residuals(links, phi, one):
    """|phi - Mh Y| / |phi| and |Y - Mh^dagger X| / |Y|."""
    x, y = (even(psi.to_numpy()[0]) for psi in (one.x, one.y))
    first = phi - QUARK.reduced(links, y)
    second = y - even(adjoint(links, x))
    ratios = (first, phi), (second, y)
    return [np.linalg.norm(a) / np.linalg.norm(b) for a, b in ratios]


@pytest.mark.longer
@pytest.mark.parametrize("inner", ["half", "single", "double"])
@pytest.mark.parametrize("solver", ["cg", "bicgstab"])
def test_residuals_are_below_the_tolerance(solver, inner, rng, best_device):
    links = random_field(LATTICE.extents, "su3", rng)
    one = system(links, best_device, solver=solver, inner=inner)
    for tolerance in (1e-5, 1e-11):
        phi = even(random_spinor(LATTICE.extents, 3, rng))
        one.phi.restore(phi)
        assert 0 < one.solve(tolerance) < 200
        first, second = residuals(links, phi, one)
        assert first < tolerance * 1.01
        assert second < (1e-13 if solver == "cg" else tolerance * 1.01)
        half = one.solve_half(tolerance)
        assert residuals(links, phi, one)[0] < tolerance * 1.01
        assert half > 0


def test_odd_sites(rng, best_device):
    """M Y = phi on all sites, and M^dagger X = Y on the even and 0 on the odd ones."""
    links = random_field(LATTICE.extents, "su3", rng)
    phi = even(random_spinor(LATTICE.extents, 3, rng))
    one = system(links, best_device)
    one.phi.restore(phi)
    one.solve(1e-13)
    x, y = (psi.to_numpy()[0] for psi in (one.x, one.y))
    scale = np.abs(phi).max()
    assert np.abs(QUARK.apply(links, y) - phi).max() < 1e-12 * scale
    assert np.abs(one.operator.apply(x, dagger=True) - even(y)).max() < 1e-12 * scale


@pytest.mark.parametrize("solver", ["cg", "bicgstab"])
def test_new_links_are_seen(solver, rng, best_device):
    phi = even(random_spinor(LATTICE.extents, 3, rng))
    links = random_field(LATTICE.extents, "su3", rng)
    one = system(links, best_device, solver=solver)
    one.phi.restore(phi)
    one.solve(1e-10)
    other = random_field(LATTICE.extents, "su3", rng)
    field = one.operator.field
    field.copy(Field.from_slices(LATTICE, "su3", other, "double", best_device))
    field.exchange_halo()
    one.operator.refresh()
    one.solve(1e-10)
    assert residuals(other, phi, one)[0] < 1.01e-10
    # In memory that has been used, the iterations are those in new memory.
    fresh = system(other, best_device, solver=solver)
    fresh.phi.restore(phi)
    fresh.solve(1e-10)
    assert np.array_equal(fresh.x.to_numpy(), one.x.to_numpy())


@pytest.mark.parametrize("solver", ["cg", "bicgstab"])
def test_a_history_saves_iterations(solver, rng, best_device):
    """Solutions that depend on a time by a polynomial of the second order are extrapolated."""
    links = random_field(LATTICE.extents, "su3", rng)
    one = system(links, best_device, solver=solver, history=3)
    parts = [even(random_spinor(LATTICE.extents, 3, rng)) for _ in range(3)]
    counts = []
    for t in (0.0, 0.1, 0.2, 0.3, 0.4):
        one.phi.restore(sum(t**n * part for n, part in enumerate(parts)))
        counts.append(one.solve(1e-8, extrapolated=True))
    assert counts[1] <= counts[0]
    assert counts[3] < 5
    assert counts[4] < 5
    assert one.solve(1e-8) >= counts[0] - 2
    # Solutions that are the same do not make the start worse.
    assert [one.solve(1e-8, extrapolated=True) for _ in range(4)] == [0] * 4
    one.forget()
    assert one.solve(1e-8, extrapolated=True) >= counts[0] - 2
    # Nor does a solution that is 0.
    phi = one.phi.to_numpy()[0]
    for source in (0 * phi, 0 * phi, phi):
        one.phi.restore(source)
        one.solve(1e-8, extrapolated=True)
    assert residuals(links, phi, one)[0] < 1.01e-8


def test_two_solves_that_stagnate_give_way_to_conjugate_gradients(rng, best_device, monkeypatch):
    links = random_field(LATTICE.extents, "su3", rng)
    one = system(links, best_device, solver="bicgstab")
    phi = even(random_spinor(LATTICE.extents, 3, rng))
    one.phi.restore(phi)

    def fail(*_, **__):
        raise StagnationError

    usual = one._solve_normal(1e-10, extrapolated=False)
    first, second = one._two_systems()
    monkeypatch.setattr(second, "solve", fail)
    assert one.solve(1e-10) == first.iterations + usual
    assert first.iterations > 0
    assert residuals(links, phi, one)[0] < 1.01e-10
    monkeypatch.setattr(first, "solve", fail)
    one.solve_half(1e-9)
    assert residuals(links, phi, one)[0] < 1.01e-9


def test_what_is_refused(rng, best_device, monkeypatch):
    for values, message in (
        ({"solver": "no"}, "no"),
        ({"history": 13}, "The history is 13"),
        ({"force_tolerance": 0.0}, "The tolerance is 0"),
        ({"iterations": 0}, "The number of iterations is 0"),
    ):
        with pytest.raises(UsageError, match=message):
            QuarkSolver(**values)
    links = random_field(LATTICE.extents, "su3", rng)
    one = system(links, best_device, iterations=3)
    phi = even(random_spinor(LATTICE.extents, 3, rng))
    one.phi.restore(phi)
    with pytest.raises(GaugeError, match="after 3 iterations"):
        one.solve(1e-10)
    one.phi.restore(phi * np.nan)
    with pytest.raises(GaugeError, match="not a number"):
        one.solve(1e-10)
    usual = system(links, best_device)
    usual.phi.restore(phi)
    monkeypatch.setattr(normal.RepeatedSystem, "_improve", lambda *_: raises())
    with pytest.raises(GaugeError, match="choose a larger tolerance"):
        usual.solve(1e-10)


def raises():
    """Stagnate."""
    raise StagnationError


@pytest.mark.longer
def test_residuals_of_light_quarks_may_rise_for_a_while(rng, best_device, monkeypatch):
    """At the critical kappa the residual does not fall in every iteration."""
    lattice = Lattice(4, 4, 4, 4)
    links = random_field(lattice.extents, "su3", rng)
    field = Field.from_slices(lattice, "su3", links, "double", best_device)
    operator = TwistedMass(field, 0.25, 1e-3)
    phi = even(random_spinor(lattice.extents, 3, rng))
    for plateau, works in ((NormalConjugateGradients.plateau, True), (2, False)):
        monkeypatch.setattr(NormalConjugateGradients, "plateau", plateau)
        one = QuarkSystem(operator, QuarkSolver())
        one.phi.restore(phi)
        if works:
            assert 100 < one.solve(1e-9) < 2000
        else:
            with pytest.raises(GaugeError, match="choose a larger tolerance"):
                one.solve(1e-9)

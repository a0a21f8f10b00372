"""Solutions for the forces of quarks."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.dynamical.normal_systems import QuarkSolver, QuarkSystem
from gauge_mc.extensions.quarks.operators import TwistedMass
from gauge_mc.extensions.quarks.solvers.krylov import NormalGradients, RepeatedSystem
from gauge_mc.fields.field import Field
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference.dirac import random_spinor
from tests.extensions.quarks.reference.pseudofermions import Quark, even
from tests.reference.fields import random_field

LATTICE = Lattice(4, 2, 4, 6)
PHASES = (np.exp(0.3j), 1, np.exp(-0.7j), -1)
QUARK = Quark(0.13, PHASES, 0.2)


def system(links, device, **request):
    operator = TwistedMass(field_of(links, device), QUARK.kappa, QUARK.mu, PHASES)
    return operator, QuarkSystem(operator, QuarkSolver(**request))


def solve(one, tolerance, half=False):
    found = one.solve(tolerance, np.ones(1, bool), both=not half)
    found.check()
    return int(found.iterations[0])


def adjoint(links, psi):
    """Mh^dagger psi = gamma_5 Mh(-mu) gamma_5 psi."""
    five = np.array([1, 1, -1, -1])[:, None]
    return five * Quark(QUARK.kappa, PHASES, -QUARK.mu).reduced(links, five * psi)


def residuals(links, phi, one):
    """|phi - Mh Y| / |phi| and |Y - Mh^dagger X| / |Y|."""
    x, y = (even(psi.to_numpy()[0]) for psi in (one.x, one.y))
    first, second = phi - QUARK.reduced(links, y), y - even(adjoint(links, x))
    return [np.linalg.norm(a) / np.linalg.norm(b) for a, b in ((first, phi), (second, y))]


@pytest.mark.longer
@pytest.mark.parametrize("inner", ["half", "single", "double"])
@pytest.mark.parametrize("solver", ["cg", "bicgstab"])
def test_residuals_are_below_the_tolerance(solver, inner, rng, best_device):
    links = random_field(LATTICE.extents, "su3", rng)
    _, one = system(links, best_device, solver=solver, inner=inner)
    for tolerance in (1e-5, 1e-11):
        phi = even(random_spinor(LATTICE.extents, 3, rng))
        one.phi.restore(phi)
        assert 0 < solve(one, tolerance) < 200
        first, second = residuals(links, phi, one)
        assert first < tolerance * 1.01
        assert second < (1e-13 if solver == "cg" else tolerance * 1.01)
        half = solve(one, tolerance, half=True)
        assert residuals(links, phi, one)[0] < tolerance * 1.01
        assert half > 0


def test_odd_sites(rng, best_device):
    """M Y = phi on all sites, and M^dagger X = Y on the even and 0 on the odd ones."""
    links = random_field(LATTICE.extents, "su3", rng)
    phi = even(random_spinor(LATTICE.extents, 3, rng))
    operator, one = system(links, best_device)
    one.phi.restore(phi)
    solve(one, 1e-13)
    x, y = (psi.to_numpy()[0] for psi in (one.x, one.y))
    scale = np.abs(phi).max()
    assert np.abs(QUARK.apply(links, y) - phi).max() < 1e-12 * scale
    assert np.abs(operator.apply(x, dagger=True) - even(y)).max() < 1e-12 * scale


@pytest.mark.parametrize("solver", ["cg", "bicgstab"])
def test_a_history_saves_iterations(solver, rng, best_device):
    """Solutions that depend on a time by a polynomial of the second order are extrapolated."""
    links = random_field(LATTICE.extents, "su3", rng)
    _, one = system(links, best_device, solver=solver, history=3)
    parts = [even(random_spinor(LATTICE.extents, 3, rng)) for _ in range(3)]
    counts = []
    for t in (0.0, 0.1, 0.2, 0.3, 0.4):
        one.phi.restore(sum(t**n * part for n, part in enumerate(parts)))
        counts.append(solve(one, 1e-8))
    assert counts[1] <= counts[0]
    assert counts[3] < 5
    assert counts[4] < 5
    # Solutions that are the same do not make the start worse.
    assert [solve(one, 1e-8) for _ in range(4)] == [0] * 4
    one.forget()
    assert solve(one, 1e-8) >= counts[0] - 2
    # Nor does a solution that is 0.
    phi = one.phi.to_numpy()[0]
    for source in (0 * phi, 0 * phi, phi):
        one.phi.restore(source)
        solve(one, 1e-8)
    assert residuals(links, phi, one)[0] < 1.01e-8


def test_what_is_refused(rng, best_device, monkeypatch):
    links = random_field(LATTICE.extents, "su3", rng)
    _, one = system(links, best_device, iterations=3)
    phi = even(random_spinor(LATTICE.extents, 3, rng))
    one.phi.restore(phi)
    with pytest.raises(GaugeError, match="after 3 iterations"):
        solve(one, 1e-10)
    one.phi.restore(phi * np.nan)
    with pytest.raises(GaugeError, match="not a number"):
        solve(one, 1e-10)
    _, usual = system(links, best_device)
    usual.phi.restore(phi)
    monkeypatch.setattr(RepeatedSystem, "solve", lambda _, __, wanted, *___: wanted)
    with pytest.raises(GaugeError, match="choose a larger tolerance"):
        solve(usual, 1e-10)


@pytest.mark.longer
def test_residuals_of_light_quarks_may_rise_for_a_while(rng, best_device, monkeypatch):
    """At the critical kappa the residual does not fall in every iteration."""
    lattice = Lattice(4, 4, 4, 4)
    links = random_field(lattice.extents, "su3", rng)
    operator = TwistedMass(field_of(links, best_device), 0.25, 1e-3)
    phi = even(random_spinor(lattice.extents, 3, rng))
    for plateau, works in ((NormalGradients.plateau, True), (2, False)):
        monkeypatch.setattr(NormalGradients, "plateau", plateau)
        one = QuarkSystem(operator, QuarkSolver())
        one.phi.restore(phi)
        if works:
            assert 100 < solve(one, 1e-9) < 2000
        else:
            with pytest.raises(GaugeError, match="choose a larger tolerance"):
                solve(one, 1e-9)


@pytest.mark.parametrize("solver", ["cg", "bicgstab"])
def test_new_links_are_seen(solver, rng, best_device):
    phi = even(random_spinor(LATTICE.extents, 3, rng))
    links = random_field(LATTICE.extents, "su3", rng)
    operator, one = system(links, best_device, solver=solver)
    one.phi.restore(phi)
    solve(one, 1e-10)
    other = random_field(LATTICE.extents, "su3", rng)
    field = operator.field
    field.copy(Field.from_slices(LATTICE, "su3", other, "double", best_device))
    field.exchange_halo()
    operator.refresh()
    solve(one, 1e-10)
    assert residuals(other, phi, one)[0] < 1.01e-10
    # In memory that has been used, the iterations are those in new memory.
    _, fresh = system(other, best_device, solver=solver)
    fresh.phi.restore(phi)
    solve(fresh, 1e-10)
    assert np.array_equal(fresh.x.to_numpy(), one.x.to_numpy())

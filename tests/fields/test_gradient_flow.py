"""The gradient flow, and energy and charge along it, against NumPy."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.gradient_flow import (
    IMPROVED,
    GradientFlow,
    field_strength,
    improved_charge,
    largest_step,
)
from gauge_mc.fields.random_field import Random
from gauge_mc.flows import FLOWS
from gauge_mc.updates.heatbath import heatbath
from tests.reference import flow as reference
from tests.reference.fields import gauge_transform, random_field, random_su

LATTICE = Lattice(8, 4, 6, 4)
TOLERANCE = {"single": 3e-6, "double": 1e-13}
EPSILON = 0.05
SLOW = pytest.mark.slow
PLANES = reference.PLANES


@cache
def random_links(group):
    return random_field(LATTICE.extents, group, np.random.default_rng(5))


@cache
def one_step(group, kind, size):
    return reference.rk3_step(random_links(group), size, kind)


def plaquette_trace(links, mu, nu):
    return np.trace(reference.plaquette_matrix(links, mu, nu), axis1=-2, axis2=-1).real


def on(device, links, group, precision="double", lattice=LATTICE):
    return Field.from_slices(lattice, group, links, precision, device)


def flowed(field, kind, to, step=0.02, tolerance=None):
    flow = GradientFlow(FLOWS[kind], field, adaptive=tolerance is not None)
    flow.start(field)
    flow.advance(to, step, tolerance)
    assert flow.t == to
    return flow


def bias_of_norms(links):
    """The mean excess of the squared norms of rows above 1, of which rounding errors are 5e-8."""
    return abs((np.abs(links) ** 2).sum(axis=-1).mean() - 1)


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("group", "precision", "kind"),
    [
        ("su2", "single", "wilson"),
        *(("su3", "double", kind) for kind in FLOWS),
        *(
            pytest.param(group, precision, kind, marks=SLOW)
            for group in ("su2", "su3")
            for precision in ("single", "double")
            for kind in FLOWS
            if (group, precision) != ("su3", "double")
            and (group, precision, kind) != ("su2", "single", "wilson")
        ),
    ],
)
def test_one_step(device, group, precision, kind):
    found = flowed(on(device, random_links(group), group, precision), kind, EPSILON, EPSILON)
    difference = np.abs(found.field.to_numpy() - one_step(group, kind, EPSILON)).max()
    assert difference < TOLERANCE[precision]


@pytest.mark.parametrize("kind", FLOWS)
def test_a_wrong_halo_depth_is_a_sentence(fast_device, kind):
    """Of flows of others, which these are as their classes are declared here."""
    field = on(fast_device, random_links("su3"), "su3")
    right = type("Right", (type(FLOWS[kind]),), {"__module__": __name__})()
    GradientFlow(right, field)
    depth = right.halo_depth - 1
    wrong = type("Wrong", (type(right),), {"halo_depth": depth, "__module__": __name__})()
    for _ in range(2):  # nothing but what has passed is remembered
        with pytest.raises(GaugeError, match=f"{__file__}.* on links more than {depth} time sl"):
            GradientFlow(wrong, field)


@pytest.mark.parametrize("group", ["su2", pytest.param("su3", marks=SLOW)])
def test_an_anisotropic_step(device, group, precision):
    xi = 1.75
    links = random_links(group)
    expected = reference.rk3_step(links, 0.02, "wilson", xi)
    field = on(device, links, group, precision)
    flow = GradientFlow(FLOWS["wilson"].with_anisotropy(xi), field)
    flow.start(field)
    flow.step(0.02)
    assert np.abs(flow.field.to_numpy() - expected).max() < TOLERANCE[precision]
    found = field_strength(flow.field, anisotropy=xi)
    limit = 1e-5 if precision == "single" else 1e-12
    clover = reference.energy_clover(expected, xi=xi).sum(axis=(1, 2, 3))
    np.testing.assert_allclose(found.clover, clover, rtol=limit)
    planes = {p: len(expected[0, 0, 0, 0, 0]) - plaquette_trace(expected, *p) for p in PLANES}
    density = sum((xi**2 if nu == 3 else 1) * 2 * one for (_, nu), one in planes.items())
    np.testing.assert_allclose(found.plaquette, density.sum(axis=(1, 2, 3)), rtol=limit)


def test_anisotropic_flows_have_the_same_limit():
    """Free fields: a mode of wave number k in any direction decays with its own rate.

    In units of a_s the decay along t is xi^2 times faster, and the energy of a plane wave of links
    in a spatial direction is that of a continuum with spacings a_s and a_t.
    """
    xi, size, eps = 2.0, 1e-4, 0.02
    lattice = Lattice(4, 4, 4, 8)
    angle = np.zeros((*lattice.extents[::-1], 4))
    angle[..., 0] = size * np.cos(2 * np.pi * np.arange(8) / 8)[:, None, None, None]
    links = np.zeros((*angle.shape, 2, 2), complex)
    links[..., 0, 0], links[..., 1, 1] = np.exp(1j * angle), np.exp(-1j * angle)
    field = Field.from_slices(lattice, "su2", links, "double")
    flow = GradientFlow(FLOWS["wilson"].with_anisotropy(xi), field)
    flow.start(field)
    flow.step(eps)
    ratio = np.angle(flow.field.to_numpy()[0, 0, 0, 0, 0, 0, 0]) / size
    rate = xi**2 * 4 * np.sin(np.pi / 8) ** 2
    assert abs(ratio - np.exp(-eps * rate)) < 1e-6


def test_only_the_wilson_flow_is_anisotropic():
    assert FLOWS["symanzik"].with_anisotropy(1.0) is FLOWS["symanzik"]
    with pytest.raises(UsageError, match="The symanzik flow has no anisotropic form"):
        FLOWS["symanzik"].with_anisotropy(2.0)
    with pytest.raises(UsageError, match=r"--anisotropy is 0; give a number from 0\.01 to 100"):
        FLOWS["wilson"].with_anisotropy(0.0)


@pytest.mark.first_quick
@pytest.mark.parametrize("kind", FLOWS)
def test_the_largest_step_is_stable(best_device, kind):
    """The fastest modes decay, whereas a step that is larger by 10 % lets them grow."""
    lattice = Lattice(4, 4, 4, 4)
    n = np.indices(lattice.extents[::-1]).sum(axis=0)
    phase = 1e-3 * (-1.0) ** n[..., None] * np.array([1, 1, -1, -1])
    links = np.zeros((*phase.shape, 2, 2), complex)
    links[..., 0, 0], links[..., 1, 1] = np.exp(1j * phase), np.exp(-1j * phase)
    field, step = on(best_device, links, "su2", lattice=lattice), largest_step(FLOWS[kind])
    energies = []
    for size in (step, 1.1 * step):
        flow = GradientFlow(FLOWS[kind], field)
        flow.start(field)
        for _ in range(5):
            flow.step(size)
        energies.append(field_strength(flow.field).plaquette.sum())
    before = field_strength(field).plaquette.sum()
    assert energies[0] < before < energies[1]


@pytest.mark.longer
@pytest.mark.parametrize("kind", FLOWS)
def test_several_steps(best_device, group, kind):
    found = flowed(on(best_device, random_links(group), group), kind, 0.1, 0.034)
    expected = reference.flow(random_links(group), 0.1, 3, kind)
    assert np.abs(found.field.to_numpy() - expected).max() < 1e-12


def test_a_flow_can_be_used_again_and_leaves_the_field(best_device, group):
    field = on(best_device, random_links(group), group)
    before = field.to_numpy()
    flow = flowed(field, "wilson", 0.1)
    first = flow.field.to_numpy()
    flow.start(field)
    assert flow.t == 0
    flow.advance(0.1, 0.02)
    assert np.array_equal(flow.field.to_numpy(), first)
    assert np.array_equal(field.to_numpy(), before)


@pytest.mark.longer
@pytest.mark.parametrize("kind", ["wilson", pytest.param("zeuthen", marks=SLOW)])
def test_adaptive_steps(fast_device, group, kind):
    lattice = Lattice(4, 4, 4, 4)
    links = random_field(lattice.extents, group, np.random.default_rng(5))
    field = on(fast_device, links, group, lattice=lattice)
    exact, _ = reference.adaptive_flow(links, 0.5, 1e-6, kind, 0.01)
    for tolerance in (1e-3, 1e-5):
        found = flowed(field, kind, 0.5, 0.05, tolerance)
        distance = reference.distance(found.field.to_numpy(), exact)
        assert 1e-3 * tolerance < distance < 2 * tolerance


def test_the_error_estimate_is_that_of_the_embedded_step(best_device, group):
    field = on(best_device, random_links(group), group)
    flow = GradientFlow(FLOWS["wilson"], field, adaptive=True)
    third, second = reference.embedded_step(random_links(group), EPSILON, "wilson")
    error = reference.distance(third, second)
    # A step is repeated if its error is above the tolerance by the smallest amount, and only then.
    for factor, steps in ((1 + 1e-6, 1), (1 - 1e-6, 2)):
        flow.start(field)
        taken = []
        step = flow.step
        flow.step = lambda size, step=step, taken=taken: (taken.append(size), step(size))
        flow.advance(EPSILON, EPSILON, factor * error)
        del flow.step
        assert len(taken) > steps - 1
        assert (len(taken) == 1) == (steps == 1)
        assert taken[0] == EPSILON


def test_a_tolerance_that_single_precision_cannot_reach_is_refused(best_device):
    field = on(best_device, random_links("su2"), "su2", "single")
    with pytest.raises(GaugeError, match=r"does not reach the tolerance 1e-11.*double precision"):
        flowed(field, "wilson", 0.1, 0.02, 1e-11)


@pytest.mark.longer
def test_the_error_of_a_step_is_of_third_order(best_device, group):
    def energy(step):
        return field_strength(flowed(field, "wilson", 0.48, step).field).clover.sum()

    field = on(best_device, random_links(group), group)
    field = flowed(field, "wilson", 0.2, 0.01).field
    exact = energy(0.0025)
    errors = [abs(energy(step) - exact) for step in (0.04, 0.02, 0.01)]
    for coarse, fine in pairwise(errors):
        assert 7 < coarse / fine < 9


def by_slice(density):
    return density.sum(axis=(1, 2, 3))


def test_energy_and_charge(device, group, precision):
    links = random_links(group)
    field = on(device, links, group, precision)
    found = field_strength(field)
    tolerance = 1e-4 if precision == "single" else 1e-11
    for mine, expected in (
        (found.plaquette, reference.energy_plaquette(links)),
        (found.clover, reference.energy_clover(links)),
        (found.charge, reference.charge(links)),
    ):
        assert mine.shape == (LATTICE.t,)
        assert np.abs(mine - by_slice(expected)).max() < tolerance
    least = [plaquette_trace(links, *plane).min(axis=(1, 2, 3)) for plane in PLANES]
    assert found.largest == pytest.approx(links.shape[-1] - np.min(least, axis=0), rel=1e-6)
    spare = Field.empty(LATTICE, group, precision, field.devices)
    improved = improved_charge(field, spare, found.charge)
    expected = sum(
        weight * reference.charge(links, lambda u, mu, nu, m=m: strength(u, mu, nu, m))
        for m, weight in IMPROVED.items()
    )
    assert np.abs(improved - by_slice(expected)).max() < tolerance


def strength(links, mu, nu, m):
    return reference.field_strength(links, mu, nu, m)


@pytest.mark.longer
@pytest.mark.parametrize("kind", FLOWS)
def test_gauge_transformations_change_nothing(best_device, group, kind, rng):
    links = random_links(group)
    gauge = random_su(links.shape[-1], links.shape[:4], rng)
    transformed = gauge_transform(links, gauge)
    values = []
    for one in (links, transformed):
        flow = flowed(on(best_device, one, group), kind, 0.2)
        found = field_strength(flow.field)
        improved = improved_charge(flow.field, flow.spare, found.charge)
        values.append((found.plaquette, found.clover, found.charge, improved))
    assert np.abs(np.array(values[0]) - np.array(values[1])).max() < 1e-9


@pytest.mark.longer
def test_an_instanton_has_the_charge_one(best_device, group):
    lattice, rho = Lattice(8, 8, 8, 8), 2.0
    links = reference.instanton(lattice.extents, rho, group)
    flow = flowed(on(best_device, links, group, lattice=lattice), "wilson", 0.2)
    found = field_strength(flow.field)
    assert found.charge.sum() == pytest.approx(1 - 4 / (5 * rho**2), abs=0.03)
    improved = improved_charge(flow.field, flow.spare, found.charge).sum()
    assert improved == pytest.approx(1, abs=0.04)


@pytest.mark.longer
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("su2", "wilson"),
        *(pytest.param("su2", kind, marks=SLOW) for kind in FLOWS if kind != "wilson"),
        *(pytest.param("su3", kind, marks=SLOW) for kind in FLOWS),
    ],
)
def test_single_precision_is_good_for_five_digits(fast_device, name, kind):
    lattice = Lattice(4, 6, 8, 8)
    field = Field.hot(lattice, name, "double", fast_device)
    beta = {"su2": 2.5, "su3": 6.0}[name]
    heatbath(field, beta, Random.for_field(field), sweeps=20)
    rough = Field.from_slices(lattice, name, field.slices(), "single", fast_device)
    flows = [flowed(one, kind, 2.0) for one in (field, rough)]
    double, single = (field_strength(flow.field) for flow in flows)
    # t0 changes by less than the energy, relatively: d ln(t^2 E) / d ln t is about 1 there.
    assert single.clover.sum() == pytest.approx(double.clover.sum(), rel=5e-6)
    # Rounding errors of a plaquette are about 1e-7, and average out if they have no sign.
    assert abs((single.plaquette - double.plaquette).sum()) < 3e-7 * lattice.sites
    assert abs((single.clover - double.clover).sum()) < 3e-7 * lattice.sites
    assert bias_of_norms(flows[1].field.to_numpy()) < 5e-9


@pytest.mark.slow
def test_sun_in_single_precision_has_no_bias(best_device):
    links = random_field(LATTICE.extents, "su4", np.random.default_rng(5))
    flow = flowed(on(best_device, links, "su4", "single"), "wilson", EPSILON, EPSILON)
    assert bias_of_norms(flow.field.to_numpy()) < 5e-9


@pytest.mark.longer
@pytest.mark.parametrize(("kind", "c"), [("wilson", 0), ("symanzik", 1 / 12), ("zeuthen", 1 / 12)])
def test_weak_fields_decay_as_in_the_free_theory(fast_device, group, kind, c):
    """A transverse wave A_x ~ cos(p y) decays with the rate p^2 + c p^4, where p is 2 sin(p / 2).

    The correction of the Zeuthen flow acts along x, where the wave is constant.
    """
    lattice, amplitude = Lattice(4, 8, 4, 4), 1e-5
    sine2 = 4 * np.sin(np.pi / lattice.y) ** 2
    n = {"su2": 2, "su3": 3}[group]
    wave = amplitude * np.cos(2 * np.pi * np.arange(lattice.y) / lattice.y)
    links = np.zeros((4, 4, 8, 4, 4, n, n), complex) + np.eye(n)
    links[..., 0, 0, 0] = np.exp(1j * wave)[None, None, :, None]
    links[..., 0, 1, 1] = np.exp(-1j * wave)[None, None, :, None]
    flow = flowed(on(fast_device, links, group, lattice=lattice), kind, 0.0)
    before = field_strength(flow.field)
    t = 1.5
    flow.advance(t, 0.01)
    after = field_strength(flow.field)
    decay = np.exp(-2 * t * (sine2 + c * sine2**2))
    for name in ("plaquette", "clover"):
        ratio = getattr(after, name).sum() / getattr(before, name).sum()
        assert ratio == pytest.approx(decay, rel=2e-4)


def test_the_largest_step_keeps_the_group(best_device, group, precision):
    found = flowed(on(best_device, random_links(group), group, precision), "wilson", 0.15, 0.15)
    links = found.field.to_numpy()
    unit = links @ links.conj().swapaxes(-1, -2)
    limit = 2e-6 if precision == "single" else 1e-14
    assert np.abs(unit - np.eye(unit.shape[-1])).max() < limit
    assert np.abs(links - one_step(group, "wilson", 0.15)).max() < TOLERANCE[precision]

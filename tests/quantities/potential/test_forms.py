"""Forms of V(R) with the scales that follow from them, and static gluons on the lattice."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from gauge_mc.analysis.timeseries import Replicas
from gauge_mc.errors import UsageError
from gauge_mc.quantities.potential import forms
from gauge_mc.quantities.potential.forms import (
    FORCES,
    FORMS,
    PotentialData,
    StaticGluons,
    average_forms,
    propagator,
)
from gauge_mc.temporal_links import TEMPORAL_LINKS
from tests.reference.smearing import hyp, project_unitary

R = np.arange(2.0, 12.0)
COULOMB = np.array([1 / StaticGluons().potential_distance("100", int(n)) for n in R])
A, SIGMA, B = 0.5, 0.05, -0.3

TERMS = {
    "A + σR + B[1/R]": (B,),
    "A + σR + B/R + C([1/R] − 1/R)": (B, 2 * B),
    "A + σR + B[1/R] + C/R³": (B, 0.1),
    "A + σR − π/12 [1/R]": (),
}
"""Coefficients of the other terms of each form."""


FURTHER = [(B, 0.0), (B, 0.0), (B, 0.1), (-math.pi / 12, 0.0)]
"""Coefficients of 1/r and 1/r^3 in the continuum, of each form."""

EVERY = pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))


def smooth(form, r):
    """V(r) of a form in the continuum, written out."""
    b, c = FURTHER[FORMS.index(form)]
    return A + SIGMA * r + b / r + c / r**3


def crossing(form, force):
    """The distance at which r^2 F(r) has a value, by finite differences of V(r)."""
    return brentq(
        lambda r: r * r * (smooth(form, r + 1e-5) - smooth(form, r - 1e-5)) / 2e-5 - force, 1, 12
    )


def data_of(form, noise=1e-6, points=R.size, samples=40, seed=2):
    mean = form.design(R, COULOMB) @ [A, SIGMA, *TERMS[form.name]] + form.fixed * COULOMB
    unit = np.random.default_rng(seed).normal(size=(samples, R.size)).cumsum(axis=1)
    series = (mean + noise * (unit - unit.mean(axis=0)))[:, :points]
    parts = R[:points], COULOMB[:points], series, np.zeros(points)
    return PotentialData(Replicas.alone(samples), *parts)


@EVERY
def test_parameters_and_scales_of_each_form_are_exact(form):
    average = average_forms(data_of(form))
    best = next(fit for fit in average.fits if fit.form == form.name)
    assert best.parameters == pytest.approx([A, SIGMA, *TERMS[form.name]], abs=1e-3)
    assert average.scales["sigma"].value.value == pytest.approx(SIGMA, abs=2e-5)
    shown = {name: crossing(form, force) for name, force in FORCES.items()}
    inside = {name: r for name, r in shown.items() if r > R[0]}
    assert {"r0", "r1"} <= inside.keys() == average.scales.keys() - {"sigma"}
    for name, r in inside.items():
        assert average.scales[name].value.value == pytest.approx(r, abs=1e-3)
        assert average.scales[name].error < 1e-3
        assert average.histories[name].mean() == pytest.approx(r, abs=1e-3)
    r = np.array([2.5, 6.0])
    np.testing.assert_allclose(best.curve(r)[0], smooth(form, r), atol=1e-4)
    lattice = data_of(form).points.mean - best.artefacts(R, COULOMB)
    np.testing.assert_allclose(lattice, smooth(form, R), atol=1e-4)


@EVERY
def test_histories_are_derivatives(form, monkeypatch):
    """With a single form and window, scales move with V(R) as histories say, but for growth."""
    monkeypatch.setattr(forms, "FORMS", (form,))
    monkeypatch.setattr(forms, "LEAST_FREEDOM", R.size - 2 - len(form.slopes))
    data = data_of(form, 1e-3)
    average = average_forms(data)
    assert average.scales.keys() >= {"sigma", "r0", "r1"}
    for name, scale in average.scales.items():
        slopes = []
        for unit in 1e-5 * np.eye(R.size):
            ends = [
                average_forms(
                    PotentialData(
                        data.replicas, R, COULOMB, data.series + sign * unit, np.zeros(10)
                    )
                )
                for sign in (1, -1)
            ]
            values = [end.scales[name].value.value for end in ends]
            slopes.append((values[0] - values[1]) / 2e-5)
        change = data.points.fit(form.design(R, COULOMB)).growth * (
            (data.series - data.series.mean(axis=0)) @ slopes
        )
        expected = scale.value.value + change
        np.testing.assert_allclose(average.histories[name], expected, atol=1e-4 * np.ptp(change))


def test_systematic_errors_of_points_are_those_of_scales(monkeypatch):
    """A common shift moves A alone, and one that rises with R is an error of sigma."""
    monkeypatch.setattr(forms, "FORMS", FORMS[:1])
    data = data_of(FORMS[0], 1e-5)
    for slope in (0.0, 1e-3):
        systematic = 0.01 + slope * R
        parts = data.replicas, R, COULOMB, data.series, systematic
        sigma = average_forms(PotentialData(*parts)).scales["sigma"]
        assert sigma.value.value == pytest.approx(SIGMA, abs=1e-4)
        assert sigma.systematic == pytest.approx(slope, rel=0.05, abs=2e-5)


def test_a_poor_fit_has_a_larger_error(monkeypatch):
    """The error of a wrong form is larger by the root of chi2 over its expectation."""
    monkeypatch.setattr(forms, "FORMS", FORMS[3:])
    monkeypatch.setattr(forms, "LEAST_FREEDOM", R.size - 2)
    data = data_of(FORMS[0], 1e-3)
    average = average_forms(data)
    (fit,), sigma = average.fits, average.scales["sigma"]
    assert fit.chi2 > 2 * fit.chi2_expected
    line = data.points.fit(FORMS[3].design(R, COULOMB))
    square = line.projection[1] @ data.points.sample @ line.projection[1]
    error = line.growth * math.sqrt(square * fit.chi2 / fit.chi2_expected)
    assert sigma.error == pytest.approx(error, rel=1e-3)


def test_bounds_restrict_all_windows():
    data = data_of(FORMS[0], 1e-3)
    ends = [(fit.r_min, fit.r_max) for fit in average_forms(data, 3.5, 9.0).fits]
    assert ends
    assert all(4 <= low < high <= 9 for low, high in ends)
    whole = [(fit.r_min, fit.r_max) for fit in average_forms(data).fits]
    assert max(high for _, high in whole) > 9
    with pytest.raises(UsageError, match="from R = 9 to inf: a fit needs 4; choose a wider window"):
        average_forms(data, 9.0)
    weights = [fit.weight for fit in average_forms(data).fits]
    assert weights == sorted(weights, reverse=True)
    assert 0 < sum(weights) <= 1 + 1e-12


def test_a_scale_beyond_all_windows_is_not_known():
    form = FORMS[0]
    average = average_forms(data_of(form, points=5))
    assert R[4] == 6 > crossing(form, FORCES["r1"])
    assert "r1" in average.scales
    short = average_forms(data_of(form, points=3))
    assert (short.scales, short.fits) == ({}, ())


WATSON = 0.2527310098586630
"""G(0), known in closed form (G. N. Watson 1939)."""

IWASAKI, LUSCHER_WEISZ = -0.331, -1 / 12
"""Coefficients of rectangles."""

PLAIN = StaticGluons()


def header(**more):
    return {"action": "wilson", "group": "su2", "beta": "2.4"} | more


def test_propagator_solves_the_lattice_laplace_equation():
    assert propagator(0, 0, 0) == pytest.approx(WATSON, rel=1e-9)
    assert propagator(0, 0, 0) - propagator(1, 0, 0) == pytest.approx(1 / 6, rel=1e-9)
    for x, y, z in ((1, 0, 0), (2, 1, 0), (3, 3, 3), (5, 0, 0)):
        around = [
            propagator(*(np.array([x, y, z]) + sign * step))
            for step in np.eye(3, dtype=int)
            for sign in (1, -1)
        ]
        assert 6 * propagator(x, y, z) == pytest.approx(sum(around), rel=1e-8)


def test_improved_distances_are_those_of_the_literature():
    # S. Necco and R. Sommer, hep-lat/0108008, use 1.358, 2.277, 3.312, 4.359 and 5.393.
    distances = [PLAIN.force_distance("100", steps) for steps in range(2, 7)]
    assert distances == pytest.approx([1.3576, 2.2773, 3.3116, 4.3592, 5.3927], abs=1e-4)


@pytest.mark.parametrize("rectangle", [0.0, LUSCHER_WEISZ, IWASAKI])
@pytest.mark.parametrize("alphas", [(), *(kind.alphas for kind in TEMPORAL_LINKS.values())])
def test_far_gluons_are_those_of_the_continuum(rectangle, alphas):
    gluons = StaticGluons(rectangle, alphas)
    for path, length in (("100", 1), ("110", math.sqrt(2)), ("210", math.sqrt(5))):
        assert gluons.potential_distance(path, 12) == pytest.approx(12 * length, rel=6e-3)
        middle = math.sqrt(12 * 11) * length
        assert gluons.force_distance(path, 12) == pytest.approx(middle, rel=1e-2)


def smeared_wave(alphas, k, size=1e-5):
    """Return how much HYP smearing reduces a wave of temporal links that is constant in time."""
    lattice = np.meshgrid(*map(np.arange, EXTENTS), indexing="ij")
    phase = size * np.cos(2 * math.pi * sum(n * x / 8 for n, x in zip(k, lattice[1:], strict=True)))
    links = np.zeros((*EXTENTS, 4, 2, 2), complex)
    links[..., :, :, :] = np.eye(2)
    links[..., 3, 0, 0], links[..., 3, 1, 1] = np.exp(1j * phase), np.exp(-1j * phase)
    smeared = hyp(links, alphas, project_unitary)
    change = np.angle(smeared[..., 3, 0, 0]) / size
    np.testing.assert_allclose(np.abs(smeared[..., :3, 0, 1]).max(), 0, atol=1e-12)
    return float((change * phase).sum() / (phase**2).sum() * size)


EXTENTS = 2, 8, 8, 8
"""Sites in time and space."""


def form_factor(alphas, k):
    """B at a wave vector, as the ratio of spectra of infinitesimally different propagators."""
    from gauge_mc.quantities.potential import forms

    spectrum = np.fft.fftn(forms._difference(0.0, alphas)).real
    index = tuple(forms.PERIOD // 8 * n for n in k)
    square = sum(4 * math.sin(math.pi * n / 8) ** 2 for n in k)
    return math.sqrt(1 + spectrum[index] * square)


@pytest.mark.parametrize("kind", TEMPORAL_LINKS)
@pytest.mark.parametrize("k", [(0, 0, 1), (0, 1, 1), (1, 2, 3), (0, 4, 0), (2, 1, 4)])
def test_form_factors_of_hyp_links_are_those_of_smeared_waves(kind, k):
    alphas = TEMPORAL_LINKS[kind].alphas
    assert abs(smeared_wave(alphas, k)) == pytest.approx(form_factor(alphas, k), rel=1e-6)


def summed(rectangle, alphas, separation, period=96):
    """Return G(0) - G(r) on a finite lattice by a plain sum over its wave vectors."""
    k = 2 * math.pi * np.arange(period) / period
    kx, ky, kz = np.meshgrid(k, k, k, indexing="ij", sparse=True)
    q = [2 - 2 * np.cos(component) for component in (kx, ky, kz)]
    below = sum(x - rectangle * x * x for x in q)
    below[0, 0, 0] = 1.0
    form = 1.0
    if alphas:
        a1, a2, a3 = alphas
        for i in range(3):
            j, n = (i + 1) % 3, (i + 2) % 3
            w = 1 + a2 * (1 + a3) - a2 / 4 * (1 + 2 * a3) * (q[j] + q[n])
            form = form - a1 / 6 * q[i] * (w + a2 * a3 / 4 * q[j] * q[n])
    x, y, z = separation
    terms = (1 - np.cos(x * kx + y * ky + z * kz)) * form**2 / below
    return terms.sum() / period**3


@pytest.mark.parametrize("rectangle", [0.0, LUSCHER_WEISZ, IWASAKI])
@pytest.mark.parametrize("alphas", [(), (0.75, 0.6, 0.3), (1.0, 1.0, 0.5)])
def test_propagators_equal_sums_over_a_finite_lattice(rectangle, alphas):
    """Their difference by the period is r^2 / (6 L^3), up to higher powers of r / L."""
    gluons = StaticGluons(rectangle, alphas)
    for path, steps in (("100", 1), ("100", 4), ("110", 2), ("210", 2)):
        separation = [steps * int(digit) for digit in path]
        finite = sum(n * n for n in separation) / (6 * 96**3)
        change = gluons.propagator("100", 0) - gluons.propagator(path, steps)
        expected = summed(rectangle, alphas, separation) + finite
        assert change == pytest.approx(expected, abs=2e-7)


def test_headers_state_the_action_and_the_lines():
    assert StaticGluons.of(header()) == PLAIN
    found = StaticGluons.of(header(action="iwasaki", temporal="HYP2, one HYP smearing"))
    assert found == StaticGluons(IWASAKI, (1.0, 1.0, 0.5))

"""Static gluons on the lattice and improved distances."""

import math

import numpy as np
import pytest

from gauge_mc.quantities.potential.forms import StaticGluons, propagator
from gauge_mc.temporal_links import TEMPORAL_LINKS
from tests.reference.smearing import hyp, project_unitary

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

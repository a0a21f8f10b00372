"""Pseudo-critical couplings of synthetic ensembles that are known exactly."""

import math
import warnings
from functools import cache

import numpy as np
import pytest

from gauge_mc.actions import Coupling
from gauge_mc.analysis.timeseries import centre_sector
from gauge_mc.domain.lattice import Lattice
from gauge_mc.groups import GROUPS
from gauge_mc.quantities.transition import results as infinite
from gauge_mc.quantities.transition.reweighting import (
    CurveZero,
    ThermalChain,
    ThermalVolume,
    bootstrapped,
    near_axis,
    peak_of,
    root_of,
    two_peaks,
)
from tests.quantities.transition.synthetic import (
    CENTRE,
    COLOURS,
    JUMP,
    LATTICES,
    MODULUS,
    SPREAD,
    deconfined,
    two_phase_chain,
    two_phase_volume,
)

BETAS = (5.68, 5.69, 5.70, 5.71)


@pytest.fixture(scope="module")
def volumes():
    rng = np.random.default_rng(11)
    return [two_phase_volume(rng, lattice, BETAS, 6000) for lattice in LATTICES]


@cache
def moments(lattice):
    """<|L|> and <|L|^2> of the confined and the deconfined phase, by integration over L."""
    spread = SPREAD / math.sqrt(lattice.slice_sites)
    re, im = np.meshgrid(*[np.linspace(-0.7, 0.7, 701)] * 2)
    modulus, found = np.hypot(re, im), []
    for centre in (0.0, MODULUS):
        density = np.exp(-((re - centre) ** 2 + im**2) / (2 * spread**2))
        found.append([(density * modulus**n).sum() / density.sum() for n in (1, 2)])
    return np.array(found)


def exact_susceptibility(beta, lattice):
    """V (<|L|^2> - <|L|>^2) of the model."""
    p = deconfined(beta, lattice)
    mean, square = np.array([1 - p, p]) @ moments(lattice)
    return lattice.slice_sites * (square - mean**2)


@pytest.mark.slow
def test_curves_are_those_of_the_model(volumes):
    for volume in volumes:
        curve = volume.susceptibility
        for beta in (5.685, 5.695, 5.705):
            at = int(np.argmin(np.abs(curve.beta - beta)))
            exact = exact_susceptibility(float(curve.beta[at]), volume.lattice)
            assert abs(curve.value[at] - exact) < 4.5 * curve.error[at]
        fine = np.linspace(5.67, 5.72, 501)
        exact_peak = fine[np.argmax([exact_susceptibility(b, volume.lattice) for b in fine])]
        found = bootstrapped(volume.peak[0])
        assert abs(found.value - exact_peak) < 4.5 * found.error + 1e-4


def test_equal_weights_and_the_jump_of_the_action(volumes):
    """For the largest lattice the phases are separate; L of the confined phase is random."""
    volume = volumes[-1]
    found = bootstrapped(volume.equal_weights)
    wide = SPREAD / math.sqrt(volume.space)
    beyond = math.erfc(MODULUS * math.sin(math.pi / 9) / wide / math.sqrt(2))
    p = (3 * (1 - beyond) - 1) / 2 * deconfined(CENTRE, volume.lattice)
    shift = (COLOURS / (COLOURS + 1) - p) / (3 / 16 * JUMP * volume.lattice.sites)
    assert abs(found.value - CENTRE - shift) < 4 * found.error + abs(shift)
    assert found.error < 0.002
    assert volume.phases is not None
    low, middle, high, depth = volume.phases
    assert low < middle < high < 1.5 * MODULUS
    assert depth < 0.3
    jump = bootstrapped(volume.jump)
    assert abs(jump.value - JUMP) < 4 * jump.error + 0.02 * JUMP


def test_the_jump_of_the_action_from_its_variance(volumes):
    """In a phase the variance is 0.3 per site, and the mixture adds p (1 - p) JUMP^2."""
    for volume in volumes:
        p = deconfined(float(volume.peak[0][0]), volume.lattice)
        exact = 0.3 / volume.lattice.sites + p * (1 - p) * JUMP**2
        found = bootstrapped(volume.variance)
        assert abs(found.value - exact) < 4.5 * found.error < 0.1 * exact
    line = infinite.jump_of_variances(volumes)
    jump = bootstrapped(2 * np.sqrt(line.parameters[:, 0]))
    assert abs(jump.value - JUMP) < 4 * jump.error < 0.05 * JUMP


def test_su2_has_no_jump(volumes):
    alike = [ThermalVolume(one.lattice, 2, one.chains, 5) for one in volumes]
    assert infinite.jump_of_variances(alike) is None


def test_beta_c_in_an_infinite_volume(volumes):
    lines = infinite.extrapolations(volumes)
    assert list(lines) == ["peak of χ", "equal weights"]
    for line in lines.values():
        found = bootstrapped(line.parameters[:, 0])
        assert abs(found.value - CENTRE) < 4 * found.error
        assert found.error < 0.004
        assert line.dof == 1
        assert 0.001 < line.p_value <= 1


def test_the_same_seed_gives_the_same_errors():
    def peak():
        return two_phase_volume(np.random.default_rng(1), LATTICES[0], BETAS, 500, 5).peak[0]

    np.testing.assert_array_equal(peak(), peak())


def test_a_volume_without_a_peak_is_not_extrapolated():
    rng = np.random.default_rng(2)
    below = two_phase_volume(rng, LATTICES[2], (5.66, 5.67), 800, 5)
    other = two_phase_volume(rng, LATTICES[1], BETAS, 800, 5)
    assert math.isnan(below.peak[0][0])
    assert infinite.line_of([1.0, 2.0], [below.peak[0], other.peak[0]]) is None
    assert infinite.exponent([below, other]) is None


def test_crossing_of_known_cumulants():
    """|L| is c sqrt(2) or 0 with probability p: U = 1 - 1 / (3 p), here with p that grows."""

    def volume(lattice, slope):
        rng = np.random.default_rng(int(slope))
        chains = []
        for beta in (1.96, 2.0, 2.04):
            p = 0.5 / (0.5 + 0.5 * math.exp(-slope * (beta - 2.01)))
            high = rng.random(4000) < p
            action = rng.normal(size=4000) * 30 - beta * 900 - np.where(high, slope, 0)
            chains.append(ThermalChain(beta, np.arange(4000), action, high.astype(complex)))
        return ThermalVolume(Lattice.parse(lattice), 2, chains, 60)

    small, large = volume("4x4x4x2", 20.0), volume("8x8x8x2", 60.0)
    found = bootstrapped(infinite.crossing(small, large).samples)
    assert abs(found.value - 2.01) < 4 * found.error
    assert 0 < found.error < 0.005


@pytest.mark.parametrize("omitted", [0, 3])
def test_a_line_through_points(omitted):
    rng = np.random.default_rng(3)
    x, error = np.array([0.1, 0.2, 0.5, 1.0]), np.array([0.1, 0.2, 0.1, 0.3])
    exact = 2.0 - 0.7 * x
    values = exact + error * rng.normal(size=(4001, 4))
    values[0] = exact
    values[1 : 1 + omitted] = np.nan
    line = infinite.line_of(x.tolist(), list(values.T))
    np.testing.assert_allclose(line.parameters[0], [2.0, -0.7, 0.0], atol=1e-12)
    assert line.systematic == 0
    np.testing.assert_allclose(line.errors, error, rtol=0.05)
    weights = np.linalg.inv((design := np.stack([np.ones(4), x], 1) / error[:, None]).T @ design)
    spread = np.nanstd(line.parameters[1:, :2], axis=0)
    np.testing.assert_allclose(spread, np.sqrt(np.diag(weights)), rtol=0.06)
    assert (line.chi2, line.p_value) == (pytest.approx(0, abs=1e-20), 1.0)


def scaling_line(rng, sizes, error, correction, slope=0.1):
    """Return the line through beta_c + slope x (1 + correction next) with errors, for SU(2)."""
    ratio = 1 / np.array(sizes, dtype=float)
    x, terms = ratio ** (1 / infinite.ISING_NU), ratio**infinite.ISING_OMEGA
    samples = 1.88 + slope * x * (1 + correction * terms) + error * rng.normal(size=(1, len(sizes)))
    samples = samples + np.vstack([0 * x, error * rng.normal(size=(200, len(sizes)))])
    return infinite.line_of(x.tolist(), list(samples.T), terms.tolist())


def test_the_error_of_an_extrapolation_is_that_of_a_fit_with_a_next_term():
    """It is that of generalised least squares where the next term is part of the covariance."""
    line = scaling_line(np.random.default_rng(4), (3, 4, 6, 8), 0.0005, 0.4)
    unit = line.slope * line.x * line.next
    inverse = np.linalg.inv(np.diag(line.errors**2) + np.outer(unit, unit))
    design = np.stack([np.ones(4), line.x], axis=1)
    covariance = np.linalg.inv(design.T @ inverse @ design)
    first = covariance @ design.T @ inverse @ line.values[0]
    np.testing.assert_allclose(line.parameters[0, :2], first, rtol=1e-8)
    rest = line.values[0] - design @ first
    assert line.chi2 == pytest.approx(rest @ inverse @ rest)
    weights = (covariance @ design.T @ inverse)[0]
    statistical = weights**2 @ line.errors**2
    assert line.systematic == pytest.approx(math.sqrt(covariance[0, 0] - statistical), rel=1e-6)


@pytest.mark.parametrize("sizes", [(4, 6), (4, 6, 8)])
@pytest.mark.parametrize("error", [0.002, 0.0005, 0.0001])
def test_errors_of_extrapolations_contain_the_form(sizes, error):
    """Without the next term 14, 10 % are within one and 28, 20 % within two of the last errors."""
    rng, pulls = np.random.default_rng(5), []
    for _ in range(300):
        line = scaling_line(rng, sizes, error, rng.normal(), rng.choice([-0.1, 0.1]))
        beta = bootstrapped(line.parameters[:, 0])
        pulls.append((beta.value - 1.88) / math.hypot(beta.error, line.systematic))
    assert np.mean(np.abs(pulls) < 1) > 0.55
    assert np.mean(np.abs(pulls) < 2) > 0.8


@pytest.mark.slow
def test_errors_of_a_first_order_transition_contain_the_form():
    """Statistical errors contain the truth in 75 and 97 % (peak), 43 and 82 % (weights)."""
    lattices = [LATTICES[0], LATTICES[2]]
    coupling = Coupling.of_metadata({"group": "su3", "beta": "5.7", "action": "wilson"})
    pulls = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        volumes = [two_phase_volume(rng, one, (*BETAS, 5.72), 4000) for one in lattices]
        found = infinite.transition(volumes, GROUPS["su3"], coupling, {}).critical
        errors = {one.method: math.hypot(one.beta.error, one.systematic) for one in found}
        assert [*errors.values()] == sorted(errors.values())
        deviations = {one.method: one.beta.value - CENTRE for one in found}
        pulls.append([deviations[one] / errors[one] for one in ("peak of χ", "equal weights")])
    assert np.mean(np.abs(pulls) < 1, axis=0).min() > 0.62
    assert np.mean(np.abs(pulls) < 2, axis=0).min() > 0.9


def test_the_exponent_of_known_peaks():
    class Peaks:
        def __init__(self, size):
            self.size, self.peak = size, (None, np.array([size**1.96, size**2.0, size**1.9]))

    found = infinite.exponent([Peaks(8.0), Peaks(12.0), Peaks(16.0)])
    assert found[0] == pytest.approx(1.96)


def test_shifts():
    def volume(text, colours):
        return ThermalVolume(Lattice.parse(text), colours, [])

    assert infinite.shift(volume("8x8x8x4", 3)) == pytest.approx(1 / 8)
    assert infinite.shift(volume("8x8x8x4", 2)) == pytest.approx(0.5 ** (1 / 0.629971))
    pair = volume("8x8x8x4", 2), volume("16x16x16x4", 2)
    w, n = 0.82968, 1 / 0.629971
    expected = (2**-w - 4**-w) / (4**n - 2**n)
    assert infinite.crossing_shift(*pair) == pytest.approx(expected)


def test_sectors_of_the_centre():
    phases = np.exp(2j * np.pi * np.array([0.0, 0.15, 0.19, 1 / 3, 0.5, 0.7, -0.05]))
    assert centre_sector(phases, 3).tolist() == [0, 0, 1, 1, 2, 2, 0]
    assert near_axis(phases, 3).tolist() == [True, False, False, True, False, True, True]
    assert centre_sector(np.array([0.1, -0.1 + 0j]), 2).tolist() == [0, 1]
    random = np.exp(2j * np.pi * np.random.default_rng(1).random(20000))
    assert near_axis(random, 3).mean() == pytest.approx(1 / 3, abs=0.015)
    assert near_axis(random, 4).mean() == pytest.approx(1 / 3, abs=0.015)


def test_peaks_roots_and_minima_of_curves():
    x = np.linspace(0, 1, 41)
    where, height = peak_of(x, 3 - (x - 0.4321) ** 2 + 0.1 * (x - 0.4321) ** 3)
    assert (where, height) == (pytest.approx(0.4321, abs=1e-9), pytest.approx(3.0))
    assert math.isnan(peak_of(x, x)[0])
    assert root_of(x, (x - 0.2) * (x - 0.7), 0.9) == pytest.approx(0.7, abs=1e-3)
    assert root_of(x, (x - 0.2) * (x - 0.7), 0.0) == pytest.approx(0.2, abs=1e-3)
    assert math.isnan(root_of(x, x + 1, 0.5))
    bumps = np.exp(-((x - 0.2) ** 2) / 0.01) + 0.5 * np.exp(-((x - 0.7) ** 2) / 0.01)
    low, middle, high, depth = two_peaks(x, bumps)
    assert (low, high) == (pytest.approx(0.2), pytest.approx(0.7))
    assert 0.35 < middle < 0.55
    assert depth < 0.1
    assert two_peaks(x, np.exp(-((x - 0.5) ** 2))) is None


def test_tunnelling_counts_passages_from_peak_to_peak(volumes, monkeypatch):
    volume = volumes[-1]
    low, middle, high, _ = volume.phases
    loop = np.array([low, middle, low, middle, high, middle, high, low / 2], dtype=complex)
    chain = ThermalChain(5.7, np.arange(8), np.zeros(8), loop)
    assert volume.tunnelling(chain) == 2


@pytest.mark.slow
@pytest.mark.parametrize("betas", [(5.69, 5.70, 5.71), (5.67, 5.693, 5.72)])
@pytest.mark.parametrize(("stay", "size"), [(0.9, 1000), (0.99, 1000), (0.99, 6000)])
def test_errors_of_chains_that_seldom_change_the_phase_cover_the_truth(stay, size, betas):
    pulls = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        chains = [two_phase_chain(rng, beta, LATTICES[-1], size, stay) for beta in betas]
        found = bootstrapped(ThermalVolume(LATTICES[-1], COLOURS, chains, 50).equal_weights)
        pulls.append(abs(found.value - CENTRE) / found.error)
    assert np.mean(np.array(pulls) < 1) > 0.5
    assert np.mean(np.array(pulls) < 2) > 0.82


def test_few_changes_of_the_phase_are_an_error():
    rng = np.random.default_rng(0)
    chains = [two_phase_chain(rng, beta, LATTICES[-1], 1000, 0.99) for beta in (5.69, 5.7, 5.71)]
    volume = ThermalVolume(LATTICES[-1], COLOURS, chains, 20)
    changes = sum(map(volume.tunnelling, chains))
    assert 3 < changes < 20
    expected = 2 / math.sqrt(changes) / (LATTICES[-1].sites * volume.jump[0])
    for samples in (volume.equal_weights, volume.peak[0]):
        assert bootstrapped(samples).error == pytest.approx(expected)


def test_the_interface_tension_is_that_of_the_histogram():
    """At one coupling reweighting changes nothing, and the histogram is that of the chain."""
    volume = two_phase_volume(np.random.default_rng(8), LATTICES[1], [CENTRE], 20_000, replicas=30)
    volume.__dict__["peak_zero"] = CurveZero(np.full(31, CENTRE), CENTRE, CENTRE, False)
    edges = volume.histogram[0]
    counts = np.histogram(np.abs(volume.chains[0].loop), edges)[0]
    smooth = np.convolve(np.pad(counts, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
    centres = (edges[1:] + edges[:-1]) / 2
    low, least, high = (smooth[np.argmin(np.abs(centres - one))] for one in volume.phases[:3])
    assert least == smooth[(centres > volume.phases[0]) & (centres < volume.phases[2])].min()
    expected = np.log(np.sqrt(low * high) / least) / 2 * (4 / 10) ** 2
    found = bootstrapped(volume.interface)
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert 0 < 4 * found.error < found.value


def test_bootstrap_samples_without_one_of_the_phases_are_left_out():
    """One of 30 measurements is below the minimum, so that a third of the samples lacks it."""
    volume = two_phase_volume(np.random.default_rng(8), LATTICES[0], [CENTRE], 30, replicas=100)
    volume.__dict__["peak_zero"] = CurveZero(np.full(101, CENTRE), CENTRE, CENTRE, False)
    modulus = np.sort(np.abs(volume.chains[0].loop))
    volume.__dict__["phases"] = (*modulus[[0, 1, -1]], 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jump, interface = volume.jump, volume.interface
    assert 5 < np.isnan(jump).sum() < 95
    assert math.isfinite(bootstrapped(jump).error)
    assert interface.size == 101

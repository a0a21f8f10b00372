"""The spectrum of synthetic tables: masses, PCAC masses and extrapolations."""

import math
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest

from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.spectroscopy.correlators import (
    BARYONS,
    MESONS,
    HadronState,
    Ranges,
    fold,
    read_hadron_correlators,
)
from gauge_mc.extensions.quarks.spectroscopy.spectrum import (
    MassSeries,
    baryon_series,
    chiral_fits,
    meson_series,
    spectrum,
)
from tests.extensions.quarks.synthetic_hadrons import (
    BARYON_LABELS,
    EXTENT,
    KAPPA_C,
    MESON_LABELS,
    cosh_correlator,
    exp_correlator,
    in_memory,
    make_mesons,
    noise,
    quark_mass,
    write_baryons,
    write_correlators,
    write_mesons,
)

KAPPAS = (0.150, 0.152, 0.154)
QUARKS = (0.15, 0.15, 0.0, 0.0)
POINT = "point@0;0;0;0"


def mesons(samples=150, seed=1, kappas=KAPPAS):
    return in_memory(MESON_LABELS, make_mesons(np.random.default_rng(seed), samples, kappas))


@pytest.fixture(scope="module")
def usual():
    return meson_series(mesons(200, seed=2), Ranges(3))


def test_correlators_are_read(tmp_path):
    rng = np.random.default_rng(3)
    labels = [
        (*QUARKS, POINT, "g5", "g5", 0, 0, 0),
        (0.15, 0.152, 0.0, 0.01, "wall@3", "gx", "gxgt", 1, -1, 0),
    ]
    values = {one: rng.normal(size=(12, 8)) for one in labels}
    path = write_correlators(tmp_path / "mesons.csv", MESON_LABELS, values)
    table = read_hadron_correlators(path, MESONS)
    assert table.extent == 8
    assert table.sweeps.tolist() == list(range(10, 130, 10))
    assert table.ensemble["beta"] == "6.0"
    pairs = zip(table.labels, table.values, strict=True)
    found = {tuple(one.values()): data for one, data in pairs}
    for one, data in values.items():
        kind = (*one[:4], one[4].partition("@")[0], *one[5:])
        np.testing.assert_array_equal(found[kind], data)
    later = read_hadron_correlators(path, MESONS, skip=20).sweeps
    assert later.tolist() == list(range(30, 130, 10))


def test_tables_that_are_refused(tmp_path):
    rng = np.random.default_rng(3)
    label = (*QUARKS, POINT, "g5", "g5", 0, 0, 0)
    few = write_correlators(tmp_path / "few.csv", MESON_LABELS, {label: rng.normal(size=(9, 4))})
    with pytest.raises(GaugeError, match="has 9 configurations, and at least 10 are needed"):
        read_hadron_correlators(few, MESONS)
    path = write_correlators(tmp_path / "a.csv", MESON_LABELS, {label: rng.normal(size=(12, 4))})
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:10], *lines[11:-1], ""]))
    said = "is incomplete: configuration 20 does not have the same rows"
    with pytest.raises(GaugeError, match=said):
        read_hadron_correlators(path, MESONS)


def test_folding():
    values = np.arange(12.0).reshape(2, 6)
    np.testing.assert_array_equal(fold(values, 1)[0], [0, 3, 3, 3])
    np.testing.assert_array_equal(fold(values, -1)[0], [0, -2, -1, 0])
    np.testing.assert_array_equal(fold(values, 1, 10 + values)[0], [0, 8, 8, 8])


@pytest.mark.slow
def test_masses_of_mesons_and_quarks(tmp_path):
    path = write_mesons(tmp_path / "mesons.csv", np.random.default_rng(1), 60)
    found = meson_series(read_hadron_correlators(path, MESONS), Ranges(3))
    pairs = [*combinations_with_replacement(KAPPAS, 2)]
    for name in ("pion", "rho"):
        assert [(s.kappa1, s.kappa2) for s in found.masses if s.name == name] == pairs
    for state, (fit, series) in found.masses.items():
        m = math.sqrt(2.4 * quark_mass(state.kappa1, state.kappa2))
        truth = m if state.name == "pion" else 0.3 + 0.5 * m * m
        assert abs(fit.mass.value - truth) < 4 * fit.mass.error < 0.01
        assert series.mean() == pytest.approx(fit.mass.value)
    for state, (one, _) in found.pcac.items():
        truth = quark_mass(state.kappa1, state.kappa2)
        assert abs(one.mass.value - truth) < 4 * one.mass.error < 0.01
    assert len(found.pcac) == 6
    assert not found.left_out


@pytest.mark.slow
def test_equal_correlators_are_averaged(tmp_path):
    """Components of a vector, momenta related by a symmetry, and places of a source."""
    rng = np.random.default_rng(5)
    values = {}

    def add(gamma, momentum, source=POINT):
        values[(*QUARKS, source, gamma, gamma, *momentum)] = cosh_correlator(rng, 20, 0.4)

    for gamma in ("gx", "gy", "gz"):
        add(gamma, (0, 0, 0))
        for p in ((1, 0, 0), (0, -1, 0)):
            add(gamma, p)
    moving, points = ((0, 1, 0), (0, -1, 0), (0, 0, 1)), (POINT, "point@0;0;0;8")
    for p in moving:
        add("g5", p)
    for source in (*points, "wall@0"):
        add("g5", (0, 0, 0), source)
    path = write_correlators(tmp_path / "mesons.csv", MESON_LABELS, values)
    found = meson_series(read_hadron_correlators(path, MESONS), Ranges(2, 8))

    def expected(*chosen):
        rows = [values[(*QUARKS, source, g, g, *p)] for g, p, source in chosen]
        return fold(np.mean(rows, axis=0), 1)

    along = [("gx", (1, 0, 0), POINT), ("gy", (0, -1, 0), POINT)]
    across = [(g, p, POINT) for g in ("gx", "gy", "gz") for p in ((1, 0, 0), (0, -1, 0))]
    states = {
        ("rho", "point", (0, 0, 0), 0): [(g, (0, 0, 0), POINT) for g in ("gx", "gy", "gz")],
        ("rho", "point", (0, 0, 1), 1): along,
        ("rho", "point", (0, 0, 1), 0): [one for one in across if one not in along],
        ("pion", "point", (0, 0, 1), 0): [("g5", p, POINT) for p in moving],
        ("pion", "point", (0, 0, 0), 0): [("g5", (0, 0, 0), one) for one in points],
        ("pion", "wall", (0, 0, 0), 0): [("g5", (0, 0, 0), "wall@0")],
    }
    assert len(found.correlators) == len(states)
    for (name, source, momentum, along_it), chosen in states.items():
        one = found.correlators[HadronState(name, *QUARKS, 0.0, 0.0, source, momentum, along_it)]
        np.testing.assert_allclose(one.values, expected(*chosen), rtol=1e-13)


def test_critical_kappa_and_chiral_limits(usual):
    fits = {one.quantity: one for one in chiral_fits(usual, usual)}
    assert list(fits) == ["pion^2", "pcac", "rho"]
    for name in ("pion^2", "pcac"):
        one = fits[name]
        assert abs(one.kappa_c.value - KAPPA_C) < 4 * one.kappa_c.error < 1e-3
        assert one.kappa_c.value == pytest.approx(-one.slope.value / one.intercept.value)
        assert one.dof == 4
    assert abs(fits["rho"].intercept.value - 0.3) < 4 * fits["rho"].intercept.error < 0.02
    assert abs(fits["rho"].slope.value - 0.5) < 4 * fits["rho"].slope.error < 0.1


def test_points_that_are_on_a_curve(usual):
    assert all(one.p_value > 1e-3 for one in chiral_fits(usual, usual))
    found = replace(usual, pcac=dict(usual.pcac))
    for state, (fit, series) in found.pcac.items():
        bend = 10 * fit.mass.error * (state.kappa1 == state.kappa2)
        found.pcac[state] = fit, series + bend
    fits = {one.quantity: one.p_value for one in chiral_fits(found, found)}
    assert fits["pcac"] < 1e-6
    assert fits["rho"] > 1e-3


def test_baryons_of_different_quarks_are_not_on_the_line():
    found = meson_series(mesons(60), Ranges(3))
    baryons = MassSeries()
    for state, one in found.masses.items():
        if state.name == "rho":
            baryons.masses[state._replace(name="nucleon", parity=1)] = one
    (line,) = [one for one in chiral_fits(found, baryons) if one.quantity == "nucleon+"]
    assert len(line.points) == len({one.kappa1 for one in baryons.masses})


@pytest.mark.slow
def test_errors_of_extrapolations_are_honest():
    """Masses at different kappa fluctuate together, as on the same configurations."""
    pulls = []
    for seed in range(80):
        values = make_mesons(np.random.default_rng(seed), 100, KAPPAS[::2], together=0.9)
        found = meson_series(in_memory(MESON_LABELS, values), Ranges(4, 16))
        fits = {one.quantity: one for one in chiral_fits(found, found)}
        kappas = [fits[name].kappa_c for name in ("pion^2", "pcac")]
        limit = fits["rho"].intercept
        pulls.append([(one.value - KAPPA_C) / one.error for one in kappas])
        pulls[-1].append((limit.value - 0.3) / limit.error)
    covered = np.mean(np.abs(pulls) < 1, axis=0)
    assert np.abs(covered - 0.683).max() < 0.16  # of 80: 0.052
    assert np.abs(np.mean(pulls, axis=0)).max() < 0.35


def test_a_single_kappa_has_no_extrapolation():
    found = meson_series(mesons(20, kappas=(0.15,)), Ranges(3))
    assert chiral_fits(found, found) == []


@pytest.mark.slow
@pytest.mark.parametrize("boundary", [1, -1])
def test_masses_of_baryons_of_both_parities(tmp_path, boundary):
    rng = np.random.default_rng(4)
    path = write_baryons(tmp_path / "baryons.csv", rng, 100, boundary=boundary)
    found = baryon_series(read_hadron_correlators(path, BARYONS), Ranges(3))
    assert len(found.masses) == 6
    for state, (fit, _) in found.masses.items():
        truth = {1: 0.6, -1: 0.9}[state.parity] + 2.4 * quark_mass(state.kappa1, state.kappa2)
        assert abs(fit.mass.value - truth) < 4 * fit.mass.error < 0.02


def test_diquarks_are_bosons(tmp_path):
    rng = np.random.default_rng(2)
    values = {(*QUARKS, POINT, "diquark-g5", 1, 0, 0, 0): cosh_correlator(rng, 40, 0.3)}
    path = write_correlators(tmp_path / "baryons.csv", BARYON_LABELS, values)
    found = baryon_series(read_hadron_correlators(path, BARYONS), Ranges(2))
    ((_, (fit, _)),) = found.masses.items()
    assert fit.t_max == EXTENT // 2
    assert abs(fit.mass.value - 0.3) < 4 * fit.mass.error


@pytest.mark.slow
def test_noisy_hadrons_are_left_out(tmp_path):
    rng = np.random.default_rng(6)
    values = {
        (*QUARKS, POINT, "g5", "g5", 0, 0, 0): cosh_correlator(rng, 40, 0.3),
        (*QUARKS, POINT, "unit", "unit", 0, 0, 0): cosh_correlator(rng, 40, 0.8, size=5),
    }
    path = write_correlators(tmp_path / "mesons.csv", MESON_LABELS, values)
    found = meson_series(read_hadron_correlators(path, MESONS), Ranges())
    assert [state.name for state in found.masses] == ["pion"]
    (left_out,) = found.left_out
    assert (left_out.name, "too noisy" in left_out.reason) == ("a0, κ = 0.15", True)
    values.popitem()
    values[(*QUARKS, POINT, "g5", "g5", 0, 0, 0)] = exp_correlator(rng, 40, 0.1, size=5)
    path.unlink()
    write_correlators(path, MESON_LABELS, values)
    table = read_hadron_correlators(path, MESONS)
    series = meson_series(table, Ranges())
    said = "^None of 1 correlators can be fitted: the correlator is too noisy .*[.]$"
    with pytest.raises(GaugeError, match=said):
        spectrum(table, series)
    others = [series.left_out[0]._replace(reason=reason) for reason in ("A b.", "C d.", "A b.")]
    with pytest.raises(GaugeError, match=r": a b \(2 of them\); c d \(1 of them\)\.$"):
        spectrum(table, replace(series, left_out=others))


TIME, PION, QUARK = 12, 1.2, 0.4
"""Extent in time, and the masses of the pion and of its quarks, in lattice units."""

EXCITED, GAP = 0.06, 1.2
"""Relative contribution of excited states to the PCAC mass at t = 2, and how fast it decays."""


def known_means():
    """Return the means of <P P> and <A P>, which is odd and so vanishes at the source and at T/2.

    Their ratio is QUARK [1 - EXCITED exp(-GAP (t - 2))] from t = 2 on. At t = 1 its derivative
    contains the value at the source, and it is even negative.
    """
    t = np.arange(TIME // 2 + 1)
    density = np.exp(-PION * t) + np.exp(-PION * (TIME - t))
    mass = QUARK * (1 - EXCITED * np.exp(-GAP * (t - 2)))
    current = np.zeros(t.size)
    current[-2] = -4 * QUARK * math.exp(-PION * TIME / 2)
    for one in t[-2:1:-1]:
        current[one - 1] = current[one + 1] - 4 * mass[one] * density[one]
    return density, current


def ensemble(rng, samples):
    """Return correlators whose fluctuations grow with t and are the same for both, but for 4 %."""
    density, current = known_means()
    t = np.arange(TIME // 2 + 1)
    common = 1 + 0.2 * (1 + 0.2 * t) * noise(rng, samples, t.size, 0.0, near=20.0)
    parts = [
        mean * (common + 0.04 * noise(rng, samples, t.size, 0.0)) for mean in (density, current)
    ]
    whole = [
        np.concatenate([one, sign * one[:, -2:0:-1]], axis=1)
        for one, sign in zip(parts, (1, -1), strict=True)
    ]
    labels = (0.15, 0.15, 0.0, 0.0, "point@0;0;0;0", "g5")
    keys = [(*labels, gamma, 0, 0, 0) for gamma in ("g5", "gtg5")]
    return in_memory(MESON_LABELS, dict(zip(keys, whole, strict=True)))


@pytest.mark.slow
def test_plateaus_of_pcac_masses_begin_where_excited_states_are_small():
    """From t = 3 on they shift the mass by 0.6 of its error, and from t = 4 on by 0.25.

    With the value at t = 1, excited states would seem to decay at once, and nearly all plateaus
    begin at t = 3: the mean deviation is then 0.7 errors. Up to half an error is tolerated. Limits
    are four standard deviations from what is then expected.
    """
    rng, pulls, starts = np.random.default_rng(5), [], []
    for _ in range(150):
        found = meson_series(ensemble(rng, 50), Ranges())
        pulls += [(one.mass.value - QUARK) / one.mass.error for one, _ in found.pcac.values()]
        starts += [one.t_min for one, _ in found.pcac.values()]
    assert len(pulls) > 75
    chance = 4 / math.sqrt(len(pulls))
    assert np.mean(np.array(starts) >= 4) > 0.5 + chance / 2
    assert abs(np.mean(pulls)) < 0.5 + chance
    shifted = [
        math.erf((x + 0.5) / math.sqrt(2)) + math.erf((x - 0.5) / math.sqrt(2)) for x in (1, 2)
    ]
    for sigma, expected in zip((1, 2), np.array(shifted) / 2, strict=True):
        within = np.mean(np.abs(pulls) < sigma)
        assert within > expected - chance * math.sqrt(expected * (1 - expected))


def test_a_pcac_mass_begins_at_the_second_time_even_if_told_otherwise():
    """The first one would contain the current at the source."""
    rng = np.random.default_rng(6)
    table = ensemble(rng, 100)
    one, other = (
        next(iter(meson_series(table, Ranges(t_min, 5)).pcac.values()))[0] for t_min in (1, 2)
    )
    assert one == other
    assert one.t_min == 2

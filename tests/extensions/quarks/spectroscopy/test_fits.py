"""Fits and plots of mesons and baryons: options, reports, files and pictures."""

import io
import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.spectroscopy.fits import MesonFit, SpectrumResult
from gauge_mc.extensions.quarks.spectroscopy.plots import (
    chosen_hadrons,
    correlators_picture,
    effective_masses_picture,
    fitted,
)
from gauge_mc.plots.drawing import find_plot
from tests.extensions.quarks.synthetic_hadrons import (
    HEADER,
    KAPPA_C,
    MESON_LABELS,
    cosh_correlator,
    quark_mass,
    write_baryons,
    write_correlators,
    write_mesons,
)
from tests.fits.tables import write_target
from tests.plots.shown import kept_figures


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "mesons.csv"
    return write_mesons(path, np.random.default_rng(20100824), 40, (0.150, 0.154))


@pytest.fixture
def run(table, tmp_path):
    shutil.copy(table, tmp_path)
    return tmp_path


def shown(result):
    console = Console(width=200, file=io.StringIO())
    console.print(*result.report())
    return " ".join(console.file.getvalue().split())


@pytest.mark.slow
def test_masses_are_written_and_shown(run):
    result = gauge_mc.fit("mesons", run)
    content = json.loads((run / "mesons.json").read_text())
    assert content["configurations"] == 40
    assert content["ensemble"] == {key: HEADER[key] for key in HEADER if key != "observable"}
    assert [one["name"] for one in content["masses"]] == 3 * ["pion"] + 3 * ["rho"]
    for one, written in zip(result.spectrum.masses, content["masses"], strict=True):
        fit = written["fit"]
        assert fit["mass"]["value"] == one.fit.mass.value
        assert fit["mass"]["tau_int"] == one.fit.mass.tau_int
        assert (written["kappa1"], written["source"]) == (one.kappa1, "point")
        assert str(one.fit.mass) in shown(result)
    assert [one["quantity"] for one in content["chiral"]] == ["pion^2", "pcac", "rho"]
    assert content["chiral"][0]["kappa_c"]["value"] == pytest.approx(KAPPA_C, rel=1e-3)
    assert content["chiral"][2]["kappa_c"] is None
    text = shown(result)
    for word in ("pion, κ = 0.15, 0.154", "PCAC masses", "Neither renormalised", "40 config"):
        assert word in text
    for one in (*result.spectrum.pcac, *result.spectrum.chiral):
        assert str(getattr(one, "mass", None) or one.kappa_c or one.intercept) in text


@pytest.mark.slow
def test_poor_lines_are_named(run):
    result = gauge_mc.fit("mesons", run)
    assert "Not on a line" not in shown(result)
    pion, pcac, rho = result.spectrum.chiral
    lines = (replace(pion, p_value=0.009), replace(pcac, p_value=0.011), replace(rho, p_value=0.0))
    poor = replace(result.spectrum, chiral=lines)
    text = shown(SpectrumResult("masses", poor))
    assert "Not on a line (p < 0.01): pion^2, rho; use lighter quarks alone." in text


@pytest.mark.slow
def test_options(run):
    usual = gauge_mc.fit("mesons", run)
    given = gauge_mc.fit("mesons", run, t_min=5, t_max=12, skip=100).spectrum
    assert {(one.fit.t_min, one.fit.t_max) for one in given.masses} == {(5, 12)}
    assert (given.configurations, given.skip) == (30, 100)
    averaged = gauge_mc.fit("mesons", run, average=True)
    assert all(one.fit.systematic > 0 for one in averaged.spectrum.masses)
    assert "± range" in shown(averaged)
    assert "± range" not in shown(usual)
    assert usual.spectrum.masses[0].fit.mass.value != given.masses[0].fit.mass.value


@pytest.mark.slow
def test_twisted_masses(tmp_path, rng):
    """Only quarks of one twisted mass are extrapolated, and the PCAC mass alone vanishes."""
    write_mesons(tmp_path / "mesons.csv", rng, 30, (0.150, 0.154), mus=(0.0, 0.02))
    result = gauge_mc.fit("mesons", tmp_path)
    pions = {
        (one.kappa1, one.kappa2, one.mu1, one.mu2): one.fit.mass.value
        for one in result.spectrum.masses
        if one.name == "pion"
    }
    assert len(pions) == 10
    for (*kappas, mu1, mu2), mass in pions.items():
        truth = math.sqrt(2.4 * (quark_mass(*kappas) + (mu1 + mu2) / 2))
        assert mass == pytest.approx(truth, rel=0.02)
    lines = {(one.quantity, one.mu): one for one in result.spectrum.chiral}
    assert set(lines) == {("pion^2", 0), ("pcac", 0), ("rho", 0), ("pcac", 0.02), ("rho", 0.02)}
    for name, mu in (("pion^2", 0), ("pcac", 0), ("pcac", 0.02)):
        assert lines[name, mu].kappa_c.value == pytest.approx(KAPPA_C, rel=3e-3)
    assert "pion, κ = 0.15, μ = 0, 0.02" in shown(result)


@pytest.mark.slow
def test_baryons_are_extrapolated_with_the_pions_of_the_run(run, rng):
    write_baryons(run / "baryons.csv", rng, 40, (0.150, 0.154))
    result = gauge_mc.fit("baryons", run)
    content = json.loads((run / "baryons.json").read_text())
    names = [(one["name"], one["parity"], one["kappa1"]) for one in content["masses"]]
    assert names == [("nucleon", p, k) for p in (1, -1) for k in (0.150, 0.154)]
    assert [one["quantity"] for one in content["chiral"]] == ["nucleon+", "nucleon-"]
    assert content["chiral"][0]["intercept"]["value"] == pytest.approx(0.6, abs=0.02)
    assert "nucleon+, κ = 0.15" in shown(result)
    (run / "mesons.csv").unlink()
    alone = gauge_mc.fit("baryons", run).spectrum
    assert (len(alone.masses), alone.chiral) == (4, ())
    write_mesons(run / "mesons.csv", rng, 20, (0.150, 0.154))  # of other configurations
    assert gauge_mc.fit("baryons", run).spectrum.chiral == ()


@pytest.mark.slow
def test_what_is_refused(run):
    with pytest.raises(UsageError, match="--t-max is 4; a fit from t = 3 on needs at least 5"):
        gauge_mc.fit("mesons", run, t_min=3, t_max=4)
    with pytest.raises(UsageError, match="--skip 600 leaves nothing"):
        gauge_mc.fit("mesons", run, skip=600)
    with pytest.raises(GaugeError, match="There is no table"):
        gauge_mc.fit("baryons", run)
    with pytest.raises(GaugeError, match="no column 'baryon': it is not a table of correlators"):
        gauge_mc.fit("baryons", run / "mesons.csv")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mesons", "baryons"])
def test_masses_are_those_of_the_lightest_quarks(name, tmp_path):
    found = gauge_mc.fit(name, write_target(name, tmp_path / "target"))
    hadrons = {"mesons": ("pion", "rho"), "baryons": ("nucleon",)}[name]
    for number, hadron in zip(found.result, hadrons, strict=False):
        masses = [one for one in found.spectrum.masses if one.name == hadron and one.parity >= 0]
        lightest = {one.fit.mass.value for one in masses if one.kappa1 == one.kappa2 == 0.154}
        assert len({one.kappa1 for one in masses}) > 1
        assert number.value in lightest


def drawn(name, run, **options):
    file = run / f"{name}.svg"
    assert find_plot(name).draw([run], file, **options) == []
    return file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chiral", "mesons", "effective-mass"])
def test_plots_of_mesons_and_baryons(run, rng, name):
    if name != "chiral":
        (run / "mesons.csv").unlink()
        write_mesons(run / "mesons.csv", rng, 40, (0.150,))
    alone = drawn(name, run, t_min=5)
    write_baryons(run / "baryons.csv", rng, 40, (0.150, 0.154)[: 1 + (name == "chiral")])
    both = drawn(name, run, t_min=5)
    assert (both == alone) == (name == "mesons")
    if name != "mesons":
        assert both.count("<path") > alone.count("<path")
    assert drawn(name, run, t_min=6) != both


@pytest.mark.slow
def test_effective_masses_of_baryons_alone(run, rng):
    (run / "mesons.csv").unlink()
    with pytest.raises(GaugeError, match="There is no run in"):
        drawn("effective-mass", run)
    write_baryons(run / "baryons.csv", rng, 20, (0.150, 0.154))
    assert "<path" in drawn("effective-mass", run)


@pytest.mark.slow
def test_correlators_too_noisy_for_a_fit_are_drawn(run, rng):
    """Fits need errors below 10 %, and points below 100 % or, of effective masses, 25 %."""
    pion = (0.15, 0.15, 0.0, 0.0, "point@0;0;0;0", "g5", "g5", 0, 0, 0)
    (run / "mesons.csv").unlink()
    noisy = {pion: cosh_correlator(rng, 40, 0.8, size=1.3)}
    table = write_correlators(run / "mesons.csv", MESON_LABELS, noisy)
    with pytest.raises(GaugeError, match="too noisy for a fit"):
        MesonFit().carry_out([table])
    for name in ("mesons", "effective-mass"):
        assert "<path" in drawn(name, run)
    table.unlink()
    noise = {pion: 1e-3 * rng.standard_normal((40, 32))}
    write_correlators(table, MESON_LABELS, noise)
    with pytest.raises(GaugeError, match="too noisy to be drawn"):
        drawn("effective-mass", run)


@pytest.mark.slow
def test_plots_that_are_refused(run, tmp_path, rng):
    with pytest.raises(UsageError, match="drawn for one run at a time; name only one, such as"):
        find_plot("mesons").draw([run, run], tmp_path / "a.svg")
    write_mesons(run / "one.csv", rng, 20, (0.150,))
    (run / "mesons.csv").unlink()
    with pytest.raises(
        GaugeError, match="at least two values of kappa, or of m; measure another one"
    ):
        drawn("chiral", run)


@pytest.fixture
def figures(monkeypatch):
    return kept_figures(monkeypatch)


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    rng, path = np.random.default_rng(5), tmp_path_factory.mktemp("hadrons")
    write_mesons(path / "mesons.csv", rng, 12, (0.150, 0.154))
    write_baryons(path / "baryons.csv", rng, 12, (0.150,))
    return fitted(path, {})


def draw_correlators(fits, path, chosen):
    correlators_picture(fits[0], chosen).draw(path)


def draw_effective_masses(fits, path, chosen):
    effective_masses_picture(fits, chosen).draw(path)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [draw_correlators, draw_effective_masses])
def test_hadrons_can_be_chosen(fits, tmp_path, figures, draw):
    path = tmp_path / "plot.png"
    draw(fits, path, [])
    labels = [axes.get_ylabel() for axes in figures[0].axes]
    assert [r"\pi" in labels[0], r"\rho" in labels[1]] == [True, True]
    draw(fits, path, chosen_hadrons({"hadrons": " rho, pion"}))
    assert [axes.get_ylabel() for axes in figures[1].axes] == labels[1::-1]
    with pytest.raises(
        UsageError, match=r"there is no correlator of 'kaon' .*; choose from pion, "
    ):
        draw(fits, path, ["pion", "kaon"])


@pytest.mark.slow
def test_a_baryon_without_a_sign_has_both_parities(fits, tmp_path, figures):
    draw_effective_masses(fits, tmp_path / "plot.png", ["nucleon"])
    assert [axes.get_ylabel()[-4] for axes in figures[0].axes] == ["+", "-"]
    draw_effective_masses(fits, tmp_path / "plot.png", ["nucleon-"])
    assert len(figures[1].axes) == 1

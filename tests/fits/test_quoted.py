"""The numbers that one quotes: the last line of every fit, JSON, and the page of reports."""

import json
from html import escape

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.fits import FITS
from gauge_mc.fits.shared.files import read_fit
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_number, result_line
from gauge_mc.reports.sections.fits import result_in_html
from gauge_mc.reports.subject import Subject
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.calls import call
from tests.fits.tables import write_target

QUOTED = {
    "anisotropy": ["ξ", "ξ/ξ₀"],
    "baryons": ["a m_N (κ = 0.154)"],
    "condensate": [f"{name} (m = 0.02)" for name in ("−⟨ψ̄ψ⟩", "χ_disc", "χ")],
    "creutz": ["χ(6, 6)"],
    "crossover": [f"kappa at the peak of {name} (8x8x8x4)" for name in ("χ_L", "χ_disc")],
    "energy-momentum": ["s/T³ (β = 6)", "(ε−3p)/T⁴ (β = 6)"],
    "field-correlators": [f"{name}/G_norm (τT = 0.5, √(8t)/a = 1.789)" for name in ("G_E", "G_B")],
    "free-energy": ["m/T", "F(∞)/T"],
    "hmc": ["acceptance", "⟨ΔH⟩", "⟨exp(−ΔH)⟩"],
    "mesons": ["a m_π (κ = 0.154)", "a m_ρ (κ = 0.154)", "a m_PCAC (κ = 0.154)", "κ_c"],
    "overlap-spectrum": ["<index²>", "χ_t a⁴", "Σ a³ from <λ_1>_0"],
    "potential": ["√σ a", "r₀/a", "a"],
    "residual-mass": ["m_res (m = 0.02)", "Z_A (m = 0.02)"],
    "scale": ["t0/a²", "w0/a", "a from t0"],
    "screening": ["m/T (Re L)", "m/T (Im L)"],
    "thermodynamics": ["p/T⁴ (β = 6.4)", "ε/T⁴ (β = 6.4)", "(ε−3p)/T⁴ (β = 6.4)"],
    "topology": ["χ_t a⁴", "χ_t t0²", "χ_t^¼"],
    "transition": ["β_c", "L/T_c⁴", "T_c 1/√σ", "T_c r₀"],
}
"""Names of the numbers of every fit, for the tables of the tests."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one == "creutz" else pytest.mark.slow) for one in FITS]
)
def test_every_fit_ends_with_the_numbers_that_one_quotes(name, tmp_path):
    target = write_target(name, tmp_path / "target")
    printed, code = call("fit", name, target)
    assert code == 0
    *_, line = printed.rstrip("\n").splitlines()
    document = json.loads(call("fit", name, target, "--json")[0])
    numbers = [QuotedNumber(**one) for one in document["result"]]
    assert [one.name for one in numbers] == QUOTED[name]
    assert line == f"result: {', '.join(map(str, numbers))}"
    written = read_fit(next(target.glob(f"{name}*.json")))["result"]
    assert [one["value"] for one in written] == [one.value for one in numbers]
    subject = Subject([target], [], [], 0, tmp_path, 0)
    page = result_in_html(name, target, "a run", subject)
    assert f"<h4>a run</h4><p><strong>{escape(line)}</strong></p>" in page
    assert gauge_mc.fit(name, target)._repr_html_().startswith(f"<p>{escape(line)}</p>")


def test_the_line_states_errors_and_units():
    t0 = quoted_number("t0/a²", Estimate(2.785, 0.012, 0.5, 0.1, 100), 0.0001)
    spacing = quoted_number("a", Estimate(0.0931, 0.0005, 0.5, 0.1, 100), 0.0012, "fm")
    assert result_line([t0, spacing], "") == "result: t0/a² = 2.785(12), a = 0.0931(5)(12) fm"
    assert result_line([], "there are no data") == "result: none, because there are no data"
    assert quoted_number("ξ", Estimate(2.0, 0.1, 0.5, 0.1, 9), float("nan")).systematic is None
    assert not quoted_number("r₀/a", None).known
    assert not quoted_number("r₀/a", Estimate(6.0, float("nan"), 0.5, 0.1, 9)).known


def loops(folder, **options):
    """The table of Wilson loops of a potential that is known."""
    write_loops(
        folder / "wilson_loops.csv", synthetic_loops(np.random.default_rng(0), 60, **options)
    )
    return folder


@pytest.mark.slow
def test_numbers_of_the_potential_have_both_errors(tmp_path):
    found = gauge_mc.fit("potential", loops(tmp_path), r_min=2)
    scan = found.potential.free
    root, r0, spacing = found.result
    assert (root.value, root.error) == (scan.fit.root_sigma.value, scan.fit.root_sigma.error)
    assert r0.systematic == scan.systematic("r0") > 0
    assert spacing.unit == "fm"
    averaged = gauge_mc.fit("potential", tmp_path, average=True)
    expected = averaged.potential.averaged["r0"]
    assert (averaged.result[1].value, averaged.result[1].systematic) == (
        expected.value.value,
        expected.systematic,
    )


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


def test_a_fit_without_a_number_says_why(tmp_path):
    """A potential that no window fits has a table of V(R), and nothing to quote."""
    target = loops(tmp_path, sigma=-0.02)
    printed, code = call("fit", "potential", target, "--r-min", 1, "--t-min", 1)
    assert code == 0
    assert printed.splitlines()[-2] == "result: none, because σ is not positive"
    assert read_fit(tmp_path / "potential.json")["result"] == []


@pytest.mark.slow
def test_two_tables_of_the_potential_are_enough(tmp_path):
    """`--all` prints those of the force, of other windows and of other determinations as well."""
    target = loops(tmp_path)
    further = ("Force F", "in other windows", "Other determinations")
    short, whole = call("fit", "potential", target)[0], call("fit", "potential", target, "--all")[0]
    for words in ("Plateaus of V(R, t)", " V(R) = A + B/R + σR "):
        assert words in short
        assert words in whole
    assert not any(one in short for one in further)
    assert all(one in whole for one in further)
    assert "3 further tables with --all.\n" in short
    assert "with --all" not in whole
    assert short.splitlines()[-2:] == whole.splitlines()[-2:]
    creutz = call("fit", "creutz", target)[0]
    assert creutz == call("fit", "creutz", target, "--all")[0]
    assert "with --all" not in creutz

"""The numbers that one quotes: the last line of every fit, JSON, and the page of reports."""

import json
from collections import ChainMap
from html import escape

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.fits import FITS
from gauge_mc.fits.files import read_fit
from gauge_mc.fits.quoted import QuotedNumber, quoted_number, result_line
from gauge_mc.reports.page import Subject
from gauge_mc.reports.results import result_in_html
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.calls import call
from tests.fits.tables import write_target
from tests.samples import all_of

QUOTED = {
    "anisotropy": ["ξ", "ξ/ξ₀"],
    "continuum": ["w0/√t₀"],
    "creutz": ["χ(6, 6)"],
    "energy-momentum": ["s/T³ (β = 6)", "(ε−3p)/T⁴ (β = 6)"],
    "field-correlators": [f"{name}/G_norm (τT = 0.5, √(8t)/a = 1.789)" for name in ("G_E", "G_B")],
    "free-energy": ["m/T", "F(∞)/T"],
    "hmc": ["acceptance", "⟨ΔH⟩", "⟨exp(−ΔH)⟩"],
    "potential": ["√σ a", "r₀/a", "a"],
    "scale": ["t0/a²", "w0/a", "a from t0"],
    "screening": ["m/T (Re L)", "m/T (Im L)"],
    "thermodynamics": ["p/T⁴ (β = 6.4)", "ε/T⁴ (β = 6.4)", "(ε−3p)/T⁴ (β = 6.4)"],
    "topology": ["χ_t a⁴", "χ_t t0²", "χ_t^¼"],
    "transition": ["β_c", "L/T_c⁴", "T_c/√σ", "T_c r₀"],
}
"""Names of the numbers of every fit, for the tables of the tests."""

GIVEN = {"continuum": {"of": "w0/√t₀"}}
"""Options of the fits that need some."""


def quoted(name):
    """Return the names of the numbers of a fit, which may be of an extension."""
    return ChainMap(QUOTED, *all_of("QUOTED"))[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one == "creutz" else pytest.mark.slow) for one in FITS]
)
def test_every_fit_ends_with_the_numbers_that_one_quotes(name, tmp_path):
    target = write_target(name, tmp_path / "target")
    given = GIVEN.get(name, {})
    words = [word for option, value in given.items() for word in (f"--{option}", value)]
    printed, code = call("fit", name, target, *words)
    assert code == 0
    *_, line = printed.rstrip("\n").splitlines()
    document = json.loads(call("fit", name, target, *words, "--json")[0])
    numbers = [QuotedNumber(**one) for one in document["result"]]
    assert [one.name for one in numbers] == quoted(name)
    assert line == f"result: {', '.join(map(str, numbers))}"
    written = read_fit(next(target.glob(f"{name}*.json")))["result"]
    assert [one["value"] for one in written] == [one.value for one in numbers]
    if not FITS[name].of_several:  # which reports leave out
        subject = Subject([target], [], [], 0, tmp_path, 0)
        page = result_in_html(name, target, "a run", subject)
        assert f"<h4>a run</h4><p><strong>{escape(line)}</strong></p>" in page
    assert gauge_mc.fit(name, target, **given)._repr_html_().startswith(f"<p>{escape(line)}</p>")


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


def test_numbers_of_the_potential_have_both_errors(tmp_path):
    result = gauge_mc.fit("potential", loops(tmp_path), r_min=2)
    scales = [result.potential.scales[name] for name in ("root_sigma", "r0", "spacing")]
    for number, scale in zip(result.result, scales, strict=True):
        assert (number.value, number.error) == (scale.value.value, scale.value.error)
        assert number.systematic == scale.systematic > 0
    assert result.result[2].unit == "fm"


def test_a_fit_without_a_number_says_why(tmp_path):
    """A potential without a scale has a table of V(R), and nothing to quote."""
    for options, reason in (
        ({"sigma": -0.02}, "σ is not positive"),
        ({"size": 3}, "V(R) is known at too few distances"),
    ):
        printed, code = call("fit", "potential", loops(tmp_path, **options))
        assert code == 0
        assert printed.splitlines()[-2] == f"result: none, because {reason}"
        assert read_fit(tmp_path / "potential.json")["result"] == []
        (tmp_path / "wilson_loops.csv").unlink()


def test_one_table_of_the_potential_is_enough(tmp_path):
    """`--all` prints those of V(R), of the force and of the most probable fits as well."""
    target = loops(tmp_path)
    short, whole = call("fit", "potential", target)[0], call("fit", "potential", target, "--all")[0]
    for words in ("Scales of the static potential", "60 configurations"):
        assert words in short
        assert words in whole
    for words in (" V(R) ", "Force F", "Most probable forms"):
        assert words in whole
    assert not any(words in short for words in ("Force F", "Most probable forms"))
    assert "3 further tables with --all.\n" in short
    assert "with --all" not in whole
    assert short.splitlines()[-2:] == whole.splitlines()[-2:]
    creutz = call("fit", "creutz", target)[0]
    assert creutz == call("fit", "creutz", target, "--all")[0]
    assert "with --all" not in creutz

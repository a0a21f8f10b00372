"""`fit scale`: options, report and JSON file."""

import json
import math

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.groups import GROUPS
from tests.analysis.synthetic_flow import HEADER, TIMES, exact, synthetic_flow, write_flow
from tests.quantities.shown import shown


def make(folder, samples=60, header=None, **options):
    flow = synthetic_flow(np.random.default_rng(4), samples, **options)
    write_flow(folder / "flow.csv", flow, header=header)
    return folder


def test_scales_are_written_and_shown(tmp_path):
    result = gauge_mc.fit("scale", make(tmp_path))
    found, content = result.scales, json.loads((tmp_path / "scale.json").read_text())
    assert (found.t0.value, found.w0.value) == pytest.approx(exact(), rel=0.02)
    for name in ("t0", "w0", "radius"):
        one = getattr(found, name)
        assert (content[name]["value"], content[name]["error"]) == (one.value, one.error)
        assert (content[name]["tau_int"], content[name]["samples"]) == (one.tau_int, 60)
    assert (content["target"], content["energy"], content["tree_level"]) == (0.3, "clover", False)
    assert (content["configurations"], content["updates"], content["t_max"]) == (60, 10, 4.0)
    assert content["ensemble"] == {key: HEADER[key] for key in HEADER if key != "observable"}
    value, error, source = GROUPS["su3"].sqrt_t0
    a = content["spacing_t0"]
    assert a["value"]["value"] == pytest.approx(value / math.sqrt(found.t0.value))
    assert a["scale_error"] == pytest.approx(error / math.sqrt(found.t0.value))
    assert (a["source"], content["spacing_w0"]) == (source, None)
    text = shown(result)
    for word in (str(found.t0), str(found.w0), str(found.spacing_t0.value), source, "10 updates"):
        assert word in text
    assert found.t0.format_tau() in text
    assert "nan" not in text


@pytest.mark.slow
def test_options(tmp_path):
    make(tmp_path)
    usual = gauge_mc.fit("scale", tmp_path).scales
    lower = gauge_mc.fit("scale", tmp_path, target=0.1)
    assert lower.scales.t0.value == pytest.approx(exact(0.1)[0], rel=0.02)
    assert lower.scales.spacing_t0 is None  # the reference belongs to 0.3
    assert "Give √t0 in fm with --sqrt-t0" in shown(lower)
    plaquette = gauge_mc.fit("scale", tmp_path, energy="plaquette").scales
    assert plaquette.t0.value < usual.t0.value
    corrected = gauge_mc.fit("scale", tmp_path, tree_level=True)
    assert corrected.scales.t0.value < usual.t0.value  # C < 1 for the clover
    assert "divided by its tree-level artefacts" in shown(corrected)
    given = gauge_mc.fit("scale", tmp_path, target=0.1, sqrt_t0=0.2, w0=0.17, w0_error=0.002)
    assert given.scales.spacing_t0.scale_error == 0
    assert given.scales.spacing_w0.reference_error == 0.002
    assert "w0 = 0.1700(20) fm, given with --w0" in shown(given)


def test_groups_without_a_reference(tmp_path):
    for group in ("su2", "su9"):
        make(tmp_path, header={**HEADER, "group": group})
        assert gauge_mc.fit("scale", tmp_path).scales.spacing_t0 is None


def test_an_unknown_w0(tmp_path):
    result = gauge_mc.fit("scale", make(tmp_path, t=TIMES[:30]), w0=0.17)
    content = json.loads((tmp_path / "scale.json").read_text())
    assert (content["w0"]["value"], content["spacing_w0"]) == (None, None)
    assert "unknown" in shown(result)
    assert "measure the flow to t/a²" in shown(result)
    assert "nan" not in shown(result)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": -1.0}, "--target is -1; give a positive number, such as 0.3"),
        ({"energy": "wrong"}, "--energy is 'wrong'; choose clover, plaquette or improved"),
        ({"sqrt_t0": 0.0}, "--sqrt-t0 is 0; give a positive length in fm"),
        ({"sqrt_t0": 0.1, "sqrt_t0_error": -1.0}, "--sqrt-t0-error is -1; give 0 or a positive"),
        ({"sqrt_t0_error": 0.1}, "--sqrt-t0-error has no effect without --sqrt-t0; give"),
        ({"w0": math.inf}, "--w0 is inf; give a number"),
        ({"w0_error": 0.1}, "--w0-error has no effect without --w0; give --w0 as well"),
        ({"charge": "clover"}, "--charge is not an option of fit scale"),
    ],
)
def test_options_that_are_refused(tmp_path, options, sentence):
    make(tmp_path, 12)
    with pytest.raises(UsageError, match=sentence):
        gauge_mc.fit("scale", tmp_path, **options)
    assert not (tmp_path / "scale.json").exists()


def test_runs_that_are_refused(tmp_path):
    with pytest.raises(GaugeError, match="There is no run in"):
        gauge_mc.fit("scale", tmp_path)
    with pytest.raises(GaugeError, match=r"measure the flow to t/a² = 3\.4"):
        gauge_mc.fit("scale", make(tmp_path, t=TIMES[:15]))
    assert not (tmp_path / "scale.json").exists()

"""`fit topology`: options, report and JSON file."""

import json

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from tests.analysis.synthetic_flow import HEADER, TIMES
from tests.quantities.flow.fits.test_scale import make
from tests.quantities.shown import shown


@pytest.mark.slow
def test_the_charge_is_written_and_shown(tmp_path):
    result = gauge_mc.fit("topology", make(tmp_path, 300))
    found, content = result.topology, json.loads((tmp_path / "topology.json").read_text())
    for name in ("mean", "square", "kurtosis", "susceptibility", "susceptibility_t0"):
        one = getattr(found, name)
        assert (content[name]["value"], content[name]["error"]) == (one.value, one.error)
        assert str(one) in shown(result)
    assert content["fourth_root_scale_error"] == found.fourth_root_scale_error > 0
    assert 100 < found.fourth_root.value < 300
    assert (content["charge"], content["rounded"]) == ("clover", False)
    assert (content["configurations"], content["updates"]) == (300, 10)
    assert content["ensemble"]["beta"] == HEADER["beta"]
    text = shown(result)
    for word in (f"t/a² = {found.t:g}", "arXiv:1503.05652", "0.067", str(found.t0), "1.1"):
        assert word in text
    assert "nan" not in text


@pytest.mark.slow
def test_options(tmp_path):
    make(tmp_path, 300)
    rounded = gauge_mc.fit("topology", tmp_path, round=True, t=2.0, charge="improved").topology
    assert (rounded.rounded, rounded.t, rounded.charge) == (True, 2.0, "improved")
    assert rounded.alpha == pytest.approx(1.0, abs=0.01)
    assert rounded.square.value * 300 == pytest.approx(np.rint(rounded.square.value * 300))
    scaled = gauge_mc.fit("topology", tmp_path, sqrt_t0=0.2, target=0.1, tree_level=True).topology
    assert scaled.fourth_root_scale_error == 0
    assert scaled.source == "given with --sqrt-t0"


def test_without_t0(tmp_path):
    result = gauge_mc.fit("topology", make(tmp_path, 300, t=TIMES[:15]))
    content = json.loads((tmp_path / "topology.json").read_text())
    assert (content["t"], content["t0"], content["fourth_root"]) == (1.4, None, None)
    assert "the last one" in shown(result)
    assert "t0 is not known" in shown(result)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        (
            {"t": 9.0},
            GaugeError,
            "--t is 9, but the flow ends at t/a² = 4; √.8t. is half of 16x16x16x32 at t/a² = 8",
        ),
        ({"t": -1.0}, UsageError, "--t is -1; give a flow time between 0 and 4"),
        ({"charge": "wrong"}, UsageError, "--charge is 'wrong'; choose clover or improved"),
        ({"energy": "wrong"}, UsageError, "--energy is 'wrong'; choose clover"),
        ({"target": 0.0}, UsageError, "--target is 0; give a positive number"),
        ({"w0": 0.17}, UsageError, "--w0 is not an option of fit topology"),
    ],
)
def test_what_is_refused(tmp_path, options, error, sentence):
    make(tmp_path, 12)
    with pytest.raises(error, match=sentence):
        gauge_mc.fit("topology", tmp_path, **options)
    assert not (tmp_path / "topology.json").exists()

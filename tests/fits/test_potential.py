"""Results of fits of the static potential: JSON files and reports."""

import io
import json
from dataclasses import asdict

import numpy as np
import pytest
from rich.console import Console

from gauge_mc.analysis.potential import static_potential
from gauge_mc.errors import GaugeError
from gauge_mc.fits.potential import PotentialResult, read_result
from tests.analysis.synthetic_loops import SIGMA, potential, synthetic_loops


def steady(samples=100, **options):
    return synthetic_loops(np.random.default_rng(0), samples, 5, **options)


def test_json_holds_everything(tmp_path):
    path = tmp_path / "potential.json"
    for sigma in (SIGMA, -0.02):  # the latter has no scale: null in the file
        result = static_potential([steady(sigma=sigma)], t_min=1, ensemble={"beta": "2.5"})
        PotentialResult(result).write(path)
        assert repr(asdict(read_result(path))) == repr(asdict(result))  # nan equals nan
    assert json.loads(path.read_text())["free"]["fit"]["r0"]["value"] is None


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"observable": 1, "units": 2, "points": 3}'])
def test_damaged_json_ends_in_one_sentence(tmp_path, content):
    path = tmp_path / "potential.json"
    with pytest.raises(GaugeError, match="make it with gauge-mc fit potential"):
        read_result(path)
    path.write_text(content)
    with pytest.raises(GaugeError, match="is damaged or not the result of a fit"):
        read_result(path)


def test_tables_show_the_results():
    result = static_potential([steady(60)], r_min=1)
    console = Console(width=200, file=io.StringIO())
    console.print(*PotentialResult(result).report())
    text = console.file.getvalue()
    shown = (result.free.fit.sigma, result.string.fit.r0, result.points[2].potential)
    for estimate in shown:
        assert str(estimate) in text
    assert "a (fm)" in text
    assert "60 configurations, 25 smearing iterations" in text
    assert "one standard deviation" in text  # how the plateaus were chosen
    assert "1 to 5" in text
    assert potential(1.0) == pytest.approx(result.points[0].potential.value, abs=0.02)

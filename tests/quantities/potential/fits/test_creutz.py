import json
import math

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import with_error
from gauge_mc.errors import UsageError
from gauge_mc.quantities.potential.loop_tables import creutz_ratios
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.quantities.shown import shown


def test_ratios_are_written_and_shown(tmp_path):
    on, off = (synthetic_loops(np.random.default_rng(1), 50, 6, path) for path in ("100", "110"))
    on.values[:, 5, 5] -= 0.1  # not positive: a loop without a logarithm
    table = write_loops(tmp_path / "wilson_loops.csv", off, on)
    result = gauge_mc.fit("creutz", tmp_path)
    expected = creutz_ratios(on)
    content = json.loads((tmp_path / "creutz.json").read_text())
    for key, array in (("chi", expected.value), ("error", expected.error)):
        assert content[key][5][5] is None
        content[key][5][5] = np.nan
        np.testing.assert_array_equal(content[key], array)
    assert (content["r"], content["t"]) == ([1, 2, 3, 4, 5, 6],) * 2
    assert (content["smearing"], content["configurations"]) == (25, 50)
    assert content["ensemble"] == {"group": "su2", "beta": "2.5", "lattice": "16x16x16x32"}
    text = shown(result)
    assert "T = R + 3" in text
    assert with_error(expected.value[1, 2], expected.error[1, 2]) in text
    assert "nan" not in text
    (tmp_path / "creutz.json").unlink()
    assert gauge_mc.fit("creutz", table, level=25).values()["smearing"] == 25
    assert (tmp_path / "creutz.json").exists()


def test_chains_are_joined(tmp_path):
    loops = synthetic_loops(np.random.default_rng(1), 400, 4)
    runs = [tmp_path / name for name in ("a", "b")]
    for run in runs:
        run.mkdir()
        write_loops(run / "wilson_loops.csv", loops)
    single, joint = (gauge_mc.fit("creutz", some).values() for some in (runs[0], tmp_path))
    np.testing.assert_allclose(joint["chi"], single["chi"], rtol=1e-12)
    ratio = np.array(joint["error"]) / single["error"]
    np.testing.assert_allclose(ratio, math.sqrt(0.5), rtol=0.15)


def test_other_options_are_refused(tmp_path):
    write_loops(tmp_path / "wilson_loops.csv", synthetic_loops(np.random.default_rng(1), 10, 4))
    with pytest.raises(UsageError, match="--r-min is not an option of fit creutz"):
        gauge_mc.fit("creutz", tmp_path, r_min=2.0)
    with pytest.raises(UsageError, match=r"--level is .*; give a whole number"):
        gauge_mc.fit("creutz", tmp_path, level="many")
    assert not (tmp_path / "creutz.json").exists()

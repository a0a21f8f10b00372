import numpy as np
import pytest

import gauge_mc
from gauge_mc.plots import PLOTS
from tests.analysis.synthetic_loops import synthetic_loops, write_loops


@pytest.mark.slow
@pytest.mark.parametrize("name", ["potential", "wilson-loops"])
def test_a_fit_of_other_configurations_is_drawn_with_a_warning(tmp_path, capsys, name):
    table, plot = tmp_path / "wilson_loops.csv", PLOTS[name]
    write_loops(table, synthetic_loops(np.random.default_rng(1), 40))
    gauge_mc.fit("potential", tmp_path)
    assert plot.draw([tmp_path], tmp_path / "first.png") == []
    assert capsys.readouterr().err == ""
    table.unlink()
    write_loops(table, synthetic_loops(np.random.default_rng(1), 50))
    plot.draw([tmp_path], tmp_path / "second.png")
    warning = capsys.readouterr().err
    assert "potential.json was fitted to 40 configurations" in warning
    assert f"contains 50; run gauge-mc fit potential {tmp_path}" in warning
    assert warning.count("\n") == 1
    gauge_mc.fit("potential", tmp_path)
    plot.draw([tmp_path], tmp_path / "third.png")
    assert capsys.readouterr().err == ""
    table.unlink()
    if name == "potential":  # the fit is enough
        plot.draw([tmp_path], tmp_path / "fourth.png")
        assert capsys.readouterr().err == ""

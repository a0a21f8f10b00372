import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import UsageError
from gauge_mc.plots import PLOTS
from gauge_mc.plots.potential import read_potential
from gauge_mc.plots.runs.cautions import noted_cautions
from tests.analysis.synthetic_loops import (
    synthetic_loops,
    synthetic_matrices,
    write_loops,
    write_matrices,
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["potential", "wilson-loops"])
def test_a_fit_of_other_configurations_is_drawn_with_a_warning(tmp_path, name):
    table = tmp_path / "wilson_loops.csv"

    def cautions(image):
        with noted_cautions() as found:
            assert PLOTS[name].draw([tmp_path], tmp_path / image) == []
        return found

    write_loops(table, synthetic_loops(np.random.default_rng(1), 40))
    gauge_mc.fit("potential", tmp_path)
    assert cautions("first.png") == []
    table.unlink()
    write_loops(table, synthetic_loops(np.random.default_rng(1), 50))
    (warning,) = cautions("second.png")
    assert "potential.json was fitted to 40 configurations" in warning
    assert f"contains 50; run gauge-mc fit potential {tmp_path}" in warning
    gauge_mc.fit("potential", tmp_path)
    assert cautions("third.png") == []
    table.unlink()
    if name == "potential":  # the fit is enough
        assert cautions("fourth.png") == []


def test_a_result_is_chosen_by_name(tmp_path):
    matrices = synthetic_matrices(np.random.default_rng(1), 40, size=5)
    write_matrices(tmp_path / "wilson_loops.csv", matrices)
    gauge_mc.fit("potential", tmp_path, levels="0,25", r_min=1)
    assert read_potential(tmp_path).levels == (0, 25)
    gauge_mc.fit("potential", tmp_path, level=25, t_min=3, r_min=1)
    assert read_potential(tmp_path, "potential_25.json").levels == ()
    with pytest.raises(UsageError, match=r"choose one of potential_0_25\.json, potential_25\.json"):
        read_potential(tmp_path)
    for name, options in (
        ("wilson-loops", {"levels": "0,25"}),
        ("wilson-loops", {"level": 25}),
        ("static-force", {"result": "potential_0_25.json"}),
    ):
        file = tmp_path / "plot.png"
        assert PLOTS[name].draw([tmp_path], file, **options) == []
        assert file.stat().st_size > 8000
        file.unlink()
    with pytest.raises(UsageError, match="no loops along 110"):
        PLOTS["wilson-loops"].draw([tmp_path], tmp_path / "plot.png", levels="0,25", path="110")

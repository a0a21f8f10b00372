import json
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import UsageError
from gauge_mc.fits.files import FitOfOtherTablesError, exactly_of_tables
from gauge_mc.plots import PLOTS
from gauge_mc.plots.runs import noted_cautions
from gauge_mc.quantities.potential.plots import read_potential
from tests.analysis.synthetic_loops import (
    synthetic_loops,
    synthetic_matrices,
    write_loops,
    write_matrices,
)


def drawn(name, run):
    """Draw a figure of a run; return its cautions about the file of a fit."""
    with noted_cautions() as found:
        assert PLOTS[name].draw([run], run / "figure.png") == []
    return [one.sentence for one in found if "potential.json" in one.sentence]


def first_of(loops, number):
    return replace(loops, sweeps=loops.sweeps[:number], values=loops.values[:number])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["potential", "wilson-loops"])
def test_a_fit_of_fewer_configurations_is_drawn_with_a_caution(tmp_path, sketched, name):
    table, loops = tmp_path / "wilson_loops.csv", synthetic_loops(np.random.default_rng(1), 50)
    write_loops(table, first_of(loops, 40))
    gauge_mc.fit("potential", tmp_path)
    assert drawn(name, tmp_path) == []
    table.unlink()
    write_loops(table, loops)
    (caution,) = drawn(name, tmp_path)
    assert "potential.json was made before the last rows of wilson_loops.csv; make it" in caution
    assert caution.endswith(f"again with `gauge-mc fit potential {tmp_path}`.")
    with exactly_of_tables(), pytest.raises(FitOfOtherTablesError, match="before the last rows"):
        drawn(name, tmp_path)
    gauge_mc.fit("potential", tmp_path)
    with exactly_of_tables():
        assert drawn(name, tmp_path) == []


@pytest.mark.slow
def test_a_fit_of_another_table_is_not_drawn(tmp_path, sketched):
    """The content decides, and neither the name nor the number of configurations."""
    table = tmp_path / "wilson_loops.csv"
    write_loops(table, synthetic_loops(np.random.default_rng(1), 40))
    gauge_mc.fit("potential", tmp_path)
    (stored,) = json.loads((tmp_path / "potential.json").read_text())["tables"]
    content = table.read_bytes().partition(b"# sha256")[0]
    assert stored["file"] == "wilson_loops.csv"
    assert (stored["size"], stored["sha256"]) == (len(content), sha256(content).hexdigest())
    table.rename(tmp_path / "other.csv")
    assert drawn("potential", tmp_path) == []
    (tmp_path / "other.csv").unlink()
    assert drawn("potential", tmp_path) == []  # the fit is enough
    write_loops(table, synthetic_loops(np.random.default_rng(2), 40))
    sentence = "was made from another table than wilson_loops.csv is now, so that it is not shown"
    with pytest.raises(FitOfOtherTablesError, match=sentence):
        drawn("potential", tmp_path)
    (caution,) = drawn("wilson-loops", tmp_path)  # without the plateaus
    assert sentence in caution


@pytest.mark.slow
def test_a_fit_of_an_earlier_version_does_not_say_of_which_table_it_is(tmp_path, sketched):
    table, file = tmp_path / "wilson_loops.csv", tmp_path / "potential.json"
    write_loops(table, synthetic_loops(np.random.default_rng(1), 40))
    gauge_mc.fit("potential", tmp_path)
    content = json.loads(file.read_text())
    del content["tables"]
    file.write_text(json.dumps(content))
    (caution,) = drawn("potential", tmp_path)
    assert "does not say whether it was made from the present wilson_loops.csv; make" in caution
    with exactly_of_tables(), pytest.raises(FitOfOtherTablesError, match="does not say whether"):
        drawn("potential", tmp_path)


@pytest.mark.slow
def test_a_result_is_chosen_by_name(tmp_path):
    matrices = synthetic_matrices(np.random.default_rng(1), 40, size=5)
    write_matrices(tmp_path / "wilson_loops.csv", matrices)
    gauge_mc.fit("potential", tmp_path, levels="0,25")
    assert read_potential(tmp_path).levels == (0, 25)
    gauge_mc.fit("potential", tmp_path, level=25)
    assert read_potential(tmp_path, "potential_25.json").levels == (25,)
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
    with pytest.raises(UsageError, match=r"no loops along \(1,1,0\)"):
        PLOTS["wilson-loops"].draw([tmp_path], tmp_path / "plot.png", levels="0,25", path="110")

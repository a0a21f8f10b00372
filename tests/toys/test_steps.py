"""The plot of the numbers of rows."""

import pytest

from gauge_mc.plots import PLOTS
from tests.calls import make_run


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", measure="plaquette,polyakov", precision="single")


def test_there_is_a_bar_for_every_table(run, tmp_path):
    assert PLOTS["steps"].draw([run], tmp_path / "steps.svg") == ["2 tables"]
    text = (tmp_path / "steps.svg").read_text()
    assert "<!-- plaquette -->" in text
    assert "<!-- polyakov -->" in text

"""The section of reports, in the page of a run."""

import pytest

from gauge_mc.reports.page import report
from tests.calls import make_run


@pytest.mark.kernels
def test_it_names_every_table(tmp_path):
    run = make_run(tmp_path / "run", group="su2", precision="single", measure="plaquette")
    report(run, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Numbers of rows</h2><p>SU(2), " in page
    assert ", plaquette.csv: 9 rows</p>" in page

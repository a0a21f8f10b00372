"""The command that prints means, for a table that is made by hand."""

from gauge_mc.files.table import write_table
from tests.calls import call


def test_it_prints_the_means_of_numbers(tmp_path):
    table = tmp_path / "some.csv"
    write_table(table, {}, ("sweep", "trace"), [(1, 0.25), (2, 0.75)])
    assert call("column-means", table) == ("sweep 1.5\ntrace 0.5\n", 0)

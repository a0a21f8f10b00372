"""The conversion of a table that is made by hand."""

import pytest

from gauge_mc.errors import UsageError
from gauge_mc.files.table import read_table, write_table
from gauge_mc.run.convert import CONVERSIONS


def test_columns_are_written_in_their_order(tmp_path):
    source, target = tmp_path / "some.csv", tmp_path / "few.csv"
    write_table(source, {"group": "su2"}, ("sweep", "re", "im"), [(1, 0.5, 2.0), (2, 0.75, 3.0)])
    chosen = CONVERSIONS["columns"], {"columns": "im,sweep"}
    words, report = chosen[0].convert(source, target, chosen[1])
    assert (words, report.file) == (f"{target}: 2 rows", str(target))
    table = read_table(target)
    assert table.header == {"group": "su2"}
    assert {name: values.tolist() for name, values in table.columns.items()} == {
        "im": [2.0, 3.0],
        "sweep": [1, 2],
    }
    with pytest.raises(UsageError, match=r"few\.csv already exists"):
        chosen[0].convert(source, target, chosen[1])
    with pytest.raises(UsageError, match="There is no column 'weep'; did you mean 'sweep'"):
        chosen[0].convert(source, tmp_path / "other.csv", {"columns": "weep"})

"""The series of a program that has been made up, as a table."""

import pytest

from gauge_mc.errors import UnsupportedError
from gauge_mc.files.foreign import LEFT_OUT
from gauge_mc.files.table import read_table

HISTORY = "trajectory plaquette\n10 0.5\n20 0.625\n"


def test_whole_lines_are_read(tmp_path):
    path = tmp_path / "history"
    for rest, left_out in (("", ""), ("30 0.6", "The last line is incomplete and was left out.")):
        path.write_text(HISTORY + rest)
        table = read_table(path)
        assert table["sweep"].tolist() == [10, 20]
        assert table["plaquette"].tolist() == [0.5, 0.625]
        assert table.header[LEFT_OUT] == left_out
    path.write_text(HISTORY + "30\n")
    with pytest.raises(UnsupportedError, match="cannot be read"):
        read_table(path)

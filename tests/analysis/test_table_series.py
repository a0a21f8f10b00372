from pathlib import Path

import numpy as np
import pytest

from gauge_mc.analysis.table_series import read_series
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.files.table import write_table

COLUMNS = TableColumns(
    Column("r", int, "distance", index=True), Column("value", float, "value at the distance")
)


def write(path: Path, sweeps, header, distances=(1, 2)) -> Path:
    rows = [(n, r, n + r / 10) for n in sweeps for r in distances]
    write_table(path, {"beta": "2.3", **header}, ("sweep", "r", "value"), rows)
    return path


def test_chains_of_one_ensemble_are_joined(tmp_path):
    first = write(tmp_path / "a.csv", range(10, 60, 10), {"seed": "1", "start": "cold"})
    second = write(tmp_path / "b.csv", range(20, 100, 20), {"seed": "2", "start": "hot"})
    found = read_series([first, second], COLUMNS, "values", (20, 0), 7)
    assert found.sweeps.tolist() == [30, 40, 50, 20, 40, 60, 80]
    assert (found.replicas.lengths, found.replicas.spacings) == ((3, 4), (10, 20))
    assert found.replicas.names == (str(first), str(second))
    np.testing.assert_allclose(found.values["value"][:, 1], found.sweeps + 0.2)
    alone = read_series(first, COLUMNS, "values", 20, 3)
    assert (alone.replicas.lengths, alone.replicas.spacings) == ((3,), (10,))
    assert alone.replicas.names == ()
    for tables, name in (([first, second], "a.csv, .*b.csv"), (first, "a.csv")):
        with pytest.raises(GaugeError, match=f"{name} has . configurations, and at least 10 are"):
            read_series(tables, COLUMNS, "values")


@pytest.mark.parametrize(
    ("header", "distances", "words"),
    [
        ({"beta": "2.4"}, (1, 2), r"'beta' \(2.3 and 2.4\)"),
        ({"smearing": "5"}, (1, 2), r"'smearing' \(none and 5\)"),
        ({}, (1, 3), "the rows of values of every configuration"),
    ],
)
def test_chains_of_other_parameters_or_elements_are_refused(tmp_path, header, distances, words):
    first = write(tmp_path / "a.csv", range(5), {})
    second = write(tmp_path / "b.csv", range(5), header, distances)
    with pytest.raises(GaugeError, match=f"a.csv and .*b.csv differ in {words}, so that they"):
        read_series([first, second], COLUMNS, "values", fewest=1)

"""Tables in notebooks and in the forms of other libraries."""

import sys

import numpy as np
import pytest

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import TableData

LOOPS = TableData(
    {"observable": "loops <b>", "beta": "2.5"},
    {
        "sweep": np.array([10, 10, 10, 10, 20, 20, 20, 20, 30]),
        "path": np.array([*["110", "110", "100", "100"] * 2, "110"]),
        "r": np.array([2, 1] * 4 + [2]),
        "loop": np.arange(9) / 4,
    },
)
"""Wilson loops whose last configuration is incomplete."""

SERIES = TableData({}, {"sweep": np.arange(1, 41), "plaquette": np.arange(40) / 40})


def test_a_table_is_a_mapping_of_columns():
    assert list(LOOPS) == list(LOOPS.keys()) == ["sweep", "path", "r", "loop"]
    assert dict(LOOPS) == {name: LOOPS[name] for name in LOOPS}
    assert "loop" in LOOPS
    assert "loops" not in LOOPS
    assert len(LOOPS) == 9
    with pytest.raises(UsageError, match="There is no column 'lop'; did you mean 'loop'") as caught:
        LOOPS["lop"]
    assert isinstance(caught.value, KeyError)


def test_rows_have_numbers_of_python():
    first, *_, last = LOOPS.rows()
    assert first == {"sweep": 10, "path": "110", "r": 2, "loop": 0.0}
    assert last["loop"] == 2.0
    assert [type(value) for value in first.values()] == [int, str, int, float]


@pytest.mark.slow
def test_a_table_becomes_a_frame_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = LOOPS.to_pandas()
    assert list(frame.columns) == list(LOOPS)
    assert frame.attrs["beta"] == "2.5"
    pandas.testing.assert_series_equal(frame["loop"], pandas.Series(LOOPS["loop"], name="loop"))


@pytest.mark.slow
def test_a_table_becomes_a_data_set_of_xarray():
    pytest.importorskip("xarray")
    data = LOOPS.to_xarray()
    assert data.loop.dims == ("sweep", "path", "r")
    assert data.loop.shape == (3, 2, 2)
    assert list(data.path.values) == ["110", "100"]  # as in the table
    assert data.attrs["beta"] == "2.5"
    for row in LOOPS.rows():
        value = row.pop("loop")
        assert data.loop.sel(row) == value
    assert int(data.loop.isnull().sum()) == 3
    series = SERIES.to_xarray()
    assert series.plaquette.dims == ("sweep",)
    np.testing.assert_array_equal(series.plaquette, SERIES["plaquette"])
    assert TableData({}, {"sweep": np.arange(0), "x": np.arange(0)}).to_xarray().sizes["sweep"] == 0


@pytest.mark.slow
def test_rows_that_cannot_be_told_apart_are_refused():
    with pytest.raises(GaugeError, match="Two rows of the table are equal"):
        TableData({}, {"a": np.ones(2), "b": np.ones(2)}).to_xarray()


def test_a_notebook_shows_the_ends_of_a_table():
    short, long = LOOPS._repr_html_(), SERIES._repr_html_()
    assert "loops &lt;b&gt;" in short
    assert "<b>" not in short
    assert short.count("<tr>") == 1 + 9
    assert long.count("<tr>") == 1 + 11
    assert "<td>0.975</td>" in long
    assert "⋮" in long


@pytest.mark.parametrize("library", ["pandas", "xarray"])
def test_a_library_that_is_missing_is_named(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(GaugeError, match=rf"needs the Python package {library}.*\[notebook\]"):
        getattr(SERIES, f"to_{library}")()

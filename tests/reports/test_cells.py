"""Runs, tables and potentials in notebooks: charts without scripts, strings as text."""

import re

import numpy as np
import pytest

import gauge_mc
from gauge_mc.files.table import read_table, write_table
from gauge_mc.run.thermalisation import found_thermalisation
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.reports.pages import HOSTILE, write_columns, write_run
from tests.reports.test_page import Reader


def pictures(shown):
    """The drawings in what a cell shows, which has neither scripts nor styles, and closes tags."""
    tags = [tag for tag, _ in Reader(shown).tags]
    assert not {"script", "style", "img"} & {*tags}
    found = re.findall(r"<svg.*?</svg>", shown, re.S)
    assert "class=" not in "".join(found)
    return found


def test_a_run_shows_its_first_quantity_and_its_cut(tmp_path):
    run = write_run(tmp_path / HOSTILE.replace("/", ""))
    shown = gauge_mc.open_run(run)._repr_html_()
    (picture,) = pictures(shown)
    cut = found_thermalisation(run).update
    assert f"The shaded updates, up to {cut}," in shown
    assert 'fill-opacity="0.12"' in picture
    assert "plaquette" in picture
    assert HOSTILE.replace("/", "") not in shown


def test_a_table_shows_its_first_quantity_if_it_has_a_row_per_measurement(tmp_path):
    values = np.arange(30) % 7
    write_columns(tmp_path / "mine.csv", {"value": values}, {"observable": HOSTILE})
    shown = read_table(tmp_path / "mine.csv")._repr_html_()
    assert len(pictures(shown)) == 1
    assert HOSTILE not in shown
    path = tmp_path / "rows.csv"
    write_table(path, {"observable": "mine"}, ("sweep", "t", "v"), [(1, 1, 0.5), (1, 2, 0.7)])
    assert pictures(read_table(path)._repr_html_()) == []


@pytest.mark.slow
def test_a_potential_shows_its_points_and_the_fit(tmp_path):
    write_loops(tmp_path / "wilson_loops.csv", synthetic_loops(np.random.default_rng(1), 200))
    result = gauge_mc.fit("potential", tmp_path)
    (picture,) = pictures(result._repr_html_())
    assert f'aria-label="Static potential at {len(result.potential.points)} distances' in picture
    (dots,) = re.findall(r'd="([^"]*)"[^>]*stroke-width="6"', picture)
    assert dots.count("M") == len(result.potential.points)
    assert result.potential.best
    assert 'fill-opacity="0.25"' in picture  # the band of the fit


@pytest.mark.parametrize("samples", [0, 1])
def test_short_tables_are_shown(tmp_path, samples):
    write_columns(tmp_path / "mine.csv", {"value": [1.0]}, {})
    table = read_table(tmp_path / "mine.csv")
    empty = type(table)(table.header, {name: one[:samples] for name, one in table.columns.items()})
    assert len(pictures(empty._repr_html_())) == samples

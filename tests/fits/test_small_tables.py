"""Every fit and every plot of tables of small lattices and of few rows: a result, or a sentence.

Tables are cut from those of larger lattices by their declared columns, so that fits, plots and
observables that are added are tried as well.
"""

from itertools import product

import pytest

import gauge_mc
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP
from gauge_mc.fits import FITS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.plots import PLOTS
from tests.fits.tables import has_table, write_tables

CONFIGURATIONS = (0, 1, 10)
EXTENTS = (2, 4, 6)


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("tables"))


def cut(source, target, configurations, extent, largest):
    """Write the rows of the first configurations with indices up to `largest`, of a small lattice.

    An index may count times or the sides of loops, so that several limits are tried.
    """
    lines = [line for line in source.read_text().splitlines() if not line.startswith("# conf")]
    head = [line for line in lines if line.startswith("# ") and ": " in line]
    columns, *rows = (line for line in lines if not line.startswith("#"))
    values = dict(line[2:].split(": ", 1) for line in head)
    values["lattice"] = "x".join([str(extent)] * 4)
    names = columns.split(",")
    known = OBSERVABLES[values["observable"].replace("_", "-")].columns
    indices = [names.index(one.name) for one in known if one.index and one.name in names]
    sweep = names.index(SWEEP)
    first = list(dict.fromkeys(row.split(",")[sweep] for row in rows))[:configurations]

    def is_kept(row):
        words = row.split(",")
        numbers = [words[place] for place in indices if words[place].isdecimal()]
        return words[sweep] in first and all(int(one) <= largest for one in numbers)

    header = [f"# {name}: {value}" for name, value in values.items()]
    target.write_text("\n".join([*header, columns, *filter(is_kept, rows)]) + "\n")
    return target


def outcomes(tables, folder, configurations, act):
    """Do something with cut tables of every fit; return the number of results, and sentences."""
    results, sentences = 0, []
    for name, extent, half in product(FITS, EXTENTS, (True, False)):
        if has_table(name, tables):
            source = FITS[name].find_table(tables, {})
            largest = extent // 2 if half else extent - 1
            table = cut(source, folder / source.name, configurations, extent, largest)
            try:
                act(name, table)
                results += 1
            except GaugeError as error:
                sentences.append(str(error))
    assert all(one.endswith((".", "?")) for one in sentences)
    return results, sentences


@pytest.mark.slow
@pytest.mark.parametrize("configurations", CONFIGURATIONS)
def test_fits_of_small_tables_end_in_a_result_or_a_sentence(tables, tmp_path, configurations):
    def act(name, table):
        gauge_mc.fit(name, table).whole_report()

    results, sentences = outcomes(tables, tmp_path, configurations, act)
    assert sentences
    assert bool(results) == (configurations >= 10)


@pytest.mark.slow
@pytest.mark.parametrize("configurations", CONFIGURATIONS)
@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.usefixtures("sketched")
def test_plots_of_small_tables_end_in_a_figure_or_a_sentence(
    tables, tmp_path, configurations, plot
):
    """The plot of the folder in which one table is small; most plots need another table."""

    def act(name, table):
        gauge_mc.plot(plot, tmp_path, tmp_path / "figure.png")

    outcomes(tables, tmp_path, configurations, act)

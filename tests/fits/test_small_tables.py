"""Every fit and every plot of tables of small lattices and of few rows: a result, or a sentence.

Tables are cut from those of larger lattices by their declared columns, so that fits, plots and
observables that are added are tried as well. Measurements caution that fits need more.
"""

import json
import re
import shlex
import shutil
from itertools import product
from pathlib import Path

import pytest

import gauge_mc
from gauge_mc.errors import INTERRUPTED, GaugeError
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import read_table
from gauge_mc.fits import FITS, caution_few
from gauge_mc.observables import OBSERVABLES
from gauge_mc.plots import PLOTS
from tests.calls import call, make_run
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


CPU = ("--backend", "cpu", "--threads", "1")
FLOW = ("measure", "flow", "run", "--to", "0.4", *CPU)
WHOLE = (12, 1000)
"""An extent, and a largest index, to which no table is cut."""


@pytest.mark.first_quick
@pytest.mark.parametrize("name", FITS)
def test_a_fit_refuses_fewer_configurations_than_it_declares(tables, tmp_path, name):
    if FITS[name].of_scans or not has_table(name, tables):
        pytest.skip("it has no table by itself")
    source, fewest = FITS[name].find_table(tables, {}), FITS[name].fewest
    for further in source.parent.glob(f"{source.stem}_*.csv"):
        shutil.copy(further, tmp_path)
    number = "(2|two)" if fewest == 2 else fewest
    words = re.compile(f"at least {number} (configurations|are needed)")
    few, enough = (
        refusal(name, cut(source, tmp_path / source.name, some, *WHOLE))
        for some in (fewest - 1, fewest)
    )
    assert words.search(few)
    assert not words.search(enough)


def refusal(name, table):
    """The sentence by which a fit refuses a table; empty if it does not."""
    try:
        gauge_mc.fit(name, table)
    except GaugeError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """A folder with a run of three configurations, and another one that keeps none."""
    folder = tmp_path_factory.mktemp("few")
    make_run(folder / "run")
    make_run(folder / "none", format="none")
    return folder


@pytest.fixture
def folder(few, tmp_path, monkeypatch):
    shutil.copytree(few, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(shown):
    """The sentences about fits."""
    return [line for line in shown.splitlines() if " at least " in line]


@pytest.mark.slow
@pytest.mark.kernels
def test_too_few_configurations_for_fits_are_said_in_one_line_that_works(folder):
    line, *more = said(call(*FLOW)[0])
    assert more == []
    command = "gauge-mc generate --output run --configs 10"
    assert line == (
        "The fits scale and topology need at least 10 configurations, and flow.csv has 3; make "
        f"more with `{command}`, and repeat the command."
    )
    assert call(*shlex.split(command)[1:], *CPU, "--quiet")[1] == 0
    assert said(call(*FLOW)[0]) == []
    assert len({*read_table(folder / "run" / "flow.csv")["sweep"]}) == 10


@pytest.mark.kernels
def test_what_no_fit_needs_is_not_said(folder):
    shown, _ = call("measure", "plaquette", "run", *CPU)
    assert said(shown) == []
    assert said(call(*FLOW, "--quiet")[0]) == []


@pytest.mark.kernels
def test_the_document_has_the_sentence(folder):
    shown, _ = call(*FLOW, "--json")
    assert said("\n".join(json.loads(shown)["cautions"]))


@pytest.mark.slow
@pytest.mark.kernels
def test_an_unfinished_run_is_only_continued(folder):
    words = ("--configs", 100000, "--time-limit", "0:00:01", "--quiet")
    assert call("generate", "--output", "run", *words, *CPU)[1] == INTERRUPTED
    for path in sorted(Path("run/configs").iterdir())[9:]:
        path.unlink()
    line, *_ = said(call(*FLOW)[0])
    assert "make more with `gauge-mc generate --output run`, and" in line


@pytest.mark.slow
@pytest.mark.kernels
def test_configurations_made_again_are_asked_for_by_their_updates(folder):
    call("measure", "flow", "none", "--to", "0.4", "--at", "5", *CPU)
    line, *_ = said(call("measure", "flow", "none", "--to", "0.4", "--at", "8", *CPU)[0])
    command = "gauge-mc generate --output none --configs 10"
    assert line.endswith(f"continue the run with `{command}`, and measure more with --at 5:32:3.")
    assert call(*shlex.split(command)[1:], *CPU, "--quiet")[1] == 0
    shown, _ = call("measure", "flow", "none", "--to", "0.4", "--at", "5", *CPU)
    assert said(shown)[0].endswith("; measure more with --at 5:32:3.")
    shown, code = call("measure", "flow", "none", "--to", "0.4", "--at", "5:32:3", *CPU)
    assert (code, said(shown)) == (0, [])


@pytest.mark.kernels
def test_files_of_no_run_have_no_command(folder):
    files = sorted((folder / "run" / "configs").glob("*.lime"))
    shown, _ = call("measure", "flow", *files, "--to", "0.4", *CPU)
    assert said(shown)[0].endswith("flow.csv has 3; measure on more.")


@pytest.mark.slow
def test_the_runs_of_a_scan_are_continued_by_the_scan(folder):
    words = ("--lattice", "4x4x4x4", "--thermalize", 1, "--configs", 2, "--separation", 1)
    call("scan", "--output", "scan", "--beta", "2.2", *words, *CPU, "--quiet")
    line, *_ = said(call("measure", "flow", "scan", "--to", "0.4", *CPU)[0])
    command = "gauge-mc scan --output scan --configs 10"
    assert f"make more with `{command}`, and" in line
    assert call(*shlex.split(command)[1:], *CPU, "--quiet")[1] == 0
    assert said(call("measure", "flow", "scan", "--to", "0.4", *CPU)[0]) == []


def test_of_several_fits_the_one_is_named_that_needs_most(tables, tmp_path):
    table = cut(tables / "wilson_loops.csv", tmp_path / "wilson_loops.csv", 1, *WHOLE)
    (line,) = caution_few(read_table(table), table, None)
    assert line == (
        "The fit potential needs at least 10 configurations, and wilson_loops.csv has 1; measure "
        "on more."
    )

"""``gauge-mc plot`` as a user meets it."""

import contextlib
import io
import re
import shutil
import sys
from unittest import mock

import pytest

from gauge_mc import Lattice, generate, scan
from gauge_mc.cli import main
from gauge_mc.fields.field import Field
from gauge_mc.quantities.plaquette import plaquette
from tests.calls import call, make_run
from tests.cli.test_fit import make_loops

LEAST_BYTES = 10000
"""A figure with something in it is larger."""


def plot(*words):
    """Call ``gauge-mc plot`` with success; return what it printed, and its cautions."""
    out, cautions = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["gauge-mc", "plot", *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(cautions),
        pytest.raises(SystemExit) as end,
    ):
        main()
    assert end.value.code == 0
    return out.getvalue(), cautions.getvalue()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("made") / "run", format="none")


@pytest.fixture(scope="module")
def folders(made, tmp_path_factory):
    """Enough and too few loops, and a run."""
    path = tmp_path_factory.mktemp("folders")
    make_loops(path / "good", 20)
    make_loops(path / "few", 6)
    shutil.copytree(made, path / "run")
    return path


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


@pytest.mark.slow
def test_potentials(tmp_path):
    runs = [make_loops(tmp_path / name, 60, seed) for seed, name in enumerate("ab")]
    assert call("fit", "potential", *runs, "--separate")[1] == 0
    assert plot("potential", runs[0])[0] == f"{runs[0]}/potential.pdf\n"
    assert (runs[0] / "potential.pdf").read_bytes().startswith(b"%PDF")
    for words in (("potential", *runs), ("wilson-loops", runs[0])):
        file = tmp_path / f"{words[0]}.{'svg' if len(words) > 2 else 'png'}"
        assert str(file) in plot(*words, "--output", file)[0]
        assert file.stat().st_size > LEAST_BYTES


@pytest.mark.slow
def test_a_potential_of_another_table(tmp_path, sketched):
    run = make_loops(tmp_path / "a", 40)
    call("fit", "potential", run)
    assert "make it again" not in plot("potential", run)[1]
    result = (run / "potential.json").read_bytes()
    shutil.rmtree(run)
    make_loops(run, 40, seed=4)
    (run / "potential.json").write_bytes(result)
    out, code = call("plot", "potential", run)
    assert (code, "was made from another table than wilson_loops.csv is now" in out) == (1, True)
    assert f"make it again with `gauge-mc fit potential {run}`." in out
    assert plot("wilson-loops", run)[1].count("make it again") == 1
    call("fit", "potential", run)
    assert "make it again" not in plot("potential", run)[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        ("history", "polyakov-beta"),
        pytest.param(("plaquette", "polyakov", "plaquette-beta"), marks=pytest.mark.slow),
    ],
)
def test_histories_and_averages_against_beta(run, tmp_path, names):
    for what in names:
        shown = plot(what, run, "--output", tmp_path / f"{what}.png")[0]
        assert (tmp_path / f"{what}.png").stat().st_size > LEAST_BYTES
        assert ("SU(2), 4³×6" in shown) == what.endswith("-beta")


@pytest.mark.slow
def test_a_figure_lies_in_its_run(run, sketched):
    assert plot("history", run)[0] == f"{run}/history.pdf\n"
    assert (run / "history.pdf").exists()


@pytest.mark.parametrize(
    ("words", "sentence", "code"),
    [
        (("potential", "good"), "make it with `gauge-mc fit potential good`.", 1),
        (("history", "good"), "no table of plaquette in good", 1),
        (("wilson-loops", "good", "--path", "110"), "no loops along (1,1,0), only along (1,0,0", 2),
        (("wilson-loops", "good", "few"), "one run at a time", 2),
        (("polyakov", "run", "--output", "x.gif"), "let its name end in .pdf, .png or .svg", 2),
        (
            ("polyakov", "run", "--path", "110"),
            "--path is not an option of gauge-mc plot polyakov",
            2,
        ),
        (("energy", "good"), "There is no plot 'energy'", 2),
        (("good",), "Name the plot before good, as in `gauge-mc plot plaquette good`.", 2),
        (("plaquete", "good"), "did you mean 'plaquette'", 2),
        (("history", "no"), "There is no run no", 2),
        (("history",), "There are no runs and no scans in runs", 2),
    ],
)
def test_plots_that_are_refused(folders, monkeypatch, words, sentence, code):
    monkeypatch.chdir(folders)
    said, found = call("plot", *words)
    assert (sentence in said, found) == (True, code), said
    assert not [path for path in folders.rglob("*") if path.suffix in (".pdf", ".gif")]


TINY = {
    "group": "su2",
    "thermalize": 2,
    "configs": 5,
    "separation": 4,
    "format": "none",
    "backend": "cpu",
    "threads": 1,
    "progress": False,
}


@pytest.mark.slow
def test_a_scan_stands_for_its_runs(tmp_path, monkeypatch, sketched):
    monkeypatch.chdir(tmp_path)
    lattice = Lattice(4, 4, 4, 4)
    scan(**TINY, beta=[2.2, 2.4], lattice=[lattice], output="some")
    shown = plot("averages", "some")[0]
    assert "2.2" in shown
    assert "2.4" in shown
    assert shown.endswith("some/averages.pdf\n")
    for what in ("history", "polyakov", "plaquette"):
        assert plot(what, "some")[0] == f"some/{what}.pdf\n"
        assert (tmp_path / "some" / f"{what}.pdf").exists()
    assert plot("scan", "some")[0] == "some/scan.pdf\n"
    assert "one run at a time" in call("plot", "wilson-loops", "some")[0]
    for run in (tmp_path / "some").glob("b*"):
        shutil.rmtree(run)
    assert "No run of the scan some has begun" in call("plot", "averages", "some")[0]


def half(field: Field) -> float:
    """Half the plaquette"""
    return plaquette(field) / 2


def powers(field: Field) -> dict[str, float]:
    """Powers of the plaquette"""
    return {"first": plaquette(field), "second": plaquette(field) ** 2}


def both(field: Field) -> list[float]:
    """An array"""
    return [plaquette(field), 1.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        ("half", "averages"),
        pytest.param(("powers", "history", "half-beta"), marks=pytest.mark.slow),
    ],
)
def test_tables_of_functions_have_plots(tmp_path, monkeypatch, names):
    monkeypatch.chdir(tmp_path)
    generate(
        **TINY,
        lattice="4x4x4x4",
        measure="plaquette",
        output="run",
        observables=[half, (powers, 2), both],
    )
    for what in names:
        shown = plot(what, "run", "--output", f"{what}.svg")[0]
        assert (tmp_path / f"{what}.svg").stat().st_size > LEAST_BYTES
        assert ("half" in shown) == (what in ("half", "half-beta", "averages"))
    assert "no plot of the table both: it has several rows" in call("plot", "both", "run")[0]
    assert "did you mean 'half'" in call("plot", "halff", "run")[0]
    assert "There is no plot 'half'" in call("plot", "half", make_run(tmp_path / "other"))[0]


def test_plots_and_status_agree_on_the_length_of_a_series(tmp_path, sketched):
    run = make_run(tmp_path / "run", configs=8, format="none")
    length = re.compile(r"The series is only (\d+) τ_int long")
    shown, said = call("status", run)[0], plot("plaquette", run)[1]
    assert length.search(shown).group(1) == length.search(said).group(1)


@pytest.mark.slow
def test_thermalisation_in_averages(tmp_path, sketched):
    hot = make_run(tmp_path / "hot", thermalize=0, start="hot", format="none")
    for what in ("history", "plaquette", "polyakov", "averages"):
        caution = plot(what, hot)[1]
        assert f"The averages of {hot} include thermalisation" in caution
        assert "--skip N" in caution
        assert caution.count("gauge-mc: ") == caution.count("\n") == 2
        for found in (caution, plot(what, hot, "--skip", 4)[1]):
            assert re.search(r"csv: The series is only \d+ τ_int long, and 50 τ_int", found)
    assert "--skip 99 leaves no measurements" in call("plot", "history", hot, "--skip", 99)[0]
    assert "--skip 99 leaves nothing of" in call("plot", "averages", hot, "--skip", 99)[0]
    assert (
        "--skip is not an option of gauge-mc plot potential"
        in call("plot", "potential", hot, "--skip", 4)[0]
    )

"""Runs that Python reads: `open_run`, `plot`, `status` and `info`."""

import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import gauge_mc
from gauge_mc import GaugeError, UsageError, generate, info, open_run, plot, status
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.fits import FitResult
from gauge_mc.fits.files import read_fit
from gauge_mc.inspection.contents import ConfigurationInfo, RunInfo, ScanInfo
from gauge_mc.inspection.status import RunStatus, ScanStatus
from gauge_mc.plots.drawing import find_plot

pytestmark = pytest.mark.kernels

TINY = {"lattice": "4x4x4x4", "thermalize": 2, "configs": 4, "separation": 3}
HOW = {"backend": "cpu", "threads": 1, "progress": False}
R0 = Estimate(5.37, 0.03, 0.5, 0.1, 100)


class Answer(FitResult):
    """The result of a fit that failed in part."""

    def values(self):
        unknown = asdict(Estimate(*4 * [float("nan")], 0))
        found = {"r0": asdict(R0), "r1": unknown, "covariance": [[1, float("nan")]], "free": None}
        return {"observable": "potential", "units": "a", "points": [{"r": 1, "fit": found}]}

    def report(self):
        return []

    def quoted(self):
        return []


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The result of a run, with what was seen of it while it was written, and a fit."""
    path, seen = tmp_path_factory.mktemp("runs") / "one", []

    def look(chain):
        if chain.sweep in (5, 9):
            view = open_run(path)
            rows = len(view["plaquette"]) if "plaquette" in view.tables else 0
            seen.append((chain.sweep, rows, [*view.configurations], view.status().state))

    result = generate(TINY, output=path, on_update=look, **HOW)
    Answer().write(path / "answer.json")
    (path / "notes.json").write_text("{}")
    return result, seen


@pytest.fixture
def copy(made, tmp_path):
    shutil.copytree(made[0].path, tmp_path / "runs" / "one")
    (tmp_path / "runs" / "one" / "lock").unlink()
    return tmp_path / "runs" / "one"


def times(folder: Path):
    """The times at which the files and folders of a folder have changed."""
    return {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))}


def test_a_view_reads_what_the_run_has_written(made):
    result, _ = made
    view = open_run(result.path)
    assert repr(view) == f"<Run {result.path}: 14 of 14 updates>"
    assert view.parameters == result.parameters
    assert {*view.tables} == {"plaquette", "polyakov"}
    assert view["plaquette"].columns["sweep"].tolist() == [*range(3, 15)]
    assert view.averages == result.averages
    assert view.averages["plaquette"].value == view["plaquette"]["plaquette"].mean()
    assert Path(view) == result.path


@pytest.mark.slow
def test_nothing_is_written_or_locked(copy, monkeypatch):
    monkeypatch.chdir(copy.parent.parent)
    before = times(copy)
    view = open_run()  # the newest
    assert [len(table) for table in view.tables.values()] == [12, 12]
    assert len(view.averages) == 5
    view.configurations[5].to_numpy()
    assert view.fits["answer"]
    view.plot("history")
    assert view.status().state == status().state == "complete"
    info()
    assert times(copy) == before


def test_a_run_is_read_while_it_is_written(made):
    assert [sweep for sweep, *_ in made[1]] == [5, 9]
    for sweep, rows, configurations, state in made[1]:
        assert state == "running"
        assert 0 <= rows <= sweep - 2  # updates of the thermalisation are not measured
        assert configurations == [5, 8][: len(configurations)]


def test_a_table_with_half_a_row_is_read_up_to_it(copy):
    table = copy / "plaquette.csv"
    lines = table.read_bytes().splitlines(keepends=True)
    table.write_bytes(b"".join(lines[:-2]) + lines[-2][:-9])
    assert len(open_run(copy)["plaquette"]) == 11


def test_configurations_are_arrays_and_fields(made):
    configurations = open_run(made[0].path).configurations
    assert list(configurations) == [5, 8, 11, 14]
    one = configurations[8]
    links = one.to_numpy()
    assert links.shape == (4, 4, 4, 4, 4, 2, 2)
    assert links[3, 1, 0, 2, 3] == pytest.approx(np.linalg.inv(links[3, 1, 0, 2, 3]).conj().T)
    field = one.load(device=gauge_mc.open_device("cpu", 1))
    np.testing.assert_allclose(field.to_numpy(), links, atol=1e-7)
    with pytest.raises(UsageError, match="no configuration 9; the nearest is 8"):
        configurations[9]


def test_fits_are_read_back_with_their_errors(made):
    view = open_run(made[0].path)
    assert list(view.fits) == ["answer"]
    found = view.fits["answer"]["points"][0]["fit"]
    assert found["r0"] == R0
    assert f"{found['r0']}" == "5.370(30)"
    assert np.isnan(found["r1"].value)
    assert np.isnan(found["covariance"][0][1])
    assert found["free"] is None
    with pytest.raises(UsageError, match=r"There is no entry 'r00'; did you mean 'r0'\?"):
        found["r00"]
    with pytest.raises(GaugeError, match=r"notes.json is not the result of a fit"):
        read_fit(made[0].path / "notes.json")


def test_misspelt_names_are_answered_with_the_right_ones(made):
    run = made[0]
    with pytest.raises(UsageError, match=r"There is no table 'plaquete'; did you mean 'plaquette'"):
        run["plaquete"]
    with pytest.raises(KeyError, match=r"has no table of flow; make one with gauge_mc.measure"):
        run["flow"]
    with pytest.raises(KeyError, match=r"There is no entry 'plaquete'; did you mean 'plaquette'"):
        run.averages["plaquete"]
    with pytest.raises(
        UsageError, match="There is no configuration after update 0; the nearest is 5"
    ):
        run.configs[0]
    with pytest.raises(UsageError, match="There is no fit 'x'; choose answer"):
        run.fits["x"]


def test_a_misspelt_run_is_answered_with_the_nearest_one(copy):
    with pytest.raises(UsageError, match=r"There is no run .*/onee; did you mean '.*/one'\?"):
        open_run(copy.with_name("onee"))


def test_a_folder_of_runs_is_answered_with_one_of_them(copy):
    with pytest.raises(UsageError, match=r"itself; name the run in it, such as .*/one\.$"):
        open_run(copy.parent)
    shutil.copytree(copy, copy.with_name("two"))
    with pytest.raises(UsageError, match=r"name one of the 2 runs in it, such as .*/one\.$"):
        open_run(copy.parent)


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"There is no run in .*: it has no run.toml"):
        open_run(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"There is no run in .*file, which is a file; name"):
        open_run(tmp_path / "file")
    with pytest.raises(UsageError, match=r"There is no run .*nothing\.$"):
        open_run(tmp_path / "nothing")
    (tmp_path / "scan.toml").touch()
    with pytest.raises(UsageError, match="is a scan; open one of the runs in its folder"):
        open_run(tmp_path)


@pytest.mark.slow
def test_a_plot_is_a_figure(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib = pytest.importorskip("matplotlib")
    before = dict(matplotlib.rcParams)
    figure = plot("history", made[0], size=(5, 4), skip=3)
    assert [*tmp_path.iterdir()] == []
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert figure.get_size_inches().tolist() == [5, 4]
    assert len(figure.axes) == 4
    assert (
        figure.axes[0].lines[0].get_ydata().tolist() == made[0]["plaquette"]["plaquette"].tolist()
    )
    drawn = made[0].plot("plaquette", tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF-")
    assert len(drawn.axes) == 2 * 3
    find_plot("plaquette").draw([made[0].path], tmp_path / "b.pdf")
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.slow
def test_status_and_info_return_what_the_commands_print(made, tmp_path):
    run = made[0]
    found, facts = status(run), info(run)
    assert isinstance(found, RunStatus)
    assert found.averages["plaquette"].text == f"{run.averages['plaquette']}"
    assert repr(found.averages["plaquette"]) == repr(run.averages["plaquette"])
    assert [line.split()[0] for line in repr(found).splitlines()] == [*found.lines()]
    assert isinstance(facts, RunInfo)
    assert facts.sessions[0].device
    assert facts.configurations == 4
    file = info(run.configs[8])
    assert isinstance(file, ConfigurationInfo)
    row = [*run["plaquette"]["sweep"]].index(8)
    assert file.recomputed.mean == pytest.approx(run["plaquette"]["plaquette"][row], abs=1e-7)
    assert file.plaquette == file.stated["plaquette"] == pytest.approx(file.recomputed.mean)
    gauge_mc.scan(TINY, beta=2.5, output=tmp_path / "scan", **{**HOW, "configs": 0})
    scan, facts = status(tmp_path / "scan"), info(tmp_path / "scan")
    assert isinstance(scan, ScanStatus)
    assert isinstance(facts, ScanInfo)
    assert facts.grids[0].beta == (2.5,)

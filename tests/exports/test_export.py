"""``gauge-mc export``: exported files contain the data of the tables."""

import os
import shutil
import sys

import h5py
import numpy as np
import pytest

import gauge_mc
from gauge_mc.exports import EXPORTS
from gauge_mc.files.table import Table, read_table
from gauge_mc.registry import in_words
from tests.calls import call, make_run

LOOP_COLUMNS = ("sweep", "smearing", "path", "r", "t", "loop")

ENDINGS = in_words([one.ending for one in EXPORTS.values()], "or")

SWEEPS = [5, 8, 11, 14, 20, 23]
"""Numbers of the configurations with Wilson loops. The number 17 is missing."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Make a run with tables of its own, and one of Wilson loops with a gap."""
    path = make_run(
        tmp_path_factory.mktemp("export") / "run", configs=7, seed=3, measure="plaquette,polyakov:4"
    )
    write_loops(path / "wilson_loops.csv")
    return path


def write_loops(path):
    header = {"observable": "wilson_loops", "normalisation": "Re Tr / N"}
    with Table(path, header, LOOP_COLUMNS) as table:
        for sweep in SWEEPS:
            table.append(
                (sweep, level, way, r, t, loop(sweep, level, int(way), r, t))
                for level in (0, 25)
                for way in ("100", "110")
                for r in (1, 2)
                for t in (1, 2, 3)
            )


def loop(sweep, level, way, r, t):
    """Return a number that tells where it comes from."""
    return float(np.sin(sweep + 7 * level + way / 100 + 10 * r + 100 * t))


def test_hdf5_holds_tables_and_their_headers(run, tmp_path):
    out = tmp_path / "out.h5"
    assert call("export", run, out) == (f"{out}: plaquette, polyakov, wilson_loops\n", 0)
    with h5py.File(out) as h5:
        assert {k: h5.attrs[k] for k in ("group", "lattice", "beta", "seed")} == {
            "group": "su2",
            "lattice": "4x4x4x6",
            "beta": 2.5,
            "seed": 3,
        }
        assert set(h5) == {"plaquette", "polyakov", "wilson_loops"}
        for name in h5:
            table = read_table(run / f"{name}.csv")
            assert dict(h5[name].attrs) == table.header
            assert set(h5[name]) == set(table.columns)
            for key, column in table.columns.items():
                found = h5[name][key]
                words = found.asstr()[:] if column.dtype.kind == "U" else found[:]
                np.testing.assert_array_equal(words, column)
        assert h5["plaquette/sweep"].dtype == np.int64
        assert h5["plaquette/plaquette"].dtype == np.float64


def test_pyerrors_finds_names_replica_and_gaps(run, tmp_path, pyerrors):
    out = tmp_path / "out.json.gz"
    assert call("export", run, out) == (f"{out}: plaquette, polyakov, wilson_loops\n", 0)
    found = pyerrors.input.json.load_json_dict(str(out), verbose=False, full_output=True)
    assert found["description"]["parameters"]["beta"] == 2.5
    assert found["description"]["tables"]["plaquette"] == read_table(run / "plaquette.csv").header
    content = found["obsdata"]
    assert content.keys() == {"plaquette", "polyakov", "wilson_loops"}
    for name, sweeps in (("plaquette", range(3, 24)), ("polyakov", range(6, 23, 4))):
        columns = read_table(run / f"{name}.csv").columns
        assert content[name].keys() | {"sweep"} == columns.keys()
        for key, obs in content[name].items():
            check(obs, list(sweeps), columns[key])
    loops = content["wilson_loops"]
    assert len(loops) == 8
    corr = loops["smearing=25,path=110,r=2"]
    assert corr.content[0] is None
    for t in (1, 2, 3):
        check(corr[t], SWEEPS, [loop(sweep, 25, 110, 2, t) for sweep in SWEEPS])


def test_pyerrors_finds_the_times_of_multilevel_averages(tmp_path, pyerrors):
    path = make_run(tmp_path / "run", configs=6, measure="plaquette:3")
    header, times = {"observable": "wilson_loops", "t_step": "3"}, (3, 6, 9)
    with Table(path / "wilson_loops.csv", header, LOOP_COLUMNS) as table:
        for sweep in SWEEPS:
            table.append((sweep, 0, "100", 1, t, loop(sweep, 0, 100, 1, t)) for t in times)
    gauge_mc.export(path, tmp_path / "out.json.gz")
    content = pyerrors.input.json.load_json_dict(str(tmp_path / "out.json.gz"), verbose=False)
    corr = content["wilson_loops"]["smearing=0,path=100,r=1"]
    assert [t for t in range(corr.T) if corr.content[t] is not None] == [3, 6, 9]
    for t in times:
        expected = np.mean([loop(sweep, 0, 100, 1, t) for sweep in SWEEPS])
        assert corr[t].value == pytest.approx(expected)


def check(obs, sweeps, samples):
    name = "su2_b2.5_4x4x4x6|r3"
    assert obs.names == [name]
    assert obs.e_names == ["su2_b2.5_4x4x4x6"]
    assert list(obs.idl[name]) == sweeps
    np.testing.assert_allclose(obs.deltas[name] + obs.r_values[name], samples, rtol=0, atol=1e-14)
    obs.gamma_method()


@pytest.fixture
def other(tmp_path):
    """Make a run with tables of the user's own, and with Wilson loops of another name."""
    path = make_run(tmp_path / "other", configs=6, measure="plaquette:3")
    write_loops(path / "off_axis.csv")
    with Table(path / "energy.csv", {"observable": "energy"}, ("sweep", "value")) as table:
        table.append((sweep, sweep / 7) for sweep in SWEEPS)
    with Table(path / "tensor.csv", {"observable": "f"}, ("sweep", "i", "j", "value")) as table:
        for sweep in SWEEPS:
            table.append(
                (sweep, i, j, sweep + i / 10 + j / 100) for i in range(2) for j in range(3)
            )
    return path


def test_the_header_of_a_table_says_what_its_observable_is(other, tmp_path, pyerrors):
    out = tmp_path / "x.json.gz"
    assert call("export", other, out) == (f"{out}: energy, off_axis, plaquette, tensor\n", 0)
    content = pyerrors.input.json.load_json_dict(str(out), verbose=False)
    assert list(content["energy"]) == ["value"]
    value, name = content["energy"]["value"], "su2_b2.5_4x4x4x6|r1"
    np.testing.assert_allclose(value.deltas[name] + value.r_values[name], np.array(SWEEPS) / 7)
    assert len(content["off_axis"]) == 8
    corr = content["off_axis"]["smearing=0,path=110,r=1"]
    assert corr[3].value == pytest.approx(np.mean([loop(sweep, 0, 110, 1, 3) for sweep in SWEEPS]))
    assert set(content["tensor"]) == {f"value[{i},{j}]" for i in range(2) for j in range(3)}
    element = content["tensor"]["value[1,2]"]
    assert list(element.idl[name]) == SWEEPS
    assert element.value == pytest.approx(np.mean(SWEEPS) + 0.12)


def test_replica_of_one_ensemble_combine(run, tmp_path, pyerrors):
    other = make_run(tmp_path / "other", configs=5, seed=4)
    for path in (run, other):
        assert call("export", path, tmp_path / f"{path.name}.json.gz")[1] == 0
    load = pyerrors.input.json.load_json_dict
    both = [
        load(str(tmp_path / f"{path.name}.json.gz"), verbose=False)["plaquette"]["plaquette"]
        for path in (run, other)
    ]
    merged = pyerrors.merge_obs(both)
    assert merged.names == ["su2_b2.5_4x4x4x6|r3", "su2_b2.5_4x4x4x6|r4"]
    values = [read_table(path / "plaquette.csv").columns["plaquette"] for path in (run, other)]
    assert merged.value == pytest.approx(np.concatenate(values).mean(), abs=1e-14)


@pytest.mark.slow
def test_short_tables(run, tmp_path):
    short = make_run(tmp_path / "short", measure="plaquette,polyakov:3")
    shown, code = call("export", short, tmp_path / "out.json.gz")
    assert code == 0
    assert shown.endswith("out.json.gz: plaquette\nleft out, with fewer than 5 records: polyakov\n")
    none = make_run(tmp_path / "none", configs=1)
    shown, code = call("export", none, tmp_path / "none.json.gz")
    assert (code, "No table has the 5 records" in shown) == (1, True)
    assert call("export", none, tmp_path / "none.h5")[1] == 0
    empty = make_run(tmp_path / "empty", configs=0)
    assert call("export", empty, tmp_path / "empty.h5")[1] == 0
    assert call("export", empty, tmp_path / "empty.json.gz")[1] == 1


@pytest.fixture(scope="module")
def bad(run, tmp_path_factory):
    """A folder with runs that cannot be exported."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "run").symlink_to(run)
    (folder / "unmeasured").mkdir()
    plain = make_run(folder / "damaged")
    for name in ("disordered", "foreign", "alien", "torn", "uneven"):
        shutil.copytree(plain, folder / name)
    shutil.copy(plain / "run.toml", folder / "unmeasured")
    with (plain / "plaquette.csv").open("a") as table:
        table.write("12,0.5\n")
    table = folder / "disordered" / "plaquette.csv"
    table.write_text(table.read_text().partition("# sha256: ")[0] + "11,0.5,0.5,0.5\n")
    (folder / "foreign" / "plaquette.csv").write_text("a,b\n" + 6 * "c,d\n")
    (folder / "alien" / "wilson_loops.csv").write_text("sweep,r\n" + 6 * "1,2\n")
    (folder / "torn" / "wilson_loops.csv").write_text(
        "# observable: wilson_loops\nsweep,r\n" + 6 * "1,2\n"
    )
    (folder / "uneven" / "tensor.csv").write_text(
        "sweep,i,value\n1,0,0.5\n1,1,0.5\n2,0,0.5\n2,2,0.5\n"
    )
    return folder


@pytest.mark.parametrize(
    ("words", "sentence", "code"),
    [
        (["run", "out.csv"], f"let the name end in {ENDINGS}", 2),
        (["none", "out.h5"], "There is no run none", 2),
        (["run", "none/out.h5"], "There is no folder none", 2),
        (["run", "none/out.json.gz"], "There is no folder none", 2),
        (["unmeasured", "out.h5"], "has no tables", 1),
        (["damaged", "out.h5"], "damaged", 1),
    ],
)
def test_what_cannot_be_exported(bad, monkeypatch, words, sentence, code):
    monkeypatch.chdir(bad)
    before = sorted(os.listdir(bad))
    shown, found = call("export", *words)
    assert (sentence in shown, found) == (True, code)
    assert sorted(os.listdir(bad)) == before


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("disordered", "plaquette.csv is damaged"),
        ("foreign", "plaquette.csv is damaged"),
        ("alien", "wilson_loops.csv is damaged"),
        ("torn", "wilson_loops.csv has no column"),
        ("uneven", "tensor.csv is damaged"),
    ],
)
def test_tables_that_are_no_series(bad, monkeypatch, pyerrors, name, sentence):
    monkeypatch.chdir(bad)
    before = sorted(os.listdir(bad))
    shown, found = call("export", name, "out.json.gz")
    assert (sentence in shown, found) == (True, 1)
    assert sorted(os.listdir(bad)) == before


@pytest.mark.parametrize(
    ("library", "end", "extra"),
    [
        ("h5py", ".h5", "hdf5"),
        ("pyerrors", ".json.gz", "pyerrors"),
        ("pyarrow", ".parquet", "parquet"),
    ],
)
def test_missing_libraries(run, tmp_path, monkeypatch, library, end, extra):
    monkeypatch.setitem(sys.modules, library, None)
    shown, code = call("export", run, tmp_path / f"out{end}")
    assert code == 1
    assert f"pip install 'gauge-mc[{extra}]'" in shown
    assert os.listdir(tmp_path) == []

"""``gauge-mc export RUN OUT.parquet``: values, types and provenance of columns."""

import json
import os

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import DamagedError, UsageError
from gauge_mc.files.table import Origin, Table, read_table
from tests.calls import call, make_run

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow.parquet")

LOOPS = ("sweep", "smearing", "path", "r", "t", "loop")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Make a folder with two runs that differ in their couplings and seeds."""
    folder = tmp_path_factory.mktemp("parquet") / "runs"
    folder.mkdir()
    for seed, beta in ((1, 2.5), (2, 2.7)):
        make_run(folder / f"b{beta}", beta=beta, seed=seed, measure="plaquette,polyakov:3")
    return folder


@pytest.fixture(scope="module")
def run(runs):
    """A run with more tables, by hand."""
    path = runs / "b2.5"
    header = {"observable": "wilson_loops", "units": "t in lattice units"}
    with Table(path / "wilson_loops.csv", header, LOOPS) as table:
        for sweep in (5, 8):
            rows = [(sweep, 0, "100", 1, t, 1.0 if t == 1 else 0.1 / t) for t in (1, 2)]
            table.append(rows, Origin(f"{sweep}.lime", "MILC checksum 1 2"))
    with Table(path / "own.csv", {"observable": "own"}, ("sweep", "i", "value")) as table:
        table.append([(5, 0, 2**62 + 1), (5, 1, -3)])
    with Table(path / "empty.csv", {"observable": "wilson_loops"}, LOOPS):
        pass
    yield path
    for name in ("wilson_loops", "own", "empty"):
        (path / f"{name}.csv").unlink()


def same(found, wanted):
    """Whether two arrays have the same type and the same bits, or the same words."""
    assert found.dtype.kind == wanted.dtype.kind
    if found.dtype.kind == "U":
        return found.tolist() == wanted.tolist()
    return found.tobytes() == wanted.astype(found.dtype).tobytes()


def arrays(table):
    return {
        name: np.array(table[name].to_pylist())
        if table[name].type == pa.string()
        else table[name].to_numpy()
        for name in table.column_names
    }


def types(table):
    return [str(one.type) for one in table.schema]


@pytest.mark.parametrize("name", ["plaquette", "polyakov", "wilson_loops", "own"])
def test_values_are_those_of_the_table(run, tmp_path, name):
    out = tmp_path / "out.parquet"
    assert call("export", run, out, "--table", name) == (f"{out}: {name}\n", 0)
    table = read_table(run / f"{name}.csv")
    found = arrays(pa.parquet.read_table(out))
    assert [*found] == [*table]
    assert all(same(found[key], table[key]) for key in table)
    frame = pd.read_parquet(out)
    assert all((frame[key].to_numpy() == table[key]).all() for key in table)
    assert frame.attrs["table"] == name


def test_types_are_those_that_are_declared(run, tmp_path):
    """Also where all reals of a run are whole, and where there is none."""
    wanted = ["int64", "int64", "string", "int64", "int64", "double"]
    with Table(run / "whole.csv", {"observable": "wilson_loops"}, LOOPS) as table:
        table.append([(5, 0, "100", 1, 1, 1), (8, 0, "100", 1, 1, 0)])
    for name in ("wilson_loops", "whole", "empty"):
        gauge_mc.export(run, tmp_path / "out.parquet", name)
        assert types(pa.parquet.read_table(tmp_path / "out.parquet")) == wanted
    (run / "whole.csv").unlink()


def test_metadata_say_what_columns_are_and_where_they_come_from(run, tmp_path):
    gauge_mc.export(run, tmp_path / "out.parquet", ["wilson_loops"])
    schema = pa.parquet.read_schema(tmp_path / "out.parquet")
    (column,) = (dict(schema.field("r").metadata),)
    assert column[b"provenance"] == b"r in wilson_loops.csv"
    assert column[b"description"] == b"steps along the path"
    found = json.loads(schema.metadata[b"gauge-mc"])
    assert (found["table"], found["program"][:9]) == ("wilson_loops", "gauge-mc ")
    (one,) = found["runs"]
    assert one["header"] == read_table(run / "wilson_loops.csv").header
    assert (one["rows"], one["parameters"]["beta"], one["parameters"]["seed"]) == (4, 2.5, 1)
    assert one["configurations"] == {
        str(sweep): {"file": f"{sweep}.lime", "digest": "MILC checksum 1 2"} for sweep in (5, 8)
    }


def test_the_runs_of_a_folder_are_joined(runs, tmp_path):
    out = tmp_path / "out.parquet"
    assert call("export", runs, out, "--table", "plaquette") == (f"{out}: plaquette\n", 0)
    table = pa.parquet.read_table(out)
    assert table.column_names[:3] == ["run", "beta", "seed"]
    assert types(table)[:4] == ["string", "double", "int64", "int64"]
    assert table.schema.field("seed").metadata[b"provenance"] == b"seed in run.toml"
    frame = pd.read_parquet(out)
    for seed, beta in ((1, 2.5), (2, 2.7)):
        columns = read_table(runs / f"b{beta}" / "plaquette.csv")
        own = frame[(frame.run == f"b{beta}") & (frame.beta == beta) & (frame.seed == seed)]
        assert all(own[key].tolist() == columns[key].tolist() for key in columns)
    assert [one["rows"] for one in frame.attrs["runs"]] == [frame.beta.eq(2.5).sum()] * 2
    one = tmp_path / "one.parquet"
    gauge_mc.export([runs / "b2.7"], one, "plaquette")
    assert pa.parquet.read_table(one).column_names[:3] == ["run", "beta", "sweep"]


@pytest.mark.parametrize(
    ("table", "out", "sentence"),
    [
        ([], "o.parquet", "has one table; choose empty, own, plaquette"),
        (["--table", "hadrons"], "o.parquet", "has no table 'hadrons'; choose empty, own, pl"),
        ([], "o.h5", "tables of one run only, and there are 2; name one of them, or let the"),
        (["--table", "plaquette"], "there.parquet", "is another file, which an export to .parquet"),
    ],
)
def test_what_is_refused(run, runs, tmp_path, monkeypatch, table, out, sentence):
    monkeypatch.chdir(tmp_path)
    pa.parquet.write_table(pa.table({"x": [1]}), "there.parquet")
    before = sorted(os.listdir())
    shown, code = call("export", runs, out, *table)
    assert (sentence in shown, code) == (True, 2), shown
    assert sorted(os.listdir()) == before


def test_tables_that_do_not_fit_together_are_refused(run, runs, tmp_path):
    out, both = tmp_path / "out.parquet", [run, runs / "b2.7"]
    with pytest.raises(UsageError, match=r"The run .*b2.7 has no table 'own'"):
        gauge_mc.export(both, out, "own")
    other = runs / "b2.7" / "own.csv"
    for names, row, error in (
        (("sweep", "value"), (5, 1), (UsageError, "have different columns")),
        (("sweep", "i", "value"), (5, 0, "word"), (DamagedError, "'value' contains a value that")),
    ):
        with Table(other, {"observable": "own"}, names) as table:
            table.append([row])
        with pytest.raises(error[0], match=error[1]):
            gauge_mc.export(both, out, "own")
        other.unlink()
    assert not out.exists()


def test_a_damaged_column_is_named(run, tmp_path):
    with Table(run / "bad.csv", {"observable": "plaquette"}, ("sweep", "plaquette")) as table:
        table.append([(5, "x")])
    with pytest.raises(DamagedError, match=r"b2.5: bad.csv is damaged: its column 'plaquette'"):
        gauge_mc.export([run], tmp_path / "out.parquet", "bad")
    (run / "bad.csv").unlink()

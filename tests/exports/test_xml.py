"""``gauge-mc export RUN OUT.dobs.xml.gz`` and ``OUT.pobs.xml.gz``: pyerrors reads them back."""

import gzip
import html
import json
import os

import numpy as np
import pytest

import gauge_mc
from gauge_mc.files.table import Table, read_table
from tests.calls import call, make_run

REPLICA = "su2_b2.5_4x4x4x6|r3"
SWEEPS = (3, 4, 5, 8, 9, 11)
EVENTS = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
SIGNED = np.array([-2.0, 2.0, 1.0, -1.0, 0.0, 0.0])
HEADER = {"observable": "own", "comment": "a < b & c"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Make a run with tables after different updates, and numbers that the format cannot hold."""
    folder = tmp_path_factory.mktemp("xml")
    path = make_run(folder / "run", configs=6, seed=3, measure="plaquette,polyakov:3")
    with Table(path / "own.csv", HEADER, ("sweep", "x", "y", "same", "zero")) as table:
        table.append(zip(SWEEPS, EVENTS, SIGNED, [0.5] * 6, [0.0] * 6, strict=True))
    loops = ("sweep", "smearing", "path", "r", "t", "loop")
    with Table(path / "wilson_loops.csv", {"observable": "wilson_loops"}, loops) as table:
        for sweep in SWEEPS:
            table.append((sweep, 0, "100", 1, t, sweep / 7 + t) for t in (1, 2))
    return path


def read(pyerrors, path):
    """Return what a file says, and its observables by name."""
    name = path.name.split(".")[1]
    read_file = getattr(pyerrors.input.dobs, f"read_{name}")
    found = read_file(str(path), full_output=True)
    origin = json.loads(found["description"]["origin"])
    names = origin["observables"]
    with gzip.open(path) as file:
        assert " ".join(names) in html.unescape(file.read().decode())
    return found["description"]["name"], origin, dict(zip(names, found["obsdata"], strict=True))


def check(observable, sweeps, samples, replica=REPLICA, rounding=2**-51):
    """Compare an observable with its samples, whose order of magnitude is that of the mean."""
    assert (observable.names, list(observable.idl[replica])) == ([replica], [*sweeps])
    values = observable.deltas[replica] + observable.r_values[replica]
    scale = max(1.0, np.abs(samples).max())
    np.testing.assert_allclose(values, samples, rtol=0, atol=rounding * scale)
    assert observable.value == pytest.approx(np.mean(samples), abs=rounding * scale)


def test_derived_observables(run, tmp_path, pyerrors):
    """Samples of 0 or equal to the mean are configurations like others."""
    out = tmp_path / "out.dobs.xml.gz"
    assert call("export", run, out)[1] == 0
    name, origin, found = read(pyerrors, out)
    assert name == "su2_b2.5_4x4x4x6_seed3"
    assert (origin["parameters"]["beta"], origin["tables"]["own"]) == (2.5, HEADER)
    for name in ("plaquette", "polyakov"):
        table = read_table(run / f"{name}.csv")
        for key in table:
            if key != "sweep":
                check(found.pop(f"{name}:{key}"), table["sweep"], table[key])
    for key, samples in (("x", EVENTS), ("y", SIGNED), ("same", [0.5] * 6), ("zero", [0.0] * 6)):
        check(found.pop(f"own:{key}"), SWEEPS, samples)
    for t in (1, 2):
        name = f"wilson_loops:smearing=0,path=100,r=1[{t}]"
        check(found.pop(name), SWEEPS, np.array(SWEEPS) / 7 + t)
    assert not found


def test_a_constant_keeps_its_configurations(run, tmp_path, pyerrors):
    """Also in a file in which no other observable has more configurations."""
    gauge_mc.export(run, tmp_path / "own.dobs.xml.gz", "own")
    *_, found = read(pyerrors, tmp_path / "own.dobs.xml.gz")
    check(found["own:same"], SWEEPS, [0.5] * 6)
    check(found["own:zero"], SWEEPS, [0.0] * 6)


def test_errors_are_those_of_the_other_export(run, tmp_path, pyerrors):
    gauge_mc.export(run, tmp_path / "out.dobs.xml.gz")
    gauge_mc.export(run, tmp_path / "out.json.gz")
    *_, found = read(pyerrors, tmp_path / "out.dobs.xml.gz")
    other = pyerrors.input.json.load_json_dict(str(tmp_path / "out.json.gz"), verbose=False)
    pair = found["plaquette:plaquette"], other["plaquette"]["plaquette"]
    for one in pair:
        one.gamma_method()
    assert pair[0].dvalue == pytest.approx(pair[1].dvalue, rel=1e-12)
    assert pair[0].e_tauint == pytest.approx(pair[1].e_tauint, rel=1e-9)


def test_primary_observables(run, tmp_path, pyerrors):
    out = tmp_path / "out.pobs.xml.gz"
    assert call("export", run, out, "--table", "own") == (f"{out}: own\n", 0)
    *_, found = read(pyerrors, out)
    assert [*found] == [f"own:{key}" for key in ("x", "y", "same", "zero")]
    for one, samples in zip(found.values(), (EVENTS, SIGNED, [0.5] * 6, [0.0] * 6), strict=True):
        check(one, SWEEPS, samples, REPLICA.replace("|", ""))
    shown, code = call("export", run, out)
    assert ("own, plaquette, polyakov or wilson_loops by --table" in shown, code) == (True, 2)


@pytest.mark.parametrize(("kind", "other"), [("dobs", "pobs"), ("pobs", "dobs")])
def test_only_such_files_are_replaced(run, tmp_path, pyerrors, kind, other):
    out = tmp_path / f"out.{kind}.xml.gz"
    for _ in range(2):
        gauge_mc.export(run, out, "own")
    gauge_mc.export(run, tmp_path / f"b.{other}.xml.gz", "own")
    os.replace(tmp_path / f"b.{other}.xml.gz", out)
    before = out.read_bytes()
    shown, code = call("export", run, out, "--table", "own")
    assert ("is another file" in shown, code) == (True, 2)
    assert out.read_bytes() == before

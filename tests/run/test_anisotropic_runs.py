"""Runs on anisotropic lattices: what they record, how they continue, what is refused."""

import numpy as np
import pytest

from gauge_mc import fit
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import read_table
from gauge_mc.run.directory import Run
from tests.calls import call, make_run
from tests.run.sessions import written

pytestmark = pytest.mark.slow

CHAIN = {
    "group": "su2",
    "beta": 3.0,
    "action": "symanzik",
    "anisotropy": 2.5,
    "lattice": "4x4x4x8",
    "thermalize": 2,
    "configs": 3,
    "separation": 2,
    "measure": "plaquette,rectangles",
}


def test_runs_on_several_devices_and_in_several_sessions(tmp_path):
    whole = make_run(tmp_path / "whole", **CHAIN)
    path = tmp_path / "changed"
    for configs, devices in enumerate(("cpu:2", "cpu", "cpu:2"), 1):
        make_run(path, devices=devices, **(CHAIN | {"configs": configs}))
    assert written(path) == written(whole)
    header = read_table(Run(whole).table("plaquette")).header
    assert header["anisotropy"] == "2.5"
    assert header["formula"].endswith("times xi0, xi0 = 2.5")
    assert header["beta_c0"].startswith("5 (")
    assert (header["beta_space"], header["beta_time"]) == ("1.2", "7.5")


def test_configurations_state_it_and_measurements_take_it_from_the_run(tmp_path):
    chain = {**CHAIN, "action": "wilson", "beta": 1.2}
    run = make_run(tmp_path / "run", **chain, format="nersc")
    path = next(iter(Run(run).configs().values()))
    assert open_configuration(path).header.provenance["anisotropy"] == "2.5"
    said, code = call(
        "measure", "polyakov-correlators", run, "--multihit", "--anisotropy", "2", "--quiet"
    )
    assert code == 2
    assert "--anisotropy is 2.0, but the ensemble has 2.5; leave --anisotropy out." in said
    said, code = call("measure", "polyakov-correlators", run, "--multihit", "--quiet")
    assert code == 0, said
    said, code = call("measure", "flow", run, "--to", "0.2", "--quiet")
    assert code == 0, said
    header = read_table(run / "flow.csv").header
    assert header["flow anisotropy"] == "2.5"
    assert "at most 0.05;" in header["steps"]
    with pytest.raises(GaugeError, match="fit topology assumes equal lattice spacings"):
        fit("topology", run)
    given = ("--to", "0.2", "--anisotropy", "4", "--output", run / "other.csv")
    said, code = call("measure", "flow", run, *given, "--quiet")
    assert code == 0, said
    header = read_table(run / "other.csv").header
    assert header["flow anisotropy"] == "4"
    assert "at most 0.0315789;" in header["steps"]  # 2.4 / (12 + 4 xi^2)
    said, code = call("measure", "flow", run, *given[:-1], run / "third.csv", "--flow", "zeuthen")
    assert (code, "The zeuthen flow has no anisotropic form" in said) == (2, True)
    flat = (*given[:3], "1", "--output", run / "flat.csv")
    said, code = call("measure", "flow", run, *flat, "--quiet")
    assert code == 0, said
    with pytest.raises(GaugeError, match="fit scale assumes equal lattice spacings"):
        fit("scale", run / "flat.csv")


def test_a_flow_along_the_way_is_that_of_the_configurations(tmp_path):
    """In double precision, as which links come back from files with no bit lost."""
    values = {**CHAIN, "group": "su3", "action": "wilson", "precision": "double"}
    run = make_run(tmp_path / "run", **{**values, "measure": "flow:1:to=0.2"})
    along = read_table(run / "flow.csv")
    assert along.header["flow anisotropy"] == "2.5"
    said, code = call("measure", "flow", run, "--to", "0.2", "--output", run / "later.csv")
    assert code == 0, said
    later = read_table(run / "later.csv")
    both = np.isin(along["sweep"], later["sweep"])
    for name in ("t", "energy_clover", "charge"):
        np.testing.assert_allclose(along[name][both], later[name], rtol=1e-9, atol=1e-9)

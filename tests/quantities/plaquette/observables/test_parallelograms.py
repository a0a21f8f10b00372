"""Parallelograms against NumPy, and along the way in runs of the action that contains them."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import PARALLELOGRAMS, Lattice
from gauge_mc.fields.field import Field
from gauge_mc.files.table import read_table
from gauge_mc.quantities.plaquette import Parallelograms
from gauge_mc.run.directory import Run
from tests.calls import make_run
from tests.reference.fields import random_field, trace
from tests.reference.observables import transport
from tests.run.sessions import written

TOLERANCE = {"single": 1e-7, "double": 1e-14}


def averages(links):
    """Return the averages over all, the spatial and the temporal parallelograms."""
    space, time = [], []
    for loop in PARALLELOGRAMS.paths:
        value = trace(transport(links, loop)).real.mean() / links.shape[-1]
        (time if any(mu == 3 for mu, _ in loop) else space).append(value)
    return [np.mean(space + time), np.mean(space), np.mean(time)]


@pytest.mark.parametrize("lattice", [Lattice(4, 6, 8, 10), Lattice(8, 8, 4, 6)], ids=str)
def test_parallelograms(lattice, group, precision, device):
    links = random_field(lattice.extents, group, np.random.default_rng(3))
    field = Field.from_slices(lattice, group, links, precision, device)
    found = Parallelograms().measure(field)
    assert found == pytest.approx(averages(links), abs=TOLERANCE[precision])


CHAIN = {
    "group": "su3",
    "beta": 8.0,
    "action": "luscher-weisz:0.88",
    "lattice": "4x4x4x8",
    "precision": "double",
    "thermalize": 2,
    "configs": 3,
    "separation": 2,
    "measure": "plaquette,parallelograms",
}


@pytest.mark.slow
def test_runs_on_several_devices_and_in_several_sessions(tmp_path):
    whole = make_run(tmp_path / "whole", **CHAIN)
    path = tmp_path / "changed"
    for configs, devices in enumerate(("cpu:3", "cpu", "cpu:2"), 1):
        make_run(path, devices=devices, **(CHAIN | {"configs": configs}))
    assert written(path) == written(whole)
    table = read_table(Run(whole).table("parallelograms"))
    assert f"{table.header['action']}:{table.header['u0']}" == CHAIN["action"]
    assert "c2 = -0.0" in table.header["formula"]
    assert np.all(np.abs(table["parallelogram"]) < 1)

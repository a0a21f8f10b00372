"""Rectangles against NumPy, and along the way in runs of actions that contain them."""

from itertools import chain

import numpy as np
import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.files.table import read_table
from gauge_mc.quantities.plaquette import Rectangles, plaquette
from gauge_mc.run.directory import Run
from gauge_mc.updates.heatbath import heatbath
from tests.calls import call, make_run
from tests.reference.fields import random_field, trace
from tests.reference.observables import transport
from tests.run.sessions import written

TOLERANCE = {"single": 1e-7, "double": 1e-14}


def averages(links):
    """Return the averages over all, the spatial rectangles, those one and two links long in t."""
    kinds = {"space": [], "short": [], "long": []}
    for mu in range(4):
        for nu in {0, 1, 2, 3} - {mu}:
            loop = [(mu, 1), (mu, 1), (nu, 1), (mu, -1), (mu, -1), (nu, -1)]
            value = trace(transport(links, loop)).real.mean() / links.shape[-1]
            kinds["long" if mu == 3 else "short" if nu == 3 else "space"].append(value)
    return [np.mean([*chain(*kinds.values())]), *(np.mean(one) for one in kinds.values())]


@pytest.mark.parametrize("lattice", [Lattice(4, 6, 8, 10), Lattice(8, 8, 4, 6)], ids=str)
def test_rectangles(lattice, group, precision, device):
    links = random_field(lattice.extents, group, np.random.default_rng(3))
    field = Field.from_slices(lattice, group, links, precision, device)
    assert Rectangles().measure(field) == pytest.approx(averages(links), abs=TOLERANCE[precision])


CHAIN = {
    "group": "su2",
    "beta": 1.2,
    "action": "iwasaki",
    "lattice": "4x4x4x8",
    "thermalize": 2,
    "configs": 3,
    "separation": 2,
    "measure": "plaquette,rectangles",
}


@pytest.mark.slow
@pytest.mark.parametrize("rng", ["philox", "ranlux"])
def test_runs_on_several_devices_and_in_several_sessions(tmp_path, rng):
    whole = make_run(tmp_path / "whole", rng=rng, **CHAIN)
    path = tmp_path / "changed"
    for configs, devices in enumerate(("cpu:3", "cpu", "cpu:2"), 1):
        make_run(path, rng=rng, devices=devices, **(CHAIN | {"configs": configs}))
    assert written(path) == written(whole)
    table = read_table(Run(whole).table("rectangles"))
    assert table.header["action"] == "iwasaki"
    assert np.all(np.abs(table["rectangle"]) < 1)


@pytest.mark.slow
def test_a_given_coefficient_and_refusals(tmp_path):
    given = CHAIN | {"action": "rectangle:-0.331", "configs": 1}
    one = make_run(tmp_path / "given", **given)
    other = make_run(tmp_path / "named", **(CHAIN | {"configs": 1}))
    tables = (read_table(Run(path).table("plaquette"))["plaquette"] for path in (one, other))
    np.testing.assert_array_equal(*tables)
    said, code = call("generate", "--action", "iwasaki", "--lattice", "4x4x4x2")
    assert code == 2
    assert "do not fit on the lattice 4x4x4x2" in said
    said, code = call("generate", "--action", "rectangle")
    assert code == 2
    assert "The action rectangle needs --c1 C1: " in said


@pytest.mark.slow
def test_strong_coupling():
    """SU(2): with x = beta c / 4 for each loop, P = x0 + 4 x0 x1 and R = x1 + x0^2 to second order.

    A plaquette is part of four rectangles, whose other halves are plaquettes.
    """
    action, beta = ACTIONS["iwasaki"], 0.05
    x0, x1 = (beta * c / 4 for c in (1 - 8 * action.rectangle, action.rectangle))
    field = Field.hot(Lattice(8, 8, 8, 8), "su2", device=CpuDevice(lanes=8), seed=2)
    random = Random.for_field(field, seed=2)
    found = []
    for _ in range(150):
        heatbath(field, beta, random, action="iwasaki")
        found.append((plaquette(field), Rectangles().measure(field)[0]))
    (p, r), error = np.mean(found[10:], axis=0), np.std(found[10:], axis=0) / np.sqrt(140)
    assert error[0] < 4e-4
    assert abs(p - (x0 + 4 * x0 * x1)) < 4 * error[0] + 2e-4
    assert abs(r - (x1 + x0**2)) < 4 * error[1] + 2e-4

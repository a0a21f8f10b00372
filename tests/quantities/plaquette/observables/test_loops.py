"""Rectangles and parallelograms against NumPy, and along the way in runs of actions with them."""

from itertools import permutations

import numpy as np
import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import PARALLELOGRAMS, Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.files.table import read_table
from gauge_mc.quantities.plaquette import Parallelograms, Rectangles, plaquette
from gauge_mc.run.directory import Run
from gauge_mc.updates.heatbath import heatbath
from tests.calls import call, make_run
from tests.reference.fields import random_field, trace
from tests.reference.observables import transport
from tests.run.sessions import written

TOLERANCE = {"single": 1e-7, "double": 1e-14}

RECTANGLES = [
    ((mu, 1), (mu, 1), (nu, 1), (mu, -1), (mu, -1), (nu, -1))
    for mu, nu in permutations(range(4), 2)
]


def links_in_time(loop):
    return sum(mu == 3 for mu, _ in loop)


def averages(links, loops):
    """Return the averages over all loops, and over those with equal numbers of links along t."""
    values = [trace(transport(links, one)).real.mean() / links.shape[-1] for one in loops]
    lengths = np.array([links_in_time(one) for one in loops])
    parts = [np.mean(np.array(values)[lengths == one]) for one in sorted({*lengths})]
    return [np.mean(values), *parts]


@pytest.mark.parametrize(
    ("observable", "loops"), [(Rectangles, RECTANGLES), (Parallelograms, PARALLELOGRAMS.paths)]
)
@pytest.mark.parametrize("lattice", [Lattice(4, 6, 8, 10), Lattice(8, 8, 4, 6)], ids=str)
def test_averages(lattice, group, precision, device, observable, loops):
    links = random_field(lattice.extents, group, np.random.default_rng(3))
    field = Field.from_slices(lattice, group, links, precision, device)
    expected = averages(links, loops)
    assert observable().measure(field) == pytest.approx(expected, abs=TOLERANCE[precision])


CHAIN = {"lattice": "4x4x4x8", "thermalize": 2, "configs": 3, "separation": 2}
IWASAKI = {"group": "su2", "beta": 1.2, "action": "iwasaki"}
LUSCHER_WEISZ = {"beta": 8.0, "action": "luscher-weisz:0.88", "precision": "double"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("rectangles", IWASAKI),
        ("rectangles", IWASAKI | {"rng": "ranlux"}),
        ("parallelograms", LUSCHER_WEISZ | {"group": "su3"}),
    ],
)
def test_runs_on_several_devices_and_in_several_sessions(tmp_path, name, more):
    chain = CHAIN | more | {"measure": f"plaquette,{name}"}
    whole = make_run(tmp_path / "whole", **chain)
    path = tmp_path / "changed"
    for configs, devices in enumerate(("cpu:3", "cpu", "cpu:2"), 1):
        make_run(path, devices=devices, **(chain | {"configs": configs}))
    assert written(path) == written(whole)
    table = read_table(Run(whole).table(name))
    assert table.header["action"] == more["action"].partition(":")[0]
    assert np.all(np.abs(table[name[:-1]]) < 1)


@pytest.mark.slow
def test_a_given_coefficient_and_refusals(tmp_path):
    chain = CHAIN | IWASAKI | {"configs": 1}
    one = make_run(tmp_path / "given", **(chain | {"action": "rectangle:-0.331"}))
    other = make_run(tmp_path / "named", **chain)
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

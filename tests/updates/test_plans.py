"""Plans: the fastest is found while sweeps are carried out, remembered, and never changes a bit."""

import shutil

import numpy as np
import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates import sweep as plans
from gauge_mc.updates.heatbath import heatbath, overrelax
from gauge_mc.updates.schedule import Wavefront
from gauge_mc.updates.sweep import Plan, search

DEEP, FLAT = Wavefront(4, 2), Wavefront(2, 8)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """An empty folder for plans, and an idle machine."""
    monkeypatch.setattr(plans, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(plans, "_interruptions", lambda: 0)
    return tmp_path


def outcome(time_of, first, wavefronts=(None,), fewer=True):
    """Return the plan that is found if `time_of` gives the times, and all plans that were tried."""
    tried, looking = [], search(first, wavefronts, fewer)
    plan = next(looking)
    while True:
        tried.append(plan)
        try:
            plan = looking.send(time_of(plan))
        except StopIteration as end:
            return end.value, tried


def test_a_number_that_the_user_chose_stays():
    found, tried = outcome(lambda plan: plan.threads, Plan(16, DEEP), (DEEP, None), fewer=False)
    assert tried == [Plan(16, DEEP), Plan(16, None)]
    assert found == Plan(16, DEEP)  # both take as long: a gain must be worthwhile


LATTICE = Lattice(4, 4, 16, 8)


def make_field(device, slices=3):
    """Return a field of which the cache holds a few time slices, so that wavefronts may pay."""
    field = Field.hot(LATTICE, "su2", "single", device, seed=2)
    device.cache_bytes = slices * field.slabs[0].slice_bytes
    device.own_cache_bytes = 0
    return field


def chain(device, rounds):
    """Carry out updates, and return the links and the planners of both sweeps."""
    field = make_field(device)
    random = Random.for_field(field, seed=3)
    for n in rounds:
        heatbath(field, 2.3, random, n)
        overrelax(field, 2 * n)
    return field.to_numpy(), [one._slabs[0]._planner for one in field.prepared.values()]


@pytest.mark.slow
def test_searching_changes_no_bit(own_cache):
    rounds = [1, 3, 1, 7, 200, 1]
    fixed, (planner, other) = chain(CpuDevice(3, lanes=1), rounds)
    assert planner._decided
    assert planner.plan.threads == other.plan.threads == 3
    searched, (planner, other) = chain(unlimited(3), rounds)
    assert planner._decided
    assert planner.plan.threads == other.plan.threads
    assert np.array_equal(fixed, searched)
    assert list(own_cache.glob("plan-*.json"))


def unlimited(threads):
    """Return a device whose number of threads was not chosen by the user."""
    device = CpuDevice(threads, lanes=1)
    device.threads_are_fixed = False
    return device


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A plan that was found, and the file in which it is remembered."""
    folder = tmp_path_factory.mktemp("plans")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "cache_folder", lambda: folder)
        patch.setattr(plans, "_interruptions", lambda: 0)
        _, (planner, _) = chain(unlimited(2), [400])
        assert planner._decided
        return planner.plan, planner._path


@pytest.fixture
def remembered(found, own_cache):
    """The same plan, in a file of the test."""
    plan, path = found
    shutil.copy(path, own_cache)
    return plan, own_cache / path.name


def begun(device):
    """Return the planner of the heatbath of a new field after one sweep."""
    return chain(device, [1])[1][0]


@pytest.mark.slow
def test_plans_are_remembered(remembered):
    plan, _ = remembered
    planner = begun(unlimited(2))
    assert planner._decided
    assert planner.plan == plan
    assert not begun(unlimited(3))._decided  # another machine
    assert not begun(CpuDevice(2, lanes=1))._decided  # another choice of the user


@pytest.mark.slow
def test_on_a_busy_machine_the_first_plan_is_kept(own_cache, monkeypatch):
    counter = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(plans, "_interruptions", lambda: next(counter))
    device = unlimited(2)
    _, (planner, _) = chain(device, [100])
    assert planner._decided
    assert planner.plan.threads == 2
    assert not list(own_cache.glob("plan-*.json"))


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_stops_nothing(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(plans, "cache_folder", lambda: tmp_path / "file" / "folder")
    assert chain(unlimited(2), [400])[1][0]._decided

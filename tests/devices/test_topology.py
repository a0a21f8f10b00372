"""Cores: what the system says of them, which of them a team takes, and that it takes no other's."""

import subprocess
import sys

import pytest

from gauge_mc.devices.cpu import device as cpu_device
from gauge_mc.devices.cpu import topology
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.cpu.topology import Claim, Core, core_quota, in_order, read_cores


def machine(nodes, caches, cores, threads):
    """Return the cores of a machine whose hyperthreads are numbered after all physical cores.

    The arguments are the numbers of nodes, of last-level caches per node, of physical cores per
    cache, and of hyperthreads per core.
    """
    total, per_node = nodes * caches * cores, caches * cores
    places = [(core // per_node, core % per_node, core // cores) for core in range(total)]
    return [
        Core(core + total * thread, (node, number), node, cache * cores, 2**25, 2**20)
        for thread in range(threads)
        for core, (node, number, cache) in enumerate(places)
    ]


def numbers(cores):
    return [core.number for core in cores]


# Files of the system


def test_rubbish_counts_as_unknown(tmp_path):
    for name, text in (("topology/core_id", "none"), ("cache/index0/size", "a lot")):
        file = tmp_path / "cpu0" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    assert read_cores([0], tmp_path) == [Core(0, (0, 0), 0, 0, 0, 0)]


# Quotas


@pytest.mark.parametrize(
    ("inner", "outer", "cores"),
    [
        ("max 100000", "max 100000", float("inf")),
        ("250000 100000", "max 100000", 2.5),
        ("250000 100000", "100000 100000", 1),
        ("max 100000", "400000 100000", 4),
        (None, "50000 100000", 0.5),
        ("rubbish", None, float("inf")),
    ],
)
def test_quotas_of_control_groups(tmp_path, inner, outer, cores):
    group = tmp_path / "groups" / "job" / "step"
    group.mkdir(parents=True)
    for folder, text in ((group, inner), (group.parent, outer)):
        if text:
            (folder / "cpu.max").write_text(f"{text}\n")
    (tmp_path / "own").write_text("0::/job/step\n")
    assert core_quota(tmp_path / "groups", tmp_path / "own") == cores


def test_quotas_of_old_control_groups(tmp_path):
    group = tmp_path / "groups" / "cpu,cpuacct" / "job"
    group.mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text("300000\n")
    (group / "cpu.cfs_period_us").write_text("100000\n")
    (group.parent / "cpu.cfs_quota_us").write_text("-1\n")
    (group.parent / "cpu.cfs_period_us").write_text("100000\n")
    own = tmp_path / "own"
    own.write_text("5:memory:/job\n4:cpu,cpuacct:/job\n0::/\n")
    assert core_quota(tmp_path / "groups", own) == 3
    own.write_text("4:cpu,cpuacct:/\n")
    assert core_quota(tmp_path / "groups", own) == float("inf")
    assert core_quota(tmp_path / "groups", tmp_path / "nothing") == float("inf")


@pytest.mark.parametrize(
    ("allowed", "quota", "threads"),
    [(16, float("inf"), 16), (16, 4.0, 4), (16, 2.5, 3), (16, 0.3, 1), (2, 8.0, 2)],
)
def test_the_default_number_of_threads(monkeypatch, allowed, quota, threads):
    monkeypatch.setattr(topology, "allowed_cores", lambda: frozenset(range(allowed)))
    monkeypatch.setattr(topology, "core_quota", lambda: quota)
    assert topology.usable_cores() == threads


# Which cores a team takes


def test_physical_cores_come_first():
    cores = machine(nodes=1, caches=1, cores=4, threads=2)
    assert numbers(in_order(cores)) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert numbers(in_order(cores[1:])) == [1, 2, 3, 4, 5, 6, 7]  # 4 is alone on its core


def test_a_node_and_a_cache_are_filled_before_the_next():
    cores = machine(nodes=2, caches=2, cores=4, threads=1)
    assert numbers(in_order(cores)) == list(range(16))
    mask = [core for core in cores if core.number in {0, 1, 4, 8, 9, 12, 13, 14}]
    assert numbers(in_order(mask)) == [12, 13, 14, 8, 9, 0, 1, 4]


# Claims


@pytest.fixture
def far():
    """Cores that no machine has, so that no other process claims them."""
    return [Core(number, (0, number), 0, 0, 0, 0) for number in range(90000, 90004)]


def test_a_core_is_claimed_once(far):
    one, other = Claim(far, 2), Claim(far, 2)
    assert numbers(one.cores) == [90000, 90001]
    assert numbers(other.cores) == [90002, 90003]
    assert Claim(far, 1).cores == []
    one.release()
    assert Claim(far, 3).cores == []  # and it keeps none of the two
    assert numbers(Claim(far, 2).cores) == [90000, 90001]
    other.release()


def test_cores_are_free_when_a_process_is_killed(far):
    code = (
        "import sys; from gauge_mc.devices.cpu.topology import *;"
        "c = Claim([Core(n, (0, n), 0, 0, 0, 0) for n in range(90000, 90004)], 4);"
        "print(len(c.cores), flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as process:
        assert process.stdout.readline() == b"4\n"
        assert Claim(far, 1).cores == []
        process.kill()
    claim = Claim(far, 4)
    assert len(claim.cores) == 4
    claim.release()


@pytest.mark.parametrize(
    ("threads", "quota", "pin", "bound"),
    [
        (2, float("inf"), None, True),
        (4, float("inf"), "1", True),
        (4, 4.0, None, True),
        (1, float("inf"), None, False),
        (5, float("inf"), None, False),
        (2, 3.5, None, False),
        (2, float("inf"), "0", False),
    ],
)
def test_threads_are_bound_only_where_no_other_suffers(
    monkeypatch, far, threads, quota, pin, bound
):
    monkeypatch.setattr(topology, "allowed_cores", lambda: frozenset(numbers(far)))
    monkeypatch.setattr(topology, "core_quota", lambda: quota)
    monkeypatch.delenv(topology.PIN, raising=False)
    if pin:
        monkeypatch.setenv(topology.PIN, pin)
    claim = topology.claim_cores(threads)
    assert len(claim.cores) == (threads if bound else 0)
    claim.release()


def test_a_closed_device_releases_its_cores(monkeypatch, far):
    monkeypatch.setattr(topology, "allowed_cores", lambda: frozenset(numbers(far)))
    monkeypatch.setattr(topology, "core_quota", lambda: float("inf"))
    device = CpuDevice(4)
    assert len(device._teams.cores()) == 4
    assert Claim(far, 1).cores == []
    device.close()
    claim = Claim(far, 4)
    assert len(claim.cores) == 4
    claim.release()


# Memory


def test_the_first_touch_leaves_zeros_and_the_callers_cores(monkeypatch):
    allowed = topology.allowed_cores()
    two = [Core(min(allowed), (0, n), n, 0, 0, 0) for n in range(2)]
    monkeypatch.setattr(cpu_device.Teams, "cores", lambda self: two)
    buffer = CpuDevice(2).allocate(10**6)
    assert not buffer.bytes.any()
    assert topology.allowed_cores() == allowed

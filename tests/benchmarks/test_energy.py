"""Energy of benchmarks, with a processor that takes a constant power."""

import json
import time

import pytest

from gauge_mc.benchmarks import timing
from gauge_mc.benchmarks import timing as energy
from gauge_mc.benchmarks.timing import energy_of, slope
from gauge_mc.devices.cpu import device as cpu_device
from gauge_mc.devices.energy import EnergyCounter
from gauge_mc.domain.device_group import DeviceGroup
from tests.calls import call

WATTS = 40
TICK = 0.02
"""Time in seconds between two advances of the counter."""


@pytest.fixture(autouse=True)
def _small_copies(monkeypatch):
    """Copy small fields."""
    monkeypatch.setattr(timing, "COPY_EXTENT", 4)


@pytest.fixture
def constant(monkeypatch):
    """Let the counter of the processor advance with time."""

    def read():
        return WATTS * TICK * (time.monotonic() // TICK)

    counters = [EnergyCounter("package-0", "RAPL", read)]
    monkeypatch.setattr(cpu_device, "package_counters", lambda: counters)


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([0, 1, 2, 3], 1),
        ([0, 0, 5, 5, 5, 5, 9, 9, 9], 1),
        ([0, 0, 0, 6, 6, 12, 12], 3),
        ([0, 0, 4, 4], None),
        ([7, 7, 7], None),
    ],
)
def test_only_what_lies_between_advances_counts(readings, expected):
    assert slope(readings) == expected


@pytest.mark.parametrize("tick", [0.001, 0.02, 0.1])
@pytest.mark.parametrize("once", [1e-5, 0.0031, 0.35])
def test_energy_is_power_times_time(monkeypatch, tick, once):
    """Up to the length of a chunk, for a counter that advances in steps."""
    now = 0.0

    def call(times):
        nonlocal now
        now += times * once

    counter = EnergyCounter("package-0", "RAPL", lambda: WATTS * tick * (now // tick))
    monkeypatch.setattr(cpu_device, "package_counters", lambda: [counter])
    devices = DeviceGroup.of(cpu_device.CpuDevice(1))
    found = energy_of(devices, call, 1.0, once)
    assert found.source == "RAPL"
    assert found.joules == pytest.approx(WATTS * once, rel=max(0.03, tick / 1.0))
    assert energy_of(devices, call, 10.0, once).joules == pytest.approx(WATTS * once, rel=0.012)


@pytest.mark.slow
def test_bench_shows_the_energy_of_every_kernel(constant, monkeypatch):
    monkeypatch.setattr(energy, "LEAST_SECONDS", 0.2)
    words = ("--lattice", "8x8x8x8", "--backend", "cpu", "--threads", "1", "--seconds", "0.2")
    found = json.loads(call("bench", *words, "--json")[0])
    assert found["energy_source"] == "RAPL"
    for kernel in found["kernels"]:
        assert 0.02 < kernel["nj_per_link"] / (WATTS * kernel["ns_per_link"]) < 50  # mean, least
    shown = call("bench", *words)[0]
    assert "nJ/link" in shown
    assert shown.endswith("energy: counters of RAPL\n")


@pytest.mark.slow
def test_short_benchmarks_do_not_measure_energy(constant):
    words = ("--lattice", "4x4x4x4", "--backend", "cpu", "--threads", "1", "--seconds", "0.05")
    shown = call("bench", *words)[0]
    assert "nJ/link" not in shown
    assert shown.endswith("energy: not available, --seconds must be at least 1\n")
    found = json.loads(call("bench", *words, "--json")[0])
    assert {kernel["nj_per_link"] for kernel in found["kernels"]} == {None}

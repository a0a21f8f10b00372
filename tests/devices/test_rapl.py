"""Energy counters of CPU packages, in folders made by the tests."""

import os

import pytest

from gauge_mc.devices import open_device
from gauge_mc.devices.cpu import device
from gauge_mc.errors import GaugeError
from tests.calls import call


def domain(folder, name, joules, limit=262143.32885):
    """Write the files of a power domain, and return that of its counter."""
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "max_energy_range_uj").write_text(f"{round(1e6 * limit)}\n")
    (folder / "energy_uj").write_text(f"{round(1e6 * joules)}\n")
    return folder / "energy_uj"


@pytest.fixture
def powercap(tmp_path, monkeypatch):
    """The counters of a machine with two packages, on both of which this process may run."""
    folder, processors = tmp_path / "powercap", tmp_path / "cpu"
    domain(folder / "intel-rapl:0", "package-0", 100)
    domain(folder / "intel-rapl:0:0", "core", 60)
    domain(folder / "intel-rapl:0:1", "dram", 20)
    domain(folder / "intel-rapl:1", "package-1", 7.5)
    domain(folder / "intel-rapl:2", "psys", 300)
    domain(folder / "intel-rapl-mmio:0", "package-0", 100)
    (folder / "intel-rapl").mkdir()
    for n, core in enumerate(sorted(os.sched_getaffinity(0))):
        (processors / f"cpu{core}" / "topology").mkdir(parents=True)
        (processors / f"cpu{core}" / "topology" / "physical_package_id").write_text(f"{n % 2}\n")
    monkeypatch.setattr(device, "POWERCAP", folder)
    monkeypatch.setattr(device, "PROCESSORS", processors)
    return folder


def test_packages_and_nothing_else_are_counted(powercap, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5, 6})
    for core, package in ((5, 0), (6, 1)):
        folder = device.PROCESSORS / f"cpu{core}" / "topology"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "physical_package_id").write_text(str(package))
    found = {one.name: one.read() for one in open_device("cpu", 1).energy_counters()}
    assert found == {"package-0": 100, "package-1": 7.5}
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {6})
    (one,) = device.package_counters()
    assert (one.name, one.source, one.limit) == ("package-1", "RAPL", 262143.32885)


def test_all_packages_are_counted_if_those_of_the_cores_are_not_known(powercap, tmp_path):
    found = device.package_counters(processors=tmp_path / "none")
    assert [one.name for one in found] == ["package-0", "package-1"]


def test_packages_of_several_dies(powercap, tmp_path):
    (powercap / "intel-rapl:0" / "name").write_text("package-0-die-0\n")
    (powercap / "intel-rapl:1" / "name").write_text("package-0-die-1\n")
    found = device.package_counters(processors=tmp_path / "none")
    assert [one.name for one in found] == ["package-0-die-0", "package-0-die-1"]


def test_a_counter_that_starts_again_from_zero(powercap, tmp_path):
    one = device.package_counters(processors=tmp_path / "none")[0]
    (powercap / "intel-rapl:0" / "energy_uj").write_text("262143000000\n")
    before = one.read()
    (powercap / "intel-rapl:0" / "energy_uj").write_text("1000000\n")
    assert one.difference(before, one.read()) == pytest.approx(1.32885)
    assert one.difference(3.0, 5.0) == 2.0


def refuse(path, monkeypatch):
    """Let only root read a file, even if this process is root."""
    read = type(path).read_text

    def guarded(self, *words, **options):
        if self.name == path.name:
            raise PermissionError(13, "Permission denied")
        return read(self, *words, **options)

    monkeypatch.setattr(type(path), "read_text", guarded)


def test_counters_that_only_root_can_read(powercap, monkeypatch):
    refuse(powercap / "intel-rapl:0" / "energy_uj", monkeypatch)
    with pytest.raises(GaugeError, match=r"^only root can read the energy counters \(RAPL\)$"):
        device.package_counters()
    shown = call("doctor")[0]
    reason = "energy of the CPU: not available: only root can read the energy counters (RAPL)\n"
    assert f"missing {reason}          {device.ALLOW}\n" in shown


def test_a_machine_without_counters(tmp_path, monkeypatch):
    monkeypatch.setattr(device, "POWERCAP", tmp_path / "none")
    with pytest.raises(GaugeError, match="shows no energy counter"):
        open_device("cpu", 1).energy_counters()
    shown = call("doctor")[0]
    assert "missing energy of the CPU: not available: this system shows no energy" in shown
    assert f"\n          {device.LOAD}\n" in shown


def test_doctor_names_the_counters(powercap):
    assert "works   energy of the CPU: RAPL, package-0" in call("doctor")[0]


@pytest.mark.parametrize("spoil", ["empty", "gone"])
def test_damaged_counters(powercap, spoil):
    path = powercap / "intel-rapl:0" / "energy_uj"
    path.write_text("") if spoil == "empty" else path.unlink()
    with pytest.raises(GaugeError, match=r"energy_uj (contains no number|cannot be read)"):
        device.package_counters()

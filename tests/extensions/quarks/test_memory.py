"""Forecasts of the memory of measurements, against the memory that they take."""

import gc
import json

import pytest

from gauge_mc import generate
from gauge_mc.devices.choice import Place
from gauge_mc.devices.cpu import device as cpu
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import NoMemoryError
from gauge_mc.fields.field import Field
from gauge_mc.observables import OBSERVABLES
from gauge_mc.run.needs import rehearse
from gauge_mc.scans.forecast import forecast_run
from gauge_mc.stored.measure import MeasurementPlan, measure
from tests.calls import call, make_run
from tests.conftest import GPU
from tests.domain.conftest import open_group

pytestmark = pytest.mark.kernels

LATTICE = Lattice(4, 4, 4, 8)
WALLS = "domain-wall:ls=4,m=0.5"
ROUGH = {"tolerance": 1e-3}

MEASUREMENTS = {
    "residual mass": ("residual-mass", {"quark": WALLS, **ROUGH}),
    "half": ("residual-mass", {"quark": f"{WALLS},0.7:b=1.5:c=0.5", "inner": "half", **ROUGH}),
    "several masses": ("mesons", {"quark": f"{WALLS},0.7", **ROUGH}),
    "together": ("residual-mass", {"quark": WALLS, "together": 5, **ROUGH}),
    "measured ends": ("mesons", {"quark": f"{WALLS}:b=1:c=1:optimal=measured", **ROUGH}),
    "clover": ("mesons", {"kappa": "0.1,0.11", "mu": "0,0.1", "csw": 1.0, **ROUGH}),
    "sources": ("mesons", {"kappa": "0.1", "source": ("gauss:0.2,2,0,0,0,0", "wall:0"), **ROUGH}),
}


def measured_peaks(devices, observable, group, precision, monkeypatch):
    """The largest memory that each device had while the observable was measured."""
    most = {}
    for one in devices.devices:

        def allocate(nbytes, one=one, before=one.allocate):
            buffer = before(nbytes)
            most[one] = max(most.get(one, 0), one.allocated_bytes())
            return buffer

        monkeypatch.setattr(one, "allocate", allocate)
    measure = None
    for _ in range(2):  # the first field leaves nothing for the second one
        field = Field.cold(LATTICE, group, precision, devices)
        measure = measure or observable.measurer(field)
        measure(field)
        del field
    return [most[one] for one in devices.devices]


@pytest.fixture(autouse=True)
def without_garbage_collection():
    """Memory is freed without Python's search for cycles, which comes at any time."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", GPU])
@pytest.mark.parametrize("slices", [(8,), (2, 6)], ids=str)
@pytest.mark.parametrize("name", MEASUREMENTS)
def test_the_forecast_is_what_is_taken(name, slices, kind, monkeypatch):
    """On one device and on two, apart from coefficients and, on a GPU, counters of kernels."""
    chosen, options = MEASUREMENTS[name]
    observable = OBSERVABLES[chosen].for_lattice(LATTICE, **options).for_group("su2")
    devices = open_group(kind, slices)
    found = rehearse([observable], LATTICE, "su2", "single", devices)
    taken = measured_peaks(devices, observable, "su2", "single", monkeypatch)
    devices.close()
    small = 2**10 if kind.startswith("cpu") else 2**14
    assert all(0 <= real - said <= small for said, real in zip(found, taken, strict=True))


@pytest.mark.slow
def test_nothing_is_allocated_or_compiled(monkeypatch):
    """So that a lattice can be forecast that is much larger than the memory."""
    device = CpuDevice(1)
    for forbidden in ("allocate", "compile", "kernel"):
        monkeypatch.setattr(device, forbidden, None)
    kind, options = MEASUREMENTS["residual mass"]
    large = Lattice(32, 32, 32, 64)
    observable = OBSERVABLES[kind].for_lattice(large, **options)
    (found,) = rehearse([observable], large, "su3", "single", device)
    assert found > 2**34


@pytest.mark.slow
def test_published_sizes_fit_gpus_of_80_gb():
    """24^3 x 48 with L = 16 on one, and 32^3 x 64 on two, but not on one, which has 78 GiB free."""
    cpus = CpuDevice(1), CpuDevice(1)

    def most(extents, count):
        lattice = Lattice(*extents)
        walls = OBSERVABLES["residual-mass"].for_lattice(lattice, quark="domain-wall:m=0.04")
        return max(rehearse([walls], lattice, "su3", "single", DeviceGroup(cpus[:count])))

    assert 25e9 < most((24, 24, 24, 48), 1) < 78 * 2**30
    assert most((32, 32, 32, 64), 2) < 78 * 2**30 < most((32, 32, 32, 64), 1)


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", group="su2", configs=1, precision="double")


def with_free_memory(nbytes, monkeypatch):
    monkeypatch.setattr(cpu, "free_memory", lambda: nbytes)


@pytest.mark.slow
def test_too_little_memory_is_refused_before_the_start(run, monkeypatch):
    options = {"quark": WALLS, "backend": "cpu", **ROUGH}
    plan = MeasurementPlan("residual-mass", {"quark": WALLS, **ROUGH}, place=Place(backend="cpu"))
    with_free_memory(plan.memory([run]).device_bytes - 1, monkeypatch)
    with monkeypatch.context() as context:
        context.setattr("gauge_mc.stored.measurement_table.Ensemble.load", None)  # nothing is read
        with pytest.raises(NoMemoryError, match=r"^residual-mass needs .* of memory on .*split\.$"):
            measure(run, "residual-mass", progress=False, **options)
    with_free_memory(2**34, monkeypatch)
    assert len(measure(run, "residual-mass", progress=False, **options)) == LATTICE.t - 2


@pytest.mark.slow
def test_the_command_says_it(run, monkeypatch):
    words = ["measure", "residual-mass", run, "--quark", WALLS, "--backend", "cpu", "--dry-run"]
    shown, code = call(*words)
    assert code == 0
    assert "residual-mass (nothing was measured)" in shown
    with_free_memory(10**6, monkeypatch)
    shown, code = call(*words)
    assert code == 1
    assert "1.0 MB that are free" in shown
    assert shown.endswith("share every configuration with --split.\n")
    shown, code = call(*words, "--json")
    document = json.loads(shown.partition("gauge-mc:")[0])
    assert (code, document["free_device_bytes"]) == (1, 10**6)
    assert document["device_bytes"] > 10**6
    assert document["shortage"].startswith("residual-mass needs ")
    assert not list(run.glob("residual_mass*"))
    shown, code = call("measure", "plaquette", *words[2:3], *words[5:])
    assert (code, "The memory of plaquette is not forecast" in shown) == (2, True)
    shown, code = call("measure", "mesons", run, "--quark", "overlap:m=0.1", *words[5:])
    assert (code, "it depends on how many eigenvectors are found" in shown) == (2, True)


@pytest.mark.slow
def test_measurements_along_the_way_are_refused_before_the_start(tmp_path, monkeypatch):
    """The memory of two observables that share propagators, which the forecast of a run counts."""
    hadrons = "mesons:1:quark=domain-wall;ls=4;m=0.5,baryons:1:quark=domain-wall;ls=4;m=0.5"
    values = {"lattice": "4x4x4x8", "group": "su2", "configs": 1, "backend": "cpu"}
    values |= {"thermalize": 0, "measure": hadrons, "output": str(tmp_path / "run")}
    without = forecast_run({**values, "measure": "plaquette"}).device_bytes
    beside = forecast_run(values).device_bytes - without
    assert beside > 20 * without
    with_free_memory(beside // 2, monkeypatch)
    with pytest.raises(NoMemoryError, match=r"^baryons and mesons need .* let more --devices"):
        generate(**values, progress=False)
    with pytest.raises(NoMemoryError, match=r"^baryons and mesons need "):
        forecast_run(values)

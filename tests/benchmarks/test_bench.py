"""``gauge-mc bench``: it says what is so, on any device, with any amount of memory."""

import json
import math
import os
import pty
import re
import subprocess
import sys
from time import perf_counter

import numpy as np
import pytest

import gauge_mc
from gauge_mc.actions import ACTIONS, parse
from gauge_mc.algorithms import ALGORITHMS, hmc
from gauge_mc.benchmarks import BENCH_KINDS, timing
from gauge_mc.benchmarks import kernels as updates
from gauge_mc.benchmarks.hmc import HmcTime, PartTime, thermal, usual_trajectory
from gauge_mc.benchmarks.kernels import EXCHANGE, WITHOUT_EXCHANGE, benchmark, tune
from gauge_mc.benchmarks.plan import BenchPlan
from gauge_mc.benchmarks.timing import Bench
from gauge_mc.devices import BACKENDS
from gauge_mc.devices.base import Registers
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.cuda import device as cuda_device
from gauge_mc.devices.cuda import kernel as bounds
from gauge_mc.devices.cuda.compiler import CudaCompiler
from gauge_mc.devices.cuda.kernel import CudaKernel, SweepFunction
from gauge_mc.devices.kernels import Variant
from gauge_mc.domain.device_group import DeviceGroup, open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.flows import FLOWS
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.quantities.plaquette import Plaquette
from gauge_mc.random import GENERATORS
from gauge_mc.registry import in_words
from gauge_mc.smearing import SMEARINGS
from gauge_mc.temporal_links import TEMPORAL_LINKS
from gauge_mc.updates.heatbath import HEATBATH, ONE_REPLICA, OVERRELAXATION, heatbath, overrelax
from gauge_mc.updates.sweep import norms_of
from tests import emulator
from tests.benchmarks.tiny import HEADING, ON_CPU, only, small_copies
from tests.calls import call, call_apart
from tests.children import without_modules

FEW = {
    "OBSERVABLES": ("plaquette", "wilson-loops", "flow"),
    "SMEARINGS": ("ape", "hyp"),
    "TEMPORAL_LINKS": ("hyp2",),
    "FLOWS": ("wilson",),
}
"""What quick tests time, by registry."""


@pytest.fixture(autouse=True)
def _small_copies(monkeypatch):
    small_copies(monkeypatch)


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "gauge_mc", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.slow
def test_updates_with_another_action_are_timed_beside_the_usual_ones(monkeypatch):
    only(monkeypatch, updates, "GENERATORS", ["philox"])
    only(monkeypatch, updates, "OBSERVABLES", ["plaquette"])
    lattice = Lattice(4, 4, 4, 4)
    for text, name in (("iwasaki", "iwasaki"), ("wilson:anisotropy=2", "wilson, ξ₀ = 2")):
        bench = Bench(DeviceGroup.of(CpuDevice(1)), "su2", lattice, 0.001)
        result = benchmark(bench, BenchPlan(action=parse(text)))
        kernels = {kernel.name: kernel for kernel in result.kernels}
        for update in ("heatbath", "overrelaxation"):
            ratio = kernels[f"{update}, {name}"].ns_per_link / kernels[update].ns_per_link
            assert result.ratios[f"{update}, {name}"] == pytest.approx(ratio)
            moved = 17 if name == "iwasaki" else 9
            assert kernels[f"{update}, {name}"].bytes_per_link == moved * 4 * 4


@pytest.mark.slow
def test_bench_returns_in_python_what_the_command_prints(monkeypatch):
    only(monkeypatch, updates, "GENERATORS", ["philox"])
    only(monkeypatch, updates, "OBSERVABLES", ["plaquette"])
    monkeypatch.setattr(updates, "KINDS", tuple({} for _ in updates.KINDS))
    how = {"lattice": (4, 4, 4, 6), "seconds": 0.05, "backend": "cpu", "threads": 1}
    found = gauge_mc.bench(**how, anisotropy=2.0)
    assert isinstance(found, updates.Benchmark)
    assert (found.lattice, found.group, found.random) == ("4x4x4x6", "su2", "philox")
    assert {"heatbath", "plaquette", "heatbath, wilson, ξ₀ = 2"} <= {
        kernel.name for kernel in found.kernels
    }
    assert isinstance(gauge_mc.bench(**how, observables=True), updates.ObservablesTime)


@pytest.mark.slow
def test_only_what_is_named_is_timed():
    names = ("Plaquette", "ape", "hyp1", "wilson")
    found = json.loads(call("bench", "--observables", *names, *ON_CPU, "--json")[0])
    kinds = (found[kind] for kind in ("observables", "smearings", "temporal_links", "flows"))
    assert [[*kind] for kind in kinds] == [[name.lower()] for name in names]
    how = {"lattice": (4, 4, 4, 4), "seconds": 0.05, "backend": "cpu", "threads": 1}
    result = gauge_mc.bench(**how, observables="plaquette")
    assert ([*result.observables], result.smearings, result.flows) == (["plaquette"], {}, {})


def test_a_lattice_that_suits_the_device_is_timed_by_default():
    assert BenchPlan().lattice_on("cpu").t == BACKENDS["cpu"].bench_extent
    assert BenchPlan(end_to_end=True).lattice_on("cuda") == Lattice(32, 32, 32, 32)
    assert BenchPlan.from_values({"lattice": "4x4x4x6"}).lattice_on("cuda") == Lattice(4, 4, 4, 6)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"seconds": 0.01}, "--seconds must lie between 0.05 and 3600, not 0.01"),
        ({"gruop": "su3"}, r"no parameter 'gruop'; did you mean 'group'\?"),
        (
            {"end_to_end": True, "anisotropy": 2.0},
            "--action and its options are for the times of upd",
        ),
        ({"action": "wilsn"}, "wilsn"),
        ({"observables": ["flow", "hyb2"]}, r"temporal links or flow 'hyb2'; did you mean 'hyp2'"),
        ({"group": "su33", "lattice": 4 * (4,), "backend": "cpu"}, "no group 'su33'"),
    ],
)
def test_bad_input_in_python_ends_in_one_sentence(values, sentence):
    with pytest.raises(UsageError, match=sentence):
        gauge_mc.bench(**values)


@pytest.mark.slow
def test_bench_prints_one_json_object(tmp_path):
    shown, progress, code = call_apart("bench", *ON_CPU, "--json", "--save", tmp_path / "b")
    assert (progress, code) == ("", 0)
    result = json.loads(shown)
    heading = {"command": "bench", "vocabulary": result["vocabulary"]}
    assert result == {**heading, **json.loads((tmp_path / "b").read_text())}
    assert result["lattice"] == "4x4x4x4"
    assert result["copy_gb_per_s"] > 0.1
    kernels = {kernel["name"]: kernel for kernel in result["kernels"]}
    others = {f"heatbath, {name}" for name in GENERATORS if name != "philox"}
    quick = {name: one for name, one in OBSERVABLES.items() if one.benched}
    observables = {name for name, one in quick.items() if one.columns.averaged}
    assert observables >= {"parallelograms", "plaquette", "polyakov", "rectangles"}
    assert set(kernels) == {"overrelaxation", *ALGORITHMS} | observables | others
    for kernel in kernels.values():
        assert kernel["links_per_s"] * kernel["ns_per_link"] == pytest.approx(1e9)
    assert kernels["heatbath"]["bytes_per_link"] == 9 * 4 * 4
    compared, code = call("bench", *ON_CPU, "--compare", tmp_path / "b")
    assert code == 0
    assert "ratio" in compared


REFUSED = {
    "--group zu8": "no group 'zu8'",
    "--lattice 5x4x4x4": "even extents",
    "--observables plaquete": "did you mean 'plaquette'?",
    "plaquete": "did you mean 'plaquette'?",
    "heatbad": "did you mean 'heatbath'",
    "--backend abacus": "no backend 'abacus'",
    "--compare /nonexistent": "not a result of gauge-mc bench",
    "--threads 0": "--threads is 0; give a whole number from 1 to 1024",
    "--threads 1025": "--threads is 1025; give a whole number from 1 to 1024",
    "--chains 2": "--chains is for --hmc; add it, or leave out --chains",
    "--hmc --chains 0": "--chains must lie between 1 and 10000, not 0",
    "--hmc --chains 2 --devices cpu:2": "Several chains are timed on one device",
    "--end-to-end --hmc": "A benchmark times one of --end-to-end and --hmc at a time",
    "--end-to-end --threads 2 --devices cpu:2": "times one device and one process",
    "--end-to-end --action iwasaki": "--action and its options are for the times of updates",
    "--end-to-end heatbath": "leave out --end-to-end",
    "--backend cpu --tune": "--tune works only on a GPU",
    "--card card.toml": "--card is for --hmc; add it, or leave out --card",
    "--backend cpu --hmc --card card.toml": (
        "--hmc times trajectories; the algorithm heatbath has none"
    ),
    "--weak": "--weak and --plot are for --over",
    "--plot a.png": "--weak and --plot are for --over",
    "--over devices": "--over must be lattice, devices, threads or precision with values",
    "--over beta=1,2": "--over must be lattice, devices, threads or precision with values",
    "--over threads=1,1": "must have different values",
    "--over threads=1,two": "takes numbers, as in threads=1,2,4",
    "--over threads=0": "takes numbers, as in threads=1,2,4",
    "--over lattice=3x4x4x4": "The extent in x is 3",
    "--over lattice=4,8 --weak": "--weak is for --over devices or threads",
    "--over threads=1,2 --plot a.txt": "a.txt",
    "--over threads=1,2 --tune": "leave out --tune and --compare",
}
"""Arguments with sentences of what is refused."""


@pytest.mark.parametrize("arguments", REFUSED)
def test_bad_input_ends_in_one_sentence(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "card.toml").write_text('beta = 2.3\nlattice = "4x4x4x4"\n')
    lattice = () if "--lattice" in arguments else ("--lattice", "4x4x4x4")
    shown, complaint, code = call_apart("bench", *lattice, *arguments.split())
    assert (shown, code, complaint.count("\n")) == ("", 2, 1), complaint
    assert REFUSED[arguments] in complaint


@pytest.mark.slow
def test_no_compiler_is_one_sentence(tmp_path):
    modules = without_modules(tmp_path / "modules", "ziglang")
    done = run("bench", *ON_CPU, PATH=str(tmp_path), CXX="", **modules)
    assert done.returncode == 1
    assert "No C++ compiler was found" in done.stderr


@pytest.mark.slow
def test_a_failing_compiler_is_one_sentence(tmp_path):
    broken = tmp_path / "c++"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "error: boom"; exit 1\n')
    broken.chmod(0o755)
    done = run("bench", *ON_CPU, CXX=str(broken), GAUGE_MC_CACHE=str(tmp_path / "k"))
    assert done.returncode == 1
    assert "error: boom" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture(params=["few", pytest.param("all", marks=pytest.mark.slow)])
def registries(request, monkeypatch):
    """A few elements of every registry, or all, which are then timed once each."""
    if request.param == "all":
        monkeypatch.setattr(timing, "seconds_of", seconds_of_one)
        return OBSERVABLES, SMEARINGS, TEMPORAL_LINKS, FLOWS
    few = tuple(only(monkeypatch, updates, *one) for one in FEW.items())
    monkeypatch.setattr(updates, "KINDS", few)
    return few


def seconds_of_one(devices, call, seconds):
    """The time of one repetition, as the median and with the range 0."""
    start = perf_counter()
    call(1)
    devices.synchronize()
    return perf_counter() - start, 0.0


@pytest.mark.slow
def test_observables_smearings_and_flows_are_timed_in_sweeps(registries):
    observables, smearings, temporal_links, flows = registries
    words = ("--backend", "cpu", "--lattice", "4x4x4x6", "--seconds", "0.05")
    shown, code = call("bench", "--observables", *words)
    assert code == 0
    assert "a heatbath sweep takes" in shown
    found = json.loads(call("bench", "--observables", "--json", *words)[0])
    timed = [name for name, one in observables.items() if one.benched]
    assert found["observables"].keys() == set(timed)
    assert found["smearings"].keys() == set(smearings)
    assert found["temporal_links"].keys() == set(temporal_links)
    assert found["flows"].keys() == set(flows)
    for kind in ("observables", "smearings", "temporal_links", "flows"):
        assert min(found[kind].values()) > 0
    # A heatbath and an overrelaxation sweep of 1536 links in ns, and what takes how many of them.
    sweeps = [1e6 * float(ms) for ms in re.findall(r"sweep (?:takes )?([0-9.e+-]+) ms", shown)]
    lines = re.findall(r"│ (.+?) +│ +(\S+) │ +(\S+) │ +(\S+) │", shown)
    rows = {name: cells for name, *cells in lines}
    assert list(rows) == [
        *timed,
        *(f"{name} smearing" for name in smearings),
        *(f"{name} temporal links" for name in temporal_links),
        *(f"{name} flow" for name in flows),
    ]
    for cells in rows.values():
        per_link, *in_sweeps = map(float, cells)
        for time, sweep in zip(in_sweeps, sweeps, strict=True):
            assert time * sweep == pytest.approx(1536 * per_link, rel=0.02)
    assert max(map(len, shown.splitlines()[1:])) < 80


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode",
    [
        pytest.param((), marks=pytest.mark.slow),
        pytest.param(("--observables",), marks=pytest.mark.every),
        ("--json",),
    ],
)
def test_progress_is_shown_on_stderr_if_that_is_a_terminal(mode):
    here, terminal = pty.openpty()
    command = [sys.executable, "-m", "gauge_mc", "bench", *ON_CPU, *mode]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=terminal, text=True, env=environment
    ) as process:
        os.close(terminal)
        progress = read_all(here)
        result = process.stdout.read()
    assert process.returncode == 0
    for name in ("heatbath", *("plaquette", "polyakov")):
        assert f"timing {name}" in progress
    assert "timing" not in result
    assert "\x1b" not in result
    if "--json" in mode:
        json.loads(result)


def read_all(terminal):
    """Read what is written to a terminal until the last writer has closed it."""
    parts = []
    try:
        while part := os.read(terminal, 65536):
            parts.append(part)
    except OSError:  # how Linux tells the end
        pass
    os.close(terminal)
    return b"".join(parts).decode()


@pytest.mark.slow
def test_the_last_step_of_progress_is_the_last_thing_timed():
    steps = []
    device = DeviceGroup.of(None)
    bench = Bench(device, "su2", Lattice(4, 4, 4, 4), 0.01, lambda *step: steps.append(step))
    benchmark(bench, BenchPlan())
    names = [name for name, total in steps if total]
    assert {total for _, total in steps if total} == {len(names)}
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_the_halo_exchange_is_timed(monkeypatch):
    monkeypatch.setattr(timing, "COPY_EXTENT", 4)
    devices = open_device_group("cpu:2")
    result = benchmark(Bench(devices, "su2", Lattice(4, 4, 4, 8), 0.001), BenchPlan())
    times = {kernel.name: kernel.ns_per_link for kernel in result.kernels}
    assert {"heatbath", WITHOUT_EXCHANGE, EXCHANGE} <= times.keys()
    assert min(times.values()) > 0


SINGLE, WHOLE = Registers(87, 8), Registers(41, 0)


@pytest.mark.gpu
def test_registers_are_those_of_the_function_that_ran(gpu, monkeypatch):
    """Small lattices run whole sweeps in one launch; others, and several GPUs, single steps."""
    if type(gpu) is not cuda_device.CudaDevice:
        pytest.skip("whole sweeps in one launch are for CUDA alone")
    monkeypatch.setattr(timing, "COPY_EXTENT", 4)

    registers_of = CudaCompiler.registers_of

    def reported(report, function):
        if registers_of(report, function) is None:
            return None
        return WHOLE if function.endswith("_sweep") else SINGLE

    monkeypatch.setattr(CudaCompiler, "registers_of", staticmethod(reported))
    fits = SweepFunction.fits
    monkeypatch.setattr(  # as on a GPU with few multiprocessors
        SweepFunction, "fits", lambda self, *grid: math.prod(grid) < 4096 and fits(self, *grid)
    )
    gpus = [cuda_device.CudaDevice(0), cuda_device.CudaDevice(0)]
    launched = []
    for name in ("_launch_sweeps", "_launch"):
        method = getattr(CudaKernel, name)
        monkeypatch.setattr(
            CudaKernel,
            name,
            lambda *words, name=name, method=method: launched.append(name) or method(*words),
        )

    def ran(devices, extents):
        """Time everything, and check what is said of the heatbath against what was launched."""
        result = benchmark(Bench(devices, "su2", Lattice(*extents), 0.001), BenchPlan())
        kernels = {kernel.name: kernel for kernel in result.kernels}
        found = {
            name: Registers(one.registers, one.spilled)
            for name, one in kernels.items()
            if one.registers is not None
        }
        measured = {name: found.pop(name) for name in OBSERVABLES if name in found}
        assert {"plaquette", "polyakov"} <= measured.keys()
        assert set(measured.values()) == {SINGLE}
        (only,) = set(found.values())
        wanted = {"heatbath", "overrelaxation", *(f"heatbath, {name}" for name in GENERATORS)}
        wanted -= {"heatbath, philox"}
        assert found.keys() == wanted | ({WITHOUT_EXCHANGE} if len(devices.devices) > 1 else set())
        assert (EXCHANGE in kernels) == (len(devices.devices) > 1)
        return only

    assert ran(DeviceGroup((gpus[0],)), (4, 4, 4, 4)) == WHOLE
    assert "_launch_sweeps" in launched
    launched.clear()
    assert ran(DeviceGroup((gpus[0],)), (16, 16, 16, 8)) == SINGLE
    assert "_launch_sweeps" not in launched
    assert ran(DeviceGroup(tuple(gpus)), (4, 4, 4, 4)) == SINGLE
    assert "_launch_sweeps" not in launched


LATTICE, SITES = "8x8x8x8", 8**4
FIELD = SITES * 4 * 12 * 8
RANLUX = SITES * 4 * 20
SCRATCH = FIELD // 32 + 8**3 * 4 * 18 * 8 + 12288
"""Lines along t, a time slice of the cold start, and partial sums, but not the states of another
generator beside them."""

DOUBLE_ON_GPU = ("--precision", "double", "--backend", "cuda")
"""In the precision for which other tests compile kernels of SU(3) too."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("free", "measured", "left_out"),
    [
        (
            3 * RANLUX // 4,
            ["lcg"],
            ["heatbath, ranlux: its states do not fit into the free memory"],
        ),
        (RANLUX + SCRATCH, ["lcg", "ranlux"], []),
    ],
)
def test_what_fits_into_little_memory_is_measured(free, measured, left_out):
    """The copied fields are then smaller, and generators whose states do not fit are named."""
    assert GENERATORS["ranlux"].state_words == 20
    words = ("--group", "su3", "--lattice", LATTICE, "--seconds", "0.05", *DOUBLE_ON_GPU)
    little = {**emulator.environment(), "GAUGE_EMULATOR_BYTES": str(FIELD + free)}
    done = run("bench", *words, "--json", **little)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    others = [f"{name}: its fields do not fit into the free memory" for name in ALGORITHMS]
    assert others[ALGORITHMS.names.index("hmc")] in result["left_out"]
    assert [text for text in result["left_out"] if text not in others] == left_out
    assert result["copy_gb_per_s"] > 0
    found = {kernel["name"].partition(", ")[2] for kernel in result["kernels"]}
    assert found == {"", *measured}


@pytest.mark.slow
def test_a_field_that_does_not_fit_is_one_sentence():
    little = {**emulator.environment(), "GAUGE_EMULATOR_BYTES": str(FIELD // 2)}
    words = ("--group", "su3", "--lattice", LATTICE, *DOUBLE_ON_GPU)
    done = run("bench", *words, **little)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "gauge-mc: 0.00146 GiB for the lattice cannot be allocated on Emulated GPU"
    )
    assert done.stderr.count("\n") == 1


def with_energy(document):
    """The result in a document, with an energy of 7.2 J."""
    values = {key: value for key, value in document.items() if key not in HEADING}
    parts = [PartTime(**part) for part in values.pop("parts")]
    return HmcTime(**{**values, "parts": parts, "joules": 7.2})


@pytest.mark.slow
def test_trajectories_and_their_parts_are_timed(tmp_path):
    card = tmp_path / "card.toml"
    words = ('algorithm = "hmc"', "steps = 4", 'integrator = "omf4"', "beta = 2.3")
    card.write_text("\n".join([*words, 'lattice = "4x4x4x6"', 'precision = "double"']))
    found = json.loads(call("bench", "--hmc", "--card", card, *ON_CPU[2:], "--json")[0])
    assert (found["lattice"], found["links"]) == ("4x4x4x6", 1536)
    calls = {one["name"]: one["calls"] for one in found["parts"]}
    assert calls == {"gauge force and drift": 21, "momenta": 1, "gauge action": 1}
    for one in found["parts"]:
        share = one["calls"] * one["seconds"] / found["trajectory_s"]
        assert one["share"] == pytest.approx(share)
        assert one["essential"] == (one["name"] == "gauge force and drift")
    assert found["flow"] == "wilson"
    force = found["parts"][0]
    result = with_energy(found)
    assert result.ratio == pytest.approx(force["seconds"] / found["flow_stage_s"])
    assert result.inside == pytest.approx(force["share"])
    assert result.per_kwh == pytest.approx(5e5)
    assert (result.chains, result.chain_s) == (1, result.trajectory_s)
    shown, code = call("bench", "--hmc", *ON_CPU, "--action", "symanzik", "--precision", "double")
    assert code == 0
    assert "double precision on" in shown
    assert "symanzik, hmc" in shown
    assert "times a stage of the symanzik flow" in " ".join(shown.split())


@pytest.mark.slow
def test_trajectories_of_several_chains_are_timed_together(monkeypatch):
    """Chains move in two groups here, as if one device had too little memory for all of them."""
    groups = [slice(0, 2), slice(2, 3)]
    monkeypatch.setattr(hmc, "divided", lambda *_: groups)
    kind = ("bench", "--hmc", "--chains", "3", *ON_CPU, "--precision", "double")
    found = json.loads(call(*kind, "--json")[0])
    assert (found["chains"], found["links"]) == (3, 1024)
    calls = {one["name"]: one["calls"] for one in found["parts"]}
    assert calls == {"gauge force and drift": 17, "momenta": 1, "gauge action": 1}
    assert {one["chains"] for one in found["parts"]} == {3}
    result = with_energy(found)
    force = result.parts[0]
    assert result.chain_s == pytest.approx(result.trajectory_s / 3)
    assert result.per_kwh == pytest.approx(1.5e6)
    assert result.ratio == pytest.approx(force.seconds / 3 / result.flow_stage_s)
    assert force.share == pytest.approx(17 * force.seconds / result.trajectory_s)
    shown, code = call(*kind)
    assert code == 0
    assert "wilson, hmc, 3 chains" in shown
    assert "a trajectory of every chain takes" in shown


def test_parts_are_those_of_all_chains_and_change_no_links():
    p = usual_trajectory(BenchPlan(group="su2", precision="double"), Lattice.parse("4x4x4x4"))
    batch = thermal(p, open_device_group("cpu:1", threads=1), 3)
    links = [one.to_numpy() for one in batch.field.replicas]
    assert len({one.tobytes() for one in links}) == 3
    randoms = [one.random for one in batch.chains]
    assert [one.seed for one in randoms] == [p.seed, p.seed + 1, p.seed + 2]
    parts = list(p.algorithm.parts(batch.field, [p.coupling] * 3, randoms))
    for one in parts:
        one.call(2)
    for before, replica in zip(links, batch.field.replicas, strict=True):
        assert np.array_equal(before, replica.to_numpy())


def test_one_kind_of_benchmark_is_chosen_at_a_time():
    with pytest.raises(UsageError, match="one of --observables, --end-to-end and --hmc at"):
        BenchPlan(observables=["plaquette"], hmc=True, end_to_end=True)


def test_the_flags_without_an_action_are_named_in_their_order():
    kinds = ("--observables", *(f"--{name}" for name in BENCH_KINDS), "--end-to-end")
    with pytest.raises(UsageError, match=re.escape(f"leave out {in_words(kinds)}.")):
        gauge_mc.bench(end_to_end=True, anisotropy=2.0)


@pytest.mark.parametrize("kind", BENCH_KINDS)
def test_options_of_a_kind_of_benchmark_are_for_it_alone(kind):
    first, *others = BENCH_KINDS[kind].options
    assert first.name == kind
    for one in others:
        with pytest.raises(UsageError, match=f"{one.flag} is for --{kind}; add it"):
            BenchPlan(others={one.name: "a"})
    with pytest.raises(UsageError, match=f"one of --{kind} and --hmc at a time"):
        BenchPlan(others={kind: True}, hmc=True)


@pytest.mark.gpu
@pytest.mark.parametrize("group", ["su2", pytest.param("su3", marks=pytest.mark.slow)])
def test_tuning_keeps_the_fastest_and_changes_no_bit(gpu, group, tmp_path, monkeypatch):
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path))
    monkeypatch.setattr(bounds, "REGISTER_LIMITS", (64, 255))  # each is compiled for both kernels
    lattice = Lattice(8, 4, 4, 4)
    choices = (
        *GROUPS[group].choices,
        *ACTIONS["wilson"].choices,
        norms_of("single"),
        GENERATORS["philox"].choice(),
        ONE_REPLICA,
    )
    variant = Variant("single", choices)
    kernels = {kernel.name: kernel for kernel in (HEATBATH, OVERRELAXATION)}

    def chain():
        field = Field.hot(lattice, group, "single", gpu, seed=2)
        heatbath(field, 4.0, Random.for_field(field, seed=3))
        overrelax(field)
        return field.to_numpy(), Plaquette().measure(field)

    links, averages = chain()
    devices, trials = DeviceGroup.of(gpu), []
    for timed, choice, _, kept in tune(devices, BenchPlan(group=group), lattice, seconds=0.01):
        trials.append((timed.name, choice, kept))
        # What is timed are single launches, which have the bounds.
        assert not gpu.kernel(kernels[timed.name], variant).sweep
    for name, kernel in kernels.items():
        choices = {choice: kept for timed, choice, kept in trials if timed == name}
        assert len(choices) >= len(bounds.candidates()) == 6
        best = str(gpu.tuned.bounds(kernel, variant))
        assert best == [choice for choice, kept in choices.items() if kept][-1]
    again, averages_again = chain()
    assert np.array_equal(links, again)
    assert averages == averages_again

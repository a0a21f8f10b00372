"""``gauge-mc bench``: hopping terms, operators, the sign function, and trajectories with quarks."""

import json
import re

import pytest

import gauge_mc
from gauge_mc.benchmarks import timing
from gauge_mc.benchmarks.plan import BenchPlan
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks import benchmarks
from gauge_mc.extensions.quarks.overlap.sign_function import APPROXIMATIONS
from gauge_mc.extensions.quarks.solvers import SOLVERS
from gauge_mc.extensions.quarks.vectors import STORAGES
from tests.benchmarks.test_over import check_rates
from tests.benchmarks.tiny import ON_CPU, only, small_copies
from tests.calls import call


@pytest.fixture(autouse=True)
def _small_copies(monkeypatch):
    small_copies(monkeypatch)


@pytest.mark.slow
def test_the_sign_function_of_overlap_quarks_is_timed(monkeypatch):
    """The shares follow from the times, and the lattices are halved."""
    monkeypatch.setattr(benchmarks, "ACCURACIES", (0.3, 0.03))
    lattice = ("--lattice", "8x8x8x8", "--seconds", "0.05", "--backend", "cpu", "--threads", "1")
    found = json.loads(call("bench", "--chiral", *lattice, "--json")[0])
    volumes = [(one["lattice"], one["vectors"]) for one in found["kernels"]]
    assert volumes == [("8x8x8x8", 1), ("4x4x4x4", 1), ("8x8x8x8", 6)]
    kernel = found["kernels"][0]
    assert kernel["ratio"] == pytest.approx(kernel["kernel_ns"] / kernel["hop_ns"])
    names = [one["approximation"] for one in found["signs"]]
    assert set(names) == set(APPROXIMATIONS)
    for one in found["signs"]:
        assert one["ns_per_step"] * one["steps"] == pytest.approx(one["ns"])
        own = kernel if one["vectors"] == 1 else found["kernels"][-1]
        share = (2 * one["steps"] + 1) * own["kernel_ns"] / one["ns"]
        assert one["share"] == pytest.approx(share)
        assert one["measured"] == pytest.approx(one["ns"] / found["signs"][0]["ns"])
        if one["approximation"] == "polynomial":
            assert one["steps"] == one["size"]
    rough, fine, several = (found["signs"][n] for n in (0, 2, 4))
    assert (several["vectors"], several["size"]) == (6, fine["size"])
    assert fine["size"] > 1.5 * rough["size"]
    assert fine["model"] == pytest.approx(fine["size"] / rough["size"])
    with pytest.raises(UsageError, match=r"leave out --observables, .*--quarks.* and --end-to-end"):
        gauge_mc.bench(chiral=True, anisotropy=2.0)


@pytest.mark.parametrize("count", [1, 6])
def test_times_of_the_kernel_of_overlap_quarks_are_per_site_and_vector(monkeypatch, count):
    monkeypatch.setattr(timing, "seconds_of", lambda *_: (1.0, 0.0))
    lattice = Lattice(4, 4, 4, 8)
    bench = timing.Bench(DeviceGroup.of(CpuDevice(1)), "su3", lattice)
    found = benchmarks.kernel_time(bench, lattice, count)
    assert found.kernel_ns == pytest.approx(1e9 / 512 / count)
    assert found.hop_ns == pytest.approx(1e9 / 512 / count)


@pytest.mark.slow
def test_all_forms_of_the_hopping_term_are_timed():
    found = json.loads(call("bench", "--quarks", *ON_CPU, "--json", "--group", "su3")[0])
    assert found["flops_per_site"] == 1320
    kinds = {(one["storage"], one["reals"], one["vectors"]) for one in found["hops"]}
    assert kinds == {(s, r, n) for s in STORAGES for r in (8, 12, 18) for n in (1, 12)}
    for one in found["hops"]:
        site = one["gb_per_s"] / (one["tflops"] * 1e3 / 1320)
        ideal = {"single": 576, "double": 1152, "half": 296}[one["storage"]]
        if (one["reals"], one["vectors"]) == (12, 1):
            assert abs(site / ideal - 1) < 1e-9
        assert abs(one["gb_per_s"] / found["copy_gb_per_s"] / one["share"] - 1) < 1e-9


@pytest.mark.slow
def test_the_hopping_term_is_timed(monkeypatch):
    only(monkeypatch, benchmarks, "STORAGES", ["single"])
    shown, code = call("bench", "--quarks", *ON_CPU, "--group", "su2")
    assert code == 0
    assert "hopping term on one parity, SU2 4x4x4x4 on" in shown
    assert "of a copy" in shown


OPERATORS = {
    # operator, fifth direction, vectors of a product, and launches of conjugate gradients
    "domain-wall:LS=4,m=0.1": (4, 6, 12),
    "wilson:kappa=0.12": (1, 5, 11),
    "wilson-clover:csw=1.5": (1, 5, 11),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        next(iter(OPERATORS)),
        *(pytest.param(one, marks=pytest.mark.slow) for one in list(OPERATORS)[1:]),
    ],
)
def test_an_operator_is_timed(name, monkeypatch):
    """Bytes of SU(2): 4 reals of a link, 16 of a spinor, single precision."""
    only(monkeypatch, benchmarks, "STORAGES", ["single"])
    timed, time = [], timing.Bench.time
    monkeypatch.setattr(timing.Bench, "time", lambda *words: timed.append(words) or time(*words))
    words = ["bench", "--quarks", "--operator", name, *ON_CPU, "--group", "su2"]
    found = json.loads(call(*words, "--json")[0])
    fifth, vectors, launches = OPERATORS[name]
    (one,) = found["parts"]
    # Two hopping terms, and the operators that solvers apply, each once.
    assert sum(len(words) - 1 for words in timed) == 5
    assert found["fifth"] == fifth
    assert one["bytes_per_site"] == 8 * 4 * 4 / fifth + 2 * 16 * 4
    sites = 4**4 / 2
    moved = sites * fifth * one["bytes_per_site"] / one["hop_s"]
    assert one["gb_per_s"] == pytest.approx(moved / 1e9)
    assert one["share"] == pytest.approx(moved / 1e9 / found["copy_gb_per_s"])
    flops = sites * fifth * found["flops_per_site"]
    assert one["hop_tflops"] == pytest.approx(flops / one["hop_s"] / 1e12)
    assert one["operator_tflops"] == pytest.approx(2 * flops / one["operator_s"] / 1e12)
    assert one["rest"] == pytest.approx(max(0, 1 - 2 * one["hop_s"] / one["operator_s"]))
    assert found["columns"] == 8
    assert [own["solver"] for own in one["solvers"]] == [*SOLVERS]
    for own in one["solvers"]:
        all_vectors = 2 * vectors + {"cg": 10, "bicgstab": 18}[own["solver"]]
        assert own["iteration_bytes"] == sites * (fifth * all_vectors * 64 + 4 * 8 * 16)
        assert own["gb_per_s"] == pytest.approx(own["iteration_bytes"] / own["iteration_s"] / 1e9)
        assert own["tflops"] == pytest.approx(4 * flops / own["iteration_s"] / 1e12)
        assert (own["together_s"] is None) == (own["together_tflops"] is None) == (fifth > 1)
        if fifth == 1:
            together = 4 * flops * found["columns"] / own["together_s"] / 1e12
            assert own["together_tflops"] == pytest.approx(together)
    assert {own["solver"]: own["launches"] for own in one["solvers"]}["cg"] == launches


def test_several_vectors_are_not_timed_without_the_memory(monkeypatch):
    """20 fields of 8 vectors of 128 bytes each on half of the sites."""
    bench = timing.Bench(DeviceGroup.of(CpuDevice(1)), "su2", Lattice(4, 4, 4, 4))
    timer = benchmarks.OperatorTimer(bench, benchmarks.TimedOperator.parse("wilson"))
    monkeypatch.setattr(timer, "source", lambda vectors: vectors)
    required = 20 * 8 * 128 * 4**4 // 2
    for free, expected in ((required, 8), (required - 1, None)):
        monkeypatch.setattr(CpuDevice, "free_bytes", lambda self, free=free: free)
        assert timer.columns() == expected


@pytest.mark.slow
def test_the_times_of_an_operator_are_shown(monkeypatch):
    only(monkeypatch, benchmarks, "STORAGES", ["single"])
    words = ["bench", "--quarks", "--operator", "domain-wall:LS=4", *ON_CPU, "--group", "su2"]
    shown, code = call(*words)
    assert code == 0
    assert "domain-wall, ls = 4, m5 = 1.8, b = 1.0, c = 0.0, m = 0.04: SU2 4x4x4x4" in shown
    assert re.search(r"launches +│ +12 │", shown)


REFUSED = {
    "--quarks --operator overlap": "overlap is not one hopping term; choose",
    "--quarks --operator wall": "There is no Dirac operator 'wall'",
    "--quarks --operator wilson:LS=4": "The operator wilson has no parameter ls; leave it out.",
    "--quarks --operator domain-wall:M5=3": "M5 of --operator domain-wall is 3; give a number",
    "--quarks --operator domain-wall:LS": "'LS' in 'domain-wall:LS' is not of the form",
    "--operator wilson": "--operator is for --quarks; add it",
    "--quarks --hmc": "A benchmark times one of --quarks and --hmc at a time",
    "--quarks --action iwasaki": "--action and its options are for the times of updates",
    "--quarks heatbath": "leave out --quarks",
}
"""Arguments with sentences of what is refused."""


@pytest.mark.parametrize("arguments", REFUSED)
def test_bad_input_ends_in_one_sentence(arguments):
    shown, code = call("bench", *ON_CPU, *arguments.split())
    assert (code, shown.count("\n")) == (2, 1), shown
    assert REFUSED[arguments] in shown


@pytest.mark.slow
def test_terms_of_quarks_are_parts_of_trajectories(tmp_path):
    card = tmp_path / "card.toml"
    words = ('algorithm = "hmc"', "beta = 2.3", 'lattice = "4x4x4x4"', 'precision = "double"')
    quarks = ("[[quarks]]", "kappa = 0.1", "heavier = [{kappa = 0.05}]", "level = [0, 1]")
    levels = ("[[levels]]", "steps = 2", "[[levels]]", "steps = 3")
    card.write_text("\n".join([*words, *quarks, *levels]))
    found = json.loads(call("bench", "--hmc", "--card", card, *ON_CPU[2:], "--json")[0])
    parts = {one["name"]: one for one in found["parts"]}
    # Kicks of 2MN: 2 n + 1 of the outer level, in whose 4 drifts are 2 * 3 of the inner one each.
    calls = {"quarks1_ratio1 force": 5, "quarks1 force": 25, "gauge force and drift": 25}
    for name, number in calls.items():
        assert parts[name]["calls"] == number
        assert parts[name]["essential"]
    assert parts["links of quarks"]["calls"] == 27
    assert not parts["quarks1 drawn"]["essential"]
    ratio = [parts[f"quarks1_ratio1 {what}"]["iterations"] for what in ("force", "action")]
    assert 0 < ratio[0] < ratio[1]
    assert parts["quarks1_ratio1 drawn"]["essential"]


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["cg", "bicgstab"])
def test_chains_with_quarks_are_timed_as_they_move(tmp_path, solver):
    """Together, with any solver."""
    card = tmp_path / "card.toml"
    words = ('algorithm = "hmc"', "beta = 2.3", 'lattice = "4x4x4x4"', 'precision = "double"')
    quarks = ("steps = 2", "[[quarks]]", "kappa = 0.1", f'solver = "{solver}"')
    card.write_text("\n".join([*words, *quarks]))
    given = ("--card", card, "--chains", "3", *ON_CPU[2:])
    found = json.loads(call("bench", "--hmc", *given, "--json")[0])
    parts = {one["name"]: one for one in found["parts"]}
    calls = {"force": 5, "drawn": 1, "action": 1}
    expected = {f"quarks1 {name}": number for name, number in calls.items()}
    expected |= {"gauge force and drift": 5, "momenta": 1, "links of quarks": 7}
    for name, number in expected.items():
        assert parts[name]["calls"] == number
        assert parts[name]["chains"] == 3
    assert parts["quarks1 force"]["iterations"] > 5
    assert parts["quarks1 drawn"]["iterations"] == 0
    assert found["chains"] == 3


def test_other_kinds_are_not_for_the_sign_function():
    with pytest.raises(UsageError, match="one of --observables, --chiral and --end-to-end at"):
        BenchPlan(observables=["plaquette"], end_to_end=True, others={"chiral": True})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (("--quarks",), "double, 12 reals, vectors 1"),
        (("--quarks", "--operator", "wilson"), "cg, double"),
    ],
)
def test_rates_are_compared(kind, name):
    check_rates(kind, name, "TFLOP/s")

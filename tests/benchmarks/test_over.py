"""``gauge-mc bench --over``: rates along an axis, and their figure."""

import json
from dataclasses import dataclass

import pytest

from gauge_mc.benchmarks.over import BenchAxis, bench_over
from gauge_mc.benchmarks.timing import BenchResult, Timing, neighbour_bandwidth
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.plots.figures.curves import RateCurve, draw_rates
from tests.calls import call

LATTICE = Lattice(4, 4, 6, 8)

TINY = ("--seconds", "0.05", "--backend", "cpu", "--threads", "1")


@dataclass(frozen=True)
class Rates(BenchResult):
    """A result with given rates."""

    timings: list

    @property
    def rates(self):
        return self.timings


def along(axis, *rates):
    """Compare benchmarks with given rates, and return the options of each too."""
    options = []

    def once(changes):
        options.append(changes)
        timings = [Timing(name, rate, share) for name, rate, share in rates[len(options) - 1]]
        return Rates("a device", "su3", str(LATTICE), timings)

    return bench_over(axis, LATTICE, once), options


def test_rates_are_compared_for_each_device():
    rates = [("a", 3.0, 0.5)], [("a", 5.0, None), ("b", 1.0, None)], [("a", 9.0, None)]
    series, options = along(BenchAxis.parse("devices=1, 2,cpu:4"), *rates)
    assert options == [{"devices": "1"}, {"devices": "2"}, {"devices": "cpu:4"}]
    a, b = series.series
    assert (a.rates, a.limits) == ([3.0, 5.0, 9.0], [6.0, None, None])
    assert a.efficiencies == pytest.approx([1, 5 / 6, 3 / 4])
    assert (b.rates, b.efficiencies) == ([None, 1.0, None], [None, 1.0, None])
    assert (series.numbers, series.unit) == ([1.0, 2.0, 4.0], "Glink/s")


def test_a_weak_axis_extends_the_lattice():
    _, options = along(BenchAxis.parse("threads=1,3", weak=True), *[[("a", 1.0, None)]] * 2)
    lattices = [Lattice(4, 4, 6, 8), Lattice(4, 4, 6, 24)]
    assert [x["lattice"] for x in options] == lattices
    assert [x["threads"] for x in options] == [1, 3]


def test_lattices_and_precisions_have_no_efficiency():
    rates = [[("a", 1.0, None)]] * 2
    series, options = along(BenchAxis.parse("lattice=4x4x4x4,8"), *rates)
    assert [x["lattice"].sites for x in options] == series.numbers == [256, 4096]
    assert series.series[0].efficiencies == [None, None]
    series, options = along(BenchAxis.parse("precision=single,double"), *rates)
    assert options == [{"precision": "single"}, {"precision": "double"}]
    assert series.numbers == [0, 1]


def test_rates_of_a_benchmark_without_any_are_refused():
    with pytest.raises(UsageError, match="--end-to-end and others do not have"):
        along(BenchAxis.parse("threads=1"), [])


def test_one_device_has_no_neighbour():
    assert neighbour_bandwidth(DeviceGroup.of(CpuDevice(1)), "su2", "single") is None


def test_rates_are_drawn(tmp_path):
    curve = RateCurve("heatbath", [(1, 2.0), (2, 3.5)], [(1, 3.0), (2, 6.0)])
    ticks = [(1.0, "1"), (2.0, "2")]
    draw_rates([curve], "devices", "Glink/s", ticks, tmp_path / "a.svg", "SU(3)", ideal=True)
    text = (tmp_path / "a.svg").read_text()
    assert text.count('id="line2d') > 3
    assert 'id="axes_2"' not in text


def test_precisions_have_panels_and_things_their_looks(tmp_path):
    curves = [
        RateCurve(label, [(1, rate), (2, 2 * rate)], [], panel)
        for panel, factor in (("double", 1.0), ("single", 2.0))
        for label, rate in (("operator", factor), ("iteration", factor / 2))
    ]
    ticks = [(1.0, "1"), (2.0, "2")]
    draw_rates(curves, "devices", "TFLOP/s", ticks, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert ('id="axes_2"' in text, 'id="axes_3"' in text) == (True, False)
    for word in ("double", "single", "operator", "iteration"):
        assert text.count(f"<!-- {word} -->") == 1


def test_equal_devices_are_counted():
    gpus = " + ".join(f"NVIDIA H200 (GPU {n})" for n in range(4))
    for device, counted in ((gpus, "4 × NVIDIA H200"), 2 * ("AMD EPYC, 2 threads",)):
        rates = Rates(device, "su3", str(LATTICE), [Timing("a", 1.0)])
        series = bench_over(BenchAxis.parse("threads=1"), LATTICE, lambda _, rates=rates: rates)
        assert series.title == f"SU3 {LATTICE} on {counted}"


@pytest.mark.slow
def test_updates_are_timed_on_one_and_two_devices(tmp_path):
    saved, figure = tmp_path / "a.json", tmp_path / "a.png"
    own = ("heatbath", "plaquette", "--over", "devices=cpu:1,cpu:2", "--group", "su2", *TINY)
    files = ("--save", str(saved), "--plot", str(figure), "--weak")
    said, code = call("bench", *own, "--lattice", "4x4x4x8", *files)
    assert code == 0, said
    assert "heatbath" in said
    assert "overrelaxation" not in said
    found = json.loads(saved.read_text())
    assert [one["lattice"] for one in found["results"]] == ["4x4x4x8", "4x4x4x16"]
    assert found["results"][0]["neighbour_gb_per_s"] is None
    assert found["results"][1]["neighbour_gb_per_s"] > 0
    rates = [one["kernels"][0]["links_per_s"] / 1e9 for one in found["results"]]
    assert found["series"][0]["rates"] == pytest.approx(rates)
    assert found["series"][0]["efficiencies"][1] == pytest.approx(rates[1] / 2 / rates[0])
    assert figure.read_bytes()[1:4] == b"PNG"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "unit"),
    [(("--hmc",), "trajectory", "Glink/s"), (("--observables", "ape"), "ape", "Glink/s")],
)
def test_all_kinds_with_rates_are_compared(kind, name, unit):
    check_rates(kind, name, unit)


def check_rates(kind, name, unit):
    """Compare rates on two lattices."""
    own = ("--over", "lattice=4x4x4x4,4x4x4x6", "--group", "su3", *TINY, "--json")
    said, code = call("bench", *kind, *own)
    assert code == 0, said
    found = json.loads(said)
    assert found["unit"] == unit
    one = next(one for one in found["series"] if one["name"] == name)
    assert len(one["rates"]) == 2
    assert min(one["rates"]) > 0

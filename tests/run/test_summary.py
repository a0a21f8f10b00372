"""Summaries of runs: their averages, cautions and descriptions."""

import io
import json
import re

import numpy as np
import pytest
from rich.console import Console

from gauge_mc.devices import cache
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.fields.sums import ADD_PARTIAL_SUMS, ANY_VARIANT
from gauge_mc.run.directory import Run
from gauge_mc.run.results import averages_table
from gauge_mc.run.state import announced_compilation
from tests.analysis.test_timeseries import autoregressive
from tests.calls import call, make_run


@pytest.fixture
def run(tmp_path):
    return Run(make_run(tmp_path / "run", measure="plaquette,flow:1:to=0.1", format="none"))


def said(run):
    console = Console(width=2000, file=io.StringIO())
    console.print(averages_table([run], run.read()[0].recorded))
    return console.file.getvalue()


def write(run, rho, rng):
    """Replace the tables by 400 measurements; the charge is autoregressive with a coefficient."""
    sweeps = np.arange(1, 401)
    plaquettes = (f"{n},{x},0.5,0.5" for n, x in zip(sweeps, rng.normal(size=400), strict=True))
    head = "sweep,plaquette,spatial,temporal"
    run.table("plaquette").write_text("\n".join([head, *plaquettes, ""]))
    charges = np.sqrt(10 + autoregressive(rng, 400, 1, rho).ravel())
    rows = [
        f"{n},{t},-1,1,1,{q},{q},0.1"
        for n, charge in zip(sweeps, charges, strict=True)
        for t, q in ((0.0, rng.normal()), (0.1, charge))
    ]
    head = "sweep,t,slice,energy_plaquette,energy_clover,charge,charge_improved,s_max"
    run.table("flow").write_text("\n".join([head, *rows, ""]))


def test_a_topological_charge_that_is_slower_than_all_averages_is_named(run, rng):
    write(run, 0.9, rng)
    assert "The squared topological charge has τ_int = " in said(run)
    write(run, 0.0, rng)
    assert "topological" not in said(run)


def test_a_run_without_averages_says_what_was_measured(tmp_path):
    make_run(tmp_path / "run", measure="flow:3:to=0.1", format="none")
    shown, code = call("status", tmp_path / "run")
    assert (code, "measured: flow, which fits and plots evaluate" in shown) == (0, True), shown


def test_the_tail_of_a_slow_mode_is_added_to_errors(run, rng):
    """With the autocorrelation time that the caution names, after which it is not said again."""
    write(run, 0.9, rng)
    (tau,) = re.findall(r"--tau-exp (\d+)", " ".join(said(run).split()))
    found = {}
    for words in ((), ("--tau-exp", tau)):
        shown, code = call("status", run.path, *words)
        assert code == 0, shown
        average = json.loads(call("status", run.path, *words, "--json")[0])["averages"]["plaquette"]
        assert average["text"] in shown
        assert ("squared topological charge" in shown) == (not words)
        found[words] = average
    plain, tail = found.values()
    assert tail["error"] > 1.2 * plain["error"]
    assert tail["value"] == plain["value"]


@pytest.mark.parametrize("tau", ["0", "-3", "nan", "1e99"])
def test_a_tail_needs_a_time(run, tau):
    shown, code = call("status", run.path, "--tau-exp", tau)
    assert (code, "--tau-exp" in shown) == (2, True), shown


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path / "cache"))

    def run_compiler(kernel, unit, command, output):
        output.write_bytes(b"object")
        return ""

    monkeypatch.setattr(cache, "run_compiler", run_compiler)


@pytest.mark.parametrize(
    "form", [{}, {"quiet": True}, {"force_terminal": True}, {"force_jupyter": True}]
)
def test_a_log_file_says_once_that_kernels_are_compiled(empty_cache, monkeypatch, form):
    text = io.StringIO()
    monkeypatch.setattr("rich.jupyter.display", lambda segments, said: text.write(said))
    with announced_compilation(Console(file=text, **form)):
        CpuDevice(1).compile(ADD_PARTIAL_SUMS, ANY_VARIANT)
        cache.clear_cache()
        CpuDevice(1).compile(ADD_PARTIAL_SUMS, ANY_VARIANT)
    said = "" if form else "compiling kernels, which are kept for later commands ...\n"
    assert text.getvalue() == said
    with announced_compilation(Console(file=text)):
        CpuDevice(1).compile(ADD_PARTIAL_SUMS, ANY_VARIANT)
    assert text.getvalue() == said  # it was kept

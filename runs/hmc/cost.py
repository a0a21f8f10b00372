"""Cost of an independent configuration of SU(3) by hybrid Monte Carlo and by the heatbath.

``python runs/hmc/cost.py FOLDER [--lattice L] [--updates N] [--cores]`` carries out a run with each
of `ALGORITHMS` and prints a table: the time and the energy of an update, the acceptance, and for
the plaquette, the energy density and the charge squared along the Wilson flow tau_int in updates
and the seconds for an independent configuration, 2 tau_int times the time of an update. With
``--cores`` runs use one thread of a CPU, and times are those of the core, so that other programs
on the machine hardly matter. There is a trajectory of length 1 for every four updates of the
heatbath, and fewer that are longer.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gauge_mc import generate
from gauge_mc.algorithms import Tuning, parse
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.benchmarks.timing import energy_of, seconds_of
from gauge_mc.domain.device_group import open_device_group
from gauge_mc.files.table import read_table
from gauge_mc.run.chain import Chain
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters

BETA, LATTICE = 6.0, "16x16x16x16"

FLOW_TIME = 2.0
"""Flow time of energy and charge, in lattice units; t0 is 3.1 at beta = 6.0."""

ONE_CORE: dict[str, Any] = {"devices": "cpu:1", "threads": 1}
"""Devices with which the time of a core is that of the program."""

FLOW_STEP = 0.05
"""Largest step of the flow, whose errors are far below the fluctuations."""

EVERY = 5
"""Updates between two flows."""

ALGORITHMS = (
    ("heatbath:overrelax=4", "single"),
    ("heatbath:overrelax=4", "double"),
    ("hmc:integrator=omf2", "double"),
    ("hmc:integrator=omf4", "double"),
    ("hmc:integrator=omf4:length=2:acceptance=0.9", "double"),
    ("hmc:integrator=omf4:length=4:acceptance=0.9", "double"),
    ("hmc:integrator=leapfrog", "double"),
)


def parameters(algorithm: str, precision: str, lattice: str, updates: int) -> dict[str, object]:
    """Return the parameters of a run by name."""
    return {
        "group": "su3",
        "beta": BETA,
        "lattice": lattice,
        "precision": precision,
        "algorithm": algorithm,
        "thermalize": 500,
        "configs": updates // EVERY,
        "separation": EVERY,
        "measure": f"plaquette,flow:{EVERY}:to={FLOW_TIME}:every={FLOW_TIME}:step={FLOW_STEP}",
        "format": "none",
    }


def series(run: Run) -> dict[str, Estimate]:
    """Return averages and autocorrelation times in updates."""
    flow = read_table(run.table("flow"))
    last = np.isclose(flow["t"], FLOW_TIME)
    plaquette = estimate(read_table(run.table("plaquette"))["plaquette"])
    flowed = {
        "energy": estimate(flow["energy_clover"][last]),
        "charge squared": estimate(flow["charge_improved"][last] ** 2),
    }
    return {"plaquette": plaquette, **flowed}


def cost_of_update(values: dict[str, object], run: Run, cores: bool) -> tuple[float, float | None]:
    """Return seconds and joules of an update, on the links and with the steps of a run."""
    devices = open_device_group(**(ONE_CORE if cores else {}))
    p = Parameters.from_values(values)
    chain, _ = Chain.resume(p, devices, run.checkpoint)
    tuning = Tuning(0, dict(chain.tuning.numbers))
    update = p.algorithm.prepare(
        chain.field, [p.coupling], [chain.random], p.chain_version, [tuning]
    )

    def repeat(times: int) -> None:
        for _ in range(times):
            update()

    if cores:
        return core_seconds(repeat), None
    once, _ = seconds_of(devices, repeat, 2.0)
    return once, energy_of(devices, repeat, 2.0, once).joules


def core_seconds(repeat: Callable[[int], None], times: int = 20) -> float:
    """Return the seconds of a core for an update."""
    repeat(1)
    begin = time.process_time()
    repeat(times)
    return (time.process_time() - begin) / times


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lattice", default=LATTICE)
    parser.add_argument("--updates", type=int, default=20000)
    parser.add_argument("--only", default="")
    parser.add_argument("--cores", action="store_true")
    given = parser.parse_args()
    chosen = ONE_CORE if given.cores else {}
    for algorithm, precision in ALGORITHMS:
        if given.only not in algorithm:
            continue
        length = parse(algorithm).values.get("length", 0.25)
        updates = round(given.updates / (4 * length))
        path = given.folder / f"{algorithm.replace(':', '_').replace('=', '')}_{precision}"
        values = parameters(algorithm, precision, given.lattice, updates)
        generate(values, output=path, progress=False, **chosen)
        run = Run(path)
        seconds, joules = cost_of_update(values, run, given.cores)
        about = f"{algorithm}, {precision}: {1e3 * seconds:.4g} ms"
        about += f", {joules:.4g} J" if joules is not None else ""
        if "hmc" in algorithm:
            own = read_table(run.table("hmc"))
            about += f", {own['steps'][-1]} steps, acceptance {estimate(own['accepted'])}"
        print(about + " per update")
        for name, one in series(run).items():
            factor = 1 if name == "plaquette" else EVERY
            tau, error = factor * one.tau_int, factor * one.tau_int_error
            energy = f", {2 * tau * joules:.4g} J" if joules is not None else ""
            print(f"  {name}: {one}, tau_int {tau:.3g} +- {error:.2g} updates, ", end="")
            print(f"{2 * tau * seconds:.4g} s{energy} per independent configuration")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

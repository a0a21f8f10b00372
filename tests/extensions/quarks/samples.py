"""What tests of the whole program need of quarks; see `tests.samples`."""

from pathlib import Path

import numpy as np

from gauge_mc.extensions.quarks.benchmarks import ChiralTime, OperatorTime, QuarksTime
from tests.extensions.quarks import test_crossover
from tests.extensions.quarks.overlap.test_random_matrices import write_spectra
from tests.extensions.quarks.scenarios import ELSEWHERE as ELSEWHERE
from tests.extensions.quarks.scenarios import SCENARIOS as SCENARIOS
from tests.extensions.quarks.spectroscopy.test_propagator_files import point, random_propagator
from tests.extensions.quarks.spectroscopy.test_residual_mass import write_residual_masses
from tests.extensions.quarks.synthetic_hadrons import write_baryons, write_mesons
from tests.extensions.quarks.test_condensate import write_condensates

QUOTED = {
    "baryons": ["a m_N (κ = 0.154)"],
    "condensate": [f"{name} (m = 0.02)" for name in ("−⟨ψ̄ψ⟩", "χ_disc", "χ")],
    "crossover": [f"kappa at the peak of {name} (8x8x8x4)" for name in ("χ_L", "χ_disc")],
    "mesons": ["a m_π (κ = 0.154)", "a m_ρ (κ = 0.154)", "a m_PCAC (κ = 0.154)", "κ_c"],
    "overlap-spectrum": ["<index²>", "χ_t a⁴", "Σ a³ from <λ_1>_0"],
    "residual-mass": ["m_res (m = 0.02)", "Z_A (m = 0.02)"],
}
"""Names of the numbers of every fit, for the tables of the tests."""

CALLS = {
    "measure": [
        ("mesons", "run", "--kappa", "0.1", "--backend", "cpu", "--threads", 1, "--dry-run")
    ],
    "convert": [("propagator.lime", "other.lime", "--basis", "weyl")],
    "bench": [("--quarks",), ("--quarks", "--operator", "domain-wall"), ("--chiral",)],
}
"""Calls of commands that print documents of quarks; see ``tests/cli/test_json.py``."""

BENCHMARKS = {
    "gauge_mc.extensions.quarks.benchmarks.quarks_time": QuarksTime,
    "gauge_mc.extensions.quarks.benchmarks.operator_time": OperatorTime,
    "gauge_mc.extensions.quarks.benchmarks.chiral_time": ChiralTime,
}
"""Functions that time kernels, and the classes of their results."""


def write_inputs(folder: Path) -> None:
    rng = np.random.default_rng(1)
    random_propagator(rng, sources=point()).write(folder / "propagator.lime")


def write_tables(folder: Path) -> None:
    """Write tables for fits, with random numbers that are always the same."""
    rng = np.random.default_rng(1)
    write_mesons(folder / "mesons.csv", rng, 12, (0.150, 0.154))
    write_baryons(folder / "baryons.csv", rng, 12, (0.150, 0.154))
    write_residual_masses(folder / "residual_mass.csv", rng)
    write_spectra(folder / "overlap_spectrum.csv", rng, 60)
    write_condensates(folder / "condensate.csv", rng)


def write_target(name: str, folder: Path) -> bool:
    """Write the runs that a fit takes; return whether it is a fit of runs."""
    rng = np.random.default_rng(2)
    if name == "crossover":
        for kappa in test_crossover.KAPPAS:
            test_crossover.write_run(folder, f"kappa{kappa}", rng, kappa)
    return name == "crossover"

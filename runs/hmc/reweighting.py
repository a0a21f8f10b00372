"""Trajectories with quarks of SU(3) on 4^4 against averages that exact determinants reweight.

``python -m runs.hmc.reweighting ROWS`` prints averages, errors and pulls of every file that is in
the folder ROWS; ``python -m runs.hmc.reweighting ROWS --case CASE [--ratio] [--trajectories N]
[--chains N]`` first writes CASE.csv or CASE_ratio.csv there: the averages of the links after every
trajectory and exp(-Delta H). The cases are those of
`tests.extensions.quarks.reference.reweighting`.
"""

import argparse
import math
from pathlib import Path

import numpy as np

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.devices.cpu.device import CpuDevice
from tests.extensions.quarks.dynamical.test_reweighting import chain
from tests.extensions.quarks.reference.reweighting import AVERAGES, CASES, exact_averages, table_of

GROUP = "su3"

THERMALISATION = 30
"""Trajectories of every chain that are left out, from random links."""


def carry_out(path: Path, case: str, ratio: bool, chains: int, trajectories: int) -> None:
    """Write the rows of some chains to a file."""
    names = ["chain", *AVERAGES, "delta_h"]
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        for n in range(chains):
            rows, changes = chain(case, GROUP, CpuDevice(1), trajectories, ratio, seed=11 + n)
            for row, change in zip(rows, changes, strict=True):
                file.write(f"{n}," + ",".join(f"{one:.12g}" for one in (*row, change)) + "\n")
            file.flush()


def report(path: Path) -> None:
    """Print the averages in a file, the exact ones and the pulls."""
    case = path.stem.removesuffix("_ratio")
    numbers = np.loadtxt(path, delimiter=",", skiprows=1)
    chains = [numbers[numbers[:, 0] == n, 1:][THERMALISATION:] for n in np.unique(numbers[:, 0])]
    exact = exact_averages(table_of(GROUP, case), case)
    weight = estimate(*(np.exp(-one[:, -1]) for one in chains))
    accepted = np.exp(-np.maximum(np.concatenate(chains)[:, -1], 0)).mean()
    print(
        f"{path.stem}: {sum(map(len, chains))} trajectories, acceptance {accepted:.3f}, "
        f"<exp(-dH)> {weight.value:.4f} +- {weight.error:.4f}, "
        f"determinants leave {exact.share:.2f} of the configurations"
    )
    for n, name in enumerate(AVERAGES):
        own = estimate(*(one[:, n] for one in chains))
        pull = (own.value - exact.values[n]) / math.hypot(own.error, exact.errors[n])
        print(
            f"  {name}: {own.value:.5f} +- {own.error:.5f} (tau_int {own.tau_int:.1f}), "
            f"reweighted {exact.values[n]:.5f} +- {exact.errors[n]:.5f}, pull {pull:+.2f}"
        )


def main() -> None:
    """Carry out the trajectories of a case, if one is given, and print what is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--ratio", action="store_true")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--trajectories", type=int, default=400)
    given = parser.parse_args()
    given.rows.mkdir(parents=True, exist_ok=True)
    if given.case:
        path = given.rows / f"{given.case}{'_ratio' if given.ratio else ''}.csv"
        carry_out(path, given.case, given.ratio, given.chains, given.trajectories)
    for path in sorted(given.rows.glob("*.csv")):
        report(path)


if __name__ == "__main__":
    main()

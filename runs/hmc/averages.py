"""Averages of hybrid Monte Carlo against those of the heatbath, for all groups and actions.

``python runs/hmc/averages.py FOLDER [--error E] [--first N] [--updates N] [--thermalize N]
[--chains N] [--jobs N] [--only WORD,...] [--compile]`` carries out two runs for each of
`ensembles`, continues those that are in the folder, and prints averages with errors and the
difference in units of its error, as soon as both have ended. With several chains, which move
together, the updates are those of all of them. A run begins with N updates (``--first``), from
which follows how many the error E of the difference of plaquettes takes; it has ``--updates`` at
most.
WORD is part of a name, such as su3_wilson_b5.2_8x8x8x8; ensembles come in the order of the words.
``--compile`` compiles the kernels and leaves the runs out.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from gauge_mc import GaugeError, generate_chains
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.files.table import read_table
from gauge_mc.run.directory import Run

LATTICES = ("8x8x8x8", "4x6x8x10")
"""The second one has four different extents."""

COMMON = {"precision": "double", "separation": 1, "format": "none"}
"""Parameters of all runs."""

ALGORITHMS = ("hmc:integrator=omf4", "heatbath:overrelax=1")
"""The algorithms to compare, whose errors are the smallest for the time that they take."""

BETAS = {"su2": 2.0, "su3": 5.2, "su4": 8.0, "su5": 15.4, "su6": 22.4, "su7": 30.6, "su8": 40.0}
"""Couplings of the Wilson action at strong coupling, where autocorrelation is short."""

ACTIONS = {
    "symanzik": {"su3": 3.0, "su2": 1.4},
    "iwasaki": {"su3": 1.6, "su2": 0.9},
    "dbw2": {"su3": 0.7, "su2": 0.4},
    "rectangle:c1=-0.1": {"su3": 3.5, "su2": 1.4},
    "luscher-weisz:u0=0.87": {"su3": 6.0},
    "luscher-weisz:u0=1": {"su2": 1.4, "su4": 7.0},
    "wilson:anisotropy=2": {"su3": 4.0},
    "wilson:anisotropy=3": {"su2": 2.0},
    "symanzik:anisotropy=2": {"su3": 3.6},
    "iwasaki:anisotropy=1.5": {"su3": 2.0},
    "dbw2:anisotropy=1.5": {"su3": 0.7},
    "rectangle:c1=-0.1:anisotropy=1.5": {"su3": 3.5},
}
"""Couplings of the other actions by group."""

MARGIN = 1.15
"""More updates than follow from an error, which is not exact itself."""

AVERAGES = {"plaquette": "plaquette", "rectangles": "rectangle", "polyakov": "abs"}
"""Observables, and the column of each that is compared; the wanted error is that of the first."""


@dataclass(frozen=True)
class Ensemble:
    """A group, action and lattice that both algorithms sample."""

    group: str
    beta: float
    action: str
    lattice: str

    @property
    def name(self) -> str:
        """A name for folders."""
        action = self.action.replace(":", "_").replace("=", "")
        return f"{self.group}_{action}_b{self.beta}_{self.lattice}"


def ensembles() -> Iterator[Ensemble]:
    """Yield all ensembles."""
    for lattice in LATTICES:
        for group, beta in BETAS.items():
            yield Ensemble(group, beta, "wilson", lattice)
        for action, betas in ACTIONS.items():
            for group, beta in betas.items():
                yield Ensemble(group, beta, action, lattice)


def seed_of(one: Ensemble) -> int:
    """Return a seed of its own for an ensemble.

    With the same random numbers the links of one group fluctuate together, whatever the action.
    """
    return 1 + list(ensembles()).index(one)


@dataclass(frozen=True)
class Length:
    """How long the runs are."""

    first: int
    """Updates of all chains of a run with which it begins."""
    updates: int
    """Updates that it may have."""
    error: float
    """Error of the difference of plaquettes that is wanted."""
    chains: int
    """Number of chains."""
    thermalize: int
    """Updates of every chain before; at these couplings links forget their start in a few."""


def carry_out(
    one: Ensemble, algorithm: str, length: Length, updates: int, folder: Path
) -> list[Run]:
    """Do the chains of an ensemble, or the rest of them, and return their runs."""
    path = folder / f"{one.name}_{algorithm.partition(':')[0]}"
    values = {
        "group": one.group,
        "beta": one.beta,
        "lattice": one.lattice,
        "action": one.action,
        "algorithm": algorithm,
        "seed": seed_of(one),
        "configs": max(1, updates // length.chains),
        "thermalize": length.thermalize,
        "measure": ",".join(AVERAGES),
        **COMMON,
    }
    generate_chains(values, chains=length.chains, output=path, progress=False)
    return [Run(Path(f"{path}_chain{n + 1}")) for n in range(length.chains)]


def exact_enough(one: Ensemble, algorithm: str, length: Length, folder: Path) -> list[Run]:
    """Do a run of an ensemble until its plaquette has its share of the wanted error.

    It is continued twice at most: errors are not looked at after every update, which would bias
    the averages.
    """
    updates, wanted = min(length.first, length.updates), length.error / math.sqrt(2)
    for last in (False, False, True):
        begin = time.perf_counter()
        runs = carry_out(one, algorithm, length, updates, folder)
        error = average(runs, *next(iter(AVERAGES.items()))).error
        seconds = time.perf_counter() - begin
        words = f"{one.name}, {algorithm}: {updates} updates, error {error:.1e}, {seconds:.1f} s"
        print(words, file=sys.stderr, flush=True)
        if last or error <= wanted or updates == length.updates:
            break
        updates = min(length.updates, math.ceil(MARGIN * updates * (error / wanted) ** 2))
    return runs


def average(runs: list[Run], table: str, column: str) -> Estimate:
    """Return the average of a column over the chains of an ensemble."""
    return estimate(*(read_table(one.table(table))[column] for one in runs))


def compile_kernels(one: Ensemble, length: Length, folder: Path) -> list[str]:
    """Compile the kernels of both runs of an ensemble by short runs of two chains."""
    short = replace(length, first=2, updates=2, chains=2, thermalize=2)
    with TemporaryDirectory(dir=folder) as name:
        compare(one, short, Path(name))
    return []


def compare(one: Ensemble, length: Length, folder: Path) -> list[str]:
    """Do both runs of an ensemble, and return lines of the table."""
    try:
        moved, heated = (exact_enough(one, algorithm, length, folder) for algorithm in ALGORITHMS)
    except GaugeError as failure:
        print(f"{one.name}: {failure}", file=sys.stderr, flush=True)
        return []
    accepted = average(moved, "hmc", "accepted")
    lines = []
    for name, column in AVERAGES.items():
        first, second = average(moved, name, column), average(heated, name, column)
        error = math.hypot(first.error, second.error)
        pull = (first.value - second.value) / error if error else 0.0
        lines.append(
            f"{one.group},{one.action},{one.beta},{one.lattice},{name},{first.value:.7f},"
            f"{first.error:.1e},{second.value:.7f},{second.error:.1e},{error:.1e},{pull:.2f},"
            f"{first.tau_int:.2f},{accepted.value:.3f},{first.samples},{second.samples}"
        )
    return lines


HEADER = (
    "group,action,beta,lattice,average,hmc,error,heatbath,error,error of both,pull,tau_int,"
    "acceptance,trajectories,updates of the heatbath"
)


def main() -> None:
    """Compare all ensembles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--error", type=float, default=1e-4)
    parser.add_argument("--first", type=int, default=1600)
    parser.add_argument("--updates", type=int, default=40000)
    parser.add_argument("--thermalize", type=int, default=60)
    parser.add_argument("--chains", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--compile", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    words = given.only.split(",")
    length = Length(given.first, given.updates, given.error, given.chains, given.thermalize)
    chosen = [one for word in words for one in ensembles() if word in one.name]
    chosen = list(dict.fromkeys(chosen))
    table = given.folder / "averages.csv"
    print(HEADER, flush=True)
    table.write_text(HEADER + "\n")
    pulls = []
    work = partial(
        compile_kernels if given.compile else compare, length=length, folder=given.folder
    )
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(work, one) for one in chosen]):
            lines = done.result()
            print("".join(f"{line}\n" for line in lines), end="", flush=True)
            with table.open("a") as file:
                file.writelines(f"{line}\n" for line in lines)
            pulls += [float(line.split(",")[10]) for line in lines]
    square = sum(pull**2 for pull in pulls) / max(len(pulls), 1)
    largest = max((abs(pull) for pull in pulls), default=0.0)
    print(f"{len(pulls)} averages: mean square of pulls {square:.2f}, largest {largest:.2f}")


if __name__ == "__main__":
    main()

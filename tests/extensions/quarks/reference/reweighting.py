"""Exact averages with quarks on small lattices: a quenched ensemble, reweighted by determinants.

``python -m tests.extensions.quarks.reference.reweighting su3 400 FILE --quarks wilson`` makes a
table as ``runs/`` has: a row of averages and of ln |det M| for every configuration of a heatbath,
which the weights of `CASES` follow from. A table that has fewer rows is continued.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gauge_mc import heatbath
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.observables import OBSERVABLES
from tests.extensions.quarks.reference.determinants import (
    ANTIPERIODIC,
    PERIODIC,
    Reweighted,
    Sparse,
    determinant,
    hopping_matrix,
    log_of_doublet,
    reweighted,
)
from tests.reference.fields import Complex, Real

LATTICE = Lattice(4, 4, 4, 4)
BETAS = {"su2": 1.8, "su3": 5.0}
"""Couplings of the quenched ensembles, which are those of hybrid Monte Carlo as well."""

SEPARATION, THERMALISATION = 20, 200
"""Numbers of heatbath sweeps; at these couplings tau_int is below 2."""

AVERAGES = {"plaquette": "plaquette", "rectangles": "rectangle", "polyakov": "re"}
"""Observables, and the column of each that is compared."""


@dataclass(frozen=True)
class Quark:
    """A determinant that is computed on every configuration."""

    kappa: dict[str, float]
    """By group: with it ln |det M| fluctuates by about 0.5, so that the weights of two flavours
    leave a third of the configurations."""
    phase: int = -1
    operator: str = "wilson"
    parameters: dict[str, float] = field(default_factory=dict)

    def log_det(self, group: str, links: Complex, hopping: dict[int, Sparse]) -> float:
        """ln |det M| on a configuration."""
        own = hopping[self.phase]
        return determinant(links, self.kappa[group], hopping=own, **self.parameters).log


class QuarkDoublet(Quark):
    """Two flavours with different masses, whose determinant is that of both."""

    def log_det(self, group: str, links: Complex, hopping: dict[int, Sparse]) -> float:
        """ln |det M| on a configuration."""
        own = hopping[self.phase]
        return log_of_doublet(links, self.kappa[group], hopping=own, **self.parameters)


QUARKS = {
    "wilson": Quark({"su2": 0.12, "su3": 0.14}),
    "periodic": Quark({"su2": 0.12, "su3": 0.14}, phase=1),
    "twisted": Quark({"su2": 0.12, "su3": 0.14}, -1, "twisted-mass", {"mu": 0.3}),
    "clover": Quark({"su2": 0.11, "su3": 0.13}, -1, "wilson-clover", {"csw": 1.0}),
    "lighter": Quark({"su2": 0.14, "su3": 0.15}),
    "doublet": QuarkDoublet(
        {"su2": 0.12, "su3": 0.14}, -1, "doublet", {"mu_sigma": 0.3, "mu_delta": 0.25}
    ),
}

CASES = {
    "wilson": ("wilson", 2),
    "periodic": ("periodic", 2),
    "twisted": ("twisted", 2),
    "clover": ("clover", 2),
    "one_flavour": ("lighter", 1),
    "one_flavour_clover": ("clover", 1),
    "doublet": ("doublet", 1),
}
"""The quark and the number of flavours, or of doublets, of every case."""


def row(gauge: Field, quarks: Iterable[str] = QUARKS) -> list[float]:
    """Averages of a configuration, and ln |det M| of some of the `QUARKS`."""
    links = gauge.to_numpy()
    hopping = {1: hopping_matrix(links, PERIODIC), -1: hopping_matrix(links, ANTIPERIODIC)}
    return averages(gauge) + [
        QUARKS[one].log_det(gauge.group.name, links, hopping) for one in quarks
    ]


def columns_of(table: Path) -> list[str]:
    """The names of the columns of a table."""
    with table.open() as file:
        return file.readline().strip().split(",")


def table_of(group: str, case: str) -> Path:
    """The table in ``runs/`` with the determinants of a group and a case."""
    folder = Path(__file__).parents[4] / "runs" / "results" / "reweighting"
    tables = folder.glob(f"{group}_b{BETAS[group]}_{LATTICE}*.csv")
    return next(one for one in tables if CASES[case][0] in columns_of(one))


def exact_averages(table: Path, case: str) -> Reweighted:
    """The `AVERAGES` in a table, with the weights of a case."""
    numbers: Real = np.loadtxt(table, delimiter=",", skiprows=1)
    quark, flavours = CASES[case]
    logs = numbers[:, columns_of(table).index(quark)]
    return reweighted(numbers[:, : len(AVERAGES)], flavours * logs)


def averages(gauge: Field) -> list[float]:
    """The `AVERAGES` of a configuration."""
    found = []
    for name, column in AVERAGES.items():
        observable = OBSERVABLES[name].for_lattice(gauge.lattice)
        place = [one.name for one in observable.columns].index(column)
        found.append(float(observable.measure(gauge)[place]))
    return found


def main(group: str, count: int, table: Path, seed: int, quarks: Iterable[str]) -> None:
    """Append rows to a table until it has so many."""
    done = len(table.read_text().splitlines()) - 1 if table.exists() else 0
    if not done:
        table.write_text(",".join([*AVERAGES, *quarks]) + "\n")
    quarks = columns_of(table)[len(AVERAGES) :]
    gauge = Field.hot(LATTICE, group, "double", CpuDevice(1))
    random = Random.for_field(gauge, seed=seed + done)
    heatbath(gauge, BETAS[group], random, THERMALISATION)
    for _ in range(done, count):
        heatbath(gauge, BETAS[group], random, SEPARATION)
        with table.open("a") as file:
            file.write(",".join(f"{one:.12g}" for one in row(gauge, quarks)) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group", choices=BETAS)
    parser.add_argument("count", type=int)
    parser.add_argument("table", type=Path)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--quarks", nargs="+", choices=QUARKS, default=[*QUARKS])
    given = parser.parse_args()
    main(given.group, given.count, given.table, given.seed, given.quarks)

"""Time, energy and acceptance of trajectories with quarks, from links close to equilibrium.

``python runs/hmc/trajectories.py CARD... --glue BETA [--heavier MASSES] [--steps N]
[--thermal SECONDS] [--seconds SECONDS] [--keep FOLDER]`` prints what it finds for each run card.
The links are those of the gauge action alone at the coupling BETA, where the plaquette is about
that with quarks, after a heatbath, and then after trajectories of length 1 for so many seconds.
These have the heavier masses MASSES (such as mu=0.03/mu=0.3) and N steps of the outermost level, or
are those of the card. A card with the gauge action and lattice of the one before continues with its
links. Then the trajectories of the card are timed, and, if they are shorter, others of their length
with fewer steps. Averages are over what was timed, with errors that know nothing of
autocorrelations.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gauge_mc import heatbath, open_device_group
from gauge_mc.algorithms import Algorithm, Tuning, parse
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.device_pool import EnergyMeter
from gauge_mc.extensions.quarks.dynamical.flavours import DynamicalQuarks
from gauge_mc.files.table import Value
from gauge_mc.quantities.plaquette import plaquette
from gauge_mc.run.cards import named_values
from gauge_mc.run.chain import Chain
from gauge_mc.run.parameters import Parameters

JOULES_PER_KWH = 3.6e6

SWEEPS = 200
"""Sweeps of the heatbath with which the links begin."""

LEVELS = "omf2,omf2:2,omf2:1"
"""Levels of trajectories with heavier masses."""

FEWER = "omf2:1,omf2:4"
"""Levels of short trajectories with fewer steps."""

LEAST = 3
"""Least number of trajectories that are timed."""


@dataclass
class Timed:
    """Trajectories that were timed."""

    rows: list[dict[str, Value]]
    """Their rows of the table ``hmc``."""
    plaquettes: list[float]
    """The plaquettes after them."""
    seconds: float
    """Their time, without that of the plaquettes."""
    joules: float | None
    """The energy of the devices in that time."""

    def column(self, name: str) -> "np.ndarray":
        """Return a column of the rows."""
        return np.array([row[name] for row in self.rows], dtype=float)

    @property
    def iterations(self) -> float:
        """Iterations of all solvers in a trajectory."""
        names = [name for name in self.rows[0] if name.startswith("iterations")]
        return float(sum(self.column(name).mean() for name in names))

    def lines(self) -> Iterator[str]:
        """Yield what is to be said about them."""
        count = len(self.rows)
        each = self.seconds / count
        changes, values = self.column("delta_h"), np.array(self.plaquettes)
        words = f"{count} trajectories of {self.rows[-1]['steps']} steps: {each:.4g} s"
        if self.joules is not None:
            joules = self.joules / count
            words += f", {joules:.4g} J, {JOULES_PER_KWH / joules:.5g} per kWh each"
        yield words
        yield (
            f"acceptance {self.column('accepted').mean():.2f}, <dH> {changes.mean():.3g}, "
            f"rms dH {np.sqrt((changes**2).mean()):.3g}, {self.iterations:.0f} iterations, "
            f"{self.column('failed').sum():.0f} failed"
        )
        yield f"plaquette {values.mean():.6f} +- {values.std(ddof=1) / np.sqrt(count):.1g}"


def trajectories(chain: Chain, algorithm: Algorithm, seconds: float, devices: DeviceGroup) -> Timed:
    """Do trajectories of a chain by an algorithm for about so many seconds."""
    p, names = chain.parameters, [column.name for column in algorithm.columns]
    update = algorithm.prepare(
        chain.field, [p.coupling], [chain.random], p.chain_version, [Tuning()]
    )
    meter, spent = EnergyMeter(devices), 0.0
    rows: list[dict[str, Value]] = []
    plaquettes: list[float] = []
    while spent < seconds or len(rows) < LEAST:
        begin = time.perf_counter()
        rows.append(dict(zip(names, update()[0], strict=True)))
        devices.synchronize()
        spent += time.perf_counter() - begin
        plaquettes.append(plaquette(chain.field))
    return Timed(rows, plaquettes, spent, meter.total().joules)


def preconditioned(algorithm: Algorithm, heavier: str, steps: int) -> Algorithm:
    """Return hybrid Monte Carlo of the same quarks with heavier masses on three levels."""
    (quarks,) = DynamicalQuarks.several(algorithm.values["quarks"])
    levels = [min(n, 1) for n in range(len(heavier.split("/")) + 1)]
    given = {name: quarks.values[name] for name in quarks.given}
    own = DynamicalQuarks(**{**given, "heavier": heavier, "level": levels})
    return parse("hmc").with_options(quarks=own, levels=LEVELS, length=1.0, steps=steps)


def near_equilibrium(p: Parameters, glue: float, devices: DeviceGroup) -> Chain:
    """Return a chain with the links of the gauge action alone at another coupling."""
    chain = Chain.begin(replace(p, start="hot"), devices)
    heatbath(chain.field, glue, chain.random, SWEEPS, p.action)
    print(f"  glue at {glue}: plaquette {plaquette(chain.field):.6f}", flush=True)
    return chain


def report(p: Parameters, chain: Chain, given: argparse.Namespace, devices: DeviceGroup) -> None:
    """Carry out the trajectories of a card, and print what was found."""
    card, length = p.algorithm, p.algorithm.values["length"]
    plans = [("thermalisation with the trajectories of the card", card, given.thermal)]
    if given.heavier:
        first = preconditioned(card, given.heavier, given.steps)
        words = f"thermalisation with heavier masses {given.heavier}, length 1"
        plans = [(words, first, given.thermal)]
    plans.append((f"the card, length {length:g}", card, given.seconds))
    if length < 1:
        fewer = card.with_options(levels=FEWER)
        plans.append((f"levels {FEWER}, length {length:g}", fewer, given.seconds))
    for name, algorithm, seconds in plans:
        print(f"  {name}:", flush=True)
        for line in trajectories(chain, algorithm, seconds, devices).lines():
            print(f"    {line}", flush=True)


def main() -> None:
    """Print what is found for all cards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cards", type=Path, nargs="+")
    parser.add_argument("--glue", type=float, required=True)
    parser.add_argument("--heavier", default="")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--thermal", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--lattice", default="")
    given = parser.parse_args()
    devices, chain = open_device_group(), None
    for card in given.cards:
        values = named_values(card, {"lattice": given.lattice} if given.lattice else {})
        p = Parameters.from_values(values)
        print(f"{card.stem}: {p.lattice}, {devices.name}", flush=True)
        same = chain and (p.lattice, p.coupling, p.precision) == (
            chain.parameters.lattice,
            chain.parameters.coupling,
            chain.parameters.precision,
        )
        chain = chain if same and chain else near_equilibrium(p, given.glue, devices)
        report(p, chain, given, devices)
        if given.keep:
            chain.field.save(given.keep / f"{card.stem}.lime")


if __name__ == "__main__":
    main()

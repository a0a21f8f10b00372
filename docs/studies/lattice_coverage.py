"""How often errors contain the truth: chains of small lattices, cut into pieces or drawn from.

    python -m docs.studies.lattice_coverage STUDY OUT [--chains N] [--drawn M] [--backend cpu]

Chains with seeds of their own are generated; those that are in the folder already are read. They
are cut into pieces of N = 10, 20, 50 and 200 independent measurements, at most five of a chain and
far from each other. With ``--drawn M`` there are instead M ensembles of N measurements each, drawn
from all measurements at random, with replacement. They are independent of each other and their
truth is known exactly, so that a few hundred measurements suffice for a thousand ensembles, with
all correlations and tails that real ones have. Autocorrelation is the part that is missing.

Each ensemble goes through the program's functions for a fit, with its defaults; the truth is what
they find from all measurements together. The output is a line of the table in
``docs/notes/reliability.md`` for every quantity, and what misses.
"""

import argparse
import itertools
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from docs.studies.coverage import NUMBERS, Table, missed, show
from docs.studies.study import COMMON, Found, Series, Study
from gauge_mc.actions import Coupling
from gauge_mc.analysis.timeseries import Replicas, caution_slow, estimate, susceptibility
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.groups import GROUPS
from gauge_mc.quantities.flow.curves import read_flow
from gauge_mc.quantities.flow.scales import flow_scales
from gauge_mc.quantities.flow.topology import topological_charge
from gauge_mc.quantities.potential.loop_tables import (
    all_loops,
    creutz_ratios,
    log_loops,
    read_loops,
)
from gauge_mc.quantities.transition.results import transition
from gauge_mc.quantities.transition.reweighting import ThermalVolume
from gauge_mc.quantities.transition.thermal_runs import read_thermal_chain
from gauge_mc.run.generate import generate_chains
from tests.analysis.synthetic_loops import static_potential

PIECES = 5
"""Maximum number of pieces of a chain."""


def of_loops(shared: list[Any], series: list[Series]) -> Iterator[Found]:
    """Yield averages, ratios of Wilson loops and susceptibilities."""
    (own,), (loops,) = series, shared
    space = 4**3
    for name in ("plaquette", "Re L", "modulus of L"):
        one = estimate(own[name])
        yield name, one.value, one.error, bool(one.cautions or caution_slow(own[name]))
    value, error = susceptibility(own["modulus of L"], volume=space)
    caution = bool(estimate(own["modulus of L"]).cautions)
    yield "susceptibility of L", value, error, caution
    first = estimate(own["loops"][:, 1, 1])
    caution = bool(first.cautions)
    yield "W(2, 2)", first.value, first.error, caution
    sweeps = np.arange(len(own["loops"]))
    one = replace(loops, sweeps=sweeps, values=own["loops"], chains=None)
    logs = log_loops(one)
    found = estimate(logs[:, 0, 0] - logs[:, 0, 1])
    yield "V(1)", found.value, found.error, caution
    grid = creutz_ratios(one)
    yield "force, χ(2, 2)", grid.value[1, 1], grid.error[1, 1], caution


def read_averages(run: Path) -> tuple[Any, Series]:
    """Read the plaquette, the Polyakov loop and Wilson loops."""
    from gauge_mc.run.results import open_run

    tables = open_run(run).tables
    (loops,) = all_loops(read_loops(run / "wilson_loops.csv"))
    return loops, {
        "plaquette": tables["plaquette"]["plaquette"],
        "Re L": tables["polyakov"]["re"],
        "modulus of L": tables["polyakov"]["abs"],
        "loops": loops.values,
    }


def of_flow(shared: list[Any], series: list[Series]) -> Iterator[Found]:
    """Yield the scales of the gradient flow, and the topological susceptibility."""
    (own,), (flow,) = series, shared
    count = len(own["charge"])
    sweeps = flow.updates * np.arange(1, count + 1)
    flow = replace(flow, sweeps=sweeps, replicas=Replicas.of(sweeps), columns=own)
    scales = flow_scales(flow, target=TARGET)
    caution = bool(scales.cautions or scales.t0.cautions)
    yield "t₀", scales.t0.value, scales.t0.error, caution
    yield "w₀", scales.w0.value, scales.w0.error, caution
    charge = topological_charge(flow, target=TARGET)
    one = charge.susceptibility
    yield "χ_t", one.value, one.error, bool(charge.cautions or one.cautions)


TARGET = 0.1
"""Value of t²⟨E⟩ at t₀, as in the literature of SU(2)."""


def read_flow_series(run: Path) -> tuple[Any, Series]:
    """Read the flow."""
    flow = read_flow(run / "flow.csv")
    return flow, dict(flow.columns)


def of_potential(shared: list[Any], series: list[Series]) -> Iterator[Found]:
    """Yield V(R), the force, and the scales, all but the force with total errors."""
    (own,), (path,) = series, shared
    sweeps = np.arange(len(own["loops"]))
    found = static_potential([replace(path, sweeps=sweeps, values=own["loops"], chains=None)])
    caution = bool(found.points[0].potential.cautions)
    for point in found.points:
        if point.steps in (1, 2, 3):
            yield f"V({point.steps})", point.potential.value, point.error, caution
    for point in found.force[:1]:
        yield "force", point.force.value, point.force.error, caution
    for name, scale in found.scales.items():
        yield name, scale.value.value, scale.error, caution


def read_potential(run: Path) -> tuple[Any, Series]:
    """Read the Wilson loops of the only level of smearing."""
    (loops,) = all_loops(read_loops(run / "wilson_loops.csv"))
    return loops, {"loops": loops.values}


def of_transition(shared: list[Any], series: list[Series]) -> Iterator[Found]:
    """Yield pseudo-critical couplings, crossings and the extrapolated coupling."""
    by_lattice: dict[Lattice, list[Any]] = defaultdict(list)
    for (lattice, chain), own in zip(shared, series, strict=True):
        sweeps = np.arange(1, len(own["action"]) + 1)
        by_lattice[lattice].append(replace(chain, sweeps=sweeps, **own))
    group = GROUPS["su2"]
    volumes = [
        ThermalVolume(lattice, group.colours, chains, seed=number)
        for number, (lattice, chains) in enumerate(by_lattice.items())
    ]
    coupling = Coupling.of_metadata({"group": "su2", "beta": "1.88", "action": "wilson"})
    found = transition(volumes, group, coupling, {})
    caution = bool(found.cautions)
    for one in found.volumes:
        yield f"β of the peak, {one.lattice}", one.beta_peak.value, one.beta_peak.error, caution
        yield f"χ at the peak, {one.lattice}", one.peak.value, one.peak.error, caution
    for pair in found.crossings:
        yield f"crossing with {pair.large}", pair.beta.value, pair.beta.error, caution
    for line in found.critical:
        yield f"β_c, {line.method}", line.beta.value, line.beta.error, caution


def read_thermal(run: Path) -> tuple[Any, Series]:
    """Read the action and the Polyakov loop."""
    from gauge_mc.run.results import open_run

    chain = read_thermal_chain(run)
    return (open_run(run).parameters.lattice, chain), {"action": chain.action, "loop": chain.loop}


ROOT = Path(__file__).resolve().parents[2]

STUDIES = {
    "loops": Study(
        "SU(2), 4⁴, β = 2.2",
        [
            {
                **COMMON,
                "beta": 2.2,
                "lattice": "4x4x4x4",
                "configs": 600,
                "separation": 1,
                "measure": "plaquette,polyakov,wilson-loops:1:r-max=2:t-max=2:iterations=0",
            }
        ],
        read_averages,
        of_loops,
        ("plaquette", "Re L", "modulus of L", "loops"),
    ),
    "flow": Study(
        "SU(2), 6⁴, β = 2.3",
        [
            {
                **COMMON,
                "beta": 2.3,
                "lattice": "6x6x6x6",
                "configs": 160,
                "separation": 10,
                "measure": "flow:10:to=0.8:every=0.1:step=0.05",
            }
        ],
        read_flow_series,
        of_flow,
        ("energy_clover", "charge"),
    ),
    "potential": Study(
        "SU(2), 8³×16, β = 2.3",
        [
            {
                **COMMON,
                "beta": 2.3,
                "lattice": "8x8x8x16",
                "configs": 220,
                "separation": 5,
                "measure": "wilson-loops:5:r-max=4:t-max=7:smear=ape:0.2x25",
            }
        ],
        read_potential,
        of_potential,
        ("loops",),
    ),
    "scales": Study(
        "SU(2), 12³×16, β = 2.4",
        [
            {
                **COMMON,
                "beta": 2.4,
                "lattice": "12x12x12x16",
                "configs": 100,
                "separation": 5,
                "measure": "wilson-loops:5",
            }
        ],
        read_potential,
        of_potential,
        ("loops",),
    ),
    "transition": Study(
        "SU(2), N_t = 2",
        [
            {
                **COMMON,
                "beta": beta,
                "lattice": f"{size}x{size}x{size}x2",
                "configs": 3000,
                "separation": 1,
                "measure": "plaquette,polyakov",
            }
            for size in (4, 6, 8)
            for beta in (1.86, 1.88, 1.9)
        ],
        read_thermal,
        of_transition,
        ("action", "modulus"),
    ),
}
for path in ROOT.glob("docs/extensions/*/studies.py"):
    STUDIES |= import_module(f"docs.extensions.{path.parent.name}.studies").STUDIES
"""The studies by name, with those of extensions."""


def generated(
    study: Study, folder: Path, first: int, count: int, configs: int | None, options: dict[str, Any]
) -> tuple[list[Any], list[list[Series]]]:
    """Return what the ensembles share, and the series of chains, by chain and ensemble."""
    shared, found = [], [[] for _ in range(count)]
    for number, ensemble in enumerate(study.ensembles):
        values = {**ensemble, "seed": 1 + first + 100_000 * number}
        if configs:
            values["configs"] = configs
        output = folder / f"{number}_{first}"
        runs = generate_chains(values, chains=count, output=output, progress=False, **options)
        for own, run in zip(found, runs, strict=True):
            common, series = study.read(run.path)
            own.append(series)
        shared.append(common)
    return shared, found


def times(study: Study, chains: list[list[Series]]) -> int:
    """Return the number of measurements of one independent one."""
    tau = 0.5
    for number in range(len(study.ensembles)):
        for name in study.slow:
            if name == "modulus":
                parts = [np.abs(chain[number]["loop"]) for chain in chains]
            else:
                parts = [chain[number][name] for chain in chains]
            flat = [part.reshape(len(part), -1) for part in parts]
            columns = range(0, flat[0].shape[1], max(1, flat[0].shape[1] // 20))
            tau = max(tau, *(estimate(*(part[:, i] for part in flat)).tau_int for i in columns))
    print(f"τ_int = {tau:.2f} measurements", file=sys.stderr, flush=True)
    return 2 * tau


def results_of(name: str, shared: list[Any], series: list[Series]) -> list[Found]:
    """Return the results of a study; none if a fit is refused."""
    with suppress(GaugeError):
        return [*STUDIES[name].results(shared, series)]
    return []


def main() -> None:
    """Carry out a study, and print its lines and what misses."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("output", type=Path)
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--together", type=int, default=0, help="chains of one call")
    parser.add_argument("--configs", type=int, help="number of measurements")
    parser.add_argument("--drawn", type=int, default=0, help="ensembles that are drawn")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--generators", type=int, default=1, help="processes that generate")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    study = STUDIES[given.study]
    options = {"backend": given.backend, "threads": given.threads}
    together = given.together or math.ceil(given.chains / given.generators)
    firsts = range(0, given.chains, together)
    with ProcessPoolExecutor(given.generators, get_context("spawn")) as pool:
        tasks = [
            pool.submit(
                generated,
                study,
                given.output,
                first,
                min(together, given.chains - first),
                given.configs,
                options,
            )
            for first in firsts
        ]
        parts = [one.result() for one in tasks]
    shared, chains = parts[0][0], [chain for _, some in parts for chain in some]
    print(f"{len(chains)} chains", file=sys.stderr, flush=True)
    table = deviations(given.study, shared, chains, given.drawn, given.processes)
    show(table, NUMBERS, given.drawn)
    print(*missed(table), sep="\n")


def deviations(
    name: str, shared: list[Any], chains: list[list[Series]], drawn: int = 0, processes: int = 1
) -> Table:
    """Return the deviations of small ensembles from what is found from all chains.

    Parameters
    ----------
    name, shared, chains
        The study and what `generated` returns.
    drawn : int
        Number of ensembles of each size that are drawn; 0 for pieces of the chains.
    processes : int
        Number of processes.
    """
    study, joined = STUDIES[name], [_joined(one) for one in zip(*chains, strict=True)]
    kind = f"{study.kind}, drawn" if drawn else study.kind
    samples = min(_length(one) for one in joined)
    each = 1.0 if drawn else times(study, chains)
    truth = {one[0]: one[1] for one in results_of(name, shared, joined)}
    print(f"{samples} measurements, truth: {truth}", file=sys.stderr, flush=True)
    table: Table = defaultdict(list)
    for number in NUMBERS:
        length = math.ceil(each * number)
        ensembles = _drawn(joined, length, drawn) if drawn else _pieces(chains, length)
        found = _all_results(name, shared, ensembles, processes)
        own = 0.0 if drawn else length / samples  # a piece is a part of the truth
        for quantity, value, error, caution in itertools.chain(*found):
            if quantity in truth and math.isfinite(value) and 0 < error < math.inf:
                pull = (value - truth[quantity]) / (error * math.sqrt(1 - own))
                table[kind, quantity, number].append((pull, caution))
        done = sum(map(bool, found))
        print(f"N = {number}: {done} of {len(found)} have results", file=sys.stderr, flush=True)
    return table


def _all_results(
    name: str, shared: list[Any], ensembles: Iterable[list[Series]], processes: int
) -> list[list[Found]]:
    if processes == 1:
        return [results_of(name, shared, one) for one in ensembles]
    with ProcessPoolExecutor(processes) as pool:
        return [*pool.map(results_of, itertools.repeat(name), itertools.repeat(shared), ensembles)]


def _length(series: Mapping[str, np.ndarray]) -> int:
    return len(next(iter(series.values())))


def _joined(chains: tuple[Series, ...]) -> Series:
    return {name: np.concatenate([one[name] for one in chains]) for name in chains[0]}


def _drawn(joined: list[Series], length: int, count: int) -> Iterator[list[Series]]:
    """Yield ensembles of so many measurements that are drawn with replacement."""
    rng = np.random.default_rng([1, length])
    for _ in range(count):
        chosen = [rng.integers(_length(own), size=length) for own in joined]
        yield [
            {name: one[which] for name, one in own.items()}
            for own, which in zip(joined, chosen, strict=True)
        ]


def _pieces(chains: list[list[Series]], length: int) -> Iterator[list[Series]]:
    """Yield pieces of all chains, at most `PIECES` of each and far from each other."""
    samples = min(_length(one) for one in chains[0])
    every = max(length, samples // PIECES)
    for chain in chains:
        for first in range(0, samples - length + 1, every):
            yield [
                {name: one[first : first + length] for name, one in own.items()} for own in chain
            ]


if __name__ == "__main__":
    main()

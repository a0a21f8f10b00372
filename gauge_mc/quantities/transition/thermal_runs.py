"""Points of a scan that are missing, given its complete runs: at peaks, and between runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import Coupling, ensemble_keys
from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import Lattice, Loops
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import TableData, read_table
from gauge_mc.groups import GROUPS, Group
from gauge_mc.observables import OBSERVABLES, Observable, observable_of_loops, table_name
from gauge_mc.options import Option
from gauge_mc.quantities.transition.reweighting import LEAST_OVERLAP, ThermalChain, ThermalVolume
from gauge_mc.quoting import CommandLine, counted
from gauge_mc.run.directory import Run
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import TEMPERING, Parameters
from gauge_mc.run.thermalisation import Skip, last_skipped
from gauge_mc.scans.additions import ScanAddition
from gauge_mc.scans.grid import Grid, Point
from gauge_mc.scans.scan import Member, Scan, is_scan
from gauge_mc.updates.terms import ACTION_TERMS, weights

LOOP_COLUMNS = ("re", "im", "abs")
"""Columns of the table of Polyakov loops."""

APART = "move the runs that belong together to one folder"
"""Advice for runs that cannot be combined."""

VARYING = ("beta", "lattice")
"""Keys of an ensemble that may differ between the runs of a study."""

LEAST_MEASUREMENTS = 20
"""Minimum number of measurements of a chain."""


@dataclass(frozen=True)
class ThermalRuns:
    """Runs with one action at several couplings and volumes.

    Raises
    ------
    GaugeError
        See `read_thermal_runs`.
    """

    ensemble: Mapping[str, str]
    """Keys of the headers that all runs share, such as group and action."""
    coupling: Coupling
    """The action, with the coupling of the first run."""
    chains: Mapping[Lattice, list[ThermalChain]]
    """The chains on each lattice, smaller lattices first."""
    scan: Path | None = None
    """The scan to which all runs belong."""

    @property
    def group(self) -> Group:
        """The gauge group."""
        return GROUPS[self.ensemble["group"]]

    def volumes(self, replicas: int, seed: int = 1) -> list[ThermalVolume]:
        """Return the volumes with their bootstrap, each with a seed of its own."""
        colours = self.group.colours
        return [
            ThermalVolume(lattice, colours, chains, replicas, seed + number, self.scan)
            for number, (lattice, chains) in enumerate(self.chains.items())
        ]


def read_thermal_runs(folder: Path, skip: Skip = 0, extent: int | None = None) -> ThermalRuns:
    """Read the tables of all runs in a folder, such as those of a scan."""
    chainses: dict[Lattice, list[ThermalChain]] = {}
    shared: dict[str, str] = {}
    coupling: Coupling | None = None
    for run in sorted(path for path in folder.iterdir() if path.is_dir()):
        path = run / loop_table()
        if not path.exists():
            continue
        loops = read_table(path)
        lattice = Lattice.parse(loops.header["lattice"])
        if (extent and lattice.t != extent) or not len(loops):
            continue
        keys = (*(key for key in ensemble_keys() if key not in VARYING), *weights())
        ensemble = {key: loops.header[key] for key in keys if key in loops.header}
        apart = dict.fromkeys(ACTION_TERMS, "")
        check_equal({**(shared or ensemble), **apart}, {**ensemble, **apart}, run)
        for name, kind in ACTION_TERMS.items():
            if shared and shared.get(name) != ensemble.get(name):
                fit = CommandLine("fit", kind.compared_by, folder)
                peaks = f"find peaks over their numbers with `{fit}`"
                raise GaugeError(
                    f"The runs in {folder} have different {kind.words or name}, between which "
                    f"nothing can be reweighted; {peaks if kind.compared_by else APART}."
                )
        shared = ensemble
        coupling = Coupling.of_metadata(loops.header)
        chainses.setdefault(lattice, []).append(read_thermal_chain(run, skip))
    if coupling is None:
        raise GaugeError(
            f"There is no run with Polyakov loops in {folder}; name the folder of a scan that has "
            "measured them."
        )
    check_one_extent(folder, chainses)
    chains = dict(sorted(chainses.items(), key=lambda x: x[0].sites))
    scan = folder if (folder / "scan.toml").is_file() else None
    return ThermalRuns(shared, coupling, chains, scan)


def loop_observable() -> str:
    """Return the name of the observable that is the Polyakov loop."""
    columns = {x.name: x.columns.names for x in OBSERVABLES.values()}
    return next(name for name, names in columns.items() if names == LOOP_COLUMNS)


def loop_table() -> str:
    """Return the name of the file with Polyakov loops in a run directory."""
    return f"{table_name(loop_observable())}.csv"


def check_equal(first: Mapping[str, str], ensemble: Mapping[str, str], run: Path) -> None:
    """Refuse a run of another action, group or kind of quarks."""
    for name in sorted({*first, *ensemble}):
        if first.get(name) != ensemble.get(name):
            raise GaugeError(
                f"{run} has {name} {ensemble.get(name, 'unset')}, but other runs beside it have "
                f"{first.get(name, 'unset')}; {APART}."
            )


def check_one_extent(folder: Path, lattices: Iterable[Lattice]) -> None:
    """Refuse runs with several numbers of links along t."""
    extents = sorted({lattice.t for lattice in lattices})
    if len(extents) > 1:
        raise GaugeError(
            f"The runs in {folder} have several temporal extents, {', '.join(map(str, extents))}; "
            "choose one with --nt."
        )


def read_thermal_chain(run: Path, skip: Skip = 0) -> ThermalChain:
    """Return the chain of one run, at the updates at which everything was measured."""
    path = run / loop_table()
    if not path.exists():
        raise GaugeError(f"{run} has not measured Polyakov loops; measure them along the way.")
    loops = read_table(path)
    coupling = Coupling.of_metadata(loops.header)
    lattice = Lattice.parse(loops.header["lattice"])
    skip = last_skipped(run, skip)
    loops = loops.after(skip, str(path))
    updates, density = action_series(run, coupling, loops[SWEEP])
    if updates.size < LEAST_MEASUREMENTS:
        raise GaugeError(
            f"{run} has measured the Polyakov loop and the loops of its action together at "
            f"{counted(updates.size, 'update')} after update {skip}, and {LEAST_MEASUREMENTS} are "
            "needed; continue the run, or measure all of them at the same updates."
        )
    loop = _at(loops, updates, "re") + 1j * _at(loops, updates, "im")
    return ThermalChain(coupling.beta, updates, density * lattice.sites, loop, ladder_of(run))


def ladder_of(run: Path) -> int | None:
    """Return the number of the ladder of a run, which is that of its chain; None if it has none."""
    named = re.search(r"_chain([0-9]+)$", run.resolve().name)
    tempered = (run / f"{table_name(TEMPERING)}.csv").exists()
    return int(named[1]) if named and tempered else None


def action_series(
    run: Path, coupling: Coupling, updates: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], Array]:
    """Return the action per site divided by beta along one run."""
    tables = {loop: _table_of(run, loop, coupling) for loop in coupling.action.loops}
    for table in tables.values():
        updates = table[SWEEP] if updates is None else np.intersect1d(updates, table[SWEEP])
    assert updates is not None
    averages = {
        n: [_at(table, updates, name) for name in _observable(n).columns.names[1:]]
        for n, table in tables.items()
    }
    return updates, np.asarray(coupling.density(averages)) / coupling.beta


def _table_of(run: Path, loops: Loops, coupling: Coupling) -> TableData:
    """Return the table of the averages over loops of one shape."""
    observable = _observable(loops)
    path = run / f"{table_name(observable.name)}.csv"
    if not path.exists():
        raise GaugeError(
            f"{run} has not measured {observable.name}, which the value of the action "
            f"{coupling.action.name} needs at every update at which other loops are measured; "
            f"repeat the work in another folder: {_command_again(run)}."
        )
    return read_table(path)


def with_action(parameters: Parameters) -> list[str]:
    """Return the measurements of a run and those of the loops of its action, which its value needs.

    The loops are measured as often as the Polyakov loop, or after every update.
    """
    items = {item.observable: item for item in parameters.measure}
    often = items.get(loop_observable(), Measurement("")).every
    observables = filter(None, map(observable_of_loops, parameters.action.loops))
    items |= {name: Measurement(name, often) for name in observables if name not in items}
    return [str(items[name]) for name in sorted(items)]


def lacking_action(parameters: Parameters) -> str | None:
    """Return the caution that a run measures loops, but not all that the value of its action needs.

    None if it does, or if it measures none of them.
    """
    measured = {item.observable for item in parameters.measure}
    observables = {name for loop in parameters.action.loops if (name := observable_of_loops(loop))}
    if observables <= measured or not measured & {*observables, loop_observable()}:
        return None
    return (
        f"The value of the action {parameters.action.name}, which fits of scans need, will not be "
        f"known: measure its loops as well, with --measure {','.join(with_action(parameters))}."
    )


def _command_again(run: Path) -> str:
    """Return the command that repeats a run, or its scan, and also measures the loops it needs."""
    if not Run(run).exists():  # its tables alone have been copied
        return "with the loops of its action in --measure"
    parameters = Run(run).read()[0]
    card = f"--card {quote(str(run / 'run.toml'))}"
    rest = f"--measure {quote(','.join(with_action(parameters)))} --output"
    if not is_scan(run.parent):
        return f"gauge-mc generate {card} {rest} {quote(f'{run}_again')}"
    grids = (words for grid in Scan.read(run.parent).grids for words in grid.words)
    output = quote(f"{run.parent}_again")
    return ", then ".join(f"gauge-mc scan {card} {grid} {rest} {output}" for grid in grids)


def _observable(loops: Loops) -> type[Observable]:
    """Return the observable that averages over loops of a shape: over all, and of each kind."""
    if name := observable_of_loops(loops):
        return OBSERVABLES[name]
    raise GaugeError(
        f"No observable measures the loops {loops.kernel.name} of the action, so that its value is "
        "not known; declare one."
    )


def _at(table: TableData, updates: NDArray[np.int64], name: str) -> Array:
    return np.asarray(table[name][np.searchsorted(table[SWEEP], updates)], dtype=np.float64)


NEAR = 0.5
"""Distance in units of 1/sigma of the action below which a run is as good as one at the peak."""

MOST_AT_ONCE = 20
"""Maximum number of points between two runs that are added at once."""


def refinement(scan: Scan, skip: Skip = 0) -> list[Grid]:
    """Return the points where a scan should be finer, one grid for each lattice and action.

    On every lattice these are the peak of the susceptibility of the Polyakov loop, by reweighting,
    unless a run is near; points between neighbouring runs whose histograms of the action do not
    overlap; and a point beyond the outermost run if the susceptibility still grows there. They have
    as many chains as the scan has at most.
    """
    members: dict[Point, list[Member]] = {}
    for scan_member in scan.members():
        if scan_member.complete():
            members.setdefault(scan_member.point._replace(beta=0.0), []).append(scan_member)
    chains, grids = max(scan.points().values(), default=1), []
    several = len({point.algorithm for point in scan.points()}) > 1
    for point, member in members.items():
        if several and len({x.point.beta for x in member}) == 1:
            raise UsageError(
                f"--refine adds values of β, of which {scan.path} has one for each of its quarks; "
                "add values to --quarks, or several to --beta."
            )
        runs = [read_thermal_chain(x.run.path, skip) for x in member]
        volume = ThermalVolume(point.lattice, GROUPS[scan.parameters.group].colours, runs, 0)
        couplings = tuple(sorted({*missing_couplings(volume)}))
        if couplings:
            grids.append(Grid(couplings, (point.lattice,), chains, scan.options_of([point])))
    return grids


class Refinement(ScanAddition):
    """Points at peaks of the susceptibility of the Polyakov loop, and between distant runs."""

    name = "refine"
    option = Option(
        "refine",
        bool,
        "Add points to an existing scan where the susceptibility of the Polyakov loop has its "
        "peak, or where histograms of the action do not overlap.",
        usual=False,
    )

    def points(self, scan: Scan, skip: Skip) -> list[Grid]:
        """Return the points where a scan should be finer; see `refinement`."""
        return refinement(scan, skip)

    def caution(self, parameters: Parameters) -> str | None:
        """Return that loops of the action are not measured; see `lacking_action`."""
        return lacking_action(parameters)


REFINEMENT = Refinement()


def missing_couplings(volume: ThermalVolume) -> Iterator[float]:
    """Yield the couplings of runs that are missing on one lattice; see `refinement`."""
    every = volume.reweighting
    beta, widths = every.beta, volume.widths.tolist()
    for k, overlap in enumerate(every.overlap):
        if overlap < LEAST_OVERLAP:
            distance = float(beta[k + 1] - beta[k])
            count = min(math.ceil(distance / (widths[k] + widths[k + 1])), MOST_AT_ONCE)
            inner = np.linspace(beta[k], beta[k + 1], count + 1 + (count == 1))[1:-1]
            yield from (rounded(float(x), widths[k]) for x in inner)
    if every.gaps:  # a peak cannot be found before they are closed
        return
    peak = float(volume.peak[0][0])
    if math.isfinite(peak):
        near = int(np.argmin(np.abs(beta - peak)))
        if abs(float(beta[near]) - peak) > NEAR * widths[near]:
            yield rounded(peak, widths[near])
    elif volume.confined:
        yield rounded(float(beta[-1]) + 2 * widths[-1], widths[-1])
    else:
        yield rounded(float(beta[0]) - 2 * widths[0], widths[0])


def rounded(beta: float, width: float) -> float:
    """Return a coupling with as many decimals as a tenth of a width needs."""
    decimals = max(0, math.ceil(1 - math.log10(width)))
    return round(beta, decimals)

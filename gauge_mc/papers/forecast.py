"""Times that the runs of a card of a paper take on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table

from gauge_mc.papers.cards import PaperCard
from gauge_mc.papers.reproduce import OUTPUT, ensemble_path
from gauge_mc.results import documented, result_field
from gauge_mc.run.display import duration
from gauge_mc.run.forecast import forecast as forecast_run
from gauge_mc.scans.forecast import forecast as forecast_scan
from gauge_mc.scans.forecast import varied_couplings
from gauge_mc.scans.grid import COUPLINGS, Point
from gauge_mc.scans.request import ScanRequest


@documented
@dataclass(frozen=True)
class RunTime:
    """The remaining work of a run of a card, or of all chains at a point of its scan."""

    ensemble: str = result_field("Name of the ensemble in the card.")
    run: str = result_field("Run directory, or scan directory.")
    beta: float = result_field("Coupling.")
    couplings: Mapping[str, float] = result_field(COUPLINGS)
    lattice: str = result_field("Extents of the lattice.")
    updates_left: int = result_field("Number of updates that are left.")
    seconds: float = result_field(
        "Time of all updates, measurements and snapshots, without waiting for the disk. Runs "
        "that are updated together have equal parts of the time of their batch."
    )


@documented
@dataclass(frozen=True)
class PaperForecast:
    """The times that the runs of a card take on this machine."""

    card: str = result_field("Name of the card.")
    runs: Sequence[RunTime] = result_field("The runs, and the points of scans.")
    seconds: float = result_field("Time of all runs, without that of the fits.")
    refusals: Sequence[str] = result_field(
        "Reasons for which runs would be refused, one sentence each."
    )

    def table(self) -> RenderableType:
        """Return the content as a table."""
        table = Table(box=None, pad_edge=False, header_style="bold", show_footer=True)
        table.add_column("ensemble", "total")
        shown = varied_couplings([one.couplings for one in self.runs])
        for heading in ("lattice", "β", *(one.short for one in shown), "updates left"):
            table.add_column(heading, justify="right")
        table.add_column("time", duration(self.seconds), justify="right")
        for one in self.runs:
            values = (one.couplings.get(each.name, each.usual) for each in shown)
            table.add_row(
                one.ensemble,
                one.lattice,
                f"{one.beta:.12g}",
                *("" if value is None else f"{value:.12g}" for value in values),
                str(one.updates_left),
                duration(one.seconds),
            )
        refused = [f"refused: {reason}" for reason in self.refusals]
        return Group("nothing was written; the fits take some time more\n", table, *refused)


def forecast(
    card: PaperCard, *, output: Path = OUTPUT, **execution: str | int | None
) -> PaperForecast:
    """Try a few updates of every run of a card in memory, and return how long the rest takes.

    Nothing is written. Runs that are there, with the same parameters, are continued.

    Parameters
    ----------
    card : PaperCard
        The card.
    output : Path
        Folder of the runs and the comparisons.
    **execution : object
        Fields of `Execution` by name, such as ``backend`` and ``threads``.

    Raises
    ------
    UsageError, GaugeError
        If a run or a scan could not be begun or continued.
    """
    given = {name: value for name, value in execution.items() if value is not None}
    runs: list[RunTime] = []
    refusals: list[str] = []
    total = 0.0
    for one in card.ensembles.values():
        path = str(ensemble_path(output, one))
        values = {**one.values_within(output), **given, "output": path}
        if one.scan:
            scan = forecast_scan(ScanRequest.of(values))
            for point in scan.points:
                where = (point.beta, point.couplings, point.lattice)
                runs.append(RunTime(one.name, path, *where, point.updates_left, point.seconds))
            refusals += scan.refusals
            total += scan.seconds
        elif run := forecast_run(values):
            p = one.parameters
            where = (p.beta, Point.of(p).numbers, str(p.lattice))
            runs.append(RunTime(one.name, path, *where, run.updates_left, run.seconds))
            refusals += [run.shortage] if run.shortage else []
            total += run.seconds
    return PaperForecast(card.name, runs, total, refusals)

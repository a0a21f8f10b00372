"""Reports on runs that exchange their couplings: acceptance of exchanges, and round trips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from gauge_mc.analysis.ladder import round_trips
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import TableData, read_table
from gauge_mc.results import documented, headings, result_field
from gauge_mc.run.parameters import TEMPERING
from gauge_mc.scans.grid import COUPLINGS, differing, number_of_point, value_at
from gauge_mc.scans.ladders import ladders
from gauge_mc.scans.scan import Member, Scan


@documented
@dataclass(frozen=True)
class NeighbourAcceptance:
    """How often two runs with neighbouring couplings have exchanged their replicas."""

    lower_beta: float = result_field("Smaller coupling.", symbol="β")
    upper_beta: float = result_field("Next larger coupling.", symbol="and β")
    attempts: int = result_field("Number of exchanges that were tried.", symbol="attempts")
    acceptance: Estimate = result_field("Fraction that was accepted.", symbol="acceptance")


@documented
@dataclass(frozen=True)
class LadderReport:
    """Runs that exchange their couplings, after the thermalisation."""

    lattice: str = result_field("Extents of the lattice.")
    couplings: Mapping[str, float] = result_field(COUPLINGS)
    chain: int = result_field("Number of the chain at its point, from 1.")
    pairs: Sequence[NeighbourAcceptance] = result_field("Acceptance of every pair of neighbours.")
    round_trips: Sequence[int] = result_field(
        "How often each replica has gone from the smallest coupling to the largest and back."
    )
    updates_per_round_trip: float | None = result_field(
        "Number of updates of a replica per round trip; None if there was none."
    )

    @classmethod
    def of(cls, runs: Sequence[Member]) -> LadderReport | None:
        """Return the report on runs in ascending order of β; None if there was no exchange yet.

        Raises
        ------
        GaugeError
            If a table of exchanges is damaged.
        """
        paths = [one.run.table(TEMPERING) for one in runs]
        if not all(path.exists() for path in paths):
            return None
        tables = [read_table(path) for path in paths]
        count = min(map(len, tables))
        if not count:
            return None
        replicas = np.stack([one["replica"][:count] for one in tables], axis=1)
        try:
            trips = round_trips(replicas.astype(np.int64))
        except ValueError as error:
            raise GaugeError(
                f"{paths[0]} and the tables beside it are damaged: {error}."
            ) from error
        point, total = runs[0].point, int(trips.sum())
        updates = count * runs[0].parameters.exchange_every * len(runs)
        return cls(
            str(point.lattice),
            point.numbers,
            runs[0].chain,
            [_pair(runs, tables, lower) for lower in range(len(runs) - 1)],
            trips.tolist(),
            updates / total if total else None,
        )

    def __str__(self) -> str:
        rates = ", ".join(str(one.acceptance) for one in self.pairs)
        return f"{self.lattice}, chain {self.chain}: acceptance {rates}; {self.sentence}"

    @property
    def sentence(self) -> str:
        """The round trips in words."""
        total, replicas = sum(self.round_trips), len(self.round_trips)
        if not total:
            return f"none of {replicas} replicas has made a round trip"
        return (
            f"{total} round trips of {replicas} replicas, one in "
            f"{self.updates_per_round_trip:.3g} updates of each"
        )


def _pair(runs: Sequence[Member], tables: Sequence[TableData], lower: int) -> NeighbourAcceptance:
    """Return the acceptance of a run and the next one."""
    table = tables[lower]
    accepted = table["accepted"][table["partner"] == lower + 1]
    this, other = (one.parameters.beta for one in runs[lower : lower + 2])
    return NeighbourAcceptance(this, other, accepted.size, estimate(accepted.astype(np.float64)))


def ladder_reports(scan: Scan) -> list[LadderReport]:
    """Return the reports on all runs of a scan that exchange their couplings.

    Tables that are damaged are left out; ``gauge-mc verify`` names them.
    """
    found = []
    for runs in ladders(scan.members()):
        try:
            report = LadderReport.of(runs)
        except GaugeError:
            continue
        found += [report] if report else []
    return found


def ladders_shown(reports: Sequence[LadderReport]) -> list[Table | str]:
    """Return a table of the acceptance of all pairs, and lines with the round trips, if any."""
    if not reports:
        return []
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("lattice")
    for heading in ("chain", *headings(NeighbourAcceptance).values()):
        table.add_column(heading, justify="right")
    quarks = differing([one.couplings for one in reports])
    names = [
        ", ".join(
            [one.lattice, *(number_of_point(q).said(value_at(one.couplings, q)) for q in quarks)]
        )
        for one in reports
    ]
    for name, one in zip(names, reports, strict=True):
        for n, pair in enumerate(one.pairs):
            betas = (f"{beta:.12g}" for beta in (pair.lower_beta, pair.upper_beta))
            place = ("", "") if n else (name, str(one.chain))
            table.add_row(*place, *betas, str(pair.attempts), str(pair.acceptance))
    several = len(reports) > 1
    both = zip(names, reports, strict=True)
    said = (f"{name}, chain {one.chain}: " if several else "" for name, one in both)
    lines = (place + one.sentence for place, one in zip(said, reports, strict=True))
    return ["", table, *lines]

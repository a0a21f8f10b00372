"""Ladders of a scan with tempering: the runs that exchange their couplings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.console import plain_table
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import TableData, read_table
from gauge_mc.results import documented, headings, result_field
from gauge_mc.run.chain import shared_values
from gauge_mc.run.parameters import TEMPERING
from gauge_mc.run.state import saved_progress
from gauge_mc.scans.grid import COUPLINGS, differing, number_of_point, value_at
from gauge_mc.scans.scan import Member, Scan


def rungs_of_replicas(replicas: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return on which rung every replica stands."""
    rungs = np.argsort(replicas, axis=1, kind="stable")
    every = np.broadcast_to(np.arange(replicas.shape[1]), replicas.shape)
    if not np.array_equal(np.take_along_axis(replicas, rungs, 1), every):
        raise ValueError("a replica is missing or on several rungs")
    return rungs


def round_trips(replicas: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how often every replica has gone from the lowest rung to the highest and back."""
    rungs, last = rungs_of_replicas(replicas), replicas.shape[1] - 1
    return np.array([_trips(x, last) for x in rungs.T], np.int64)


def _trips(rungs: NDArray[np.int64], last: int) -> int:
    """Return the number of round trips of a replica."""
    ends = rungs[(rungs == 0) | (rungs == last)]
    turns = ends[np.diff(ends, prepend=-1) != 0]  # the ends in turn, each once
    first = int(turns.size > 0 and turns[0] != 0)  # a trip begins on the lowest rung
    return max(0, len(turns) - first - 1) // 2


def ladders(members: Iterable[Member]) -> list[tuple[Member, ...]]:
    """Return the runs that exchange their couplings, in ascending order of β.

    They have the same lattice, options of the action, quarks, and number of the chain. Runs without
    tempering are left out.
    """
    runs: defaultdict[tuple[object, ...], list[Member]] = defaultdict(list)
    for member in members:
        if member.parameters.tempering:
            runs[member.point._replace(beta=0.0), member.chain].append(member)
    return [tuple(sorted(each, key=lambda x: x.parameters.beta)) for each in runs.values()]


def unfinished(members: Sequence[Member], is_complete: Callable[[Member], bool]) -> list[Member]:
    """Return the runs that are left: those that are not done, and all that exchange with them."""
    names = {member.name for member in members if not is_complete(member)}
    again = [each for each in ladders(members) if any(x.name in names for x in each)]
    names |= {x.name for each in again for x in each}
    return [member for member in members if member.name in names]


def check_ladders(scan: Scan, before: Scan) -> None:
    """Refuse a scan in which couplings cannot be exchanged, or whose ladders have changed."""
    sizes = {x.name: len(each) for each in ladders(before.members()) for x in each}
    for each in ladders(scan.members()):
        point = each[0].point
        if len(each) < 2:
            raise UsageError(
                f"Tempering exchanges couplings, and on {point.lattice} there is only β = "
                f"{point.beta:.12g}; give --beta several values, or leave out --tempering."
            )
        if any(sizes.get(x.name, len(each)) != len(each) for x in each):
            raise UsageError(
                f"The runs of {scan.path} on {point.lattice} exchange their couplings, so that no "
                "β can be added or taken out; choose another --output, or another --lattice."
            )


RunBatch = tuple[Member, ...]
"""Runs on the same lattice after the same number of updates."""


def pack(members: Iterable[Member], busy_sites: int, slots: int) -> list[RunBatch]:
    """Divide runs into batches, those on the largest lattices first.

    Runs that exchange their couplings are one batch.
    """
    members = list(members)
    batches = ladders(members)
    kinds: defaultdict[tuple[object, ...], list[Member]] = defaultdict(list)
    for member in members:
        if not member.parameters.tempering:
            kinds[*shared_values(member.parameters), saved_progress(member.run)].append(member)
    for alike in kinds.values():
        most = max(1, busy_sites // alike[0].parameters.lattice.sites)
        size = min(most, -(-len(alike) // slots))
        batches += [tuple(alike[n : n + size]) for n in range(0, len(alike), size)]
    return sorted(batches, key=lambda batch: -batch[0].parameters.lattice.sites)


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
        """Return the report on runs in ascending order of β; None if there was no exchange yet."""
        paths = [run.run.table(TEMPERING) for run in runs]
        if not all(path.exists() for path in paths):
            return None
        tables = [read_table(path) for path in paths]
        count = min(map(len, tables))
        if not count:
            return None
        replicas = np.stack([table["replica"][:count] for table in tables], axis=1)
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
        rates = ", ".join(str(pair.acceptance) for pair in self.pairs)
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
    this, upper = (run.parameters.beta for run in runs[lower : lower + 2])
    return NeighbourAcceptance(this, upper, accepted.size, estimate(accepted.astype(np.float64)))


def ladder_reports(scan: Scan) -> list[LadderReport]:
    """Return the reports on all runs of a scan that exchange their couplings.

    Tables that are damaged are left out; ``gauge-mc verify`` names them.
    """
    reports = []
    for runs in ladders(scan.members()):
        with suppress(GaugeError):
            reports.append(LadderReport.of(runs))
    return [report for report in reports if report]


def ladders_shown(reports: Sequence[LadderReport]) -> list[Table | str]:
    """Return a table of the acceptance of all pairs, and lines with the round trips, if any."""
    if not reports:
        return []
    table = plain_table(["lattice"], ["chain", *headings(NeighbourAcceptance).values()])
    quarks = differing([report.couplings for report in reports])
    sentences = []
    for report in reports:
        words = (number_of_point(name).said(value_at(report.couplings, name)) for name in quarks)
        name = ", ".join([report.lattice, *words])
        for n, pair in enumerate(report.pairs):
            betas = (f"{beta:.12g}" for beta in (pair.lower_beta, pair.upper_beta))
            place = ("", "") if n else (name, str(report.chain))
            table.add_row(*place, *betas, str(pair.attempts), str(pair.acceptance))
        sentences.append(f"{name}, chain {report.chain}: {report.sentence}")
    return ["", table, *(sentences if len(reports) > 1 else [reports[0].sentence])]

"""Reports on scans and their runs, for JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gauge_mc.files.table import Value
from gauge_mc.results import documented, result_field
from gauge_mc.run.state import RunState, saved_updates, state_of
from gauge_mc.run.thermalisation import Skip
from gauge_mc.scans.averages import ScanAverages
from gauge_mc.scans.carry_out import ScanResult
from gauge_mc.scans.display import point_name
from gauge_mc.scans.grid import COUPLINGS
from gauge_mc.scans.ladder_report import LadderReport, ladder_reports
from gauge_mc.scans.scan import Member, Scan


@documented
@dataclass(frozen=True)
class MemberState(RunState):
    """A run of a scan and its progress."""

    run: str = result_field("Run directory.")
    beta: float = result_field("Coupling.")
    lattice: str = result_field("Extents of the lattice.")
    couplings: Mapping[str, float] = result_field(COUPLINGS)
    chain: int = result_field("Number of the chain at its point, from 1.")
    point: str = result_field("Couplings and lattice in words.")
    damage: str | None = result_field("Why the run cannot be read or continued; None if it can.")

    @classmethod
    def of(
        cls,
        member: Member,
        failures: Collection[str] = (),
        saved: int | None = None,
        damage: str | None = None,
    ) -> MemberState:
        """Return the state of a run of a scan.

        Parameters
        ----------
        member : Member
            The run.
        failures : collection of str
            Names of the runs that failed in the latest session.
        saved : int, optional
            Number of updates in its checkpoint; by default it is read.
        damage : str, optional
            Why the run cannot be read or continued.
        """
        p = member.parameters
        saved = saved_updates(member.run) if saved is None else saved
        failed = member.name in failures
        return cls(
            str(member.run.path),
            p.beta,
            str(p.lattice),
            member.point.numbers,
            member.chain,
            point_name(member.point),
            damage,
            **vars(state_of(member.run, p, saved, member.begun(), failed)),
        )

    @property
    def name(self) -> str:
        """Name of the run directory."""
        return Path(self.run).name

    def __str__(self) -> str:
        return f"{self.name}  {self.damage or f'{self.sweep} of {self.sweeps} updates'}"


def member_states(members: Sequence[Member], failures: Collection[str] = ()) -> list[MemberState]:
    """Return the states of runs of a scan, with damages of their files."""
    return [MemberState.of(one, failures, damage=one.damage()) for one in members]


def share_done(members: Sequence[Member], states: Sequence[RunState]) -> tuple[float, int]:
    """Return the fraction of the work of a scan that is done, and what is left in link updates."""
    links = [one.parameters.links_per_update for one in members]
    every = sum(one.sweeps * n for one, n in zip(states, links, strict=True))
    done = sum(one.sweep * n for one, n in zip(states, links, strict=True))
    return done / max(1, every), every - done


@documented
@dataclass(frozen=True)
class ScanReport:
    """A scan, what a session has done, and the averages at its points."""

    scan: str = result_field("Scan directory.")
    runs: Sequence[MemberState] = result_field("Runs.")
    complete: int = result_field("Number of complete runs.")
    stopped: str | None = result_field(
        "Reason why the session stopped before the end; None if all is done."
    )
    failures: Mapping[str, str] = result_field("Error messages by the name of the run.")
    rows: Sequence[Mapping[str, Value]] = result_field("Rows of ``scan.csv``, by column.")
    cautions: Sequence[str] = result_field("Cautions about the averages, one sentence each.")
    ladders: Sequence[LadderReport] = result_field("Runs that exchange their couplings.")

    @classmethod
    def of(cls, result: ScanResult, skip: Skip = 0) -> ScanReport:
        """Return the report on a session of a scan."""
        scan = Scan.read(result.path)
        averages = ScanAverages(scan, skip)
        return cls(
            str(result.path),
            member_states(scan.members(), result.failures),
            result.complete,
            result.stopped,
            result.failures,
            averages.sorted_rows(),
            averages.cautions,
            ladder_reports(scan),
        )

"""Reports on scans and their runs, for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gauge_mc.files.table import Value
from gauge_mc.results import documented, result_field
from gauge_mc.run.thermalisation import Skip
from gauge_mc.scans.averages import ScanAverages
from gauge_mc.scans.carry_out import ScanResult
from gauge_mc.scans.ladder_report import LadderReport, ladder_reports
from gauge_mc.scans.scan import Member, Scan


@documented
@dataclass(frozen=True)
class MemberReport:
    """A run of a scan and its progress."""

    run: str = result_field("Run directory.")
    beta: float = result_field("Coupling.")
    lattice: str = result_field("Extents of the lattice.")
    couplings: Mapping[str, float] = result_field("Values of the options of the action, by name.")
    chain: int = result_field("Number of the chain at its point, from 1.")
    sweep: int = result_field("Number of updates done, thermalisation included.")
    sweeps: int = result_field("Number of updates in all, thermalisation included.")
    damage: str | None = result_field("Why the run cannot be read or continued; None if it can.")

    @classmethod
    def of(cls, member: Member) -> MemberReport:
        """Return the report on a run of a scan."""
        p = member.parameters
        return cls(
            str(member.run.path),
            p.beta,
            str(p.lattice),
            p.action.values,
            member.chain,
            member.sweep(),
            p.updates,
            member.damage(),
        )

    def __str__(self) -> str:
        name = self.run.rpartition("/")[2]
        return f"{name}  {self.damage or f'{self.sweep} of {self.sweeps} updates'}"


@documented
@dataclass(frozen=True)
class ScanReport:
    """A scan, what a session has done, and the averages at its points."""

    scan: str = result_field("Scan directory.")
    runs: Sequence[MemberReport] = result_field("Runs.")
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
            [MemberReport.of(member) for member in scan.members()],
            result.complete,
            result.stopped,
            result.failures,
            averages.sorted_rows(),
            averages.cautions,
            ladder_reports(scan),
        )

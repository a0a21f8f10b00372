"""Reports on scans and their runs, for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gauge_mc.files.table import Value
from gauge_mc.scans.averages import ScanAverages
from gauge_mc.scans.carry_out import ScanResult
from gauge_mc.scans.scan import Member, Scan


@dataclass(frozen=True)
class MemberReport:
    """A run of a scan and its progress.

    Attributes
    ----------
    run : str
        Run directory.
    beta : float
        Coupling.
    lattice : str
        Extents of the lattice.
    couplings : mapping of str to float
        Values of the options of the action, by name.
    chain : int
        Number of the chain at its point, from 1.
    sweep, sweeps : int
        Number of updates done, and in all, thermalisation included.
    damage : str or None
        Why the run cannot be read or continued; None if it can.
    """

    run: str
    beta: float
    lattice: str
    couplings: Mapping[str, float]
    chain: int
    sweep: int
    sweeps: int
    damage: str | None

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


@dataclass(frozen=True)
class ScanReport:
    """A scan, what a session has done, and the averages at its points.

    Attributes
    ----------
    scan : str
        Scan directory.
    runs : sequence of MemberReport
        Runs.
    complete : int
        Number of complete runs.
    stopped : str or None
        Reason why the session stopped before the end; None if all is done.
    failures : mapping of str to str
        Error messages by the name of the run.
    rows : sequence of mapping of str to str, int or float
        Rows of ``scan.csv``, by column.
    cautions : sequence of str
        Cautions about the averages, one sentence each.
    """

    scan: str
    runs: Sequence[MemberReport]
    complete: int
    stopped: str | None
    failures: Mapping[str, str]
    rows: Sequence[Mapping[str, Value]]
    cautions: Sequence[str]

    @classmethod
    def of(cls, result: ScanResult, skip: int = 0) -> ScanReport:
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
        )

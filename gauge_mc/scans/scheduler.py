"""Scheduler of a scan, which starts the runs and gathers the results of those that have ended."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence

from gauge_mc.run.parameters import Execution
from gauge_mc.run.session import StopReason
from gauge_mc.scans.averages import ScanAverages
from gauge_mc.scans.display import ProgressDisplay, point_words
from gauge_mc.scans.pool import Child, Pool
from gauge_mc.scans.scan import Member

SECONDS_TO_STOP = 4.0
"""Time in seconds before a scan's time limit at which all running children are told to stop."""

TICK = 0.1
"""Time in seconds between two checks of the children."""


class Scheduler:
    """A scheduler that carries out the runs of a scan in a pool of children.

    Parameters
    ----------
    pool : Pool
    command : sequence of str
        Command that carries out a run; options of ``generate`` are appended.
    display : ProgressDisplay
    averages : ScanAverages
        Averages over complete runs, updated when a run is complete.
    execution : Execution
        Execution options of the scan, which also apply to its children.

    Attributes
    ----------
    failures : dict of str to str
        Reasons for the failure of runs, by the name of the run.
    """

    def __init__(
        self,
        pool: Pool,
        command: Sequence[str],
        display: ProgressDisplay,
        averages: ScanAverages,
        execution: Execution,
    ) -> None:
        self.pool = pool
        self.command = command
        self.display = display
        self.averages = averages
        self.execution = execution
        self.failures: dict[str, str] = {}
        limit = execution.time_limit
        self._deadline = math.inf if limit is None else time.monotonic() + limit
        self._stopped: str | None = None

    def carry_out(self, members: Sequence[Member], stop: StopReason) -> str | None:
        """Carry out runs until all are done or there is a reason to stop.

        Returns
        -------
        str or None
            Reason for stopping early, or None.
        """
        # Start with the largest lattices, so that the smaller ones fill the gaps at the end.
        queue = deque(sorted(members, key=lambda one: -one.parameters.lattice.sites))
        reason = None
        while self.pool.children or (queue and not reason):
            if not reason:
                reason = stop(SECONDS_TO_STOP)
                if reason:
                    self.pool.terminate()
                else:
                    self._fill(queue)
            for child in self.pool.ended():
                self._note(child)
            self.display.refresh(self.pool.children)
            time.sleep(TICK)
        return reason or self._stopped

    def _fill(self, queue: deque[Member]) -> None:
        """Start runs in free slots; postpone runs that another process holds."""
        for _ in range(min(len(queue), len(self.pool.free))):
            if queue[0].run.holder()[1]:
                queue.rotate(-1)
            else:
                member = queue.popleft()
                self.pool.start(member, [*self.command, *self._words(member)])

    def _words(self, member: Member) -> list[str]:
        """Return the options of ``generate`` for a run."""
        values = member.parameters.values() | {
            "output": member.run.path,
            "checkpoint_every": self.execution.checkpoint_every,
        }
        if math.isfinite(self._deadline):
            seconds = max(1, int(self._deadline - SECONDS_TO_STOP / 2 - time.monotonic()))
            values["time_limit"] = f"0:0:{seconds}"
        return [f"--{name.replace('_', '-')}={value}" for name, value in values.items()]

    def _note(self, child: Child) -> None:
        """Record the end of a child, whose run is complete, failed or stopped."""
        member, tally = child.member, self.display.tally
        failure = child.failure()
        tally.note(member)
        if failure:
            self.failures[member.name] = failure
            self.display.line(f"{member.name} failed: {failure}")
        elif not tally.done(member):
            limited = math.isfinite(self._deadline)
            self._stopped = "the time limit" if limited else f"a signal to {member.name}"
        else:
            self.averages.update(member.point)
            self.averages.write()
            row = self.averages.rows.get(member.point)
            if row:
                self.display.line(point_words(member, row))

"""Scheduler of a scan, which starts the runs and gathers the results of those that have ended."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress

from gauge_mc.errors import GaugeError
from gauge_mc.run.execution import Execution
from gauge_mc.run.log import ERROR, FAILURE, RunLog
from gauge_mc.run.session_plan import StopReason
from gauge_mc.scans.averages import ScanAverages
from gauge_mc.scans.display import ProgressDisplay, point_words
from gauge_mc.scans.packing import RunBatch
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
        The pool of children.
    command : sequence of str
        Command that carries out a batch, see `CHILD`.
    display : ProgressDisplay
        Progress display.
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
        self._queue: deque[RunBatch] = deque()

    def carry_out(self, batches: Iterable[RunBatch], stop: StopReason) -> str | None:
        """Carry out batches until all are done or there is a reason to stop.

        Parameters
        ----------
        batches : iterable of Batch
            Runs in the order in which they are started. The largest lattices come first, so that
            the smaller ones fill the gaps at the end.
        stop : callable
            See `StopReason`.

        Returns
        -------
        str or None
            Reason for stopping early, or None.
        """
        self._queue.extend(batches)
        reason = None
        while self.pool.children or (self._queue and not reason):
            if not reason:
                reason = stop(SECONDS_TO_STOP)
                if reason:
                    self.pool.terminate()
                else:
                    self._fill()
            for child in self.pool.ended():
                self._note(child)
            self.display.refresh(self.pool.children)
            time.sleep(TICK)
        return reason or self._stopped

    def _fill(self) -> None:
        """Start runs in free slots; postpone runs that another process holds."""
        for _ in range(len(self._queue)):
            if not self.pool.free:
                return
            batch = self._queue.popleft()
            held = [member for member in batch if member.run.holder()[1]]
            if held and batch[0].parameters.tempering:
                self._queue.append(batch)
                continue
            free = tuple(member for member in batch if member not in held)
            if free:
                self.pool.start(free, self.command, map(self._values, free))
            self._queue.extend((member,) for member in held)

    def _values(self, member: Member) -> dict[str, object]:
        """Return the values of `Parameters` and `Execution` for a run."""
        values: dict[str, object] = {
            **member.parameters.values(),
            "output": str(member.run.path),
            "checkpoint_every": self.execution.checkpoint_every,
        }
        if math.isfinite(self._deadline):
            seconds = max(1, int(self._deadline - SECONDS_TO_STOP / 2 - time.monotonic()))
            values["time_limit"] = f"0:0:{seconds}"
        return values

    def _note(self, child: Child) -> None:
        """Record the end of a child, whose runs are complete, failed or stopped."""
        tally, failure = self.display.tally, child.failure()
        tally.note(child)
        complete = [member for member in child.members if tally.done(member)]
        left = [member for member in child.members if member not in complete]
        tempered = child.members[0].parameters.tempering
        if failure and len(child.members) > 1 and not tempered:
            # One of them has failed. The others can be carried out without it.
            self._queue.extendleft((member,) for member in reversed(left))
        elif failure:
            self.failures |= {one.name: failure for one in left or child.members[:1]}
            with suppress(GaugeError):  # a full disk, which may be why the run failed
                self.averages.scan.record_failures(self.failures)
            for one in left or child.members[:1]:
                RunLog(self.averages.scan.path).add(FAILURE, ERROR, run=one.name, message=failure)
            self.display.line(f"{child.members[0].name} failed: {failure}")
        elif left:
            limited = math.isfinite(self._deadline)
            self._stopped = "the time limit" if limited else f"a signal to {left[0].name}"
        if complete and not (failure and (len(child.members) == 1 or tempered)):
            self._average(complete)

    def _average(self, complete: Sequence[Member]) -> None:
        """Average over the runs that have just been completed."""
        chains = self.averages.scan.points()
        for point in dict.fromkeys(member.point for member in complete):
            self.averages.update(point)
            row = self.averages.rows.get(point)
            if row:
                self.display.line(point_words(point, row, chains[point]))
        self.averages.write()

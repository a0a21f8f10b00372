"""Which run of a scan begins when, and what becomes of those that end."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence

from gauge_mc.chain import Stop
from gauge_mc.parameters import Execution
from gauge_mc.scans import Member
from gauge_mc.scans.board import Board, point_words
from gauge_mc.scans.gather import Averages
from gauge_mc.scans.pool import Child, Pool

SECONDS_TO_STOP = 4.0
"""Before the end of its time limit, a scan tells those of its runs to stop that have not yet."""

TICK = 0.1
"""Seconds between two looks at the children."""


class Scheduler:
    """Has a pool of children carry out the runs of a scan.

    Parameters
    ----------
    pool : Pool
    command : sequence of str
        Carries out a run, with options of ``generate`` behind it.
    board : Board
        Shows how far the scan is.
    averages : Averages
        Gathers what is complete.
    execution : Execution
        What children are told, too.

    Attributes
    ----------
    failures : dict of str to str
        Why runs failed, by their names.
    """

    def __init__(
        self,
        pool: Pool,
        command: Sequence[str],
        board: Board,
        averages: Averages,
        execution: Execution,
    ) -> None:
        self.pool = pool
        self.command = command
        self.board = board
        self.averages = averages
        self.execution = execution
        self.failures: dict[str, str] = {}
        limit = execution.time_limit
        self._deadline = math.inf if limit is None else time.monotonic() + limit
        self._stopped: str | None = None

    def carry_out(self, members: Sequence[Member], stop: Stop) -> str | None:
        """Carry out runs until all are done or there is a reason to stop; return the reason."""
        # The largest come first, so that the others can fill the gaps at the end.
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
            self.board.refresh(self.pool.children)
            time.sleep(TICK)
        return reason or self._stopped

    def _fill(self, queue: deque[Member]) -> None:
        """Start runs in free slots; those that another process holds wait."""
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
        """Note the end of a child: a run complete, failed or stopped."""
        member, tally = child.member, self.board.tally
        failure = child.failure()
        tally.note(member)
        if failure:
            self.failures[member.name] = failure
            self.board.line(f"{member.name} failed: {failure}")
        elif not tally.done(member):
            limited = math.isfinite(self._deadline)
            self._stopped = "the time limit" if limited else f"a signal to {member.name}"
        else:
            self.averages.update(member.point)
            self.averages.write()
            row = self.averages.rows.get(member.point)
            if row:
                self.board.line(point_words(member, row))

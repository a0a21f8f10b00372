"""The budget of quick tests: the time of processors of each, and the kernels of all together.

`--budget` shows which tests take more, and lets the session fail if one takes so much that no other
machine explains it. Tests that have compiled kernels are not judged, so that it takes a second run
to judge all. Processor time is that of the test and of the processes that it has waited for, which
differs less between machines, and between busy and quiet ones, than the time of a clock.
"""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gauge_mc.devices.cache import cache_folder

SECONDS = 4.0
"""Processor time that a quick test may take here: four times what it should."""

ANYWHERE = 12.0
"""Processor time that a quick test may take on any machine, be it old, emulated or shared."""

KERNELS = 500
"""Kernels that the quick tests may compile. Where registers hold 16 sites, there are 50 more than
where they hold 8, because tests of lanes have one number of lanes more."""


def kernels() -> int:
    """Return the number of compiled kernels in the cache."""
    try:
        return sum(name.endswith((".so", ".cubin")) for name in os.listdir(cache_folder()))
    except OSError:
        return 0


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def last_compiled() -> int:
    """Return when the folder of compiled kernels has changed, in nanoseconds."""
    try:
        return os.stat(cache_folder()).st_mtime_ns
    except OSError:
        return 0


class Meter:
    """Adds to the reports of tests what they have taken, wherever they run."""

    def __init__(self) -> None:
        self.seconds, self.changed = processor_seconds(), last_compiled()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        """Note the processor time since the last report, and whether kernels were compiled."""
        report: Any = yield
        seconds, changed = processor_seconds(), last_compiled()
        report.seconds, report.compiled = seconds - self.seconds, changed != self.changed
        self.seconds, self.changed = seconds, changed
        return report


class Budget:
    """Collects what tests have taken, and lets them fail that have taken too much.

    Parameters
    ----------
    times : Path or None
        A file to which the processor time of every test is written: that of the test itself, that
        of fixtures which it was the first to need, and its name.
    """

    def __init__(self, times: Path | None = None) -> None:
        self.times, self.before = times, kernels()
        self.calls: Counter[str] = Counter()
        self.fixtures: Counter[str] = Counter()
        self.compiling: set[str] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take the report of a part of a test."""
        part = self.calls if report.when == "call" else self.fixtures
        part[report.nodeid] += getattr(report, "seconds", 0.0)  # none if a worker has crashed
        if getattr(report, "compiled", False):
            self.compiling.add(report.nodeid)

    def above(self, seconds: float) -> list[str]:
        """Return what is too much, in words, if a test may take so many seconds."""
        judged = ((name, self.calls[name]) for name in sorted(self.calls.keys() - self.compiling))
        found = [f"{name} takes {used:.1f} s" for name, used in judged if used > seconds]
        if not self.before and kernels() > KERNELS:
            found.append(f"{kernels()} kernels were compiled, and {KERNELS} may be")
        return found

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let the session fail if anything was too much."""
        if self.times:
            rows = (
                f"{self.calls[name]:.3f} {self.fixtures[name]:.3f} {name}\n"
                for name in {**self.calls, **self.fixtures}
            )
            self.times.write_text("".join(sorted(rows, key=lambda row: -float(row.split()[0]))))
        elif self.above(ANYWHERE) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show what was too much."""
        if found := self.above(SECONDS):
            terminalreporter.section("above the budget of quick tests")
            for line in found:
                terminalreporter.line(line)
            terminalreporter.line("Make them smaller, or mark them slow.")

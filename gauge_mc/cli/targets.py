"""The run or scan of a command that works on a single one."""

from __future__ import annotations

from pathlib import Path

from gauge_mc.cli import say
from gauge_mc.run.chains import chains_of
from gauge_mc.scans.scan import newest_run_or_scan


def one_named_or_newest(path: Path | None) -> Path:
    """Return the path that was named, or else the newest run or scan.

    If that is one of several chains of an ensemble, a line on standard error names another one.
    """
    if path:
        return path
    newest = newest_run_or_scan()
    chains = chains_of(newest)
    if len(chains) > 1:
        other = next(one for one in chains if one != newest)
        say(f"{newest} is one of {len(chains)} chains; name another, such as {other}.", error=True)
    return newest

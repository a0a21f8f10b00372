"""``gauge-mc watch``: follow a run or a scan, in the terminal or in a browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import print_document, prints
from gauge_mc.cli.status import one_named_or_newest
from gauge_mc.console import Console
from gauge_mc.errors import UsageError


@prints("gauge_mc.watch.snapshot:LiveSnapshot")
def watch(
    path: Annotated[Path | None, o.argument("Run or scan.", o.NEWEST, metavar="RUN|SCAN")] = None,
    serve: Annotated[
        bool,
        o.option(
            "Show a page in browsers on this machine, at the address printed.", flag="--serve"
        ),
    ] = False,
    port: Annotated[
        int | None, o.option("Port of the page.", "one that is free", "PORT", flag="--port")
    ] = None,
    wait: Annotated[
        bool, o.option("Wait for a run or a scan that has not begun.", flag="--wait")
    ] = False,
    bench: Annotated[
        Path | None,
        o.option(
            "Compare the speed with that of the sweeps in a file written by gauge-mc bench --save.",
            metavar="FILE",
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Follow a run or a scan: progress, speed, histories of what is measured, warnings, log.

    The command reads the files of the run, which another process may carry out. It ends when the
    work is complete, or by Ctrl-C. If the output is not a terminal, the present state is printed
    once. The page of --serve is only for those who know its address, and stays until Ctrl-C.

    gauge-mc watch
    gauge-mc watch RUN --serve
    gauge-mc watch SCAN --wait
    """
    if port is not None and not serve:
        raise UsageError("--port is that of the page; give --serve as well.")
    from gauge_mc.benchmarks.over import SavedBenchmark
    from gauge_mc.watch import server, snapshot, terminal

    watcher = snapshot.Watcher(
        one_named_or_newest(path), SavedBenchmark.read(bench) if bench else None
    )
    if not wait:
        watcher.check_begun()
    if serve:
        token = os.environ.get(server.TOKEN)
        server.serve(watcher, port or 0, token=token, announce=_announce)
    elif json:
        print_document("watch", watcher.snapshot())
    else:
        terminal.watch_in_terminal(watcher, Console())


def _announce(line: str) -> None:
    """Print a line at once, also for a program that reads it."""
    say(line)
    sys.stdout.flush()

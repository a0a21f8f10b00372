"""``gauge-mc status``, ``gauge-mc watch`` and ``gauge-mc info``: show runs, scans and files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from gauge_mc.benchmarks.over import SavedBenchmark
from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import print_document, prints
from gauge_mc.configurations.reading import LinkKind
from gauge_mc.console import Console
from gauge_mc.errors import UsageError
from gauge_mc.inspection.contents import InfoPart, info_parts
from gauge_mc.inspection.status import RunStatus, ScanStatus, run_status, scan_status
from gauge_mc.quoting import printable
from gauge_mc.run.directory import Run, chains_of, newest
from gauge_mc.run.log import LOG
from gauge_mc.run.results import TAU_EXP, averages_table
from gauge_mc.scans import averages, display
from gauge_mc.scans.scan import Scan, is_scan


def one_named_or_newest(path: Path | None) -> Path:
    """Return the path that was named, or else the newest run or scan.

    If that is one of several chains of an ensemble, a line on standard error names another one.
    """
    if path:
        return path
    latest = newest("run", "scan")
    chains = chains_of(latest)
    if len(chains) > 1:
        sibling = next(chain for chain in chains if chain != latest)
        say(
            f"{latest} is one of {len(chains)} chains; name another, such as {sibling}.", error=True
        )
    return latest


@prints("gauge_mc.inspection.status:RunStatus", "gauge_mc.inspection.status:ScanStatus")
def status(
    path: Annotated[Path | None, o.argument("Run or scan.", o.NEWEST, metavar="RUN|SCAN")] = None,
    tau_exp: Annotated[
        float | None, o.option(TAU_EXP.help, TAU_EXP.default, metavar=TAU_EXP.metavar)
    ] = None,
    follow: Annotated[
        bool, o.option("Then show the entries of the log as they come.", flag="--follow")
    ] = False,
    json: o.Json = False,
) -> None:
    """Show the state, the progress and the averages of a run or a scan.

    The command also works while another process carries out the run or the scan. With --follow it
    then shows the log, run.log, of the run or of all runs of the scan, and ends with the work, or
    by Ctrl-C.

    gauge-mc status
    gauge-mc status RUN
    gauge-mc status SCAN --follow
    """
    if follow and json:
        raise UsageError(
            f"--json prints one object; follow the file {LOG}, which consists of them."
        )
    if tau_exp is not None:
        TAU_EXP.checked(tau_exp)
    or_newest = one_named_or_newest(path)
    report: RunStatus | ScanStatus
    if is_scan(or_newest):
        if tau_exp is not None:
            raise UsageError(
                f"{TAU_EXP.flag} is for the averages of a run; name a run of {or_newest}."
            )
        means = averages.ScanAverages(Scan.read(or_newest))
        report, shown = scan_status(means.scan, means), display.results(means)
    else:
        run = Run(or_newest)
        report = run_status(run, json, tau_exp)
        shown = averages_table([run], run.read()[0].recorded, tau_exp)
    if json:
        print_document("status", report)
        return
    console = Console()
    console.print(repr(report), soft_wrap=True)
    console.print("", shown, sep="\n")
    if follow:
        from gauge_mc.watch.terminal import followed

        with suppress(KeyboardInterrupt):
            for line in followed(or_newest):
                console.print(line, soft_wrap=True)


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


@prints(
    "gauge_mc.inspection.contents:ConfigurationInfo",
    "gauge_mc.inspection.contents:RunInfo",
    "gauge_mc.inspection.contents:ScanInfo",
    "gauge_mc.inspection.contents:FolderInfo",
)
@o.described_by("gauge_mc.inspection.contents:info", path="CONFIG|RUN|SCAN|FOLDER")
def info(
    path: Path | None = None,
    lattice: o.StatedLattice = None,
    group: o.StatedGroup = None,
    json: o.Json = False,
) -> None:
    """Show the contents of a configuration file, a run or a scan.

    For a configuration file, its header and averages computed from its links are shown. For a run,
    its parameters, sessions and tables are shown, and its newest configuration. For a scan, its
    parameters, grids and runs are shown; for another folder, its runs or its configurations.

    gauge-mc info
    gauge-mc info SCAN
    gauge-mc info CONFIG --lattice 8x8x8x16 --group su3
    """
    console = Console()
    parts = info_parts(one_named_or_newest(path), LinkKind(lattice, group))
    if json:
        print_document("info", *parts)
        return
    for part in parts:
        for name, value in lines(part):
            console.print(f"{name:<20} ", style="bold", end="")
            console.print(value, soft_wrap=True)


def one_line(words: str) -> str:
    """Return a text on one line."""
    return printable(" ".join(words.split()))


def lines(part: InfoPart, indent: str = "") -> Iterator[tuple[str, str]]:
    """Yield the lines of a part, each a name and its value as text."""
    for name, value in part.items():
        if isinstance(value, dict):
            yield f"{indent}{name}", ""
            yield from lines(value, indent + "  ")
        elif isinstance(value, list):
            for item in value:
                words = str(item)
                if isinstance(item, dict):
                    words = ", ".join(f"{k} {word}" for k, word in item.items() if word is not None)
                yield f"{indent}{name}", one_line(words)
        else:
            yield f"{indent}{name}", "none" if value is None else one_line(str(value))

"""``gauge-mc verify``: look for damage in runs, scans and configuration files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gauge_mc.errors import GaugeError
from gauge_mc.run.directory import newest_run

NAMED = 5
"""Maximum number of files that are named at the end; each is also named where it was found."""


def verify(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN|SCAN|CONFIG",
            help="Runs, scans or configuration files; without any, the newest run in runs/.",
        ),
    ] = None,
) -> None:
    """Check every file of a run or a scan, or configuration files: checksum, unitarity, plaquette.

    The plaquette of a configuration is compared with what its file and the table of the run say.
    Exits with 1 if a file is damaged or missing.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from gauge_mc.inspection.verify import carry_out, checks_of, summarise

    checks = [check for path in paths or [newest_run().path] for check in checks_of(path)]
    console = Console(highlight=False, markup=False)
    bar = Progress(
        TextColumn("verifying"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    verdicts = []
    with bar:
        task = bar.add_task("", total=len(checks))
        for number, check in enumerate(checks, 1):
            verdict = carry_out(check, partial(bar.advance, task))
            verdicts.append(verdict)
            if verdict.sound:
                console.print(f"good  {verdict.path}  {verdict.words}", soft_wrap=True)
            else:
                console.print(f"BAD   {verdict.words}", style="bold red", soft_wrap=True)
            bar.update(task, completed=number)
    damage = summarise(verdicts, NAMED)
    if damage:
        raise GaugeError(damage)
    console.print(f"All {len(checks)} files are good.")

"""``gauge-mc verify``: look for damage in runs and configuration files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gauge_mc.errors import GaugeError
from gauge_mc.run import newest_run

NAMED = 5
"""So many files, at most, are named at the end; each is where it was found."""


def verify(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN|CONFIG",
            help="Runs or configuration files; without any, the newest run in runs/.",
        ),
    ] = None,
) -> None:
    """Check every file of a run, or configuration files: checksum, unitarity, plaquette.

    The plaquette of a configuration is compared with what its file and the table of the run say.
    Exits with 1 if a file is damaged or missing.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from gauge_mc.verify import checks_of

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
    bad = []
    with bar:
        task = bar.add_task("", total=len(checks))
        for number, check in enumerate(checks, 1):
            try:
                found = check.carry_out(partial(bar.advance, task))
                console.print(f"good  {check.path}  {found}", soft_wrap=True)
            except GaugeError as error:
                bad.append(str(check.path))
                console.print(f"BAD   {error}", style="bold red", soft_wrap=True)
            bar.update(task, completed=number)
    if bad:
        more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
        raise GaugeError(
            f"Damaged or missing: {len(bad)} of {len(checks)} files, "
            f"{', '.join(bad[:NAMED])}{more}."
        )
    console.print(f"All {len(checks)} files are good.")

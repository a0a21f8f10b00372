"""``gauge-mc doctor``: what works on this machine, and how to mend the rest."""

from __future__ import annotations

from typing import Annotated

import typer


def doctor(
    clear_cache: Annotated[
        bool,
        typer.Option(
            "--clear-cache", help="Remove all compiled kernels and tuned launch bounds instead."
        ),
    ] = False,
) -> None:
    """Show which devices, compilers and extras work here, and the command that mends the rest.

    It also shows where compiled kernels are kept. Exits with 1 if no device works.
    """
    from rich.console import Console

    from gauge_mc.devices import BACKENDS
    from gauge_mc.devices.cache import cache_folder, clear_cache as clear
    from gauge_mc.inspection.doctor import examine

    if clear_cache:
        print(f"{cache_folder()}: {clear()} files removed")
        return
    console = Console(highlight=False, markup=False)
    working = set()
    with console.status("Trying compilers and devices"):
        for finding in examine():
            mark, style = ("works  ", "green") if finding.works else ("missing", "yellow")
            console.print(f"{mark} ", style=style, end="")
            console.print(f"{finding.subject}: {finding.detail}", soft_wrap=True)
            if finding.works:
                working.add(finding.subject)
            else:
                console.print(f"          {finding.remedy}", style="bold", soft_wrap=True)
    labels = {backend.label for backend in BACKENDS.values()}
    if not any(subject.partition(" ")[0] in labels for subject in working):
        raise typer.Exit(1)

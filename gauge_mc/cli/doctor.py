"""``gauge-mc doctor``: show what works on this machine, and how to fix the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gauge_mc.cli import say
from gauge_mc.devices.choice import BACKENDS

if TYPE_CHECKING:
    from gauge_mc.console import Console


def doctor(
    clear_cache: Annotated[
        bool,
        typer.Option(
            "--clear-cache", help="Only remove all compiled kernels and tuned launch bounds."
        ),
    ] = False,
    install: Annotated[
        str | None,
        typer.Option(
            "--install",
            metavar="|".join(BACKENDS),
            help="Only install the software that the devices of a backend need.",
        ),
    ] = None,
) -> None:
    """Show which devices, compilers and optional packages work, and how to fix the rest.

    The location of the compiled kernels is also shown. The exit code is 1 if no device works.
    """
    from gauge_mc.console import Console
    from gauge_mc.devices.cache import cache_folder
    from gauge_mc.devices.cache import clear_cache as clear

    console = Console(highlight=False, markup=False)
    if clear_cache:
        say(f"{cache_folder()}: {clear()} files removed")
    elif install is not None:
        BACKENDS.check(install, "--install")
        with console.status("Installing"):
            BACKENDS[install].install(lambda line: console.print(line, soft_wrap=True))
    elif not _examine(console):
        raise typer.Exit(1)


def _examine(console: Console) -> bool:
    """Show what works; return whether any device works."""
    from gauge_mc.inspection.doctor import examine

    working = set()
    with console.status("Testing compilers and devices"):
        for finding in examine():
            mark, style = ("works  ", "green") if finding.works else ("missing", "yellow")
            console.print(f"{mark} ", style=style, end="")
            console.print(f"{finding.subject}: {finding.detail}", soft_wrap=True)
            if finding.works:
                working.add(finding.subject)
            else:
                console.print(f"          {finding.remedy}", style="bold", soft_wrap=True)
    labels = {backend.label for backend in BACKENDS.values()}
    return any(subject.partition(" ")[0] in labels for subject in working)

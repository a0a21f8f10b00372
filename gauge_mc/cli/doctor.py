"""``gauge-mc doctor``: what works here, and what mends the rest."""

from __future__ import annotations

import typer


def doctor() -> None:
    """Show which devices, compilers and extras work here, and the command that mends the rest.

    Exits with 1 if no device works.
    """
    from rich.console import Console

    from gauge_mc.doctor import examine

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
    if not any(subject.startswith(("CPU", "GPU")) for subject in working):
        raise typer.Exit(1)

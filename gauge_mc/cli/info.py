"""``gauge-mc info``: the contents of a configuration file, a run or a scan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from gauge_mc.cli import options as o
from gauge_mc.inspection.contents import Facts, facts_of
from gauge_mc.run.directory import newest_run


def info(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="CONFIG|RUN|SCAN",
            help="Configuration file, run or scan; without it, the newest run in runs/.",
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Show what a configuration file states, and averages computed from its links.

    Of a run, also show its parameters, sessions and tables; the configuration is its newest one.
    """
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    parts = facts_of(path or newest_run().path)
    if json:
        o.print_json({name: fact for part in parts for name, fact in part.items()})
        return
    for part in parts:
        for name, fact in lines(part):
            console.print(f"{name:<20} ", style="bold", end="")
            console.print(fact, soft_wrap=True)


def printable(words: str) -> str:
    """Return a text on one line, without what could control a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())


def lines(facts: Facts, indent: str = "") -> Iterator[tuple[str, str]]:
    """Yield facts as lines: a name, and what there is to say in words."""
    for name, fact in facts.items():
        if isinstance(fact, dict):
            yield f"{indent}{name}", ""
            yield from lines(fact, indent + "  ")
        elif isinstance(fact, list):
            for item in fact:
                yield f"{indent}{name}", ", ".join(f"{key} {word}" for key, word in item.items())
        else:
            yield f"{indent}{name}", "none" if fact is None else printable(str(fact))

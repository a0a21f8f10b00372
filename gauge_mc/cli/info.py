"""``gauge-mc info``: what a configuration file or a run holds."""

from __future__ import annotations

import dataclasses
import json as text
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gauge_mc.run import Run, newest_run

Facts = dict[str, Any]
"""Facts by name, groups of them as dictionaries and lists."""


def info(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="CONFIG|RUN",
            help="Configuration file or run; without it, the newest run in runs/.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what a configuration file says, and averages computed from its links.

    Of a run, also its parameters, sessions and tables; the configuration is its newest then.
    """
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    chosen = path or newest_run().path
    parts = run_facts(Run(chosen)) if chosen.is_dir() else configuration_facts(chosen)
    if json:
        print(text.dumps({name: fact for part in parts for name, fact in part.items()}, indent=2))
        return
    for part in parts:
        for name, fact in lines(part):
            console.print(f"{name:<20} ", style="bold", end="")
            console.print(fact, soft_wrap=True)


def configuration_facts(path: Path) -> Iterator[Facts]:
    """Yield what a file's header says, then what its links give.

    Raises
    ------
    GaugeError
        If the file is damaged; the second part also if its links are.
    """
    from gauge_mc.formats import open_configuration, plaquette_of

    configuration = open_configuration(path)
    header = configuration.header
    yield {
        "file": str(path),
        "format": header.format,
        "bytes": path.stat().st_size,
        "group": header.group,
        "lattice": str(header.lattice),
        "precision": header.precision,
        "checksum": header.checksum or None,
        "stated": {"plaquette": header.plaquette, "link_trace": header.link_trace},
        "provenance": header.provenance,
    }
    yield {"recomputed": dataclasses.asdict(plaquette_of(configuration.slices()))}


def run_facts(run: Run) -> Iterator[Facts]:
    """Yield what there is in a run, then the facts of its newest configuration.

    Raises
    ------
    UsageError
        If there is no run.
    GaugeError
        If its files are damaged.
    """
    from gauge_mc.formats.table import read_table

    parameters, sessions = run.read()
    configs = run.configs()
    tables = {path.name: read_table(path) for path in sorted(run.path.glob("*.csv"))}
    yield {
        "run": str(run.path),
        "parameters": parameters.values(),
        "sessions": [dataclasses.asdict(session) for session in sessions],
        "tables": {
            name: f"{max(map(len, table.columns.values()))} rows: {', '.join(table.columns)}"
            for name, table in tables.items()
        },
        "configurations": len(configs),
    }
    if configs:
        yield from configuration_facts(configs[max(configs)])


def printable(words: str) -> str:
    """Bring a text on one line, without what could play tricks on a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())


def lines(facts: Facts, indent: str = "") -> Iterator[tuple[str, str]]:
    """Lay facts out as lines: a name, and in words what there is to say."""
    for name, fact in facts.items():
        if isinstance(fact, dict):
            yield f"{indent}{name}", ""
            yield from lines(fact, indent + "  ")
        elif isinstance(fact, list):
            for item in fact:
                yield f"{indent}{name}", ", ".join(f"{key} {word}" for key, word in item.items())
        else:
            yield f"{indent}{name}", "none" if fact is None else printable(str(fact))

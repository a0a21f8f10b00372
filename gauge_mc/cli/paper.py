"""``gauge-mc paper``: reproduce published tables and figures, and compare with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gauge_mc.cli import options as o
from gauge_mc.cli.document import alone_on_stdout, print_document, prints
from gauge_mc.cli.settings import with_settings
from gauge_mc.errors import INTERRUPTED, GaugeError, UsageError
from gauge_mc.results import documented, result_field

if TYPE_CHECKING:
    from gauge_mc.papers.cards import PaperCard


@documented
@dataclass(frozen=True)
class ListedCard:
    """A card of a paper in the list."""

    card: str = result_field("Name of the card.")
    paper: str = result_field("Number at arXiv, or another address.")
    title: str = result_field("What is compared.")
    where: str = result_field("Table or figure of the paper.")
    file: str = result_field("File that was written or read.")


@documented
@dataclass(frozen=True)
class CardList:
    """The document of ``paper`` without a paper."""

    cards: Sequence[ListedCard] = result_field("The cards of papers.")


@documented
@dataclass(frozen=True)
class Totals:
    """Numbers that follow from the entries of a comparison."""

    chi2: float = result_field("The sum of the squares of the pulls.")
    spread: float = result_field("The root of the mean square of the pulls, 1 if errors are right.")
    pull: float = result_field("The difference in units of all errors together.")


@prints(
    CardList,
    "gauge_mc.papers.comparison:Comparison",
    Totals,
    "gauge_mc.papers.forecast:PaperForecast",
)
@with_settings(("backend", "devices", "threads", "quiet"))
def paper(
    what: Annotated[
        str | None,
        o.argument(
            "Name of a card, number of the paper, or file of a card; without it, the cards are "
            "listed.",
            metavar="PAPER",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        o.option(
            "Time for all ensembles, such as 30min; statistics are reduced to what it suffices "
            "for. The fits take some time more.",
            "as long as the whole card takes",
            metavar="TIME",
        ),
    ] = None,
    kept: Annotated[
        bool,
        o.option(
            "Generate nothing, and compare the results of long runs that are kept beside the card.",
            flag="--kept",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        o.option(
            "List the runs of the card and the time that each of them takes on this machine, "
            "without beginning any. The exit code is 1 if runs would be refused.",
            flag="--dry-run",
        ),
    ] = False,
    cards: Annotated[
        Path | None, o.option("Folder with further cards.", "runs/papers", metavar="FOLDER")
    ] = None,
    output: Annotated[
        Path | None,
        o.option("Folder of the runs and the comparisons.", "runs/reproduced", metavar="FOLDER"),
    ] = None,
    json: o.Json = False,
    backend: str | None = None,
    devices: str | None = None,
    threads: int | None = None,
    quiet: bool | None = None,
) -> None:
    """Reproduce a table or a figure of a paper, and compare with the published numbers.

    The command prints ours, theirs and the pull of every entry, and χ², in which published numbers
    that were not read do not count. It writes them as a table and draws both. Runs that are there,
    with the same parameters, are continued or used as they are, also by other cards, and a command
    that was stopped is continued by repeating it. The exit code is 1 if an entry that counts
    differs by more than five errors and its card does not say why, or if none could be compared.
    """
    from gauge_mc.console import Console
    from gauge_mc.papers.cards import find_card, known_cards, readable_cards
    from gauge_mc.papers.reproduce import OUTPUT, compare_kept, parse_budget, reproduce

    console = Console()
    if what is None:
        if budget or kept or dry_run or output:
            raise UsageError("--budget, --kept, --dry-run and --output need a paper; name one.")
        found = [*readable_cards(known_cards(cards))]
        rows = [
            ListedCard(one.name, one.paper, one.title, one.where, str(one.path)) for one in found
        ]
        if json:
            print_document("paper", CardList(rows))
        else:
            from rich.table import Table

            table = Table(box=None, pad_edge=False, header_style="bold")
            for heading in ("card", "paper", "", "what"):
                table.add_column(heading, overflow="fold")
            for row in rows:
                table.add_row(row.card, row.paper, row.where, row.title)
            console.print(table)
        return
    card = find_card(what, cards)
    seconds = None if budget is None else parse_budget(budget)
    if kept and (seconds or output):
        raise UsageError("--kept generates nothing; leave out --budget and --output.")
    if dry_run:
        if kept or seconds:
            other = "--kept" if kept else "--budget"
            raise UsageError(f"--dry-run cannot be combined with {other}; leave out one of them.")
        where = {"backend": backend, "devices": devices, "threads": threads}
        show_forecast(card, output or OUTPUT, json, **where)
        return
    with alone_on_stdout(json):
        if kept:
            comparison = compare_kept(card)
        else:
            comparison = reproduce(
                card,
                output=output or OUTPUT,
                budget=seconds,
                progress=not (quiet or json),
                backend=backend,
                devices=devices,
                threads=threads,
            )
        if not json:
            console.print(*comparison.report(), sep="\n", soft_wrap=True)
    if json:
        print_document("paper", comparison.values())
    if comparison.stopped:
        raise typer.Exit(INTERRUPTED)
    if all(one.pull is None for one in comparison.entries):
        raise GaugeError(
            "No entry could be compared with its published number; the table says why. Give the "
            "command more time."
        )
    if comparison.wrong:
        raise typer.Exit(1)


def show_forecast(
    card: PaperCard, output: Path, as_json: bool, **execution: str | int | None
) -> None:
    """Print how long the runs of a card take; end with exit code 1 if runs would be refused."""
    from gauge_mc.console import Console
    from gauge_mc.papers.forecast import forecast

    with alone_on_stdout(as_json):
        found = forecast(card, output=output, **execution)
    if as_json:
        print_document("paper", found)
    else:
        Console().print(found.table(), soft_wrap=True)
    if found.refusals:
        raise typer.Exit(1)

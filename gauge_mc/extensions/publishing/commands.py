"""``gauge-mc paper``: reproduce published tables and figures, and compare with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from gauge_mc.cli import options as o
from gauge_mc.cli.document import alone_on_stdout, print_document, prints, show_result
from gauge_mc.cli.options import after, with_settings
from gauge_mc.console import Console, plain_table
from gauge_mc.errors import INTERRUPTED, GaugeError, UsageError
from gauge_mc.extensions.publishing.papers import PaperCard, find_card, known_cards, read_paper
from gauge_mc.extensions.publishing.papers.reproduce import (
    OUTPUT,
    compare_kept,
    ensemble_path,
    reproduce,
)
from gauge_mc.extensions.publishing.publish import WHOLE
from gauge_mc.extensions.publishing.publish import publish as carry_out
from gauge_mc.extensions.publishing.record import LICENSE, UNKNOWN
from gauge_mc.progress import Progress, duration
from gauge_mc.quoting import counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.settings import parse_time
from gauge_mc.scans.forecast import forecast_run, forecast_scan, varied_couplings
from gauge_mc.scans.grid import COUPLINGS, Point
from gauge_mc.scans.request import ScanRequest


@documented
@dataclass(frozen=True)
class RunTime:
    """The remaining work of a run of a card, or of all chains at a point of its scan."""

    ensemble: str = result_field("Name of the ensemble in the card.")
    run: str = result_field("Run directory, or scan directory.")
    beta: float = result_field("Coupling.")
    couplings: Mapping[str, float] = result_field(COUPLINGS)
    lattice: str = result_field("Extents of the lattice.")
    updates_left: int = result_field("Number of updates that are left.")
    seconds: float = result_field(
        "Time of all updates, measurements and snapshots, without waiting for the disk. Runs "
        "that are updated together have equal parts of the time of their batch."
    )


@documented
@dataclass(frozen=True)
class PaperForecast:
    """The times that the runs of a card take on this machine."""

    card: str = result_field("Name of the card.")
    runs: Sequence[RunTime] = result_field("The runs, and the points of scans.")
    seconds: float = result_field("Time of all runs, without that of the fits.")
    refusals: Sequence[str] = result_field(
        "Reasons for which runs would be refused, one sentence each."
    )

    def table(self) -> RenderableType:
        """Return the content as a table."""
        shown = varied_couplings([run.couplings for run in self.runs])
        headings = ("lattice", "β", *(x.short for x in shown), "updates left", "time")
        table = plain_table(["ensemble"], headings, show_footer=True)
        table.columns[0].footer, table.columns[-1].footer = "total", duration(self.seconds)
        for run in self.runs:
            values = [run.couplings.get(x.name, x.usual) for x in shown]
            numbers = ("" if value is None else f"{value:.12g}" for value in (run.beta, *values))
            cells = str(run.updates_left), duration(run.seconds)
            table.add_row(run.ensemble, run.lattice, *numbers, *cells)
        refused = [f"refused: {reason}" for reason in self.refusals]
        return Group("nothing was written; the fits take some time more\n", table, *refused)


def forecast(
    card: PaperCard, *, output: Path = OUTPUT, **execution: str | int | None
) -> PaperForecast:
    """Try a few updates of every run of a card in memory, and return how long the rest takes.

    Nothing is written. Runs that are there, with the same parameters, are continued.
    """
    settings = {name: value for name, value in execution.items() if value is not None}
    runs: list[RunTime] = []
    refusals: list[str] = []
    total = 0.0
    for ensemble in card.ensembles.values():
        path = str(ensemble_path(output, ensemble))
        values = {**ensemble.values_within(output), **settings, "output": path}
        if ensemble.scan:
            scan = forecast_scan(ScanRequest.of(values))
            for point in scan.points:
                where = (point.beta, point.couplings, point.lattice)
                runs.append(RunTime(ensemble.name, path, *where, point.updates_left, point.seconds))
            refusals += scan.refusals
            total += scan.seconds
        elif run := forecast_run(values):
            p = ensemble.parameters
            where = (p.beta, Point.of(p).numbers, str(p.lattice))
            runs.append(RunTime(ensemble.name, path, *where, run.updates_left, run.seconds))
            refusals += [run.shortage] if run.shortage else []
            total += run.seconds
    return PaperForecast(card.name, runs, total, refusals)


@documented
@dataclass(frozen=True)
class ListedCard:
    """A card of a paper in the list."""

    card: str = result_field("Name of the card.")
    paper: str = result_field("arXiv number, or another address.")
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
    "gauge_mc.extensions.publishing.papers:Comparison",
    Totals,
    "gauge_mc.extensions.publishing.commands:PaperForecast",
)
@with_settings(("backend", "devices", "threads", "quiet"))
def paper(
    word: Annotated[
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

    gauge-mc paper
    gauge-mc paper PAPER --dry-run
    gauge-mc paper PAPER --budget 30min
    """
    console = Console()
    if word is None:
        if budget or kept or dry_run or output:
            raise UsageError("--budget, --kept, --dry-run and --output need a paper; name one.")
        rows = []
        table = plain_table(["card", "paper", "", "what"])
        for column in table.columns:
            column.overflow = "fold"
        for c in map(read_paper, known_cards(cards).values()):
            rows.append(ListedCard(c.name, c.paper, c.title, c.where, str(c.path)))
            table.add_row(c.name, c.paper, c.where, c.title)
        show_result("paper", CardList(rows), json, table)
        return
    card = find_card(word, cards)
    seconds = None if budget is None else parse_time(budget, "--budget")
    if kept and (seconds or output):
        raise UsageError("--kept generates nothing; leave out --budget and --output.")
    folder = output or OUTPUT
    where = {"backend": backend, "devices": devices, "threads": threads}
    if dry_run:
        if kept or seconds:
            conflict = "--kept" if kept else "--budget"
            raise UsageError(
                f"--dry-run cannot be combined with {conflict}; leave out one of them."
            )
        with alone_on_stdout(json):
            times = forecast(card, output=folder, **where)
        if json:
            print_document("paper", times)
        else:
            console.print(times.table(), soft_wrap=True)
        if times.refusals:
            raise typer.Exit(1)
        return
    with alone_on_stdout(json):
        if kept:
            comparison = compare_kept(card)
        else:
            shown = not (quiet or json)
            comparison = reproduce(card, output=folder, budget=seconds, progress=shown, **where)
        if not json:
            console.print(*comparison.report(), sep="\n", soft_wrap=True)
    if json:
        print_document("paper", comparison.values())
    if comparison.stopped:
        raise typer.Exit(INTERRUPTED)
    if all(entry.pull is None for entry in comparison.entries):
        raise GaugeError(
            "No entry could be compared with its published number; the table says why. Give the "
            "command more time."
        )
    if comparison.wrong:
        raise typer.Exit(1)


@prints("gauge_mc.extensions.publishing.publish:PublicationReport")
@o.described_by(
    "gauge_mc.extensions.publishing.publish:publish",
    **dict.fromkeys(("institution", "title", "project"), "TEXT"),
    license="LICENCE",
    whole="N",
)
def publish(
    run: Annotated[Path, o.argument("Run directory.", metavar="RUN")],
    folder: Annotated[Path, o.argument("Folder to write.", metavar="FOLDER")],
    author: Annotated[
        list[str], o.option("Author of the data; may be repeated.", metavar="'FAMILY, GIVEN'")
    ],
    institution: str = UNKNOWN,
    title: str = "",
    project: str = "gauge-mc",
    license: str = LICENSE,
    whole: int = WHOLE,
    json: o.Json = False,
) -> None:
    """Write a run into a folder for a data repository, from which it can be made again and checked.

    The folder has the parameters as a run card, the tables, the SHA-256 of every configuration and
    of the kernels' sources, versions of compilers and packages, a few configurations, the results
    of fits, an RO-Crate description, QCDml documents, CITATION.cff and a README with the two
    commands that make and check the ensemble. Every configuration is checked first;
    the run is not changed.

    gauge-mc publish RUN FOLDER --author 'Family, Given'
    gauge-mc publish RUN FOLDER --author 'Family, Given' --title 'SU(2) at beta = 2.4'
    gauge-mc publish RUN FOLDER --author 'Family, Given' --author 'Other, Author' --whole 10
    """
    from rich.filesize import decimal

    bar = Progress(Console(), 0, "configurations", plain=False)

    def show(count: int, total: int) -> None:
        bar.total = total
        bar.update(count, title="checking")

    with alone_on_stdout(json), bar:
        out = carry_out(
            run,
            folder,
            authors=author,
            institution=institution,
            title=title,
            project=project,
            license=license,
            whole=whole,
            progress=show,
        )
    copied = f"{len(out.whole)} copied{after(out.whole)}"
    listed = f"listed: {counted(out.configurations, 'configuration')}, {copied}"
    size = f"{decimal(out.bytes)} without configurations"
    show_result("publish", out, json, listed, size, *out.notes, out.folder)

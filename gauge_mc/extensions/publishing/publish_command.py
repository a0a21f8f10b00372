"""``gauge-mc publish``: write a run into a folder for a data repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from gauge_mc.cli import options as o
from gauge_mc.cli.document import alone_on_stdout, prints, show_result
from gauge_mc.cli.options import after
from gauge_mc.extensions.publishing.publish import WHOLE
from gauge_mc.extensions.publishing.record import LICENSE, UNKNOWN
from gauge_mc.quoting import counted


@prints("gauge_mc.extensions.publishing.publish:PublicationReport")
def publish(
    run: Annotated[Path, o.argument("Run directory.", metavar="RUN")],
    folder: Annotated[Path, o.argument("Folder to write.", metavar="FOLDER")],
    author: Annotated[
        list[str], o.option("Author of the data; may be repeated.", metavar="'FAMILY, GIVEN'")
    ],
    institution: Annotated[
        str, o.option("Institution of the first author.", metavar="TEXT")
    ] = UNKNOWN,
    title: Annotated[
        str, o.option("Title of the data.", "says what the ensemble is", metavar="TEXT")
    ] = "",
    project: Annotated[str, o.option("Project or collaboration.", metavar="TEXT")] = "gauge-mc",
    license: Annotated[
        str, o.option("Licence, an identifier of SPDX.", metavar="LICENCE")
    ] = LICENSE,
    whole: Annotated[
        int, o.option("Number of configurations to copy into the folder.", metavar="N")
    ] = WHOLE,
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
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from gauge_mc.console import Console
    from gauge_mc.extensions.publishing.publish import publish as carry_out

    console = Console()
    columns = (TextColumn("checking"), BarColumn(), MofNCompleteColumn())
    hidden = not console.is_terminal
    with alone_on_stdout(json), Progress(*columns, console=console, disable=hidden) as bar:
        task = bar.add_task("", total=None)
        found = carry_out(
            run,
            folder,
            authors=author,
            institution=institution,
            title=title,
            project=project,
            license=license,
            whole=whole,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    copied = f"{len(found.whole)} copied{after(found.whole)}"
    listed = f"listed: {counted(found.configurations, 'configuration')}, {copied}"
    size = f"{decimal(found.bytes)} without configurations"
    show_result("publish", found, json, listed, size, *found.notes, found.folder)

"""``gauge-mc card``: write a run card with comments, check one, or print their schema."""

from __future__ import annotations

import json as text
import os
from pathlib import Path
from typing import Annotated

import typer

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import prints, show_result
from gauge_mc.cli.options import with_settings
from gauge_mc.errors import UsageError
from gauge_mc.files.atomic import write_file
from gauge_mc.run.cards import CardReport, check_card, commented
from gauge_mc.run.cards import schema as json_schema
from gauge_mc.run.parameters import known_options


@prints("gauge_mc.run.cards:CardReport")
@with_settings(known_options())
def card(
    ctx: typer.Context,
    file: Annotated[Path | None, o.argument("Run card to check.", metavar="CARD")] = None,
    schema: Annotated[
        bool, o.option("Print the JSON schema of run cards, for editors.", flag="--schema")
    ] = False,
    out: Annotated[
        Path | None, o.option("File to write the card to.", "print it", metavar="FILE")
    ] = None,
    json: Annotated[
        bool, o.option("Print the result of the check as one JSON object.", flag="--json")
    ] = False,
    **settings: object,
) -> None:
    """Check a run card, or print one with all options and comments.

    Without CARD a card is printed, or written to --out. It has the options that are given, such as
    --output of the run, and all others as comments with their defaults. With CARD its keys and
    values are checked as a run would check them.

    gauge-mc card
    gauge-mc card --beta 2.4 --out card.toml
    gauge-mc card card.toml
    """
    excluded = ("file", "schema", "out", "json")
    stated = {k: v for k, v in ctx.params.items() if v is not None and k not in excluded}
    if schema:
        print(text.dumps(json_schema(), indent=1, ensure_ascii=False))
        return
    if file is None:
        if json:
            raise UsageError("--json describes the check of a card; name one, or leave it out.")
        lines = "\n".join(commented(stated))
        if out is None:
            print(lines)
            return
        if os.path.lexists(out):  # or a link that leads nowhere
            raise UsageError(f"{out} exists; choose another --out.")
        write_file(out, f"{lines}\n")
        say(str(out))
        return
    if stated:
        raise UsageError(
            f"{file} is only checked; leave the other options out, or leave out CARD to print one."
        )
    parameters = check_card(file)
    words = f"{file} is sound, for the run {parameters.name}."
    show_result("card", CardReport.of(file, parameters), json, words)

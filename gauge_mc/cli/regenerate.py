"""``gauge-mc regenerate``: make configurations again that a run has not kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import alone_on_stdout, print_document, prints
from gauge_mc.cli.options import after, with_settings
from gauge_mc.formats import FORMATS
from gauge_mc.quoting import counted


@prints("gauge_mc.run.regenerate:RegenerationReport")
@with_settings(("backend", "devices", "threads", "quiet"))
def regenerate(
    run: Annotated[Path, o.argument("Run directory.", metavar="RUN")],
    at: Annotated[
        str,
        o.option(
            "Make the configurations after these updates, as in 1050,1100:2000:10.",
            metavar="UPDATES",
        ),
    ],
    output: Annotated[
        Path | None, o.option("Folder for the configurations.", "that of the run", metavar="FOLDER")
    ] = None,
    format: Annotated[
        str | None, o.option("File format.", "that of the run", choices=FORMATS)
    ] = None,
    dry_run: Annotated[
        bool, o.option("Show what would be made, without making it.", flag="--dry-run")
    ] = False,
    json: o.Json = False,
    backend: str | None = None,
    devices: str | None = None,
    threads: int | None = None,
    quiet: bool | None = None,
) -> None:
    """Make configurations that a run has not kept, with the bytes that it would have written.

    They are made from the nearest configuration before them that the run has; from its start if
    there is none, or if the random number generator has states. First, a configuration that is
    stored is made again from the one before it. If its links differ, as they may on another kind of
    device, nothing is written. Repeating a command that was interrupted makes the rest.

    gauge-mc regenerate RUN --at 250,300:400:10
    gauge-mc regenerate RUN --at 250 --output FOLDER
    gauge-mc regenerate RUN --at 250 --dry-run
    """
    from gauge_mc.devices.choice import AUTOMATIC
    from gauge_mc.run.regenerate import regenerate as carry_out

    place: dict[str, Any] = dict(backend=backend or AUTOMATIC, devices=devices, threads=threads)
    place |= dict(output=output, format=format)
    with alone_on_stdout(json):
        out = carry_out(run, at, dry_run=dry_run, progress=not quiet, **place)
    if json:
        print_document("regenerate", out)
        return
    if quiet and not dry_run:
        return
    if out.there:
        say(f"there already: {counted(len(out.there), 'configuration')}{after(out.there)}")
    if out.made and out.compared is None:
        say(f"{out.run} has no configuration with which this device could be compared")
    elif out.made:
        will = "would be made again first" if dry_run else "made again, with the same links"
        say(f"configuration {out.compared}: {will}")
    verb = "would be made" if dry_run else "made"
    work = f", {counted(out.updates, 'update')}" if out.made else ""
    say(f"{verb}: {counted(len(out.made), 'configuration')}{work}{after(out.made)}")
    say(out.folder)

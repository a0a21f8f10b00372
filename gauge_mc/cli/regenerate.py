"""``gauge-mc regenerate``: make configurations again that a run has not kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gauge_mc.cli.document import prints
from gauge_mc.cli.options import after, is_function
from gauge_mc.formats import FORMATS
from gauge_mc.quoting import counted


@prints("gauge_mc.stored.regenerate:RegenerationReport")
@is_function("gauge_mc.stored.regenerate:regenerate", at="UPDATES", output="FOLDER", format=FORMATS)
def regenerate(out: Any, dry_run: bool) -> Iterator[str]:
    """Yield what was made, or would be made.

    gauge-mc regenerate RUN --at 250,300:400:10
    gauge-mc regenerate RUN --at 250 --output FOLDER
    gauge-mc regenerate RUN --at 250 --dry-run
    """
    if out.there:
        yield f"there already: {counted(len(out.there), 'configuration')}{after(out.there)}"
    if out.made and out.compared is None:
        yield f"{out.run} has no configuration with which this device could be compared"
    elif out.made:
        will = "would be made again first" if dry_run else "made again, with the same links"
        yield f"configuration {out.compared}: {will}"
    verb = "would be made" if dry_run else "made"
    work = f", {counted(out.updates, 'update')}" if out.made else ""
    yield f"{verb}: {counted(len(out.made), 'configuration')}{work}{after(out.made)}"
    yield out.folder

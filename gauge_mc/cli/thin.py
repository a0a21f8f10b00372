"""``gauge-mc thin``: remove configurations of a run on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from gauge_mc.cli import options as o
from gauge_mc.cli.document import prints, show_result
from gauge_mc.cli.options import after, with_settings

Keep = Annotated[
    int,
    o.option("Keep every Nth configuration, counted from the first one of the run.", metavar="N"),
]


@prints("gauge_mc.run.thinning:ThinningReport")
@with_settings(("backend", "devices", "threads"))
def thin(
    run: Annotated[Path, o.argument("Run directory.", metavar="RUN")],
    keep: Keep,
    dry_run: Annotated[
        bool, o.option("Show what would be removed, without removing anything.", flag="--dry-run")
    ] = False,
    unchecked: Annotated[
        bool, o.option("Remove them without making one of them again first.", flag="--unchecked")
    ] = False,
    json: o.Json = False,
    backend: str | None = None,
    devices: str | None = None,
    threads: int | None = None,
) -> None:
    """Remove configurations of a run, except every Nth one.

    First, one of them is made again from what is kept, and nothing is removed unless its links are
    the same: gauge-mc regenerate can make all of them again. Kept are those that a run with N times
    the --separation would have. The run records that the
    others were removed on purpose, so that status, info and verify do not call them missing. Tables
    are not changed, and the run can be continued; new configurations are all kept until the run is
    thinned again. Configurations later than the last checkpoint are left.

    gauge-mc thin RUN --keep 2
    gauge-mc thin RUN --keep 10 --dry-run
    gauge-mc thin RUN --keep 10 --unchecked
    """
    from rich.filesize import decimal

    from gauge_mc.devices.choice import AUTOMATIC
    from gauge_mc.run.thinning import thin as carry_out

    place: dict[str, Any] = dict(backend=backend or AUTOMATIC, devices=devices, threads=threads)
    out = carry_out(run, keep, dry_run=dry_run, unchecked=unchecked, **place)
    total = len(out.kept) + len(out.removed)
    verb = "would be removed" if dry_run else "removed"
    size = decimal(out.removed_bytes)
    lines = (
        f"{verb}: {len(out.removed)} of {total} configurations, {size}{after(out.removed)}",
        f"kept: {len(out.kept)}{after(out.kept)}",
    )
    show_result("thin", out, json, *lines)

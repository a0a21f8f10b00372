"""``gauge-mc thin``: remove configurations of a run on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gauge_mc.cli.document import prints
from gauge_mc.cli.options import after, is_function


@prints("gauge_mc.stored.thinning:ThinningReport")
@is_function("gauge_mc.stored.thinning:thin", keep="N")
def thin(out: Any, dry_run: bool) -> Iterator[str]:
    """Yield what was removed, or would be removed.

    gauge-mc thin RUN --keep 2
    gauge-mc thin RUN --keep 10 --dry-run
    gauge-mc thin RUN --keep 10 --unchecked
    """
    from rich.filesize import decimal

    total = len(out.kept) + len(out.removed)
    verb, size = "would be removed" if dry_run else "removed", decimal(out.removed_bytes)
    yield f"{verb}: {len(out.removed)} of {total} configurations, {size}{after(out.removed)}"
    yield f"kept: {len(out.kept)}{after(out.kept)}"

"""Updates of a run at the command line."""

from __future__ import annotations

from collections.abc import Sequence

from gauge_mc.cli import options as o

AT = o.option(
    "Make the configurations after these updates, as in 1050,1100:2000:10.",
    metavar="UPDATES",
    flag="--at",
)
"""Updates whose configurations are made again."""


def after(updates: Sequence[int]) -> str:
    """Return the first and the last of some updates in words."""
    shown = [str(one) for one in updates]
    if len(shown) > 4:
        shown[2:-1] = ["..."]
    return f" (after updates {', '.join(shown)})" if shown else ""

"""The averages of a scan against the coupling."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.errors import UsageError
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.scans.averages import draw_scan
from gauge_mc.scans.scan import Scan


class ScanPlot(Plot):
    """Averages and derived quantities of a scan against beta, one below the other."""

    name = "scan"
    summary = "averages and susceptibilities of a scan against β"
    of_scans: ClassVar[bool] = True

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the table of one scan; see `Plot.draw`."""
        if len(runs) > 1:
            raise UsageError("Only one scan can be drawn at a time; name only one.")
        draw_scan(Scan.read(runs[0]).table, file)
        return []


PLOTS.register(ScanPlot())

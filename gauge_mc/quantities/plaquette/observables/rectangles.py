"""Rectangles of 2x1 links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.loops import RECTANGLES, Loops
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.observables import OBSERVABLES
from gauge_mc.quantities.plaquette.observables.plaquette import LoopAverages


@OBSERVABLES.register
@dataclass(frozen=True)
class Rectangles(LoopAverages):
    """Averages of Re Tr U_r / N over the rectangles of 2x1 links, in [-1, 1]."""

    name: ClassVar[str] = "rectangles"
    summary: ClassVar[str] = "rectangles of 2x1 links: all, spatial, 1 and 2 links along t"
    columns: ClassVar[TableColumns] = TableColumns(
        Column(
            "rectangle", help="average over the twelve rectangles of a site", average="rectangle"
        ),
        Column(
            "spatial",
            help="average over the six rectangles without links along t",
            average="spatial rectangle",
        ),
        Column(
            "short",
            help="average over the three rectangles whose short side is along t",
            average="rectangle, short side along t",
        ),
        Column(
            "long",
            help="average over the three rectangles whose long side is along t",
            average="rectangle, long side along t",
        ),
    )
    loops: ClassVar[Loops] = RECTANGLES
    main_kernel: ClassVar[Kernel | None] = RECTANGLES.kernel

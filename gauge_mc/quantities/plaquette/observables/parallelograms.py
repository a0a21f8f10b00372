"""Parallelograms, the loops of six links through corners of a cube."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.loops import PARALLELOGRAMS, Loops
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.observables import OBSERVABLES
from gauge_mc.quantities.plaquette.observables.plaquette import LoopAverages


@OBSERVABLES.register
@dataclass(frozen=True)
class Parallelograms(LoopAverages):
    """Averages of Re Tr U_q / N over the loops mu, nu, rho, -mu, -nu, -rho, in [-1, 1]."""

    name: ClassVar[str] = "parallelograms"
    summary: ClassVar[str] = "parallelograms of 6 links on a cube: all, spatial, with links along t"
    columns: ClassVar[TableColumns] = TableColumns(
        Column(
            "parallelogram",
            help="average over the sixteen parallelograms of a site",
            average="parallelogram",
        ),
        Column(
            "spatial",
            help="average over the four parallelograms without links along t",
            average="spatial parallelogram",
        ),
        Column(
            "temporal",
            help="average over the twelve parallelograms with links along t",
            average="temporal parallelogram",
        ),
    )
    loops: ClassVar[Loops] = PARALLELOGRAMS
    main_kernel: ClassVar[Kernel | None] = PARALLELOGRAMS.kernel

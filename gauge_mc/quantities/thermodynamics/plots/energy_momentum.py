"""Entropy density and trace anomaly against the flow time, with their limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.looks import GREY, look
from gauge_mc.plots.figures.pictures import Frame, Guide, Mark, Picture, Symbols
from gauge_mc.plots.runs.table_plot import ScanFigure
from gauge_mc.quantities.thermodynamics.fits.energy_momentum import (
    EnergyMomentumFit,
    flow_thermodynamics,
)


class EnergyMomentumPlot(ScanFigure):
    """s / T^3 and (e - 3 p) / T^4 from the gradient flow against t T^2, with the limits t -> 0."""

    name = "energy-momentum"
    summary = "entropy density and trace anomaly from the gradient flow, against its time"
    options: ClassVar[tuple[Option, ...]] = EnergyMomentumFit.options

    def picture(self, scan: Path, options: dict[str, Any]) -> Picture:
        """Show both at the flow times of the fit, with larger symbols for their limits."""
        found = flow_thermodynamics(scan, options)
        extent, entropy, anomaly = int(found.lattice.split("x")[-1]), list[Mark](), list[Mark]()
        for number, one in enumerate(found.states):
            x, own = np.array(one.t) / extent**2, look(number)
            small = {"color": own["color"], "marker": ".", "linewidth": 0.8}
            large = {**own, "markersize": 5}
            text = rf"$\beta={one.beta:.12g}$"
            entropy += [Symbols.of(x, one.entropy_at, small)]
            entropy += [Symbols.of([0], [one.entropy], large, text)]
            anomaly += [Symbols.of(x, one.anomaly_at, small)]
            anomaly += [Symbols.of([0], [one.anomaly], large)]
        dashed = {"color": GREY, "linewidth": 1, "linestyle": "--"}
        entropy.append(Guide(4 * found.ideal_pressure, style=dashed, text="ideal gas"))
        frames = [
            Frame(entropy, r"$t\,T^2$", "$s/T^3$"),
            Frame(anomaly, r"$t\,T^2$", r"$(\varepsilon-3p)/T^4$"),
        ]
        title = f"{GROUPS[found.ensemble['group']].label}, {found.lattice}"
        return Picture(frames, 3.4, title, columns=4)


PLOTS.register(EnergyMomentumPlot())

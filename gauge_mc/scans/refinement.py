"""Points of a scan that are missing, given its complete runs: at peaks, and between runs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from gauge_mc.errors import UsageError
from gauge_mc.groups import GROUPS
from gauge_mc.quantities.transition.analysis.reweighting import LEAST_OVERLAP
from gauge_mc.quantities.transition.analysis.volume import ThermalVolume
from gauge_mc.run.thermalisation import Skip
from gauge_mc.scans.grid import Grid, Point
from gauge_mc.scans.scan import Member, Scan
from gauge_mc.scans.thermal_runs import read_thermal_chain

NEAR = 0.5
"""Distance in units of 1/sigma of the action below which a run is as good as one at the peak."""

MOST_AT_ONCE = 20
"""Maximum number of points between two runs that are added at once."""


def refinement(scan: Scan, skip: Skip = 0) -> list[Grid]:
    """Return the points where a scan should be finer, one grid for each lattice and action.

    On every lattice these are the peak of the susceptibility of the Polyakov loop, by reweighting,
    unless a run is near; points between neighbouring runs whose histograms of the action do not
    overlap; and a point beyond the outermost run if the susceptibility still grows there. They have
    as many chains as the scan has at most.

    Parameters
    ----------
    scan : Scan
        The scan, of which only complete runs count.
    skip : int or str
        Last update that is left out, or `AUTO`.

    Raises
    ------
    UsageError
        If the scan is over numbers of quarks, with one coupling each.
    GaugeError
        If a run has not measured the Polyakov loop and the loops of its action.
    """
    members: dict[Point, list[Member]] = {}
    for one in scan.members():
        if one.complete():
            members.setdefault(one.point._replace(beta=0.0), []).append(one)
    chains, grids = max(scan.points().values(), default=1), []
    several = len({one.algorithm for one in scan.points()}) > 1
    for point, own in members.items():
        if several and len({one.point.beta for one in own}) == 1:
            raise UsageError(
                f"--refine adds values of β, of which {scan.path} has one for each of its quarks; "
                "add values to --quarks, or several to --beta."
            )
        runs = [read_thermal_chain(one.run.path, skip) for one in own]
        volume = ThermalVolume(point.lattice, GROUPS[scan.parameters.group].colours, runs, 0)
        found = tuple(sorted({*missing_couplings(volume)}))
        if found:
            grids.append(Grid(found, (point.lattice,), chains, scan.options_of([point])))
    return grids


def missing_couplings(volume: ThermalVolume) -> Iterator[float]:
    """Yield the couplings of runs that are missing on one lattice; see `refinement`."""
    every = volume.reweighting
    known, state = every.beta, every.state
    widths = [1 / max(float(every.measured[state == k].std()), 1e-12) for k in range(known.size)]
    for k, overlap in enumerate(every.overlap):
        if overlap < LEAST_OVERLAP:
            distance = float(known[k + 1] - known[k])
            count = min(math.ceil(distance / (widths[k] + widths[k + 1])), MOST_AT_ONCE)
            inner = np.linspace(known[k], known[k + 1], count + 1 + (count == 1))[1:-1]
            yield from (rounded(float(one), widths[k]) for one in inner)
    if every.gaps:  # a peak cannot be found before they are closed
        return
    peak = float(volume.peak[0][0])
    if math.isfinite(peak):
        near = int(np.argmin(np.abs(known - peak)))
        if abs(float(known[near]) - peak) > NEAR * widths[near]:
            yield rounded(peak, widths[near])
    elif volume.confined:
        yield rounded(float(known[-1]) + 2 * widths[-1], widths[-1])
    else:
        yield rounded(float(known[0]) - 2 * widths[0], widths[0])


def rounded(beta: float, width: float) -> float:
    """Return a coupling with as many decimals as a tenth of a width needs."""
    decimals = max(0, math.ceil(1 - math.log10(width)))
    return round(beta, decimals)

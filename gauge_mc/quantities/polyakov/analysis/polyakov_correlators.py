"""Correlators of Polyakov loops of an ensemble, and the static potential from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gauge_mc.analysis.table_series import read_series
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.paths import PATHS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.groups import GROUPS
from gauge_mc.quantities.potential.analysis.lattice_coulomb import improved_distance
from gauge_mc.quantities.potential.analysis.loop_tables import ensemble_of
from gauge_mc.quantities.potential.analysis.loops import step_length
from gauge_mc.quantities.potential.analysis.plateau_search import LOOP_PRECISION, check_enough
from gauge_mc.quantities.potential.analysis.plateaus import PlateauPoint, Plateaus

COLUMNS = TableColumns(
    Column("path", str, f"direction of the distance: {', '.join(PATHS)}", index=True),
    Column("r", int, "steps along the path", index=True),
    Column("re", float, "C(R), averaged over the sites of space and equivalent directions"),
)
"""Columns of a table of correlators."""

CORRELATOR_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns of a table of correlators."""


@dataclass(frozen=True)
class Correlators:
    """Correlators of two Polyakov loops at all distances of a table."""

    colours: int
    """N of SU(N)."""
    extent: int
    """Extent of the lattice in time, N_t."""
    distances: tuple[tuple[str, int], ...]
    """Path and number of steps of every distance."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending, of shape (configurations,)."""
    values: Array
    """C(R) = Re P(x) P(x + R)^* with P = Tr / N, averaged over each configuration, of shape
    (configurations, distances).
    """


def read_correlators(path: Path, skip: int = 0) -> tuple[Correlators, dict[str, str]]:
    """Read the correlators at all distances from the file of a table.

    Parameters
    ----------
    path : Path
        File of the table.
    skip : int
        Last update that is left out.

    Returns
    -------
    Correlators
        C(R) of every configuration.
    dict of str to str
        Group, beta and lattice of the ensemble, as the header of the table states them.

    Raises
    ------
    GaugeError
        If the table cannot be read, is not one of correlators, or is incomplete.
    UsageError
        If nothing was measured after the update `skip`.
    """
    found = read_series(path, COLUMNS, "correlators of Polyakov loops", skip, 1)
    try:
        extent, colours = found.lattice.t, GROUPS[found.header.get("group", "")].colours
    except (GaugeError, UsageError) as error:
        raise GaugeError(
            f"The header of {path} does not state the lattice and the group; measure the "
            "correlators again."
        ) from error
    columns = (found.index[name].tolist() for name in ("path", "r"))
    distances = tuple(zip(*columns, strict=True))
    values = np.asarray(found.values["re"], np.float64)
    return Correlators(colours, extent, distances, found.sweeps, values), ensemble_of(found.header)


def correlator_potential(correlators: Correlators) -> Plateaus:
    """Return V(R) = -ln [N^2 C(R)] / N_t at all distances at which C(R) is known well enough.

    With the traces Tr instead of Tr / N, that is N^2 C(R), the correlator is the sum over all
    states of two static charges of w_n exp(-V_n(R) N_t), with integers w_n and w_0 = 1 (M. Luescher
    and P. Weisz, hep-lat/0207003, section 2). So this is the potential of the ground state, the one
    of Wilson loops, up to terms of the order exp(-(V_1 - V_0) N_t) / N_t; without N^2 it would be
    larger by 2 ln N / N_t. C(R) must be known to better than `LOOP_PRECISION`, as ln C is biased
    otherwise; this leaves out all distances at which the average is negative.

    Returns
    -------
    Plateaus
        Points whose t are N_t; there is no fit in t.

    Raises
    ------
    GaugeError
        If there are too few configurations, or if C(R) is not known at any distance.
    """
    check_enough(correlators.sweeps.size, "correlators")
    if (np.ptp(correlators.values, axis=0) == 0).any():
        raise GaugeError(
            "The correlators do not fluctuate, so the configurations are all the same; generate "
            "different ones."
        )
    found: list[tuple[PlateauPoint, Array]] = []
    left_out = []
    for (path, steps), values in zip(correlators.distances, correlators.values.T, strict=True):
        distance, mean = steps * step_length(path), float(values.mean())
        if not mean > 0 or estimate(values).error >= LOOP_PRECISION * mean:
            left_out.append(f"{path} R = {distance:.4g}")
            continue
        logs = math.log(correlators.colours**2 * mean) + (values - mean) / mean
        series = -logs / correlators.extent
        found.append((_point(path, steps, distance, series, correlators.extent), series))
    if not found:
        raise GaugeError(
            f"No correlator is known to better than {LOOP_PRECISION:.0%}; measure more "
            "configurations, or with multilevel averages."
        )
    found.sort(key=lambda pair: pair[0].distance)
    return Plateaus(
        f"V(R) = −ln[N² C(R)]/N_t with N_t = {correlators.extent}",
        tuple(point for point, _ in found),
        correlators.sweeps,
        np.stack([series for _, series in found], axis=1),
        True,
        tuple(left_out),
        np.zeros((len(found), len(found))),
    )


def caution_images(plateaus: Plateaus, lattice: str) -> list[str]:
    """Return a caution about points at half the lattice, or nothing.

    There a periodic image of one charge is as near to the other as the charge itself, so that
    C(R) is about twice as large for every such direction.

    Parameters
    ----------
    plateaus : Plateaus
        V(R) at all distances.
    lattice : str
        Extents of the lattice, such as ``16x16x16x8``.
    """
    half = min(Lattice.parse(lattice).extents[:3]) / 2
    found = [one for one in plateaus.points if one.steps * max(map(int, one.path)) == half]
    if not found:
        return []
    names = ", ".join(f"{one.path} R = {one.distance:.4g}" for one in found)
    return [
        f"Half the lattice away, periodic images of the charges lower V(R): {names}; leave these "
        "distances out with --r-max or measure on a larger lattice."
    ]


def _point(path: str, steps: int, distance: float, series: Array, extent: int) -> PlateauPoint:
    return PlateauPoint(
        path=path,
        steps=steps,
        distance=distance,
        potential=estimate(series),
        t_min=extent,
        t_max=extent,
        chi2=0.0,
        chi2_expected=0.0,
        improved=improved_distance(path, steps),
    )

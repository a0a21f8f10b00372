"""Correlators of Polyakov loops of an ensemble, and the static potential from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gauge_mc.analysis.states import PRECISION
from gauge_mc.analysis.table_series import Skips, Tables, read_series
from gauge_mc.analysis.timeseries import Replicas
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.lattice import PATHS, Lattice, bracketed
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.groups import GROUPS
from gauge_mc.quantities.potential.loop_tables import step_length
from gauge_mc.quantities.potential.static_potential import (
    PotentialPoint,
    PotentialSeries,
    check_enough,
)

CORRELATORS = TableColumns(
    Column("path", str, f"direction of the distance: {', '.join(PATHS)}", index=True),
    Column("r", int, "steps along the path", index=True),
    Column("re", float, "C(R), averaged over the sites of space and equivalent directions"),
)
"""Columns of a table of correlators."""

CORRELATOR_COLUMNS = (SWEEP, *CORRELATORS.names)
"""Names of the columns of a table of correlators."""

AXES = ("x", "y", "z")
"""Names of the axes of space."""

PLANES = TableColumns(
    Column("axis", str, "axis to which the planes are perpendicular: x, y or z", index=True),
    Column("r", int, "distance of the planes", index=True),
    Column("re", float, "product of the real parts of the averages over two planes"),
    Column("im", float, "product of the imaginary parts; 0 for SU(2)"),
)
"""Columns of a table of correlators of planes."""

PLANE_COLUMNS = (SWEEP, *PLANES.names)
"""Names of the columns of such a table."""


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
    """Numbers (updates) of the configurations, ascending in every chain, of shape
    (configurations,)."""
    replicas: Replicas
    """Division of the configurations into chains."""
    values: Array
    """C(R) = Re P(x) P(x + R)^* with P = Tr / N, averaged over each configuration, of shape
    (configurations, distances).
    """


def read_correlators(tables: Tables, skip: Skips = 0) -> tuple[Correlators, Mapping[str, str]]:
    """Read the correlators at all distances from the file of a table, or of several chains.

    Parameters
    ----------
    tables, skip
        See `read_series`.

    Returns
    -------
    Correlators
        C(R) of every configuration.
    mapping of str to str
        The header of the table.

    Raises
    ------
    GaugeError
        If the table cannot be read, is not one of correlators, or is incomplete.
    UsageError
        If nothing was measured after the update `skip`.
    """
    found = read_series(tables, CORRELATORS, "correlators of Polyakov loops", skip, 1)
    try:
        extent, colours = found.lattice.t, GROUPS[found.header.get("group", "")].colours
    except (GaugeError, UsageError) as error:
        raise GaugeError(
            f"The header of {found.source} does not state the lattice and the group; measure the "
            "correlators again."
        ) from error
    columns = (found.index[name].tolist() for name in ("path", "r"))
    distances = tuple(zip(*columns, strict=True))
    values = np.asarray(found.values["re"], np.float64)
    chains = found.sweeps, found.replicas
    correlators = Correlators(colours, extent, distances, *chains, values)
    return correlators, found.header


def correlator_potential(correlators: Correlators) -> PotentialSeries:
    """Return V(R) = -ln [N^2 C(R)] / N_t at all distances at which C(R) is known well enough.

    With the traces Tr instead of Tr / N, that is N^2 C(R), the correlator is the sum over all
    states of two static charges of w_n exp(-V_n(R) N_t), with integers w_n and w_0 = 1 (M. Luescher
    and P. Weisz, hep-lat/0207003, section 2). So this is the potential of the ground state, the one
    of Wilson loops, up to terms of the order exp(-(V_1 - V_0) N_t) / N_t; without N^2 it would be
    larger by 2 ln N / N_t. C(R) must be known to better than `PRECISION`, as ln C is biased
    otherwise; this leaves out all distances at which the average is negative.

    Returns
    -------
    PotentialSeries
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
    pairs, left_out, extent = [], [], correlators.extent
    for (path, steps), values in zip(correlators.distances, correlators.values.T, strict=True):
        distance, mean = steps * step_length(path), float(values.mean())
        if not mean > 0 or correlators.replicas.estimate(values).error >= PRECISION * mean:
            left_out.append(f"{bracketed(path)} R = {distance:.4g}")
            continue
        logs = math.log(correlators.colours**2 * mean) + (values - mean) / mean
        energy = correlators.replicas.estimate(-logs / extent)
        point = PotentialPoint(path, steps, distance, energy, 0.0, extent, extent)
        pairs.append((point, -logs / extent))
    if not pairs:
        raise GaugeError(
            f"No correlator is known to better than {PRECISION:.0%}; measure more configurations, "
            "or with multilevel averages."
        )
    return PotentialSeries.of(pairs, correlators.replicas, left_out)


def caution_images(points: Sequence[PotentialPoint], lattice: str) -> list[str]:
    """Return a caution about points at half the lattice, or nothing.

    There a periodic image of one charge is as near to the other as the charge itself, so that
    C(R) is about twice as large for every such direction.

    Parameters
    ----------
    points : sequence of PotentialPoint
        V(R) at all distances.
    lattice : str
        Extents of the lattice, such as ``16x16x16x8``.
    """
    half = min(Lattice.parse(lattice).extents[:3]) / 2
    far = [point for point in points if point.steps * max(map(int, point.path)) == half]
    if not far:
        return []
    names = ", ".join(f"{bracketed(point.path)} R = {point.distance:.4g}" for point in far)
    return [
        f"Half the lattice away, periodic images of the charges lower V(R): {names}; leave these "
        "distances out with --r-max or measure on a larger lattice."
    ]

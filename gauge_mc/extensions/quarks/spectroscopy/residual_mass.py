"""The residual mass of domain-wall quarks and Z_A, from the sums of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gauge_mc.analysis.table_series import read_series
from gauge_mc.analysis.timeseries import Estimate, caution_series, caution_short, estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.spectroscopy.correlators import AT, METADATA, fold
from gauge_mc.extensions.quarks.spectroscopy.masses import Ranges, ratio_plateau, ratio_series
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.results import documented, result_field

COLUMNS = TableColumns(
    Column("m", float, "mass m of the quark", index=True),
    Column("source", str, f"kind of the source, and its place after {AT}", index=True),
    Column("t", int, "time since the source", index=True),
    Column("pion", float, "correlator P of the pion"),
    Column("contact", float, "real part of the propagator with its source"),
    Column("midpoint", float, "correlator of J5q with the pion", optional=True),
    Column("m_res", float, "midpoint divided by pion", optional=True),
    Column("axial", float, "conserved axial current from t to t + 1 with the pion", optional=True),
    Column("local_axial", float, "local axial current with the pion", optional=True),
    Column(
        "vector", float, "conserved vector current from t to t + 1, summed as the pion",
        optional=True,
    ),
)  # fmt: skip
"""Columns of a table of sums for the residual mass."""

RESIDUAL_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns that all tables have."""

MASS_KEY = "m_q = 2 M5 m"

PION_PRECISION = 0.25
"""Relative error of the pion's correlator up to which its ratios are used. They fluctuate far less
than it does, and their bias is at most this fraction of their errors."""


class WallQuark(NamedTuple):
    """A domain-wall quark with a kind of source."""

    m: float
    """Its mass."""
    source: str
    """Kind of the source."""


@documented
@dataclass(frozen=True)
class ResidualMass:
    """The residual mass of a quark, and Z_A."""

    m: float = result_field("Mass m of the quark.")
    source: str = result_field("Kind of the source.")
    summed: Estimate = result_field(
        "Re tr S(0, 0) / sum over x of tr S(x, 0)^dagger S(x, 0) - m, which is the average of "
        "J5q / P over all t with the weight P (T.-W. Chiu, arXiv:1205.6151), for any weights."
    )
    m_res: Estimate | None = result_field(
        "Average of m_res(t) over a plateau, in lattice units; None if there is no midpoint, or "
        "the correlators are too noisy."
    )
    t_min: int | None = result_field("First t of the plateau.")
    t_max: int | None = result_field("Last t of the plateau.")
    chi2: float | None = result_field("chi2 of the fit of a constant.")
    chi2_expected: float | None = result_field("Expectation of chi2.")
    z_a: Estimate | None = result_field(
        "Average of Z_A(t) over a plateau; None if there are no conserved currents, or they are "
        "too noisy."
    )
    z_a_t_min: int | None = result_field("First t of the plateau of Z_A.")
    z_a_t_max: int | None = result_field("Last t of the plateau of Z_A.")


@documented
@dataclass(frozen=True)
class ResidualMasses:
    """The residual masses of an ensemble, and Z_A."""

    ensemble: Mapping[str, str] = result_field(
        "Group, beta, lattice and action of the ensemble, the operator and the boundary conditions."
    )
    configurations: int = result_field("Number of configurations.")
    skip: int = result_field("Last update that was left out.")
    masses: tuple[ResidualMass, ...] = result_field("The residual mass for every m and source.")
    left_out: tuple[str, ...] = result_field("Plateaus that are not known, and why.")
    cautions: tuple[str, ...] = result_field("Cautions about the errors, one sentence each.")


@dataclass(frozen=True)
class ResidualTable:
    """The sums of an ensemble, averaged over the places of sources."""

    ensemble: Mapping[str, str]
    """Entries of the table's header about the ensemble and the quarks."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending."""
    values: Mapping[WallQuark, Mapping[str, Array]]
    """Sums by column, of shape (configurations, T), for every quark."""

    def ratio(self, quark: WallQuark) -> Array | None:
        """Return the linearised m_res(t) for t = 1, …, T/2, or None without a midpoint."""
        sums = self.values[quark]
        if "midpoint" not in sums:
            return None
        return ratio_series(fold(sums["midpoint"], 1)[:, 1:], self.pion(quark))

    def pion(self, quark: WallQuark) -> Array:
        """Return the folded correlator of the pion for t = 1, …, T/2."""
        return fold(self.values[quark]["pion"], 1)[:, 1:]

    def renormalisation(self, quark: WallQuark) -> Array | None:
        """Return the linearised Z_A(t) for t = 1, …, T/2 - 1, or None without currents."""
        sums = self.values[quark]
        if "axial" not in sums:
            return None
        links, local = sums["axial"], fold(sums["local_axial"], -1)
        links = (links - links[:, ::-1]) / 2  # C(t) = -C(T - 1 - t)
        t = np.arange(1, local.shape[1] - 1)
        near = ratio_series(links[:, t - 1] + links[:, t], 4 * local[:, t])
        return near + ratio_series(links[:, t], local[:, t] + local[:, t + 1])


def read_residual_table(path: Path, skip: int = 0) -> ResidualTable:
    """Read a table of sums for the residual mass."""
    table = read_series(path, COLUMNS, "residual masses", skip)
    kinds = [x.partition(AT)[0] for x in table.index["source"]]
    quarks = [*map(WallQuark, table.index["m"].tolist(), kinds)]
    sums = {}
    for quark in dict.fromkeys(quarks):
        rows = np.flatnonzero([q == quark for q in quarks])
        t = table.index["t"][rows]
        places = rows[np.argsort(t, kind="stable")]
        extent = int(t.max()) + 1
        if (np.bincount(t, minlength=extent) * extent != t.size).any():
            raise GaugeError(
                f"{table.source} is incomplete: some source does not have every time; measure the "
                "residual mass again."
            )
        cells = places.reshape(extent, -1).T
        sums[quark] = {
            name: np.add.reduce([value[:, place] for place in cells]) / len(cells)
            for name, value in table.values.items()
        }
    return ResidualTable(table.stated((*METADATA, MASS_KEY)), table.sweeps, sums)


def residual_masses(table: ResidualTable, ranges: Ranges, skip: int = 0) -> ResidualMasses:
    """Determine the residual mass and Z_A of every quark of a table."""
    rows = [_residual_mass(table, quark, ranges) for quark in table.values]
    masses, missing, series = zip(*rows, strict=True)
    tau = max(mass.summed.tau_int + mass.summed.tau_int_error for mass in masses)
    short = caution_short(table.sweeps.size, tau, "the residual masses")
    cautions = (*short, *caution_series(table.sweeps, *series))
    words = dict(table.ensemble), table.sweeps.size, skip
    return ResidualMasses(*words, masses, tuple(chain.from_iterable(missing)), cautions)


_Plateau = tuple[Estimate | None, int | None, int | None, float | None, float | None]
"""The value of a plateau, its first and last t, chi2 and its expectation."""

_UNKNOWN: _Plateau = (None, None, None, None, None)


def _residual_mass(
    table: ResidualTable, quark: WallQuark, ranges: Ranges
) -> tuple[ResidualMass, list[str], Array]:
    """Return the residual mass of a quark, what could not be determined, and a series of it."""
    sums, missing = table.values[quark], []
    ratio = ratio_series(*(sums[name].sum(axis=1)[:, None] for name in ("contact", "pion")))
    summed = ratio[:, 0] - quark.m

    def plateau(name: str, series: Array | None) -> _Plateau:
        if series is None:
            return _UNKNOWN
        try:
            below = table.pion(quark)[:, : series.shape[1]]
            state = ratio_plateau(series, below, ranges, PION_PRECISION)
        except GaugeError as error:
            missing.append(f"{name}, m = {quark.m:g}, {quark.source}: {error}")
            return _UNKNOWN
        return state.energy, state.t_min, state.t_max, state.fit.chi2, state.fit.chi2_expected

    m_res = plateau("m_res", table.ratio(quark))
    z_a = plateau("Z_A", table.renormalisation(quark))
    mass = ResidualMass(quark.m, quark.source, estimate(summed), *m_res, *z_a[:3])
    return mass, missing, summed

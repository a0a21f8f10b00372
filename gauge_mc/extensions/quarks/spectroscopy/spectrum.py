"""The spectrum of an ensemble: masses, PCAC and residual masses, extrapolations in the quark mass.

Mesons are read from correlators with the same matrix Gamma at source and sink; the matrices are
those of `gauge_mc.extensions.quarks.vectors.basis`. Correlators that have the same expectation
value are averaged: those of all components of a matrix with spatial indices, of momenta that are
related by a symmetry of the cubic lattice, and of all places of a source.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gauge_mc.analysis.fitting import fit_line
from gauge_mc.analysis.states import Correlator
from gauge_mc.analysis.table_series import read_series
from gauge_mc.analysis.timeseries import Estimate, caution_series, caution_short, estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.spectroscopy.correlators import (
    AT,
    AXIAL,
    BOSONS,
    MATRICES,
    METADATA,
    MOMENTA,
    PION,
    PSEUDOSCALAR,
    ExtrapolationKey,
    HadronCorrelators,
    HadronState,
    MassFit,
    QuarkParameters,
    Ranges,
    describe,
    fit_mass,
    fold,
    parameters_of,
    quarks_of,
    ratio_plateau,
    ratio_series,
)
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.results import documented, result_field


@documented
@dataclass(frozen=True)
class HadronMass:
    """A mass of a hadron, or its energy at nonzero momentum."""

    name: str = result_field("Name of the hadron.")
    kappa1: float = result_field("Hopping parameter of the antiquark, or of the u quarks.")
    kappa2: float = result_field("Hopping parameter of the quark, or of the d quark.")
    mu1: float = result_field("Twisted mass of the quarks of `kappa1`.")
    mu2: float = result_field("Twisted mass of the quarks of `kappa2`.")
    m1: float = result_field("Mass of the quarks of `kappa1`, for operators that have one; else 0.")
    m2: float = result_field("Mass of the quarks of `kappa2`.")
    source: str = result_field("Kind of the source.")
    momentum: tuple[int, ...] = result_field(
        "Components of the momentum up to signs and order, in units of 2 pi over the extent."
    )
    polarisation: int = result_field(
        "Component of the momentum along the direction of a vector meson; 0 for other hadrons."
    )
    parity: int = result_field("Parity of a baryon; 0 for mesons.")
    fit: MassFit = result_field("The mass with its fit.")


@documented
@dataclass(frozen=True)
class PcacMass:
    """The quark mass of the PCAC relation, unrenormalised and unimproved."""

    kappa1: float = result_field("Hopping parameter of the antiquark.")
    kappa2: float = result_field("Hopping parameter of the quark; the mass is the mean of both.")
    mu1: float = result_field("Twisted mass of the antiquark, with the opposite sign.")
    mu2: float = result_field("Twisted mass of the quark.")
    m1: float = result_field("Mass of the antiquark, for operators that have one; else 0.")
    m2: float = result_field("Mass of the quark.")
    source: str = result_field("Kind of the source.")
    mass: Estimate = result_field(
        "[<A(t + 1) P> - <A(t - 1) P>] / (4 <P(t) P>) in lattice units, averaged over a plateau."
    )
    t_min: int = result_field("First t of the plateau.")
    t_max: int = result_field("Last t of the plateau.")
    chi2: float = result_field("chi2 of the fit of a constant.")
    chi2_expected: float = result_field("Expectation of chi2.")


@documented
@dataclass(frozen=True)
class LinePoint:
    """A point of an extrapolation."""

    x: float = result_field("Abscissa.")
    value: float = result_field("Ordinate.")
    error: float = result_field("Standard error of the ordinate.")

    @classmethod
    def several(cls, x: Array, data: Array) -> tuple[LinePoint, ...]:
        """Return the points at x whose ordinates are the means of series, the columns of data."""
        pairs = zip(x.tolist(), map(estimate, data.T), strict=True)
        return tuple(cls(at, mean.value, mean.error) for at, mean in pairs)


@documented
@dataclass(frozen=True)
class ChiralFit:
    """A straight line through masses at several hopping parameters."""

    quantity: str = result_field(
        '``"pion^2"`` and ``"pcac"`` for the squared mass of the pion and the PCAC mass '
        "against the mean of 1/kappa1 and 1/kappa2, or of m1 and m2 for operators with a mass, or "
        "the name of a hadron for its mass against the squared mass of the pion."
    )
    source: str = result_field("Kind of the source.")
    mu: float = result_field("Twisted mass of all quarks.")
    intercept: Estimate = result_field(
        "Value at x = 0, which for a hadron is its mass in the chiral limit."
    )
    slope: Estimate = result_field("Slope of the line.")
    kappa_c: Estimate | None = result_field(
        "Critical hopping parameter, at which the line vanishes; None for hadrons, and for "
        "operators with a mass."
    )
    m_c: Estimate | None = result_field(
        "Mass m at which the line vanishes, for operators that have one; None for others."
    )
    chi2: float = result_field("chi2 of the fit.")
    chi2_expected: float = result_field("Expectation of chi2.")
    dof: int = result_field("Degrees of freedom.")
    p_value: float = result_field("Probability of a larger chi2 if the masses are on a line.")
    points: tuple[LinePoint, ...] = result_field("The points of the fit.")


class MissingMass(NamedTuple):
    """A hadron mass or PCAC mass that could not be determined, and why.

    Its text is both on one line.
    """

    name: str
    """Name with the momentum and the quarks."""
    reason: str
    """Why it could not be determined, in a sentence."""

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@documented
@dataclass(frozen=True)
class Spectrum:
    """Masses of the hadrons of an ensemble."""

    ensemble: Mapping[str, str] = result_field(
        "Group, beta, lattice and action of the ensemble and parameters of the quarks, as far"
        " as the header of the table states them."
    )
    configurations: int = result_field("Number of configurations.")
    skip: int = result_field("Last update that was left out.", 0)
    masses: tuple[HadronMass, ...] = result_field(
        "All masses and energies that could be determined.", ()
    )
    pcac: tuple[PcacMass, ...] = result_field("PCAC masses, if the table has the correlators.", ())
    chiral: tuple[ChiralFit, ...] = result_field(
        "Extrapolations in the quark mass, if there are several.", ()
    )
    left_out: tuple[MissingMass, ...] = result_field(
        "Hadrons and PCAC masses whose correlators are too noisy; in JSON, a line of text each.", ()
    )
    cautions: tuple[str, ...] = result_field("Cautions about the errors, one sentence each.", ())


@dataclass
class MassSeries:
    """Linearised time series of the masses of an ensemble, from which extrapolations follow."""

    correlators: dict[HadronState, Correlator] = field(default_factory=dict)
    """All folded correlators."""
    masses: dict[HadronState, tuple[MassFit, Array]] = field(default_factory=dict)
    """Masses with their series, shape (configurations,)."""
    pcac: dict[HadronState, tuple[PcacMass, Array]] = field(default_factory=dict)
    """PCAC masses with their series."""
    left_out: list[MissingMass] = field(default_factory=list)
    """Hadrons without a mass and PCAC masses that are not known, and why."""

    def fit(self, state: HadronState, correlator: Correlator, ranges: Ranges) -> None:
        """Fit the correlator of a hadron."""
        self.correlators[state] = correlator
        try:
            self.masses[state] = fit_mass(correlator, ranges)
        except GaugeError as error:
            self.left_out.append(MissingMass(describe(state), str(error)))


def chiral_fits(pions: MassSeries, hadrons: MassSeries) -> list[ChiralFit]:
    """Extrapolate masses at rest in the quark mass, for every kind of source and twisted mass.

    All quarks of a hadron have the same twisted mass, and those of a baryon also the same hopping
    parameter, since its mass depends on which of them is heavier. The squared mass of the pion is a
    line in 1/kappa only without a twisted mass.
    """
    fits = []
    squares = {
        state: fit.mass.value**2 + 2 * fit.mass.value * (series - fit.mass.value)
        for state, (fit, series) in pions.masses.items()
        if state.name == PION and state.at_rest
    }
    pcac = {state: series for state, (_, series) in pions.pcac.items()}
    for kind in dict.fromkeys(state.kind for state in squares if state.kind):
        fits += _critical("pion^2", kind, squares) if not kind.mu else []
        fits += _critical("pcac", kind, pcac)
        at_rest = (mass for mass in hadrons.masses if mass.kind == kind and mass.at_rest)
        heavy = [x for x in at_rest if not x.parity or x.quarks[0] == x.quarks[1]]
        for label in dict.fromkeys(x.label for x in heavy if x.name != PION):
            pairs = [
                (squares[pion], hadrons.masses[state][1])
                for state in heavy
                if state.label == label and (pion := _pion_of(state)) in squares
            ]
            fits += _extrapolation(label, kind, pairs)
    return fits


def _pion_of(state: HadronState) -> HadronState:
    """Return the pion at rest of the same quarks."""
    return HadronState(PION, *parameters_of(sorted(state.quarks)), state.source, (0, 0, 0))


def _critical(
    quantity: str, kind: ExtrapolationKey, series: Mapping[HadronState, Array]
) -> list[ChiralFit]:
    """Fit a line in 1/kappa or in the mass, and return it with the point at which it vanishes."""
    states = [state for state in series if state.kind == kind and state.at_rest]
    masses = [(x.m1 + x.m2) / 2 for x in states]  # 0 for operators without a mass
    massive = any(masses)
    x = np.array(masses if massive else [(1 / x.kappa1 + 1 / x.kappa2) / 2 for x in states])
    if np.unique(x).size < 2:
        return []
    data = np.stack([series[state] for state in states], axis=1)
    fit, line = _line(quantity, kind, x, data)
    a, b = line.mean(axis=0).tolist()
    changes = (line[:, 1] - b) / b - (line[:, 0] - a) / a
    if massive:
        return [replace(fit, m_c=estimate(-a / b * (1 - changes)))]
    return [replace(fit, kappa_c=estimate(-b / a * (1 + changes)))]


def _extrapolation(
    name: str, kind: ExtrapolationKey, pairs: Sequence[tuple[Array, Array]]
) -> list[ChiralFit]:
    """Fit a line in the squared mass of the pion, whose errors count as well."""
    if len(pairs) < 2:
        return []
    squares, data = (np.stack(x, axis=1) for x in zip(*pairs, strict=True))
    x = squares.mean(axis=0)
    if np.unique(x).size < 2:
        return []
    fit, line = _line(name, kind, x, data)
    for _ in range(STEPS):
        fit, line = _line(name, kind, x, data - line[:, 1].mean() * (squares - x))
    both = zip(fit.points, data.T, strict=True)
    points = tuple(replace(point, error=estimate(series).error) for point, series in both)
    return [replace(fit, points=points)]


STEPS = 5
"""Number of fits with which the slope, and thus the effect of the errors in x, converges."""


def _line(quantity: str, kind: ExtrapolationKey, x: Array, data: Array) -> tuple[ChiralFit, Array]:
    """Fit a straight line, and return it with the series of intercept and slope."""
    fit = fit_line(x, data)
    line = data @ fit.projection.T
    intercept, slope = map(estimate, line.T)
    quality = fit.chi2, fit.chi2_expected, fit.dof, fit.p_value
    words = quantity, kind.source, kind.mu, intercept, slope
    return ChiralFit(*words, None, None, *quality, LinePoint.several(x, data)), line


def baryon_series(table: HadronCorrelators, ranges: Ranges) -> MassSeries:
    """Fit the masses of all baryons of a table, of both parities.

    The state of one parity runs forwards in time, that of the other one backwards. So the
    correlator of one parity at t is averaged with that of the other one at T - t. The state of
    positive parity is the lighter one, so its fitted curve is subtracted where it runs backwards,
    while that of negative parity is negligible there.
    """
    averaged = table.grouped(_baryon)
    series = MassSeries()
    for state in sorted(averaged, key=lambda x: -x.parity):
        correlator = _folded(table, averaged, state)
        partner = series.masses.get(state._replace(parity=1))
        if state.parity == -1 and partner:
            correlator = _without_partner(correlator, partner[0])
        series.fit(state, correlator, ranges)
    return series


def _folded(
    table: HadronCorrelators, averaged: Mapping[HadronState, Array], state: HadronState
) -> Correlator:
    """Return the folded correlator of a baryon."""
    values = averaged[state]
    if state.name.startswith(BOSONS):
        return Correlator(table.sweeps, fold(values, 1), table.extent)
    partner = averaged.get(state._replace(parity=-state.parity))
    half = values[:, : table.extent // 2 + 1]
    if partner is not None:
        around = int(np.sign(values[:, 1].mean() * partner[:, -1].mean()))  # sign after one turn
        half = fold(values, around or 1, partner)
    return Correlator(table.sweeps, half, table.extent, False)


def _without_partner(correlator: Correlator, partner: MassFit) -> Correlator:
    """Return a correlator without the state of the other parity that runs backwards."""
    t = correlator.extent - np.arange(correlator.values.shape[1])
    behind = np.abs(partner.amplitude.value) * np.exp(-partner.mass.value * t)
    end = correlator.values[:, -1].mean()
    return replace(correlator, values=correlator.values - math.copysign(1.0, end) * behind)


def _baryon(labels: Mapping[str, Any]) -> HadronState:
    place = labels["source"], tuple(sorted(abs(int(labels[x.name])) for x in MOMENTA))
    parity = int(labels["parity"])
    return HadronState(labels["baryon"], *parameters_of(quarks_of(labels)), *place, parity=parity)


FIRST_PCAC = 2
"""First t of a PCAC mass. At t = 1 the derivative of the current contains its value at the time of
the source, where the relation has a contact term."""


def meson_series(table: HadronCorrelators, ranges: Ranges) -> MassSeries:
    """Fit the masses of all mesons and the PCAC masses of a table."""
    averaged = table.grouped(_meson)
    if not averaged:
        raise GaugeError(
            "The table has no correlators with the matrices of mesons at source and sink; "
            "measure some."
        )
    series = MassSeries()
    for state, values in averaged.items():
        series.fit(state, Correlator(table.sweeps, fold(values, 1), table.extent), ranges)
    for state, values in table.grouped(_axial).items():
        if density := series.correlators.get(state):
            try:
                series.pcac[state] = _pcac(state, density, fold(values, -1), ranges)
            except GaugeError as error:
                series.left_out.append(MissingMass(f"PCAC mass, {describe(state)}", str(error)))
    return series


def _of_meson(labels: Mapping[str, Any]) -> QuarkParameters:
    return parameters_of(sorted(quarks_of(labels)))


def _meson(labels: Mapping[str, Any]) -> HadronState | None:
    """Return the meson of a correlator with the same matrix at source and sink."""
    gamma = labels["gamma_source"]
    names = [name for name, matrices in MATRICES.items() if gamma in matrices]
    if labels["gamma_sink"] != gamma or not names:
        return None
    momentum = [abs(int(labels[x.name])) for x in MOMENTA]
    matrices = MATRICES[names[0]]
    along = momentum[matrices.index(gamma)] if len(matrices) == 3 else 0
    place = labels["source"], tuple(sorted(momentum)), along
    return HadronState(names[0], *_of_meson(labels), *place)


def _axial(labels: Mapping[str, Any]) -> HadronState | None:
    """Return the pion whose density creates what the axial current annihilates."""
    matrices = labels["gamma_source"], labels["gamma_sink"]
    if matrices != (PSEUDOSCALAR, AXIAL) or any(labels[x.name] for x in MOMENTA):
        return None
    return HadronState(PION, *_of_meson(labels), labels["source"], (0, 0, 0))


def _pcac(
    state: HadronState, density: Correlator, current: Array, ranges: Ranges
) -> tuple[PcacMass, Array]:
    """Return the PCAC mass from <P P> and <A P>, with its series."""
    t = np.arange(FIRST_PCAC, current.shape[1] - 1)
    above = (current[:, t + 1] - current[:, t - 1]) / 4
    below = density.values[:, t]
    series = ratio_series(above, below)
    level = ratio_plateau(series, below, ranges, start=FIRST_PCAC)
    quality = level.t_min, level.t_max, level.fit.chi2, level.fit.chi2_expected
    words = *parameters_of(state.quarks), state.source
    return PcacMass(*words, level.energy, *quality), level.series


def spectrum(
    table: HadronCorrelators, series: MassSeries, chiral: Sequence[ChiralFit] = (), skip: int = 0
) -> Spectrum:
    """Return the masses of an ensemble in the form in which they are written and shown."""
    if not series.masses:
        counts = Counter(_as_clause(x.reason) for x in series.left_out).most_common()
        many = len(counts) > 1
        reasons = [f"{x} ({number} of them)" if many else x for x, number in counts]
        raise GaugeError(
            f"None of {len(series.left_out)} correlators can be fitted: {'; '.join(reasons)}."
        )
    masses = [fit.mass for fit, _ in series.masses.values()]
    values = [x for _, x in series.masses.values()]
    tau = max(mass.tau_int + mass.tau_int_error for mass in masses)
    short = caution_short(int(table.sweeps.size), tau, "the masses")
    return Spectrum(
        ensemble=dict(table.ensemble),
        configurations=int(table.sweeps.size),
        skip=skip,
        masses=tuple(HadronMass(*state, fit=fit) for state, (fit, _) in series.masses.items()),
        pcac=tuple(x for x, _ in series.pcac.values()),
        chiral=tuple(chiral),
        left_out=tuple(series.left_out),
        cautions=(*short, *caution_series(table.sweeps, *values)),
    )


def _as_clause(sentence: str) -> str:
    """Return a sentence as a part of another one."""
    return f"{sentence[0].lower()}{sentence[1:]}".rstrip(".")


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

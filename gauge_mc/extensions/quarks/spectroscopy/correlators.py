"""Correlators of hadrons: their tables, and masses from their exponential decay."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gauge_mc.actions import ensemble_keys
from gauge_mc.analysis import fitting
from gauge_mc.analysis.states import PRECISION, Correlator, EffectiveEnergies, State, known_times
from gauge_mc.analysis.table_series import TableSeries, read_series
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.results import documented, result_field

MOMENTA = (
    Column("px", int, "momentum along x, in units of 2π/L", index=True),
    Column("py", int, "momentum along y", index=True),
    Column("pz", int, "momentum along z", index=True),
)
"""Columns of the momentum."""

AT = "@"
"""Character in the column ``source`` between the kind of a source and its place."""


def _columns(quarks: Sequence[str], *hadron: Column) -> TableColumns:
    """Return the columns of a table of correlators."""
    names = ("kappa1", "kappa2", "mu1", "mu2")
    masses = (
        Column(f"m{n}", float, f"mass of the quarks of {names[n - 1]}", index=True, optional=True)
        for n in (1, 2)
    )
    return TableColumns(
        *(
            Column(name, float, quark, index=True)
            for name, quark in zip(names, quarks, strict=True)
        ),
        *masses,
        Column("source", str, f"kind of the source, and its place after {AT}", index=True),
        *hadron,
        *MOMENTA,
        Column("t", int, "time since the source", index=True),
        Column("re", float, "real part of the correlator"),
        Column("im", float, "imaginary part of the correlator"),
    )


MESONS = _columns(
    (
        "hopping parameter of the antiquark",
        "hopping parameter of the quark",
        "twisted mass of the antiquark, with the opposite sign",
        "twisted mass of the quark",
    ),
    Column("gamma_source", str, "matrix at the source, such as g5 or gxgt", index=True),
    Column("gamma_sink", str, "matrix at the sink", index=True),
)
"""Columns of a table of correlators of mesons."""

BARYONS = _columns(
    (
        "hopping parameter of the u quarks, or of the first quark of a diquark",
        "hopping parameter of the d quark, or of the second quark of a diquark",
        "twisted mass of the quarks of kappa1",
        "twisted mass of the quarks of kappa2",
    ),
    Column("baryon", str, "nucleon, delta, or diquark- and its matrix", index=True),
    Column("parity", int, "1 or -1", index=True),
)
"""Columns of a table of correlators of baryons."""

MESON_COLUMNS, BARYON_COLUMNS = (SWEEP, *MESONS.names), (SWEEP, *BARYONS.names)
"""Names of the columns that all tables have."""

BOSONS = "diquark"
"""Beginning of the names of baryons of two quarks, whose correlators are like those of mesons."""

CORRELATORS = "correlators"
"""Content of the tables, for messages."""

METADATA = (*ensemble_keys(), "csw", "mu", "operator", "boundary", "imaginary_mu")
"""Keys of the header that identify the ensemble and its quarks."""


class Quark(NamedTuple):
    """A kind of quark."""

    kappa: float
    """Hopping parameter."""
    mu: float = 0.0
    """Twisted mass in lattice units."""
    m: float = 0.0
    """Mass in lattice units, for operators that have one; it is then all in which quarks differ."""


def describe_quarks(first: Quark, second: Quark) -> str:
    """Return the parameters of two quarks as text.

    A twisted mass is left out if both are 0, and the hopping parameter if there is a mass or it is
    infinite, as in series of other programs that do not state it.
    """
    parts = {"κ": (first.kappa, second.kappa), "μ": (first.mu, second.mu), "m": (first.m, second.m)}
    if any(parts["m"]):
        parts = {"m": parts["m"]}
    return ", ".join(
        f"{name} = {', '.join(f'{value:g}' for value in dict.fromkeys(values))}"
        for name, values in parts.items()
        if any(values) and np.isfinite(values).all()
    )


@dataclass(frozen=True)
class HadronCorrelators:
    """Correlators of an ensemble."""

    ensemble: Mapping[str, str]
    """Entries of the table's header about the ensemble and the quarks."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending, of shape (configurations,)."""
    labels: tuple[Mapping[str, Any], ...]
    """Identity of each correlator: columns of the table by name, with the kind of the source."""
    values: Array
    """Real parts at t = 0, 1, …, T - 1 since the source, of shape (correlators, configurations, T).
    """

    @property
    def extent(self) -> int:
        """Extent T of the lattice in time."""
        return int(self.values.shape[2])

    def grouped(self, key: Callable[[Mapping[str, Any]], Key | None]) -> dict[Key, Array]:
        """Return averages of the correlators that have the same key."""
        places: dict[Key, list[int]] = {}
        for i, labels in enumerate(self.labels):
            if (group := key(labels)) is not None:
                places.setdefault(group, []).append(i)
        return {
            place: self.values[places[place]].mean(axis=0) for place in sorted(places, key=repr)
        }


Key = TypeVar("Key", bound=Hashable)


def read_hadron_correlators(path: Path, columns: TableColumns, skip: int = 0) -> HadronCorrelators:
    """Read all correlators of a table."""
    table = read_series(path, columns, CORRELATORS, skip)
    labels, values = correlators_of(table)
    for label in labels:
        label["source"] = label["source"].partition(AT)[0]
    return HadronCorrelators(table.stated(METADATA), table.sweeps, tuple(labels), values["re"])


def correlators_of(table: TableSeries) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Return the correlators of a table with one row per time slice."""
    names = [*table.index][:-1]
    elements = [*zip(*(x.tolist() for x in table.index.values()), strict=True)]
    order = sorted(range(len(elements)), key=elements.__getitem__)
    labels = list(dict.fromkeys(elements[n][:-1] for n in order))
    extent = len(order) // len(labels)
    if [elements[n][-1] for n in order] != [*range(extent)] * len(labels):
        raise GaugeError(
            f"{table.source} is incomplete: some correlator does not have every t; measure the "
            "correlators again."
        )
    shape = (table.sweeps.size, len(labels), extent)
    return (
        [dict(zip(names, label, strict=True)) for label in labels],
        {
            name: value[:, order].reshape(shape).swapaxes(0, 1)
            for name, value in table.values.items()
        },
    )


def fold(values: Array, parity: int, mirror: Array | None = None) -> Array:
    """Return the average of a correlator at t and T - t."""
    extent = values.shape[1]
    t = np.arange(extent // 2 + 1)
    partner = values if mirror is None else mirror
    both = (values[:, t] + parity * partner[:, (extent - t) % extent]) / 2
    both[:, 0] = values[:, 0]
    return both


LEAST_TIMES = 2
"""Minimum number of t in a plateau; whether it is level cannot be seen from one."""

TOLERANCE = 0.5
"""Shift by excited states up to which a plateau is accepted, in units of its error."""

SIGNIFICANT = 3.0
"""Number of standard deviations from which on excited states are seen."""

GOOD = 2.0
"""Ratio of chi2 to its expectation up to which a constant and an exponential describe E(t)."""

GAPS = np.linspace(0.2, 3.0, 57)
"""Energies of the excited state above the ground state, in lattice units, that are tried."""


@dataclass(frozen=True)
class LevelSeries:
    """A series that tends to a constant from above."""

    series: Array
    """Linearised time series, of shape (configurations, times)."""
    first: int
    """First t."""

    @cached_property
    def weighting(self) -> tuple[float, bool]:
        """Weighting of the t in all fits."""
        return fitting.weighting(self.series)

    def plateau(self, t_min: int | None = None, average: bool = False) -> State | None:
        """Return the plateau, or None if excited states matter at all t."""
        start: int | None = 0 if t_min is None else t_min - self.first
        if t_min is None:
            excited = self._excited()
            if excited is not None or not average:
                start = self._start(excited)
        if start is None or start >= self.series.shape[1]:
            return None
        count = self.series.shape[1] - start
        starts = range(start, start + (max(1, count + 1 - LEAST_TIMES) if average else 1))
        fits = [self._constant(n) for n in starts]
        lines = [
            self.series[:, n:] @ fit.projection[0] for n, fit in zip(starts, fits, strict=True)
        ]
        weights = fitting.akaike_weights(
            [fit.chi2 for fit in fits], [fit.chi2_expected for fit in fits]
        )
        line, best = np.tensordot(weights, lines, axes=1), int(np.argmax(weights))
        last = self.first + self.series.shape[1] - 1
        return State(estimate(line), 0.0, line, self.first + starts[best], last, 1, fits[best])

    def _constant(self, start: int) -> fitting.LinearFit:
        later = self.series[:, start:]
        points = fitting.Points.of(later, *self.weighting)
        return points.fit(np.ones((later.shape[1], 1)))

    def _start(self, excited: Array | None) -> int | None:
        """Return the index of the first t of a plateau, or None.

        If excited states shift the plateau too much everywhere, it consists of the last t, unless
        the shift exceeds its error. Values agree if the earlier one is larger by at most one
        standard deviation.
        """
        ratio, count = math.inf, self.series.shape[1]
        for t in range(count - LEAST_TIMES + 1):
            plateau, later = self._constant(t).projection[0], self.series[:, t:]
            if excited is not None:
                ratio = abs(plateau @ excited[t:]) / estimate(later @ plateau).error
                if ratio <= TOLERANCE:
                    return t
            elif t > 0:
                excess = estimate(self.series[:, t - 1] - later @ plateau)
                if excess.value <= excess.error:
                    return t
        return count - LEAST_TIMES if ratio <= 1 else None

    def _excited(self) -> Array | None:
        """Return c exp(-gap t) of a fit of E + c exp(-gap t), or None if c is not significant.

        The fit begins at the first t from which on it is good, but has at least four t.
        """
        count = self.series.shape[1]
        for first in range(count - 3):
            later, t = self.series[:, first:], np.arange(count - first)
            designs = [np.stack([np.ones(t.size), np.exp(-gap * t)], axis=1) for gap in GAPS]
            fits = fitting.Points.of(later, *self.weighting).fits(np.stack(designs))
            chi2, expected = min((fit.chi2, fit.chi2_expected) for fit in fits)
            if chi2 <= GOOD * expected or t.size == 4:
                weights = np.exp((chi2 - np.array([fit.chi2 for fit in fits])) / 2)
                weights /= weights.sum()
                c = np.array([fit.projection[1] for fit in fits])  # by gap and t
                size = estimate(later @ (weights @ c))
                if size.value < SIGNIFICANT * size.error:
                    return None
                since = np.arange(count) - first
                parts = (c @ later.mean(axis=0))[:, None] * np.exp(-GAPS[:, None] * since)
                return np.asarray(weights @ parts)
        return None


MATRICES: Mapping[str, tuple[str, ...]] = {
    "pion": ("g5",),
    "rho": ("gx", "gy", "gz"),
    "a0": ("unit",),
    "a1": ("gxg5", "gyg5", "gzg5"),
    "b1": ("gygz", "gxgz", "gxgy"),
}
"""Matrices of each meson; if there are three, they are its components along x, y and z."""

PSEUDOSCALAR, AXIAL = "g5", "gtg5"
"""Matrices of the density and of the time component of the current in the PCAC relation."""

PION = next(iter(MATRICES))
"""The meson whose mass vanishes with the quark mass."""


class ExtrapolationKey(NamedTuple):
    """The source and the twisted mass that all hadrons of an extrapolation share."""

    source: str
    """Kind of the source."""
    mu: float
    """Twisted mass of all quarks."""


class HadronState(NamedTuple):
    """A hadron state: the hadron with its quarks, source, momentum and polarisation."""

    name: str
    """Name of the hadron."""
    kappa1: float
    """Hopping parameter of the first quark; those of mesons are in ascending order."""
    kappa2: float
    """Hopping parameter of the second quark."""
    mu1: float
    """Twisted mass of the first quark, in the same order."""
    mu2: float
    """Twisted mass of the second quark."""
    m1: float
    """Mass of the first quark, for operators that have one; else 0."""
    m2: float
    """Mass of the second quark."""
    source: str
    """Kind of the source."""
    momentum: tuple[int, ...]
    """Absolute values of the components in ascending order, in units of 2 pi over the extent."""
    polarisation: int = 0
    """Absolute value of the momentum's component along the direction of a vector; else 0."""
    parity: int = 0
    """Parity of a baryon, 1 or -1; 0 for mesons."""

    @property
    def label(self) -> str:
        """Name of the hadron with its parity, as in the results of fits."""
        return self.name + {1: "+", -1: "-", 0: ""}[self.parity]

    @property
    def at_rest(self) -> bool:
        """Whether the momentum is zero."""
        return not any(self.momentum)

    @property
    def quarks(self) -> tuple[Quark, Quark]:
        """The quarks with their hopping parameters, twisted masses and masses."""
        return Quark(self.kappa1, self.mu1, self.m1), Quark(self.kappa2, self.mu2, self.m2)

    @property
    def kind(self) -> ExtrapolationKey | None:
        """Source and twisted mass of its extrapolation; None if its quarks differ in mu."""
        return ExtrapolationKey(self.source, self.mu1) if self.mu1 == self.mu2 else None


def describe(state: HadronState) -> str:
    """Return the name of a hadron with its parity, momentum and quarks."""
    words = [state.label]
    if not state.at_rest:
        words.append(f"p = ({','.join(map(str, state.momentum))})")
        words += [f"along {state.polarisation}"] if len(MATRICES.get(state.name, ())) == 3 else []
    return ", ".join([*words, describe_quarks(*state.quarks)])


QuarkParameters = tuple[float, float, float, float, float, float]
"""Hopping parameters, twisted masses and masses of two quarks."""


def parameters_of(quarks: Iterable[Quark]) -> QuarkParameters:
    """Return the hopping parameters, then the twisted masses and the masses of two quarks."""
    first, second = quarks
    return first.kappa, second.kappa, first.mu, second.mu, first.m, second.m


def quarks_of(labels: Mapping[str, Any]) -> list[Quark]:
    """Return the quarks of a correlator, given its labels."""
    numbers = ({k: float(labels.get(f"{k}{n}", 0)) for k in Quark._fields} for n in (1, 2))
    return [Quark(**number) for number in numbers]


def ratio_series(above: Array, below: Array) -> Array:
    """Return the linearised series of the ratio of two averages."""
    mean, scale = above.mean(axis=0), below.mean(axis=0)
    ratio = mean / scale
    return np.asarray(ratio + (above - mean) / scale - ratio * (below - scale) / scale)


def ratio_plateau(
    series: Array, below: Array, ranges: Ranges, precision: float = PRECISION, start: int = 1
) -> State:
    """Return the plateau of a ratio at t = start, start + 1, …."""
    scale = below.mean(axis=0)
    errors = np.array([estimate(x).error for x in (below / scale).T])
    errors *= PRECISION / precision  # which `Ranges.last` compares with
    count = series.shape[1]
    if count < LEAST_TIMES:
        raise GaugeError(
            f"A plateau needs {LEAST_TIMES} times from t = {start} on, and the correlators have "
            f"{count}; use a lattice that is longer in time."
        )
    precision_at = np.where(scale > 0, errors, np.nan)
    last = min(ranges.last(precision_at, after=start - 1), start + count - 1)
    first = max(ranges.t_min or start, start)
    used = series[:, first - start : last - start + 1]
    if last < first + LEAST_TIMES - 1 or (np.ptp(used, axis=0) == 0).any():
        raise too_noisy()
    # The rule is for an approach from above, and near the source the ratio may oscillate: it holds
    # for both signs where the later of the two plateaus begins.
    plateaus = [
        LevelSeries(sign * used, first).plateau(ranges.t_min and first, ranges.average)
        for sign in (1, -1)
    ]
    if not all(plateaus):
        raise too_noisy()
    later = max((x for x in plateaus if x), key=lambda plateau: plateau.t_min)
    if later is plateaus[0]:
        return later
    return replace(later, energy=estimate(-later.series), series=-later.series)


LARGEST_DECAY = 600.0
"""Largest product of the guess of a mass and the last t, beyond which exponentials vanish."""

LEAST_POINTS = 3
"""Minimum number of t in a fit: one more than the number of parameters."""

TWO_STATES_POINTS = 6
"""Minimum number of t in a fit of two states: two more than the number of parameters."""

LARGEST_BIAS = 0.25
"""Largest effect of a second state on a mass, in units of its error."""

LEAST_GAP = 0.2
"""Smallest guess of the gap between two states, in lattice units."""


@documented
@dataclass(frozen=True)
class MassFit:
    """A mass from a fit of a correlator."""

    mass: Estimate = result_field("The mass, or the energy at nonzero momentum, in lattice units.")
    amplitude: Estimate = result_field("A, in lattice units.")
    t_min: int = result_field(
        "First t of the fit; of the most probable one if several were averaged."
    )
    t_max: int = result_field(
        "Last t of the fit; of the most probable one if several were averaged."
    )
    chi2: float = result_field("chi2 of the fit.")
    chi2_expected: float = result_field(
        "Expectation of chi2, which is dof if the fit is correlated."
    )
    dof: int = result_field("Degrees of freedom.")
    correlated: bool = result_field(
        "True if the t are weighted by their inverse covariance matrix, False if by their "
        "errors alone."
    )
    systematic: float = result_field(
        "Scatter of the mass among the ranges of t that were averaged; NaN if only one was used.",
        math.nan,
    )


@dataclass(frozen=True)
class Ranges:
    """The choice of the times that are fitted.

    Raises
    ------
    UsageError
        If `t_min` is not below `t_max`, or negative.
    """

    t_min: int | None = None
    """First t. By default the first one at which the second state of a fit of two states moves the
    mass by at most `LARGEST_BIAS` of its error; or if two states cannot be fitted, the first t of
    the plateau of the effective mass.
    """
    t_max: int | None = None
    """Last t. By default the last that is known to better than 10 %."""
    average: bool = False
    """Whether to average over all first t with Akaike weights; see `akaike_weights`."""

    def __post_init__(self) -> None:
        first = 1 if self.t_min is None else self.t_min
        if first < 1:
            raise UsageError(f"--t-min is {first}; choose a time from 1 on.")
        if self.t_max is not None and self.t_max < first + LEAST_POINTS - 1:
            raise UsageError(
                f"--t-max is {self.t_max}; a fit from t = {first} on needs at least "
                f"{first + LEAST_POINTS - 1}."
            )

    def last(self, precision: Array, after: int = 1) -> int:
        """Return the last t to fit."""
        count = known_times(precision, PRECISION if self.t_max is None else math.inf)
        return count + after if self.t_max is None else min(count + after, self.t_max)


def fit_mass(correlator: Correlator, ranges: Ranges) -> tuple[MassFit, Array]:
    """Fit the mass of a correlator, and return it with its linearised time series."""
    effective = correlator.effective()
    last = ranges.last(effective.precision[0])
    first = 1 if ranges.t_min is None else ranges.t_min
    if correlator.extent // 2 - first + 1 < LEAST_POINTS:
        raise GaugeError(
            f"A fit needs {LEAST_POINTS} times from t = {first} on, but those of the correlator of "
            f"a lattice with T = {correlator.extent} end at t = {correlator.extent // 2}; use a "
            "longer lattice, or a smaller --t-min."
        )
    if last - first + 1 < LEAST_POINTS:
        end = first + LEAST_POINTS - 1
        positive = replace(ranges, t_max=end).last(effective.precision[0]) == end
        names = f", or name the times anyway, as in --t-min {first} --t-max {end}"
        raise too_noisy(names * (positive and ranges.t_max is None))
    used = correlator.values[:, first : last + 1]
    if (np.ptp(used, axis=0) == 0).any():
        raise GaugeError(
            "The correlators do not fluctuate, so the configurations are all the same; generate "
            "different ones."
        )
    # After the correction of the bias it may have any sign and size.
    guess = min(abs(float(effective.series[:, 0].mean(axis=0)[last - 2])), LARGEST_DECAY / last)
    fitter = _Fitter(correlator, last, guess, fitting.weighting(used))
    if ranges.t_min is None and not ranges.average:
        plateau = min(_onset(effective, last), last + 1 - LEAST_POINTS)
        first = fitter.onset() or plateau
    ends = range(first, last + 2 - LEAST_POINTS) if ranges.average else [first]
    fits = [fitter.one_state(end) for end in ends]
    expected = [fit.fit.chi2_expected for fit in fits]
    weights = fitting.akaike_weights([fit.fit.chi2 for fit in fits], expected)
    best = int(np.argmax(weights))
    logs, masses = np.tensordot(weights, [fit.series for fit in fits], axes=1).T
    size = math.copysign(math.exp(logs.mean()), correlator.values.mean(axis=0)[1])
    amplitude, fit = estimate(size * (1 + logs - logs.mean())), fits[best].fit
    values = np.array([fit.values[1] for fit in fits])
    systematic = float(fitting.scatter(weights, values)) if ranges.average else math.nan
    quality = fit.chi2, fit.chi2_expected, fit.dof, fit.correlated, systematic
    return MassFit(estimate(masses), amplitude, ends[best], last, *quality), masses


def too_noisy(otherwise: str = "") -> GaugeError:
    """Return the error for a correlator of which no range can be fitted."""
    return GaugeError(
        f"The correlator is too noisy for a fit; measure more configurations{otherwise}."
    )


def _onset(effective: EffectiveEnergies, last: int) -> int:
    """Return the first t of the plateau of an effective mass, which is from t and t + 1.

    The rule for plateaus is for an approach from above. If source and sink differ, amplitudes of
    excited states may be negative and the mass may rise. So the rule holds for both signs, and the
    later plateau counts.
    """
    used = effective.series[:, 0, : last - effective.start]
    plateaus = [LevelSeries(sign * used, effective.start).plateau() for sign in (1, -1)]
    starts = [plateau.t_min for plateau in plateaus if plateau]
    if len(starts) < len(plateaus):
        raise GaugeError(
            f"The effective mass has no plateau up to t = {last}, because excited states "
            "contribute or because it is too noisy; measure more configurations, use a longer "
            f"lattice, or name the times, as in --t-min {last + 1 - LEAST_POINTS} --t-max {last}."
        )
    return max(starts)


@dataclass(frozen=True)
class _Fitter:
    """Fits of a correlator up to the same last t.

    Attributes
    ----------
    correlator : Correlator
        Folded correlator.
    last : int
        Last t.
    guess : float
        Guess of the mass.
    weighting : tuple of float and bool
        See `gauge_mc.analysis.fitting.weighting`.
    """

    correlator: Correlator
    last: int
    guess: float
    weighting: tuple[float, bool]

    def one_state(self, first: int) -> fitting.CurveFit:
        """Fit one state from a time on."""
        t = np.arange(first, self.last + 1)
        curve, values = self.correlator.curve(t), self.correlator.values[:, t]
        unit = curve(np.array([0.0, self.guess]))[0]
        log = math.log(max(float(values.mean(axis=0)[-1] / unit[-1]), 1e-300))
        start = np.array([log, self.guess])
        fit = fitting.fit_curve(curve, start, values, *self.weighting)
        log, mass = fit.values
        if self.correlator.periodic and mass < 0:  # with -mass the curve is the same
            start = np.array([log - self.correlator.extent * mass, -mass])
            fit = fitting.fit_curve(curve, start, values, *self.weighting)
        return fit

    def two_states(self, first: int) -> fitting.CurveFit:
        """Fit two states from a time on, beginning with those of the late times."""
        late = self.one_state((first + self.last) // 2).values
        t = np.arange(first, self.last + 1)
        values, gap = self.correlator.values[:, t], max(late[1], LEAST_GAP)
        ground = self.correlator.curve(t)(late)[0]
        excited = self.correlator.curve(t)(late + np.array([0.0, gap]))[0]
        weight = (values.mean(axis=0)[0] - ground[0]) / excited[0]
        start = np.array([*late, weight, math.log(gap)])
        curve = self.correlator.two_states(t)
        return fitting.fit_curve(curve, start, values, *self.weighting)

    def onset(self) -> int | None:
        """Return the first t from which one state may be fitted; see `Ranges`.

        It is None if two states cannot be fitted.
        """
        for first in range(1, self.last + 2 - TWO_STATES_POINTS):
            try:
                two = self.two_states(first)
            except GaugeError:
                continue
            expected = two.fit.chi2_expected
            if two.fit.chi2 <= expected + 2 * math.sqrt(2 * expected):
                return self._onset_of(two, first)
        return None

    def _onset_of(self, two: fitting.CurveFit, start: int) -> int:
        """Return the first t at which the second state moves the mass by little."""
        for first in range(start, self.last + 2 - LEAST_POINTS):
            t = np.arange(first, self.last + 1)
            model = self.correlator.two_states(t)(two.values)[0]
            excited = model - self.correlator.curve(t)(two.values[:2])[0]
            try:
                single = self.one_state(first)
            except GaugeError:
                continue
            bias = abs(single.fit.projection[1] @ excited)
            if bias < LARGEST_BIAS * estimate(single.series[:, 1]).error:
                return first
        return self.last + 1 - LEAST_POINTS

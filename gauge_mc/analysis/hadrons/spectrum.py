"""Masses of mesons and baryons, the PCAC mass, and their dependence on the quark mass.

Mesons are read from correlators with the same matrix Gamma at source and sink; the matrices are
those of `gauge_mc.quarks.gamma`. Correlators that have the same expectation value are averaged:
those of all components of a matrix with spatial indices, of momenta that are related by a symmetry
of the cubic lattice, and of all places of a source.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.fitting.linear_fit import can_invert, fit_linear
from gauge_mc.analysis.hadrons.correlators import (
    BOSONS,
    MOMENTA,
    HadronCorrelators,
    Quark,
    describe_quarks,
    fold,
)
from gauge_mc.analysis.hadrons.masses import (
    Correlator,
    MassFit,
    Ranges,
    fit_mass,
    one_energy,
    too_noisy,
)
from gauge_mc.analysis.potential.plateau_search import LEAST_TIMES, find_plateaus
from gauge_mc.analysis.potential.plateaus import PlateauPoint
from gauge_mc.analysis.timeseries import Estimate, caution_series, caution_short, estimate
from gauge_mc.errors import GaugeError

Array = NDArray[np.float64]

MESONS: Mapping[str, tuple[str, ...]] = {
    "pion": ("g5",),
    "rho": ("gx", "gy", "gz"),
    "a0": ("unit",),
    "a1": ("gxg5", "gyg5", "gzg5"),
    "b1": ("gygz", "gxgz", "gxgy"),
}
"""Matrices of each meson; if there are three, they are its components along x, y and z."""

PSEUDOSCALAR, AXIAL = "g5", "gtg5"
"""Matrices of the density and of the time component of the current in the PCAC relation."""

PION = next(iter(MESONS))
"""The meson whose mass vanishes with the quark mass."""


class ExtrapolationKey(NamedTuple):
    """The source and the twisted mass that all hadrons of an extrapolation share.

    Attributes
    ----------
    source : str
        Kind of the source.
    mu : float
        Twisted mass of all quarks.
    """

    source: str
    mu: float


class HadronState(NamedTuple):
    """A hadron state: the hadron with its quarks, source, momentum and polarisation.

    Attributes
    ----------
    name : str
        Name of the hadron.
    kappa1, kappa2, mu1, mu2 : float
        Hopping parameters and twisted masses of its quarks, for mesons in ascending order.
    source : str
        Kind of the source.
    momentum : tuple of int
        Absolute values of the components in ascending order, in units of 2 pi over the extent.
    polarisation : int
        Absolute value of the momentum's component along the direction of a vector; else 0.
    parity : int
        Parity of a baryon, 1 or -1; 0 for mesons.
    """

    name: str
    kappa1: float
    kappa2: float
    mu1: float
    mu2: float
    source: str
    momentum: tuple[int, ...]
    polarisation: int = 0
    parity: int = 0

    @property
    def at_rest(self) -> bool:
        """Whether the momentum is zero."""
        return not any(self.momentum)

    @property
    def quarks(self) -> tuple[Quark, Quark]:
        """The quarks with their hopping parameters and twisted masses."""
        return Quark(self.kappa1, self.mu1), Quark(self.kappa2, self.mu2)

    @property
    def kind(self) -> ExtrapolationKey | None:
        """Source and twisted mass of its extrapolation; None if its quarks differ in mu."""
        return ExtrapolationKey(self.source, self.mu1) if self.mu1 == self.mu2 else None

    @property
    def inverse_kappa(self) -> float:
        """Mean of the inverse hopping parameters of the quarks."""
        return (1 / self.kappa1 + 1 / self.kappa2) / 2


@dataclass(frozen=True)
class HadronMass:
    """A mass of a hadron, or its energy at nonzero momentum.

    Attributes
    ----------
    name : str
        Name of the hadron.
    kappa1, kappa2 : float
        Hopping parameters of its quarks.
    mu1, mu2 : float
        Twisted masses of its quarks.
    source : str
        Kind of the source.
    momentum : tuple of int
        Components of the momentum up to signs and order, in units of 2 pi over the extent.
    polarisation : int
        Component of the momentum along the direction of a vector meson; 0 for other hadrons.
    parity : int
        Parity of a baryon; 0 for mesons.
    fit : MassFit
        The mass with its fit.
    """

    name: str
    kappa1: float
    kappa2: float
    mu1: float
    mu2: float
    source: str
    momentum: tuple[int, ...]
    polarisation: int
    parity: int
    fit: MassFit


@dataclass(frozen=True)
class PcacMass:
    """The quark mass of the PCAC relation, unrenormalised and unimproved.

    Attributes
    ----------
    kappa1, kappa2 : float
        Hopping parameters of the quarks; the mass is the mean of both.
    mu1, mu2 : float
        Twisted masses of the quarks.
    source : str
        Kind of the source.
    mass : Estimate
        [<A(t + 1) P> - <A(t - 1) P>] / (4 <P(t) P>) in lattice units, averaged over a plateau.
    t_min, t_max : int
        First and last t of the plateau.
    chi2, chi2_expected : float
        chi2 of the fit of a constant, and its expectation.
    """

    kappa1: float
    kappa2: float
    mu1: float
    mu2: float
    source: str
    mass: Estimate
    t_min: int
    t_max: int
    chi2: float
    chi2_expected: float


@dataclass(frozen=True)
class ChiralPoint:
    """A point of an extrapolation.

    Attributes
    ----------
    x : float
        Abscissa.
    value, error : float
        Ordinate, and its standard error.
    """

    x: float
    value: float
    error: float


@dataclass(frozen=True)
class ChiralFit:
    """A straight line through masses at several hopping parameters.

    Attributes
    ----------
    quantity : str
        ``"pion^2"`` and ``"pcac"`` for the squared mass of the pion and the PCAC mass against the
        mean of 1/kappa1 and 1/kappa2, or the name of a hadron for its mass against the squared
        mass of the pion.
    source : str
        Kind of the source.
    mu : float
        Twisted mass of all quarks.
    intercept, slope : Estimate
        Value at x = 0, which for a hadron is its mass in the chiral limit, and slope of the line.
    kappa_c : Estimate or None
        Critical hopping parameter, at which the line vanishes; None for hadrons.
    chi2, chi2_expected : float
        chi2 of the fit, and its expectation.
    dof : int
        Degrees of freedom.
    p_value : float
        Probability of a larger chi2 if the masses are on a line.
    points : tuple of ChiralPoint
        The points of the fit.
    """

    quantity: str
    source: str
    mu: float
    intercept: Estimate
    slope: Estimate
    kappa_c: Estimate | None
    chi2: float
    chi2_expected: float
    dof: int
    p_value: float
    points: tuple[ChiralPoint, ...]


class MissingMass(NamedTuple):
    """A hadron mass or PCAC mass that could not be determined, and why.

    Its text is both on one line.

    Attributes
    ----------
    name : str
        Name with the momentum and the quarks.
    reason : str
        Why it could not be determined, in a sentence.
    """

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True)
class Spectrum:
    """Masses of the hadrons of an ensemble.

    Attributes
    ----------
    ensemble : mapping of str to str
        Group, beta, lattice and action of the ensemble and parameters of the quarks, as far as the
        header of the table states them.
    configurations : int
        Number of configurations.
    skip : int
        Last update that was left out.
    masses : tuple of HadronMass
        All masses and energies that could be determined.
    pcac : tuple of PcacMass
        PCAC masses, if the table has the correlators.
    chiral : tuple of ChiralFit
        Extrapolations in the quark mass, if there are several.
    left_out : tuple of MissingMass
        Hadrons and PCAC masses whose correlators are too noisy; in JSON, a line of text each.
    cautions : tuple of str
        Cautions about the errors, one sentence each.
    """

    ensemble: Mapping[str, str]
    configurations: int
    skip: int = 0
    masses: tuple[HadronMass, ...] = ()
    pcac: tuple[PcacMass, ...] = ()
    chiral: tuple[ChiralFit, ...] = ()
    left_out: tuple[MissingMass, ...] = ()
    cautions: tuple[str, ...] = ()


@dataclass
class MassSeries:
    """Linearised time series of the masses of an ensemble, from which extrapolations follow.

    Attributes
    ----------
    correlators : dict of HadronState to Correlator
        All folded correlators.
    masses : dict of HadronState to (MassFit, ndarray)
        Masses with their series, shape (configurations,).
    pcac : dict of HadronState to (PcacMass, ndarray)
        PCAC masses with their series.
    left_out : list of MissingMass
        Hadrons without a mass and PCAC masses that are not known, and why.
    """

    correlators: dict[HadronState, Correlator] = field(default_factory=dict)
    masses: dict[HadronState, tuple[MassFit, Array]] = field(default_factory=dict)
    pcac: dict[HadronState, tuple[PcacMass, Array]] = field(default_factory=dict)
    left_out: list[MissingMass] = field(default_factory=list)

    def fit(self, state: HadronState, correlator: Correlator, ranges: Ranges) -> None:
        """Fit the correlator of a hadron."""
        self.correlators[state] = correlator
        try:
            self.masses[state] = fit_mass(correlator, ranges)
        except GaugeError as error:
            self.left_out.append(MissingMass(describe(state), str(error)))


def describe(state: HadronState) -> str:
    """Return the name of a hadron with its parity, momentum and quarks."""
    words = [state.name + {1: "+", -1: "-", 0: ""}[state.parity]]
    if not state.at_rest:
        words.append(f"p = ({','.join(map(str, state.momentum))})")
        words += [f"along {state.polarisation}"] if len(MESONS.get(state.name, ())) == 3 else []
    return ", ".join([*words, describe_quarks(*state.quarks)])


def meson_series(table: HadronCorrelators, ranges: Ranges) -> MassSeries:
    """Fit the masses of all mesons and the PCAC masses of a table.

    Raises
    ------
    GaugeError
        If there is no correlator of a meson of `MESONS`.
    """
    averaged = table.grouped(_meson)
    if not averaged:
        raise GaugeError(
            "The table has no correlators with the matrices of mesons at source and sink; "
            "measure some."
        )
    found = MassSeries()
    for state, values in averaged.items():
        found.fit(state, Correlator(table.sweeps, fold(values, 1), table.extent), ranges)
    axial = table.grouped(_axial)
    for state, values in axial.items():
        if density := found.correlators.get(state):
            try:
                found.pcac[state] = _pcac(state, density, fold(values, -1), ranges)
            except GaugeError as error:
                found.left_out.append(MissingMass(f"PCAC mass, {describe(state)}", str(error)))
    return found


def _parameters(quarks: Iterable[Quark]) -> tuple[float, float, float, float]:
    """Return the hopping parameters and then the twisted masses of two quarks."""
    one, other = quarks
    return one.kappa, other.kappa, one.mu, other.mu


def _quarks(labels: Mapping[str, Any]) -> list[Quark]:
    return [Quark(float(labels[f"kappa{n}"]), float(labels[f"mu{n}"])) for n in (1, 2)]


def _of_meson(labels: Mapping[str, Any]) -> tuple[float, float, float, float]:
    return _parameters(sorted(_quarks(labels)))


def _meson(labels: Mapping[str, Any]) -> HadronState | None:
    """Return the meson of a correlator with the same matrix at source and sink."""
    gamma = labels["gamma_source"]
    names = [name for name, matrices in MESONS.items() if gamma in matrices]
    if labels["gamma_sink"] != gamma or not names:
        return None
    momentum = [abs(int(labels[one.name])) for one in MOMENTA]
    matrices = MESONS[names[0]]
    along = momentum[matrices.index(gamma)] if len(matrices) == 3 else 0
    place = labels["source"], tuple(sorted(momentum)), along
    return HadronState(names[0], *_of_meson(labels), *place)


def _axial(labels: Mapping[str, Any]) -> HadronState | None:
    """Return the pion whose density creates what the axial current annihilates."""
    if (labels["gamma_source"], labels["gamma_sink"]) != (PSEUDOSCALAR, AXIAL):
        return None
    if any(labels[one.name] for one in MOMENTA):
        return None
    return HadronState(PION, *_of_meson(labels), labels["source"], (0, 0, 0))


def _pcac(
    state: HadronState, density: Correlator, current: Array, ranges: Ranges
) -> tuple[PcacMass, Array]:
    """Return the PCAC mass from <P P> and <A P>, with its series."""
    t = np.arange(1, current.shape[1] - 1)
    above = (current[:, t + 1] - current[:, t - 1]) / 4
    below = density.values[:, t]
    mean, scale = above.mean(axis=0), below.mean(axis=0)
    ratio = mean / scale
    series = ratio + (above - mean) / scale - ratio * (below - scale) / scale
    errors = np.array([estimate(one).error for one in (below / scale).T])
    energies = one_energy(density.sweeps, series, np.where(scale > 0, errors, np.nan))
    last = min(ranges.last(energies.precision[0]) - 1, energies.t[-1])
    first = ranges.t_min
    if last < (first or 1) + LEAST_TIMES - 1:
        raise too_noisy()

    def plateau(sign: int) -> tuple[PlateauPoint, Array]:
        turned = replace(energies, series=sign * energies.series)
        try:
            found = find_plateaus([turned], first, last, average=ranges.average)
        except GaugeError as error:
            raise too_noisy() from error
        return found.points[0], sign * found.series[:, 0]

    # The rule is for an approach from above, and near the source the ratio may oscillate: it holds
    # for both signs where the later of the two plateaus begins.
    point, masses = max((plateau(1), plateau(-1)), key=lambda one: one[0].t_min)
    return _pcac_mass(state, point, masses), masses


def _pcac_mass(state: HadronState, point: PlateauPoint, series: Array) -> PcacMass:
    quality = point.t_min, point.t_max, point.chi2, point.chi2_expected
    return PcacMass(*_parameters(state.quarks), state.source, estimate(series), *quality)


def baryon_series(table: HadronCorrelators, ranges: Ranges) -> MassSeries:
    """Fit the masses of all baryons of a table, of both parities.

    The state of one parity runs forwards in time, that of the other one backwards. So the
    correlator of one parity at t is averaged with that of the other one at T - t. The state of
    positive parity is the lighter one, so its fitted curve is subtracted where it runs backwards,
    while that of negative parity is negligible there.
    """
    averaged = table.grouped(_baryon)
    found = MassSeries()
    for state in sorted(averaged, key=lambda one: -one.parity):
        correlator = _folded(table, averaged, state)
        partner = found.masses.get(state._replace(parity=1))
        if state.parity == -1 and partner:
            correlator = _without_partner(correlator, partner[0])
        found.fit(state, correlator, ranges)
    return found


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
        half = fold(values, _sign(values, partner), partner)
    return Correlator(table.sweeps, half, table.extent, False)


def _sign(values: Array, partner: Array) -> int:
    """Return the sign of a baryon after one turn around the lattice in time."""
    return int(np.sign(values[:, 1].mean() * partner[:, -1].mean())) or 1


def _without_partner(correlator: Correlator, partner: MassFit) -> Correlator:
    """Return a correlator without the state of the other parity that runs backwards."""
    t = correlator.extent - np.arange(correlator.values.shape[1])
    behind = np.abs(partner.amplitude.value) * np.exp(-partner.mass.value * t)
    end = correlator.values[:, -1].mean()
    return replace(correlator, values=correlator.values - math.copysign(1.0, end) * behind)


def _baryon(labels: Mapping[str, Any]) -> HadronState:
    momentum = tuple(sorted(abs(int(labels[one.name])) for one in MOMENTA))
    place = labels["source"], momentum
    parity = int(labels["parity"])
    return HadronState(labels["baryon"], *_parameters(_quarks(labels)), *place, parity=parity)


def chiral_fits(pions: MassSeries, others: MassSeries) -> list[ChiralFit]:
    """Extrapolate masses at rest in the quark mass, for every kind of source and twisted mass.

    All quarks of a hadron have the same twisted mass, and those of a baryon also the same hopping
    parameter, since its mass depends on which of them is heavier. The squared mass of the pion is a
    line in 1/kappa only without a twisted mass.

    Parameters
    ----------
    pions : MassSeries
        Masses that include those of the pion, and the PCAC masses.
    others : MassSeries
        Masses of hadrons that are extrapolated to a massless pion; they may be the same. They must
        be from the same configurations.

    Returns
    -------
    list of ChiralFit
        Those for which there are at least two different quark masses.
    """
    found = []
    squares = {
        state: fit.mass.value**2 + 2 * fit.mass.value * (series - fit.mass.value)
        for state, (fit, series) in pions.masses.items()
        if state.name == PION and state.at_rest
    }
    pcac = {state: series for state, (_, series) in pions.pcac.items()}
    for kind in dict.fromkeys(state.kind for state in squares if state.kind):
        found += _critical("pion^2", kind, squares) if not kind.mu else []
        found += _critical("pcac", kind, pcac)
        at_rest = (one for one in others.masses if one.kind == kind and one.at_rest)
        heavy = [one for one in at_rest if not one.parity or one.kappa1 == one.kappa2]
        for name, parity in dict.fromkeys((one.name, one.parity) for one in heavy):
            if name == PION:
                continue
            pairs = [
                (squares[pion], others.masses[state][1])
                for state in heavy
                if (state.name, state.parity) == (name, parity)
                and (pion := _pion_of(state)) in squares
            ]
            label = name + {1: "+", -1: "-", 0: ""}[parity]
            found += _extrapolation(label, kind, pairs)
    return found


def _pion_of(state: HadronState) -> HadronState:
    """Return the pion at rest of the same quarks."""
    return HadronState(PION, *_parameters(sorted(state.quarks)), state.source, (0, 0, 0))


def _critical(
    quantity: str, kind: ExtrapolationKey, series: Mapping[HadronState, Array]
) -> list[ChiralFit]:
    """Fit a line in 1/kappa, and return it with the point at which it vanishes."""
    chosen = [state for state in series if state.kind == kind and state.at_rest]
    x = np.array([state.inverse_kappa for state in chosen])
    if np.unique(x).size < 2:
        return []
    data = np.stack([series[state] for state in chosen], axis=1)
    fit, line = _line(quantity, kind, x, data)
    a, b = (line.mean(axis=0)).tolist()
    kappa_c = -b / a * (1 + (line[:, 1] - b) / b - (line[:, 0] - a) / a)
    return [replace(fit, kappa_c=estimate(kappa_c))]


def _extrapolation(
    name: str, kind: ExtrapolationKey, pairs: Sequence[tuple[Array, Array]]
) -> list[ChiralFit]:
    """Fit a line in the squared mass of the pion, whose errors count as well."""
    if len(pairs) < 2:
        return []
    squares, data = (np.stack(one, axis=1) for one in zip(*pairs, strict=True))
    x = squares.mean(axis=0)
    if np.unique(x).size < 2:
        return []
    fit, line = _line(name, kind, x, data)
    for _ in range(STEPS):
        fit, line = _line(name, kind, x, data - line[:, 1].mean() * (squares - x))
    errors = [estimate(one).error for one in data.T]
    points = tuple(
        replace(point, error=error) for point, error in zip(fit.points, errors, strict=True)
    )
    return [replace(fit, points=points)]


STEPS = 5
"""Number of fits with which the slope, and thus the effect of the errors in x, converges."""


def _line(quantity: str, kind: ExtrapolationKey, x: Array, data: Array) -> tuple[ChiralFit, Array]:
    """Fit a straight line, and return it with the series of intercept and slope."""
    estimates = [estimate(one) for one in data.T]
    tau_int = float(np.mean([one.tau_int for one in estimates]))
    correlated = can_invert(x.size, len(data) / (2 * tau_int))
    fit = fit_linear(np.stack([np.ones_like(x), x], axis=1), data, tau_int, correlated)
    line = data @ fit.projection.T
    points = zip(x.tolist(), estimates, strict=True)
    return ChiralFit(
        quantity,
        *kind,
        estimate(line[:, 0]),
        estimate(line[:, 1]),
        None,
        fit.chi2,
        fit.chi2_expected,
        fit.dof,
        fit.p_value,
        tuple(ChiralPoint(at, one.value, one.error) for at, one in points),
    ), line


def spectrum(
    table: HadronCorrelators, series: MassSeries, chiral: Sequence[ChiralFit] = (), skip: int = 0
) -> Spectrum:
    """Return the masses of an ensemble in the form in which they are written and shown.

    Raises
    ------
    GaugeError
        If there is none, because no correlator is known well enough.
    """
    if not series.masses:
        counts = Counter(one.reason.rstrip(".") for one in series.left_out).most_common()
        raise GaugeError(
            f"None of {len(series.left_out)} correlators can be fitted; "
            + "; ".join(f"{number} of them: {reason}" for reason, number in counts)
            + "."
        )
    fits = [fit for fit, _ in series.masses.values()]
    return Spectrum(
        ensemble=dict(table.ensemble),
        configurations=int(table.sweeps.size),
        skip=skip,
        masses=tuple(HadronMass(*state, fit=fit) for state, (fit, _) in series.masses.items()),
        pcac=tuple(one for one, _ in series.pcac.values()),
        chiral=tuple(chiral),
        left_out=tuple(series.left_out),
        cautions=tuple(_cautions(table, fits, [one for _, one in series.masses.values()])),
    )


def _cautions(
    table: HadronCorrelators, fits: Iterable[MassFit], series: Iterable[Array]
) -> list[str]:
    """Return cautions about short series and about thermalisation."""
    tau = max(one.mass.tau_int + one.mass.tau_int_error for one in fits)
    short = caution_short(int(table.sweeps.size), tau, "the masses")
    return [*short, *caution_series(table.sweeps, *series)]

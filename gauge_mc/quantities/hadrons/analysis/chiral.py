"""Extrapolations of masses in the quark mass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gauge_mc.analysis.fitting.linear_fit import can_invert, fit_linear
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array
from gauge_mc.quantities.hadrons.analysis.mass_series import MassSeries
from gauge_mc.quantities.hadrons.analysis.results import ChiralFit, ChiralPoint
from gauge_mc.quantities.hadrons.analysis.states import (
    PION,
    ExtrapolationKey,
    HadronState,
    parameters_of,
)


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
        heavy = [one for one in at_rest if not one.parity or one.quarks[0] == one.quarks[1]]
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
    return HadronState(PION, *parameters_of(sorted(state.quarks)), state.source, (0, 0, 0))


def _critical(
    quantity: str, kind: ExtrapolationKey, series: Mapping[HadronState, Array]
) -> list[ChiralFit]:
    """Fit a line in 1/kappa or in the mass, and return it with the point at which it vanishes."""
    chosen = [state for state in series if state.kind == kind and state.at_rest]
    massive = any(state.mean_mass for state in chosen)
    x = np.array([one.mean_mass if massive else one.inverse_kappa for one in chosen])
    if np.unique(x).size < 2:
        return []
    data = np.stack([series[state] for state in chosen], axis=1)
    fit, line = _line(quantity, kind, x, data)
    a, b = (line.mean(axis=0)).tolist()
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
        None,
        fit.chi2,
        fit.chi2_expected,
        fit.dof,
        fit.p_value,
        tuple(ChiralPoint(at, one.value, one.error) for at, one in points),
    ), line

"""Masses of baryons, of both parities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gauge_mc.arrays import Array
from gauge_mc.quantities.hadrons.analysis.correlators import (
    BOSONS,
    MOMENTA,
    HadronCorrelators,
    fold,
)
from gauge_mc.quantities.hadrons.analysis.folded import Correlator
from gauge_mc.quantities.hadrons.analysis.mass_series import MassSeries
from gauge_mc.quantities.hadrons.analysis.masses import MassFit, Ranges
from gauge_mc.quantities.hadrons.analysis.states import HadronState, parameters_of, quarks_of


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
    return HadronState(labels["baryon"], *parameters_of(quarks_of(labels)), *place, parity=parity)

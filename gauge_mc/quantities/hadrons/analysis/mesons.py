"""Masses of mesons and the PCAC mass.

Mesons are read from correlators with the same matrix Gamma at source and sink; the matrices are
those of `gauge_mc.quarks.vectors.gamma`. Correlators that have the same expectation value are
averaged: those of all components of a matrix with spatial indices, of momenta that are related by
a symmetry of the cubic lattice, and of all places of a source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.hadrons.analysis.correlators import MOMENTA, HadronCorrelators, fold
from gauge_mc.quantities.hadrons.analysis.folded import Correlator
from gauge_mc.quantities.hadrons.analysis.mass_series import MassSeries
from gauge_mc.quantities.hadrons.analysis.masses import Ranges
from gauge_mc.quantities.hadrons.analysis.plateaus import ratio_plateau, ratio_series
from gauge_mc.quantities.hadrons.analysis.results import MissingMass, PcacMass
from gauge_mc.quantities.hadrons.analysis.states import (
    AXIAL,
    MESONS,
    PION,
    PSEUDOSCALAR,
    HadronState,
    QuarkParameters,
    describe,
    parameters_of,
    quarks_of,
)
from gauge_mc.quantities.potential.analysis.plateaus import PlateauPoint

FIRST_PCAC = 2
"""First t of a PCAC mass. At t = 1 the derivative of the current contains its value at the time of
the source, where the relation has a contact term."""


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


def _of_meson(labels: Mapping[str, Any]) -> QuarkParameters:
    return parameters_of(sorted(quarks_of(labels)))


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
    t = np.arange(FIRST_PCAC, current.shape[1] - 1)
    above = (current[:, t + 1] - current[:, t - 1]) / 4
    below = density.values[:, t]
    series = ratio_series(above, below)
    point, masses = ratio_plateau(density.sweeps, series, below, ranges, start=FIRST_PCAC)
    return _pcac_mass(state, point, masses), masses


def _pcac_mass(state: HadronState, point: PlateauPoint, series: Array) -> PcacMass:
    quality = point.t_min, point.t_max, point.chi2, point.chi2_expected
    return PcacMass(*parameters_of(state.quarks), state.source, estimate(series), *quality)

"""Linearised time series of masses."""

from __future__ import annotations

from dataclasses import dataclass, field

from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.hadrons.analysis.folded import Correlator
from gauge_mc.quantities.hadrons.analysis.masses import MassFit, Ranges, fit_mass
from gauge_mc.quantities.hadrons.analysis.results import MissingMass, PcacMass
from gauge_mc.quantities.hadrons.analysis.states import HadronState, describe


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

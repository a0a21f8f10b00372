"""The static potential of an ensemble with its fits, and cautions about them."""

from __future__ import annotations

from dataclasses import dataclass

from gauge_mc.analysis.fitting.linear_fit import POOR
from gauge_mc.analysis.timeseries.estimates import caution_short
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.potential.analysis.distances import TRUSTED_DISTANCES
from gauge_mc.quantities.potential.analysis.forces import ForcePoint, ForceScale
from gauge_mc.quantities.potential.analysis.plateau_search import LOOP_PRECISION
from gauge_mc.quantities.potential.analysis.plateaus import PlateauPoint
from gauge_mc.quantities.potential.analysis.window_fits import RangeAverage, WindowScan
from gauge_mc.results import documented, result_field

LOOPS, CORRELATORS = "loops", "correlators"
"""Sources of V(R): Wilson loops, or correlators of Polyakov loops."""


@documented
@dataclass(frozen=True)
class StaticPotential:
    """V(R) of an ensemble, with its fits."""

    smearing: int = result_field("Number of smearing iterations of the loops used.")
    configurations: int = result_field("Number of configurations.")
    independent: float = result_field("Effective number of independent configurations.")
    plateau: str = result_field("Rule for the plateaus in t, in words.")
    window: str = result_field("Rule for the window in R, in words.")
    points: tuple[PlateauPoint, ...] = result_field("V(R), sorted by R.")
    free: WindowScan | None = result_field("Fit with B free; None if no fit can be trusted.")
    string: WindowScan | None = result_field("Fit with B = -pi/12; None if no fit can be trusted.")
    ensemble: dict[str, str] = result_field("Group, beta and lattice of the ensemble.", dict)
    correlated_plateaus: bool = result_field(
        "Whether all plateaus are weighted by the inverse covariance matrix of their t, or "
        "all by the errors alone.",
        True,
    )
    left_out: tuple[str, ...] = result_field(
        "Paths and distances that have loops, but no plateau.",
        (),
    )
    nambu_goto: WindowScan | None = result_field(
        "Fit of the Nambu-Goto string to the distances R >= r0; None if there are too few.",
        None,
    )
    force: tuple[ForcePoint, ...] = result_field(
        "Forces between neighbouring distances on each path, sorted by r_I.",
        (),
    )
    force_scales: dict[str, ForceScale] = result_field(
        "Scales ``r0``, ``r1`` and ``rc`` from the force on axis, as far as it brackets them.",
        dict,
    )
    averaged: dict[str, RangeAverage] = result_field(
        "Quantities of the fit with B free, averaged over windows in R if that was asked for.",
        dict,
    )
    levels: tuple[int, ...] = result_field(
        "Smearing levels of a variational analysis; empty for loops at one level.",
        (),
    )
    reference: str = result_field("Reference time t0 of the variational analysis, in words.", "")
    excited: tuple[PlateauPoint, ...] = result_field(
        "First excited energies of a variational analysis.",
        (),
    )
    notes: tuple[str, ...] = result_field("Further cautions, one sentence each.", ())
    skip: int = result_field("Last update that was left out.", 0)
    t_step: int = result_field("Distance of the values of t of the loops.", 1)
    source: str = result_field(
        '``"loops"`` for Wilson loops, or ``"correlators"`` for correlators of Polyakov '
        "loops. The t of the points then are the extent of the lattice in time.",
        LOOPS,
    )
    refused: tuple[str, ...] = result_field(
        "Why there is no fit with B free, or with B = -pi/12, one sentence each.",
        (),
    )

    @property
    def fits(self) -> dict[str, WindowScan]:
        """The fits that can be trusted, by the name of their attribute."""
        found = {"free": self.free, "string": self.string, "nambu_goto": self.nambu_goto}
        return {name: scan for name, scan in found.items() if scan}

    def trusted(self) -> WindowScan:
        """Return the fit with B free.

        Raises
        ------
        GaugeError
            If it cannot be trusted; the sentence says why.
        """
        if self.free is None:
            raise GaugeError(next(iter(self.refused), "There is no fit of V(R)."))
        return self.free

    @property
    def cautions(self) -> list[str]:
        """Cautions about these results, one sentence each."""
        tau_int = self.configurations / (2 * self.independent)
        found = [*self.refused, *caution_short(self.configurations, tau_int), *self.notes]
        if self.left_out and self.source == CORRELATORS:
            found.append(
                "Distances left out, because C(R) is negative or known to less than "
                f"{LOOP_PRECISION:.0%}: {', '.join(self.left_out)}."
            )
        elif self.left_out:
            found.append(
                f"Distances without a plateau of at least two t: {', '.join(self.left_out)}; "
                "--single includes plateaus of one t."
            )
        alone = [one for one in self.points if one.t_min == one.t_max and self.source == LOOPS]
        if alone:
            names = ", ".join(f"{one.path} R = {one.distance:.4g}" for one in alone)
            found.append(f"Plateaus of a single t, which cannot be seen to be level: {names}.")
        fit = self.free.fit if self.free else None
        if fit and not fit.correlated:
            found.append(
                "The fits weight each V(R) by its error alone, because the inverse covariance "
                f"matrix of {len(self.points)} points needs more configurations; the errors of the "
                "results include all correlations."
            )
        if not self.correlated_plateaus:
            found.append(
                "The plateaus weight each t by its error alone, for all R alike, because the "
                "inverse covariance matrices need more configurations."
            )
        shifted = [one for one in self.points if one.contaminated]
        if shifted:
            found.append(
                "Excited states may shift V(R) by more than half of its error at "
                f"{', '.join(f'{one.path} R = {one.distance:.4g}' for one in shifted)}; measure "
                "larger t, smear more, or analyse several smearing levels with --levels."
            )
        if fit and fit.p_value < POOR:
            found.append(
                f"The fit is poor (p = {fit.p_value:.1g}): try a larger r_min, or plateaus from a "
                "larger t_min."
            )
        if fit and fit.dof < TRUSTED_DISTANCES - 3:
            found.append(
                "The fit with B free has a single degree of freedom, so that chi2 hardly tells "
                "whether the form fits; choose a wider window."
            )
        if fit and fit.r0.value > self.points[-1].distance:
            found.append(
                f"r0/a = {fit.r0.value:.3g} is beyond the largest distance with a plateau, "
                f"R = {self.points[-1].distance:.4g}: it rests on the form of the fit."
            )
        return found


def short_chi2(chi2: float) -> str:
    """Return chi2 or its expectation with one decimal place, or one digit if it is below 1.

    The chi2 of a fit that weights by errors alone can be far below 1.
    """
    return f"{chi2:.1f}" if chi2 >= 1 else f"{chi2:.1g}"

"""Results of fits of V(R) to windows of distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.arrays import Array
from gauge_mc.quantities.potential.analysis.plateaus import PlateauPoint
from gauge_mc.quantities.potential.analysis.strings import string_energy
from gauge_mc.results import documented, result_field

ROOT_SIGMA = 440.0
"""Square root of the string tension in MeV, which sets the scale. It is a
convention: in pure gauge theory it defines what 1 fm is."""

CORNELL, NAMBU_GOTO = "cornell", "nambu-goto"
"""Forms of V(R): A + B/R + sigma R, and the ground state of the Nambu-Goto string."""

CONTINUUM, LATTICE = "continuum", "lattice"
"""Forms of 1/R in fits: the geometric distance, or the Coulomb potential on the lattice, 1/d_I."""

UNKNOWN = Estimate(math.nan, math.nan, math.nan, math.nan, 0)
"""A quantity that was not determined."""


@documented
@dataclass(frozen=True, kw_only=True)
class WindowFit:
    """A fit of V(R) to the distances r_min <= R <= r_max."""

    b_free: bool = result_field("True if B was fitted, False if it was set to -pi/12.")
    r_min: float = result_field("Smallest distance fitted, in lattice units.")
    r_max: float = result_field("Largest distance fitted, in lattice units.")
    points: int = result_field("Number of fitted points.")
    A: Estimate = result_field("The constant A a in lattice units.", symbol="A a")
    B: Estimate = result_field("The coefficient of 1/R.", symbol="B")
    sigma: Estimate = result_field("String tension sigma a^2 in lattice units.", symbol="σ a²")
    root_sigma: Estimate = result_field("sqrt(sigma a^2).", UNKNOWN, symbol="√σ a")
    spacing: Estimate = result_field(
        "a in fm, from sqrt(sigma) = 440 MeV; NaN if sigma is not positive.",
        symbol="a",
        unit="fm",
    )
    r0: Estimate = result_field(
        "Scale r0/a, at which r^2 dV/dr is 1.65; NaN if there is no such r.",
        symbol="r₀/a",
    )
    r1: Estimate = result_field(
        "Scale r1/a, at which r^2 dV/dr is 1; NaN if there is no such r.",
        symbol="r₁/a",
    )
    rc: Estimate = result_field("Scale r_c/a, at which r^2 dV/dr is 0.65.", UNKNOWN, symbol="r_c/a")
    covariance: tuple[tuple[float, ...], ...] = result_field(
        "3 x 3 covariance matrix of A, B and sigma."
    )
    chi2: float = result_field("Minimum of chi2.")
    chi2_expected: float = result_field(
        "Expectation of the minimum of chi2, which is dof if the fit is correlated.",
    )
    dof: int = result_field("Degrees of freedom.")
    correlated: bool = result_field(
        "True if the points are weighted by their inverse covariance matrix, False if by their "
        "errors alone, because there are too few independent samples for the matrix. The "
        "errors of the parameters include all correlations in both cases.",
    )
    form: str = result_field(
        '``"cornell"`` for A + B/R + sigma R, or ``"nambu-goto"`` for A + sigma R sqrt(1 - '
        "pi/(6 sigma R^2)), where B is -pi/12 for large R.",
        CORNELL,
    )
    coulomb: str = result_field(
        '``"continuum"`` if the term B/R has the geometric distance, ``"lattice"`` if 1/R is '
        "the Coulomb potential on the lattice.",
        CONTINUUM,
    )
    systematic: dict[str, float] = result_field(
        "Systematic errors of the quantities, by name, from the range of t: from the ranges "
        "that were averaged, or else the change with plateaus that begin one step later, "
        "beyond its statistical error; empty if it is not known. They are not in the errors.",
        dict,
    )
    p_value: float = result_field(
        "Probability of a larger chi2 if the form is right, from the distribution of chi2 with "
        "the weights of the fit (M. Bruno and R. Sommer, arXiv:2209.14188); NaN in results of "
        "versions that did not compute it.",
        math.nan,
    )

    def potential(self, r: Array) -> tuple[Array, Array]:
        """Return the fitted V(r) in the continuum and its error, in lattice units, at r > 0."""
        if self.form == NAMBU_GOTO:
            level, slope = string_energy(r, self.sigma.value)
            design = np.stack([np.ones_like(r), np.zeros_like(r), slope], axis=1)
            value = self.A.value + level
        else:
            design = np.stack([np.ones_like(r), 1 / r, r], axis=1)
            value = design @ [self.A.value, self.B.value, self.sigma.value]
        variance = np.einsum("ri,ij,rj->r", design, np.array(self.covariance), design)
        return value, np.sqrt(np.maximum(variance, 0.0))

    def continuum(self, points: Sequence[PlateauPoint]) -> Array:
        """Return V(R) of points, without the lattice artefact of the Coulomb term if it is known.

        The artefact is B (1/d_I - 1/R), if the fit contains 1/d_I.
        """
        value = np.array([one.potential.value for one in points])
        r, improved = (
            np.array([getattr(one, x) for one in points]) for x in ("distance", "improved")
        )
        lattice = self.coulomb == LATTICE and self.form == CORNELL
        return value - self.B.value * (1 / improved - 1 / r) if lattice else value


@documented
@dataclass(frozen=True)
class RangeAverage:
    """A quantity averaged over windows in R with Akaike weights."""

    value: Estimate = result_field("The average, with its statistical error.")
    systematic: float = result_field(
        "Scatter of the quantity among the windows, its systematic error from the ranges of "
        "t, and 1/sqrt(3) of its change with the other form of 1/R beyond the statistical "
        "error, in quadrature.",
    )


@documented
@dataclass(frozen=True)
class WindowScan:
    """A fit, and fits to other windows of distances."""

    fit: WindowFit = result_field("Fit to the chosen window.")
    from_r: tuple[WindowFit, ...] = result_field(
        "Fits to all windows with the same r_max, sorted by r_min.",
    )
    to_r: tuple[WindowFit, ...] = result_field(
        "Fits to all windows with the same r_min, sorted by r_max.",
    )
    window: dict[str, float] = result_field(
        "Systematic errors of the quantities, by name, from the window and the form: the "
        "largest change, beyond its statistical error, when one end of the window moves by up"
        " to one lattice unit, or 1/sqrt(3) of it when 1/R is replaced by its other form, "
        "among fits that are not poor. A quantity without any such fit is missing.",
        dict,
    )

    def systematic(self, name: str) -> float:
        """Return the systematic error of a quantity, from the range of t and from the window.

        Parameters
        ----------
        name : str
            Name of an attribute of `WindowFit`, such as ``"r0"``.

        Returns
        -------
        float
            Both in quadrature, in the units of the quantity.
        """
        return math.hypot(self.fit.systematic.get(name, 0.0), self.window.get(name, 0.0))

    def known_systematic(self, name: str) -> float | None:
        """Return `systematic`, or None if neither of the two errors is known."""
        known = name in self.fit.systematic or name in self.window
        return self.systematic(name) if known else None

    def error(self, name: str) -> float:
        """Return the statistical and the systematic error of a quantity in quadrature."""
        return math.hypot(getattr(self.fit, name).error, self.systematic(name))

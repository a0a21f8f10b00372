"""Results of fits of masses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.quantities.hadrons.analysis.masses import MassFit
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
        "Components of the momentum up to signs and order, in units of 2 pi over the extent.",
    )
    polarisation: int = result_field(
        "Component of the momentum along the direction of a vector meson; 0 for other hadrons.",
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
        "[<A(t + 1) P> - <A(t - 1) P>] / (4 <P(t) P>) in lattice units, averaged over a plateau.",
    )
    t_min: int = result_field("First t of the plateau.")
    t_max: int = result_field("Last t of the plateau.")
    chi2: float = result_field("chi2 of the fit of a constant.")
    chi2_expected: float = result_field("Expectation of chi2.")


@documented
@dataclass(frozen=True)
class ChiralPoint:
    """A point of an extrapolation."""

    x: float = result_field("Abscissa.")
    value: float = result_field("Ordinate.")
    error: float = result_field("Standard error of the ordinate.")


@documented
@dataclass(frozen=True)
class ChiralFit:
    """A straight line through masses at several hopping parameters."""

    quantity: str = result_field(
        '``"pion^2"`` and ``"pcac"`` for the squared mass of the pion and the PCAC mass '
        "against the mean of 1/kappa1 and 1/kappa2, or of m1 and m2 for operators with a mass, or "
        "the name of a hadron for its mass against the squared mass of the pion.",
    )
    source: str = result_field("Kind of the source.")
    mu: float = result_field("Twisted mass of all quarks.")
    intercept: Estimate = result_field(
        "Value at x = 0, which for a hadron is its mass in the chiral limit."
    )
    slope: Estimate = result_field("Slope of the line.")
    kappa_c: Estimate | None = result_field(
        "Critical hopping parameter, at which the line vanishes; None for hadrons, and for "
        "operators with a mass.",
    )
    m_c: Estimate | None = result_field(
        "Mass m at which the line vanishes, for operators that have one; None for others.",
    )
    chi2: float = result_field("chi2 of the fit.")
    chi2_expected: float = result_field("Expectation of chi2.")
    dof: int = result_field("Degrees of freedom.")
    p_value: float = result_field("Probability of a larger chi2 if the masses are on a line.")
    points: tuple[ChiralPoint, ...] = result_field("The points of the fit.")


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
        " as the header of the table states them.",
    )
    configurations: int = result_field("Number of configurations.")
    skip: int = result_field("Last update that was left out.", 0)
    masses: tuple[HadronMass, ...] = result_field(
        "All masses and energies that could be determined.",
        (),
    )
    pcac: tuple[PcacMass, ...] = result_field("PCAC masses, if the table has the correlators.", ())
    chiral: tuple[ChiralFit, ...] = result_field(
        "Extrapolations in the quark mass, if there are several.",
        (),
    )
    left_out: tuple[MissingMass, ...] = result_field(
        "Hadrons and PCAC masses whose correlators are too noisy; in JSON, a line of text each.",
        (),
    )
    cautions: tuple[str, ...] = result_field("Cautions about the errors, one sentence each.", ())

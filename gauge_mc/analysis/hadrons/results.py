"""Results of fits of masses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gauge_mc.analysis.hadrons.masses import MassFit
from gauge_mc.analysis.timeseries.estimates import Estimate


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

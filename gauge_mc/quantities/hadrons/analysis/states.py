"""Hadrons of which correlators are, and the matrices of mesons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gauge_mc.quantities.hadrons.analysis.correlators import Quark, describe_quarks

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
    def at_rest(self) -> bool:
        """Whether the momentum is zero."""
        return not any(self.momentum)

    @property
    def quarks(self) -> tuple[Quark, Quark]:
        """The quarks with their hopping parameters, twisted masses and masses."""
        one = Quark(self.kappa1, self.mu1, self.m1)
        return one, Quark(self.kappa2, self.mu2, self.m2)

    @property
    def kind(self) -> ExtrapolationKey | None:
        """Source and twisted mass of its extrapolation; None if its quarks differ in mu."""
        return ExtrapolationKey(self.source, self.mu1) if self.mu1 == self.mu2 else None

    @property
    def inverse_kappa(self) -> float:
        """Mean of the inverse hopping parameters of the quarks."""
        return (1 / self.kappa1 + 1 / self.kappa2) / 2

    @property
    def mean_mass(self) -> float:
        """Mean of the masses of the quarks; 0 for operators with hopping parameters alone."""
        return (self.m1 + self.m2) / 2


def describe(state: HadronState) -> str:
    """Return the name of a hadron with its parity, momentum and quarks."""
    words = [state.name + {1: "+", -1: "-", 0: ""}[state.parity]]
    if not state.at_rest:
        words.append(f"p = ({','.join(map(str, state.momentum))})")
        words += [f"along {state.polarisation}"] if len(MESONS.get(state.name, ())) == 3 else []
    return ", ".join([*words, describe_quarks(*state.quarks)])


QuarkParameters = tuple[float, float, float, float, float, float]
"""Hopping parameters, twisted masses and masses of two quarks."""


def parameters_of(quarks: Iterable[Quark]) -> QuarkParameters:
    """Return the hopping parameters, then the twisted masses and the masses of two quarks."""
    one, other = quarks
    return one.kappa, other.kappa, one.mu, other.mu, one.m, other.m


def quarks_of(labels: Mapping[str, Any]) -> list[Quark]:
    """Return the quarks of a correlator, given its labels."""
    numbers = ({k: float(labels.get(f"{k}{n}", 0)) for k in Quark._fields} for n in (1, 2))
    return [Quark(**one) for one in numbers]

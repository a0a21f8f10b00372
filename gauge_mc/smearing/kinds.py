"""The kinds of smearing: APE, HYP and stout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from gauge_mc import smearing
from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.decorated_links import DecoratedLinks, alphas_in_words
from gauge_mc.fields.field import Field
from gauge_mc.options import Option

APE = Kernel("ape")

SPACE = 3
"""Number of spatial dimensions."""

MAX_WEIGHT = 1e6
"""Largest w. The projection of the staples alone is the limit of large w."""

MAX_ALPHA = 0.999999
"""Largest alpha; 1 would be the staples alone."""

WEIGHT = 0.2
"""Default of w, as in arXiv:1010.4834, section 4."""


@smearing.SMEARINGS.register
@dataclass(frozen=True)
class Ape(smearing.DirectedSmearing):
    """APE smearing U -> P[U + w sum of staples], by default of the links in space.

    N. Cardoso and P. Bicudo, arXiv:1010.4834, eq. (18), after M. Albanese et al., Phys. Lett. B
    192 (1987) 163. For six staples they divide by 1 + 6 w, which has no effect, because P[M] does
    not depend on the normalisation of M. All staples consist of links before the iteration.

    Attributes
    ----------
    weight : float
        Weight w of the staples, at least 0.
    dims : int
        4 for the six staples in all planes, 3 for those along directions that are not excluded: by
        default the four staples in space.
    projection : str
        Projection P, one of `PROJECTIONS`.
    exclude : str
        Letters of the directions whose links are not smeared, or ``none``.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    weight: float = WEIGHT
    dims: int = SPACE
    projection: str = smearing.PROJECTIONS[0]
    exclude: str = smearing.EXCLUDE.default

    name: ClassVar[str] = "ape"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "weight",
            float,
            "w in U → P[U + w Σ of the staples].",
            default=f"{WEIGHT}",
            metavar="W",
            least=0,
            most=MAX_WEIGHT,
        ),
        Option(
            "alpha",
            float,
            "α in U → P[(1 − α) U + α/n Σ of the n staples], instead of w.",
            least=0,
            most=MAX_ALPHA,
        ),
        Option(
            "dims",
            int,
            "Dimensions of the staples.",
            default=f"{SPACE}, only in space",
            metavar="3|4",
            least=SPACE,
            most=SPACE + 1,
        ),
        smearing.PROJECTION,
        smearing.EXCLUDE,
    )
    positional: ClassVar[tuple[str, ...]] = ("weight", "dims")

    def __post_init__(self) -> None:
        self.check_bounds(weight=self.weight, dims=self.dims)
        smearing.check_projection(self.projection)
        smearing.smeared_directions(self.exclude)

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Ape:
        """Return the smearing with the given options; `weight` and `alpha` exclude each other."""
        if "weight" in values and "alpha" in values:
            raise UsageError("--weight and --alpha are two forms of the same parameter; give one.")
        if "alpha" in values:
            return cls.from_alpha(**values)
        return cls(**values)

    @classmethod
    def from_alpha(
        cls,
        alpha: float,
        dims: int = SPACE,
        projection: str = smearing.PROJECTIONS[0],
        exclude: str = smearing.EXCLUDE.default,
    ) -> Ape:
        """Return the smearing U -> P[(1 - alpha) U + alpha / n sum of the n staples].

        This is the other usual form. It is the same smearing with w = alpha / (n (1 - alpha)).

        Raises
        ------
        UsageError
            If alpha is not from 0 to `MAX_ALPHA`, or another value is invalid.
        """
        cls.check_bounds(alpha=alpha)
        staples = cls(0.0, dims, projection, exclude).staples
        return cls(alpha / ((1 - alpha) * staples), dims, projection, exclude)

    @property
    def alpha(self) -> float:
        """Parameter alpha = n w / (1 + n w) of the other form, with n staples."""
        weights = self.staples * self.weight
        return weights / (1 + weights)

    @property
    def along(self) -> tuple[int, ...]:
        """Directions along which staples extend."""
        return self.directions if self.dims == SPACE else tuple(range(SPACE + 1))

    @property
    def staples(self) -> int:
        """Number of staples of a link."""
        return 2 * (len(self.along) - 1)

    @property
    def uses_time(self) -> bool:
        """Whether smeared links in space depend on links in direction t."""
        return smearing.DIRECTIONS.index("t") in self.along

    def __str__(self) -> str:
        usual = self.exclude == smearing.EXCLUDE.default
        links = "spatial links" if usual else smearing.directions_in_words(self.directions)
        return (
            f"APE, U -> P[U + w sum of staples], w = {self.weight:.6g} (alpha = {self.alpha:.6g}), "
            f"{links}, staples in {len(self.along)} dimensions, {self.projection} projection"
        )

    def __call__(self, source: Field, target: Field) -> None:
        """Write the smeared links of `source` to `target`; see `Smearing`."""
        for slab, smeared in zip(source.slabs, target.slabs, strict=True):
            slab.launch(
                APE,
                slab.whole(),
                source=slab.buffer.address,
                target=smeared.buffer.address,
                weight=self.weight,
                directions=self.bits,
                staples=sum(1 << mu for mu in self.along),
                unitary=self.projection == "polar",
            )
        target.exchange_halo()


ALPHAS = (0.75, 0.6, 0.3)
"""Default parameters, as in hep-lat/0103029."""


@smearing.SMEARINGS.register
@dataclass(frozen=True)
class Hyp(smearing.DirectedSmearing):
    """HYP smearing, whose staples stay within the hypercubes that contain the link.

    A. Hasenfratz and F. Knechtli, hep-lat/0103029. A link U is replaced by the projection of (1 -
    alpha1) U + alpha1 / 6 times the sum of its six staples. The links of these staples are
    themselves decorated: each by the four staples, with alpha2, in the two directions that are
    left. The links of those are decorated by two staples each, with alpha3. If one direction is
    excluded, there are two levels, with alpha2 and alpha3; without t this is the spatial HYP
    smearing in three dimensions. If two directions are excluded, there is one level, with alpha3.
    An iteration needs the memory of six more fields, or of two if one direction is excluded.

    Attributes
    ----------
    alpha1, alpha2, alpha3 : float
        Parameters from 0 to 1, for six, four and two staples.
    exclude : str
        Letters of the directions whose links are not smeared and along which no staples extend,
        or ``none``.
    projection : str
        Projection to the group, one of `PROJECTIONS`.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    alpha1: float = ALPHAS[0]
    alpha2: float = ALPHAS[1]
    alpha3: float = ALPHAS[2]
    exclude: str = smearing.EXCLUDE.default
    projection: str = smearing.PROJECTIONS[0]

    name: ClassVar[str] = "hyp"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "alpha1",
            float,
            "α of six staples; unused with excluded directions.",
            default=f"{ALPHAS[0]}",
            least=0,
            most=1,
        ),
        Option(
            "alpha2",
            float,
            "α of four staples, in three dimensions.",
            default=f"{ALPHAS[1]}",
            least=0,
            most=1,
        ),
        Option(
            "alpha3", float, "α of two staples in a plane.", default=f"{ALPHAS[2]}", least=0, most=1
        ),
        smearing.EXCLUDE,
        smearing.PROJECTION,
    )
    positional: ClassVar[tuple[str, ...]] = ("alpha1", "alpha2", "alpha3")

    def __post_init__(self) -> None:
        self.check_bounds(alpha1=self.alpha1, alpha2=self.alpha2, alpha3=self.alpha3)
        smearing.check_projection(self.projection)
        smearing.smeared_directions(self.exclude)

    def __str__(self) -> str:
        alphas = (self.alpha1, self.alpha2, self.alpha3)[-len(self.directions) + 1 :]
        return (
            f"HYP, {alphas_in_words(alphas)}, "
            f"{smearing.directions_in_words(self.directions)}, staples in their hypercubes, "
            f"{self.projection} projection"
        )

    def __call__(self, source: Field, target: Field) -> None:
        """Write the smeared links of `source` to `target`; see `Smearing`."""
        self._links(source, target)

    @cached_property
    def _links(self) -> DecoratedLinks:
        """The decorated links that replace those of a field."""
        smeared = self.bits
        x, y, z, t = (smeared & ~(1 << mu) if smeared >> mu & 1 else 0 for mu in range(4))
        alphas = (self.alpha1, self.alpha2, self.alpha3)
        return DecoratedLinks((x, y, z, t), alphas, self.projection == smearing.PROJECTIONS[1])


STOUT = Kernel("stout")

RHO = 0.1
"""Default of rho, as in hep-lat/0311018."""

MAX_RHO = 1.0
"""Largest rho. A smearing with rho > 1/8 in four dimensions or 1/6 in three roughens the field."""

MAX_NORM = 1.4
"""Largest norm of a matrix whose exponential a kernel computes to full precision."""


@smearing.SMEARINGS.register
@dataclass(frozen=True)
class Stout(smearing.DirectedSmearing):
    """Stout smearing U -> exp(rho P[sum of staples U^dagger]) U with the traceless antihermitian P.

    C. Morningstar and M. Peardon, hep-lat/0311018, eqs. (1) to (3), with rho_mu_nu = rho for all
    directions that are not excluded, and 0 for the others. All staples consist of links before the
    iteration. An iteration is one Euler step of size rho of the Wilson flow in these directions.

    Attributes
    ----------
    rho : float
        Weight of the staples, from 0 to `MAX_RHO`.
    exclude : str
        Letters of the directions whose links are not smeared and along which no staples extend,
        or ``none``.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    rho: float = RHO
    exclude: str = smearing.EXCLUDE.default

    name: ClassVar[str] = "stout"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "rho",
            float,
            "ρ in U → exp(ρ P[Σ of the staples U†]) U.",
            default=f"{RHO}",
            metavar="RHO",
            least=0,
            most=MAX_RHO,
        ),
        smearing.EXCLUDE,
    )
    positional: ClassVar[tuple[str, ...]] = ("rho",)

    def __post_init__(self) -> None:
        self.check_bounds(rho=self.rho)
        smearing.smeared_directions(self.exclude)

    def __str__(self) -> str:
        return (
            "stout, U -> exp(rho P[sum of staples U^dagger]) U, "
            f"rho = {self.rho:.6g} (Wilson flow, Euler step {self.rho:.6g}), "
            f"{smearing.directions_in_words(self.directions)}, staples in their planes"
        )

    def __call__(self, source: Field, target: Field) -> None:
        """Write the smeared links of `source` to `target`; see `Smearing`."""
        colours, staples = source.group.colours, 2 * (len(self.directions) - 1)
        largest = self.rho * staples * 2 * (colours - 1) / colours  # bound of the exponent's norm
        for slab, smeared in zip(source.slabs, target.slabs, strict=True):
            slab.launch(
                STOUT,
                slab.whole(),
                source=slab.buffer.address,
                target=smeared.buffer.address,
                rho=self.rho,
                directions=self.bits,
                factors=max(1, math.ceil(largest / MAX_NORM)),
            )
        target.exchange_halo()

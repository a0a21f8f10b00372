"""APE smearing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.smearing import (
    DIRECTIONS,
    EXCLUDE,
    PROJECTION,
    PROJECTIONS,
    SMEARINGS,
    DirectedSmearing,
    check_projection,
    directions_in_words,
    smeared_directions,
)

APE = Kernel("ape")

SPACE = 3
"""Number of spatial dimensions."""

MAX_WEIGHT = 1e6
"""Largest w. The projection of the staples alone is the limit of large w."""

MAX_ALPHA = 0.999999
"""Largest alpha; 1 would be the staples alone."""

WEIGHT = 0.2
"""Default of w, as in arXiv:1010.4834, section 4."""


@SMEARINGS.register
@dataclass(frozen=True)
class Ape(DirectedSmearing):
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
    projection: str = PROJECTIONS[0]
    exclude: str = EXCLUDE.default

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
        PROJECTION,
        EXCLUDE,
    )
    positional: ClassVar[tuple[str, ...]] = ("weight", "dims")

    def __post_init__(self) -> None:
        self.check_bounds(weight=self.weight, dims=self.dims)
        check_projection(self.projection)
        smeared_directions(self.exclude)

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
        projection: str = PROJECTIONS[0],
        exclude: str = EXCLUDE.default,
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
        return DIRECTIONS.index("t") in self.along

    def __str__(self) -> str:
        usual = self.exclude == EXCLUDE.default
        links = "spatial links" if usual else directions_in_words(self.directions)
        return (
            f"APE, U -> P[U + w sum of staples], w = {self.weight:.6g} (alpha = {self.alpha:.6g}), "
            f"{links}, staples in {len(self.along)} dimensions, {self.projection} projection"
        )

    def __call__(self, source: Field, target: Field) -> None:
        """Write the smeared links of `source` to `target`; see `Smearing`."""
        for slab, other in zip(source.slabs, target.slabs, strict=True):
            slab.launch(
                APE,
                slab.whole(),
                source=slab.buffer.address,
                target=other.buffer.address,
                weight=self.weight,
                directions=self.bits,
                staples=sum(1 << mu for mu in self.along),
                unitary=self.projection == "polar",
            )
        target.exchange_halo()

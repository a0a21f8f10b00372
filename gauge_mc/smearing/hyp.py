"""HYP smearing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from gauge_mc.fields.decorated_links import DecoratedLinks, alphas_in_words
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.smearing import (
    EXCLUDE,
    PROJECTION,
    PROJECTIONS,
    SMEARINGS,
    DirectedSmearing,
    check_projection,
    directions_in_words,
    smeared_directions,
)

ALPHAS = (0.75, 0.6, 0.3)
"""Default parameters, as in hep-lat/0103029."""


@SMEARINGS.register
@dataclass(frozen=True)
class Hyp(DirectedSmearing):
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
    exclude: str = EXCLUDE.default
    projection: str = PROJECTIONS[0]

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
        EXCLUDE,
        PROJECTION,
    )
    positional: ClassVar[tuple[str, ...]] = ("alpha1", "alpha2", "alpha3")

    def __post_init__(self) -> None:
        self.check_bounds(alpha1=self.alpha1, alpha2=self.alpha2, alpha3=self.alpha3)
        check_projection(self.projection)
        smeared_directions(self.exclude)

    def __str__(self) -> str:
        alphas = (self.alpha1, self.alpha2, self.alpha3)[-len(self.directions) + 1 :]
        return (
            f"HYP, {alphas_in_words(alphas)}, "
            f"{directions_in_words(self.directions)}, staples in their hypercubes, "
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
        return DecoratedLinks((x, y, z, t), alphas, self.projection == PROJECTIONS[1])

"""APE smearing of the spatial links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.smearing import SMEARINGS, Smearing

APE = Kernel("ape")

PROJECTIONS = ("maximal", "polar")
"""P[M]: the group element with the largest Re Tr(P M^dagger), or the unitary factor of M without the
phase of its determinant. For SU(2) they are the same."""

SPACE = 3
"""The number of dimensions of space."""

WEIGHT = 0.2
"""The default of w, as in arXiv:1010.4834, section 4."""


@SMEARINGS.register
@dataclass(frozen=True)
class Ape(Smearing):
    """One iteration U -> P[(U + w sum of staples) / (1 + 6 w)] of the spatial links.

    M. Cardoso and P. Bicudo, arXiv:1010.4834, eq. (18), after M. Albanese et al., Phys. Lett. B
    192 (1987) 163. All links are taken from the field before the iteration.

    Attributes
    ----------
    weight : float
        w >= 0.
    dims : int
        3 for staples in the planes of the three spatial directions, 4 for those of all directions.
    projection : str
        One of `PROJECTIONS`.

    Raises
    ------
    UsageError
        If a value is not allowed.
    """

    weight: float = WEIGHT
    dims: int = SPACE
    projection: str = PROJECTIONS[0]

    name: ClassVar[str] = "ape"
    options: ClassVar[tuple[Option, ...]] = (
        Option("weight", float, "w in U → P[(U + w Σ staples)/(1 + 6 w)].", f"{WEIGHT}", "W"),
        Option("alpha", float, "Instead of w: U → P[(1 − α) U + α/n Σ of the n staples]."),
        Option("dims", int, "Staples in space, or in all directions.", f"{SPACE}", "3|4"),
        Option(
            "projection",
            str,
            "P of SU(3): with the largest trace, or unitary.",
            PROJECTIONS[0],
            "|".join(PROJECTIONS),
        ),
    )

    def __post_init__(self) -> None:
        if not 0 <= self.weight < float("inf"):
            raise UsageError(f"The weight of smearing is {self.weight:g}; it must not be negative.")
        if self.dims not in (SPACE, SPACE + 1):
            raise UsageError(f"Smearing has staples in 3 or 4 dimensions, not {self.dims}.")
        if self.projection not in PROJECTIONS:
            raise UsageError(
                f"There is no projection '{self.projection}'; there are {' and '.join(PROJECTIONS)}."
            )

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Ape:
        """Make it from options; `weight` and `alpha` exclude each other."""
        if "weight" in values and "alpha" in values:
            raise UsageError("--weight and --alpha are two forms of the same; give one.")
        if "alpha" in values:
            return cls.from_alpha(**values)
        return cls(**values)

    @classmethod
    def from_alpha(cls, alpha: float, dims: int = SPACE, projection: str = PROJECTIONS[0]) -> Ape:
        """Take the other usual form, U -> P[(1 - alpha) U + alpha / n sum of the n staples].

        Raises
        ------
        UsageError
            If alpha is not in [0, 1), or another value is not allowed.
        """
        if not 0 <= alpha < 1:
            raise UsageError(f"alpha of smearing is {alpha:g}; it must be in 0 <= alpha < 1.")
        return cls(alpha / ((1 - alpha) * _staples(dims)), dims, projection)

    @property
    def alpha(self) -> float:
        """The alpha of the other form, n w / (1 + n w) with n = 4 or 6 staples."""
        staples = _staples(self.dims) * self.weight
        return staples / (1 + staples)

    def __str__(self) -> str:
        return (
            f"APE, U -> P[U + w sum of staples], w = {self.weight:.6g} (alpha = {self.alpha:.6g}), "
            f"spatial links, staples in {self.dims} dimensions, {self.projection} projection"
        )

    def __call__(self, source: Field, target: Field) -> None:
        """Smear the links of one field into another of the same kind."""
        for slab, other in zip(source.slabs, target.slabs, strict=True):
            slab.launch(
                APE,
                slab.whole(),
                source=slab.buffer.address,
                target=other.buffer.address,
                weight=self.weight,
                dims=self.dims,
                unitary=self.projection == "polar",
            )
        target.exchange_halo()


def _staples(dims: int) -> int:
    """Return the number of staples of a spatial link."""
    return 2 * (dims - 1)

"""APE smearing of the spatial links."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from gauge_mc.devices.base import repeated
from gauge_mc.devices.structures import GeometryStruct, WorkStruct
from gauge_mc.errors import UsageError
from gauge_mc.field import Field

PROJECTIONS = ("maximal", "polar")
"""P[M]: the group element with the largest Re Tr(P M^dagger), or the unitary factor of M without
its determinant's phase. For SU(2) they are the same."""


SPACE = 3
"""Its dimensions."""


class _ApeArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("source", ctypes.c_void_p),
        ("target", ctypes.c_void_p),
        ("weight", ctypes.c_double),
        ("dims", ctypes.c_int),
        ("unitary", ctypes.c_int),
    ]


@dataclass(frozen=True)
class Ape:
    """One iteration U -> P[(U + w sum of staples) / (1 + 6 w)] of the spatial links.

    M. Cardoso and P. Bicudo, arXiv:1010.4834, eq. (18), after M. Albanese et al., Phys. Lett. B
    192 (1987) 163. All links are taken from the field before the iteration.

    Attributes
    ----------
    weight : float
        w >= 0.
    dims : int
        Staples lie in the planes of the three spatial directions (3), or of all four (4).
    projection : str
        One of `PROJECTIONS`.

    Raises
    ------
    UsageError
        If a value is not allowed.
    """

    weight: float = 0.2
    dims: int = 3
    projection: str = "maximal"

    def __post_init__(self) -> None:
        if not 0 <= self.weight < float("inf"):
            raise UsageError(f"The weight of smearing is {self.weight:g}; it must not be negative.")
        if self.dims not in (SPACE, SPACE + 1):
            raise UsageError(f"Smearing has staples in 3 or 4 dimensions, not {self.dims}.")
        if self.projection not in PROJECTIONS:
            raise UsageError(
                f"The projection '{self.projection}' is unknown; there are "
                f"{' and '.join(PROJECTIONS)}."
            )

    @classmethod
    def from_alpha(cls, alpha: float, dims: int = 3, projection: str = "maximal") -> Ape:
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
        """The other form's alpha = n w / (1 + n w), with n = 4 or 6 staples."""
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
            arguments = _ApeArguments(
                slab.geometry,
                slab.work(),
                slab.buffer.address,
                other.buffer.address,
                self.weight,
                self.dims,
                self.projection == "polar",
            )
            slab.kernel("ape")(repeated([arguments], 1))
        target.exchange()


def _staples(dims: int) -> int:
    return 2 * (dims - 1)

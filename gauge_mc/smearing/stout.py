"""Stout smearing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.smearing import (
    EXCLUDE,
    SMEARINGS,
    DirectedSmearing,
    directions_in_words,
    smeared_directions,
)

STOUT = Kernel("stout")

RHO = 0.1
"""Default of rho, as in hep-lat/0311018."""

MAX_RHO = 1.0
"""Largest rho. A smearing with rho > 1/8 in four dimensions or 1/6 in three roughens the field."""

MAX_NORM = 1.4
"""Largest norm of a matrix whose exponential a kernel computes to full precision."""


@SMEARINGS.register
@dataclass(frozen=True)
class Stout(DirectedSmearing):
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
    exclude: str = EXCLUDE.default

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
        EXCLUDE,
    )
    positional: ClassVar[tuple[str, ...]] = ("rho",)

    def __post_init__(self) -> None:
        self.check_bounds(rho=self.rho)
        smeared_directions(self.exclude)

    def __str__(self) -> str:
        return (
            "stout, U -> exp(rho P[sum of staples U^dagger]) U, "
            f"rho = {self.rho:.6g} (Wilson flow, Euler step {self.rho:.6g}), "
            f"{directions_in_words(self.directions)}, staples in their planes"
        )

    def __call__(self, source: Field, target: Field) -> None:
        """Write the smeared links of `source` to `target`; see `Smearing`."""
        colours, staples = source.group.colours, 2 * (len(self.directions) - 1)
        largest = self.rho * staples * 2 * (colours - 1) / colours  # bound of the exponent's norm
        for slab, other in zip(source.slabs, target.slabs, strict=True):
            slab.launch(
                STOUT,
                slab.whole(),
                source=slab.buffer.address,
                target=other.buffer.address,
                rho=self.rho,
                directions=self.bits,
                factors=max(1, math.ceil(largest / MAX_NORM)),
            )
        target.exchange_halo()

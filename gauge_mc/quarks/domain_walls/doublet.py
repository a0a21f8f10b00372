"""A doublet of flavours with twisted and different masses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.quarks.diagonal import finite
from gauge_mc.quarks.domain_walls.coupled import CoupledOperator, PreparedWalls
from gauge_mc.quarks.domain_walls.fifth_direction import Bidiagonal, FifthMatrix
from gauge_mc.quarks.vectors.transport import ANTIPERIODIC


class TwistedDoublet(CoupledOperator):
    """M = 1 + 2 i kappa mu_sigma gamma_5 tau_1 + 2 kappa mu_delta tau_3 - kappa D on two flavours.

    tau are Pauli matrices in the space of the flavours. R. Frezzotti and G. C. Rossi, Nucl. Phys. B
    Proc. Suppl. 128 (2004) 193 (hep-lat/0311008); T. Chiarappa et al., Eur. Phys. J. C 50 (2007)
    373 (hep-lat/0606011). The flavours are the two vectors along a fifth direction. They are
    rotated such that tau_1 is tau_2, with which A = 1 + a gamma_5 i tau_2 + b tau_3 is real and has
    the form of a matrix of domain walls, without a change of determinants and norms. det M is real.

    Parameters
    ----------
    field : Field
        The links, whose halos must be up to date. Call `refresh` after they have changed.
    kappa : float
        The hopping parameter.
    mu_sigma, mu_delta : float
        The twisted mass and the splitting. At maximal twist the masses of the two flavours are
        proportional to mu_sigma / Z_P +- mu_delta / Z_S.
    boundary : complex or sequence of complex
        See `DiracOperator`.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    name = "twisted-doublet"
    qcdml: ClassVar = {
        "wilsonTmMassSplitQuarkAction": {
            "kappa": "kappa",
            "muTwist": "mu_sigma",
            "muMassSplit": "mu_delta",
        }
    }
    prepared_kind = PreparedWalls
    fifth = 2

    def __init__(
        self,
        field: Field,
        kappa: float,
        mu_sigma: float,
        mu_delta: float,
        boundary: complex | Sequence[complex] = ANTIPERIODIC,
    ) -> None:
        super().__init__(field, kappa, boundary)
        a = 2 * kappa * finite("mu_sigma", mu_sigma)
        b = 2 * kappa * finite("mu_delta", mu_delta)
        if abs(b) >= 1:
            raise UsageError(
                f"mu_delta is {mu_delta:g}, but 2 kappa mu_delta must be below 1; choose a smaller "
                "one."
            )
        whole = Bidiagonal.of((1 + b, 1 - b), (-a, -a))
        self.diagonal_matrix = FifthMatrix(whole, Bidiagonal.diagonal((1.0, 1.0)), 1.0)
        if field.devices.strict:
            mean = math.sqrt(1 + a * a)
            self.sizes = mean + abs(b), mean - abs(b)
        else:
            largest, smallest = np.linalg.svd([[1 + b, a], [-a, 1 - b]], compute_uv=False)
            self.sizes = float(largest), float(smallest)

"""Low modes that are read from a folder if it has them, and otherwise computed and written there.

Modes that are read count only if they are orthonormal and their true residuals are those that they
had; otherwise they are computed again, and replaced.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gauge_mc.fields.field import Field
from gauge_mc.quarks.matrices.linear import LinearOperator
from gauge_mc.quarks.modes.low_modes import LowModes
from gauge_mc.quarks.modes.mode_files import ModePath

ROUNDING = 1e-12
"""Residual that rounding errors may add, as a part of the norm of the operator."""

WRONG = "are not eigenvectors with the residuals that they had"
"""Reason for refusing modes."""


APPLICATIONS = "applications"
"""Name of the number of applications of the search, which tables state, however often the modes
are read: a measurement that was killed then has the same rows. Earlier versions did not keep it."""


def kept_low_modes(
    operator: LinearOperator,
    field: Field,
    kept: ModePath | None,
    search: Callable[[], LowModes],
    norm: float = 1.0,
) -> LowModes:
    """Return low modes of a positive operator.

    Parameters
    ----------
    operator : LinearOperator
        The operator.
    field : Field
        The links.
    kept : ModePath, optional
        Where the modes are kept.
    search : callable
        Function that finds them.
    norm : float
        The norm of the operator.

    Raises
    ------
    GaugeError
        See `ModePath.write`.
    """
    found = kept.read(field) if kept else None
    if kept and found:
        residuals = found.residuals(operator, ROUNDING * norm)
        if residuals is not None and found.vectors:
            values = np.array(found.numbers["values"])
            count = int(found.numbers.get(APPLICATIONS, [found.vectors.count])[0])
            return LowModes(values, residuals, found.vectors, count)
        kept.replace(field, f"{kept.path(field)[0]}: the vectors {WRONG}")
    modes = search()
    if kept:
        numbers = {
            "values": modes.values.tolist(),
            "residuals": modes.residuals.tolist(),
            APPLICATIONS: [modes.applications],
        }
        kept.write(field, numbers, modes.vectors)
    return modes

"""Low modes that are read from a folder if it has them, and otherwise computed and written there.

Modes that are read count only if they are orthonormal and their true residuals are those that they
had; otherwise they are computed again, and replaced.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gauge_mc.fields.field import Field
from gauge_mc.quarks.matrices.linear import LinearOperator
from gauge_mc.quarks.modes.chirality import HermitianOperator
from gauge_mc.quarks.modes.low_modes import LowModes
from gauge_mc.quarks.modes.mode_files import KeptModes, ModePath
from gauge_mc.quarks.overlap.kernel_modes import KernelModes, kernel_modes

ROUNDING = 1e-12
"""Residual that rounding errors may add, as a part of the norm of the operator."""

WRONG = "are not eigenvectors with the residuals that they had"
"""Reason for refusing modes."""


APPLICATIONS = "applications"
"""Name of the number of applications of the search, which tables state, however often the modes
are read: a measurement that was killed then has the same rows. Earlier versions did not keep it."""


def kept_kernel_modes(
    operator: HermitianOperator, number: int, kept: ModePath | None
) -> KernelModes:
    """Return low modes of Q; see `kernel_modes`.

    Parameters
    ----------
    operator : HermitianOperator
        Q in double precision.
    number : int
        Largest number of modes.
    kept : ModePath, optional
        Where they are kept.

    Raises
    ------
    UsageError, GaugeError
        See `kernel_modes` and `ModePath.write`.
    """
    field = operator.prepared.operator.field
    found = kept.read(field) if kept else None
    if kept and found:
        modes = _kernel_modes(operator, found)
        if modes:
            return modes
        kept.replace(field, f"{kept.path(field)[0]}: the vectors {WRONG}")
    modes = kernel_modes(operator, number)
    if kept:
        arrays = {"values": modes.values, "residuals": modes.residuals, "found": modes.found}
        names = ("edge", "norm", "gap", "ritz", APPLICATIONS)
        single = {name: [getattr(modes, name)] for name in names}
        numbers = {**{name: one.tolist() for name, one in arrays.items()}, **single}
        kept.write(field, numbers, modes.vectors)
    return modes


def _kernel_modes(operator: HermitianOperator, found: KeptModes) -> KernelModes | None:
    """Return modes of a file, or None if they are not those of the operator."""
    numbers = found.numbers
    norm = numbers["norm"][0]
    residuals = found.residuals(operator, ROUNDING * norm)
    if residuals is None:
        return None
    return KernelModes(
        np.array(numbers["values"]),
        residuals,
        found.vectors,
        numbers["edge"][0],
        norm,
        np.array(numbers["found"]),
        numbers["gap"][0],
        numbers["ritz"][0],
        int(numbers.get(APPLICATIONS, [0])[0]),
    )


def kept_low_modes(
    operator: LinearOperator, field: Field, kept: ModePath | None, search: Callable[[], LowModes]
) -> LowModes:
    """Return low modes of a positive operator whose norm is 1.

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

    Raises
    ------
    GaugeError
        See `ModePath.write`.
    """
    found = kept.read(field) if kept else None
    if kept and found:
        residuals = found.residuals(operator, ROUNDING)
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

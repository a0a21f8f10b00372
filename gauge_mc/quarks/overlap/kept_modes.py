"""Low modes of the kernel operator that are kept in a folder; see `kept_low_modes`."""

from __future__ import annotations

import numpy as np

from gauge_mc.quarks.modes.chirality import HermitianOperator
from gauge_mc.quarks.modes.kept_low_modes import APPLICATIONS, ROUNDING, WRONG
from gauge_mc.quarks.modes.mode_files import KeptModes, ModePath
from gauge_mc.quarks.overlap.kernel_modes import KernelModes, kernel_modes


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

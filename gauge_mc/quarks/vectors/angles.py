"""Options for boundary conditions and the imaginary chemical potential of quarks."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable
from contextlib import suppress

from gauge_mc.errors import UsageError
from gauge_mc.numbers import number
from gauge_mc.options import Option
from gauge_mc.quoting import quoted
from gauge_mc.rounded import unit_number

LARGEST = 1e6
"""Largest size of an angle, in units of pi."""

NAMES = {"antiperiodic": (0.0, 0.0, 0.0, 1.0), "periodic": (0.0, 0.0, 0.0, 0.0)}
"""Angles of boundary conditions that have a name."""

BOUNDARY = Option(
    "boundary",
    str,
    "Antiperiodic or periodic in time, or four angles along x, y, z and t in units of pi, such as "
    "0.2,0.4,0,1.",
    "antiperiodic",
    "NAME|ANGLES",
    least=-LARGEST,
    most=LARGEST,
    each=float,
    choices=tuple(NAMES),
    open=True,
)


IMAGINARY_MU = Option(
    "imaginary_mu",
    float,
    "Imaginary chemical potential μ_I/(πT), added to the angle along t.",
    usual=0.0,
    least=-LARGEST,
    most=LARGEST,
    symbol="μ_I/(πT)",
)
"""The chemical potential times the extent of time, in units of pi. Forward links along t have the
factor exp(i a mu_I), which a redefinition of the quark moves to the boundary."""


def angles_of(text: str | tuple[float, ...], imaginary_mu: float = 0.0) -> tuple[float, ...]:
    """Return the angles of boundary conditions along x, y, z and t in units of pi.

    Parameters
    ----------
    text : str or tuple of float
        The boundary conditions, as `BOUNDARY` takes them.
    imaginary_mu : float
        See `IMAGINARY_MU`.

    Raises
    ------
    UsageError
        If the text is neither a name nor four numbers.
    """
    angles: tuple[float, ...] = ()
    with suppress(UsageError):
        named = isinstance(text, str) and text in NAMES
        angles = NAMES[str(text)] if named else BOUNDARY.numbers(text, number)
    if len(angles) == len(NAMES["periodic"]):
        return (*angles[:3], angles[3] + imaginary_mu)
    raise UsageError(
        f"{BOUNDARY.flag} is {quoted(text)}; give {' or '.join(NAMES)}, or four angles in "
        "units of pi, such as 0,0,0,1."
    )


def phases_of(angles: Iterable[float], strict: bool = False) -> tuple[complex, ...]:
    """Return exp(i pi angle) for each angle, exactly for whole angles.

    Strict ones are rounded once, as no C library does it.
    """
    return tuple(
        (-1.0) ** int(one) + 0j
        if one == int(one)
        else unit_number(one)
        if strict
        else cmath.exp(1j * math.pi * one)
        for one in angles
    )

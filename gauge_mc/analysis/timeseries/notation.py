"""Values with their errors in brackets."""

from __future__ import annotations

import math

DIGITS = 5
"""Number of significant digits of a value whose error is unknown."""

LEAST_ERROR = 1e-290
"""Smallest error that is shown; the powers of ten for smaller ones are not numbers any more."""


def with_error(value: float, error: float, systematic: float | None = None) -> str:
    """Return a value with its error in brackets, in units of the last digit.

    The error is rounded by the rule of the Particle Data Group (Review of Particle Physics,
    introduction): to two digits if its three leading digits are 100 to 354, to one digit if they
    are 355 to 949, and up to 1000, with two digits, if they are 950 to 999.

    Parameters
    ----------
    value, error : float
        The value, and its error in the same unit.
    systematic : float, optional
        A second error, in further brackets with the digits of the first one. It is left out if it
        is not finite, or less than half a unit of the last digit.

    Returns
    -------
    str
        For example ``0.65215(8)``, ``1.0(1.5)``, ``0.260(10)(5)`` or ``3.12(12)e-09``. If the error
        is zero, the value alone; if it is not finite, and thus unknown, the value to `DIGITS`
        digits.
    """
    second = systematic if systematic is not None and math.isfinite(systematic) else 0.0
    if not math.isfinite(error):
        return f"{value:.{DIGITS}g}"
    if not math.isfinite(value) or error < LEAST_ERROR:
        return f"{value:.10g}"
    exponent = min(math.floor(math.log10(max(abs(value), error))), 0)
    if exponent < -4:
        scale = 10.0**-exponent
        return f"{with_error(value * scale, error * scale, second * scale)}e{exponent:03d}"
    leading = math.floor(math.log10(error))
    digits = round(error / 10.0 ** (leading - 2))
    place = leading if 354 < digits <= 949 else leading - 1
    if digits > 949:
        place = leading
        error = 10.0 ** (leading + 1)
    errors = [round(error / 10.0**place), *filter(None, [round(second / 10.0**place)])]
    if place >= 0:
        number, shown = f"{round(value, -place):.0f}", [f"{one * 10**place}" for one in errors]
    elif max(errors) * 10.0**place >= 1:
        number, shown = f"{value:.{-place}f}", [f"{one * 10.0**place:.{-place}f}" for one in errors]
    else:
        number, shown = f"{value:.{-place}f}", [f"{one}" for one in errors]
    return number + "".join(f"({one})" for one in shown)


def with_decimals(value: float, error: float, decimals: int) -> str:
    """Return a value with so many decimals, and its error in brackets in units of the last one.

    Parameters
    ----------
    value, error : float
        An error that is zero or not finite is left out.
    decimals : int
        Number of digits behind the decimal point.

    Returns
    -------
    str
        For example ``0.652(1)`` for three decimals, or ``1.00(1.50)`` for two.
    """
    text = f"{value:.{decimals}f}"
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return text
    units = round(error * 10**decimals)
    if decimals and units >= 10**decimals:
        return f"{text}({error:.{decimals}f})"
    return f"{text}({units})"


def with_exponent(value: float, error: float, decimals: int) -> str:
    """Return a value with its error as in ``3.12(12)e-09``; see `with_decimals`."""
    _, letter, exponent = f"{value:.{decimals}e}".partition("e")
    scale = 10.0 ** int(exponent or 0)
    return f"{with_decimals(value / scale, error / scale, decimals)}{letter}{exponent}"

"""The numbers that one quotes from a fit, and the line that states them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.analysis.timeseries.notation import with_error
from gauge_mc.results import documented, numbers_of, result_field

WORD = "result"
"""First word of the line, and the key of the numbers in JSON."""


@documented
@dataclass(frozen=True)
class QuotedNumber:
    """A number that one quotes from a fit."""

    name: str = result_field("Symbol, and where it holds if the fit has several.")
    value: float = result_field("Value, in lattice units if `unit` is empty.")
    error: float = result_field("Statistical error.")
    systematic: float | None = result_field(
        "Systematic error, or that of the scale in fm; null if the fit has none.", None
    )
    unit: str = result_field("Unit; empty in lattice units and for pure numbers.", "")

    @property
    def known(self) -> bool:
        """Whether both the value and the error are numbers."""
        return math.isfinite(self.value) and math.isfinite(self.error)

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.name} = {with_error(self.value, self.error, self.systematic)}{unit}"


def quoted_number(
    name: str, found: Estimate | None, systematic: float | None = None, unit: str = ""
) -> QuotedNumber:
    """Return a number that one quotes; one that is not known is NaN.

    Parameters
    ----------
    name, unit : str
        See `QuotedNumber`.
    found : Estimate or None
        The value with its statistical error.
    systematic : float or None
        The systematic error; NaN is taken as None.
    """
    value, error = (found.value, found.error) if found else (math.nan, math.nan)
    if systematic is not None and not math.isfinite(systematic):
        systematic = None
    return QuotedNumber(name, value, error, systematic, unit)


def quoted_field(
    result: Any, name: str, systematic: float | None = None, where: str = ""
) -> QuotedNumber:
    """Return a field of a result as a number that one quotes, with its declared symbol and unit.

    Parameters
    ----------
    result : dataclass
        The result, whose field is an `Estimate` or None.
    name : str
        Name of the field.
    systematic : float or None
        See `quoted_number`.
    where : str
        Where the number holds, such as ``β = 2.5``.
    """
    declared = numbers_of(type(result))[name]
    return quoted_number(
        f"{declared.short} ({where})" if where else declared.short,
        getattr(result, name),
        systematic,
        declared.unit,
    )


def result_line(numbers: Sequence[QuotedNumber], reason: str) -> str:
    """Return the line with which a fit ends.

    Parameters
    ----------
    numbers : sequence of QuotedNumber
        The numbers that one quotes.
    reason : str
        Why there are none, as a clause.
    """
    return f"{WORD}: {', '.join(map(str, numbers)) or f'none, because {reason}'}"

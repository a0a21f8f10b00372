"""The numbers that one quotes from a fit, and the line that states them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from rich.table import Column, Table

from gauge_mc.analysis.timeseries import Estimate, with_error
from gauge_mc.errors import UsageError
from gauge_mc.groups import Group
from gauge_mc.options import Option
from gauge_mc.registry import in_words
from gauge_mc.results import documented, headings, numbers_of, result_field

LEVEL = Option("level", int, "Smearing iterations of the loops used.", default="most", metavar="N")
"""The smearing level, an option of all fits to Wilson loops."""

REDUCED = "χ²/⟨χ²⟩"
"""Heading of `reduced`."""


def reduced(chi2: float | None, expected: float | None) -> str:
    """Return chi2 divided by its expectation, that of dof numbers; empty for an exact fit."""
    return f"{(chi2 or 0.0) / expected:.2g}" if expected and expected > EXACT else ""


EXACT = 1e-6
"""Expectation of chi2 below which nothing is left to disagree."""

T_MIN = Option("t_min", int, "First t of all plateaus.", default="for each plateau where it begins")
T_MAX = Option("t_max", int, "Last t of all plateaus.", default="as far as the errors allow")
AVERAGE = Option(
    "average",
    bool,
    "Average over ranges of t, and for V(R) over windows in R, with Akaike weights (AIC).",
)
"""The times that are fitted, options of fits to plateaus."""


def choice_of(option: Option, options: Mapping[str, Any]) -> str | None:
    """Return the value of an option with choices, or None if it is not given."""
    value: str | None = options.get(option.name)
    if value is not None and value not in option.choices:
        raise UsageError(f"{option.flag} is '{value}'; choose {in_words(option.choices, 'or')}.")
    return value


def tag_of_levels(levels: Sequence[int], table_levels: Sequence[int]) -> str:
    """Return the part of a file name that states smearing levels; empty if a table has only one."""
    return f"_{'_'.join(map(str, levels))}" if len(table_levels) > 1 else ""


def empty_table(title: str, left: Iterable[str], right: Iterable[str] = (), **more: Any) -> Table:
    """Return a table without rows, given the headings of its columns by their alignment."""
    columns = [*(Column(x) for x in left), *(Column(x, justify="right") for x in right)]
    return Table(*columns, title=title, **more)


def table_of(
    title: str,
    kind: type[Any],
    rows: Sequence[Any],
    digits: int,
    justify: Literal["left", "right"] = "right",
    heads: Mapping[str, str] | None = None,
) -> Table:
    """Return a table of results, with the columns that are known for some row."""
    shown = {
        name: heading
        for name, heading in (headings(kind) if heads is None else heads).items()
        if any(getattr(row, name) is not None for row in rows)
    }
    sides = (shown.values(), ()) if justify == "left" else ((), shown.values())
    table = empty_table(title, *sides)
    for result in rows:
        table.add_row(*(_cell(getattr(result, name), digits) for name in shown))
    return table


def _cell(value: object, digits: int) -> str:
    """Return a result in words, empty if it is not known."""
    if isinstance(value, Estimate):
        return str(value) if math.isfinite(value.value) else "?"
    if isinstance(value, float):
        return f"{value:.{digits}g}" if math.isfinite(value) else ""
    return "" if value is None else str(value)


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
    name: str, estimate: Estimate | None, systematic: float | None = None, unit: str = ""
) -> QuotedNumber:
    """Return a number that one quotes; one that is not known is NaN."""
    value, error = (estimate.value, estimate.error) if estimate else (math.nan, math.nan)
    if systematic is not None and not math.isfinite(systematic):
        systematic = None
    return QuotedNumber(name, value, error, systematic, unit)


def quoted_field(
    result: Any, name: str, systematic: float | None = None, where: str = ""
) -> QuotedNumber:
    """Return a field of a result as a number that one quotes, with its declared symbol and unit."""
    declared = numbers_of(type(result))[name]
    return quoted_number(
        f"{declared.short} ({where})" if where else declared.short,
        getattr(result, name),
        systematic,
        declared.unit,
    )


def result_line(numbers: Sequence[QuotedNumber], reason: str) -> str:
    """Return the line with which a fit ends."""
    return f"{WORD}: {', '.join(map(str, numbers)) or f'none, because {reason}'}"


CRITICAL_EXTENT = MappingProxyType({"r₀": 1.341, "1/√σ": 1.59, "√t₀": 4.02})
"""1 / T_c in units of lengths that may be known, for SU(3): T_c r0 = 0.7457(45) and
T_c sqrt(t0) = 0.2489(14) (arXiv:1503.05652), and T_c / sqrt(sigma) = 0.629(3) (hep-lat/9610023)."""

BOX = MappingProxyType({name: 2.4 * extent for name, extent in CRITICAL_EXTENT.items()})
"""Smallest extent of a lattice in the same units, which is 3.2 r0."""


def equal_target(group: Group) -> float:
    """Return the t² E at which √t₀ is about as long as that of SU(3) at 0.3.

    At lowest order t^2 <E> is proportional to (N^2 - 1) / N at equal 't Hooft couplings.
    """
    return 0.3 * 3 / 8 * group.dimension / group.colours


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A number that a fit quotes, and the run or the scan that the fit needs for it.

    The goals of a fit share their runs, so that they differ in `name`, `summary` and `symbols`.
    """

    name: str
    """Name on the command line."""
    summary: str
    """Short description, for help texts."""
    symbols: tuple[str, ...]
    """Symbols of the number among those that the fit quotes, the preferred one first."""
    measure: str = ""
    """Measurements of the run, as ``--measure`` takes them; by default those of every run."""
    separation: int = 1
    """Updates from one configuration, on which everything is measured, to the next."""
    configs: int = 20
    """Number of configurations before the first fit."""
    box: Mapping[str, float] = field(default_factory=lambda: BOX)
    """Smallest extent of the lattice in units of lengths, by name; for scans, the extent along t at
    which the number is expected.
    """
    aspects: tuple[int, ...] = ()
    """Extents in space divided by that along t, of the lattices of a scan."""
    extent: Option | None = None
    """The option that is the extent along t, for scans."""
    options: tuple[Option, ...] = ()
    """Other options of the fit that can be given."""

    @property
    def fit_options(self) -> tuple[Option, ...]:
        """All options of the fit that can be given."""
        return (self.extent, *self.options) if self.extent else self.options

    def number(self, quoted: list[QuotedNumber]) -> QuotedNumber | None:
        """Return the number among those that a fit quotes; None if it is not known.

        Where it holds may follow its symbol in brackets; see `quoted_field`.
        """
        numbers = [number for number in quoted if number.known]
        for symbol in self.symbols:
            for number in numbers:
                if number.name.partition(" (")[0] == symbol:
                    return number
        return None

"""Numbers that ``gauge-mc determine`` can aim at, with what their fits need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from gauge_mc.fits.shared.quoted import QuotedNumber
from gauge_mc.groups import Group
from gauge_mc.options import Option

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
        known = [number for number in quoted if number.known]
        for symbol in self.symbols:
            for number in known:
                if number.name.partition(" (")[0] == symbol:
                    return number
        return None

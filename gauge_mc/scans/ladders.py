"""Ladders of a scan with tempering: the runs that exchange their couplings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from gauge_mc.errors import UsageError

if TYPE_CHECKING:
    from gauge_mc.scans.scan import Member, Scan


def ladders(members: Iterable[Member]) -> list[tuple[Member, ...]]:
    """Return the runs that exchange their couplings, in ascending order of β.

    They have the same lattice, options of the action, quarks, and number of the chain. Runs without
    tempering are left out.
    """
    found: dict[tuple[object, ...], list[Member]] = {}
    for one in members:
        if one.parameters.tempering:
            key = (one.point._replace(beta=0.0), one.chain)
            found.setdefault(key, []).append(one)
    return [tuple(sorted(each, key=lambda one: one.parameters.beta)) for each in found.values()]


def unfinished(members: Sequence[Member], done: Callable[[Member], bool]) -> list[Member]:
    """Return the runs that are left: those that are not done, and all that exchange with them."""
    left = {one.name for one in members if not done(one)}
    left |= {
        one.name for each in ladders(members) if any(m.name in left for m in each) for one in each
    }
    return [one for one in members if one.name in left]


def check_ladders(scan: Scan, before: Scan) -> None:
    """Refuse a scan in which couplings cannot be exchanged, or whose ladders have changed.

    Parameters
    ----------
    scan : Scan
        The scan that is requested.
    before : Scan
        The same scan before points were added; without runs if it is new.

    Raises
    ------
    UsageError
        If there is only one coupling on some lattice, or one was added where there are runs.
    """
    known = {one.name: len(each) for each in ladders(before.members()) for one in each}
    for each in ladders(scan.members()):
        point = each[0].point
        if len(each) < 2:
            raise UsageError(
                f"Tempering exchanges couplings, and on {point.lattice} there is only β = "
                f"{point.beta:.12g}; give --beta several values, or leave out --tempering."
            )
        if any(known.get(one.name, len(each)) != len(each) for one in each):
            raise UsageError(
                f"The runs of {scan.path} on {point.lattice} exchange their couplings, so that no "
                "further β can be added; choose another --output, or another --lattice."
            )

"""Options that several fits have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gauge_mc.errors import UsageError
from gauge_mc.options import Option
from gauge_mc.registry import in_words

LEVEL = Option("level", int, "Smearing iterations of the loops used.", "most", "N")
"""The smearing level, an option of all fits to Wilson loops."""

T_MIN = Option("t_min", int, "First t of all plateaus.", "for each plateau where it begins")
T_MAX = Option("t_max", int, "Last t of all plateaus.", "as far as the errors allow")
AVERAGE = Option(
    "average",
    bool,
    "Average over ranges of t, and for V(R) over windows in R, with Akaike weights (AIC).",
)
"""The times that are fitted, options of fits to plateaus."""


def choice_of(option: Option, given: Mapping[str, Any]) -> str | None:
    """Return the value of an option with choices, or None if it is not given.

    Raises
    ------
    UsageError
        If it is none of the choices.
    """
    value: str | None = given.get(option.name)
    if value is not None and value not in option.choices:
        raise UsageError(f"{option.flag} is '{value}'; choose {in_words(option.choices, 'or')}.")
    return value


def tag_of_levels(chosen: Sequence[int], known: Sequence[int]) -> str:
    """Return the part of a file name that states smearing levels; empty if a table has only one."""
    return f"_{'_'.join(map(str, chosen))}" if len(known) > 1 else ""

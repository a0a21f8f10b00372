"""Numbers as text, from the command line, run cards and names of actions.

Python's own conversions also read ``1_0``, other alphabets, ``nan`` and ``inf``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar

from gauge_mc.quoting import shortened

N = TypeVar("N", int, float)

MOST_DIGITS = 19
"""Largest number of digits of a whole number."""


def whole_number(text: str | int) -> int:
    """Read a whole number of at most `MOST_DIGITS` digits.

    Raises
    ------
    ValueError
        If the text is something else.
    """
    word = str(text).strip()
    if not re.fullmatch("[+-]?[0-9]+", word):
        raise ValueError(f"'{shortened(word, 80)}' is not a whole number.")
    if len(word.lstrip("+-")) > MOST_DIGITS:
        raise ValueError(f"'{shortened(word, 80)}' has more than {MOST_DIGITS} digits.")
    return int(word)


def number(text: str | float) -> float:
    """Read a finite number.

    Raises
    ------
    ValueError
        If the text is something else.
    """
    word = str(text).strip()
    digits = r"([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})"
    plain = re.fullmatch(rf"[+-]?{digits}([eE][+-]?[0-9]{{1,3}})?", word)
    if not plain:
        raise ValueError(f"'{shortened(word, 80)}' is not a number.")
    if not math.isfinite(value := float(word)):
        raise ValueError(f"'{shortened(word, 80)}' is too large.")
    return value


def counted(number: int, noun: str) -> str:
    """Return a number with a noun that has a regular plural, such as ``2 updates``."""
    return f"{number} {noun}{'s' * (number != 1)}"


def these(number: int) -> str:
    """Return what there is in words, after "more than": ``these 6`` or ``this one``."""
    return {0: "none", 1: "this one"}.get(number, f"these {number}")


def listed(text: str, read: Callable[[str], N], separators: str = ",;") -> tuple[N, ...]:
    """Read numbers with a separator between each two of them.

    Parameters
    ----------
    text : str
        The numbers as text.
    read : callable
        `whole_number` or `number`.
    separators : str
        Characters of which each separates two numbers.

    Raises
    ------
    ValueError
        If something is not a number, or there is nothing between two separators.
    """
    return tuple(map(read, re.split(f"[{separators}]", text)))

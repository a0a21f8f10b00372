"""Settings: fields of data classes that the command line, run cards and Python can give.

A field is declared once, with `setting`. Options of commands, the keys of run cards with their
schema, and the checks of values follow from that.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gauge_mc import actions, algorithms
from gauge_mc.actions import Action
from gauge_mc.algorithms import Algorithm
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.options import Option
from gauge_mc.quoting import quoted, shortened
from gauge_mc.registry import words_in_any_case
from gauge_mc.results import DECLARED
from gauge_mc.run.measurement import measurements

PHYSICS, ENSEMBLE, FILES, EXECUTION = "Physics", "Ensemble", "Files", "Execution"
"""Panels of help texts."""

STARTS = ("cold", "hot")
"""Values of ``start`` other than a file."""

LARGEST = 2**63 - 1
"""Largest whole number: TOML guarantees only signed 64-bit integers."""

READ = "read"
"""Key of the metadata of a field that says how its values are read."""


def setting(usual: Any, panel: str, help: str, *, read: str = "", **more: Any) -> Any:
    """Return a field of a data class that the user can set.

    Parameters
    ----------
    usual : object
        Default.
    panel : str
        Panel of help texts.
    help : str
        Short description.
    read : str
        A key of `READERS`, if it is not the type of the field.
    **more : object
        Further attributes of the `Option`.
    """
    declared = {"help": help, "panel": panel, "usual": usual, **more}
    return dataclasses.field(default=usual, metadata={DECLARED: declared, READ: read})


@cache
def _options(settings: type[Any]) -> dict[str, Option]:
    return {
        one.name: Option(
            one.name, KINDS.get(one.metadata[READ] or _type(one), str), **one.metadata[DECLARED]
        )
        for one in dataclasses.fields(settings)
    }


def options_of(settings: type[Any]) -> dict[str, Option]:
    """Return the options that the fields of a data class declare, by name."""
    return dict(_options(settings))  # type: ignore[arg-type]


def converted(settings: type[Any], values: Mapping[str, object]) -> dict[str, Any]:
    """Return the values whose keys are fields of a data class, converted to their types.

    Raises
    ------
    UsageError
        If a value has the wrong type, or is a number outside of the bounds.
    """
    result = {}
    for one in dataclasses.fields(settings):
        if one.name in values:
            kind, value = one.metadata[READ] or _type(one), values[one.name]
            if isinstance(value, str):
                option = _options(settings)[one.name]  # type: ignore[arg-type]
                value = words_in_any_case(value, option.choices, option.separator)
            try:
                result[one.name] = READERS[kind](value)
            except ValueError as error:
                raise UsageError(
                    f"{one.name} must be {error}, not {quoted(values[one.name])}."
                ) from error
    return result


def check_bounds(settings: Any) -> None:
    """Refuse numbers outside of the bounds that the fields of a data class declare.

    Raises
    ------
    UsageError
        If a number is out of bounds.
    """
    for name, option in options_of(type(settings)).items():
        value = getattr(settings, name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            option.checked(value)


def _type(field: dataclasses.Field[Any]) -> str:
    return str(field.type).removesuffix(" | None")


def parse_duration(value: object) -> float:
    """Convert a time ``HH:MM:SS`` to seconds. The hours may have up to nine digits.

    Raises
    ------
    UsageError
        If the value does not have this form.
    """
    words = str(value).split(":")
    if len(words) != 3 or not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
        raise UsageError(
            f"time_limit: '{shortened(str(value))}' is not of the form HH:MM:SS, such as 23:30:00."
        )
    hours, minutes, seconds = map(int, words)
    return 3600.0 * hours + 60.0 * minutes + seconds


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number")
    if abs(value) > LARGEST:
        raise ValueError("a whole number between -2^63 and 2^63")
    return value


def _real(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("a number below 1e308") from None


def _word(value: object) -> str:
    if not isinstance(value, str | Path):
        raise ValueError("a string")
    word = str(value)
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in word):
        # Files of runs contain the words, and cannot contain these.
        raise ValueError("a string of UTF-8 without control characters")
    return word


def _path(value: object) -> str:
    """Read a path, which need not be UTF-8."""
    if not isinstance(value, str | Path):
        raise ValueError("a path")
    if not str(value) or "\0" in str(value):
        raise ValueError("a path that is not empty and has no NUL characters")
    return str(value)


def _start(value: object) -> str:
    """Read a start. The path of a file is made absolute, so that it is valid in every folder."""
    word = _word(value)
    return ",".join(
        one if one in STARTS or not one else str(Path(one).absolute())
        for one in listed_starts(word) or (word,)
    )


def listed_starts(start: str) -> tuple[str, ...]:
    """Return the starts that a text such as ``hot,cold`` names; nothing for the path of one file.

    Some or all of a list may be files, unless a file has the name of the whole list.
    """
    words = tuple(word.strip() for word in start.split(","))
    if set(words) <= {*STARTS}:
        return words
    return words if len(words) > 1 and all(words) and not Path(start).exists() else ()


def start_of_chain(start: str, chain: int) -> str:
    """Return how one of several chains starts, given its number from 0."""
    starts = listed_starts(start) or (start,)
    return starts[chain % len(starts)]


def check_starts(start: str, chains: int) -> None:
    """Refuse a list of more starts than there are chains.

    Raises
    ------
    UsageError
        If there are too few chains.
    """
    if (number := len(listed_starts(start))) > max(chains, 1):
        raise UsageError(
            f"--start {start} names the starts of {number} chains; add --chains {number}, or "
            "choose one of them."
        )


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _lattice(value: object) -> Lattice:
    if isinstance(value, Lattice):
        return value
    return Lattice.parse(value if isinstance(value, list | tuple) else _word(value))


def _action(value: object) -> Action:
    return value if isinstance(value, Action) else actions.parse(_word(value))


def _algorithm(value: object) -> Algorithm:
    return value if isinstance(value, Algorithm) else algorithms.parse(_word(value))


def _measurements(value: object) -> Any:
    return measurements(_word(value) if isinstance(value, str | Path) else value)


READERS: Mapping[str, Callable[[object], object]] = {
    "int": _whole,
    "float": _real,
    "str": _word,
    "path": _path,
    "bool": _flag,
    "duration": parse_duration,
    "start": _start,
    "Lattice": _lattice,
    "Action": _action,
    "Algorithm": _algorithm,
    "tuple[Measurement, ...]": _measurements,
}
"""How values are read, by the type of a field or by name."""

KINDS: Mapping[str, type[Any]] = {"int": int, "float": float, "bool": bool}
"""Types of fields that the command line reads as such; all others are text."""

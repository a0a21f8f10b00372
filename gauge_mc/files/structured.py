"""TOML and JSON from files that anybody may have written."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from gauge_mc.errors import GaugeError
from gauge_mc.files.input import read_text

NESTED = "its tables and lists are nested too deeply"
"""Reason for refusing a text, which the parsers would answer with a `RecursionError`."""

DEEPEST = 32
"""Largest number of tables and lists in each other, and of parts of a key. The time and the memory
that the parser of TOML takes for a key are proportional to the square of the number of its parts.
"""

TOKENS = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z)"""  # texts of several lines
    r"""|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?|\#[^\n]*"""  # texts, keys in quotation marks, comments
    r"|[\w+-]+|[.,=\[\]{}\n]",  # keys and other words, punctuation
    re.DOTALL,
)
"""Tokens that determine the depth of a text in TOML."""

LARGE = 2**63
"""Whole numbers from here on are taken for damage."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises
    ------
    ValueError
        If the text is not valid, or nested too deeply.
    """
    if _depth(text) > DEEPEST:
        raise ValueError(NESTED)
    content: dict[str, Any] = _parsed(tomllib.loads, text)
    return content


def _depth(text: str) -> int:
    """Return the largest number of nested brackets, and of parts of a key, of a text in TOML."""
    deepest = brackets = parts = 0
    for token in TOKENS.finditer(text):
        first = token[0][0]
        if first in "[{":
            brackets += 1
        elif first in "]}":
            brackets = max(0, brackets - 1)
        parts = parts + 1 if first == "." else parts * (first not in ",=[]{}\n")
        deepest = max(deepest, brackets, parts)
    return deepest


def parse_json(text: str | bytes) -> Any:
    """Return the content of a JSON file.

    Raises
    ------
    ValueError
        If the text is not valid, or nested too deeply.
    """
    return _parsed(json.loads, text)


def json_with(keys: Collection[str], limit: int) -> Callable[[Path], bool]:
    """Return a function that says whether a file is a JSON object with the given keys.

    Parameters
    ----------
    keys : collection of str
    limit : int
        Maximum size of such a file in bytes.
    """

    def recognises(path: Path) -> bool:
        try:
            content = parse_json(read_text(path, limit))
        except (GaugeError, ValueError):
            return False
        return isinstance(content, dict) and set(keys) <= content.keys()

    return recognises


def _parsed(parse: Callable[[Any], Any], text: str | bytes) -> Any:
    try:
        return parse(text)
    except RecursionError:
        raise ValueError(NESTED) from None


def check_types(value: Any, kind: Any) -> None:
    """Check that a value has the type of an annotation, fields of data classes included.

    Parameters
    ----------
    value : object
    kind : type
        A data class, ``int``, ``float`` (which may be a whole number), ``bool``, ``str``, or a
        tuple of any length or a dictionary of such types.

    Raises
    ------
    TypeError
        If the value has another type, or a number is so large that nothing can be done with it.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        right = isinstance(value, kind)
        parts = [(getattr(value, one.name), hints[one.name]) for one in fields(kind)]
    elif origin is UnionType:
        kind = next(one for one in inner if (one is NoneType) == (value is None))
        right, parts = True, [(value, kind)] if value is not None else []
    elif origin is tuple:
        right = isinstance(value, tuple)
        parts = [(one, inner[0]) for one in value]
    elif origin is dict:
        right = isinstance(value, dict)
        parts = [*((key, inner[0]) for key in value), *((one, inner[1]) for one in value.values())]
    else:
        right = type(value) in ((int, float) if kind is float else (kind,))
        right &= not (isinstance(value, int) and abs(value) >= LARGE)
        parts = []
    if not right:
        raise TypeError(f"a value is not of type {getattr(kind, '__name__', kind)}")
    for one, its_kind in parts:
        check_types(one, its_kind)

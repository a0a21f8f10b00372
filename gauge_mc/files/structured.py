"""TOML, JSON and CSV from files that anybody may have written."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import tomllib
from collections.abc import Callable, Collection, Sequence
from dataclasses import is_dataclass
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
    """Return the content of a TOML file."""
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
    """Return the content of a JSON file."""
    return _parsed(json.loads, text)


def parse_csv(text: str, names: Sequence[str]) -> list[dict[str, str]]:
    """Return the rows of a CSV file whose first line names its columns."""
    try:
        head, *rows = csv.reader(io.StringIO(text), strict=True) if text else [[]]
    except csv.Error as error:
        raise ValueError(str(error)) from error
    if head != [*names]:
        raise ValueError(f"its columns are not {', '.join(names)}")
    return [dict(zip(names, row, strict=True)) for row in rows]


def json_with(keys: Collection[str], limit: int) -> Callable[[Path], bool]:
    """Return a function that says whether a file is a JSON object with the given keys."""

    def recognises(path: Path) -> bool:
        try:
            content = parse_json(read_text(path, limit))
        except (GaugeError, ValueError):
            return False
        return isinstance(content, dict) and set(keys) <= content.keys()

    return recognises


def _parsed(parse: Callable[[Any], Any], text: str | bytes) -> Any:
    try:
        content = parse(text)
    except RecursionError:
        raise ValueError(NESTED) from None
    level = [content]
    for _ in range(DEEPEST + 1):
        if parse is json.loads and any(type(x) is int and abs(x) >= LARGE for x in level):
            raise ValueError(f"a whole number has more than {len(str(LARGE))} digits")
        inner = [x for x in level if isinstance(x, dict | list)]
        level = [x for y in inner for x in (y.values() if isinstance(y, dict) else y)]
        if not level:
            return content
    raise ValueError(NESTED)


def typed(content: Any, kind: Any) -> Any:
    """Return what was read from JSON or TOML as a value of the type of an annotation.

    Fields that a data class gains get a default, so that older files can be read.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        fields = {str(key): typed(x, hints.get(key)) for key, x in _as(dict, content).items()}
        return kind(**fields)
    if origin is UnionType:
        member = next(x for x in inner if x is not NoneType)
        return None if content is None else typed(content, member)
    if origin in (tuple, list):
        return origin(typed(x, inner[0]) for x in _as(list, content))
    if origin is dict:
        pairs = _as(dict, content).items()
        return {typed(key, inner[0]): typed(x, inner[1]) for key, x in pairs}
    if kind is float:
        content = math.nan if content is None else content
        return content if type(content) is float else _as(int, content)
    return _as(kind, content)


def _as(kind: Any, content: Any) -> Any:
    """Return the content if it is of a plain type."""
    if type(content) is not kind or (kind is int and abs(content) >= LARGE):
        raise TypeError(f"a value is not of type {getattr(kind, '__name__', kind)}")
    return content

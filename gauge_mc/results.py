"""Fields of results, each declared once.

A result is a data class. The declaration of a field gives its description in the docstring, from
which the reference documentation and the vocabulary of JSON follow, and its heading in tables; its
annotation says how it is read back (`gauge_mc.files.structured.typed`). Settings of runs are
declared in the same way, with more (`gauge_mc.run.settings`).
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Sequence
from dataclasses import MISSING, field, fields
from typing import Any, TypeVar

from gauge_mc.options import Number
from gauge_mc.registry import in_words

ResultClass = TypeVar("ResultClass", bound=type[Any])

INDENTED: dict[str, Any] = {"initial_indent": " " * 4, "subsequent_indent": " " * 4}
"""Indentation of the descriptions in a docstring."""

DECLARED = "number"
"""Key of the metadata of a field, with the arguments of its `Number` or `Option`."""


def result_field(help: str, default: Any = MISSING, **more: str) -> Any:
    """Return a field of a result.

    Parameters
    ----------
    help : str
        Description of the field.
    default : object, optional
        Its default; the type ``list`` or ``dict`` for an empty one.
    **more : str
        Symbol and unit; see `Number`. A field with a symbol is shown in tables.
    """
    metadata = {DECLARED: {"help": help, **more}}
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def numbers_of(kind: type[Any]) -> dict[str, Number]:
    """Return the declarations of the fields of a result by name."""
    return {
        field.name: Number(field.name, **field.metadata[DECLARED])
        for field in fields(kind)
        if DECLARED in field.metadata
    }


def headings(kind: type[Any]) -> dict[str, str]:
    """Return the headings in tables of the fields that have a symbol, by name."""
    return {
        name: f"{number.symbol} ({number.unit})" if number.unit else number.symbol
        for name, number in numbers_of(kind).items()
        if number.symbol
    }


def documented(kind: ResultClass) -> ResultClass:
    """Add the declared fields of a data class to its docstring; a class decorator."""
    lines = [
        f"{field.name} : {in_plain_words(field.type)}\n"
        + textwrap.fill(_description(**field.metadata[DECLARED]), 100, **INDENTED)
        for field in fields(kind)
    ]
    text = inspect.cleandoc(kind.__doc__ or "")  # from Python 3.13 on, it is not indented
    kind.__doc__ = "\n".join([f"{text}\n\nAttributes\n----------", *lines])
    return kind


def _description(help: str, choices: Sequence[str] = (), **_: object) -> str:
    """Return the description of a declared field, with the words that it may be."""
    words = in_words([f"``{choice}``" for choice in choices], "or")
    return f"{help} Choose {words}." if words else help


def in_plain_words(annotation: Any) -> str:
    """Return an annotation in words, such as ``dict of str to float``."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    words = re.sub(r"(\w+\.)+(?=\w)", "", text).replace(" | ", " or ").replace(", ...]", "]")
    while (shorter := re.sub(r"(\w+)\[([^\[\]]*)\]", _of, words)) != words:
        words = shorter
    return words


def _of(match: re.Match[str]) -> str:
    return f"{match[1].lower()} of {match[2].replace(', ', ' to ')}"

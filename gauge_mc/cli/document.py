"""Documents that commands print with ``--json``, and the vocabulary of their keys.

A command declares of which classes its documents consist. The keys are the attributes of these
classes, whose docstrings say what they mean; so the vocabulary is read from them, and a key that
is not described there cannot be printed without a test that fails.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from gauge_mc import __version__
from gauge_mc.cli import load_command, say
from gauge_mc.console import Console
from gauge_mc.domain.lattice import Lattice
from gauge_mc.results import documented, result_field

VOCABULARY = 2
"""Version of the vocabulary.

It is raised when a key is renamed or removed or changes its meaning, not when one is added.
"""

LEAVES = (Lattice, Path)
"""Classes whose objects are texts in a document."""

Function = TypeVar("Function", bound=Callable[..., Any])

DOCUMENTS: dict[str, tuple[type[Any] | str, ...]] = {}
"""Classes of which the documents of each command consist, filled by `prints`."""


@documented
@dataclass(frozen=True)
class Heading:
    """The first keys of every document."""

    command: str = result_field("Name of the command that printed the document.")
    version: str = result_field("Version of gauge-mc.", __version__)
    vocabulary: int = result_field(
        "Version of the vocabulary. It is raised when a key is renamed or removed or changes its "
        "meaning, and stays the same when a key is added.",
        VOCABULARY,
    )


@dataclass
class Word:
    """A key of the vocabulary."""

    meanings: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    """Meanings of the key, and the classes where it has them."""
    types: list[str] = dataclasses.field(default_factory=list)
    """Types of its values, as the docstrings name them."""
    named: bool = False
    """Whether its value may be an object whose keys are names, such as those of tables or runs,
    which do not belong to the vocabulary.
    """


def prints(*kinds: type[Any] | str) -> Callable[[Function], Function]:
    """Declare the classes that the JSON documents of a command consist of."""

    def declare(function: Function) -> Function:
        DOCUMENTS[function.__name__] = kinds
        return function

    return declare


@contextmanager
def alone_on_stdout(as_json: bool) -> Iterator[None]:
    """Redirect what is printed in a context to standard error, if a JSON document is to follow."""
    if not as_json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def print_document(command: str, *contents: Any) -> None:
    """Print a result as one JSON object; NaN and infinite numbers become null."""
    document: dict[str, Any] = {}
    for content in (*contents, Heading(command)):
        document |= plain(content)
    first = {field.name: document.pop(field.name) for field in dataclasses.fields(Heading)}
    print(json.dumps(first | document, indent=2, allow_nan=False))


def show_result(command: str, result: Any, as_json: bool, *shown: Any) -> None:
    """Print a result as a JSON document, or else the lines and tables that show it."""
    if as_json:
        print_document(command, result)
        return
    for part in shown:
        (say if isinstance(part, str) else Console().print)(part)


def plain(value: Any) -> Any:
    """Return a value as types that JSON has."""
    if isinstance(value, LEAVES):
        return str(value)
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name: plain(getattr(value, field.name)) for field in fields}
    if isinstance(value, Mapping):
        return {str(key): plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [plain(x) for x in value]
    number = value.item() if hasattr(value, "item") else value  # a scalar of NumPy
    if isinstance(number, float):
        return number if math.isfinite(number) else None
    return number if isinstance(number, bool | int | None) else str(number)


def documents(command: str) -> list[type[Any]]:
    """Return the classes that the JSON documents of a command consist of."""
    load_command(command)
    return [resolve_name(kind) if isinstance(kind, str) else kind for kind in DOCUMENTS[command]]


def vocabulary(kinds: list[type[Any]]) -> dict[str, Word]:
    """Return the keys of classes and of all that they contain, in alphabetical order."""
    words: dict[str, Word] = {}
    pending: list[type[Any]] = [Heading, *kinds]
    visited: set[type[Any]] = set()
    while pending:
        kind = pending.pop(0)
        if kind in visited:
            continue
        visited.add(kind)
        described, hints = keys_of(kind), get_type_hints(kind)
        for name in dict.fromkeys((*described, *hints)):
            type_, meaning = described.get(name, ("", ""))
            hint = hints.get(name)
            word = words.setdefault(name, Word())
            word.meanings.setdefault(meaning, []).append(kind.__name__)
            word.types += [type_] * (type_ not in word.types)
            word.named |= _has_names(hint)
            pending += _classes(hint)
    return dict(sorted(words.items()))


def attributes(kind: type[Any]) -> list[tuple[list[str], str, str]]:
    """Return names, type and meaning of the attributes that a class's docstring describes."""
    text = inspect.cleandoc(kind.__doc__ or "")
    section = re.search(r"\nAttributes\n-+\n(.*?)(?=\n\n[A-Z]\w+\n-|\Z)", text, re.S)
    entries = []
    for entry in re.split(r"\n(?=\S)", section[1]) if section else ():
        first, _, meaning = entry.partition("\n")
        names, _, type_ = first.partition(" : ")
        entries.append((names.split(", "), type_, meaning))
    return entries


def keys_of(kind: type[Any]) -> dict[str, tuple[str, str]]:
    """Return type and meaning of the keys of a class, those of its base classes first."""
    return {
        name: (type_, " ".join(meaning.split()))
        for base in reversed(kind.__mro__)
        for names, type_, meaning in attributes(base)
        for name in names
    }


def _has_names(hint: Any) -> bool:
    """Return whether values of a type are objects whose keys are names."""
    origin = get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return True
    return any(map(_has_names, get_args(hint)))


def _classes(hint: Any) -> list[type[Any]]:
    """Return the data classes that values of a type contain."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return [] if hint in LEAVES else [hint]
    return [kind for part in get_args(hint) for kind in _classes(part)]

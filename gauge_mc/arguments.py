"""Arguments of public functions, compared with the types that their signatures declare.

A wrong type would otherwise end in an error from deep inside, which says nothing about the
argument. Types that are not known here, such as arrays, are left to the functions.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Any,
    SupportsComplex,
    SupportsFloat,
    SupportsIndex,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from gauge_mc.errors import UsageError
from gauge_mc.quoting import quoted
from gauge_mc.registry import in_words

F = TypeVar("F", bound=Callable[..., Any])

SIMPLE: dict[Any, tuple[Any, str, str]] = {
    bool: (bool, "True or False", "True or False"),
    int: (SupportsIndex, "a whole number", "whole numbers"),
    float: (SupportsFloat, "a number", "numbers"),
    complex: (SupportsFloat | SupportsComplex, "a number", "numbers"),
    str: (str, "text", "texts"),
    os.PathLike: (os.PathLike, "a path", "paths"),
    Path: (os.PathLike, "a path", "paths"),
    Mapping: (Mapping, "a dictionary", "dictionaries"),
}
"""Accepted values of a type, and words for one and for several of them."""


def checks_types(function: F) -> F:
    """Let a function refuse arguments of other types than its signature declares.

    Returns
    -------
    callable
        The function. It raises `UsageError` with the name of the first wrong argument.
    """
    own = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        try:
            given = own.bind_partial(*args, **options).arguments
        except TypeError:  # Python says it better when the function is called
            given = {}
        for name, value in given.items():
            _check(function, own.parameters[name], value)
        return function(*args, **options)

    return checked  # type: ignore[return-value]


def _check(function: Callable[..., Any], parameter: inspect.Parameter, value: object) -> None:
    """Refuse a value that does not have the type of a parameter."""
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return  # these are checked where they are declared
    hint = _hint(parameter.annotation, function)
    values = value if parameter.kind is inspect.Parameter.VAR_POSITIONAL else (value,)
    for one in values:  # type: ignore[attr-defined]
        if not _accepts(hint, one):
            raise UsageError(
                f"{parameter.name} of {_name(function)} is {quoted(one)}; give "
                f"{in_words(_words(hint), 'or')}."
            )


def _name(function: Callable[..., Any]) -> str:
    """Return the name of a function as users call it, such as ``Field.cold``."""
    return function.__qualname__.removesuffix(".__init__")


@functools.cache
def _hint(annotation: Any, function: Callable[..., Any]) -> Any:
    """Return the type of an annotation; Any if it is known to type checkers only."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, function.__globals__)
    except (NameError, TypeError):
        return Any


def _accepts(hint: Any, value: object) -> bool:
    """Return whether a value has a type, as far as the type is known here."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_accepts(one, value) for one in parts)
    if kind is NoneType or hint is None:
        return value is None
    if kind in SIMPLE:
        return isinstance(value, SIMPLE[kind][0]) and (kind is bool or not isinstance(value, bool))
    if kind in (Sequence, Iterable):
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            return False
        return not isinstance(value, Sized) or all(_accepts(parts[0], one) for one in value)
    if kind is tuple and parts and parts[-1] is not Ellipsis:
        return (
            isinstance(value, tuple | list)
            and len(value) == len(parts)
            and all(map(_accepts, parts, value))
        )
    if kind is Callable:
        return callable(value)
    ours = isinstance(kind, type) and kind.__module__.startswith("gauge_mc.")
    if ours and not getattr(kind, "_is_protocol", False):
        return isinstance(value, kind)
    return True


def _words(hint: Any) -> list[str]:
    """Return words for the values that a type accepts."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return [*dict.fromkeys(word for one in _shown(parts) for word in _words(one))]
    if kind in SIMPLE:
        return [SIMPLE[kind][1]]
    if kind in (Sequence, Iterable):
        inner = get_origin(parts[0]) or parts[0] if parts else Any
        return [f"a list of {SIMPLE[inner][2]}" if inner in SIMPLE else "a list"]
    if kind is tuple:
        inner = [word for part in parts for word in _words(part)]
        return [f"({', '.join(inner)})"]
    if kind is NoneType or hint is None:
        return ["None"]
    if kind is Callable:
        return ["a function"]
    return [f"a {getattr(kind, '__name__', kind)}"]


def _shown(parts: Sequence[Any]) -> list[Any]:
    """Return the types that a sentence names: without text beside paths, and without None."""
    paths = any((get_origin(one) or one) in (os.PathLike, Path) for one in parts)
    return [one for one in parts if one is not NoneType and not (paths and one is str)]

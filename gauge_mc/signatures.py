"""Signatures of functions whose keyword arguments are declared elsewhere.

``help``, editors and notebooks show the keyword arguments by name, with types and defaults. They
are looked up when somebody asks for them, because most of them belong to plug-ins.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
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
    get_type_hints,
)

from gauge_mc.errors import UsageError
from gauge_mc.options import Option, Owners
from gauge_mc.quoting import quoted
from gauge_mc.registry import in_words
from gauge_mc.results import DECLARED

F = TypeVar("F", bound=Callable[..., Any])

Keywords = Iterable[inspect.Parameter]
"""Keyword arguments, with types and defaults."""


class LateSignature(inspect.Signature):
    """A signature whose keyword arguments are looked up when they are first needed.

    Parameters
    ----------
    function : callable
        Function whose last parameter, such as ``**options``, stands for these arguments.
    find : callable
        Function that returns the arguments.
    """

    __slots__ = ("_find", "_found", "_own")

    def __init__(self, function: Callable[..., Any], find: Callable[[], Keywords]) -> None:
        self._own, self._find = inspect.signature(function), find
        self._found: Mapping[str, inspect.Parameter] | None = None
        super().__init__(return_annotation=self._own.return_annotation)

    @property
    def parameters(self) -> Any:
        """All parameters by name."""
        if self._found is None:
            declared = [*self._own.parameters.values()]
            assert declared.pop().kind is inspect.Parameter.VAR_KEYWORD
            self._found = inspect.Signature([*declared, *self.looked_up]).parameters
        return self._found

    @property
    def looked_up(self) -> list[inspect.Parameter]:
        """The keyword arguments that are declared elsewhere."""
        return [x for x in self._find() if x.name not in self._own.parameters]

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        """Return an ordinary signature with changes; see `inspect.Signature.replace`."""
        return inspect.Signature(
            [*self.parameters.values()], return_annotation=self.return_annotation
        ).replace(**changes)


def with_keywords(find: Callable[[], Keywords]) -> Callable[[F], F]:
    """Return a decorator that lets the signature of a function list keyword arguments."""

    def decorate(function: F) -> F:
        function.__signature__ = LateSignature(function, find)  # type: ignore[attr-defined]
        return function

    return decorate


def with_fields(
    *kinds: type[Any], options: Callable[[], Iterable[Option]] = tuple
) -> Callable[[F], F]:
    """Return a decorator that lets the signature of a function list the fields of data classes."""
    return with_keywords(
        lambda: [*(k for kind in kinds for k in field_keywords(kind)), *option_keywords(options())]
    )


def field_keywords(kind: type[Any]) -> Iterator[inspect.Parameter]:
    """Yield the fields of a data class as keyword arguments."""
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if any(
            get_origin(kind) is Mapping
            for kind in (hints[field.name], *get_args(hints[field.name]))
        ):
            continue  # options of several things, which have names of their own
        accepted = _accepted(hints[field.name], field)
        # NaN stands for a default that depends on other parameters.
        unknown = isinstance(field.default, float) and math.isnan(field.default)
        yield _keyword(
            field.name, accepted | None if unknown else accepted, None if unknown else field.default
        )


def _accepted(hint: Any, field: dataclasses.Field[Any]) -> Any:
    """Return the type of the values of a field, which is text unless it is a number or a flag."""
    kinds = {*(get_args(hint) if isinstance(hint, UnionType) else (hint,))}
    if field.metadata.get("read"):  # such as a duration, which the field has in seconds
        return str | None if type(None) in kinds else str
    if kinds <= {int, float, bool, str, type(None)}:
        return hint
    each = field.metadata.get(DECLARED, {}).get("each")
    return hint | str | Sequence[each] if each else hint | str  # type: ignore[valid-type]


def with_options(owners: Callable[[], Owners]) -> Callable[[F], F]:
    """Return a decorator that lets the signature of a function list options of several things."""
    return with_keywords(lambda: option_keywords(x for _, options in owners() for x in options))


def option_keywords(options: Iterable[Option]) -> Iterator[inspect.Parameter]:
    """Yield options as keyword arguments, in alphabetical order."""
    for name, option in sorted({option.name: option for option in options}.items()):
        yield _keyword(name, _type(option) | None, None)


def _type(option: Option) -> Any:
    """Return the type of the values of an option in Python."""
    kind: Any = option.kind
    if option.each:
        row: Any = list[option.each]  # type: ignore[name-defined]
        return kind | (list[row] if option.rows else option.each) | row
    if option.items:
        item: Any = kind | option.items | Mapping[str, object]
        return item | list[item]
    if not option.repeated:
        return kind | str if option.instead else kind
    items: Any = kind | option.accepts if option.accepts else kind
    return items | list[items]


def _keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, only, default=default, annotation=kind)


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
    """Let a function refuse arguments of other types than its signature declares."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        try:
            arguments = signature.bind_partial(*args, **options).arguments
        except TypeError:  # Python says it better when the function is called
            arguments = {}
        for name, value in arguments.items():
            _check(function, signature.parameters[name], value)
        return function(*args, **options)

    return checked  # type: ignore[return-value]


def _check(function: Callable[..., Any], parameter: inspect.Parameter, value: object) -> None:
    """Refuse a value that does not have the type of a parameter."""
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return  # these are checked where they are declared
    hint = _hint(parameter.annotation, function)
    values = value if parameter.kind is inspect.Parameter.VAR_POSITIONAL else (value,)
    for element in values:  # type: ignore[attr-defined]
        if not _accepts(hint, element):
            called = function.__qualname__.removesuffix(".__init__")  # as users call it
            raise UsageError(
                f"{parameter.name} of {called} is {quoted(element)}; give "
                f"{in_words(_words(hint), 'or')}."
            )


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
        return any(_accepts(part, value) for part in parts)
    if kind is NoneType or hint is None:
        return value is None
    if kind in SIMPLE:
        return isinstance(value, SIMPLE[kind][0]) and (kind is bool or not isinstance(value, bool))
    if kind in (Sequence, Iterable):
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            return False
        return not isinstance(value, Sized) or all(_accepts(parts[0], x) for x in value)
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
        return [*dict.fromkeys(word for x in _shown(parts) for word in _words(x))]
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
    paths = any((get_origin(part) or part) in (os.PathLike, Path) for part in parts)
    return [part for part in parts if part is not NoneType and not (paths and part is str)]

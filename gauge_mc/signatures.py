"""Signatures of functions whose keyword arguments are declared elsewhere.

``help``, editors and notebooks show the keyword arguments by name, with types and defaults. They
are looked up when somebody asks for them, because most of them belong to plug-ins.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from gauge_mc.options import Option, Owners
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
            own = [*self._own.parameters.values()]
            assert own.pop().kind is inspect.Parameter.VAR_KEYWORD
            self._found = inspect.Signature([*own, *self.looked_up]).parameters
        return self._found

    @property
    def looked_up(self) -> list[inspect.Parameter]:
        """The keyword arguments that are declared elsewhere."""
        return [one for one in self._find() if one.name not in self._own.parameters]

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
    """Return a decorator that lets the signature of a function list the fields of data classes.

    Parameters
    ----------
    *kinds : type
        Data classes.
    options : callable
        Function that returns further options.
    """
    return with_keywords(
        lambda: [
            *(one for kind in kinds for one in field_keywords(kind)),
            *option_keywords(options()),
        ]
    )


def field_keywords(kind: type[Any]) -> Iterator[inspect.Parameter]:
    """Yield the fields of a data class as keyword arguments."""
    hints = get_type_hints(kind)
    for one in dataclasses.fields(kind):
        if any(
            get_origin(kind) is Mapping for kind in (hints[one.name], *get_args(hints[one.name]))
        ):
            continue  # options of several things, which have names of their own
        accepted = _accepted(hints[one.name], one)
        # NaN stands for a default that depends on other parameters.
        unknown = isinstance(one.default, float) and math.isnan(one.default)
        yield _keyword(
            one.name, accepted | None if unknown else accepted, None if unknown else one.default
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
    """Return a decorator that lets the signature of a function list options of several things.

    Parameters
    ----------
    owners : callable
        Function that returns the things with their options, which are None if they are not given.
    """
    return with_keywords(lambda: option_keywords(one for _, options in owners() for one in options))


def option_keywords(options: Iterable[Option]) -> Iterator[inspect.Parameter]:
    """Yield options as keyword arguments, in alphabetical order."""
    for name, option in sorted({one.name: one for one in options}.items()):
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

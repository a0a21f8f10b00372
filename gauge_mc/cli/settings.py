"""Options of commands that follow from the declared settings of runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, get_args

import typer
from typer.models import ArgumentInfo

from gauge_mc.cli.command import declared_parameter
from gauge_mc.cli.help import with_default
from gauge_mc.options import Option
from gauge_mc.run.options import known_options

Function = TypeVar("Function", bound=Callable[..., Any])


def of_runs(
    changes: Mapping[str, Mapping[str, Any]] | None = None, without: Iterable[str] = ()
) -> Callable[[Function], Function]:
    """Let a command have all options of runs; this is a decorator.

    Parameters
    ----------
    changes : mapping of str to mapping
        Attributes of options that differ for this command, such as ``help``, by name.
    without : iterable of str
        Options that the command does not have.
    """
    known = known_options()
    return with_settings([name for name in known if name not in without], changes)


def with_settings(
    names: Iterable[str], changes: Mapping[str, Mapping[str, Any]] | None = None
) -> Callable[[Function], Function]:
    """Let a command have some options of runs, before its own; this is a decorator.

    A parameter of the function that has the name of one of them says only its type.

    Parameters
    ----------
    names : iterable of str
        Names of fields of `Parameters` and `Execution`.
    changes : mapping of str to mapping
        See `of_runs`.
    """
    known, different = known_options(), changes or {}
    options = [replace(known[name], **different.get(name, {})) for name in names]

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function, eval_str=True)
        declared = {one.name: _parameter(one) for one in options}
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        named = {one.name for one in own}
        kept = [declared.get(one.name, one.replace(kind=one.KEYWORD_ONLY)) for one in own]
        added = [one for name, one in declared.items() if name not in named]
        last = max([place + 1 for place, one in enumerate(kept) if _is_first(one)], default=0)
        everything = signature.replace(parameters=[*kept[:last], *added, *kept[last:]])
        function.__signature__ = everything  # type: ignore[attr-defined]
        function.__annotations__ = {
            name: one.annotation for name, one in everything.parameters.items()
        }
        return function

    return decorate


def _parameter(option: Option) -> inspect.Parameter:
    text = with_default(option.help, "" if option.kind is bool else option.default_in_words)
    return declared_parameter(option, option.panel, text)


def _is_first(parameter: inspect.Parameter) -> bool:
    """Return whether a parameter of a command is given by its place, or is the context."""
    return parameter.annotation is typer.Context or any(
        isinstance(one, ArgumentInfo) for one in get_args(parameter.annotation)
    )

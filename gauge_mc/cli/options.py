"""Tools for options and lists in help texts, and options that follow from the settings of runs.

All options default to None, which means that an option was not given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeVar, get_args

import typer
from typer.models import ArgumentInfo

from gauge_mc.cli.command import declared_parameter
from gauge_mc.cli.help import choosing, with_default
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.run.parameters import known_options
from gauge_mc.run.settings import ENSEMBLE as ENSEMBLE
from gauge_mc.run.settings import EXECUTION as EXECUTION
from gauge_mc.run.settings import FILES as FILES

Function = TypeVar("Function", bound=Callable[..., Any])

NEWEST = "running or last generated in runs/"
"""Default of an argument that names a run or a scan; see `newness`."""

OBSERVABLE_SUMMARIES = [(name, x.summary) for name, x in OBSERVABLES.items()]
"""Names and summaries of the observables, for `listed`."""


def option(
    help: str,
    usual: object = "",
    metavar: str | None = None,
    choices: Iterable[str] = (),
    flag: str = "",
    panel: str | None = None,
) -> Any:
    """Return an option for Typer."""
    words = list(choices)
    return typer.Option(
        *flag.split(),
        help=with_default(help, usual),
        rich_help_panel=panel,
        metavar=metavar or "|".join(words) or None,
        show_default=False,
        **(choosing(words) if words else {}),
    )


def declared(setting: Option, usual: str | None = None, panel: str | None = None) -> Any:
    """Return a declared option for Typer that is a number or a word instead of it."""
    parameter = option(
        setting.help, usual or setting.default, setting.metavar, setting.instead, panel=panel
    )
    parameter.parser = setting.read
    return parameter


def argument(help: str, usual: object = "", metavar: str = "", choices: Iterable[str] = ()) -> Any:
    """Return an argument for Typer, which is given by its place; see `option`."""
    words = list(choices)
    return typer.Argument(
        metavar=metavar,
        help=with_default(help, usual),
        show_default=False,
        **(choosing(words) if words else {}),
    )


def listed(title: str, entries: Iterable[tuple[str, str]]) -> Callable[[Function], Function]:
    """Add a list of names with summaries to the help text of a command; this is a decorator."""
    rows = [(name, "", summary) for name, summary in entries]

    def decorate(function: Function) -> Function:
        function.lists = {title: rows}  # type: ignore[attr-defined]
        return function

    return decorate


Card = Annotated[
    str | None,
    option("Run card, a TOML file with any of these options.", metavar="FILE", panel=FILES),
]
StatedLattice = Annotated[
    str | None, option("Extents of links whose file does not state them.", metavar="XxYxZxT")
]
StatedGroup = Annotated[str | None, option("Group of such links.", choices=GROUPS)]
Json = Annotated[
    bool,
    option("Print the result as one JSON object; all else goes to standard error.", flag="--json"),
]


def after(updates: Sequence[int]) -> str:
    """Return the first and the last of some updates in words."""
    shown = [str(update) for update in updates]
    if len(shown) > 4:
        shown[2:-1] = ["..."]
    return f" (after updates {', '.join(shown)})" if shown else ""


def with_settings(
    names: Iterable[str],
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    more: Iterable[Option] = (),
) -> Callable[[Function], Function]:
    """Let a command have some options of runs, before its own; this is a decorator.

    A parameter of the function that has the name of one of them says only its type.
    """
    registry, different = known_options(), changes or {}
    options = [*(replace(registry[name], **different.get(name, {})) for name in names), *more]

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function, eval_str=True)
        declared = {option.name: parameter(option) for option in options}
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        named = {x.name for x in parameters}
        replaced = [declared.get(x.name, x.replace(kind=x.KEYWORD_ONLY)) for x in parameters]
        added = [x for name, x in declared.items() if name not in named]
        last = max([place + 1 for place, x in enumerate(replaced) if _is_first(x)], default=0)
        extended = signature.replace(parameters=[*replaced[:last], *added, *replaced[last:]])
        function.__signature__ = extended  # type: ignore[attr-defined]
        function.__annotations__ = {name: p.annotation for name, p in extended.parameters.items()}
        return function

    return decorate


def parameter(option: Option) -> inspect.Parameter:
    """Return an option of runs as a parameter of a command."""
    text = with_default(option.help, "" if option.kind is bool else option.default_in_words)
    return declared_parameter(option, option.panel, text)


def _is_first(parameter: inspect.Parameter) -> bool:
    """Return whether a parameter of a command is given by its place, or is the context."""
    return parameter.annotation is typer.Context or any(
        isinstance(arg, ArgumentInfo) for arg in get_args(parameter.annotation)
    )

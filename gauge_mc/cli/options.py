"""Tools for options and lists in help texts, and options that follow from the settings of runs.

All options default to None, which means that an option was not given. A command that is a function
of Python has the options of its docstring.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, TypeVar, get_args, get_origin

import typer
from typer.models import ArgumentInfo

from gauge_mc.cli import say
from gauge_mc.cli.command import declared_parameter
from gauge_mc.cli.document import alone_on_stdout, show_result
from gauge_mc.cli.help import choosing, with_default
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option, flag_of
from gauge_mc.registry import HERE, in_words
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
        declared = {option.name: setting(option) for option in options}
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        named = {x.name for x in parameters}
        replaced = [declared.get(x.name, x.replace(kind=x.KEYWORD_ONLY)) for x in parameters]
        added = [x for name, x in declared.items() if name not in named]
        last = max([place + 1 for place, x in enumerate(replaced) if _is_first(x)], default=0)
        _sign(function, signature.replace(parameters=[*replaced[:last], *added, *replaced[last:]]))
        return function

    return decorate


def setting(option: Option) -> inspect.Parameter:
    """Return an option of runs as a parameter of a command."""
    text = with_default(option.help, "" if option.kind is bool else option.default_in_words)
    parameter = declared_parameter(option, option.panel, text)
    if not option.instead:
        return parameter
    words_too = Annotated[str | None, get_args(parameter.annotation)[1]]  # beside numbers
    return parameter.replace(annotation=words_too)


def _is_first(parameter: inspect.Parameter) -> bool:
    """Return whether a parameter of a command is given by its place, or is the context."""
    return parameter.annotation is typer.Context or any(
        isinstance(arg, ArgumentInfo) for arg in get_args(parameter.annotation)
    )


PATHS = "path or sequence of paths"
KINDS: dict[str, Any] = {"path": Path, PATHS: list[Path], "int": int, "bool": bool}
"""Types of values by the words for them in a docstring; others are text."""

ENTRY = re.compile(r"^\*?(\w+|[\w, ]+(?=\n))(?: : (.*))?\n((?: .*\n?)+)", re.M)
"""Names, type and description of parameters in a docstring; settings of runs have no type there."""

Detail = str | Iterable[str] | Option
"""What stands for the value of a parameter, its choices, or its declaration."""


def named_or_said(
    named: Sequence[Path] | None, as_json: bool, of_scans: bool = False
) -> list[Path]:
    """Return the paths that were named, or else the newest, which a line names."""
    from gauge_mc.stored import named_or_newest

    paths = named_or_newest(named, of_scans)
    if not named:
        say(f"taken, the newest: {in_words(map(str, paths))}", error=as_json)
    return paths


def is_function(
    place: str, **details: Detail
) -> Callable[[Callable[..., Iterator[str]]], Callable[..., None]]:
    """Let a command be a function of Python; this is a decorator.

    What it decorates yields the lines that show the result, given that and the options that it
    names. After a summary, its docstring has the examples.
    """
    text, section = _docstring(place)
    first, *_ = parameters = [*_parameters(section, details)]

    def decorate(show: Callable[..., Iterator[str]]) -> Callable[..., None]:
        @wraps(show)
        def carry_out(json: bool, **values: Any) -> None:
            given = {name: value for name, value in values.items() if value is not None}
            if quiet := given.pop("quiet", False):
                given["progress"] = False
            if first.default is None:
                given[first.name] = named_or_said(values[first.name], json)
            with alone_on_stdout(json):
                result = resolve_name(place)(**given)
            shown = {x: values[x] for x in inspect.signature(show).parameters if x in values}
            hidden = quiet and not values.get("dry_run")
            show_result(show.__name__, result, json, *(() if hidden else show(result, **shown)))

        _sign(carry_out, inspect.Signature(parameters))
        carry_out.__doc__ = _as_typed(text) + (inspect.getdoc(show) or "").partition(".")[2]
        return carry_out

    return decorate


def described_by(place: str, **details: Detail) -> Callable[[Function], Function]:
    """Describe parameters that have only a type as a docstring does; this is a decorator."""
    described = {x.name: x for x in _parameters(_docstring(place)[1], details)}

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function, eval_str=True)
        parameters = dict(signature.parameters)
        for name, x in parameters.items():
            if name in described and get_origin(x.annotation) is not Annotated:
                declaration = get_args(described[name].annotation)[1]
                parameters[name] = x.replace(annotation=Annotated[x.annotation, declaration])
        _sign(function, signature.replace(parameters=[*parameters.values()]))
        return function

    return decorate


def _sign(function: Callable[..., Any], signature: inspect.Signature) -> None:
    """Let a command have a signature, of which Typer reads both forms."""
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__annotations__ = {name: x.annotation for name, x in signature.parameters.items()}


def _docstring(place: str) -> tuple[str, str]:
    """Return text and parameters of a function's docstring without an import of its module."""
    module, _, name = place.partition(":")
    source = HERE.parent.joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8")
    docstring = re.findall(rf'^def {name}\(.*?"""(.*?)"""', source, re.M | re.S)[0]
    text, section, *_ = re.split(r"\n\n\w+\n-+\n", inspect.cleandoc(docstring))
    return text, section


def _parameters(section: str, details: Mapping[str, Detail]) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a command, of which the first is the argument; settings come last.

    The help text is the first sentence of a description, which may end with the default.
    """
    settings: list[str] = []
    for name, words, lines in ENTRY.findall(section):
        if not words or name == "progress":
            settings += ["quiet"] if words else name.split(", ")
            continue
        sentence = _as_typed(" ".join(lines.split())).split(". ")[0].removesuffix(".")
        text, _, usual = sentence.partition("; by default ")
        needed = "optional" not in words and words != "bool"
        kind, detail = KINDS.get(words.removesuffix(", optional"), str), details.get(name, "")
        if not isinstance(detail, Option):
            more = {"metavar": detail} if isinstance(detail, str) else {"choices": tuple(detail)}
            detail = Option(name, kind, **more)
        option = replace(detail, help=f"{text}.", default=usual)
        entry, accepted = setting(option), kind if needed else kind | None
        if section.lstrip("*").startswith(name):
            described = argument(option.help, usual, option.metavar or name.upper())
            entry = entry.replace(annotation=Annotated[accepted, described])
        yield entry.replace(default=entry.empty) if needed else entry
    yield entry.replace(name="json", default=False, annotation=Json)
    for name in settings:
        yield setting(known_options()[name])


def _as_typed(text: str) -> str:
    """Return a text of a docstring with names as the command line writes them."""
    text = re.sub(r"`gauge_mc\.(\w+)`", r"gauge-mc \1", text.replace("``", ""))
    return re.sub(r"`(\w+)`", lambda match: flag_of(match[1]), text)

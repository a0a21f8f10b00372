"""Commands that are functions of Python.

Arguments, options and help texts are those of the docstring of the function, which is read from the
source, because its module may import much that a help text does not need.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

from gauge_mc.cli import options as o
from gauge_mc.cli.document import alone_on_stdout, show_result
from gauge_mc.options import Option, flag_of
from gauge_mc.run.parameters import known_options

PATHS = "path or sequence of paths"
KINDS: dict[str, Any] = {"path": Path, PATHS: list[Path], "int": int, "bool": bool}
"""Types of values by the words for them in a docstring; others are text."""

ENTRY = re.compile(r"^([\w, ]+)(?: : (.*))?\n((?: .*\n?)+)", re.M)
"""Names, type and description of parameters in a docstring; settings of runs have no type there."""

Detail = str | Iterable[str] | Option
"""What stands for the value of a parameter, its choices, or its declaration."""


def is_function(
    place: str, **details: Detail
) -> Callable[[Callable[..., Iterator[str]]], Callable[..., None]]:
    """Let a command be a function of Python; this is a decorator.

    What it decorates yields the lines that show the result, given that and the options that it
    names. After a summary, its docstring has the examples.
    """
    text, section, *_ = re.split(r"\n\n\w+\n-+\n", _docstring(place))
    first, *_ = parameters = [*_parameters(section, details)]

    def decorate(show: Callable[..., Iterator[str]]) -> Callable[..., None]:
        @wraps(show)
        def carry_out(json: bool, **values: Any) -> None:
            given = {name: value for name, value in values.items() if value is not None}
            if quiet := given.pop("quiet", False):
                given["progress"] = False
            if first.default is None:
                from gauge_mc.cli.status import named_or_said

                given[first.name] = named_or_said(values[first.name], json)
            with alone_on_stdout(json):
                result = resolve_name(place)(**given)
            shown = {x: values[x] for x in inspect.signature(show).parameters if x in values}
            hidden = quiet and not values.get("dry_run")
            show_result(show.__name__, result, json, *(() if hidden else show(result, **shown)))

        carry_out.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        carry_out.__annotations__ = {x.name: x.annotation for x in parameters}
        carry_out.__doc__ = _as_typed(text) + (inspect.getdoc(show) or "").partition(".")[2]
        return carry_out

    return decorate


def _docstring(place: str) -> str:
    """Return the docstring of a function without an import of its module."""
    module, _, name = place.partition(":")
    spec = find_spec(module)
    source = Path(str(spec and spec.origin)).read_text(encoding="utf-8")
    functions = (x for x in ast.parse(source).body if isinstance(x, ast.FunctionDef))
    return next(ast.get_docstring(x) or "" for x in functions if x.name == name)


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
        option, declared = replace(detail, help=f"{text}.", default=usual), None
        if section.startswith(name):
            declared = o.argument(option.help, usual, option.metavar or name.upper())
        elif option.instead:
            declared = o.declared(option)
        parameter = o.parameter(option)
        if declared:
            kind = kind if needed else kind | None
            parameter = parameter.replace(annotation=Annotated[kind, declared])
        yield parameter.replace(default=parameter.empty) if needed else parameter
    yield parameter.replace(name="json", default=False, annotation=o.Json)
    for name in settings:
        yield o.parameter(known_options()[name])


def _as_typed(text: str) -> str:
    """Return a text of a docstring with names as the command line writes them."""
    text = re.sub(r"`gauge_mc\.(\w+)`", r"gauge-mc \1", text.replace("``", ""))
    return re.sub(r"`(\w+)`", lambda match: flag_of(match[1]), text)

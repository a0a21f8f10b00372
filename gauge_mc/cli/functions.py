"""Commands that are functions of Python.

Arguments, options and help texts are those of the docstring of the function, which is read from the
source, because its module may import much that a help text does not need.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

from gauge_mc.cli import options as o
from gauge_mc.cli.document import alone_on_stdout, show_result
from gauge_mc.options import Option, flag_of
from gauge_mc.run.parameters import known_options

KINDS: dict[str, Any] = {"path": Path, "int": int, "bool": bool}
"""Types of values by the first word for them in a docstring; others are text."""

ENTRY = re.compile(r"^([\w, ]+)(?: : (.*))?\n((?: .*\n?)+)", re.M)
"""Names, type and description of parameters in a docstring; settings of runs have no type there."""

Details = Mapping[str, str | Iterable[str]]
"""What stands for the values of parameters, or their choices."""


def is_function(
    place: str, **details: str | Iterable[str]
) -> Callable[[Callable[..., Iterator[str]]], Callable[..., None]]:
    """Let a command be a function of Python; this is a decorator.

    What it decorates yields the lines that show the result, given that and the options that it
    names. After a summary, its docstring has the examples.
    """
    text, section, *_ = re.split(r"\n\n\w+\n-+\n", _docstring(place))
    parameters = [*_parameters(section, details)]

    def decorate(show: Callable[..., Iterator[str]]) -> Callable[..., None]:
        @wraps(show)
        def carry_out(json: bool, **values: Any) -> None:
            given = {name: value for name, value in values.items() if value is not None}
            if quiet := given.pop("quiet", False):
                given["progress"] = False
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


def _parameters(section: str, details: Details) -> Iterator[inspect.Parameter]:
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
        kind, detail = KINDS.get(words.split()[0].strip(","), str), details.get(name, "")
        more = {"metavar": detail} if isinstance(detail, str) else {"choices": tuple(detail)}
        parameter = o.parameter(Option(name, kind, f"{text}.", default=usual, **more))
        if section.startswith(name):
            declared = o.argument(f"{text}.", usual, str(detail) or name.upper())
            parameter = parameter.replace(annotation=Annotated[kind, declared])
        needed = kind is not bool and "optional" not in words
        yield parameter.replace(default=parameter.empty) if needed else parameter
    yield parameter.replace(name="json", default=False, annotation=o.Json)
    for name in settings:
        yield o.parameter(known_options()[name])


def _as_typed(text: str) -> str:
    """Return a text of a docstring with names as the command line writes them."""
    text = re.sub(r"`gauge_mc\.(\w+)`", r"gauge-mc \1", text.replace("``", ""))
    return re.sub(r"`(\w+)`", lambda match: flag_of(match[1]), text)

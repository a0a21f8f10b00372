"""Run cards: TOML files with the options of a run, their schema, and cards with comments.

A key has the name of an option. The options of the action may also stand in the table ``[action]``
beside its name, those of the algorithm in ``[algorithm]``, and observables have tables of their
own. So have the things of which an option is a list::

    beta = 2.6
    lattice = "24x24x24x24"

    [action]
    name = "rectangle"
    c1 = -0.1

    [[levels]]
    integrator = "omf2"
    steps = 5

    [measure.flow]
    every = 50
    to = 6.4
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gauge_mc import defaults
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_toml
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.registry import nearest
from gauge_mc.results import documented, result_field
from gauge_mc.run.measurement import EVERY, MAX_UPDATES, observable_along, options_of_observable
from gauge_mc.run.parameters import KINDS, UNSTATED, Parameters, known_options, options_of_kind
from gauge_mc.run.settings import Execution

MAX_CARD = 2**20
"""Maximum size of a run card in bytes. A run.toml with thousands of sessions is smaller."""

RECORD = "session"
"""Key of the records of sessions in a run.toml; ignored when the file is used as a run card."""

NAME, MEASURE = "name", "measure"
"""The key of the name in the table of an action or an algorithm, and that of the observables."""

WIDTH = 96
"""Width of the comments in a card."""

EXAMPLE = ("[measure.plaquette]", "[measure.flow]", "every = 50", "to = 6.4")
"""Lines of a card that show how observables are measured."""

ParametersLike = Parameters | Mapping[str, object] | str | os.PathLike[str] | None
"""Parameters, a mapping of some parameters by name, or the path of a run card."""


def named_values(card: ParametersLike, more: Mapping[str, object]) -> dict[str, object]:
    """Return values for `Parameters.from_values` and `Execution.from_values`."""
    if card is None:
        values: dict[str, object] = {}
    elif isinstance(card, Parameters):
        values = dict(card.values())
    else:
        values = flat(card) if isinstance(card, Mapping) else read_card(card)
    values |= {name: value for name, value in more.items() if value is not None}
    options = known_options()
    for name in values:
        if name not in options:
            raise UsageError(f"There is no parameter '{name}'{nearest(name, options)}")
    return values


def flat(values: Mapping[str, object]) -> dict[str, object]:
    """Return values with options beside the name of the action or algorithm, not in its table."""
    card = {key.replace("-", "_"): value for key, value in values.items()}
    for kind, things in KINDS.items():
        table = card.get(kind)
        if isinstance(table, Mapping):
            card |= _of_table(
                kind, table, card, {option.name for option in options_of_kind(things)}
            )
    return card


def _of_table(
    kind: str, table: Mapping[str, object], beside: Mapping[str, object], options: Collection[str]
) -> dict[str, object]:
    """Return the name and the options in the table of an action or an algorithm."""
    if NAME not in table:
        usual = getattr(defaults, kind.upper())
        raise UsageError(f"The table [{kind}] has no {NAME}; add it, as in {NAME} = '{usual}'.")
    entries = {key.replace("-", "_"): value for key, value in table.items() if key != NAME}
    if twice := entries.keys() & beside.keys():
        raise UsageError(f"{min(twice)} is given twice, in the table [{kind}] and outside of it.")
    if unknown := entries.keys() - {*options}:
        raise UsageError(
            f"Unknown key '{min(unknown)}' in [{kind}]{nearest(min(unknown), options)}"
        )
    return {kind: table[NAME], **entries}


def read_card(path: str | os.PathLike[str]) -> dict[str, object]:
    """Read a run card, a TOML file with fields of `Parameters` and `Execution`, all optional.

    A ``run.toml`` can also be used as a run card.
    """
    try:
        values = parse_toml(read_text(Path(path), MAX_CARD))
    except GaugeError as error:
        raise UsageError(f"The run card {error}") from error
    except ValueError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise UsageError(f"The run card {path} is not valid TOML: {reason}.") from error
    lacking = UNSTATED if RECORD in values else {}
    card = {**lacking, **flat({key: value for key, value in values.items() if key != RECORD})}
    options = known_options()
    for key in card:
        if key not in options:
            advice = nearest(key, options, "`gauge-mc card`")
            raise UsageError(f"Unknown key '{key}' in {path}{advice}")
    return card


def check_card(path: str | os.PathLike[str]) -> Parameters:
    """Return the parameters of a run card, all of whose values have been checked."""
    values = read_card(path)
    Execution.from_values(values)
    parameters = Parameters.from_values(values)
    for item in parameters.measure:
        observable_along(item, parameters)
    return parameters


@documented
@dataclass(frozen=True)
class CardReport:
    """A run card that has been checked."""

    file: str = result_field("File that was written or read.")
    parameters: Mapping[str, str | int | float] = result_field("Parameters of the run by name.")

    @classmethod
    def of(cls, file: Path, parameters: Parameters) -> CardReport:
        """Return the report on a card with these parameters."""
        return cls(str(file), parameters.values())


def schema() -> dict[str, Any]:
    """Return the JSON schema of run cards, with which editors complete and check them."""
    properties = {option.name: _property(option) for option in known_options().values()}
    for kind, things in KINDS.items():
        named = properties[kind]
        fields = {
            NAME: named,
            **{option.name: _property(option) for option in options_of_kind(things)},
        }
        either = [named, _table(fields, required=[NAME])]
        properties[kind] = {"description": named["description"], "anyOf": either}
    interval = {"type": "integer", "minimum": 1, "maximum": MAX_UPDATES}
    measured = {name: _measured(name, interval) for name in OBSERVABLES}
    properties[MEASURE] = {
        "description": properties[MEASURE]["description"],
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "string"}},
            _table(measured),
        ],
    }
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": "Run card of gauge-mc", **_table(properties)}


def _table(properties: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of a table whose keys are known."""
    return {"type": "object", "properties": properties, **more, "additionalProperties": False}


def _measured(name: str, interval: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the value of an observable: an interval, or a table of options."""
    fields = {option.name: _property(option) for option in options_of_observable(name)}
    either = [interval, _table({**fields, EVERY: interval})]
    return {"description": OBSERVABLES[name].summary, "anyOf": either}


def _property(option: Option) -> dict[str, Any]:
    """Return the schema of the value of an option."""
    types = {int: "integer", float: "number", bool: "boolean", str: "string"}
    if option.items:
        fields = {o.name: _property(o) for o in option.items.options()}
        text = {"type": "string"}
        either = [text, {"type": "array", "items": {"anyOf": [text, _table(fields)]}}]
        return {"description": option.help, "anyOf": either}
    rule: dict[str, Any] = {"description": option.help, "type": types[option.kind]}
    if option.kind in (int, float):
        m = "exclusiveM" if option.inside else "m"
        bounds = {f"{m}inimum": option.least, f"{m}aximum": option.most}
        rule |= {key: bound for key, bound in bounds.items() if abs(bound) < float("inf")}
    if option.choices and not option.open:
        rule["enum"] = [*option.choices]
    if isinstance(option.usual, int | float | str) and option.usual == option.usual:
        rule["default"] = option.usual
    if option.each:
        number = {"type": types[option.each]}
        either = [{"type": "string"}, number, {"type": "array", "items": number}]
        rule = {"description": rule["description"], "anyOf": either}
    return rule


def commented(values: Mapping[str, object]) -> Iterator[str]:
    """Yield the lines of a run card with all options, each with its description as a comment.

    Options that are not given are comments themselves, with their defaults.
    """
    import tomli_w

    panel, meant = "", Parameters.from_values(values).values()
    for name, option in known_options().items():
        if option.panel != panel:
            panel = option.panel
            yield f"\n## {panel}"
        # Those of beta and measure depend on the group and the action.
        usual = meant.get(name, option.usual)
        usual = str(usual) if option.items else usual
        usual = usual if isinstance(usual, int | float | str) else option.default
        about = [option.help, *([f"One of {', '.join(option.choices)}."] if option.choices else [])]
        if option.usual is None and option.default:
            about.append(f"Default: {option.default}.")
        yield from ("", *(f"# {line}" for line in textwrap.wrap(" ".join(about), WIDTH)))
        if name in values:
            yield tomli_w.dumps({name: values[name]}).rstrip()
        elif option.usual is None:
            yield f"# {name} = {option.metavar or '...'}"
        else:
            yield f"# {tomli_w.dumps({name: usual}).rstrip()}"
    yield from ("", "# Observables may have tables instead, after everything else:")
    yield from ("#", *(f"# {line}" for line in EXAMPLE))

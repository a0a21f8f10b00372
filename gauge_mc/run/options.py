"""All options of runs. Run cards (TOML) and the command line use the same names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gauge_mc.actions import ACTIONS
from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.options import Option, merged
from gauge_mc.registry import Registry, in_words
from gauge_mc.run.execution import Execution
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import PHYSICS, options_of

KINDS: Mapping[str, Registry[Any]] = {one.kind: one for one in (ACTIONS, ALGORITHMS)}
"""The parameters that have options."""


def known_options() -> dict[str, Option]:
    """Return all options of runs by name: of parameters, of actions, and of the execution.

    Options of actions follow the action; their descriptions say which actions have them.
    """
    found: dict[str, Option] = {}
    for name, option in options_of(Parameters).items():
        found[name] = option
        if name in KINDS:
            found |= {one.name: one for one in options_of_kind(KINDS[name])}
    return {**found, **options_of(Execution)}


def options_of_kind(kind: Registry[Any]) -> Iterator[Option]:
    """Yield the options of the things of a kind, each once, with the things that have them."""
    for option in merged([(f"the {kind.kind} {name}", one.options) for name, one in kind.items()]):
        names = [
            name for name, one in kind.items() if option.name in {own.name for own in one.options}
        ]
        whose = "" if len(names) == len(kind) else f" For {in_words(names)}."
        yield replace(option, panel=PHYSICS, help=f"{option.help}{whose}")

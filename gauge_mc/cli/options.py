"""Options that commands share, by the names of `Parameters` and `Execution`; and declared options.

All default to None, so that a command can tell what was given.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, get_type_hints

import typer

from gauge_mc.actions import ACTIONS
from gauge_mc.devices.choice import AUTOMATIC, BACKENDS
from gauge_mc.domain.layout import REALS
from gauge_mc.formats import writable_formats
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.random import GENERATORS
from gauge_mc.run import parameters as known

PHYSICS, ENSEMBLE, FILES, EXECUTION = "Physics", "Ensemble", "Files", "Execution"

_usual = known.Parameters().values()
_betas = ", ".join(f"{group.beta} for {name}" for name, group in GROUPS.items())
_observables = "; ".join(f"{name} ({one.summary})" for name, one in OBSERVABLES.items())
_levels = max(len(one.levels) for one in GENERATORS.values())


def with_default(help: str, default: object) -> str:
    """Return a help text that states the default."""
    return f"{help} [dim]\\[default: {default}][/dim]" if default != "" else help


def _option(panel: str, help: str, usual: object = "", metavar: str | None = None) -> Any:
    return typer.Option(
        help=with_default(help, usual), rich_help_panel=panel, metavar=metavar, show_default=False
    )


def _choice(panel: str, help: str, usual: object, choices: Iterable[str]) -> Any:
    return _option(panel, help, usual, "|".join(choices))


Group = Annotated[str | None, _choice(PHYSICS, "Gauge group.", _usual["group"], GROUPS)]
Beta = Annotated[float | None, _option(PHYSICS, "Coupling 2N/g².", _betas)]
Extents = Annotated[str | None, _option(PHYSICS, "Even extents.", _usual["lattice"], "XxYxZxT")]
Action = Annotated[str | None, _choice(PHYSICS, "Gauge action.", _usual["action"], ACTIONS)]
Precision = Annotated[
    str | None, _choice(PHYSICS, "Precision of the links.", _usual["precision"], REALS)
]
Start = Annotated[
    str | None,
    _choice(
        PHYSICS,
        "First links: all 1, random, or from a file.",
        _usual["start"],
        (*known.STARTS, "FILE"),
    ),
]
Seed = Annotated[int | None, _option(PHYSICS, "Seed of the random numbers.", _usual["seed"])]
Rng = Annotated[str | None, _choice(PHYSICS, "Random number generator.", _usual["rng"], GENERATORS)]
Luxury = Annotated[
    int | None,
    _option(
        PHYSICS,
        f"Quality level of generators that have levels, 0 to {_levels - 1}.",
        _usual["luxury"],
    ),
]
Heatbath = Annotated[
    int | None, _option(PHYSICS, "Heatbath sweeps in an update.", _usual["heatbath"])
]
Overrelax = Annotated[
    int | None, _option(PHYSICS, "Overrelaxation sweeps after them.", _usual["overrelax"])
]
Thermalize = Annotated[
    int | None, _option(ENSEMBLE, "Updates before the first measurement.", _usual["thermalize"])
]
Configs = Annotated[
    int | None,
    _option(ENSEMBLE, "Configurations to write; may be raised later.", _usual["configs"]),
]
Separation = Annotated[
    int | None,
    _option(ENSEMBLE, "Updates from one configuration to the next.", _usual["separation"]),
]
Measure = Annotated[
    str | None,
    _option(
        ENSEMBLE,
        f"What to measure after every update, or every so many: {_observables}; or none.",
        _usual["measure"],
        "NAME[:EVERY],...",
    ),
]
Card = Annotated[str | None, _option(FILES, "TOML file with any of these options.", metavar="FILE")]
Output = Annotated[
    str | None, _option(FILES, "Run directory.", "runs/ and a name that identifies the run", "PATH")
]
Format = Annotated[
    str | None,
    _choice(
        FILES,
        "Format of the configurations, or none to keep none.",
        _usual["format"],
        (*writable_formats(), known.NO_FORMAT),
    ),
]
Backend = Annotated[
    str | None,
    _choice(
        EXECUTION,
        "Kind of device to compute on.",
        AUTOMATIC,
        (AUTOMATIC, *sorted(BACKENDS, key=lambda name: -BACKENDS[name].preference)),
    ),
]
Devices = Annotated[
    str | None,
    _option(
        EXECUTION,
        "GPUs: how many, or their numbers; cpu:N for N parts of the CPU, which share its threads.",
        metavar="N|I,J|all|cpu:N",
    ),
]
Threads = Annotated[
    int | None, _option(EXECUTION, "Number of CPU threads, over all slabs.", "all cores")
]
ShareGpus = Annotated[
    bool | None,
    typer.Option(
        "--share-gpus",
        help="Let processes of an MPI job share GPUs.",
        rich_help_panel=EXECUTION,
    ),
]
TimeLimit = Annotated[
    str | None,
    _option(EXECUTION, "Time after which to stop with a checkpoint.", metavar="HH:MM:SS"),
]
CheckpointEvery = Annotated[
    float | None,
    _option(
        EXECUTION,
        "Minutes between checkpoints.",
        f"{known.Execution().checkpoint_every:g}",
        "MINUTES",
    ),
]
Quiet = Annotated[
    bool | None,
    typer.Option("--quiet", help="Show no progress and no summary.", rich_help_panel=EXECUTION),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


def print_json(values: Mapping[str, object]) -> None:
    """Print a result as one JSON object, in which null stands for numbers that are not known."""
    print(json.dumps(_plain(values), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    number = value.item() if hasattr(value, "item") else value  # of NumPy
    if isinstance(number, float):
        return number if math.isfinite(number) else None
    return number if isinstance(number, bool | int | None) else str(number)


def declared(panels: Iterable[tuple[str, Iterable[Option]]]) -> Callable[[Any], Any]:
    """Add options that things declare to a command that takes ``**options``.

    Parameters
    ----------
    panels : iterable of (str, iterable of Option)
        Panels of the help text and the options in them. An option that comes twice is shown once.
    """

    def decorate(function: Any) -> Any:
        signature = inspect.signature(function)
        hints = get_type_hints(function, include_extras=True)
        fixed = [
            one.replace(annotation=hints[one.name])
            for one in signature.parameters.values()
            if one.kind is not one.VAR_KEYWORD
        ]
        added: dict[str, inspect.Parameter] = {}
        for panel, options in panels:
            for option in options:
                added.setdefault(option.name, _parameter(option, panel))
        everything = [*fixed, *added.values()]
        function.__signature__ = signature.replace(parameters=everything)
        function.__annotations__ = {one.name: one.annotation for one in everything}
        return function

    return decorate


def _parameter(option: Option, panel: str) -> inspect.Parameter:
    """Return a declared option as a parameter for Typer."""
    made = typer.Option(
        option.flag,
        help=with_default(option.help, option.default),
        rich_help_panel=panel,
        metavar=option.metavar or None,
        show_default=False,
    )
    annotation = Annotated[option.kind | None, made]  # type: ignore[name-defined]
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )

"""Options that several commands share, and tools for options and lists in help texts.

The shared options have the names of the fields of `Parameters` and `Execution`. They all default to
None, which means that an option was not given.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from gauge_mc.actions import ACTIONS
from gauge_mc.cli.completion import choosing
from gauge_mc.cli.help import VERBATIM
from gauge_mc.cli.help import with_default as with_default
from gauge_mc.devices.choice import AUTOMATIC, BACKENDS
from gauge_mc.domain.layout import REALS
from gauge_mc.formats import writable_formats
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.random import GENERATORS
from gauge_mc.registry import in_words
from gauge_mc.run import parameters as known

PHYSICS, ENSEMBLE, FILES, EXECUTION = "Physics", "Ensemble", "Files", "Execution"

NEWEST = "newest run or scan in runs/"
"""Default of an argument that names a run or a scan."""

NUMBERED = in_words(dict.fromkeys(one.label for one in BACKENDS.values() if one.numbered), "or")
"""Label of the devices that are chosen by number, such as ``GPU``."""

DIVIDED = [name for name, one in BACKENDS.items() if not one.numbered]
"""Backends whose single device can be divided into parts."""

UNDIVIDED = in_words(DIVIDED, "or")
"""The backends in `DIVIDED`, as text."""

DIVIDED_LABELS = in_words(dict.fromkeys(BACKENDS[name].label for name in DIVIDED), "or")
"""Labels of the devices of the backends in `DIVIDED`, as text."""

OBSERVABLE_SUMMARIES = [(name, one.summary) for name, one in OBSERVABLES.items()]
"""Names and summaries of the observables, for `listed`."""

LIST_WIDTH = 76
"""Width of a list in a help text, which fits in a terminal of 80 columns."""

_usual = known.Parameters().values()
_betas = ", ".join(f"{group.beta} for {name}" for name, group in GROUPS.items())
_levels = max(len(one.levels) for one in GENERATORS.values())
_leveled = in_words([name for name, one in GENERATORS.items() if one.levels], "or")
_parts = [f"{name}:N" for name in DIVIDED]


def option(
    panel: str,
    help: str,
    usual: object = "",
    metavar: str | None = None,
    choices: Iterable[str] = (),
    separator: str | None = None,
) -> Any:
    """Return an option for Typer.

    Parameters
    ----------
    panel : str
        Panel of the help text.
    help : str
        Description in the help text.
    usual : object
        Default, as shown in the help text; empty if there is none.
    metavar : str, optional
        Placeholder for the value in the help text.
    choices : iterable of str, optional
        Words that the value may be, which a shell completes and which are taken in any case.
    separator : str, optional
        What separates several of these words in one value.
    """
    return typer.Option(
        help=with_default(help, usual),
        rich_help_panel=panel,
        metavar=metavar,
        show_default=False,
        **(choosing(choices, separator) if choices else {}),
    )


def _choice(panel: str, help: str, usual: object, choices: Iterable[str], *others: str) -> Any:
    """Return an option that takes one of several words, or a value that has a placeholder."""
    words = list(choices)
    return option(panel, help, usual, "|".join([*words, *others]), words)


def listed(title: str, entries: Iterable[tuple[str, str]]) -> Callable[[Any], Any]:
    """Append a list of names with summaries, one per line, to the help text of a command.

    The help text needs at least two paragraphs before the list, since Typer would otherwise remove
    the indentation.

    Parameters
    ----------
    title : str
        Title of the list.
    entries : iterable of (str, str)
        Names and their summaries.
    """
    entries = list(entries)
    width = max(len(name) for name, _ in entries) + 4
    lines = [f"{title}:"]
    for name, summary in entries:
        lines += textwrap.wrap(
            summary,
            LIST_WIDTH,
            initial_indent=f"  {name}".ljust(width),
            subsequent_indent=" " * width,
        )
    text = "\n".join(lines).replace("[", "\\[")  # Rich would read brackets as markup

    def decorate(function: Any) -> Any:
        function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\n{VERBATIM}{text}"
        return function

    return decorate


Group = Annotated[str | None, _choice(PHYSICS, "Gauge group.", _usual["group"], GROUPS)]
Beta = Annotated[float | None, option(PHYSICS, "Coupling 2N/g².", _betas)]
Extents = Annotated[
    str | None, option(PHYSICS, "Even extents of the lattice.", _usual["lattice"], "XxYxZxT")
]
Action = Annotated[str | None, _choice(PHYSICS, "Gauge action.", _usual["action"], ACTIONS)]
Anisotropy = Annotated[
    float | None,
    option(PHYSICS, "Bare anisotropy of the action.", f"{known.Parameters().anisotropy:g}", "XI0"),
]
Precision = Annotated[
    str | None, _choice(PHYSICS, "Precision of the links.", _usual["precision"], REALS)
]
Start = Annotated[
    str | None,
    _choice(
        PHYSICS,
        "Initial links: all 1, random, or from a configuration file.",
        _usual["start"],
        known.STARTS,
        "FILE",
    ),
]
Seed = Annotated[int | None, option(PHYSICS, "Seed of the random numbers.", _usual["seed"])]
Rng = Annotated[str | None, _choice(PHYSICS, "Random number generator.", _usual["rng"], GENERATORS)]
Luxury = Annotated[
    int | None,
    option(
        PHYSICS,
        f"Quality level from 0 to {_levels - 1}, for {_leveled}.",
        _usual["luxury"],
    ),
]
Heatbath = Annotated[int | None, option(PHYSICS, "Heatbath sweeps per update.", _usual["heatbath"])]
Overrelax = Annotated[
    int | None, option(PHYSICS, "Overrelaxation sweeps per update.", _usual["overrelax"])
]
ChainVersion = Annotated[
    int | None,
    option(
        PHYSICS,
        "Version of the Markov chain; 2 removes a bias of 4e-8 from the norms of links in single "
        "precision.",
        _usual["chain_version"],
    ),
]
Thermalize = Annotated[
    int | None, option(ENSEMBLE, "Updates before the first measurement.", _usual["thermalize"])
]
Configs = Annotated[
    int | None,
    option(ENSEMBLE, "Number of configurations; can be increased later.", _usual["configs"]),
]
Separation = Annotated[
    int | None,
    option(ENSEMBLE, "Updates from one configuration to the next.", _usual["separation"]),
]
Measure = Annotated[
    str | None,
    option(
        ENSEMBLE,
        "Observables to measure after every update, or after each EVERY updates, with their "
        f"options as in flow:50:to=6; or {known.NO_MEASUREMENT}.",
        _usual["measure"],
        "NAME[:EVERY[:OPTION=VALUE]],...",
        (*OBSERVABLES, known.NO_MEASUREMENT),
        ",",
    ),
]
Card = Annotated[
    str | None,
    option(FILES, "Run card, a TOML file with any of these options.", metavar="FILE"),
]
Output = Annotated[
    str | None,
    option(FILES, "Run directory.", "runs/NAME, where NAME identifies the chain", "PATH"),
]
Format = Annotated[
    str | None,
    _choice(
        FILES,
        f"Format of the configurations, or {known.NO_FORMAT} to write none.",
        _usual["format"],
        (*writable_formats(), known.NO_FORMAT),
    ),
]
Backend = Annotated[
    str | None,
    _choice(
        EXECUTION,
        "Backend, the type of device to compute on.",
        AUTOMATIC,
        (AUTOMATIC, *sorted(BACKENDS, key=lambda name: -BACKENDS[name].preference)),
    ),
]
Devices = Annotated[
    str | None,
    option(
        EXECUTION,
        f"Number of {NUMBERED}s, or their numbers, or all; or {in_words(_parts, 'or')} to divide "
        f"the {DIVIDED_LABELS} into N parts, which share its threads.",
        metavar="|".join(["N", "I,J,...", "all", *_parts]),
    ),
]
Threads = Annotated[
    int | None,
    option(EXECUTION, "Number of CPU threads, over all slabs.", "all cores, or fewer if faster"),
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
    option(EXECUTION, "Time within which to write a checkpoint and stop.", metavar="HH:MM:SS"),
]
CheckpointEvery = Annotated[
    float | None,
    option(
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
Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print the result as one JSON object; all else goes to standard error."
    ),
]

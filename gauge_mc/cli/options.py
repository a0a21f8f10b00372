"""Options that commands share, by the names of `Parameters` and `Execution`.

All default to None, so that a command can tell what was given.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gauge_mc import parameters as known

PHYSICS, ENSEMBLE, FILES, EXECUTION = "Physics", "Ensemble", "Files", "Execution"

_usual = known.Parameters().values()
_betas = ", ".join(f"{beta} for {group}" for group, beta in known.DEFAULT_BETA.items())


def _option(panel: str, help: str, usual: object = "", metavar: str | None = None) -> Any:
    default = f" [dim]\\[default: {usual}][/dim]" if usual != "" else ""
    return typer.Option(
        help=help + default, rich_help_panel=panel, metavar=metavar, show_default=False
    )


def _choice(panel: str, help: str, usual: object, choices: tuple[str, ...]) -> Any:
    return _option(panel, help, usual, "|".join(choices))


Group = Annotated[str | None, _choice(PHYSICS, "Gauge group.", _usual["group"], known.GROUPS)]
Beta = Annotated[float | None, _option(PHYSICS, "Coupling of the Wilson action, 2N/g².", _betas)]
Extents = Annotated[str | None, _option(PHYSICS, "Even extents.", _usual["lattice"], "XxYxZxT")]
Precision = Annotated[
    str | None, _choice(PHYSICS, "Of the links.", _usual["precision"], known.PRECISIONS)
]
Start = Annotated[
    str | None,
    _choice(PHYSICS, "Ordered, random or from a file.", _usual["start"], (*known.STARTS, "FILE")),
]
Seed = Annotated[int | None, _option(PHYSICS, "Of the random numbers.", _usual["seed"])]
Generator = Annotated[
    str | None, _choice(PHYSICS, "Random number generator.", _usual["rng"], known.GENERATORS)
]
Luxury = Annotated[
    int | None,
    _option(PHYSICS, f"Level of ranlux, 0 to {known.MAX_LUXURY}.", _usual["luxury"]),
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
        "plaquette, polyakov, wilson-loops: after every update or, as in polyakov:10, every so "
        "many; or none.",
        _usual["measure"],
        "NAME[:EVERY],...",
    ),
]
Card = Annotated[str | None, _option(FILES, "TOML file with any of these options.", metavar="FILE")]
Output = Annotated[
    str | None, _option(FILES, "Run directory.", "runs/ and a name that tells the run", "PATH")
]
Format = Annotated[
    str | None,
    _choice(
        FILES,
        "Of configurations, or none to keep none.",
        _usual["format"],
        (*known.FORMATS, known.NO_FORMAT),
    ),
]
Backend = Annotated[
    str | None, _choice(EXECUTION, "What to compute on.", "auto", ("auto", "cuda", "cpu"))
]
Devices = Annotated[
    str | None,
    _option(
        EXECUTION,
        "GPUs: so many, or their numbers; cpu:N for N parts of the CPU, which share its threads.",
        metavar="N|I,J|all|cpu:N",
    ),
]
Threads = Annotated[int | None, _option(EXECUTION, "On the CPU, in all.", "all cores")]
ShareGpus = Annotated[
    bool | None,
    typer.Option(
        "--share-gpus",
        help="Let processes of an MPI job share GPUs.",
        rich_help_panel=EXECUTION,
    ),
]
TimeLimit = Annotated[
    str | None, _option(EXECUTION, "Stop in time with a checkpoint.", metavar="HH:MM:SS")
]
CheckpointEvery = Annotated[
    float | None,
    _option(
        EXECUTION,
        "Between checkpoints.",
        f"{known.Execution().checkpoint_every:g}",
        "MINUTES",
    ),
]
Quiet = Annotated[
    bool | None,
    typer.Option("--quiet", help="No progress and no summary.", rich_help_panel=EXECUTION),
]

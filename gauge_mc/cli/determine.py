"""``gauge-mc determine``: determine a number with a wanted error."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from gauge_mc.cli import options as o
from gauge_mc.cli.document import alone_on_stdout, prints, show_result
from gauge_mc.determinations import FIXED_OPTIONS, goals, plan_of
from gauge_mc.errors import INTERRUPTED, GaugeError
from gauge_mc.options import merged
from gauge_mc.run.parameters import known_options

GOALS = {name: goal for name, (_, goal) in goals().items()}
ARGUMENTS = ("what", "error", "time", "json")
CHANGES = {
    "lattice": {"default": "as large as the number needs"},
    "output": {"default": "runs/determine_NAME"},
}


@prints("gauge_mc.determinations:Determination")
@o.with_settings(
    (name for name in known_options() if name not in FIXED_OPTIONS),
    CHANGES,
    [
        replace(each, panel="Number")
        for each in merged((n, g.fit_options) for n, g in GOALS.items())
    ],
)
@o.listed("Numbers", [(name, goal.summary) for name, goal in GOALS.items()])
def determine(
    ctx: typer.Context,
    what: Annotated[str, o.argument("One of the numbers below.", metavar="NUMBER", choices=GOALS)],
    error: Annotated[
        str | None,
        o.option(
            "Wanted relative error: 0.5% or 0.005.", "", "ERROR", flag="--error", panel="Number"
        ),
    ] = None,
    time: Annotated[
        str | None,
        o.option("Time to spend: 90s, 10m or HH:MM:SS.", "", "TIME", flag="--time", panel="Number"),
    ] = None,
    json: o.Json = False,
    **settings: object,
) -> None:
    """Determine a number with a wanted error, or within a time.

    The lattice is chosen from a length that is known, or by a pilot run. A run or a scan then
    grows by blocks, each followed by a fit, until the total error, statistical and systematic, is
    reached or the time is spent. The same command continues it. A report is written in the end. The
    exit code is 0 if there is a number, even if the time was too short for the wanted error, 1 if
    there is none, and 75 after a signal.

    gauge-mc determine r0 --error 1%
    gauge-mc determine t0 --error 2% --time 1h --beta 2.5
    gauge-mc determine beta-c --nt 4 --error 0.1%
    """
    values = {name: value for name, value in ctx.params.items() if name not in ARGUMENTS}
    with alone_on_stdout(json):
        result = plan_of(what, error, time, values).carry_out()
    lines = filter(None, [result.report, str(result)])
    show_result("determine", result, json, *lines)
    if result.stopped:
        raise typer.Exit(INTERRUPTED)
    if not result.number:
        raise GaugeError(f"{result.path} has no number yet; repeat the command with more time.")

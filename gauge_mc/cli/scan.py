"""``gauge-mc scan``: carry out independent runs on a grid of couplings and lattices."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import alone_on_stdout, print_document, prints, show_result
from gauge_mc.cli.options import with_settings
from gauge_mc.errors import INTERRUPTED, UsageError
from gauge_mc.quoting import CommandLine
from gauge_mc.registry import in_words
from gauge_mc.run.cards import read_card
from gauge_mc.run.parameters import known_options
from gauge_mc.run.settings import DIVIDED, DIVIDED_LABELS, NUMBERED
from gauge_mc.run.thermalisation import SKIP
from gauge_mc.scans import batch_systems, forecast
from gauge_mc.scans import carry_out as scans
from gauge_mc.scans.additions import ADDITIONS
from gauge_mc.scans.batch_systems import BATCH_SYSTEMS, TOGETHER
from gauge_mc.scans.grid import Grid, axes, list_axes
from gauge_mc.scans.request import ScanRequest

GRID = "Grid"


def _changes() -> dict[str, dict[str, Any]]:
    """Return how options of runs differ for scans: numbers of the grid may have several values."""
    changes: dict[str, dict[str, Any]] = {}
    for name, option in axes().items():
        if name == "lattice":
            changes[name] = {"help": "Lattices of even extents.", "metavar": "XxYxZxT,..."}
            continue
        value = option.metavar or name.upper()
        changes[name] = {"kind": str, "metavar": f"{value}|FIRST:LAST:STEP,..."}
    changes["beta"] |= {"default": "", "usual": None}
    for change in changes.values():
        change["panel"] = GRID
    for name in list_axes():
        again = known_options()[name].help
        changes[name] = {
            "help": f"{again} Numbers may have several values, as in kappa=0.12:0.16:0.01 or "
            "imaginary_mu=0,0.1,0.3.",
            "panel": GRID,
        }
    changes["seed"] = {"help": "Seed of the first run; each further run has the next number."}
    changes["output"] = {
        "help": "Scan directory.",
        "default": "runs/scan_NAME, where NAME identifies the grid and what the runs share; "
        "without couplings the scan that is running or last generated",
    }
    changes["devices"] = {
        "help": f"Number of {NUMBERED}s, or their numbers, or all; or {in_words(DIVIDED, 'or')}.",
        "default": f"all {NUMBERED}s, else the {DIVIDED_LABELS}",
        "metavar": f"N|I,J,...|all|{'|'.join(DIVIDED)}",
    }
    changes["threads"] = {
        "help": "Number of CPU threads of each run.",
        "default": "1; with --per-device K, 1/K of the cores; with --submit, all cores of a job",
    }
    return changes


@prints(
    "gauge_mc.scans.carry_out:ScanReport",
    "gauge_mc.scans.forecast:ScanForecast",
    "gauge_mc.scans.batch_systems:Submission",
)
@with_settings(
    (name for name in known_options() if name != "share_gpus"),
    _changes(),
    [
        *(replace(addition.option, panel=GRID) for addition in ADDITIONS.values()),
        replace(SKIP, panel=o.EXECUTION),
    ],
)
@o.listed("Observables", o.OBSERVABLE_SUMMARIES)
def scan(
    ctx: typer.Context,
    chains: Annotated[
        int | None, o.option("Independent chains at each point.", Grid.chains, panel=GRID)
    ] = None,
    card: o.Card = None,
    per_device: Annotated[
        int | None,
        o.option(
            "Number of processes on each device.",
            f"1 on a {NUMBERED}, otherwise as many as there are cores for",
            "K",
            panel=o.EXECUTION,
        ),
    ] = None,
    submit: Annotated[
        str | None,
        o.option(
            "Submit the runs as an array of jobs to a batch system.",
            choices=BATCH_SYSTEMS,
            panel=o.EXECUTION,
        ),
    ] = None,
    submit_option: Annotated[
        list[str] | None,
        o.option(
            "Option of the batch system for each job, instead of that of the script, such as "
            f"time=12:00:00. {TOGETHER}=N limits the number of simultaneous jobs.",
            metavar="KEY[=VALUE]",
            flag="--submit-option --slurm",
            panel=o.EXECUTION,
        ),
    ] = None,
    collect: Annotated[
        bool,
        o.option("Only gather the results of complete runs.", flag="--collect", panel=o.EXECUTION),
    ] = False,
    remove: Annotated[
        bool,
        o.option(
            "Take the points of --beta, --lattice and so on out of the scan; their files stay.",
            flag="--remove",
            panel=GRID,
        ),
    ] = False,
    skip: str | None = None,
    dry_run: Annotated[
        bool,
        o.option(
            "Show the grid, what is done, and what the rest needs on this machine (time, "
            "memory, disk space), without beginning it. The exit code is 1 if runs would be "
            "refused. With --submit, show the script of the jobs.",
            flag="--dry-run",
            panel=o.EXECUTION,
        ),
    ] = False,
    json: o.Json = False,
    **settings: object,
) -> None:
    """Carry out independent runs on a grid of couplings and lattices.

    Runs on small lattices are updated together on each device. To continue a scan that was stopped,
    repeat the command, or give only --output. Couplings, lattices, chains and configurations can be
    added later. Each run has a run directory as from generate; scan.csv and scan.pdf contain the
    averages at every point. SIGTERM, SIGINT, SIGHUP, SIGUSR1 and the time limit write checkpoints
    and stop the scan with exit code 75.

    gauge-mc scan --lattice 8x8x8x4 --beta 2.2:2.4:0.05
    gauge-mc scan --output SCAN --refine
    gauge-mc scan --lattice 8x8x8x4,12x12x12x4 --beta 2.29,2.3 --configs 1000 --format none
    """
    stated = {name: value for name, value in ctx.params.items() if value is not None}
    card_values = read_card(stated.pop("card")) if "card" in stated else {}
    request = ScanRequest.of(card_values | stated)
    for name, addition in ADDITIONS.items():
        if stated.get(name) and collect:
            flag = addition.option.flag
            raise UsageError(f"{flag} adds runs, and --collect carries out none; leave out one.")
    request = request.with_additions(stated)
    modes = {"--dry-run": dry_run, "--collect": collect, "--remove": remove, "--submit": submit}
    both = [flag for flag, value in modes.items() if value]
    if len(both) > 1 and both != ["--dry-run", "--submit"]:
        raise UsageError(f"{both[0]} cannot be combined with {both[1]}; leave out one of them.")
    if submit_option and not (submit or collect):
        raise UsageError(
            "--submit-option has an effect only with --submit; add that, or leave it out."
        )
    if not (request.execution.output or "beta" in request.axes):
        say(f"taken, the newest: {request.path}", error=json)
    if not (collect or remove or request.execution.quiet) and (words := request.growth()):
        say(words, error=json)
    if dry_run and not submit:
        with alone_on_stdout(json):
            needs = forecast.forecast_scan(request, per_device)
        show_result("scan", needs, json, needs.table())
        if needs.refusals:
            raise typer.Exit(1)
        return
    if submit:
        if per_device:
            raise UsageError(
                "--per-device cannot be combined with --submit, because each job carries out one "
                "run; leave it out."
            )
        if skip:
            raise UsageError(
                "--skip cannot be combined with --submit; give it with --collect, when the results "
                "are averaged."
            )
        with alone_on_stdout(json):
            submission = batch_systems.submit(request, submit, submit_option or [], dry_run)
        again = CommandLine("scan", collect=True, output=request.path)
        lines = [f"To gather the results: {again}"]
        if dry_run:
            lines = (submission.script or "").splitlines()
        show_result("scan", submission, json, str(submission), *lines)
        return
    with alone_on_stdout(json):
        if collect or remove:
            result = scans.take_out(request) if remove else scans.gather(request)
        else:
            result = scans.carry_out(request, per_device)
    if json:
        print_document("scan", scans.ScanReport.of(result, request.skip))
    elif result.stopped:
        again = CommandLine("scan", output=request.path)
        say(f"Stopped by {result.stopped}; to continue: {again}")
    if result.stopped:
        raise typer.Exit(INTERRUPTED)

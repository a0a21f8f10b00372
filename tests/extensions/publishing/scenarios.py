"""Situations of publications in which a command or an option is named; see `tests.advice`."""

from tests.advice.scenarios import Scenario

PAPER = """
paper = "none"
title = "plaquette"
where = "here"
read = "here"

[ensembles.one]
group = "su2"
beta = 1.0
lattice = "4x4x4x4"
thermalize = 10
configs = 100
separation = 1
measure = "plaquette"
format = "none"

[[entries]]
name = "plaquette"
ensemble = "one"
average = "plaquette"
published = 0.2432
error = 0.01
"""

SCENARIOS = [
    Scenario(
        "--dry-run cannot be combined with {}; leave out one of them.",
        "paper mine.toml --dry-run --kept",
        "leave out one of them",
        "paper mine.toml --dry-run --backend cpu --threads 1",
        write=("mine.toml", PAPER),
    ),
    Scenario(
        "gauge-mc {} needs {}{}.",
        "publish run",
        "gauge-mc publish RUN FOLDER --author 'Family, Given'",
        "publish run data --author 'Family, Given'",
    ),
    Scenario(
        "--kept generates nothing; leave out --budget and --output.",
        "paper guagnelli_r0 --kept --budget 1min",
        "leave out --budget and --output",
        "paper guagnelli_r0 --kept",
    ),
    Scenario(
        "--regenerate is {}; choose a number of configurations.",
        "verify pub --regenerate -1",
        "choose a number",
        "verify pub --regenerate 1",
        before=("publish run pub --author 'Doe, Jane'",),
    ),
    Scenario(
        "{} is a complete publication already, which `gauge-mc verify {}` checks; choose another "
        "folder, or remove it first.",
        "publish run pub --author 'Doe, Jane'",
        "gauge-mc verify pub",
        "verify pub",
        before=("publish run pub --author 'Doe, Jane'",),
    ),
    Scenario(
        "--budget, --kept, --dry-run and --output need a paper; name one.",
        "paper --kept",
        "name one",
        "paper mine.toml --quiet --backend cpu --threads 1",
        write=("mine.toml", PAPER),
    ),
    Scenario(
        "The card {} has no kept results here; leave out --kept to carry it out.",
        "paper mine.toml --kept",
        "leave out --kept",
        "paper mine.toml --quiet --backend cpu --threads 1",
        write=("mine.toml", PAPER),
    ),
    Scenario(
        (
            "The run {} exchanges couplings with other runs, so that it cannot be made again "
            "from a folder of its own; copy its tables with `gauge-mc export {} tables.h5`."
        ),
        "publish scan/b2.2_4x4x4x4_chain1 pub --author 'Doe, Jane'",
        "gauge-mc export scan/b2.2_4x4x4x4_chain1 tables.h5",
        before=(
            (
                "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
                "--quiet --beta 2.2,2.4 --tempering"
            ),
        ),
    ),
]

TIME_LIMIT = (
    "Making {} takes {} updates, {}, and {} are allowed; give more time with --time-limit {}:00:00."
)

ELSEWHERE = {
    TIME_LIMIT: "test_publish.py carries it out, with a run that takes long enough",
    "gauge-mc {}: {}": "a version",
}
"""Messages that are carried out nowhere, and why."""

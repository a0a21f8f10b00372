"""The commands that are tried under faults: what they begin with, and what they must leave."""

import contextlib
import hashlib
import shutil
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.samples import all_of

TINY = "--lattice 4x4x4x4 --thermalize 1 --separation 2 --backend cpu --threads 1 --quiet"
LOOPS = "--r-max 1 --t-max 1 --iterations 0 --backend cpu --threads 1 --quiet"


@dataclass(frozen=True)
class Trial:
    """A command under faults.

    Attributes
    ----------
    words : str
        The command, in which ``{}`` is the folder.
    begun : tuple of str
        Commands that prepare the folder.
    results : tuple of str
        Patterns of the files that the command must finally have written, byte by byte the same.
    untouched : tuple of str
        Patterns of files that it must not change at any time.
    again : tuple of int
        Exit codes of the repeated command that are right.
    verified : str
        What `verify` must call good in the end.
    """

    words: str
    begun: tuple[str, ...] = ()
    results: tuple[str, ...] = ("run/configs/*", "run/*.csv")
    untouched: tuple[str, ...] = ()
    again: tuple[int, ...] = (0,)
    verified: str = "run"
    options: dict[str, str] = field(default_factory=dict)


RUN = f"generate {TINY} --configs 2 --output {{}}/run --format ildg"
OFTEN = " --checkpoint-every 0"

TRIALS = {
    "generate": Trial(RUN + OFTEN),
    "generate-nersc": Trial(RUN.replace("ildg", "nersc") + " --rng ranlux" + OFTEN),
    "pending": Trial(RUN.replace("--configs 2", "--configs 8")),
    "continue": Trial(
        f"generate {TINY} --configs 3 --output {{}}/run{OFTEN}",
        begun=(f"generate {TINY} --configs 1 --output {{}}/run",),
    ),
    "measure": Trial(
        f"measure wilson-loops {{}}/run {LOOPS}", begun=(RUN,), untouched=("run/configs/*",)
    ),
    "convert": Trial(
        "convert {}/run/configs/0000003.lime {}/out --to nersc",
        begun=(RUN,),
        results=("out",),
        untouched=("run/configs/*", "run/*.csv"),
        again=(0, 2),
    ),
    "export-hdf5": Trial(
        "export {}/run {}/out.h5",
        begun=(RUN,),
        results=("out.h5",),
        untouched=("run/configs/*", "run/*.csv"),
    ),
    "export-pyerrors": Trial(
        "export {}/run {}/out.json.gz",
        begun=(RUN.replace("--configs 2", "--configs 4"),),
        results=(),  # the compressed file contains a time
        untouched=("run/configs/*", "run/*.csv"),
    ),
    "export-parquet": Trial(
        "export {}/run {}/out.parquet --table plaquette",
        begun=(RUN,),
        results=("out.parquet",),
        untouched=("run/configs/*", "run/*.csv"),
    ),
    "scan": Trial(
        "scan --beta 2.3 --lattice 4x4x4x2 --thermalize 1 --configs 1 --separation 2 "
        "--chains 1 --backend cpu --quiet --output {}/scan",
        results=("scan/*/configs/*", "scan/*/*.csv", "scan/scan.csv"),
        verified="scan",
    ),
}


def all_trials() -> Mapping[str, Trial]:
    """Return the commands by name, with those of extensions."""
    return ChainMap(TRIALS, *all_of("TRIALS", "faults"))


def contents(folder: Path, patterns: tuple[str, ...]) -> dict[str, str]:
    """Return the digests of all files that match patterns, by their path."""
    found = {}
    for pattern in patterns:
        for path in folder.glob(pattern):
            if not path.name.startswith("."):
                with contextlib.suppress(FileNotFoundError):
                    digest = hashlib.sha256(path.read_bytes()).hexdigest()
                    found[str(path.relative_to(folder))] = digest
    return found


def leftovers(folder: Path) -> list[str]:
    """Return the temporary files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*.tmp"))


def fresh(template: Path, folder: Path) -> None:
    """Make a folder a copy of another."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder, symlinks=True)

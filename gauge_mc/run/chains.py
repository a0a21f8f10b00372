"""Chains of one ensemble, which ``generate --chains`` makes side by side."""

from __future__ import annotations

import glob
import re
from dataclasses import replace
from pathlib import Path

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.run.directory import RUNS, Run, newest_run
from gauge_mc.run.parameters import Parameters

CHAIN = re.compile(r"(.+_chain)([1-9][0-9]{0,5})")
"""Name of the directory of one of several chains."""


def chains_of(folder: Path) -> list[Path]:
    """Return the chains of the ensemble of a run, in order of their numbers; alone, it is one.

    They are the runs beside it whose names differ by the number of the chain, and that are of the
    same ensemble.

    Parameters
    ----------
    folder : Path
        A run directory.
    """
    found, own = number_of_chain(folder), known_parameters(folder)
    if not found or not own:
        return [folder]
    same = []
    for one in folder.parent.glob(f"{glob.escape(found[0])}*"):
        number, its = number_of_chain(one), known_parameters(one)
        if number and its and same_ensemble(own, its):
            same.append((number[1], one))
    return [one for _, one in sorted(same)]


def only_newest_run(root: Path = RUNS) -> Run:
    """Return the run that was used last.

    Raises
    ------
    UsageError
        If there are no runs, or it is one of several chains of an ensemble.
    """
    newest = newest_run(root)
    chains = chains_of(newest.path)
    if len(chains) > 1:
        raise UsageError(
            f"The newest run in {root} is one of {len(chains)} chains, {chains[0]} to "
            f"{chains[-1]}; name one."
        )
    return newest


def number_of_chain(folder: Path) -> tuple[str, int] | None:
    """Return the beginning of a chain's name and its number; None if it is not one of several."""
    found = CHAIN.fullmatch(folder.name) or CHAIN.fullmatch(folder.resolve().name)
    return (found[1], int(found[2])) if found else None


def known_parameters(folder: Path) -> Parameters | None:
    """Return the parameters of a run that has begun; None if there is none, or it is damaged."""
    try:
        return Run(folder).read()[0] if Run(folder).begun() else None
    except GaugeError:
        return None


def same_ensemble(own: Parameters, its: Parameters) -> bool:
    """Return whether two chains have the same parameters but for start, seed and length."""
    return own == replace(its, start=own.start, seed=own.seed, configs=own.configs)

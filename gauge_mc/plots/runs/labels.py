"""Labels of runs in legends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.groups import GROUPS
from gauge_mc.plots.figures.labels import named_apart, physics_label
from gauge_mc.run.directory import Run


def labels_of(runs: Sequence[Path]) -> list[str]:
    """Return a label for each run: group, coupling and lattice, and if necessary the directory."""
    physics, names = [_physics(run) for run in runs], [run.resolve().name for run in runs]
    chains = [re.search(r"_chain([0-9]+)$", name) for name in names]
    numbers = Counter(zip(physics, (found and found[1] for found in chains), strict=True))
    if all(chains) and max(numbers.values()) == 1:
        names = [f"chain {found[1]}" for found in chains if found]
    alike, same_name = Counter(physics), Counter(zip(physics, names, strict=True))
    return [
        label
        if label and alike[label] == 1
        else ", ".join(filter(None, (label, name if same_name[label, name] == 1 else str(run))))
        for label, name, run in zip(physics, names, runs, strict=True)
    ]


def _physics(run: Path) -> str:
    """Return group, coupling, lattice and quarks of a run, and an unusual action.

    It is empty if they are unknown.
    """
    try:
        p = Run(run).read()[0]
    except GaugeError:
        return ""
    action, options = named_apart(p.action)
    group = ", ".join([GROUPS[p.group].label, *action])
    return ", ".join([physics_label(group, p.lattice, p.beta), *options, *p.algorithm.labels])


def one_run(runs: Sequence[Path], what: str) -> Path:
    """Return the only run.

    Parameters
    ----------
    runs : sequence of Path
        Run directories, as the user gave them.
    what : str
        Subject of the error message, such as ``The effective potential``.

    Raises
    ------
    UsageError
        If there are several runs.
    """
    if len(runs) > 1:
        raise UsageError(
            f"{what} is drawn for one run at a time; name only one, such as {quote(str(runs[0]))}."
        )
    return runs[0]


def one_scan(scans: Sequence[Path]) -> Path:
    """Return the only scan.

    Raises
    ------
    UsageError
        If there are several scans.
    """
    if len(scans) > 1:
        raise UsageError("Only one scan can be drawn at a time; name only one.")
    return scans[0]

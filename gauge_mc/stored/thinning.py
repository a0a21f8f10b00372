"""Thinning: removing configurations of a run on purpose, with a record of what was removed.

The record is the file ``thinned.toml`` of the run. It states rules instead of numbers, one for each
thinning: of the configurations up to an update, every N-th one was kept. It is written before
anything is removed, so that a thinning that was killed leaves configurations that need not be
there, but never lacks one that should be. Repeating it removes the rest.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from math import lcm
from pathlib import Path

from gauge_mc import __version__
from gauge_mc.devices.choice import AUTOMATIC, Place
from gauge_mc.domain.device_group import open_device_group
from gauge_mc.errors import DamagedError, GaugeError, UnreadableError, UsageError, not_written
from gauge_mc.files.atomic import sync_folder, write_file
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_toml, typed
from gauge_mc.results import documented, result_field
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.lock import now
from gauge_mc.run.parameters import NO_FORMAT, Parameters
from gauge_mc.signatures import checks_types
from gauge_mc.stored.regenerate import Regeneration, StoredChain

MAX_RECORD = 2**20
"""Maximum size of the record in bytes."""

RECORD = "thinned"
"""Key of the rules in the record."""


@documented
@dataclass(frozen=True)
class Rule:
    """A thinning in the record of a run: what was removed, and when."""

    keep: int = result_field(
        "Number N: every N-th configuration was kept, counted from the first one of the run."
    )
    sweep: int = result_field("Number of updates up to which configurations were removed.")
    time: str = result_field("Time of the thinning in ISO 8601, with UTC offset.")
    version: str = result_field("Version of gauge-mc.")


@dataclass(frozen=True)
class RemovedConfigurations:
    """The configurations of a run that were removed on purpose."""

    parameters: Parameters
    """Parameters of the run."""
    rules: tuple[Rule, ...] = ()
    """Rules of all thinnings so far."""

    @classmethod
    def of(cls, run: Run, p: Parameters) -> RemovedConfigurations:
        """Read the record of a run; it has none unless it was thinned."""
        return cls(p, read_rules(run, p.updates, p.separation - 1))

    def __contains__(self, sweep: int) -> bool:
        """Return whether the configuration after an update was removed on purpose."""
        p = self.parameters
        number, rest = divmod(sweep - p.thermalize, p.separation)
        removed = (sweep <= rule.sweep and number % rule.keep for rule in self.rules)
        return number > 0 and not rest and any(removed)

    def kept(self, sweep: int) -> list[range]:
        """Return the updates up to `sweep` after which there should be a configuration.

        They are ranges, so that neither their number nor what it takes to find them grows with the
        numbers that a file states.
        """
        start, separation = self.parameters.thermalize, self.parameters.separation
        total = end = max(0, (sweep - start) // separation)
        ranges, step = [], 1
        for rule in (*sorted(self.rules, key=lambda rule: -rule.sweep), None):
            begin = min(end, max(0, (rule.sweep - start) // separation)) if rule else 0
            first = (begin // step + 1) * step
            if first <= end:
                last = start + end * separation
                ranges.append(range(start + first * separation, last + 1, step * separation))
            if rule:
                end, step = begin, min(lcm(step, rule.keep), total + 1)  # beyond it nothing is kept
        return ranges[::-1]

    def write(self, run: Run) -> None:
        """Write or replace the record of a run."""
        import tomli_w

        text = tomli_w.dumps({RECORD: [asdict(rule) for rule in self.rules]})
        write_file(run.thinned, text)


def read_rules(run: Run, updates: int, more: int = 0) -> tuple[Rule, ...]:
    """Read the rules in the record of a run, none of which may mention later updates than it has.

    A run whose number of configurations was lowered may have done more updates than these.
    """
    path = run.thinned
    if not os.path.lexists(path):
        return ()
    try:
        record = parse_toml(read_text(path, MAX_RECORD))[RECORD]
        rules: tuple[Rule, ...] = typed(record, tuple[Rule, ...])
        if min(rule.keep for rule in rules) < 1:
            raise ValueError("it keeps nothing")
        if (last := max(rule.sweep for rule in rules)) > updates + more:
            raise ValueError(f"it mentions update {last}, and the run ends after {updates}")
    except UnreadableError:
        raise
    except (GaugeError, ValueError, TypeError, KeyError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise DamagedError(
            f"{path} is damaged: {reason}; restore it from a copy, or remove it, whereupon the "
            "configurations that it mentions count as missing."
        ) from error
    return rules


def removed_from(run: Run, p: Parameters) -> int:
    """Return how many configurations were removed on purpose and are not there."""
    removed = RemovedConfigurations.of(run, p)
    last = max((rule.sweep for rule in removed.rules), default=0)
    due = max(0, (last - p.thermalize) // p.separation)
    present = sum(number in removed for number in run.configs())
    return due - sum(map(len, removed.kept(last))) - present


@documented
@dataclass(frozen=True)
class ThinningReport:
    """Report on a thinning: the configurations that it removes."""

    run: str = result_field("Run directory.")
    keep: int = result_field(
        "Number N: every N-th configuration is kept, counted from the first one of the run."
    )
    kept: Sequence[int] = result_field("Updates of the configurations that are kept.")
    removed: Sequence[int] = result_field("Updates of the configurations that are removed.")
    removed_bytes: int = result_field("Size of all files that are removed, in bytes.")


@checks_types
def thin(
    run: str | os.PathLike[str],
    keep: int,
    *,
    dry_run: bool = False,
    unchecked: bool = False,
    backend: str = AUTOMATIC,
    devices: str | None = None,
    threads: int | None = None,
) -> ThinningReport:
    """Remove configurations of a run, except every Nth one.

    First, one of them is made again from what is kept, and nothing is removed unless its links are
    the same: `gauge_mc.regenerate` can make all of them again. Kept are those that a run with N
    times the `separation` would have. The run records that the others were removed on purpose, so
    that status, info and verify do not call them missing. Tables are not changed, and the run can
    be continued; new configurations are all kept until the run is thinned again. Configurations
    later than the last checkpoint are left.

    Parameters
    ----------
    run : path
        Run directory. No other process may be working on it.
    keep : int
        Keep every Nth configuration, counted from the first one of the run. N is at least 2.
    dry_run : bool
        Show what would be removed, without removing anything.
    unchecked : bool
        Remove them without making one of them again first.
    backend, devices, threads
        Where it is made; see `gauge_mc.generate`.

    Returns
    -------
    ThinningReport
        What was removed, or would be with `dry_run`.

    Raises
    ------
    UsageError
        If there is no run, it keeps no configurations, or none of them would be kept.
    GaugeError
        If files of the run are damaged or cannot be removed, another process is working on it, or
        the configuration that was made again has other links.
    """
    directory = Run(Path(run))
    tempering = directory.read()[0].tempering
    planned = _FileSelection.of(directory, keep)
    if dry_run:
        directory.check_free()
    if planned.files and tempering and not unchecked:
        raise UsageError(
            f"The run {directory.path} exchanges couplings with other runs, so that what is "
            "removed can only be made again by the whole scan: add --unchecked to remove it anyway."
        )
    if dry_run or not planned.files:
        return planned.result
    with directory.locked():
        plan = _FileSelection.of(directory, keep)  # another process may have been at work until now
        result = plan.result
        if not unchecked:
            plan.check(Place(devices, backend, threads))
        plan.carry_out()
    return result


@dataclass(frozen=True)
class _FileSelection:
    """The files that a thinning keeps and removes, by update."""

    run: Run
    removed: RemovedConfigurations
    keep: int
    kept: tuple[int, ...]
    files: dict[int, Path]

    @classmethod
    def of(cls, run: Run, keep: int) -> _FileSelection:
        """Return the plan for a run as it is now."""
        parameters = run.read()[0]
        if keep < 2:
            raise UsageError(f"--keep is {keep}; choose at least 2, which keeps every other one.")
        if not parameters.keeps_configs:
            raise UsageError(
                f"The run {run.path} keeps no configurations, because its format is {NO_FORMAT}."
            )
        sweep = read_state(run.checkpoint).sweep if run.checkpoint.exists() else 0
        removed = RemovedConfigurations.of(run, parameters)
        rule = Rule(keep, sweep, now(), __version__)
        recorded = any((rule.keep, rule.sweep) == (keep, sweep) for rule in removed.rules)
        new = removed if recorded else replace(removed, rules=(*removed.rules, rule))
        stored = run.own_configs(parameters.format).items()
        configs = {number: path for number, path in stored if number <= sweep}
        files = {number: path for number, path in configs.items() if number in new}
        retained = tuple(number for number in configs if number not in new)
        if files and not retained:
            raise UsageError(
                f"--keep {keep} would remove all {len(files)} configurations of {run.path}; choose "
                "a smaller number."
            )
        return cls(run, new, keep, retained, files)

    @property
    def result(self) -> ThinningReport:
        """The report on what is removed."""
        size = sum(path.lstat().st_size for path in self.files.values())
        return ThinningReport(str(self.run.path), self.keep, self.kept, tuple(self.files), size)

    def check(self, place: Place) -> None:
        """Make again the configuration that takes the fewest updates, and compare its links."""
        stored = StoredChain.of(self.run)
        remaining = stored.without(self.files)
        number = remaining.nearest(self.files)
        assert number is not None
        lattice = stored.parameters.lattice
        with closing(open_device_group(*place, lattice=lattice)) as group:
            Regeneration(remaining, group).compare(stored, number)

    def carry_out(self) -> None:
        """Write the record, then remove the files."""
        self.removed.write(self.run)
        for path in self.files.values():
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise not_written(path, error) from error
        sync_folder(self.run.path / "configs")

"""Measurements on stored configurations of several runs, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gauge_mc.configurations.reading import LinkKind
from gauge_mc.errors import GaugeError, StoppedError, UsageError
from gauge_mc.files.table import TableData
from gauge_mc.run.measure import default_table, measure
from gauge_mc.run.measurement_table import refuse_place
from gauge_mc.scans.scan import named_or_newest, runs_of


def ensembles_of(named: Sequence[Path] | None, output: Path | None = None) -> list[list[Path]]:
    """Return what belongs together in measurements: each run by itself, and all files.

    Parameters
    ----------
    named : sequence of Path, optional
        Runs, scans, folders of runs or of configurations, and configuration files; by default the
        newest run or scan, or all chains of its ensemble.
    output : Path, optional
        The table.

    Raises
    ------
    UsageError
        If one table is named for several of them, or has no folder.
    """
    paths = named_or_newest(named)
    files = [path for path in paths if not path.is_dir()]
    folders = runs_of([path for path in paths if path.is_dir()])
    ensembles = [*([one] for one in folders), *([files] if files else [])]
    if output and len(ensembles) > 1:
        raise UsageError(
            f"--output names one table, but {len(ensembles)} ensembles are measured; leave it out, "
            "so that each has its own."
        )
    if output:
        refuse_place(output)
    return ensembles


def measure_all(
    named: Sequence[Path] | None,
    observable: str,
    *,
    output: Path | None = None,
    at: str | None = None,
    lattice: str | None = None,
    group: str | None = None,
    number: str | None = None,
    **options: Any,
) -> Iterator[tuple[Path, Path | None, TableData | GaugeError]]:
    """Measure on several ensembles, and yield the path of each table, its run, and the table.

    The run is None for files of no run. An ensemble on which it fails is left, and the error is
    yielded in place of the table. For parameters and errors see `gauge_mc.measure` and
    `ensembles_of`.

    Raises
    ------
    UsageError
        If one file is named for the tables of several ensembles.
    StoppedError
        If the work is stopped.
    """
    ensembles = ensembles_of(named, output)
    tables: dict[Path, Path] = {}
    for paths in ensembles:
        run = paths[0] if paths[0].is_dir() else None
        try:
            kind = LinkKind(lattice, group)
            path = output or default_table(paths, observable, at is not None, kind, number)
            if (other := tables.setdefault(path, paths[0])) != paths[0]:
                raise UsageError(
                    f"{other} and {paths[0]} would both have the table {path}; measure on the "
                    "second alone, with --output."
                )
            files: dict[str, Any] = {"lattice": lattice, "group": group, "number": number}
            kept = measure(paths, observable, output=path, at=at, **files, **options)
            yield path, run, kept
        except StoppedError:
            raise
        except GaugeError as error:
            if len(ensembles) == 1:
                raise
            yield paths[0], run, error

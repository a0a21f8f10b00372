"""The files that a session writes for a run: tables, configurations, checkpoints, progress."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gauge_mc.configurations.background import BackgroundWriter
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import Table
from gauge_mc.observables import Observable, Records, RecordsOfTables
from gauge_mc.run.chain import Chain, is_configuration, provenance
from gauge_mc.run.directory import Run
from gauge_mc.run.lock import RunLock
from gauge_mc.run.log import CHECKPOINT, RunLog
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.source_versions import sources_of


@dataclass(frozen=True)
class ChainTask:
    """A run in a session, with its lock and parameters."""

    run: Run
    """The run directory."""
    lock: RunLock | None
    """Run lock; None if this process is not the root."""
    parameters: Parameters
    """Parameters of the run, as in run.toml."""


class RunOutput:
    """The output of a session to one run. Only the root process writes.

    Parameters
    ----------
    task : ChainTask
        The run, with its lock and its parameters.
    chain : Chain
        The chain of the run.

    Attributes
    ----------
    physics : str
        Observables on the links, as text, which are recorded with the progress.
    """

    def __init__(self, task: ChainTask, chain: Chain) -> None:
        self.task, self.chain, self.physics = task, chain, ""
        self._tables: dict[Measurement, Table] = {}
        self._secondary: dict[Measurement, dict[str, Table]] = {}

    def open_tables(
        self,
        files: ExitStack,
        observables: Mapping[Measurement, Observable],
        written: int,
    ) -> None:
        """Open the tables, and remove rows and configurations later than the checkpoint.

        Parameters
        ----------
        files : ExitStack
            Context that closes the tables.
        observables : mapping of Measurement to Observable
            Observables that the run measures along the way.
        written : int
            Update up to which the checkpoint expects results.
        """
        run, parameters = self.task.run, self.task.parameters
        for item, observable in observables.items():
            metadata = provenance(parameters)
            header = {**observable.for_ensemble(metadata).header, **metadata}
            columns, path = (SWEEP, *observable.columns.names), run.table(item.observable)
            sources = sources_of(observable, parameters.group)
            measurements = max(0, written - parameters.thermalize) // item.every

            def opened(table: Table, records: int, expected: int = measurements) -> Table:
                files.enter_context(table)
                table.truncate(after=written, expected=expected * records)
                return table

            self._tables[item] = opened(Table(path, header, columns, sources), observable.records)
            self._secondary[item] = {
                one.name: opened(one.open(path, header, sources), one.records(observable))
                for one in observable.secondary_tables
            }
        for sweep, path in run.config_files():
            if sweep > written:
                _refuse_stranger(self.task, sweep, path)
                path.unlink()

    def add_records(self, item: Measurement, sweeps: Sequence[int], records: Records) -> None:
        """Append records to a table.

        Parameters
        ----------
        item : Measurement
            The measurement that the records belong to.
        sweeps : sequence of int
            The update of each measurement.
        records : Records
            The records of each measurement.
        """
        table = self._tables[item]
        if isinstance(records, np.ndarray):
            columns = records.shape[-1]
            table.append_numbers(
                np.repeat(sweeps, records.shape[1]).tolist(), records.reshape(-1, columns)
            )
        else:
            for sweep, found in zip(sweeps, records, strict=True):
                if isinstance(found, RecordsOfTables):
                    for name, beside in self._secondary[item].items():
                        beside.append([(sweep, *record) for record in found.secondary[name]])
                table.append([(sweep, *record) for record in found])

    def write_configuration(self, writer: BackgroundWriter) -> None:
        """Write the links after the last update, when the rows of the tables are on disk."""
        path = self.task.run.config(self.chain.sweep, self.task.parameters.format)
        self.chain.write(path, writer, before=self.sync)

    def save(self, measured: bool) -> None:
        """Write a checkpoint, when the rows of the tables are on disk; see `Chain.save`."""
        self.sync()
        self.chain.save(self.task.run.checkpoint, measured)

    def log_checkpoint(self, seconds: float) -> None:
        """Log that a checkpoint is on disk, and how long it took in seconds."""
        if self.task.lock:
            log = RunLog(self.task.run.path)
            log.add(CHECKPOINT, sweep=self.chain.sweep, seconds=round(seconds, 3))

    def sync(self) -> None:
        """Wait until the rows of the tables are on disk."""
        for table in self._all_tables():
            table.sync()

    def seal(self) -> None:
        """Seal the tables."""
        for table in self._all_tables():
            table.seal()
        self._tables.clear()
        self._secondary.clear()

    def _all_tables(self) -> Iterator[Table]:
        yield from self._tables.values()
        for tables in self._secondary.values():
            yield from tables.values()

    def record(self, rate: float, times: dict[str, float], joules: float | None) -> None:
        """Record the progress in the lock file, where other processes can read it.

        Parameters
        ----------
        rate : float
            Updates per second in this session.
        times : dict of str to float
            Shares of the session's time in seconds.
        joules : float or None
            Energy of the run in this session; None if it is not available.
        """
        lock = self.task.lock
        if lock:
            holder = replace(lock.holder, sweep=self.chain.sweep, rate=rate, physics=self.physics)
            lock.record(replace(holder, times=times, joules=joules))


def is_due(done: int, every: int) -> bool:
    """Return whether something that happens at an interval is due.

    Parameters
    ----------
    done : int
        Number of updates after thermalisation.
    every : int
        Interval in updates.
    """
    return done > 0 and done % every == 0


def _refuse_stranger(task: ChainTask, sweep: int, path: Path) -> None:
    """Check that a configuration later than the checkpoint is one that the run writes again."""
    p = task.parameters
    due = is_due(sweep - p.thermalize, p.separation) and sweep <= p.updates
    expected = p.keeps_configs and due and path == task.run.config(sweep, p.format)
    if not expected or not is_configuration(path, p, sweep):
        raise GaugeError(
            f"{path} is later than the checkpoint and does not seem to be a configuration of this "
            "run, which would replace it; move it to another folder."
        )


def refuse_leftovers(tasks: Iterable[ChainTask]) -> None:
    """Check that run directories without checkpoints contain no results.

    Raises
    ------
    GaugeError
        If a directory contains results.
    """
    for task in tasks:
        run = task.run
        tables = [run.table(item.observable) for item in task.parameters.recorded]
        if run.configs() or any(table.exists() for table in tables):
            how = "--start from its last configuration and " if run.configs() else ""
            raise GaugeError(
                f"The run {run.path} contains results but no checkpoint; start a new run with "
                f"{how}another --output."
            )

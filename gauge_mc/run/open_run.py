"""A run that is carried out: directory, lock, parameters, observables, chain and open tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gauge_mc.configurations.background import BackgroundWriter
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import Table
from gauge_mc.observables import Observable, Records, RecordsOfTables
from gauge_mc.run.chain import Chain, is_configuration
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.functions import ObservableLike, observables_of
from gauge_mc.run.lock import RunLock
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import Parameters, version
from gauge_mc.run.request import RunRequest


class RunTables(dict[tuple[Measurement, str], Table]):
    """Open tables by measurement and by the name of a secondary table; main ones have none."""

    def add(self, item: Measurement, sweeps: Sequence[int], records: Records) -> None:
        """Append records to the tables of a measurement."""
        table = self[item, ""]
        if isinstance(records, np.ndarray):
            numbers = np.repeat(sweeps, records.shape[1]).tolist()
            table.append_numbers(numbers, records.reshape(-1, records.shape[-1]))
            return
        secondary = {name: each for (of, name), each in self.items() if of == item and name}
        for sweep, rows in zip(sweeps, records, strict=True):
            if isinstance(rows, RecordsOfTables):
                for name, beside in secondary.items():
                    beside.append([(sweep, *row) for row in rows.secondary[name]])
            table.append([(sweep, *row) for row in rows])

    def sync(self) -> None:
        """Wait until the rows are on disk."""
        for table in self.values():
            table.sync()

    def seal(self) -> None:
        """Seal the tables."""
        for table in self.values():
            table.seal()
        self.clear()


@dataclass(eq=False)
class OpenRun:
    """A run that is carried out. Only the root process locks it and writes."""

    directory: Run
    """The run directory."""
    parameters: Parameters
    """Parameters of the run, as in run.toml."""
    lock: RunLock | None = None
    """Run lock; None if this process is not the root."""
    customs: tuple[ObservableLike, ...] = ()
    """User-defined observables."""
    sweep: int = 0
    """Number of updates that were done when the run was opened."""
    resumed: bool = False
    """Whether the run has a checkpoint."""
    measured: bool = True
    """Whether everything that is due after the last update has been written."""
    again: int = 0
    """Number of later updates, at least, that a process had done before it was killed."""
    chain: Chain = field(init=False)
    """The chain, once a session has begun or resumed it."""
    tables: RunTables = field(default_factory=RunTables, init=False)
    """The tables, once a session has opened them."""

    @classmethod
    def of(cls, request: RunRequest, lock: RunLock | None, devices: DeviceGroup) -> OpenRun:
        """Open a run that the root process has locked; all processes call this."""
        run = request.run
        progress: Any = None
        if lock:
            parameters = request.parameters()
            state = read_state(run.checkpoint) if run.checkpoint.exists() else None
            sweep, measured = (state.sweep, state.measured) if state else (0, True)
            again = max(0, lock.holder.sweep - sweep)
            lock.record(sweep=sweep)
            if state:
                run.shorten(parameters, sweep)
            progress = parameters, (sweep, state is not None, measured, again)
        parameters, numbers = devices.processes.broadcast(progress)
        return cls(run, parameters, lock, request.observables, *numbers)

    @cached_property
    def observables(self) -> dict[Measurement, Observable]:
        """What the run measures, as in the tables that it has."""
        return observables_of(self.parameters, self.customs, self.directory.table)

    def open_tables(
        self, files: ExitStack, observables: Mapping[Measurement, Observable], last: int
    ) -> None:
        """Open the tables, and remove rows and configurations later than the checkpoint."""
        run, parameters = self.directory, self.parameters
        for item, observable in observables.items():
            metadata = parameters.provenance
            observable = observable.for_ensemble(metadata)
            header = {**observable.header, **metadata, "version": version(observable)}
            columns, path = (SWEEP, *observable.columns.names), run.table(item.observable)
            measurements = max(0, last - parameters.thermalize) // item.every

            def opened(table: Table, records: int, expected: int = measurements) -> Table:
                files.enter_context(table)
                table.truncate(after=last, expected=expected * records)
                return table

            self.tables[item, ""] = opened(Table(path, header, columns), observable.records)
            for second in observable.secondary_tables:
                table = opened(second.open(path, header), second.records(observable))
                self.tables[item, second.name] = table
        for sweep, path in run.config_files():
            if sweep > last:
                self._refuse_stranger(sweep, path)
                path.unlink()

    def write_configuration(self, writer: BackgroundWriter) -> None:
        """Write the links after the last update, when the rows of the tables are on disk."""
        path = self.directory.config(self.chain.sweep, self.parameters.format)
        self.chain.write(path, writer, before=self.tables.sync)
        if self.lock:
            self.lock.record(sweep=self.chain.sweep)

    def _refuse_stranger(self, sweep: int, path: Path) -> None:
        """Check that a configuration later than the checkpoint is one that the run writes again."""
        p = self.parameters
        expected = (
            p.keeps(sweep) and sweep <= p.updates and path == self.directory.config(sweep, p.format)
        )
        if not expected or not is_configuration(path, p, sweep):
            raise GaugeError(
                f"{path} is later than the checkpoint and does not seem to be a configuration of "
                "this run, which would replace it; move it to another folder."
            )

"""Requests to begin or to continue a run, and the run that is carried out, with its kernels.

An open run has its directory, lock, parameters, observables, chain and tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gauge_mc import defaults
from gauge_mc.algorithms import ChainSpec
from gauge_mc.configurations.writing import BackgroundWriter, stored_by
from gauge_mc.devices.host import allowed_cores
from gauge_mc.devices.kernels import ANY_VARIANT
from gauge_mc.domain.device_group import LEAST_SLICES, DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import COLD, HOT, Field
from gauge_mc.fields.file_links import GROUP_LINKS, READ_LINKS, WRITE_LINKS
from gauge_mc.fields.sums import ADD_PARTIAL_SUMS, LINK_TRACE, PLAQUETTE
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import Table
from gauge_mc.observables import Observable, Records, RecordsOfTables, live_observables
from gauge_mc.random import GENERATORS
from gauge_mc.run.chain import Chain, check_start, is_configuration
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import RUNS, Run, missing_run
from gauge_mc.run.lock import RunLock
from gauge_mc.run.measurement import (
    AddedMeasurements,
    Measurement,
    ObservableLike,
    check_folders,
    observables_of,
    user_defined,
)
from gauge_mc.run.parameters import Parameters, known_options, version
from gauge_mc.run.settings import PHYSICS, Execution
from gauge_mc.run.state import updates_there
from gauge_mc.storage.links import BY_SITE
from gauge_mc.updates.sweep import norms_of


@dataclass(frozen=True)
class RunRequest:
    """A request to begin or to continue a run."""

    values: Mapping[str, object]
    """Given fields of `Parameters` and `Execution` by name."""
    observables: tuple[ObservableLike, ...] = ()
    """User-defined observables."""

    @cached_property
    def execution(self) -> Execution:
        """Where and how the run is carried out."""
        return Execution.from_values(self.values)

    @cached_property
    def run(self) -> Run:
        """The run directory."""
        path = self.execution.output
        return Run(Path(path) if path else RUNS / self.new_parameters.name)

    @cached_property
    def new_parameters(self) -> Parameters:
        """Parameters of the run if it does not exist yet."""
        named = Parameters.from_run(self.values)
        customs = user_defined(named.lattice, self.observables)
        named.check_observables({item.observable for item in customs})
        return replace(named, measure=AddedMeasurements(customs).beside(named.measure))

    def parameters(self) -> Parameters:
        """Return the parameters of the run, which may exist already and must be able to begin."""
        run = self.run
        if run.begun():
            stored = run.read()[0]
            check_folders(run.toml, stored, self.values)
            values: dict[str, Any] = dict(self.values)
            if self.observables:
                customs = AddedMeasurements(user_defined(stored.lattice, self.observables))
                named = replace(stored, measure=values.get("measure", stored.measure))
                values["measure"] = customs.beside(named.measure)
            return stored.continued(
                values, f"The run {run.path}", updates_there(run, stored.format)
            )
        # A path alone may be a misspelt one, so that a run begins only if its physics is stated.
        physics = {name for name, x in known_options().items() if x.panel == PHYSICS}
        request = self
        if self.execution.output and not self.values.keys() & physics - {"seed"}:
            run.check_place()
            if not run.exists():
                raise UsageError(
                    f"{missing_run(run.path)} To begin one, state its physics, such as --lattice "
                    "and --beta."
                )
            # The parameters of a killed run are in run.toml.
            request = replace(self, values={**run.read()[0].values(), **self.values})
        parameters = request.new_parameters
        check_start(parameters.start, parameters.group, parameters.lattice)
        observables_of(parameters, self.observables, run.table)
        return parameters


def compile_kernels(
    parameters: Parameters,
    observables: Iterable[Observable],
    devices: DeviceGroup,
    resumed: bool,
    several: bool = False,
) -> None:
    """Compile the kernels of a run that are not in the cache."""
    p, device = parameters, devices.devices[0]
    devices.compute(p.strict)
    # Extents in space decide about the lanes; few time slices take next to no memory.
    few = Lattice(*p.lattice.extents[:3], LEAST_SLICES * sum(devices.counts))
    slab = Field.empty(few, p.group, p.precision, replace(devices, slices=None)).slabs[0]
    random, norms = GENERATORS[p.rng].choice(p.luxury), norms_of(p.precision, p.chain_version)
    # Those that take longest to compile come first.
    kernels = [*p.algorithm.kernels(ChainSpec(p.action, random, norms, several))]
    if p.tempering:
        kernels += [(loops.kernel, ()) for loops in p.action.loops]
    kernels.append((WRITE_LINKS, (BY_SITE.choice, GROUP_LINKS)))
    if p.start == "hot" and not resumed:
        kernels.append((HOT, (GENERATORS[defaults.START_RNG].choice(),)))
    elif p.start == "cold" and not resumed:
        kernels.append((COLD, ()))
    else:
        kernels.append((READ_LINKS, (BY_SITE.choice, GROUP_LINKS)))
    if p.keeps_configs:
        order = stored_by(p.format, p.lattice, p.group, p.precision).order
        kernels += [(WRITE_LINKS, (order.choice, GROUP_LINKS)), (PLAQUETTE, ()), (LINK_TRACE, ())]
    for observable in (*observables, *live_observables(p.lattice)):
        kernels += [(kernel, ()) for kernel in observable.kernels]
    # Libraries take longer than most kernels: begun last, they would keep one core only busy.
    jobs = [(code, ANY_VARIANT) for code in (*device.libraries, ADD_PARTIAL_SUMS)]
    jobs += [(kernel, slab.variant(*choices)) for kernel, choices in dict.fromkeys(kernels)]
    with ThreadPoolExecutor(len(allowed_cores())) as threads:
        list(threads.map(lambda job: device.compile(*job), jobs))


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
    """Least number of later updates that a process had done before it was killed."""
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
            observable = self.observables.get(item, observable)
            provenance = parameters.provenance
            header = {**observable.header, **provenance, "version": version(observable)}
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
                keeps = parameters.keeps(sweep) and sweep <= parameters.updates
                expected = keeps and path == run.config(sweep, parameters.format)
                if not expected or not is_configuration(path, parameters, sweep):
                    raise GaugeError(
                        f"{path} is later than the checkpoint and does not seem to be a "
                        "configuration of this run, which would replace it; move it to another "
                        "folder."
                    )
                path.unlink()

    def write_configuration(self, writer: BackgroundWriter) -> None:
        """Write the links after the last update, when the rows of the tables are on disk."""
        path = self.directory.config(self.chain.sweep, self.parameters.format)
        self.chain.write(path, writer, before=self.tables.sync)
        if self.lock:
            self.lock.record(sweep=self.chain.sweep)

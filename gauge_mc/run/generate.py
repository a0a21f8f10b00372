"""Generate an ensemble: begin a run, continue it, or show that it is complete."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.domain.mpi import find_processes
from gauge_mc.domain.processes import Processes
from gauge_mc.files.table import TableData, read_table
from gauge_mc.observables import Observable
from gauge_mc.run.directory import RUNS, Run, Session
from gauge_mc.run.functions import Catalogue, Given
from gauge_mc.run.lock import RunLock
from gauge_mc.run.parameters import Execution, Measurement, Parameters, Wanted, named_values
from gauge_mc.run.session import OnUpdate, Work, carry_out
from gauge_mc.run.stop import Stop

if TYPE_CHECKING:
    from rich.console import Console

    from gauge_mc.domain.device_group import DeviceGroup


@dataclass(frozen=True)
class RunResult:
    """A run after a session: its directory, and what it has measured.

    Attributes
    ----------
    path : Path
        The run directory.
    parameters : Parameters
    sweep : int
        Updates done.
    stopped : str or None
        Why the session stopped before the end of the run; None if the run is complete.
    root : bool
        Whether this process wrote the files, as it does unless it is one of several.
    seconds : float
        The duration of the session.
    links_per_s : float
        Link updates a second, measuring and writing included; 0 if not known.
    """

    path: Path
    parameters: Parameters
    sweep: int
    stopped: str | None = None
    root: bool = True
    seconds: float = 0.0
    links_per_s: float = 0.0

    def __repr__(self) -> str:
        state = f"stopped by {self.stopped}" if self.stopped else "complete"
        return f"<Run {self.path}: {state}, {self.sweep} of {self.parameters.updates} updates>"

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def tables(self) -> dict[str, TableData]:
        """The tables of the run by name; their columns are NumPy arrays."""
        return {path.stem: read_table(path) for path in Run(self.path).tables()}

    def __getitem__(self, observable: str) -> TableData:
        """Return the table of an observable."""
        return read_table(Run(self.path).table(observable))

    @property
    def configs(self) -> dict[int, Path]:
        """The configuration files by update."""
        return Run(self.path).configs()

    @property
    def averages(self) -> dict[str, Estimate]:
        """The averages of what was measured, by label, with errors; tau_int in measurements."""
        from gauge_mc.run.summary import averages_of

        return averages_of(Run(self.path), self.parameters)


def generate(
    parameters: Wanted = None,
    *,
    output: str | Path | None = None,
    observables: Iterable[Given] = (),
    on_update: OnUpdate | None = None,
    progress: bool = True,
    **options: Any,
) -> RunResult:
    """Generate an ensemble of configurations and measure along the way.

    If the run is there already, it is continued, and what is not given is taken from it. SIGINT,
    SIGTERM and SIGUSR1 write a checkpoint and stop, if this is called in the main thread.

    Parameters
    ----------
    parameters : Parameters, mapping or path, optional
        `Parameters`; or only those that are to differ from the defaults, by name; or the path of a
        run card. An existing run needs none.
    output : path, optional
        The run directory; by default ``runs/`` and the name of the parameters.
    observables : iterable, optional
        What to measure besides ``measure``: functions of a field that return a number, a record
        (mapping, data class, named tuple) or an array; or observables. A pair such as
        ``(function, 10)`` means after every tenth update.
    on_update : callable, optional
        Called with the `Chain` after every update. A true result stops the run in order. The
        chain and its field can be used only as long as the run is at work.
    progress : bool
        Whether to show progress and a summary.
    **options : object
        Other fields of `Parameters` and `Execution` by name, such as ``beta``, ``devices``,
        ``threads`` or ``time_limit`` (``"HH:MM:SS"``).

    Returns
    -------
    RunResult
        The run, with its tables as NumPy arrays.

    Raises
    ------
    UsageError
        If a value is not allowed, or differs from that of the run in the directory.
    GaugeError
        If the run cannot be carried out.
    Exception
        What an observable or `on_update` raises; the run can be continued.
    """
    values = named_values(parameters, {"output": output, **options})
    return generate_from(values, observables, on_update, progress)


def generate_from(
    values: Mapping[str, object],
    observables: Iterable[Given] = (),
    on_update: OnUpdate | None = None,
    progress: bool = True,
    processes: Processes | None = None,
) -> RunResult:
    """Generate from the values of options or of a run card; otherwise as `generate`.

    Parameters
    ----------
    values : mapping of str to object
        Values by the names of `Parameters` and `Execution`.
    observables, on_update, progress
        As for `generate`.
    processes : Processes, optional
        The processes that share the lattice; by default those that an MPI launcher has started.
    """
    execution = Execution.from_values(values)
    asked = Asked(values, tuple(observables))
    processes = processes or find_processes()
    with processes.aborting(), Stop(execution.time_limit) as stop:
        run = Run(Path(execution.output) if execution.output else RUNS / asked.parameters.name)
        generation = _Generation(run, asked, execution, processes, stop, on_update, progress)
        return generation.carry_out()


@dataclass(frozen=True)
class Asked:
    """What is asked for.

    Attributes
    ----------
    values : mapping of str to object
        What was given by name.
    observables : tuple
        What is to be measured besides.
    """

    values: Mapping[str, object]
    observables: tuple[Given, ...] = ()

    @property
    def parameters(self) -> Parameters:
        """The parameters of a new run."""
        named = Parameters.from_run(self.values)
        catalogue = self.catalogue(named)
        named.check_observables(catalogue.own)
        return catalogue.measured(named)

    def of(self, run: Run) -> Parameters:
        """Return the parameters of a run, new or under way.

        Raises
        ------
        UsageError
            If a run that is under way has other parameters than those asked for.
        """
        if not run.begun():
            return self.parameters
        there = run.read()[0]
        values = dict(self.values)
        if self.observables:
            wanted: Any = values.get("measure", there.measure)
            named = replace(there, measure=wanted)
            values["measure"] = self.catalogue(there).measured(named).measure
        return there.continued(values, f"The run {run.path}")

    def catalogue(self, parameters: Parameters) -> Catalogue:
        """Return the observables on the lattice of a run."""
        return Catalogue.of(parameters.lattice, self.observables)


@dataclass(frozen=True)
class _Generation:
    """One call of `generate`."""

    run: Run
    asked: Asked
    execution: Execution
    processes: Processes
    stop: Stop
    on_update: OnUpdate | None
    progress: bool

    def carry_out(self) -> RunResult:
        """Do what there is to do, and show it."""
        # Imported here, since that takes longer than a signal may take to come.
        from gauge_mc.domain.device_group import open_device_group
        from gauge_mc.run.chain import check_start

        asked = self.asked.of(self.run)
        if not self.run.begun():
            check_start(asked)
        e = self.execution
        opened = open_device_group(e.devices, e.backend, e.threads, self.processes, e.share_gpus)
        with closing(opened) as devices:
            devices.slabs(asked.lattice)
            name = devices.name  # all processes take part
            return self._lead(devices, name) if devices.root else self._follow(devices)

    def _lead(self, devices: DeviceGroup, device_name: str) -> RunResult:
        """Carry out the run as the root, which alone has files and something to show."""
        from gauge_mc.run.checkpoint import read_state
        from gauge_mc.run.display import Clock, opening, show_progress
        from gauge_mc.run.summary import averages_table, summary

        run, console = self.run, self._console()
        with run.locked() as lock:
            parameters = self.asked.of(run)
            state = read_state(run.checkpoint) if run.checkpoint.exists() else None
            sweep = state.sweep if state else 0
            session = Session.begin(sweep, device_name)
            hint = self._hint()
            console.print(*opening(run, parameters, session, hint), sep="\n", soft_wrap=True)
            complete = bool(state and sweep == parameters.updates and state.measured)
            if complete:
                self.processes.broadcast((parameters, sweep, complete))
                console.print(averages_table(run, parameters))
                return RunResult(run.path, parameters, sweep)
            observables = self.asked.catalogue(parameters).chosen(parameters)
            run.write(parameters, [*(run.read()[1] if run.begun() else []), session])
            clock = Clock(sweep)
            self.processes.broadcast((parameters, sweep, complete))
            with show_progress(parameters, clock, console) as report:
                work = self._work(lock, parameters, observables, devices, report)
                chain, reason = carry_out(work)
            console.print(summary(run, clock, chain, chain.sweep - sweep))
        rate = clock.updates_per_second(chain.sweep) * parameters.links_per_update
        seconds = time.monotonic() - clock.began
        return RunResult(
            run.path, parameters, chain.sweep, reason, seconds=seconds, links_per_s=rate
        )

    def _follow(self, devices: DeviceGroup) -> RunResult:
        """Take part in what the root does."""
        from rich.console import Console

        from gauge_mc.run.display import Clock, show_progress

        found: tuple[Parameters, int, bool] | None = self.processes.broadcast(None)
        assert found
        parameters, sweep, complete = found
        if complete:
            return RunResult(self.run.path, parameters, sweep, root=False)
        observables = self.asked.catalogue(parameters).chosen(parameters)
        with show_progress(parameters, Clock(sweep), Console(quiet=True)) as report:
            work = self._work(None, parameters, observables, devices, report)
            chain, reason = carry_out(work)
        return RunResult(self.run.path, parameters, chain.sweep, reason, root=False)

    def _work(
        self,
        lock: RunLock | None,
        parameters: Parameters,
        observables: dict[Measurement, Observable],
        devices: DeviceGroup,
        report: OnUpdate,
    ) -> Work:
        seconds = 60 * self.execution.checkpoint_every
        return Work(
            self.run,
            lock,
            parameters,
            observables,
            devices,
            seconds,
            self.stop,
            report,
            self.on_update,
        )

    def _console(self) -> Console:
        from rich.console import Console

        quiet = self.execution.quiet or not self.progress
        return Console(quiet=quiet, highlight=False, markup=False)

    def _hint(self) -> str | None:
        """Return why a GPU that is here is not used, if nobody has chosen the devices."""
        from gauge_mc.devices.choice import AUTOMATIC, hint

        chosen = self.execution.devices or self.execution.backend != AUTOMATIC
        return None if chosen else hint()


def result_values(result: RunResult) -> dict[str, object]:
    """Return a result as plain values, for JSON: what the summary says, tau_int in updates."""
    from gauge_mc.run.summary import averages_values

    return {
        "run": str(result.path),
        "parameters": result.parameters.values(),
        "sweep": result.sweep,
        "sweeps": result.parameters.updates,
        "stopped": result.stopped,
        "seconds": result.seconds,
        "links_per_s": result.links_per_s or None,
        "configurations": len(result.configs),
        "averages": averages_values(Run(result.path), result.parameters),
    }

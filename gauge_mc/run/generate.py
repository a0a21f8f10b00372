"""Generation of ensembles: begin a run, continue it, or report that it is complete."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gauge_mc.actions import couplings
from gauge_mc.domain.mpi import find_processes
from gauge_mc.domain.processes import Processes
from gauge_mc.observables import Observable
from gauge_mc.run.cards import Wanted, named_values
from gauge_mc.run.directory import RUNS, Run, SessionRecord
from gauge_mc.run.functions import Catalogue, Given
from gauge_mc.run.lock import RunLock
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import Execution, Parameters
from gauge_mc.run.run_output import Task
from gauge_mc.run.session import OnUpdate, Work, carry_out
from gauge_mc.run.stop import Stop
from gauge_mc.run.view import RunView
from gauge_mc.signatures import with_fields

if TYPE_CHECKING:
    from gauge_mc.console import Console
    from gauge_mc.domain.device_group import DeviceGroup
    from gauge_mc.domain.energy import EnergyMeter


@dataclass(frozen=True)
class RunResult(RunView):
    """The result of a session: the run, see `RunView`, and what the session has done.

    Attributes
    ----------
    stopped : str or None
        Reason why the session stopped before the end of the run; None if the run is complete.
    root : bool
        Whether this process wrote the files. In an MPI job only one process does.
    seconds : float
        Duration of the session in seconds.
    links_per_s : float
        Link updates per second, including the time for measurements and files; 0 if unknown.
    joules, nj_per_link : float or None
        Energy that the devices used in the session, in joules, and in nJ per link update; None if
        it is not available.
    energy_source : str
        Where the energy was read, such as ``RAPL`` or ``NVML``, or why it is not available.
    """

    stopped: str | None = None
    root: bool = True
    seconds: float = 0.0
    links_per_s: float = 0.0
    joules: float | None = None
    nj_per_link: float | None = None
    energy_source: str = ""

    def __repr__(self) -> str:
        state = f"stopped by {self.stopped}" if self.stopped else "complete"
        return f"<Run {self.path}: {state}, {self.sweep} of {self.parameters.updates} updates>"


@with_fields(Parameters, Execution, options=couplings)
def generate(
    parameters: Wanted = None,
    *,
    output: str | Path | None = None,
    observables: Iterable[Given] = (),
    on_update: OnUpdate | None = None,
    progress: bool = True,
    **options: Any,
) -> RunResult:
    """Generate an ensemble of configurations, and measure observables along the way.

    If the run already exists, it is continued, and values that are not given are taken from it. If
    this function is called in the main thread, the signals SIGINT, SIGTERM, SIGHUP and SIGUSR1
    write a checkpoint and stop the run.

    Parameters
    ----------
    parameters : Parameters, mapping or path, optional
        `Parameters`; or a mapping of the parameters that differ from the defaults, by name; or the
        path of a run card. Not needed to continue a run.
    output : path, optional
        Run directory; by default ``runs/`` and the name of the parameters.
    observables : iterable, optional
        Further observables, in addition to ``measure``: functions of a field that return a number,
        a record (mapping, data class or named tuple) or an array; or instances or subclasses of
        `Observable`. A pair such as ``(function, 10)`` is measured after every tenth update.
    on_update : callable, optional
        Function that is called with the `Chain` after every update. If it returns a true value, a
        checkpoint is written and the run stops. The chain and its field must not be used after the
        run has ended.
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
        If a value is invalid, or differs from that of the existing run.
    GaugeError
        If the run cannot be carried out.
    Exception
        If an observable or `on_update` raises an exception. The run can be continued.
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
    """Generate an ensemble from the values of options or of a run card; see `generate`.

    Parameters
    ----------
    values : mapping of str to object
        Fields of `Parameters` and `Execution` by name.
    observables, on_update, progress
        See `generate`.
    processes : Processes, optional
        Processes that share the lattice; by default those that an MPI launcher has started.
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
    """The parameters and observables that the caller of `generate` has given.

    Attributes
    ----------
    values : mapping of str to object
        Given parameters by name.
    observables : tuple
        User-defined observables.
    """

    values: Mapping[str, object]
    observables: tuple[Given, ...] = ()

    @property
    def parameters(self) -> Parameters:
        """Parameters of a new run."""
        named = Parameters.from_run(self.values)
        catalogue = self.catalogue(named)
        named.check_observables(catalogue.own)
        return catalogue.measured(named)

    def of(self, run: Run) -> Parameters:
        """Return the parameters for a run, which may exist already.

        Raises
        ------
        UsageError
            If the run exists and its parameters differ from the given ones.
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
        """Return the observables for the lattice of a run."""
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
        """Do the remaining work of the run, and show its progress."""
        # These imports take long. They come after the signal handlers have been installed, so that
        # a signal in the meantime is not lost.
        from gauge_mc.domain.device_group import open_device_group
        from gauge_mc.run.chain import check_start

        asked = self.asked.of(self.run)
        if not self.run.begun():
            check_start(asked)
            self._observables(asked)
        e = self.execution
        opened = open_device_group(
            e.devices, e.backend, e.threads, self.processes, e.share_gpus, lattice=asked.lattice
        )
        with closing(opened) as devices:
            devices.slabs(asked.lattice)
            name = devices.name  # a collective operation of all processes
            return self._lead(devices, name) if devices.root else self._follow(devices)

    def _lead(self, devices: DeviceGroup, device_name: str) -> RunResult:
        """Carry out the run as the root process, the only one that writes files and output."""
        from gauge_mc.domain.energy import EnergyMeter
        from gauge_mc.run.checkpoint import read_state
        from gauge_mc.run.disk import DiskNeeds, check_disk
        from gauge_mc.run.display import Clock, opening, show_progress
        from gauge_mc.run.summary import averages_table, summary

        run, console = self.run, self._console()
        with run.locked() as lock:
            parameters = self.asked.of(run)
            state = read_state(run.checkpoint) if run.checkpoint.exists() else None
            sweep = state.sweep if state else 0
            lock.record(replace(lock.holder, sweep=sweep))
            complete = bool(state and sweep == parameters.updates and state.measured)
            observables = {} if complete else self._observables(parameters)
            session = SessionRecord.begin(sweep, device_name)
            hint = self._hint()
            console.print(*opening(run, parameters, session, hint), sep="\n", soft_wrap=True)
            if complete:
                self.processes.broadcast((parameters, sweep, complete))
                console.print(averages_table([run], parameters))
                return RunResult(run.path, parameters, sweep)
            check_disk([DiskNeeds.of(run, parameters, observables, sweep)])
            before = run.read()[1] if run.begun() else []
            run.write(parameters, [*before, session])
            clock = Clock(sweep)
            self.processes.broadcast((parameters, sweep, complete))
            meter = EnergyMeter(devices)
            with show_progress(parameters, clock, console) as report:
                work = self._work(lock, parameters, observables, devices, report, meter)
                (chain,), reason = carry_out(work)
            energy, updates = meter.total(), chain.sweep - sweep
            if energy.joules is not None:
                run.write(parameters, [*before, replace(session, joules=energy.joules)])
            console.print(summary(run, clock, chain, updates, asdict(work.times), energy))
        rate = clock.updates_per_second(chain.sweep) * parameters.links_per_update
        return RunResult(
            run.path,
            parameters,
            chain.sweep,
            reason,
            seconds=time.monotonic() - clock.began,
            links_per_s=rate,
            joules=energy.joules,
            nj_per_link=energy.nj_per_link(updates * parameters.links_per_update),
            energy_source=energy.source,
        )

    def _follow(self, devices: DeviceGroup) -> RunResult:
        """Carry out the run as a process that is not the root."""
        from gauge_mc.console import Console
        from gauge_mc.domain.energy import EnergyMeter
        from gauge_mc.run.display import Clock, show_progress

        found: tuple[Parameters, int, bool] | None = self.processes.broadcast(None)
        assert found
        parameters, sweep, complete = found
        if complete:
            return RunResult(self.run.path, parameters, sweep, root=False)
        observables = self._observables(parameters)
        meter = EnergyMeter(devices)
        with show_progress(parameters, Clock(sweep), Console(quiet=True)) as report:
            work = self._work(None, parameters, observables, devices, report, meter)
            (chain,), reason = carry_out(work)
        meter.total()
        return RunResult(self.run.path, parameters, chain.sweep, reason, root=False)

    def _observables(self, parameters: Parameters) -> dict[Measurement, Observable]:
        """Return the observables of the run; refuse those that this call of `generate` lacks."""
        return self.asked.catalogue(parameters).chosen(parameters)

    def _work(
        self,
        lock: RunLock | None,
        parameters: Parameters,
        observables: dict[Measurement, Observable],
        devices: DeviceGroup,
        report: OnUpdate,
        energy: EnergyMeter,
    ) -> Work:
        seconds = 60 * self.execution.checkpoint_every
        return Work(
            (Task(self.run, lock, parameters),),
            observables,
            devices,
            seconds,
            self.stop,
            report,
            self.on_update,
            energy=energy,
        )

    def _console(self) -> Console:
        from gauge_mc.console import Console

        quiet = self.execution.quiet or not self.progress
        return Console(quiet=quiet, highlight=False, markup=False)

    def _hint(self) -> str | None:
        """Return the reason why a GPU of this machine is not used, unless devices were chosen."""
        from gauge_mc.devices.choice import AUTOMATIC, hint

        chosen = self.execution.devices or self.execution.backend != AUTOMATIC
        return None if chosen else hint()

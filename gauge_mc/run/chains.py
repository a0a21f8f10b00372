"""Generation of several runs on one device, in batches of runs that are updated together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gauge_mc import defaults
from gauge_mc.actions import couplings
from gauge_mc.devices.kernels import REAL_BYTES
from gauge_mc.domain.layout import WORD_BYTES
from gauge_mc.domain.mpi import find_processes
from gauge_mc.errors import UsageError
from gauge_mc.groups import GROUPS
from gauge_mc.observables import Observable
from gauge_mc.random import GENERATORS
from gauge_mc.run.cards import Wanted, named_values
from gauge_mc.run.directory import RUNS, Run, SessionRecord
from gauge_mc.run.generate import Asked, RunResult
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import Execution, Parameters
from gauge_mc.run.run_output import Task
from gauge_mc.run.session import Work, carry_out
from gauge_mc.run.stop import Stop
from gauge_mc.signatures import with_fields

if TYPE_CHECKING:
    from gauge_mc.console import Console
    from gauge_mc.domain.device_group import DeviceGroup
    from gauge_mc.run.disk import DiskNeeds

OWN = {"beta", "seed", *(one.name for one in couplings())}
"""Parameters in which the runs of a batch may differ, if their kernels are the same."""

MAX_CHAINS = 10_000
"""Largest number of chains, each with a directory and open files of its own, to catch typing
errors."""

MEMORY_SHARE = 0.8
"""Fraction of the free memory of a device that the links and random numbers of a batch may take."""


@with_fields(Parameters, Execution, options=couplings)
def generate_chains(
    parameters: Wanted = None,
    *,
    chains: int,
    output: str | Path | None = None,
    progress: bool = True,
    **options: Any,
) -> list[RunResult]:
    """Generate several independent chains with the same parameters and consecutive seeds.

    The chains are updated together, which is much faster than one after the other if the lattice
    is small. Each has a run directory of its own, which does not depend on the other chains; it
    can be continued alone or with any number of chains.

    Parameters
    ----------
    parameters : Parameters, mapping or path, optional
        See `gauge_mc.generate`; the seed is that of the first chain.
    chains : int
        Number of chains.
    output : path, optional
        Beginning of the names of the run directories, to which ``_chain1``, ``_chain2``, … are
        added; by default as for `gauge_mc.generate`.
    progress : bool
        Whether to show progress and a summary.
    **options : object
        Other fields of `Parameters` and `Execution` by name.

    Returns
    -------
    list of RunResult
        One per chain.

    Raises
    ------
    UsageError, GaugeError
        See `gauge_mc.generate`.
    """
    values = named_values(parameters, {"output": output, **options})
    return generate_together(chain_values(values, chains), progress)


def chain_values(values: Mapping[str, object], chains: int) -> list[dict[str, object]]:
    """Return the values of `Parameters` and `Execution` for each of several chains.

    Raises
    ------
    UsageError
        If there are no chains or more than `MAX_CHAINS`, or a value is invalid.
    """
    if not 1 <= chains <= MAX_CHAINS:
        raise UsageError(f"chains must lie between 1 and {MAX_CHAINS}, not {chains}.")
    asked, execution = Asked(values), Execution.from_values(values)
    base = execution.output or str(RUNS / asked.parameters.name)
    found = []
    for number in range(chains):
        run = Run(Path(f"{base}_chain{number + 1}"))
        own = {**values, "output": str(run.path)}
        if "seed" in values or not run.begun():
            first: Any = values.get("seed", defaults.SEED)
            own["seed"] = first + number
        found.append(own)
    return found


def generate_together(
    requests: Sequence[Mapping[str, object]], progress: bool = False
) -> list[RunResult]:
    """Generate several ensembles on one device; those that can be updated together are.

    Parameters
    ----------
    requests : sequence of mapping
        For each run, fields of `Parameters` and `Execution` by name. All have the same `Execution`
        except for `output`.
    progress : bool
        Whether to show progress and a summary.

    Returns
    -------
    list of RunResult
        In the order of the requests. If the session is stopped, also for runs that have not begun.

    Raises
    ------
    UsageError, GaugeError
        See `gauge_mc.generate`; also if there are several devices or processes.
    """
    execution = Execution.from_values(requests[0])
    requested = [_Request.of(values) for values in requests]
    if find_processes().size > 1:
        raise UsageError(
            "Several chains are generated by one process; start it without mpirun or srun, or "
            "leave out --chains."
        )
    with Stop(execution.time_limit) as stop:
        # These imports take long; a signal in the meantime must not be lost.
        from gauge_mc.devices import choose_devices
        from gauge_mc.domain.device_group import open_device_group

        e = execution
        if len(choose_devices(e.devices, e.backend, e.threads)) > 1:
            raise UsageError(
                "Several chains share one device; choose one with --devices, such as --devices 0, "
                "or leave out --chains."
            )
        with closing(open_device_group(e.devices, e.backend, e.threads)) as devices:
            return _Together(requested, devices, execution, stop, progress).carry_out()


@dataclass(frozen=True)
class _Request:
    """A run to be generated together with others.

    Attributes
    ----------
    run : Run
    asked : Asked
        Requested parameters.
    """

    run: Run
    asked: Asked

    @classmethod
    def of(cls, values: Mapping[str, object]) -> _Request:
        """Return the request for values of `Parameters` and `Execution`."""
        execution, asked = Execution.from_values(values), Asked(values)
        path = Path(execution.output) if execution.output else RUNS / asked.parameters.name
        return cls(Run(path), asked)


@dataclass(frozen=True)
class _Begun:
    """A requested run that is locked.

    Attributes
    ----------
    task : Task
    number : int
        Position among the requests.
    sweep : int
        Number of updates done.
    measured : bool
        Whether everything that is due after the last update has been written.
    """

    task: Task
    number: int
    sweep: int
    measured: bool

    @property
    def complete(self) -> bool:
        """Whether there is nothing left to do."""
        return self.sweep == self.task.parameters.updates and self.measured

    @property
    def kind(self) -> tuple[object, ...]:
        """The properties that all runs of a batch share."""
        return (
            *shared_values(self.task.parameters),
            self.task.run.checkpoint.exists(),
            self.sweep,
            self.measured,
        )


@dataclass(frozen=True)
class _Together:
    """One call of `generate_together`."""

    requests: Sequence[_Request]
    devices: DeviceGroup
    execution: Execution
    stop: Stop
    progress: bool

    def carry_out(self) -> list[RunResult]:
        """Carry out one batch after the other."""
        from gauge_mc.run.disk import check_disk

        results: dict[int, RunResult] = {}
        with ExitStack() as locks:
            begun = [self._locked(n, one, locks) for n, one in enumerate(self.requests)]
            for one in begun:
                results[one.number] = _result(one, one.sweep)
            left = [one for one in begun if not one.complete]
            check_disk(self._needs(one) for one in left)
            for batch in _batches(left, self.devices):
                found, reason = self._generate(batch)
                results |= found
                if reason:
                    rest = {one.number for one in left} - {one.number for one in batch}
                    stopped = {n: replace(results[n], stopped=reason) for n in rest}
                    results |= {n: one for n, one in stopped.items() if not _done(one)}
                    break
            self._show_averages(begun)
        return [results[number] for number in range(len(begun))]

    def _locked(self, number: int, request: _Request, locks: ExitStack) -> _Begun:
        from gauge_mc.run.chain import check_start
        from gauge_mc.run.checkpoint import read_state

        run, asked = request.run, request.asked
        if not run.begun():
            check_start(asked.parameters)
            asked.catalogue(asked.parameters).chosen(asked.parameters)
        lock = locks.enter_context(run.locked())
        parameters = asked.of(run)
        state = read_state(run.checkpoint) if run.checkpoint.exists() else None
        sweep = state.sweep if state else 0
        lock.record(replace(lock.holder, sweep=sweep))
        measured = state.measured if state else True
        return _Begun(Task(run, lock, parameters), number, sweep, measured)

    def _generate(self, batch: Sequence[_Begun]) -> tuple[dict[int, RunResult], str | None]:
        """Carry out a batch; return the results by number, and the reason for stopping."""
        from gauge_mc.domain.energy import EnergyMeter
        from gauge_mc.run.display import Clock, show_progress
        from gauge_mc.run.summary import session_facts

        console, first = self._console(), batch[0]
        session = SessionRecord.begin(first.sweep, self.devices.name)
        console.print(*self._opening(batch, session), sep="\n", soft_wrap=True)
        runs = [one.task.run for one in batch]
        before = [run.read()[1] if run.begun() else [] for run in runs]
        for one, sessions in zip(batch, before, strict=True):
            one.task.run.write(one.task.parameters, [*sessions, session])
        meter = EnergyMeter(self.devices)
        p = first.task.parameters
        clock = Clock(first.sweep, len(batch))
        with show_progress(p, clock, console) as report:
            work = Work(
                tuple(one.task for one in batch),
                self._observables(first),
                self.devices,
                60 * self.execution.checkpoint_every,
                self.stop,
                report,
                energy=meter,
            )
            chains, reason = carry_out(work)
        energy = meter.total()
        each = energy.share(len(batch))
        if each.joules is not None:
            ended = replace(session, joules=each.joules)
            for one, sessions in zip(batch, before, strict=True):
                one.task.run.write(one.task.parameters, [*sessions, ended])
        console.print(session_facts(clock, chains[0], first.sweep, asdict(work.times), energy))
        rate = clock.updates_per_second(chains[0].sweep) * p.links_per_update
        seconds = time.monotonic() - clock.began
        results = {}
        for one, chain in zip(batch, chains, strict=True):
            links = (chain.sweep - one.sweep) * p.links_per_update
            results[one.number] = replace(
                _result(one, chain.sweep),
                stopped=reason,
                seconds=seconds,
                links_per_s=rate,
                joules=each.joules,
                nj_per_link=each.nj_per_link(links),
                energy_source=each.source,
            )
        return results, reason

    def _opening(self, batch: Sequence[_Begun], session: SessionRecord) -> list[str]:
        from gauge_mc.run.display import opening

        first, last = batch[0].task, batch[-1].task
        lines = opening(first.run, first.parameters, session)
        if len(batch) > 1:
            lines.insert(1, f"... {last.run.path}: {len(batch)} chains are updated together")
        return lines

    def _show_averages(self, begun: Sequence[_Begun]) -> None:
        """Show averages over all runs if they are chains with the same parameters."""
        from gauge_mc.run.summary import averages_table

        first = begun[0].task.parameters
        if all(replace(one.task.parameters, seed=first.seed) == first for one in begun):
            runs = [one.task.run for one in begun]
            table = averages_table(runs, first)
            configs = sum(len(run.configs()) for run in runs)
            files = f"files   {runs[0].path} ... {runs[-1].path} ({configs} configurations)"
            self._console().print(table, files, sep="\n", soft_wrap=True)

    def _observables(self, first: _Begun) -> dict[Measurement, Observable]:
        """Return the observables of a batch, which are those of its first run."""
        parameters = first.task.parameters
        return self.requests[first.number].asked.catalogue(parameters).chosen(parameters)

    def _needs(self, one: _Begun) -> DiskNeeds:
        """Return the disk space that the rest of a run needs."""
        from gauge_mc.run.disk import DiskNeeds

        parameters = one.task.parameters
        return DiskNeeds.of(one.task.run, parameters, self._observables(one), one.sweep)

    def _console(self) -> Console:
        from gauge_mc.console import Console

        quiet = self.execution.quiet or not self.progress
        return Console(quiet=quiet, highlight=False, markup=False)


def shared_values(parameters: Parameters) -> tuple[object, ...]:
    """Return the values of the parameters that all runs of a batch share."""
    values = parameters.values()
    kernels = parameters.coupling.action.choice.name
    return (kernels, *(value for name, value in values.items() if name not in OWN))


def _batches(runs: Iterable[_Begun], devices: DeviceGroup) -> Iterator[list[_Begun]]:
    """Yield runs that can be updated together and that fit into the memory of the device."""
    groups: dict[tuple[object, ...], list[_Begun]] = {}
    for one in runs:
        groups.setdefault(one.kind, []).append(one)
    for group in groups.values():
        free = MEMORY_SHARE * sum(device.free_bytes() for device in devices.devices)
        most = max(1, int(free // _bytes(group[0].task.parameters)))
        for first in range(0, len(group), most):
            yield group[first : first + most]


def _bytes(parameters: Parameters) -> int:
    """Return the size of the links and of the states of the random numbers of a run."""
    p = parameters
    links = p.lattice.links * GROUPS[p.group].components * REAL_BYTES[p.precision]
    return links + p.lattice.sites * GENERATORS[p.rng].state_words * WORD_BYTES


def _result(one: _Begun, sweep: int) -> RunResult:
    return RunResult(one.task.run.path, one.task.parameters, sweep)


def _done(result: RunResult) -> bool:
    return result.sweep == result.parameters.updates

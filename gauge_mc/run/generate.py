"""Generation of ensembles: begin runs, continue them, or report that they are complete.

A session is carried out from beginning to end: locks, devices, batches of runs, their records and
summaries. A run is a batch of one. Several runs are carried out in batches of those that can be
updated together.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from rich.console import Group
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from gauge_mc import defaults
from gauge_mc.console import Console
from gauge_mc.devices import BACKENDS, choose_devices
from gauge_mc.devices.base import ThreadedDevice
from gauge_mc.domain.device_group import DeviceGroup, open_device_group
from gauge_mc.domain.device_pool import EnergyMeter
from gauge_mc.domain.mpi import find_processes
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quoting import counted
from gauge_mc.random import GENERATORS
from gauge_mc.run.cards import ParametersLike, named_values
from gauge_mc.run.chain import check_ladder, shared_values
from gauge_mc.run.checkpoint import restore_common
from gauge_mc.run.convert import warning_of
from gauge_mc.run.directory import Run, SessionRecord
from gauge_mc.run.log import COMPLETE, RunLog, logged_session
from gauge_mc.run.measurement import ObservableLike
from gauge_mc.run.needs import DiskNeeds, disk_shortage, file_sizes
from gauge_mc.run.open_run import OpenRun, RunRequest
from gauge_mc.run.parameters import Parameters, run_options
from gauge_mc.run.results import AveragesSummary, RunResult, averages_table, session_table
from gauge_mc.run.session import OnUpdate, Session
from gauge_mc.run.settings import STARTS, Execution, check_starts, start_of_chain
from gauge_mc.run.state import Clock, Stop, describe, made_again, show_progress
from gauge_mc.signatures import checks_types, with_fields

if TYPE_CHECKING:
    from gauge_mc.keywords import GenerateKeywords

MAX_CHAINS = 10_000
"""Largest number of chains, each with a directory and open files of its own, to catch typing
errors."""


@with_fields(Parameters, Execution, options=run_options)
@checks_types
def generate(
    parameters: ParametersLike = None,
    *,
    output: str | Path | None = None,
    observables: Iterable[ObservableLike] = (),
    on_update: OnUpdate | None = None,
    progress: bool = True,
    **options: Unpack[GenerateKeywords],
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
    return generate_together([RunRequest(values, tuple(observables))], progress, on_update)[0]


@with_fields(Parameters, Execution, options=run_options)
@checks_types
def generate_chains(
    parameters: ParametersLike = None,
    *,
    chains: int,
    output: str | Path | None = None,
    progress: bool = True,
    **options: Unpack[GenerateKeywords],
) -> list[RunResult]:
    """Generate several independent chains with the same parameters and consecutive seeds.

    The chains are updated together, which is much faster than one after the other if the lattice
    is small. Each has a run directory of its own, which does not depend on the other chains; it
    can be continued alone or with any number of chains.

    Parameters
    ----------
    parameters : Parameters, mapping or path, optional
        See `gauge_mc.generate`; the seed is that of the first chain. A start such as
        ``"hot,cold"`` is a list that the chains take in turn.
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
    return generate_together(requests_of(values, chains), progress)


def requests_of(values: Mapping[str, object], chains: int | None = None) -> list[RunRequest]:
    """Return the request for a run, or for each of several chains."""
    if chains is None:
        return [RunRequest(values)]
    if not 1 <= chains <= MAX_CHAINS:
        raise UsageError(f"chains must lie between 1 and {MAX_CHAINS}, not {chains}.")
    base = RunRequest(values).run.path
    start = str(values.get("start", defaults.START))
    check_starts(start, chains)
    requests = []
    for number in range(chains):
        run = Run(Path(f"{base}_chain{number + 1}"))
        card = {**values, "output": str(run.path)}
        if "seed" in values or not run.begun():
            first: Any = values.get("seed", defaults.SEED)
            card["seed"] = first + number
        if "start" in values:
            card["start"] = start_of_chain(start, number)
        requests.append(RunRequest(card))
    return requests


MEMORY_SHARE = 0.8
"""Fraction of the free memory of a device that the links and random numbers of a batch may take."""


def generate_together(
    requests: Sequence[RunRequest], progress: bool = False, on_update: OnUpdate | None = None
) -> list[RunResult]:
    """Begin or continue runs, in batches of those that can be updated together.

    All processes carry out the same steps. Only the root locks runs, and writes files and output.
    """
    e, several, processes = requests[0].execution, len(requests) > 1, find_processes()
    if several and processes.size > 1:
        raise UsageError(
            "Several chains are generated by one process; start it without mpirun or srun, or "
            "leave out --chains."
        )
    with processes.aborting(), Stop(e.time_limit) as stop, ExitStack() as stack:
        parameters = [request.parameters() for request in requests]
        lattice = parameters[0].lattice
        if tempering := any(x.tempering for x in parameters):
            folder = requests[0].run.path.parent
            check_ladder(parameters, folder if (folder / "scan.toml").is_file() else None)
        if several and len(choose_devices(*e.place)) > 1:
            raise UsageError(
                "Several chains share one device; choose one with --devices, such as --devices 0, "
                "or leave out --chains."
            )
        opened = open_device_group(*e.place, processes, e.share_gpus, lattice=lattice)
        devices = stack.enter_context(closing(opened))
        devices.slabs(lattice)
        console = Console(quiet=e.quiet or not progress or not devices.root)
        locks = [
            stack.enter_context(request.run.locked()) if devices.root else None
            for request in requests
        ]
        if tempering and devices.root:
            restore_common([request.run.checkpoint for request in requests])
        pairs = zip(requests, locks, strict=True)
        runs = [OpenRun.of(request, lock, devices) for request, lock in pairs]
        unfinished = [
            x for x in runs if not (x.resumed and x.measured and x.sweep >= x.parameters.updates)
        ]
        needs = (
            DiskNeeds.of(x.directory, x.parameters, x.observables, x.sweep) for x in unfinished
        )
        if devices.root and (words := disk_shortage(needs)):
            raise GaugeError(words)
        if unfinished:
            p = unfinished[0].parameters
            devices.compute(p.strict)
            kind = p.lattice, p.group, p.precision
            devices, reason = p.algorithm.fastest_devices(devices, *kind)
            if reason:
                console.print(reason, soft_wrap=True)
        return _Generation(runs, unfinished, e, devices, stop, console, on_update).carry_out()


@dataclass(frozen=True)
class _Generation:
    """The generation of ensembles, with what is shown and recorded of it."""

    runs: Sequence[OpenRun]
    unfinished: Sequence[OpenRun]
    execution: Execution
    devices: DeviceGroup
    stop: Stop
    console: Console
    on_update: OnUpdate | None

    def carry_out(self) -> list[RunResult]:
        """Carry out one batch after the other."""
        runs, name = self.runs, self.devices.name  # a collective operation of all processes
        root = self.devices.root
        results = {
            x.directory: RunResult(x.directory.path, x.parameters, x.sweep, root=root) for x in runs
        }
        table = None
        for batch in self._batches():
            session = SessionRecord.begin(batch[0].sweep, name)
            outcomes, table = self._generate(batch, session, self._announce(batch, session))
            results |= outcomes
            if len(runs) > 1:
                self.console.print(table)
            if reason := outcomes[batch[0].directory].stopped:
                for run in self.unfinished:
                    if run not in batch and results[run.directory].sweep < run.parameters.updates:
                        results[run.directory] = replace(results[run.directory], stopped=reason)
                break
        if not self.unfinished and len(runs) == 1:
            self._announce(runs, SessionRecord.begin(runs[0].sweep, name))
        if root:
            self._show_averages(table)
        return list(results.values())

    def _generate(
        self, batch: Sequence[OpenRun], session: SessionRecord, cautions: Sequence[str]
    ) -> tuple[dict[Run, RunResult], Table]:
        """Carry out a batch; return the results, and the times of the session for the summary."""
        first, p = batch[0], batch[0].parameters
        recorded = batch if self.devices.root else ()
        before = [x.directory.read()[1] if x.directory.begun() else [] for x in recorded]

        def record(session: SessionRecord) -> None:
            for run, sessions in zip(recorded, before, strict=True):
                run.directory.write(run.parameters, [*sessions, session])

        record(session)
        clock, meter = Clock(first.sweep, len(batch)), EnergyMeter(self.devices)
        logs = [RunLog(x.directory.path) for x in recorded]
        threaded = [device for device in self.devices.devices if isinstance(device, ThreadedDevice)]
        facts = {"devices": session.device, "threads": sum(x.threads for x in threaded) or None}
        with (
            logged_session(logs, **facts, sweep=first.sweep, sweeps=p.updates) as log,
            show_progress(p.updates, clock, self.console) as report,
        ):
            for run_log in logs:
                run_log.caution(*cautions)
            every = 60 * self.execution.checkpoint_every
            work = Session(batch, self.devices, self.stop, report, self.on_update, every, meter)
            reason = work.carry_out()
            chains = work.batch.chains
            log |= {"ended": reason or COMPLETE, "sweep": chains[0].sweep}
        energy = meter.total()
        each, seconds = energy.share(len(batch)), time.monotonic() - clock.began
        record(replace(session, joules=each.joules, seconds=round(seconds / len(batch), 3)))
        sweep, links = chains[0].sweep, p.links_per_update
        ended = RunResult(
            first.directory.path,
            p,
            sweep,
            stopped=reason,
            root=self.devices.root,
            seconds=seconds,
            links_per_s=clock.updates_per_second(sweep) * links,
            times=asdict(work.times),
            joules=each.joules,
            nj_per_link=each.nj_per_link((sweep - first.sweep) * links),
            energy_source=each.source,
        )
        results = {
            x.directory: replace(ended, path=x.directory.path, parameters=x.parameters)
            for x in batch
        }
        return results, session_table(clock, first.sweep, sweep, links, ended.times, energy)

    def _announce(self, batch: Sequence[OpenRun], session: SessionRecord) -> list[str]:
        """Say what is carried out; return the cautions: generator, algorithm, and start."""
        first, last, p, state = batch[0], batch[-1], batch[0].parameters, "begins"
        updates = p.updates
        if session.sweep == updates:
            state = f"is complete, {counted(updates, 'update')}"
        elif session.sweep:
            again = made_again(first.again)
            state = f"continues after update {session.sweep} of {updates}{again}"
        warning = warning_of(p.start) if p.start not in STARTS and not session.sweep else None
        note = f"{p.start}: {warning}" if warning else ""
        notes = GENERATORS[p.rng].caution, p.algorithm.caution(p.precision), note
        cautions = [*filter(None, notes)]
        lines = [f"{first.directory.path} {state}", f"{describe(p)}, on {session.device}"]
        lines += filter(None, [self.execution.place.hint(), *cautions])
        if len(batch) > 1:
            backend = BACKENDS[self.devices.devices[0].backend]
            sizes = len(batch), p.lattice.sites, backend.busy_sites
            manner = "together" if p.algorithm.chains_at_once(*sizes) > 1 else "one after the other"
            lines.insert(1, f"... {last.directory.path}: {len(batch)} chains are updated {manner}")
        self.console.print(*lines, sep="\n", soft_wrap=True)
        return cautions

    def _show_averages(self, table: Table | None) -> None:
        """Show averages over all runs if they are chains with the same parameters."""
        first, paths = self.runs[0].parameters, [x.directory for x in self.runs]
        alone, others = len(paths) == 1, (x.parameters for x in self.runs[1:])
        if not all(replace(p, seed=first.seed, start=first.start) == first for p in others):
            return
        try:
            averages = averages_table(paths, first.recorded)
        except GaugeError as error:
            if not (alone and table):
                raise
            averages = AveragesSummary(Text(str(error), style="red"))
        for run in paths if table else ():
            RunLog(run.path).caution(*averages.cautions)
        count = counted(sum(len(run.configs()) for run in paths), "configuration")
        if alone and table:
            configs = count if first.keeps_configs else "no configurations"
            table.add_row("files", f"{paths[0].path} ({configs})")
            self.console.print(Group(averages, table))
        elif alone:
            self.console.print(averages)
        else:
            files = f"files   {paths[0].path} ... {paths[-1].path} ({count})"
            self.console.print(averages, files, sep="\n", soft_wrap=True)

    def _batches(self) -> Iterator[list[OpenRun]]:
        """Yield runs that can be updated together and that fit into the memory of the device."""
        groups: dict[tuple[object, ...], list[OpenRun]] = {}
        for run in self.unfinished:
            kind = (*shared_values(run.parameters), run.resumed, run.sweep, run.measured)
            groups.setdefault(kind, []).append(run)
        for group in groups.values():
            free = MEMORY_SHARE * sum(device.free_bytes() for device in self.devices.devices)
            _, size = file_sizes(group[0].parameters)
            most = max(1, int(free // size))
            if group[0].parameters.tempering:
                if len(group) > most:
                    raise GaugeError(
                        f"The {len(group)} runs on {group[0].parameters.lattice} that exchange "
                        f"their couplings take {decimal(len(group) * size)}, and the device has "
                        f"room for {most} of them; choose fewer couplings, or another device."
                    )
                yield sorted(group, key=lambda x: x.parameters.beta)
            else:
                yield from (group[first : first + most] for first in range(0, len(group), most))

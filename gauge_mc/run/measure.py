"""Measurements on a field, on the configurations of a run, or on configuration files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from gauge_mc import defaults
from gauge_mc.arguments import checks_types
from gauge_mc.configurations.reading import STATED_KIND, LinkKind
from gauge_mc.console import Console
from gauge_mc.devices.choice import AUTOMATIC, choose_devices, hint
from gauge_mc.domain.device_group import DeviceGroup, open_device_group
from gauge_mc.domain.device_pool import DevicePool, Devices, device_pool
from gauge_mc.domain.lattice import Lattice, OddLattice
from gauge_mc.domain.layout import REALS
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.given_paths import Paths, paths_of
from gauge_mc.files.table import TableData, read_table
from gauge_mc.observables import OBSERVABLES, Observable, check_records
from gauge_mc.options import Owners
from gauge_mc.quoting import shortened
from gauge_mc.registry import in_words
from gauge_mc.run.chains import only_newest_run
from gauge_mc.run.directory import Run
from gauge_mc.run.display import announced_compilation
from gauge_mc.run.ensemble import Ensemble, ensemble_of, find_ensemble, refuse_number
from gauge_mc.run.functions import CustomObservable, observable_of
from gauge_mc.run.log import RunLog, logged_session
from gauge_mc.run.measure_display import KEPT, of_others, opening, show_progress, warnings_of
from gauge_mc.run.measurement_table import measured_by_others, measuring, put_aside
from gauge_mc.run.memory import SAID, MemoryForecast, memory_of, refuse_shortage
from gauge_mc.run.regenerate import Updates, update_numbers, updates_shown
from gauge_mc.run.regeneration import Regeneration, StoredChain
from gauge_mc.run.source_versions import sources_of
from gauge_mc.signatures import with_options
from gauge_mc.smearing import smear_option, smearing_owners

if TYPE_CHECKING:
    from gauge_mc.keywords import MeasureKeywords

ONE_DEVICE = "--split has no effect with one device; choose more devices with --devices."
"""Message if several devices are to share every configuration but there is only one device."""

TOGETHER = 8
"""Number of configurations that are made before they are measured and removed."""

Target = Field | Paths | None
"""A field, a run directory, configuration files, or None for the newest run."""


def _owners() -> Owners:
    """Yield the observables and the smearings, with the options that they declare."""
    for name, one in OBSERVABLES.items():
        yield name, one.options
    yield "smear", (smear_option(),)
    yield from smearing_owners()


@with_options(_owners)
@checks_types
def measure(
    target: Target,
    observable: str | CustomObservable,
    *,
    output: str | Path | None = None,
    precision: str | None = None,
    backend: str = AUTOMATIC,
    devices: str | None = None,
    threads: int | None = None,
    split: bool = False,
    at: Updates | None = None,
    again: bool = False,
    progress: bool = True,
    lattice: str | None = None,
    group: str | None = None,
    number: str | None = None,
    **options: Unpack[MeasureKeywords],
) -> TableData:
    """Measure an observable on a field or on stored configurations.

    By default all GPUs are used, each for one configuration at a time; without a GPU, the CPU. A
    repeated call continues an interrupted measurement, and measures new configurations.

    Parameters
    ----------
    target : Field, path, sequence of paths or None
        A field; a run directory; configuration files; or None for the newest run in ``runs/``.
    observable : str, function, Observable or subclass of Observable
        Name of an observable; or a function of a field that returns a number, a record (mapping,
        data class or named tuple) or an array; or an `Observable`. Several devices call a function
        at the same time, each in a thread of its own. On stored configurations, a function is
        called once more than there are configurations to measure.
    output : path, optional
        Table file; by default in the run directory, or in the current folder for single files.
    precision : str, optional
        Precision of the links in memory; by default that of the files.
    backend, devices, threads
        See `gauge_mc.devices.choose_devices`; by default all GPUs are used.
    split : bool
        Whether all devices share every configuration, instead of taking one each.
    at : str, int or iterable of int, optional
        Updates of the run whose configurations are made for the measurement and not kept; see
        `gauge_mc.regenerate`. By default the stored configurations are taken.
    again : bool
        Whether to measure again what is not known to be measured by the present version of the
        observable's sources. The table of before is kept, with a number behind its name.
    progress : bool
        Whether to show progress.
    lattice, group : str, optional
        Extents and group of links of which configuration files themselves say nothing; see
        `open_configuration`.
    number : str, optional
        Regular expression whose first group, in the name of a configuration file, is its number.
        By default the number is the one in the header, or else the last one in the name.
    **options : object
        Options of the observable by name. Functions and instances of `Observable` have none.

    Returns
    -------
    TableData
        The table. For a field it has no column with the number of the configuration.

    Raises
    ------
    UsageError
        If a value is invalid, or the table belongs to another measurement.
    GaugeError
        If a configuration or the table is damaged, or the device fails.
    Exception
        If a function raises an exception. The table keeps the results up to that point.
    """
    kind = LinkKind(lattice, group)
    if isinstance(target, Field):
        kind.refuse("A field")
        refuse_number(number, "A field")
        return _measure_field(target, _observable(observable, target.lattice, options))
    _check_order(target, observable)
    paths, places = paths_of(target), _MeasuringDevices(backend, devices, threads, split)
    console = Console(quiet=not progress)
    plan = _ObservablePlan(observable, options, precision, places, console, again=again)
    if at is not None:
        kind.refuse("A run")
        refuse_number(number, "A run")
        return _measure_again(paths, update_numbers(at), plan, output)
    ensemble = find_ensemble(paths, kind, number)
    return plan.carry_out(ensemble, Path(output) if output else None)


@dataclass(frozen=True)
class _MeasuringDevices:
    """The devices on which an observable is measured."""

    backend: str
    devices: str | None
    threads: int | None
    split: bool

    @property
    def advice(self) -> str | None:
        """The reason why a GPU of this machine is not used, unless devices were chosen."""
        return hint() if self.backend == AUTOMATIC and not self.devices else None

    def openers(self, lattice: Lattice) -> list[Callable[[], Devices]]:
        """Return functions that open the devices: one for each, or one for all to split."""
        chosen = (self.devices, self.backend, self.threads)
        if self.split:
            return [partial(open_device_group, *chosen, all_by_default=True, lattice=lattice)]
        return [one.open for one in choose_devices(*chosen, all_by_default=True)]


@dataclass(frozen=True)
class _ObservablePlan:
    """The measurement of an observable."""

    observable: str | CustomObservable
    options: Mapping[str, Any]
    precision: str | None
    places: _MeasuringDevices
    console: Console
    logged: bool = True
    again: bool = False

    def __post_init__(self) -> None:
        if self.precision not in (None, *REALS):
            known = in_words(REALS, "or")
            raise UsageError(f"There is no precision '{self.precision}'; choose {known}.")

    def wanted(self, ensemble: Ensemble) -> Observable:
        """Return the observable for an ensemble."""
        if isinstance(ensemble.lattice, OddLattice):
            _check_copies(self.observable, ensemble.lattice)
        found = _observable(self.observable, ensemble.lattice, self.options)
        return found.for_group(ensemble.group).for_ensemble(ensemble.metadata)

    def carry_out(self, ensemble: Ensemble, path: Path | None) -> TableData:
        """Measure on the configurations that the table lacks, and return the table."""
        wanted, console = self.wanted(ensemble), self.console
        path = path or ensemble.table(wanted.name)
        width = self._width(ensemble)
        openers = self.places.openers(ensemble.measured_lattice)[: len(ensemble.files)]
        with device_pool(openers) as pool, announced_compilation(console):
            if not wanted.records:
                wanted = _prepared(wanted, ensemble, width, pool)
            with measuring(ensemble, wanted, path, width, self.again) as work:
                lines = opening(work, pool.name, self.places.advice)
                console.print(*lines, sep="\n", soft_wrap=True)
                if work.left and wanted.takes_memory:
                    self._check_memory(wanted, ensemble, pool)
                if self.places.split and len(openers) == 1 and _is_single(pool):
                    console.print(ONE_DEVICE, soft_wrap=True)
                numbers = work.carry_out(pool, width)
                logs = _logs(ensemble.folder) if self.logged and work.left else []
                facts = {"devices": pool.name, "configurations": len(work.left)}
                with logged_session(logs, observable=wanted.name, table=path.name, **facts):
                    for log in logs:
                        log.caution(*warnings_of(work))
                    for _ in show_progress(numbers, work, console, len(pool.devices)):
                        pass
        return read_table(path)

    def memory(self, ensemble: Ensemble) -> MemoryForecast:
        """Return the memory that the measurement takes on the devices."""
        wanted, openers = self.wanted(ensemble), self.places.openers(ensemble.lattice)
        if not wanted.takes_memory:
            raise UsageError(
                f"The memory of {wanted.name} is not forecast, because it is about that of the "
                "links; leave out --dry-run, which is for quarks."
            )
        if wanted.rehearsed is None:
            raise UsageError(
                f"The memory of {wanted.name} with these quarks is not forecast, because "
                "it depends on how many eigenvectors are found; leave out --dry-run."
            )
        with device_pool(openers[: len(ensemble.files)]) as pool:
            return self._memory_on(pool, wanted, ensemble)

    def _width(self, ensemble: Ensemble) -> str:
        return self.precision or ensemble.precision

    def _memory_on(
        self, pool: DevicePool, wanted: Observable, ensemble: Ensemble
    ) -> MemoryForecast:
        kind = ensemble.lattice, ensemble.group, self._width(ensemble)
        return memory_of(wanted, *kind, pool)

    def _check_memory(self, wanted: Observable, ensemble: Ensemble, pool: DevicePool) -> None:
        """Refuse a measurement for which the memory is too small, and say how much it takes."""
        memory = self._memory_on(pool, wanted, ensemble)
        refuse_shortage(memory)
        if memory.device_bytes >= SAID:
            self.console.print(f"memory: {memory.sentence}", soft_wrap=True)


def measurement_memory(
    target: Paths | None,
    observable: str | CustomObservable,
    *,
    precision: str | None = None,
    backend: str = AUTOMATIC,
    devices: str | None = None,
    threads: int | None = None,
    split: bool = False,
    lattice: str | None = None,
    group: str | None = None,
    number: str | None = None,
    **options: Any,
) -> MemoryForecast:
    """Return the memory that `measure` takes on devices, without measuring.

    For the parameters and errors see `measure`.
    """
    _check_order(target, observable)
    places = _MeasuringDevices(backend, devices, threads, split)
    plan = _ObservablePlan(observable, options, precision, places, Console(quiet=True))
    return plan.memory(find_ensemble(paths_of(target), LinkKind(lattice, group), number))


def _measure_again(
    paths: Sequence[Path], numbers: Sequence[int], plan: _ObservablePlan, output: str | Path | None
) -> TableData:
    """Measure on configurations that a run has not kept, and do not keep them either."""
    run = _run_of(paths)
    chain = StoredChain.of(run)
    chain.refuse_later(numbers)
    nothing = ensemble_of(run, chain.parameters, {})
    wanted = plan.wanted(nothing)
    path = Path(output) if output else nothing.table_again(wanted.name)
    sources = sources_of(wanted, nothing.group)
    if plan.again and (kept := put_aside(path, wanted, sources)):
        plan.console.print(KEPT.format(kept), soft_wrap=True)
    done = _measured_in(path)
    others = len(measured_by_others(path, sources)) if done else 0
    for line in of_others(path, wanted.name, others, len(done)):
        plan.console.print(line, soft_wrap=True)
    left = [one for one in numbers if one not in done]
    silent = replace(plan, console=Console(quiet=True), logged=False, again=False)
    places, total = plan.places, chain.work(left)
    chosen = (places.devices, places.backend, places.threads)
    with (
        TemporaryDirectory() as folder,
        closing(open_device_group(*chosen, lattice=chain.parameters.lattice)) as group,
        updates_shown(plan.console, total) as advance,
    ):
        facts = {"devices": group.name, "configurations": len(left)}
        making = Regeneration(chain, group, advance)
        if left:
            making.compare_first()
        logs = _logs(run.path) if left else []
        with logged_session(logs, observable=wanted.name, table=path.name, **facts):
            for files in making.files(left, Path(folder), defaults.FORMAT, TOGETHER):
                silent.carry_out(ensemble_of(run, chain.parameters, files), path)
    return read_table(path)


def _logs(folder: Path) -> list[RunLog]:
    """Return the log of a run, or nothing for a folder that is none."""
    return [RunLog(folder)] if Run(folder).exists() else []


def default_table(
    paths: Sequence[Path],
    observable: str,
    again: bool = False,
    kind: LinkKind = STATED_KIND,
    number: str | None = None,
) -> Path:
    """Return the table that `measure` writes by default.

    Parameters
    ----------
    paths : sequence of Path
        A run, or configuration files; the newest run if there are none.
    observable : str
        Name of the observable.
    again : bool
        Whether configurations are made again for it.
    kind : LinkKind
        Extents and group, if configuration files themselves do not state them.
    number : str, optional
        See `measure`.
    """
    if not again:
        return find_ensemble(paths, kind, number).table(observable)
    run = _run_of(paths)
    return ensemble_of(run, run.read()[0], {}).table_again(observable)


def _run_of(paths: Sequence[Path]) -> Run:
    if len(paths) > 1:
        raise UsageError("The updates of --at are those of a single run; name one.")
    return Run(paths[0]) if paths else only_newest_run()


def _measured_in(path: Path) -> set[int]:
    return set(map(int, read_table(path).columns[SWEEP])) if path.exists() else set()


def _check_order(target: Target, observable: str | CustomObservable) -> None:
    """Refuse the name of an observable in place of the run."""
    names = [str(one) for one in (target, observable)]
    if names[0] in OBSERVABLES and names[1] not in OBSERVABLES and not Path(names[0]).exists():
        raise UsageError(
            f"There is no run {names[0]}, but an observable; the run comes first, as in "
            f"measure('{shortened(names[1])}', '{names[0]}')."
        )


def _check_copies(given: str | CustomObservable, lattice: OddLattice) -> None:
    """Refuse an observable that is not the same on periodic copies of a lattice."""
    kind = OBSERVABLES[given] if isinstance(given, str) else given
    if not getattr(kind, "on_copies", False):
        possible = [name for name, one in OBSERVABLES.items() if one.on_copies]
        raise UsageError(
            f"The lattice {lattice} has odd extents, so that its links are measured on periodic "
            f"copies, {lattice.copies}, on which averages over closed loops are the same, but "
            f"nothing that winds around the lattice or is summed over it; choose "
            f"{in_words(possible, 'or')}."
        )


def _observable(
    given: str | CustomObservable, lattice: Lattice, options: Mapping[str, Any]
) -> Observable:
    """Return a registered or user-defined observable for fields on a lattice."""
    if isinstance(given, str):
        return OBSERVABLES[given].for_lattice(lattice, **options)
    return observable_of(given, lattice, **options)


def _prepared(
    observable: Observable, ensemble: Ensemble, precision: str, pool: DevicePool
) -> Observable:
    """Return the observable after a look at the first configuration."""

    def job(device: Devices, numbers: Sequence[int]) -> Generator[Observable, None, None]:
        DeviceGroup.of(device).compute(ensemble.strictly(observable))
        for number in numbers:
            field, _ = ensemble.load(number, precision, device)
            yield observable.for_ensemble(ensemble.metadata, field)

    (prepared,) = pool.results(job, [min(ensemble.files)])
    return prepared


def _measure_field(field: Field, observable: Observable) -> TableData:
    records = observable.measurer(field)(field)
    if observable.records:
        check_records(observable, [records])
    columns = {
        column: np.array([record[i] for record in records])
        for i, column in enumerate(observable.columns.names)
    }
    return TableData(observable.header, columns)


def _is_single(pool: DevicePool) -> bool:
    return len(getattr(pool.devices[0], "devices", ())) == 1

"""Measurements on a field, on the configurations of a run, or on configuration files.

Also what is shown of them: progress, and reports on tables with averages and cautions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from gauge_mc import defaults
from gauge_mc.analysis.timeseries import caution_series, caution_short, caution_spacing, estimate
from gauge_mc.configurations.reading import STATED_KIND, LinkKind
from gauge_mc.console import Console
from gauge_mc.devices.choice import AUTOMATIC, Place, choose_devices
from gauge_mc.domain.device_group import DeviceGroup, open_device_group
from gauge_mc.domain.device_pool import DevicePool, Devices, device_pool
from gauge_mc.domain.lattice import Lattice, OddLattice
from gauge_mc.domain.slab import REALS
from gauge_mc.errors import GaugeError, StoppedError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.input import Paths, paths_of
from gauge_mc.files.table import TableData, read_table
from gauge_mc.observables import OBSERVABLES, Observable, check_records, observable_of_table
from gauge_mc.options import Owners
from gauge_mc.progress import Progress
from gauge_mc.quoting import counted, shortened
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.convert import warning_of
from gauge_mc.run.directory import Run, only_newest_run
from gauge_mc.run.log import RunLog, command_line, logged_session
from gauge_mc.run.measurement import CustomObservable, observable_of
from gauge_mc.run.needs import SAID, MemoryForecast, memory_of, refuse_shortage
from gauge_mc.run.results import Average
from gauge_mc.run.state import AT_FIRST, announced_compilation
from gauge_mc.signatures import checks_types, with_options
from gauge_mc.smearing import smear_option, smearing_owners
from gauge_mc.stored import measurement_table, regenerate, run_of, runs_of

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
    for observable in OBSERVABLES.values():
        yield from observable.owners()
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
    at: regenerate.Updates | None = None,
    every_config: int = 1,
    skip: int = 0,
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
        Table to write; by default in the run, else here, after the folder.
    precision : str, optional
        Precision of the links in memory; by default as in the files.
    backend, devices, threads
        See `gauge_mc.devices.choose_devices`; by default all GPUs are used.
    split : bool
        Let all devices share every configuration, instead of taking one each.
    at : str, int or iterable of int, optional
        After these updates, as in 1050,1100:2000:10; make what is not stored. It is made for the
        measurement and not kept; see `gauge_mc.regenerate`. By default all stored ones are taken.
    every_config, skip : int
        Take every N-th of the stored configurations whose number is larger than `skip`.
    again : bool
        Measure again what another version measured; keep the table. This is what is not known to
        be measured by the present version; the old table has a number behind its name.
    progress : bool
        Whether to show progress.
    lattice, group : str, optional
        Extents and group of links of which configuration files themselves say nothing; see
        `open_configuration`.
    number : str, optional
        Pattern of file names; its first group is the number. It is a regular expression; by
        default the number is the one in the header, or else the last one in the name.
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
        measurement_table.refuse_kind(kind, number, "A field")
        definition = OBSERVABLES[observable] if isinstance(observable, str) else observable
        quantity = observable_of(definition, target.lattice, **options)
        records = quantity.measurer(target)(target)
        if quantity.records:
            check_records(quantity, [records])
        names = enumerate(quantity.columns.names)
        columns = {name: np.array([record[i] for record in records]) for i, name in names}
        return TableData(quantity.header, columns)
    _check_order(target, observable)
    plan = MeasurementPlan(
        observable,
        options,
        precision=precision,
        place=Place(devices, backend, threads),
        split=split,
        kind=kind,
        number=number,
        at=at,
        every=every_config,
        skip=skip,
        again=again,
        console=Console(quiet=not progress),
    )
    return plan.measure(paths_of(target), Path(output) if output else None, {})[1]


@dataclass(frozen=True)
class MeasurementPlan:
    """The measurement of an observable. Its fields are parameters of `measure` if not described."""

    observable: str | CustomObservable
    options: Mapping[str, Any]
    _: KW_ONLY
    precision: str | None = None
    place: Place = field(default_factory=Place)
    """The devices that measure."""
    split: bool = False
    kind: LinkKind = STATED_KIND
    """Extents and group of links of which the files themselves say nothing."""
    number: str | None = None
    at: regenerate.Updates | None = None
    every: int = 1
    """Number N if every N-th configuration is taken."""
    skip: int = 0
    again: bool = False
    console: Console = field(default_factory=Console)
    """Where progress is shown."""
    logged: bool = True
    """Whether the log of the run says that it was measured."""

    def __post_init__(self) -> None:
        if self.precision not in (None, *REALS):
            words = in_words(REALS, "or")
            raise UsageError(f"There is no precision '{self.precision}'; choose {words}.")

    def observable_for(self, ensemble: measurement_table.Ensemble) -> Observable:
        """Return the observable for an ensemble."""
        lattice, kind = ensemble.lattice, self.observable
        kind = OBSERVABLES[kind] if isinstance(kind, str) else kind
        if isinstance(lattice, OddLattice) and not getattr(kind, "on_copies", False):
            possible = [name for name, x in OBSERVABLES.items() if x.on_copies]
            raise UsageError(
                f"The lattice {lattice} has odd extents, so that its links are measured on "
                f"periodic copies, {lattice.copies}, on which averages over closed loops are the "
                "same, but nothing that winds around the lattice or is summed over it; choose "
                f"{in_words(possible, 'or')}."
            )
        observable = observable_of(kind, lattice, **self.options)
        return observable.for_group(ensemble.group).for_ensemble(ensemble.metadata)

    def measure(
        self, paths: Sequence[Path], output: Path | None, tables: dict[Path, Sequence[Path]]
    ) -> tuple[Path, TableData]:
        """Measure on what paths stand for; return the table with its file, which is noted."""
        numbers = () if self.at is None else self._updates(self.at)
        chain = regenerate.StoredChain.of(_run_of(paths)) if numbers else None
        if chain:
            chain.refuse_later(numbers)
            ensemble = measurement_table.ensemble_of(chain.run, chain.parameters, {})
        else:
            ensemble = measurement_table.find_ensemble(paths, self.kind, self.number)
        path = output or ensemble.table(self.observable_for(ensemble).name, again=chain is not None)
        if (first := tables.setdefault(path, paths)) != paths:
            raise UsageError(
                f"{first[0]} and {paths[0]} would both have the table {path}; measure on the "
                "second alone, with --output."
            )
        if chain:
            self._measure_again(ensemble, chain, numbers, path)
        else:
            self.carry_out(ensemble.chosen(self.every, self.skip), path)
        return path, read_table(path)

    def _updates(self, at: regenerate.Updates) -> tuple[int, ...]:
        """Return the updates after which is measured, which choose no stored configurations."""
        measurement_table.refuse_kind(self.kind, self.number, "A run")
        if (self.every, self.skip) != (1, 0):
            raise UsageError(
                "--every and --skip choose stored configurations, and --at updates; leave out one."
            )
        return regenerate.update_numbers(at)

    def _measure_again(
        self,
        ensemble: measurement_table.Ensemble,
        chain: regenerate.StoredChain,
        numbers: Sequence[int],
        path: Path,
    ) -> None:
        """Measure after some updates; configurations that are not stored are made and not kept."""
        run, observable = chain.run, self.observable_for(ensemble)
        if self.again and (backup := measurement_table.put_aside(path, observable)):
            self.console.print(KEPT.format(backup), soft_wrap=True)
        measured = {*map(int, read_table(path).columns[SWEEP])} if path.exists() else set()
        foreign = len(measurement_table.measured_by_others(path, observable)) if measured else 0
        for line in of_others(path, observable.name, foreign, len(measured)):
            self.console.print(line, soft_wrap=True)
        remaining = [number for number in numbers if number not in measured]
        stored = {x: chain.files[x] for x in remaining if x in chain.files}
        for update in stored:
            chain.check(update)
        lacking = [x for x in remaining if x not in stored]
        if stored:
            count = counted(len(stored), "stored configuration")
            self.console.print(f"{count} read, {len(lacking)} to be made", soft_wrap=True)
        silent = replace(self, console=Console(quiet=True), logged=False, again=False)
        with (
            TemporaryDirectory() as folder,
            closing(open_device_group(*self.place, lattice=ensemble.lattice)) as group,
            regenerate.updates_shown(self.console, chain.work(lacking)) as advance,
        ):
            facts = {"devices": group.name, "configurations": len(remaining)}
            making = regenerate.Regeneration(chain, group, advance)
            if lacking:
                making.compare_first()
            logs = _logs(run.path) if remaining else []
            with logged_session(logs, observable=observable.name, table=path.name, **facts):
                for files in making.files(
                    remaining, Path(folder), defaults.FORMAT, TOGETHER, stored
                ):
                    silent.carry_out(replace(ensemble, files=files), path)

    def openers(self, lattice: Lattice) -> list[Callable[[], Devices]]:
        """Return functions that open the devices: one for each, or one for all to split."""
        options: dict[str, Any] = {"all_by_default": True}
        if self.split:
            return [partial(open_device_group, *self.place, lattice=lattice, **options)]
        return [device.open for device in choose_devices(*self.place, **options)]

    def carry_out(self, ensemble: measurement_table.Ensemble, path: Path) -> None:
        """Measure on the configurations that the table lacks."""
        observable, console = self.observable_for(ensemble), self.console
        width = self.precision or ensemble.precision
        openers = self.openers(ensemble.measured_lattice)[: len(ensemble.files)]
        with device_pool(openers) as pool, announced_compilation(console):
            if not observable.records:
                observable = _prepared(observable, ensemble, width, pool)
            with measurement_table.measuring(ensemble, observable, path, width, self.again) as work:
                lines = opening(work, pool.name, self.place.hint())
                console.print(*lines, sep="\n", soft_wrap=True)
                if work.left and observable.takes_memory:
                    memory = self._memory_on(pool, observable, ensemble)
                    refuse_shortage(memory)
                    if memory.device_bytes >= SAID:
                        console.print(f"memory: {memory.sentence}", soft_wrap=True)
                single = len(openers) == 1 and len(getattr(pool.devices[0], "devices", ())) == 1
                if self.split and single:
                    console.print(ONE_DEVICE, soft_wrap=True)
                numbers = work.carry_out(pool, width)
                logs = _logs(ensemble.folder) if self.logged and work.left else []
                facts = {"devices": pool.name, "configurations": len(work.left)}
                with logged_session(logs, observable=observable.name, table=path.name, **facts):
                    for log in logs:
                        log.caution(*warnings_of(work))
                    total, first = len(work.left), len(pool.devices)
                    shown = Progress(console, total, "configurations", AT_FIRST, first=first)
                    with shown:
                        for n, number in enumerate(numbers, 1):
                            name = f"configuration {number}"
                            shown.update(n, f"{name}, {n} of {total}", name)

    def memory(self, paths: Sequence[Path]) -> MemoryForecast:
        """Return the memory that measuring takes on the devices, without doing it."""
        ensemble = measurement_table.find_ensemble(paths, self.kind, self.number)
        observable, openers = self.observable_for(ensemble), self.openers(ensemble.lattice)
        if not observable.takes_memory:
            raise UsageError(
                f"The memory of {observable.name} is not forecast, because it is about that of the "
                "links; leave out --dry-run, which is for quarks."
            )
        if observable.rehearsed is None:
            raise UsageError(
                f"The memory of {observable.name} with these quarks is not forecast, because "
                "it depends on how many eigenvectors are found; leave out --dry-run."
            )
        with device_pool(openers[: len(ensemble.files)]) as pool:
            return self._memory_on(pool, observable, ensemble)

    def _memory_on(
        self, pool: DevicePool, observable: Observable, ensemble: measurement_table.Ensemble
    ) -> MemoryForecast:
        width = self.precision or ensemble.precision
        return memory_of(observable, ensemble.lattice, ensemble.group, width, pool)


def _logs(folder: Path) -> list[RunLog]:
    """Return the log of a run; nothing for a folder that is not a run."""
    return [RunLog(folder)] if Run(folder).exists() else []


def _run_of(paths: Sequence[Path]) -> Run:
    if len(paths) > 1:
        raise UsageError("The updates of --at are those of a single run; name one.")
    return Run(run_of(paths[0])) if paths else only_newest_run()


def _check_order(target: Target, observable: str | CustomObservable) -> None:
    """Refuse the name of an observable in place of the run."""
    names = [str(x) for x in (target, observable)]
    if names[0] in OBSERVABLES and names[1] not in OBSERVABLES and not Path(names[0]).exists():
        raise UsageError(
            f"{names[0]} is an observable and not a run; the run comes first, as in "
            f"measure('{shortened(names[1])}', '{names[0]}')."
        )


def _prepared(
    observable: Observable, ensemble: measurement_table.Ensemble, precision: str, pool: DevicePool
) -> Observable:
    """Return the observable after a look at the first configuration."""

    def job(device: Devices, numbers: Sequence[int]) -> Generator[Observable, None, None]:
        DeviceGroup.of(device).compute(ensemble.strictly(observable))
        for number in numbers:
            field, _ = ensemble.load(number, precision, device)
            yield observable.for_ensemble(ensemble.metadata, field)

    (prepared,) = pool.results(job, [min(ensemble.files)])
    return prepared


def ensembles_of(paths: Sequence[Path], output: Path | None = None) -> list[list[Path]]:
    """Return the paths of each ensemble: every run alone, and all files together."""
    files = [path for path in paths if not path.is_dir()]
    folders = runs_of([path for path in paths if path.is_dir()])
    ensembles = [*([folder] for folder in folders), *([files] if files else [])]
    if output and len(ensembles) > 1:
        raise UsageError(
            f"--output names one table, but {len(ensembles)} ensembles are measured; leave it out, "
            "so that each has its own."
        )
    if output:
        measurement_table.refuse_place(output)
    return ensembles


def measure_all(
    plan: MeasurementPlan, paths: Sequence[Path], output: Path | None
) -> Iterator[tuple[Path, Path | None, TableData | GaugeError]]:
    """Measure on several ensembles, and yield file, run (or None), and table (or error) of each."""
    ensembles, tables = ensembles_of(paths, output), dict[Path, Sequence[Path]]()
    for ensemble in ensembles:
        run = ensemble[0] if ensemble[0].is_dir() else None
        try:
            path, table = plan.measure(ensemble, output, tables)
            yield path, run, table
        except StoppedError:
            raise
        except GaugeError as error:
            if len(ensembles) == 1:
                raise
            yield ensemble[0], run, error


@documented
@dataclass(frozen=True)
class TableReport:
    """A table with averages over its columns, for JSON."""

    file: str = result_field("File that was written or read.")
    records: int = result_field("Number of records in the table.")
    header: Mapping[str, str] = result_field("Header of the table.")
    averages: Mapping[str, Average] = result_field(
        "Averages by column; none if there are several records per configuration."
    )
    cautions: Sequence[str] = result_field(
        "Cautions about the averages and the number of configurations, one sentence each."
    )
    records_of_others: int = result_field("Number of records that other versions have measured.", 0)

    @classmethod
    def of(cls, path: Path, table: TableData, further: Sequence[str] = ()) -> TableReport:
        """Return the report on a table that `measure` has written, with further cautions."""
        averages = _averages(table)
        cautions = [*_cautions(table, averages), *further]
        rows = measurement_table.rows_of_others(path, table)
        return cls(str(path), len(table), table.header, averages, cautions, rows)


@documented
@dataclass(frozen=True)
class TableReports:
    """The tables of several ensembles, for JSON."""

    tables: Sequence[TableReport] = result_field("Tables that were written, one for each ensemble.")
    failures: Sequence[str] = result_field("Why the others could not be measured.")


def _averages(table: TableData) -> dict[str, Average]:
    """Return the averages of the columns of a table that has one row per configuration."""
    observable = observable_of_table(table)
    if observable is None or not observable.columns.averaged:
        return {}
    steps = set(np.diff(table[SWEEP]).tolist())
    updates = steps.pop() if len(steps) == 1 else None
    columns = {name: column for name, column in table.columns.items() if name != SWEEP}
    return {name: Average.of(estimate(column), updates) for name, column in columns.items()}


def _cautions(table: TableData, averages: Mapping[str, Average]) -> list[str]:
    """Return cautions about averages: the chain is short, or has not thermalised."""
    if not averages:
        return []
    slowest = max(a.tau_int + a.tau_int_error for a in averages.values())
    series = [table[name] for name in averages]
    short = caution_short(len(table), slowest)
    return caution_spacing(table[SWEEP]) + short + caution_series(table[SWEEP], *series)


WARNINGS = 3
"""Maximum number of configurations with warnings that are named."""


KEPT = "The previous table is kept as {}."
"""Line shown if all configurations are measured again."""


def opening(work: measurement_table.MeasurementTask, devices: str, advice: str | None) -> list[str]:
    """Return the lines shown at the beginning: configurations, devices, options, and a hint."""
    ensemble, header, total = work.ensemble, work.observable.header, len(work.done) + len(work.left)
    fields = ensemble.measured_lattice
    copies = f" (periodic copies, {fields})" if fields != ensemble.lattice else ""
    rows = f", {work.observable.records} rows each" if work.observable.records > 1 else ""
    first = (
        f"{work.observable.name} on {total} configuration{'s' * (total != 1)}{rows}, "
        f"{ensemble.group} on {ensemble.lattice}{copies}, {len(work.done)} already measured, on "
        f"{devices}"
    )
    omitted = {"observable", "normalisation", "units"}
    again = len({*work.unknown} & ensemble.files.keys())
    trusted = (
        f"{again} of them by an earlier version, which did not record their links: they are taken "
        "to be those of these files"
    )
    details = "; ".join(f"{key}: {value}" for key, value in header.items() if key not in omitted)
    measured = measurement_table.measured_by_others(work.table.path, work.observable)
    repeated = of_others(work.table.path, work.observable.name, len(measured), len(work.done))
    backup = KEPT.format(work.kept) if work.kept else ""
    over = ensemble.passed_over
    more = (details, over, trusted if again else "", *repeated, backup, advice or "")
    return [first, *filter(None, more), *shortest(warnings_of(work))]


def of_others(path: Path, observable: str, foreign: int, total: int) -> list[str]:
    """Return a sentence about what another version has measured, if they have measured anything."""
    command = command_line()
    advice = f"{command} --again" if command.startswith("gauge-mc ") else "measure(..., again=True)"
    sentence = (
        f"Another version has measured {observable} on {foreign} of "
        f"{counted(total, 'configuration')} in the table {path}; this measures them again and "
        f"keeps the table beside the new one: {advice}"
    )
    return [sentence] * bool(foreign)


def warnings_of(work: measurement_table.MeasurementTask) -> list[str]:
    """Return the warnings in the headers of the configurations to be measured."""
    remaining, ensemble = {*work.left}, work.ensemble
    files = [path for number, path in ensemble.files.items() if number in remaining]
    warnings = ((path, warning_of(path, *ensemble.kind)) for path in files)
    return list(dict.fromkeys(f"{path}: {warning}" for path, warning in warnings if warning))


def shortest(warnings: Sequence[str]) -> list[str]:
    """Return the first warnings, and how many there are more."""
    more = len(warnings) - WARNINGS
    return [*warnings[:WARNINGS], *([f"and {more} more such files"] if more > 0 else [])]

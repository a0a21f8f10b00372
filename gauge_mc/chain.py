"""A Markov chain of gauge fields: start, update, measure, write, checkpoint, resume.

`Chain` is the chain in memory. `generate` carries out a run on disk, such that a run that was
stopped at any instant and resumed writes the same configurations and tables, bit for bit, as
one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from gauge_mc import __version__, checkpoint
from gauge_mc.devices import Device
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.field import Field
from gauge_mc.formats import open_configuration, write_configuration
from gauge_mc.formats.table import Table
from gauge_mc.observables.records import AVERAGES, Measurer, observable_of
from gauge_mc.parameters import STARTS, Measurement, Parameters
from gauge_mc.random import Random
from gauge_mc.ring import Ring
from gauge_mc.run import Hold, Run
from gauge_mc.updates import heatbath, overrelax

Stop = Callable[[float], str | None]
"""Told how many seconds it takes to stop in order; answers why to stop now, or None."""

Report = Callable[["Chain"], None]
"""Called after every composite sweep, to show how far the chain is."""


class Chain:
    """A Markov chain of gauge fields in memory.

    Parameters
    ----------
    parameters : Parameters
        Which chain.
    field : Field
        The links.
    random : Random
        The random number generator.
    sweep : int
        Composite sweeps done.
    """

    def __init__(
        self, parameters: Parameters, field: Field, random: Random, sweep: int = 0
    ) -> None:
        self.parameters = parameters
        self.field = field
        self.random = random
        self.sweep = sweep

    @classmethod
    def begin(cls, parameters: Parameters, device: Device | Ring) -> Chain:
        """Begin a chain with its cold, hot or file start.

        Raises
        ------
        UsageError
            If the start file holds another group or lattice.
        GaugeError
            If the start file cannot be read or is damaged, or there is not enough memory.
        """
        p = parameters
        if p.start == "hot":
            field = Field.hot(p.lattice, p.group, p.precision, device, p.seed)
        elif p.start == "cold":
            field = Field.cold(p.lattice, p.group, p.precision, device)
        else:
            check_start(p)
            slices = open_configuration(p.start).slices()
            field = Field.load(p.lattice, p.group, slices, p.precision, device)
        return cls(p, field, Random.for_field(field, p.rng, p.seed, p.luxury))

    @classmethod
    def resume(cls, parameters: Parameters, device: Device | Ring, path: Path) -> Chain:
        """Continue the chain that a checkpoint holds.

        Raises
        ------
        GaugeError
            If the checkpoint cannot be read, is damaged, or belongs to another chain.
        """
        p, ring = parameters, Ring.of(device)
        moment, arrays = checkpoint.load(path) if ring.root else (None, iter(()))
        moment = ring.processes.share(moment)
        assert moment is not None
        field = Field.empty(p.lattice, p.group, p.precision, ring)
        random = Random.for_field(field, p.rng, p.seed, p.luxury)
        chain = cls(p, field, random, moment.sweep)
        chain.random.step = moment.step
        if moment != chain._moment():
            raise GaugeError(f"The checkpoint {path} belongs to a run with other parameters.")
        field.restore(arrays)
        chain.random.restore(arrays)
        return chain

    def update(self) -> None:
        """Do one composite sweep: heatbath, then overrelaxation."""
        p = self.parameters
        heatbath(self.field, p.beta, self.random, p.heatbath)
        overrelax(self.field, p.overrelax)
        self.sweep += 1

    def save(self, path: Path) -> None:
        """Write a checkpoint, from which `resume` goes on as if nothing had happened.

        Raises
        ------
        GaugeError
            If it cannot be written; a checkpoint that is there already stays then.
        """
        if self.root:
            checkpoint.save(path, self._moment(), self._arrays())
        else:
            list(self._arrays())

    def write(self, path: Path) -> None:
        """Write the links as a configuration file, whole or not at all.

        Raises
        ------
        GaugeError
            If it cannot be written.
        """
        if not self.root:
            list(self.field.stored())
            return
        p = self.parameters
        write_configuration(
            path,
            self.field.slices(),
            p.lattice,
            p.group,
            p.precision,
            format=p.format,
            provenance=provenance(p) | {"ensemble_id": p.name, "sequence_number": str(self.sweep)},
        )

    @property
    def root(self) -> bool:
        """Whether this process reads and writes the files."""
        return self.field.ring.root

    def _moment(self) -> checkpoint.Moment:
        return checkpoint.Moment(self.sweep, self.random.step, self.parameters.settled())

    def _arrays(self) -> Iterator[np.ndarray]:
        yield from self.field.stored()
        yield from self.random.stored()


def check_start(parameters: Parameters) -> None:
    """Compare a start file's header with the parameters.

    Raises
    ------
    UsageError
        If there is no such file, or it holds another group or lattice.
    GaugeError
        If the file cannot be read or is damaged.
    """
    p = parameters
    if p.start in STARTS:
        return
    if not Path(p.start).exists():
        raise UsageError(f"There is no start file {p.start}; --start takes cold, hot or a file.")
    header = open_configuration(p.start).header
    if (header.group, header.lattice) != (p.group, p.lattice):
        raise UsageError(
            f"The start file {p.start} holds {header.group} on {header.lattice}, "
            f"but the run is for {p.group} on {p.lattice}."
        )


def provenance(parameters: Parameters) -> dict[str, str]:
    """Return what identifies a chain, for the files that come from it.

    The same for every run of the chain: no date, no machine, no number of configurations.
    """
    p = parameters
    start = p.start if p.start in STARTS else Path(p.start).name
    values = p.values() | {"start": start, "version": f"gauge-mc {__version__}"}
    left_out = ("configs", "thermalize", "separation", "measure", "format")
    return {name: str(value) for name, value in values.items() if name not in left_out}


def table_header(name: str, parameters: Parameters) -> dict[str, str]:
    """Return the header of an observable's table."""
    return {**observable_of(name, parameters.lattice).header, **provenance(parameters)}


def generate(
    run: Run,
    hold: Hold | None,
    parameters: Parameters,
    device: Device | Ring,
    checkpoint_every: float,
    stop: Stop,
    report: Report,
) -> tuple[Chain, str | None]:
    """Carry out a run, or what is left of it.

    Several processes do so together; the root tells when something is due.

    Parameters
    ----------
    run, hold : Run, Hold
        The directory, held by this process if it is the root.
    parameters : Parameters
        As in its run.toml.
    device : Device or Ring
        What to compute on.
    checkpoint_every : float
        Seconds.
    stop, report : Stop, Report
        See there.

    Returns
    -------
    Chain
        The chain at its end.
    str or None
        Why it stopped before the end of the run, or None.

    Raises
    ------
    GaugeError
        If the run's files are damaged or cannot be written. The last checkpoint is whole.
    """
    ring = Ring.of(device)
    with ExitStack() as files:
        chain, save_time = _stand_ready(run, parameters, ring)
        tables = {}
        if ring.root:
            tables = {
                item: files.enter_context(_open_table(run, chain, item))
                for item in parameters.measure
            }
            for sweep, path in run.configs().items():
                if sweep > chain.sweep:
                    path.unlink()
        measurers = {
            item: observable_of(item.observable, parameters.lattice).measurer(chain.field)
            for item in parameters.measure
        }
        # Compiled now: the time that takes must not count in the rates of the session, which shows
        # averages as it goes, measured or not.
        measured = {item.observable for item in measurers}
        shown = (one.measure for name, one in AVERAGES.items() if name not in measured)
        for measure in (*measurers.values(), *shown):
            measure(chain.field)
        session = _Session(run, chain, tables, measurers, save_time)
        reason = None
        while chain.sweep < parameters.sweeps:
            reason = _first(ring.processes.gather(stop(session.seconds_to_stop)))
            if reason:
                break
            session.advance()
            report(chain)
            if hold:
                session.tell(hold)
            if ring.processes.share(session.since_save >= checkpoint_every):
                session.save()
        session.save()
    return chain, reason


def _first(reasons: list[str | None]) -> str | None:
    """Return the first reason of several processes to stop, if any has one."""
    return next((reason for reason in reasons if reason), None)


class _Session:
    """A chain at work on a run: what it writes, and how long that takes.

    `save_time` is a first guess of how many seconds a checkpoint takes.
    """

    def __init__(
        self,
        run: Run,
        chain: Chain,
        tables: dict[Measurement, Table],
        measurers: dict[Measurement, Measurer],
        save_time: float,
    ) -> None:
        self.run = run
        self.chain = chain
        self.tables = tables
        self._measurers = measurers
        self._saved_sweep, self._saved_at = chain.sweep, time.monotonic()
        self._first_sweep, self._first_at = chain.sweep + 1, math.inf
        self._told_at = -math.inf
        self._update_time = self._write_time = 0.0
        self._save_time = save_time

    @property
    def seconds_to_stop(self) -> float:
        """A cautious guess of how long one more sweep and a checkpoint take."""
        return 2 * self._update_time + 2 * max(self._write_time, self._save_time) + 1.0

    @property
    def since_save(self) -> float:
        """Seconds since the last checkpoint."""
        return time.monotonic() - self._saved_at

    def advance(self) -> None:
        """Do one composite sweep and write what is due after it."""
        began = time.monotonic()
        self.chain.update()
        done = self.chain.sweep - self.chain.parameters.thermalize
        for item, measure in self._measurers.items():
            if _due(done, item.every):
                records = measure(self.chain.field)
                if self.chain.root:
                    rows = [(self.chain.sweep, *record) for record in records]
                    self.tables[item].append(rows)
        ended = time.monotonic()
        # A compilation in the first sweep must not count for ever.
        self._update_time = max(ended - began, 0.9 * self._update_time)
        self._first_at = min(self._first_at, ended)
        p = self.chain.parameters
        if p.keeps_configs and _due(done, p.separation):
            self._write()

    def _write(self) -> None:
        began = time.monotonic()
        self._sync()
        self.chain.write(self.run.config(self.chain.sweep, self.chain.parameters.format))
        self._write_time = max(self._write_time, time.monotonic() - began)

    def save(self) -> None:
        """Write a checkpoint, if there is anything new."""
        if self.chain.sweep == self._saved_sweep:
            return
        began = time.monotonic()
        self._sync()
        self.chain.save(self.run.checkpoint)
        self._saved_sweep, self._saved_at = self.chain.sweep, time.monotonic()
        self._save_time = max(self._save_time, self._saved_at - began)

    def tell(self, hold: Hold) -> None:
        """Note for other processes, once a second, how far the chain is."""
        now = time.monotonic()
        if now - self._told_at >= 1.0:
            self._told_at = now
            elapsed = now - self._first_at
            rate = (self.chain.sweep - self._first_sweep) / elapsed if elapsed > 0 else 0.0
            hold.say(replace(hold.holder, sweep=self.chain.sweep, rate=rate))

    def _sync(self) -> None:
        for table in self.tables.values():
            table.sync()


def _due(done: int, every: int) -> bool:
    """Tell whether something is due `done` sweeps after thermalisation."""
    return done > 0 and done % every == 0


def _stand_ready(run: Run, parameters: Parameters, ring: Ring) -> tuple[Chain, float]:
    """Resume a run's chain, or begin it and write a first checkpoint; tell how long that took.

    The first checkpoint comes before anything else is written. So whatever lies beyond a
    checkpoint is work that will be done again, and files without a checkpoint are a mistake.
    """
    began = time.monotonic()
    if ring.processes.share(run.checkpoint.exists()):
        return Chain.resume(parameters, ring, run.checkpoint), time.monotonic() - began
    tables = [run.table(item.observable) for item in parameters.measure]
    if ring.root and (run.configs() or any(table.exists() for table in tables)):
        how = "from its last configuration, with --start and" if run.configs() else "with another"
        raise GaugeError(
            f"The run {run.path} has lost its checkpoint; start a new one {how} --output."
        )
    chain = Chain.begin(parameters, ring)
    began = time.monotonic()
    chain.save(run.checkpoint)
    return chain, time.monotonic() - began


def _open_table(run: Run, chain: Chain, item: Measurement) -> Table:
    """Open an observable's table, with just the rows up to where the chain stands."""
    observable = observable_of(item.observable, chain.parameters.lattice)
    header = table_header(item.observable, chain.parameters)
    table = Table(run.table(item.observable), header, ("sweep", *observable.columns))
    try:
        measured = max(0, chain.sweep - chain.parameters.thermalize) // item.every
        table.truncate(after=chain.sweep, expected=measured * observable.records)
    except BaseException:
        table.close()
        raise
    return table

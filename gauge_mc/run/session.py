"""Sessions: the work of one process, or of several processes together, on a run or on a batch.

A run that was stopped at any point and resumed writes bit-for-bit the same configurations and
tables as an uninterrupted run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict

from gauge_mc.configurations.background import IN_FLIGHT, BackgroundWriter, prepare_writing
from gauge_mc.errors import ChainError, GaugeError, UsageError
from gauge_mc.run.batch import Batch
from gauge_mc.run.chain import Chain
from gauge_mc.run.checkpoint import ChainState
from gauge_mc.run.common_checkpoint import replaced_together
from gauge_mc.run.disk import DiskGuard
from gauge_mc.run.preparation import compile_kernels
from gauge_mc.run.run_output import RunOutput, is_due, refuse_leftovers
from gauge_mc.run.sampling import PENDING, Sampler
from gauge_mc.run.session_plan import SessionPlan

SAFETY = 2.0
"""Ratio of the time allowed for the next update or checkpoint to the longest time so far."""

MARGIN = 1.0
"""Additional time in seconds that is allowed for stopping."""

FORGETTING = 0.9
"""Factor by which the longest update time decays in every update.

The first update, which may include compilation, is thus forgotten after a while."""

FULL_DISK = "a full disk"
"""Reason for a session to stop."""

RECORD_SECONDS = 1.0
"""Time in seconds between two records of the progress in the lock file."""

LIVE_SHARE = 0.01
"""Largest share of the time in which observables are measured for these records alone."""


def carry_out(work: SessionPlan) -> tuple[tuple[Chain, ...], str | None]:
    """Carry out the remaining part of a run, or of all runs of a batch.

    In an MPI job all processes call this function; the root decides when to write checkpoints.

    Returns
    -------
    tuple of Chain
        Chains at the end of the session, one per run.
    str or None
        Reason why the session stopped before the end of the run; None if the run is complete.

    Raises
    ------
    GaugeError
        If files of a run are damaged or cannot be written, or a disk is full. A checkpoint of what
        was done is written if possible, otherwise the last one remains valid.
    Exception
        If a user's function raises an exception. A checkpoint is written before.
    """
    with ExitStack() as files:
        with work.times.of("start"):
            session = Session(work, files)
        try:
            reason = session.run()
            session.finish()
        except GaugeError:
            session.rescue()
            raise
    if session.full_disk:
        raise GaugeError(session.full_disk)
    return session.batch.chains, reason


class Session:
    """The state of a session: the chains, their open files, and the times of the last steps.

    Parameters
    ----------
    work : SessionPlan
        Runs, observables, devices and limits.
    files : ExitStack
        Context that closes the tables.

    Attributes
    ----------
    full_disk : str or None
        Why the session stopped because there was too little space on a disk, in a sentence.
    """

    def __init__(self, work: SessionPlan, files: ExitStack) -> None:
        self._work = work
        self.full_disk: str | None = None
        self._stopped_by_user = False
        self._update_time = self._last_write = 0.0
        self._writer = BackgroundWriter()
        self._recorded_at = self._looked_at = self._live_from = -math.inf
        self._set_up_chains()
        chains = zip(work.tasks, self.batch.chains, strict=True)
        self._outputs = [RunOutput(task, chain) for task, chain in chains]
        self._first_sweep, self._first_at = self.batch.sweep + 1, math.inf
        self._sampler = Sampler(work, self.batch, self._outputs)
        self._prepare_others()
        if not self._resuming:
            self._save_first()
        self._saved, self._saved_at = (self.batch.sweep, self._measured), time.monotonic()
        runs = [task.run for task in work.tasks]
        self._guard = DiskGuard.of(runs, work.parameters, self._sampler.observables, PENDING)
        if work.devices.root:
            written = self.batch.sweep if self._measured else self.batch.sweep - 1
            for output in self._outputs:
                output.open_tables(files, self._sampler.observables, written)
        files.enter_context(self._writer)  # which is closed before the tables

    def run(self) -> str | None:
        """Update, measure and write until the run is complete or there is a reason to stop.

        Returns
        -------
        str or None
            Reason why the session stopped before the end of the run; None if the run is complete.
        """
        batch, parameters = self.batch, self._work.parameters
        processes = self._work.devices.processes
        if not self._measured:
            self._sample()
        while batch.sweep < parameters.updates:
            reasons = processes.allgather(self._reason())
            if reason := next((one for one in reasons if one), None):
                return reason
            self._advance()
            due = processes.broadcast(self._since_save >= self._work.checkpoint_every)
            if due and batch.sweep < parameters.updates:
                self.save()
        return None

    def _reason(self) -> str | None:
        """Return the reason why this process should stop now, or None."""
        if self._work.devices.root and self._disk_is_full():
            return FULL_DISK
        return "on_update" if self._stopped_by_user else self._work.stop(self._seconds_to_stop)

    def _disk_is_full(self) -> bool:
        """Return whether there is too little space for what is written next.

        Asking may take long on a network file system, so that it is not done after every update.
        """
        p, now = self._work.parameters, time.monotonic()
        due = p.keeps_configs and is_due(self.batch.sweep + 1 - p.thermalize, p.separation)
        if due or now - self._looked_at >= RECORD_SECONDS:
            self._looked_at = now
            self.full_disk = self._guard.shortage(self._writer.unwritten, due)
        return self.full_disk is not None

    @property
    def _seconds_to_stop(self) -> float:
        """Upper estimate of the time in seconds for one more update and a checkpoint."""
        writing = IN_FLIGHT * self._writer.seconds + self._save_time
        return SAFETY * (self._update_time + writing) + MARGIN

    @property
    def _since_save(self) -> float:
        """Time in seconds since the last checkpoint."""
        return time.monotonic() - self._saved_at

    def _set_up_chains(self) -> None:
        """Resume the chains, or begin them."""
        work, began = self._work, time.monotonic()
        count = len(work.tasks)
        resumed = work.devices.processes.broadcast(work.tasks[0].run.checkpoint.exists())
        self._resuming = resumed
        compile_kernels(
            work.parameters, work.observables.values(), work.devices, resumed, count > 1
        )
        if resumed:
            states: list[ChainState] = []
            self.batch = Batch(self._resumed(states), count)
            self._measured = states[0].measured
            self._save_time = time.monotonic() - began
            return
        if work.devices.root:
            refuse_leftovers(work.tasks)
        begun = (Chain.begin(task.parameters, work.devices) for task in work.tasks)
        self.batch, self._measured = Batch(begun, count), True

    def _save_first(self) -> None:
        """Write first checkpoints, when the observables have shown that they can be measured.

        They are written before anything else. Results without a checkpoint are therefore an error,
        and results later than the checkpoint can be computed again.
        """
        began = time.monotonic()
        for output in self._outputs:
            output.save(measured=True)
        self._save_time = time.monotonic() - began
        for output in self._outputs:
            output.log_checkpoint(self._save_time)

    def _resumed(self, states: list[ChainState]) -> Iterator[Chain]:
        """Yield the chains from their checkpoints, whose states are added to `states`."""
        for task in self._work.tasks:
            path = task.run.checkpoint
            chain, state = Chain.resume(task.parameters, self._work.devices, path)
            states.append(state)
            if (state.sweep, state.measured) != (states[0].sweep, states[0].measured):
                raise GaugeError(
                    f"The checkpoint {path} is not after the same update as those of the other "
                    "runs; continue the runs one by one."
                )
            yield chain

    def _prepare_others(self) -> None:
        """Load the kernels that write configurations, and those of the progress display.

        Their compilation is not to enter the rates of the session either.
        """
        p, field = self._work.parameters, self.batch.field
        if p.keeps_configs:
            prepare_writing(field.replicas[0], p.format)
        self.batch.chains[0].live()

    def _advance(self) -> None:
        """Do one update, and measure and write what is due after it."""
        began, times = time.monotonic(), self._work.times
        try:
            self.batch.update()
        except ChainError:  # before anything has changed
            self.finish()
            raise
        times.update += time.monotonic() - began
        self._sampler.add_some()
        self._measured = False
        self._sample()
        ended = time.monotonic()
        self._update_time = max(ended - began - self._last_write, FORGETTING * self._update_time)
        self._first_at = min(self._first_at, ended)
        with self._saving_on_failure():
            self._work.report(self.batch.chains[0])
        if self._work.on_update:
            with self._saving_on_failure():
                self._stopped_by_user = bool(self._work.on_update(self.batch.chains[0]))
        if time.monotonic() - self._recorded_at >= RECORD_SECONDS:
            if self._work.devices.processes.size == 1:  # the others do not know the time
                self._sampler.fetch()
            self._record_progress()

    def _sample(self) -> None:
        """Measure and write what is due after the last update."""
        p, batch = self._work.parameters, self.batch
        done, began = batch.sweep - p.thermalize, time.monotonic()
        with self._saving_on_failure():
            self._sampler.begin(done)
        self._work.times.measure += time.monotonic() - began
        if self._sampler.full:
            self._sampler.fetch()
        began = time.monotonic()
        if p.keeps_configs and is_due(done, p.separation):
            self._sampler.collect()
            with self._writing():
                for output in self._outputs:
                    output.write_configuration(self._writer)
        self._writer.check()
        self._last_write = time.monotonic() - began
        self._measured = True

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Divide the time of a context into writing, and waiting for the disk."""
        times, waited = self._work.times, self._writer.waited
        with times.of("write"):
            yield
        times.write -= self._writer.waited - waited
        times.wait += self._writer.waited - waited

    def save(self) -> None:
        """Write checkpoints, unless the last ones are up to date."""
        if (self.batch.sweep, self._measured) == self._saved:
            return
        began = time.monotonic()
        self._sampler.collect()
        with self._writing():
            self._writer.flush()
            with self._keeping_last_checkpoints():
                for output in self._outputs:
                    output.save(self._measured)
        self._saved, self._saved_at = (self.batch.sweep, self._measured), time.monotonic()
        self._save_time = max(self._save_time, self._saved_at - began)
        for output in self._outputs:
            output.log_checkpoint(self._saved_at - began)

    def _keeping_last_checkpoints(self) -> AbstractContextManager[None]:
        """Return a context in which a kill leaves checkpoints after the same update."""
        if not self._work.parameters.tempering:
            return nullcontext()
        return replaced_together([task.run.checkpoint for task in self._work.tasks])

    def finish(self) -> None:
        """Seal the tables, then write checkpoints, and record the progress.

        In this order the tables of every run whose checkpoint is complete are sealed.
        """
        self._sampler.collect()
        with self._writing():
            self._writer.flush()
        for output in self._outputs:
            output.seal()
        self.save()
        self._record_progress()

    def rescue(self) -> None:
        """Try again to write the configurations that could not be written, and then a checkpoint.

        This may succeed if the disk was full only for a moment.
        """
        if self._writer.failed and self._work.devices.processes.size == 1:
            with suppress(GaugeError):
                self._writer.rewrite()
                self.finish()

    @contextmanager
    def _saving_on_failure(self) -> Iterator[None]:
        """Write a checkpoint if a user's function fails, so that no work is lost.

        This is possible only for a single process, because writing a checkpoint needs all processes
        and the others may not have failed.
        """
        try:
            yield
        except Exception as error:
            alone = self._work.devices.processes.size == 1
            its_own = isinstance(error, UsageError) or not isinstance(error, GaugeError)
            if alone and its_own:
                self.finish()
            raise

    def _record_progress(self) -> None:
        """Read the energy, and record the progress of every run for other processes."""
        now, processes = time.monotonic(), self._work.devices.processes
        self._recorded_at = now
        elapsed = now - self._first_at
        rate = (self.batch.sweep - self._first_sweep) / elapsed if elapsed > 0 else 0.0
        times = {name: round(spent, 3) for name, spent in asdict(self._work.times).items()}
        joules = self._work.energy.read() if self._work.energy else None
        if joules is not None:  # that of other processes is not known here
            joules = round(joules / len(self._outputs), 3) if processes.size == 1 else None
        if processes.size == 1 and now >= self._live_from:
            self._measure_physics()
        for output in self._outputs:
            output.record(rate, times, joules)

    def _measure_physics(self) -> None:
        """Measure what is recorded with the progress, and let its share of the time be small."""
        self._work.devices.synchronize()
        began = time.monotonic()
        for output in self._outputs:
            output.physics = output.chain.live()
        ended = time.monotonic()
        self._live_from = ended + (ended - began) / LIVE_SHARE

"""Plans of sessions: runs, observables, devices, and the shares of the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.energy import EnergyMeter
from gauge_mc.observables import Observable
from gauge_mc.run.chain import Chain
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.run_output import ChainTask

StopReason = Callable[[float], str | None]
"""Function that takes the time in seconds that stopping would take, and returns the reason to stop
now, or None."""

OnUpdate = Callable[[Chain], object]
"""Function that is called after every update."""


@dataclass
class Times:
    """Shares of a session's time, in seconds.

    Attributes
    ----------
    start : float
        Compiling kernels, and beginning or resuming the chain.
    update, measure : float
        Updates of the links, and measurements with their tables. On a GPU, what kernels of
        measurements take counts as updates, because the host does not wait for each of them.
    write : float
        Snapshots of configurations, and checkpoints.
    wait : float
        Waiting for configurations to be on disk.
    """

    start: float = 0.0
    update: float = 0.0
    measure: float = 0.0
    write: float = 0.0
    wait: float = 0.0

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Add the duration of a context to one of the shares."""
        began = time.monotonic()
        try:
            yield
        finally:
            setattr(self, what, getattr(self, what) + time.monotonic() - began)


@dataclass(frozen=True)
class SessionPlan:
    """The work of a session: runs, observables, devices and limits.

    Attributes
    ----------
    tasks : tuple of ChainTask
        The run; or the runs of a batch, after the same number of updates, with parameters that
        differ only in couplings and seed.
    observables : dict of Measurement to Observable
        Observables to measure.
    devices : DeviceGroup
        Devices that share the lattice; a single one for a batch.
    checkpoint_every : float
        Time in seconds between checkpoints.
    stop : callable
        See `StopReason`.
    report : callable
        Function that is called after every update to show the progress of the first run.
    on_update : callable, optional
        The user's callback, called after every update with the first run. A true result stops the
        session.
    times : Times
        Shares of the time so far; the session adds to them.
    energy : EnergyMeter, optional
        Meter of the energy, which the session reads regularly.
    """

    tasks: tuple[ChainTask, ...]
    observables: dict[Measurement, Observable]
    devices: DeviceGroup
    checkpoint_every: float
    stop: StopReason
    report: OnUpdate
    on_update: OnUpdate | None = None
    times: Times = field(default_factory=Times)
    energy: EnergyMeter | None = None

    @property
    def parameters(self) -> Parameters:
        """Parameters of the first run; the others differ only in couplings and seed."""
        return self.tasks[0].parameters

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
    """Shares of a session's time, in seconds."""

    start: float = 0.0
    """Compiling kernels, and beginning or resuming the chain."""
    update: float = 0.0
    """Updates of the links. On a GPU they include what kernels of measurements take, because the
    host does not wait for each of them.
    """
    measure: float = 0.0
    """Measurements with their tables."""
    write: float = 0.0
    """Snapshots of configurations, and checkpoints."""
    wait: float = 0.0
    """Waiting for configurations to be on disk."""

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
    """The work of a session: runs, observables, devices and limits."""

    tasks: tuple[ChainTask, ...]
    """The run; or the runs of a batch, after the same number of updates, with parameters that
    differ only in couplings and seed.
    """
    observables: dict[Measurement, Observable]
    """Observables to measure."""
    devices: DeviceGroup
    """Devices that share the lattice; a single one for a batch."""
    checkpoint_every: float
    """Time in seconds between checkpoints."""
    stop: StopReason
    """See `StopReason`."""
    report: OnUpdate
    """Function that is called after every update to show the progress of the first run."""
    on_update: OnUpdate | None = None
    """The user's callback, called after every update with the first run. A true result stops the
    session.
    """
    times: Times = field(default_factory=Times)
    """Shares of the time so far; the session adds to them."""
    energy: EnergyMeter | None = None
    """Meter of the energy, which the session reads regularly."""

    @property
    def parameters(self) -> Parameters:
        """Parameters of the first run; the others differ only in couplings and seed."""
        return self.tasks[0].parameters

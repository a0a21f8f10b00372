"""Requests to begin or to continue a run, the work of a session, and the kernels it needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gauge_mc import defaults
from gauge_mc.algorithms import ChainSpec
from gauge_mc.configurations.writing import stored_by
from gauge_mc.devices.host import allowed_cores
from gauge_mc.devices.kernels import ANY_VARIANT, Choice, Kernel
from gauge_mc.domain.device_group import LEAST_SLICES, DeviceGroup
from gauge_mc.domain.energy import EnergyMeter
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.averages import LINK_TRACE, PLAQUETTE
from gauge_mc.fields.field import COLD, HOT, Field
from gauge_mc.fields.file_links import GROUP_LINKS, READ_LINKS, WRITE_LINKS
from gauge_mc.fields.sums import ADD_PARTIAL_SUMS
from gauge_mc.observables import Observable, live_observables
from gauge_mc.random import GENERATORS
from gauge_mc.run.chain import Chain, check_start
from gauge_mc.run.directory import RUNS, Run, missing_run
from gauge_mc.run.functions import Catalogue, ObservableLike, check_folders
from gauge_mc.run.lock import RunLock
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import Parameters, known_options
from gauge_mc.run.settings import PHYSICS, Execution
from gauge_mc.run.state import updates_there
from gauge_mc.storage.links import BY_SITE
from gauge_mc.updates.sweep import norms_of


@dataclass(frozen=True)
class RunRequest:
    """A request to begin or to continue a run."""

    values: Mapping[str, object]
    """Given fields of `Parameters` and `Execution` by name."""
    observables: tuple[ObservableLike, ...] = ()
    """User-defined observables."""

    @cached_property
    def execution(self) -> Execution:
        """Where and how the run is carried out."""
        return Execution.from_values(self.values)

    @cached_property
    def run(self) -> Run:
        """The run directory."""
        path = self.execution.output
        return Run(Path(path) if path else RUNS / self.new_parameters.name)

    @cached_property
    def new_parameters(self) -> Parameters:
        """Parameters of the run if it does not exist yet."""
        named = Parameters.from_run(self.values)
        catalogue = self._catalogue(named)
        named.check_observables(catalogue.own)
        return catalogue.measured(named)

    def parameters(self) -> Parameters:
        """Return the parameters of the run, which may exist already.

        Raises
        ------
        UsageError
            If the run exists and its parameters differ from the given ones, or it does not exist
            and nothing of its physics is given.
        """
        run = self.run
        if not run.begun():
            return self._to_begin()
        there = run.read()[0]
        check_folders(run.toml, there, self.values)
        values = dict(self.values)
        if self.observables:
            wanted: Any = values.get("measure", there.measure)
            named = replace(there, measure=wanted)
            values["measure"] = self._catalogue(there).measured(named).measure
        return there.continued(values, f"The run {run.path}", updates_there(run, there))

    def _to_begin(self) -> Parameters:
        """Return the parameters of a run without results; those of a killed one are in run.toml.

        A path alone may be a misspelt one, so that a run begins only if it says what of.
        """
        stated = {name for name, option in known_options().items() if option.panel == PHYSICS}
        if not self.execution.output or self.values.keys() & stated - {"seed"}:
            return self.new_parameters
        self.run.check_place()
        if not self.run.exists():
            raise UsageError(
                f"{missing_run(self.run.path)} To begin one, state its physics, such as --lattice "
                "and --beta."
            )
        values = self.run.read()[0].values()
        return replace(self, values={**values, **self.values}).new_parameters

    def chosen(self, parameters: Parameters) -> dict[Measurement, Observable]:
        """Return the observables that the run measures, as in the tables that it has.

        Raises
        ------
        UsageError
            If the run measures a user-defined observable that the request lacks.
        """
        chosen = self._catalogue(parameters).chosen(parameters)
        table = self.run.table
        return {item: each.as_in(table(item.observable)) for item, each in chosen.items()}

    def checked(self) -> Parameters:
        """Return the parameters of the run; refuse a run that cannot be begun.

        Raises
        ------
        UsageError, GaugeError
            See `parameters`, `chosen` and `check_start`.
        """
        parameters = self.parameters()
        if not self.run.begun():
            check_start(parameters)
            self.chosen(parameters)
        return parameters

    def _catalogue(self, parameters: Parameters) -> Catalogue:
        return Catalogue.of(parameters.lattice, self.observables)


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
    def of(self, share: str) -> Iterator[None]:
        """Add the duration of a context to one of the shares, without that of others inside it."""
        began = time.monotonic() - sum(vars(self).values())
        try:
            yield
        finally:
            seconds = time.monotonic() - sum(vars(self).values()) - began
            setattr(self, share, getattr(self, share) + seconds)


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


def compile_kernels(
    parameters: Parameters,
    observables: Iterable[Observable],
    devices: DeviceGroup,
    resumed: bool,
    several: bool = False,
) -> None:
    """Compile the kernels of a run that are not in the cache.

    Parameters
    ----------
    parameters : Parameters
        Parameters of the run.
    observables : iterable of Observable
        The observables that the run measures.
    devices : DeviceGroup
        The devices to compile for.
    resumed : bool
        Whether the run continues from a checkpoint.
    several : bool
        Whether the run is one of several of a batch.

    Raises
    ------
    GaugeError
        If a kernel cannot be compiled.
    """
    p, device = parameters, devices.devices[0]
    devices.compute(p.strict)
    # Extents in space decide about the lanes; few time slices take next to no memory.
    few = Lattice(*p.lattice.extents[:3], LEAST_SLICES * sum(devices.counts))
    slab = Field.empty(few, p.group, p.precision, replace(devices, slices=None)).slabs[0]
    wanted = dict.fromkeys(_needed(p, observables, resumed, several))
    # Libraries take longer than most kernels: begun last, they would keep one core only busy.
    jobs = [(code, ANY_VARIANT) for code in (*device.libraries, ADD_PARTIAL_SUMS)]
    jobs += [(kernel, slab.variant(*choices)) for kernel, choices in wanted]
    with ThreadPoolExecutor(len(allowed_cores())) as threads:
        list(threads.map(lambda job: device.compile(*job), jobs))


def _needed(
    parameters: Parameters, observables: Iterable[Observable], resumed: bool, several: bool
) -> Iterator[tuple[Kernel, tuple[Choice, ...]]]:
    """Yield the kernels of a run with their choices, those that take longest to compile first."""
    p = parameters
    random, norms = GENERATORS[p.rng].choice(p.luxury), norms_of(p.precision, p.chain_version)
    yield from p.algorithm.kernels(ChainSpec(p.action, random, norms, several))
    if p.tempering:
        yield from ((loops.kernel, ()) for loops in p.action.loops)
    yield WRITE_LINKS, (BY_SITE.choice, GROUP_LINKS)
    if p.start == "hot" and not resumed:
        yield HOT, (GENERATORS[defaults.START_RNG].choice(),)
    elif p.start == "cold" and not resumed:
        yield COLD, ()
    else:
        yield READ_LINKS, (BY_SITE.choice, GROUP_LINKS)
    if p.keeps_configs:
        order = stored_by(p.format, p.lattice, p.group, p.precision).order
        yield WRITE_LINKS, (order.choice, GROUP_LINKS)
        yield PLAQUETTE, ()
        yield LINK_TRACE, ()
    for one in (*observables, *live_observables(p.lattice)):
        yield from ((kernel, ()) for kernel in one.kernels)


@dataclass(frozen=True)
class ChainTask:
    """A run in a session, with its lock and parameters."""

    run: Run
    """The run directory."""
    lock: RunLock | None
    """Run lock; None if this process is not the root."""
    parameters: Parameters
    """Parameters of the run, as in run.toml."""

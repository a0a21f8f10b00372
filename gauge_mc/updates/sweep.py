"""Sweeps over a field, which carry out the schedule on all slabs.

Seeds, couplings and other numbers that differ between the replicas of a field are in memory.

Plans: on how many threads, and in which order, a CPU carries out a sweep.

The results do not depend on the plan, not even in a bit. So the fastest plan is found while sweeps
are carried out: some of the first sweeps follow one plan, some the next, and the fastest is kept.
It is remembered, next to the compiled kernels, for this processor, cores, lattice and kernel. If
other processes used the cores meanwhile, the times mean nothing, and the first plan is kept.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import resource
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle, repeat
from pathlib import Path
from typing import Any, cast
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.actions import Action
from gauge_mc.devices import Buffer, base
from gauge_mc.devices.cache import cache_folder, keep, kept
from gauge_mc.devices.kernels import Choice, Kernel, Variant
from gauge_mc.domain.halo import SliceRange
from gauge_mc.domain.slab import Slab
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.file_links import SlabField
from gauge_mc.fields.random_field import Random
from gauge_mc.files.structured import parse_json
from gauge_mc.updates.schedule import (
    Exchange,
    Stage,
    Wavefront,
    allows_wavefronts,
    best_wavefront,
    exchange_of,
    fitting_wavefront,
    order_alone,
    schedule,
)

FEWER = 1.15
"""Ratio of times above which still fewer threads are not tried."""

WORTHWHILE = 0.97
"""Ratio of times below which another plan is preferred; a smaller gain may be chance."""

INTERRUPTIONS = 2, 30.0
"""How often other processes may interrupt the threads while plans are timed: once for all, and per
second. On an idle machine it is a few times per second."""

TIMED_SWEEPS, TIMED_SECONDS = 2, 0.01
"""Least number of timed sweeps, and least time in seconds, for each plan."""


@dataclass(frozen=True)
class Plan:
    """A way to carry out a sweep: a number of threads and a wavefront."""

    threads: int
    """Number of threads."""
    wavefront: Wavefront | None
    """The shape of the wavefront; None without wavefront blocking."""


Search = Generator[Plan, float, Plan]
"""Yields plans, takes the time of a sweep with each, and returns the fastest plan."""


def search(first: Plan, wavefronts: Sequence[Wavefront | None], fewer: bool) -> Search:
    """Look for the fastest plan: first the number of threads, then the wavefront."""
    best, least = first, (yield first)
    if fewer:
        threads = first.threads // 2
        while threads >= 1:
            plan = replace(first, threads=threads)
            seconds = yield plan
            if seconds > FEWER * least:
                break
            if seconds < WORTHWHILE * least:
                best, least = plan, seconds
            threads //= 2
        for threads in (3 * best.threads // 4, 3 * best.threads // 2):
            if best.threads > 2 and threads <= first.threads:
                plan = replace(first, threads=threads)
                seconds = yield plan
                if seconds < WORTHWHILE * least:
                    best, least = plan, seconds
    for wavefront in wavefronts:
        if wavefront != first.wavefront:
            plan = replace(best, wavefront=wavefront)
            seconds = yield plan
            if seconds < WORTHWHILE * least:
                best, least = plan, seconds
    return best


class Planner:
    """Carries out sweeps on a slab without neighbours, and finds the fastest plan meanwhile.

    Parameters
    ----------
    slab : Slab
        A slab on a `ThreadedDevice`.
    kernel : Kernel
        The kernel of the sweeps.
    variant : Variant
        The kernel of the sweep, and its choices.
    blocks : bool
        Whether wavefronts are possible.
    """

    def __init__(self, slab: Slab, kernel: Kernel, variant: Variant, blocks: bool) -> None:
        device = slab.device
        assert isinstance(device, base.ThreadedDevice)
        self._device = device
        layout, identity = slab.layout, device.identity()
        lattices = f"{layout.replicas} x {layout.lattice}"
        shape = f"{lattices} {slab.group.name} {layout.precision} {layout.split}"
        self._lattice = _LatticePlans.of(device, shape)
        source = hashlib.sha256(kernel.digest(variant)).hexdigest()
        key = (kernel.name, kernel.narrowed(variant), source, shape, identity, blocks)
        self._key = hashlib.sha256(repr(key).encode()).hexdigest()
        self._wavefronts = wavefronts_to_try(slab) if blocks else []
        self._search: Search | None = None
        self._times: list[float] = []
        self._seconds = 0.0
        self._decided = False
        self.plan = Plan(device.threads, best_wavefront(slab) if blocks else None)
        if self._key not in self._lattice.plans:
            remembered = _read(self._path, self._key, device.threads, self._wavefronts)
            if remembered and self._lattice.threads in (None, remembered.threads):
                self._lattice.threads = remembered.threads
                self._lattice.plans[self._key] = remembered

    def run(self, sweeps: int, carry_out: Callable[[Plan, int, int], object]) -> None:
        """Carry out sweeps."""
        if not self._decided and self._search is None:
            self._begin()
        count = 0
        while self._search is not None and count < sweeps:
            self._device.use_threads(self.plan.threads)
            began = time.perf_counter()
            carry_out(self.plan, count, 1)
            self._take_time(time.perf_counter() - began)
            count += 1
        if count < sweeps:
            self._device.use_threads(self.plan.threads)
            carry_out(self.plan, count, sweeps - count)

    def _begin(self) -> None:
        """Begin to search, unless the plan is known or another sweep finds the threads first."""
        lattice, most = self._lattice, self._device.threads
        plan = lattice.plans.get(self._key)
        if plan:
            self.plan, self._decided = plan, True
        elif lattice.threads is not None:
            self.plan = replace(self.plan, threads=lattice.threads)
            self._start(fewer=False)
        elif lattice.finder is None or lattice.finder() is None:
            lattice.finder = ref(self)
            self._start(fewer=most > 1)

    def _start(self, fewer: bool) -> None:
        self._first, self._interruptions = self.plan, _interruptions()
        self._search = search(self.plan, self._wavefronts, fewer)
        self.plan = next(self._search)

    def _take_time(self, seconds: float) -> None:
        """Take the time of a sweep; if that is enough, turn to the next plan or keep the best."""
        assert self._search is not None
        self._seconds += seconds
        self._times.append(seconds)
        timed = self._times[1:]  # the first sweep wakes the threads and fills the caches
        if len(timed) < TIMED_SWEEPS or sum(timed) < TIMED_SECONDS:
            return
        self._times = []
        once, per_second = INTERRUPTIONS
        busy = _interruptions() - self._interruptions > once + per_second * self._seconds
        try:
            self.plan = self._search.send(min(timed))
        except StopIteration as end:
            self._decide(self._first if busy else end.value)
            if not busy:
                _write(self._path, self._key, self.plan)
        else:
            if busy:
                self._decide(self._first)

    def _decide(self, plan: Plan) -> None:
        self.plan, self._search, self._decided = plan, None, True
        self._lattice.threads = plan.threads
        self._lattice.plans[self._key] = plan

    @property
    def _path(self) -> Path:
        return cache_folder() / f"plan-{self._key[:24]}.json"


def wavefronts_to_try(slab: Slab) -> list[Wavefront | None]:
    """Return the wavefronts that may be fastest: the best ones for the caches, and none."""
    device = slab.device
    assert isinstance(device, base.ThreadedDevice)
    caches = device.cache_bytes, device.cache_bytes // 2, device.own_cache_bytes
    # If the caches hold the whole slab, no order of work makes it faster.
    fits = 2 * slab.slice_bytes * slab.layout.slices <= device.own_cache_bytes
    fitting = [] if fits else [fitting_wavefront(slab, room) for room in caches]
    return list(dict.fromkeys([best_wavefront(slab), *fitting, None]))


class _LatticePlans:
    """Plans of all sweeps on lattices of one shape on a device.

    Attributes
    ----------
    threads : int or None
        Number of threads; None until it is found. It is the same for all sweeps, because it takes
        time to wake other threads.
    finder : reference to Planner, or None
        The planner that is looking for it.
    plans : dict of str to Plan
        The plans that were found or remembered.
    """

    def __init__(self, threads: int | None) -> None:
        self.threads = threads
        self.finder: ReferenceType[Planner] | None = None
        self.plans: dict[str, Plan] = {}

    @classmethod
    def of(cls, device: base.ThreadedDevice, shape: str) -> _LatticePlans:
        shapes = _KNOWN.setdefault(device, {})
        threads = device.threads if device.threads_are_fixed or device.threads == 1 else None
        return shapes.setdefault(shape, cls(threads))


_KNOWN: WeakKeyDictionary[base.Device, dict[str, _LatticePlans]] = WeakKeyDictionary()


def _interruptions() -> int:
    """Return how often other processes have taken the cores from threads of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _read(path: Path, key: str, most: int, wavefronts: Sequence[Wavefront | None]) -> Plan | None:
    """Return the remembered plan; None if there is no complete and possible one."""
    try:
        stored = parse_json(kept(path) or b"{}")
        if stored["key"] != key:
            return None
        shape = stored["wavefront"]
        plan = Plan(stored["threads"], None if shape is None else Wavefront(*shape))
        possible = 1 <= plan.threads <= most and (plan.wavefront in (None, *wavefronts))
    except (GaugeError, ValueError, KeyError, TypeError):
        return None
    return plan if possible else None


def _write(path: Path, key: str, plan: Plan) -> None:
    """Remember a plan; if it cannot be written, it is found again in the next process."""
    shape = plan.wavefront and (plan.wavefront.depth, plan.wavefront.planes)
    content = {"key": key, "threads": plan.threads, "wavefront": shape}
    with suppress(GaugeError, OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        keep(path, json.dumps(content).encode())


NO_TARGETS = {"first": None, "last": None, "last_t": 0, "depth": 0}
"""Members of ``HaloTargets`` for kernels that do not store links in neighbours' halos."""


class Sweep:
    """A heatbath or overrelaxation sweep over a field, prepared once and carried out many times.

    Parameters
    ----------
    field : Field
        The field, which is updated in place.
    kernel : Kernel
        The kernel that updates links; it must have the arguments ``links`` and ``halo``.
    action : Action
        The gauge action.
    choices : sequence of Choice
        The compile-time choices other than the group and the action.
    values : sequence of mapping
        The kernel's other arguments for every slab of this process.
    memory : object, optional
        Memory to which the arguments refer; it exists as long as the sweep.

    Raises
    ------
    UsageError
        If the halos of the field are not deep enough for the action.
    """

    def __init__(
        self,
        field: Field,
        kernel: Kernel,
        action: Action,
        choices: Sequence[Choice],
        values: Sequence[Mapping[str, Any]],
        memory: object = None,
    ) -> None:
        self._memory = memory
        layout = field.layouts[0]
        if len(field.layouts) > 1 and action.halo_depth > min(layout.above, layout.below):
            raise UsageError(
                f"The action {action.name} needs halos of {action.halo_depth} time slices, but the "
                f"field has {min(layout.above, layout.below)}; make it with deeper ones."
            )
        # The field refers to this object, so a reference back to it would delay freeing its memory.
        self._halo = None if len(field.layouts) == 1 else field.halo(action.halo_depth)
        self._whole = SliceRange(0, field.slabs[0].slice_bytes) if action.halo_depth > 1 else None
        exchange = exchange_of(field, action)
        targets = self._halo.targets if self._halo and exchange is Exchange.STORE else None
        self._slabs = [
            SlabSweep(
                slab,
                kernel,
                (*action.choices, *choices),
                schedule(slab, action, exchange),
                action if exchange is Exchange.NONE else None,
                {
                    **values[n],
                    "halo": {**targets[n], "depth": action.halo_depth} if targets else NO_TARGETS,
                },
            )
            for n, slab in enumerate(field.slabs)
        ]
        self._posts = self._posts_of(field, exchange)

    def _posts_of(self, field: Field, exchange: Exchange) -> list[Iterable[base.Launch]]:
        """Return for each slab the calls that post its sends, one per stage of a sweep."""
        halo = self._halo
        if halo is None:
            return []
        if exchange is Exchange.STORE:
            return [[signal] for signal in halo.signals]
        sets = [stage.sends for stage in self._slabs[0].stages if stage.sends]
        by_stage = [halo.posts(field.window(s.mu, s.parity)) for s in sets]
        return list(zip(*by_stage, strict=True))

    def __call__(self, sweeps: int, first_step: int | None = None) -> None:
        """Carry out sweeps."""
        if not sweeps:
            return
        if self._halo is None:
            self._slabs[0].run(sweeps, first_step)
            return
        if self._whole:  # an action with smaller loops leaves the outer slices of the halos behind
            self._halo.post(self._whole)
            self._halo.wait()
        calls: list[Iterable[base.Launch]] = []
        for slab, posts in zip(self._slabs, self._posts, strict=True):
            calls += slab.calls(sweeps, first_step, cycle(posts))
        # All slabs carry out a stage before the next one. This loop must be fast on the host.
        for stage in zip(*calls, repeat(self._halo.wait), strict=False):
            for call in stage:
                call()

    def registers(self) -> base.Registers | None:
        """Return the register usage of the function that runs a sweep; None on a CPU."""
        return self._slabs[0].registers(alone=self._halo is None)


class SlabSweep:
    """The part of a sweep on one slab.

    Parameters
    ----------
    slab : Slab
        The slab to update.
    kernel : Kernel
        The kernel of the sweep.
    choices : tuple of Choice
        The compile-time choices other than the group.
    stages : list of Stage
        The work between halo exchanges, in order.
    action : Action or None
        The action, if the slab has no neighbours and a planner may change the order of work.
    values : mapping
        The kernel's other arguments, ``halo`` among them.
    """

    def __init__(
        self,
        slab: Slab,
        kernel: Kernel,
        choices: tuple[Choice, ...],
        stages: list[Stage],
        action: Action | None,
        values: Mapping[str, Any],
    ) -> None:
        self.stages = stages
        self._device = slab.device
        self._kernel: base.LoadedKernel = slab.kernel(kernel, *choices)
        variant = slab.variant(*choices)
        parts = {"halo": "HaloTargets", "action": "ACTION::Coefficients"}
        filled = {
            name: kernel.part(parts[name], variant)(**value) if name in parts else value
            for name, value in values.items()
        }
        links = slab.buffer.address

        def steps(works: Iterable[ctypes.Structure]) -> _Steps:
            return _Steps(
                [slab.arguments(kernel, work, *choices, links=links, **filled) for work in works]
            )

        self._planner: Planner | None = None
        device = slab.device
        if action is not None and isinstance(device, base.ThreadedDevice) and device.synchronous:
            self._planner = Planner(slab, kernel, variant, allows_wavefronts(action))
            self._steps_with = cache(lambda wave: steps(order_alone(slab, action, wave)))
        self._calls: dict[int, base.Launch] = {}
        self._main = steps(work for stage in stages for work in stage.main)
        self._side = steps(work for stage in stages for work in stage.side)

    def run(self, sweeps: int, first_step: int | None) -> None:
        """Carry out sweeps on a slab that has no neighbours."""
        if self._planner is None:
            steps = self._main.repeated(sweeps, first_step)
            if sweeps not in self._calls:
                self._calls[sweeps] = self._kernel.prepared(steps)
            self._calls[sweeps]()
            return

        def carry_out(plan: Plan, begin: int, count: int) -> None:
            first = None if first_step is None else first_step + begin
            self._kernel(self._steps_with(plan.wavefront).repeated(count, first))

        self._planner.run(sweeps, carry_out)

    def calls(
        self, sweeps: int, first_step: int | None, posts: Iterable[base.Launch]
    ) -> list[Iterable[base.Launch]]:
        """Return sequences of calls, of which every stage makes one each.

        They are the main work, the posts, and the side work if there is any.
        """
        lengths = [len(stage.main) for stage in self.stages]
        main = self._kernel.launches(self._main.repeated(sweeps, first_step), lengths)
        if not self._side:
            return [main, posts]
        lengths = [len(stage.side) for stage in self.stages]
        side = self._kernel.launches(self._side.repeated(sweeps, first_step), lengths, side=True)
        device = cast(base.StreamedDevice, self._device)
        return [repeat(device.fork), main, posts, side, repeat(device.join)]

    def registers(self, alone: bool) -> base.Registers | None:
        """Return the register usage of a sweep; `alone` means that there is only one slab."""
        return self._kernel.registers(self._main.repeated(1, None) if alone else None)


class _Steps:
    """The arguments of a kernel for all steps of one sweep."""

    def __init__(self, steps: Sequence[ctypes.Structure]) -> None:
        self._count = len(steps)
        if steps:
            self._kind: Any = type(steps[0])
            self._bytes = bytes((self._kind * len(steps))(*steps))
        self._made: dict[int, ctypes.Array[Any]] = {}
        self._counters: dict[int, NDArray[np.uint64]] = {}

    def __bool__(self) -> bool:
        return self._count > 0

    def repeated(self, sweeps: int, first_step: int | None) -> ctypes.Array[Any]:
        """Return the steps of several sweeps, with random number steps from `first_step` on.

        For the same number of sweeps it is the same array, which the next call changes.
        """
        if sweeps not in self._made:
            kind = self._kind * (self._count * sweeps)
            self._made[sweeps] = kind.from_buffer_copy(self._bytes * sweeps)
        steps = self._made[sweeps]
        if first_step is not None:
            if sweeps not in self._counters:
                self._counters[sweeps] = self._counters_of(steps, sweeps)
            counters = self._counters[sweeps]
            for n in range(sweeps):
                counters[n] = first_step + n
        return steps

    def _counters_of(self, steps: ctypes.Array[Any], sweeps: int) -> NDArray[np.uint64]:
        """Return the numbers of the sweep in all steps as an array in the same memory."""
        kind, size = self._kind, ctypes.sizeof(self._kind)
        return np.ndarray(
            (sweeps, self._count),
            np.uint64,
            memoryview(steps).cast("B"),
            offset=kind.stream.offset + dict(kind._fields_)["stream"].step.offset,
            strides=(self._count * size, size),
        )


FIRST = 1
"""The version of chains that do not state theirs."""

LATEST = 2
"""The highest version."""

ROUNDED = Choice.of("norms", "", "update/norms.h", "RoundedNorms")
UNBIASED = Choice.of("norms", "", "update/norms.h", "UnbiasedNorms")


def norms_of(precision: str, version: int = defaults.CHAIN_VERSION) -> Choice:
    """Return the compile-time selection of the reunitarisation in updates."""
    return UNBIASED if version >= 2 and precision == "single" else ROUNDED


ONE_REPLICA = Choice.of("replicas", "", "update/replicas.h", "OneReplica")
"""Updates of a field with one replica."""
MANY_REPLICAS = Choice.of("replicas", "replicas", "update/replicas.h", "ManyReplicas")
"""Updates of a field with several replicas, each with its own seed, couplings and steps."""


def couplings_in_memory(
    field: SlabField,
    kernel: Kernel,
    choices: Sequence[Choice],
    coefficients: Sequence[Mapping[str, float]],
) -> Buffer:
    """Return the coefficients of the action of every replica, as a kernel reads them."""
    kind: Any = kernel.part("ACTION::Coefficients", field.slabs[0].variant(*choices))
    values = [kind(**each) for each in coefficients]
    return in_memory(field, np.frombuffer((kind * len(values))(*values), np.uint8))


def keys_in_memory(field: SlabField, randoms: Sequence[Random]) -> Buffer:
    """Return the keys of the generators of all replicas, as kernels read them."""
    return in_memory(field, np.array([random.stream(0).key for random in randoms], np.uint32))


def in_memory(field: SlabField, data: NDArray[Any]) -> Buffer:
    """Return a copy of an array in the memory of the device of a field."""
    plain, device = data.reshape(-1).view(np.uint8), field.slabs[0].device
    buffer = device.allocate(plain.nbytes)
    device.write(buffer, 0, plain)
    return buffer

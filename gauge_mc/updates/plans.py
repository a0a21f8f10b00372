"""Plans: on how many threads, and in which order, a CPU carries out a sweep.

The results do not depend on the plan, not even in a bit. So the fastest plan is found while sweeps
are carried out: some of the first sweeps follow one plan, some the next, and the fastest is kept.
It is remembered, next to the compiled kernels, for this processor, cores, lattice and kernel. If
other processes used the cores meanwhile, the times mean nothing, and the first plan is kept.
"""

from __future__ import annotations

import hashlib
import json
import resource
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from weakref import ReferenceType, WeakKeyDictionary, ref

from gauge_mc.devices.base import Device, ThreadedDevice
from gauge_mc.devices.cache import cache_folder, keep, kept
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.domain.slab import Slab
from gauge_mc.errors import GaugeError
from gauge_mc.files.structured import parse_json
from gauge_mc.updates.wavefront import Wavefront, best_wavefront, fitting_wavefront

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
    """Look for the fastest plan: first the number of threads, then the wavefront.

    Parameters
    ----------
    first : Plan
        The plan to begin with, which has the maximum number of threads.
    wavefronts : sequence of Wavefront or None
        Wavefronts to try.
    fewer : bool
        Whether to try fewer threads.
    """
    best, least = first, (yield first)
    if fewer:
        threads = first.threads // 2
        while threads >= 1:
            plan = replace(first, threads=threads)
            taken = yield plan
            if taken > FEWER * least:
                break
            if taken < WORTHWHILE * least:
                best, least = plan, taken
            threads //= 2
        for threads in (3 * best.threads // 4, 3 * best.threads // 2):
            if best.threads > 2 and threads <= first.threads:
                plan = replace(first, threads=threads)
                taken = yield plan
                if taken < WORTHWHILE * least:
                    best, least = plan, taken
    for wavefront in wavefronts:
        if wavefront != first.wavefront:
            plan = replace(best, wavefront=wavefront)
            taken = yield plan
            if taken < WORTHWHILE * least:
                best, least = plan, taken
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
        assert isinstance(device, ThreadedDevice)
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
        """Carry out sweeps.

        Parameters
        ----------
        sweeps : int
            Number of sweeps.
        carry_out : callable
            Takes a plan, the number of the first sweep among these, and the number of sweeps.
        """
        if not self._decided and self._search is None:
            self._begin()
        done = 0
        while self._search is not None and done < sweeps:
            self._device.use_threads(self.plan.threads)
            began = time.perf_counter()
            carry_out(self.plan, done, 1)
            self._take_time(time.perf_counter() - began)
            done += 1
        if done < sweeps:
            self._device.use_threads(self.plan.threads)
            carry_out(self.plan, done, sweeps - done)

    def _begin(self) -> None:
        """Begin to search, unless the plan is known or another sweep finds the threads first."""
        lattice, most = self._lattice, self._device.threads
        known = lattice.plans.get(self._key)
        if known:
            self.plan, self._decided = known, True
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
    assert isinstance(device, ThreadedDevice)
    caches = device.cache_bytes, device.cache_bytes // 2, device.own_cache_bytes
    # If the caches hold the whole slab, no order of work makes it faster.
    fits = 2 * slab.slice_bytes * slab.layout.slices <= device.own_cache_bytes
    found = [] if fits else [fitting_wavefront(slab, room) for room in caches]
    return list(dict.fromkeys([best_wavefront(slab), *found, None]))


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
    def of(cls, device: ThreadedDevice, shape: str) -> _LatticePlans:
        shapes = _KNOWN.setdefault(device, {})
        threads = device.threads if device.threads_are_fixed or device.threads == 1 else None
        return shapes.setdefault(shape, cls(threads))


_KNOWN: WeakKeyDictionary[Device, dict[str, _LatticePlans]] = WeakKeyDictionary()


def _interruptions() -> int:
    """Return how often other processes have taken the cores from threads of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _read(path: Path, key: str, most: int, wavefronts: Sequence[Wavefront | None]) -> Plan | None:
    """Return the remembered plan; None if there is none that is whole and possible."""
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

"""Sweeps over a field, which carry out the schedule on all slabs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import cycle, repeat
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import Action
from gauge_mc.devices.base import Launch, LoadedKernel, Registers, StreamedDevice, ThreadedDevice
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.domain.halo import SliceRange
from gauge_mc.domain.slab import Slab
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.updates.plans import Plan, Planner
from gauge_mc.updates.schedule import (
    Exchange,
    Stage,
    allows_wavefronts,
    exchange_of,
    order_alone,
    schedule,
)

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
    values : callable
        Takes the number n of a slab of this process and returns the kernel's other arguments.
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
        values: Callable[[int], Mapping[str, Any]],
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
                    **values(n),
                    "halo": {**targets[n], "depth": action.halo_depth} if targets else NO_TARGETS,
                },
            )
            for n, slab in enumerate(field.slabs)
        ]
        self._posts = self._posts_of(field, exchange)

    def _posts_of(self, field: Field, exchange: Exchange) -> list[Iterable[Launch]]:
        """Return for each slab the calls that post its sends, one per stage of a sweep."""
        halo = self._halo
        if halo is None:
            return []
        if exchange is Exchange.STORE:
            return [[signal] for signal in halo.signals]
        sets = [stage.sends for stage in self._slabs[0].stages if stage.sends]
        by_stage = [halo.posts(field.window(one.mu, one.parity)) for one in sets]
        return list(zip(*by_stage, strict=True))

    def __call__(self, sweeps: int, first_step: int | None = None) -> None:
        """Carry out sweeps.

        Parameters
        ----------
        sweeps : int
            Number of sweeps, which may be 0.
        first_step : int, optional
            Number of the first sweep, for the random numbers, if the kernel draws any.
        """
        if not sweeps:
            return
        if self._halo is None:
            self._slabs[0].run(sweeps, first_step)
            return
        if self._whole:  # an action with smaller loops leaves the outer slices of the halos behind
            self._halo.post(self._whole)
            self._halo.wait()
        calls: list[Iterable[Launch]] = []
        for slab, posts in zip(self._slabs, self._posts, strict=True):
            calls += slab.calls(sweeps, first_step, cycle(posts))
        # All slabs carry out a stage before the next one. This loop must be fast on the host.
        for stage in zip(*calls, repeat(self._halo.wait), strict=False):
            for call in stage:
                call()

    def registers(self) -> Registers | None:
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
    alone : Action or None
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
        alone: Action | None,
        values: Mapping[str, Any],
    ) -> None:
        self.stages = stages
        self._device = slab.device
        self._kernel: LoadedKernel = slab.kernel(kernel, *choices)
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
        if alone is not None and isinstance(device, ThreadedDevice) and device.synchronous:
            self._planner = Planner(slab, kernel, variant, allows_wavefronts(alone))
            self._steps_with = cache(lambda wave: steps(order_alone(slab, alone, wave)))
        self._calls: dict[int, Launch] = {}
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
        self, sweeps: int, first_step: int | None, posts: Iterable[Launch]
    ) -> list[Iterable[Launch]]:
        """Return sequences of calls, of which every stage makes one each.

        They are the main work, the posts, and the side work if there is any.
        """
        lengths = [len(stage.main) for stage in self.stages]
        main = self._kernel.launches(self._main.repeated(sweeps, first_step), lengths)
        if not self._side:
            return [main, posts]
        lengths = [len(stage.side) for stage in self.stages]
        side = self._kernel.launches(self._side.repeated(sweeps, first_step), lengths, side=True)
        device = cast(StreamedDevice, self._device)
        return [repeat(device.fork), main, posts, side, repeat(device.join)]

    def registers(self, alone: bool) -> Registers | None:
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


def sweep_of(
    field: Field,
    kernel: Kernel,
    action: Action,
    choices: Sequence[Choice],
    values: Callable[[int], Mapping[str, Any]],
    key: tuple[object, ...],
    memory: object = None,
) -> Sweep:
    """Return a sweep over a field, prepared by an earlier call with the same key if possible.

    For the other parameters see `Sweep`.
    """
    prepared = field.prepared
    if key not in prepared:
        prepared[key] = Sweep(field, kernel, action, choices, values, memory)
    return cast(Sweep, prepared[key])

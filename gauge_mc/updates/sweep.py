"""Sweeps over a field: the schedule carried out on all slabs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle, repeat
from typing import Any, cast

import numpy as np

from gauge_mc.actions import Action
from gauge_mc.devices.base import Launch, LoadedKernel, Registers, StreamedDevice
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.domain.slab import Slab
from gauge_mc.fields.field import Field
from gauge_mc.updates.schedule import Exchange, Stage, exchange_of, schedule

NO_TARGETS = {"first": None, "last": None, "last_t": 0}
"""The members of ``HaloTargets`` if a kernel stores nothing in neighbours' halos."""


class Sweep:
    """A sweep of one kind over a field, prepared once to be carried out many times.

    Parameters
    ----------
    field : Field
        Updated in place.
    kernel : Kernel
        The kernel that updates links. It has the arguments ``links`` and ``halo``.
    action : Action
    choices : sequence of Choice
        What the kernel is compiled for besides the group and the action.
    values : callable
        Returns the kernel's other arguments, by name, for the n-th slab of this process.
    """

    def __init__(
        self,
        field: Field,
        kernel: Kernel,
        action: Action,
        choices: Sequence[Choice],
        values: Callable[[int], Mapping[str, Any]],
    ) -> None:
        # Not the field, which keeps this object: its memory would not be freed with its last use.
        self._halo = None if len(field.layouts) == 1 else field.halo
        exchange = exchange_of(field)
        targets = field.halo.targets if exchange is Exchange.STORE else None
        self._slabs = [
            _SlabSweep(
                slab,
                kernel,
                (action.choice, *choices),
                schedule(slab, action, exchange),
                {**values(n), "halo": targets[n] if targets else NO_TARGETS},
            )
            for n, slab in enumerate(field.slabs)
        ]
        self._posts = self._posts_of(field, exchange)

    def _posts_of(self, field: Field, exchange: Exchange) -> list[Iterable[Launch]]:
        """Return for each slab the calls that post its sends, stage by stage, over and over."""
        halo = field.halo
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
            How many; none at all is allowed.
        first_step : int, optional
            The number of the first sweep for its random numbers, if the kernel draws any.
        """
        if not sweeps:
            return
        if self._halo is None:
            self._slabs[0].run(sweeps, first_step)
            return
        calls: list[Iterable[Launch]] = []
        for slab, posts in zip(self._slabs, self._posts, strict=True):
            calls += slab.calls(sweeps, first_step, cycle(posts))
        # All slabs carry out a stage before the next, with as little work for the host as possible.
        for stage in zip(*calls, repeat(self._halo.wait), strict=False):
            for call in stage:
                call()

    def registers(self) -> Registers | None:
        """Return the registers of the function that runs a sweep; None on a CPU."""
        return self._slabs[0].registers(alone=self._halo is None)


class _SlabSweep:
    """The part of a sweep on one slab."""

    def __init__(
        self,
        slab: Slab,
        kernel: Kernel,
        choices: tuple[Choice, ...],
        stages: list[Stage],
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

        self._main = steps(work for stage in stages for work in stage.main)
        self._side = steps(work for stage in stages for work in stage.side)

    def run(self, sweeps: int, first_step: int | None) -> None:
        """Carry out sweeps on a slab without neighbours."""
        self._kernel(self._main.repeated(sweeps, first_step))

    def calls(
        self, sweeps: int, first_step: int | None, posts: Iterable[Launch]
    ) -> list[Iterable[Launch]]:
        """Return the calls of every stage: main work, posts, and side work if there is any."""
        lengths = [len(stage.main) for stage in self.stages]
        main = self._kernel.launches(self._main.repeated(sweeps, first_step), lengths)
        if not self._side:
            return [main, posts]
        lengths = [len(stage.side) for stage in self.stages]
        side = self._kernel.launches(self._side.repeated(sweeps, first_step), lengths, side=True)
        device = cast(StreamedDevice, self._device)
        return [repeat(device.fork), main, posts, side, repeat(device.join)]

    def registers(self, alone: bool) -> Registers | None:
        """Return the registers of the function that runs a sweep on a slab, alone or not."""
        return self._kernel.registers(self._main.repeated(1, None) if alone else None)


class _Steps:
    """The arguments of a kernel for all steps of a sweep."""

    def __init__(self, steps: Sequence[ctypes.Structure]) -> None:
        self._count = len(steps)
        if steps:
            self._kind = type(steps[0])
            self._bytes = bytes((self._kind * len(steps))(*steps))

    def __bool__(self) -> bool:
        return self._count > 0

    def repeated(self, sweeps: int, first_step: int | None) -> ctypes.Array[Any]:
        """Return the steps of so many sweeps, numbered for their random numbers from the first."""
        kind: Any = self._kind
        steps: ctypes.Array[Any] = (kind * (self._count * sweeps)).from_buffer_copy(
            self._bytes * sweeps
        )
        if first_step is not None:
            size = ctypes.sizeof(kind)
            counters = np.ndarray(
                (sweeps, self._count),
                np.uint64,
                memoryview(steps).cast("B"),
                offset=kind.stream.offset + dict(kind._fields_)["stream"].step.offset,
                strides=(self._count * size, size),
            )
            counters[:] = first_step + np.arange(sweeps, dtype=np.uint64)[:, np.newaxis]
        return steps


def sweep_of(
    field: Field,
    kernel: Kernel,
    action: Action,
    choices: Sequence[Choice],
    values: Callable[[int], Mapping[str, Any]],
    key: tuple[object, ...],
) -> Sweep:
    """Return a sweep over a field that was prepared before under the same key, or prepare it."""
    prepared = field.prepared
    if key not in prepared:
        prepared[key] = Sweep(field, kernel, action, choices, values)
    return cast(Sweep, prepared[key])

"""Kernels, memory and time of observables, for preparation, forecasts and benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from gauge_mc.devices.kernels import Kernel


class CostParts:
    """Kernels, memory and time of the measurements of an observable."""

    links_moved: ClassVar[float | None] = None
    """Minimum memory traffic of a measurement for benchmarks, in links read or written per link of
    the lattice; None if it is unknown.
    """
    takes_memory: ClassVar[bool] = False
    """Whether it may take many times the memory of the links, so that the memory is forecast before
    it is measured; see `rehearsed`.
    """
    main_kernel: ClassVar[Kernel | None] = None
    """Kernel whose number of registers benchmarks show."""
    bench_options: ClassVar[Mapping[str, object]] = {}
    """Options with which benchmarks measure it, if the default ones take too long."""
    benched: ClassVar[bool] = True
    """Whether benchmarks time it although it is not named, since it does not take long."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that `measure` calls, which are compiled side by side before a run begins.

        They depend on nothing but the group. Kernels that are missing here are compiled when they
        are first called.
        """
        return (self.main_kernel,) if self.main_kernel else ()

    @property
    def warm_up(self) -> Self:
        """The observable that a run measures once when it starts, to compile the kernels.

        One that takes long returns a shorter one that calls the same kernels.
        """
        return self

    @property
    def rehearsed(self) -> Self | None:
        """The observable that is rehearsed to find the memory that it takes; None if it cannot be.

        See `gauge_mc.devices.rehearsal`: all results on devices are zero. It is declared together
        with `takes_memory`.
        """
        return None

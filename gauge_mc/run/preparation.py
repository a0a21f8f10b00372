"""Compilation of the kernels of a run, side by side, before it begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from gauge_mc import defaults
from gauge_mc.algorithms import ChainSpec
from gauge_mc.configurations.writing import stored_by
from gauge_mc.devices.host import allowed_cores
from gauge_mc.devices.kernels import ANY_VARIANT, Choice, Kernel
from gauge_mc.domain.device_group import LEAST_SLICES, DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.averages import LINK_TRACE, PLAQUETTE
from gauge_mc.fields.field import COLD, HOT, Field
from gauge_mc.fields.file_links import GROUP_LINKS, READ_LINKS, WRITE_LINKS
from gauge_mc.fields.sums import ADD_PARTIAL_SUMS
from gauge_mc.observables import Observable, live_observables
from gauge_mc.random import GENERATORS
from gauge_mc.run.parameters import Parameters
from gauge_mc.storage.links import BY_SITE
from gauge_mc.updates.chain_versions import norms_of

KernelVariant = tuple[Kernel, tuple[Choice, ...]]
"""A kernel and the choices other than the group on which it depends."""


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
) -> Iterator[KernelVariant]:
    """Yield the kernels of a run, those that take longest to compile first."""
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

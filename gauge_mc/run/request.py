"""Requests to begin or to continue a run, the work of a session, and the kernels it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gauge_mc import defaults
from gauge_mc.algorithms import ChainSpec
from gauge_mc.configurations.writing import stored_by
from gauge_mc.devices.host import allowed_cores
from gauge_mc.devices.kernels import ANY_VARIANT
from gauge_mc.domain.device_group import LEAST_SLICES, DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import COLD, HOT, Field
from gauge_mc.fields.file_links import GROUP_LINKS, READ_LINKS, WRITE_LINKS
from gauge_mc.fields.sums import ADD_PARTIAL_SUMS, LINK_TRACE, PLAQUETTE
from gauge_mc.observables import Observable, live_observables
from gauge_mc.random import GENERATORS
from gauge_mc.run.chain import check_start
from gauge_mc.run.directory import RUNS, Run, missing_run
from gauge_mc.run.functions import ObservableLike, check_folders, observables_of, user_defined
from gauge_mc.run.measurement import AddedMeasurements
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
        customs = user_defined(named.lattice, self.observables)
        named.schedule.check_observables({item.observable for item in customs})
        return replace(named, measure=AddedMeasurements(customs).beside(named.measure))

    def parameters(self) -> Parameters:
        """Return the parameters of the run, which may exist already."""
        run = self.run
        if not run.begun():
            # A path alone may be a misspelt one, so that a run begins only if it says what of.
            physics = {name for name, x in known_options().items() if x.panel == PHYSICS}
            if not self.execution.output or self.values.keys() & physics - {"seed"}:
                return self.new_parameters
            run.check_place()
            if not run.exists():
                raise UsageError(
                    f"{missing_run(run.path)} To begin one, state its physics, such as --lattice "
                    "and --beta."
                )
            # The parameters of a killed run are in run.toml.
            stated = run.read()[0].values()
            return replace(self, values={**stated, **self.values}).new_parameters
        stored = run.read()[0]
        check_folders(run.toml, stored, self.values)
        values: dict[str, Any] = dict(self.values)
        if self.observables:
            customs = AddedMeasurements(user_defined(stored.lattice, self.observables))
            named = replace(stored, measure=values.get("measure", stored.measure))
            values["measure"] = customs.beside(named.measure)
        return stored.continued(values, f"The run {run.path}", updates_there(run, stored.format))

    def checked(self) -> Parameters:
        """Return the parameters of the run; refuse a run that cannot be begun."""
        parameters = self.parameters()
        if not self.run.begun():
            check_start(parameters.start, parameters.group, parameters.lattice)
            observables_of(parameters, self.observables, self.run.table)
        return parameters


def compile_kernels(
    parameters: Parameters,
    observables: Iterable[Observable],
    devices: DeviceGroup,
    resumed: bool,
    several: bool = False,
) -> None:
    """Compile the kernels of a run that are not in the cache."""
    p, device = parameters, devices.devices[0]
    devices.compute(p.strict)
    # Extents in space decide about the lanes; few time slices take next to no memory.
    few = Lattice(*p.lattice.extents[:3], LEAST_SLICES * sum(devices.counts))
    slab = Field.empty(few, p.group, p.precision, replace(devices, slices=None)).slabs[0]
    random, norms = GENERATORS[p.rng].choice(p.luxury), norms_of(p.precision, p.chain_version)
    # Those that take longest to compile come first.
    kernels = [*p.algorithm.kernels(ChainSpec(p.action, random, norms, several))]
    if p.tempering:
        kernels += [(loops.kernel, ()) for loops in p.action.loops]
    kernels.append((WRITE_LINKS, (BY_SITE.choice, GROUP_LINKS)))
    if p.start == "hot" and not resumed:
        kernels.append((HOT, (GENERATORS[defaults.START_RNG].choice(),)))
    elif p.start == "cold" and not resumed:
        kernels.append((COLD, ()))
    else:
        kernels.append((READ_LINKS, (BY_SITE.choice, GROUP_LINKS)))
    if p.schedule.keeps_configs:
        order = stored_by(p.format, p.lattice, p.group, p.precision).order
        kernels += [(WRITE_LINKS, (order.choice, GROUP_LINKS)), (PLAQUETTE, ()), (LINK_TRACE, ())]
    for observable in (*observables, *live_observables(p.lattice)):
        kernels += [(kernel, ()) for kernel in observable.kernels]
    # Libraries take longer than most kernels: begun last, they would keep one core only busy.
    jobs = [(code, ANY_VARIANT) for code in (*device.libraries, ADD_PARTIAL_SUMS)]
    jobs += [(kernel, slab.variant(*choices)) for kernel, choices in dict.fromkeys(kernels)]
    with ThreadPoolExecutor(len(allowed_cores())) as threads:
        list(threads.map(lambda job: device.compile(*job), jobs))

"""Plans of benchmarks: what is timed, on which lattice, on which devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from gauge_mc import defaults
from gauge_mc.actions import Action, couplings, parse
from gauge_mc.benchmarks import BENCH_KINDS, kernels, kind_options
from gauge_mc.benchmarks.end_to_end import end_to_end
from gauge_mc.benchmarks.hmc import hmc_time, usual_trajectory
from gauge_mc.benchmarks.over import BenchAxis, BenchSeries, bench_over
from gauge_mc.benchmarks.timing import Bench, BenchProgress, BenchResult
from gauge_mc.devices.choice import AUTOMATIC, BACKENDS, Place, choose_devices
from gauge_mc.domain.device_group import DeviceGroup, open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.mpi import Processes, find_processes
from gauge_mc.errors import UsageError
from gauge_mc.options import check_options
from gauge_mc.registry import in_words, nearest
from gauge_mc.results import documented, result_field
from gauge_mc.run.generate import MAX_CHAINS
from gauge_mc.run.parameters import Parameters
from gauge_mc.signatures import checks_types, with_fields

if TYPE_CHECKING:
    from gauge_mc.keywords import BenchKeywords

SECONDS, RUN_EXTENT = (0.05, 3600.0), 32
"""Bounds of the time for a kernel, and largest extent of whole runs, unless a lattice is given."""


@documented
@dataclass(frozen=True)
class BenchPlan:
    """Plan of a benchmark: the things to time, their lattice, and the time for each.

    Raises
    ------
    UsageError
        If values are invalid, or do not go together.
    """

    group: str = result_field("Gauge group.", defaults.GROUP)
    lattice: Lattice | None = result_field(
        "Extents; by default those of a lattice that suits the device.", None
    )
    precision: str = result_field("Precision of the links.", defaults.PRECISION)
    action: Action | None = result_field(
        "Another action, timed beside the default one; with `hmc`, that of the trajectories.", None
    )
    rng: str = result_field("Random number generator.", defaults.RNG)
    luxury: int | None = result_field("Quality level of the generator.", None)
    strict: bool = result_field("Compute the same bits as all machines, as in strict runs.", False)
    seconds: float = result_field("Approximate time for each kernel in seconds.", 1.0)
    observables: bool | Sequence[str] = result_field(
        "Time observables, smearings, temporal links and flows: all, or those of the names.", False
    )
    updates: Sequence[str] = result_field("Names of what is timed: updates and observables.", ())
    end_to_end: bool = result_field("Time whole runs instead of updates.", False)
    hmc: bool | Parameters = result_field("Time trajectories: usual ones, or of a run.", False)
    chains: int = result_field("Number of chains whose trajectories are timed with `hmc`.", 1)
    others: Mapping[str, Any] = result_field("Options of kinds of benchmarks, by name.", dict)

    def __post_init__(self) -> None:
        if complaint := next(self._complaints(), None):
            raise UsageError(complaint)
        for kind in BENCH_KINDS.values():
            kind.check(self.others)
        kernels.check_names(self.updates, in_sweeps=False)
        kernels.check_names(self.names, in_sweeps=True)

    def _complaints(self) -> Iterator[str]:
        extras = {kind.options[0].flag: self.others.get(n) for n, kind in BENCH_KINDS.items()}
        kinds = {"--observables": self.observables, **extras}
        kinds |= {"--end-to-end": self.end_to_end, "--hmc": self.hmc}
        flags, (least, most) = [flag for flag, kind in kinds.items() if kind], SECONDS
        if not least <= self.seconds <= most:
            yield f"--seconds must lie between {least} and {most:g}, not {self.seconds:g}."
        if len(flags) > 1:
            yield f"A benchmark times one of {in_words(flags)} at a time; give only one of them."
        if self.action and flags and not self.hmc:
            yield (
                "--action and its options are for the times of updates; leave them out, or leave "
                f"out {in_words(flag for flag in kinds if flag != '--hmc')}."
            )
        if not 1 <= self.chains <= MAX_CHAINS:
            yield f"--chains must lie between 1 and {MAX_CHAINS}, not {self.chains}."
        if self.chains > 1 and not self.hmc:
            yield "--chains is for --hmc; add it, or leave out --chains."
        if self.updates and flags:
            yield (
                f"Names are for the times of updates and of --observables; leave out {flags[0]}, "
                "or leave them out."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the observables that are timed; empty for all or none."""
        named = () if isinstance(self.observables, bool) else self.observables
        return (named,) if isinstance(named, str) else tuple(named)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> BenchPlan:
        """Return the plan for values by name, options of the action among them.

        None means that a value was not given. The lattice and the action may be text.

        Raises
        ------
        UsageError
            If a name is unknown, or a value is invalid.
        """
        named = {name: value for name, value in values.items() if value is not None}
        acting, extras = (
            {option.name: named.pop(option.name) for option in options if option.name in named}
            for options in (couplings(), kind_options())
        )
        fields = {field.name for field in dataclasses.fields(cls)} - {"others"}
        if unknown := min(named.keys() - fields, default=None):
            names = {*fields, *(option.name for option in (*couplings(), *kind_options()))}
            raise UsageError(f"There is no parameter '{unknown}'{nearest(unknown, names)}")
        named["others"] = check_options(kind_options(), extras, "benchmarks")
        if "action" in named or acting:
            action = named.get("action", defaults.ACTION)
            action = action if isinstance(action, Action) else parse(action)
            named["action"] = action.with_options(**acting).check()
        if not isinstance(named.get("lattice"), Lattice | None):
            named["lattice"] = Lattice.parse(named["lattice"])
        return cls(**named)

    def lattice_on(self, backend: str) -> Lattice:
        """Return the lattice, by default one that suits a backend."""
        if isinstance(self.hmc, Parameters):
            return self.hmc.lattice
        extent = BACKENDS[backend].bench_extent
        extent = min(extent, RUN_EXTENT) if self.end_to_end else extent
        return self.lattice or Lattice(extent, extent, extent, extent)

    def carry_out(
        self,
        devices: DeviceGroup,
        lattice: Lattice,
        progress: BenchProgress = lambda name, total: None,
    ) -> BenchResult:
        """Return the times on devices, of which whole runs and several chains take only one."""
        devices.compute(self.strict)
        bench = Bench(devices, self.group, lattice, self.seconds, progress)
        several = len(devices.devices) > 1 or devices.processes.size > 1
        if several and self.chains > 1:
            raise UsageError(
                "Several chains are timed on one device and by one process; choose one with "
                "--devices, and leave out mpirun, or leave out --chains."
            )
        if several and self.end_to_end:
            raise UsageError(
                "--end-to-end times one device and one process; choose one with --devices, and "
                "leave out mpirun."
            )
        if self.end_to_end:
            return end_to_end(bench, self.precision, Path.cwd())
        if self.observables:
            return kernels.observables_time(bench, self.precision, self.names)
        if kind := next((x for name, x in BENCH_KINDS.items() if self.others.get(name)), None):
            return kind.carry_out(bench, self.others)
        if self.hmc:
            run = self.hmc if isinstance(self.hmc, Parameters) else usual_trajectory(self, lattice)
            return hmc_time(replace(bench, group=run.group), run, self.chains)
        return kernels.benchmark(bench, self)


@with_fields(BenchPlan, options=lambda: (*couplings(), *kind_options()))
@checks_types
def bench(
    *,
    backend: str = AUTOMATIC,
    devices: str | None = None,
    threads: int | None = None,
    over: str = "",
    weak: bool = False,
    **options: Unpack[BenchKeywords],
) -> BenchResult | BenchSeries:
    """Time the kernels on this machine, and compare the times with the memory bandwidth.

    Parameters
    ----------
    backend, devices, threads
        See `gauge_mc.devices.choose_devices`.
    over : str
        An option and its values, such as ``devices=1,2,4``, for each of which the kernels are
        timed. It may be the lattice, the precision, or the number of devices or threads.
    weak : bool
        Whether the lattice extends along t with the number of devices or threads.
    **options : object
        Fields of `gauge_mc.benchmarks.plan.BenchPlan`, and options of the action, by name.

    Returns
    -------
    Benchmark, ObservablesTime, EndToEnd, HmcTime, another BenchResult, or BenchSeries
        What ``gauge-mc bench --json`` prints.

    Raises
    ------
    UsageError
        If a name is unknown, or a value is invalid.
    GaugeError
        If a device cannot be opened, or has too little memory.
    """

    def plan_of(changes: Mapping[str, Any]) -> BenchPlan:
        return BenchPlan.from_values({**options, **changes})

    place = Place(devices, backend, threads)
    axis, processes = BenchAxis.parse(over, weak) if over else None, find_processes()
    with processes.aborting():
        return bench_on(place, plan_of, axis, processes)


def bench_on(
    place: Place,
    plan_of: Callable[[Mapping[str, Any]], BenchPlan],
    axis: BenchAxis | None,
    processes: Processes,
    carry_out: Callable[[BenchPlan, DeviceGroup, Lattice], BenchResult] = BenchPlan.carry_out,
    share_gpus: bool = False,
) -> BenchResult | BenchSeries:
    """Carry out a plan, or one for every value of an axis, on devices that are opened for it."""

    def planned(changes: Mapping[str, Any]) -> tuple[BenchPlan, Place, Lattice]:
        where = place._replace(**{name: changes[name] for name in changes if name in place._fields})
        plan = plan_of({name: x for name, x in changes.items() if name not in place._fields})
        return plan, where, plan.lattice_on(choose_devices(*where)[0].backend)

    def once(changes: Mapping[str, Any]) -> BenchResult:
        plan, where, lattice = planned(changes)
        kind: dict[str, Any] = dict(processes=processes, share_gpus=share_gpus, lattice=lattice)
        with closing(open_device_group(*where, **kind)) as group:
            return carry_out(plan, group, lattice)

    return bench_over(axis, planned({})[2], once) if axis else once({})

"""Determinations: a number with a wanted error, by the run or the scan that it needs.

A determination chooses a lattice, lets an ordinary run or scan grow by blocks, and fits after each
of them until the error is reached.
"""

from __future__ import annotations

import inspect
import math
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from gauge_mc.console import Console
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.mpi import find_processes
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fits import FITS, Fit, FittedEnsemble, result_of
from gauge_mc.fits.quoted import Goal, QuotedNumber, equal_target
from gauge_mc.groups import GROUPS
from gauge_mc.options import check_options
from gauge_mc.progress import duration
from gauge_mc.quoting import counted, number, shortened
from gauge_mc.registry import nearest
from gauge_mc.results import documented, result_field
from gauge_mc.run.cards import named_values
from gauge_mc.run.directory import RUNS, Run
from gauge_mc.run.generate import generate
from gauge_mc.run.open_run import RunRequest
from gauge_mc.run.parameters import NO_FORMAT, OF_SCANS, Parameters
from gauge_mc.run.settings import parse_time
from gauge_mc.run.state import TIME_LIMIT, Clock, Stop, saved_updates, show_progress
from gauge_mc.run.thermalisation import AUTO, SKIP
from gauge_mc.scans.carry_out import scan
from gauge_mc.scans.scan import Scan
from gauge_mc.signatures import checks_types, option_keywords, with_keywords

if TYPE_CHECKING:
    from gauge_mc.keywords import DetermineKeywords

FIXED_OPTIONS = ("configs", "separation", "measure", "format", "time_limit", *OF_SCANS)
"""Options of runs that a determination chooses itself."""

LEAST_GROWTH, MOST_GROWTH = 1.25, 2.0
"""Bounds of the factor by which the number of configurations grows from one fit to the next. A few
large steps leave little room for stopping at an error that is small by chance."""

MARGIN = 1.1
"""Factor by which more configurations are made than the error of the last fit asks for."""

LEAST_EXTENT, MULTIPLE = 8, 4
"""Smallest extent of a lattice, and the divisor of all of them, for the lanes of CPUs."""

PILOT_CONFIGS, PILOT_EXTENTS, PILOT_RATIO = 20, (8, 16, 32), 2.0
"""Configurations of a pilot run, extents of its lattice, and the largest ratio to them of the
extent that it may ask for."""

GRID = (0.99, 1.0, 1.01)
"""Couplings with which a scan begins, divided by that near the transition. With several on every
lattice, a maximum between them is that of the susceptibility."""

FRUITLESS, FALLEN = 5, 0.9
"""Successive fits without a number after which a determination without a time ends, and the ratio
to the previous systematic error from which on it has not fallen."""


def goals() -> dict[str, tuple[Fit, Goal]]:
    """Return the numbers that can be determined, each with its fit."""
    return {goal.name: (fit, goal) for fit in FITS.values() for goal in fit.goals}


def relative_error(value: float | str | None) -> float:
    """Read a relative error, such as ``0.005`` or ``0.5%``; 0 if there is none."""
    if value is None:
        return 0.0
    digits = str(value).strip()
    with suppress(ValueError):
        error = number(digits.removesuffix("%").strip()) / (100 if digits.endswith("%") else 1)
        if 0 < error < 1:
            return error
    raise UsageError(f"--error is '{shortened(digits)}'; give one such as 0.5% or 0.005.")


def lattice_of(extent: float, anisotropy: float = 1.0) -> Lattice:
    """Return the smallest suitable lattice of at least an extent, in lattice spacings in space."""
    extents = (MULTIPLE * math.ceil(size / MULTIPLE) for size in (extent, extent * anisotropy))
    space, along_t = (max(LEAST_EXTENT, size) for size in extents)
    return Lattice(space, space, space, along_t)


def extent_in_literature(goal: Goal, p: Parameters) -> tuple[float, str] | None:
    """Return the extent that a number needs, with the reason, if a length is in the literature."""
    scales = {scale.name: scale for scale in p.action.scales_at(GROUPS[p.group], p.beta)}
    if p.algorithm.labels or not (names := [name for name in goal.box if name in scales]):
        return None  # the lengths are those without quarks
    length = scales[names[0]].length(p.beta)
    reason = f"{names[0]}/a = {length:.3g} ({scales[names[0]].source})"
    return goal.box[names[0]] * length, reason


def beta_in_literature(goal: Goal, p: Parameters, extent: int) -> float | None:
    """Return the coupling at which an extent is that of `Goal.box`; None if no length is known."""
    pure = not (p.action.factors or p.algorithm.labels)
    for scale in p.action.scales if pure else ():
        betas = np.linspace(scale.least, scale.most, 1000)
        lengths = [goal.box.get(scale.name, math.nan) * scale.length(beta) for beta in betas]
        if scale.group == p.group and lengths[0] <= extent <= lengths[-1]:
            return round(float(np.interp(extent, lengths, betas)), 3)
    return None


def percent(error: float) -> str:
    """Return a relative error for people."""
    return f"{100 * error:.3g}%"


@dataclass(frozen=True)
class Look:
    """A fit after a block of configurations."""

    configurations: int
    """Number of configurations."""
    number: QuotedNumber | None = None
    """The number; None if the fit has none."""
    reason: str = ""
    """Why there is no number, as a clause; else empty."""

    @property
    def error(self) -> float:
        """The statistical and systematic errors in quadrature, divided by the value, or NaN."""
        n = self.number
        return math.hypot(n.error, n.systematic or 0.0) / abs(n.value) if n else math.nan

    def growth(self, error: float) -> float:
        """Return the factor by which statistics must grow for a relative error.

        The square of the statistical error is inversely proportional to the number of
        configurations, and the systematic error is taken as constant: if it exceeds the wanted one,
        or if there is no number, the factor is infinite.
        """
        if not self.number:
            return math.inf
        room = (error * self.number.value) ** 2 - (self.number.systematic or 0.0) ** 2
        return self.number.error**2 / room if room > 0 else math.inf


@documented
@dataclass(frozen=True)
class Determination:
    """A number with its error, and what was done for it."""

    name: str = result_field("Name of the number, such as ``r0``.")
    number: QuotedNumber | None = result_field("The number; null if none is known.")
    error: float = result_field("Its total error, divided by its value; null if there is none.")
    wanted: float = result_field("The wanted error; 0 if only a time was given.")
    reached: bool = result_field("Whether the wanted error is reached.")
    ended: str = result_field("Why the determination ended, as a clause.")
    stopped: str | None = result_field("Signal that stopped it; null if there was none.")
    configurations: Sequence[int] = result_field("Number of configurations at each fit.")
    remaining: float = result_field(
        "The time in seconds to the wanted error, if the square of the statistical error falls "
        "inversely with it and the systematic error stays; null if that is not known."
    )
    seconds: float = result_field("Duration of this call in seconds.")
    path: str = result_field("Directory of the run or of the scan.")
    report: str | None = result_field("File of the report; null if there is none.")

    def __str__(self) -> str:
        if self.number is None:
            return f"result: none, {self.ended}"
        goal = f", {percent(self.wanted)} wanted" if self.wanted else ""
        pending = not self.reached and math.isfinite(self.remaining)
        more = f"; about {duration(self.remaining)} more to the goal" if pending else ""
        return f"result: {self.number} (error {percent(self.error)}{goal}), {self.ended}{more}"


@dataclass(frozen=True)
class RunStudy:
    """A run, which grows by blocks."""

    path: Path
    """Its directory."""
    values: Mapping[str, Any]
    """Parameters and options of the execution, as for `gauge_mc.generate`."""

    @property
    def asked(self) -> int:
        """Number of configurations that it is to have so far; 0 if it has not begun."""
        run = Run(self.path)
        return run.read()[0].configs if run.begun() else 0

    @property
    def done(self) -> int:
        """Number of configurations that it has."""
        p = Run(self.path).read()[0] if self.asked else None
        return max(0, saved_updates(Run(self.path)) - p.thermalize) // p.separation if p else 0

    def advance(
        self, configs: int, limit: Mapping[str, Any], console: Console
    ) -> tuple[str | None, float]:
        """Continue up to a number of configurations."""
        values = {**self.values, "output": str(self.path), "configs": configs, **limit}
        before, start = saved_updates(Run(self.path)), self.done
        p = RunRequest(values).parameters()
        with show_progress(p.updates, Clock(before), console) as progress:
            result = generate(values, progress=False, on_update=progress)
        if not (gained := self.done - start):
            return result.stopped, math.nan
        # Without the start, and without measurements during the thermalisation.
        updating = result.times["update"] / (result.sweep - before) * p.separation
        return result.stopped, updating + (result.times["measure"] + result.times["write"]) / gained


@dataclass(frozen=True)
class ScanStudy(RunStudy):
    """A scan, to which couplings near the transition are added."""

    @property
    def asked(self) -> int:
        """See `RunStudy.asked`."""
        begun = (self.path / "scan.toml").is_file()
        return Scan.read(self.path).parameters.configs if begun else 0

    @property
    def done(self) -> int:
        """Mean number of configurations of the runs; see `RunStudy.done`."""
        members = Scan.read(self.path).members() if self.asked else []
        updates = sum(max(0, run.sweep() - run.parameters.thermalize) for run in members)
        return updates // sum(run.parameters.separation for run in members) if members else 0

    def advance(
        self, configs: int, limit: Mapping[str, Any], console: Console
    ) -> tuple[str | None, float]:
        """Continue the scan, and add couplings until none is missing; see `RunStudy.advance`."""
        start, began, runs = self.done, clock.monotonic(), 0
        values = {**self.values, "output": str(self.path), "configs": configs, **limit}
        result = scan(**values, progress=False)
        while not result.stopped and result.runs > runs:
            console.print(f"{result}, {duration(clock.monotonic() - began)}", soft_wrap=True)
            runs = result.runs
            result = scan(output=self.path, refine=True, skip=AUTO, progress=False, **limit)
        gained = self.done - start
        return result.stopped, (clock.monotonic() - began) / gained if gained else math.nan


@dataclass(frozen=True)
class DeterminationPlan:
    """A number that is to be determined, with the fit, the error and the time."""

    fit: Fit
    """The fit that quotes the number."""
    goal: Goal
    """The number."""
    options: Mapping[str, Any]
    """Options of the fit."""
    values: Mapping[str, Any]
    """Parameters and options of the execution that were given."""
    error: float
    """The wanted relative error; 0 if there is none."""
    seconds: float
    """The time; infinite if it is not limited."""
    began: float
    """When it began, by the monotonic clock."""
    console: Console
    """Where to say what is done."""

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return clock.monotonic() - self.began

    @property
    def limit(self) -> dict[str, Any]:
        """The rest of the time as an option of runs and scans; empty if it is not limited."""
        remaining = self.seconds - self.spent
        return {"time_limit": f"0:0:{max(1, int(remaining))}"} if math.isfinite(remaining) else {}

    def study(self) -> RunStudy:
        """Return the run or the scan, on a lattice that suits it."""
        goal, values = self.goal, dict(self.values)
        values |= {"separation": goal.separation, "format": NO_FORMAT}
        values |= {"measure": goal.measure} if goal.measure else {}
        output = values.pop("output", None)
        name = self._scan(values) if goal.extent else self._run(values)
        path = Path(output or RUNS / f"determine_{self.fit.name}_{name}")
        return ScanStudy(path, values) if goal.extent else RunStudy(path, values)

    def _run(self, values: dict[str, Any]) -> str:
        """Choose the lattice of a run, and return its name."""
        p = Parameters.from_values(values)
        if "lattice" not in values:
            extent, reason = extent_in_literature(self.goal, p) or self._by_pilot(p)
            p = replace(p, lattice=lattice_of(extent, p.action.anisotropy))
            values["lattice"] = str(p.lattice)
            words = f"{self.goal.name} needs an extent of {extent:.3g}, because {reason}"
            self.console.print(f"{words}: {p.lattice} is taken.", soft_wrap=True)
        return p.name

    def _scan(self, values: dict[str, Any]) -> str:
        """Choose the lattices and couplings of a scan, and return its name."""
        assert self.goal.extent
        extent = self.options.get(self.goal.extent.name)
        if not extent:
            raise UsageError(f"{self.goal.name} needs {self.goal.extent.flag}; add it.")
        usual = (f"{n * extent}x{n * extent}x{n * extent}x{extent}" for n in self.goal.aspects)
        values["lattice"] = str(values.get("lattice", ",".join(usual)))
        p = Parameters.from_values({**values, "lattice": values["lattice"].partition(",")[0]})
        beta = values.get("beta") or beta_in_literature(self.goal, p, extent)
        if not beta:
            raise UsageError(
                f"No length of {p.group} is known; name a --beta near {self.goal.name}."
            )
        values["beta"] = ",".join(f"{factor * float(beta):.5g}" for factor in GRID)
        return p.name.replace(f"_b{p.beta:.12g}_{p.lattice}", f"_nt{extent}", 1)

    def _by_pilot(self, p: Parameters) -> tuple[float, str]:
        """Return the extent that a number needs, by t0 of small lattices, with the reason."""
        (fit, goal), reason = goals()["t0"], ""
        options = {goal.options[0].name: equal_target(GROUPS[p.group])}
        for extent in PILOT_EXTENTS:
            lattice = lattice_of(extent, p.action.anisotropy)
            path = RUNS / f"determine_pilot_{replace(p, lattice=lattice).name}"
            values = {**self.values, "lattice": str(lattice), "output": str(path)}
            pilot = replace(self, fit=fit, goal=goal, options=options, values=values, error=0.0)
            self.console.print(f"pilot run {path}", soft_wrap=True)
            study = pilot.study()
            if stopped := study.advance(PILOT_CONFIGS, self.limit, self.console)[0]:
                raise GaugeError(
                    f"{path} was stopped by {stopped} before it could choose a lattice; repeat "
                    "the command, or name one with --lattice."
                )
            look = pilot.look(study)
            reason = f" ({look.reason})" if look.reason else ""
            length = math.sqrt(look.number.value) if look.number else math.inf
            if (size := self.goal.box["√t₀"] * length) <= PILOT_RATIO * extent:
                return size, f"√t₀/a = {length:.3g} (pilot run {path})"
        raise GaugeError(f"No pilot run tells the lattice{reason}; name one with --lattice.")

    def look(self, study: RunStudy) -> Look:
        """Fit, write the result to its file, and return the number."""
        skip = {SKIP.name: AUTO} if SKIP in self.fit.options else {}
        options = check_options(self.fit.options, {**self.options, **skip}, self.goal.name)
        ensemble, configs = FittedEnsemble([study.path]), study.done
        try:
            result = result_of(self.fit, ensemble, options)
        except UsageError:
            raise
        except GaugeError as error:
            return Look(configs, None, str(error).rstrip("."))
        result.write(ensemble.file_of(self.fit.file_of(result)))
        quoted = self.goal.number(result.result)
        return Look(configs, quoted, "" if quoted else result.unquoted())

    def sentence(self, look: Look, remaining: float) -> str:
        """Return a fit in one line, given the time in seconds that is left to the wanted error."""
        head = f"{counted(look.configurations, 'configuration')}, {duration(self.spent)}: "
        if look.number is None:
            return f"{head}no number yet, because {look.reason}"
        line = f"{head}{look.number}, error {percent(look.error)}"
        if not self.error or look.error <= self.error:
            return line
        if math.isinf(growth := look.growth(self.error)):
            return f"{line}; the systematic error alone exceeds {percent(self.error)}"
        about = f", about {duration(remaining)} more" if math.isfinite(remaining) else ""
        return f"{line}; {percent(self.error)} needs {growth:.3g} times the configurations{about}"

    def end(self, looks: Sequence[Look], stopped: str | None = None) -> str:
        """Return why the determination has ended, as a clause; empty if it goes on."""
        if looks[-1].error <= self.error:
            return "the wanted error is reached"
        if stopped == TIME_LIMIT or self.spent >= self.seconds:
            return "the time is spent"
        if stopped or math.isfinite(self.seconds):
            return f"stopped by {stopped}" if stopped else ""
        if len(looks) >= FRUITLESS and not any(look.number for look in looks[-FRUITLESS:]):
            return f"{FRUITLESS} fits in succession have no number, because {looks[-1].reason}"
        stuck = [look.number for look in looks[-2:] if math.isinf(look.growth(self.error))]
        shares = [(n.systematic or 0.0) / abs(n.value) for n in stuck if n]
        if len(shares) == 2 and shares[1] > FALLEN * shares[0]:
            return "the systematic error alone is larger and does not fall"
        return ""

    def carry_out(self) -> Determination:
        """Let the run or the scan grow until the determination ends; see `determine`."""
        from gauge_mc.reports.page import report  # with Matplotlib, which takes half a second

        with Stop() as stop:
            study, looks, ended, seconds = self.study(), list[Look](), "", math.nan
            self.console.print(str(study.path), soft_wrap=True)
            configs = max(study.asked, self.goal.configs)
            while not ended:
                stopped, latest = study.advance(configs, self.limit, self.console)
                seconds = seconds if math.isnan(latest) else latest
                looks.append(self.look(study))
                growth = looks[-1].growth(self.error)
                remaining = max(0.0, growth - 1) * looks[-1].configurations * seconds
                self.console.print(self.sentence(looks[-1], remaining), soft_wrap=True)
                stopped = stopped or stop(0.0)
                ended = self.end(looks, stopped)
                configs = next_configs(configs, growth)
        # A block that was stopped early may lack what the fit needs of new runs.
        last, page = next((look for look in reversed(looks) if look.number), looks[-1]), None
        with suppress(GaugeError):  # without any number there may be nothing to report
            page = report(study.path).file
        return Determination(
            self.goal.name,
            last.number,
            last.error,
            self.error,
            last.error <= self.error,
            ended,
            stopped if stopped != TIME_LIMIT else None,
            [look.configurations for look in looks],
            remaining,
            self.spent,
            str(study.path),
            page,
        )


def next_configs(configs: int, growth: float) -> int:
    """Return the number of configurations at which to fit next, given `Look.growth`."""
    return math.ceil(configs * min(max(MARGIN * growth, LEAST_GROWTH), MOST_GROWTH))


def _keywords() -> Iterator[inspect.Parameter]:
    """Yield the options of runs and of numbers as keyword arguments."""
    signature: Any = inspect.signature(generate)
    yield from (each for each in signature.looked_up if each.name not in FIXED_OPTIONS)
    yield from option_keywords(x for _, goal in goals().values() for x in goal.fit_options)


def plan_of(
    quantity: str,
    error: float | str | None,
    time: float | str | None,
    values: Mapping[str, Any],
    progress: bool = True,
) -> DeterminationPlan:
    """Return the plan of a determination; see `determine`."""
    if quantity not in goals():
        raise UsageError(f"There is no number '{quantity}'{nearest(quantity, goals())}")
    (fit, goal) = goals()[quantity]
    seconds = math.inf if time is None else parse_time(time, "--time")
    if error is None and math.isinf(seconds):
        raise UsageError(f"{quantity} needs --error, --time or both, as in --error 1% --time 10m.")
    if find_processes().size > 1:
        raise UsageError("gauge-mc determine is one process; start it without mpirun or srun.")
    named = {name: value for name, value in values.items() if value is not None}
    if refused := named.keys() & {*FIXED_OPTIONS}:
        raise UsageError(f"{min(refused)} is chosen for {quantity}; leave it out.")
    options = {x.name: named.pop(x.name) for x in goal.fit_options if x.name in named}
    checked = named_values(None, named)
    console = Console(quiet=not progress or bool(checked.get("quiet")))
    limits = relative_error(error), seconds, clock.monotonic()
    return DeterminationPlan(fit, goal, options, checked, *limits, console)


@with_keywords(_keywords)
@checks_types
def determine(
    what: str,
    error: float | str | None = None,
    time: float | str | None = None,
    *,
    output: str | Path | None = None,
    progress: bool = True,
    **options: Unpack[DetermineKeywords],
) -> Determination:
    """Determine a number, such as r0, with a wanted error or within a time.

    The lattice is chosen from a length that is known, or by a pilot run. A run or a scan then grows
    by blocks, each followed by a fit, until the total relative error is reached, the time is spent
    or a signal comes. The same call continues it.

    Parameters
    ----------
    what : str
        Name of the number.
    error : float or str, optional
        Wanted relative error, statistical and systematic in quadrature, such as 0.005 or ``0.5%``.
    time : float or str, optional
        Time in seconds, or such as ``10m``.
    output : path, optional
        Directory of the run or scan; by default ``runs/determine_`` and the names of the fit and of
        the parameters.
    progress : bool
        Whether to show progress.
    **options : object
        Options of the fit, and fields of `Parameters` and `Execution` by name.

    Returns
    -------
    Determination
        The number, and what was done for it.

    Raises
    ------
    UsageError
        If a value is invalid, or neither `error` nor `time` is given.
    GaugeError
        If no lattice can be chosen, or the run cannot be carried out.
    """
    return plan_of(what, error, time, {**options, "output": output}, progress).carry_out()

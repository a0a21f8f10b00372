"""The energies of trajectories of hybrid Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from gauge_mc.actions import ensemble_keys
from gauge_mc.analysis.table_series import Skips, Tables, read_rows
from gauge_mc.analysis.timeseries import Estimate, Replicas, estimate
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP
from gauge_mc.fits import FITS, DataResult, Fit
from gauge_mc.fits.quoted import QuotedNumber, empty_table, quoted_number
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures import curves, pictures
from gauge_mc.plots.runs import TablePlot, caution
from gauge_mc.quoting import counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.thermalisation import SKIP
from gauge_mc.updates.integrators import INTEGRATORS, TimeScales, TrajectoryLevel, gauge_level
from gauge_mc.updates.terms import ACTION_TERMS, NamedMonomial, terms_of_action, weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes


TRAJECTORY_COLUMNS = ("delta_h", "accepted", "steps", "action", "force", "largest_force")
"""Columns of the table of trajectories that are analysed."""

CHOICES = ("integrator", "length", "levels")
"""Keys of the header that say what the trajectories are, besides those of terms of the action."""

FAILED = "failed"
"""Column that says whether a solver has failed in a trajectory; only runs with quarks have it."""

FORCE, LARGEST_FORCE, ITERATIONS = "force", "largest_force", "iterations"
"""Columns of a term of the action of quarks, before an underscore and its name. Those of the gauge
action have no name."""

SMALLEST, LARGEST = "smallest_eigenvalue", "largest_eigenvalue"
"""Columns of terms with rational functions: the ends of the spectrum."""

OF_TERMS = (FORCE, LARGEST_FORCE, ITERATIONS, SMALLEST, LARGEST)
"""Columns of terms of the action of quarks, without their names."""

GAUGE = "gauge"
"""Name of the gauge action among the terms of the action."""

UNEQUAL = 4.0
"""Ratio of the products of force and step of two levels from which on a hint is given."""


@dataclass(frozen=True)
class TrajectoryTable:
    """The trajectories of an ensemble.

    Attributes
    ----------
    ensemble : dict of str to str
        Group, beta, lattice, action, integrator and length, as far as the header states them.
    sweeps : ndarray of int64, shape (trajectories,)
        Numbers of the updates, ascending in every chain.
    replicas : Replicas
        Division of the trajectories into chains.
    columns : dict of str to ndarray, shape (trajectories,)
        The columns of the table.
    """

    ensemble: dict[str, str]
    sweeps: NDArray[np.int64]
    replicas: Replicas
    columns: dict[str, NDArray[np.float64]]

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Whether a solver has failed, so that the energy is not known, in each trajectory."""
        return self.columns.get(FAILED, np.zeros(self.sweeps.size)) > 0

    @property
    def terms(self) -> list[str]:
        """Names of the terms of the action of quarks."""
        return [name.removeprefix(f"{FORCE}_") for name in self.columns if _is_of_term(name)]

    def forces(self, term: ActionTerm, ending: str = "") -> TermForces:
        """Return the forces of a term, whose columns have an ending."""
        columns, valid = self.columns, ~self.failed
        force = float(np.sqrt(np.mean(columns[f"{FORCE}{ending}"][valid] ** 2)))
        step = float(self.ensemble.get("length", "nan")) / max(term.forces - 1, 1)
        counts = columns.get(f"{ITERATIONS}{ending}", np.zeros(1))
        largest = float(columns[f"{LARGEST_FORCE}{ending}"][valid].max())
        return TermForces(*term, step, force, largest, force * step, float(counts.mean()))


class ActionTerm(NamedTuple):
    """Where a term of the action acts.

    Attributes
    ----------
    name : str
        Its name.
    level : int
        Its level, from 0 for the outermost one.
    forces : int
        Number of its forces in a trajectory.
    """

    name: str
    level: int
    forces: int


@documented
@dataclass(frozen=True)
class TermForces:
    """Forces of a term of the action, and what they cost."""

    name: str = result_field("Name of the term.")
    level: int = result_field("Level on which it acts, from 0 for the outermost one.")
    forces: int = result_field("Number of its forces in a trajectory.")
    step: float = result_field("Mean time between two of them.")
    force: float = result_field("Root mean square of the force on a link.")
    largest_force: float = result_field("Largest force on a link.")
    kick: float = result_field("`force` times `step`.")
    iterations: float = result_field("Iterations of its solvers in a trajectory.")


@documented
@dataclass(frozen=True)
class Trajectories:
    """Averages over the trajectories of an ensemble."""

    acceptance: Estimate = result_field("Fraction of the trajectories that were accepted.")
    predicted: float = result_field(
        "erfc(sqrt(<dH>) / 2), the acceptance if dH is normal; NaN if <dH> is negative."
    )
    change: Estimate = result_field("<dH>.")
    weight: Estimate = result_field("<exp(-dH)>, which is 1 in equilibrium.")
    action: Estimate = result_field("Action per site.")
    steps: int = result_field("Number of steps of a trajectory.")
    forces: int = result_field("Number of forces in a trajectory.")
    cost: float = result_field(
        "Number of forces for one independent configuration: 2 tau_int of the action times "
        "`forces`."
    )
    force: float = result_field("Root mean square force of a link at the end of a trajectory.")
    largest_force: float = result_field("Largest force of a link at the end of a trajectory.")
    trajectories: int = result_field("Number of trajectories.")
    failed: int = result_field("Number of those in which a solver has failed.")
    terms: list[TermForces] = result_field("The terms of the action, from the outermost level.")
    iterations: float = result_field("Iterations of all solvers in a trajectory.")
    cost_in_iterations: float = result_field(
        "Iterations for one independent configuration: 2 tau_int of the action times `iterations`."
    )
    ensemble: dict[str, str] = result_field(
        "Group, beta, lattice, action, integrator and length, as far as the header states them."
    )
    cautions: list[str] = result_field("Cautions about the series.")


def read_trajectories(
    tables: Tables, skip: Skips = 0, terms: Sequence[str] = ()
) -> TrajectoryTable:
    """Read the table of trajectories, or those of several chains."""
    table, replicas = read_rows(tables, skip)
    source = tables if isinstance(tables, Path) else ", ".join(map(str, tables))
    if len(table) < 2:
        raise GaugeError(
            f"{source} has {len(table) or 'no'} trajectory after update {skip}; at least two are "
            "needed, so continue the run with more --configs."
        )
    more = [name for name in table if name == FAILED or _is_of_term(name, OF_TERMS)]
    columns = {name: np.asarray(table[name], float) for name in (*TRAJECTORY_COLUMNS, *more)}
    if not all(np.isfinite(column).all() for column in columns.values()):
        raise GaugeError(
            f"{source} contains a value that is not a number, as from steps that were much too "
            "large; generate it again with more --steps."
        )
    keys = (*ensemble_keys(), *CHOICES, *terms)
    ensemble = {key: table.header[key] for key in keys if key in table.header}
    return TrajectoryTable(ensemble, table[SWEEP], replicas, columns)


def _is_of_term(column: str, kinds: Sequence[str] = (FORCE,)) -> bool:
    return column.startswith(tuple(f"{kind}_" for kind in kinds))


def trajectory_averages(
    table: TrajectoryTable, gauge: ActionTerm, quarks: Sequence[ActionTerm] = ()
) -> Trajectories:
    """Return averages over trajectories."""
    c, valid = table.columns, ~table.failed
    if valid.sum() < 2:
        raise GaugeError(
            f"Solvers have failed in {(~valid).sum()} of {valid.size} trajectories; averages need "
            "at least two others."
        )
    weights = np.where(valid, np.exp(-c["delta_h"]), 0.0)
    every = table.replicas
    accepted, weight, action = map(every.estimate, (c["accepted"], weights, c["action"]))
    change = every.where(valid).estimate(c["delta_h"][valid])
    slowest = max((accepted, change, weight, action), key=lambda x: x.tau_int)
    terms = [table.forces(quark, f"_{quark.name}") for quark in quarks]
    forces = table.forces(gauge)
    iterations = sum(term.iterations for term in terms)
    return Trajectories(
        accepted,
        math.erfc(math.sqrt(change.value) / 2) if change.value >= 0 else math.nan,
        change,
        weight,
        action,
        int(c["steps"][-1]),
        gauge.forces,
        2 * action.tau_int * gauge.forces,
        forces.force,
        forces.largest_force,
        table.sweeps.size,
        int((~valid).sum()),
        sorted([*terms, forces], key=lambda term: term.level),
        iterations,
        2 * action.tau_int * iterations,
        table.ensemble,
        [
            *every.cautions(table.sweeps, c["action"]),
            *slowest.length_cautions,
            *([] if abs(weight.value - 1) <= TRUSTED * weight.error else [UNTHERMALISED]),
        ],
    )


UNTHERMALISED = (
    "⟨exp(−ΔH)⟩ is not 1 within its error: the chain has not thermalised, is too short, or its "
    "steps are too large; leave more out with --skip, or give more --steps."
)
"""Caution that the energies are not distributed as they must be."""


def unequal_levels(terms: Sequence[TermForces]) -> str:
    """Return which level is too coarse or too fine for its forces, in a sentence; or nothing.

    The error of an integrator grows with the product of force and step, so that the steps of a
    level are spent in vain if that of another one is much larger. This is a rule of thumb: what
    counts in the end is how forces change.
    """
    kicks: dict[int, float] = {}
    for term in terms:
        kicks[term.level] = max(kicks.get(term.level, 0.0), term.kick)
    coarse, fine = (pick(kicks, key=lambda level: kicks[level]) for pick in (max, min))
    if not kicks[coarse] >= UNEQUAL * kicks[fine]:
        return ""
    return (
        f"The force times the step is {kicks[coarse]:.2g} on level {coarse}, but "
        f"{kicks[fine]:.2g} on level {fine}: give level {coarse} more steps if the acceptance is "
        f"low, or level {fine} fewer if it is high."
    )


TRUSTED = 3.0
"""Deviation of <exp(-dH)> from 1, in errors, above which a caution is given."""


class HmcResult(DataResult[Trajectories]):
    """Averages over the trajectories of an ensemble after the thermalisation."""

    observable: ClassVar[str] = "acceptance, energies and forces of trajectories"
    units: ClassVar[str] = "tau_int in trajectories, cost in forces"

    def report(self) -> list[Any]:
        """Return a table of the averages, and cautions."""
        f = self.found
        title = f"{f.trajectories} trajectories of {counted(f.steps, 'step')}"
        table = empty_table(title, ["quantity"], ["value", "τ_int"])
        for name, average in self._averages():
            table.add_row(name, str(average), average.format_tau())
        if math.isfinite(f.predicted):  # not so where noise makes the mean of ΔH negative
            table.add_row("erfc(√⟨ΔH⟩/2)", f"{f.predicted:.4g}", "")
        if len(f.terms) == 1:
            table.add_row("force, rms", f"{f.force:.4g}", "")
            table.add_row("force, largest", f"{f.largest_force:.4g}", "")
            table.add_row("forces per trajectory", str(f.forces), "")
            table.add_row("forces per independent configuration", f"{f.cost:.3g}", "")
            return [table, *f.cautions]
        if f.failed:
            table.add_row("trajectories with a failed solver", str(f.failed), "")
        table.add_row("iterations per trajectory", f"{f.iterations:.4g}", "")
        table.add_row("iterations per independent configuration", f"{f.cost_in_iterations:.3g}", "")
        hint = unequal_levels(f.terms)
        return [table, self._terms(), *f.cautions, *([hint] if hint else [])]

    def quoted(self) -> list[QuotedNumber]:
        """Return the acceptance and the energies."""
        return [quoted_number(name, x) for name, x in self._averages()[:3]]

    def _averages(self) -> list[tuple[str, Estimate]]:
        """Return the names of the averages, and their values."""
        f = self.found
        return [
            ("acceptance", f.acceptance),
            ("⟨ΔH⟩", f.change),
            ("⟨exp(−ΔH)⟩", f.weight),
            ("action per site", f.action),
        ]

    def _terms(self) -> Table:
        """Return a table of the terms of the action, with the iterations of their solvers."""
        heads = ("level", "forces", "step", "rms F", "max F", "F·step", "solver")
        table = empty_table("terms of the action", ["term"], heads)
        table.columns[0].no_wrap = True
        for term in self.found.terms:
            sizes = (f"{x:.3g}" for x in (term.step, term.force, term.largest_force))
            solver = f"{term.iterations:.0f}" if term.iterations else ""
            counts = (str(term.level), str(term.forces))
            table.add_row(term.name, *counts, *sizes, f"{term.kick:.2g}", solver)
        return table


class HmcFit(Fit):
    """Acceptance, <exp(-dH)> and cost of trajectories."""

    name: ClassVar[str] = "hmc"
    summary: ClassVar[str] = "acceptance, ΔH and cost of hybrid Monte Carlo"
    columns: ClassVar[tuple[str, ...]] = TRAJECTORY_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (Trajectories, TermForces)
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> HmcResult:
        """Average over the trajectories of a table; see `Fit.carry_out`."""
        trajectories = read_trajectories(tables, options.get(SKIP.name, 0), weights())
        return HmcResult(trajectory_averages(trajectories, *terms_of(trajectories)))


def terms_of(table: TrajectoryTable) -> tuple[ActionTerm, list[ActionTerm]]:
    """Return where the gauge action acts, and the other terms of the action."""
    ensemble = table.ensemble
    levels = TrajectoryLevel.several(ensemble.get("levels", ""))
    count, level = max(len(levels), 1), gauge_level(levels)
    kinds = {x.name: x.items for x in ACTION_TERMS.values()}
    kinds[NamedMonomial.option] = NamedMonomial
    values = {name: items.several(ensemble.get(name, "")) for name, items in kinds.items()}
    terms = terms_of_action(values, count)
    acting = {level, *(term.level for term in terms)}
    scales = TimeScales.of(levels, INTEGRATORS[ensemble["integrator"]], acting)
    forces = scales.forces(int(table.columns["steps"][-1]))
    action_terms = [ActionTerm(term.title, term.level, forces[term.level]) for term in terms]
    return ActionTerm(GAUGE, level, forces[level]), action_terms


FITS.register(HmcFit())


HEIGHT = 3.2
"""Height of the frame of the energy in inches."""

LOWER = 1.8
"""Height of the frames of forces and of iterations in inches."""


class HmcPlot(TablePlot):
    """The change of the energy in every trajectory of a run, and its distribution.

    With quarks, the forces of all terms of the action and the iterations of their solvers as well.
    """

    name = "hmc"
    summary = "ΔH with its distribution, acceptance; forces and iterations of quarks"
    fit: ClassVar[str] = "hmc"
    subject: ClassVar[str] = "The energy of trajectories"
    columns: ClassVar[tuple[str, ...]] = TRAJECTORY_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def picture(self, table: Path, options: dict[str, Any]) -> pictures.Picture:
        """Show the change of the energy along the Markov chain beside its distribution.

        Rejected trajectories are marked. The normal distribution with the measured <dH>, whose
        variance is 2 <dH>, is drawn for comparison.
        """
        read = read_trajectories(table, options.get(SKIP.name, 0))
        caution(*trajectory_averages(read, *terms_of(read)).cautions)
        valid = ~read.failed  # the energy of the others is not known
        sweeps, change = read.sweeps[valid], read.columns["delta_h"][valid]
        rejected = read.columns["accepted"][valid] == 0
        mean, weight = estimate(change), estimate(np.exp(-change))
        acceptance = estimate(read.columns["accepted"])
        style = curves.series_line(pictures.look(0)["color"])
        crosses = {
            "marker": "x",
            "markersize": 3,
            "linestyle": "none",
            "color": pictures.look(1)["color"],
        }
        energies = rf"$\langle\Delta H\rangle={pictures.minus(mean)}$"
        weights = rf"$\langle e^{{-\Delta H}}\rangle={pictures.minus(weight)}$"
        series = [
            curves.ZERO,
            pictures.Stroke(sweeps, change, style=style),
            pictures.Stroke(sweeps[rejected], change[rejected], style=crosses),
            pictures.KeyEntry(style=style, text=energies),
            pictures.KeyEntry(style=crosses, text=f"rejected; acceptance {acceptance}"),
            pictures.KeyEntry(style={"linestyle": "none"}, text=weights),
        ]
        beside: list[pictures.Mark] = [
            pictures.Sketch(lambda axes: axes.sharey(axes.figure.axes[0])),
            pictures.Sketch(
                partial(
                    curves.draw_distribution,
                    history=curves.History("", sweeps, change),
                    look=pictures.look(0),
                )
            ),
        ]
        if mean.value > 0:
            words = r"normal distribution of variance $2\,\langle\Delta H\rangle$"
            fine = np.linspace(change.min(), change.max(), 200)
            beside.append(curves.normal_distribution(fine, mean.value, 2 * mean.value, words))

        def finish_series(axes: Axes) -> None:
            axes.margins(x=0.02)
            curves.integer_ticks(axes)  # in all frames of time series

        def finish_distribution(axes: Axes) -> None:
            axes.tick_params(labelleft=False)  # the labels are those of the time series
            curves.finish_distribution(axes)

        lower = _lower_frames(read) if read.terms else []
        rows = 1 + len(lower) // 2
        frames = [
            pictures.Frame(series, "", r"$\Delta H$", finish=finish_series),
            pictures.Frame(beside, "distribution", finish=finish_distribution),
            *lower,
        ]
        frames[-2] = replace(frames[-2], x="update")
        ratios = (HEIGHT, *[LOWER] * (rows - 1))
        layout = {"nrows": rows, "ncols": 2, "width_ratios": (4, 1.2), "height_ratios": ratios}
        return pictures.Picture(frames, sum(ratios), columns=2, layout=layout)


PLOTS.register(HmcPlot())


def _lower_frames(table: TrajectoryTable) -> list[pictures.Frame]:
    """Return the forces of the terms of the action, and the iterations of their solvers.

    The ends of the spectrum follow where there is a rational function. Each row of frames has a
    series, and room for the names of the terms beside it.
    """
    valid = ~table.failed
    share = pictures.Sketch(lambda axes: axes.sharex(axes.figure.axes[0]))
    forces, iterations, ends = (list[pictures.Mark]([share]) for _ in range(3))
    names = list[pictures.Mark]()
    endings = {GAUGE: "", **{name: f"_{name}" for name in table.terms}}
    for place, (name, ending) in enumerate(endings.items()):
        style = curves.series_line(pictures.look(place)["color"])

        def curve(
            kind: str, of: Any = valid, style: Any = style, ending: str = ending
        ) -> pictures.Stroke:
            values = table.columns[f"{kind}{ending}"]
            return pictures.Stroke(table.sweeps[of], values[of], style=style)

        forces.append(curve(FORCE))
        names.append(pictures.Stroke([], [], style={**style, "label": name}))
        if table.columns.get(f"{ITERATIONS}{ending}", np.zeros(1)).any():
            iterations.append(curve(ITERATIONS, slice(None)))
        ends += [curve(kind) for kind in (SMALLEST, LARGEST) if f"{kind}{ending}" in table.columns]

    def show_names(axes: Axes) -> None:
        axes.axis("off")
        axes.legend(loc="upper left", borderaxespad=0)

    rows = [
        pictures.Frame(forces, "", r"rms $|F|$", {"yscale": "log"}),
        pictures.Frame(names, finish=show_names),
        pictures.Frame(iterations, "", "iterations", {"ylim": (0, None)}),
        NOTHING,
        pictures.Frame(ends, "", "ends of the spectrum", {"yscale": "log"}),
        NOTHING,
    ]
    return rows if any(name.startswith(f"{SMALLEST}_") for name in table.columns) else rows[:4]


NOTHING = pictures.Frame([], finish=lambda axes: axes.axis("off"))
"""Room without a frame."""

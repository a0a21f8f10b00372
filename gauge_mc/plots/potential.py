"""The static potential with its fit."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.potential.static_potential import StaticPotential, short_chi2
from gauge_mc.analysis.potential.window_fits import ROOT_SIGMA, WindowFit
from gauge_mc.errors import UsageError
from gauge_mc.files.input import open_regular
from gauge_mc.files.table import ContentMatch
from gauge_mc.fits.potential import TABLES, PotentialFit, read_result
from gauge_mc.fits.shared.fitted_tables import (
    FitOfOtherTablesError,
    match_of,
    refuses,
    tables_of_result,
)
from gauge_mc.fits.shared.tables import tables_with_columns
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.curves import require
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import minus, typeset
from gauge_mc.plots.figures.looks import WIDTH, look
from gauge_mc.plots.runs.cautions import caution
from gauge_mc.plots.runs.labels import labels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_LIMIT = 3.0
"""Minimum half-width of the axis of residuals, in standard deviations."""


RESULT = Option(
    "result",
    str,
    "Name of the file of fit potential in each run, such as potential_25.json.",
    "potential.json, or the only potential_*.json",
    "NAME",
)
"""The option of all plots that show the result of a fit of the potential."""


Runs = Sequence[tuple[str, StaticPotential]]
"""Label and result of each run."""


class PlotOfPotentials(Plot):
    """A plot that shows the results of fits of the potential, of one or more runs in one frame."""

    options: ClassVar[tuple[Option, ...]] = (RESULT,)

    @abstractmethod
    def plot(self, runs: Runs, path: Path) -> None:
        """Plot the results to a file."""

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all runs in one frame; see `Plot.draw`."""
        results = [read_potential(run, options.get(RESULT.name)) for run in runs]
        self.plot(list(zip(labels_of(runs), results, strict=True)), file)
        return []


class PotentialPlot(PlotOfPotentials):
    """V(R) of one or more runs with fits, error bands and residuals."""

    name = "potential"
    summary = "V(R) with its fit and residuals (needs fit potential)"

    def plot(self, runs: Runs, path: Path) -> None:
        """Plot the results; see `plot_potential`."""
        plot_potential(runs, path)


PLOTS.register(PotentialPlot())


def result_of(run: Path, name: str | None = None) -> Path:
    """Return the file of a fit of the potential of a run, which need not exist.

    Parameters
    ----------
    run : Path
        The run directory.
    name : str, optional
        Name of the file; by default ``potential.json``, or else the only ``potential_*.json``.

    Raises
    ------
    UsageError
        If there are several and none is named.
    """
    usual = Path(PotentialFit().file)
    path = run / (name or usual)
    if name or path.exists():
        return path
    found = sorted(run.glob(f"{usual.stem}_*{usual.suffix}"))
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise UsageError(
            f"{run} has several results of fit potential; choose one of {names} with {RESULT.flag}."
        )
    return found[0] if found else path


def read_potential(run: Path, name: str | None = None) -> StaticPotential:
    """Return the fitted potential of a run, if it belongs to the table that the run has now.

    A caution is noted if rows have been added to the table since. Without a table the result
    stands for itself.

    Parameters
    ----------
    run : Path
        The run directory.
    name : str, optional
        See `result_of`.

    Raises
    ------
    UsageError
        If there are several results and none is named.
    GaugeError
        If the result of the fit does not exist, is damaged, or is of another table; see
        `gauge_mc.fits.shared.fitted_tables.refuses`.
    """
    path = result_of(run, name)
    result = read_result(path)
    tables = [*tables_with_columns(run, TABLES[result.source])]
    if not tables:
        return result
    match = match_of(tables_of_result(path), tables)
    if refuses(match):
        raise _of_other_tables(path, tables[0], match)
    if match is ContentMatch.GROWN:
        caution(
            f"{path} was fitted to {result.configurations} configurations before rows were added "
            f"to {tables[0]}; run gauge-mc fit potential {quote(str(run))} to update it."
        )
    elif match is None:
        _caution_number(path, tables[0], result)
    return result


def _of_other_tables(path: Path, table: Path, match: ContentMatch | None) -> FitOfOtherTablesError:
    """Return the error for a result that a run has kept, but that is not of its table."""
    reason = {
        ContentMatch.GROWN: f"was made before the last rows of {table.name}",
        ContentMatch.OTHER: f"was made from another table than {table.name} is now",
        None: f"does not say whether it was made from the present {table.name}",
    }[match]
    return FitOfOtherTablesError(
        f"{path} {reason}, so that it is not shown; make it again with gauge-mc fit potential "
        f"{quote(str(path.parent))}."
    )


def _caution_number(path: Path, table: Path, result: StaticPotential) -> None:
    """Note a caution if a table has another number of configurations than were fitted.

    More is not known of results of earlier versions.
    """
    found = _configurations(table)
    if found < result.configurations or (found > result.configurations and not result.skip):
        caution(
            f"{path} was fitted to {result.configurations} configurations, but {table} "
            f"contains {found}; run gauge-mc fit potential {quote(str(path.parent))} to update it."
        )


def _configurations(table: Path) -> int:
    """Count the configurations in a table from its first column alone, since it may be long."""
    with open_regular(table, "a table") as file:
        rows = (row for row in file if not row.startswith(b"#"))
        next(rows, None)  # the names of the columns
        return len({row.partition(b",")[0] for row in rows})


def plot_potential(runs: Sequence[tuple[str, StaticPotential]], path: Path) -> None:
    """Plot V(R) with the fit with free B, its error band, and the residuals, for one or more runs.

    Points outside the fitted window are hollow, and the fit is dashed there. Without a fit that
    can be trusted the points stand alone, and the legend says so. For a single run, the upper axis
    shows R in fm.

    Parameters
    ----------
    runs : sequence of (str, StaticPotential)
        Label and result of each run.
    path : Path
        File to write; its ending determines the format.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there is no run.
    """
    require(runs)
    several, fitted = len(runs) > 1, any(result.free for _, result in runs)
    height = 4.05 + 1.35 * fitted + several * 0.25 * (len(runs) + 1)
    with figure_file(path, (WIDTH, height)) as figure:
        panels = figure.subplots(1 + fitted, sharex=True, height_ratios=(3, 1)[: 1 + fitted])
        upper, lower = np.ravel(panels)[[0, -1]]
        residuals = [
            _draw(upper, lower, look(i), _legend(label, result.free.fit, several), result)
            if result.free
            else _draw_points(upper, look(i), label, result)
            for i, (label, result) in enumerate(runs)
        ]
        upper.set_ylabel(r"$a\,V(R)$")
        upper.set_xlim(0, 1.04 * max(one.distance for _, result in runs for one in result.points))
        if fitted:
            limit = max(LEAST_LIMIT, 1.1 * max(residuals))
            for i, result in [(i, result) for i, (_, result) in enumerate(runs) if result.free]:
                _mark_outside(lower, look(i), result, limit)
            _finish_residuals(lower, limit)
            figure.align_ylabels()
        lower.set_xlabel("$R/a$")
        if several:
            figure.legend(loc="outside upper center", ncols=2, columnspacing=1.0)
        else:
            upper.legend(loc="lower right")
            if runs[0][1].free:
                _add_physical_axis(upper, runs[0][1].free.fit.spacing.value)


def _finish_residuals(axes: Axes, limit: float) -> None:
    """Label the frame of the residuals, and shade one standard deviation."""
    axes.axhspan(-1, 1, color="0.9", zorder=-2)
    axes.axhline(0, color="0.4", linewidth=0.8, zorder=-1)
    axes.set_ylim(-limit, limit)
    axes.set_ylabel("residual/error")


def _draw_points(axes: Axes, look: dict[str, Any], label: str, result: StaticPotential) -> float:
    """Draw V(R) without a trusted fit, and return 0, since there are no residuals."""
    r, value, error = np.array(
        [(one.distance, one.potential.value, one.potential.error) for one in result.points]
    ).T
    style = {**look, "linestyle": "none", "markerfacecolor": "white"}
    label = f"{typeset(label)}\nno fit that can be trusted"
    axes.errorbar(r, value, error, zorder=3, **style, label=label)
    return 0.0


def _draw(
    upper: Axes, lower: Axes, look: dict[str, Any], label: str, result: StaticPotential
) -> float:
    """Draw the points, the fit with its band, and the residuals.

    Returns
    -------
    float
        Largest residual of a fitted point, including its error bar.
    """
    fit = result.trusted().fit
    r = np.array([one.distance for one in result.points])
    value = fit.continuum(result.points)
    error = np.array([one.potential.error for one in result.points])
    residual = _residuals(result)
    fitted = (r >= fit.r_min - 1e-9) & (r <= fit.r_max + 1e-9)
    for some, face in ((fitted, look["color"]), (~fitted, "white")):
        style = {**look, "linestyle": "none", "markerfacecolor": face}
        upper.errorbar(r[some], value[some], error[some], zorder=3, **style)
        lower.errorbar(r[some], residual[some], np.ones(some.sum()), zorder=3, **style)
    for low, high, dashes in ((0.9 * r[0], fit.r_min, "--"), (fit.r_min, fit.r_max, "-")):
        x = np.linspace(low, high, 200)
        y, band = fit.potential(x)
        upper.plot(x, y, dashes, color=look["color"])
        upper.fill_between(x, y - band, y + band, color=look["color"], alpha=0.25, linewidth=0)
    upper.errorbar([], [], [], **look, label=label)
    return float(np.abs(residual[fitted]).max()) + 1.0


def _residuals(result: StaticPotential) -> NDArray[np.float64]:
    """Return the residuals of all points, in units of their errors."""
    r = np.array([one.distance for one in result.points])
    fit = result.trusted().fit
    error = np.array([one.potential.error for one in result.points])
    return np.asarray((fit.continuum(result.points) - fit.potential(r)[0]) / error)


def _mark_outside(axes: Axes, look: dict[str, Any], result: StaticPotential, limit: float) -> None:
    """Mark residuals outside the frame (of points that were not fitted) by arrows at its edge."""
    for one, residual in zip(result.points, _residuals(result), strict=True):
        if abs(residual) > limit:
            side = math.copysign(1, residual)
            style = {"color": look["color"], "marker": "^" if side > 0 else "v"}
            edge = 0.9 * side * limit
            axes.plot([one.distance], [edge], markerfacecolor="white", linestyle="none", **style)


def _add_physical_axis(axes: Axes, spacing: float) -> None:
    """Add an upper axis with R in fm, if the lattice spacing in fm is known."""
    if math.isfinite(spacing):
        axes.tick_params(which="both", top=False)
        functions = (lambda r: r * spacing, lambda x: x / spacing)
        scale = rf"$\sqrt{{\sigma}}={ROOT_SIGMA:g}$ MeV"
        axes.secondary_xaxis("top", functions=functions).set_xlabel(
            f"$R$ (fm), with $a$ from {scale}", labelpad=6
        )


def _legend(label: str, fit: WindowFit, brief: bool) -> str:
    """Return the label of a run and the results of its fit as text for a legend."""
    lines = [
        [rf"$\sigma a^2={fit.sigma}$", f"$B={minus(fit.B)}$", f"$aA={minus(fit.A)}$"],
        [f"$r_0/a={fit.r0}$", _quality(fit), f"$a={fit.spacing}$ fm"],
    ]
    known = [[item for item in line[: 3 - brief] if "nan" not in item] for line in lines]
    return "\n".join([typeset(label), *(",  ".join(line) for line in known)])


def _quality(fit: WindowFit) -> str:
    """Return chi2 with its number of degrees of freedom or its expectation value, as text."""
    if fit.correlated:
        return rf"$\chi^2/\mathrm{{dof}}={fit.chi2:.1f}/{fit.dof}$"
    chi2, expected = short_chi2(fit.chi2), short_chi2(fit.chi2_expected)
    return rf"$\chi^2/\langle\chi^2\rangle={chi2}/{expected}$"

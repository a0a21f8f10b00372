"""The static potential with its fit."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import UsageError
from gauge_mc.files.input import open_regular
from gauge_mc.files.table import ContentMatch
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
from gauge_mc.plots.figures.labels import minus, typeset
from gauge_mc.plots.figures.looks import look
from gauge_mc.plots.figures.pictures import (
    HOLLOW,
    Frame,
    Guide,
    Mark,
    Picture,
    Sketch,
    Stroke,
    Symbols,
)
from gauge_mc.plots.runs.cautions import caution
from gauge_mc.plots.runs.labels import labels_of
from gauge_mc.quantities.potential.analysis.static_potential import StaticPotential, short_chi2
from gauge_mc.quantities.potential.analysis.window_fits import ROOT_SIGMA, WindowFit
from gauge_mc.quantities.potential.fits.potential import TABLES, PotentialFit, read_result

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
    def picture(self, runs: Runs) -> Picture:
        """Return the figure of the results.

        Raises
        ------
        GaugeError
            If there is no run, or a run has nothing to draw.
        """

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all runs in one frame; see `Plot.draw`."""
        results = [read_potential(run, options.get(RESULT.name)) for run in runs]
        self.picture(list(zip(labels_of(runs), results, strict=True))).draw(file)
        return []


class PotentialPlot(PlotOfPotentials):
    """V(R) of one or more runs with fits, error bands and residuals."""

    name = "potential"
    summary = "V(R) with its fit and residuals (needs fit potential)"

    def picture(self, runs: Runs) -> Picture:
        """Return V(R) with the fit with free B, its error band, and the residuals, for some runs.

        Points outside the fitted window are hollow, and the fit is dashed there. Without a fit that
        can be trusted the points stand alone, and the legend says so. For a single run, the upper
        axis shows R in fm.

        For errors see `PlotOfPotentials.picture`.
        """
        require(runs)
        several, fits = len(runs) > 1, [(i, one) for i, (_, one) in enumerate(runs) if one.free]
        upper, lower = list[Mark](), list[Mark]()
        for i, (label, result) in enumerate(runs):
            if result.free:
                upper += _potential(result, look(i), _legend(label, result.free.fit, several))
                lower += _parted(result, _residuals(result), np.ones(len(result.points)), look(i))
            else:
                upper.append(
                    _points(result, look(i), f"{typeset(label)}\nno fit that can be trusted")
                )

        def finish(axes: Axes) -> None:
            if several:
                axes.figure.legend(loc="outside upper center", ncols=2, columnspacing=1.0)
            else:
                axes.legend(loc="lower right")
                for _, result in fits:
                    _add_physical_axis(axes, result.trusted().fit.spacing.value)

        ends = {
            "xlim": (0, 1.04 * max(one.distance for _, result in runs for one in result.points))
        }
        frames = [Frame(upper, "" if fits else "$R/a$", r"$a\,V(R)$", ends, finish)]
        if fits:
            largest = [np.abs(_residuals(one)[_in_window(one)]).max() + 1.0 for _, one in fits]
            limit = max(LEAST_LIMIT, 1.1 * max(largest))
            lower += [mark for i, one in fits for mark in _outside(one, look(i), limit)]
            lower.append(Sketch(lambda axes: axes.axhspan(-1, 1, color="0.9", zorder=-2)))
            lower.append(Guide(0, style={"color": "0.4", "linewidth": 0.8, "zorder": -1}))
            frames.append(Frame(lower, "$R/a$", "residual/error", {"ylim": (-limit, limit)}))
        return Picture(
            frames,
            4.05 + 1.35 * bool(fits) + several * 0.25 * (len(runs) + 1),
            layout={"nrows": len(frames), "sharex": True, "height_ratios": (3, 1)[: len(frames)]},
            aligned=bool(fits),
            heading=False,
        )


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


def _points(result: StaticPotential, look: dict[str, Any], label: str) -> Symbols:
    """Return V(R) without a trusted fit."""
    style = {**look, "markerfacecolor": "white", "zorder": 3, "label": label}
    found = [one.potential for one in result.points]
    return Symbols.of([one.distance for one in result.points], found, style)


def _in_window(result: StaticPotential) -> NDArray[np.bool_]:
    """Return which points were fitted."""
    r, fit = np.array([one.distance for one in result.points]), result.trusted().fit
    return np.asarray((r >= fit.r_min - 1e-9) & (r <= fit.r_max + 1e-9))


def _parted(
    result: StaticPotential, value: NDArray[Any], error: NDArray[Any], look: dict[str, Any]
) -> Iterator[Symbols]:
    """Yield the points that were fitted, and the others, which are hollow."""
    r, fitted = np.array([one.distance for one in result.points]), _in_window(result)
    for some, face in ((fitted, look["color"]), (~fitted, "white")):
        style = {**look, "markerfacecolor": face, "zorder": 3}
        yield Symbols(r[some], value[some], error[some], style=style)


def _potential(result: StaticPotential, look: dict[str, Any], label: str) -> Iterator[Mark]:
    """Yield the points, the fit with its band, and what the legend in the frame says of them."""
    fit, error = result.trusted().fit, np.array([one.potential.error for one in result.points])
    yield from _parted(result, fit.continuum(result.points), error, look)
    first = 0.9 * result.points[0].distance
    for low, high, dashes in ((first, fit.r_min, "--"), (fit.r_min, fit.r_max, "-")):
        x = np.linspace(low, high, 200)
        yield Stroke(x, *fit.potential(x), style={"color": look["color"], "linestyle": dashes})
    yield Symbols([], [], [], style={**look, "linestyle": "-", "label": label})


def _residuals(result: StaticPotential) -> NDArray[np.float64]:
    """Return the residuals of all points, in units of their errors."""
    r = np.array([one.distance for one in result.points])
    fit = result.trusted().fit
    error = np.array([one.potential.error for one in result.points])
    return np.asarray((fit.continuum(result.points) - fit.potential(r)[0]) / error)


def _outside(result: StaticPotential, look: dict[str, Any], limit: float) -> Iterator[Stroke]:
    """Yield arrows at the edge for residuals outside the frame, of points that were not fitted."""
    for one, residual in zip(result.points, _residuals(result), strict=True):
        if abs(residual) > limit:
            side = math.copysign(1, residual)
            style = {**HOLLOW, "color": look["color"], "marker": "^" if side > 0 else "v"}
            yield Stroke([one.distance], [0.9 * side * limit], style=style)


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

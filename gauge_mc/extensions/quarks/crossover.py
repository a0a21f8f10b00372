"""Susceptibilities against beta, kappa or a chemical potential, with their peaks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.actions import BETA, Coupling, couplings
from gauge_mc.analysis.fitting import akaike_weights, scatter
from gauge_mc.analysis.timeseries import Estimate, estimate, phase_of_mean, susceptibility
from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.condensate import CONDENSATE_COLUMNS
from gauge_mc.extensions.quarks.condensate_fit import disconnected, read_condensates
from gauge_mc.extensions.quarks.diagonal import MU
from gauge_mc.extensions.quarks.dynamical.flavours import KAPPA, DynamicalQuarks
from gauge_mc.extensions.quarks.spectroscopy.correlators import Quark
from gauge_mc.extensions.quarks.vectors.basis import IMAGINARY_MU
from gauge_mc.files.table import read_heading, read_table
from gauge_mc.fits import FITS, DataResult, Fit
from gauge_mc.fits.files import find_table_by_columns, tables_with_columns
from gauge_mc.fits.quoted import QuotedNumber, quoted_number, table_of
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.pictures import Frame, Mark, Picture, Stroke, Symbols, look
from gauge_mc.plots.runs import ScanFigure
from gauge_mc.quantities.transition.fit import EXTENT
from gauge_mc.quantities.transition.thermal_runs import LOOP_COLUMNS, check_equal
from gauge_mc.quoting import CommandLine, quoted
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.thermalisation import SKIP, Skip, last_skipped
from gauge_mc.updates.terms import weights

AT = "The other numbers in which runs differ, in words; null if there are none."


@documented
@dataclass(frozen=True)
class CrossoverPoint:
    """The runs at one value of the parameter on one lattice, all other numbers being equal."""

    lattice: str = result_field("Extents.", symbol="lattice")
    at: str | None = result_field(AT, symbol="at")
    x: float = result_field("Value of the parameter.", symbol="x")
    loop: Estimate | None = result_field(
        "Modulus of the Polyakov loop; null if it was not measured.", symbol="|L|"
    )
    phase: Estimate | None = result_field(
        "Phase of the mean Polyakov loop in units of π.", symbol="arg⟨L⟩/π"
    )
    loop_susceptibility: Estimate | None = result_field(
        "V (⟨|L|²⟩ − ⟨|L|⟩²) with the number V of spatial sites.", symbol="χ_L"
    )
    chiral_condensate: Estimate | None = result_field(
        "⟨Tr S⟩ / V, which is −⟨ψ̄ψ⟩ per flavour; null if it was not measured.", symbol="−⟨ψ̄ψ⟩"
    )
    chiral_susceptibility: Estimate | None = result_field(
        "Disconnected susceptibility of the condensate; null with one source.", symbol="χ_disc"
    )


@documented
@dataclass(frozen=True)
class SusceptibilityPeak:
    """The peak of a susceptibility on one lattice."""

    lattice: str = result_field("Extents.", symbol="lattice")
    at: str | None = result_field(AT, symbol="at")
    susceptibility: str = result_field("The susceptibility: χ_L or χ_disc.", symbol="of")
    position: Estimate = result_field(
        "Position of the peak; its error is that of a form whose skewness is not known.",
        symbol="x at the peak",
    )
    position_systematic: float = result_field(
        "Systematic error of the position: the scatter of forms and ranges of points.",
        symbol="± forms",
    )
    height: Estimate = result_field("Height of the peak, likewise.", symbol="height")
    height_systematic: float = result_field(
        "Systematic error of the height.", symbol="± forms of the height"
    )
    form: str = result_field("The most probable form.", symbol="form")
    points: int = result_field("Number of points in its range.", symbol="points")
    chi2: float = result_field(
        "Its chi2, that of the skewness included; it has `points` - 3 degrees of freedom.",
        symbol="χ²",
    )

    @property
    def position_range(self) -> tuple[float, float]:
        """The position minus and plus its total error."""
        error = math.hypot(self.position.error, self.position_systematic)
        return self.position.value - error, self.position.value + error


@documented
@dataclass(frozen=True)
class CrossoverResult:
    """Susceptibilities of a study against one parameter, with their peaks."""

    ensemble: Mapping[str, str] = result_field("What all runs share.")
    over: str = result_field("Name of the parameter, such as ``beta`` or ``kappa``.")
    points: Sequence[CrossoverPoint] = result_field("The runs, by lattice and parameter.")
    peaks: Sequence[SusceptibilityPeak] = result_field("The peaks that are known.")
    cautions: Sequence[str] = result_field("What to keep in mind, in sentences.")


Curve = tuple[str, str | None]
"""The lattice, and the other numbers, that points of a curve share."""

SUSCEPTIBILITIES = {"χ_L": "loop_susceptibility", "χ_disc": "chiral_susceptibility"}
"""Fields of the points with susceptibilities, by their symbols."""


def curves_of(points: Sequence[CrossoverPoint]) -> list[Curve]:
    """Return the curves on which points are, in their order."""
    return list(dict.fromkeys((point.lattice, point.at) for point in points))


def series_of_points(
    points: Sequence[CrossoverPoint], curve: Curve, field: str
) -> tuple[Array, list[Estimate]]:
    """Return where a quantity is known with its error on a curve, and its values."""
    pairs = [
        (point.x, getattr(point, field)) for point in points if (point.lattice, point.at) == curve
    ]
    measured = [(x, y) for x, y in pairs if y and math.isfinite(y.error) and y.error > 0]
    return np.array([x for x, _ in measured]), [x for _, x in measured]


def peaks_of(points: Sequence[CrossoverPoint]) -> tuple[list[SusceptibilityPeak], list[str]]:
    """Return the peaks of all susceptibilities on all curves, and why others are not known."""
    peaks, cautions = [], []
    for curve in curves_of(points):
        where = " at ".join(filter(None, curve))
        for name, field in SUSCEPTIBILITIES.items():
            x, values = series_of_points(points, curve, field)
            if not x.size:
                continue
            peak = _peak(
                curve, name, x, *np.array([[value.value, value.error] for value in values]).T
            )
            if isinstance(peak, str):
                cautions.append(f"On {where} {name} {peak}")
            else:
                peaks.append(peak)
    return peaks, cautions


def _peak(curve: Curve, name: str, x: Array, y: Array, error: Array) -> SusceptibilityPeak | str:
    """Return a peak, or why there is none, as the end of a sentence.

    It is the average over forms and ranges of points by the information criterion, in which a point
    that is left out counts as a parameter (W. I. Jay and E. T. Neil, arXiv:2008.01069).
    """
    top = int(np.argmax(y))
    if x.size < 3:
        return f"is known at {x.size} values, and a peak needs three: add runs."
    if top in (0, x.size - 1):
        side = "smaller" if top == 0 else "larger"
        return f"is largest at the end of the runs: add runs beyond x = {x[top]:.12g}, {side} ones."
    fits = [
        fit
        for first, last in itertools.product(range(top), range(top + 1, x.size))
        if (y + error)[first : last + 1].min() > FOOT * y[top] or last - first == 2
        for form in FORMS
        if (fit := PeakFit.of(form, x, y, error, slice(first, last + 1)))
    ]
    rise = (y[top] - y[[0, -1]]) / np.hypot(error[top], error[[0, -1]])
    if not fits or rise.min() < 1:
        return "has no peak beyond its errors: make the runs longer, or add others."
    weights = akaike_weights([fit.chi2 for fit in fits], [fit.points for fit in fits])
    means = np.array([fit.mean for fit in fits])
    values = (weights @ means).tolist()
    errors = np.sqrt(weights @ np.array([fit.variance for fit in fits])).tolist()
    position, height = (_estimate_of(pair, [x]) for pair in zip(values, errors, strict=True))
    forms, forms_of_height = scatter(weights, means).tolist()
    best = fits[int(np.argmax(weights))]
    numbers = position, forms, height, forms_of_height
    return SusceptibilityPeak(*curve, name, *numbers, best.form, best.points, best.chi2)


FORMS = {"parabola": 1, "Gaussian": 0, "Lorentzian": -1}
"""The power of a peak y of each form that is a parabola; 0 stands for ln y."""

FOOT = 0.2
"""Height in units of the largest value above which points are fitted, within their errors."""

SKEWNESS = 0.4
"""Standard deviation of the skewness s before anything is known about it: a peak is a function of
u^2 (1 + s u) with the distance u from it in units of its half width at half height. The derivative
of the step exp(-exp(-x)) has 0.4."""

POSITIONS = 201
"""Number of positions of the peak that are compared."""


@dataclass(frozen=True)
class PeakFit:
    """A fit of a form of the peak to a range of points."""

    form: str
    """Name of the form."""
    points: int
    """Number of points."""
    chi2: float
    """The smallest chi2, including that of the skewness."""
    mean: Array
    """Position and height, of shape (2,)."""
    variance: Array
    """Their variances, of shape (2,)."""

    @classmethod
    def of(cls, form: str, x: Array, y: Array, error: Array, points: slice) -> PeakFit | None:
        """Return the fit to some of the points; None if the form has no maximum there.

        z = a + b u^2 + c u^3 is fitted to the power z of y at every position between the next but
        one neighbours of the largest point, and positions are as probable as exp(-chi2 / 2): one
        that the points hardly determine is uncertain by the whole interval.
        """
        top, power = int(np.argmax(y)), FORMS[form]
        ends = max(points.start, top - 2), min(points.stop - 1, top + 2)
        at = np.linspace(x[ends[0]], x[ends[1]], POSITIONS)
        x, y, error = x[points], y[points], error[points]
        if power < 1 and (y <= 0).any():
            return None
        u, weight = (x - at[:, None]) / np.ptp(x), y ** (1 - power) / error
        even = [np.ones_like(u), u**2]
        (a, b), _, chi2 = _least_squares(even, _power(y, power), weight)
        n = int(np.argmin(chi2))
        if not _peaked(a, b, power)[n]:
            return None
        half = _power(_height(a[n], power) / 2, power)
        cubic = SKEWNESS * b[n] / math.sqrt((half - a[n]) / b[n]) * u**3
        (a, b, _), variance, chi2 = _least_squares([*even, cubic], _power(y, power), weight)
        if not (peaked := _peaked(a, b, power)).any():
            return None
        at, a, variance, chi2 = at[peaked], a[peaked], variance[peaked], chi2[peaked]
        probable = np.exp((chi2.min() - chi2) / 2)
        probable /= probable.sum()
        both = np.stack([at, _height(a, power)])
        mean = both @ probable
        spread = (both - mean[:, None]) ** 2
        spread[1] += variance * both[1] ** (2 - 2 * power)
        return cls(form, x.size, float(chi2.min()), mean, spread @ probable)


def _peaked(a: Array, b: Array, power: int) -> Array:
    """Return where a + b u^2 is the power of a peak, which has a height above 0."""
    return np.asarray((b < 0) & ((power * a > 0) | (power == 0)))


def _power(y: Array, power: int) -> Array:
    """Return ln y for 0, else y^p with the sign with which it grows with y."""
    return np.asarray(power * y**power if power else np.log(y))


def _height(z: Array, power: int) -> Array:
    """Return y; see `_power`."""
    return np.asarray((z / power) ** power if power else np.exp(z))


def _least_squares(columns: Sequence[Array], z: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return parameters, the variance of the first one, and chi2, at all positions.

    A third parameter is 0 within 1 before it is fitted.
    """
    design = np.stack(columns, axis=-1) * weight[:, None]
    before = np.broadcast_to(np.eye(3)[2:, : len(columns)], (len(design), 1, len(columns)))
    design = np.concatenate([design, before], axis=1)
    inverse, data = np.linalg.pinv(design), np.append(z * weight, 0)
    parameters = inverse @ data
    chi2 = np.sum((data - np.einsum("gnk,gk->gn", design, parameters)) ** 2, axis=1)
    return parameters.T, np.sum(inverse[:, 0] ** 2, axis=1), chi2


def shared_keys() -> tuple[str, ...]:
    """Return the keys of headers that all runs share."""
    return ("group", "action", *(weight for weight in weights() if weight != "quarks"))


@dataclass(frozen=True)
class CrossoverRun:
    """A run that has measured Polyakov loops or the condensate.

    Attributes
    ----------
    path : Path
        The run directory.
    header : mapping of str to str
        Header of one of its tables.
    loops, condensates : Path or None
        Its tables.
    """

    path: Path
    header: Mapping[str, str]
    loops: Path | None
    condensates: Path | None

    @property
    def quarks(self) -> Sequence[DynamicalQuarks]:
        """The dynamical quarks."""
        return tuple(DynamicalQuarks.several(self.header.get("quarks", "")))

    @property
    def numbers(self) -> dict[str, float]:
        """The coupling, the options of the action, and the numbers of the quarks, by name.

        From the second table of quarks on, its number follows.
        """
        coupling = Coupling.of_metadata(self.header)
        action = {c.name: coupling.action.values.get(c.name) for c in couplings()}
        parameters = {"beta": coupling.beta, **{k: v for k, v in action.items() if v is not None}}
        for n, quark in enumerate(self.quarks, 1):
            values = {**quark.couplings, IMAGINARY_MU.name: quark.imaginary_mu}
            parameters |= {f"{name}{n if n > 1 else ''}": value for name, value in values.items()}
        return parameters


def read_crossover_runs(folder: Path, extent: int | None = None) -> list[CrossoverRun]:
    """Return the runs in a folder that have measured something."""
    crossover_runs: list[CrossoverRun] = []
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        kinds = (LOOP_COLUMNS, CONDENSATE_COLUMNS)
        loops, condensates = (
            find_table_by_columns(path, kind) if tables_with_columns(path, kind) else None
            for kind in kinds
        )
        table = loops or condensates
        if not table:
            continue
        run = CrossoverRun(path, read_heading(table)[0], loops, condensates)
        if extent and Lattice.parse(run.header["lattice"]).t != extent:
            continue
        if crossover_runs:
            both = crossover_runs[0].header, run.header
            first, header = ({key: x.get(key, "") for key in shared_keys()} for x in both)
            check_equal(first, header, path)
        crossover_runs.append(run)
    if not crossover_runs:
        raise GaugeError(
            f"There is no run with Polyakov loops or condensates in {folder}; name the folder of "
            "runs that have measured them."
        )
    return crossover_runs


def parameters_of(
    folder: Path, runs: Sequence[CrossoverRun], over: str | None = None
) -> tuple[str, list[str]]:
    """Return the name of the number over which runs are compared, and the others that differ.

    Of numbers that have the same values, such as those of several quarks, the first one counts.
    """
    numbers = [run.numbers for run in runs]
    names = dict.fromkeys(name for number in numbers for name in number)
    series = {name: tuple(number.get(name, 0.0) for number in numbers) for name in names}
    different = [name for name, values in series.items() if len({*values}) > 1]
    if not different:
        raise GaugeError(
            f"The runs in {folder} have the same parameters; add runs with another coupling, mass "
            "or chemical potential."
        )
    if over is not None and over not in different:
        raise UsageError(
            f"--over is {quoted(over)}, but the runs in {folder} differ in {in_words(different)}; "
            f"give {in_words(different, 'or')}."
        )
    distinct = list({series[name]: name for name in reversed(different)}.values())[::-1]
    if over is None and len(distinct) > 1:
        raise GaugeError(
            f"The runs in {folder} differ in {in_words(distinct)}; say with --over {distinct[0]} "
            "which of them is varied along a curve."
        )
    axis = over or distinct[0]
    return axis, [name for name in distinct if series[name] != series[axis]]


def crossover_points(
    runs: Sequence[CrossoverRun], over: str, names: Sequence[str], skip: Skip
) -> list[CrossoverPoint]:
    """Return what was measured, by lattice, other numbers and `over`, all chains together."""
    groups: dict[tuple[Lattice, tuple[float, ...], float], list[CrossoverRun]] = {}
    for run in runs:
        rest = tuple(run.numbers.get(name, 0.0) for name in names)
        key = Lattice.parse(run.header["lattice"]), rest, run.numbers.get(over, 0.0)
        groups.setdefault(key, []).append(run)
    order = sorted(groups, key=lambda key: (key[0].sites, str(key[0]), *key[1:]))
    return [_point(key, names, groups[key], skip) for key in order]


def _point(
    key: tuple[Lattice, tuple[float, ...], float],
    names: Sequence[str],
    runs: Sequence[CrossoverRun],
    skip: Skip,
) -> CrossoverPoint:
    lattice, rest, x = key
    pairs = [(run, last_skipped(run.path, skip)) for run in runs]
    tables = [read_table(x.loops).after(last, str(x.loops)) for x, last in pairs if x.loops]
    loops = [np.asarray(table["re"] + 1j * table["im"]) for table in tables]
    scalars = [_scalar(x, x.condensates, last) for x, last in pairs if x.condensates]
    modulus = phase = chi_loop = condensate = chi = None
    if loops:
        sizes = [np.abs(loop) for loop in loops]
        modulus, phase = estimate(*sizes), _estimate_of(phase_of_mean(*loops), sizes)
        chi_loop = _estimate_of(susceptibility(*sizes, volume=lattice.slice_sites), sizes)
    if scalars:
        condensate = estimate(*(scalar.mean(axis=1) for scalar in scalars))
        if min(scalar.shape[1] for scalar in scalars) > 1:
            chi, _ = disconnected(*scalars, volume=lattice.sites)
    at = ", ".join(f"{name} = {value:.12g}" for name, value in zip(names, rest, strict=True))
    return CrossoverPoint(str(lattice), at or None, x, modulus, phase, chi_loop, condensate, chi)


def _scalar(run: CrossoverRun, path: Path, last: int) -> Array:
    """Return the estimates of the condensate of the dynamical quark, or of the only one."""
    values = read_condensates(path, last).values
    numbers = [quark.values for quark in run.quarks[:1]]
    dynamical = [Quark(number.get("kappa") or 0.0, number.get("mu") or 0.0) for number in numbers]
    quarks = [value for value in values if value in dynamical] or [*values]
    if len(quarks) > 1:
        raise GaugeError(
            f"{path} has condensates of {len(quarks)} quarks, none of which is that of the run; "
            "measure the condensate of one quark alone."
        )
    return values[quarks[0]]["scalar"]


def _estimate_of(pair: tuple[float, float], series: Sequence[Array]) -> Estimate:
    return Estimate(*pair, math.nan, math.nan, sum(map(len, series)))


OVER = Option(
    "over",
    str,
    "The number x along a curve, if runs differ in several, such as beta or kappa.",
    default="that in which runs differ",
    metavar="NAME",
)

DIGITS = 6
"""Number of digits of numbers without an error."""

LOOPS = ("loop", "phase", "loop_susceptibility")
CONDENSATES = ("chiral_condensate", "chiral_susceptibility")
"""Fields of a point of both kinds, each of which has a table."""


class CrossoverFitResult(DataResult[CrossoverResult]):
    """Peaks of susceptibilities against a parameter."""

    observable: ClassVar[str] = "peaks of the susceptibilities of Polyakov loop and condensate"
    units: ClassVar[str] = "lattice units, not renormalised; imaginary_mu in units of pi T"

    def report(self) -> list[Any]:
        """Return tables of the runs and the peaks."""
        f = self.found
        tables = []
        for heading, fields in (("Polyakov loops", CONDENSATES), ("Condensates", LOOPS)):
            fromkeys: dict[str, Any] = dict.fromkeys(fields)
            rows = [replace(point, **fromkeys) for point in f.points]
            rows = [row for row in rows if row.loop or row.chiral_condensate]
            if rows:
                title = f"{heading} against x = {f.over}"
                tables.append(table_of(title, CrossoverPoint, rows, DIGITS, "left"))
        if f.peaks:
            title = f"Peaks, x = {f.over}"
            tables.append(table_of(title, SusceptibilityPeak, f.peaks, 3, "left"))
        return [*tables, *f.cautions]

    def quoted(self) -> list[QuotedNumber]:
        """Return the positions of the peaks on the largest lattice."""
        f = self.found
        largest = f.points[-1].lattice
        pairs = [(peak, ", ".join(filter(None, (largest, peak.at)))) for peak in f.peaks]
        return [
            quoted_number(
                f"{f.over} at the peak of {x.susceptibility} ({where})",
                x.position,
                x.position_systematic,
            )
            for x, where in pairs
            if x.lattice == largest
        ]

    def unquoted(self) -> str:
        """Return why there is no peak; see `FitResult.unquoted`."""
        return "no susceptibility has a peak between the runs"


class CrossoverFit(Fit):
    """Peaks of the susceptibilities of runs that differ in one parameter."""

    name: ClassVar[str] = "crossover"
    summary: ClassVar[str] = (
        "peaks of susceptibilities of Polyakov loop and condensate over β, κ or μ, from runs with "
        "quarks"
    )
    columns: ClassVar[tuple[str, ...]] = LOOP_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (CrossoverResult, CrossoverPoint, SusceptibilityPeak)
    of_scans: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (EXTENT, OVER, SKIP)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> CrossoverFitResult:
        """Find the peaks from all runs in a folder; see `Fit.carry_out`."""
        return CrossoverFitResult(crossover_of(tables[0], options))


FITS.register(CrossoverFit())


def crossover_of(folder: Path, options: dict[str, Any]) -> CrossoverResult:
    """Return the susceptibilities of the runs in a folder with their peaks, as options choose."""
    runs = read_crossover_runs(folder, options.get(EXTENT.name))
    over, names = parameters_of(folder, runs, options.get(OVER.name))
    points = crossover_points(runs, over, names, options.get(SKIP.name, 0))
    peaks, cautions = peaks_of(points)
    header = runs[0].header
    usual = {c.name: c.usual for c in (*couplings(), IMAGINARY_MU)}
    fixed = {
        name: f"{value:.12g}"
        for name, value in runs[0].numbers.items()
        if all(run.numbers.get(name) == value for run in runs) and value != usual.get(name)
    }
    ensemble = {**{key: header[key] for key in shared_keys() if key in header}, **fixed}
    return CrossoverResult(ensemble, over, points, peaks, [*cautions, *_better(folder, runs, over)])


def _better(folder: Path, runs: Sequence[CrossoverRun], over: str) -> list[str]:
    """Return that runs which differ in beta alone can be reweighted."""
    quarks = {run.header.get("quarks") for run in runs}
    if over != BETA.name or len(quarks) > 1 or not all(run.loops for run in runs):
        return []
    return [
        "The quarks of all runs are the same, so that all measurements of the Polyakov loop count "
        f"at every β with `{CommandLine('fit', 'transition', folder)}`."
    ]


AXES = {x.name: x.label for x in (BETA, KAPPA, MU, IMAGINARY_MU)}
"""Labels of parameters that are not their names."""

FRAMES = {
    "loop": r"$|L|$",
    "loop_susceptibility": r"$\chi_L$",
    "chiral_condensate": r"$-\langle\bar\psi\psi\rangle$",
    "chiral_susceptibility": r"$\chi_\mathrm{disc}$",
    "phase": r"$\arg\langle L\rangle/\pi$",
}
"""Labels of the quantities that are drawn, by their fields."""


class CrossoverPlot(ScanFigure):
    """Polyakov loop, condensate and their susceptibilities against one parameter."""

    name = "crossover"
    summary = "Polyakov loop, condensate and susceptibilities over β, κ or μ, with their peaks"
    options: ClassVar[tuple[Option, ...]] = CrossoverFit.options

    def picture(self, scan: Path, options: dict[str, Any]) -> Picture:
        """Show what all runs in a folder have measured; see `crossover_picture`."""
        return crossover_picture(crossover_of(scan, options))


PLOTS.register(CrossoverPlot())


def crossover_picture(crossover: CrossoverResult) -> Picture:
    """Return a frame for every quantity that was measured, with its peak and the errors of it."""
    styles = {curve: look(n) for n, curve in enumerate(curves_of(crossover.points))}
    frames: list[Frame] = []
    for field, label in FRAMES.items():
        marks: list[Mark] = []
        for curve, style in styles.items():
            x, values = series_of_points(crossover.points, curve, field)
            thin = {"color": style["color"], "linewidth": 1}
            if x.size:
                text = "" if frames else ", ".join(filter(None, curve))
                marks.append(Symbols.of(x, values, style, text))
                marks += [
                    Stroke.plateau(peak.position_range, peak.height, thin)
                    for peak in crossover.peaks
                    if SUSCEPTIBILITIES[peak.susceptibility] == field
                    and (peak.lattice, peak.at) == curve
                ]
        if marks:
            frames.append(Frame(marks, AXES.get(crossover.over, crossover.over), label))
    rows = -(-len(frames) // 2)
    title = GROUPS[crossover.ensemble["group"]].label
    layout = {"nrows": rows, "ncols": min(2, len(frames))}
    return Picture(frames, 2.6 * rows, title, columns=2, layout=layout)

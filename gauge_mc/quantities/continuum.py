"""The continuum limit of a product of numbers that runs quote.

The products are dimensionless, and have the covariance of their numbers. The symbol of a number
states its dimension: r₀/a is a length and √σ a a mass in lattice units.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.actions import Action, action_of
from gauge_mc.analysis.fitting import POOR, Points, akaike_weights, no_fit, scatter
from gauge_mc.analysis.timeseries import MIN_CONFIGURATIONS, estimate, with_error
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.structured import typed
from gauge_mc.fits import FITS, DataResult, Fit, FittedEnsemble, result_of
from gauge_mc.fits.files import OPTIONS, RESULT, match_of, read_fit, refuses, tables_of_result
from gauge_mc.fits.quoted import WORD, QuotedNumber, empty_table, table_of
from gauge_mc.options import Option, check_options
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.pictures import Frame, Picture, Stroke, Symbols, look
from gauge_mc.plots.runs import caution
from gauge_mc.quoting import CommandLine
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import Run
from gauge_mc.run.thermalisation import SKIP
from gauge_mc.stored import runs_of

SPACING = "a"
"""Symbol of the lattice spacing."""

FACTOR = re.compile(r"\s*([*/]?)\s*(?:(sqrt\()|(sqrt_|√))?([^\W\d_]\w*)(?:\^([\d.]+))?(?(2)\))\s*")
"""A factor of a product: a name, perhaps with a root or a power."""

Powers = Mapping[str, float]
"""Powers of the symbols of a product."""


def powers_of(text: str) -> dict[str, float] | None:
    """Return the powers of the symbols in a product such as ``√t₀/r₀`` or ``chi_t*t0^2``.

    None if the text is of another form. What follows in brackets is left out.
    """
    text = re.sub(r" \(.*", "", text)
    text = re.sub("[²³¹⁰⁴-⁹]+", lambda digits: f"^{digits[0]}", text)
    text = re.sub("[α-ω]", lambda letter: unicodedata.name(letter[0]).split()[-1].lower(), text)
    text = unicodedata.normalize("NFKC", text)
    powers: dict[str, float] = {}
    end = 0
    while end < len(text):
        factor = FACTOR.match(text, end)
        if not factor:
            return None
        operator, *roots, name, power = factor.groups()
        try:
            size = float(power or 1) * (0.5 if any(roots) else 1) * (-1 if operator == "/" else 1)
        except ValueError:
            return None
        powers[name] = powers.get(name, 0) + size
        end = factor.end()
    return powers


@dataclass(frozen=True)
class KeptNumber:
    """A number that a run quotes from a result that it has kept."""

    quoted: QuotedNumber
    """The number."""
    powers: Powers
    """Powers of the symbols of which it is the product."""
    file: Path
    """File of the result."""
    options: str
    """The options of the fit, except which updates it leaves out, in words."""

    @property
    def error(self) -> float:
        """Statistical and systematic error in quadrature."""
        return float(np.hypot(self.quoted.error, self.quoted.systematic or 0))

    @property
    def relative(self) -> float:
        """Error of the squared lattice spacing in units of the number, divided by it."""
        return 2 / abs(self.powers[SPACING]) * self.error / self.quoted.value


@dataclass(frozen=True)
class KeptNumbers:
    """The numbers that a run quotes."""

    run: Path
    """The folder of the results: a run, a folder of chains or a scan."""
    numbers: Sequence[KeptNumber]
    """The numbers in lattice units."""
    ensemble: Mapping[str, str]
    """Facts about the ensemble that the results state."""

    @classmethod
    def of(cls, run: Path) -> KeptNumbers:
        """Read the results that a run has kept."""
        numbers, ensemble = list[KeptNumber](), dict[str, str]()
        for file in results_in(run):
            content, tables = read_fit(file), tables_of_result(file)
            present = [path for table in tables if (path := run / table.file).exists()]
            try:
                if present and refuses(match_of(tables, present)):
                    raise ValueError("another table than that of the run")
                ensemble |= content.get("ensemble", {})
                every = [typed({**number}, QuotedNumber) for number in content.get(WORD, [])]
                options = {**content.get(OPTIONS, {})}
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise GaugeError(
                    f"{file} is damaged or made from another table than {run} has now; make it "
                    f"again with `{CommandLine('fit', _fit_of(file), run)}`."
                ) from error
            options.pop(SKIP.name, None)
            words = ", ".join(f"{key} = {value}" for key, value in options.items()) or "no options"
            if extent := content.get("extent"):  # of a transition, where T_c a = 1 / N_t
                exact = QuotedNumber("T_c a", 1 / extent, 0.0)
                numbers.append(KeptNumber(exact, {"T_c": 1.0, SPACING: 1.0}, file, words))
            numbers += [
                KeptNumber(number, powers, file, words)
                for number in every
                if not number.unit and number.value > 0 and number.error > 0
                if (powers := powers_of(number.name))
            ]
        return cls(run, numbers, ensemble)

    @property
    def action(self) -> Action:
        """The action of the ensemble, that of its run if no result states it."""
        run = Run(self.run)
        stated = "action" in self.ensemble or not run.exists()
        return action_of(self.ensemble) if stated else run.read()[0].action

    def __getitem__(self, powers: Powers) -> KeptNumber:
        """Return the first number that is a product with these powers, which must be there."""
        return next(number for number in self.numbers if number.powers == powers)

    def covariance(self, numbers: Sequence[KeptNumber]) -> tuple[Array, list[str]]:
        """Return the covariance matrix of some of the numbers, and what is taken as independent.

        Statistical errors are correlated as the time series on common configurations are.
        Systematic ones are independent.
        """
        matrix, cautions = np.diag([number.error**2 for number in numbers]), list[str]()
        files = {number.file for number in numbers} if len(numbers) > 1 else set[Path]()
        series = {file: _histories(file) for file in files}
        for (i, first), (j, second) in combinations(enumerate(numbers), 2):
            pair = first, second
            histories = [series[number.file].get(number.quoted.name) for number in pair]
            if histories[0] and histories[1]:
                rho = correlation(histories[0], histories[1])
                matrix[i, j] = matrix[j, i] = rho * first.quoted.error * second.quoted.error
            elif first.error and second.error:
                cautions.append(
                    f"{first.quoted.name} and {second.quoted.name} are taken as independent, since "
                    "their fits have no time series of both."
                )
        return matrix, cautions


def product_of(product: Powers, shared: Sequence[Powers]) -> list[tuple[Powers, float]] | None:
    """Return one or two dimensions of numbers, with the powers that make up a product; or None."""
    for some in chain(combinations(shared, 1), combinations(shared, 2)):
        symbols = {*product, *chain.from_iterable(some)}
        matrix = np.array([[powers.get(symbol, 0) for powers in some] for symbol in symbols])
        target = np.array([product.get(symbol, 0) for symbol in symbols])
        exponents = np.linalg.pinv(matrix) @ target
        if np.allclose(matrix @ exponents, target) and (np.abs(exponents) > 0.01).all():
            return [*zip(some, exponents.tolist(), strict=True)]
    return None


def results_in(run: Path) -> list[Path]:
    """Return the results of fits in a folder, the usual one or else the only one of each fit."""
    files = [file for file in sorted(run.glob("*.json")) if RESULT.recognises(file)]
    results = []
    for name, fit in FITS.items():
        some = [file for file in files if _fit_of(file) == name and not fit.of_several]
        usual = [file for file in some if file.name == fit.file] or some
        if len(usual) > 1:
            names = in_words([file.name for file in usual])
            raise GaugeError(
                f"{run} has several results of fit {name}, {names}; keep the one to "
                f"extrapolate as {fit.file}."
            )
        results += usual
    return results


def runs_with_results(path: Path) -> list[Path]:
    """Return a folder with results of fits, or else its runs, or its subfolders with results."""
    if results_in(path) or not path.is_dir():
        return [path]
    runs = runs_of([path])
    folders = [run for run in sorted(path.iterdir()) if run.is_dir() and results_in(run)]
    return folders or runs if runs == [path] else runs


def _fit_of(file: Path) -> str:
    """Return the name of the fit of a result."""
    return file.stem.partition("_")[0]


NumberHistory = tuple[Integers, Array]
"""Numbers of the updates of configurations, and the linearised time series of a number."""


def _histories(file: Path) -> Mapping[str, NumberHistory]:
    """Return the time series of the numbers of a result, for which it is made again in memory."""
    tables = [file.parent / table.file for table in tables_of_result(file)]
    if not tables or not all(table.exists() for table in tables):
        return {}
    fit, content = FITS[_fit_of(file)], read_fit(file).get(OPTIONS, {})
    options = check_options(fit.options, content, f"fit {fit.name}")
    return result_of(fit, FittedEnsemble(tables, file.parent), options).histories()


def correlation(first: NumberHistory, second: NumberHistory) -> float:
    """Return the correlation coefficient of the means of two time series of one ensemble.

    It is that of the samples on common configurations, times the ratio of the error of each mean to
    the one on these alone: other configurations contribute to neither covariance. This is
    Nc / sqrt(N1 N2) for independent samples, and 1 for a series so slow that more of its samples
    tell nothing new.
    """
    _, *places = np.intersect1d(_keys(first[0]), _keys(second[0]), return_indices=True)
    if places[0].size < MIN_CONFIGURATIONS:
        return 0.0
    wholes = first[1], second[1]
    parts = [series[rows] for series, rows in zip(wholes, places, strict=True)]
    errors = np.array([[estimate(series).error for series in pair] for pair in (wholes, parts)])
    return float(
        np.corrcoef(parts[0], parts[1])[0, 1] * np.prod(np.minimum(1, errors[0] / errors[1]))
    )


def _keys(updates: Integers) -> Integers:
    """Return numbers of configurations that differ between chains, which follow each other."""
    chain = np.cumsum(np.diff(updates, prepend=updates[:1]) < 0)
    return np.asarray(chain * (1 << 40) + updates)


STEPS = 5
"""Number of fits in each of which the slope of the one before turns errors of x into those of y."""


@documented
@dataclass(frozen=True)
class ContinuumModel:
    """A fit of which the continuum limit is an average."""

    powers: Sequence[int] = result_field("Powers of a; empty for a constant.", symbol="powers of a")
    points: int = result_field("Number of points, beginning with the finest.", symbol="points")
    chi2: float = result_field("Minimum of chi2.", symbol="χ²")
    dof: int = result_field("Degrees of freedom.", symbol="dof")
    p_value: float = result_field("Probability of a larger chi2 if the model is right.", symbol="p")
    value: float = result_field("Limit of this fit.", symbol="limit")
    error: float = result_field("Its error from those of the points.", symbol="error")
    weight: float = result_field("Weight in the average.", symbol="weight")


@dataclass(frozen=True)
class ModelFit:
    """A polynomial in powers of the abscissa, fitted to the finest points."""

    model: ContinuumModel
    """The model, with its weight not yet known."""
    parameters: Array
    """The constant and the coefficients, of shape (parameters,)."""
    response: Array
    """Derivative of the parameters by all ordinates and then all abscissae, of shape (parameters, 2
    points); 0 for points left out.
    """


def _basis(x: Array, powers: Sequence[int]) -> Array:
    """Return the powers of abscissae, of shape (points, parameters)."""
    return np.asarray(x[:, np.newaxis] ** (np.array([0, *powers]) / 2))


@dataclass(frozen=True)
class Extrapolation:
    """The average of models of some points."""

    covariance: Array
    """Covariance matrix of all ordinates and then all abscissae, of shape (2 points, 2 points)."""
    fits: Sequence[ModelFit]
    """The models."""
    weights: Array
    """Their weights, whose sum is 1."""

    @classmethod
    def of(cls, x: Array, y: Array, covariance: Array, artefacts: Sequence[int]) -> Extrapolation:
        """Return the average over all models of some points."""
        try:
            fits = [_fit(x, y, covariance, *model) for model in models(x.size, artefacts)]
        except np.linalg.LinAlgError:
            raise no_fit() from None
        quality = [(fit.model.chi2, fit.model.dof) for fit in fits]
        return cls(covariance, fits, akaike_weights(*zip(*quality, strict=True)))

    def at(self, x: Array) -> tuple[Array, Array, Array]:
        """Return the averaged curve, its error from those of the points, and the spread of models.

        The first error is that of the average with its weights kept fixed, in which models are
        correlated since they have the same points. Each result has the shape of x.
        """
        bases = [_basis(x, fit.model.powers) for fit in self.fits]
        pairs = [*zip(bases, self.fits, strict=True)]
        curves = np.stack([basis @ fit.parameters for basis, fit in pairs])
        responses = [basis @ fit.response for basis, fit in pairs]
        response = np.tensordot(self.weights, responses, axes=1)
        variance = np.einsum("xi,ij,xj->x", response, self.covariance, response)
        return self.weights @ curves, np.sqrt(variance), scatter(self.weights, curves)

    @property
    def models(self) -> list[ContinuumModel]:
        """The models with their results, that with the largest weight first."""
        pairs = zip(self.fits, self.weights.tolist(), strict=True)
        models = [replace(fit.model, weight=weight) for fit, weight in pairs]
        return sorted(models, key=lambda model: -model.weight)


def models(points: int, artefacts: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the powers of a of every model beside the constant, and its number of points.

    A constant must describe all points, and a model of the finest points alone must have a degree
    of freedom. Otherwise two points that happen to agree would count as much as a fit to all.
    """
    every = [(), *((p,) for p in artefacts), *((p, 2 * p) for p in artefacts)]
    for powers in every:
        for count in range(points, len(powers), -1):
            if count == points or (powers and count > len(powers) + 1):
                yield powers, count


def _fit(x: Array, y: Array, covariance: Array, powers: tuple[int, ...], count: int) -> ModelFit:
    """Return the fit of a model to the finest points.

    The weights are those of y - f'(x) dx, where dx is the error of x (effective variance).
    """
    used = np.concatenate([np.arange(count), x.size + np.arange(count)])
    some, design, slope = covariance[np.ix_(used, used)], _basis(x[:count], powers), np.zeros(count)
    for _ in range(STEPS):
        transfer = np.hstack([np.eye(count), -np.diag(slope)])
        fit = Points.known(y[:count], transfer @ some @ transfer.T).fit(design)
        parameters = fit.projection @ y[:count]
        slope = design[:, 1:] @ (np.array(powers) / 2 * parameters[1:]) / x[:count]
    response = np.zeros((parameters.size, 2 * x.size))
    response[:, used] = fit.projection @ transfer
    error = np.sqrt(response[0] @ covariance @ response[0])
    limit = float(parameters[0]), float(error), math.nan
    model = ContinuumModel(powers, count, fit.chi2, fit.dof, fit.p_value, *limit)
    return ModelFit(model, parameters, response)


OF = Option(
    "of",
    str,
    "Dimensionless product of one or two numbers that the runs quote, such as r0*sqrt(sigma), "
    "sqrt(t0)/r0 or chi_t*t0^2.",
    metavar="PRODUCT",
)
"""The product that is extrapolated, an option of the fit and of the plot."""


@documented
@dataclass(frozen=True)
class ContinuumPoint:
    """The product at one lattice spacing."""

    run: str = result_field("Folder of the results.", symbol="run")
    beta: str | None = result_field("Coupling, if it is stated.", symbol="β")
    numbers: Sequence[str] = result_field("Names of the quoted numbers of the product.")
    x: float = result_field("Squared lattice spacing in units of the scale.")
    x_error: float = result_field("Its error, statistical and systematic in quadrature.")
    y: float = result_field("The product.")
    y_error: float = result_field("Its error, statistical and systematic in quadrature.")
    correlation: float = result_field("Correlation coefficient of both.")


@documented
@dataclass(frozen=True)
class ContinuumLimit:
    """The continuum limit of a product of quoted numbers."""

    product: str = result_field("The product.")
    abscissa: str = result_field("Squared lattice spacing in units of the scale, in symbols.")
    action: str = result_field("Name of the action.")
    artefacts: Sequence[int] = result_field("Powers of a that may be the leading artefact.")
    value: float = result_field("The limit, an average over models.")
    error: float = result_field("Its error from those of the points.")
    spread: float = result_field("Standard deviation of the models, a systematic error.")
    points: Sequence[ContinuumPoint] = result_field("The points, the finest first.")
    models: Sequence[ContinuumModel] = result_field("The models, by their weight.")
    cautions: Sequence[str] = result_field("Cautions about the limit, one sentence each.", list)


@dataclass(frozen=True, repr=False)
class ContinuumResult(DataResult[ContinuumLimit]):
    """The continuum limit of a product of quoted numbers, with its curve."""

    observable: ClassVar[str] = "continuum limit of a product of quoted numbers"
    units: ClassVar[str] = "none; the square of the lattice spacing is in units of a length"
    curve: Extrapolation
    """The average of the models."""

    @property
    def tag(self) -> str:
        """The symbols of the product."""
        return "".join(f"_{symbol}" for symbol in powers_of(self.found.product) or ())

    def report(self) -> list[Any]:
        """Return a table of the points, and cautions."""
        f = self.found
        table = empty_table(f"{f.product}, {f.action}", ["run", "β"], [f.abscissa, f.product])
        for point in f.points:
            values = with_error(point.x, point.x_error), with_error(point.y, point.y_error)
            table.add_row(point.run, point.beta or "", *values)
        return [table, *f.cautions]

    def further_report(self) -> list[Any]:
        """Return a table of the models."""
        return [table_of("Models", ContinuumModel, self.found.models, 4)]

    def quoted(self) -> list[QuotedNumber]:
        """Return the limit; the second error is the spread of the models."""
        f = self.found
        return [QuotedNumber(f.product, f.value, f.error, f.spread)]


class ContinuumFit(Fit):
    """A product of quoted numbers at several lattice spacings, extrapolated to a = 0."""

    name: ClassVar[str] = "continuum"
    summary: ClassVar[str] = "continuum limit of a product of quoted numbers of several runs"
    columns: ClassVar[tuple[str, ...]] = ()
    content: ClassVar[tuple[type[Any], ...]] = (ContinuumLimit, ContinuumPoint, ContinuumModel)
    of_scans: ClassVar[bool] = True
    of_several: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (OF,)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> ContinuumResult:
        """Extrapolate what the runs of some folders quote; see `Fit.carry_out`."""
        runs = [KeptNumbers.of(run) for path in tables for run in runs_with_results(path)]
        numbers = [number for run in runs for number in run.numbers]
        names = in_words(dict.fromkeys(number.quoted.name for number in numbers)) or "nothing"
        text = options.get(OF.name, "")
        product = powers_of(text)
        if not product or SPACING in product:
            raise UsageError(
                f"{OF.flag} is '{text}'; give a product of symbols, such as 'r0*sqrt(sigma)'. The "
                f"runs quote {names}."
            )
        for run in runs:
            symbols = {symbol for number in run.numbers for symbol in number.powers}
            if lacking := in_words(sorted({*product} - symbols)):
                raise GaugeError(
                    f"{run.run} has no result of a fit that quotes {lacking}; fit it "
                    f"first. The runs quote {names}."
                )
        actions = {run.action.name: run.action for run in runs}
        groups = {group for run in runs if (group := run.ensemble.get("group"))}
        if len(actions) > 1 or len(groups) > 1:
            raise UsageError(
                f"The runs have different actions or groups, {in_words([*actions, *groups])}; "
                "extrapolate each action and group separately."
            )
        every = [[number.powers for number in run.numbers] for run in runs]
        shared = [powers for powers in every[0] if all(powers in some for some in every)]
        factors, symbols = product_of(product, shared), {SPACING, *product}
        lengths = [p for p in shared if SPACING in p and len(p) == 2 and {*p} <= symbols]
        if not factors or not lengths:
            raise UsageError(
                f"'{text}' is not a dimensionless product of one or two numbers that all runs "
                f"quote, or none of these is a length or mass in lattice units; they quote {names}."
            )
        # In units of this number all lattice spacings are known best.
        scale = min(lengths, key=lambda powers: max(run[powers].relative for run in runs))
        rows = sorted((_point(run, factors, scale) for run in runs), key=lambda row: row[0].x)
        points, totals, independent = zip(*rows, strict=True)
        used = [run[powers] for run in runs for powers, _ in factors]
        cautions = [*dict.fromkeys([*_cautions(points, used), *chain.from_iterable(independent)])]
        (action,) = actions.values()
        x, y = np.array([(point.x, point.y) for point in points]).T
        blocks = np.array(totals)  # of independent runs
        total = np.block([[np.diag(blocks[:, i, j]) for j in range(2)] for i in range(2)])
        curve = Extrapolation.of(x, y, total, action.artefacts)
        if max(model.p_value for model in curve.models) < POOR:
            cautions.append(f"No model describes the points (p < {POOR:g}).")
        value, error, spread = (float(number[0]) for number in curve.at(np.zeros(1)))
        facts = text.strip(), _abscissa(scale), action.name, action.artefacts
        limit = ContinuumLimit(*facts, value, error, spread, points, curve.models, cautions)
        return ContinuumResult(limit, curve)


FITS.register(ContinuumFit())


def _point(
    run: KeptNumbers, factors: Sequence[tuple[Powers, float]], scale: Powers
) -> tuple[ContinuumPoint, Array, list[str]]:
    """Return a point, the covariance matrix of ordinate and abscissa, and cautions."""
    dimensions = [powers for powers, _ in factors]
    dimensions += [] if scale in dimensions else [scale]
    numbers = [run[powers] for powers in dimensions]
    values = np.array([number.quoted.value for number in numbers])
    exponents = np.zeros((2, len(numbers)))
    exponents[0, : len(factors)] = [exponent for _, exponent in factors]
    exponents[1, dimensions.index(scale)] = 2 / scale[SPACING]
    y, x = products = np.prod(values**exponents, axis=1)
    gradient = products[:, np.newaxis] * exponents / values
    matrix, cautions = run.covariance(numbers)
    total = gradient @ matrix @ gradient.T
    y_error, x_error = np.sqrt(np.diag(total)).tolist()
    names = [number.quoted.name for number in numbers[: len(factors)]]
    facts = str(run.run), run.ensemble.get("beta"), names, float(x), x_error, float(y), y_error
    correlation = float(total[0, 1]) / (y_error * x_error) if x_error else 0.0
    return ContinuumPoint(*facts, correlation), total, cautions


def _cautions(points: Sequence[ContinuumPoint], numbers: Sequence[KeptNumber]) -> list[str]:
    """Return cautions about the points and the numbers of which they consist."""
    first, last = points[0], points[-1]
    if len(points) < 2 or last.x - first.x <= last.x_error + first.x_error:
        raise GaugeError(
            "A continuum limit needs runs at two lattice spacings that differ by more than their "
            "errors; name further runs."
        )
    cautions = list[str]()
    for name in dict.fromkeys(number.quoted.name for number in numbers):
        files = {number.options: number.file for number in numbers if number.quoted.name == name}
        if len(files) > 1:
            different = in_words([f"{file} with {options}" for options, file in files.items()])
            cautions.append(f"Numbers may be defined differently: {different}.")
    if len(points) == 2:
        cautions.append(
            "Two points say nothing about artefacts of higher order, which the error does not "
            "include; name further runs."
        )
    return cautions


def _abscissa(scale: Powers) -> str:
    """Return a² in units of a length in symbols, such as ``a²/t0``."""
    (symbol,) = scale.keys() - {SPACING}
    power = 2 * scale[symbol] / scale[SPACING]
    exponent = "" if abs(power) == 1 else f"^{abs(power):g}"
    return f"a²{'/' if power < 0 else ' '}{symbol}{exponent}"


class ContinuumPlot(Plot):
    """A product of quoted numbers against the squared lattice spacing, with its limit."""

    name = "continuum"
    summary = "continuum limit of a product of quoted numbers (needs the fits that quote them)"
    fit: ClassVar[str] = "continuum"
    of_scans: ClassVar[bool] = True
    of_several: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (OF,)

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the points of all runs, the averaged curve with its error, and the limit."""
        result = ContinuumFit().carry_out(runs, **options)
        limit, style, mark = result.found, look(0), look(1)
        caution(*limit.cautions)
        x = np.linspace(0, 1.05 * limit.points[-1].x, 200)
        y, error, spread = result.curve.at(x)
        points = [(point.x, point.y, point.y_error) for point in limit.points]
        total = float(np.hypot(limit.error, limit.spread))
        product, scale = map(_typeset, (limit.product, limit.abscissa))
        words = f"{product} = {with_error(limit.value, limit.error, limit.spread)}"
        marks = [
            Stroke(x, y, np.hypot(error, spread), style={"color": style["color"]}),
            Symbols(*zip(*points, strict=True), style=style, text=limit.action),
            Symbols([0], [limit.value], [total], style=mark, text=words),
        ]
        ends = {"xlim": (-0.03 * x[-1], x[-1])}
        Picture([Frame(marks, scale, product, ends)], 4.0, columns=2).draw(file)
        return []


def _typeset(product: str) -> str:
    """Return a product of symbols as mathematical text."""
    sides: dict[bool, list[str]] = {True: [], False: []}
    for name, power in (powers_of(product) or {}).items():
        word = name.rstrip("0123456789").partition("_")[0]
        index = name[len(word) :].lstrip("_")
        with suppress(KeyError):
            word = unicodedata.lookup(f"GREEK SMALL LETTER {word}")
        symbol = f"{word}_{{{index}}}" if index else word
        roots = {1: symbol, 0.5: rf"\sqrt{{{symbol}}}"}
        sides[power > 0].append(roots.get(abs(power), f"{symbol}^{{{abs(power):g}}}"))
    above, below = (r"\,".join(sides[side]) for side in (True, False))
    return f"${above or 1}{'/' if below else ''}{below}$"


PLOTS.register(ContinuumPlot())

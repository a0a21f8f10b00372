"""The numbers that runs quote, and dimensionless products of them with their covariance.

The symbol of a number states its dimension: r₀/a is a length and √σ a a mass in lattice units.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path

import numpy as np

from gauge_mc.actions import Action, action_of
from gauge_mc.analysis.timeseries import MIN_CONFIGURATIONS, estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError
from gauge_mc.files.structured import typed
from gauge_mc.fits import FITS, FittedEnsemble, result_of
from gauge_mc.fits.files import (
    OPTIONS,
    RESULT,
    match_of,
    read_fit,
    refuses,
    tables_of_result,
)
from gauge_mc.fits.quoted import WORD, QuotedNumber
from gauge_mc.options import check_options
from gauge_mc.quoting import CommandLine
from gauge_mc.registry import in_words
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
                    f"{file} is damaged or of another table than {run} has now; make it again with "
                    f"`{CommandLine('fit', _fit_of(file), run)}`."
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
                f"{run} has several results of fit {name}, {names}; keep the one that is to be "
                f"extrapolated as {fit.file}."
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

"""The continuum limit of a product of quoted numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.analysis.fitting import POOR
from gauge_mc.analysis.timeseries import with_error
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fits import FITS, DataResult, Fit
from gauge_mc.fits.quoted import QuotedNumber, empty_table, table_of
from gauge_mc.options import Option
from gauge_mc.quantities.continuum.limit import ContinuumModel, Extrapolation
from gauge_mc.quantities.continuum.numbers import (
    SPACING,
    KeptNumber,
    KeptNumbers,
    Powers,
    powers_of,
    product_of,
    runs_with_results,
)
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field

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
                "extrapolate those of each by themselves."
            )
        every = [[number.powers for number in run.numbers] for run in runs]
        shared = [powers for powers in every[0] if all(powers in some for some in every)]
        factors, symbols = product_of(product, shared), {SPACING, *product}
        lengths = [p for p in shared if SPACING in p and len(p) == 2 and {*p} <= symbols]
        if not factors or not lengths:
            raise UsageError(
                f"'{text}' is no dimensionless product of one or two numbers that all runs quote, "
                f"or none of these is a length or mass in lattice units; they quote {names}."
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
    """Return cautions about the points and the numbers of which they consist.

    Raises
    ------
    GaugeError
        If they are not at two different spacings.
    """
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
            "Two points tell nothing about artefacts of higher order, which the error does not "
            "contain; name further runs."
        )
    return cautions


def _abscissa(scale: Powers) -> str:
    """Return a² in units of a length in symbols, such as ``a²/t0``."""
    (symbol,) = scale.keys() - {SPACING}
    power = 2 * scale[symbol] / scale[SPACING]
    exponent = "" if abs(power) == 1 else f"^{abs(power):g}"
    return f"a²{'/' if power < 0 else ' '}{symbol}{exponent}"

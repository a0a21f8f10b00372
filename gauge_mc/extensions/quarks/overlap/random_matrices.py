"""The index of the overlap operator, and its low eigenvalues against random-matrix theory.

<lambda_k>_nu is the mean of the k-th eigenvalue that is not 0 over the configurations whose index
is nu or -nu. In a quenched box of the epsilon regime, <lambda_k>_nu Sigma V is a number <z_k>_nu
(see `mean_eigenvalues`), so that ratios are predicted without parameters, and Sigma is
<z_k>_nu / (V <lambda_k>_nu). These are the bare numbers of the lattice, with eigenvalues that are
projected to the imaginary axis as in hep-lat/0306022.

In quenched gauge theory, the low eigenvalues i lambda of the Dirac operator in a sector of the
topological charge nu are distributed as those of chiral random matrices, in units of
1 / (Sigma V). The class is the unitary one for SU(N) with N > 2 and the orthogonal one for SU(2),
with quarks in the fundamental representation (J. J. M. Verbaarschot, hep-th/9405006).

With the operator V on (0, 1) whose kernel is s sqrt(x y) J_nu(s x y), the number n of eigenvalues
of the unitary class between 0 and s has the generating function <x^n> = det(1 - (1 - x) V^2), since
V^2 is the Bessel kernel. If two independent spectra of the orthogonal class are put together, every
second eigenvalue of them is one of the unitary class (P. J. Forrester, nlin/0005064). This
determines the generating function G of the orthogonal one by

(1 + x) G(x)^2 - (1 - x) G(-x)^2 = 2 x det(1 - (1 - x^2) V^2)

together with G(0) = det(1 - V), and the solution is, with r = sqrt(1 - x^2),

G(x) = [(1 + c) det(1 - r V) + (1 - c) det(1 + r V)] / 2,  c = sqrt((1 - x) / (1 + x)).

Determinants are computed on the nodes of a quadrature (F. Bornemann, arXiv:0804.2543).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from rich.table import Table

from gauge_mc.analysis.timeseries import Estimate, Replicas, bin_length, caution_short, jackknifed
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.overlap.spectrum import (
    SPECTRUM_COLUMNS,
    SpectrumTable,
    read_spectra,
)
from gauge_mc.fits import FITS, DataResult, Fit
from gauge_mc.fits.files import table_beside, tables_of_chains
from gauge_mc.fits.quoted import QuotedNumber, empty_table, quoted_field, quoted_number
from gauge_mc.groups import GROUPS
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.pictures import Frame, Mark, Picture, Sketch, Stroke, look, minus
from gauge_mc.plots.runs import TablePlot, labels_of, one_run
from gauge_mc.quantities.flow.curves import FLOW_COLUMNS, FlowTable, read_flow
from gauge_mc.quantities.flow.topology import CHARGE, MIN_CHANGES, TIME, Charges, charges_at
from gauge_mc.results import documented, headings, result_field
from gauge_mc.run.thermalisation import SKIP, last_skipped

if TYPE_CHECKING:
    from matplotlib.axes import Axes


UNITARY, ORTHOGONAL = 2, 1
"""The Dyson indices of the classes."""

CLASSES = {UNITARY: "chiral unitary", ORTHOGONAL: "chiral orthogonal"}
"""Their names."""

NODES = 20
"""Nodes of the quadrature of a determinant besides one for every two units of the interval."""

BEYOND = 10.0
"""Distance beyond the largest mean eigenvalue up to which probabilities are integrated."""

STEPS = 2.0
"""Nodes of the integral over the eigenvalue per unit."""

RADIUS, CIRCLE = 0.5, 128
"""Radius of the circle on which generating functions are evaluated, and number of points."""


def dyson_index(colours: int) -> int:
    """Return the Dyson index of quarks in the fundamental representation of SU(N)."""
    return ORTHOGONAL if colours == 2 else UNITARY


@cache
def mean_eigenvalues(dyson: int, nu: int, number: int) -> tuple[float, ...]:
    """Return the means of the lowest eigenvalues in units of 1 / (Sigma V)."""
    nu = abs(nu)
    last = math.pi * (number + nu / 2) + BEYOND
    x, w = np.polynomial.legendre.leggauss(round(STEPS * last))
    s, weights = last * (x + 1) / 2, last * w / 2
    within = np.array([_fewer(dyson, nu, number, float(x)) for x in s])
    return tuple((weights @ within).tolist())  # <z_k> is the integral of P(fewer than k below s)


def _fewer(dyson: int, nu: int, number: int, s: float) -> Array:
    """Return the probabilities of fewer than 1, 2, … eigenvalues between 0 and s."""
    x = RADIUS * np.exp(2j * np.pi * np.arange(CIRCLE) / CIRCLE)
    mu = _kernel_eigenvalues(nu, s)
    if dyson == UNITARY:
        values = np.prod(1 - np.multiply.outer(1 - x, mu**2), axis=1)
    else:
        r, c = np.sqrt(1 - x**2), np.sqrt((1 - x) / (1 + x))
        outer = np.multiply.outer(r, mu)
        values = ((1 + c) * np.prod(1 - outer, axis=1) + (1 - c) * np.prod(1 + outer, axis=1)) / 2
    probabilities = (np.fft.fft(values) / CIRCLE).real[:number] / RADIUS ** np.arange(number)
    return np.asarray(np.cumsum(probabilities))


def _kernel_eigenvalues(nu: int, s: float) -> Array:
    x, w = np.polynomial.legendre.leggauss(NODES + math.ceil(s / 2))
    t, weights = (x + 1) / 2, w / 2
    scales = np.sqrt(weights * t)  # the measure t dt, so that the rest of the kernel is analytic
    bessel = load("scipy.special").jv(nu, s * np.outer(t, t))
    kernel = s * np.outer(scales, scales) * bessel
    return np.asarray(np.linalg.eigvalsh(kernel), dtype=np.float64)


LEAST_IN_A_SECTOR = 10
"""Minimum number of configurations of a sector whose mean eigenvalues are determined."""

MOST_SECTOR = 3
"""Largest |index| of a sector that is compared with random matrices."""


@documented
@dataclass(frozen=True)
class SectorEigenvalue:
    """The mean of an eigenvalue over the configurations of a topological sector."""

    nu: int = result_field("The sector: |index|.")
    k: int = result_field("Number of the eigenvalue, from 1 for the smallest one that is not 0.")
    configurations: int = result_field("Number of configurations of the sector.")
    mean: Estimate = result_field("<lambda_k>_nu, in lattice units.")
    predicted: float = result_field("<lambda_k>_nu Sigma V of random matrices.")
    sigma: Estimate = result_field(
        "Bare Sigma a^3 from this eigenvalue: predicted / (V <lambda_k>_nu)."
    )


@documented
@dataclass(frozen=True)
class EigenvalueRatio:
    """The ratio of two mean eigenvalues, with that of random matrices."""

    k: int = result_field("Number of the eigenvalue in the numerator.")
    nu: int = result_field("Its sector.")
    other_k: int = result_field("Number of the eigenvalue in the denominator.")
    other_nu: int = result_field("Its sector.")
    ratio: Estimate = result_field("<lambda_k>_nu / <lambda_k'>_nu'.")
    predicted: float = result_field("The ratio for random matrices.")
    deviation: float = result_field("Difference from the prediction in units of the error.")


@documented
@dataclass(frozen=True)
class ChargeComparison:
    """The charge of the gradient flow on the same configurations."""

    charge: str = result_field("Discretisation of Q.")
    t: float = result_field("Flow time t/a^2.")
    configurations: int = result_field("Number of configurations that both tables have.")
    square: Estimate = result_field("<Q^2> of the flow, with Q as it is.")
    square_rounded: Estimate = result_field("<Q^2> of the flow, with Q rounded to integers.")
    index_square: Estimate = result_field("<index^2> on the same configurations.")
    different: float = result_field(
        "Fraction of the configurations whose index is not the rounded Q."
    )
    correlation: float = result_field("Correlation coefficient of the index and Q.")


@documented
@dataclass(frozen=True)
class OverlapSpectrumSummary:
    """The index of the overlap operator on an ensemble, and its low eigenvalues."""

    ensemble: Mapping[str, str] = result_field(
        "Group, beta, lattice and action of the ensemble, and the operator."
    )
    configurations: int = result_field("Number of configurations.")
    chains: int = result_field("Number of Markov chains that are averaged.")
    skip: int = result_field("Last update that was left out.")
    bound: float = result_field("Largest bound of the norm of the error of D(0).")
    changes: int = result_field("How often the index changes from one configuration to the next.")
    mean: Estimate = result_field("<index>.", symbol="<index>")
    square: Estimate = result_field("<index^2>.", symbol="<index²>")
    susceptibility: Estimate = result_field(
        "chi_t a^4 = <index^2> / V, with the number of sites V.", symbol="χ_t a⁴"
    )
    histogram: Mapping[str, int] = result_field("Number of configurations by index.")
    matrices: str = result_field("Class of random matrices that the eigenvalues are compared with.")
    sectors: tuple[SectorEigenvalue, ...] = result_field("Mean eigenvalues by sector.")
    ratios: tuple[EigenvalueRatio, ...] = result_field("Ratios of mean eigenvalues.")
    flow: ChargeComparison | None = result_field(
        "The charge of the flow; None if the run has no table of the flow."
    )
    cautions: tuple[str, ...] = result_field("Cautions about the errors, one sentence each.")


@dataclass(frozen=True)
class FlowedCharges:
    """Charges of the gradient flow, to compare the index with."""

    flow: FlowTable
    """The flow of the same chains."""
    charges: Charges
    """The charges, not rounded."""
    name: str
    """Discretisation of the charge."""

    def rounded(self) -> Integers:
        """Return the integers nearest to alpha Q."""
        return np.rint(self.charges.alpha * self.charges.values).astype(np.int64)


def overlap_spectrum(
    table: SpectrumTable, flow: FlowedCharges | None = None, skip: int = 0
) -> OverlapSpectrumSummary:
    """Determine the moments of the index, and compare eigenvalues with random matrices.

    Means over a sector and ratios have errors by the jackknife, and moments of the index those of
    the Gamma method.
    """
    index = table.index.astype(np.float64)
    group = table.ensemble.get("group", "")
    if group not in GROUPS:
        raise UsageError(f"The table is of the unknown group '{group}'; fit one of SU(N).")
    chains = table.replicas.split(table.index)
    changes = sum(int(np.count_nonzero(np.diff(chain))) for chain in chains)
    trusted = changes >= MIN_CHANGES
    values, counts = np.unique(table.index, return_counts=True)
    dyson = dyson_index(GROUPS[group].colours)
    sectors = _Sectors(table, dyson)
    mean, square, chi_t = (
        _moment(table.replicas, series, trusted)
        for series in (index, index**2, index**2 / table.lattice.sites)
    )
    histogram = {str(v): int(n) for v, n in zip(values.tolist(), counts.tolist(), strict=True)}
    words = dict(table.ensemble), index.size, len(chains), skip, table.bound, changes
    eigenvalues = CLASSES[dyson], sectors.eigenvalues(), sectors.ratios()
    compared = _compared(table, flow, trusted) if flow else None
    tau = max(moment.tau_int + moment.tau_int_error for moment in (mean, square))
    cautions = tuple(_cautions(table, changes, tau, sectors))
    return OverlapSpectrumSummary(
        *words, mean, square, chi_t, histogram, *eigenvalues, compared, cautions
    )


def _moment(replicas: Replicas, series: Array, trusted: bool) -> Estimate:
    """Return a mean over chains, without an error if the index changes too rarely."""
    mean, nan = replicas.estimate(series), math.nan
    return mean if trusted else Estimate(mean.value, nan, nan, nan, mean.samples)


class _Sectors:
    """Means of eigenvalues by sector, with errors by the jackknife over the whole chains."""

    def __init__(self, table: SpectrumTable, dyson: int) -> None:
        self._table, self._dyson = table, dyson
        self._volume, self._most = table.lattice.sites, table.projected.shape[1]
        sizes = np.abs(table.index)
        masks = {nu: sizes == nu for nu in range(MOST_SECTOR + 1)}
        self.masks = {nu: m for nu, m in masks.items() if m.sum() >= LEAST_IN_A_SECTOR}
        series = sizes.astype(np.float64), table.projected[:, 0]
        tau = max(table.replicas.estimate(values).tau_int for values in series)
        self._length = bin_length(sizes.size, tau)

    def _columns(self, nu: int, k: int) -> Array:
        inside = self.masks[nu].astype(np.float64)
        return np.stack([self._table.projected[:, k - 1] * inside, inside], axis=1)

    def _jackknifed(self, columns: Array, function: Callable[[Array], Array]) -> Estimate:
        with np.errstate(invalid="ignore", divide="ignore"):  # a sector within one bin
            value, error = jackknifed(self._table.replicas.split(columns), self._length, function)
        return Estimate(value, error, math.nan, math.nan, len(columns))

    def predicted(self, nu: int, k: int) -> float:
        """Return the mean eigenvalue of random matrices."""
        return mean_eigenvalues(self._dyson, nu, self._most)[k - 1]

    def eigenvalues(self) -> tuple[SectorEigenvalue, ...]:
        """Return the mean of every eigenvalue in every sector."""
        results = []
        for nu, mask in self.masks.items():
            for k in range(1, self._most + 1):
                columns, z = self._columns(nu, k), self.predicted(nu, k)
                mean = self._jackknifed(columns, lambda m: m[..., 0] / m[..., 1])
                scaled = columns * [self._volume / z, 1]
                sigma = self._jackknifed(scaled, lambda m: m[..., 1] / m[..., 0])
                results.append(SectorEigenvalue(nu, k, int(mask.sum()), mean, z, sigma))
        return tuple(results)

    def ratios(self) -> tuple[EigenvalueRatio, ...]:
        """Return the ratios of neighbouring sectors, and of neighbours within sectors."""
        pairs = [
            *((1, nu, 1, x) for nu, x in pairwise(self.masks)),
            *((k, nu, k + 1, nu) for nu in self.masks for k in range(1, self._most)),
        ]
        return tuple(self._ratio(*pair) for pair in pairs)

    def _ratio(self, k: int, nu: int, other_k: int, other_nu: int) -> EigenvalueRatio:
        columns = np.concatenate([self._columns(nu, k), self._columns(other_nu, other_k)], axis=1)
        ratio = self._jackknifed(columns, lambda m: m[..., 0] / m[..., 1] * m[..., 3] / m[..., 2])
        predicted = self.predicted(nu, k) / self.predicted(other_nu, other_k)
        deviation = (ratio.value - predicted) / ratio.error if ratio.error > 0 else math.nan
        return EigenvalueRatio(k, nu, other_k, other_nu, ratio, predicted, deviation)


def _compared(table: SpectrumTable, flow: FlowedCharges, trusted: bool) -> ChargeComparison | None:
    """Return the charge of the flow on the configurations of a table; None if there are none."""
    places, flow_places = common(table, flow)
    if not places.size:
        return None
    index, q = table.index[places], flow.charges.values[flow_places]
    rounded = flow.rounded()[flow_places]
    replicas = table.replicas.where(np.isin(np.arange(table.index.size), places))
    varies = np.ptp(index) > 0 and np.ptp(q) > 0

    def square(values: Array | Integers) -> Estimate:
        return _moment(replicas, values.astype(np.float64) ** 2, trusted)

    different = float(np.mean(index != rounded))
    correlation = float(np.corrcoef(index, q)[0, 1]) if varies else math.nan
    squares = square(q), square(rounded), square(index)
    words = flow.name, float(flow.flow.t[flow.charges.index]), int(places.size)
    return ChargeComparison(*words, *squares, different, correlation)


def common(table: SpectrumTable, flow: FlowedCharges) -> tuple[Integers, Integers]:
    """Return the places of the configurations that both have, in the first and in the second."""
    spectra, charges = (x.replicas.keys(x.sweeps) for x in (table, flow.flow))
    _, places, flow_places = np.intersect1d(spectra, charges, return_indices=True)
    return places.astype(np.int64), flow_places.astype(np.int64)


def _cautions(table: SpectrumTable, changes: int, tau: float, sectors: _Sectors) -> list[str]:
    """Return cautions; `tau` is the longest tau_int of the moments, with its error."""
    cautions = []
    if changes < MIN_CHANGES:
        cautions.append(
            f"The index changes {changes} times in {table.index.size} configurations, too rarely "
            "to estimate autocorrelation times and errors: make the run much longer."
        )
    else:
        cautions += caution_short(table.index.size, tau, "the index")
        cautions += table.replicas.cautions(table.sweeps, table.index.astype(np.float64))
    if not sectors.masks:
        cautions.append(
            f"No sector has {LEAST_IN_A_SECTOR} configurations, so that eigenvalues are not "
            "compared with random matrices; measure more."
        )
    return cautions


class OverlapSpectrumResult(DataResult[OverlapSpectrumSummary]):
    """The index and the low eigenvalues of an ensemble."""

    observable: ClassVar[str] = (
        "index of the overlap operator, and its low eigenvalues by topological sector"
    )
    units: ClassVar[str] = "lattice units; tau_int in configurations"

    def report(self) -> list[Any]:
        """Return tables of the index, of mean eigenvalues and of ratios."""
        return [self._index(), *self._eigenvalues()]

    def quoted(self) -> list[QuotedNumber]:
        """Return the susceptibility, and Sigma from the sector that determines it best.

        It is from smallest eigenvalues, which agree with random matrices in the smallest volumes.
        """
        summary = self.found
        smallest = [sector for sector in summary.sectors if sector.k == 1]
        sigma = sorted(smallest, key=lambda x: x.sigma.error)[:1]
        return [
            quoted_field(summary, "square"),
            quoted_field(summary, "susceptibility"),
            *(quoted_number(f"Σ a³ from <λ_{x.k}>_{x.nu}", x.sigma) for x in sigma),
        ]

    def unquoted(self) -> str:
        """Return why the susceptibility has no error; see `FitResult.unquoted`."""
        return "the index changes too rarely to estimate errors"

    def _index(self) -> Table:
        summary = self.found
        below = {"caption": self._caption(), "caption_justify": "left"}
        title, heads = "Index of the overlap operator", ("value", "τ_int")
        table = empty_table(title, ["quantity"], heads, **below)
        names = headings(OverlapSpectrumSummary)
        values = {heading: getattr(summary, name) for name, heading in names.items()}
        if summary.flow:
            values["<Q²> of the flow"] = summary.flow.square
            values["<Q²>, Q rounded"] = summary.flow.square_rounded
        for heading, value in values.items():
            table.add_row(heading, str(value), value.format_tau())
        return table

    def _caption(self) -> str:
        summary = self.found
        counts = ", ".join(f"{v}: {n}" for v, n in summary.histogram.items())
        chains = f" of {summary.chains} chains" if summary.chains > 1 else ""
        lines = [
            f"{summary.configurations} configurations{chains}; by index {counts}.",
            f"Largest bound of the error of D: {summary.bound:.1e}.",
        ]
        if summary.flow:
            flow = summary.flow
            lines.append(
                f"Q of the flow: {flow.charge}, t/a² = {flow.t:g}, on {flow.configurations} "
                f"configurations; rounded, it is not the index on {flow.different:.0%} of them."
            )
        return "\n".join([*lines, *summary.cautions])

    def _eigenvalues(self) -> list[Table]:
        summary = self.found
        if not summary.sectors:
            return []
        heads = "|index|", "configs", "k", "<λ_k>", "<λ_k> Σ V predicted", "Σ a³"
        title = "Mean eigenvalues by sector, projected to the imaginary axis"
        means = empty_table(title, (), heads)
        for sector in summary.sectors:
            cells = str(sector.nu), str(sector.configurations), str(sector.k)
            means.add_row(*cells, str(sector.mean), f"{sector.predicted:.4f}", str(sector.sigma))
        title = f"Ratios, against {summary.matrices} matrices"
        ratios = empty_table(title, ["ratio"], ["value", "predicted", "difference/error"])
        for ratio in summary.ratios:
            name = f"<λ_{ratio.k}>_{ratio.nu} / <λ_{ratio.other_k}>_{ratio.other_nu}"
            cells = str(ratio.ratio), f"{ratio.predicted:.4f}", f"{ratio.deviation:.1f}"
            ratios.add_row(name, *cells)
        return [means, ratios] if summary.ratios else [means]


class OverlapSpectrumFit(Fit):
    """Moments of the index, ratios of mean eigenvalues, and Sigma."""

    name: ClassVar[str] = "overlap-spectrum"
    summary: ClassVar[str] = "index, χ_t, random-matrix ratios and Σ of the overlap operator"
    columns: ClassVar[tuple[str, ...]] = SPECTRUM_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (OverlapSpectrumSummary,)
    options: ClassVar[tuple[Option, ...]] = (CHARGE, TIME, SKIP)
    isotropic: ClassVar[bool] = True

    def carry_out(self, tables: Sequence[Path], **options: Any) -> OverlapSpectrumResult:
        """Determine the moments and the ratios from chains; see `Fit.carry_out`."""
        last = max(_skips_of(tables, options))
        return OverlapSpectrumResult(overlap_spectrum(*read_chains(tables, options), last))


FITS.register(OverlapSpectrumFit())


def _skips_of(tables: Sequence[Path], options: Mapping[str, Any]) -> Sequence[int]:
    """Return the last update of each chain that is left out."""
    skip = options.get(SKIP.name, 0)
    several = not isinstance(skip, int | str)
    return skip if several else [last_skipped(table.parent, skip) for table in tables]


def read_chains(
    tables: Sequence[Path], options: Mapping[str, Any]
) -> tuple[SpectrumTable, FlowedCharges | None]:
    """Return the spectra of chains of one ensemble, and the charges of the flow.

    The charges are None if a chain has no table of them.
    """
    skips = _skips_of(tables, options)
    spectra = read_spectra(tables, skips)
    paths = (table_beside(table.parent, FLOW_COLUMNS) for table in tables)
    flows = [path for path in paths if path]
    if len(flows) < len(tables):
        return spectra, None
    flow, name = read_flow(flows, skips, 1), options.get(CHARGE.name, CHARGE.default)
    return spectra, FlowedCharges(flow, charges_at(flow, name, options.get(TIME.name)), name)


BAR = 0.4
"""Width of a bar of the histograms."""


class OverlapSpectrumPlot(TablePlot):
    """Histograms of the index and of the flow's charge, and the lowest eigenvalue by sector."""

    name = "overlap-spectrum"
    summary = "index of the overlap operator beside the flow's charge, lowest eigenvalues"
    subject: ClassVar[str] = "The spectrum of the overlap operator"
    columns: ClassVar[tuple[str, ...]] = OverlapSpectrumFit.columns
    options: ClassVar[tuple[Option, ...]] = OverlapSpectrumFit.options
    skips_each: ClassVar[bool] = True

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw a run, or the chains in a folder together; see `Plot.draw`."""
        tables = tables_of_chains(one_run(runs, self.subject), self.columns)
        if not tables:
            return super().draw(runs, file, **options)
        picture = _picture(*read_chains(tables, options))
        replace(picture, title=labels_of([tables[0].parent])[0]).draw(file)
        return []

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show the histogram of the index and the distribution of the lowest eigenvalue."""
        return _picture(*read_chains([table], options))


PLOTS.register(OverlapSpectrumPlot())


def _picture(table: SpectrumTable, flow: FlowedCharges | None) -> Picture:
    """Return the figure of an ensemble; the charge of the flow is rounded to integers."""
    summary = overlap_spectrum(table, flow)
    text = rf"index, $\langle\mathrm{{index}}^2\rangle={minus(summary.square)}$"
    bars = [_bars(table.index, -BAR / 2 if flow else 0.0, 0, text)]
    if flow and summary.flow:
        rounded = minus(summary.flow.square_rounded)
        text = rf"$Q$ of the flow, rounded, $\langle Q^2\rangle={rounded}$"
        bars.append(_bars(flow.rounded()[common(table, flow)[1]], BAR / 2, 1, text))
    largest = float(table.projected[:, 0].max())
    frames = [
        Frame(bars, "index, $Q$" if flow else "index", "configurations", finish=_set_integers),
        Frame(
            _cumulative(table, 2 * largest),
            r"$a\,\lambda_1$",
            "cumulative distribution",
            {"ylim": (0, 1), "xlim": (0, 1.05 * largest)},
            lambda axes: axes.locator_params("x", nbins=5, prune="lower"),
        ),
    ]
    return Picture(frames, 3.4, columns=2)


def _set_integers(axes: Axes) -> None:
    """Put the ticks of both axes at integers."""
    axes.locator_params(integer=True)


def _bars(values: Any, shift: float, number: int, text: str) -> Mark:
    """Return a histogram of integers."""
    integers, counts = np.unique(values, return_counts=True)
    style = {"color": look(number)["color"]}

    def draw(axes: Axes) -> Any:
        axes.bar(integers + shift, counts, BAR, **style)
        return load("matplotlib.patches").Patch(**style)

    return Sketch(draw, text=text)


def _cumulative(table: SpectrumTable, end: float) -> list[Mark]:
    """Return the fraction of configurations of each sector with a smaller lowest eigenvalue."""
    marks: list[Mark] = []
    for nu in range(MOST_SECTOR + 1):
        lowest = np.sort(table.projected[np.abs(table.index) == nu, 0])
        if lowest.size >= LEAST_IN_A_SECTOR:
            fractions = np.arange(1, lowest.size + 1) / lowest.size
            style = {"color": look(nu + 2)["color"], "drawstyle": "steps-post"}
            text = rf"$\lambda_1$, $|\mathrm{{index}}|={nu}$"
            marks.append(Stroke([0, *lowest, end], [0, *fractions, 1], style=style, text=text))
    message = f"no $|\\mathrm{{index}}|$ with {LEAST_IN_A_SECTOR} configurations"
    centred: dict[str, Any] = {"ha": "center", "va": "center"}
    sketch = Sketch(lambda axes: axes.text(0.5, 0.5, message, transform=axes.transAxes, **centred))
    return marks or [sketch]

"""The index of the overlap operator, and its low eigenvalues against random-matrix theory.

<lambda_k>_nu is the mean of the k-th eigenvalue that is not 0 over the configurations whose index
is nu or -nu. In a quenched box of the epsilon regime, <lambda_k>_nu Sigma V is a number <z_k>_nu
(see `gauge_mc.quantities.overlap.analysis.random_matrices`), so that ratios are predicted without
parameters, and Sigma is <z_k>_nu / (V <lambda_k>_nu). These are the bare numbers of the lattice,
with eigenvalues that are projected to the imaginary axis as in hep-lat/0306022.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gauge_mc.analysis.timeseries.bins import bin_length, jackknifed
from gauge_mc.analysis.timeseries.cautions import caution_skip, caution_slow
from gauge_mc.analysis.timeseries.estimates import Estimate, caution_short
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.analysis.timeseries.transients import transient_end
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import UsageError
from gauge_mc.groups import GROUPS
from gauge_mc.quantities.flow.analysis.topology import MIN_CHANGES, Charges
from gauge_mc.quantities.overlap.analysis.random_matrices import (
    CLASSES,
    dyson_index,
    mean_eigenvalues,
)
from gauge_mc.quantities.overlap.analysis.records import SpectrumTable, split_by_chain
from gauge_mc.results import documented, result_field

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

    sweeps: Integers
    """Numbers (updates) of the configurations."""
    chains: Integers
    """Number of the Markov chain of every configuration; see `SpectrumTable`."""
    charges: Charges
    """The charges, not rounded."""
    name: str
    """Discretisation of the charge."""
    t: float
    """Flow time t/a^2."""

    def rounded(self) -> Integers:
        """Return the integers nearest to alpha Q."""
        return np.rint(self.charges.alpha * self.charges.values).astype(np.int64)


def overlap_spectrum(
    table: SpectrumTable, flow: FlowedCharges | None = None, skip: int = 0
) -> OverlapSpectrumSummary:
    """Determine the moments of the index, and compare eigenvalues with random matrices.

    Means over a sector and ratios have errors by the jackknife, and moments of the index those of
    the Gamma method.

    Parameters
    ----------
    table : SpectrumTable
        The spectra of an ensemble.
    flow : FlowedCharges, optional
        The charge of the gradient flow.
    skip : int
        Last update that was left out, for the result.

    Raises
    ------
    UsageError
        If the gauge group of the table is unknown.
    """
    index = table.index.astype(np.float64)
    group = table.ensemble.get("group", "")
    if group not in GROUPS:
        raise UsageError(f"The table is of the unknown group '{group}'; fit one of SU(N).")
    changes = sum(int(np.count_nonzero(np.diff(one))) for one in table.parts(table.index))
    trusted = changes >= MIN_CHANGES
    square, volume = index**2, table.lattice.sites
    values, counts = np.unique(table.index, return_counts=True)
    dyson = dyson_index(GROUPS[group].colours)
    sectors = _Sectors(table, dyson)
    return OverlapSpectrumSummary(
        dict(table.ensemble),
        index.size,
        int(table.chains[-1]) + 1,
        skip,
        table.bound,
        changes,
        _moment(table.parts(index), trusted),
        _moment(table.parts(square), trusted),
        _moment(table.parts(square / volume), trusted),
        {str(v): int(n) for v, n in zip(values.tolist(), counts.tolist(), strict=True)},
        CLASSES[dyson],
        sectors.eigenvalues(),
        sectors.ratios(),
        _compared(table, flow, trusted) if flow else None,
        tuple(_cautions(table, changes, sectors)),
    )


def _moment(series: Sequence[Array], trusted: bool) -> Estimate:
    """Return a mean over chains, without an error if the index changes too rarely."""
    found = estimate(*series)
    nan = math.nan
    return found if trusted else Estimate(found.value, nan, nan, nan, found.samples)


class _Sectors:
    """Means of eigenvalues by sector, with errors by the jackknife over the whole chains."""

    def __init__(self, table: SpectrumTable, dyson: int) -> None:
        self._table, self._dyson = table, dyson
        self._volume, self._most = table.lattice.sites, table.projected.shape[1]
        sizes = np.abs(table.index)
        masks = {nu: sizes == nu for nu in range(MOST_SECTOR + 1)}
        self.masks = {nu: m for nu, m in masks.items() if m.sum() >= LEAST_IN_A_SECTOR}
        series = sizes.astype(np.float64), table.projected[:, 0]
        tau = max(estimate(*table.parts(one)).tau_int for one in series)
        self._length = bin_length(sizes.size, tau)

    def _columns(self, nu: int, k: int) -> Array:
        inside = self.masks[nu].astype(np.float64)
        return np.stack([self._table.projected[:, k - 1] * inside, inside], axis=1)

    def _jackknifed(self, columns: Array, function: Callable[[Array], Array]) -> Estimate:
        with np.errstate(invalid="ignore", divide="ignore"):  # a sector within one bin
            value, error = jackknifed(self._table.parts(columns), self._length, function)
        return Estimate(value, error, math.nan, math.nan, len(columns))

    def predicted(self, nu: int, k: int) -> float:
        """Return the mean eigenvalue of random matrices."""
        return mean_eigenvalues(self._dyson, nu, self._most)[k - 1]

    def eigenvalues(self) -> tuple[SectorEigenvalue, ...]:
        """Return the mean of every eigenvalue in every sector."""
        found = []
        for nu, mask in self.masks.items():
            for k in range(1, self._most + 1):
                columns, z = self._columns(nu, k), self.predicted(nu, k)
                mean = self._jackknifed(columns, lambda m: m[..., 0] / m[..., 1])
                scaled = columns * [self._volume / z, 1]
                sigma = self._jackknifed(scaled, lambda m: m[..., 1] / m[..., 0])
                found.append(SectorEigenvalue(nu, k, int(mask.sum()), mean, z, sigma))
        return tuple(found)

    def ratios(self) -> tuple[EigenvalueRatio, ...]:
        """Return the ratios of neighbouring sectors, and of neighbours within sectors."""
        known = list(self.masks)
        pairs = [
            *(((1, nu), (1, other)) for nu, other in pairwise(known)),
            *(((k, nu), (k + 1, nu)) for nu in known for k in range(1, self._most)),
        ]
        return tuple(self._ratio(*one, *other) for one, other in pairs)

    def _ratio(self, k: int, nu: int, other_k: int, other_nu: int) -> EigenvalueRatio:
        columns = np.concatenate([self._columns(nu, k), self._columns(other_nu, other_k)], axis=1)
        ratio = self._jackknifed(columns, lambda m: m[..., 0] / m[..., 1] * m[..., 3] / m[..., 2])
        predicted = self.predicted(nu, k) / self.predicted(other_nu, other_k)
        deviation = (ratio.value - predicted) / ratio.error if ratio.error > 0 else math.nan
        return EigenvalueRatio(k, nu, other_k, other_nu, ratio, predicted, deviation)


def _compared(table: SpectrumTable, flow: FlowedCharges, trusted: bool) -> ChargeComparison | None:
    """Return the charge of the flow on the configurations of a table; None if there are none."""
    own, others = common(table, flow)
    if not own.size:
        return None
    index, q = table.index[own], flow.charges.values[others]
    rounded = flow.rounded()[others]
    varies = np.ptp(index) > 0 and np.ptp(q) > 0

    def square(values: Array | Integers) -> Estimate:
        squares = values.astype(np.float64) ** 2
        return _moment(split_by_chain(squares, table.chains[own]), trusted)

    return ChargeComparison(
        flow.name,
        flow.t,
        int(own.size),
        square(q),
        square(rounded),
        square(index),
        float(np.mean(index != rounded)),
        float(np.corrcoef(index, q)[0, 1]) if varies else math.nan,
    )


def common(table: SpectrumTable, flow: FlowedCharges) -> tuple[Integers, Integers]:
    """Return the places of the configurations that both have, in the first and in the second."""
    most = max(int(table.sweeps.max()), int(flow.sweeps.max())) + 1
    its, other = (one.chains * most + one.sweeps for one in (table, flow))
    _, own, others = np.intersect1d(its, other, return_indices=True)
    return own.astype(np.int64), others.astype(np.int64)


def _cautions(table: SpectrumTable, changes: int, sectors: _Sectors) -> list[str]:
    index, found = table.index.astype(np.float64), []
    if changes < MIN_CHANGES:
        found.append(
            f"The index changes {changes} times in {index.size} configurations, too rarely to "
            "estimate autocorrelation times and errors: make the run much longer."
        )
    else:
        parts = table.parts(index)
        moments = (estimate(*parts), estimate(*(one**2 for one in parts)))
        tau = max(one.tau_int + one.tau_int_error for one in moments)
        found += caution_short(index.size, tau, "the index")
        ends = map(transient_end, table.parts(table.sweeps), parts)
        found += caution_skip(max(ends)) or caution_slow(*parts)
    if not sectors.masks:
        found.append(
            f"No sector has {LEAST_IN_A_SECTOR} configurations, so that eigenvalues are not "
            "compared with random matrices; measure more."
        )
    return found

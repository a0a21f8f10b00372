"""The distribution of the topological charge at a flow time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gauge_mc.analysis.timeseries.cautions import caution_series
from gauge_mc.analysis.timeseries.estimates import Estimate, caution_short
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.flow.analysis.curves import Crossing, FlowCurve
from gauge_mc.quantities.flow.analysis.records import FlowTable
from gauge_mc.quantities.flow.analysis.scales import LARGEST_RADIUS, TARGET, Reference
from gauge_mc.quantities.potential.analysis.derived import HBAR_C
from gauge_mc.results import documented, result_field

LARGEST_ALPHA = 1.4
"""Largest factor that is tried in front of the charge before it is rounded."""

STEPS = 20
"""Number of factors that are tried per unit by which the largest charge changes. The search for the
best factor begins from as many of them, and has as many steps."""

MIN_CHANGES = 10
"""Minimum number of changes of the rounded charge along the chain. With fewer, neither
autocorrelation times nor errors can be estimated."""

LARGEST_DEVIATION = 0.2
"""Root-mean-square distance from integers above which rounding is questionable. It is 0.29 for
charges that are spread evenly between integers."""

ADMISSIBLE = 0.067
"""Bound on Re Tr(1 - U_p). Fields that respect it at all plaquettes fall into topological sectors
(M. Luescher, arXiv:1006.4518)."""

TOLERANCE = 1e-9
"""Relative rounding error of flow times."""


@documented
@dataclass(frozen=True, kw_only=True)
class TopologicalCharge:
    """The distribution of the topological charge Q of an ensemble at one flow time."""

    charge: str = result_field("Discretisation of Q.")
    t: float = result_field("Flow time t/a^2.")
    rule: str = result_field("How the flow time was chosen, in words.")
    rounded: bool = result_field("Whether Q was replaced by the nearest integer to alpha Q.")
    alpha: float = result_field("Factor that brings the charges nearest to integers.")
    deviation: float = result_field("Root-mean-square distance of alpha Q from integers.")
    configurations: int = result_field("Number of configurations.")
    updates: int | None = result_field(
        "Updates from one configuration to the next; None if they differ."
    )
    changes: int = result_field(
        "How often the rounded charge changes from one configuration to the next.",
    )
    mean: Estimate = result_field(
        "<Q>, whose tau_int is that of Q in configurations.", symbol="<Q>"
    )
    square: Estimate = result_field(
        "<Q^2>, whose tau_int is that of Q^2 in configurations.",
        symbol="<Q²>",
    )
    kurtosis: Estimate = result_field(
        "(<Q^4> - 3 <Q^2>^2) / <Q^2>, which is -12 b2.",
        symbol="(<Q⁴> − 3<Q²>²)/<Q²>",
    )
    susceptibility: Estimate = result_field(
        "chi_t a^4 = <Q^2> / V, with the number of sites V.",
        symbol="χ_t a⁴",
    )
    susceptibility_t0: Estimate | None = result_field(
        "chi_t t0^2; None if t0 is unknown.",
        symbol="χ_t t0²",
    )
    fourth_root: Estimate | None = result_field(
        "chi_t^(1/4) in MeV; None without a reference scale in fm.",
        symbol="χ_t^¼",
        unit="MeV",
    )
    fourth_root_scale_error: float | None = result_field(
        "Error of chi_t^(1/4) in MeV that is due to the error of the reference scale.",
    )
    source: str = result_field("Where the reference scale comes from, in words.")
    s_max: float = result_field(
        "Largest Re Tr(1 - U_p) of all plaquettes of all configurations at this flow time.",
    )
    inadmissible: float = result_field(
        "Fraction of configurations with a plaquette at which Re Tr(1 - U_p) is 0.067 or more.",
    )
    t0: Estimate | None = result_field("t0/a^2; None if it is unknown.")
    ensemble: dict[str, str] = result_field(
        "Group, beta, lattice and action of the ensemble, and the kind of the flow.",
        dict,
    )
    cautions: list[str] = result_field("Cautions about these results, one sentence each.", list)


@dataclass(frozen=True)
class Charges:
    """Topological charges of an ensemble at one flow time."""

    values: Array
    """Q, rounded if that was wanted, of shape (configurations,)."""
    index: int
    """Index of the flow time."""
    rule: str
    """How the flow time was chosen, in words."""
    alpha: float
    """Factor that brings the charges nearest to integers."""
    deviation: float
    """Their remaining distance from integers."""
    changes: int
    """How often the rounded charge changes."""
    t0: Crossing | None
    """t0/a^2; None if it is unknown."""
    missing: str = ""
    """Why t0 is unknown, in a sentence."""


def best_factor(charges: Array) -> tuple[float, float]:
    """Return the factor that brings charges nearest to integers, and their remaining distance.

    alpha minimises sum (alpha Q - round(alpha Q))^2 for 1 <= alpha <= 1.4 (L. Del Debbio, H.
    Panagopoulos and E. Vicari, hep-th/0204125).

    Returns
    -------
    alpha, deviation : float
        The deviation is the root mean square of alpha Q - round(alpha Q).
    """
    squares = float(charges @ charges)

    def deviation(alpha: float) -> float:
        scaled = alpha * charges
        return float(np.sqrt(np.mean((scaled - np.rint(scaled)) ** 2)))

    widest = (LARGEST_ALPHA - 1) * float(np.abs(charges).max())  # integers that Q runs through
    starts = np.linspace(1, LARGEST_ALPHA, math.ceil(STEPS * (1 + widest)) + 1)
    candidates = []
    for _, start in sorted((deviation(float(one)), float(one)) for one in starts)[:STEPS]:
        alpha, least = start, deviation(start)
        for _ in range(
            STEPS if squares else 0
        ):  # for given integers the sum is a parabola in alpha
            better = float(np.clip(np.rint(alpha * charges) @ charges / squares, 1, LARGEST_ALPHA))
            if (smaller := deviation(better)) >= least:
                break
            alpha, least = better, smaller
        candidates.append((least, alpha))
    least, alpha = min(candidates)
    return alpha, least


def charges_at(
    flow: FlowTable,
    charge: str = "clover",
    t: float | None = None,
    rounded: bool = False,
    energy: str = "clover",
    target: float = TARGET,
    corrected: bool = False,
) -> Charges:
    """Return the topological charges of an ensemble at one flow time.

    Parameters
    ----------
    flow : FlowTable
        The gradient flow of an ensemble.
    charge : str
        Discretisation of Q.
    t : float, optional
        Flow time; by default t0 if the flow reaches it, else the last one. The first time of the
        table that is not smaller is taken.
    rounded : bool
        Whether to replace Q by the nearest integer to alpha Q.
    energy, target, corrected
        See `flow_scales`.

    Raises
    ------
    UsageError
        If there is no such discretisation, or `t` is negative.
    GaugeError
        If `t` is beyond the end of the flow.
    """
    missing = ""
    try:
        t0: Crossing | None = FlowCurve.of(flow, energy, corrected).t0(target)
    except UsageError:
        raise
    except GaugeError as error:
        t0, missing = None, str(error)
    if t is None:
        goal = t0.value if t0 else float(flow.t[-1])
        rule = "the first measured time from t0 on" if t0 else "the last one"
    else:
        goal, rule = t, "as given"
        if not 0 <= t < math.inf:
            raise UsageError(f"--t is {t:g}; give a flow time between 0 and {flow.t[-1]:g}.")
        if t > flow.t[-1] * (1 + TOLERANCE):
            raise GaugeError(
                f"--t is {t:g}, but the flow ends at t/a² = {flow.t[-1]:g}; measure the flow with "
                "a larger --to."
            )
    last = flow.t.size - 1
    index = min(int(np.searchsorted(flow.t, goal * (1 - TOLERANCE))), last)
    values = flow.charge(charge)[:, index]
    alpha, deviation = best_factor(values)
    integers = np.rint(alpha * values) + 0.0  # no -0
    changes = int(np.count_nonzero(np.diff(integers)))
    values = integers if rounded else values
    return Charges(values, index, rule, alpha, deviation, changes, t0, missing)


def topological_charge(
    flow: FlowTable,
    charge: str = "clover",
    t: float | None = None,
    rounded: bool = False,
    energy: str = "clover",
    target: float = TARGET,
    corrected: bool = False,
    sqrt_t0: Reference | None = None,
) -> TopologicalCharge:
    """Determine the distribution of the topological charge at one flow time.

    The errors are found by the Gamma method from the linearised series of each quantity. They are
    NaN if the charge changes too rarely to estimate them.

    Parameters
    ----------
    flow, charge, t, rounded, energy, target, corrected
        See `charges_at`.
    sqrt_t0 : Reference, optional
        sqrt(t0) in fm, which sets the scale.

    Raises
    ------
    UsageError, GaugeError
        See `charges_at`.
    """
    found = charges_at(flow, charge, t, rounded, energy, target, corrected)
    q, time = found.values, found.t0
    trusted = found.changes >= MIN_CHANGES
    second = float(np.mean(q**2))
    susceptibility = second / flow.lattice.sites
    series_of_chi = q**2 / flow.lattice.sites
    in_t0 = root = scale_error = None
    if time:
        value = susceptibility * time.value**2
        series = series_of_chi * time.value**2
        series = series + 2 * susceptibility * time.value * (time.series - time.value)
        in_t0 = _estimate(value, series, trusted)
        if sqrt_t0 and value > 0:
            mass = value**0.25 * HBAR_C / sqrt_t0.value
            root = _estimate(mass, mass * (1 + (series / value - 1) / 4), trusted)
            scale_error = mass * sqrt_t0.error / sqrt_t0.value
    mean, square = _estimate(float(q.mean()), q, trusted), _estimate(second, q**2, trusted)
    peaks = flow.columns["s_max"][:, found.index]
    return TopologicalCharge(
        charge=charge,
        t=float(flow.t[found.index]),
        rule=found.rule,
        rounded=rounded,
        alpha=found.alpha,
        deviation=found.deviation,
        configurations=q.size,
        updates=flow.updates,
        changes=found.changes,
        mean=mean,
        square=square,
        kurtosis=_kurtosis(q, trusted),
        susceptibility=_estimate(susceptibility, series_of_chi, trusted),
        susceptibility_t0=in_t0,
        fourth_root=root,
        fourth_root_scale_error=scale_error,
        source=sqrt_t0.source if root and sqrt_t0 else "",
        s_max=float(peaks.max()),
        inadmissible=float(np.mean(peaks >= ADMISSIBLE)),
        t0=time.estimate if time else None,
        ensemble=dict(flow.ensemble),
        cautions=[
            *_cautions(found, mean, square, rounded, float(flow.t[found.index]), flow),
        ],
    )


def _kurtosis(q: Array, trusted: bool) -> Estimate:
    """Return (<Q^4> - 3 <Q^2>^2) / <Q^2>.

    The error is at least that for normally distributed charges, <Q^2> sqrt(24 * 2 tau_int / n),
    because the error of a sample that happens to lack large charges is too small by itself.
    """
    second, fourth = float(np.mean(q**2)), float(np.mean(q**4))
    if second == 0:
        return _estimate(math.nan, np.full(q.size, math.nan), False)
    value = fourth / second - 3 * second
    change = (q**4 - fourth) / second - (fourth / second**2 + 3) * (q**2 - second)
    found = _estimate(value, value + change, trusted)
    normal = second * math.sqrt(24 * 2 * found.tau_int / q.size)
    return replace(found, error=max(found.error, normal)) if trusted else found


def _estimate(value: float, series: Array, trusted: bool) -> Estimate:
    """Return the estimate of a quantity, without errors if they cannot be trusted."""
    if trusted:
        return replace(estimate(series), value=value)
    return Estimate(value, math.nan, math.nan, math.nan, series.size)


def _cautions(
    found: Charges, mean: Estimate, square: Estimate, rounded: bool, t: float, flow: FlowTable
) -> list[str]:
    cautions, n = [], found.values.size
    if found.changes < MIN_CHANGES:
        cautions.append(
            f"Q changes {found.changes} times in {n} configurations, too rarely to estimate "
            "autocorrelation times and errors: make the run much longer."
        )
    else:
        tau_int = max(one.tau_int + one.tau_int_error for one in (mean, square))
        cautions += caution_short(n, tau_int, "Q")
        cautions += caution_series(flow.sweeps, found.values)
    if rounded and found.deviation > LARGEST_DEVIATION:
        cautions.append(
            f"The charges differ from integers by {found.deviation:.2f}, so that rounding them is "
            "questionable: choose a larger --t, or a finer lattice."
        )
    if found.missing:
        cautions.append(f"t0 is not known: {found.missing}")
    radius = math.sqrt(8 * t) / min(flow.lattice.extents)
    if radius > LARGEST_RADIUS:
        cautions.append(
            f"The smoothing radius is {radius:.2g} times the smallest extent of the lattice, so "
            "that effects of the finite volume are large."
        )
    return cautions

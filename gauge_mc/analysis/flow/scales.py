"""The scales t0 and w0 of the gradient flow, and the lattice spacing that follows from them.

t0 is the flow time at which t^2 <E> has a given value (M. Luescher, arXiv:1006.4518), and w0^2 is
that at which t d/dt t^2 <E> has it (S. Borsanyi et al., arXiv:1203.4469). Both are determined from
the ensemble average of E.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import ACTIONS, action_of
from gauge_mc.analysis.flow.records import FLOW_ANISOTROPY, FlowTable, weights_of
from gauge_mc.analysis.flow.tree_level import tree_level
from gauge_mc.analysis.timeseries.cautions import caution_series
from gauge_mc.analysis.timeseries.estimates import Estimate, caution_short
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.libraries import load
from gauge_mc.results import documented, result_field

Array = NDArray[np.float64]

TARGET = 0.3
"""Default of the value that defines t0 and w0."""

MIN_TIMES = 8
"""Minimum number of flow times, so that leaving out every second one leaves a cubic spline."""

NEAREST = 6
"""Number of flow times of the polynomial with which the spline is compared."""

VALUE_GAIN, SLOPE_GAIN = 2**4 - 1, 2**3 - 1
"""Factors by which the interpolation error is smaller than the change when every second flow time
is left out: the error of a cubic spline is of fourth order in the step, that of its slope of third
order."""

NEGLIGIBLE = 0.2
"""Ratio of the interpolation error to the statistical error above which results carry a caution. At
this ratio it would increase the error by 2 %."""

LARGEST_RADIUS = 0.5
"""Smoothing radius sqrt(8 t0) in units of the extent above which results carry a caution."""


@documented
@dataclass(frozen=True)
class Spacing:
    """A lattice spacing in fm."""

    value: Estimate = result_field("a in fm, with its statistical error.")
    scale_error: float = result_field(
        "Error of a in fm that is due to the error of the reference scale.",
    )
    reference: float = result_field("The reference scale in fm.")
    reference_error: float = result_field("Error of the reference scale in fm.")
    source: str = result_field("Where the reference scale comes from, in words.")


@dataclass(frozen=True)
class Reference:
    """A scale in fm."""

    value: float
    """The scale in fm."""
    error: float
    """Its error in fm."""
    source: str
    """Where the value comes from, in words."""

    def spacing(self, scale: Crossing) -> Spacing:
        """Return a in fm, given the scale in lattice units."""
        a = scale.map(lambda x: self.value / x, lambda x: -self.value / x**2)
        error = abs(a.value) * self.error / self.value
        return Spacing(a.estimate, error, self.value, self.error, self.source)


@dataclass(frozen=True)
class Crossing:
    """A quantity that follows from a flow time at which a curve reaches its target."""

    value: float
    """The quantity at the mean of the curve."""
    series: Array
    """Linearised time series; its mean is the value, of shape (configurations,)."""
    interpolation: float
    """Estimate of the interpolation error."""

    def map(self, function: Callable[[float], float], slope: Callable[[float], float]) -> Crossing:
        """Return a function of the quantity, given the function and its derivative."""
        value, rate = function(self.value), slope(self.value)
        series = value + rate * (self.series - self.value)
        return Crossing(value, series, abs(rate) * self.interpolation)

    @cached_property
    def estimate(self) -> Estimate:
        """The value with its statistical error."""
        return replace(estimate(self.series), value=self.value)


@documented
@dataclass(frozen=True, kw_only=True)
class FlowScales:
    """Scales of the gradient flow of an ensemble, in lattice units unless a unit is named."""

    energy: str = result_field("Discretisation of E.")
    target: float = result_field("Value that defines both scales.")
    tree_level: bool = result_field("Whether E was corrected at tree level.")
    configurations: int = result_field("Number of configurations.")
    updates: int | None = result_field(
        "Updates from one configuration to the next; None if they differ."
    )
    t_max: float = result_field("Longest flow time measured.")
    t0: Estimate = result_field("t0/a^2; tau_int is in configurations.", symbol="t0/a²")
    t0_interpolation: float = result_field("Estimate of the interpolation error of t0/a^2.")
    w0: Estimate = result_field("w0/a; NaN if the flow is too short.", symbol="w0/a")
    w0_interpolation: float = result_field("Estimate of the interpolation error of w0/a.")
    radius: Estimate = result_field(
        "Smoothing radius sqrt(8 t0) in units of the smallest extent of the lattice.",
        symbol="√(8 t0)/L",
    )
    spacing_t0: Spacing | None = result_field(
        "The lattice spacing from t0; None without a reference scale in fm.",
        symbol="a from t0",
        unit="fm",
    )
    spacing_w0: Spacing | None = result_field(
        "The lattice spacing from w0; None without a reference scale in fm.",
        symbol="a from w0",
        unit="fm",
    )
    ensemble: dict[str, str] = result_field(
        "Group, beta, lattice and action of the ensemble, and the kind of the flow.",
        dict,
    )
    cautions: list[str] = result_field("Cautions about these results, one sentence each.", list)


@dataclass(frozen=True)
class FlowCurve:
    """t^2 E of every configuration against t, interpolated by cubic splines."""

    t: Array
    """Flow times in lattice units, ascending, of shape (times,)."""
    samples: Array
    """t^2 E of every configuration, of shape (configurations, times)."""

    @classmethod
    def of(cls, flow: FlowTable, energy: str, corrected: bool = False) -> FlowCurve:
        """Return t^2 E of a flow.

        Parameters
        ----------
        flow : FlowTable
            The gradient flow of an ensemble.
        energy : str
            Discretisation of E.
        corrected : bool
            Whether to divide by the tree-level factor C(a^2/t).

        Raises
        ------
        UsageError
            If there is no such discretisation.
        GaugeError
            If there are too few flow times, or the tree-level factor is not known.
        """
        t, samples = flow.t, flow.t**2 * flow.energy(energy)
        if corrected:
            t, samples = t[flow.t > 0], samples[:, flow.t > 0]
            samples = samples / _correction(flow, energy, t)
        if t.size < MIN_TIMES:
            raise GaugeError(
                f"The interpolation needs at least {MIN_TIMES} flow times, but the table has "
                f"{t.size}; measure the flow at more times."
            )
        return cls(t, samples)

    @cached_property
    def mean(self) -> Any:
        """Spline of the ensemble average."""
        return load("scipy.interpolate").CubicSpline(self.t, self.samples.mean(axis=0))

    @cached_property
    def _all(self) -> Any:
        return load("scipy.interpolate").CubicSpline(self.t, self.samples, axis=1)

    def values(self) -> list[Estimate]:
        """Return t^2 <E> at all flow times."""
        return [estimate(one) for one in self.samples.T]

    def slopes(self) -> list[Estimate]:
        """Return t d/dt t^2 <E> at all flow times."""
        return [estimate(one) for one in (self.t * self._all(self.t, 1)).T]

    def t0(self, target: float) -> Crossing:
        """Return t0/a^2, at which t^2 <E> reaches the target.

        Raises
        ------
        GaugeError
            If t^2 <E> does not reach it.
        """
        t0 = self._root(target, 0)
        rate = float(self.mean(t0, 1))
        series = t0 - (self._all(t0) - target) / rate
        return Crossing(t0, series, self._interpolation(t0, target, 0))

    def w0(self, target: float) -> Crossing:
        """Return w0/a; w0^2 is the time at which t d/dt t^2 <E> reaches the target.

        Raises
        ------
        GaugeError
            If t d/dt t^2 <E> does not reach it.
        """
        square = self._root(target, 1)
        rate = float(self.mean(square, 1) + square * self.mean(square, 2))
        series = square - (square * self._all(square, 1) - target) / rate
        found = Crossing(square, series, self._interpolation(square, target, 1))
        return found.map(math.sqrt, lambda x: 0.5 / math.sqrt(x))

    def _root(self, target: float, order: int) -> float:
        """Return where the average, or t times its slope (order 1), reaches the target from below.

        At small t the curves may have a maximum, which is an artefact of the lattice spacing. So
        the last crossing is taken, and the curve must stay above the target after it.
        """
        scaled = self.t**order * self.mean(self.t, order)
        name = CURVES[order]
        up = np.flatnonzero((scaled[:-1] < target) & (scaled[1:] >= target))
        last, end = f"t/a² = {self.t[-1]:.4g}", float(scaled[-1])
        if not up.size or end < target:
            if not up.size and end >= target:
                raise GaugeError(
                    f"{name} exceeds {target:g} from the first flow time on; measure the flow "
                    "from t = 0, or choose a larger --target."
                )
            if up.size:
                raise GaugeError(
                    f"{name} reaches {target:g} near t/a² = {self.t[up[-1]]:.4g} but is only "
                    f"{end:.4g} at {last}, which is an artefact of the lattice spacing or of a "
                    "small volume; measure the flow with a larger --to, or on a larger lattice."
                )
            raise GaugeError(
                f"{name} is only {end:.4g} at {last}, the end of the flow, and does not reach "
                f"{target:g}; measure the flow with a larger --to."
            )
        i = int(up[-1])
        return self._solve(self.mean, target, order, float(self.t[i]), float(self.t[i + 1]))

    def _solve(self, curve: Any, target: float, order: int, low: float, high: float) -> float:
        def excess(x: float) -> float:
            return float(x**order * curve(x, order)) - target

        return float(load("scipy.optimize").brentq(excess, low, high, xtol=1e-13, rtol=1e-13))

    def _interpolation(self, root: float, target: float, order: int) -> float:
        """Estimate the interpolation error of a crossing.

        It is the larger one of two estimates: the difference from a polynomial through the nearest
        flow times, and the change when every second flow time is left out, divided by its ratio to
        the error.
        """
        interpolate = load("scipy.interpolate")
        mean = self.samples.mean(axis=0)
        rate = float(self.mean(root, 1) + (root * self.mean(root, 2) if order else 0))
        start = int(np.searchsorted(self.t, root)) - NEAREST // 2
        start = min(max(start, 0), self.t.size - NEAREST)
        near = slice(start, start + NEAREST)
        scale = self.t[near] - root  # a shift for numerical precision
        fit = np.polynomial.Polynomial.fit(scale, mean[near], NEAREST - 1).deriv(order)
        errors = [abs(root**order * fit(0.0) - target)]
        gain = SLOPE_GAIN if order else VALUE_GAIN
        index = np.arange(self.t.size)
        for parity in (0, 1):
            kept = (index % 2 == parity) | (index == 0) | (index == index[-1])
            coarse = interpolate.CubicSpline(self.t[kept], mean[kept])
            errors.append(abs(root**order * coarse(root, order) - target) / gain)
        return float(max(errors) / abs(rate))


CURVES = ("t²<E>", "t d/dt t²<E>")
"""Names of the curves that define t0 and w0."""


def _correction(flow: FlowTable, energy: str, t: Array) -> Array:
    """Return the tree-level factor C(a^2/t) for the action, the flow and E."""
    if FLOW_ANISOTROPY in flow.ensemble:
        raise GaugeError(
            "The tree-level correction is not known for anisotropic flows; leave --tree-level out."
        )
    action, kind = flow.ensemble.get("action"), flow.kind
    if action is None or kind is None:
        raise GaugeError(
            "The header of the table does not state the action and the flow, on which the "
            "tree-level correction depends; leave --tree-level out."
        )
    known = action.partition(":")[0] in ACTIONS
    rectangle = action_of(flow.ensemble).rectangle if known else None
    if rectangle is None:
        raise GaugeError(
            f"The tree-level correction for the action '{action}' is not known; leave --tree-level "
            "out."
        )
    return tree_level(t, rectangle, kind, weights_of(energy))


def flow_scales(
    flow: FlowTable,
    energy: str = "clover",
    target: float = TARGET,
    corrected: bool = False,
    sqrt_t0: Reference | None = None,
    w0: Reference | None = None,
) -> FlowScales:
    """Determine t0 and w0 from the gradient flow of an ensemble.

    The errors are found by the Gamma method from the linearised series of each quantity: the
    fluctuations of E of each configuration, projected on the derivative of the quantity by <E>.

    Parameters
    ----------
    flow : FlowTable
        The gradient flow of the ensemble, as `read_flow` returns it.
    energy : str
        Discretisation of E.
    target : float
        Value of t^2 <E> at t0, and of t d/dt t^2 <E> at w0^2.
    corrected : bool
        Whether to divide E by its lattice artefacts at tree level.
    sqrt_t0, w0 : Reference, optional
        sqrt(t0) and w0 in fm, from which the lattice spacing follows.

    Returns
    -------
    FlowScales
        t0, w0 and the quantities that follow from them, with their errors.

    Raises
    ------
    UsageError
        If there is no such discretisation, or the target is not positive.
    GaugeError
        If the flow is too short for t0, has too few times, or its tree-level correction is unknown.
    """
    if not 0 < target < math.inf:
        raise UsageError(f"--target is {target:g}; give a positive number, such as {TARGET:g}.")
    curve = FlowCurve.of(flow, energy, corrected)
    time, cautions = curve.t0(target), list(flow.cautions)
    unknown = Crossing(math.nan, np.full(flow.sweeps.size, math.nan), math.nan)
    try:
        width = curve.w0(target)
    except GaugeError as error:
        width = unknown
        cautions.append(f"w0 is not known: {error}")
    extent = min(flow.lattice.extents)
    radius = time.map(
        lambda t: math.sqrt(8 * t) / extent, lambda t: math.sqrt(8 / t) / (2 * extent)
    )
    root = time.map(math.sqrt, lambda t: 0.5 / math.sqrt(t))
    known = math.isfinite(width.value)
    return FlowScales(
        energy=energy,
        target=target,
        tree_level=corrected,
        configurations=int(flow.sweeps.size),
        updates=flow.updates,
        t_max=float(flow.t[-1]),
        t0=time.estimate,
        t0_interpolation=time.interpolation,
        w0=width.estimate,
        w0_interpolation=width.interpolation,
        radius=radius.estimate,
        spacing_t0=sqrt_t0.spacing(root) if sqrt_t0 else None,
        spacing_w0=w0.spacing(width) if w0 and known else None,
        ensemble=dict(flow.ensemble),
        cautions=[
            *cautions,
            *caution_series(flow.sweeps, time.series),
            *_cautions(time, width, radius.value),
        ],
    )


def _cautions(time: Crossing, width: Crossing, radius: float) -> list[str]:
    both = (time.estimate, width.estimate)
    tau_int = float(np.nanmax([one.tau_int + one.tau_int_error for one in both]))
    found = caution_short(time.series.size, tau_int)
    for name, one in (("t0", time), ("w0", width)):
        if one.interpolation > NEGLIGIBLE * one.estimate.error:
            found.append(
                f"The interpolation error of {name}, {one.interpolation:.1g}, is not negligible "
                f"beside its statistical error, {one.estimate.error:.1g}: measure the flow at more "
                "times."
            )
    if radius > LARGEST_RADIUS:
        found.append(
            f"The smoothing radius is {radius:.2g} times the smallest extent of the lattice, so "
            "that effects of the finite volume are large."
        )
    return found

"""t^2 E against the flow time, and the times at which it and its slope reach given values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gauge_mc.actions import ACTIONS, action_of
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError
from gauge_mc.libraries import load
from gauge_mc.quantities.flow.analysis.records import FLOW_ANISOTROPY, FlowTable, weights_of
from gauge_mc.quantities.flow.analysis.tree_level import tree_level

MIN_TIMES = 8
"""Minimum number of flow times, so that leaving out every second one leaves a cubic spline."""

NEAREST = 6
"""Number of flow times of the polynomial with which the spline is compared."""

VALUE_GAIN, SLOPE_GAIN = 2**4 - 1, 2**3 - 1
"""Factors by which the interpolation error is smaller than the change when every second flow time
is left out: the error of a cubic spline is of fourth order in the step, that of its slope of third
order."""


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
                f"{t.size}; measure the flow to a larger --to, or with a smaller "
                "--every."
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

"""The scales t0 and w0 of the gradient flow, and the lattice spacing that follows from them.

t0 is the flow time at which t^2 <E> has a given value (M. Luescher, arXiv:1006.4518), and w0^2 is
that at which t d/dt t^2 <E> has it (S. Borsanyi et al., arXiv:1203.4469). Both are determined from
the ensemble average of E.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gauge_mc.analysis.timeseries.cautions import caution_series
from gauge_mc.analysis.timeseries.estimates import Estimate, caution_short
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.flow.analysis.curves import Crossing, FlowCurve
from gauge_mc.quantities.flow.analysis.records import FlowTable
from gauge_mc.results import documented, result_field

TARGET = 0.3
"""Default of the value that defines t0 and w0."""


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
    time, cautions = curve.t0(target), list[str]()
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

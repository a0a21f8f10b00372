"""Quantities that are derived from V(R), with their derivatives by all V(R)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.fitting.linear_fit import LinearFit
from gauge_mc.analysis.fitting.series_errors import covariance_of
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array
from gauge_mc.quantities.potential.analysis.plateaus import Plateaus
from gauge_mc.quantities.potential.analysis.window_fits import ROOT_SIGMA, UNKNOWN, WindowFit

HBAR_C = 197.3269804
"""hbar c in MeV fm (CODATA 2018; exact in the SI)."""

FORCES = {"r0": 1.65, "r1": 1.0, "rc": 0.65}
"""Values of r^2 F(r) that define r0 (R. Sommer, hep-lat/9310022), r1 (C. Bernard et al.,
hep-lat/0002028) and r_c (S. Necco and R. Sommer, hep-lat/0108008)."""

FitWithQuantities = tuple["WindowFit", dict[str, "FitFunction"]]
"""A fit, and the quantities derived from it by name."""


@dataclass(frozen=True)
class FitFunction:
    """A quantity that is derived from V(R), and its derivatives by the V(R) of all points."""

    value: float
    gradient: Array

    def series(self, plateaus: Plateaus) -> Array:
        """Return the linearised time series."""
        change = plateaus.series - plateaus.series.mean(axis=0)
        return np.asarray(self.value + change @ self.gradient)


def of_all_points(gradients: Array, used: NDArray[np.bool_]) -> Array:
    """Return derivatives by the V(R) of all points, given those by the points of a window."""
    found = np.zeros((len(gradients), used.size))
    found[:, used] = gradients
    return found


def window_fit(
    plateaus: Plateaus,
    quantities: dict[str, FitFunction],
    fit: LinearFit,
    r: Array,
    form: str,
    b_free: bool,
    coulomb: str,
) -> WindowFit:
    """Return a fit, and complete its quantities by those that sigma determines."""
    sigma = quantities["sigma"]
    if sigma.value > 0:
        root = math.sqrt(sigma.value)
        gradient = sigma.gradient / (2 * root)
        fm = HBAR_C / ROOT_SIGMA
        quantities["root_sigma"] = FitFunction(root, gradient)
        quantities["spacing"] = FitFunction(root * fm, gradient * fm)
    unknown = replace(UNKNOWN, samples=len(plateaus.series))
    names = ("A", "B", "sigma", "spacing", "root_sigma", *FORCES)
    series = {name: one.series(plateaus) for name, one in quantities.items()}
    found = {name: estimate(series[name]) if name in series else unknown for name in names}
    parameters = np.stack([series[name] for name in ("A", "B", "sigma")], axis=1)
    errors = np.array([found[name].error for name in ("A", "B", "sigma")])
    return WindowFit(
        b_free=b_free,
        r_min=float(r[0]),
        r_max=float(r[-1]),
        points=r.size,
        **found,
        covariance=tuple(map(tuple, covariance_of(parameters, errors).tolist())),
        chi2=fit.chi2,
        chi2_expected=fit.chi2_expected,
        dof=fit.dof,
        correlated=fit.correlated,
        form=form,
        coulomb=coulomb,
        systematic={
            name: plateaus.systematic_error(one.gradient) for name, one in quantities.items()
        }
        if plateaus.averaged
        else {},
        p_value=fit.p_value,
    )

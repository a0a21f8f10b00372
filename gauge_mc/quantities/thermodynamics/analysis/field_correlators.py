"""Correlators of electric and magnetic fields on the Polyakov loop, divided by the loop.

With the fields E_i and B_i, which include the coupling, and the line W along t that they are on,

    G_E(tau) = -1/3 sum over i of <Re Tr [E_i W E_i W]> / <Re Tr W>,

and G_B the same without the sign (S. Caron-Huot, M. Laine and G. D. Moore, arXiv:0901.1195; A.
Bouttefeux and M. Laine, arXiv:2010.07316). The signs are those of hermitian fields; the table has
antihermitian ones. Both are positive, except where the clovers of the two fields overlap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import ACTIONS, action_of
from gauge_mc.analysis.table_series import read_series
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.flows import FLOWS
from gauge_mc.groups import GROUPS
from gauge_mc.quantities.flow.analysis.records import FLOW_KIND, METADATA
from gauge_mc.quantities.thermodynamics.analysis.flow_columns import CORRELATORS
from gauge_mc.quantities.thermodynamics.analysis.free_fields import on_lattice
from gauge_mc.quantities.transition.analysis.volume import centre_sector
from gauge_mc.results import documented, result_field

DIRECTIONS = 3
"""Number of directions of a field."""

LEAST_RADIUS, MOST_RADIUS = 1.0, 1 / 3
"""Smoothing radii between which a correlator is shown: the smallest one in units of a, below which
the flow does not yet suppress lattice artefacts, and the largest one in units of tau, above which
it reaches from one field to the other."""

SIGNIFICANT = 4.0
"""Number of errors above 0 that the Polyakov loop must have at least."""

ROUNDING = 1e-9


@dataclass(frozen=True)
class FieldSeries:
    """The correlators of an ensemble, turned to the sector of 1 of the centre."""

    ensemble: Mapping[str, str]
    """Group, beta, lattice, action and kind of the flow."""
    lattice: Lattice
    """Extents."""
    t: Array
    """Flow times t/a^2, ascending, of shape (times,)."""
    electric: Array
    """a^4 G_E times the Polyakov loop, of shape (configurations, times, N_t / 2)."""
    magnetic: Array
    """The same of magnetic fields."""
    loop: Array
    """Real part of the Polyakov loop, of shape (configurations, times)."""


@documented
@dataclass(frozen=True)
class FieldCorrelatorPoint:
    """The correlators at one flow time and one distance."""

    t: float = result_field("Flow time t/a^2.")
    radius: float = result_field("Smoothing radius sqrt(8 t)/a.", symbol="√(8t)/a")
    tau: int = result_field("Distance tau/a along t.", symbol="τ/a")
    scaled: float = result_field("tau T.", symbol="τT")
    electric: Estimate = result_field("G_E / T^4.", symbol="G_E/T⁴")
    magnetic: Estimate = result_field("G_B / T^4.", symbol="G_B/T⁴")
    electric_ratio: Estimate | None = result_field(
        "G_E / G_norm with G_norm of the lattice and the flow, g^2 C_F in leading order; null "
        "where G_norm is not known or not positive.",
        symbol="G_E/G_norm",
    )
    magnetic_ratio: Estimate | None = result_field("G_B / G_norm.", symbol="G_B/G_norm")
    inside: bool = result_field(
        "Whether the smoothing radius is at least a and at most tau / 3, where the flow neither "
        "leaves lattice artefacts nor reaches from one field to the other."
    )


@documented
@dataclass(frozen=True)
class LoopFieldCorrelators:
    """Correlators of electric and magnetic fields on the Polyakov loop."""

    ensemble: Mapping[str, str] = result_field("Group, beta, lattice, action and flow.")
    loops: Sequence[Estimate] = result_field("The flowed Polyakov loop at the flow times.")
    points: Sequence[FieldCorrelatorPoint] = result_field(
        "The correlators, by distance and flow time."
    )
    cautions: Sequence[str] = result_field("What to keep in mind, in sentences.", list)


def read_field_series(path: Path, skip: int = 0) -> FieldSeries:
    """Read the correlators of an ensemble from the file of a table.

    Every configuration is multiplied by the element of the centre that turns its loop to the
    sector of 1. This changes neither the action nor the ratio to the loop.

    Parameters
    ----------
    path : Path
        File of the table.
    skip : int
        Last update that is left out.

    Raises
    ------
    GaugeError
        If the table is not one of correlators, there are too few configurations, or these have
        different flow times.
    """
    found = read_series(path, CORRELATORS, "correlators of fields", skip)
    lattice = found.lattice
    distances, times = np.arange(1, lattice.t // 2 + 1), np.unique(found.index["t"])
    elements = np.stack([found.index["t"], found.index["tau"]])
    wanted = np.stack([np.repeat(times, distances.size), np.tile(distances, times.size)])
    if not np.array_equal(elements, wanted):
        raise GaugeError(
            f"{path} is incomplete: it does not have every distance at every flow time; measure "
            "the correlators again."
        )
    shape = (found.sweeps.size, times.size, distances.size)
    parts = {name: one.astype(np.float64).reshape(shape) for name, one in found.values.items()}
    electric, magnetic, loop = (
        parts[f"{name}_re"] + 1j * parts[f"{name}_im"] for name in ("electric", "magnetic", "loop")
    )
    turn = _turns(loop, GROUPS[found.header["group"]].colours)
    return FieldSeries(
        found.stated(METADATA),
        lattice,
        times,
        (electric * turn).real / DIRECTIONS,
        -(magnetic * turn).real / DIRECTIONS,
        (loop * turn).real[:, :, 0],
    )


def _turns(loop: NDArray[np.complex128], colours: int) -> NDArray[np.complex128]:
    """Return the elements of the centre that turn loops to the sector of 1."""
    return np.asarray(np.exp(-2j * math.pi * centre_sector(loop, colours) / colours))


def field_correlators(series: FieldSeries) -> LoopFieldCorrelators:
    """Return the correlators divided by the loop, and by those of leading order."""
    extent, found = series.lattice.t, []
    norms = _norms(series)
    for n, tau in enumerate(range(1, extent // 2 + 1)):
        for k, t in enumerate(series.t):
            electric, magnetic = (
                _ratio(one[:, k, n], series.loop[:, k])
                for one in (series.electric, series.magnetic)
            )
            radius = math.sqrt(8 * t)
            found.append(
                FieldCorrelatorPoint(
                    t=float(t),
                    radius=radius,
                    tau=tau,
                    scaled=tau / extent,
                    electric=estimate(electric * extent**4),
                    magnetic=estimate(magnetic * extent**4),
                    electric_ratio=_divided(electric, norms[0], (k, n)),
                    magnetic_ratio=_divided(magnetic, norms[1], (k, n)),
                    inside=LEAST_RADIUS - ROUNDING <= radius <= MOST_RADIUS * tau + ROUNDING,
                )
            )
    loops = [estimate(one) for one in series.loop.T]
    cautions = [*_cautions(loops, norms[0] is None)]
    if not any(one.inside for one in found):
        cautions.append(
            f"No flow time has a smoothing radius √(8t) between a and τ/3 with τ ≤ {extent // 2} "
            "a; measure the flow at more times, or choose a larger N_t."
        )
    return LoopFieldCorrelators(dict(series.ensemble), loops, found, cautions)


def _ratio(numerator: Array, denominator: Array) -> Array:
    """Return the ratio of two averages as a series, linearised in both."""
    value = numerator.mean() / denominator.mean()
    return np.asarray(value + (numerator - value * denominator) / denominator.mean())


def _divided(series: Array, norms: Array | None, at: tuple[int, int]) -> Estimate | None:
    """Return the average of a series divided by a norm; None if that is unknown or not positive."""
    if norms is None or norms[at] <= 0:
        return None
    return estimate(series / norms[at])


def _norms(series: FieldSeries) -> tuple[Array | None, Array | None]:
    """Return a^4 G_norm of the lattice and the flow, None if they are not known."""
    words = series.ensemble.get("action", "")
    kind = FLOWS.get(series.ensemble.get(FLOW_KIND, ""))
    known = words.partition(":")[0] in ACTIONS
    rectangle = action_of(series.ensemble).rectangle if known else None
    if kind is None or kind.rectangle is None or rectangle is None:
        return None, None
    return on_lattice(series.lattice.t, series.t, rectangle, kind)


def _cautions(loops: Sequence[Estimate], unknown: bool) -> list[str]:
    """Return cautions about small loops and unknown norms."""
    found = []
    if any(one.value < SIGNIFICANT * one.error for one in loops):
        found.append(
            f"The Polyakov loop is less than {SIGNIFICANT:g} errors above 0, so that ratios to it "
            "mean nothing: measure in the deconfined phase, or more."
        )
    if unknown:
        found.append("G_norm is not known for this action and flow, and ratios to it are left out.")
    return found

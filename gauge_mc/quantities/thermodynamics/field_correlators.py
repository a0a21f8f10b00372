"""Correlators of electric and magnetic fields on the Polyakov loop, for the diffusion of quarks.

With the fields E_i and B_i, which include the coupling, and the line W along t that they are on,

    G_E(tau) = -1/3 sum over i of <Re Tr [E_i W E_i W]> / <Re Tr W>,

and G_B the same without the sign (S. Caron-Huot, M. Laine and G. D. Moore, arXiv:0901.1195; A.
Bouttefeux and M. Laine, arXiv:2010.07316). The signs are those of hermitian fields; the table has
antihermitian ones. Both are positive, except where the clovers of the two fields overlap.

With the correlators G_E and G_B of fields that include the coupling, G = g^2 C_F G_norm + O(g^4),
C_F = (N^2 - 1) / (2 N). In the continuum both have (S. Caron-Huot, M. Laine and G. D. Moore,
arXiv:0901.1195)

    G_norm = pi^2 T^4 [cos^2(pi tau T) / sin^4(pi tau T) + 1 / (3 sin^2(pi tau T))],

and on a lattice with fields from the clover they are sums over momenta of the average of |p̂_mu
A_nu - p̂_nu A_mu|^2 cos^2(p_mu / 2) cos^2(p_nu / 2), with free gluons of the action along the flow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gauge_mc.actions import ACTIONS, action_of
from gauge_mc.analysis.table_series import Skips, Tables, read_series
from gauge_mc.analysis.timeseries import Estimate, Replicas, centre_sector
from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.flows import FLOWS, Flow
from gauge_mc.groups import GROUPS
from gauge_mc.quantities.flow.curves import FLOW_KIND, METADATA, FlowedGluons, momenta
from gauge_mc.results import documented, result_field

COLUMNS = TableColumns(
    Column("t", float, "flow time in lattice units", index=True),
    Column("electric", float, "a⁴E of the planes with t from the clover, averaged over the sites"),
    Column("magnetic", float, "a⁴E of the planes in space from the clover"),
    Column("electric_plaquette", float, "a⁴E of the planes with t from plaquettes"),
    Column("magnetic_plaquette", float, "a⁴E of the planes in space from plaquettes"),
    Column("loop_re", float, "real part of the Polyakov loop, averaged over space"),
    Column("loop_im", float, "its imaginary part; 0 for SU(2)"),
)
"""Columns of a table of the electric and magnetic energy and the Polyakov loop along the flow."""

THERMAL_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns of such a table."""

CORRELATORS = TableColumns(
    Column("t", float, "flow time in lattice units", index=True),
    Column("tau", int, "distance along t of the two fields", index=True),
    Column("electric_re", float, "a⁴ C_E, real part, summed over directions and averaged"),
    Column("electric_im", float, "its imaginary part; 0 for SU(2)"),
    Column("magnetic_re", float, "a⁴ C_B, real part"),
    Column("magnetic_im", float, "its imaginary part; 0 for SU(2)"),
    Column("loop_re", float, "real part of the Polyakov loop of the flowed links"),
    Column("loop_im", float, "its imaginary part; 0 for SU(2)"),
)
"""Columns of a table of electric and magnetic correlators on the Polyakov loop."""

FIELD_COLUMNS = (SWEEP, *CORRELATORS.names)
"""Names of the columns of such a table."""


def continuum(extent: int) -> Array:
    """Return a^4 G_norm of the continuum at tau = 1, ..., N_t / 2, without flow."""
    x = np.pi * np.arange(1, extent // 2 + 1) / extent
    shape = (np.cos(x) / np.sin(x) ** 2) ** 2 + 1 / (3 * np.sin(x) ** 2)
    return np.asarray(np.pi**2 / extent**4 * shape)


def on_lattice(extent: int, t: Array, rectangle: float, kind: Flow) -> tuple[Array, Array]:
    """Return a^4 G_norm of electric and of magnetic fields on a lattice of infinite space.

    Parameters
    ----------
    extent : int
        Number N_t of links along t.
    t : ndarray, shape (times,)
        Flow times t/a^2.
    rectangle : float
        Coefficient of the rectangles of the action; see `tree_level`.
    kind : Flow
        The flow, whose kernel must be known.

    Returns
    -------
    electric, magnetic : ndarray, shape (times, N_t / 2)
        G_norm at tau = 1, ..., N_t / 2.
    """
    space, measure = momenta(3)
    tau = np.arange(1, extent // 2 + 1)
    found = np.zeros((2, t.size, tau.size))
    for number in range(extent // 2 + 1):
        energy = 2 * np.pi * number / extent
        states = 1 if 2 * number in (0, extent) else 2  # the average is even in the energy
        p = np.column_stack([space, np.full(len(space), energy)])
        cosine = np.cos(p / 2) ** 2
        clover = cosine[:, :, None] * cosine[:, None, :]
        gluons = FlowedGluons.of(p, rectangle, kind)
        wave = states * np.cos(energy * tau) / extent
        for n, planes in enumerate(_planes()):
            found[n] += np.outer(gluons.averages(clover * planes, t) @ measure, wave)
    return -found[0] / 3, found[1] / 3


def _planes() -> tuple[Array, Array]:
    """Return 1 for the planes with and without direction t, of shape (4, 4), and else 0."""
    electric = np.zeros((4, 4))
    electric[3, :3] = electric[:3, 3] = 1
    magnetic = np.zeros((4, 4))
    magnetic[:3, :3] = 1
    return electric, magnetic


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
    replicas: Replicas
    """Division of the configurations into chains."""


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


def read_field_series(tables: Tables, skip: Skips = 0) -> FieldSeries:
    """Read the correlators of an ensemble from the file of a table, or of several chains.

    Every configuration is multiplied by the element of the centre that turns its loop to the
    sector of 1. This changes neither the action nor the ratio to the loop.

    Parameters
    ----------
    tables, skip
        See `read_series`.

    Raises
    ------
    GaugeError
        If the table is not one of correlators, there are too few configurations, or these have
        different flow times.
    """
    found = read_series(tables, CORRELATORS, "correlators of fields", skip)
    lattice = found.lattice
    distances, times = np.arange(1, lattice.t // 2 + 1), np.unique(found.index["t"])
    elements = np.stack([found.index["t"], found.index["tau"]])
    wanted = np.stack([np.repeat(times, distances.size), np.tile(distances, times.size)])
    if not np.array_equal(elements, wanted):
        raise GaugeError(
            f"{found.source} is incomplete: it does not have every distance at every flow time; "
            "measure the correlators again."
        )
    shape = (found.sweeps.size, times.size, distances.size)
    parts = {name: one.astype(np.float64).reshape(shape) for name, one in found.values.items()}
    electric, magnetic, loop = (
        parts[f"{name}_re"] + 1j * parts[f"{name}_im"] for name in ("electric", "magnetic", "loop")
    )
    colours = GROUPS[found.header["group"]].colours
    turn = np.asarray(np.exp(-2j * math.pi * centre_sector(loop, colours) / colours))
    return FieldSeries(
        found.stated(METADATA),
        lattice,
        times,
        (electric * turn).real / DIRECTIONS,
        -(magnetic * turn).real / DIRECTIONS,
        (loop * turn).real[:, :, 0],
        found.replicas,
    )


def field_correlators(series: FieldSeries) -> LoopFieldCorrelators:
    """Return the correlators divided by the loop, and by those of leading order."""
    extent, found, estimate = series.lattice.t, [], series.replicas.estimate
    norms = _norms(series)
    for n, tau in enumerate(range(1, extent // 2 + 1)):
        for k, t in enumerate(series.t):
            loop, both = series.loop[:, k], (series.electric, series.magnetic)
            electric, magnetic = (_ratio(one[:, k, n], loop) for one in both)
            radius = math.sqrt(8 * t)
            found.append(
                FieldCorrelatorPoint(
                    t=float(t),
                    radius=radius,
                    tau=tau,
                    scaled=tau / extent,
                    electric=estimate(electric * extent**4),
                    magnetic=estimate(magnetic * extent**4),
                    electric_ratio=_divided(series, electric, norms[0], (k, n)),
                    magnetic_ratio=_divided(series, magnetic, norms[1], (k, n)),
                    inside=LEAST_RADIUS - ROUNDING <= radius <= MOST_RADIUS * tau + ROUNDING,
                )
            )
    loops = [estimate(one) for one in series.loop.T]
    cautions = []
    if any(one.value < SIGNIFICANT * one.error for one in loops):
        cautions.append(
            f"The Polyakov loop is less than {SIGNIFICANT:g} errors above 0, so that ratios to it "
            "mean nothing: measure in the deconfined phase, or more."
        )
    if norms[0] is None:
        cautions.append(
            "G_norm is not known for this action and flow, and ratios to it are left out."
        )
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


def _divided(
    series: FieldSeries, ratio: Array, norms: Array | None, at: tuple[int, int]
) -> Estimate | None:
    """Return the average of a ratio divided by a norm; None if that is unknown or not positive."""
    if norms is None or norms[at] <= 0:
        return None
    return series.replicas.estimate(ratio / norms[at])


def _norms(series: FieldSeries) -> tuple[Array | None, Array | None]:
    """Return a^4 G_norm of the lattice and the flow, None if they are not known."""
    words = series.ensemble.get("action", "")
    kind = FLOWS.get(series.ensemble.get(FLOW_KIND, ""))
    known = words.partition(":")[0] in ACTIONS
    rectangle = action_of(series.ensemble).rectangle if known else None
    if kind is None or kind.rectangle is None or rectangle is None:
        return None, None
    return on_lattice(series.lattice.t, series.t, rectangle, kind)

"""t^2 E against the flow time, and the times at which it and its slope reach given values.

Lattice artefacts are divided out at tree level. In perturbation theory
t^2 <E> = 3 (N^2 - 1) g^2 / (128 pi^2) C(a^2/t) + O(g^4). C is 1 in the continuum and depends on
the discretisations of the action, the flow and E (Z. Fodor et al., arXiv:1406.0827). With the
four-by-four kernels of the quadratic parts of action, flow and observable, S_g, S_f and S_e, in
momentum space,

    C = 64 pi^2 t^2 / 3 * integral over the Brillouin zone, d^4p / (2 pi)^4, of
        Tr [ exp(-t S_f) (S_g + G)^{-1} exp(-t S_f^T) S_e ],

where G = p̂ p̂^T / alpha fixes the gauge. C does not depend on alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np

from gauge_mc.actions import ACTIONS, action_of, ensemble_keys
from gauge_mc.analysis.table_series import Skips, Tables, read_series
from gauge_mc.analysis.timeseries import MIN_CONFIGURATIONS, Estimate, Replicas, estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.defaults import FLOW
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.files.foreign import PROGRAM
from gauge_mc.flows import FLOWS, Flow
from gauge_mc.libraries import load
from gauge_mc.quoting import CommandLine
from gauge_mc.registry import in_words
from gauge_mc.run.directory import Run

ENERGIES = {"clover": (0.0, 1.0), "plaquette": (1.0, 0.0), "improved": (4 / 3, -1 / 3)}
"""Discretisations of E by name, as weights of the plaquette and the clover energy. The combination
``improved`` has no classical a^2 effect (A. Ramos and S. Sint, arXiv:1508.05552)."""

CHARGES = {"clover": "charge", "improved": "charge_improved"}
"""Columns of the topological charge by the name of its discretisation."""

WHOLE = -1
"""Number in the column ``slice`` of the rows for the whole lattice."""

COLUMNS = TableColumns(
    Column("t", float, "flow time in lattice units", index=True),
    Column("slice", int, f"time slice, or {WHOLE} for the whole lattice", index=True),
    Column("energy_plaquette", float, "a⁴E = 2 Σ Re Tr (1 − U_p), averaged over the sites"),
    Column(
        "energy_clover", float, "a⁴E = G^a_μν G^a_μν / 4 from the clover, averaged over the sites"
    ),
    Column(CHARGES["clover"], float, "topological charge from the clover"),
    Column(CHARGES["improved"], float, "topological charge from clovers of 1×1, 2×2 and 3×3 loops"),
    Column("s_max", float, "largest Re Tr (1 − U_p)"),
)
"""Columns of a table of the gradient flow."""

FLOW_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns of a table of the gradient flow."""

FLOW_ANISOTROPY = "flow anisotropy"
"""Key of the header with the anisotropy xi of the flow, whose units are then those of a_s."""

FLOW_KIND = "flow"
"""Key of the header with the name of the flow."""

METADATA = (*ensemble_keys(), FLOW_KIND, FLOW_ANISOTROPY, PROGRAM)
"""Keys of the header that identify the ensemble and its flow."""


@dataclass(frozen=True)
class FlowTable:
    """The gradient flow of an ensemble."""

    ensemble: Mapping[str, str]
    """Group, beta, lattice and action of the ensemble and the kind of the flow, as far as the
    header of the table states them.
    """
    lattice: Lattice
    """Extents of the lattice that was flowed."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending in every chain, of shape
    (configurations,)."""
    replicas: Replicas
    """Division of the configurations into chains."""
    t: Array
    """Flow times t/a^2, ascending, of shape (times,)."""
    columns: Mapping[str, Array]
    """The other columns of the table, for the whole lattice, of shape (configurations, times)."""
    sources: Sequence[Path] = ()
    """Files of the tables of its chains."""

    def further(self, t: float, every: str | None = None) -> str:
        """Return the advice to measure up to a flow time, infinite if none is long enough.

        Beyond half of the lattice the flow averages over periodic images.
        """
        half = min(self.lattice.extents) / 2
        if not t <= half**2 / 8:
            return (
                f"√(8t) is half of {self.lattice} at t/a² = {half**2 / 8:g}, so that the lattice "
                "is too small, or too small a β: generate a larger lattice, or at another β"
            )
        end = f"{math.ceil(10 * t) / 10:g}"
        path, kind = f"flow_to_{end}.csv", None if self.kind == FLOW else self.kind
        lines = [
            CommandLine("measure", "flow", run, to=end, every=every, flow=kind, output=run / path)
            for run in (path.parent for path in self.sources)
            if Run(run).exists()
        ]
        if not lines:
            spacing = f" every {every}" if every else ""
            return f"measure the flow{spacing} to t/a² = {end}"
        shown = " and ".join(f"`{line}`" for line in lines)
        return f"measure another flow with {shown}, and name its table"

    def energy(self, name: str) -> Array:
        """Return a^4 E, shape (configurations, times), in one of the discretisations `ENERGIES`."""
        weights = zip(("energy_plaquette", "energy_clover"), weights_of(name), strict=True)
        terms = [weight * self._column(column) for column, weight in weights if weight]
        return np.asarray(sum(terms))

    def charge(self, name: str) -> Array:
        """Return the charge, shape (configurations, times), in one of the definitions `CHARGES`."""
        if name not in CHARGES:
            raise UsageError(f"--charge is '{name}'; choose {in_words(CHARGES, 'or')}.")
        return self._column(CHARGES[name])

    def _column(self, name: str) -> Array:
        """Return a column, which a series of another program may lack."""
        if name not in self.columns:
            raise UsageError(
                f"The flow of {self.ensemble[PROGRAM]} has no {name}, only "
                f"{in_words(self.columns)}; choose another --energy or --charge."
            )
        return self.columns[name]

    @property
    def kind(self) -> str | None:
        """The kind of the flow, such as ``wilson``, or None if the table does not state it."""
        return self.ensemble.get(FLOW_KIND)

    @property
    def updates(self) -> int | None:
        """Updates from one configuration to the next, or None if they differ."""
        return self.replicas.updates(self.sweeps)


def weights_of(energy: str) -> tuple[float, float]:
    """Return the weights of the plaquette and the clover energy in a discretisation of E."""
    if energy not in ENERGIES:
        raise UsageError(f"--energy is '{energy}'; choose {in_words(ENERGIES, 'or')}.")
    return ENERGIES[energy]


def read_flow(tables: Tables, skip: Skips = 0, fewest: int = MIN_CONFIGURATIONS) -> FlowTable:
    """Read the gradient flow of the whole lattice from the table of one chain or several."""
    subject = "the gradient flow of the whole lattice"
    table = read_series(tables, COLUMNS, subject, skip, fewest, rows=lambda x: x["slice"] == WHOLE)
    times = table.index["t"]
    if (np.diff(times) <= 0).any():
        raise GaugeError(
            f"{table.source} is damaged: its flow times are not ascending; measure the flow again."
        )
    chains = table.sweeps, table.replicas
    paths = [tables] if isinstance(tables, Path) else tables
    return FlowTable(table.stated(METADATA), table.lattice, *chains, times, table.values, paths)


NODES = 32
"""Points of the Gauss quadrature in each direction. C is exact to 1e-9 at t/a^2 = 10 and to 1e-7 at
t/a^2 = 30."""


def tree_level(
    t: Array, rectangle: float, flow: str, weights: tuple[float, float], alpha: float = 1.0
) -> Array:
    """Return C(a^2/t) in infinite volume."""
    kind = FLOWS.get(flow)
    if kind is None or kind.rectangle is None:
        flows = [name for name, x in FLOWS.items() if x.rectangle is not None]
        raise GaugeError(
            f"The tree-level correction of the flow '{flow}' is not known, only those of "
            f"{in_words(flows)}; leave --tree-level out."
        )
    p, measure = momenta(4)
    cosine = np.cos(p / 2) ** 2
    clover = cosine[:, :, None] * cosine[:, None, :]
    gluons = FlowedGluons.of(p, rectangle, kind, alpha)
    energies = gluons.averages(weights[0] + weights[1] * clover, t)
    return np.asarray(64 * np.pi**2 / 3 * t**2 * (energies @ measure))


@dataclass(frozen=True)
class FlowedGluons:
    """Free gluons of given momenta along the gradient flow, by the modes of its kernel."""

    hat: Array
    """2 sin(p/2), of shape (momenta, 4)."""
    rates: Array
    """Eigenvalues of the kernel of the flow, of shape (momenta, 4)."""
    propagator: Array
    """Propagator between the modes, of shape (momenta, 4, 4)."""
    modes: Array
    """Right eigenvectors of the transposed kernel, of shape (momenta, 4, 4)."""

    @classmethod
    def of(cls, p: Array, rectangle: float, kind: Flow, alpha: float = 1.0) -> FlowedGluons:
        """Return the gluons of an action with rectangles, along a flow whose kernel is known."""
        assert kind.rectangle is not None
        hat = 2 * np.sin(p / 2)
        action = _kernel(hat, _with_rectangles(hat, rectangle))
        propagator = np.linalg.inv(action + hat[:, :, None] * hat[:, None, :] / alpha)
        # The kernel of the Zeuthen flow is D S with the diagonal D = 1 - p̂^2/12, which is similar
        # to the symmetric matrix sqrt(D) S sqrt(D).
        root = np.sqrt(1 - hat**2 / 12) if kind.corrected else np.ones_like(hat)
        symmetric = root[:, :, None] * _kernel(hat, _with_rectangles(hat, kind.rectangle))
        rates, modes = np.linalg.eigh(symmetric * root[:, None, :])
        left, right = modes / root[:, :, None], modes * root[:, :, None]
        return cls(hat, rates, left.mT @ propagator @ left, right)

    def averages(self, planes: Array, t: Array) -> Array:
        """Return averages of the sum of |p̂_mu A_nu - p̂_nu A_mu|^2 over planes with factors."""
        product = self.propagator * (self.modes.mT @ _kernel(self.hat, planes) @ self.modes)
        decays = (np.exp(-time * self.rates) for time in t)
        return np.array([np.sum((product @ d[:, :, None])[:, :, 0] * d, axis=1) for d in decays])


def momenta(dimensions: int) -> tuple[Array, Array]:
    """Return momenta in the Brillouin zone, shape (points, dimensions), with their weights.

    They are for integrands that are even in every component and the same for all orders of the
    components, so that ordered positive ones are enough. The points are denser near 0, as p = pi
    u^2 with a Gauss quadrature in u. The weights add up to 1.
    """
    u, gauss = np.polynomial.legendre.leggauss(NODES)
    u, gauss = (u + 1) / 2, gauss / 2
    index = np.array(list(combinations_with_replacement(range(NODES), dimensions)))
    orders = np.full(len(index), float(factorial(dimensions)))
    run = np.ones(len(index))
    for equal in (index[:, 1:] == index[:, :-1]).T:  # divide by the orders of equal components
        run = np.where(equal, run + 1, 1)
        orders /= run
    weight = (2 * u * gauss)[index].prod(axis=1)
    return np.pi * u[index] ** 2, orders * weight


def _with_rectangles(hat: Array, rectangle: float) -> Array:
    """Return the factor 1 - c1 (p̂_mu^2 + p̂_nu^2) of the plane mu, nu in an action."""
    return 1 - rectangle * (hat[:, :, None] ** 2 + hat[:, None, :] ** 2)


def _kernel(hat: Array, planes: Array) -> Array:
    """Return the kernel K of sum over mu < nu of planes_mu,nu |p̂_mu A_nu - p̂_nu A_mu|^2."""
    kernel = -planes * hat[:, :, None] * hat[:, None, :]
    directions = np.arange(4)
    diagonal = planes * (1 - np.eye(4)) * hat[:, None, :] ** 2
    kernel[:, directions, directions] = diagonal.sum(axis=2)
    return np.asarray(kernel)


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
    replicas: Replicas
    """Division of the configurations into chains."""

    def map(self, function: Callable[[float], float], slope: Callable[[float], float]) -> Crossing:
        """Return a function of the quantity, given the function and its derivative."""
        value, rate = function(self.value), slope(self.value)
        series = value + rate * (self.series - self.value)
        return Crossing(value, series, abs(rate) * self.interpolation, self.replicas)

    @cached_property
    def estimate(self) -> Estimate:
        """The value with its statistical error."""
        return replace(self.replicas.estimate(self.series), value=self.value)


@dataclass(frozen=True)
class FlowCurve:
    """t^2 E of every configuration against t, interpolated by cubic splines."""

    t: Array
    """Flow times in lattice units, ascending, of shape (times,)."""
    samples: Array
    """t^2 E of every configuration, of shape (configurations, times)."""
    replicas: Replicas
    """Division of the configurations into chains."""
    flow: FlowTable
    """The flow."""

    @classmethod
    def of(cls, flow: FlowTable, energy: str, corrected: bool = False) -> FlowCurve:
        """Return t^2 E of a flow."""
        t, samples = flow.t, flow.t**2 * flow.energy(energy)
        if corrected:
            t, samples = t[flow.t > 0], samples[:, flow.t > 0]
            samples = samples / _correction(flow, energy, t)
        if t.size < MIN_TIMES:
            end = float(flow.t[-1])
            raise GaugeError(
                f"The interpolation needs at least {MIN_TIMES} flow times, but the table has "
                f"{t.size}; {flow.further(end, f'{end / 2 / MIN_TIMES:.2g}')}."
            )
        return cls(t, samples, flow.replicas, flow)

    @cached_property
    def mean(self) -> Any:
        """Spline of the ensemble average."""
        return load("scipy.interpolate").CubicSpline(self.t, self.samples.mean(axis=0))

    @cached_property
    def _all(self) -> Any:
        return load("scipy.interpolate").CubicSpline(self.t, self.samples, axis=1)

    def values(self) -> list[Estimate]:
        """Return t^2 <E> at all flow times."""
        return [estimate(x) for x in self.samples.T]

    def slopes(self) -> list[Estimate]:
        """Return t d/dt t^2 <E> at all flow times."""
        return [estimate(x) for x in (self.t * self._all(self.t, 1)).T]

    def t0(self, target: float) -> Crossing:
        """Return t0/a^2, at which t^2 <E> reaches the target."""
        t0 = self._root(target, 0)
        rate = float(self.mean(t0, 1))
        series = t0 - (self._all(t0) - target) / rate
        return Crossing(t0, series, self._interpolation(t0, target, 0), self.replicas)

    def w0(self, target: float) -> Crossing:
        """Return w0/a; w0^2 is the time at which t d/dt t^2 <E> reaches the target."""
        square = self._root(target, 1)
        rate = float(self.mean(square, 1) + square * self.mean(square, 2))
        series = square - (square * self._all(square, 1) - target) / rate
        interpolation = self._interpolation(square, target, 1)
        crossing = Crossing(square, series, interpolation, self.replicas)
        return crossing.map(math.sqrt, lambda x: 0.5 / math.sqrt(x))

    def _root(self, target: float, order: int) -> float:
        """Return where the average, or t times its slope (order 1), reaches the target from below.

        At small t the curves may have a maximum, which is an artefact of the lattice spacing. So
        the last crossing is taken, and the curve must stay above the target after it.
        """
        scaled = self.t**order * self.mean(self.t, order)
        name = CURVES[order]
        up = np.flatnonzero((scaled[:-1] < target) & (scaled[1:] >= target))
        last, end = f"t/a² = {self.t[-1]:.4g}", float(scaled[-1])
        if not up.size and end >= target:
            raise GaugeError(
                f"{name} exceeds {target:g} from the first flow time on; measure the flow from "
                "t = 0, or choose a larger --target."
            )
        rising = end > scaled[-2] and end > 0
        longer = 1.2 * target / end * float(self.t[-1]) if rising else math.inf
        advice = self.flow.further(longer)
        if not up.size:
            raise GaugeError(
                f"{name} is only {end:.4g} at {last}, the end of the flow, and does not reach "
                f"{target:g}; {advice}."
            )
        if end < target:
            raise GaugeError(
                f"{name} reaches {target:g} near t/a² = {self.t[up[-1]]:.4g} but is only "
                f"{end:.4g} at {last}, which is an artefact of the lattice spacing or of a small "
                f"volume; {advice}."
            )

        def excess(x: float) -> float:
            return float(x**order * self.mean(x, order)) - target

        ends = map(float, self.t[up[-1] : up[-1] + 2])
        return float(load("scipy.optimize").brentq(excess, *ends, xtol=1e-13, rtol=1e-13))

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
            knots = (index % 2 == parity) | (index == 0) | (index == index[-1])
            coarse = interpolate.CubicSpline(self.t[knots], mean[knots])
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
    action = flow.ensemble.get("action")
    if action is None or flow.kind is None:
        raise GaugeError(
            "The header of the table does not state the action and the flow, on which the "
            "tree-level correction depends; leave --tree-level out."
        )
    registered = action.partition(":")[0] in ACTIONS
    rectangle = action_of(flow.ensemble).rectangle if registered else None
    if rectangle is None:
        raise GaugeError(
            f"The tree-level correction for the action '{action}' is not known; leave --tree-level "
            "out."
        )
    return tree_level(t, rectangle, flow.kind, weights_of(energy))

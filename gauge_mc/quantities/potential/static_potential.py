"""The static potential V(R) of an ensemble, and the scales that follow from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gauge_mc.analysis.fitting import POOR
from gauge_mc.analysis.states import EffectiveEnergies, known_times, state_of
from gauge_mc.analysis.timeseries import MIN_CONFIGURATIONS, Estimate, Replicas, caution_short
from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import bracketed
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.potential import forms
from gauge_mc.quantities.potential.loop_tables import LoopMatrices, PathLoops, step_length
from gauge_mc.quoting import these
from gauge_mc.results import documented, result_field

LOOPS, CORRELATORS = "loops", "correlators"
"""Sources of V(R): Wilson loops, or correlators of Polyakov loops."""

LARGEST_GAP = 0.75
"""Largest gap to the first excited state in lattice units, and in units of that of a long string,
2 pi / R, above which the gap of a string of finite length does not rise (J. F. Arvis, Phys. Lett. B
127 (1983) 106)."""

NEXT_GAP = 2.0
"""Largest gap to the states that operators of a variational analysis mix with, in the same unit:
the next state is one of those that they contain least."""


@documented
@dataclass(frozen=True)
class PotentialPoint:
    """V(R) at one distance."""

    path: str = result_field("Direction of the spatial lines.")
    steps: int = result_field("Number of steps along the path.")
    distance: float = result_field("R in lattice units.")
    potential: Estimate = result_field("V(R) in lattice units.")
    systematic: float = result_field("Systematic error: the scatter among fits in t.")
    t_min: int = result_field("First t of the most probable fit.")
    t_max: int = result_field("Last t of all fits.")
    states: int = result_field("Number of states of the most probable fit.", 1)
    chi2: float = result_field("chi2 of the most probable fit.", 0.0)
    chi2_expected: float = result_field("Expectation of chi2.", 0.0)
    improved: float = result_field(
        "Tree-level improved distance d_I, at which 1/d_I is the Coulomb potential on the lattice.",
        math.nan,
    )

    @property
    def error(self) -> float:
        """The total error: both in quadrature."""
        return math.hypot(self.potential.error, self.systematic)


@documented
@dataclass(frozen=True)
class ForcePoint:
    """The force F = [V(R) - V(R - d)] / d between neighbouring distances on a path."""

    path: str = result_field("Direction of the spatial lines; d is the length of a step.")
    steps: int = result_field("Number of steps of the larger distance.")
    distance: float = result_field(
        "Tree-level improved distance r_I, at which the force on the lattice is that in the "
        "continuum at tree level, in lattice units."
    )
    force: Estimate = result_field("F a^2 at r_I.")
    scaled: Estimate = result_field("r_I^2 F.")


@documented
@dataclass(frozen=True)
class StaticPotential:
    """V(R) of an ensemble, with the scales that follow from it."""

    configurations: int = result_field("Number of configurations.")
    independent: float = result_field("Effective number of independent configurations.")
    points: tuple[PotentialPoint, ...] = result_field("V(R), sorted by R.")
    scales: dict[str, forms.PotentialScale] = result_field(
        "``sigma``, ``root_sigma``, ``r0``, ``r1`` and ``rc`` in lattice units, and ``spacing`` in "
        "fm, averaged over forms and windows, as far as the distances contain them."
    )
    fits: tuple[forms.FormFit, ...] = result_field("The most probable fits of forms of V(R).")
    force: tuple[ForcePoint, ...] = result_field(
        "Forces between neighbouring distances on each path, sorted by r_I."
    )
    ensemble: dict[str, str] = result_field("Group, beta and lattice of the ensemble.")
    levels: tuple[int, ...] = result_field(
        "Smearing levels of the loops; several in a variational analysis, none of correlators."
    )
    excited: tuple[PotentialPoint, ...] = result_field(
        "First excited energies of a variational analysis.", ()
    )
    left_out: tuple[str, ...] = result_field(
        "Paths and distances that were measured, but are not known well enough.", ()
    )
    notes: tuple[str, ...] = result_field("Further cautions, one sentence each.", ())
    skip: int = result_field("Last update that was left out.", 0)
    t_step: int = result_field("Distance of the values of t of the loops.", 1)
    lines: str = result_field("Links of the static lines, if they are not those of the field.", "")
    source: str = result_field(
        '``"loops"`` for Wilson loops, or ``"correlators"`` for correlators of Polyakov '
        "loops. The t of the points then are the extent of the lattice in time.",
        LOOPS,
    )

    @property
    def best(self) -> forms.FormFit | None:
        """The most probable fit, or None without any."""
        return next(iter(self.fits), None)

    @property
    def distances(self) -> Array:
        """R of all points, of shape (points,)."""
        return np.array([point.distance for point in self.points])

    @property
    def continuum(self) -> Array:
        """V(R) of all points, without the artefacts of the most probable fit."""
        values = np.array([point.potential.value for point in self.points])
        if self.best is None:
            return values
        coulomb = np.array([1 / point.improved for point in self.points])
        return np.asarray(values - self.best.artefacts(self.distances, coulomb))

    @property
    def cautions(self) -> list[str]:
        """Cautions about these results, one sentence each, the most important first."""
        cautions = []
        if "r0" not in self.scales:
            cautions.append(
                f"r₀ is not within the distances, which end at R = {self.points[-1].distance:.4g}; "
                "measure larger R, more configurations, or a larger β."
            )
        if self.best and self.best.p_value < POOR:
            cautions.append(
                f"The most probable fit is poor (p = {self.best.p_value:.1g}); name a window with "
                "--r-min, or measure along more directions."
            )
        tau_int = self.configurations / (2 * self.independent)
        cautions += [*caution_short(self.configurations, tau_int), *self.notes]
        if self.left_out:
            cautions.append(f"Distances that are too noisy: {', '.join(self.left_out)}.")
        return cautions


@dataclass(frozen=True)
class PotentialSeries:
    """V(R) with its time series."""

    points: tuple[PotentialPoint, ...]
    """V(R) at all distances, sorted by R."""
    series: Array
    """Linearised time series of V(R), of shape (configurations, points)."""
    replicas: Replicas
    """Division of the configurations into chains."""
    left_out: tuple[str, ...] = ()
    """Paths and distances that are not known well enough."""

    @classmethod
    def of(
        cls,
        pairs: Iterable[tuple[PotentialPoint, Array]],
        replicas: Replicas,
        left_out: Sequence[str] = (),
    ) -> PotentialSeries:
        """Return points with their series, in any order."""
        ordered = sorted(pairs, key=lambda pair: pair[0].distance)
        if not ordered:
            raise GaugeError(
                "V(R) is not known at any distance, because the table is too noisy or has a single "
                "t; measure more configurations, more smearing, or a larger t_max."
            )
        points, series = zip(*ordered, strict=True)
        return cls(points, np.stack(series, axis=1), replicas, tuple(left_out))

    def potential(
        self, r_min: float | None, r_max: float | None, gluons: forms.StaticGluons, **more: object
    ) -> tuple[StaticPotential, dict[str, Array]]:
        """Return V(R) with its scales, and the linearised time series of these."""
        points = tuple(
            replace(x, improved=gluons.potential_distance(x.path, x.steps)) for x in self.points
        )
        data = forms.PotentialData(
            self.replicas,
            np.array([point.distance for point in points]),
            np.array([1 / point.improved for point in points]),
            self.series,
            np.array([point.systematic for point in points]),
        )
        average = forms.average_forms(data, r_min, r_max)
        scales, histories = dict(average.scales), dict(average.histories)
        if "sigma" in scales and scales["sigma"].value.value > 0:
            root = math.sqrt(scales["sigma"].value.value)
            for name, factor in (("root_sigma", 1.0), ("spacing", forms.HBAR_C / forms.ROOT_SIGMA)):
                history = factor * (root / 2 + histories["sigma"] / (2 * root))
                systematic = factor * scales["sigma"].systematic / (2 * root)
                scales[name] = forms.PotentialScale(self.replicas.estimate(history), systematic)
                histories[name] = history
        result = StaticPotential(
            configurations=len(self.series),
            independent=len(self.series) / (2 * data.tau_int),
            points=points,
            scales=scales,
            fits=average.fits,
            force=tuple(self._forces(gluons)),
            left_out=self.left_out,
            **more,  # type: ignore[arg-type]
        )
        return result, histories

    def _forces(self, gluons: forms.StaticGluons) -> list[ForcePoint]:
        """Return the forces between neighbouring distances, sorted by distance."""
        index = {(point.path, point.steps): i for i, point in enumerate(self.points)}
        forces = []
        for (path, steps), i in index.items():
            if (path, steps - 1) in index:
                change = self.series[:, i] - self.series[:, index[path, steps - 1]]
                series, r = change / step_length(path), gluons.force_distance(path, steps)
                force, scaled = (self.replicas.estimate(x) for x in (series, r**2 * series))
                forces.append(ForcePoint(path, steps, r, force, scaled))
        return sorted(forces, key=lambda point: point.distance)


def potential_of(
    energies: Sequence[EffectiveEnergies],
    replicas: Replicas,
    t_min: int | None = None,
    t_max: int | None = None,
    single: bool = True,
) -> PotentialSeries:
    """Return the energies to which effective energies at all distances tend."""
    check_enough(len(energies[0].sweeps), "Wilson loops")
    times = max((path.t for path in energies), key=len)
    begin, end = t_min or 0, math.inf if t_max is None else t_max
    if times and not any(begin <= t <= end for t in times):
        raise UsageError(
            f"No fit can go from t = {begin} to {end:g}: choose t_min <= t_max between {times[0]} "
            f"and {times[-1]}."
        )
    pairs, left_out = [], []
    for path in energies:
        first = 0 if t_min is None else max(0, -(-(t_min - path.start) // path.step))
        exponential = 0.0  # at smaller distances, in units of them
        for i, precision in enumerate(path.precision):
            bound = {} if t_max is None else {"bound": math.inf}
            count = known_times(precision, **bound)
            count = min(count, sum(t <= (t_max or math.inf) for t in path.t))
            distance, steps = float(path.distances[i]), int(path.r[i])
            if count <= first:
                left_out.append(f"{bracketed(path.path)} R = {distance:.4g}")
                continue
            series = path.series[:, i, first:count]
            if (np.ptp(series, axis=0) == 0).any():
                raise GaugeError(
                    "The Wilson loops do not fluctuate, so the configurations are all the same; "
                    "generate different ones."
                )
            gap = (LARGEST_GAP if single else LARGEST_GAP * NEXT_GAP) * min(
                1.0, 2 * math.pi / distance
            )
            expected = exponential * distance or -math.inf
            state = state_of(series, replicas, path.t[first], path.step, gap, expected)
            exponential = max(exponential, state.exponential / distance)
            point = PotentialPoint(
                path.path,
                steps,
                distance,
                state.energy,
                state.systematic,
                state.t_min,
                state.t_max,
                state.states,
                state.fit.chi2,
                state.fit.chi2_expected,
            )
            pairs.append((point, state.series))
    return PotentialSeries.of(pairs, replicas, left_out)


def check_enough(configurations: int, subject: str) -> None:
    """Refuse too few configurations for a potential."""
    if configurations < MIN_CONFIGURATIONS:
        raise GaugeError(
            f"The potential needs {subject} on at least {MIN_CONFIGURATIONS} configurations; "
            f"measure more than {these(configurations)}."
        )


SMALLEST = 1e-6
"""Smallest eigenvalue of C(t0), in units of the largest one, that is not taken for rounding."""


def variational(matrices: LoopMatrices) -> list[PathLoops]:
    """Return the correlators of the operators of all states, the ground state first."""
    if matrices.t.size < 2:
        raise UsageError("A variational analysis needs loops of at least two t; measure larger t.")
    vectors = [_vectors(mean[0], mean[1]) for mean in matrices.values.mean(axis=0)]
    states = min(vector.shape[1] for vector in vectors)
    operators = np.stack([vector[:, :states] for vector in vectors])
    values = np.einsum("ran,crtab,rbn->ncrt", operators, matrices.values, operators, optimize=True)
    parts = matrices.path, matrices.levels[-1], matrices.sweeps, matrices.r, matrices.t
    return [PathLoops(*parts, state, matrices.levels, matrices.replicas) for state in values]


def _vectors(reference: Array, matrix: Array) -> Array:
    """Return the vectors v with v^T C(t0) v = 1 in columns, the lowest state first."""
    diagonal = reference.diagonal()
    if not (diagonal > 0).all():
        raise GaugeError(
            "The Wilson loops of the shortest t are not positive, because of noise; measure more "
            "configurations."
        )
    scale = 1 / np.sqrt(diagonal)
    sizes, basis = np.linalg.eigh(reference * np.outer(scale, scale))
    mask = sizes > SMALLEST * sizes[-1]
    root = scale[:, None] * basis[:, mask] / np.sqrt(sizes[mask])
    return np.asarray(root @ np.linalg.eigh(root.T @ matrix @ root)[1][:, ::-1])

"""Nested time scales of a trajectory, after J. Sexton and D. Weingarten, Nucl. Phys. B 380, 665.

The links drift on the innermost level only. A drift of any other level is a trajectory of the level
below it, with an integrator and a number of steps of its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Self

from gauge_mc.errors import UsageError
from gauge_mc.option_items import OptionItem
from gauge_mc.options import Option
from gauge_mc.quoting import complementary_error_function, power
from gauge_mc.registry import Registry


@dataclass(frozen=True)
class Kick:
    """A change of the momenta, P <- P + size F(U), by the forces of a level of a trajectory."""

    size: float
    level: int = 0
    shift: float = 0.0
    """With a shift the force is that of the links exp(shift F(U)) U, which takes two forces. It is
    proportional to the square of a step, as `size` is to the step.
    """

    @property
    def forces(self) -> int:
        """Number of forces that a kick takes."""
        return 2 if self.shift else 1


@dataclass(frozen=True)
class Drift:
    """A change of the links, U <- exp(size P) U."""

    size: float


Move = Kick | Drift
"""A part of a step or of a trajectory."""


class Integrator:
    """A symmetric decomposition of a step into kicks and drifts."""

    name: str
    """Name on the command line."""
    summary: str
    """Short description with the source, for the reference documentation."""
    order: int
    """Power of the step with which the change of the energy in a trajectory decreases."""
    step: tuple[Move, ...]
    """The parts of a step in units of its size. The sizes of kicks add up to 1, and so do those of
    drifts.
    """

    @property
    def forces(self) -> int:
        """Number of forces in a step; kicks at both ends are shared with the neighbouring steps."""
        kicks = sum(x.forces for x in self.step if isinstance(x, Kick))
        return kicks - isinstance(self.step[0], Kick)

    @property
    def largest_drift(self) -> float:
        """The largest drift of a trajectory in units of the step, without its sign."""
        return max(abs(x.size) for x in self.trajectory(2, 2) if isinstance(x, Drift))

    def trajectory(self, length: float, steps: int) -> list[Move]:
        """Return the kicks and drifts of a trajectory; neighbours of one kind are joined."""
        moves: list[Move] = []
        for step in self.step * steps:
            if moves and isinstance(moves[-1], type(step)):
                moves.append(replace(step, size=step.size + moves.pop().size))
            else:
                moves.append(step)
        return [_scaled(move, length, steps) for move in moves]


def _scaled(move: Move, length: float, steps: int) -> Move:
    """Return a part of one of the steps of a trajectory."""
    scaled = replace(move, size=move.size * length / steps)
    if isinstance(scaled, Kick) and scaled.shift:
        step = length / steps
        return replace(scaled, shift=scaled.shift * (step * step))
    return scaled


def check_symmetric(integrator: Integrator) -> None:
    """Refuse an integrator whose step is not reversible, or is not a step of size 1.

    Kicks with a shift stand between drifts, so that they are never joined to others.
    """
    if integrator.step != integrator.step[::-1]:
        raise ValueError("has a step that does not read the same backwards")
    shifted = [isinstance(move, Kick) and bool(move.shift) for move in integrator.step]
    for before, now in zip((None, *integrator.step), shifted, strict=False):
        if now and not isinstance(before, Drift):
            raise ValueError("has a kick with a shift that is not between two drifts")
    if sum(shifted) == sum(isinstance(move, Kick) for move in integrator.step):
        raise ValueError("has no kick without a shift")
    for kind in (Kick, Drift):
        total = math.fsum(move.size for move in integrator.step if isinstance(move, kind))
        if not math.isclose(total, 1):
            raise ValueError(f"has a step whose {kind.__name__.lower()}s add up to {total:g}")


INTEGRATORS: Registry[Integrator] = Registry("integrator", __name__, Integrator, check_symmetric)


class Leapfrog(Integrator):
    """The leapfrog; L. Verlet, Phys. Rev. 159 (1967) 98."""

    name = "leapfrog"
    summary = "leapfrog, one force per step (Phys. Rev. 159 (1967) 98)"
    order = 2
    step = (Kick(0.5), Drift(1.0), Kick(0.5))


INTEGRATORS.register(Leapfrog())


LAMBDA = 0.1931833275037836
"""Coefficient of the outer kicks; T. Takaishi and P. de Forcrand, hep-lat/0505020."""


class Omf2(Integrator):
    """The integrator 2MN; I. P. Omelyan, I. M. Mryglod and R. Folk, Comput. Phys. Commun. 151, 272.

    Its energy changes are about ten times smaller than those of a leapfrog with the same step.
    """

    name = "omf2"
    summary = "second-order minimum norm (2MN), two forces per step (hep-lat/0505020)"
    order = 2
    step = (Kick(LAMBDA), Drift(0.5), Kick(1 - 2 * LAMBDA), Drift(0.5), Kick(LAMBDA))


INTEGRATORS.register(Omf2())


KICKS = (0.08398315262876693, 0.6822365335719091)
DRIFTS = (0.2539785108410595, -0.03230286765269967)
"""Coefficients of the velocity version with eleven stages; I. P. Omelyan, I. M. Mryglod and R.
Folk, Comput. Phys. Commun. 151 (2003) 272. `tests/updates/test_integrators.py` checks the order."""

BEGIN = (Kick(KICKS[0]), Drift(DRIFTS[0]), Kick(KICKS[1]), Drift(DRIFTS[1]))
MIDDLE = Kick(0.5 - sum(KICKS))


class Omf4(Integrator):
    """The fourth-order integrator of Omelyan, Mryglod and Folk with five forces in a step."""

    name = "omf4"
    summary = "fourth order (OMF4), five forces per step (Comput. Phys. Commun. 151 (2003) 272)"
    order = 4
    step = (*BEGIN, MIDDLE, Drift(1 - 2 * sum(DRIFTS)), MIDDLE, *BEGIN[::-1])


INTEGRATORS.register(Omf4())


SHIFT = 1 / 24
"""Shift of the links in the middle of a step, in units of the square of the step.

The kick of 2/3 with the potential S - e^2 / 48 |F|^2 that makes the step one of fourth order (S. A.
Chin, Phys. Lett. A 226, 344) has the force F + e^2 / 24 (F.d) F, which is that of the links
exp(e^2 / 24 F) U up to the fourth power of the step e.
"""


class ForceGradient(Integrator):
    """The force-gradient integrator, whose gradient is the force of shifted links.

    M. A. Clark, B. Joo, A. D. Kennedy and P. J. Silva, Phys. Rev. D 84 (2011) 071502; H. Yin and
    R. D. Mawhinney, arXiv:1111.5059. All coefficients are positive.
    """

    name = "force-gradient"
    summary = "fourth order with a force gradient, three forces per step (arXiv:1111.5059)"
    order = 4
    step = (Kick(1 / 6), Drift(0.5), Kick(2 / 3, shift=SHIFT), Drift(0.5), Kick(1 / 6))


INTEGRATORS.register(ForceGradient())


FIRST = 8
"""Number of steps of the first trajectory, unless the step would be too large."""

MOST = 10_000
"""Largest number of steps that is tried."""

FACTORS = (0.5, 4.0)
"""Bounds of the factor by which the number of steps changes at a time."""

WINDOW = 8
"""Smallest number of trajectories from which the last choice is made."""

LARGEST_CHANGE = 1e3
"""Changes of the energy that are larger count as this one."""


class StepTuner:
    """Finds the number of steps of the trajectories of a chain.

    In equilibrium the change of the energy is normal with the mean m and the variance 2 m, so that
    exp(-dH) is 1 on average and the acceptance erfc(sqrt(m) / 2); S. Gupta, A. Irbaeck, F. Karsch
    and B. Petersson, Phys. Lett. B 242 (1990) 437. m decreases with the power 2 p of the step for
    an integrator of order p. It is estimated from the mean square of dH, m^2 + 2 m, over windows of
    1, 1, 2, 4, 8, … trajectories, after each of which the number is chosen anew.

    Parameters
    ----------
    numbers : dict of str to float
        The state of the search, which is changed; empty before the first trajectory.
    updates : int
        Number of trajectories since the start of the chain after which the number is fixed.
    steps : int
        Fixed number of steps; 0 if it is to be found.
    acceptance : float
        The wanted acceptance.
    order : int
        Order of the integrator.
    least : int
        Smallest number of steps.
    """

    def __init__(
        self,
        numbers: dict[str, float],
        updates: int,
        steps: int,
        acceptance: float,
        order: int,
        least: int,
    ) -> None:
        self._numbers, self.updates = numbers, updates
        self._fixed, self._least = steps, max(least, 1)
        self._goal, self._power = mean_change(acceptance), 1 / (2 * order)
        if not steps and not numbers:
            numbers.update(steps=max(FIRST, self._least), trajectories=0, squares=0.0)

    @property
    def steps(self) -> int:
        """Number of steps of the next trajectory."""
        return self._fixed or int(self._numbers["steps"])

    def take(self, change: float, update: int) -> None:
        """Take the change of the energy in a trajectory."""
        if self._fixed or update > self.updates:
            return
        numbers = self._numbers
        size = min(abs(change), LARGEST_CHANGE) if math.isfinite(change) else LARGEST_CHANGE
        numbers["trajectories"] += 1
        numbers["squares"] += size * size
        last = update == self.updates
        if update & (update - 1) == 0 or (last and numbers["trajectories"] >= WINDOW):
            mean = math.sqrt(1 + numbers["squares"] / numbers["trajectories"]) - 1
            factor = power(mean / self._goal, self._power) if mean else 0.0
            low, high = FACTORS
            ideal = math.ceil(self.steps * min(max(factor, low), high))
            steps = min(max(ideal, self._least), max(MOST, self._least))
            numbers.update(steps=steps, trajectories=0, squares=0.0)


@cache
def mean_change(acceptance: float) -> float:
    """Return the mean m of dH with which the acceptance erfc(sqrt(m) / 2) is the given one."""
    low, high = 0.0, 5.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if complementary_error_function(middle) > acceptance else (low, middle)
        )
    return 4 * low * low


MOST_STEPS = 10**6
"""Largest number of steps, to catch typing errors."""

MOST_LEVELS = 10
"""Largest number of levels."""


class TrajectoryLevel(OptionItem):
    """A time scale of trajectories, as the user asks for it.

    Its options are ``integrator``, by default that of the trajectory, ``steps``, and ``gauge``,
    with which the gauge action acts on this level; by default it is on the last one.
    """

    kind = "level"
    leading = ("integrator", "steps")
    between = ","

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the options of a level."""
        steps = "Steps per drift of the level above; on the first level, of the trajectory."
        return (
            Option("integrator", str, "Integrator of the level.", choices=tuple(INTEGRATORS)),
            Option("steps", int, steps, least=0, most=MOST_STEPS, usual=0),
            Option("gauge", bool, "Whether the gauge action is on this level.", usual=False),
        )

    def check(self) -> None:
        """Refuse an integrator that does not exist."""
        if self.integrator:
            INTEGRATORS.check(self.integrator, "integrator")

    def __str__(self) -> str:
        return super().__str__() or "0"


def check_levels(levels: Sequence[TrajectoryLevel]) -> None:
    """Refuse levels that do not fit together."""
    if len(levels) > MOST_LEVELS:
        raise UsageError(f"--levels has {len(levels)} levels; give at most {MOST_LEVELS}.")
    for n, level in enumerate(levels[1:], 1):
        if not level.steps:
            raise UsageError(
                f"--levels gives no steps for level {n}; give them, as in omf2:5,omf2:4, because "
                "only those of the first level (0) can be found."
            )
    if sum(level.gauge for level in levels) > 1:
        raise UsageError("--levels has the gauge action on several levels; choose one.")


def gauge_level(levels: Sequence[TrajectoryLevel]) -> int:
    """Return the number of the level of the gauge action."""
    return next((n for n, level in enumerate(levels) if level.gauge), max(len(levels) - 1, 0))


@dataclass(frozen=True)
class TimeScales:
    """The levels of a trajectory."""

    integrators: tuple[Integrator, ...]
    """The integrators, that of the outermost level first."""
    inner_steps: tuple[int, ...]
    """Steps of every level below the outermost one per drift of the level above it."""
    acting: frozenset[int]
    """Numbers of the levels on which there is a force."""

    @classmethod
    def of(
        cls, levels: Sequence[TrajectoryLevel], integrator: Integrator, acting: Iterable[int]
    ) -> Self:
        """Return the levels that a user asks for, by default one."""
        return cls(
            tuple(
                INTEGRATORS[level.integrator] if level.integrator else integrator
                for level in levels or (TrajectoryLevel(),)
            ),
            tuple(level.steps for level in levels[1:]),
            frozenset(acting),
        )

    @property
    def order(self) -> int:
        """Power of the step with which the change of the energy decreases."""
        return min(i.order for n, i in enumerate(self.integrators) if n in self.acting)

    def trajectory(self, length: float, steps: int) -> list[Move]:
        """Return the kicks and drifts of a trajectory."""
        return list(_joined(self._nested(length, (steps, *self.inner_steps), 0), self.acting))

    @property
    def largest_drift(self) -> float:
        """The largest drift of a trajectory in units of the outermost step, without its sign."""
        return max(abs(x.size) for x in self.trajectory(2, 2) if isinstance(x, Drift))

    def has_bare_drifts(self, level: int) -> bool:
        """Return whether there are drifts that no kick of a level precedes."""
        moves = self.trajectory(2, 2)
        return any(
            isinstance(move, Drift) and (not n or moves[n - 1] != Kick(moves[n - 1].size, level))
            for n, move in enumerate(moves)
        )

    def forces(self, steps: int) -> dict[int, int]:
        """Return the number of forces of a trajectory for every level on which there is one."""
        kicks = [x for x in self.trajectory(1, steps) if isinstance(x, Kick)]
        return {
            level: sum(kick.forces for kick in kicks if kick.level == level)
            for level in sorted(self.acting)
        }

    @property
    def shifted(self) -> bool:
        """Whether there are kicks with the force of shifted links."""
        return any(isinstance(x, Kick) and x.shift for x in self.trajectory(1, 1))

    def _nested(self, length: float, steps: Sequence[int], level: int) -> Iterator[Move]:
        """Yield the moves of a level and of those below it."""
        for move in self.integrators[level].trajectory(length, steps[level]):
            if isinstance(move, Kick):
                yield replace(move, level=level)
            elif level + 1 < len(steps):
                yield from self._nested(move.size, steps, level + 1)
            else:
                yield move


def _joined(moves: Iterable[Move], acting: Collection[int]) -> Iterator[Move]:
    """Join neighbouring drifts, and kicks of a level, because kicks commute with each other."""
    active = (move for move in moves if isinstance(move, Drift) or move.level in acting)
    for kind, group in groupby(active, type):
        sizes: dict[tuple[int, float], float] = {}
        for step in group:
            key = (step.level, step.shift) if isinstance(step, Kick) else (0, 0.0)
            sizes[key] = sizes.get(key, 0.0) + step.size
        for (level, shift), size in sorted(sizes.items()):
            yield Kick(size, level, shift) if kind is Kick else Drift(size)

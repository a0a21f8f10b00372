"""Integrators of the equations of motion of hybrid Monte Carlo.

Each integrator has a module of its name, with an instance of `Integrator` that is registered in
`INTEGRATORS`. A step is a list of kicks, which change the momenta by the force, and of drifts,
which move the links. It reads the same backwards, so that trajectories are reversible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gauge_mc.registry import Registry


@dataclass(frozen=True)
class Kick:
    """A change of the momenta, P <- P + size F(U), by the forces of a level of a trajectory."""

    size: float
    level: int = 0


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
        kicks = sum(isinstance(one, Kick) for one in self.step)
        return kicks - isinstance(self.step[0], Kick)

    @property
    def largest_drift(self) -> float:
        """The largest drift of a trajectory in units of the step, without its sign."""
        return max(abs(one.size) for one in self.trajectory(2, 2) if isinstance(one, Drift))

    def trajectory(self, length: float, steps: int) -> list[Move]:
        """Return the kicks and drifts of a trajectory; neighbours of one kind are joined.

        Parameters
        ----------
        length : float
            Length of the trajectory in molecular dynamics time.
        steps : int
            Number of steps, at least 1.
        """
        moves: list[Move] = []
        for one in self.step * steps:
            kind, size = type(one), one.size
            if moves and isinstance(moves[-1], kind):
                size += moves.pop().size
            moves.append(kind(size))
        return [type(one)(one.size * length / steps) for one in moves]


def check_symmetric(one: Integrator) -> None:
    """Refuse an integrator whose step is not reversible, or is not a step of size 1.

    Raises
    ------
    ValueError
        With the reason.
    """
    if one.step != one.step[::-1]:
        raise ValueError("has a step that does not read the same backwards")
    for kind in (Kick, Drift):
        total = math.fsum(move.size for move in one.step if isinstance(move, kind))
        if not math.isclose(total, 1):
            raise ValueError(f"has a step whose {kind.__name__.lower()}s add up to {total:g}")


INTEGRATORS: Registry[Integrator] = Registry("integrator", __name__, Integrator, check_symmetric)

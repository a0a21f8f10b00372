"""Integrators of the equations of motion of hybrid Monte Carlo.

Each integrator is an instance of `Integrator` that is registered in `INTEGRATORS`. A step is a list
of kicks, which change the momenta by the force, and of drifts, which move the links. It reads the
same backwards, so that trajectories are reversible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
        kicks = sum(one.forces for one in self.step if isinstance(one, Kick))
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
            if moves and isinstance(moves[-1], type(one)):
                moves.append(replace(one, size=one.size + moves.pop().size))
            else:
                moves.append(one)
        return [_scaled(one, length, steps) for one in moves]


def _scaled(one: Move, length: float, steps: int) -> Move:
    """Return a part of one of the steps of a trajectory."""
    scaled = replace(one, size=one.size * length / steps)
    if isinstance(scaled, Kick) and scaled.shift:
        step = length / steps
        return replace(scaled, shift=scaled.shift * (step * step))
    return scaled


def check_symmetric(one: Integrator) -> None:
    """Refuse an integrator whose step is not reversible, or is not a step of size 1.

    Kicks with a shift stand between drifts, so that they are never joined to others.

    Raises
    ------
    ValueError
        With the reason.
    """
    if one.step != one.step[::-1]:
        raise ValueError("has a step that does not read the same backwards")
    shifted = [isinstance(move, Kick) and bool(move.shift) for move in one.step]
    for before, now in zip((None, *one.step), shifted, strict=False):
        if now and not isinstance(before, Drift):
            raise ValueError("has a kick with a shift that is not between two drifts")
    if sum(shifted) == sum(isinstance(move, Kick) for move in one.step):
        raise ValueError("has no kick without a shift")
    for kind in (Kick, Drift):
        total = math.fsum(move.size for move in one.step if isinstance(move, kind))
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

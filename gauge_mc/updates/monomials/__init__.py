"""Monomials: the terms of the action in whose force the momenta of hybrid Monte Carlo move."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.energy import Energy


class Force(NamedTuple):
    """Sizes of a force at the end of a trajectory, and the kinetic energy after its last kick.

    Attributes
    ----------
    kinetic : Energy
        -Tr P^2 summed over all links.
    mean : float
        Root of the mean over all links of |F|^2 = -2 Tr F^2.
    largest : float
        Largest |F|, rounded to single precision.
    """

    kinetic: Energy
    mean: float
    largest: float


class Monomial(ABC):
    """A term of the action.

    Attributes
    ----------
    name : str
        Its name, which no other term of the run has; columns of the table are named after it.
    """

    name: str

    @property
    def iterations(self) -> int:
        """Number of iterations of solvers since this was last asked; 0 if there are none."""
        return 0

    @property
    def measured(self) -> tuple[float, ...]:
        """Values of the columns that the term has in addition to those of all terms."""
        return ()

    @abstractmethod
    def draw(self, links: Field, random: Random) -> None:
        """Draw the fields on which the term depends besides the links, if there are any."""

    @abstractmethod
    def action(self, links: Field) -> Energy:
        """Return the value of the term."""

    @abstractmethod
    def kick(self, links: Field, momenta: AlgebraField, size: float) -> Force:
        """Change the momenta, P <- P + size F(U), and return what the force is like."""

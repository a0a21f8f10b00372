"""Gauge actions.

Each action has a module of its name, with an instance of `Action` that is registered in `ACTIONS`,
and a C++ header in ``cuda_src/action`` that sums the staples around a link. Heatbath and
overrelaxation work with every action.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gauge_mc.devices.kernels import Choice
from gauge_mc.groups import Group
from gauge_mc.registry import Registry


@dataclass(frozen=True)
class UpdateSet:
    """A set of links that are updated simultaneously. No loop of the action contains two of them.

    Attributes
    ----------
    mu : int
        Direction of the links, 0 to 3.
    parity : int
        Parity of their sites, 0 (even) or 1 (odd).
    """

    mu: int
    parity: int


class Action(ABC):
    """A gauge action.

    Attributes
    ----------
    name : str
        Name on the command line, for ``--action``.
    formula : str
        Formula of the action, with its normalisation.
    header : str or Path
        C++ header of the action, relative to ``cuda_src`` or absolute.
    cpp : str
        Name of the class in the header.
    update_sets : tuple of UpdateSet
        Sets of links in the order in which a sweep updates them. Each link is in one of them.
    halo_depth : int
        Largest distance in t between a link and the links of its staples, in time slices.
    rectangle : float or None
        Coefficient c1 of rectangles in units of c0 + 8 c1, where c0 is the coefficient of
        plaquettes, for perturbation theory at tree level; None if the action is of another kind.
    """

    name: str
    formula: str
    header: str | Path
    cpp: str
    update_sets: tuple[UpdateSet, ...]
    halo_depth: int
    rectangle: float | None = None

    @abstractmethod
    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return the members of ``Coefficients`` in the header, for beta = 2 N / g^2."""

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of this action."""
        return Choice.of("action", self.name, self.header, self.cpp)


ACTIONS: Registry[Action] = Registry("action", __name__)

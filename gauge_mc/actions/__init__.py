"""Gauge actions, one module each, named after the action.

An action is a C++ header in ``cuda_src/action``, which sums the staples around a link, and an instance
of `Action`, registered in `ACTIONS`. Heatbath and overrelaxation work with every action.
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
    """Links that are updated at the same time: no loop of the action contains two of them.

    Attributes
    ----------
    mu : int
        Their direction.
    parity : int
        The parity of their sites.
    """

    mu: int
    parity: int


class Action(ABC):
    """A gauge action.

    Attributes
    ----------
    name : str
    formula : str
        The action as a formula, with its normalisation.
    header : str or Path
        Its C++ header, relative to ``cuda_src`` or absolute.
    cpp : str
        Its class there.
    update_sets : tuple of UpdateSet
        Sets that together contain every link once, in the order in which a sweep updates them.
    halo_depth : int
        The largest distance in t between two links of a staple, in time slices.
    """

    name: str
    formula: str
    header: str | Path
    cpp: str
    update_sets: tuple[UpdateSet, ...]
    halo_depth: int

    @abstractmethod
    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return the members of the header's ``Coefficients`` at a coupling beta = 2 N / g^2."""

    @cached_property
    def choice(self) -> Choice:
        """What kernels are compiled for to use this action."""
        return Choice.of("action", self.name, self.header, self.cpp)


ACTIONS: Registry[Action] = Registry("action", __name__)

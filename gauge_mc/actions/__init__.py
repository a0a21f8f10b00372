"""Gauge actions.

Each action has a module of its name, with an instance of `Action` that is registered in `ACTIONS`,
and a C++ header in ``cuda_src/action`` that sums the staples around a link. Heatbath and
overrelaxation work with every action.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from gauge_mc.devices.kernels import Choice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.errors import UsageError
from gauge_mc.groups import Group
from gauge_mc.quoting import shortened
from gauge_mc.registry import Registry

COLOURS = 4
"""Number of colours of the sites of a lattice whose extents are multiples of 4."""

MORE_COLOURS = 6
"""Number of colours of the sites of other lattices."""

LEAST_EXTENT = 4
"""Smallest extent of a lattice on which rectangles are not closed around it."""


@dataclass(frozen=True)
class UpdateSet:
    """A set of links that are updated simultaneously. No loop of the action contains two of them.

    Attributes
    ----------
    mu : int
        Direction of the links, 0 to 3.
    parity : int
        Parity of their sites: 0 (even), 1 (odd) or `BOTH_PARITIES`.
    colour, colours : int
        Colour of their sites, and the number of colours (``cuda_src/update/colours.h``). Without
        colours these are all sites of the parity.
    """

    mu: int
    parity: int
    colour: int = 0
    colours: int = 0


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
    halo_depth : int
        Largest distance in t between a link and the links of its staples, in time slices: 1 if all
        loops are plaquettes, whose links are updated by parities; 2 if there are rectangles, whose
        links are updated by colours.
    rectangle : float or None
        Coefficient c1 of rectangles in units of c0 + 8 c1, where c0 is the coefficient of
        plaquettes, for perturbation theory at tree level; None if the action is of another kind.
    """

    name: str
    formula: str
    header: str | Path
    cpp: str
    halo_depth: int
    rectangle: float | None = None

    @abstractmethod
    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return the members of ``Coefficients`` in the header, for beta = 2 N / g^2."""

    def with_parameter(self, text: str) -> Action:
        """Return the action with a parameter that the user has given after the name and a colon.

        Raises
        ------
        UsageError
            If the action has no parameter, or the text is not a valid one.
        """
        raise UsageError(
            f"The action {self.name} has no parameter; leave ':{shortened(text)}' out."
        )

    def update_sets(self, lattice: Lattice) -> tuple[UpdateSet, ...]:
        """Return the sets of links in the order in which a sweep updates them.

        Each link is in one of them.

        Raises
        ------
        UsageError
            If the lattice is so small that a loop closes around it.
        """
        if self.halo_depth == 1:
            return tuple(UpdateSet(mu, parity) for mu in range(4) for parity in range(2))
        if min(lattice.extents) < LEAST_EXTENT:
            raise UsageError(
                f"The rectangles of the action {self.name} do not fit on the lattice {lattice}; "
                f"choose extents of at least {LEAST_EXTENT}."
            )
        colours = MORE_COLOURS if any(n % COLOURS for n in lattice.extents) else COLOURS
        return tuple(
            UpdateSet(mu, BOTH_PARITIES, colour, colours)
            for mu in range(4)
            for colour in range(colours)
        )

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of this action."""
        return Choice.of("action", self.name, self.header, self.cpp)


HEADER, CPP = "action/rectangles.h", "Rectangles"

RECTANGLES = replace(Choice.of("action", "with-rectangles", HEADER, CPP), needs_registers=True)
"""The compile-time choice of all actions with rectangles, which differ in numbers only."""


class RectangleKernels(Action):
    """An action whose kernels are those with rectangles."""

    header = HEADER
    cpp = CPP
    halo_depth = 2

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of the kernels."""
        return RECTANGLES


class RectangleAction(RectangleKernels):
    """S = beta (c0 sum (1 - Re Tr U_p / N) + c1 sum (1 - Re Tr U_r / N)), c0 = 1 - 8 c1.

    The sums are over all plaquettes and all rectangles of 2x1 links.

    Attributes
    ----------
    c1 : float
        Coefficient of the rectangles.
    source : str
        Publication that proposes this coefficient.
    """

    c1: float
    source: str

    def __init__(self) -> None:
        self.rectangle = self.c1
        self.formula = (
            "beta (c0 sum over plaquettes of (1 - Re Tr U_p / N) + c1 sum over 2x1 rectangles of "
            f"(1 - Re Tr U_r / N)), c1 = {self.c1:.10g}, c0 = 1 - 8 c1 = {1 - 8 * self.c1:.10g} "
            f"({self.source}), beta = 2 N / g^2"
        )

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return beta / N and the coefficients of plaquettes and rectangles."""
        return {"beta_over_n": beta / group.colours, "c0": 1 - 8 * self.c1, "c1": self.c1}


class Actions(Registry[Action]):
    """The actions by name; a parameter follows the name after a colon, as in ``rectangle:-0.1``."""

    def __getitem__(self, name: str) -> Action:
        """Return an action by name; see `Registry`, and `Action.with_parameter` for errors."""
        base, colon, parameter = name.partition(":")
        action = super().__getitem__(base)
        return action.with_parameter(parameter) if colon else action

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.partition(":")[0])


ACTIONS = Actions("action", __name__)

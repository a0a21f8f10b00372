"""Gauge actions.

Each action has a module of its name, with an instance of `Action` that is registered in `ACTIONS`,
and a C++ header in ``cuda_src/action`` that sums the staples around a link. Heatbath and
overrelaxation work with every action.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from gauge_mc import defaults
from gauge_mc.devices.kernels import Choice
from gauge_mc.domain.colouring import ROWS, Colouring
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.errors import UsageError
from gauge_mc.groups import Group
from gauge_mc.quoting import shortened
from gauge_mc.registry import Registry

ANISOTROPIES = (0.01, 100.0)
"""Smallest and largest bare anisotropy, to catch typing errors."""


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
    rows : tuple of two int, or None
        Distances along y and z between the rows whose slots stand for the sites of the colour, if
        all lanes have the same colours; None if every site must be tested.
    """

    mu: int
    parity: int
    colour: int = 0
    colours: int = 0
    rows: tuple[int, int] | None = None


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
    colouring : Colouring
        Links that are updated simultaneously, for loops as large as those of the action: `PARITIES`
        for plaquettes, `ROWS` for rectangles of 2x1 links, `CUBES` for parallelograms. The first
        update with an action checks it (`gauge_mc.updates.independence`).
    rectangle : float or None
        Coefficient c1 of rectangles in units of c0 + 8 c1, where c0 is the coefficient of
        plaquettes, for perturbation theory at tree level; None if the action is of another kind.
    anisotropic : Choice or None
        Compile-time selection of the class that multiplies the staples in planes in space and with
        the direction t by the members ``in_space`` and ``along_t`` of its ``Coefficients``; None if
        there is none.
    """

    name: str
    formula: str
    header: str | Path
    cpp: str
    colouring: Colouring
    rectangle: float | None = None
    anisotropic: Choice | None = None

    @abstractmethod
    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return the members of ``Coefficients`` in the header, for beta = 2 N / g^2."""

    def facts(self, beta: float) -> dict[str, str]:
        """Return entries for the headers of tables that state the action beyond its name."""
        return {}

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

    def with_anisotropy(self, anisotropy: float) -> Action:
        """Return the action with a bare anisotropy xi0, which is this one if xi0 = 1.

        Loops in space are multiplied by 1 / xi0, and all loops with links in direction t by xi0.

        Raises
        ------
        UsageError
            If the anisotropy is outside of `ANISOTROPIES`, or the action has no anisotropic form.
        """
        check_anisotropy(anisotropy)
        if anisotropy == 1:
            return self
        if self.anisotropic is None:
            raise UsageError(
                f"The action {self.name} has no anisotropic form; choose another action, or leave "
                "the anisotropy out."
            )
        return _with_anisotropy(self, anisotropy)

    def update_sets(self, lattice: Lattice) -> tuple[UpdateSet, ...]:
        """Return the sets of links in the order in which a sweep updates them.

        Each link is in one of them.

        Raises
        ------
        UsageError
            If the lattice is so small that a loop closes around it.
        """
        if min(lattice.extents) < 2 * self.halo_depth:
            raise UsageError(
                f"The loops of the action {self.name} do not fit on the lattice {lattice}; "
                f"choose extents of at least {2 * self.halo_depth}."
            )
        colours = self.colouring.colours(lattice)
        if not colours:
            return tuple(UpdateSet(mu, parity) for mu in range(4) for parity in range(2))
        return tuple(
            UpdateSet(mu, BOTH_PARITIES, colour, colours, self.colouring.rows)
            for mu in range(4)
            for colour in range(colours)
        )

    @property
    def halo_depth(self) -> int:
        """Largest distance in t between a link and the links of its staples, in time slices."""
        return self.colouring.depth

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of this action."""
        return Choice.of("action", self.name, self.header, self.cpp)

    @property
    def choices(self) -> tuple[Choice, Choice]:
        """The compile-time selections of this action and of its colouring, for updates."""
        return self.choice, self.colouring.choice


class AnisotropicAction(Action):
    """An action on a lattice whose spacing along t is smaller than that in space.

    With the sums of the loops in space and of those with links in direction t, it is

        S = beta (1/xi0 S_space + xi0 S_time),

    where the loops have the same coefficients c0 and c1 as on an isotropic lattice (F. Karsch,
    Nucl. Phys. B 205 (1982) 285; T. R. Klassen, hep-lat/9803010; with rectangles: S. Sakai,
    T. Saito and A. Nakamura, hep-lat/0002029).

    Parameters
    ----------
    isotropic : Action
        The action for xi0 = 1.
    anisotropy : float
        The bare anisotropy xi0.
    """

    def __init__(self, isotropic: Action, anisotropy: float) -> None:
        self._isotropic, self._anisotropy = isotropic, anisotropy
        self.name, self.colouring = isotropic.name, isotropic.colouring
        self.header, self.cpp = isotropic.header, isotropic.cpp
        self.formula = (
            f"{isotropic.formula}; loops in space times 1 / xi0, loops with links along t times "
            f"xi0, xi0 = {anisotropy:.12g}"
        )

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return those of the isotropic action, and the factors of the two kinds of planes."""
        factors = {"in_space": 1 / self._anisotropy, "along_t": self._anisotropy}
        return {**self._isotropic.coefficients(group, beta), **factors}

    def facts(self, beta: float) -> dict[str, str]:
        """Return those of the isotropic action, the formula, and beta in space and along t."""
        xi0 = self._anisotropy
        betas = {"beta_space": f"{beta / xi0:.10g}", "beta_time": f"{beta * xi0:.10g}"}
        return {**self._isotropic.facts(beta), "formula": self.formula, **betas}

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of the anisotropic class."""
        assert self._isotropic.anisotropic
        return self._isotropic.anisotropic


def check_anisotropy(anisotropy: float) -> None:
    """Refuse anisotropies outside of `ANISOTROPIES`.

    Raises
    ------
    UsageError
    """
    least, most = ANISOTROPIES
    if not least <= anisotropy <= most:
        raise UsageError(f"anisotropy must lie between {least:g} and {most:g}, not {anisotropy:g}.")


@cache
def _with_anisotropy(action: Action, anisotropy: float) -> Action:
    return AnisotropicAction(action, anisotropy)


@dataclass(frozen=True)
class Coupling:
    """The couplings of an ensemble.

    Attributes
    ----------
    beta : float
        The coupling 2 N / g^2.
    action : str
        Name of the action.
    anisotropy : float
        The bare anisotropy xi0.
    """

    beta: float
    action: str = defaults.ACTION
    anisotropy: float = defaults.ANISOTROPY

    @property
    def acting(self) -> Action:
        """The action; for the errors see `Registry` and `Action.with_anisotropy`."""
        return ACTIONS[self.action].with_anisotropy(self.anisotropy)

    @property
    def facts(self) -> dict[str, str]:
        """Entries for the headers of tables that state the action beyond its name."""
        return self.acting.facts(self.beta)

    def coefficients(self, group: Group) -> Mapping[str, float]:
        """Return the members of ``Coefficients`` in the header of the action."""
        return self.acting.coefficients(group, self.beta)

    def check_precision(self, group: Group, precision: str) -> None:
        """Refuse a precision in which rounding errors compete with the fluctuations of the links.

        At large beta the average of 1 - P is (N^2 - 1) / (4 beta), where P is the plaquette
        Re Tr U_p / N; at an anisotropy, beta is that of the planes with the larger one. Each of
        the four links of a plaquette is rounded to a relative error of at most `ROUNDING`, which
        changes P by at most four times as much.

        Raises
        ------
        UsageError
            If that is more than `LARGEST_SHARE` of the average.
        """
        ratio = max(self.anisotropy, 1 / self.anisotropy)
        most = LARGEST_SHARE * (group.colours**2 - 1) / (16 * ROUNDING[precision])
        if self.beta * ratio > most:
            raise UsageError(
                f"At beta = {self.beta:g} the links fluctuate so little that rounding errors in "
                f"{precision} precision change 1 - plaquette by more than {LARGEST_SHARE:.0%}; "
                f"choose double precision, or beta of at most {most / ratio:.4g}."
            )


ROUNDING = {"single": 2.0**-24, "double": 2.0**-53}
"""Largest relative error of a rounded number, by precision."""

LARGEST_SHARE = 0.01
"""Largest fraction of the average of 1 - P that rounding errors may change."""

HEADER, CPP = "action/rectangles.h", "Rectangles"

RECTANGLES = replace(Choice.of("action", "with-rectangles", HEADER, CPP), needs_registers=True)
"""The compile-time choice of all actions with rectangles, which differ in numbers only."""

ANISOTROPIC_RECTANGLES = replace(
    Choice.of(
        "action",
        "anisotropic with-rectangles",
        "action/anisotropic_rectangles.h",
        "AnisotropicRectangles",
    ),
    needs_registers=True,
)
"""The same for anisotropic lattices."""


class RectangleKernels(Action):
    """An action whose kernels are those with rectangles."""

    header = HEADER
    cpp = CPP
    colouring = ROWS
    anisotropic = ANISOTROPIC_RECTANGLES

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

    def facts(self, beta: float) -> dict[str, str]:
        """Return the formula, and the coupling in the other usual convention."""
        other = f"{beta * (1 - 8 * self.c1):.10g} (the factor of the plaquettes)"
        return {"formula": self.formula, "beta_c0": other}


class Actions(Registry[Action]):
    """The actions by name; a parameter follows the name after a colon, as in ``rectangle:-0.1``."""

    def __getitem__(self, name: str) -> Action:
        """Return an action by name; see `Registry`, and `Action.with_parameter` for errors."""
        base, colon, parameter = name.partition(":")
        action = super().__getitem__(base)
        return action.with_parameter(parameter) if colon else action

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.partition(":")[0])


ACTIONS = Actions("action", __name__, Action)

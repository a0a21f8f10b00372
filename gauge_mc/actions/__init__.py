"""Gauge actions.

Each action is an instance of `Action` that is registered in `ACTIONS`, and a C++ header in
``cuda_src/action`` that sums the staples around a link. Heatbath and overrelaxation work with every
action.

Colourings: which links of one direction are updated simultaneously.

A colouring is a class in a C++ header, which declares its numbers (``cuda_src/update/colours.h``).
The loops of an action choose one; everything else that an update needs to know about them follows
from it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.devices.kernels import Choice
from gauge_mc.devices.source import constants
from gauge_mc.domain.lattice import PARALLELOGRAMS, PLAQUETTES, RECTANGLES, Lattice, Loops
from gauge_mc.domain.slab import BOTH_PARITIES
from gauge_mc.errors import UsageError
from gauge_mc.groups import Group
from gauge_mc.option_items import Configurable, chosen
from gauge_mc.options import Option, merged
from gauge_mc.registry import Registry


@dataclass(frozen=True)
class Colouring:
    """A colouring of the sites, for actions whose loops reach at most `depth` links."""

    cpp: str
    """Name of the class in C++."""
    header: str | Path
    """C++ header of the class, relative to ``cuda_src`` or absolute."""
    loops: tuple[Loops, ...] = ()
    """Loops of which none contains two links that are updated simultaneously."""

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of the colouring."""
        return Choice.of("colouring", "", self.header, self.cpp)

    @property
    def depth(self) -> int:
        """Largest distance between two links of a loop that the colouring allows, in links."""
        return self._number("DEPTH")

    @property
    def rows(self) -> tuple[int, int] | None:
        """Distances along y and z between the rows of sites that a launch visits.

        None if a launch visits every site and tests its colour.
        """
        y, z = self._number("ROWS_Y"), self._number("ROWS_Z")
        return (y, z) if y and z else None

    def colours(self, lattice: Lattice) -> int:
        """Return the number of colours on a lattice; 0 if parities are enough."""
        irregular = any(n % 4 for n in lattice.extents)
        return self._number("OTHER_COLOURS" if irregular else "COLOURS")

    def _number(self, name: str) -> int:
        return constants(self.choice.header)[name]


PARITIES = Colouring("Parities", "update/parities.h", (PLAQUETTES,))
"""The colouring for which even and odd sites are enough."""

ROWS = Colouring("Rows", "update/rows.h", (PLAQUETTES, RECTANGLES))
CUBES = Colouring("Cubes", "update/cubes.h", (PLAQUETTES, RECTANGLES, PARALLELOGRAMS))

COLOURINGS = (PARITIES, ROWS, CUBES)
"""The colourings, those with the fewest colours first."""


BETA = Option(
    "beta",
    float,
    "Coupling of the action.",
    least=1e-6,
    most=1e6,
    symbol="β",
    axis=r"$\beta$",
    tag="b",
)
"""The coupling of every action. Single precision can represent it with room to spare."""

ANISOTROPY = Option(
    "anisotropy",
    float,
    "Bare anisotropy: loops in space are multiplied by 1/ξ₀, those with links along t by ξ₀.",
    metavar="XI0",
    least=0.01,
    most=100.0,
    usual=1.0,
    symbol="ξ₀",
    axis=r"$\xi_0$",
    tag="xi",
)
"""The option of actions that have an anisotropic form.

With the sums of the loops in space and of those with links in direction t, the action is

    S = beta (1/xi0 S_space + xi0 S_time),

where the loops have the same coefficients c0 and c1 as on an isotropic lattice (F. Karsch, Nucl.
Phys. B 205 (1982) 285; T. R. Klassen, hep-lat/9803010; with rectangles: S. Sakai, T. Saito and A.
Nakamura, hep-lat/0002029). The bounds catch typing errors."""


SIX_LINKS = {name: name for name in (BETA.name, "normalisation", "c0", "c1", "c2", "c3")}
"""Children of QCDml's elements for actions with rectangles and other loops of six links."""

LoopAverage = TypeVar("LoopAverage", float, NDArray[np.float64])
"""An average of one configuration, or an array of those of several."""


@dataclass(frozen=True)
class LengthScale:
    """A length in units of the lattice spacing as a function of beta, from the literature."""

    name: str
    """The length, such as r0."""
    group: str
    """Name of the gauge group."""
    least: float
    """Smallest beta for which it is known."""
    most: float
    """Largest one."""
    error: float
    """Relative error."""
    source: str
    """Publication."""
    logarithm: Callable[[float], float]
    """Function of beta that returns ln(length / a)."""

    def length(self, beta: float) -> float:
        """Return the length in units of the lattice spacing."""
        return math.exp(self.logarithm(beta))

    def slope(self, beta: float) -> float:
        """Return -d ln(a) / d beta, where a is the lattice spacing."""
        step = 1e-4
        return (self.logarithm(beta + step) - self.logarithm(beta - step)) / (2 * step)


@dataclass(frozen=True)
class UpdateSet:
    """Links that are updated simultaneously. No loop of the action contains two of them."""

    mu: int
    """Direction of the links, 0 to 3."""
    parity: int
    """Parity of their sites: 0 (even), 1 (odd) or `BOTH_PARITIES`."""
    colour: int = 0
    """Colour of their sites (``cuda_src/update/colours.h``)."""
    colours: int = 0
    """Number of colours. Without colours these are all sites of the parity."""
    rows: tuple[int, int] | None = None
    """Distances along y and z between the rows whose slots stand for the sites of the colour, if
    all lanes have the same colours; None if every site must be tested.
    """


class Action(Configurable, ABC):
    """A gauge action, with the values of its options, which are couplings besides beta."""

    formula: str
    """Formula of the action, with its normalisation."""
    header: str | Path
    """C++ header of the action, relative to ``cuda_src`` or absolute."""
    cpp: str
    """Name of the class in the header."""
    beta_is: str = "2 N / g^2"
    """Meaning of the coupling beta for this action, such as 2 N / g^2."""
    artefacts: tuple[int, ...] = (2,)
    """Powers of a that may be the leading one of lattice artefacts, apart from logarithms."""
    rectangle: float | None = None
    """Coefficient c1 of rectangles in units of c0 + 8 c1, where c0 is the coefficient of
    plaquettes, for perturbation theory at tree level; None if the action is of another kind.
    """
    anisotropic: Choice | None = None
    """Compile-time selection of the class that multiplies the staples in planes in space and with
    the direction t by the members ``in_space`` and ``along_t`` of its ``Coefficients``, for actions
    with the option `ANISOTROPY`.
    """
    qcdml: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Elements of ILDG's QCDml for the action, each with its children for numbers in their order,
    and what they state: `BETA`, options of the action, and those of `SIX_LINKS`. The first one
    that states all options that are not usual describes the action; that of another action, from
    which this one is derived, does not. See `gauge_mc.extensions.publishing.qcdml`.
    """
    kind = "action"
    scales: tuple[LengthScale, ...] = ()
    """Lengths as functions of beta, for isotropic lattices."""

    @abstractmethod
    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return the members of ``Coefficients`` in the header, for an isotropic lattice."""

    @property
    def loops(self) -> Mapping[Loops, float]:
        """The coefficients c of the action's loops; empty if the action does not declare them.

        On an isotropic lattice the action is beta times the sum of c (1 - Re Tr U / N).
        """
        return {}

    @cached_property
    def colouring(self) -> Colouring:
        """Links that are updated simultaneously: the first of `COLOURINGS` for the action's loops.

        An action that declares no loops, or larger ones, also declares its colouring. The first
        update with an action checks it (`gauge_mc.updates.checks`).

        Raises
        ------
        UsageError
            If there is none for the loops that the action declares.
        """
        for candidate in COLOURINGS:
            if self.loops and self.loops.keys() <= {*candidate.loops}:
                return candidate
        raise UsageError(
            f"No colouring follows from the loops of the action {self.name}; declare one as its "
            "attribute colouring."
        )

    def metadata(self, beta: float) -> dict[str, str]:
        """Return entries for the headers of tables that state the action beyond its name."""
        return {}

    @property
    def anisotropy(self) -> float:
        """The bare anisotropy xi0."""
        return float(self.values.get(ANISOTROPY.name, ANISOTROPY.usual))

    @property
    def factors(self) -> dict[str, float]:
        """Factors of the loops in space and of those with links along t; empty if both are 1."""
        xi0 = self.anisotropy
        return {} if xi0 == ANISOTROPY.usual else {"in_space": 1 / xi0, "along_t": xi0}

    @property
    def weights(self) -> dict[Loops, tuple[float, ...]]:
        """The factors of beta (1 - Re Tr U / N) for the loops of each kind; see `loops`."""
        in_space, along_t = self.factors.values() or (1.0, 1.0)
        return {
            loops: (coefficient * in_space, *[coefficient * along_t] * len(loops.kinds[1:]))
            for loops, coefficient in self.loops.items()
        }

    def scales_at(self, group: Group, beta: float) -> list[LengthScale]:
        """Return the lengths that are known at a coupling, on an isotropic lattice."""
        scales = [scale for scale in self.scales if scale.group == group.name and not self.factors]
        return [x for x in scales if x.least <= beta <= x.most]

    def update_sets(self, lattice: Lattice) -> tuple[UpdateSet, ...]:
        """Return the sets of links in the order of their updates; each link is in one set.

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
    def isotropic(self) -> Choice:
        """The compile-time selection of this action on an isotropic lattice."""
        return Choice.of("action", self.name, self.header, self.cpp)

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of this action."""
        return self.anisotropic if self.factors and self.anisotropic else self.isotropic

    @property
    def choices(self) -> tuple[Choice, Choice]:
        """The compile-time selections of this action and of its colouring, for updates."""
        return self.choice, self.colouring.choice


@dataclass(frozen=True)
class Coupling:
    """A gauge action together with beta and the values of its options."""

    beta: float
    """The coupling, which `Action.beta_is` describes."""
    action: Action
    """The action, with the values of its options."""

    @classmethod
    def of(cls, beta: float, action: str | Action = defaults.ACTION, **options: object) -> Coupling:
        """Return the coupling of an action, which may be given by its name, with its options."""
        return cls(beta, parse(action).with_options(**options).check())

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, str]) -> Coupling:
        """Return the coupling that the header of a table states, with ``beta`` and ``action``."""
        return cls(float(metadata["beta"]), action_of(metadata))

    @property
    def metadata(self) -> dict[str, str]:
        """Entries for the headers of tables that state the action beyond its name."""
        factors = self.action.factors
        entries = self.action.metadata(self.beta)
        if not factors:
            return entries
        xi0 = f"{self.action.anisotropy:.12g}"
        formula = (
            f"{self.action.formula}; loops in space times 1 / xi0, loops with links along t times "
            f"xi0, xi0 = {xi0}"
        )
        space, time = (f"{self.beta * factor:.10g}" for factor in factors.values())
        return {**entries, "formula": formula, "beta_space": space, "beta_time": time}

    def coefficients(self, group: Group) -> Mapping[str, float]:
        """Return the members of ``Coefficients`` in the header of the action."""
        return {**self.action.coefficients(group, self.beta), **self.action.factors}

    def density(self, averages: Mapping[Loops, Iterable[LoopAverage]]) -> LoopAverage:
        """Return the action divided by the number of sites."""
        action = self.action
        if not action.loops:
            raise UsageError(
                f"The action {action.name} declares no loops, so that its value is not known; "
                "declare them as its attribute loops."
            )
        terms = [
            weight * count * (1 - average)
            for loops, weights in action.weights.items()
            for weight, count, average in zip(weights, loops.kinds, averages[loops], strict=True)
        ]
        return self.beta * sum(terms[1:], terms[0])

    def check_precision(self, group: Group, precision: str) -> None:
        """Refuse a precision in which rounding errors compete with the fluctuations of the links.

        At large beta the average of 1 - P is (N^2 - 1) / (4 beta) for SU(N), where P is the
        plaquette Re Tr U_p / N; at an anisotropy, beta is that of the planes with the larger one.
        Each of the four links of a plaquette is rounded to a relative error of at most `ROUNDING`,
        which changes P by at most four times as much.
        """
        ratio = max(self.action.factors.values(), default=1.0)
        most = LARGEST_SHARE * group.dimension / (16 * ROUNDING[precision])
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

WITH_RECTANGLES = replace(Choice.of("action", "with-rectangles", HEADER, CPP), needs_registers=True)
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


class RectangleAction(Action):
    """S = beta (c0 sum (1 - Re Tr U_p / N) + c1 sum (1 - Re Tr U_r / N)), c0 = 1 - 8 c1.

    The sums are over all plaquettes and all rectangles of 2x1 links.

    Attributes
    ----------
    c1 : float
        Coefficient of the rectangles.
    source : str
        Publication that proposes this coefficient.
    """

    header = HEADER
    cpp = CPP
    isotropic = WITH_RECTANGLES
    anisotropic = ANISOTROPIC_RECTANGLES
    options: tuple[Option, ...] = (ANISOTROPY,)
    c1: float
    source: str

    @property
    def rectangle(self) -> float:  # type: ignore[override]
        """Coefficient of the rectangles in units of c0 + 8 c1 = 1."""
        return self.c1

    @property
    def loops(self) -> Mapping[Loops, float]:
        """The coefficients of plaquettes and rectangles."""
        return {PLAQUETTES: 1 - 8 * self.c1, RECTANGLES: self.c1}

    @property
    def formula(self) -> str:  # type: ignore[override]
        """Formula of the action, with its coefficients."""
        numbers = f"c1 = {self.c1:.10g}, c0 = 1 - 8 c1 = {1 - 8 * self.c1:.10g}"
        if self.c1 != self.c1:
            numbers = "with any c1, c0 = 1 - 8 c1"
        return (
            "beta (c0 sum over plaquettes of (1 - Re Tr U_p / N) + c1 sum over 2x1 rectangles of "
            f"(1 - Re Tr U_r / N)), {numbers} ({self.source}), beta = 2 N / g^2"
        )

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return beta / N and the coefficients of plaquettes and rectangles."""
        return {"beta_over_n": beta / group.colours, "c0": 1 - 8 * self.c1, "c1": self.c1}

    def metadata(self, beta: float) -> dict[str, str]:
        """Return the formula, and the coupling in the other usual convention."""
        rescaled = f"{beta * (1 - 8 * self.c1):.10g} (the factor of the plaquettes)"
        return {"formula": self.formula, "beta_c0": rescaled}


NAME, BETA_IS = "action", "beta_is"
"""Keys in headers of tables: the name of the action, and what beta is."""

ACTIONS: Registry[Action] = Registry("action", __name__, Action, options=lambda x: x.options)


def parse(text: str | Action) -> Action:
    """Read an action: a name, or a name and options as in ``rectangle:c1=-0.1``; see `chosen`."""
    return text if isinstance(text, Action) else chosen(ACTIONS, text)


def action_of(metadata: Mapping[str, str]) -> Action:
    """Return the action that the header of a table states, with the options that it states."""
    action = parse(metadata.get(NAME, defaults.ACTION))
    return action.with_options(
        **{
            option.name: float(metadata[option.name])
            for option in action.options
            if option.name in metadata
        }
    )


def restated(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the header of a table, perhaps of an earlier version, as it is written now."""
    action = action_of(metadata)
    return {**metadata, **action.stated, BETA_IS: action.beta_is}


def ensemble_keys() -> tuple[str, ...]:
    """Return the keys in headers of tables that identify an ensemble."""
    return ("group", "beta", "lattice", "action", *(c.name for c in couplings()))


def couplings() -> tuple[Option, ...]:
    """Return the options of all actions, without duplicates."""
    return merged([(f"the action {x.name}", x.options) for x in ACTIONS.values()])

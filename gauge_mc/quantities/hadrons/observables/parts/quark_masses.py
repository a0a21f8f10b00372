"""Quarks of Dirac operators that have a mass instead of a hopping parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.numbers import number
from gauge_mc.option_items import OptionItem
from gauge_mc.options import Option, merged
from gauge_mc.quarks.diagonal import LARGEST
from gauge_mc.quarks.operators import (
    HOPPING_PARAMETER,
    OPERATORS,
    QUARK_MASS,
    QuarkOperator,
    operators_of,
)

EXAMPLE = f"{next(iter(operators_of(QUARK_MASS)))}:LS=16,M5=1.8,m=0.02,0.04"
"""Example of quarks as text."""

OPERATOR = Option("operator", str, "Dirac operator.", choices=tuple(operators_of(QUARK_MASS)))

MASS = Option(
    "m",
    str,
    "Masses of the quarks.",
    metavar="M[,M...]",
    least=0,
    most=LARGEST,
    each=float,
)


class QuarkMasses(OptionItem):
    """Quarks with one Dirac operator and one or several masses.

    In text they are the name of the operator, its parameters, which may be written in capital
    letters, and the masses, as in ``domain-wall:LS=16,M5=1.8,m=0.02,0.04``.
    """

    kind = "quark"
    flag = "--quark"
    leading = ("operator",)
    between = r",(?!\s*(?:[-+.0-9]|\w+=|measured))"
    within = r":|[,;](?=\s*\w+=)"

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the operator, its parameters, and the masses."""
        kinds = operators_of(QUARK_MASS).items()
        owners = ((f"the Dirac operator {name}", one.parameters) for name, one in kinds)
        return (OPERATOR, *merged(owners), MASS)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read quarks from text; see `OptionItem.parse`.

        Raises
        ------
        UsageError
            If the text is not that of quarks with a mass.
        """
        name = text.partition(":")[0].strip().lower()
        if name in operators_of(HOPPING_PARAMETER):
            raise UsageError(
                f"Quarks of {name} have a hopping parameter instead of a mass: give it with "
                "--kappa, without --quark."
            )
        return super().parse(text)

    def check(self) -> None:
        """Refuse quarks without a known operator, with a parameter of another one, or massless.

        Raises
        ------
        UsageError
            If one is missing or wrong.
        """
        names = tuple(operators_of(QUARK_MASS))
        if self.operator not in names:
            given = f"no operator '{self.operator}' of" if self.operator else "no operator for"
            raise UsageError(
                f"There is {given} quarks with a mass; choose {' or '.join(names)}, as in "
                f"{names[0]}:{MASS.name}=0.04."
            )
        own = {one.name for one in self.operator_class.parameters}
        for name in sorted(self.given - own - {OPERATOR.name, MASS.name}):
            raise UsageError(f"The operator {self.operator} has no parameter {name}; leave it out.")
        if not self.masses:
            raise UsageError(f"The masses {MASS.name} of the quarks are missing; give some.")
        self.operator_class.check_parameters(**self.parameters)
        self.operator_class.check_masses(self.masses, **self.parameters)

    @property
    def operator_class(self) -> type[QuarkOperator]:
        """The class of the Dirac operator."""
        return OPERATORS[self.operator]

    @property
    def parameters(self) -> dict[str, object]:
        """The parameters of the operator apart from the mass, by name."""
        own = {one.name for one in self.operator_class.parameters}
        return {name: value for name, value in self.values.items() if name in own}

    @property
    def masses(self) -> tuple[float, ...]:
        """The masses, ascending."""
        given = self.values.get(MASS.name, ())
        return tuple(sorted({*self.placed(self.values)[MASS.name].numbers(given, number)}))

    @property
    def kappa(self) -> float:
        """The hopping parameter of the operator, which does not depend on the mass."""
        return self.operator_class.hopping_parameter(**self.parameters)

    @property
    def header(self) -> dict[str, str]:
        """Entries for the header of a table: the operator, its parameters, and the masses."""
        texts = (one for one in str(self).split(self.glued) if not one.startswith(f"{MASS.name}="))
        usual = {one.name: one.usual for one in self.options()}
        also = (
            f"{name}={value}" for name, value in self.parameters.items() if value == usual[name]
        )
        return {
            OPERATOR.name: self.glued.join([*texts, *also]),
            MASS.name: ",".join(f"{m:g}" for m in self.masses),
            **self.operator_class.other_masses(self.masses, **self.parameters),
        }

    def with_mass(self, mass: float) -> QuarkMasses:
        """Return quarks of one mass with the same operator."""
        return self._with(**{MASS.name: (mass,)})

    @property
    def rehearsed(self) -> QuarkMasses:
        """The same without measurements on the links; see `QuarkOperator.rehearsed`."""
        return self._with(**self.operator_class.rehearsed(**self.parameters))

    def warm_up(self, mass: float) -> QuarkMasses:
        """Return quarks of one mass for a measurement that only compiles the kernels."""
        return self._with(**self.operator_class.warm_up, **{MASS.name: (mass,)})

    def _with(self, **values: object) -> QuarkMasses:
        given = {name: self.values[name] for name in self.given}
        return QuarkMasses(**{**given, **values})

    def made(
        self, field: Field, mass: float | tuple[float, ...], phases: Sequence[complex]
    ) -> QuarkOperator:
        """Return the operator on some links for one of the masses, given the boundary phases.

        An operator that solves for several masses together takes all of them.
        """
        make: Callable[..., QuarkOperator] = self.operator_class
        return make(field, mass, boundary=phases, **self.parameters)

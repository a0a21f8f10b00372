"""Terms of the action of a run besides the gauge action, and those that the user names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from gauge_mc.errors import UsageError
from gauge_mc.option_items import OptionItem
from gauge_mc.options import Option, merged
from gauge_mc.registry import in_words
from gauge_mc.updates.levels import MOST_LEVELS
from gauge_mc.updates.monomials import MONOMIALS, Monomial
from gauge_mc.updates.term_links import TermLinks

LEVEL = Option(
    "level",
    int,
    "Level of the force, from 0 for the outermost one.",
    least=0,
    most=MOST_LEVELS - 1,
    usual=0,
)

VECTORS_OF_HISTORY = 6
"""Number of vectors for an earlier solution: for two systems, with copies that are made orthogonal
and their products."""


class RunMonomial(NamedTuple):
    """A term of the action of a run besides the gauge action.

    Attributes
    ----------
    title : str
        Its name, after which columns are named.
    level : int
        The level of its force.
    kind : type of Monomial
        The kind of monomial.
    make : callable
        Function that returns it, given links with one replica for every chain.
    extent : int
        Extent of the fifth direction of its vectors.
    history : int
        Number of earlier solutions that it keeps.
    """

    title: str
    level: int
    kind: type[Monomial]
    make: Callable[[TermLinks], Monomial]
    extent: int = 1
    history: int = 0

    @property
    def vectors(self) -> int:
        """Largest number of vectors that it needs; see `Monomial`."""
        return (self.kind.vectors + VECTORS_OF_HISTORY * self.history) * self.extent


def named_monomials() -> dict[str, type[Monomial]]:
    """Return the monomials that the user chooses by their names."""
    return {name: one for name, one in MONOMIALS.items() if one.chosen_by == NamedMonomial.option}


class NamedMonomial(OptionItem):
    """A monomial that the user chooses by its name, with its level and its options."""

    option = "monomials"
    kind = "monomial"
    flag = f"--{option}"
    leading = ("monomial",)

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the name, the level, and the options of all monomials."""
        known = named_monomials()
        name = Option("monomial", str, "Name of the monomial.", choices=tuple(known))
        owners = [(f"the monomial {name}", one.options) for name, one in known.items()]
        return (name, LEVEL, *(merged(owners)))

    def check(self) -> None:
        """Refuse a name that does not exist, options of others, and missing ones."""
        if not self.monomial:
            raise UsageError(f"{self.flag} says no name; give {in_words(named_monomials(), 'or')}.")
        MONOMIALS.check(self.monomial, self.option)
        if self.monomial not in named_monomials():
            raise UsageError(
                f"{self.flag} {self.monomial} is a term of every run or of its quarks; choose it "
                f"with --{MONOMIALS[self.monomial].chosen_by}."
            )
        own = {one.name: one for one in MONOMIALS[self.monomial].options}
        for name in sorted(self.given - {"monomial", LEVEL.name} - own.keys()):
            raise UsageError(f"{self.flag} {self.monomial} has no option {name}; leave it out.")
        for name, one in own.items():
            if self.values.get(name) is None:
                raise UsageError(f"{self.flag} {self.monomial} needs {name}: {one.help}")

    @property
    def own_values(self) -> dict[str, object]:
        """Values of the options of the monomial."""
        return {one.name: self.values[one.name] for one in MONOMIALS[self.monomial].options}


def monomial_terms(named: Sequence[NamedMonomial], levels: int) -> Iterator[RunMonomial]:
    """Yield the terms that the user names.

    Parameters
    ----------
    named : sequence of NamedMonomial
        What the user asks for.
    levels : int
        Number of levels.

    Raises
    ------
    UsageError
        If a level does not exist.
    """
    for n, one in enumerate(named):
        if one.level >= levels:
            raise UsageError(
                f"{one.flag} {one.monomial} asks for level {one.level}, but the last one is "
                f"{levels - 1}; add it to --levels, whose first one is 0."
            )
        kind, before = MONOMIALS[one.monomial], [other.monomial for other in named[:n]]
        again = before.count(one.monomial)
        title = one.monomial.replace("-", "_") + (str(again + 1) if again else "")
        yield RunMonomial(title, one.level, kind, partial(_made, kind, title, one.own_values))


def _made(
    kind: type[Monomial], title: str, values: dict[str, object], links: TermLinks
) -> Monomial:
    return kind(links.field, title, **values)

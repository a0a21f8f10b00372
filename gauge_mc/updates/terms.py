"""Terms of the action besides the gauge action, and options whose values are such terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.option_items import OptionItem
from gauge_mc.options import Option, check_named, merged
from gauge_mc.registry import Registry, in_words
from gauge_mc.updates.integrators import MOST_LEVELS
from gauge_mc.updates.monomials import MONOMIALS, Monomial

if TYPE_CHECKING:
    from gauge_mc.domain.device_group import DeviceGroup
    from gauge_mc.domain.lattice import Lattice


class LinkReader(Protocol):
    """An object that a term of the action prepares from the links, such as a Dirac operator."""

    def refresh(self) -> object:
        """See the links, which have changed."""


T = TypeVar("T", bound=LinkReader)


class TermLinks:
    """A copy of the links in one place of memory, on which terms rely.

    Parameters
    ----------
    like : Field
        A field of the kind of those that move, with as many replicas as move together.

    Raises
    ------
    GaugeError
        If a device has too little memory.
    """

    def __init__(self, like: Field) -> None:
        self.field = like.repeated(len(like.replicas))
        self._prepared: dict[object, LinkReader] = {}
        self.take(like)

    def take(self, links: Field) -> None:
        """Copy links, update the halos, and let all that is prepared see them."""
        self.field.copy(links)
        self.refresh()

    def refresh(self) -> None:
        """Update the halos, and let all that is prepared see the links, which have changed."""
        self.field.exchange_halo(None)
        for reader in self._prepared.values():
            reader.refresh()

    def prepared(self, key: object, prepare: Callable[[], T]) -> T:
        """Return what terms prepare from the links, the same for the same key."""
        if key not in self._prepared:
            self._prepared[key] = prepare()
        return self._prepared[key]  # type: ignore[return-value]


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


class ActionTerms(ABC):
    """An option of hybrid Monte Carlo whose values are terms of the action, such as quarks."""

    name: str
    """Name of the option, which names the terms in messages."""
    option: Option
    """The option, whose values are `OptionItem`s, perhaps with a ``label`` for figures."""
    items: type[OptionItem]
    """Class of the values of the option."""
    words: str = ""
    """The terms in sentences; by default the name."""
    compared_by: str = ""
    """Fit that compares runs with different terms, such as ``crossover``; empty if none does."""
    needs_double: bool = False
    """Whether links must be in double precision."""

    @abstractmethod
    def terms(self, values: Sequence[Any], levels: int) -> list[RunMonomial]:
        """Return the terms that some values of the option stand for.

        Parameters
        ----------
        values : sequence of OptionItem
            The values.
        levels : int
            Number of levels.

        Raises
        ------
        UsageError
            If a level does not exist.
        """

    def fastest_devices(
        self, devices: DeviceGroup, lattice: Lattice, group: str, precision: str
    ) -> tuple[DeviceGroup, str]:
        """Return the devices on which a run with such terms is fastest, and why if not all.

        Parameters
        ----------
        devices : DeviceGroup
            The devices.
        lattice, group, precision : Lattice, str, str
            Those of the links.
        """
        return devices, ""


ACTION_TERMS: Registry[ActionTerms] = Registry(
    "kind of terms",
    __name__,
    ActionTerms,
    lambda x: check_named(x.name, x.option),
    lambda x: (x.option,),
)


LEVEL = Option(
    "level",
    int,
    "Level of the force, from 0 for the outermost one.",
    least=0,
    most=MOST_LEVELS - 1,
    usual=0,
)

PRECISION = "double"


def check_precision(terms: str, precision: str) -> None:
    """Refuse links in single precision for terms that need double precision."""
    if precision != PRECISION:
        raise UsageError(
            f"Links in {precision} precision are too inexact for trajectories with {terms}; choose "
            f"--precision {PRECISION}."
        )


def named_monomials() -> dict[str, type[Monomial]]:
    """Return the monomials that the user chooses by their names."""
    return {name: x for name, x in MONOMIALS.items() if x.chosen_by == NamedMonomial.option}


class NamedMonomial(OptionItem):
    """A monomial that the user chooses by its name, with its level and its options."""

    option = "monomials"
    kind = "monomial"
    flag = f"--{option}"
    leading = ("monomial",)

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the name, the level, and the options of all monomials."""
        monomials = named_monomials()
        name = Option("monomial", str, "Name of the monomial.", choices=tuple(monomials))
        owners = [(f"the monomial {name}", x.options) for name, x in monomials.items()]
        return (name, LEVEL, *(merged(owners)))

    def check(self) -> None:
        """Refuse a name that does not exist, options of others, and missing ones."""
        if not self.monomial:
            raise UsageError(f"{self.flag} needs a name; give {in_words(named_monomials(), 'or')}.")
        MONOMIALS.check(self.monomial, self.option)
        if self.monomial not in named_monomials():
            raise UsageError(
                f"{self.flag} {self.monomial} is a term of every run or of its quarks; choose it "
                f"with --{MONOMIALS[self.monomial].chosen_by}."
            )
        options = {option.name: option for option in MONOMIALS[self.monomial].options}
        for name in sorted(self.given - {"monomial", LEVEL.name} - options.keys()):
            raise UsageError(f"{self.flag} {self.monomial} has no option {name}; leave it out.")
        for name, entry in options.items():
            if self.values.get(name) is None:
                raise UsageError(f"{self.flag} {self.monomial} needs {name}: {entry.help}")

    @property
    def own_values(self) -> dict[str, object]:
        """Values of the options of the monomial."""
        return {
            option.name: self.values[option.name] for option in MONOMIALS[self.monomial].options
        }


def monomial_terms(named: Sequence[NamedMonomial], levels: int) -> Iterator[RunMonomial]:
    """Yield the terms that the user names."""
    for n, choice in enumerate(named):
        if choice.level >= levels:
            raise UsageError(
                f"{choice.flag} {choice.monomial} asks for level {choice.level}, but the last one "
                f"is {levels - 1}; add it to --levels, whose first one is 0."
            )
        kind, before = MONOMIALS[choice.monomial], [x.monomial for x in named[:n]]
        again = before.count(choice.monomial)
        title = choice.monomial.replace("-", "_") + (str(again + 1) if again else "")
        yield RunMonomial(title, choice.level, kind, partial(_made, kind, title, choice.own_values))


def weights() -> tuple[str, ...]:
    """Return the options whose values are terms of the action, which headers of files state."""
    return (*ACTION_TERMS, NamedMonomial.option)


def terms_of_action(values: Mapping[str, Any], levels: int) -> list[RunMonomial]:
    """Return the terms of the action besides the gauge action, by the values of options."""
    kinds = [(kind, values[name]) for name, kind in ACTION_TERMS.items() if values.get(name)]
    terms = [term for kind, x in kinds for term in kind.terms(x, levels)]
    return [*terms, *monomial_terms(values[NamedMonomial.option], levels)]


def _made(
    kind: type[Monomial], title: str, values: dict[str, object], links: TermLinks
) -> Monomial:
    return kind(links.field, title, **values)

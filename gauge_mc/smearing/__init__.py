"""Smearing of links.

Each smearing is a subclass of `Smearing` that is registered in `SMEARINGS`, and a kernel.
Observables with smearing accept the options of all smearings, and chains of smearings that are
applied one after the other.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gauge_mc import defaults
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.options import Option, check_declared, check_options, merged, parse_options
from gauge_mc.quoting import shortened
from gauge_mc.registry import Registry, in_words, nearest

NO_SMEARING = "none"
"""Value of ``--smear`` for no smearing."""


DIRECTIONS = "xyzt"
"""Letters of the directions."""

NOTHING = "none"
"""Value of ``--exclude`` for no excluded directions."""

MAX_ITERATIONS = 10_000
"""Largest number of smearing iterations, to catch typing errors."""

PROJECTIONS = ("maximal", "polar")
"""Projections P[M] to the group. The projection ``maximal`` gives the element with the largest
Re Tr(P M^dagger). The projection ``polar`` gives the unitary factor of M, multiplied by a phase
that makes its determinant 1. For SU(2) both are the same."""

PROJECTION = Option(
    "projection",
    str,
    "P for SU(3): largest trace, or polar.",
    default=PROJECTIONS[0],
    choices=tuple(PROJECTIONS),
)
"""The option that chooses a projection."""

EXCLUDE = Option(
    "exclude",
    str,
    "Directions, such as xt, without smearing and staples.",
    default=DIRECTIONS[-1],
    metavar=f"DIRECTIONS|{NOTHING}",
)
"""The option that excludes directions from a smearing."""


def check_projection(projection: str) -> None:
    """Refuse a projection that is not one of `PROJECTIONS`."""
    if projection not in PROJECTIONS:
        raise UsageError(
            f"There is no projection '{projection}'; choose {' or '.join(PROJECTIONS)}."
        )


def smeared_directions(exclude: str) -> tuple[int, ...]:
    """Return the directions that are not excluded."""
    letters = "" if exclude == NOTHING else exclude
    directions = tuple(mu for mu, letter in enumerate(DIRECTIONS) if letter not in letters)
    unknown = set(letters) - set(DIRECTIONS) or (not letters and exclude != NOTHING)
    if unknown or len(directions) < 2 or len(set(letters)) < len(letters):
        raise UsageError(
            f"The excluded directions are '{shortened(exclude)}'; choose {NOTHING}, one or two of "
            f"{', '.join(DIRECTIONS)}, such as {DIRECTIONS[-1]} or xt."
        )
    return directions


def directions_in_words(directions: Sequence[int]) -> str:
    """Return the directions of smeared links for a header, such as ``links along x, y, z``."""
    return f"links along {', '.join(DIRECTIONS[mu] for mu in directions)}"


class Smearing(ABC):
    """A smearing of links. Calling an instance does one iteration, and ``str`` describes it."""

    name: ClassVar[str]
    """Name on the command line, for ``--smear``."""
    options: ClassVar[tuple[Option, ...]]
    """Options of `from_options`."""
    positional: ClassVar[tuple[str, ...]] = ()
    """Names of the options whose values may be given without their names, as in ``ape:0.2``. They
    are numbers.
    """

    @classmethod
    def check_bounds(cls, **values: float) -> None:
        """Refuse values outside of the bounds that `options` declares.

        Raises
        ------
        UsageError
            If a value is invalid.
        """
        check_declared(cls.options, values, f"the smearing {cls.name}")

    @property
    def smears_time(self) -> bool:
        """Whether the links in direction t change."""
        return False

    @property
    def uses_time(self) -> bool:
        """Whether smeared links in space depend on links in direction t."""
        return True

    @property
    def most(self) -> int | None:
        """Number of iterations, or None if there may be any number of them."""
        return None

    @classmethod
    @abstractmethod
    def from_options(cls, values: Mapping[str, Any]) -> Smearing:
        """Return a smearing with the given options, by name; the others have their defaults.

        Raises
        ------
        UsageError
            If a value is invalid.
        """

    @abstractmethod
    def __call__(self, source: Field, target: Field) -> None:
        """Write the smeared links of `source` to `target`, a different field of the same kind."""

    def iteration(self, number: int) -> Smearing:
        """Return the smearing of iteration n, counted from 0."""
        return self


@dataclass(frozen=True)
class SmearingSequence(Smearing):
    """Smearings that are applied one after the other, each a number of times.

    Raises
    ------
    UsageError
        If a number of iterations is not between 1 and `MAX_ITERATIONS`.
    """

    steps: tuple[tuple[Smearing, int], ...]
    """The smearings in their order, and their numbers of iterations."""

    def __post_init__(self) -> None:
        for smearing, times in self.steps:
            if not 1 <= times <= MAX_ITERATIONS:
                raise UsageError(
                    f"There are {times} iterations of the smearing {smearing.name}; choose 1 to "
                    f"{MAX_ITERATIONS}."
                )

    @property
    def smears_time(self) -> bool:
        """Whether the links in direction t change."""
        return any(smearing.smears_time for smearing, _ in self.steps)

    @property
    def uses_time(self) -> bool:
        """Whether smeared links in space depend on links in direction t."""
        return any(smearing.uses_time for smearing, _ in self.steps)

    @property
    def most(self) -> int:
        """Number of iterations of all smearings together."""
        return sum(times for _, times in self.steps)

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Smearing:
        """Fail, because `make_smearing` makes sequences."""
        raise NotImplementedError

    def iteration(self, number: int) -> Smearing:
        """Return the smearing of an iteration, which are counted from 0 over the whole chain."""
        for smearing, times in self.steps:
            if number < times:
                return smearing
            number -= times
        raise IndexError(number)

    def __call__(self, source: Field, target: Field) -> None:
        """Do the first iteration; see `Smearing`."""
        self.iteration(0)(source, target)

    def __str__(self) -> str:
        if len(self.steps) == 1:
            return str(self.steps[0][0])
        return ", then ".join(f"{times} x ({smearing})" for smearing, times in self.steps)


class DirectedSmearing(Smearing):
    """A smearing whose links and staples do not extend along excluded directions."""

    exclude: str
    """Letters of the excluded directions, or `NOTHING`."""

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> DirectedSmearing:
        """Return the smearing with the given options; see `Smearing`."""
        return cls(**values)

    @property
    def directions(self) -> tuple[int, ...]:
        """Directions of the smeared links."""
        return smeared_directions(self.exclude)

    @property
    def bits(self) -> int:
        """The directions as bits of a number, for kernels."""
        return sum(1 << mu for mu in self.directions)

    @property
    def smears_time(self) -> bool:
        """Whether the links in direction t change."""
        return DIRECTIONS.index("t") in self.directions

    @property
    def uses_time(self) -> bool:
        """Whether smeared links in space depend on links in direction t."""
        return self.smears_time


SMEARINGS: Registry[type[Smearing]] = Registry(
    "smearing", __name__, Smearing, options=lambda x: x.options
)


def smearing_owners() -> list[tuple[str, tuple[Option, ...]]]:
    """Return all smearings, as named in messages, and their options."""
    return [(f"the smearing {name}", x.options) for name, x in SMEARINGS.items()]


def smearing_options() -> tuple[Option, ...]:
    """Return the options of all smearings, without duplicates."""
    return merged(smearing_owners())


def smear_option() -> Option:
    """Return the option that chooses a smearing, or several that follow each other."""
    return Option(
        "smear",
        str,
        f"Smearing: {in_words([*SMEARINGS, NO_SMEARING], 'or')}; with parameters and iterations, "
        f"as {defaults.SMEARING}:0.2x25. Several act in the order given.",
        default=f"{defaults.SMEARING} for loops",
        metavar="NAME[:PARAMETERS][xN]",
        repeated=True,
        choices=(*SMEARINGS, NO_SMEARING),
        accepts=Smearing,
    )


def make_smearing(
    names: str | Smearing | Sequence[str | Smearing], values: Mapping[str, Any]
) -> Smearing | None:
    """Return the smearing that texts such as ``ape`` or ``ape:0.2x25`` describe."""
    items = [names] if isinstance(names, str | Smearing) else list(names)
    options = [key for key, value in values.items() if value is not None]
    if items == [NO_SMEARING]:
        if options:
            raise UsageError(f"--{options[0].replace('_', '-')} is not for --smear {NO_SMEARING}.")
        return None
    if NO_SMEARING in items:
        raise UsageError(f"--smear {NO_SMEARING} excludes other smearings; leave one of them out.")
    parts = [_SmearingText.parse(item) if isinstance(item, str) else item for item in items]
    first = parts[0]
    if options and (len(parts) > 1 or isinstance(first, Smearing) or first.words):
        if options[0] not in {option.name for option in SMEARINGS[first.name].options}:
            raise UsageError(f"--{options[0].replace('_', '-')} is not for --smear {first.name}.")
        raise UsageError(
            f"--{options[0].replace('_', '-')} is for one --smear without parameters; give the "
            f"parameters with the smearing, as in --smear {first.name}:{options[0]}=VALUE."
        )
    steps = [step for part in parts for step in _steps(part, values)]
    if len(steps) == 1 and steps[0][1] is None:
        return steps[0][0]
    return SmearingSequence(tuple((x, 1 if times is None else times) for x, times in steps))


def _steps(
    part: _SmearingText | Smearing, values: Mapping[str, Any]
) -> Iterable[tuple[Smearing, int | None]]:
    """Return the smearings of a part of a chain, with their numbers of iterations if known."""
    if isinstance(part, SmearingSequence):
        return part.steps
    if isinstance(part, Smearing):
        return [(part, None)]
    return [(part.smearing(values), part.times)]


@dataclass(frozen=True)
class _SmearingText:
    """A text such as ``ape:0.2x25`` in its parts."""

    name: str
    words: tuple[str, ...]
    times: int | None

    @classmethod
    def parse(cls, text: str) -> _SmearingText:
        """Read the text of one smearing."""
        before, colon, after = text.strip().partition(":")
        counted = re.fullmatch("(.+)x([0-9]{1,9})", after if colon else before)
        if counted and text not in SMEARINGS:
            before, after = (before, counted[1]) if colon else (counted[1], "")
        times = int(counted[2]) if counted and text not in SMEARINGS else None
        if before not in SMEARINGS:
            names = [*SMEARINGS, NO_SMEARING]
            raise UsageError(f"There is no smearing '{shortened(before)}'{nearest(before, names)}")
        return cls(before, tuple(after.split(",")) if after else (), times)

    def smearing(self, values: Mapping[str, Any]) -> Smearing:
        """Return the smearing with the parameters of the text, or else with the given options."""
        kind, whose = SMEARINGS[self.name], f"--smear {self.name}"
        if not self.words:
            return kind.from_options(check_options(kind.options, values, whose))
        words, names = list(self.words), iter(kind.positional)
        for n, word in enumerate(words):
            if "=" in word:
                break
            name = next(names, None)
            if name is None:
                count = len(kind.positional)
                raise UsageError(
                    f"{whose}: '{shortened(word)}' is one number too many; give at most {count}, "
                    "and other parameters as OPTION=VALUE."
                )
            words[n] = f"{name}={word}"
        placed = [replace(option, place=whose) for option in kind.options]
        return kind.from_options(parse_options(placed, words, whose, "in its parameters"))

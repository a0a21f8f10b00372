"""Covers of products of parameters by all their values, or by all pairs of these."""

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from itertools import combinations


def beyond_pairs(
    choices: Sequence[Mapping[str, Hashable]], chosen: Sequence[Mapping[str, Hashable]] = ()
) -> list[int]:
    """Return the numbers of choices without which all pairs of values still occur.

    Most mistakes need one value of a parameter, or two values together. A product of three or more
    parameters has many more elements than are necessary for all pairs. The choices of a cover are
    picked one after the other, each with as many new pairs as possible, the first ones first.

    Parameters
    ----------
    choices : sequence of mappings
        The values by the names of the parameters. With one or two parameters none is left out.
    chosen : sequence of mappings
        Others that belong to the cover already.
    """
    return _beyond([*map(_pairs, choices)], [*map(_pairs, chosen)])


def beyond_values(
    choices: Sequence[Mapping[str, Hashable]], chosen: Sequence[Mapping[str, Hashable]] = ()
) -> list[int]:
    """Return the numbers of choices without which all values still occur; see `beyond_pairs`."""
    return _beyond([{*choice.items()} for choice in choices], [{*one.items()} for one in chosen])


def _beyond(contents: Sequence[Set[object]], chosen: Iterable[Set[object]]) -> list[int]:
    """Return the numbers of sets without which all their elements still occur."""
    missing = set().union(*contents).difference(*chosen)
    rest = list(range(len(contents)))
    while missing:
        best = max(rest, key=lambda number: len(contents[number] & missing))
        missing -= contents[best]
        rest.remove(best)
    return rest


def _pairs(choice: Mapping[str, Hashable]) -> set[tuple[object, ...]]:
    """Return all pairs of values of a choice."""
    return {*combinations(sorted(choice.items()), min(2, len(choice)))}

"""Covers of products of parameters by all pairs of their values."""

from collections.abc import Hashable, Mapping, Sequence
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
    pairs = [_pairs(choice) for choice in choices]
    missing = set().union(*pairs).difference(*map(_pairs, chosen))
    rest = list(range(len(choices)))
    while missing:
        best = max(rest, key=lambda number: len(pairs[number] & missing))
        missing -= pairs[best]
        rest.remove(best)
    return rest


def _pairs(choice: Mapping[str, Hashable]) -> set[tuple[object, ...]]:
    """Return all pairs of values of a choice."""
    return {*combinations(sorted(choice.items()), min(2, len(choice)))}

"""Covers of products of parameters by all pairs of their values."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations


def beyond_pairs(choices: Sequence[Mapping[str, Hashable]]) -> list[int]:
    """Return the numbers of choices without which all pairs of values still occur.

    Most mistakes need one value of a parameter, or two values together. A product of three or more
    parameters has many more elements than are necessary for all pairs. The choices of a cover are
    picked one after the other, each with as many new pairs as possible, the first ones first.

    Parameters
    ----------
    choices : sequence of mappings
        The values by the names of the parameters. With one or two parameters none is left out.
    """
    pairs = [{*combinations(sorted(choice.items()), min(2, len(choice)))} for choice in choices]
    missing = set().union(*pairs)
    rest = list(range(len(choices)))
    while missing:
        best = max(rest, key=lambda number: len(pairs[number] & missing))
        missing -= pairs[best]
        rest.remove(best)
    return rest

"""Temporal links of static sources.

A Wilson loop has two lines of links in direction t, the propagators of the static charges. If these
links are smeared, the self-energy of the charges and with it the noise of large loops decreases,
while the potential changes by a constant and by artefacts of the lattice. Each kind of temporal
links is a subclass of `TemporalLinks` that is registered in `TEMPORAL_LINKS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar

from gauge_mc.errors import UsageError
from gauge_mc.fields.decorated_links import DecoratedLinks, alphas_in_words
from gauge_mc.fields.field import Field
from gauge_mc.registry import Registry, nearest

NO_TEMPORAL_LINKS = "none"
"""Value of ``--temporal`` for the temporal links of the field."""


class TemporalLinks(ABC):
    """A kind of temporal links for static sources; ``str`` describes it."""

    name: ClassVar[str]
    """Name on the command line, for ``--temporal``."""

    @abstractmethod
    def __call__(self, source: Field, target: Field) -> None:
        """Write a field with new temporal links to `target`, a different field of the same kind.

        The links in space are copied from `source`.
        """


class HypTemporalLinks(TemporalLinks):
    """Temporal links after one step of HYP smearing of the field, hep-lat/0103029.

    A call needs the memory of five more fields.
    """

    alphas: ClassVar[tuple[float, float, float]]
    """Parameters alpha1, alpha2 and alpha3, for six, four and two staples."""

    def __str__(self) -> str:
        return (
            f"{self.name.upper()}, one HYP smearing of the temporal links of the field, "
            f"{alphas_in_words(self.alphas)}, maximal projection"
        )

    def __call__(self, source: Field, target: Field) -> None:
        """Write the field with HYP temporal links to `target`; see `TemporalLinks`."""
        self._links(source, target)

    @cached_property
    def _links(self) -> DecoratedLinks:
        return DecoratedLinks((0, 0, 0, 0b111), self.alphas)


TEMPORAL_LINKS: Registry[type[TemporalLinks]] = Registry(
    "kind of temporal links", __name__, TemporalLinks
)


def make_temporal_links(name: str) -> TemporalLinks | None:
    """Return temporal links by name, or None for `NO_TEMPORAL_LINKS`."""
    if name == NO_TEMPORAL_LINKS:
        return None
    if name not in TEMPORAL_LINKS:
        names = [*TEMPORAL_LINKS, NO_TEMPORAL_LINKS]
        raise UsageError(f"--temporal: there are no temporal links '{name}'{nearest(name, names)}")
    return TEMPORAL_LINKS[name]()


@TEMPORAL_LINKS.register
class Hyp1(HypTemporalLinks):
    """HYP1 of M. Della Morte, A. Shindler and R. Sommer, hep-lat/0506008, as in hep-lat/0103029."""

    name: ClassVar[str] = "hyp1"
    alphas: ClassVar[tuple[float, float, float]] = (0.75, 0.6, 0.3)


@TEMPORAL_LINKS.register
class Hyp2(HypTemporalLinks):
    """HYP2 of M. Della Morte, A. Shindler and R. Sommer, hep-lat/0506008, for the least noise."""

    name: ClassVar[str] = "hyp2"
    alphas: ClassVar[tuple[float, float, float]] = (1.0, 1.0, 0.5)

"""Temporal links that are the sum of their staples."""

from typing import ClassVar

from gauge_mc.fields.decorated_links import DecoratedLinks
from gauge_mc.fields.field import Field
from gauge_mc.temporal_links import TemporalLinks


class SixStaples(TemporalLinks):
    """Temporal links P[sum of the six staples]."""

    name: ClassVar[str] = "six-staples"

    def __str__(self) -> str:
        return "six staples, projected"

    def __call__(self, source: Field, target: Field) -> None:
        """Write the field with new temporal links to `target`."""
        DecoratedLinks(sets=(0, 0, 0, 0b111), alphas=(1.0, 0.0, 0.0))(source, target)

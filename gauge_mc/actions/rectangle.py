"""Actions with plaquettes and rectangles, with any coefficient."""

from __future__ import annotations

from gauge_mc.actions import ACTIONS, ANISOTROPY, RectangleAction
from gauge_mc.options import Option

C1 = Option(
    "c1",
    float,
    "Coefficient of the 2×1 rectangles, below 1/8; that of the plaquettes is 1 - 8 c₁.",
    metavar="C1",
    least=-1000.0,
    most=1 / 8,
    inside=True,
    symbol="c₁",
    axis="$c_1$",
    tag="c1_",
)
"""The coefficient; the bounds catch typing errors."""


class AnyRectangleAction(RectangleAction):
    """The action with a coefficient that the user gives."""

    name = "rectangle"
    source = "given by the user"
    options = (C1, ANISOTROPY)

    @property
    def c1(self) -> float:  # type: ignore[override]
        """Coefficient of the rectangles; not a number until it is given."""
        return float(self.values.get(C1.name, "nan"))


ACTIONS.register(AnyRectangleAction())

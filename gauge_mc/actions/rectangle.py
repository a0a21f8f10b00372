"""Actions with plaquettes and rectangles, with any coefficient."""

from __future__ import annotations

from typing import ClassVar

from gauge_mc.actions import ACTIONS, ANISOTROPY, SIX_LINKS, RectangleAction
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


class Iwasaki(RectangleAction):
    """The action of Iwasaki, improved by the renormalisation group."""

    name = "iwasaki"
    qcdml: ClassVar = {"iwasakiRGGluonAction": SIX_LINKS}
    c1 = -0.331
    source = "Y. Iwasaki, arXiv:1111.7054"


ACTIONS.register(Iwasaki())


class Dbw2(RectangleAction):
    """The DBW2 action, a doubly blocked Wilson action with two couplings."""

    name = "dbw2"
    qcdml: ClassVar = {"DBW2GluonAction": SIX_LINKS}
    c1 = -1.4088
    source = "T. Takaishi, Phys. Rev. D 54 (1996) 1050; hep-lat/9911033"


ACTIONS.register(Dbw2())


class Symanzik(RectangleAction):
    """The tree-level improved action."""

    name = "symanzik"
    qcdml: ClassVar = {"treelevelSymanzikGluonAction": SIX_LINKS}
    c1 = -1 / 12
    artefacts = (2, 4)  # g^2 a^2 and a^4
    source = "M. Luescher and P. Weisz, Commun. Math. Phys. 97 (1985) 59"


ACTIONS.register(Symanzik())

"""The tree-level improved action."""

from __future__ import annotations

from typing import ClassVar

from gauge_mc.actions import ACTIONS, SIX_LINKS, RectangleAction


class Symanzik(RectangleAction):
    """The tree-level improved action."""

    name = "symanzik"
    qcdml: ClassVar = {"treelevelSymanzikGluonAction": SIX_LINKS}
    c1 = -1 / 12
    source = "M. Luescher and P. Weisz, Commun. Math. Phys. 97 (1985) 59"


ACTIONS.register(Symanzik())

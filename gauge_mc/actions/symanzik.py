"""The tree-level improved action."""

from __future__ import annotations

from gauge_mc.actions import ACTIONS, RectangleAction


class Symanzik(RectangleAction):
    """The tree-level improved action."""

    name = "symanzik"
    qcdml = "treelevelSymanzikGluonAction"
    c1 = -1 / 12
    source = "M. Luescher and P. Weisz, Commun. Math. Phys. 97 (1985) 59"


ACTIONS.register(Symanzik())

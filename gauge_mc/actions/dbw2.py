"""The DBW2 action, a doubly blocked Wilson action with two couplings."""

from __future__ import annotations

from typing import ClassVar

from gauge_mc.actions import ACTIONS, SIX_LINKS, RectangleAction


class Dbw2(RectangleAction):
    """The DBW2 action, a doubly blocked Wilson action with two couplings."""

    name = "dbw2"
    qcdml: ClassVar = {"DBW2GluonAction": SIX_LINKS}
    c1 = -1.4088
    source = "T. Takaishi, Phys. Rev. D 54 (1996) 1050; hep-lat/9911033"


ACTIONS.register(Dbw2())

"""The action of Iwasaki, improved by the renormalisation group."""

from __future__ import annotations

from gauge_mc.actions import ACTIONS, RectangleAction


class Iwasaki(RectangleAction):
    """The action of Iwasaki, improved by the renormalisation group."""

    name = "iwasaki"
    qcdml = "iwasakiRGGluonAction"
    c1 = -0.331
    source = "Y. Iwasaki, arXiv:1111.7054"


ACTIONS.register(Iwasaki())

"""The action of Iwasaki, improved by the renormalisation group."""

from __future__ import annotations

from typing import ClassVar

from gauge_mc.actions import ACTIONS, SIX_LINKS, RectangleAction


class Iwasaki(RectangleAction):
    """The action of Iwasaki, improved by the renormalisation group."""

    name = "iwasaki"
    qcdml: ClassVar = {"iwasakiRGGluonAction": SIX_LINKS}
    c1 = -0.331
    source = "Y. Iwasaki, arXiv:1111.7054"


ACTIONS.register(Iwasaki())

"""SU(5): all entries of a link are stored."""

from __future__ import annotations

from gauge_mc.groups import GROUPS, GeneralGroup


class SU5(GeneralGroup):
    """The group SU(5); see ``cuda_src/group/sun.h``."""

    def __init__(self) -> None:
        super().__init__(5, beta=17.4)


GROUPS.register(SU5())

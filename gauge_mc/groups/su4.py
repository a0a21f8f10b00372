"""SU(4): all entries of a link are stored."""

from __future__ import annotations

from gauge_mc.groups import GROUPS, GeneralGroup


class SU4(GeneralGroup):
    """The group SU(4); see ``cuda_src/group/sun.h``."""

    def __init__(self) -> None:
        super().__init__(4, beta=11.0)


GROUPS.register(SU4())

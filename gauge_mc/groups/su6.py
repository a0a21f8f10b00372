"""SU(6): all entries of a link are stored."""

from __future__ import annotations

from gauge_mc.groups import GROUPS, GeneralGroup


class SU6(GeneralGroup):
    """The group SU(6); see ``cuda_src/group/sun.h``."""

    def __init__(self) -> None:
        super().__init__(6, beta=25.3)


GROUPS.register(SU6())

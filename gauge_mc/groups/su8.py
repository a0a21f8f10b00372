"""SU(8): all entries of a link are stored."""

from __future__ import annotations

from gauge_mc.groups import GROUPS, GeneralGroup


class SU8(GeneralGroup):
    """The group SU(8); see ``cuda_src/group/sun.h``."""

    def __init__(self) -> None:
        super().__init__(8, beta=45.4)


GROUPS.register(SU8())

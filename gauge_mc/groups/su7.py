"""SU(7): all entries of a link are stored."""

from __future__ import annotations

from gauge_mc.groups import GROUPS, GeneralGroup


class SU7(GeneralGroup):
    """The group SU(7); see ``cuda_src/group/sun.h``."""

    def __init__(self) -> None:
        super().__init__(7, beta=34.6)


GROUPS.register(SU7())

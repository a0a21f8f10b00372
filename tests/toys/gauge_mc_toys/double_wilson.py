"""An action: twice the Wilson action, so that half the beta gives the same physics."""

from collections.abc import Mapping
from pathlib import Path

from gauge_mc.actions import Action
from gauge_mc.domain.colouring import PARITIES
from gauge_mc.groups import Group


class DoubleWilson(Action):
    """S = 2 beta sum over plaquettes of (1 - Re Tr U_p / N)."""

    name = "double-wilson"
    formula = "2 beta sum over plaquettes of (1 - Re Tr U_p / N)"
    header = Path(__file__).parent / "double_wilson.h"
    cpp = "DoubleWilson"
    colouring = PARITIES

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return the members of ``Coefficients`` in the header."""
        return {"beta": beta, "colours": group.colours}


DOUBLE_WILSON = DoubleWilson()

"""An action: twice the Wilson action, so that half the beta gives the same physics."""

from collections.abc import Mapping
from pathlib import Path

from gauge_mc.actions import Action
from gauge_mc.domain.lattice import PLAQUETTES, Loops
from gauge_mc.groups import Group
from gauge_mc.options import Option


class DoubleWilson(Action):
    """S = 2 beta sum over plaquettes of (1 - Re Tr U_p / N)."""

    name = "double-wilson"
    formula = "2 beta sum over plaquettes of (1 - Re Tr U_p / N)"
    header = Path(__file__).parent / "double_wilson.h"
    cpp = "DoubleWilson"
    options = (Option("strength", float, "Multiple of the Wilson action.", usual=2.0, symbol="w"),)

    @property
    def loops(self) -> Mapping[Loops, float]:
        """The coefficient of plaquettes, for the value of the action."""
        return {PLAQUETTES: self.values["strength"]}

    def coefficients(self, group: Group, beta: float) -> Mapping[str, float]:
        """Return the members of ``Coefficients`` in the header."""
        return {"beta": beta, "colours": group.colours, **self.values}


DOUBLE_WILSON = DoubleWilson()

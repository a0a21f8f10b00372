"""A part of the action in QCDml: adjoint plaquettes."""

import xml.etree.ElementTree as ET
from typing import Any

from gauge_mc.extensions.publishing.qcdml import ActionPart, action_element, numbers


class AdjointPart(ActionPart):
    """The terms of an option of hybrid Monte Carlo, which are those of gluons."""

    name, element = "adjoint", "gluon"

    def reason(self, value: Any) -> str:
        """Return nothing: every coupling can be described."""
        return ""

    def describe(self, parent: ET.Element, value: Any) -> None:
        """Add an element with the coupling."""
        formula = "S = beta sum_p (1 - Tr_A U_p / (N^2 - 1))"
        element = action_element(parent, "plaquetteGluonAction", formula)
        numbers(element, {"beta": "strength"}, {"strength": value.strength})


ADJOINT = AdjointPart()

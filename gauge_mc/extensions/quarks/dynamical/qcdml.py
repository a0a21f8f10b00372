"""Dynamical quarks in QCDml, for a package that writes it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

from gauge_mc.extensions.publishing import qcdml
from gauge_mc.extensions.quarks.dynamical.flavours import DynamicalQuarks
from gauge_mc.extensions.quarks.vectors.basis import NAMES
from gauge_mc.registry import in_words


class QuarkPart(qcdml.ActionPart):
    """Dynamical quarks, whose heavier masses belong to the algorithm."""

    name, element = "quarks", "quark"

    def reason(self, value: Any) -> str:
        """Return why a Dirac operator or boundary conditions cannot be described."""
        return quark_term(value).reason or reason_of_boundary(value)

    def describe(self, parent: ET.Element, value: Any) -> None:
        """Add the element of quarks with a Dirac operator."""
        term = quark_term(value)
        name, children = term.element
        modulus = "; the modulus of the determinant is simulated, without its sign"
        element = qcdml.action_element(
            parent, name, term.formula.rstrip(".") + modulus * value.has_sign
        )
        field = qcdml.add(element, "quarkField")
        qcdml.add(field, "normalisation", "sqrt2kappa")
        qcdml.boundary(
            field, ["antiperiodic" if angle % 2 else "periodic" for angle in value.angles]
        )
        qcdml.add(element, "numberOfFlavours", str(value.flavours))
        qcdml.numbers(element, children, term.values)

    def exact(self, value: Any) -> bool:
        """Return whether the weight is as exact as by default."""
        return bool(value.is_exact)

    def reweighted(self, value: Any) -> bool:
        """Return whether the determinant may be negative, or a rational function is coarse."""
        return not value.is_exact or value.has_sign


QUARKS = QuarkPart()


def quark_term(quarks: DynamicalQuarks) -> qcdml.QcdmlTerm:
    """Return the term of the action with some quarks."""
    kind, couplings = quarks.dirac_operator, quarks.couplings
    if kind is None:
        words = f"quarks with {in_words(couplings)} together"
        return qcdml.QcdmlTerm(words, object, couplings.keys(), couplings, "")
    words = f"quarks with the Dirac operator {kind.name}"
    return qcdml.QcdmlTerm(words, kind, couplings.keys(), couplings, qcdml.formula(kind))


def reason_of_boundary(quarks: DynamicalQuarks) -> str:
    """Return why boundary conditions of quarks cannot be described; nothing if they can."""
    angles = quarks.angles
    if all(angle == int(angle) for angle in angles):
        return ""
    words = ",".join(f"{angle:g}" for angle in angles)
    return (
        f"QCDml describes quarks that are {in_words(NAMES, 'or')} in a direction, and these have "
        f"the angles {words} in units of pi."
    )

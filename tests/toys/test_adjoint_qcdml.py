"""Adjoint plaquettes in QCDml."""

import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

qcdml = pytest.importorskip("gauge_mc.extensions.publishing.qcdml")


def test_its_coupling_is_stated():
    part, value = qcdml.PARTS_OF_ACTION["adjoint"], SimpleNamespace(strength=0.5)
    action = ET.Element("action")
    part.describe(ET.SubElement(action, part.element), value)
    assert action.findtext("gluon/plaquetteGluonAction/beta") == "0.5"
    assert part.reason(value) == ""

"""Coefficients that C++ does not have are refused by kernels of quarks."""

import pytest

import gauge_mc
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.diagonal import Clover
from gauge_mc.fields.field import Field


def test_a_misspelt_coefficient_of_the_clover_term_is_named(monkeypatch):
    made = Clover.__init__

    def misspelt(self, kappa, csw):
        made(self, kappa, csw)
        self.coefficients = {"faktor": kappa * csw}

    monkeypatch.setattr(Clover, "__init__", misspelt)
    field = Field.cold(Lattice(4, 4, 4, 4), "su3", "double")
    sentence = r"TERM::Coefficients in .*clover.h: missing factor, unknown faktor"
    with pytest.raises(TypeError, match=sentence):
        gauge_mc.propagator(field, 0.12, csw=1.5)

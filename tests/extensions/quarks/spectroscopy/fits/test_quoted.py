"""The numbers of fits of hadrons that one quotes."""

import pytest

import gauge_mc
from tests.fits.tables import write_target


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mesons", "baryons"])
def test_masses_are_those_of_the_lightest_quarks(name, tmp_path):
    found = gauge_mc.fit(name, write_target(name, tmp_path / "target"))
    hadrons = {"mesons": ("pion", "rho"), "baryons": ("nucleon",)}[name]
    for number, hadron in zip(found.result, hadrons, strict=False):
        masses = [one for one in found.spectrum.masses if one.name == hadron and one.parity >= 0]
        lightest = {one.fit.mass.value for one in masses if one.kappa1 == one.kappa2 == 0.154}
        assert len({one.kappa1 for one in masses}) > 1
        assert number.value in lightest

"""Lengths of SU(3) against later publications."""

import math

import pytest

from gauge_mc.actions.loops import SCALES

B0, B1 = 11 / (4 * math.pi) ** 2, 102 / (4 * math.pi) ** 4


def rational(beta, a, b, c, d):
    """The form of arXiv:1503.05652 for the logarithm of a length."""
    two_loops = beta / (12 * B0) + B1 / (2 * B0**2) * math.log(6 * B0 / beta)
    ratio = (1 + a / beta + b / beta**2) / (1 + c / beta + d / beta**2)
    return math.exp(two_loops * ratio)


@pytest.mark.parametrize("beta", [5.7, 5.8, 6.0, 6.2, 6.5, 6.9])
def test_r0_is_that_of_a_later_fit(beta):
    """arXiv:1709.07612 includes finer lattices; 0.7 % is the error of r0."""
    length = next(one for one in SCALES if one.source == "hep-lat/0108008")
    later = rational(beta, -8.9664, 19.21, -5.25217, 0.606828)
    assert length.length(beta) == pytest.approx(later, rel=0.0075)


def test_lengths_agree_with_each_other():
    """r0^2 F = 1.65 with the force sigma + pi / (12 r^2) of a string; sqrt(t0) is 0.334 r0."""
    tension, r0, t0 = SCALES
    string = math.sqrt(1.65 - math.pi / 12)
    for beta in (6.0, 6.2, 6.4):
        assert r0.length(beta) / tension.length(beta) == pytest.approx(string, rel=0.012)
        assert t0.length(beta) / r0.length(beta) == pytest.approx(0.334, rel=0.01)

"""``gauge-mc scan --refine``: points that are added to a scan."""

import numpy as np
import pytest

from gauge_mc.quantities.transition.thermal_runs import missing_couplings
from gauge_mc.scans.scan import Scan
from tests.quantities.transition.synthetic import CENTRE, LATTICES, two_phase_volume
from tests.scans.commands import SMALL, scan

SIZE = (*SMALL[:4], "--separation", 30, "--format", "none", "--backend", "cpu")
"""Settings of runs that take no time."""

LARGE = LATTICES[2]
WIDTH = (0.3 * LARGE.sites) ** -0.5
"""1/sigma of the action in one phase."""


def missing(*betas, size=3000):
    volume = two_phase_volume(np.random.default_rng(6), LARGE, betas, size, 0)
    return sorted(missing_couplings(volume))


def test_a_run_is_added_at_the_peak_unless_one_is_near():
    (found,) = missing(5.68, 5.725)
    assert abs(found - CENTRE) < WIDTH / 2
    assert missing(5.68, found, 5.725) == []


def test_a_run_is_added_on_the_side_of_the_transition():
    (found,) = missing(5.67, 5.68)
    assert 5.68 + WIDTH < found < 5.68 + 2.2 * WIDTH  # the second phase makes sigma larger
    (found,) = missing(5.72, 5.73)
    assert 5.72 - 2.2 * WIDTH < found < 5.72 - WIDTH


def test_gaps_between_histograms_are_filled_first():
    found = missing(5.40, 5.41, 5.56)
    assert len(found) == 3
    assert 5.41 < found[0] < found[-1] < 5.56
    assert max(np.diff([5.41, *found, 5.56])) < 2.5 * WIDTH
    (found,) = missing(5.40, 5.40 + 5.6 * WIDTH)[:1]
    assert 5.40 < found < 5.40 + 5.6 * WIDTH


@pytest.mark.slow
def test_a_scan_is_refined(folder):
    place = ("--output", "fine")
    assert "no scan in fine" in scan("--refine", *place, expect=2)
    scan("--beta", "1.3,2.6", "--lattice", "4x4x4x2", *SIZE, "--separation", 60, *place)
    scan("--refine", "--backend", "cpu", *place)
    points = Scan.read(folder / "fine").members()
    betas = [one.point.beta for one in points]
    assert betas[:2] == [1.3, 2.6]
    assert len(betas) > 2
    assert all(1.3 < one < 2.6 for one in betas[2:])
    assert all(one.complete() for one in points)
    assert "--collect carries out none" in scan("--refine", "--collect", *place, expect=2)


@pytest.mark.slow
def test_a_scan_without_the_action_is_refused_in_a_sentence(folder):
    place = ("--output", "bare")
    scan("--beta", "2.2", "--lattice", "4x4x4x2", "--measure", "polyakov", *SIZE, *place)
    shown = scan("--refine", *place, expect=1)
    assert "has not measured plaquette, which the value of the action wilson needs" in shown

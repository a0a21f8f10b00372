"""Correlators of fields in leading order: continuum, sums over finite lattices, weak coupling."""

import numpy as np
import pytest

from gauge_mc.flows import FLOWS
from gauge_mc.quantities.thermodynamics.field_correlators import (
    continuum,
    field_correlators,
    on_lattice,
    read_field_series,
)
from tests.calls import make_run
from tests.reference.free_gluons import field_strength

ELECTRIC, MAGNETIC = ((0, 3), (1, 3), (2, 3)), ((1, 2), (2, 0), (0, 1))


@pytest.mark.slow
def test_the_limit_of_fine_lattices_is_the_continuum():
    """At tau T = 1/2 artefacts decrease as 1/tau^2, up to the next order."""
    deviations = []
    for extent in (16, 32):
        found = on_lattice(extent, np.array([0.0]), 0.0, FLOWS["wilson"])
        deviations.append([one[0, -1] / continuum(extent)[-1] - 1 for one in found])
    coarse, fine = np.array(deviations)
    assert np.abs(fine).max() < 0.04
    np.testing.assert_allclose(coarse / fine, 4, rtol=0.2)


def of_paths(extents, planes, t):
    """Return the sum over the momenta of a finite lattice, with clovers as sums over paths."""
    axes = [2 * np.pi * np.arange(n) / n for n in extents]
    p = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 4)[1:]
    square = (4 * np.sin(p / 2) ** 2).sum(axis=1)
    found = np.zeros(extents[3] // 2)
    for mu, nu in planes:
        sides = [(mu, 1), (nu, 1), (mu, -1), (nu, -1)]
        loops = [[sides[(one + turn) % 4] for turn in range(4)] for one in range(4)]
        clover = sum(field_strength(p, path) for path in loops) / 4
        weight = (np.abs(clover) ** 2).sum(axis=1) / square * np.exp(-2 * t * square)
        waves = np.cos(np.outer(p[:, 3], np.arange(1, found.size + 1)))
        found += weight @ waves / np.prod(extents) / 3
    return found


@pytest.mark.slow
@pytest.mark.parametrize("t", [0.0, 0.4])
def test_sums_over_paths_on_a_finite_lattice(t):
    """Without the momentum 0, which is missed there, they differ by a multiple of 1/V."""
    signs = zip((-1, 1), (ELECTRIC, MAGNETIC), strict=True)
    exact = np.array(on_lattice(4, np.array([t]), 0.0, FLOWS["wilson"]))[:, 0]
    finite = [sign * of_paths((16, 16, 16, 4), planes, t) for sign, planes in signs]
    assert np.abs(exact).min() > 1e-4
    np.testing.assert_allclose(finite, exact, atol=1 / (4 * 16**3))


@pytest.mark.slow
def test_weak_coupling_is_leading_order(tmp_path):
    """At beta = 200, g^2 is 0.02, and so are corrections; the volume counts for as much."""
    how = {"group": "su2", "beta": 200.0, "lattice": "8x8x8x6", "thermalize": 50, "configs": 60}
    how |= {"separation": 5, "format": "none", "precision": "double"}
    run = make_run(tmp_path / "run", **how, measure="field-correlators:5:to=0.3:every=0.3")
    found = field_correlators(read_field_series(run / "field_correlators.csv"))
    coupling = 4 / 200 * 3 / 4
    for one in found.points:
        if one.t and one.tau != 2:  # at 2 the electric one is next to 0
            for ratio in (one.electric_ratio, one.magnetic_ratio):
                if ratio is not None:
                    assert ratio.value / coupling == pytest.approx(1, abs=0.06)
                    assert ratio.error / coupling < 0.05

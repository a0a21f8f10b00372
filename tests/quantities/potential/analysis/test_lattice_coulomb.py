"""The Coulomb potential on the lattice and improved distances."""

import math

import numpy as np
import pytest

from gauge_mc.quantities.potential.analysis.lattice_coulomb import (
    force_distance,
    improved_distance,
    propagator,
)

WATSON = 0.2527310098586630
"""G(0), known in closed form (G. N. Watson 1939)."""


def test_propagator_solves_the_lattice_laplace_equation():
    assert propagator(0, 0, 0) == pytest.approx(WATSON, rel=1e-9)
    assert propagator(0, 0, 0) - propagator(1, 0, 0) == pytest.approx(1 / 6, rel=1e-9)
    for x, y, z in ((1, 0, 0), (2, 1, 0), (3, 3, 3), (5, 0, 0)):
        around = [
            propagator(*(np.array([x, y, z]) + sign * step))
            for step in np.eye(3, dtype=int)
            for sign in (1, -1)
        ]
        assert 6 * propagator(x, y, z) == pytest.approx(sum(around), rel=1e-8)
    assert 4 * math.pi * 40 * propagator(40, 0, 0) == pytest.approx(1, abs=2e-4)


def test_improved_distances_are_those_of_the_literature():
    # S. Necco and R. Sommer, hep-lat/0108008, use 1.358, 2.277, 3.312, 4.359 and 5.393.
    found = [force_distance("100", steps) for steps in range(2, 7)]
    assert found == pytest.approx([1.3576, 2.2773, 3.3116, 4.3592, 5.3927], abs=1e-4)
    for path, length in (("100", 1), ("110", math.sqrt(2)), ("210", math.sqrt(5))):
        for steps in (8, 12):
            assert improved_distance(path, steps) == pytest.approx(steps * length, rel=5e-3)
            middle = math.sqrt(steps * (steps - 1)) * length
            assert force_distance(path, steps) == pytest.approx(middle, rel=1e-2)

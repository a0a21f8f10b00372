"""Determinants against dense matrices and the hopping expansion."""

import numpy as np
import pytest

from tests.extensions.quarks.reference import doublet
from tests.extensions.quarks.reference.determinants import (
    ANTIPERIODIC,
    PERIODIC,
    determinant,
    log_of_doublet,
)
from tests.extensions.quarks.reference.dirac import dense
from tests.reference.fields import random_field


@pytest.mark.parametrize("parameters", [{}, {"mu": 0.3}, {"csw": 1.2}, {"mu": 0.2, "csw": 1.1}])
@pytest.mark.parametrize(("group", "extents"), [("su2", (2, 4, 2, 2)), ("su3", (2, 2, 4, 2))])
@pytest.mark.parametrize("phases", [PERIODIC, ANTIPERIODIC, (1, 1j, 1, -1)])
def test_determinants_are_those_of_the_whole_matrix(group, extents, phases, parameters, rng):
    links = random_field(extents, group, rng)
    found = determinant(links, 0.13, phases, **parameters)
    phase, log = np.linalg.slogdet(dense(links, 0.13, phases, **parameters))
    assert found.log == pytest.approx(log, abs=1e-12)
    assert abs(found.phase - phase) < 1e-12
    assert (found.odd != 0) == bool(parameters)


@pytest.mark.parametrize(("group", "extents"), [("su2", (2, 4, 2, 2)), ("su3", (2, 2, 4, 2))])
@pytest.mark.parametrize("phases", [PERIODIC, (1, 1j, 1, -1)])
@pytest.mark.parametrize("mus", [(0.3, 0.25), (0.4, 0.0), (0.0, 0.5)])
def test_determinants_of_doublets_are_those_of_the_whole_matrix(group, extents, phases, mus, rng):
    links = random_field(extents, group, rng)
    found = log_of_doublet(links, 0.13, *mus, phases)
    _, log = np.linalg.slogdet(doublet.dense(links, 0.13, phases, *mus))
    assert found == pytest.approx(log, abs=1e-11)

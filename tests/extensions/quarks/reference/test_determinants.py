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
from tests.reference.fields import random_field, shift, trace
from tests.reference.observables import plaquette_matrix


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


def line(links, mu):
    """Products of the links along mu around the lattice, at every site."""
    product = links[..., mu, :, :]
    for step in range(1, links.shape[3 - mu]):
        product = product @ shift(links[..., mu, :, :], mu, step)
    return product


def expansion(links, kappa, phases):
    """ln |det M| to the order kappa^4 = 16 kappa^4 sum over plaquettes of Re Tr U_p, and lines.

    A closed path C of n links contributes -kappa^n / n times its n starting points, the trace of
    the product of (1 -+ gamma) and Tr U_C, in both directions. The trace of spins is -8 for a
    plaquette, so that for SU(N) it changes beta by 16 N kappa^4 per flavour, 48 kappa^4 for N = 3.
    For a line around an extent of L it is 4 * 2^(L - 1), so that the line has -4 (2 kappa)^L times
    the phase of the boundary.
    """
    planes = [(mu, nu) for mu in range(4) for nu in range(mu)]
    total = 16 * kappa**4 * sum(trace(plaquette_matrix(links, *one)).real.sum() for one in planes)
    for mu in range(4):
        extent = links.shape[3 - mu]
        if extent == 4:  # longer ones are of a higher order
            lines = trace(line(links, mu)).sum() / extent
            total -= 4 * (2 * kappa) ** 4 * (phases[mu] * lines).real
    return total


@pytest.mark.slow
@pytest.mark.parametrize("phases", [PERIODIC, ANTIPERIODIC])
@pytest.mark.parametrize(
    ("group", "extents"), [("su2", (4, 4, 4, 4)), ("su2", (4, 4, 4, 6)), ("su2", (6, 4, 4, 4))]
)
def test_heavy_quarks_shift_beta(group, extents, phases, rng):
    """What is left is of the order kappa^6."""
    links = random_field(extents, group, rng)
    left = [
        determinant(links, kappa, phases).log - expansion(links, kappa, phases)
        for kappa in (0.02, 0.01)
    ]
    assert abs(left[0]) < 0.05 * abs(expansion(links, 0.02, phases))
    assert 2**5 < left[0] / left[1] < 2**7  # odd powers vanish

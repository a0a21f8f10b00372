"""Doublets of flavours with different masses against NumPy, in the basis of the literature."""

import numpy as np
import pytest

from gauge_mc.extensions.quarks.domain_walls import TwistedDoublet
from gauge_mc.extensions.quarks.hopping import EVEN, PreconditionedOperator
from gauge_mc.extensions.quarks.vectors import STORAGES, SpinorField
from tests.extensions.quarks.links import field_of, largest_difference
from tests.extensions.quarks.reference import doublet as reference
from tests.extensions.quarks.reference.pseudofermions import even_sites
from tests.reference.fields import random_field

PHASES = (np.exp(0.3j), 1, np.exp(-0.7j), -1)
KAPPA, MU_SIGMA, MU_DELTA = 0.13, 0.4, 0.3
TOLERANCE = {"double": 2e-14, "single": 3e-6, "half": 3e-3}
"""As those of other operators; the elements of A are below 2."""


def made(links, device, mu_sigma=MU_SIGMA, mu_delta=MU_DELTA):
    return TwistedDoublet(field_of(links, device), KAPPA, mu_sigma, mu_delta, PHASES)


def random_doublets(count, links, rng):
    shape = (count, 2, *links.shape[:4], 4, links.shape[-1])
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@pytest.mark.parametrize("dagger", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("group", ["su2", "su3", "su4"])
def test_the_formula(group, storage, dagger, best_device, rng):
    links = random_field((4, 2, 2, 6), group, rng)
    psi = random_doublets(2, links, rng)
    operator = made(links, best_device)
    source = SpinorField.from_numpy(operator.field, psi, storage, fifth=2)
    target = source.like()
    operator.prepared(storage).apply(target, source, dagger)()
    expected = [
        reference.doublet(links, one, KAPPA, PHASES, MU_SIGMA, MU_DELTA, dagger) for one in psi
    ]
    assert largest_difference(target.to_numpy(), expected) < TOLERANCE[storage]


@pytest.mark.parametrize("mu_delta", [0.0, MU_DELTA])
def test_determinants_are_those_of_the_literature(mu_delta, best_device, rng):
    """Even sites times A_oo; without a splitting it is that of two flavours of a twisted mass."""
    links = random_field((2, 2, 2, 2), "su2", rng)
    operator = made(links, best_device, mu_delta=mu_delta)
    whole = reference.dense(links, KAPPA, PHASES, MU_SIGMA, mu_delta)
    value = np.linalg.slogdet(whole)
    assert value[0] == pytest.approx(1, abs=1e-12)
    reduced = PreconditionedOperator(operator.prepared(), with_adjoint=True)
    matrix = columns(reduced, operator.field)
    odd = 8 * 2 * 2 * np.log(1 + (2 * KAPPA) ** 2 * (MU_SIGMA**2 - mu_delta**2)) * 2
    assert np.linalg.slogdet(matrix)[1] + odd == pytest.approx(value[1], rel=1e-12)
    if mu_delta == 0:
        twisted = reference.dirac.dense(links, KAPPA, PHASES, MU_SIGMA)
        assert value[1] == pytest.approx(2 * np.linalg.slogdet(twisted)[1], rel=1e-12)
    sizes = np.linalg.svd(reference.diagonal(KAPPA, MU_SIGMA, mu_delta), compute_uv=False)
    assert operator.sizes == pytest.approx((sizes[0], sizes[-1]), rel=1e-12)


def columns(operator, field):
    links = field.to_numpy()
    chosen = np.tile(even_sites(links), 2)
    unit = np.zeros((chosen.sum(), chosen.size), complex)
    unit[:, chosen] = np.eye(len(unit))
    shape = (-1, 2, *links.shape[:4], 4, links.shape[-1])
    source = SpinorField.from_numpy(field, unit.reshape(shape), parity=EVEN, fifth=2)
    target = source.like()
    operator.apply(target, source)()
    return target.to_numpy().reshape(len(unit), -1)[:, chosen].T

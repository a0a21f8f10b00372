"""The determinant of the clover term on the odd sites against NumPy in extended precision."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.diagonal import DiagonalTerm
from gauge_mc.extensions.quarks.dynamical.flavours import operator_on
from gauge_mc.extensions.quarks.dynamical.monomials import Determinant
from gauge_mc.extensions.quarks.operators import DiracOperator, PlainWilson
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.updates.monomials import Failures
from gauge_mc.updates.terms import TermLinks
from tests.domain.conftest import GPUS
from tests.extensions.quarks.dynamical.weights import check_rate, direction
from tests.extensions.quarks.links import check_divisions
from tests.extensions.quarks.reference import pseudofermions as reference
from tests.extensions.quarks.reference.dirac import dense, hopping
from tests.extensions.quarks.reference.pseudofermions import Quark
from tests.reference.fields import dagger, gauge_transform, parity, random_field, random_su
from tests.reference.molecular_dynamics import derivative
from tests.updates.monomials.trajectories import SIZE as DRIFT
from tests.updates.monomials.trajectories import OneChain, empty_momenta, matrices

PHASES = (np.exp(0.3j), 1, np.exp(-0.7j), -1)
CLOVER = Quark(0.12, PHASES, 0.0, 1.7)
TWISTED = Quark(0.12, PHASES, 0.3, 1.7)
SIZE = 0.25
"""Size of kicks. Momenta are read from links, whose rounding errors are then divided by it."""

NAMES = {"clover": CLOVER, "twisted": TWISTED}


class Determinants:
    """The monomial on links."""

    def __init__(self, links, group, device, quark, flavours=2):
        lattice = Lattice(*links.shape[3::-1])
        self.field = Field.from_slices(lattice, group, links, "double", device)
        self.links = TermLinks(self.field)
        values = {"csw": quark.csw, "mu": quark.mu} if quark.csw else {"mu": quark.mu}
        name = "wilson-clover" if quark.csw else "twisted-mass"
        self.operator = operator_on(self.links, name, quark.kappa, quark.phases, **values)
        self.monomial = OneChain(Determinant(self.operator, flavours))

    def action(self):
        """The value of the action."""
        return self.monomial.action()

    def force(self, *more):
        """The force of the monomial, and of the arguments of `DiracOperator.add_force`."""
        momenta = empty_momenta(self.field)
        if more:
            self.operator.add_force(self.monomial.memory, *more)
        self.monomial.kick(momenta, SIZE)
        return matrices(self.field, momenta) / SIZE


@pytest.mark.first_quick
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("extents", [(2, 4, 2, 2), (4, 2, 8, 4), (4, 6, 2, 2)])
@pytest.mark.parametrize(("group", "flavours"), [("su2", 1), ("su3", 2), ("su4", 2)])
def test_the_force_is_the_derivative_of_the_action(name, extents, group, flavours, rng, device):
    quark, links = NAMES[name], random_field(extents, group, rng)
    found = Determinants(links, group, device, quark, flavours)
    expected = reference.odd_determinant(links.astype(np.clongdouble), quark, flavours)
    assert float(found.action()) == pytest.approx(float(expected), rel=1e-13)
    towards = direction(links, rng)
    rate = derivative(lambda u: reference.odd_determinant(u, quark, flavours), links, towards)
    check_rate(found.force(), towards, rate, 1e-12, least=0)


@pytest.mark.longer
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("group", ["su2", "su3"])
def test_all_forces_add_up_to_that_of_the_determinant_of_the_operator(
    name, group, rng, best_device
):
    """ln det M M^dagger is that of A_oo and of Mh, of which X Y^dagger = Mh^-1 gives the force."""
    extents, quark, n = (2, 2, 2, 2), NAMES[name], int(group[2])
    links = random_field(extents, group, rng)
    found = Determinants(links, group, best_device, quark)
    sites, field = 16 * 4 * n, found.field
    full = dense(links, quark.kappa, PHASES, quark.mu, quark.csw)
    even = np.repeat(parity(extents).ravel() == 0, 4 * n)
    inverse = np.linalg.inv(full)[np.ix_(even, even)]
    x, y = np.zeros((2, sites // 2, sites), complex)
    x[:, even], y[:, even] = np.eye(sites // 2), inverse.T
    a = quark.diagonal(links)
    shape = (2, 2, 2, 2, 4, n)

    def with_odd_sites(psi, dagger_of):
        """psi on the even sites, and kappa A_oo^-1 D_oe psi on the odd ones, or the adjoints."""
        psi = psi.reshape(shape)
        hopped = hopping(links, psi, PHASES) if not dagger_of else adjoint_hopping(psi)
        matrices = np.linalg.inv(dagger(a) if dagger_of else a)
        odd = quark.kappa * reference.at_every_site(matrices, hopped)
        return psi + odd - reference.even(odd)

    def adjoint_hopping(psi):
        diagonal = reference.at_every_site(dagger(a), psi)
        return (diagonal - (dagger(full) @ psi.ravel()).reshape(shape)) / quark.kappa

    vectors = [
        SpinorField.from_numpy(field, np.stack([with_odd_sites(one, k == 0) for one in v]))
        for k, v in enumerate((x, y))
    ]
    towards = direction(links, rng)

    def determinant(u):
        matrix = dense(u.astype(complex), quark.kappa, PHASES, quark.mu, quark.csw)
        return -2 * np.linalg.slogdet(matrix)[1]

    rate = derivative(determinant, links, towards)
    check_rate(found.force(*vectors, [1.0] * len(x)), towards, rate, least=0)


def test_gauge_transformations_turn_the_force(rng, best_device):
    links = random_field((4, 2, 2, 4), "su3", rng)
    g = random_su(3, links.shape[:4], rng)
    fields = links, gauge_transform(links, g)
    found = [Determinants(one, "su3", best_device, TWISTED) for one in fields]
    before, after = (float(one.action()) for one in found)
    assert after == pytest.approx(before, rel=1e-13)
    force, turned = (one.force() for one in found)
    at = g[..., None, :, :]
    assert np.abs(at @ force @ dagger(at) - turned).max() < 5e-15 / (DRIFT * SIZE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
def test_slabs_give_the_same_bytes(kind, rng):
    links = random_field((4, 2, 4, 10), "su3", rng)

    def calculate(devices):
        determinants = Determinants(links, "su3", devices, TWISTED)
        return [determinants.action().parts, determinants.force()]

    check_divisions(kind, [(10,), (4, 6), (2, 3, 5)], calculate)


def test_a_twisted_mass_alone_gives_a_number(rng, best_device):
    links = random_field((2, 4, 2, 2), "su3", rng)
    found = Determinants(links, "su3", best_device, TWISTED._replace(csw=0.0))
    expected = -16 * 12 * np.log(1 + (2 * 0.12 * 0.3) ** 2)
    assert float(found.action()) == pytest.approx(expected, rel=1e-14)
    assert not found.force().any()


def test_what_is_refused(best_device):
    field = Field.cold(Lattice(2, 2, 2, 2), "su2", "double", best_device)

    class Unknown(DiagonalTerm):
        name = "unknown"
        parameters = ()
        matrix = (
            Determinants(field.to_numpy(), "su2", best_device, CLOVER)
            .operator.diagonal_terms[0]
            .matrix
        )

        def __init__(self):
            self.coefficients = {"factor": 0.1}

    term = Determinant(DiracOperator(field, 0.1, -1, Unknown()))
    with pytest.raises(UsageError, match="force of the term unknown is not known"):
        term.add_force(AlgebraField.like(field), np.ones(1, bool), Failures())

    class Other(PlainWilson):
        name = "other"
        diagonal = Unknown.matrix

    with pytest.raises(UsageError, match="diagonal part of the operator other is not known"):
        Determinant(Other(field, 0.1))

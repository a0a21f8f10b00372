"""Solutions on several lattices at once: each is what it is alone, whatever the others need."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.dynamical.normal_systems import QuarkSolver, QuarkSystem
from gauge_mc.extensions.quarks.hopping import EVEN
from gauge_mc.extensions.quarks.operators import TwistedMass
from gauge_mc.extensions.quarks.solvers import krylov
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.extensions.quarks.vectors.algebra import Combine, Multiply
from gauge_mc.fields.field import Field
from tests.extensions.quarks.links import replicas_of
from tests.extensions.quarks.reference.dirac import random_spinor
from tests.extensions.quarks.reference.pseudofermions import Quark, even
from tests.reference.fields import random_field

LATTICE = Lattice(4, 2, 8, 6)
PHASES = (np.exp(0.3j), 1, np.exp(-0.7j), -1)
QUARK = Quark(0.13, PHASES, 0.05)
EVERYWHERE, ALONE = np.ones(4, bool), np.ones(1, bool)

TINY = 2.3e-16
"""A tolerance that some residuals reach, and that on links 1 does not because of rounding errors,
which end at 3e-16 if all iterations are in double precision."""


def cold(group):
    """Links 1, on which solvers need other numbers of iterations."""
    n = {"su2": 2, "su3": 3}[group]
    return np.broadcast_to(np.eye(n, dtype=complex), (*LATTICE.extents[::-1], 4, n, n)).copy()


class Case:
    """Lattices with links and right-hand sides of their own, alone and as replicas."""

    def __init__(self, rng, device, group="su3", **request):
        self.links = [random_field(LATTICE.extents, group, rng) for _ in range(3)]
        self.links.insert(1, cold(group))
        colours = self.links[0].shape[-1]
        self.phi = [even(random_spinor(LATTICE.extents, colours, rng)) for _ in self.links]
        singles, self.field = replicas_of(self.links, device)
        given = QUARK.kappa, QUARK.mu, PHASES
        solver = QuarkSolver(**request)
        self.operators = [TwistedMass(one, *given) for one in singles]
        self.alone = [QuarkSystem(one, solver) for one in self.operators]
        self.operator = TwistedMass(self.field, *given)
        self.together = QuarkSystem(self.operator, solver)
        for n, (one, values) in enumerate(zip(self.alone, self.phi, strict=True)):
            one.phi.restore(values)
            self.together.phi.part(range(n, n + 1)).restore(values)

    def replica(self, vectors, n):
        """A vector of a replica."""
        return vectors.part(range(n, n + 1)).to_numpy()[0]

    def check(self, n, tolerance, found):
        """Check that a replica has the solution or the error that it has alone."""
        own = self.alone[n].solve(tolerance, ALONE)
        assert [*map(str, own.errors.values())] == [
            str(one) for k, one in found.errors.items() if k == n
        ]
        assert found.iterations[n] == own.iterations[0]
        assert own.errors or not self.differ(n)

    def differ(self, n):
        """Whether the solutions of a replica differ from those alone in any bit."""
        pairs = (self.together.x, self.alone[n].x), (self.together.y, self.alone[n].y)
        return any(self.replica(a, n).tobytes() != b.to_numpy()[0].tobytes() for a, b in pairs)


@pytest.mark.longer
@pytest.mark.parametrize("group", ["su2", "su3"])
@pytest.mark.parametrize("inner", ["half", "single", "double"])
@pytest.mark.parametrize("solver", ["cg", "bicgstab"])
def test_replicas_have_the_bits_that_they_have_alone(solver, inner, group, rng, best_device):
    case = Case(rng, best_device, group, inner=inner, solver=solver)
    for tolerance in (1e-5, 1e-11):
        found = case.together.solve(tolerance, EVERYWHERE)
        assert not found.errors
        for n in range(4):
            case.check(n, tolerance, found)
        assert len({*found.iterations.tolist()}) > 1


@pytest.mark.parametrize("solver", ["cg", "bicgstab"])
def test_every_replica_has_a_history_of_its_own(solver, rng, best_device):
    """It goes on only when the replica is solved for."""
    case = Case(rng, best_device, solver=solver, history=2)
    first, then = (np.array(one) for one in ([True] * 4, [True, False, True, False]))
    for wanted in (first, then, first):
        found = case.together.solve(1e-8, wanted)
        for n in np.flatnonzero(wanted).tolist():
            case.check(n, 1e-8, found)
    assert not found.iterations[[0, 2]].any()
    case.together.forget()
    assert case.together.solve(1e-8, first).iterations.min() > 0


def test_residuals_are_those_of_the_links_of_each_replica(rng, best_device):
    """By a reference that has no kernels."""
    case = Case(rng, best_device)
    case.together.solve(1e-11, EVERYWHERE)
    for n, (links, phi) in enumerate(zip(case.links, case.phi, strict=True)):
        y = even(case.replica(case.together.y, n))
        residual = phi - QUARK.reduced(links, y)
        assert np.linalg.norm(residual) < 1.01e-11 * np.linalg.norm(phi)


def test_replicas_that_are_not_wanted_are_left_out(rng, best_device):
    """Also if their vectors are not numbers."""
    case = Case(rng, best_device)
    case.together.phi.part(range(2, 3)).restore(np.full_like(case.phi[2], np.nan))
    for wanted in ([True, False, False, True], [False, True, False, False], [False] * 4):
        found = case.together.solve(1e-8, np.array(wanted))
        assert not found.errors
        for n, one in enumerate(wanted):
            if one:
                case.check(n, 1e-8, found)
            else:
                assert found.iterations[n] == 0


@pytest.mark.longer
def test_a_solver_fails_for_one_replica_only(rng, best_device):
    """By its number of iterations, or since its right-hand side is not a number."""
    steps = Case(rng, best_device).together.solve(1e-8, EVERYWHERE).iterations
    most = int(steps.max())
    case = Case(rng, best_device, iterations=most - 1)
    assert 0 < (steps < most).sum() < 4
    case.together.phi.part(range(1, 2)).restore(np.full_like(case.phi[1], np.nan))
    found = case.together.solve(1e-8, EVERYWHERE)
    assert "not a number" in str(found.errors[1])
    for n in (0, 2, 3):
        case.check(n, 1e-8, found)


@pytest.mark.longer
@pytest.mark.parametrize("inner", [pytest.param("half", marks=pytest.mark.slow), "double"])
def test_residuals_that_stagnate_are_given_up_alone(inner, rng, best_device):
    """At the bounds of double precision some replicas reach what others do not."""
    case = Case(rng, best_device, inner=inner)
    found = case.together.solve(TINY, EVERYWHERE)
    for n in range(4):
        case.check(n, TINY, found)
    assert len(found.errors) < 4
    assert found.errors or inner == "half"


def test_links_that_are_not_numbers_spoil_one_replica_only(rng, best_device):
    """Its residual stagnates at once in all precisions, while the others are solved for."""
    case = Case(rng, best_device)
    nan = np.full(64, np.nan).view(np.uint8)
    for field, operator in (
        (case.field.replicas[2], case.operator),
        (case.operators[2].field, case.operators[2]),
    ):
        slab = field.slabs[0]
        slab.device.write(slab.buffer, 0, nan)
        operator.refresh()
    found = case.together.solve(1e-8, EVERYWHERE)
    assert [*found.errors] == [2]
    for n in range(4):
        case.check(n, 1e-8, found)


@pytest.mark.longer
def test_launches_are_forgotten_if_there_are_too_many(rng, best_device, monkeypatch):
    monkeypatch.setattr(krylov, "MOST_PREPARED", 2)
    case = Case(rng, best_device)
    found = case.together.solve(1e-10, EVERYWHERE)
    for n in range(4):
        case.check(n, 1e-10, found)


def test_ranges_of_a_mask():
    mask = np.array([False, True, True, False, True])
    assert [*krylov.runs(mask)] == [range(1, 3), range(4, 5)]
    assert krylov.span(mask) == range(1, 5)
    assert not [*krylov.runs(np.zeros(3, bool))]


@pytest.mark.parametrize("fifth", [None, 2])
def test_linear_algebra_of_several_vectors_on_each_replica(fifth, rng, best_device):
    """They follow each other as the replicas do, and have factors and products of their own."""
    field = Field.cold(LATTICE, "su2", "double", best_device).repeated(2)
    a, b = (SpinorField.empty(field, count=3, parity=EVEN, fifth=fifth) for _ in range(2))
    assert (a.count, a.per_site, a.like().count) == (6, 3 * (fifth or 1), 6)
    shape = (3, *((fifth,) if fifth else ()), *LATTICE.extents[::-1], 4, 2)
    values = []
    for vectors in (a, b):
        values.append([even_parts(rng.normal(size=shape) + 0j) for _ in range(2)])
        for n, one in enumerate(values[-1]):
            vectors.part(range(n, n + 1)).restore(one)
    factors = np.arange(1.0, 7.0)
    Combine(a, b)(1, factors)
    products, norm2 = Multiply(a, b)(), []
    for n in range(2):
        own = factors[3 * n : 3 * n + 3].reshape(3, *[1] * (len(shape) - 1))
        expected = values[0][n] + own * values[1][n]
        np.testing.assert_allclose(a.part(range(n, n + 1)).to_numpy(), expected, atol=1e-14)
        norm2 += (np.abs(expected) ** 2).reshape(3, -1).sum(axis=1).tolist()
    np.testing.assert_allclose(products.norm2, norm2, rtol=1e-12)


def even_parts(vectors):
    """Vectors that are 0 on the odd sites."""
    return vectors * even(np.ones(vectors.shape[-6:]))

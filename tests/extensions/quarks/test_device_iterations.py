"""Iterations without the host against those in which it takes every decision."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import ConvergenceError
from gauge_mc.extensions.quarks import solvers
from gauge_mc.extensions.quarks.dynamical.normal_systems import QuarkSolver, QuarkSystem
from gauge_mc.extensions.quarks.hopping import EVEN, NormalOperator, System
from gauge_mc.extensions.quarks.operators import TwistedMass
from gauge_mc.extensions.quarks.operators.domain_wall import DomainWall
from gauge_mc.extensions.quarks.solvers import (
    SOLVERS,
    SolverParameters,
    iterations,
    krylov,
    multishift,
    solve,
)
from gauge_mc.extensions.quarks.solvers.iterations import DeviceIterations, Residual
from gauge_mc.extensions.quarks.solvers.multishift import ShiftedSystem, StepsAhead, TwoPassSum
from gauge_mc.extensions.quarks.vectors import SpinorField
from tests.domain.conftest import GPUS, open_group
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference.dirac import random_spinor
from tests.extensions.quarks.reference.pseudofermions import even
from tests.reference.fields import random_field

LATTICE = Lattice(4, 2, 4, 8)
DIVISIONS = [(8,), (4, 4), (2, 3, 3)]
SHIFTS = (1e-3, 1e-3, 0.02, 5.0)


class Case:
    """An operator and right-hand sides, the same on devices that divide the lattice."""

    def __init__(self, kind, slices, inner="single", strict=False, fifth=None, count=1):
        self.devices = open_group(kind, slices)
        self.devices.compute(strict)
        rng = np.random.default_rng(5)
        links = random_field(LATTICE.extents, "su3", rng)
        field = field_of(links, self.devices)
        self.operator = DomainWall(field, 0.1, fifth) if fifth else TwistedMass(field, 0.13, 0.02)
        self.inner, self.fifth = inner, fifth
        shape = (count, *((fifth,) if fifth else ()), *links.shape[:4], 4, 3)
        vectors = [random_spinor(LATTICE.extents, 3, rng) for _ in range(count * (fifth or 1))]
        self.values = np.reshape(vectors, shape)

    def source(self, parity=None):
        return SpinorField.from_numpy(
            self.operator.field, self.values, parity=parity, fifth=self.fifth
        )

    def force(self):
        system = QuarkSystem(self.operator, QuarkSolver(inner=self.inner))
        own = self.values[0]
        system.phi.restore(np.array([even(one) for one in own]) if self.fifth else even(own))
        found = system.solve(1e-9, np.ones(1, bool))
        found.check()
        vectors = system.x, system.y
        return found.iterations.tolist(), [one.to_numpy().tobytes() for one in vectors]

    def solution(self, solver):
        """The iterations, the number of true residuals, and the bytes of the solutions."""
        request = SolverParameters(1e-9, inner=self.inner)
        found = solve(self.operator, self.source(), solver, request)
        bytes_ = [one.tobytes() for one in (found.x.to_numpy(), found.residual, found.iterated)]
        return found.iterations, found.updates, bytes_

    def repeated(self):
        """The bytes of what some iterations of every solver, and then some more, have found."""
        found = []
        for kind in SOLVERS.values():
            system = System(self.operator, self.source(), kind.uses_adjoint)
            outer = Residual(system.reduced, system.preconditioned)
            request = SolverParameters(inner=self.inner)
            solver = kind(outer, system.reduced_operator(self.inner), request)
            solver.restart()
            for times in (1, 4, 1, 1):
                solver.repeat(times)
            solver.settle()
            found += [one.to_numpy().tobytes() for one in (solver.x, solver.r, solver.p)]
        return found

    def normal(self, precision="double"):
        """The product of the operator on the even sites and its adjoint."""
        return NormalOperator(self.operator.reduced(True, precision))

    def shifts(self):
        """The iterations, coefficients and bytes for several shifts, and for one of them alone."""
        request = SolverParameters(inner=self.inner)
        system, found = ShiftedSystem(self.normal, self.source(EVEN), len(SHIFTS), request), []
        for shifts in (SHIFTS, SHIFTS[2:3]):
            for tolerance in (1e-5, 1e-9):
                vectors = [y.to_numpy().tobytes() for y in system.solutions(shifts, tolerance)]
                found.append((vectors, system.iterations, system.lanczos))
        return found

    def two_pass(self):
        """The iterations and the bytes of a sum over shifts."""
        b = self.source(EVEN)
        target = b.like()
        two = TwoPassSum(self.normal(), target, b, 1000)
        two(SHIFTS, (1.0, 0.5, -0.3, 2.0), 1e-9)
        return two.iterations, target.to_numpy().tobytes()


def found(what, kind, slices, **given):
    case = Case(kind, slices, **given)
    try:
        return case.solution(what) if what in SOLVERS else getattr(case, what)()
    finally:
        case.devices.close()


@pytest.fixture
def by_host(monkeypatch):
    """A call after which the host takes all decisions; it returns who has asked since."""

    def call():
        asked = []
        for module in (krylov, multishift, solvers):
            monkeypatch.setattr(module, "runs_ahead", lambda vectors: asked.append(vectors))
        return asked

    return call


def check(what, kind, by_host, divisions=DIVISIONS, **given):
    ahead = [found(what, kind, slices, **given) for slices in divisions]
    asked = by_host()
    assert ahead == [found(what, kind, divisions[0], **given)] * len(divisions)
    assert asked


@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
@pytest.mark.parametrize("what", ["force", "cg", "bicgstab", "shifts"])
def test_bytes_are_those_with_the_host_on_all_divisions(what, kind, by_host):
    inner = "double" if what == "bicgstab" else "single"  # in which coefficients are not rounded
    check(what, kind, by_host, inner=inner, count=2)


@pytest.mark.gpu
@pytest.mark.parametrize(("seconds", "number"), [(0.0, 1), (1e9, 2)])
def test_bytes_do_not_depend_on_how_many_iterations_are_given(
    seconds, number, by_host, monkeypatch
):
    """One where iterations take longer than the host does to launch, else two."""
    given, at_once = [], DeviceIterations.given_at_once
    monkeypatch.setattr(iterations, "LAUNCH_SECONDS", seconds)
    noted = property(lambda ahead: given.append(at_once.fget(ahead)) or given[-1])
    monkeypatch.setattr(DeviceIterations, "given_at_once", noted)
    check("repeated", "cuda", by_host, DIVISIONS[:2])
    assert given.count(number) > len(given) / 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
@pytest.mark.parametrize(
    ("what", "inner"),
    [
        ("force", "half"),
        ("cg", "half"),
        ("bicgstab", "half"),
        ("cg", "double"),
        ("repeated", "single"),
    ],
)
def test_bytes_in_other_precisions_are_those_with_the_host(what, inner, kind, by_host):
    check(what, kind, by_host, inner=inner, count=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-1", "cpu-16", *GPUS])
@pytest.mark.parametrize(
    ("what", "fifth", "count"),
    [("force", 4, 1), ("cg", 6, 3), ("bicgstab", 6, 3), ("shifts", 4, 1), ("two_pass", 4, 1)],
)
def test_vectors_with_a_fifth_direction_have_the_same_bytes(what, fifth, count, kind, by_host):
    """Also more of them than a launch treats, and in several rows of sites (without lanes)."""
    check(what, kind, by_host, fifth=fifth, count=count)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
@pytest.mark.parametrize("what", ["force", "cg", "bicgstab", "shifts", "two_pass"])
def test_strict_bytes_are_those_with_the_host(what, kind, by_host):
    check(what, kind, by_host, DIVISIONS[:2], strict=True)


@pytest.mark.parametrize("plateau", [1, 2, 3])
def test_plateaus_of_all_vectors_are_those_with_the_host(plateau, by_host, monkeypatch):
    """Where residuals of some vectors fall, but those of others do not."""
    monkeypatch.setattr(SOLVERS["cg"], "plateau", plateau)
    monkeypatch.setattr("gauge_mc.extensions.quarks.solvers.iterations.SLOWEST", 0.2)
    check("cg", "cpu-16", by_host, DIVISIONS[:1], count=2, inner="double")


@pytest.mark.parametrize("most", [1, 8, 9])
def test_numbers_of_iterations_are_limited_as_by_the_host(most, by_host):
    case, requests = Case("cpu-16", (8,)), SolverParameters(1e-9, most, inner="single")
    errors = []
    for _ in range(2):
        system = ShiftedSystem(case.normal, case.source(EVEN), len(SHIFTS), requests)
        with pytest.raises(ConvergenceError) as error:
            solve(case.operator, case.source(), "cg", requests)
        errors.append(str(error.value))
        with pytest.raises(ConvergenceError):
            list(system.solutions(SHIFTS, 1e-9))
        assert system.iterations == most
        errors.append((system.iterations, system.lanczos))
        by_host()
    assert errors[:2] == errors[2:]


@pytest.mark.parametrize("most", [2, 3, 4])
def test_steps_for_several_shifts_end_where_memory_for_their_coefficients_does(
    most, by_host, monkeypatch
):
    """And the host goes on from there, whatever shift ends with the next step."""
    monkeypatch.setattr(multishift, "MOST_STEPS", most)
    lengths = []
    monkeypatch.setattr(StepsAhead, "run", noted(StepsAhead.run, lengths))
    check("shifts", "cpu-16", by_host, DIVISIONS[:1])
    assert max(len(past.norm2) for past in lengths) == most - 1


def noted(method, results):
    def call(*given, **named):
        results.append(method(*given, **named))
        return results[-1]

    return call

"""Iterations without the host against those in which it takes every decision."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.quarks.forces import replica_solver
from gauge_mc.quarks.forces.normal import QuarkSolver
from gauge_mc.quarks.forces.replica_solver import QuarkSystem
from gauge_mc.quarks.operators.domain_wall import DomainWall
from gauge_mc.quarks.operators.twisted_mass import TwistedMass
from gauge_mc.quarks.vectors import gradient_iterations
from gauge_mc.quarks.vectors.gradient_iterations import RESIDUAL, GradientIterations, row
from gauge_mc.quarks.vectors.spinors import SpinorField
from tests.domain.conftest import GPUS, open_group
from tests.reference.dirac import random_spinor
from tests.reference.fields import random_field
from tests.reference.pseudofermions import even

LATTICE = Lattice(4, 2, 4, 8)
DIVISIONS = [(8,), (4, 4), (2, 3, 3)]


class Case:
    """A system with the same links and right-hand sides on devices that divide the lattice."""

    def __init__(self, rng, kind, slices, strict=False, fifth=None, **request):
        self.devices = open_group(kind, slices)
        self.devices.compute(strict)
        links = random_field(LATTICE.extents, "su3", rng)
        field = Field.from_slices(LATTICE, "su3", links, "double", self.devices)
        self.operator = DomainWall(field, 0.1, fifth) if fifth else TwistedMass(field, 0.13, 0.02)
        self.system = QuarkSystem(self.operator, QuarkSolver(**request))
        vectors = [even(random_spinor(LATTICE.extents, 3, rng)) for _ in range(fifth or 1)]
        self.system.phi.restore(np.array(vectors) if fifth else vectors[0])

    def solution(self):
        """The iterations and the bytes of X and Y."""
        found = self.system.solve(1e-9, np.ones(1, bool))
        found.check()
        vectors = self.system.x, self.system.y
        return found.iterations.tolist(), [one.to_numpy().tobytes() for one in vectors]


def solution(kind, slices, **given):
    """The solution of the same system."""
    case = Case(np.random.default_rng(5), kind, slices, **given)
    try:
        return case.solution()
    finally:
        case.devices.close()


@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
@pytest.mark.parametrize("inner", [pytest.param("half", marks=pytest.mark.slow), "single"])
def test_bytes_are_those_with_the_host_on_all_divisions(kind, inner, monkeypatch):
    ahead = [solution(kind, slices, inner=inner) for slices in DIVISIONS]
    calls = []
    monkeypatch.setattr(replica_solver, "runs_ahead", lambda vectors: calls.append(vectors))
    by_host = solution(kind, DIVISIONS[0], inner=inner)
    assert calls
    assert ahead == [by_host] * len(DIVISIONS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
def test_vectors_with_a_fifth_direction_have_the_same_bytes(kind, monkeypatch):
    ahead = [solution(kind, slices, fifth=4, inner="single") for slices in DIVISIONS]
    calls = []
    monkeypatch.setattr(replica_solver, "runs_ahead", lambda vectors: calls.append(vectors))
    assert ahead == [solution(kind, DIVISIONS[0], fifth=4, inner="single")] * len(DIVISIONS)
    assert calls


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
def test_strict_bytes_are_those_with_the_host(kind, monkeypatch):
    ahead = [solution(kind, slices, strict=True) for slices in DIVISIONS[:2]]
    monkeypatch.setattr(replica_solver, "runs_ahead", lambda vectors: False)
    assert ahead == [solution(kind, DIVISIONS[0], strict=True)] * 2


def test_the_host_is_asked_for_true_residuals_alone(monkeypatch):
    """One for every factor of a thousand, and the last one."""
    halts = []
    run = GradientIterations.run

    def noted(self, **rows):
        halts.append(run(self, **rows))
        return halts[-1]

    monkeypatch.setattr(GradientIterations, "run", noted)
    (iterations,), _ = solution("cpu-16", (8,), inner="single")
    assert halts == [RESIDUAL] * len(halts)
    assert 3 <= len(halts) <= 5 < iterations


def test_work_of_several_launches_or_processes_is_left_to_the_host(monkeypatch):
    case = Case(np.random.default_rng(5), "cpu-16", (8,))
    vectors = case.system.phi
    assert gradient_iterations.runs_ahead(vectors)
    for fifth, runs in ((16, True), (18, True)):
        walls = SpinorField.empty(case.operator.field, "double", 1, 0, fifth)
        assert gradient_iterations.runs_ahead(walls) == runs
    monkeypatch.setattr(case.devices.processes, "size", 2, raising=False)
    assert not gradient_iterations.runs_ahead(vectors)


def test_rows_of_the_state_do_not_overlap():
    names = ["NORM2", "HIGHEST", "LOWEST", "SINCE", "ITERATIONS"]
    kept = [row(name) for name in names]
    limits = ["LIVE", "TARGET", "GROWN", "REDUCTION", "SLOWEST", "PLATEAU", "MOST"]
    others = [row(name) for name in [*limits, "CURVATURES", "SQUARES"]]
    following = [row("NEXT") + one for one in kept]
    assert sorted(kept + following + others) == list(range(row("ROWS")))
    assert [row(name) for name in ("ALPHA", "STEP", "BETA")] == list(range(row("FACTORS")))

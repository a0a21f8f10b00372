"""Solutions for several shifts on several lattices at once: each is what it is alone."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import ConvergenceError
from gauge_mc.extensions.quarks.domain_walls import TwistedDoublet
from gauge_mc.extensions.quarks.hopping import EVEN, NormalOperator
from gauge_mc.extensions.quarks.operators import PlainWilson
from gauge_mc.extensions.quarks.solvers import SolverParameters, multishift
from gauge_mc.extensions.quarks.solvers.multishift import ShiftedSystem
from gauge_mc.extensions.quarks.vectors import SpinorField
from tests.extensions.quarks.links import replicas_of
from tests.extensions.quarks.reference.dirac import random_spinor
from tests.reference.fields import random_field

LATTICE = Lattice(4, 4, 2, 2)
SHIFTS = (1e-4, 0.003, 0.2, 5.0)
EVERYWHERE = np.ones(4, bool)

SMALLEST = np.linspace(1.5e-16, 2e-16, 6).tolist()
"""Tolerances around the one that rounding errors forbid, which depends on the lattice."""


class ShiftedCase:
    """Lattices with links and right-hand sides of their own, alone and as replicas."""

    def __init__(self, rng, device, kind="wilson", vectors=1, **request):
        links = [random_field(LATTICE.extents, "su3", rng) for _ in range(3)]
        cold = np.broadcast_to(np.eye(3, dtype=complex), links[0].shape)
        links.insert(1, cold.copy())  # on which solvers need fewer iterations
        links[3][:1] = cold[:1]
        singles, self.field = replicas_of(links, device)
        self.operators = [operator(kind, one) for one in singles]
        self.whole, self.fifth = operator(kind, self.field), self.operators[0].fifth
        count = vectors * (self.fifth or 1)
        shape = (vectors, *((self.fifth,) if self.fifth else ()))
        source = [[random_spinor(LATTICE.extents, 3, rng) for _ in range(count)] for _ in links]
        self.values = [np.reshape(one, (*shape, *one[0].shape)) for one in source]
        self.request = SolverParameters(**request)
        self.b = SpinorField.empty(self.field, count=vectors, parity=EVEN, fifth=self.fifth)
        for n, values in enumerate(self.values):
            self.b.part(range(n, n + 1)).restore(values)
        self.together = self.system(self.whole, self.b)

    def system(self, operator, b):
        """A system of the product of an operator with its adjoint."""
        return ShiftedSystem(
            lambda precision: NormalOperator(operator.reduced(True, precision)),
            b,
            len(SHIFTS),
            self.request,
        )

    def solve(self, tolerance, wanted=EVERYWHERE):
        """Solve on all lattices together, and return the solutions on each."""
        solutions = [
            [y.part(range(n, n + 1)).to_numpy().tobytes() for n in range(4)]
            for y in self.together.solutions_on(wanted, SHIFTS, tolerance)
        ]
        return np.transpose(solutions).tolist()

    def check(self, n, tolerance, found):
        """Check that a lattice has the solutions, or the error, that it has alone."""
        operator, progress = self.operators[n], self.together.progress
        b = SpinorField.from_numpy(operator.field, self.values[n], parity=EVEN, fifth=self.fifth)
        alone, error, expected = self.system(operator, b), None, []
        try:
            for y in alone.solutions(SHIFTS, tolerance):
                expected.append(y.to_numpy().tobytes())
        except ConvergenceError as raised:
            error = str(raised)
        assert error == (str(progress.errors[n]) if n in progress.errors else None)
        assert progress.iterations[n] == alone.iterations
        assert found[n][: len(expected)] == expected
        if not error:
            assert self.together.lanczos[n] == alone.lanczos[0]
            each = self.b.count // 4
            for residuals, own in zip(self.together.residuals, alone.residuals, strict=True):
                assert residuals[n * each : (n + 1) * each].tolist() == own.tolist()


def operator(kind, field):
    """A Dirac operator on some links, whose halos are up to date afterwards."""
    field.exchange_halo(None)
    phases = (1, np.exp(0.4j), 1, -1)
    if kind == "wilson":
        return PlainWilson(field, 0.14, boundary=phases)
    return TwistedDoublet(field, 0.12, 0.1, 0.2, boundary=phases)


CASES = [("wilson", 1, "double"), ("wilson", 2, "single"), ("doublet", 1, "single")]


@pytest.mark.longer
@pytest.mark.parametrize(("kind", "vectors", "inner"), CASES)
def test_lattices_have_the_bits_that_they_have_alone(kind, vectors, inner, rng, best_device):
    case = ShiftedCase(rng, best_device, kind, vectors, inner=inner)
    for tolerance in (1e-5, 1e-11):
        found = case.solve(tolerance)
        assert not case.together.progress.errors
        assert len({*case.together.progress.iterations.tolist()}) > 1
        for n in range(4):
            case.check(n, tolerance, found)


@pytest.mark.longer
@pytest.mark.parametrize("vectors", [1, 2])
def test_lattices_are_corrected_alone(vectors, rng, best_device, monkeypatch):
    """Far below what single precision reaches by itself, in it and in double precision."""
    monkeypatch.setattr(multishift, "LEAST_LOWER", 1e-17)
    case = ShiftedCase(rng, best_device, vectors=vectors, inner="single")
    for tolerance in np.geomspace(1e-9, 1e-15, 13).tolist():
        found = case.solve(tolerance)
        for n in range(4):
            case.check(n, tolerance, found)


@pytest.mark.longer
@pytest.mark.parametrize("smaller", [1e-7, 1e-6, 3e-6, 1e-5])
def test_precisions_of_corrections_are_chosen_alone(smaller, rng, best_device, monkeypatch):
    """A lattice goes on in double precision if its residuals have not fallen enough."""
    monkeypatch.setattr(multishift, "LEAST_LOWER", 1e-17)
    monkeypatch.setattr(multishift, "SMALLER", smaller)
    case = ShiftedCase(rng, best_device, inner="single")
    found = case.solve(1e-13)
    for n in range(4):
        case.check(n, 1e-13, found)


@pytest.mark.longer
def test_corrections_fail_alone(rng, best_device, monkeypatch):
    """Since every lattice has its own number of iterations before each of them."""
    monkeypatch.setattr(multishift, "LEAST_LOWER", 1e-17)
    case = ShiftedCase(rng, best_device, inner="single")
    case.solve(1e-12)
    steps = np.sort(case.together.progress.iterations).tolist()
    assert steps[1] < steps[3]
    for most in (steps[1] // 2, steps[1] - 1, steps[2] - 1, steps[3] - 1):
        case.request = SolverParameters(inner="single", iterations=most)
        case.together = case.system(case.whole, case.b)
        found = case.solve(1e-12)
        assert case.together.progress.errors
        for n in range(4):
            case.check(n, 1e-12, found)


@pytest.mark.longer
@pytest.mark.parametrize("inner", ["double", "single"])
def test_solutions_fail_alone(inner, rng, best_device):
    """By numbers of iterations, and since a right-hand side is not a number."""
    case = ShiftedCase(rng, best_device, inner=inner)
    case.solve(1e-8)
    steps = case.together.progress.iterations
    case.request = SolverParameters(inner=inner, iterations=int(steps.max()) - 1)
    case.values[1] = np.full_like(case.values[1], np.nan)
    case.b.part(range(1, 2)).restore(case.values[1])
    case.together = case.system(case.whole, case.b)
    found = case.solve(1e-8)
    assert "not a number" in str(case.together.progress.errors[1])
    assert 1 < len(case.together.progress.errors) < 4
    for n in range(4):
        case.check(n, 1e-8, found)


@pytest.mark.longer
def test_residuals_that_do_not_fall_are_given_up_alone(rng, best_device):
    case, failed = ShiftedCase(rng, best_device, inner="double"), []
    for tolerance in SMALLEST:
        found = case.solve(tolerance)
        failed.append(len(case.together.progress.errors))
        for n in range(4):
            case.check(n, tolerance, found)
    assert any(0 < one < 4 for one in failed)


def test_lattices_that_are_not_wanted_are_left_out(rng, best_device):
    case = ShiftedCase(rng, best_device)
    nothing = np.full_like(case.values[2], np.nan)
    case.b.part(range(2, 3)).restore(nothing)
    for wanted in ([True, False, False, True], [False] * 4):
        found = case.solve(1e-8, np.array(wanted))
        assert not case.together.progress.errors
        for n, one in enumerate(wanted):
            if one:
                case.check(n, 1e-8, found)
            else:
                assert case.together.progress.iterations[n] == 0


@pytest.mark.parametrize("value", [np.nan, 1e100])
@pytest.mark.filterwarnings("error")
def test_links_that_are_not_numbers_spoil_one_lattice_only(value, rng, best_device):
    """Without warnings of what is computed with its residuals afterwards."""
    case = ShiftedCase(rng, best_device)
    nan = np.full(64, value).view(np.uint8)
    slab = case.field.replicas[2].slabs[0]
    slab.device.write(slab.buffer, 0, nan)
    case.whole.refresh()
    found = case.solve(1e-8)
    assert "broke down" in str(case.together.progress.errors.pop(2))
    for n in (0, 1, 3):
        case.check(n, 1e-8, found)

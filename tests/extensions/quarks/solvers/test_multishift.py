"""Conjugate gradients for several shifts of Mh Mh^dagger, and the ends of its spectrum."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.hopping import EVEN, NormalOperator
from gauge_mc.extensions.quarks.modes.chirality import measured_ends
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.rational_functions import Lanczos
from gauge_mc.extensions.quarks.solvers import SolverParameters, multishift
from gauge_mc.extensions.quarks.solvers.multishift import ShiftedSearch, ShiftedSystem, TwoPassSum
from gauge_mc.extensions.quarks.vectors import SpinorField
from tests.extensions.quarks.links import check_divisions, field_of
from tests.extensions.quarks.reference import dirac
from tests.extensions.quarks.reference.pseudofermions import Quark, even_sites, reduced_matrix
from tests.reference.fields import random_field

LATTICE = Lattice(4, 4, 2, 2)
QUARK = Quark(0.14, (1, 1, 1, -1), 0.05)
SHIFTS = (1e-4, 0.003, 0.2, 5.0)


class Setup:
    """Random links, their operator Mh Mh^dagger, and two vectors, one of which may be 0."""

    def __init__(self, device, rng, lattice=LATTICE, quark=QUARK, vectors=2):
        self.links = random_field(lattice.extents, "su3", rng)
        self.quark = quark
        self.field = field_of(self.links, device)
        self.dirac = Wilson(self.field, quark.kappa, mu=quark.mu, boundary=quark.phases)
        source = [dirac.random_spinor(lattice.extents, 3, rng) for _ in range(vectors)]
        self.b = SpinorField.from_numpy(self.field, np.stack(source), parity=EVEN)

    def operator(self, precision="double"):
        return NormalOperator(self.dirac.reduced(True, precision))

    def matrix(self):
        mh = reduced_matrix(self.links, self.quark)
        return mh @ mh.conj().T

    def columns(self, vectors):
        at = even_sites(self.links)
        return vectors.to_numpy().reshape(vectors.count, -1)[:, at].T


@pytest.mark.longer
@pytest.mark.parametrize(
    ("inner", "tolerance"), [("double", 1e-12), ("single", 1e-5), ("single", 1e-11), ("half", 1e-6)]
)
def test_solutions_of_dense_matrices(inner, tolerance, best_device, rng):
    setup = Setup(best_device, rng)
    matrix, b = setup.matrix(), setup.columns(setup.b)
    system = ShiftedSystem(setup.operator, setup.b, 4, SolverParameters(inner=inner))
    for shifts in (SHIFTS, SHIFTS[1:3]):  # in the same memory
        found = [setup.columns(y) for y in system.solutions(shifts, tolerance)]
        assert len(found) == len(system.residuals) == len(shifts)
        for shift, y, residuals in zip(shifts, found, system.residuals, strict=True):
            whole = matrix + shift * np.eye(len(matrix))
            rest = np.linalg.norm(b - whole @ y, axis=0) / np.linalg.norm(b, axis=0)
            assert (rest <= tolerance * 1.01).all()
            np.testing.assert_allclose(residuals, rest, rtol=1e-2, atol=1e-14)
            expected = np.linalg.solve(whole, b)
            bound = 1.01 * tolerance * np.linalg.norm(b) / np.linalg.eigvalsh(whole)[0]
            assert np.linalg.norm(y - expected) <= bound + 1e-12 * np.linalg.norm(expected)


@pytest.mark.longer
def test_true_residuals_in_single_precision_are_corrected(best_device, rng, monkeypatch):
    """Far below what it reaches by itself, and with corrections in single precision as well."""
    monkeypatch.setattr(multishift, "LEAST_LOWER", 1e-12)
    setup = Setup(best_device, rng)
    matrix, b = setup.matrix(), setup.columns(setup.b)
    system = ShiftedSystem(setup.operator, setup.b, 4, SolverParameters(inner="single"))
    found = [setup.columns(y) for y in system.solutions(SHIFTS, 1e-11)]
    assert {key[0] for key in system._searches} == {"single"}
    for shift, y in zip(SHIFTS, found, strict=True):
        rest = b - (matrix + shift * np.eye(len(matrix))) @ y
        assert (np.linalg.norm(rest, axis=0) <= 1.01e-11 * np.linalg.norm(b, axis=0)).all()


@pytest.mark.longer
def test_two_passes_add_up_the_solutions_of_dense_matrices(best_device, rng):
    """The sum of the solutions with factors, also if a vector is 0, and again in the same memory.

    With a loose tolerance the shifts end at different steps, as those of a single pass do.
    """
    setup = Setup(best_device, rng, vectors=3)
    values = setup.b.to_numpy()
    values[1] = 0
    values[2] *= 1e3
    setup.b.restore(values)
    matrix, b = setup.matrix(), setup.columns(setup.b)
    target, factors = setup.b.like(), (0.3, -2.0, 1.0, 7.0)
    two = TwoPassSum(setup.operator(), target, setup.b, 1000)
    for first, tolerance in ((0, 1e-12), (1, 1e-3), (0, 1e-12)):
        shifts, own = SHIFTS[first:], factors[first:]
        search = ShiftedSearch(setup.operator(), setup.b, len(shifts))
        search.r.copy(setup.b)
        search.run(shifts, tolerance * np.linalg.norm(b, axis=0), 1000)
        target.copy(setup.b)
        two(shifts, own, tolerance)
        assert two.iterations == search.iterations > 5
        found = setup.columns(target) - b
        single = np.einsum("sji,s->ij", search.y.to_numpy().reshape(len(shifts), 3, -1), own)
        single = single[even_sites(setup.links)]
        scale = np.linalg.norm(single, axis=0)
        assert (np.linalg.norm(found - single, axis=0) <= 1e-12 * scale).all()
        if tolerance < 1e-10:
            exact = sum(
                c * np.linalg.solve(matrix + s * np.eye(len(matrix)), b)
                for s, c in zip(shifts, own, strict=True)
            )
            assert (np.linalg.norm(found - exact, axis=0) <= 1e-8 * scale).all()
    with pytest.raises(GaugeError, match="within 3 iterations"):
        TwoPassSum(setup.operator(), target, setup.b, 3)(SHIFTS, factors, 1e-8)


@pytest.mark.first_quick
@pytest.mark.parametrize("inner", ["double", "single"])
def test_slabs_give_the_same_bytes(inner, rng):
    links = random_field((4, 2, 4, 6), "su3", rng)
    source = dirac.random_spinor((4, 2, 4, 6), 3, rng)

    def calculate(devices):
        operator = Wilson(field_of(links, devices), 0.12)
        b = SpinorField.from_numpy(operator.field, source, parity=EVEN)
        system = ShiftedSystem(
            lambda precision: NormalOperator(operator.reduced(True, precision)),
            b,
            4,
            SolverParameters(inner=inner),
        )
        solutions = [y.to_numpy() for y in system.solutions(SHIFTS, 1e-6)]
        return [*solutions, str(system.lanczos[0].ends())]

    check_divisions("cpu-16", [(6,), (2, 4), (2, 2, 2)], calculate)


@pytest.mark.slow
def test_what_is_refused(rng):
    setup = Setup(CpuDevice(1), rng)
    few = SolverParameters(iterations=5, inner="double")
    with pytest.raises(GaugeError, match=r"4 shifts were not found within 5 iterations: allow"):
        list(ShiftedSystem(setup.operator, setup.b, 4, few).solutions(SHIFTS, 1e-8))
    system = ShiftedSystem(setup.operator, setup.b, 4, SolverParameters())
    wild = Setup(CpuDevice(1), rng, quark=Quark(0.3, (1, 1, 1, -1)))
    bad = ShiftedSystem(wild.operator, wild.b, 4, SolverParameters(inner="double"))
    with pytest.raises(
        GaugeError, match=r"shift 0.0001 does not become smaller than .* tolerance is 1e-16"
    ):
        list(bad.solutions(SHIFTS, 1e-16))
    good = setup.b.to_numpy()
    setup.b.restore(np.full_like(good, np.nan))
    with pytest.raises(GaugeError, match="contains a value that is not a number"):
        list(system.solutions(SHIFTS, 1e-8))
    setup.b.restore(good)  # memory that held such values does no harm
    list(system.solutions(SHIFTS, 1e-8))
    assert all((one <= 1e-8).all() for one in system.residuals)


@pytest.mark.longer
@pytest.mark.parametrize("quark", [QUARK, Quark(0.2, (1, 1, 1, -1))], ids=str)
def test_the_ends_of_the_spectrum(quark, best_device, rng):
    setup = Setup(best_device, rng, quark=quark, vectors=1)
    values = np.linalg.eigvalsh(setup.matrix())
    for accuracy in (0.1, 1e-3, 1e-6):
        ends = measured_ends(setup.operator(), setup.b, accuracy)
        least = max(ends.smallest_error, 1e-9 * values[0])
        assert 0 < ends.smallest - values[0] * (1 - 1e-9) <= least
        assert 0 < values[-1] * (1 + 1e-9) - ends.largest <= max(ends.largest_error, 1e-9)
        assert ends.smallest_error <= accuracy * ends.smallest
        assert ends.largest_error <= accuracy * ends.largest


def test_small_eigenvalues_are_found_with_their_relative_accuracy(rng):
    """Those of a diagonal matrix over 12 orders of magnitude, from coefficients in decimals."""
    with localcontext(prec=100):
        values = [Decimal(10) ** -n for n in range(13)]
        lanczos, r = Lanczos(), [Decimal(one) for one in rng.normal(size=13).tolist()]
        p, norm2 = r, sum(one * one for one in r)
        for _ in values:
            alpha = norm2 / sum(v * one * one for v, one in zip(values, p, strict=True))
            r = [a - alpha * v * b for a, v, b in zip(r, values, p, strict=True)]
            before, norm2 = norm2, sum(one * one for one in r)
            p = [a + norm2 / before * b for a, b in zip(r, p, strict=True)]
            lanczos.add(float(alpha), float(norm2 / before))
    ends = lanczos.ends()
    assert ends.smallest == pytest.approx(1e-12, rel=1e-11)
    assert ends.largest == pytest.approx(1, rel=1e-11)


def test_shifts_cost_no_iterations(rng):
    setup = Setup(CpuDevice(1), rng)
    counts = []
    for shifts in (SHIFTS[:1], SHIFTS):
        system = ShiftedSystem(
            setup.operator, setup.b, len(shifts), SolverParameters(inner="double")
        )
        assert sum(1 for _ in system.solutions(shifts, 1e-8)) == len(shifts)
        counts.append(system.iterations)
    assert counts[0] == counts[1] > 20


def test_a_shift_stops_when_its_own_residual_is_small(rng):
    """The solution for a large shift does not change any more when that for a small one does."""
    setup = Setup(CpuDevice(1), rng, vectors=1)
    search = ShiftedSearch(setup.operator(), setup.b, 2)
    target = 1e-6 * np.linalg.norm(setup.columns(setup.b), axis=0)
    found = []
    for lowest in (4.0, 1e-4):
        search.r.copy(setup.b)
        search.run((lowest, 5.0), target, 1000)
        found.append((search.iterations, setup.columns(search.y)[:, 1]))
    assert found[1][0] > 2 * found[0][0]
    whole = setup.matrix() + 5 * np.eye(len(found[0][1]))
    for _, y in found:
        rest = np.linalg.norm(setup.columns(setup.b)[:, 0] - whole @ y)
        assert 0.01 * target < rest <= 1.01 * target  # not much smaller: it has stopped

"""Propagators of overlap quarks: exact relations, free quarks, and what decides about residuals."""

import numpy as np
import pytest

from gauge_mc import open_device
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import ConvergenceError
from gauge_mc.extensions.quarks.operators import OPERATORS
from gauge_mc.extensions.quarks.solvers import SolverParameters
from gauge_mc.extensions.quarks.spectroscopy.contractions import meson, spin_tensor
from gauge_mc.extensions.quarks.vectors import SpinorField
from tests.extensions.quarks.links import check_divisions, field_of
from tests.extensions.quarks.reference import dirac
from tests.extensions.quarks.reference import overlap as reference
from tests.reference.fields import cold_field, random_field

LATTICE = Lattice(2, 4, 2, 4)
RHO, MASSES = 1.4, (0.0, 0.08, 0.6)
PHASES = [1, 1, np.exp(0.5j), -1]
TOLERANCE = 1e-10


def operator_on(links, masses=MASSES, devices=None, **options):
    field = field_of(links, devices or open_device(threads=1))
    chosen = {"rho": RHO, "accuracy": 1e-11, "modes": 8, "boundary": PHASES, **options}
    return OPERATORS["overlap"](field, masses, **chosen)


def point(field, site=0):
    """The sources of all spins and colours at a site, in the order t, z, y, x."""
    colours = field.group.colours
    psi = np.zeros((4 * colours, field.lattice.sites, 4, colours), complex)
    for n in range(len(psi)):
        psi[n, site, n // colours, n % colours] = 1
    shape = (len(psi), *field.lattice.extents[::-1], 4, colours)
    return SpinorField.from_numpy(field, psi.reshape(shape))


def columns_of(solution):
    return [one.columns.to_numpy().reshape(one.columns.count, -1).T for one in solution.propagators]


@pytest.fixture(scope="module")
def links():
    return random_field(LATTICE.extents, "su2", np.random.default_rng(5))


@pytest.fixture(scope="module")
def kernel(links):
    return reference.kernel(links, RHO, PHASES)


@pytest.fixture(scope="module")
def operator(links):
    return operator_on(links)


@pytest.fixture(scope="module")
def found(operator):
    """The propagators for all masses from a point that is not the first one."""
    source = point(operator.field, 21)
    return operator.propagators(source, SolverParameters(TOLERANCE), (1, 2, 0, 1))


def exact(kernel, mass):
    """(1 - D / 2 rho) D(m)^-1 as a matrix."""
    one = np.eye(len(kernel))
    inverse = np.linalg.inv(reference.overlap(kernel, RHO, 2, mass))
    return (one - reference.overlap(kernel, RHO, 2) / (2 * RHO)) @ inverse


@pytest.mark.slow
def test_propagators_of_all_masses_are_those_of_the_dense_operator(found, kernel):
    """Also of the mass 0, since these links have no zero modes."""
    lowest = np.abs(np.linalg.eigvals(reference.overlap(kernel, RHO, 2))).min()
    assert lowest > 1e-3
    columns = slice(8 * 21, 8 * 22)
    for mass, column in zip(MASSES, columns_of(found), strict=True):
        s = exact(kernel, mass)[:, columns]
        allowed = 4 * TOLERANCE / max(lowest, mass) * np.sqrt(column.size)
        assert np.abs(column - s).max() < allowed
    assert (found.residuals <= TOLERANCE).all()


@pytest.mark.slow
def test_the_pion_is_the_squared_propagator_and_fulfils_the_gmor_relation(found):
    """m times the sum of the pion is the trace of S at the source, on every configuration."""
    for mass, quark, column in zip(MASSES, found.propagators, columns_of(found), strict=True):
        pion = meson(spin_tensor(quark, quark), dirac.GAMMA5, dirac.GAMMA5).real
        squares = (np.abs(column) ** 2).reshape(LATTICE.t, -1).sum(axis=1)
        np.testing.assert_allclose(pion, np.roll(squares, -1), rtol=1e-10)
        trace = np.trace(column[8 * 21 : 8 * 22]).real
        assert mass * pion.sum() == pytest.approx(trace, rel=1e-7, abs=1e-7 * pion.sum() ** 0.5)


def free_scalar(extent, mass):
    """The scalar part of S(t) at rest on cold links, by its sum over momenta, and D_c."""
    p = (2 * np.arange(extent) + 1) * np.pi / extent
    b = 1 - np.cos(p) - RHO
    d = 2 * RHO * np.sin(p) / (np.hypot(np.sin(p), b) - b)  # D_c = i gamma_4 d
    values = mass / (mass**2 + d**2)
    return np.array([(values * np.cos(p * t)).mean() for t in range(extent)])


def pole_mass(mass):
    """The energy E at rest at which D_c(p_4 = i E)^2 is m^2, by bisection."""
    low, high = 0.0, 0.8
    for _ in range(60):
        energy = (low + high) / 2
        b = 1 - np.cosh(energy) - RHO
        d = 2 * RHO * np.sinh(energy) / (np.sqrt(b**2 - np.sinh(energy) ** 2) - b)
        low, high = (energy, high) if d < mass else (low, energy)
    return low


@pytest.mark.longer
@pytest.mark.parametrize("mass", [0.3, pytest.param(0.1, marks=pytest.mark.slow)])
def test_free_quarks_have_the_pole_mass_of_the_formula(mass, best_device):
    extent = 24
    links = cold_field((2, 2, 2, extent), "su2")
    quarks = operator_on(links, mass, best_device, modes=0, boundary=-1, accuracy=1e-7)
    field = quarks.field
    psi = np.zeros((1, extent, 2, 2, 2, 4, 2), complex)
    psi[0, 0, ..., 0, 0] = 1  # at rest
    x = quarks.overlap.solve_all(SpinorField.from_numpy(field, psi), quarks.masses, 1e-8)
    source = SpinorField.from_numpy(field, psi)
    (quark,) = quarks.overlap.subtracted(x, source, quarks.masses)
    values = quark.columns.to_numpy()[0, :, 0, 0, 0, 0, 0].real
    expected = free_scalar(extent, mass)
    assert np.abs(values - expected).max() < 1e-6 * expected.max()
    t, energy = np.arange(5, 10), pole_mass(mass)
    ratio = np.sinh(energy * (extent / 2 - t - 1)) / np.sinh(energy * (extent / 2 - t))
    np.testing.assert_allclose(values[t + 1] / values[t], ratio, rtol=2e-3)


@pytest.mark.slow
def test_the_true_residual_decides(links, kernel):
    """With a rough sign function A is not D^dagger D, so that solutions need corrections."""
    rough = operator_on(links, (0.05,), accuracy=1e-4)
    source = point(rough.field)
    found = rough.propagators(source, SolverParameters(1e-9))
    assert found.updates > 0
    assert found.iterated.max() > 1e-9 >= found.residuals.max()
    solution = rough.overlap.solve_all(source, (0.05,), 1e-9).solutions[0]
    image = rough.overlap.apply(solution.to_numpy(), 0.05)
    assert np.linalg.norm(image - source.to_numpy()) < 1e-9 * np.sqrt(8)


@pytest.mark.slow
@pytest.mark.parametrize("approximation", [None, "zolotarev"])
def test_relaxed_errors_save_work_and_no_accuracy(approximation, links):
    """The sign function of an iteration gets cheaper, and the true residual needs no correction."""
    quarks = operator_on(links, (0.2, 0.5), accuracy=1e-9, modes=4, approximation=approximation)
    source = SpinorField.from_numpy(quarks.field, point(quarks.field).to_numpy()[:1])
    sign, steps, found = quarks.overlap.sign.approximation, [], []
    for relaxed in (False, True):
        before = sign.steps
        found.append(quarks.overlap.solve_all(source, quarks.masses, 1e-8, relaxed=relaxed))
        steps.append(sign.steps - before)
    for one in found:
        assert one.updates == 0
        assert one.residuals.max() <= 1e-8
    assert steps[1] < 0.85 * steps[0]
    differences = [
        a.to_numpy() - b.to_numpy() for a, b in zip(*(f.solutions for f in found), strict=True)
    ]
    assert np.abs(differences).max() < 1e-7
    assert quarks.overlap.sign.error_bound <= 1e-9


@pytest.mark.longer
def test_vectors_that_are_solved_for_at_once(links, best_device):
    """Those of one chirality and others, in any number: each has its own solution and residual."""
    quarks = operator_on(links, (0.2, 0.5), best_device, accuracy=1e-9, modes=4)
    vectors = point(quarks.field).to_numpy()[[0, 5, 1, 2, 6]]
    vectors[3] += 2 * vectors[4]
    source, lines = SpinorField.from_numpy(quarks.field, vectors), []
    alone, at_once = (
        quarks.overlap.solve_all(source, quarks.masses, 1e-8, together=most, progress=said)
        for most, said in ((1, lambda line: None), (2, lines.append))
    )
    for one, other in zip(alone.solutions, at_once.solutions, strict=True):
        assert np.abs(one.to_numpy() - other.to_numpy()).max() < 1e-7
    for found in (alone, at_once):
        assert found.residuals.shape == (2, 5)
        assert found.residuals.max() <= 1e-8
    assert at_once.iterations < 0.7 * alone.iterations
    assert [line.split(",")[0] for line in lines] == [f"{done} of 5 columns" for done in (2, 4, 5)]


@pytest.mark.slow
def test_what_does_not_converge(operator):
    with pytest.raises(ConvergenceError, match=r"does not become smaller"):
        operator.overlap.solve_all(point(operator.field), (0.6,), 3e-16)
    with pytest.raises(ConvergenceError, match="within 3 iterations"):
        operator.propagators(point(operator.field), SolverParameters(1e-8, 3))


@pytest.mark.slow
def test_same_bytes_on_several_slabs(links):

    def calculate(devices):
        quarks = operator_on(links, (0.2, 0.5), devices, accuracy=1e-2, modes=2)
        return columns_of(quarks.propagators(point(quarks.field), SolverParameters(1e-2)))

    check_divisions("cpu-16", [(4,), (2, 2)], calculate)


def test_the_record_says_how_good_the_sign_is(operator, kernel):
    """Eigenvalues are those of H, found here by a dense matrix."""
    record = dict(zip(operator.columns.names, operator.record(), strict=True))
    values = np.sort(np.abs(np.linalg.eigvalsh(kernel)))
    assert record["lowest"] == pytest.approx(values[0], rel=1e-9)
    assert record["edge"] <= values[record["modes"]] <= 1.01 * record["edge"]
    assert record["norm"] >= values[-1]
    assert record["gap"] == pytest.approx(values[record["modes"]] / values[record["modes"] - 1])
    assert record["bound"] <= 1e-11
    assert 0 < record["squared"] < 2.1e-11
    assert 0 < record["relation"] < 2.1e-11


@pytest.mark.slow
def test_chiral_symmetry_is_exact_at_the_mass_0(found, operator, kernel):
    """S at the mass 0 anticommutes with gamma_5; with the contact term it does not."""
    massless = columns_of(found)[0]
    five = np.tile(np.repeat([1, 1, -1, -1], 2), LATTICE.sites)
    size = np.abs(massless).max()
    both = five[:, None] * massless + massless * five[:8]
    assert np.abs(both).max() < 1e-8 * size
    contact = np.zeros_like(massless)
    contact[8 * 21 : 8 * 22] = np.eye(8) / (2 * RHO)
    with_contact = massless + contact
    broken = five[:, None] * with_contact + with_contact * five[:8]
    assert np.abs(broken).max() == pytest.approx(1 / RHO, rel=1e-6)


@pytest.mark.slow
def test_propagators_are_gamma_5_hermitian(operator):
    """S(0, y) = gamma_5 S(y, 0)^dagger gamma_5."""
    sites, request = (0, 21), SolverParameters(TOLERANCE)
    parts = {}
    for site in sites:
        quark = columns_of(operator.propagators(point(operator.field, site), request))[1]
        parts[site] = quark
    forth, back = parts[0][8 * 21 : 8 * 22], parts[21][:8]
    five = np.diag(np.repeat([1, 1, -1, -1], 2))
    assert np.abs(back - five @ forth.conj().T @ five).max() < 1e-8 * np.abs(back).max()

"""The sign function, overlap quarks and their propagators, against dense matrices."""

import numpy as np
import pytest

from gauge_mc import open_device
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import ConvergenceError, UsageError
from gauge_mc.extensions.quarks.operators import OPERATORS
from gauge_mc.extensions.quarks.overlap import Overlap
from gauge_mc.extensions.quarks.overlap.sign_function import (
    APPROXIMATIONS,
    KernelModes,
    SignFunction,
)
from gauge_mc.extensions.quarks.solvers import SolverParameters
from gauge_mc.extensions.quarks.spectroscopy.contractions import meson, spin_tensor
from gauge_mc.extensions.quarks.vectors import SpinorField
from tests.extensions.quarks.links import check_divisions, field_of
from tests.extensions.quarks.reference import dirac
from tests.extensions.quarks.reference import overlap as reference
from tests.reference.fields import cold_field, dagger, gauge_transform, random_field
from tests.reference.flow import instanton

LATTICE = Lattice(2, 4, 2, 4)
RHO, MASSES = 1.4, (0.0, 0.08, 0.6)
TOLERANCE = 1e-10
PHASES = [1, 1, np.exp(0.5j), -1]
SHAPE = (*LATTICE.extents[::-1], 4, 2)


@pytest.fixture(scope="module")
def links():
    return random_field(LATTICE.extents, "su2", np.random.default_rng(5))


@pytest.fixture(scope="module")
def kernel(links):
    return reference.kernel(links, RHO, PHASES)


@pytest.fixture(scope="module")
def massless(kernel):
    return reference.overlap(kernel, RHO, 2)


def on_one_thread(links):
    """A field on a GPU, or a single thread, which is fastest on few sites."""
    return field_of(links, open_device(threads=1))


def operator_on(links, masses=MASSES, devices=None, **options):
    field = field_of(links, devices or open_device(threads=1))
    chosen = {"rho": RHO, "accuracy": 1e-11, "modes": 8, "boundary": PHASES, **options}
    return OPERATORS["overlap"](field, masses, **chosen)


@pytest.fixture(scope="module")
def operator(links):
    return operator_on(links)


@pytest.fixture(scope="module")
def accurate(operator):
    """The operator with an error of 1e-11, which tests do not change."""
    return operator.overlap


def largest_error(operator, exact, rng):
    """The largest norm of the error for some random vectors, divided by theirs."""
    psi = rng.normal(size=(6, *SHAPE)) + 1j * rng.normal(size=(6, *SHAPE))
    errors = operator.apply(psi).reshape(6, -1) - psi.reshape(6, -1) @ exact.T
    return (np.linalg.norm(errors, axis=1) / np.linalg.norm(psi.reshape(6, -1), axis=1)).max()


@pytest.mark.first_quick
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("accuracy", [1e-2, 1e-5])
def test_the_error_bound_holds(approximation, accuracy, links, massless, rng):
    """The error is below the bound, which is not far above it."""
    options = {"modes": 8, "approximation": approximation}
    operator = Overlap(on_one_thread(links), RHO, 0.0, PHASES, accuracy, **options)
    error = largest_error(operator, massless, rng)
    assert error <= operator.error_bound <= RHO * accuracy
    if approximation == "polynomial":
        assert error > operator.error_bound / 5


def test_two_passes_are_the_rational_function_in_less_memory(accurate, rng):
    """The same function within rounding errors, with twice the products and fewer vectors."""
    psi = dirac.random_spinor(LATTICE.extents, 2, rng)
    source = SpinorField.from_numpy(accurate.field, psi)
    device = accurate.field.slabs[0].device
    found, steps, memory = [], [], []
    for kind in ("zolotarev", "double-pass"):
        sign = SignFunction(accurate.kernel, accurate.kernel_modes, 1e-9, kind)
        target, before = source.like(), device.allocated_bytes()
        apply = sign.apply(target, source)
        apply()
        memory.append(device.allocated_bytes() - before)
        found.append(target.to_numpy())
        steps.append(sign.approximation.steps)
        del apply
    assert np.abs(found[0] - found[1]).max() < 1e-12 * np.abs(psi).max()
    assert steps[1] == 2 * steps[0]
    vector = source.like().slabs[0].buffer.nbytes
    poles = sign.approximation.size
    assert (memory[0] - memory[1]) / vector >= 2 * poles + 2


@pytest.mark.parametrize("modes", [0, 4])
def test_any_number_of_modes(modes, links, massless, best_device, rng):
    operator = Overlap(field_of(links, best_device), RHO, 0.0, PHASES, 1e-6, modes)
    assert operator.kernel_modes.number <= modes
    psi = dirac.random_spinor(LATTICE.extents, 2, rng)
    error = np.linalg.norm(operator.apply(psi).ravel() - massless @ psi.ravel())
    assert error < operator.error_bound * np.linalg.norm(psi)


@pytest.mark.slow
def test_su3_with_the_clover_term(best_device, rng):
    links = random_field((4, 2, 2, 2), "su3", rng)
    exact = reference.overlap(reference.kernel(links, 1.2, PHASES, 1.1), 1.2, 3, 0.3)
    operator = Overlap(field_of(links, best_device), 1.2, 1.1, PHASES, 1e-8, 6)
    psi = dirac.random_spinor((4, 2, 2, 2), 3, rng)
    for dagger_, matrix in ((False, exact), (True, exact.conj().T)):
        error = operator.apply(psi, 0.3, dagger_).ravel() - matrix @ psi.ravel()
        assert np.linalg.norm(error) < 1.5e-8 * np.linalg.norm(psi)


def test_residuals_of_modes_enlarge_the_bound(accurate):
    """Projectors with errors kappa add (2 + delta) (kappa_+ + kappa_-)."""
    old = accurate.kernel_modes
    worse = old.residuals.copy()
    worse[0] = 1e-6
    modes = KernelModes(
        old.values, worse, old.vectors, old.edge, old.norm, old.found, old.gap, old.ritz, 0
    )
    kappas = sum(modes.projector_errors)
    assert kappas == pytest.approx(1e-6 / modes.distances[0], rel=1e-3)
    sign = SignFunction(accurate.kernel, modes, 1e-3)
    delta = sign.approximation.error
    assert sign.error_bound == pytest.approx((2 + delta) * kappas + delta, rel=1e-12)
    with pytest.raises(UsageError, match="known with residuals of up to"):
        SignFunction(accurate.kernel, modes, 1e-7)


def test_ginsparg_wilson_sees_a_bad_sign(links):
    rough = Overlap(on_one_thread(links), RHO, 0.0, PHASES, 1e-3, 8)
    squared, relation = rough.ginsparg_wilson()
    assert 1e-5 < squared <= 2.01 * rough.sign.error_bound
    assert 1e-5 < relation <= 2.01 * rough.sign.error_bound


@pytest.mark.slow
def test_solutions_for_several_masses(accurate, kernel, rng):
    masses = (0.5, 0.05, 0.5)
    psi = rng.normal(size=(2, *SHAPE)) + 1j * rng.normal(size=(2, *SHAPE))
    psi[1, ..., 2:, :] = 0  # of one chirality
    source = SpinorField.from_numpy(accurate.field, psi)
    found = accurate.solve_all(source, masses, 1e-9)
    for mass, x, residual in zip(masses, found.solutions, found.residuals, strict=True):
        d = reference.overlap(kernel, RHO, 2, mass)
        for column, b, own in zip(x.to_numpy(), psi, residual, strict=True):
            true = np.linalg.norm(d @ column.ravel() - b.ravel()) / np.linalg.norm(b)
            assert own <= 1e-9
            assert true == pytest.approx(own, abs=2e-9)
    deflated = accurate.solve_all(source, masses, 1e-9, deflated=6)
    for x, other in zip(found.solutions, deflated.solutions, strict=True):
        assert np.abs(x.to_numpy() - other.to_numpy()).max() < 1e-6
    assert (deflated.residuals <= 1e-9).all()
    assert deflated.iterations <= found.iterations
    one = accurate.solve(psi[0], 0.5, 1e-9)
    assert np.abs(one - found.solutions[0].to_numpy()[0]).max() < 1e-7


def reflected(links):
    other = np.array(links[::-1])
    other[..., 3, :, :] = dagger(np.roll(other[..., 3, :, :], -1, axis=0))
    return other


@pytest.mark.slow
@pytest.mark.parametrize("charge", [1, -1])
def test_the_index_of_an_instanton(charge):
    """It is the charge, n_- - n_+ zero modes of both chiralities."""
    links = instanton((4, 4, 4, 4), 1.2, "su2")
    links = links if charge > 0 else reflected(links)
    field = on_one_thread(links)
    found = Overlap(field, RHO, accuracy=1e-4, modes=6).spectrum(1)
    assert found.index == charge
    assert found.chiralities.tolist()[0] == -charge
    assert found.values[0] == 0 < found.values[1]


@pytest.mark.slow
def test_links_in_single_precision(links, rng):
    """They are taken as they are, and all is computed in double precision."""
    field = field_of(links, precision="single")
    rounded = reference.overlap(reference.kernel(field.to_numpy(), RHO, PHASES), RHO, 2)
    operator = Overlap(field, RHO, 0.0, PHASES, 1e-6, 4)
    psi = dirac.random_spinor(LATTICE.extents, 2, rng)
    error = np.linalg.norm(operator.apply(psi).ravel() - rounded @ psi.ravel())
    assert error < 2 * operator.error_bound * np.linalg.norm(psi)


def test_gamma_5_hermiticity_and_ginsparg_wilson(accurate, rng):
    """D^dagger = gamma_5 D gamma_5, and gamma_5 D + D gamma_5 = D gamma_5 D / rho to 1e-10."""
    psi, chi = (rng.normal(size=SHAPE) + 1j * rng.normal(size=SHAPE) for _ in range(2))

    def five(x):
        return dirac.spin(dirac.GAMMA5, x)

    d = accurate.apply
    scale = np.linalg.norm(psi)
    assert np.linalg.norm(d(psi, 0.2, True) - five(d(five(psi), 0.2))) < 1e-13 * scale
    assert abs(np.vdot(chi, d(psi)) - np.vdot(d(chi, dagger=True), psi)) < 1e-12 * scale**2
    relation = five(d(psi)) + d(five(psi)) - d(five(d(psi))) / RHO
    assert np.linalg.norm(relation) < 2e-10 * scale
    found = accurate.ginsparg_wilson()
    assert 0 < max(found) < 2e-10


def test_gauge_covariance(links, accurate, best_device, rng):
    """D of transformed links is the transformed D."""
    turns = random_field(LATTICE.extents, "su2", rng)[..., 0, :, :]
    other = Overlap(
        field_of(gauge_transform(links, turns), best_device), RHO, 0.0, PHASES, 1e-10, 8
    )
    psi = rng.normal(size=SHAPE) + 1j * rng.normal(size=SHAPE)

    def turned(x):
        return np.einsum("...ab,...sb->...sa", turns, x)

    difference = other.apply(turned(psi)) - turned(accurate.apply(psi))
    assert np.linalg.norm(difference) < 5e-10 * np.linalg.norm(psi)


def test_the_spectrum_of_free_quarks(best_device, rng):
    """On cold links, eigenvalues lie on a circle, and those of momenta are known.

    With s^2 = sum of sin^2 p and b = sum of (1 - cos p) - rho, H^2 is s^2 + b^2, and the
    eigenvalues of D are rho (1 + (b + i s) / sqrt(s^2 + b^2)).
    """
    links = cold_field(LATTICE.extents, "su2")
    operator = Overlap(field_of(links, best_device), RHO, 0.0, [1, 1, 1, -1], 1e-9, 0)
    momenta = [
        2 * np.pi * (np.arange(n) + 0.5 * (i == 3)) / n for i, n in enumerate(LATTICE.extents)
    ]
    p = np.stack(np.meshgrid(*momenta, indexing="ij")).reshape(4, -1)
    s2, b = (np.sin(p) ** 2).sum(axis=0), (1 - np.cos(p)).sum(axis=0) - RHO
    expected = np.sort(RHO * np.sqrt(2 + 2 * b / np.sqrt(s2 + b**2)))
    t, z, y, x = np.meshgrid(*(np.arange(n) for n in LATTICE.extents[::-1]), indexing="ij")
    for n in rng.choice(p.shape[1], 3, replace=False):
        wave = np.exp(1j * sum(a * c for a, c in zip(p[:, n], (x, y, z, t), strict=True)))
        psi = wave[..., None, None] * (rng.normal(size=(4, 2)) + 1j * rng.normal(size=(4, 2)))
        image = operator.apply(psi)
        ratio = np.linalg.norm(image) / np.linalg.norm(psi)
        assert ratio == pytest.approx(RHO * np.sqrt(2 + 2 * b[n] / np.sqrt(s2[n] + b[n] ** 2)))
        again = operator.apply(image)
        real = RHO * (1 + b[n] / np.sqrt(s2[n] + b[n] ** 2))
        # (D - real)^2 = -imaginary^2 for both eigenvalues
        rest = again - 2 * real * image + ratio**2 * psi
        assert np.linalg.norm(rest) < 1e-7 * np.linalg.norm(psi)
    assert expected[0] > 0


@pytest.mark.slow
def test_low_modes_shorten_solutions(rng):
    """With a zero mode and a light quark, most iterations are for that mode."""
    links = instanton((4, 4, 4, 4), 1.2, "su2")
    field = field_of(links, open_device(threads=1))
    operator = Overlap(field, RHO, accuracy=1e-6, modes=6)
    psi = dirac.random_spinor((4, 4, 4, 4), 2, rng)
    psi[..., :2, :] = 0  # the chirality of the zero mode
    source = SpinorField.from_numpy(field, psi)
    found, deflated = (operator.solve_all(source, (0.02,), 1e-5, deflated=n) for n in (0, 2))
    difference = found.solutions[0].to_numpy() - deflated.solutions[0].to_numpy()
    # errors of the size of the residual, divided by the mass
    assert np.linalg.norm(difference) < 2 * 1e-5 / 0.02 * np.linalg.norm(psi)
    assert deflated.residuals.max() <= 1e-5
    assert deflated.iterations < 0.7 * found.iterations  # 23 and 42


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
    parts = {}
    for site in (0, 21):
        source = point(operator.field, site)
        (quark,) = operator.overlap.propagators(source, MASSES[1:2], TOLERANCE)
        parts[site] = quark.columns.to_numpy().reshape(8, -1).T
    forth, back = parts[0][8 * 21 : 8 * 22], parts[21][:8]
    five = np.diag(np.repeat([1, 1, -1, -1], 2))
    assert np.abs(back - five @ forth.conj().T @ five).max() < 1e-8 * np.abs(back).max()

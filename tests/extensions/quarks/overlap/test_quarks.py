"""The sign function and overlap quarks, against dense matrices."""

import numpy as np
import pytest

from gauge_mc import open_device
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.overlap import Overlap
from gauge_mc.extensions.quarks.overlap.sign_function import (
    APPROXIMATIONS,
    KernelModes,
    SignFunction,
)
from gauge_mc.extensions.quarks.spectroscopy.contractions import meson, spin_tensor
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.fields.field import Field
from tests.domain.conftest import open_group
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import dirac
from tests.extensions.quarks.reference import overlap as reference
from tests.reference.fields import cold_field, dagger, gauge_transform, random_field
from tests.reference.flow import instanton

LATTICE = Lattice(4, 2, 4, 2)
RHO = 1.4
PHASES = [1, 1, np.exp(0.5j), -1]
SHAPE = (*LATTICE.extents[::-1], 4, 2)


@pytest.fixture(scope="module")
def links():
    return random_field(LATTICE.extents, "su2", np.random.default_rng(3))


@pytest.fixture(scope="module")
def kernel(links):
    return reference.kernel(links, RHO, PHASES)


@pytest.fixture(scope="module")
def massless(kernel):
    return reference.overlap(kernel, RHO, 2)


def on_one_thread(links):
    """A field on a GPU, or a single thread, which is fastest on few sites."""
    return field_of(links, open_device(threads=1))


@pytest.fixture(scope="module")
def accurate(links):
    """The operator with an error of 1e-10, which tests do not change."""
    return Overlap(on_one_thread(links), RHO, boundary=PHASES, accuracy=1e-10, modes=8)


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
def test_propagators_without_the_contact_term(accurate, kernel):
    """(1 - D / 2 rho) D(m)^-1 anticommutes with gamma_5 but for terms of the order m."""
    mass, size = 0.1, 8
    psi = np.zeros((size, *SHAPE), complex)
    for n in range(size):
        psi[n, 0, 0, 0, 0, n // 2, n % 2] = 1
    source = SpinorField.from_numpy(accurate.field, psi)
    (quark,) = accurate.propagators(source, [mass], 1e-10)
    d = reference.overlap(kernel, RHO, 2)
    one = np.eye(len(d))
    exact = (one - d / (2 * RHO)) @ np.linalg.inv(reference.overlap(kernel, RHO, 2, mass))
    found = quark.columns.to_numpy().reshape(size, -1)
    assert np.abs(found.T - exact[:, :size]).max() < 1e-7
    # D_c = D / (1 - D / 2 rho) anticommutes with gamma_5, and the propagator is 1 / (D_c + m).
    inverse, five = np.linalg.inv(exact), reference.gamma5(len(d), 2)
    chiral = inverse - mass * one
    scale = np.abs(chiral).max()
    assert np.abs(five @ chiral + chiral @ five).max() < 1e-9 * scale
    pion = meson(spin_tensor(quark, quark), dirac.GAMMA5, dirac.GAMMA5)
    assert pion[0].real == pytest.approx((np.abs(found) ** 2).reshape(8, 2, -1)[:, 0].sum())


@pytest.mark.slow
def test_same_bytes_on_several_slabs(rng):
    lattice, found = Lattice(4, 2, 4, 4), []
    links = random_field(lattice.extents, "su2", rng)
    psi = dirac.random_spinor(lattice.extents, 2, rng)
    for division in ((4,), (2, 2)):
        devices = open_group("cpu-16", division)
        field = Field.from_slices(lattice, "su2", links, "double", devices)
        operator = Overlap(field, RHO, 0.0, PHASES, 1e-4, 4)
        found.append(operator.apply(psi, 0.1))
        devices.close()
    assert np.array_equal(*found)


@pytest.mark.slow
def test_low_modes_shorten_solutions(rng):
    """With a zero mode and a light quark, most iterations are for that mode."""
    links = instanton((4, 4, 4, 4), 1.2, "su2")
    field = Field.from_slices(Lattice(4, 4, 4, 4), "su2", links, "double", open_device(threads=1))
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

"""The gamma matrices: algebra, basis and signs."""

import numpy as np
import pytest

from gauge_mc.extensions.quarks.vectors.basis import GAMMA, GAMMA_5, SIXTEEN, adjoint


def test_the_basis_is_that_of_degrand_and_rossi():
    """Its formulas with Pauli matrices: gamma_i = -sigma_2 x sigma_i for i = x, z, and so on."""
    s = [np.array(m) for m in ([[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]])]
    off = np.array([[0, 1j], [-1j, 0]])
    np.testing.assert_array_equal(GAMMA[0], np.kron(off, s[0]))
    np.testing.assert_array_equal(GAMMA[1], -np.kron(off, s[1]))
    np.testing.assert_array_equal(GAMMA[2], np.kron(off, s[2]))
    np.testing.assert_array_equal(GAMMA[3], np.kron(s[0], np.eye(2)))


def test_the_sixteen_are_a_basis_and_spell_their_products():
    matrices = [one.ravel() for one in SIXTEEN.values()]
    assert len(matrices) == 16
    overlaps = np.array([[a.conj() @ b for b in matrices] for a in matrices])
    np.testing.assert_array_equal(np.abs(overlaps), 4 * np.eye(16))
    letters = {**dict(zip("xyzt", GAMMA, strict=True)), "5": GAMMA_5}
    for name, one in SIXTEEN.items():
        product = np.eye(4)
        for letter in name.replace("unit", "").replace("g", ""):
            product = product @ letters[letter]
        np.testing.assert_array_equal(one, product)


def test_adjoint(rng):
    """(q̄ Gamma q')^dagger with q̄ = q^dagger gamma_t, for numbers in place of fields."""
    q, other = rng.normal(size=(2, 4)) + 1j * rng.normal(size=(2, 4))
    for one in SIXTEEN.values():
        product = q.conj() @ GAMMA[3] @ one @ other
        assert other.conj() @ GAMMA[3] @ adjoint(one) @ q == pytest.approx(product.conj())

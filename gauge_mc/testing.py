"""Tools for tests of other packages: links, plaquettes in NumPy, forces, and bytes on slabs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gauge_mc.actions import Coupling
from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.checks import check_term
from gauge_mc.updates.sweep import ONE_REPLICA
from gauge_mc.updates.terms import NamedMonomial, monomial_terms

LATTICE = Lattice(4, 6, 8, 6)
"""A lattice whose extents differ, so that directions that are mixed up are noticed."""


def random_field(
    group: str = "su3", slabs: int = 2, lattice: Lattice = LATTICE, seed: int = 1
) -> Field:
    """Return random links in double precision on some slabs of the CPU, the same for any number."""
    return Field.hot(lattice, group, "double", open_device_group(f"cpu:{slabs}"), seed)


def plaquettes(links: NDArray[Any], mu: int, nu: int) -> NDArray[Any]:
    """Return U_mu(x) U_nu(x + mu) U_mu(x + nu)^dagger U_nu(x)^dagger in NumPy for every site.

    Parameters
    ----------
    links : ndarray of complex, shape (T, Z, Y, X, 4, N, N)
        The links, as of `Field.to_numpy`.
    mu, nu : int
        Two directions, of 0 to 3 for x, y, z and t.
    """
    u, v = links[..., mu, :, :], links[..., nu, :, :]
    ahead, above = np.roll(v, -1, axis=3 - mu), np.roll(u, -1, axis=3 - nu)
    product: NDArray[Any] = u @ ahead @ above.conj().swapaxes(-1, -2) @ v.conj().swapaxes(-1, -2)
    return product


def check_force(monomial: str, group: str = "su3") -> None:
    """Check a monomial as a run does: its force is the derivative of its value, also on two slabs.

    Parameters
    ----------
    monomial : str
        Its name and options, as of ``--monomials``.
    group : str
        The gauge group.

    Raises
    ------
    GaugeError
        If it contradicts itself.
    """
    field = random_field(group, slabs=1)
    for term in monomial_terms(NamedMonomial.several(monomial), 1):
        check_term(field, term, Coupling.of(2.0), ONE_REPLICA, Random.for_field(field))


def check_slabs(measure: Callable[[Field], ArrayLike], group: str = "su3") -> None:
    """Check that a function of a field returns the same bits on one, two and three slabs.

    Raises
    ------
    AssertionError
        If it does not, as if halos were not exchanged.
    """
    reference, *divided = (np.asarray(measure(random_field(group, slabs))) for slabs in (1, 2, 3))
    for values in divided:
        np.testing.assert_array_equal(values, reference)

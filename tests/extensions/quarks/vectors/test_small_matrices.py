"""Eigenvectors of small matrices, and the number of threads of the library."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gauge_mc.extensions.quarks.modes.low_modes import eigenvectors


def threads():
    """Return the numbers of threads of BLAS."""
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def test_eigenvectors(rng):
    m = rng.normal(size=(30, 30)) + 1j * rng.normal(size=(30, 30))
    m = m + m.conj().T
    values, vectors = eigenvectors(m)
    assert (np.diff(values) >= 0).all()
    assert np.abs(m @ vectors - vectors * values).max() < 1e-12


@pytest.mark.parametrize("fails", [False, True])
def test_one_thread_is_used_and_the_number_restored(monkeypatch, fails):
    inside = []

    def eigh(matrix):
        inside.extend(threads())
        if fails:
            raise np.linalg.LinAlgError
        return np.ones(1), matrix

    monkeypatch.setattr(np.linalg, "eigh", eigh)
    with threadpool_limits(2, "blas"):
        before = threads()  # 1 if there is only one core
        if fails:
            with pytest.raises(np.linalg.LinAlgError):
                eigenvectors(np.eye(1))
        else:
            eigenvectors(np.eye(1))
        assert threads() == before
    assert set(inside) == ({1} if before else set())

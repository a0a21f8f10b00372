"""Eigenvectors of small matrices, and the number of threads of the library."""

import numpy as np
import pytest

from gauge_mc.quarks import small_matrices as module
from gauge_mc.quarks.small_matrices import eigenvectors, one_thread


def test_eigenvectors(rng):
    m = rng.normal(size=(30, 30)) + 1j * rng.normal(size=(30, 30))
    m = m + m.conj().T
    values, vectors = eigenvectors(m)
    assert (np.diff(values) >= 0).all()
    assert np.abs(m @ vectors - vectors * values).max() < 1e-12


def test_the_number_of_threads_is_restored():
    """Also after an error; inside it is 1."""
    libraries = module._thread_numbers()
    if not libraries:
        pytest.skip("NumPy does not call an OpenBLAS with known names")
    get, set_ = libraries[0]
    old = get()
    try:
        set_(2)
        before = get()  # 1 if there is only one core
        inside = []

        def fail():
            with one_thread():
                inside.append(get())
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert inside == [1]
        assert get() == before
    finally:
        set_(old)


def test_without_a_list_of_files(monkeypatch, tmp_path, rng):
    monkeypatch.setattr(module, "MAPPED_FILES", tmp_path / "maps")
    module._thread_numbers.cache_clear()
    try:
        assert module._thread_numbers() == ()
        assert eigenvectors(np.diag([2.0, 1.0]))[0] == pytest.approx([1, 2])
    finally:
        module._thread_numbers.cache_clear()

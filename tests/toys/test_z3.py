"""Noise of the third roots of unity: its values, and that each is as frequent as the others."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field

noise = pytest.importorskip("gauge_mc.extensions.quarks.noise")
spinors = pytest.importorskip("gauge_mc.extensions.quarks.vectors")


def test_its_values_are_equally_frequent():
    field = Field.cold(Lattice(4, 4, 4, 8), "su2", "double")
    source = noise.NoiseSource("z3", 0, 1, 0, tuple(noise.source_parts((), 2, 8)))
    vectors = spinors.SpinorField.empty(field, "double", 2)
    source.fill(vectors, field)
    values, counts = np.unique(vectors.to_numpy().sum(axis=0).round(12), return_counts=True)
    assert len(values) == 3
    np.testing.assert_allclose(values**3, 1, atol=1e-11)
    expected = counts.sum() / 3
    assert ((counts - expected) ** 2 / expected).sum() < 13.8  # probability 0.001

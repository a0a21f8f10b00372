"""The kind of NumPy's arithmetic, which kernels repeat."""

from dataclasses import replace

import numpy as np
import pytest

from gauge_mc.extensions.quarks.vectors import basis as arithmetic
from gauge_mc.extensions.quarks.vectors.basis import STRICT, USUAL, in_kernels


def fused(a, b):
    """The product of complex numbers, with one rounding of a product and a sum."""
    return np.array([arithmetic._fused(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)])


@pytest.mark.parametrize(
    ("multiply", "kind"),
    [(STRICT.multiply, "SMITH"), (fused, "SMITH_FUSED"), (lambda a, b: a * b * 1.5, None)],
)
def test_products_tell_the_kind(multiply, kind):
    assert in_kernels(replace(USUAL, multiply=multiply)) == kind
    assert in_kernels(STRICT) == "PLAIN"


def test_quotients_that_are_unknown_have_no_kind():
    assert in_kernels(replace(USUAL, divide=STRICT.divide)) is None


def test_numpy_is_known():
    """On the processors on which the tests run."""
    assert in_kernels(USUAL) in ("SMITH", "SMITH_FUSED")

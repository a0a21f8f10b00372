"""A source on a row of sites, compared with an array made by hand."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field

sources = pytest.importorskip("gauge_mc.extensions.quarks.sources")
spinors = pytest.importorskip("gauge_mc.extensions.quarks.vectors")

LATTICE = Lattice(4, 4, 4, 6)


def test_it_is_1_for_one_spin_and_colour_of_each_vector():
    field = Field.cold(LATTICE, "su2", "double")
    vectors = spinors.SpinorField.empty(field, "double", 8)
    source = sources.parse_source("row:1,2,5", LATTICE)
    source.fill(vectors, field)
    expected = np.zeros((8, 6, 4, 4, 4, 8))
    expected[:, 5, 2, 1] = np.eye(8)[:, None]
    np.testing.assert_array_equal(vectors.to_numpy(), expected.reshape(8, 6, 4, 4, 4, 4, 2))
    assert source.label == "row@1;2;5"


@pytest.mark.parametrize("text", ["row:1,2", "row:1,2,6", "row:a,b,c"])
def test_places_that_do_not_exist_are_refused(text):
    with pytest.raises(UsageError):
        sources.parse_source(text, LATTICE)

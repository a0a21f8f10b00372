"""Tools for tests of other packages notice what they are for."""

import numpy as np
import pytest

from gauge_mc.testing import check_slabs, plaquettes, random_field
from tests.reference.observables import plaquette_matrix


def test_plaquettes_are_those_of_the_reference():
    links = random_field("su2", slabs=1).to_numpy()
    for mu, nu in [(0, 1), (3, 2)]:
        np.testing.assert_array_equal(plaquettes(links, mu, nu), plaquette_matrix(links, mu, nu))


def test_what_depends_on_the_division_is_noticed():
    check_slabs(lambda field: field.to_numpy(), "su2")
    with pytest.raises(AssertionError):
        check_slabs(lambda field: field.slabs[0].layout.slices, "su2")

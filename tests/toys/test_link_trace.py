"""The link trace, compared with NumPy."""

import pytest

from gauge_mc.observables import OBSERVABLES
from gauge_mc.testing import check_slabs, random_field


def measured(field):
    ((found,),) = OBSERVABLES["link-trace"]().measurer(field)(field)
    return found


def test_it_is_the_average_over_all_links():
    field = random_field()
    expected = field.to_numpy().trace(axis1=-2, axis2=-1).real.mean() / 3
    assert measured(field) == pytest.approx(expected, rel=1e-12)
    check_slabs(measured)

"""Fits of hadrons in general."""

import pytest

from gauge_mc.extensions.quarks.spectroscopy.correlators import (
    BARYON_COLUMNS,
    MESON_COLUMNS,
)
from gauge_mc.fits import FITS


@pytest.mark.parametrize(
    ("name", "columns"), [("baryons", BARYON_COLUMNS), ("mesons", MESON_COLUMNS)]
)
def test_a_fit_states_its_file_and_columns(name, columns):
    assert (FITS[name].file, FITS[name].columns) == (f"{name}.json", columns)

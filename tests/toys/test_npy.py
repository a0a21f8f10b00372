"""Configurations in the file format of NumPy, written and read by NumPy."""

import numpy as np
import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from tests.reference import fields as reference

LATTICE = Lattice(4, 6, 8, 4)


@pytest.fixture
def links(rng):
    return reference.random_field(LATTICE.extents, "su2", rng)


def test_what_is_written_is_read(links, tmp_path):
    write_configuration(tmp_path / "some", links, LATTICE, "su2", "double", "npy")
    assert (np.load(tmp_path / "some") == links).all()
    found = open_configuration(tmp_path / "some")
    assert found.header.format == "npy"
    assert (np.stack(list(found.slices())) == links).all()


def test_a_file_made_by_hand_is_read(links, tmp_path):
    with (tmp_path / "some").open("wb") as file:
        np.save(file, links)
    assert (np.stack(list(open_configuration(tmp_path / "some").slices())) == links).all()


def test_a_file_that_is_cut_off_is_refused(links, tmp_path):
    write_configuration(tmp_path / "some", links, LATTICE, "su2", "double", "npy")
    whole = (tmp_path / "some").read_bytes()
    (tmp_path / "some").write_bytes(whole[:-8])
    with pytest.raises(GaugeError, match="some"):
        open_configuration(tmp_path / "some")

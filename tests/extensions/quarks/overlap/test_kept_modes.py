"""Modes that are read from files count only if they are eigenvectors of the operator at hand."""

import dataclasses
import shutil

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks import overlap as kept_modes
from gauge_mc.extensions.quarks.modes import LowModes
from gauge_mc.extensions.quarks.modes.chirality import HermitianOperator
from gauge_mc.extensions.quarks.modes.mode_files import ModePath, kept_low_modes
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.overlap import kept_kernel_modes
from gauge_mc.extensions.quarks.vectors import SpinorField
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import overlap as reference
from tests.reference.fields import random_field

LATTICE = Lattice(2, 4, 2, 2)
KAPPA, RHO = 0.2, 1.5
NUMBER = 3


class SearchedError(Exception):
    """The modes of the file were not taken."""


@pytest.fixture
def kept(tmp_path, monkeypatch):
    return Kept(tmp_path, monkeypatch)


class Kept:
    """Exact modes of Q, from a dense matrix, in a file."""

    def __init__(self, folder, monkeypatch):
        rng = np.random.default_rng(3)
        links, other = (random_field(LATTICE.extents, "su2", rng) for _ in range(2))
        self.field, self.other = field_of(links), field_of(other)
        self.operator = HermitianOperator(Wilson(self.field, KAPPA).prepared())
        q = 2 * KAPPA * reference.kernel(links, RHO, [1, 1, 1, -1])
        values, vectors = np.linalg.eigh(q)
        order = np.argsort(np.abs(values))[: NUMBER + 1]
        self.values, self.vectors = values[order], vectors[:, order].T
        self.path = ModePath(folder, {"modes": "kernel", "kappa": f"{KAPPA}"})
        monkeypatch.setattr(kept_modes, "kernel_modes", self._search)

    def _search(self, operator, number):
        raise SearchedError

    def write(self, values=None, vectors=None, residuals=1e-14, path=None):
        """Write a file that is whole, with these modes instead of the right ones."""
        values = self.values[:NUMBER] if values is None else values
        vectors = self.vectors[:NUMBER] if vectors is None else vectors
        count = len(values)
        numbers = {"values": list(values), "residuals": [residuals] * count, "found": list(values)}
        numbers |= {"edge": [0.5], "norm": [3.0], "gap": [1.1], "ritz": [0.5]}
        shape = (len(vectors), *LATTICE.extents[::-1], 4, 2)
        field = SpinorField.from_numpy(self.field, vectors.reshape(shape)) if len(vectors) else None
        (path or self.path).write(self.field, numbers, field)

    def read(self):
        return kept_kernel_modes(self.operator, NUMBER, self.path)

    def refused(self, capsys):
        """Whether the modes are not taken, which is announced."""
        with pytest.raises(SearchedError):
            self.read()
        return capsys.readouterr().err


def test_true_modes_are_taken(kept, capsys):
    kept.write()
    found = kept.read()
    assert found.applications == 0
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(found.values, kept.values[:NUMBER])
    assert found.residuals.max() < 1e-13


def test_a_residual_is_never_taken_for_smaller_than_it_is(kept):
    """Vectors with errors that their file states are taken with their true residuals."""
    worse = kept.vectors[:NUMBER] + 1e-7 * kept.vectors[NUMBER]
    worse[1:] = kept.vectors[1:NUMBER]
    worse[0] /= np.linalg.norm(worse[0])
    distance = 1e-7 * abs(kept.values[NUMBER] - kept.values[0])
    kept.write(vectors=worse, residuals=0.9 * distance)
    assert kept.read().residuals[0] == pytest.approx(distance, rel=1e-5)
    assert kept.read().residuals[1] == 0.9 * distance


def test_what_is_not_the_eigenvectors_is_refused(kept, capsys):
    """Other vectors or values, the same vector twice, and a wrong number or size of vectors."""
    vectors = kept.vectors[:NUMBER]
    mixed = np.array(vectors)
    mixed[1] += 1e-6 * kept.vectors[NUMBER]
    mixed[1] /= np.linalg.norm(mixed[1])
    twice = [0, 1, 1]
    for how in (
        {"vectors": mixed},
        {"values": kept.values[:NUMBER] * [1, 1, 1 + 1e-6]},
        {"values": kept.values[twice], "vectors": kept.vectors[twice]},
        {"vectors": vectors * (1 + 1e-6)},
        {"vectors": vectors[:-1]},
        {"vectors": vectors[:0]},
    ):
        kept.write(**how)
        assert "are not eigenvectors with the residuals that they had" in kept.refused(capsys)


def test_modes_of_other_links_or_parameters_are_refused(kept, capsys):
    """Under the right name, as after a file was renamed."""
    right, _ = kept.path.path(kept.field)
    metadata = ModePath(kept.path.folder, {"modes": "kernel", "kappa": "0.21"})
    kept.write(path=metadata)
    shutil.move(metadata.path(kept.field)[0], right)
    assert "of other links or of another operator" in kept.refused(capsys)
    kept.path.write(kept.other, {"values": [], "residuals": []}, None)
    shutil.move(kept.path.path(kept.other)[0], right)
    assert "of other links or of another operator" in kept.refused(capsys)


def test_modes_of_a_positive_operator_are_checked_too(kept, capsys):
    kept.write()

    def search():
        raise SearchedError

    found = kept_low_modes(kept.operator, kept.field, kept.path, search)
    np.testing.assert_array_equal(found.values, kept.values[:NUMBER])
    kept.write(kept.values[:NUMBER] + 1e-6)
    with pytest.raises(SearchedError):
        kept_low_modes(kept.operator, kept.field, kept.path, search)
    assert "are not eigenvectors" in capsys.readouterr().err


def test_the_number_of_applications_of_a_search_is_kept(kept, monkeypatch, tmp_path):
    """Tables state it. Before, rows after a kill, for which modes were read, had another one."""
    kept.write()
    modes = dataclasses.replace(kept.read(), applications=11)
    monkeypatch.setattr(kept_modes, "kernel_modes", lambda *_: modes)
    path = ModePath(tmp_path / "again", {"modes": "kernel", "kappa": f"{KAPPA}"})
    for _ in ("computed", "read"):
        assert kept_kernel_modes(kept.operator, NUMBER, path).applications == 11
    low = LowModes(modes.values, modes.residuals, modes.vectors, 7)
    path = ModePath(tmp_path / "low", {"modes": "low", "kappa": f"{KAPPA}"})
    for _ in ("computed", "read"):
        found = kept_low_modes(kept.operator, kept.field, path, lambda: low)
        assert found.applications == 7

"""Files of Hadrons against its formula and ours."""

import h5py
import numpy as np
import pytest

from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.spectroscopy.observables import name_of, sign_of
from gauge_mc.extensions.quarks.vectors.basis import GAMMA, GAMMA_5, SIXTEEN
from gauge_mc.files.table import read_table
from gauge_mc.fits import fit

T, MASS = 16, {"Gamma5": 0.4, "GammaX": 0.6}


def write(folder, numbers):
    """Files as Grid's HDF5 writer makes them."""
    rng = np.random.default_rng(2)
    for number in numbers:
        with h5py.File(folder / f"pt_ll.{number}.h5", "w") as file:
            for n, (matrix, mass) in enumerate(MASS.items()):
                entry = file.create_group(f"meson/meson_{n}")
                entry.attrs["gamma_snk"] = np.array([matrix.encode()])
                entry.attrs["gamma_src"] = np.array([matrix], h5py.string_dtype("ascii"))
                t = np.arange(T)
                noise = 1 + 0.01 * rng.normal(size=T)
                data = np.zeros(T, [("re", "<f8"), ("im", "<f8")])
                data["re"] = (np.exp(-mass * t) + np.exp(-mass * (T - t))) * noise
                data["im"] = number
                entry["corr"] = data
    return folder / f"pt_ll.{numbers[0]}.h5"


def test_masses_are_found(tmp_path):
    path = write(tmp_path, [*range(900, 1400, 10)])
    found = fit("mesons", path)
    values = {one.name: one for one in found.result}
    assert len(values) == 2
    for one, mass in zip(found.result, MASS.values(), strict=True):
        assert abs(one.value - mass) < 4 * one.error < 0.02
    table = read_table(path)
    assert np.unique(table["sweep"]).tolist() == [*range(900, 1400, 10)]
    assert (table["im"] == table["sweep"]).all()


def test_incomplete_files_are_refused(tmp_path):
    path = write(tmp_path, [*range(1, 13)])
    other = tmp_path / "pt_ll.9.h5"
    other.write_bytes(other.read_bytes()[:3000])
    with pytest.raises(GaugeError, match=r"its series, is of Hadrons, but cannot be read"):
        fit("mesons", path)


def test_matrices_are_those_of_grid():
    letters = dict(zip("XYZT", GAMMA, strict=True))
    known = {"Identity": np.eye(4), "Gamma5": GAMMA_5}
    known |= {f"Gamma{a}": one for a, one in letters.items()}
    known |= {f"Gamma{a}Gamma5": one @ GAMMA_5 for a, one in letters.items()}
    for pair in ("XY", "XZ", "XT", "YZ", "YT", "ZT"):
        a, b = (letters[one] for one in pair)
        known[f"Sigma{pair}"] = (a @ b - b @ a) / 2
    assert {name_of(one) for one in known} == {*SIXTEEN}
    for name, matrix in known.items():
        assert np.array_equal(SIXTEEN[name_of(name)], matrix)


@pytest.mark.parametrize("source", SIXTEEN)
def test_signs(source):
    """<q̄1 sink q2 [q̄1 source q2]†> by Wick's theorem, and tr[γ5 sink S source† γ5 S†]."""
    rng = np.random.default_rng(1)
    s = rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4))
    back = GAMMA_5 @ s.conj().T @ GAMMA_5
    matrix = SIXTEEN[source]
    for sink in SIXTEEN.values():
        ours = -np.trace(sink @ s @ GAMMA[3] @ matrix.conj().T @ GAMMA[3] @ back)
        theirs = np.trace(GAMMA_5 @ sink @ s @ matrix.conj().T @ GAMMA_5 @ s.conj().T)
        assert ours == pytest.approx(sign_of(source) * theirs)

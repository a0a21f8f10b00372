"""Correlators of mesons that Hadrons has measured, as tables of `MESONS`."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from gauge_mc.extensions.quarks.spectroscopy.correlators import MESONS
from gauge_mc.extensions.quarks.spectroscopy.observables import Mesons
from gauge_mc.extensions.quarks.vectors.basis import SIXTEEN, adjoint
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.foreign import FOREIGN_SERIES, ForeignSeries, ForeignTable
from gauge_mc.libraries import load

HDF5 = b"\x89HDF\r\n\x1a\n"
"""First bytes of HDF5 files."""


def name_of(matrix: str) -> str:
    """Return our name of one of Grid's matrices, such as ``gxg5`` for ``GammaXGamma5``.

    Raises
    ------
    KeyError
        If it is not one of the sixteen, such as a negative one.
    """
    short = matrix.replace("Gamma", "g").replace("Sigma", "").replace("Identity", "unit").lower()
    name = "g" + "g".join(short) if matrix.startswith("Sigma") else short
    return {name: name for name in SIXTEEN}[name]


def sign_of(source: str) -> int:
    """Return the sign of our correlator relative to Hadrons'.

    Ours is - tr [sink S (gamma_t source^dagger gamma_t) gamma_5 S^dagger gamma_5], and Hadrons' is
    tr [gamma_5 sink S source^dagger gamma_5 S^dagger] (``MContraction/Meson.hpp``).
    """
    matrix = SIXTEEN[source]
    return -int(np.sign(np.vdot(matrix.conj().T, adjoint(matrix)).real))


class HadronsMesons(ForeignSeries):
    """HDF5 files of the module MContraction::Meson, one for each configuration.

    They state neither the quarks nor the source and the momentum, which are taken to be at t = 0
    and zero.
    """

    name: ClassVar[str] = "hadrons-mesons"
    program: ClassVar[str] = "Hadrons"
    separate: ClassVar[bool] = True

    def recognises(self, data: bytes) -> bool:
        """Return whether it is an HDF5 file with names of Hadrons; see `ForeignSeries`."""
        return data.startswith(HDF5) and b"gamma_snk" in data and b"meson_0" in data

    def read(self, files: Mapping[int, bytes], lattice: str) -> ForeignTable:
        """Return the correlators of all files; see `ForeignSeries.read`."""
        h5py = load("h5py", "Files of Hadrons need")
        labels, values = [], []
        for number, data in files.items():
            with h5py.File(io.BytesIO(data)) as file:
                for entry in file["meson"].values():
                    stated = (entry.attrs[key] for key in ("gamma_src", "gamma_snk"))
                    names = [name_of(np.ravel(one).astype("S")[0].decode()) for one in stated]
                    labels.append((number, *names))
                    correlator = entry["corr"][:].view(np.complex128).ravel()
                    values.append(sign_of(names[0]) * correlator)
        flat, extent = np.concatenate(values), len(values[0])
        columns = dict.fromkeys((SWEEP, *MESONS.names), np.zeros(flat.size, np.int64))
        columns |= dict.fromkeys(("kappa1", "kappa2"), np.full(flat.size, np.inf))  # not stated
        label_columns = (SWEEP, "gamma_source", "gamma_sink")
        columns |= {
            name: np.repeat(column, extent)
            for name, column in zip(label_columns, zip(*labels, strict=True), strict=True)
        }
        columns |= {"source": np.full(flat.size, "hadrons"), "re": flat.real, "im": flat.imag}
        columns["t"] = np.tile(np.arange(extent), len(values))
        return ForeignTable({"observable": Mesons.name}, columns)


FOREIGN_SERIES.register(HadronsMesons())

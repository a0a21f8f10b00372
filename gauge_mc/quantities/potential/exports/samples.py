"""Samples of V(R) with their covariance matrix, in HDF5."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gauge_mc.analysis.timeseries.bins import bin_length, jackknife
from gauge_mc.exports.hdf5_files.writing import hdf5_file, hdf5_kind, write_array
from gauge_mc.quantities.potential.analysis.plateaus import Plateaus
from gauge_mc.quantities.potential.analysis.static_potential import StaticPotential


def write_samples(path: Path, result: StaticPotential, plateaus: Plateaus) -> None:
    """Write V(R) with its samples and its covariance matrix to an HDF5 file.

    Raises
    ------
    GaugeError
        If h5py is not installed, or the file cannot be written.
    """
    length = bin_length(len(plateaus.series), plateaus.tau_int)
    points = plateaus.points
    content = {
        "path": np.array([one.path for one in points]),
        **{name: np.array([getattr(one, name) for one in points]) for name in POINT_COLUMNS},
        "potential": np.array([one.potential.value for one in points]),
        "error": np.array([one.potential.error for one in points]),
        "covariance": plateaus.covariance,
        "jackknife": jackknife(plateaus.series, length),
        "series": plateaus.series,
        "sweep": plateaus.sweeps,
    }
    metadata = {
        "description": SAMPLES_NOTE,
        "plateau": result.plateau,
        "source": result.source,
        "smearing": ",".join(map(str, result.levels or [result.smearing])),
        "bin": length,
        **result.ensemble,
    }
    with hdf5_file(path, SAMPLES_FILE) as h5:
        h5.attrs.update(metadata)
        for name, values in content.items():
            write_array(h5, name, values)


POINT_COLUMNS = ("steps", "distance", "improved", "t_min", "t_max", "systematic")
"""Attributes of the points that are written to the file of samples."""

SAMPLES_NOTE = (
    "a V(R) in lattice units. series: linearised time series, a row per configuration (sweep). "
    "jackknife: means without each bin of neighbouring configurations. covariance: of potential, "
    "by the Gamma method, to be used as it is."
)

SAMPLES_FILE = hdf5_kind("samples of V(R)", ("description", "plateau"))
"""Kind of the file of samples."""

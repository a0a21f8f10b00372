"""The tables of a run as one file for other tools: HDF5, or pyerrors' JSON."""

from __future__ import annotations

import dataclasses
import importlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc import __version__
from gauge_mc.analysis.loops import paths, select_loops, smearings
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.formats.files import replacing
from gauge_mc.formats.table import TableData, read_table
from gauge_mc.parameters import Parameters
from gauge_mc.run import Run

LEAST = 5
"""Records that an observable of pyerrors must have."""


def export(run: Run, out: Path) -> list[str]:
    """Write the tables of a run to one file, which is replaced if it is there.

    Parameters
    ----------
    run : Run
        The run; one at work is exported as far as it is.
    out : Path
        Ends in ``.h5`` or ``.json.gz``, which chooses the format; see `write_hdf5` and
        `write_pyerrors`.

    Returns
    -------
    list of str
        The names of the tables in the file.

    Raises
    ------
    UsageError
        If there is no run, or `out` ends otherwise.
    GaugeError
        If a table is damaged, there is none, the library is missing, or the file cannot be
        written.
    """
    writers = {".h5": write_hdf5, ".json.gz": write_pyerrors}
    write = next((writers[end] for end in writers if out.name.endswith(end)), None)
    if write is None:
        raise UsageError(f"{out} does not end in {' or '.join(writers)}, which tells the format.")
    parameters = run.read()[0]
    tables = {path.stem: read_table(path) for path in sorted(run.path.glob("*.csv"))}
    if not tables:
        raise GaugeError(f"The run {run.path} has no tables yet: nothing was measured.")
    return write(out, parameters, tables)


def write_hdf5(out: Path, parameters: Parameters, tables: dict[str, TableData]) -> list[str]:
    """Write HDF5: the file's attributes are the parameters.

    Each table is a group with its header as attributes, and its columns, shape (rows,), as data
    sets: int64, float64, or strings.

    Raises
    ------
    GaugeError
        If h5py is missing, or the file cannot be written.
    """
    h5py = _load("h5py", "hdf5")
    with replacing(out) as file, h5py.File(file, "w") as h5:
        h5.attrs.update({"program": f"gauge-mc {__version__}", **parameters.values()})
        for name, table in tables.items():
            group = h5.create_group(name)
            group.attrs.update(table.header)
            for key, column in table.columns.items():
                data = np.char.encode(column, "utf-8") if column.dtype.kind == "U" else column
                group.create_dataset(key, data=data, compression="gzip" if len(data) else None)
    return list(tables)


def write_pyerrors(out: Path, parameters: Parameters, tables: dict[str, TableData]) -> list[str]:
    """Write a dictionary that pyerrors reads by ``pyerrors.input.json.load_json_dict``.

    Its keys are the names of tables, then those of columns; for Wilson loops, smearing, path and
    r, as in ``smearing=25,path=100,r=3``, of a correlator in t. The observables' ensemble has the
    name of the parameters without the seed, which names the replica: ``su2_b2.5_8x8x8x16|r1``.
    Their configurations are numbered by sweep. Tables with less than `LEAST` records are left
    out.

    Raises
    ------
    GaugeError
        If pyerrors is missing, there is no table of `LEAST` records, or the file cannot be
        written.
    """
    _load("pyerrors", "analysis")
    from pyerrors.input.json import dump_dict_to_json

    ensemble = dataclasses.replace(parameters, seed=Parameters.seed).name
    replica = f"{ensemble}|r{parameters.seed}"
    made = {
        name: (_correlators if name == "wilson_loops" else _series)(name, table, replica)
        for name, table in tables.items()
    }
    content = {name: observables for name, observables in made.items() if observables}
    if not content:
        raise GaugeError(
            f"No table has the {LEAST} records that pyerrors needs; generate more, or export to "
            "a file that ends in .h5."
        )
    description = {
        "program": f"gauge-mc {__version__}",
        "parameters": parameters.values(),
        "tables": {name: tables[name].header for name in content},
    }
    with tempfile.TemporaryDirectory() as folder, replacing(out) as file:
        written = Path(folder) / "tables.json.gz"
        dump_dict_to_json(content, str(written), description, indent=0)
        file.write(written.read_bytes())
    return list(content)


def _series(name: str, table: TableData, replica: str) -> dict[str, Any]:
    """Make an observable of each column of a table; none of a short table."""
    columns = dict(table.columns)
    sweeps = columns.pop("sweep", np.array([""]))
    numbers = all(column.dtype.kind in "if" for column in (sweeps, *columns.values()))
    if not numbers or (np.diff(sweeps) <= 0).any():
        raise GaugeError(
            f"The table {name} is damaged: it does not hold numbers by ascending sweep; run "
            "gauge-mc verify on its run."
        )
    if len(sweeps) < LEAST:
        return {}
    return {key: _observable(column, sweeps, replica) for key, column in columns.items()}


def _correlators(name: str, table: TableData, replica: str) -> dict[str, Any]:
    """Make a correlator in t of the Wilson loops of each width; none of few configurations."""
    from pyerrors import Corr

    try:
        everything = [
            select_loops(table, path, level, f"{name}.csv")
            for level in smearings(table)
            for path in paths(table)
        ]
    except (KeyError, ValueError) as error:
        raise GaugeError(f"The table {name} is damaged: it is none of Wilson loops.") from error
    return {
        f"smearing={loops.smearing},path={loops.path},r={r}": Corr(
            [_observable(samples, loops.sweeps, replica) for samples in loops.values[:, i].T],
            padding=[1, 0],
        )
        for loops in everything
        if len(loops.sweeps) >= LEAST
        for i, r in enumerate(loops.r)
    }


def _observable(samples: NDArray[Any], sweeps: NDArray[Any], replica: str) -> Any:
    from pyerrors import Obs

    return Obs([samples.astype(np.float64)], [replica], idl=[sweeps.tolist()])


def _load(library: str, extra: str) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise GaugeError(
            f"This needs the Python package {library}, which cannot be imported ({error}); "
            f"install it by pip install 'gauge-mc[{extra}]'."
        ) from error

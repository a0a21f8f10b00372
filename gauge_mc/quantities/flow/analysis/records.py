"""Tables of the gradient flow: energy density and topological charge against the flow time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import ensemble_keys
from gauge_mc.analysis.table_series import read_series
from gauge_mc.analysis.timeseries.gamma_method import MIN_CONFIGURATIONS
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.files.table import TableData
from gauge_mc.registry import in_words

ENERGIES = {"clover": (0.0, 1.0), "plaquette": (1.0, 0.0), "improved": (4 / 3, -1 / 3)}
"""Discretisations of E by name, as weights of the plaquette and the clover energy. The combination
``improved`` has no classical a^2 effect (A. Ramos and S. Sint, arXiv:1508.05552)."""

CHARGES = {"clover": "charge", "improved": "charge_improved"}
"""Columns of the topological charge by the name of its discretisation."""

WHOLE = -1
"""Number in the column ``slice`` of the rows for the whole lattice."""

COLUMNS = TableColumns(
    Column("t", float, "flow time in lattice units", index=True),
    Column("slice", int, f"time slice, or {WHOLE} for the whole lattice", index=True),
    Column("energy_plaquette", float, "a⁴E = 2 Σ Re Tr (1 − U_p), averaged over the sites"),
    Column(
        "energy_clover",
        float,
        "a⁴E = G^a_μν G^a_μν / 4 from the clover, averaged over the sites",
    ),
    Column(CHARGES["clover"], float, "topological charge from the clover"),
    Column(CHARGES["improved"], float, "topological charge from clovers of 1×1, 2×2 and 3×3 loops"),
    Column("s_max", float, "largest Re Tr (1 − U_p)"),
)
"""Columns of a table of the gradient flow."""

FLOW_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns of a table of the gradient flow."""

FLOW_ANISOTROPY = "flow anisotropy"
"""Key of the header with the anisotropy xi of the flow, whose units are then those of a_s."""

FLOW_KIND = "flow"
"""Key of the header with the name of the flow."""

METADATA = (*ensemble_keys(), FLOW_KIND, FLOW_ANISOTROPY)
"""Keys of the header that identify the ensemble and its flow."""


@dataclass(frozen=True)
class FlowTable:
    """The gradient flow of an ensemble."""

    ensemble: Mapping[str, str]
    """Group, beta, lattice and action of the ensemble and the kind of the flow, as far as the
    header of the table states them.
    """
    lattice: Lattice
    """Extents of the lattice that was flowed."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending, of shape (configurations,)."""
    t: Array
    """Flow times t/a^2, ascending, of shape (times,)."""
    columns: Mapping[str, Array]
    """The other columns of the table, for the whole lattice, of shape (configurations, times)."""

    def energy(self, name: str) -> Array:
        """Return a^4 E, shape (configurations, times), in one of the discretisations `ENERGIES`.

        Raises
        ------
        UsageError
            If there is no such discretisation.
        """
        plaquette, clover = weights_of(name)
        columns = self.columns
        return plaquette * columns["energy_plaquette"] + clover * columns["energy_clover"]

    def charge(self, name: str) -> Array:
        """Return the charge, shape (configurations, times), in one of the definitions `CHARGES`.

        Raises
        ------
        UsageError
            If there is no such definition.
        """
        if name not in CHARGES:
            raise UsageError(f"--charge is '{name}'; choose {in_words(CHARGES, 'or')}.")
        return self.columns[CHARGES[name]]

    @property
    def kind(self) -> str | None:
        """The kind of the flow, such as ``wilson``, or None if the table does not state it."""
        return self.ensemble.get(FLOW_KIND)

    @property
    def updates(self) -> int | None:
        """Updates from one configuration to the next, or None if they differ."""
        steps = np.unique(np.diff(self.sweeps))
        return int(steps[0]) if steps.size == 1 else None


def weights_of(energy: str) -> tuple[float, float]:
    """Return the weights of the plaquette and the clover energy in a discretisation of E.

    Raises
    ------
    UsageError
        If there is no such discretisation.
    """
    if energy not in ENERGIES:
        raise UsageError(f"--energy is '{energy}'; choose {in_words(ENERGIES, 'or')}.")
    return ENERGIES[energy]


def read_flow(path: Path, skip: int = 0, fewest: int = MIN_CONFIGURATIONS) -> FlowTable:
    """Read the gradient flow of the whole lattice from the file of a table.

    Parameters
    ----------
    path : Path
        File of the table.
    skip : int
        Last update that is left out.
    fewest : int
        Minimum number of configurations.

    Raises
    ------
    GaugeError
        If the file is damaged or not such a table, if it contains too few configurations, or if its
        configurations have different flow times.
    UsageError
        If nothing was measured after the update `skip`.
    """
    found = read_series(
        path, COLUMNS, "the gradient flow of the whole lattice", skip, fewest, _of_the_whole_lattice
    )
    times = np.asarray(found.index["t"], np.float64)
    if (np.diff(times) <= 0).any():
        raise GaugeError(
            f"{path} is damaged: its flow times are not ascending; measure the flow again."
        )
    values = {name: np.asarray(one, np.float64) for name, one in found.values.items()}
    return FlowTable(found.stated(METADATA), found.lattice, found.sweeps, times, values)


def _of_the_whole_lattice(table: TableData) -> NDArray[np.bool_]:
    return np.asarray(table["slice"] == WHOLE)


def joined_flows(tables: Sequence[FlowTable]) -> FlowTable:
    """Return the flows of several Markov chains of one ensemble, one after the other.

    Raises
    ------
    GaugeError
        If their flow times differ.
    """
    first = tables[0]
    if not all(np.array_equal(one.t, first.t) for one in tables):
        raise GaugeError("The chains have different flow times; measure the same ones.")
    columns = {n: np.concatenate([one.columns[n] for one in tables]) for n in first.columns}
    return replace(first, sweeps=np.concatenate([one.sweeps for one in tables]), columns=columns)

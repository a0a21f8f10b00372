"""Tables of hadron correlators, with one row per time slice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gauge_mc.actions import ensemble_keys
from gauge_mc.analysis.table_series import TableSeries, read_series
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP, Column, TableColumns

MOMENTA = (
    Column("px", int, "momentum along x, in units of 2π/L", index=True),
    Column("py", int, "momentum along y", index=True),
    Column("pz", int, "momentum along z", index=True),
)
"""Columns of the momentum."""

AT = "@"
"""Character in the column ``source`` between the kind of a source and its place."""


def _columns(quarks: Sequence[str], *hadron: Column) -> TableColumns:
    """Return the columns of a table of correlators."""
    names = ("kappa1", "kappa2", "mu1", "mu2")
    masses = (
        Column(f"m{n}", float, f"mass of the quarks of {names[n - 1]}", index=True, optional=True)
        for n in (1, 2)
    )
    return TableColumns(
        *(
            Column(name, float, quark, index=True)
            for name, quark in zip(names, quarks, strict=True)
        ),
        *masses,
        Column("source", str, f"kind of the source, and its place after {AT}", index=True),
        *hadron,
        *MOMENTA,
        Column("t", int, "time since the source", index=True),
        Column("re", float, "real part of the correlator"),
        Column("im", float, "imaginary part of the correlator"),
    )


MESONS = _columns(
    (
        "hopping parameter of the antiquark",
        "hopping parameter of the quark",
        "twisted mass of the antiquark, with the opposite sign",
        "twisted mass of the quark",
    ),
    Column("gamma_source", str, "matrix at the source, such as g5 or gxgt", index=True),
    Column("gamma_sink", str, "matrix at the sink", index=True),
)
"""Columns of a table of correlators of mesons."""

BARYONS = _columns(
    (
        "hopping parameter of the u quarks, or of the first quark of a diquark",
        "hopping parameter of the d quark, or of the second quark of a diquark",
        "twisted mass of the quarks of kappa1",
        "twisted mass of the quarks of kappa2",
    ),
    Column("baryon", str, "nucleon, delta, or diquark- and its matrix", index=True),
    Column("parity", int, "1 or -1", index=True),
)
"""Columns of a table of correlators of baryons."""

MESON_COLUMNS, BARYON_COLUMNS = (SWEEP, *MESONS.names), (SWEEP, *BARYONS.names)
"""Names of the columns that all tables have."""

BOSONS = "diquark"
"""Beginning of the names of baryons of two quarks, whose correlators are like those of mesons."""

CORRELATORS = "correlators"
"""Content of the tables, for messages."""

METADATA = (*ensemble_keys(), "csw", "mu", "operator", "boundary", "imaginary_mu")
"""Keys of the header that identify the ensemble and its quarks."""


class Quark(NamedTuple):
    """A kind of quark."""

    kappa: float
    """Hopping parameter."""
    mu: float = 0.0
    """Twisted mass in lattice units."""
    m: float = 0.0
    """Mass in lattice units, for operators that have one; it is then all in which quarks differ."""


def describe_quarks(first: Quark, second: Quark) -> str:
    """Return the parameters of two quarks as text.

    A twisted mass is left out if both are 0, and the hopping parameter if there is a mass or it is
    infinite, as in series of other programs that do not state it.
    """
    parts = {"κ": (first.kappa, second.kappa), "μ": (first.mu, second.mu), "m": (first.m, second.m)}
    if any(parts["m"]):
        parts = {"m": parts["m"]}
    return ", ".join(
        f"{name} = {', '.join(f'{value:g}' for value in dict.fromkeys(values))}"
        for name, values in parts.items()
        if any(values) and np.isfinite(values).all()
    )


@dataclass(frozen=True)
class HadronCorrelators:
    """Correlators of an ensemble."""

    ensemble: Mapping[str, str]
    """Entries of the table's header about the ensemble and the quarks."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending, of shape (configurations,)."""
    labels: tuple[Mapping[str, Any], ...]
    """Identity of each correlator: columns of the table by name, with the kind of the source."""
    values: Array
    """Real parts at t = 0, 1, …, T - 1 since the source, of shape (correlators, configurations, T).
    """

    @property
    def extent(self) -> int:
        """Extent T of the lattice in time."""
        return int(self.values.shape[2])

    def grouped(self, key: Callable[[Mapping[str, Any]], Key | None]) -> dict[Key, Array]:
        """Return averages of the correlators that have the same key."""
        places: dict[Key, list[int]] = {}
        for i, labels in enumerate(self.labels):
            if (group := key(labels)) is not None:
                places.setdefault(group, []).append(i)
        return {
            place: self.values[places[place]].mean(axis=0) for place in sorted(places, key=repr)
        }


Key = TypeVar("Key", bound=Hashable)


def read_hadron_correlators(path: Path, columns: TableColumns, skip: int = 0) -> HadronCorrelators:
    """Read all correlators of a table."""
    table = read_series(path, columns, CORRELATORS, skip)
    labels, values = correlators_of(table)
    for label in labels:
        label["source"] = label["source"].partition(AT)[0]
    return HadronCorrelators(table.stated(METADATA), table.sweeps, tuple(labels), values["re"])


def correlators_of(table: TableSeries) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Return the correlators of a table with one row per time slice."""
    names = [*table.index][:-1]
    elements = [*zip(*(x.tolist() for x in table.index.values()), strict=True)]
    order = sorted(range(len(elements)), key=elements.__getitem__)
    labels = list(dict.fromkeys(elements[n][:-1] for n in order))
    extent = len(order) // len(labels)
    if [elements[n][-1] for n in order] != [*range(extent)] * len(labels):
        raise GaugeError(
            f"{table.source} is incomplete: some correlator does not have every t; measure the "
            "correlators again."
        )
    shape = (table.sweeps.size, len(labels), extent)
    return (
        [dict(zip(names, label, strict=True)) for label in labels],
        {
            name: value[:, order].reshape(shape).swapaxes(0, 1)
            for name, value in table.values.items()
        },
    )


def fold(values: Array, parity: int, mirror: Array | None = None) -> Array:
    """Return the average of a correlator at t and T - t."""
    extent = values.shape[1]
    t = np.arange(extent // 2 + 1)
    partner = values if mirror is None else mirror
    both = (values[:, t] + parity * partner[:, (extent - t) % extent]) / 2
    both[:, 0] = values[:, 0]
    return both

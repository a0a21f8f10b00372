"""Studies of errors of masses of mesons; see ``docs/studies/lattice_coverage.py``."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from docs.studies.study import COMMON, Found, Series, Study, pair
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.extensions.quarks.spectroscopy.correlators import (
    AXIAL,
    MATRICES,
    MESONS,
    PSEUDOSCALAR,
    HadronCorrelators,
    Ranges,
    read_hadron_correlators,
)
from gauge_mc.extensions.quarks.spectroscopy.spectrum import (
    MassSeries,
    chiral_fits,
    meson_series,
    spectrum,
)


def of_hadrons(shared: list[Any], series: list[Series]) -> Iterator[Found]:
    """Yield effective masses, masses of fits, PCAC masses and kappa_c."""
    table, found = _mesons(shared, series)
    yield from _effective(found)
    if not found.masses:
        return
    lines = chiral_fits(found, found)
    caution = bool(spectrum(table, found, lines).cautions)
    symbols = {"pion": "mass of π", "rho": "mass of ρ"}
    for state, (fit, _) in found.masses.items():
        yield f"{symbols[state.name]}, κ = {state.kappa1:g}", *pair(fit.mass), caution
    for state, (pcac, _) in found.pcac.items():
        yield f"PCAC mass, κ = {state.kappa1:g}", *pair(pcac.mass), caution
    names = {"pion^2": "κ_c from m_π²", "pcac": "κ_c from the PCAC mass"}
    for line in lines:
        if line.kappa_c:
            yield names[line.quantity], *pair(line.kappa_c), caution
        else:
            yield f"{symbols[line.quantity]} for m_π = 0", *pair(line.intercept), caution


def of_effective(shared: list[Any], series: list[Series]) -> Iterator[Found]:
    """Yield effective masses alone."""
    yield from _effective(_mesons(shared, series)[1])


def _mesons(shared: list[Any], series: list[Series]) -> tuple[HadronCorrelators, MassSeries]:
    (own,), (table,) = series, shared
    values = np.moveaxis(own["correlators"], 0, 1)
    chosen = replace(table, sweeps=np.arange(values.shape[1]), values=values)
    return chosen, meson_series(chosen, Ranges())


def _effective(found: MassSeries) -> Iterator[Found]:
    """Yield effective masses of the pion of the heaviest quarks."""
    heavy = min(state.kappa1 for state in found.correlators)
    for state, correlator in found.correlators.items():
        if (state.name, state.kappa1, state.kappa2) == ("pion", heavy, heavy):
            for t, one in zip((1, 4), correlator.effective().series[:, 0, [0, 3]].T, strict=True):
                mass = estimate(one)
                yield f"effective mass of π, t = {t}", mass.value, mass.error, bool(mass.cautions)


def read_mesons(run: Path) -> tuple[Any, Series]:
    """Read the correlators of pions and rhos of two equal quarks, and those of the PCAC mass."""
    table = read_hadron_correlators(run / "mesons.csv", MESONS)
    matrices = {(one, one) for name in ("pion", "rho") for one in MATRICES[name]}
    matrices.add((PSEUDOSCALAR, AXIAL))
    chosen = [
        number
        for number, one in enumerate(table.labels)
        if (one["gamma_source"], one["gamma_sink"]) in matrices and one["kappa1"] == one["kappa2"]
    ]
    labels, values = tuple(table.labels[number] for number in chosen), table.values[chosen]
    table = replace(table, labels=labels, values=values)
    return table, {"correlators": np.moveaxis(values, 1, 0)}


HADRONS = {"beta": 2.2, "lattice": "6x6x6x12", "configs": 40, "separation": 10}
HADRONS |= {"measure": "mesons:10:kappa=0.14;0.15:source=gauss:2;10:tolerance=1e-6"}

EFFECTIVE = {"thermalize": 100, "beta": 2.4, "lattice": "4x4x4x12", "configs": 60, "separation": 5}
EFFECTIVE |= {"measure": "mesons:5:kappa=0.125:source=gauss:2;10"}

NAMES = ("correlators",)

STUDIES = {
    "hadrons": Study(
        "SU(2), 6³×12, β = 2.2", [{**COMMON, **HADRONS}], read_mesons, of_hadrons, NAMES
    ),
    "effective": Study(
        "SU(2), 4³×12, β = 2.4, κ = 0.125",
        [{**COMMON, **EFFECTIVE}],
        read_mesons,
        of_effective,
        NAMES,
    ),
}

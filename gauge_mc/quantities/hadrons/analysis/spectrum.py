"""The masses of an ensemble in the form in which they are written and shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gauge_mc.analysis.timeseries.cautions import caution_series
from gauge_mc.analysis.timeseries.estimates import caution_short
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.hadrons.analysis.correlators import HadronCorrelators
from gauge_mc.quantities.hadrons.analysis.mass_series import MassSeries
from gauge_mc.quantities.hadrons.analysis.masses import MassFit
from gauge_mc.quantities.hadrons.analysis.results import ChiralFit, HadronMass, Spectrum


def spectrum(
    table: HadronCorrelators, series: MassSeries, chiral: Sequence[ChiralFit] = (), skip: int = 0
) -> Spectrum:
    """Return the masses of an ensemble in the form in which they are written and shown.

    Raises
    ------
    GaugeError
        If there is none, because no correlator is known well enough.
    """
    if not series.masses:
        counts = Counter(_as_clause(one.reason) for one in series.left_out).most_common()
        reasons = [
            f"{reason} ({number} of them)" if len(counts) > 1 else reason
            for reason, number in counts
        ]
        raise GaugeError(
            f"None of {len(series.left_out)} correlators can be fitted: {'; '.join(reasons)}."
        )
    fits = [fit for fit, _ in series.masses.values()]
    return Spectrum(
        ensemble=dict(table.ensemble),
        configurations=int(table.sweeps.size),
        skip=skip,
        masses=tuple(HadronMass(*state, fit=fit) for state, (fit, _) in series.masses.items()),
        pcac=tuple(one for one, _ in series.pcac.values()),
        chiral=tuple(chiral),
        left_out=tuple(series.left_out),
        cautions=tuple(_cautions(table, fits, [one for _, one in series.masses.values()])),
    )


def _as_clause(sentence: str) -> str:
    """Return a sentence as a part of another one."""
    return f"{sentence[0].lower()}{sentence[1:]}".rstrip(".")


def _cautions(
    table: HadronCorrelators, fits: Iterable[MassFit], series: Iterable[Array]
) -> list[str]:
    """Return cautions about short series and about thermalisation."""
    tau = max(one.mass.tau_int + one.mass.tau_int_error for one in fits)
    short = caution_short(int(table.sweeps.size), tau, "the masses")
    return [*short, *caution_series(table.sweeps, *series)]

"""The transition of a scan: susceptibilities, Binder cumulants, and the infinite volume."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from gauge_mc.analysis.timeseries import with_error
from gauge_mc.fits import FITS, DataResult, Fit
from gauge_mc.fits.quoted import CRITICAL_EXTENT, Goal, QuotedNumber, quoted_field, table_of
from gauge_mc.options import Option
from gauge_mc.quantities.transition.results import (
    ISING_ETA,
    BinderCrossing,
    CriticalCoupling,
    CriticalTemperature,
    LatentHeat,
    ThermalRunResult,
    TransitionResult,
    VolumeTransition,
    transition,
)
from gauge_mc.quantities.transition.thermal_runs import LOOP_COLUMNS, ThermalRuns, read_thermal_runs
from gauge_mc.quantities.transition.volume import ThermalVolume
from gauge_mc.results import headings
from gauge_mc.run.thermalisation import SKIP

EXTENT = Option(
    "nt",
    int,
    "Number of links along t of the lattices that are fitted.",
    default="that of all",
    metavar="N",
    least=2,
)
"""The temporal extent."""

REPLICAS = Option(
    "bootstrap", int, "Number of bootstrap samples.", metavar="N", least=2, most=10_000, usual=100
)
"""The number of bootstrap samples of every volume, an option of the fit and of the plot."""


class TransitionFitResult(DataResult[TransitionResult]):
    """A transition at finite temperature: critical couplings of all volumes and an infinite one."""

    observable: ClassVar[str] = (
        "critical coupling from Polyakov loops, by multi-histogram reweighting"
    )
    units: ClassVar[str] = (
        "lattice units; tau_int in measurements; errors from a bootstrap of blocks"
    )

    def report(self) -> list[Any]:
        """Return tables of the runs, the volumes and the critical couplings, and what follows."""
        f = self.found
        known = any(one.tunnelling_time for volume in f.volumes for one in volume.runs)
        runs = Table(title="Runs, with the overlap of each with the next one")
        names = [*headings(ThermalRunResult).values()]
        for name in ("lattice", *(names if known else names[:-1])):
            runs.add_column(name, justify="right", no_wrap=" " not in name)
        runs.columns[0].justify = "left"
        for volume in f.volumes:
            for number, one in enumerate(volume.runs):
                cells = [
                    f"{one.beta:.12g}",
                    str(one.measurements),
                    f"{one.tau_int:.3g}",
                    "" if one.overlap is None else f"{one.overlap:.2f}",
                    str(one.sector_changes),
                    "" if one.tunnelling_time is None else f"{one.tunnelling_time:.0f}",
                ]
                runs.add_row("" if number else volume.lattice, *(cells if known else cells[:-1]))
        others = [
            ("Crossings of U", BinderCrossing, f.crossings),
            ("In an infinite volume", CriticalCoupling, f.critical),
            ("Latent heat", LatentHeat, f.latent_heats),
        ]
        return [
            runs,
            table_of("Transition on every lattice", VolumeTransition, f.volumes, 3, "left"),
            *(table_of(title, kind, rows, 3, "left") for title, kind, rows in others if rows),
            *self._conclusions(),
            *f.cautions,
        ]

    def quoted(self) -> list[QuotedNumber]:
        """Return the critical coupling, the latent heat and the critical temperature."""
        f = self.found
        best = [quoted_field(one, "beta", one.systematic) for one in f.critical[:1]]
        peaks = [quoted_field(one, "beta_peak", None, one.lattice) for one in f.volumes]
        known = [one for one in peaks if one.known]
        return [
            *(best or known[-1:]),
            *(quoted_field(one, "value") for one in f.latent_heats[:1]),
            *(
                QuotedNumber(each.product, each.value, each.error, each.scale_error)
                for each in f.temperatures
            ),
        ]

    def unquoted(self) -> str:
        """Return why there is no critical coupling; see `FitResult.unquoted`."""
        return "no susceptibility has a peak between the runs"

    def _conclusions(self) -> list[str]:
        """Return exponent, interface tension and temperatures, a line each."""
        f, lines = self.found, []
        if f.exponent:
            if self.continuous:
                expected = f"γ/ν = {2 - ISING_ETA:.4f} of the Ising model"
            else:
                expected = "3 of a transition of first order"
            lines.append(
                f"χ_max grows with N_s to the power {f.exponent}, to compare with {expected}."
            )
        known = [one for one in f.volumes if one.interface]
        if known:
            lines.append(f"σ_I / T_c³ = {known[-1].interface} on {known[-1].lattice}")
        lines += [
            f"{each.product} = {with_error(each.value, each.error)} ± {each.scale_error:.2g} from "
            f"the scale ({each.source})"
            for each in f.temperatures
        ]
        return lines

    @property
    def continuous(self) -> bool:
        """Whether the transition is of second order, as for SU(2)."""
        return all(one.beta_weights is None for one in self.found.volumes)


class TransitionFit(Fit):
    """Critical couplings by multi-histogram reweighting and extrapolation in the volume."""

    name: ClassVar[str] = "transition"
    summary: ClassVar[str] = (
        "critical coupling and temperature of deconfinement, from a scan, by reweighting in β"
    )
    columns: ClassVar[tuple[str, ...]] = LOOP_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (
        TransitionResult,
        VolumeTransition,
        ThermalRunResult,
        BinderCrossing,
        CriticalCoupling,
        CriticalTemperature,
        LatentHeat,
    )
    of_scans: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (EXTENT, REPLICAS, SKIP)
    goals: ClassVar[tuple[Goal, ...]] = (
        Goal(
            name="beta-c",
            summary="critical coupling of deconfinement at an extent along t",
            symbols=("β_c", "β_χ"),
            configs=1000,
            box=CRITICAL_EXTENT,
            aspects=(3, 4, 5),
            extent=EXTENT,
        ),
    )

    def carry_out(self, tables: Sequence[Path], **options: Any) -> TransitionFitResult:
        """Find the transition from all runs in a folder; see `Fit.carry_out`."""
        runs, volumes = volumes_of(tables[0], options)
        return TransitionFitResult(transition(volumes, runs.group, runs.coupling, runs.ensemble))


FITS.register(TransitionFit())


def volumes_of(folder: Path, options: dict[str, Any]) -> tuple[ThermalRuns, list[ThermalVolume]]:
    """Return the runs in a folder and their volumes, as options choose them.

    Raises
    ------
    GaugeError
        See `read_thermal_runs`.
    """
    runs = read_thermal_runs(folder, options.get(SKIP.name, 0), options.get(EXTENT.name))
    return runs, runs.volumes(options.get(REPLICAS.name, REPLICAS.usual))

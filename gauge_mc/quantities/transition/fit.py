"""The transition of a scan: susceptibilities, Binder cumulants, and the infinite volume."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from rich.table import Table

from gauge_mc.analysis.timeseries import estimate, with_error
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fits import FITS, DataResult, Fit
from gauge_mc.fits.quoted import CRITICAL_EXTENT, Goal, QuotedNumber, quoted_field, table_of
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures import pictures
from gauge_mc.plots.runs import ScanFigure, caution
from gauge_mc.quantities.transition import results, reweighting, thermal_runs
from gauge_mc.results import headings
from gauge_mc.run.thermalisation import SKIP

if TYPE_CHECKING:
    from matplotlib.axes import Axes


EXTENT = Option(
    "nt",
    int,
    "Number of links along t of the lattices that are fitted.",
    default="the one that all have",
    metavar="N",
    least=2,
)
"""The temporal extent."""

REPLICAS = Option(
    "bootstrap", int, "Number of bootstrap samples.", metavar="N", least=2, most=10_000, usual=100
)
"""The number of bootstrap samples of every volume, an option of the fit and of the plot."""


class TransitionFitResult(DataResult[results.TransitionResult]):
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
        has_times = any(run.tunnelling_time for volume in f.volumes for run in volume.runs)
        runs = Table(title="Runs, with the overlap of each with the next one")
        names = [*headings(results.ThermalRunResult).values()]
        for name in ("lattice", *(names if has_times else names[:-1])):
            runs.add_column(name, justify="right", no_wrap=" " not in name)
        runs.columns[0].justify = "left"
        for volume in f.volumes:
            for n, result in enumerate(volume.runs):
                cells = [
                    f"{result.beta:.12g}",
                    str(result.measurements),
                    f"{result.tau_int:.3g}",
                    "" if result.overlap is None else f"{result.overlap:.2f}",
                    str(result.sector_changes),
                    "" if result.tunnelling_time is None else f"{result.tunnelling_time:.0f}",
                ]
                runs.add_row("" if n else volume.lattice, *(cells if has_times else cells[:-1]))
        sections = [
            ("Crossings of U", results.BinderCrossing, f.crossings),
            ("In an infinite volume", results.CriticalCoupling, f.critical),
            ("Latent heat", results.LatentHeat, f.latent_heats),
        ]
        return [
            runs,
            table_of("Transition on every lattice", results.VolumeTransition, f.volumes, 3, "left"),
            *(table_of(title, kind, rows, 3, "left") for title, kind, rows in sections if rows),
            *self._conclusions(),
            *f.cautions,
        ]

    def quoted(self) -> list[QuotedNumber]:
        """Return the critical coupling, the latent heat and the critical temperature."""
        f = self.found
        best = [quoted_field(x, "beta", x.systematic) for x in f.critical[:1]]
        peaks = [quoted_field(volume, "beta_peak", None, volume.lattice) for volume in f.volumes]
        finite = [peak for peak in peaks if peak.known]
        return [
            *(best or finite[-1:]),
            *(quoted_field(heat, "value") for heat in f.latent_heats[:1]),
            *(QuotedNumber(x.product, x.value, x.error, x.scale_error) for x in f.temperatures),
        ]

    def unquoted(self) -> str:
        """Return why there is no critical coupling; see `FitResult.unquoted`."""
        return "no susceptibility has a peak between the runs"

    def _conclusions(self) -> list[str]:
        """Return exponent, interface tension and temperatures, a line each."""
        f, lines = self.found, []
        if f.exponent:
            if self.continuous:
                expected = f"γ/ν = {2 - results.ISING_ETA:.4f} of the Ising model"
            else:
                expected = "3 of a transition of first order"
            lines.append(
                f"χ_max grows with N_s to the power {f.exponent}, to compare with {expected}."
            )
        volumes = [volume for volume in f.volumes if volume.interface]
        if volumes:
            lines.append(f"σ_I / T_c³ = {volumes[-1].interface} on {volumes[-1].lattice}")
        lines += [
            f"{each.product} = {with_error(each.value, each.error)} ± {each.scale_error:.2g} from "
            f"the scale ({each.source})"
            for each in f.temperatures
        ]
        return lines

    @property
    def continuous(self) -> bool:
        """Whether the transition is of second order, as for SU(2)."""
        return all(volume.beta_weights is None for volume in self.found.volumes)


class TransitionFit(Fit):
    """Critical couplings by multi-histogram reweighting and extrapolation in the volume."""

    name: ClassVar[str] = "transition"
    summary: ClassVar[str] = (
        "critical coupling and temperature of deconfinement, from a scan, by reweighting in β"
    )
    columns: ClassVar[tuple[str, ...]] = thermal_runs.LOOP_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (
        results.TransitionResult,
        results.VolumeTransition,
        results.ThermalRunResult,
        results.BinderCrossing,
        results.CriticalCoupling,
        results.CriticalTemperature,
        results.LatentHeat,
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
        return TransitionFitResult(
            results.transition(volumes, runs.group, runs.coupling, runs.ensemble)
        )


FITS.register(TransitionFit())


def volumes_of(
    folder: Path, options: dict[str, Any]
) -> tuple[thermal_runs.ThermalRuns, list[reweighting.ThermalVolume]]:
    """Return the runs in a folder and their volumes, as options choose them."""
    runs = thermal_runs.read_thermal_runs(
        folder, options.get(SKIP.name, 0), options.get(EXTENT.name)
    )
    return runs, runs.volumes(options.get(REPLICAS.name, REPLICAS.usual))


class TransitionPlot(ScanFigure):
    """Reweighted curves of a scan, histograms at the peaks, and the infinite volume."""

    name = "transition"
    summary = "susceptibility and Binder cumulant by reweighting, with β_c"
    fit: ClassVar[str] = "transition"
    options: ClassVar[tuple[Option, ...]] = (EXTENT, REPLICAS, SKIP)

    def picture(self, scan: Path, options: dict[str, Any]) -> pictures.Picture:
        """Show the transition on several lattices.

        The frames are the susceptibility and the Binder cumulant, the deconfined fraction, or for
        two colours the histogram of the modulus of the Polyakov loop at the peak, and the critical
        couplings against their distance from infinite volume.
        """
        read, volumes = volumes_of(scan, options)
        caution(*results.cautions_of(volumes))
        ising = volumes[0].colours == reweighting.ISING_COLOURS
        declared = {x.name: x for x in OBSERVABLES[thermal_runs.loop_observable()].derived}
        chi, binder = declared["susceptibility"], declared["binder"]
        marks: tuple[list[pictures.Mark], list[pictures.Mark], list[pictures.Mark]] = [], [], []
        for n, volume in enumerate(volumes):
            marks[0].extend(_curve(volume, volume.susceptibility, chi.estimate, n, named=True))
            marks[1].extend(_curve(volume, volume.binder, binder.estimate, n))
            if not ising:
                marks[2].extend(_curve(volume, volume.fraction, partial(_fraction, volume), n))
            elif np.interp(volume.peak[0][0], volume.beta, volume.covered) == 1:  # not NaN
                edges, density = volume.histogram
                draw = methodcaller("stairs", density, edges, color=pictures.look(n)["color"])
                marks[2].append(pictures.Sketch(draw))
        of_modulus = "$|L|$", r"density at the peak of $\chi$"
        frames = [
            pictures.Frame(marks[0], r"$\beta$", f"${chi.symbol}=${chi.axis}"),
            pictures.Frame(marks[1], r"$\beta$", f"${binder.symbol}=${binder.axis}"),
            pictures.Frame(marks[2], *(of_modulus if ising else (r"$\beta$", FRACTION))),
            _infinite(results.extrapolations(volumes), ising),
        ]

        def finish(axes: Axes) -> None:
            axes.locator_params(axis="x", nbins=5)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(loc="best")

        frames = [replace(frame, finish=finish) for frame in frames]
        title = f"{read.group.label}, Nₜ = {volumes[0].lattice.t}"
        return pictures.Picture(frames, 5.6, title, columns=3, layout={"nrows": 2, "ncols": 2})


FRACTION = r"deconfined fraction $(3p-1)/2$"
"""Label of the deconfined fraction; see `ThermalVolume`."""

PLOTS.register(TransitionPlot())


def _curve(
    volume: reweighting.ThermalVolume,
    curve: reweighting.ThermalCurve,
    measured: Callable[[list[Any], Lattice], tuple[float, float]],
    number: int,
    named: bool = False,
) -> Iterator[pictures.Mark]:
    """Yield a curve with its errors where histograms overlap, and the values of single runs."""
    style, text = pictures.look(number), str(volume.lattice) if named else ""
    line = {"color": style["color"], "linewidth": 1}
    ends = np.flatnonzero(np.diff(volume.covered)) + 1
    for part in np.split(np.arange(curve.beta.size), ends)[::2]:
        rows = curve.beta[part], curve.value[part], curve.error[part]
        yield pictures.Stroke(*rows, style=line, text="" if part[0] else text)
    for beta in volume.reweighting.beta:
        loops = [chain.loop for chain in volume.chains if chain.beta == beta]
        chains = [{"abs": np.abs(loop), "loop": loop} for loop in loops]
        value, error = measured(chains, volume.lattice)
        yield pictures.Symbols([beta], [value], [np.nan_to_num(error)], style=style)


def _fraction(
    volume: reweighting.ThermalVolume, chains: list[Any], lattice: Lattice
) -> tuple[float, float]:
    near = estimate(*(reweighting.near_axis(chain["loop"], volume.colours) for chain in chains))
    return (near.value - reweighting.NEAR_AXIS) / (1 - reweighting.NEAR_AXIS), near.error / (
        1 - reweighting.NEAR_AXIS
    )


def _infinite(lines: Mapping[str, results.StraightLine], ising: bool) -> pictures.Frame:
    """Return critical couplings against their distance from infinite volume, with their limits.

    A line is drawn if it has a degree of freedom, so that the points could disagree with it.
    """
    marks, crossed = list[pictures.Mark](), [name.startswith("crossings") for name in lines]
    several = len({*crossed}) > 1  # whose distances are defined differently
    for number, (name, line) in enumerate(lines.items()):
        form = CROSSED if crossed[number] else PEAKS[ising]
        unit, order = line.x.max() if several else 1.0, np.argsort(line.x)
        x = np.append(0, line.x[order]) / unit
        curve = reweighting.ThermalCurve(
            x, line.parameters @ np.vstack([[1, 0, 0], line.design[order]]).T
        )
        style = pictures.look(number)
        full = {**style, "label": f"{name},\n$x={form}$" if several else name}
        if line.dof:
            stroke = {"color": style["color"], "linewidth": 1}
            marks.append(pictures.Stroke(x, curve.value, curve.error, style=stroke))
        marks.append(pictures.Symbols(line.x / unit, line.values[0], line.errors, style=full))
        limit = {**style, "markerfacecolor": "white"}
        marks.append(pictures.Symbols([0], curve.value[:1], curve.error[:1], style=limit))
    if marks:
        marks.append(pictures.KeyEntry(style=pictures.HOLLOW, text="hollow: infinite volume"))
    label = r"x/x_\mathrm{max}" if several else CROSSED if any(crossed) else PEAKS[ising]
    return pictures.Frame(marks, f"${label}$", r"$\beta_c$")


PEAKS = "(N_t/N_s)^3", r"(N_t/N_s)^{1/\nu}"
"""Distance of a peak from infinite volume at a transition of first order, and for SU(2)."""

CROSSED = r"(s^{-\omega}-l^{-\omega})/(l^{1/\nu}-s^{1/\nu})"
"""Distance of a crossing for SU(2), with N_s/N_t of the smaller and of the larger lattice."""

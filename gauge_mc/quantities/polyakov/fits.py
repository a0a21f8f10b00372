"""Free energies and screening masses from correlators of Polyakov loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.files.columns import SWEEP
from gauge_mc.fits import FITS, DataResult, Fit
from gauge_mc.fits.quoted import QuotedNumber, choice_of, quoted_number, table_of
from gauge_mc.libraries import load
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures import curves, pictures
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.runs import TableKind, TablePlot, caution, find_tables, labels_of, missing_table
from gauge_mc.quantities.polyakov import observables
from gauge_mc.quantities.polyakov.screening import (
    CONFINED,
    DECONFINED,
    SMALLEST,
    FreeEnergies,
    FreeEnergyPoint,
    ScreeningMass,
    ScreeningMasses,
    ScreeningPoint,
    free_energies,
    read_planes,
    screening,
)
from gauge_mc.run.thermalisation import SKIP

R_MIN = Option("r_min", float, "Smallest distance fitted.", default=f"{SMALLEST:g}")
R_MAX = Option("r_max", float, "Largest distance fitted.", default="all")
PHASE = Option(
    "phase",
    str,
    "Form that is fitted: screening towards a constant, or a linear rise.",
    default="deconfined if the constant differs from 0",
    choices=(DECONFINED, CONFINED),
)


class FreeEnergyResult(DataResult[FreeEnergies]):
    """Free energies of an ensemble, and their screening or string tension."""

    observable: ClassVar[str] = (
        "free energy of two static charges from correlators of Polyakov loops, colour-averaged"
    )
    units: ClassVar[str] = "F, m and sigma in powers of T; distances in lattice units"

    def report(self) -> list[Any]:
        """Return a table of the free energies, and what was fitted."""
        energies = self.found
        table = table_of("Free energy of two static charges", FreeEnergyPoint, energies.points, 4)
        name = "Screening mass m/T" if energies.phase == DECONFINED else "String tension σ(T)/T²"
        quality = f"χ² = {energies.chi2:.3g}, {energies.chi2_expected:.3g} expected"
        lines = [f"{name} = {energies.mass} ({quality}, p = {energies.p_value:.2g})"]
        if energies.limit:
            lines.append(f"F/T at infinite distance = {energies.limit}")
        return [table, *lines, *energies.cautions]

    def quoted(self) -> list[QuotedNumber]:
        """Return the screening mass or the string tension, and F at infinite distance."""
        energies = self.found
        name = "m/T" if energies.phase == DECONFINED else "σ(T)/T²"
        return [quoted_number(name, energies.mass), quoted_number("F(∞)/T", energies.limit)]


class FreeEnergyFit(Fit):
    """The free energy of two static charges, with its screening mass or string tension."""

    name: ClassVar[str] = "free-energy"
    summary: ClassVar[str] = "F(R, T), Debye mass or string tension from Polyakov loops at T > 0"
    columns: ClassVar[tuple[str, ...]] = observables.CORRELATOR_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (FreeEnergies, FreeEnergyPoint)
    isotropic: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (R_MIN, R_MAX, PHASE, SKIP)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> FreeEnergyResult:
        """Fit the correlators of a table; see `Fit.carry_out`."""
        reach = options.get(R_MIN.name, SMALLEST), options.get(R_MAX.name, math.inf)
        if not 0 < reach[0] < reach[1]:
            raise UsageError(
                f"The distances of the fit are from {reach[0]:g} to {reach[1]:g}; choose "
                f"{R_MIN.flag} above 0 and below {R_MAX.flag}."
            )
        correlators, ensemble = observables.read_correlators(tables, options.get(SKIP.name, 0))
        phase = choice_of(PHASE, options)
        return FreeEnergyResult(free_energies(correlators, ensemble, reach, phase))


FITS.register(FreeEnergyFit())


class ScreeningResult(DataResult[ScreeningMasses]):
    """Screening masses of an ensemble, and the correlators."""

    observable: ClassVar[str] = "screening masses from correlators of planes of Polyakov loops"
    units: ClassVar[str] = (
        "m in units of T; distances in lattice units; correlators of averages over planes"
    )

    def report(self) -> list[Any]:
        """Return tables of the correlators and of the masses."""
        f = self.found
        title = "Confined phase: m/T = σ(T)/T²" if f.phase == CONFINED else "Screening masses"
        return [
            table_of("Correlators of planes of Polyakov loops", ScreeningPoint, f.points, 3),
            table_of(title, ScreeningMass, f.masses, 3),
            *f.cautions,
        ]

    def quoted(self) -> list[QuotedNumber]:
        """Return the mass of each part of the loop, or the string tension."""
        f = self.found
        name = "σ(T)/T²" if f.phase == CONFINED else "m/T"
        return [quoted_number(f"{name} ({mass.part})", mass.mass) for mass in f.masses]


class ScreeningFit(Fit):
    """Screening masses of the real and the imaginary part of the Polyakov loop."""

    name: ClassVar[str] = "screening"
    summary: ClassVar[str] = "screening masses from planes of Polyakov loops at T > 0"
    columns: ClassVar[tuple[str, ...]] = observables.PLANE_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (ScreeningMasses, ScreeningMass, ScreeningPoint)
    isotropic: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (
        Option("r_min", int, "Smallest distance fitted.", default="first with a good fit", least=0),
        Option("r_max", int, "Largest distance fitted.", default="half the lattice", least=1),
        PHASE,
        SKIP,
    )

    def carry_out(self, tables: Sequence[Path], **options: Any) -> ScreeningResult:
        """Fit the correlators of a table; see `Fit.carry_out`."""
        first, last = options.get(R_MIN.name), options.get(R_MAX.name)
        if first is not None and last is not None and first >= last:
            raise UsageError(
                f"The distances of the fit are from {first} to {last}; choose {R_MIN.flag} below "
                f"{R_MAX.flag}."
            )
        series = read_planes(tables, options.get(SKIP.name, 0))
        return ScreeningResult(screening(series, first, last, choice_of(PHASE, options)))


FITS.register(ScreeningFit())


REAL = 1e-12
"""Threshold below which an imaginary part counts as zero, as it is in SU(2)."""

WIDER = 1.25
"""Width of the time series in units of its height, which is that of the plane."""


class PolyakovPlot(Plot):
    """The Polyakov loop in the complex plane, and the time series of its modulus."""

    name = "polyakov"
    summary = "Polyakov loop in the complex plane, and its modulus"
    every_column = True
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all runs in one frame; see `Plot.draw`."""
        skip = options.get(SKIP.name, 0)
        tables = find_tables(runs, TableKind.of_observable(OBSERVABLES[self.name]))
        if not tables:
            raise missing_table(runs, self.name)
        labels = dict(zip(runs, labels_of(runs), strict=True))
        histories = [
            curves.History(labels[run], table[SWEEP], table["re"] + 1j * table["im"])
            for run, table in tables.items()
        ]
        plot_polyakov(histories, file, skip)
        return []


PLOTS.register(PolyakovPlot())


def plot_polyakov(runs: Sequence[curves.History], path: Path, skip: int = 0) -> None:
    """Plot Polyakov loops in the complex plane, and the time series of their modulus.

    Dotted lines show the directions of the centre Z(3). If all loops are real, as they are in
    SU(2), their distribution is shown instead of the plane.
    """
    curves.require(runs)
    for run in runs:
        curves.check_history(run, skip)
    thermalised = [run.after(skip) for run in runs]
    real = all(np.abs(np.imag(run.values)).max() < REAL for run in thermalised)
    with figure_file(path, (pictures.WIDTH, 2.8 + pictures.LINE * max(len(runs), 2))) as figure:
        gaps = {"wspace": 0.06}  # room for the label between the frames
        plane, series = figure.subplots(1, 2, width_ratios=(1, WIDER), gridspec_kw=gaps)
        looks, entries = [pictures.look(i) for i in range(len(runs))], []
        for i, (run, shown) in enumerate(zip(runs, thermalised, strict=True)):
            size = curves.History(run.label, run.sweeps, np.abs(run.values))
            mean = curves.describe_history(size.after(skip), r"\langle|L|\rangle")
            label = f"{pictures.typeset(run.label)}:  {mean}" if run.label else mean
            curves.draw_history(series, size, looks[i], skip)
            entries.append(
                (load("matplotlib.lines").Line2D([], [], **curves.mean_line(looks[i])), label)
            )
            if real:
                curves.draw_distribution(plane, shown, looks[i], horizontal=False)
            else:
                parts = shown.values.real, shown.values.imag
                plane.scatter(*parts, s=9, alpha=0.6, linewidth=0, **looks[i])
        if real:
            plane.axvline(0, color="0.5", linestyle=":", linewidth=0.8)
            plane.set_ylim(bottom=0)
            plane.tick_params(which="both", left=False, right=False, labelleft=False)
            plane.set_xlabel("$L$")
            plane.set_ylabel("distribution")
        else:
            reach = 1.1 * max(np.abs(plane.dataLim.get_points()).max(), 1e-6)
            for k in range(3):
                direction = 2 * reach * np.exp(2j * np.pi * k / 3)
                ends = (0, direction.real), (0, direction.imag)
                plane.plot(*ends, color="black", linestyle=":", linewidth=1.0, zorder=4)
            plane.set(
                xlim=(-reach, reach), ylim=(-reach, reach), xlabel=r"Re$\,L$", ylabel=r"Im$\,L$"
            )
        plane.set_box_aspect(1)
        series.margins(x=0.02)
        series.set_box_aspect(1 / WIDER)
        series.set_xlabel("update")
        series.set_ylabel("$|L|$")
        series.set_ylim(bottom=0)
        key = curves.key_of_lines(looks, curves.shade_skipped(series, runs, skip))
        pictures.add_heading(figure, plane, pictures.side_by_side(entries, key), columns=2)


SHOWN = 2.0
"""Number of errors above 0 from which on a correlator is shown on the logarithmic scale."""


class ScreeningPlot(TablePlot):
    """Correlators of planes of one run against the distance, with the fit, and effective masses."""

    name = "screening"
    summary = "correlators of planes of Polyakov loops, and their effective masses"
    fit: ClassVar[str] = "screening"
    subject: ClassVar[str] = "A correlator of planes"
    columns: ClassVar[tuple[str, ...]] = ScreeningFit.columns
    options: ClassVar[tuple[Option, ...]] = ScreeningFit.options

    def picture(self, table: Path, options: dict[str, Any]) -> pictures.Picture:
        """Show correlators divided by their first values, and effective masses with those of fits.

        For errors see `TablePlot.picture`.
        """
        masses = ScreeningFit().carry_out([table], **options).found
        caution(*masses.cautions)
        lattice = Lattice.parse(masses.ensemble["lattice"])
        left, right = list[pictures.Mark](), list[pictures.Mark]()
        for n, mass in enumerate(masses.masses):
            points = [point for point in masses.points if point.part == mass.part]
            left += _correlator(points, mass, n, lattice)
            right += _effective(points, mass, n)
        lower_ends = [np.subtract(x.y, x.error) for x in left if isinstance(x, pictures.Symbols)]
        logarithmic = {"yscale": "log", "ylim": (min(x.min() for x in lower_ends) / 3, None)}
        frames = [
            pictures.Frame(left, r"$r/a$", r"$C(r)/C(0)$", logarithmic),
            pictures.Frame(right, r"$r/a$", r"$m_\mathrm{eff}/T$"),
        ]
        return pictures.Picture(frames, 3.4, columns=2)


PLOTS.register(ScreeningPlot())


def _correlator(
    points: Sequence[ScreeningPoint], mass: ScreeningMass, n: int, lattice: Lattice
) -> list[pictures.Mark]:
    """Return the curve of a fit, and the correlator where it is positive."""
    norm, planes = points[0].correlator.value, max(lattice.extents[:3])
    shown = [point for point in points if point.correlator.value > SHOWN * point.correlator.error]
    m, r = mass.mass.value / lattice.t, np.linspace(mass.r_min, mass.r_max, 200)
    shape = np.exp(-m * r) + np.exp(-m * (planes - r))
    line = {"color": pictures.look(n)["color"], "linewidth": 0.8}
    values = [x.correlator.value / norm for x in shown]
    errors = [x.correlator.error / norm for x in shown]
    style = {**pictures.look(n), "markersize": 4}
    return [
        pictures.Stroke(r, mass.amplitude.value * shape / norm, style=line),
        pictures.Symbols([x.r for x in shown], values, errors, style=style, text=mass.part),
    ]


def _effective(
    points: Sequence[ScreeningPoint], mass: ScreeningMass, n: int
) -> list[pictures.Mark]:
    """Return the effective masses, and the fitted mass with its error where it was fitted."""
    masses = [(point.r + 0.5, point.effective_mass) for point in points if point.effective_mass]
    style = {**pictures.look(n), "markersize": 4}
    low, high = mass.mass.value - mass.mass.error, mass.mass.value + mass.mass.error
    band = {"color": pictures.look(n)["color"], "alpha": 0.3, "linewidth": 0}
    return [
        pictures.Symbols.of([r for r, _ in masses], [x for _, x in masses], style),
        pictures.Sketch(
            lambda axes: axes.fill_between([mass.r_min, mass.r_max], low, high, **band)
        ),
    ]

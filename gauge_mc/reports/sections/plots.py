"""All figures that can be drawn of the runs."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fits.shared.fitted_tables import (
    FitOfOtherTablesError,
    exactly_of_tables,
    is_of_other_tables,
)
from gauge_mc.libraries import load
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.files import FigureFormat, drawn_as, figure_bytes, kept_figures
from gauge_mc.plots.runs.drawing import draw, options_to_draw
from gauge_mc.reports import SECTIONS, Section
from gauge_mc.reports.figures import charts_of
from gauge_mc.reports.markup import Markup, element, folded
from gauge_mc.reports.subject import Subject, single
from gauge_mc.run.thermalisation import SKIP

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 120_000
"""Size of a drawing in bytes above which a picture takes its place."""

MOST_POINTS = 8000
"""Number of points of a figure above which it is not tried as a drawing."""

PICTURE_COLOURS = 64
"""Number of colours of such pictures."""

DPI = 130
"""Pixels per inch of such pictures."""


class PlotsSection(Section):
    """Every registered plot, as ``gauge-mc plot`` draws it with its usual options."""

    name: ClassVar[str] = "plots"
    title: ClassVar[str] = "Figures"
    place: ClassVar[int] = 50

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return the figures, and why others were not possible."""
        plots, missing = [], []
        runs = [one.path for one in subject.runs]
        labels = {one.path: one.label for one in subject.runs}
        for name, one in PLOTS.items():
            groups = [[path] for path in subject.scans] if one.of_scans else [runs]
            shown = []
            for paths in groups:
                try:
                    shown += _figures(one, paths, labels, subject)
                except GaugeError as error:
                    missing.append(element("li", f"{name}: {error}"))
            if shown:
                pictures = element("div", *shown, class_="pictures")
                plots.append(element("div", element("h3", name), pictures, class_="plot"))
        parts = [element("div", *plots, class_="plots")]
        if missing:
            parts.append(folded("Figures that these tables do not allow", element("ul", *missing)))
        return parts


SECTIONS.register(PlotsSection())


def _figures(
    one: Plot, paths: Sequence[Path], labels: dict[Path, str], subject: Subject
) -> list[Markup]:
    """Return the figures of a plot, which may show results of fits that the page has made.

    Raises
    ------
    GaugeError
        If there is nothing to draw.
    """
    try:
        with exactly_of_tables():
            return _drawn(one, paths, labels, subject)
    except GaugeError as error:
        if one.of_scans or not any(subject.results.get(path) for path in paths):
            raise
        with _with_results(paths, subject) as copies, suppress(GaugeError):
            named = {copy: labels[path] for path, copy in copies.items()}
            stale = isinstance(error, FitOfOtherTablesError)
            notes = [f"{error} The figure shows a fit that was made for this page."] * stale
            return _drawn(one, [*copies.values()], named, subject, notes)
        raise


@contextmanager
def _with_results(paths: Sequence[Path], subject: Subject) -> Iterator[dict[Path, Path]]:
    """Return folders with links to the files of runs, and the results of fits that runs lack."""
    with TemporaryDirectory() as scratch:
        copies = {}
        for number, path in enumerate(paths):
            copies[path] = copy = Path(scratch, str(number), path.resolve().name)
            copy.mkdir(parents=True)
            for file in path.iterdir():
                if file.is_file() and not is_of_other_tables(file):
                    (copy / file.name).symlink_to(file.resolve())
            for name, result in subject.results.get(path, {}).items():
                if not (copy / name).exists():
                    result.write(copy / name)
        yield copies


def _drawn(
    one: Plot,
    paths: Sequence[Path],
    labels: dict[Path, str],
    subject: Subject,
    notes: Sequence[str] = (),
) -> list[Markup]:
    """Return a figure of all runs, or one of each run if the plot takes only one.

    Notes are shown below it, beside its cautions.

    Raises
    ------
    GaugeError
        If there is nothing to draw.
    """
    try:
        return [_figure(one, paths, labels, subject, notes)]
    except UsageError:
        if len(paths) < 2:
            raise
    return [_figure(one, [path], labels, subject, notes) for path in paths]


def _figure(
    one: Plot,
    paths: Sequence[Path],
    labels: dict[Path, str],
    subject: Subject,
    notes: Sequence[str],
) -> Markup:
    skip = {SKIP.name: subject.skip} if SKIP in one.options else {}
    given, _ = options_to_draw(one, paths, skip)  # averages say what is left out
    with (
        drawn_as(FigureFormat(dpi=DPI)),
        kept_figures() as figures,
    ):
        _, cautions = draw(one, paths, Path(f"{one.name}.svg"), given, single)
        kind, content = "svg+xml", b""
        if _points(figures[0]) <= MOST_POINTS:
            content = figure_bytes(figures[0], "svg")
        if not content or len(content) > LARGEST:
            kind, content = "png", _with_few_colours(figure_bytes(figures[0], "png"))
    names = ", ".join(labels.get(path, path.name) for path in paths)
    source = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
    said = subject.not_yet_said([*notes, *cautions])
    word = one.summary[:2].isalpha()  # and no symbol such as t²
    caption = f"{one.summary[:1].upper() if word else one.summary[:1]}{one.summary[1:]}: {names}"
    picture = element("img", src=source, alt=caption)
    charts = [chart.html() for chart in charts_of(figures[0], caption)]
    live = folded("Values, to zoom and to read", *charts) if charts else ""
    below = [element("p", line, class_="caution") for line in said]
    return element("figure", picture, element("figcaption", caption), live, *below)


def _with_few_colours(picture: bytes) -> bytes:
    """Return a picture with `PICTURE_COLOURS`, which makes it smaller by a factor of four or so."""
    image = load("PIL.Image")
    with image.open(io.BytesIO(picture)) as whole, io.BytesIO() as file:
        few = whole.convert("RGB").quantize(PICTURE_COLOURS, image.Quantize.FASTOCTREE, dither=0)
        few.save(file, "png", optimize=True)
        return file.getvalue()


def _points(figure: Figure) -> int:
    """Return the number of points of the lines and clouds of a figure."""
    lines = sum(np.size(one.get_xdata()) for axes in figure.axes for one in axes.lines)
    clouds = (one.get_offsets() for axes in figure.axes for one in axes.collections)
    return int(lines + sum(np.shape(one)[0] for one in clouds))

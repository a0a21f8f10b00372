"""``gauge-mc plot``: draw figures of the results of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.command import OptionGroup, Subcommands
from gauge_mc.cli.document import alone_on_stdout, prints, show_result
from gauge_mc.plots import AGAINST_BETA, PLOTS, drawing
from gauge_mc.plots.figures.curves import AveragePoint, AveragesTable
from gauge_mc.plots.figures.files import ENDINGS, STYLE_DPI, FigureFormat, drawn_as
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.thermalisation import Caution, sentences_about

_endings = in_words([f".{x}" for x in ENDINGS], "or")


@documented
@dataclass(frozen=True)
class PlotReport:
    """The document of ``plot``."""

    file: str = result_field("File that was written or read.")
    plot: str = result_field("Name of the plot.")
    points: Sequence[AveragePoint] = result_field(
        "Averages that are drawn, for plots that show averages."
    )
    cautions: Sequence[Caution] = result_field(
        "Cautions, which are those of the fit of the same quantity if there is one."
    )


@prints(PlotReport)
@Subcommands(
    "Plots",
    drawing.plot_names,
    lambda name: drawing.expected_plot(name).summary,
    lambda name: [OptionGroup(name, drawing.expected_plot(name).options, f"Options of {name}")],
    lambda name: None,  # `find_plot` checks it, when the tables of the runs are known
    lambda name: not name.endswith(AGAINST_BETA),
)
@o.described_by("gauge_mc.plots.drawing:plot", size="WxH")
def plot(
    what: Annotated[
        str,
        o.argument(
            f"One of the plots below, or NAME{AGAINST_BETA}: averages of the table NAME against β. "
            "The table of your own function has both plots of its name.",
            metavar="PLOT",
            choices=drawing.plot_names(),
        ),
    ],
    run: Annotated[
        list[Path] | None,
        o.argument("Runs; a scan stands for its runs.", o.NEWEST, metavar="RUN|SCAN"),
    ] = None,
    output: Annotated[
        Path | None,
        o.option(
            f"File to write; its name ends in {_endings}.",
            "PLOT.pdf in the run or scan, or in this folder for several",
            metavar="FILE",
        ),
    ] = None,
    size: str | None = None,
    dpi: Annotated[int | None, o.option("Pixels per inch of a PNG file.", STYLE_DPI)] = None,
    json: o.Json = False,
    **options: Any,
) -> None:
    """Draw figures of the results of one run, or of several runs in one frame.

    The name of the file is printed, after tables of the averages for plots that show averages.

    gauge-mc plot plaquette
    gauge-mc plot potential RUN --output figure.pdf
    gauge-mc plot scan SCAN --size 6.3x4
    """
    of_scans = what in PLOTS and PLOTS[what].of_scans
    paths, runs = drawing.runs_to_draw(what, o.named_or_said(run, json, of_scans))
    figure = drawing.find_plot(what, runs)
    file = output or (paths[0] if len(paths) == 1 else Path()) / f"{what}.pdf"
    settings, remarks = drawing.options_to_draw(figure, runs, options)
    with alone_on_stdout(json), drawn_as(FigureFormat.parse(size, dpi)):
        shown, cautions = drawing.draw(figure, runs, file, settings)
    say(
        *(f"gauge-mc: {sentence}" for sentence in (*remarks, *sentences_about(cautions))),
        error=True,
    )
    points = [point for x in shown if isinstance(x, AveragesTable) for point in x.points]
    show_result("plot", PlotReport(str(file), what, points, cautions), json, *shown, str(file))

"""Cautions about averages that plots show."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gauge_mc.analysis.timeseries.cautions import caution_skip
from gauge_mc.analysis.timeseries.transients import transient_end
from gauge_mc.errors import GaugeError
from gauge_mc.plots.figures.series import History
from gauge_mc.plots.runs.tables import MANY_RUNS
from gauge_mc.registry import in_words
from gauge_mc.run.directory import Run
from gauge_mc.run.settings import STARTS
from gauge_mc.run.thermalisation import SKIP


def caution_unthermalised(runs: Sequence[Path], histories: Sequence[History] = ()) -> None:
    """Warn on stderr if averages over all updates of the runs include thermalisation.

    Parameters
    ----------
    runs : sequence of Path
        Run directories.
    histories : sequence of History
        Series that are averaged. If the first measurements of some deviate from the later ones, the
        number of updates to leave out is suggested.
    """
    last = max((transient_end(one.sweeps, abs(one.values)) for one in histories), default=0)
    if last:
        print(f"gauge-mc: {caution_skip(last)[0]}", file=sys.stderr)
        return
    early = []
    for run in runs:
        try:
            parameters = Run(run).read()[0]
        except GaugeError:  # the plot does not need the parameters
            continue
        if parameters.thermalize == 0 and parameters.start in STARTS:
            early.append(str(run))
    if early:
        many = len(early) > MANY_RUNS
        names = f"{early[0]} and {len(early) - 1} other runs" if many else in_words(early)
        print(
            f"gauge-mc: The averages of {names} include thermalisation, since measurements began "
            f"with the first update; leave the first N updates out with {SKIP.flag} N.",
            file=sys.stderr,
        )

"""How far a run comes within a time, and which errors its averages then have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.analysis.timeseries.gamma_method import MIN_CONFIGURATIONS
from gauge_mc.analysis.timeseries.notation import with_error
from gauge_mc.files.table import read_table
from gauge_mc.observables import Observable
from gauge_mc.results import documented, result_field
from gauge_mc.run.chain_series import LAST_ROW, series_of
from gauge_mc.run.directory import Run
from gauge_mc.run.display import duration
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import Parameters


@documented
@dataclass(frozen=True)
class ExpectedError:
    """The error that an average is expected to have, if autocorrelations are as they are so far."""

    table: str = result_field("The table.")
    column: str = result_field("The column; of several rows for each measurement, their mean.")
    now: Estimate = result_field("The average so far, with tau_int in measurements.")
    measurements: int = result_field("Number of measurements that are expected.")
    error: float = result_field("The expected error, σ √(2 τ_int / measurements).")
    error_of_error: float = result_field("Its error from that of τ_int.")

    def __str__(self) -> str:
        tau = with_error(self.now.tau_int, self.now.tau_int_error)
        expected = with_error(self.error, self.error_of_error)
        return (
            f"{self.table}, {self.column}: ±{expected} by {self.measurements} measurements; now "
            f"{self.now} by {self.now.samples}, τ_int {tau}"
        )


@documented
@dataclass(frozen=True)
class Prospect:
    """The state of a run after a time, if updates and measurements take as long as in a trial."""

    seconds: float = result_field("The time.")
    updates: int = result_field("Number of further updates in this time.")
    updates_error: float | None = result_field(
        "Its error from that of the time of an update in the trial; null if it is not known."
    )
    last: int = result_field("Number of the last update.")
    configurations: int = result_field("Number of configurations that the run then has.")
    errors: Sequence[ExpectedError] = result_field(
        "Errors of averages; none before there are enough measurements."
    )

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield what is known, by heading."""
        count = f"{self.updates}"
        if self.updates_error is not None and self.updates:
            count = f"{self.updates} ± {max(1, round(self.updates_error))}"
        yield (
            f"in {duration(self.seconds)}",
            f"{count} updates, up to update {self.last}, {self.configurations} configurations",
        )
        for n, one in enumerate(self.errors):
            yield "" if n else "errors then", str(one)
        if not self.errors:
            yield (
                "errors then",
                "not known before the run has measured: begin it, and repeat this command",
            )


def prospect(
    seconds: float,
    run: Run,
    parameters: Parameters,
    observables: Mapping[Measurement, Observable],
    done: int,
    costs: tuple[float, float, float | None],
) -> Prospect:
    """Return how far a run comes.

    Parameters
    ----------
    seconds : float
        The time.
    run : Run
        The run directory, which need not exist.
    parameters : Parameters
        Parameters of the run.
    observables : mapping of Measurement to Observable
        Its measurements.
    done : int
        Number of updates done.
    costs : tuple of float
        Time of an update; that of all measurements and snapshots after an update, on average; and
        the error of the former, or None.
    """
    p, (update, rest, error) = parameters, costs
    early = max(0, p.thermalize - done)
    whole = update + rest
    count = seconds / update
    if count > early:
        count = early + (seconds - early * update) / whole
    last = done + int(count)
    sampled = max(0, last - p.thermalize)
    return Prospect(
        seconds,
        int(count),
        None if error is None else count * error / whole,
        last,
        sampled // p.separation,
        [one for item in observables for one in _errors(run, item, sampled // item.every)],
    )


def _errors(run: Run, item: Measurement, measurements: int) -> Iterator[ExpectedError]:
    """Yield the expected errors of the averages of a table after a number of measurements."""
    path = run.table(item.observable)
    if not path.exists():
        return
    for name, _, values in series_of(read_table(path)):
        now = estimate(values)
        if name.endswith(LAST_ROW) or now.samples < MIN_CONFIGURATIONS or not now.error > 0:
            continue
        count = max(measurements, now.samples)
        error = float(np.std(values, ddof=1)) * math.sqrt(2 * now.tau_int / count)
        uncertain = error * now.tau_int_error / (2 * now.tau_int)
        yield ExpectedError(item.observable, name, now, count, error, uncertain)

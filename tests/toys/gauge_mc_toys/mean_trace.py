"""A fit: the mean link trace."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gauge_mc.analysis.table_series import read_rows
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.fits import Fit, FitResult
from gauge_mc.fits.quoted import QuotedNumber, quoted_number
from gauge_mc.results import documented, result_field


@documented
@dataclass(frozen=True, repr=False)
class MeanTraceResult(FitResult):
    """The mean link trace of an ensemble."""

    mean: Estimate = result_field("Average over all links and configurations.")

    def values(self) -> dict[str, Any]:
        """Return the mean and what it is, for JSON."""
        return {"observable": "the mean link trace", "units": "none", **asdict(self)}

    def report(self) -> list[Any]:
        """Return the mean as a line of text."""
        return [f"mean link trace {self.mean}"]

    def quoted(self) -> list[QuotedNumber]:
        """Return the mean, with which the printed text ends."""
        return [quoted_number("mean link trace", self.mean)]


class MeanTraceFit(Fit):
    """The mean of the column ``trace``."""

    name = "mean-trace"
    summary = "the mean link trace"
    columns = ("trace",)
    content = (MeanTraceResult,)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> MeanTraceResult:
        """Average the column."""
        table, replicas = read_rows(tables)
        return MeanTraceResult(replicas.estimate(table["trace"]))


MEAN_TRACE = MeanTraceFit()

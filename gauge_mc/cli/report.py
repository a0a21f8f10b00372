"""``gauge-mc report``: write a page that shows everything about runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gauge_mc.cli.document import prints
from gauge_mc.cli.options import is_function
from gauge_mc.run.thermalisation import SKIP


@prints("gauge_mc.reports.page:PageReport")
@is_function("gauge_mc.reports.page:report", run="RUN|SCAN", output="FILE", skip=SKIP)
def report(page: Any) -> Iterator[str]:
    """Yield the file.

    gauge-mc report
    gauge-mc report RUN --skip auto
    gauge-mc report SCAN --output page.html
    """
    yield page.file

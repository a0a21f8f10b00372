"""The program as a child of a scan, which writes a checkpoint and stops if its parent dies."""

from __future__ import annotations

import json
import sys

from gauge_mc.scans.pool import stop_with_parent


def child() -> None:
    """Carry out one or several runs, whose values are a JSON list on standard input."""
    stop_with_parent()  # before imports that take long
    from gauge_mc.cli import main
    from gauge_mc.domain.mpi import forget_launcher

    forget_launcher()
    sys.argv[:] = ["gauge-mc", "scan"]  # as logs name the command
    main(_generate)


def _generate() -> int:
    from gauge_mc.errors import INTERRUPTED
    from gauge_mc.run.generate import generate_together, requests_of

    requests = [x for values in json.load(sys.stdin) for x in requests_of(values)]
    results = generate_together(requests)
    return INTERRUPTED if any(result.stopped for result in results) else 0

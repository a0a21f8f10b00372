"""Reports of fits as text."""

import io

from rich.console import Console


def shown(result):
    """Return what a result reports, without line breaks."""
    console = Console(width=200, file=io.StringIO())
    console.print(*result.report(), sep="\n")
    return " ".join(console.file.getvalue().split())

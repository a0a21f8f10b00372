"""Publishing: ensembles for data repositories, ILDG's QCDml, and published results as tests."""

from gauge_mc.cli import FILES, GENERATE, Command

HERE = __name__

PAPER = Command(
    GENERATE,
    "Reproduce published tables and figures, and compare with them.",
    function=f"{HERE}.commands:paper",
    name="paper",
)
PUBLISH = Command(
    FILES, "Write a run into a folder for a data repository.", f"{HERE}.commands:publish", "publish"
)

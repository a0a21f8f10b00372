"""Publishing under faults; see ``tests/faults``."""

from tests.faults.commands import RUN, Trial

TRIALS = {
    "publish": Trial(
        "publish {}/run {}/data --author Plato",
        begun=(RUN,),
        results=("data/*.*", "data/configs/*"),
        untouched=("run/configs/*", "run/*.csv"),
        again=(0, 2),
        verified="data",
    )
}
"""Commands by name."""

QUICK = {"publish": ("--actions=kill,full --every=25",)}
"""Trials of the quick tests."""

SHORT = {"publish": ("--actions=kill,full,broken --every=5", "--actions=torn")}
"""Trials of the slow tests."""

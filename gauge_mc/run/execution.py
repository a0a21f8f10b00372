"""How and where a run is carried out, which may change from one session to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gauge_mc import defaults
from gauge_mc.devices.choice import AUTOMATIC, BACKENDS, check_threads
from gauge_mc.registry import in_words
from gauge_mc.results import documented
from gauge_mc.run.settings import EXECUTION, FILES, check_bounds, converted, setting

NUMBERED = in_words(dict.fromkeys(one.label for one in BACKENDS.values() if one.numbered), "or")
"""Label of the devices that are chosen by number, such as ``GPU``."""

DIVIDED = [name for name, one in BACKENDS.items() if not one.numbered]
"""Backends whose single device can be divided into parts."""

DIVIDED_LABELS = in_words(dict.fromkeys(BACKENDS[name].label for name in DIVIDED), "or")
"""Labels of the devices of the backends in `DIVIDED`, as text."""

_parts = [f"{name}:N" for name in DIVIDED]
_backends = (AUTOMATIC, *sorted(BACKENDS, key=lambda name: -BACKENDS[name].preference))


@documented
@dataclass(frozen=True)
class Execution:
    """Options for how and where a run is carried out. They do not change the numbers.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    output: str | None = setting(
        None,
        FILES,
        "Run directory.",
        read="path",
        default="runs/NAME, where NAME identifies the chain",
        metavar="PATH",
    )
    backend: str = setting(
        AUTOMATIC,
        EXECUTION,
        "Backend, the type of device to compute on.",
        choices=_backends,
    )
    devices: str | None = setting(
        None,
        EXECUTION,
        f"Number of {NUMBERED}s, or their numbers, or all; or {in_words(_parts, 'or')} to divide "
        f"the {DIVIDED_LABELS} into N parts, which share its threads.",
        metavar="|".join(["N", "I,J,...", "all", *_parts]),
    )
    threads: int | None = setting(
        None,
        EXECUTION,
        "Number of CPU threads, over all slabs.",
        default="all, or fewer if faster",
    )
    share_gpus: bool = setting(False, EXECUTION, "Let processes of an MPI job share GPUs.")
    time_limit: float | None = setting(
        None,
        EXECUTION,
        "Time within which to write a checkpoint and stop.",
        read="duration",
        metavar="HH:MM:SS",
    )
    checkpoint_every: float = setting(
        defaults.CHECKPOINT_EVERY,
        EXECUTION,
        "Minutes between checkpoints.",
        least=0,
        metavar="MINUTES",
    )
    quiet: bool = setting(False, EXECUTION, "Show no progress and no summary.")

    def __post_init__(self) -> None:
        check_threads(self.threads)
        check_bounds(self)

    @classmethod
    def from_values(cls, values: Mapping[str, object]) -> Execution:
        """Return execution options from command-line options or the keys of a run card.

        Other keys are ignored.
        """
        return cls(**converted(cls, values))

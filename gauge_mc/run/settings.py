"""Settings: fields of data classes that the command line, run cards and Python can give.

A field is declared once, with `setting`. Options of commands, the keys of run cards with their
schema, and the checks of values follow from that.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from gauge_mc import actions, algorithms, defaults
from gauge_mc.actions import Action
from gauge_mc.algorithms import Algorithm
from gauge_mc.devices.choice import AUTOMATIC, BACKENDS, Place, check_threads
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.options import Option
from gauge_mc.quoting import quoted, shortened
from gauge_mc.registry import in_words, words_in_any_case
from gauge_mc.results import DECLARED, documented
from gauge_mc.run.measurement import measurements

PHYSICS, ENSEMBLE, FILES, EXECUTION = "Physics", "Ensemble", "Files", "Execution"
"""Panels of help texts."""

STARTS = ("cold", "hot")
"""Values of ``start`` other than a file."""

LARGEST = 2**63 - 1
"""Largest whole number: TOML guarantees only signed 64-bit integers."""

READ = "read"
"""Key of the metadata of a field that says how its values are read."""


def setting(usual: Any, panel: str, help: str, *, read: str = "", **more: Any) -> Any:
    """Return a field of a data class that the user can set.

    Parameters
    ----------
    usual : object
        Default.
    panel : str
        Panel of help texts.
    help : str
        Short description.
    read : str
        A key of `READERS`, if it is not the type of the field.
    **more : object
        Further attributes of the `Option`.
    """
    declared = {"help": help, "panel": panel, "usual": usual, **more}
    return dataclasses.field(default=usual, metadata={DECLARED: declared, READ: read})


@cache
def _options(settings: type[Any]) -> dict[str, Option]:
    fields = dataclasses.fields(settings)
    kinds = {field.name: KINDS.get(field.metadata[READ] or _type(field), str) for field in fields}
    options = {
        field.name: Option(field.name, kinds[field.name], **field.metadata[DECLARED])
        for field in fields
    }
    # Registries are choices as well, whose plug-ins may be left out after the declaration.
    return {
        name: replace(option, choices=tuple(option.choices)) for name, option in options.items()
    }


def options_of(settings: type[Any]) -> dict[str, Option]:
    """Return the options that the fields of a data class declare, by name."""
    return dict(_options(settings))  # type: ignore[arg-type]


def converted(settings: type[Any], values: Mapping[str, object]) -> dict[str, Any]:
    """Return the values whose keys are fields of a data class, converted to their types."""
    result = {}
    for field in dataclasses.fields(settings):
        if field.name in values:
            kind, value = field.metadata[READ] or _type(field), values[field.name]
            if isinstance(value, str):
                option = _options(settings)[field.name]  # type: ignore[arg-type]
                value = words_in_any_case(value, option.choices, option.separator)
            try:
                result[field.name] = READERS[kind](value)
            except ValueError as error:
                raise UsageError(
                    f"{field.name} must be {error}, not {quoted(values[field.name])}."
                ) from error
    return result


def check_bounds(settings: Any) -> None:
    """Refuse numbers outside of the bounds that the fields of a data class declare."""
    for name, option in options_of(type(settings)).items():
        value = getattr(settings, name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            option.checked(value)


def _type(field: dataclasses.Field[Any]) -> str:
    return str(field.type).removesuffix(" | None")


def parse_duration(value: object) -> float:
    """Convert a time ``HH:MM:SS`` to seconds. The hours may have up to nine digits."""
    words = str(value).split(":")
    if len(words) != 3 or not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
        raise UsageError(
            f"time_limit: '{shortened(str(value))}' is not of the form HH:MM:SS, such as 23:30:00."
        )
    hours, minutes, seconds = map(int, words)
    return 3600.0 * hours + 60.0 * minutes + seconds


SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
"""Units of times."""


def parse_time(value: float | str, flag: str) -> float:
    """Read a time such as ``90`` in seconds, ``10m`` or ``10min``, ``1.5h`` or ``HH:MM:SS``."""
    digits = str(value).strip().lower()
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(s|m|min|h|d)?", digits)
    with suppress(UsageError):
        seconds = float(match[1]) * SECONDS[match[2] or ""] if match else parse_duration(digits)
        if seconds > 0:
            return seconds
    raise UsageError(
        f"{flag} is '{shortened(digits)}'; give a time such as 90s, 10m, 1.5h or 0:30:00."
    )


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number")
    if abs(value) > LARGEST:
        raise ValueError("a whole number between -2^63 and 2^63")
    return value


def _real(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("a number below 1e308") from None


def _word(value: object) -> str:
    if not isinstance(value, str | Path):
        raise ValueError("a string")
    word = str(value)
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in word):
        # Files of runs contain the words, and cannot contain these.
        raise ValueError("a string of UTF-8 without control characters")
    return word


def _path(value: object) -> str:
    """Read a path, which need not be UTF-8."""
    if not isinstance(value, str | Path):
        raise ValueError("a path")
    if not str(value) or "\0" in str(value):
        raise ValueError("a path that is not empty and has no NUL characters")
    return str(value)


def _start(value: object) -> str:
    """Read a start. The path of a file is made absolute, so that it is valid in every folder."""
    word = _word(value)
    words = listed_starts(word) or (word,)
    return ",".join(w if w in STARTS or not w else str(Path(w).absolute()) for w in words)


def listed_starts(start: str) -> tuple[str, ...]:
    """Return the starts that a text such as ``hot,cold`` names; nothing for the path of one file.

    Some or all of a list may be files, unless a file has the name of the whole list.
    """
    words = tuple(word.strip() for word in start.split(","))
    if set(words) <= {*STARTS}:
        return words
    return words if len(words) > 1 and all(words) and not Path(start).exists() else ()


def start_of_chain(start: str, chain: int) -> str:
    """Return how one of several chains starts, given its number from 0."""
    starts = listed_starts(start) or (start,)
    return starts[chain % len(starts)]


def check_starts(start: str, chains: int) -> None:
    """Refuse a list of more starts than there are chains."""
    if (number := len(listed_starts(start))) > max(chains, 1):
        raise UsageError(
            f"--start {start} names the starts of {number} chains; add --chains {number}, or "
            "choose one of them."
        )


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _lattice(value: object) -> Lattice:
    if isinstance(value, Lattice):
        return value
    return Lattice.parse(value if isinstance(value, list | tuple) else _word(value))


READERS: Mapping[str, Callable[[object], object]] = {
    "int": _whole,
    "float": _real,
    "str": _word,
    "path": _path,
    "bool": _flag,
    "duration": parse_duration,
    "start": _start,
    "Lattice": _lattice,
    "Action": lambda x: x if isinstance(x, Action) else actions.parse(_word(x)),
    "Algorithm": lambda x: x if isinstance(x, Algorithm) else algorithms.parse(_word(x)),
    "tuple[Measurement, ...]": lambda x: measurements(_word(x) if isinstance(x, str | Path) else x),
}
"""How values are read, by the type of a field or by name."""

KINDS: Mapping[str, type[Any]] = {"int": int, "float": float, "bool": bool}
"""Types of fields that the command line reads as such; all others are text."""


NUMBERED = in_words(dict.fromkeys(x.label for x in BACKENDS.values() if x.numbered), "or")
"""Label of the devices that are chosen by number, such as ``GPU``."""

DIVIDED = [name for name, x in BACKENDS.items() if not x.numbered]
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
        AUTOMATIC, EXECUTION, "Backend, the type of device to compute on.", choices=_backends
    )
    devices: str | None = setting(
        None,
        EXECUTION,
        f"Number of {NUMBERED}s, or their numbers, or all; or {in_words(_parts, 'or')} to divide "
        f"the {DIVIDED_LABELS} into N parts, which share its threads.",
        metavar="|".join(["N", "I,J,...", "all", *_parts]),
    )
    threads: int | None = setting(
        None, EXECUTION, "Number of CPU threads, over all slabs.", default="all, or fewer if faster"
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
        "Longest time between checkpoints in minutes.",
        least=0,
        metavar="MINUTES",
    )
    quiet: bool = setting(False, EXECUTION, "Show no progress and no summary.")

    def __post_init__(self) -> None:
        check_threads(self.threads)
        check_bounds(self)

    @property
    def place(self) -> Place:
        """Where the run is carried out."""
        return Place(self.devices, self.backend, self.threads)

    @classmethod
    def from_values(cls, values: Mapping[str, object]) -> Execution:
        """Return execution options from command-line options or the keys of a run card.

        Other keys are ignored.
        """
        return cls(**converted(cls, values))

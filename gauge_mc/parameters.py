"""The parameters of one run: defaults, checks, run cards.

`Parameters` holds what decides the numbers a run writes; `Execution` holds how and where it is
carried out, which may change from one call to the next. Both read from TOML cards and from the
command line by the same names.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gauge_mc.errors import UsageError
from gauge_mc.lattice import Lattice

DEFAULT_LATTICE = Lattice(16, 16, 16, 16)
DEFAULT_BETA = {"su2": 2.5, "su3": 6.0}
GROUPS = tuple(DEFAULT_BETA)
PRECISIONS = ("single", "double")
GENERATORS = ("philox", "lcg", "ranlux")
MAX_LUXURY = 4
STARTS = ("cold", "hot")
AVERAGES = ("plaquette", "polyakov")
OBSERVABLES = (*AVERAGES, "wilson-loops")
LOOP_EXTENT = 12
"""R and T of Wilson loops at the most, if nothing is said of them."""
ITERATIONS = 25
"""Of smearing, likewise."""
SUFFIXES = {"ildg": ".lime", "nersc": ".nersc", "openqcd": ".openqcd"}
FORMATS = tuple(SUFFIXES)
NO_FORMAT = "none"
"""The format of a run that keeps no configurations."""

MAX_SEED = 2**63 - 1
"""Seeds are whole numbers that fit TOML's 64-bit integers."""

MAX_CARD = 2**20
"""Bytes of a run card, at most: a run.toml with thousands of sessions is smaller."""
MAX_THREADS = 1024

RECORD = "session"
"""What a run.toml holds besides its parameters; skipped when it serves as a card."""


def _choose(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{name}: '{value}' is not known; choose {' or '.join(known)}.")


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise UsageError(f"{name} must be at least {least}, not {value}.")


@dataclass(frozen=True)
class Measurement:
    """An observable and how often it is measured.

    Parameters
    ----------
    observable : str
        One of `OBSERVABLES`.
    every : int
        Measured after every so many sweeps, counted from the end of thermalisation.

    Raises
    ------
    UsageError
        If the observable is unknown or `every` is below 1.
    """

    observable: str
    every: int = 1

    def __post_init__(self) -> None:
        _choose("measure", self.observable, OBSERVABLES)
        _at_least("measure", self.every, 1)

    @classmethod
    def parse(cls, text: str) -> Measurement:
        """Read ``plaquette`` or ``plaquette:10``."""
        name, colon, every = text.strip().partition(":")
        if colon and not every.strip().isdecimal():
            raise UsageError(
                f"measure: '{text}' is not of the form OBSERVABLE:SWEEPS, such as plaquette:10."
            )
        return cls(name.strip(), int(every) if colon else 1)

    def __str__(self) -> str:
        return self.observable if self.every == 1 else f"{self.observable}:{self.every}"


@dataclass(frozen=True)
class Parameters:
    """Everything that decides the numbers of a run.

    Sweeps are composite: `heatbath` heatbath sweeps, then `overrelax` overrelaxation sweeps.
    They are counted from the start, thermalisation included.

    Parameters
    ----------
    lattice : Lattice
        Extents in lattice units.
    group : str
        "su2" or "su3".
    beta : float
        The coupling of the Wilson action, 2N/g^2.
    precision : str
        Of the stored links, "single" or "double".
    start : str
        "cold", "hot", or the path of a configuration file.
    seed : int
        Of the random numbers, from 0 to 2^63 - 1.
    rng : str
        The generator, one of `GENERATORS`.
    luxury : int
        The luxury level of ``ranlux``, 0 to 4.
    heatbath, overrelax : int
        Sweeps of each kind in one composite sweep.
    thermalize : int
        Composite sweeps before the first measurement.
    configs : int
        Configurations to write. They say how long a run is even if it keeps none.
    separation : int
        Composite sweeps from one written configuration to the next.
    measure : tuple of Measurement
        What is measured, and how often.
    format : str
        Of the configuration files, one of `FORMATS`, or `NO_FORMAT`.

    Raises
    ------
    UsageError
        If a value is not allowed.
    """

    lattice: Lattice = DEFAULT_LATTICE
    group: str = "su2"
    beta: float = DEFAULT_BETA["su2"]
    precision: str = "single"
    start: str = field(default="cold", metadata={"kind": "start"})
    seed: int = 1
    rng: str = "philox"
    luxury: int = 3
    heatbath: int = 1
    overrelax: int = 4
    thermalize: int = 200
    configs: int = 10
    separation: int = 20
    measure: tuple[Measurement, ...] = tuple(map(Measurement, AVERAGES))
    format: str = "ildg"

    def __post_init__(self) -> None:
        _choose("group", self.group, GROUPS)
        _choose("precision", self.precision, PRECISIONS)
        _choose("rng", self.rng, GENERATORS)
        _choose("format", self.format, (*FORMATS, NO_FORMAT))
        if not 0 <= self.luxury <= MAX_LUXURY:
            raise UsageError(f"luxury must lie between 0 and {MAX_LUXURY}, not {self.luxury}.")
        if self.rng != "ranlux" and self.luxury != type(self).luxury:
            raise UsageError(f"luxury is a choice of the generator ranlux, not of {self.rng}.")
        if not (math.isfinite(self.beta) and self.beta > 0):
            raise UsageError(f"beta must be a positive number, not {self.beta:g}.")
        if not 0 <= self.seed <= MAX_SEED:
            raise UsageError(f"seed must lie between 0 and 2^63 - 1, not {self.seed}.")
        if not self.start:
            raise UsageError("start must be cold, hot or the path of a configuration file.")
        _at_least("heatbath", self.heatbath, 1)
        _at_least("overrelax", self.overrelax, 0)
        _at_least("thermalize", self.thermalize, 0)
        _at_least("configs", self.configs, 0)
        _at_least("separation", self.separation, 1)
        if self.format == "openqcd" and (self.group, self.precision) != ("su3", "double"):
            raise UsageError("format: openqcd files hold su3 links in double precision only.")

    @classmethod
    def from_values(cls, values: Mapping[str, object]) -> Parameters:
        """Make parameters from options or the keys of a card.

        Parameters
        ----------
        values : mapping of str to object
            Words and numbers by parameter name; other keys are left alone.

        Raises
        ------
        UsageError
            If a value is of the wrong kind or not allowed.
        """
        given = _converted(cls, values)
        given.setdefault("beta", DEFAULT_BETA.get(given.get("group", cls.group), cls.beta))
        return cls(**given)

    def values(self) -> dict[str, str | int | float]:
        """Return the parameters as TOML keys and values; `from_values` reads them back."""
        values = {name: getattr(self, name) for name in _names(type(self))}
        return values | {
            "lattice": str(self.lattice),
            "measure": ",".join(map(str, self.measure)) or "none",
        }

    def settled(self) -> dict[str, str | int | float]:
        """Return the values that may not change while a run is under way: all but `configs`."""
        return {name: value for name, value in self.values().items() if name != "configs"}

    def to_toml(self) -> str:
        """Return the parameters as the text of a run card."""
        import tomli_w

        return tomli_w.dumps(self.values())

    def continued(self, values: Mapping[str, object], whose: str) -> Parameters:
        """Return the parameters asked for, if what is under way with these can go on with them.

        Parameters
        ----------
        values : mapping of str to object
            What is asked for, as for `from_values`; the rest is as it was.
        whose : str
            What is under way, to begin a complaint with, such as ``The run runs/su2_b2.5``.

        Raises
        ------
        UsageError
            If anything but `configs` is to change, `configs` is to be lowered, or a value is of
            the wrong kind or not allowed.
        """
        asked = dataclasses.replace(self, **_converted(type(self), values))
        mine, theirs = self.settled(), asked.settled()
        differences = [
            f"{name} = {mine[name]}, not {theirs[name]}"
            for name in mine
            if mine[name] != theirs[name]
        ]
        if differences:
            raise UsageError(f"{whose} has {'; '.join(differences)}; choose another --output.")
        if asked.configs < self.configs:
            raise UsageError(
                f"{whose} has configs = {self.configs}; --configs can be raised, but not lowered "
                f"to {asked.configs}."
            )
        return asked

    @property
    def sweeps(self) -> int:
        """The composite sweeps of the whole run, thermalisation included."""
        return self.thermalize + self.configs * self.separation

    @property
    def keeps_configs(self) -> bool:
        """Whether configurations are written, not only tables and checkpoints."""
        return self.format != NO_FORMAT

    @property
    def generator(self) -> str:
        """The random number generator in words."""
        return f"{self.rng} at luxury {self.luxury}" if self.rng == "ranlux" else self.rng

    @property
    def links_per_sweep(self) -> int:
        """Link updates in one composite sweep."""
        return self.lattice.links * (self.heatbath + self.overrelax)

    @property
    def name(self) -> str:
        """The default name of the run directory, such as ``su2_b2.5_24x24x24x32``.

        Group, beta and lattice always; then whatever else shapes the Markov chain (precision,
        start, seed, generator, update) where it is not the default. How the chain is sampled
        (thermalize, configs, separation, measure, format) is not part of the name.
        """
        usual = Parameters()
        start = self.start if self.start in STARTS else f"from-{Path(self.start).stem}"
        extras = {
            "precision": self.precision,
            "start": start,
            "seed": f"seed{self.seed}",
            "rng": self.rng,
            "luxury": f"luxury{self.luxury}",
            "heatbath": f"hb{self.heatbath}",
            "overrelax": f"or{self.overrelax}",
        }
        changed = [
            word for key, word in extras.items() if getattr(self, key) != getattr(usual, key)
        ]
        return "_".join([self.group, f"b{self.beta:.12g}", str(self.lattice), *changed])


@dataclass(frozen=True)
class Execution:
    """How and where a run is carried out; none of it changes the numbers.

    Parameters
    ----------
    output : str, optional
        The run directory. Without it, ``runs/`` and the name of the parameters.
    backend : str
        "auto", "cuda" or "cpu".
    threads : int, optional
        On the CPU. Without it, all cores of the process.
    devices : str, optional
        That share the lattice, as `gauge_mc.devices.choose_devices` reads it. Without it, one.
    share_gpus : bool
        Whether several processes of an MPI job may use one GPU.
    quiet : bool
        No progress and no summary.
    time_limit : float, optional
        Seconds after which the run must have stopped with a checkpoint.
    checkpoint_every : float
        Minutes from one checkpoint to the next; 0 means after every sweep.

    Raises
    ------
    UsageError
        If a value is not allowed.
    """

    output: str | None = None
    backend: str = "auto"
    threads: int | None = None
    devices: str | None = None
    share_gpus: bool = False
    quiet: bool = False
    time_limit: float | None = field(default=None, metadata={"kind": "duration"})
    checkpoint_every: float = 10.0

    def __post_init__(self) -> None:
        if self.threads is not None and not 1 <= self.threads <= MAX_THREADS:
            raise UsageError(f"threads must lie between 1 and {MAX_THREADS}, not {self.threads}.")
        if not self.checkpoint_every >= 0:
            raise UsageError(
                f"checkpoint_every must be 0 minutes or more, not {self.checkpoint_every:g}."
            )

    @classmethod
    def from_values(cls, values: Mapping[str, object]) -> Execution:
        """Make execution options from options or the keys of a card; other keys are left alone."""
        return cls(**_converted(cls, values))


def read_card(path: str | Path) -> dict[str, object]:
    """Read a run card: TOML keys of `Parameters` and `Execution`, none of them required.

    A ``run.toml`` is a card too.

    Returns
    -------
    dict
        The values as they stand, for `Parameters.from_values` and `Execution.from_values`.

    Raises
    ------
    UsageError
        If the card cannot be read, is not TOML, or has a key that is not known.
    """
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_CARD + 1)
        if len(text) > MAX_CARD:
            raise UsageError(f"The run card {path} is larger than {MAX_CARD} bytes.")
        values = tomllib.loads(text.decode())
    except OSError as error:
        raise UsageError(f"Cannot read the run card {path}: {error.strerror}.") from error
    except ValueError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise UsageError(f"The run card {path} is not valid TOML: {reason}.") from error
    known = _names(Parameters) + _names(Execution)
    card = {key.replace("-", "_"): value for key, value in values.items() if key != RECORD}
    for key in card:
        if key not in known:
            raise UsageError(f"Unknown key '{key}' in {path}{_nearest(key, known)}")
    return card


def parse_duration(value: object) -> float:
    """Seconds in ``HH:MM:SS``; hours may have any number of digits.

    Raises
    ------
    UsageError
        If `value` is not of that form.
    """
    words = str(value).split(":")
    if len(words) != 3 or not all(word.isdecimal() for word in words):
        raise UsageError(f"time_limit: '{value}' is not of the form HH:MM:SS, such as 23:30:00.")
    hours, minutes, seconds = map(int, words)
    return 3600.0 * hours + 60.0 * minutes + seconds


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number")
    return value


def _real(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number")
    return float(value)


def _word(value: object) -> str:
    if not isinstance(value, str | Path):
        raise ValueError("a string")
    return str(value)


def _start(value: object) -> str:
    """Read a start; a file is kept by its full path, so that it means the same anywhere."""
    word = _word(value)
    return word if word in STARTS or not word else str(Path(word).absolute())


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _lattice(value: object) -> Lattice:
    return Lattice.parse(_word(value))


def _measurements(value: object) -> tuple[Measurement, ...]:
    """Read ``plaquette,polyakov:10``, or ``none``; put in the order of `OBSERVABLES`."""
    words = _word(value).split(",")
    if words == ["none"]:
        return ()
    found = {item.observable: item for item in map(Measurement.parse, words)}
    if len(found) < len(words):
        raise UsageError(f"measure: '{value}' names an observable twice.")
    return tuple(found[name] for name in OBSERVABLES if name in found)


_CONVERTERS: dict[str, Callable[[object], object]] = {
    "int": _whole,
    "int | None": _whole,
    "float": _real,
    "str": _word,
    "str | None": _word,
    "bool": _flag,
    "duration": parse_duration,
    "start": _start,
    "Lattice": _lattice,
    "tuple[Measurement, ...]": _measurements,
}


def _names(cls: type[Parameters] | type[Execution]) -> tuple[str, ...]:
    return tuple(item.name for item in dataclasses.fields(cls))


def _converted(
    cls: type[Parameters] | type[Execution], values: Mapping[str, object]
) -> dict[str, Any]:
    """Convert what `values` names among the fields of `cls`, each as the type of its field."""
    result = {}
    for item in dataclasses.fields(cls):
        if item.name in values:
            kind = item.metadata.get("kind", item.type)
            try:
                result[item.name] = _CONVERTERS[kind](values[item.name])
            except ValueError as error:
                raise UsageError(
                    f"{item.name} must be {error}, not {values[item.name]!r}."
                ) from error
    return result


def _nearest(word: str, known: Iterable[str]) -> str:
    match = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean '{match[0]}'?" if match else f"; known are {', '.join(known)}."

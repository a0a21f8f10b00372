"""Parameters of a run: defaults, checks, run cards.

`Parameters` determines the numbers that a run writes. `Execution` determines how and where the run
is carried out, which may change from one session to the next. Run cards (TOML) and the command line
use the same names for both.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import unicodedata
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gauge_mc import defaults
from gauge_mc.actions import ACTIONS, Coupling
from gauge_mc.devices.choice import AUTOMATIC, check_threads
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import REALS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_toml
from gauge_mc.formats import FORMATS, check_writable
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.quoting import quoted, shortened
from gauge_mc.random import GENERATORS
from gauge_mc.registry import in_words, nearest
from gauge_mc.updates.chain_versions import FIRST, LATEST

STARTS = ("cold", "hot")
"""Values of ``start`` other than a file."""

NO_FORMAT = "none"
"""The format of a run that keeps no configurations."""

NO_MEASUREMENT = "none"
"""The measurements of a run that measures nothing."""

MAX_SEED = 2**63 - 1
"""Largest seed: TOML guarantees only signed 64-bit integers."""

MAX_SWEEPS = 10**6
"""Largest number of sweeps of a kind in one update."""

MAX_UPDATES = 10**12
"""Largest number of updates of a kind, and of configurations."""

BETAS = (1e-6, 1e6)
"""Smallest and largest coupling, which single precision can represent with room to spare."""

MAX_CARD = 2**20
"""Maximum size of a run card in bytes. A run.toml with thousands of sessions is smaller."""

USUAL_LATTICE = Lattice.parse(defaults.LATTICE)
"""The default lattice."""

USUAL_BETA = float("nan")
"""Placeholder for the default coupling of the group, until the group is known."""

UNSTATED: Mapping[str, object] = {"chain_version": FIRST}
"""Values of parameters that the files of runs and scans of earlier versions lack."""

RECORD = "session"
"""Key of the records of sessions in a run.toml; ignored when the file is used as a run card."""


def _choose(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{name}: '{value}' is unknown; choose {in_words(known, 'or')}.")


def _between(name: str, value: int, least: int, most: int) -> None:
    if value < least:
        raise UsageError(f"{name} must be at least {least}, not {value}.")
    if value > most:
        raise UsageError(f"{name} must be at most {most}, not {value}.")


def check_beta(beta: float) -> None:
    """Refuse a coupling that is not positive, or with which the heatbath cannot compute.

    Raises
    ------
    UsageError
        If the coupling is outside of `BETAS`.
    """
    least, most = BETAS
    if not beta > 0:
        raise UsageError(f"beta must be a positive number, not {beta:g}.")
    if not least <= beta <= most:
        raise UsageError(f"beta must lie between {least:g} and {most:g}, not {beta:g}.")


@dataclass(frozen=True)
class Measurement:
    """An observable and the interval between its measurements.

    Attributes
    ----------
    observable : str
        Name of an observable.
    every : int
        Updates from one measurement to the next, counted from the end of thermalisation.
    options : tuple of str
        Options of the observable as text, such as ``to=6.5``, or ``slices`` for a flag.

    Raises
    ------
    UsageError
        If `every` is below 1.
    """

    observable: str
    every: int = 1
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.every <= MAX_UPDATES:
            raise UsageError(
                f"measure: {self.observable} cannot be measured after each {self.every} updates; "
                f"choose an interval from 1 to {MAX_UPDATES}."
            )

    @classmethod
    def parse(cls, text: str) -> Measurement:
        """Read a measurement from text.

        This is a name; a name and an interval as in ``polyakov:10``; or these and options of the
        observable as in ``flow:50:to=6.5:slices``. A colon before a digit belongs to the value of
        an option, as in ``wilson-loops:20:smear=ape:0.2x25``, but for the interval.

        Raises
        ------
        UsageError
            If the interval is not a whole number, or is below 1.
        """
        name, colon, rest = text.partition(":")
        words = re.split(r":(?![0-9])", rest) if colon else []
        name, *more = (word.strip() for word in (name, *words))
        if more and not re.fullmatch("[0-9]{1,18}", more[0]):
            raise UsageError(
                f"measure: '{shortened(text)}' is not of the form OBSERVABLE:UPDATES, such as "
                f"{defaults.MEASURE[0]}:10, or OBSERVABLE:UPDATES:OPTION=VALUE."
            )
        return cls(name, int(more[0]) if more else 1, tuple(more[1:]))

    def __str__(self) -> str:
        if self.every == 1 and not self.options:
            return self.observable
        return ":".join((self.observable, str(self.every), *self.options))


@dataclass(frozen=True)
class Parameters:
    """All parameters that determine the numbers of a run.

    An update consists of `heatbath` heatbath sweeps followed by `overrelax` overrelaxation sweeps.
    Updates are counted from the start, thermalisation included.

    Attributes
    ----------
    lattice : Lattice
        Extents in lattice units; also accepted as text, such as ``24x24x24x32``.
    group : str
        Name of a gauge group.
    beta : float, optional
        Coupling 2 N / g^2; by default a typical value for the group.
    action : str
        Name of a gauge action.
    anisotropy : float
        Bare anisotropy xi0 of the action: loops in space are multiplied by 1 / xi0, and all loops
        with links in direction t by xi0.
    precision : str
        Precision of the links in memory and in the files, ``single`` or ``double``.
    start : str
        ``cold``, ``hot``, or the path of a configuration file.
    seed : int
        Seed of the random numbers, from 0 to 2^63 - 1.
    rng : str
        Name of a random number generator.
    luxury : int
        Quality level, for generators that have levels.
    heatbath, overrelax : int
        Number of heatbath and overrelaxation sweeps in one update.
    thermalize : int
        Number of updates before the first measurement.
    configs : int
        Number of configurations. It determines the length of the run even if no configurations are
        written.
    separation : int
        Number of updates from one configuration to the next.
    measure : tuple of Measurement
        Observables and the intervals between their measurements; also accepted as text, such as
        ``plaquette,polyakov:10``.
    format : str
        Format of the configuration files, or `NO_FORMAT` to write none.
    chain_version : int
        Version of the Markov chain, 1 or 2. In single precision the rows of links have norms with a
        bias of 4e-8 in version 1, and without a bias in version 2.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    lattice: Lattice = USUAL_LATTICE
    group: str = defaults.GROUP
    beta: float = USUAL_BETA
    action: str = defaults.ACTION
    anisotropy: float = defaults.ANISOTROPY
    precision: str = defaults.PRECISION
    start: str = field(default=defaults.START, metadata={"kind": "start"})
    seed: int = defaults.SEED
    rng: str = defaults.RNG
    luxury: int = defaults.LUXURY
    heatbath: int = defaults.HEATBATH
    overrelax: int = defaults.OVERRELAX
    thermalize: int = defaults.THERMALIZE
    configs: int = defaults.CONFIGS
    separation: int = defaults.SEPARATION
    measure: tuple[Measurement, ...] = tuple(map(Measurement, defaults.MEASURE))
    format: str = defaults.FORMAT
    chain_version: int = defaults.CHAIN_VERSION

    def __post_init__(self) -> None:
        words = {"lattice": self.lattice, "measure": self.measure}
        for name, value in _converted(type(self), words).items():
            object.__setattr__(self, name, value)
        GROUPS.check(self.group, "group")
        if self.beta is USUAL_BETA:
            object.__setattr__(self, "beta", GROUPS[self.group].beta)
        ACTIONS.check(self.action, "action")
        action = ACTIONS[self.action].with_anisotropy(self.anisotropy)
        action.update_sets(self.lattice)
        _choose("precision", self.precision, tuple(REALS))
        GENERATORS.check(self.rng, "rng")
        self._check_luxury()
        check_beta(self.beta)
        action.coefficients(GROUPS[self.group], self.beta)
        self.coupling.check_precision(GROUPS[self.group], self.precision)
        if not 0 <= self.seed <= MAX_SEED:
            raise UsageError(f"seed must lie between 0 and 2^63 - 1, not {self.seed}.")
        if not self.start:
            choices = in_words((*STARTS, "the path of a configuration file"), "or")
            raise UsageError(f"start must be {choices}.")
        _between("heatbath", self.heatbath, 1, MAX_SWEEPS)
        _between("overrelax", self.overrelax, 0, MAX_SWEEPS)
        _between("thermalize", self.thermalize, 0, MAX_UPDATES)
        _between("configs", self.configs, 0, MAX_UPDATES)
        _between("separation", self.separation, 1, MAX_UPDATES)
        _between("chain_version", self.chain_version, FIRST, LATEST)
        if self.format != NO_FORMAT:
            FORMATS.check(self.format, "format")
            check_writable(self.format, self.group, self.precision)

    def _check_luxury(self) -> None:
        levels = GENERATORS[self.rng].levels
        if levels and not 0 <= self.luxury < len(levels):
            raise UsageError(f"luxury must lie between 0 and {len(levels) - 1}, not {self.luxury}.")
        if not levels and self.luxury != defaults.LUXURY:
            having = in_words([name for name, one in GENERATORS.items() if one.levels], "or")
            raise UsageError(
                f"luxury does not apply to {self.rng}; leave it out, or choose the generator "
                f"{having}."
            )

    @classmethod
    def from_values(cls, values: Mapping[str, object]) -> Parameters:
        """Return parameters from command-line options or the keys of a run card.

        Parameters
        ----------
        values : mapping of str to object
            Text and numbers by parameter name; other keys are ignored.

        Raises
        ------
        UsageError
            If a value has the wrong type or is invalid.
        """
        parameters = cls.from_run(values)
        parameters.check_observables()
        return parameters

    @classmethod
    def from_run(cls, values: Mapping[str, object]) -> Parameters:
        """Return parameters from values that may name user-defined observables, as in run.toml.

        Raises
        ------
        UsageError
            If a value has the wrong type or is invalid.
        """
        return cls(**_converted(cls, values))

    def check_observables(self, own: Container[str] = ()) -> None:
        """Check that every observable is registered or in the given collection.

        Parameters
        ----------
        own : container of str
            Names of user-defined observables.

        Raises
        ------
        UsageError
            If an observable is unknown.
        """
        for item in self.measure:
            if item.observable not in own:
                OBSERVABLES.check(item.observable, "measure")

    def __repr__(self) -> str:
        usual = Parameters(group=self.group).values()
        shown = {
            name: value
            for name, value in self.values().items()
            if value != usual[name] or name in ("lattice", "group", "beta")
        }
        return f"Parameters({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def values(self) -> dict[str, str | int | float]:
        """Return the parameters as TOML keys and values, which `from_run` reads back."""
        values = {name: getattr(self, name) for name in _names(type(self))}
        return values | {
            "lattice": str(self.lattice),
            "measure": ",".join(map(str, self.measure)) or NO_MEASUREMENT,
        }

    def is_of(self, stored: Mapping[str, Any]) -> bool:
        """Return whether a checkpoint with these fixed parameters is of this run.

        Those of earlier versions do not state the action, the anisotropy or the chain's version.
        """
        lacking = {"anisotropy": defaults.ANISOTROPY, **UNSTATED}
        return {**lacking, **with_defaults(stored)} == self.fixed()

    def fixed(self) -> dict[str, str | int | float]:
        """Return the parameters that must not change when a run is continued: all but `configs`."""
        return {name: value for name, value in self.values().items() if name != "configs"}

    def to_toml(self) -> str:
        """Return the parameters as the text of a run card."""
        import tomli_w

        return tomli_w.dumps(self.values())

    def continued(self, values: Mapping[str, object], whose: str) -> Parameters:
        """Return the parameters with which a run or scan that has these parameters is continued.

        Parameters
        ----------
        values : mapping of str to object
            Requested values; see `from_values`. Parameters that are not given are unchanged.
        whose : str
            Subject of the error message, such as ``The run runs/su2_b2.5``.

        Raises
        ------
        UsageError
            If a parameter other than `configs` would change, `configs` would decrease, or a value
            has the wrong type or is invalid.
        """
        asked = dataclasses.replace(self, **_converted(type(self), values))
        mine, theirs = self.fixed(), asked.fixed()
        differences = [
            f"{name} = {mine[name]}, not {theirs[name]}"
            for name in mine
            if mine[name] != theirs[name]
        ]
        if differences:
            raise UsageError(f"{whose} has {'; '.join(differences)}; choose another --output.")
        if asked.configs < self.configs:
            raise UsageError(
                f"{whose} has configs = {self.configs}; --configs can be increased, but not "
                f"decreased to {asked.configs}."
            )
        return asked

    @property
    def coupling(self) -> Coupling:
        """The couplings and the action."""
        return Coupling(self.beta, self.action, self.anisotropy)

    @property
    def updates(self) -> int:
        """Number of updates in the whole run, thermalisation included."""
        return self.thermalize + self.configs * self.separation

    @property
    def keeps_configs(self) -> bool:
        """Whether the run writes configuration files."""
        return self.format != NO_FORMAT

    @property
    def generator(self) -> str:
        """Random number generator with its quality level, as text."""
        levels = GENERATORS[self.rng].levels
        return f"{self.rng} at luxury {self.luxury}" if levels else self.rng

    @property
    def links_per_update(self) -> int:
        """Number of link updates in one update: links times sweeps."""
        return self.lattice.links * (self.heatbath + self.overrelax)

    @property
    def name(self) -> str:
        """Default name of the run directory, such as ``su2_b2.5_24x24x24x32``.

        It contains group, beta and lattice, followed by the other parameters of the Markov chain
        (action, anisotropy, precision, start, seed, generator, sweeps) that differ from their
        defaults. The parameters of the sampling (thermalize, configs, separation, measure, format)
        do not appear.
        """
        usual = Parameters()
        start = self.start if self.start in STARTS else f"from-{Path(self.start).stem}"
        extras = {
            "action": self.action,
            "anisotropy": f"xi{self.anisotropy:.12g}",
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


Wanted = Parameters | Mapping[str, object] | str | os.PathLike[str] | None
"""Parameters, a mapping of some parameters by name, or the path of a run card."""


def named_values(wanted: Wanted, more: Mapping[str, object]) -> dict[str, object]:
    """Return values for `Parameters.from_values` and `Execution.from_values`.

    Parameters
    ----------
    wanted : Parameters, mapping, path or None
        Parameters, a mapping of values by name, or the path of a run card.
    more : mapping of str to object
        Values that override those of `wanted`, unless they are None.

    Raises
    ------
    UsageError
        If a name is unknown, or the run card cannot be read.
    """
    if wanted is None:
        values: dict[str, object] = {}
    elif isinstance(wanted, Parameters):
        values = dict(wanted.values())
    else:
        values = dict(wanted) if isinstance(wanted, Mapping) else read_card(wanted)
    values |= {name: value for name, value in more.items() if value is not None}
    known = _names(Parameters) + _names(Execution)
    for name in values:
        if name not in known:
            raise UsageError(f"There is no parameter '{name}'{nearest(name, known)}")
    return values


def with_defaults(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Add parameters that files of earlier versions lack, with their default values."""
    return {"action": defaults.ACTION, **stored}


@dataclass(frozen=True)
class Execution:
    """Options for how and where a run is carried out. They do not change the numbers.

    Attributes
    ----------
    output : str, optional
        Run directory; by default ``runs/`` and the name of the parameters.
    backend : str
        Name of a backend, or ``auto``.
    threads : int, optional
        Number of CPU threads, over all slabs; by default the number of cores that the process may
        use, or fewer if that is faster.
    devices : str, optional
        Devices that share the lattice, by default one; see `gauge_mc.devices.choose_devices`.
    share_gpus : bool
        Whether several processes of an MPI job may use one GPU.
    quiet : bool
        Whether to show no progress and no summary.
    time_limit : float, optional
        Time in seconds within which the run writes a checkpoint and stops.
    checkpoint_every : float
        Minutes between checkpoints; 0 means after every update.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    output: str | None = field(default=None, metadata={"kind": "path"})
    backend: str = AUTOMATIC
    threads: int | None = None
    devices: str | None = None
    share_gpus: bool = False
    quiet: bool = False
    time_limit: float | None = field(default=None, metadata={"kind": "duration"})
    checkpoint_every: float = defaults.CHECKPOINT_EVERY

    def __post_init__(self) -> None:
        check_threads(self.threads)
        if not 0 <= self.checkpoint_every < math.inf:
            raise UsageError(
                f"checkpoint_every must be 0 minutes or more, not {self.checkpoint_every:g}."
            )

    @classmethod
    def from_values(cls, values: Mapping[str, object]) -> Execution:
        """Return execution options from command-line options or the keys of a run card.

        Other keys are ignored.
        """
        return cls(**_converted(cls, values))


def read_card(path: str | os.PathLike[str]) -> dict[str, object]:
    """Read a run card, a TOML file with fields of `Parameters` and `Execution`, all optional.

    A ``run.toml`` can also be used as a run card.

    Returns
    -------
    dict
        Unchecked values, for `Parameters.from_values` and `Execution.from_values`.

    Raises
    ------
    UsageError
        If the run card cannot be read, is not valid TOML, or contains an unknown key.
    """
    try:
        values = parse_toml(read_text(Path(path), MAX_CARD))
    except GaugeError as error:
        raise UsageError(f"The run card {error}") from error
    except ValueError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise UsageError(f"The run card {path} is not valid TOML: {reason}.") from error
    known = _names(Parameters) + _names(Execution)
    lacking = UNSTATED if RECORD in values else {}
    given = {key.replace("-", "_"): value for key, value in values.items() if key != RECORD}
    card = {**lacking, **given}
    for key in card:
        if key not in known:
            raise UsageError(f"Unknown key '{key}' in {path}{nearest(key, known)}")
    return card


def parse_duration(value: object) -> float:
    """Convert a time ``HH:MM:SS`` to seconds. The hours may have up to nine digits.

    Raises
    ------
    UsageError
        If the value does not have this form.
    """
    words = str(value).split(":")
    if len(words) != 3 or not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
        raise UsageError(
            f"time_limit: '{shortened(str(value))}' is not of the form HH:MM:SS, such as 23:30:00."
        )
    hours, minutes, seconds = map(int, words)
    return 3600.0 * hours + 60.0 * minutes + seconds


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number")
    if abs(value) > MAX_SEED:
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
    return word if word in STARTS or not word else str(Path(word).absolute())


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _lattice(value: object) -> Lattice:
    if isinstance(value, Lattice):
        return value
    return Lattice.parse(value if isinstance(value, list | tuple) else _word(value))


def _measurements(value: object) -> tuple[Measurement, ...]:
    """Read measurements from a list, from text with commas, or from `NO_MEASUREMENT`.

    The result is sorted by name.
    """
    if isinstance(value, list | tuple):
        words = [str(item) for item in value]
    else:
        # Not within wilson-loops:10:iterations=0,25, or wilson-loops:10:smear=stout:0.1,exclude=xt.
        words = re.split(r",(?![0-9]|\w+=)", _word(value))
    if words == [NO_MEASUREMENT]:
        return ()
    found = {item.observable: item for item in map(Measurement.parse, words)}
    if len(found) < len(words):
        raise UsageError(f"measure: '{','.join(words)}' names an observable twice.")
    return tuple(found[name] for name in sorted(found))


_CONVERTERS: dict[str, Callable[[object], object]] = {
    "int": _whole,
    "int | None": _whole,
    "float": _real,
    "str": _word,
    "str | None": _word,
    "path": _path,
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
    """Return the values whose keys are fields of `cls`, converted to the types of the fields."""
    result = {}
    for item in dataclasses.fields(cls):
        if item.name in values:
            kind = item.metadata.get("kind", item.type)
            try:
                result[item.name] = _CONVERTERS[kind](values[item.name])
            except ValueError as error:
                raise UsageError(
                    f"{item.name} must be {error}, not {quoted(values[item.name])}."
                ) from error
    return result

"""Parameters of a run, which determine the numbers that it writes: defaults and checks.

Run cards (TOML) and the command line use the same names, see `known_options`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from gauge_mc import __version__, defaults
from gauge_mc.actions import ACTIONS, BETA, BETA_IS, Action, Coupling, couplings
from gauge_mc.algorithms import ALGORITHMS, Algorithm, algorithm_options
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import REALS
from gauge_mc.errors import GaugeError, UnknownNameError, UsageError
from gauge_mc.formats import FORMATS, check_writable, writable_formats
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES, Observable, observable_of_loops
from gauge_mc.option_items import Configurable
from gauge_mc.options import Option, flag_of, merged
from gauge_mc.quoting import counted
from gauge_mc.random import GENERATORS
from gauge_mc.registry import Registry, in_words, nearest
from gauge_mc.results import documented
from gauge_mc.run.measurement import (
    ADDING,
    MAX_UPDATES,
    NO_MEASUREMENT,
    AddedMeasurements,
    Measurement,
    is_due,
)
from gauge_mc.run.settings import (
    ENSEMBLE,
    FILES,
    LARGEST,
    PHYSICS,
    STARTS,
    Execution,
    check_bounds,
    converted,
    listed_starts,
    options_of,
    setting,
)
from gauge_mc.updates.sweep import FIRST, LATEST

if TYPE_CHECKING:
    from gauge_mc.keywords import ParameterKeywords

COUNT: dict[str, Any] = {"least": 0, "most": MAX_UPDATES}
"""Bounds of numbers of updates and of configurations."""

INTERVAL: dict[str, Any] = {"least": 1, "most": MAX_UPDATES}
"""Bounds of intervals in updates."""

NO_FORMAT = "none"
"""The format of a run that keeps no configurations."""

TEMPERING = "tempering"
"""Name of the table of the exchanges of a run."""

OF_SCANS = ("tempering", "exchange_every")
"""Parameters that only runs of a scan can have."""

USUAL_BETA = float("nan")
"""Placeholder for the default coupling of the group, until the group is known."""

USUAL_PRECISION = ""
"""Placeholder for the default precision of the algorithm, until that is known."""

USUAL_MEASURE = tuple(map(Measurement, defaults.MEASURE))
"""Placeholder for the default measurements, until the action is known."""

UNSTATED: Mapping[str, object] = {
    "chain_version": FIRST,
    "strict": False,
    "tempering": False,
    "exchange_every": defaults.EXCHANGE_EVERY,
}
"""Values of parameters that the files of runs and scans of earlier versions lack."""

_levels = max(len(x.levels) for x in GENERATORS.values())
_leveled = in_words([name for name, x in GENERATORS.items() if x.levels], "or")


def meaning_of_beta() -> str:
    """Return what beta means for every action, for help texts."""
    actions: dict[str, list[str]] = {}
    for name, action in ACTIONS.items():
        actions.setdefault(action.beta_is, []).append(name)
    usual = ACTIONS[defaults.ACTION].beta_is
    rest = [f"{each} for {in_words(names)}" for each, names in actions.items() if each != usual]
    return f"Coupling, which is {'; '.join([usual, *rest])}."


@documented
@dataclass(frozen=True)
class Parameters:
    """All parameters that determine the numbers of a run.

    Updates are counted from the start, thermalisation included.

    `lattice`, `action`, `algorithm` and `measure` can also be given as text, such as
    ``24x24x24x32``, ``rectangle:c1=-0.1``, ``heatbath:overrelax=2`` and ``plaquette,polyakov:10``.
    The number of configurations determines the length of a run even if none are written.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    lattice: Lattice = setting(
        Lattice.parse(defaults.LATTICE),
        PHYSICS,
        "Even extents of the lattice.",
        default=defaults.LATTICE,
        metavar="XxYxZxT",
        each=int,
    )
    group: str = setting(defaults.GROUP, PHYSICS, "Gauge group.", choices=tuple(GROUPS))
    beta: float = setting(
        USUAL_BETA,
        PHYSICS,
        meaning_of_beta(),
        default=", ".join(f"{group.beta} for {name}" for name, group in GROUPS.items()),
    )
    action: Action = setting(
        ACTIONS[defaults.ACTION], PHYSICS, "Gauge action.", default=defaults.ACTION, choices=ACTIONS
    )
    precision: str = setting(
        USUAL_PRECISION,
        PHYSICS,
        "Precision of the links.",
        default=f"{defaults.PRECISION}, or double for trajectories with quarks",
        choices=tuple(REALS),
    )
    start: str = setting(
        defaults.START,
        PHYSICS,
        "Initial links: all 1, random, or from a configuration file. Several chains take "
        "those of a list, such as hot,cold or hot,FILE, in turn.",
        read="start",
        choices=tuple(STARTS),
        metavar="|".join((*STARTS, "FILE")),
        open=True,
    )
    seed: int = setting(
        defaults.SEED, PHYSICS, "Seed of the random numbers.", least=0, most=LARGEST, tag="seed"
    )
    rng: str = setting(defaults.RNG, PHYSICS, "Random number generator.", choices=tuple(GENERATORS))
    luxury: int = setting(
        defaults.LUXURY,
        PHYSICS,
        f"Quality level from 0 to {_levels - 1}, for {_leveled}.",
        tag="luxury",
    )
    algorithm: Algorithm = setting(
        ALGORITHMS[defaults.ALGORITHM],
        PHYSICS,
        "Algorithm that updates the links.",
        default=defaults.ALGORITHM,
        choices=ALGORITHMS,
    )
    chain_version: int = setting(
        defaults.CHAIN_VERSION,
        PHYSICS,
        "Version of the Markov chain; 2 removes a bias of 4e-8 from the norms of links in single "
        "precision.",
        least=FIRST,
        most=LATEST,
    )
    strict: bool = setting(
        False,
        PHYSICS,
        "Compute the same bits on all machines, with every compiler, processor and GPU. Sweeps "
        "take up to 6 % longer.",
    )
    tempering: bool = setting(
        False, PHYSICS, "Let runs of a scan that differ in beta only exchange their couplings."
    )
    exchange_every: int = setting(
        defaults.EXCHANGE_EVERY,
        PHYSICS,
        "Updates from one exchange of couplings to the next, with tempering.",
        **INTERVAL,
        tag="every",
    )
    thermalize: int = setting(
        defaults.THERMALIZE, ENSEMBLE, "Updates before the first measurement.", **COUNT
    )
    configs: int = setting(
        defaults.CONFIGS, ENSEMBLE, "Number of configurations; can be changed later.", **COUNT
    )
    separation: int = setting(
        defaults.SEPARATION, ENSEMBLE, "Updates from one configuration to the next.", **INTERVAL
    )
    measure: tuple[Measurement, ...] = setting(
        USUAL_MEASURE,
        ENSEMBLE,
        "Observables to measure after every update, or after each EVERY updates, with their "
        f"options as in flow:50:to=6; with {ADDING} before the first, beside the default; or "
        f"{NO_MEASUREMENT}. By default also the loops of an improved action.",
        default=",".join(defaults.MEASURE),
        metavar="NAME[:EVERY[:OPTION=VALUE]],...",
        choices=(*OBSERVABLES, NO_MEASUREMENT),
        open=True,
        separator=",",
    )
    format: str = setting(
        defaults.FORMAT,
        FILES,
        f"Format of the configurations, or {NO_FORMAT} to write none.",
        choices=(*writable_formats(), NO_FORMAT),
    )

    if TYPE_CHECKING:  # what fields have in Python differs from what they are given

        def __init__(self, **values: Unpack[ParameterKeywords]) -> None: ...

    def __post_init__(self) -> None:
        usual = self.measure is USUAL_MEASURE
        texts = ("lattice", "action", "algorithm", "measure")
        words = {name: getattr(self, name) for name in texts}
        for name, value in converted(type(self), words).items():
            object.__setattr__(self, name, value)
        added = AddedMeasurements() if usual else self.measure
        if isinstance(added, AddedMeasurements):
            # The value of the action needs the averages of its loops.
            loops = filter(None, map(observable_of_loops, self.action.loops))
            needed = [loop for loop in loops if not self.strict or OBSERVABLES[loop].strict]
            measure = added.beside(map(Measurement, (*defaults.MEASURE, *needed)))
            object.__setattr__(self, "measure", measure)
        GROUPS.check(self.group, "group")
        if self.beta is USUAL_BETA:
            object.__setattr__(self, "beta", GROUPS[self.group].beta)
        self.action.check().update_sets(self.lattice)
        if self.precision == USUAL_PRECISION:
            object.__setattr__(self, "precision", self.algorithm.usual_precision)
        if self.precision not in REALS:
            names = in_words(REALS, "or")
            raise UsageError(f"precision: '{self.precision}' is unknown; choose {names}.")
        self.algorithm.check().check_run(self.thermalize, self.precision)
        GENERATORS.check(self.rng, "rng")
        levels = GENERATORS[self.rng].levels
        if levels and not 0 <= self.luxury < len(levels):
            raise UsageError(f"luxury must lie between 0 and {len(levels) - 1}, not {self.luxury}.")
        if not levels and self.luxury != defaults.LUXURY:
            raise UsageError(
                f"luxury does not apply to {self.rng}; leave it out, or choose the generator "
                f"{_leveled}."
            )
        if self.strict and not self.algorithm.strict:
            names = in_words([name for name, x in ALGORITHMS.items() if x.strict], "and")
            raise UsageError(
                f"--strict does not hold for {self.algorithm.name} yet, but for {names}; choose "
                "one of these, or leave out --strict."
            )
        if self.exchange_every != defaults.EXCHANGE_EVERY and not self.tempering:
            raise UsageError(
                f"--exchange-every is {self.exchange_every}, but has an effect only with "
                "--tempering; add that, or leave it out."
            )
        BETA.checked(self.beta)
        self.coupling.coefficients(GROUPS[self.group])
        self.coupling.check_precision(GROUPS[self.group], self.precision)
        if not self.start:
            choices = in_words((*STARTS, "the path of a configuration file"), "or")
            raise UsageError(f"start must be {choices}.")
        check_bounds(self)
        if self.format != NO_FORMAT:
            if self.format not in FORMATS:
                close = nearest(self.format, (*writable_formats(), NO_FORMAT))
                raise UnknownNameError(f"format: There is no format '{self.format}'{close}")
            check_writable(self.format, self.group, self.precision)

    @property
    def updates(self) -> int:
        """Number of updates in the whole run, thermalisation included."""
        return self.thermalize + self.configs * self.separation

    @property
    def keeps_configs(self) -> bool:
        """Whether the run writes configuration files."""
        return self.format != NO_FORMAT

    def keeps(self, sweep: int) -> bool:
        """Return whether a configuration is written after a number of updates."""
        return self.keeps_configs and is_due(sweep - self.thermalize, self.separation)

    def check_observables(self, custom: Container[str] = ()) -> None:
        """Check that every observable is registered or in the given collection.

        Parameters
        ----------
        custom : container of str
            Names of user-defined observables.

        Raises
        ------
        UsageError
            If an observable is unknown.
        """
        for item in self.measure:
            if item.observable not in custom:
                OBSERVABLES.check(item.observable, "measure")

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
    def from_run(cls, values: Mapping[str, object], before: Parameters | None = None) -> Parameters:
        """Return parameters from values that may name user-defined observables, as in run.toml.

        Options of the action and of the algorithm join these. Values that are not given are those
        of `before`.

        Raises
        ------
        UsageError
            If a value has the wrong type or is invalid.
        """
        read = converted(cls, values)
        actions, algorithms = ACTIONS[defaults.ACTION], ALGORITHMS[defaults.ALGORITHM]
        usual = (before.action, before.algorithm) if before else (actions, algorithms)
        registries: tuple[Mapping[str, Configurable], ...] = (ACTIONS, ALGORITHMS)
        declared = (couplings(), algorithm_options())
        for configurable, registry, options in zip(usual, registries, declared, strict=True):
            kind = configurable.kind
            stated = {option: values[option.name] for option in options if option.name in values}
            if stated or kind in read:
                read[kind] = _configured(configurable, read.get(kind), stated, registry)
        return replace(before, **read) if before else cls(**read)

    def __repr__(self) -> str:
        usual = Parameters(group=self.group).values()
        named = ("lattice", "group", "beta")
        configured = {"action": self.action, "algorithm": self.algorithm}
        values = {**self.values(), **{name: str(x) for name, x in configured.items()}}
        names = {option.name for each in configured.values() for option in each.options}
        shown = (
            f"{name}={value!r}"
            for name, value in values.items()
            if name not in names and (value != usual[name] or name in named)
        )
        return f"Parameters({', '.join(shown)})"

    def values(self) -> dict[str, str | int | float]:
        """Return the parameters as TOML keys and values, which `from_run` reads back.

        The options of the action follow its name.
        """
        tables: dict[str, dict[str, str | int | float]] = {
            "lattice": {"lattice": str(self.lattice)},
            "action": {"action": self.action.name, **self.action.written},
            "algorithm": {"algorithm": self.algorithm.name, **self.algorithm.written},
            "measure": {"measure": ",".join(map(str, self.measure)) or NO_MEASUREMENT},
        }
        parameters: dict[str, str | int | float] = {}
        for name in options_of(type(self)):
            parameters |= tables.get(name) or {name: getattr(self, name)}
        return parameters

    def is_of(self, stored: Mapping[str, Any]) -> bool:
        """Return whether a checkpoint with these fixed parameters is of this run.

        Those of earlier versions do not state the action, its options or the chain's version.
        """
        try:
            return Parameters.from_run({**UNSTATED, **stored}).fixed() == self.fixed()
        except GaugeError:
            return False

    def fixed(self) -> dict[str, str | int | float]:
        """Return the parameters that must not change when a run is continued: all but `configs`."""
        return {name: value for name, value in self.values().items() if name != "configs"}

    def to_toml(self) -> str:
        """Return the parameters as the text of a run card."""
        import tomli_w

        return tomli_w.dumps(self.values())

    def continued(self, values: Mapping[str, object], whose: str, updates: int) -> Parameters:
        """Return the parameters with which a run or scan that has these parameters is continued.

        Parameters
        ----------
        values : mapping of str to object
            Requested values; see `from_values`. Parameters that are not given are unchanged.
        whose : str
            Subject of the error message, such as ``The run runs/su2_b2.5``.
        updates : int
            Number of updates done.

        Raises
        ------
        UsageError
            If a parameter other than `configs` would change, `configs` would be lower than what is
            there, or a value has the wrong type or is invalid.
        """
        parameters = self.from_run(values, self)
        mine, theirs = self.fixed(), parameters.fixed()
        if words := differences({**mine, **theirs}, mine, theirs):
            raise UsageError(f"{whose} has {words}; choose another --output.")
        configs = min(self.configs, max(0, updates - self.thermalize) // self.separation)
        if parameters.configs < configs:
            raise UsageError(
                f"{whose} has made {counted(configs, 'configuration')}; --configs can be "
                f"increased, or decreased to {configs}, but not to {parameters.configs}."
            )
        return parameters

    @cached_property
    def coupling(self) -> Coupling:
        """The couplings and the action."""
        return Coupling(self.beta, self.action)

    @cached_property
    def provenance(self) -> Mapping[str, str]:
        """The metadata that identify the chain, for the headers of the files it produces.

        They do not depend on when, where or for how long the chain is run.
        """
        start = self.start if self.start in STARTS else Path(self.start).name
        more = {"start": start, "version": version()}
        values = self.values() | {BETA_IS: self.action.beta_is} | self.coupling.metadata | more
        usual = {name for name, value in UNSTATED.items() if values[name] == value}
        usual -= {*OF_SCANS} if self.tempering else set()
        usual |= {x.name for x in self.action.options if x not in self.action.changed}
        changed = {x.name for x in self.algorithm.changed}
        usual |= {name for name in self.algorithm.later if name not in changed}
        usual |= {self.algorithm.kind} if self.algorithm.name == defaults.ALGORITHM else set()
        options = options_of(type(self)).items()
        omitted = usual | {name for name, option in options if option.panel != PHYSICS}
        return {name: str(value) for name, value in values.items() if name not in omitted}

    @property
    def recorded(self) -> tuple[Measurement, ...]:
        """The content of the tables of a run: its measurements, and the records of its updates."""
        records = [Measurement(self.algorithm.name)] if self.algorithm.columns else []
        if self.tempering:
            records.append(Measurement(TEMPERING, self.exchange_every))
        return (*self.measure, *records)

    @property
    def links_per_update(self) -> int:
        """Number of link updates in one update: links times sweeps."""
        return self.lattice.links * self.algorithm.sweeps

    @property
    def name(self) -> str:
        """Default name of the run directory, such as ``su2_b2.5_24x24x24x32``.

        It contains group, beta and lattice, followed by the other parameters of the Markov chain
        (action with its options, precision, start, seed, generator, sweeps) that differ from their
        defaults. The parameters of the sampling (thermalize, configs, separation, measure, format)
        do not appear.
        """
        usual, options = Parameters(), options_of(type(self))
        starts = listed_starts(self.start) or (self.start,)
        start = "-".join(
            start if start in STARTS else f"from-{Path(start).stem}" for start in starts
        )
        words = {
            "action": "_".join(self.action.tags(defaults.ACTION)),
            "algorithm": "_".join(self.algorithm.tags(defaults.ALGORITHM)),
            "start": start,
            "strict": "strict",
            "tempering": TEMPERING,
        }
        changed = [
            words.get(name) or f"{option.tag}{getattr(self, name)}"
            for name, option in options.items()
            if option.panel == PHYSICS
            and name not in UNNAMED
            and getattr(self, name) != getattr(usual, name)
        ]
        return "_".join([self.group, f"b{self.beta:.12g}", str(self.lattice), *changed])


Registry.reserved = frozenset(
    field.name for kind in (Parameters, Execution) for field in fields(kind)
)
Registry.checked = False

UNNAMED = ("lattice", "group", "beta", "chain_version")
"""Parameters of the Markov chain that names of directories contain always or never; the others are
contained if they differ from their defaults."""


def differences(
    names: Iterable[str], first: Mapping[str, object], second: Mapping[str, object]
) -> str:
    """Return the values of these names in which two mappings differ, in words; or nothing."""
    return "; ".join(
        f"{name} = {first.get(name, 'none')}, not {second.get(name, 'none')}"
        for name in names
        if first.get(name) != second.get(name)
    )


def version(observable: Observable | type[Observable] | None = None) -> str:
    """Return the name and version of the program, for the headers of files.

    The version of the package that brings an observable follows if it is another one.
    """
    package = OBSERVABLES.package(getattr(observable, "name", ""))
    return ", ".join(filter(None, (f"gauge-mc {__version__}", package)))


def run_options() -> tuple[Option, ...]:
    """Return the options of all actions and algorithms, which parameters of a run may have."""
    return *couplings(), *algorithm_options()


def _configured(
    before: Configurable,
    named: Configurable | None,
    stated: Mapping[Option, object],
    registry: Mapping[str, Configurable],
) -> Configurable:
    """Return what is named, or else what there was before, with options that are given.

    Options that are not given are those of before, if this has the same name.
    """
    if named is None or named.name == before.name:
        named = before.with_options(**(named.values if named and named.changed else {}))
    # Files of version 0.2 state the usual anisotropy also for actions that have none.
    names = {option.name for option in named.options}
    meant = {
        option.name: value
        for option, value in stated.items()
        if option.name in names or not option.is_usual(value)
    }
    for name in meant.keys() - names:
        having = [each for each, x in registry.items() if name in {o.name for o in x.options}]
        raise UsageError(
            f"{flag_of(name)} is not an option of the {named.kind} {named.name}, but of "
            f"{in_words(having)}; add --{named.kind} {having[0]}, or leave it out."
        )
    return named.with_options(**meant)


KINDS: Mapping[str, Registry[Any]] = {x.kind: x for x in (ACTIONS, ALGORITHMS)}
"""The parameters that have options."""


def known_options() -> dict[str, Option]:
    """Return all options of runs by name: of parameters, of actions, and of the execution.

    Options of actions follow the action; their descriptions say which actions have them.
    """
    options: dict[str, Option] = {}
    for name, option in options_of(Parameters).items():
        extra = options_of_kind(KINDS[name]) if name in KINDS else ()
        options |= {name: option, **{x.name: x for x in extra}}
    return options | options_of(Execution)


def options_of_kind(kind: Registry[Any]) -> Iterator[Option]:
    """Yield the options of the things of a kind, each once, with the things that have them."""
    for option in merged([(f"the {kind.kind} {name}", x.options) for name, x in kind.items()]):
        names = [
            name for name, thing in kind.items() if option.name in {o.name for o in thing.options}
        ]
        whose = "" if len(names) == len(kind) else f" For {in_words(names)}."
        yield replace(option, panel=PHYSICS, help=f"{option.help}{whose}")

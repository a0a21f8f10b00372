"""Algorithms, by which Markov chains advance.

Each algorithm is an instance of `Algorithm` that is registered in `ALGORITHMS`. A run uses only
what is declared here: the options of an algorithm, the kernels to compile, and how fields are
updated. An update may also return a record, for example whether a proposal was accepted. The
records are the rows of a table that is named after the algorithm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gauge_mc import defaults
from gauge_mc.actions import Action, Coupling
from gauge_mc.devices.base import Registers
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.files.columns import TableColumns
from gauge_mc.files.table import Value
from gauge_mc.option_items import Configurable, chosen
from gauge_mc.options import Option, merged
from gauge_mc.registry import Registry
from gauge_mc.updates.chain_steps import UpdatePart, repeated
from gauge_mc.updates.terms import ACTION_TERMS

if TYPE_CHECKING:
    from gauge_mc.domain.device_group import DeviceGroup
    from gauge_mc.domain.lattice import Lattice
from gauge_mc.updates.heatbath import HEATBATH, OVERRELAXATION, heatbath_sweep, overrelaxation_sweep
from gauge_mc.updates.sweep import MANY_REPLICAS, ONE_REPLICA

Records = Sequence[tuple[Value, ...]]
"""A record for every replica; empty if the algorithm has none."""

Update = Callable[[], Records]
"""A function that does one update of all replicas of a field, and returns its records."""


@dataclass
class Tuning:
    """Numbers that an algorithm chooses during the thermalisation of a chain."""

    updates: int = 0
    """Number of updates at the beginning of the chain during which the numbers may change."""
    numbers: dict[str, float] = field(default_factory=dict)
    """The numbers, and what is needed to choose them, which checkpoints contain. The algorithm
    changes them; they are empty before the first update.
    """
    links_changed: bool = False
    """Whether something else than the algorithm has changed the links since its last update, such
    as an exchange of replicas. What is remembered of the links is then no longer valid.
    """


@dataclass(frozen=True)
class ChainSpec:
    """Properties of a Markov chain that determine which kernels its updates need."""

    action: Action
    """The gauge action, with its options."""
    random: Choice
    """Compile-time selection of the random number generator."""
    norms: Choice
    """How links are reunitarised; see `gauge_mc.updates.sweep`."""
    several: bool
    """Whether the field has several replicas."""


@dataclass(frozen=True)
class TimedSweep:
    """A part of an update that ``gauge-mc bench`` times."""

    name: str
    """Its name in the table of results."""
    call: Callable[[int], object]
    """Function that carries out a given number of them."""
    registers: Callable[[], Registers | None] = lambda: None
    """Function that returns the register usage of its kernel, or None."""
    visits_links: bool = False
    """Whether it updates every link once, reading the others of its loops from memory."""
    draws: bool = False
    """Whether it draws random numbers, so that it is timed with every generator."""


class Algorithm(Configurable, ABC):
    """An algorithm, with the values of its options."""

    kind = "algorithm"
    summary: str
    """Short description, for help texts."""
    columns: TableColumns = TableColumns()
    """The values in a record, with the averages to show; empty if there are no records."""
    normalisation: str = ""
    """Definitions of the values, for the header of the table."""
    later: tuple[str, ...] = ()
    """Names of options that headers of files state only if they are not usual, because there were
    none in earlier versions.
    """
    unstated: tuple[str, ...] = ()
    """Names of options that files of runs do not state if an earlier version has written them."""
    has_parts: bool = False
    """Whether updates are trajectories, with parts that can be timed; see `parts`."""

    @property
    @abstractmethod
    def sweeps(self) -> int:
        """Number of times that an update changes every link, for rates in links per second."""

    @property
    def strict(self) -> bool:
        """Whether updates with these options can compute the same bits on all machines.

        Then nothing but kernels and numbers that are rounded once decides about the links.
        """
        return False

    @property
    def labels(self) -> list[str]:
        """Descriptions of the quarks in the weight, for figures; none if there are no quarks."""
        return []

    def fastest_devices(
        self, devices: DeviceGroup, lattice: Lattice, group: str, precision: str
    ) -> tuple[DeviceGroup, str]:
        """Return those of some devices on which a run is fastest, and why if not all.

        Parameters
        ----------
        devices : DeviceGroup
            The devices.
        lattice, group, precision : Lattice, str, str
            Those of the links.
        """
        return devices, ""

    def chains_at_once(self, count: int, sites: int, busy_sites: int) -> int:
        """Return the largest number of chains that move together.

        Parameters
        ----------
        count : int
            Number of chains.
        sites : int
            Number of sites of the lattice.
        busy_sites : int
            See `gauge_mc.devices.base.Backend`.
        """
        return count

    @property
    def draws(self) -> int:
        """Number of steps of the random number generator in an update; see `Random.step`."""
        return 1

    @abstractmethod
    def kernels(self, ensemble: ChainSpec) -> Iterator[tuple[Kernel, tuple[Choice, ...]]]:
        """Yield the kernels of an update with their choices, the slowest to compile first."""

    @abstractmethod
    def prepare(
        self,
        field: Field,
        couplings: Sequence[Coupling],
        randoms: Sequence[Random],
        version: int,
        tunings: Sequence[Tuning],
    ) -> Update:
        """Return the update of all replicas of a field.

        Parameters
        ----------
        field : Field
            Links to update, with one replica per chain.
        couplings : sequence of Coupling
            The couplings of every replica, whose kernels are the same.
        randoms : sequence of Random
            The random numbers of every replica; an update advances `Random.step`.
        version : int
            Version of the chain.
        tunings : sequence of Tuning
            State of the algorithm for every replica, besides links and random numbers.

        Raises
        ------
        UsageError
            If the algorithm cannot update with these couplings.
        """

    def check_run(self, thermalize: int, precision: str) -> None:
        """Check that a run has what the algorithm needs.

        Parameters
        ----------
        thermalize : int
            Number of updates for the thermalisation.
        precision : str
            Precision of the links.

        Raises
        ------
        UsageError
            If something is missing.
        """

    @property
    def usual_precision(self) -> str:
        """Precision of links for which none is chosen."""
        return defaults.PRECISION

    def live(self, record: tuple[Value, ...]) -> tuple[str, ...]:
        """Return what progress displays show of the record of an update, in words."""
        return ()

    def caution(self, precision: str) -> str:
        """Return a caution for runs in a precision, in one sentence; or nothing."""
        return ""

    @property
    def timed_sweeps(self) -> Mapping[str, int]:
        """Numbers of the sweeps in an update, by the names that `timed` gives them.

        They are empty if an update has other parts, so that its time does not follow from theirs.
        """
        return {}

    def timed(self, field: Field, coupling: Coupling, random: Random) -> Iterator[TimedSweep]:
        """Yield what ``gauge-mc bench`` times; by default an update, if no option must be given."""
        if not all(option.name in self.values for option in self.options):
            return
        update = self.prepare(field, [coupling], [random], defaults.CHAIN_VERSION, [Tuning()])
        update()  # which allocates what it needs
        yield TimedSweep(self.name, repeated(update))

    def parts(
        self, field: Field, couplings: Sequence[Coupling], randoms: Sequence[Random]
    ) -> Iterator[UpdatePart]:
        """Yield the parts of a trajectory of all replicas of a field, which they do not change.

        The first is a kick of the gauge action with the drift after it.
        """
        return iter(())


def _own_options(algorithm: Algorithm) -> list[Option]:
    terms = [kind.option for kind in ACTION_TERMS.values()]
    return [option for option in algorithm.options if not any(option is term for term in terms)]


ALGORITHMS: Registry[Algorithm] = Registry("algorithm", __name__, Algorithm, options=_own_options)


def parse(text: str | Algorithm) -> Algorithm:
    """Read an algorithm: a name, or a name and options as in ``heatbath:overrelax=2``."""
    return text if isinstance(text, Algorithm) else chosen(ALGORITHMS, text)


def algorithm_options() -> tuple[Option, ...]:
    """Return the options of all algorithms, without duplicates."""
    return merged([(f"the algorithm {x.name}", x.options) for x in ALGORITHMS.values()])


USUAL = defaults.ALGORITHM
"""Name of the usual algorithm."""


MOST_SWEEPS = 10**6
"""Largest number of sweeps of a kind in one update, to catch typing errors."""

SWEEPS = Option(
    "heatbath",
    int,
    "Heatbath sweeps per update.",
    least=1,
    most=MOST_SWEEPS,
    usual=defaults.HEATBATH,
    tag="hb",
)
OVERRELAX = Option(
    "overrelax",
    int,
    "Overrelaxation sweeps per update.",
    least=0,
    most=MOST_SWEEPS,
    usual=defaults.OVERRELAX,
    tag="or",
)


class Heatbath(Algorithm):
    """An update consists of heatbath sweeps, followed by overrelaxation sweeps."""

    name = "heatbath"
    summary = "heatbath sweeps, followed by overrelaxation sweeps"
    options = (SWEEPS, OVERRELAX)

    @property
    def sweeps(self) -> int:
        """Number of sweeps in an update."""
        return sum(self.values.values())

    @property
    def strict(self) -> bool:
        """All updates are; see `Algorithm.strict`."""
        return True

    @property
    def draws(self) -> int:
        """Every heatbath sweep takes a step; see `Algorithm.draws`."""
        heatbaths: int = self.values[SWEEPS.name]
        return heatbaths

    def kernels(self, ensemble: ChainSpec) -> Iterator[tuple[Kernel, tuple[Choice, ...]]]:
        """Yield the kernels of both kinds of sweeps.

        The kernel of overrelaxation is also the one that checks the action.
        """
        choices, norms = ensemble.action.choices, ensemble.norms
        replicas = MANY_REPLICAS if ensemble.several else ONE_REPLICA
        yield HEATBATH, (*choices, ensemble.random, replicas, norms)
        yield OVERRELAXATION, (*choices, norms)

    def prepare(
        self,
        field: Field,
        couplings: Sequence[Coupling],
        randoms: Sequence[Random],
        version: int,
        tunings: Sequence[Tuning],
    ) -> Update:
        """Return the update; see `Algorithm.prepare`."""
        heat = heatbath_sweep(field, couplings, randoms, version)
        reflect = overrelaxation_sweep(field, [coupling.action for coupling in couplings], version)
        heatbaths, overrelax = self.draws, self.values[OVERRELAX.name]

        def update() -> Records:
            heat(heatbaths, randoms[0].step + 1)
            reflect(overrelax)
            for random in randoms:
                random.step += heatbaths
            return ()

        return update

    @property
    def timed_sweeps(self) -> Mapping[str, int]:
        """Numbers of sweeps of both kinds in an update."""
        return {HEATBATH.name: self.draws, OVERRELAXATION.name: self.values[OVERRELAX.name]}

    def timed(self, field: Field, coupling: Coupling, random: Random) -> Iterator[TimedSweep]:
        """Yield a sweep of each kind; see `Algorithm.timed`."""
        heat = heatbath_sweep(field, [coupling], [random])

        def sweep(times: int) -> None:
            heat(times, random.step + 1)
            random.step += times

        yield TimedSweep(HEATBATH.name, sweep, heat.registers, visits_links=True, draws=True)
        reflect = overrelaxation_sweep(field, [coupling.action])
        yield TimedSweep(OVERRELAXATION.name, reflect, reflect.registers, visits_links=True)


ALGORITHMS.register(Heatbath())

"""Markov chains of gauge fields in memory: start, update, save, resume."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from gauge_mc.actions import Coupling, couplings
from gauge_mc.algorithms import Records, Tuning, Update
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import BackgroundWriter
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.device_pool import Devices
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import REALS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.files.table import Value
from gauge_mc.observables import live_observables
from gauge_mc.quoting import CommandLine
from gauge_mc.registry import in_words
from gauge_mc.run import checkpoint
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import STARTS, check_starts
from gauge_mc.updates.chain_steps import ReplicaExchange
from gauge_mc.updates.monomials.gauge import check_action, gauge_actions


class Chain:
    """A Markov chain of gauge fields.

    Attributes
    ----------
    parameters : Parameters
        Parameters of the chain.
    field : Field
        Current gauge field.
    random : Random
        Random number generator.
    sweep : int
        Number of updates done, thermalisation included.
    tuning : Tuning
        State of the algorithm, such as a number of steps that the thermalisation has chosen.
    replica : int or None
        With tempering, the number of the replica whose links the chain has.
    ladder : sequence of float
        The couplings of the chains with which it exchanges replicas, in ascending order.
    record : tuple
        Record of the last update by the algorithm; see `Algorithm.columns`.
    """

    def __init__(
        self,
        parameters: Parameters,
        field: Field,
        random: Random,
        sweep: int = 0,
        numbers: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self.tuning = Tuning(parameters.thermalize, dict(numbers))
        self.parameters = parameters
        self.field = field
        self.random = random
        self.sweep = sweep
        self.replica: int | None = None
        self.ladder: Sequence[float] = ()
        self.record: tuple[Value, ...] = ()
        self._live = live_observables(parameters.lattice)

    def live(self) -> str:
        """Measure what progress displays show of the links, and add what they show of the update.

        All processes that share the lattice must call this method together.
        """
        of_links = [x.live(x.measure(self.field)) for x in self._live]
        return "  ".join([*of_links, *self.parameters.algorithm.live(self.record)])

    @classmethod
    def begin(cls, parameters: Parameters, device: Devices | None = None) -> Chain:
        """Begin a chain from a cold start, a hot start or a configuration file.

        Raises
        ------
        UsageError
            If the start file does not exist, or has another group or lattice.
        GaugeError
            If the start file cannot be read or is damaged, or if there is not enough memory.
        """
        p, devices = parameters, DeviceGroup.of(device)
        devices.compute(p.strict)
        if p.start == "hot":
            field = Field.hot(p.lattice, p.group, p.precision, devices, p.seed)
        elif p.start == "cold":
            field = Field.cold(p.lattice, p.group, p.precision, devices)
        else:
            check_start(p.start, p.group, p.lattice)
            field = Field.load(p.start, p.precision, devices)
        return cls(p, field, Random.for_field(field, p.rng, p.seed, p.luxury))

    @classmethod
    def resume(
        cls, parameters: Parameters, device: Devices | None, path: Path
    ) -> tuple[Chain, checkpoint.ChainState]:
        """Continue a chain from a checkpoint.

        Returns
        -------
        Chain
            The chain, exactly as it was when the checkpoint was written.
        State
            State that the checkpoint records.

        Raises
        ------
        GaugeError
            If the checkpoint cannot be read, is damaged, or belongs to another chain.
        """
        p, devices = parameters, DeviceGroup.of(device)
        state, arrays = checkpoint.load(path) if devices.root else (None, iter(()))
        state = devices.processes.broadcast(state)
        assert state is not None
        if not p.is_of(state.chain):
            raise GaugeError(f"The checkpoint {path} belongs to a run with other parameters.")
        devices.compute(p.strict)
        field = Field.empty(p.lattice, p.group, p.precision, devices)
        random = Random.for_field(field, p.rng, p.seed, p.luxury)
        chain = cls(p, field, random, state.sweep, state.tuning)
        chain.random.step = state.step
        chain.replica, chain.ladder = state.replica, tuple(state.ladder)
        if devices.root:
            sites, extent_t = p.lattice.slice_sites, p.lattice.t
            links = np.dtype(REALS[field.precision]), 4 * sites * field.group.reals
            states = np.dtype(np.uint32), sites * random.generator.state_words
            expected = [links] * extent_t + [states] * extent_t
            arrays = checkpoint.fitting(path, arrays, expected)
        field.restore(arrays)
        chain.random.restore(arrays)
        return chain, state

    def __repr__(self) -> str:
        return f"<Chain after {self.sweep} updates of {self.field!r}>"

    def save(self, path: Path, measured: bool = True) -> None:
        """Write a checkpoint from which `resume` continues exactly.

        Parameters
        ----------
        path : Path
            Checkpoint file.
        measured : bool
            Whether everything that is due after the last update has been measured and written.

        Raises
        ------
        GaugeError
            If the checkpoint cannot be written. The previous checkpoint is then unchanged.
        """
        parts = (self.field, self.random)
        arrays = itertools.chain.from_iterable(part.packed_slices() for part in parts)
        if self.field.devices.root:
            facts = self.parameters.fixed(), measured, self.tuning.numbers, self.replica
            state = checkpoint.ChainState(self.sweep, self.random.step, *facts, self.ladder)
            checkpoint.save(path, state, arrays)
        else:
            list(arrays)

    def write(
        self,
        path: Path,
        writer: BackgroundWriter,
        before: Callable[[], object] = lambda: None,
        format: str | None = None,
    ) -> None:
        """Write the links to a configuration file, which appears complete or not at all.

        Parameters
        ----------
        path : Path
            Configuration file.
        writer : BackgroundWriter
            The writer, which also raises the errors of earlier files.
        before : callable
            Called before the file is written.
        format : str, optional
            File format; by default that of the run.

        Raises
        ------
        GaugeError
            If a file cannot be written.
        """
        p = self.parameters
        origin = {"ensemble_id": p.name, "sequence_number": str(self.sweep)}
        metadata = {**p.provenance, **origin}
        writer.write(self.field, path, format or p.format, metadata, before)


def check_start(start: str, group: str, lattice: Lattice) -> None:
    """Check that the start file exists and has the group and lattice of a run."""
    if start in STARTS:
        return
    check_starts(start, 1)
    if not Path(start).exists():
        choices = in_words((*STARTS, "an existing file"), "or")
        raise UsageError(f"There is no start file {start}; choose {choices}.")
    header = open_configuration(start).header
    if (header.group, header.lattice) != (group, lattice):
        raise UsageError(
            f"The start file {start} contains {header.group} on {header.lattice}, "
            f"but the run is for {group} on {lattice}; choose another file or other parameters."
        )


def is_configuration(path: Path, parameters: Parameters, sweep: int) -> bool:
    """Return whether the header of a file says that it is a configuration of a chain."""
    p = parameters
    try:
        header = open_configuration(path).header
    except GaugeError:
        return False
    origin = {"sequence_number": str(sweep)}
    if re.fullmatch("[!-~]{1,200}", p.name):  # formats store other names differently
        origin["ensemble_id"] = p.name
    if (header.group, header.lattice, header.precision) != (p.group, p.lattice, p.precision):
        return False
    return all(header.provenance.get(name, value) == value for name, value in origin.items())


DIFFERING = {"beta", "seed", "start", *(c.name for c in couplings())}
"""Parameters in which the runs of a batch may differ, if their kernels are the same."""


def shared_values(parameters: Parameters) -> tuple[object, ...]:
    """Return the values of the parameters that all runs of a batch share."""
    values = parameters.values()
    kernels = parameters.coupling.action.choice.name
    return (kernels, *(value for name, value in values.items() if name not in DIFFERING))


class Batch:
    """Markov chains whose fields are the replicas of one field, so that they share all launches.

    Every chain is bit-for-bit what it would be alone, unless chains exchange replicas.

    Parameters
    ----------
    chains : iterable of Chain
        Chains after the same number of updates, whose parameters differ only in couplings,
        seed and start.
        Several chains must be on one slab of the same device. They move to the memory of the batch
        one by one as they are made.
    count : int
        Number of chains.

    Attributes
    ----------
    chains : tuple of Chain
        The chains, in the order of the replicas.
    field : Field
        The field whose replicas are the fields of the chains.
    records : sequence of tuple
        Records of the last update, one for every chain; see `Algorithm.columns`.
    tempering : CouplingExchange or None
        The exchange of replicas between the chains, if their parameters ask for it. Then a chain is
        not what it would be alone.

    Raises
    ------
    UsageError, GaugeError
        If the chains cannot exchange replicas; see `CouplingExchange`.
    GaugeError
        If the device has too little memory.
    """

    def __init__(self, chains: Iterable[Chain], count: int) -> None:
        self.records: Records = ()
        self.chains = tuple(chains) if count == 1 else self._moved(chains, count)
        if count == 1:
            self.field = self.chains[0].field
        tempered = self.chains[0].parameters.tempering
        self.tempering = CouplingExchange(self.chains, self.field) if tempered else None
        self._advance: Update | None = None

    def _moved(self, chains: Iterable[Chain], count: int) -> tuple[Chain, ...]:
        """Move chains to the replicas of one field; return them."""
        moved: list[Chain] = []
        for chain in chains:
            if not moved:
                self.field = chain.field.repeated(count)
                states = chain.random.repeated_states(count)
            replica = self.field.replicas[len(moved)]
            replica.copy(chain.field)
            chain.random = chain.random.moved(replica, states, len(moved))
            chain.field = replica
            moved.append(chain)
        return tuple(moved)

    @property
    def sweep(self) -> int:
        """Number of updates that every chain has done, thermalisation included."""
        return self.chains[0].sweep

    def prepare(self) -> Update:
        """Prepare updates, once, because an update of a small lattice takes little time."""
        p = self.chains[0].parameters
        couplings = [chain.parameters.coupling for chain in self.chains]
        randoms = [chain.random for chain in self.chains]
        tunings = [chain.tuning for chain in self.chains]
        prepared = p.algorithm.prepare(self.field, couplings, randoms, p.chain_version, tunings)
        self._advance = prepared
        return prepared

    def update(self) -> None:
        """Do one update of every chain."""
        self.records = (self._advance or self.prepare())()
        for n, chain in enumerate(self.chains):
            chain.sweep += 1
            chain.record = self.records[n] if self.records else ()
        if self.tempering:
            self.tempering.after_update()


VARYING = ("beta", "seed", "configs")
"""Parameters in which the runs of a ladder may differ."""


def check_ladder(runs: Sequence[Parameters], scan: Path | None = None) -> None:
    """Check that runs can exchange their replicas."""
    first = runs[0].values()
    if len(runs) < 2:
        command = f"the whole scan with `{CommandLine('scan', output=scan)}`"
        raise UsageError(
            f"Tempering exchanges the couplings of several runs, and there is only one, at β = "
            f"{runs[0].beta:.12g}; carry out {command if scan else 'a scan with several β'}."
        )
    for run in runs[1:]:
        values = run.values()
        differing = [name for name in values if name not in VARYING and values[name] != first[name]]
        if differing:
            raise UsageError(
                f"Runs that differ in {differing[0]} cannot exchange their couplings; carry out "
                "those with each value by themselves."
            )
    if len({run.beta for run in runs}) < len(runs):
        raise UsageError("Runs that exchange their couplings must have different β; leave one out.")


class CouplingExchange:
    """The exchange of replicas between the chains of a batch, in ascending order of β.

    The total action of two chains with the couplings β and β' changes by (β' - β)(s - s') in an
    exchange, where β s is the action of the first. For quarks nothing changes if their parameters
    are equal.

    Parameters
    ----------
    chains : sequence of Chain
        The chains of the batch. They are given their replicas if they have just begun.
    field : Field
        The field whose replicas are their links.

    Attributes
    ----------
    records : sequence of tuple
        Records of the last exchange, one for every chain.

    Raises
    ------
    UsageError
        If the chains cannot exchange replicas, or the action does not declare its loops.
    GaugeError
        If they come from checkpoints of runs that do not belong together.
    """

    def __init__(self, chains: Sequence[Chain], field: Field) -> None:
        runs = [chain.parameters for chain in chains]
        check_ladder(runs)
        check_action(runs[0].action, field)
        self._chains, self._field = chains, field
        self._unit = [Coupling(1.0, run.action) for run in runs]
        self._spare = field.replicas[0].repeated(1)
        ladder = tuple(run.beta for run in runs)
        for n, chain in enumerate(chains):
            if chain.replica is None:
                chain.replica, chain.ladder = n, ladder
        replicas = [chain.replica for chain in chains if chain.replica is not None]
        if any(chain.ladder != ladder for chain in chains) or {*replicas} != {*range(len(ladder))}:
            stated = ", ".join(f"{beta:.12g}" for beta in chains[0].ladder)
            raise GaugeError(
                f"The checkpoint at β = {ladder[0]:.12g} is of a run that exchanges couplings with "
                f"those at β = {stated}, which are not these runs; continue the whole scan."
            )
        self._exchange = ReplicaExchange(runs[0].seed, replicas)
        self.records: Records = ()

    def after_update(self) -> None:
        """Exchange replicas if it is due after the last update of all chains."""
        p, sweep = self._chains[0].parameters, self._chains[0].sweep
        number, off = divmod(sweep - p.thermalize, p.exchange_every)
        if off:
            return
        actions = gauge_actions(self._field, self._unit)

        def change(lower: int) -> float:
            """Return the change of the action of both if a chain and the next one exchange."""
            this, upper = (chain.parameters.beta for chain in self._chains[lower : lower + 2])
            return (upper - this) * actions[lower].minus(actions[lower + 1])

        exchanges = self._exchange.step(sweep, number, change)
        for exchange in dict.fromkeys(exchanges):
            if exchange and exchange.accepted:
                this, upper = self._chains[exchange.lower : exchange.lower + 2]
                self._spare.copy(this.field)
                this.field.copy(upper.field)
                upper.field.copy(self._spare)
                this.tuning.links_changed = upper.tuning.links_changed = True
        for chain, replica in zip(self._chains, self._exchange.replicas, strict=True):
            chain.replica = replica
        self.records = self._exchange.records(exchanges)

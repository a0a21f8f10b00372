"""Batches: Markov chains of equal lattices that are updated together.

With tempering in β, the chains exchange the replicas that they update. The links are exchanged in
memory. The couplings, the random numbers, the tuning of the algorithm, the tables and the directory
stay with the run, so that everything that reads runs finds those of one coupling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from gauge_mc.actions import Coupling, couplings
from gauge_mc.algorithms import Records, Update
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.quoting import CommandLine
from gauge_mc.run.chain import Chain
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.exchange import ReplicaExchange
from gauge_mc.updates.monomials.gauge import check_action, gauge_actions

DIFFERING = {"beta", "seed", "start", *(one.name for one in couplings())}
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

    def update(self) -> None:
        """Do one update of every chain."""
        self.records = self._update()
        for n, chain in enumerate(self.chains):
            chain.sweep += 1
            chain.record = self.records[n] if self.records else ()
        if self.tempering:
            self.tempering.after_update()

    # The update is prepared only once, because an update of a small lattice takes little time.
    @cached_property
    def _update(self) -> Update:
        p = self.chains[0].parameters
        couplings = [chain.parameters.coupling for chain in self.chains]
        randoms = [chain.random for chain in self.chains]
        tunings = [chain.tuning for chain in self.chains]
        return p.algorithm.prepare(self.field, couplings, randoms, p.chain_version, tunings)


VARYING = ("beta", "seed", "configs")
"""Parameters in which the runs of a ladder may differ."""


def check_ladder(runs: Sequence[Parameters], scan: Path | None = None) -> None:
    """Check that runs can exchange their replicas.

    Parameters
    ----------
    runs : sequence of Parameters
        Parameters of the runs.
    scan : Path, optional
        The scan to which they belong.

    Raises
    ------
    UsageError
        If there are fewer than two, they have equal couplings, or differ in more than the coupling.
    """
    first = runs[0].values()
    if len(runs) < 2:
        whole = f"the whole scan with `{CommandLine('scan', output=scan)}`"
        raise UsageError(
            f"Tempering exchanges the couplings of several runs, and there is only one, at β = "
            f"{runs[0].beta:.12g}; carry out {whole if scan else 'a scan with several β'}."
        )
    for one in runs[1:]:
        values = one.values()
        differing = [name for name in values if name not in VARYING and values[name] != first[name]]
        if differing:
            raise UsageError(
                f"Runs that differ in {differing[0]} cannot exchange their couplings; carry out "
                "those with each value by themselves."
            )
    if len({one.beta for one in runs}) < len(runs):
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
        Records of the last exchange, one for every chain; see `gauge_mc.updates.exchange.COLUMNS`.

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
        self._unit = [Coupling(1.0, one.action) for one in runs]
        self._spare = field.replicas[0].repeated(1)
        self._exchange = ReplicaExchange(runs[0].seed, _replicas(chains))
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
            this, other = (chain.parameters.beta for chain in self._chains[lower : lower + 2])
            return (other - this) * actions[lower].minus(actions[lower + 1])

        exchanges = self._exchange.step(sweep, number, change)
        for exchange in dict.fromkeys(exchanges):
            if exchange and exchange.accepted:
                this, other = self._chains[exchange.lower : exchange.lower + 2]
                self._spare.copy(this.field)
                this.field.copy(other.field)
                other.field.copy(self._spare)
                this.tuning.links_changed = other.tuning.links_changed = True
        for chain, replica in zip(self._chains, self._exchange.replicas, strict=True):
            chain.replica = replica
        self.records = self._exchange.records(exchanges)


def _replicas(chains: Sequence[Chain]) -> list[int]:
    """Return the replica of every chain; those that have just begun are given theirs."""
    ladder = tuple(chain.parameters.beta for chain in chains)
    for n, chain in enumerate(chains):
        if chain.replica is None:
            chain.replica, chain.ladder = n, ladder
    found = [chain.replica for chain in chains if chain.replica is not None]
    if any(chain.ladder != ladder for chain in chains) or {*found} != {*range(len(ladder))}:
        stated = ", ".join(f"{beta:.12g}" for beta in chains[0].ladder)
        raise GaugeError(
            f"The checkpoint at β = {ladder[0]:.12g} is of a run that exchanges couplings with "
            f"those at β = {stated}, which are not the runs at hand; continue the whole scan."
        )
    return found

"""Batches: Markov chains of equal lattices that are updated together."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from gauge_mc.actions import couplings
from gauge_mc.algorithms import Records, Update
from gauge_mc.run.chain import Chain
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.tempering import CouplingExchange

OWN = {"beta", "seed", "start", *(one.name for one in couplings())}
"""Parameters in which the runs of a batch may differ, if their kernels are the same."""


def shared_values(parameters: Parameters) -> tuple[object, ...]:
    """Return the values of the parameters that all runs of a batch share."""
    values = parameters.values()
    kernels = parameters.coupling.action.choice.name
    return (kernels, *(value for name, value in values.items() if name not in OWN))


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

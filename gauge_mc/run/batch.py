"""Batches: Markov chains of equal lattices that are updated together."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from gauge_mc.actions import Coupling
from gauge_mc.run.chain import Chain
from gauge_mc.updates.heatbath import heatbath_sweep
from gauge_mc.updates.overrelaxation import overrelaxation_sweep
from gauge_mc.updates.sweep import Sweep


class Batch:
    """Markov chains whose fields are the replicas of one field, so that they share all launches.

    Every chain is bit-for-bit what it would be alone.

    Parameters
    ----------
    chains : iterable of Chain
        Chains after the same number of updates, whose parameters differ only in couplings
        and seed.
        Several chains must be on one slab of the same device. They move to the memory of the batch
        one by one as they are made.
    count : int
        Number of chains.

    Attributes
    ----------
    chains : tuple of Chain
    field : Field
        The field whose replicas are the fields of the chains.

    Raises
    ------
    GaugeError
        If the device has too little memory.
    """

    def __init__(self, chains: Iterable[Chain], count: int) -> None:
        if count == 1:
            self.chains = tuple(chains)
            self.field = self.chains[0].field
            return
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
        self.chains = tuple(moved)

    @property
    def sweep(self) -> int:
        """Number of updates that every chain has done, thermalisation included."""
        return self.chains[0].sweep

    def update(self) -> None:
        """Do one update of every chain: heatbath sweeps, then overrelaxation sweeps."""
        first = self.chains[0]
        heatbaths = first.parameters.heatbath
        self._heatbath(heatbaths, first.random.step + 1)
        self._overrelaxation(first.parameters.overrelax)
        for chain in self.chains:
            chain.random.step += heatbaths
            chain.sweep += 1

    # The sweeps are looked up only once, because an update of a small lattice takes little time.
    @cached_property
    def _heatbath(self) -> Sweep:
        randoms = [chain.random for chain in self.chains]
        return heatbath_sweep(self.field, self._couplings, randoms, self._version)

    @cached_property
    def _overrelaxation(self) -> Sweep:
        return overrelaxation_sweep(self.field, self._couplings, self._version)

    @property
    def _version(self) -> int:
        return self.chains[0].parameters.chain_version

    @property
    def _couplings(self) -> list[Coupling]:
        return [chain.parameters.coupling for chain in self.chains]

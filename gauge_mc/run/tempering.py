"""Tempering in β: runs that differ in their coupling exchange the replicas that they update.

The links are exchanged in memory. The couplings, the random numbers, the tuning of the
algorithm, the tables and the directory stay with the run, so that everything that reads runs finds
those of one coupling.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from gauge_mc.actions import Coupling
from gauge_mc.algorithms import Records
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.run.chain import Chain
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.energy import Energy
from gauge_mc.updates.exchange import ReplicaExchange
from gauge_mc.updates.monomials.gauge import check_action, gauge_actions

OWN = ("beta", "seed", "configs")
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
        whole = f"the whole scan with gauge-mc scan --output {quote(str(scan))}"
        raise UsageError(
            f"Tempering exchanges the couplings of several runs, and there is only one, at β = "
            f"{runs[0].beta:.12g}; carry out {whole if scan else 'a scan with several β'}."
        )
    for one in runs[1:]:
        values = one.values()
        differing = [name for name in values if name not in OWN and values[name] != first[name]]
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
        found = self._exchange.step(sweep, number, lambda lower: self._change(actions, lower))
        for one in dict.fromkeys(found):
            if one and one.accepted:
                self._swap(one.lower)
        for chain, replica in zip(self._chains, self._exchange.replicas, strict=True):
            chain.replica = replica
        self.records = self._exchange.records(found)

    def _change(self, actions: Sequence[Energy], lower: int) -> float:
        """Return the change of the action of both if a chain and the next one exchange replicas."""
        this, other = (chain.parameters.beta for chain in self._chains[lower : lower + 2])
        return (other - this) * actions[lower].minus(actions[lower + 1])

    def _swap(self, lower: int) -> None:
        """Swap the links of a chain and of the next one."""
        this, other = self._chains[lower : lower + 2]
        self._spare.copy(this.field)
        this.field.copy(other.field)
        other.field.copy(self._spare)
        this.tuning.links_changed = other.tuning.links_changed = True


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

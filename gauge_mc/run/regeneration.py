"""Configurations that a run has not kept, made again from those that it has.

Random numbers are a function of seed, site and update, so that a chain can be taken up at any
stored configuration. If the generator has states, it is taken up at its start. Another device or
compiler may round differently. Before anything is made, a configuration that is stored is
therefore made again from the one before it, and both must have the same links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.layout import REALS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.random import GENERATORS
from gauge_mc.run.batch import Batch
from gauge_mc.run.chain import Chain
from gauge_mc.run.checkpoint import ChainState, read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.preparation import compile_kernels

START = 0
"""Number of updates at the start of a chain."""


@dataclass(frozen=True)
class StoredChain:
    """A chain with the places at which it can be taken up again."""

    run: Run
    """Run directory."""
    parameters: Parameters
    """Parameters of the run."""
    state: ChainState
    """Position of the chain at the last checkpoint."""
    files: dict[int, Path]
    """Configurations by update."""

    @classmethod
    def of(cls, run: Run) -> StoredChain:
        """Return the chain of a run, with its stored configurations.

        Raises
        ------
        UsageError
            If there is no run, or it has not begun.
        GaugeError
            If its files are damaged, or two configurations have the same number.
        """
        parameters = run.read()[0]
        if not run.checkpoint.exists():
            raise UsageError(f"The run {run.path} has no checkpoint yet; generate some updates.")
        state = read_state(run.checkpoint)
        if state.step != state.sweep * parameters.algorithm.draws:
            raise GaugeError(
                f"The run {run.path} has drawn other random numbers than this version draws in "
                f"{state.sweep} updates; use the version that made it."
            )
        return cls(run, parameters, state, run.unambiguous_configs())

    def without(self, numbers: Iterable[int]) -> StoredChain:
        """Return the chain as it is without some of its configurations."""
        left = self.files.keys() - {*numbers}
        files = {number: self.files[number] for number in sorted(left)}
        return StoredChain(self.run, self.parameters, self.state, files)

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Updates at which the chain can be taken up, ascending, with the start."""
        if GENERATORS[self.parameters.rng].state_words:
            return (START,)
        # The numbers that an algorithm chooses are those of the checkpoint after thermalisation.
        known = (one for one in self.files if one >= self.parameters.thermalize)
        return (START, *(one for one in known if START < one <= self.state.sweep))

    def place_before(self, update: int) -> int:
        """Return the last place from which an update can be made; it is not the update itself."""
        return max(place for place in self.places if place < update)

    def distance(self, numbers: Iterable[int]) -> int:
        """Return the number of updates that it takes to make some configurations."""
        at, total = -1, 0
        for number in sorted({*numbers}):
            at = max(at, self.place_before(number))
            total += number - at
            at = number
        return total

    def nearest(self, numbers: Iterable[int]) -> int | None:
        """Return that of some configurations that takes the fewest updates, if there is any."""
        return min(numbers, key=lambda one: (one - self.place_before(one), one), default=None)

    def taken_up(self, place: int, devices: DeviceGroup) -> Chain:
        """Return the chain as it was at one of its places.

        Raises
        ------
        UsageError
            If the file at which the run was started does not exist.
        GaugeError
            If the configuration is damaged, or has other links than the run stores.
        """
        p = self.parameters
        if place == START:
            return Chain.begin(p, devices)
        stored = open_configuration(self.files[place])
        self._refuse_other(stored.path, place)
        field = stored.load(p.precision, devices)
        random = Random.for_field(field, p.rng, p.seed, p.luxury)
        random.step = place * p.algorithm.draws
        return Chain(p, field, random, place, self.state.tuning)

    def _refuse_other(self, path: Path, number: int) -> None:
        """Refuse a file that is not exactly a configuration of the run."""
        p, header = self.parameters, open_configuration(path).header
        widths = [np.dtype(REALS[one]).itemsize for one in (header.precision, p.precision)]
        if (header.group, header.lattice) != (p.group, p.lattice) or widths[0] < widths[1]:
            raise GaugeError(
                f"{path} has {header.group} on {header.lattice} in {header.precision} precision, "
                f"and not what the run has after update {number}; move it out of the run."
            )


@dataclass(frozen=True)
class Regeneration:
    """The making of configurations on some devices, whose kernels are compiled first."""

    chain: StoredChain
    """The chain."""
    devices: DeviceGroup
    """Devices that share the lattice."""
    advance: Callable[[], object] = lambda: None
    """Function that is called after every update."""

    def made(self, numbers: Iterable[int]) -> Iterator[Chain]:
        """Yield the chain after each of some updates, in ascending order.

        Raises
        ------
        UsageError, GaugeError
            See `StoredChain.taken_up`.
        """
        compile_kernels(self.chain.parameters, (), self.devices, resumed=False)
        batch: Batch | None = None
        for number in sorted({*numbers}):
            place = self.chain.place_before(number)
            if batch is None or batch.sweep < place:
                batch = Batch([self.chain.taken_up(place, self.devices)], 1)
            while batch.sweep < number:
                batch.update()
                self.advance()
            yield batch.chains[0]

    def compare(self, stored: StoredChain, number: int) -> None:
        """Make a configuration again and compare its links with those that are stored.

        Parameters
        ----------
        stored : StoredChain
            The chain with this configuration.
        number : int
            Its update.

        Raises
        ------
        GaugeError
            If the links differ.
        """
        path = stored.files[number]
        stored._refuse_other(path, number)
        for chain in self.made([number]):
            field = chain.field
            known = open_configuration(path).load(field.precision, self.devices)
            if not same_links(field, known):
                sessions = stored.run.read()[1]
                made_by = [f"{one.device} with gauge-mc {one.version}" for one in sessions]
                raise GaugeError(
                    f"Made again on {self.devices.name}, configuration {number} of "
                    f"{stored.run.path} has other links than {path}, so that others would be wrong "
                    f"as well; the run was made on {'; '.join(dict.fromkeys(made_by))}."
                )


def same_links(one: Field, other: Field) -> bool:
    """Return whether two fields have the same bytes; all processes must call this."""
    pairs = zip(one.packed_slices(), other.packed_slices(), strict=True)
    same = all([np.array_equal(a.view(np.uint8), b.view(np.uint8)) for a, b in pairs])
    return bool(one.devices.processes.broadcast(same))

"""An algorithm: the heatbath without overrelaxation, which records how many sweeps it has done."""

from collections.abc import Iterator, Sequence

from gauge_mc.actions import Coupling
from gauge_mc.algorithms import Algorithm, ChainSpec, Records, Tuning, Update
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.options import Option
from gauge_mc.updates.heatbath import HEATBATH, heatbath_sweep
from gauge_mc.updates.sweep import MANY_REPLICAS, ONE_REPLICA


class Counted(Algorithm):
    """An update is some heatbath sweeps."""

    name = "counted"
    summary = "heatbath sweeps that are counted"
    columns = TableColumns(Column("sweeps_done", int, average="counted sweeps"))
    normalisation = "heatbath sweeps since the start"
    options = (Option("rounds", int, "Heatbath sweeps per update.", least=1, usual=1),)

    @property
    def sweeps(self) -> int:
        """Number of sweeps in an update."""
        return int(self.values["rounds"])

    def kernels(self, ensemble: ChainSpec) -> Iterator[tuple[Kernel, tuple[Choice, ...]]]:
        """Yield the kernel of the heatbath."""
        replicas = MANY_REPLICAS if ensemble.several else ONE_REPLICA
        yield HEATBATH, (*ensemble.action.choices, ensemble.random, replicas, ensemble.norms)

    def prepare(
        self,
        field: Field,
        couplings: Sequence[Coupling],
        randoms: Sequence[Random],
        version: int,
        tunings: Sequence[Tuning],
    ) -> Update:
        """Return the update."""
        sweep = heatbath_sweep(field, couplings, randoms, version)

        def update() -> Records:
            sweep(self.sweeps, randoms[0].step + 1)
            for random in randoms:
                random.step += self.sweeps
            return [(random.step,) for random in randoms]

        return update


COUNTED = Counted()

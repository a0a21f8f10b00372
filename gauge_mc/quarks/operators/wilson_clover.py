"""The Wilson operator with the clover term, and with a twisted mass on demand."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import ClassVar

from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.errors import UsageError
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.options import Option
from gauge_mc.quarks.hopping import PreparedOperator
from gauge_mc.quarks.links import in_precision
from gauge_mc.quarks.operators import LARGEST, MU, OPERATORS, DiracOperator, finite
from gauge_mc.quarks.spinors import SPINS, SpinorField
from gauge_mc.quarks.storage import STORAGES, Storage, StoredSlab, elsewhere, empty_slabs
from gauge_mc.quarks.transport import ANTIPERIODIC

CLOVER_TERM = Kernel("clover_term")
CONVERT_BLOCKS = Kernel("convert_blocks")

EXACT = STORAGES["double"]
"""Storage in which the clover term and its inverse are computed, whatever the precision."""


@OPERATORS.register
class WilsonClover(DiracOperator):
    """M = C + 2 i kappa mu gamma_5 - kappa D with the clover term C.

    C = 1 + (i/2) kappa c_SW sum over mu, nu of sigma_mu_nu F_mu_nu, which removes the errors of
    order a at tree level for c_SW = 1; see ``cuda_src/kernels/clover_term.cu``.

    Parameters
    ----------
    field, kappa, boundary
        See `DiracOperator`.
    csw : float
        The coefficient c_SW.
    mu : float
        The twisted mass.
    """

    name = "wilson-clover"
    parameters: ClassVar[tuple[Option, ...]] = (
        Option(
            "csw",
            float,
            "Coefficient c_SW of the clover term.",
            "0",
            least=-LARGEST,
            most=LARGEST,
        ),
        MU,
    )
    diagonal = Choice.of("diagonal", "Clover", "dirac/clover.h", "Clover")

    def __init__(
        self,
        field: Field,
        kappa: float,
        csw: float,
        mu: float = 0.0,
        boundary: complex | Sequence[complex] = ANTIPERIODIC,
    ) -> None:
        super().__init__(field, kappa, boundary)
        self.csw, self.mu = finite("c_SW", csw), finite("The twisted mass", mu)
        self._stored: dict[Storage, tuple[Slabs, Slabs]] = {}

    def terms(self, prepared: PreparedOperator, slab: int) -> ctypes.Structure:
        """Return the structure ``Terms``; see `DiracOperator.terms`."""
        blocks, inverse = self._blocks(prepared.storage)
        return prepared.made_terms(
            slab,
            blocks=blocks[slab].buffer.address,
            inverse=inverse[slab].buffer.address,
            mass=2 * self.kappa * self.mu,
        )

    def refresh(self) -> None:
        """Compute the clover term anew as well; see `DiracOperator.refresh`."""
        super().refresh()
        for storage in self._stored:  # in double precision first
            self._compute(storage)

    def add_diagonal_force(
        self, force: AlgebraField, x: SpinorField, y: SpinorField, weights: Sequence[float]
    ) -> None:
        """Refuse: the force of the clover term is not known yet."""
        raise UsageError("The force of the clover term is not known yet; leave out csw.")

    def _blocks(self, storage: Storage) -> tuple[Slabs, Slabs]:
        """Return the clover term and its inverse."""
        if storage not in self._stored:
            if storage != EXACT:
                self._blocks(EXACT)
            self._stored[storage] = self._empty(storage), self._empty(storage)
            self._compute(storage)
        return self._stored[storage]

    def _compute(self, storage: Storage) -> None:
        """Compute the clover term and its inverse, by conversion unless the storage is `EXACT`."""
        if storage == EXACT:
            self._compute_exact()
        else:
            self._convert(storage)

    def _empty(self, storage: Storage) -> Slabs:
        reals = (SPINS // 2 * self.field.group.colours) ** 2
        return empty_slabs(self.field, storage.layouts(self.field), 2 * storage.bytes(reals))

    def _compute_exact(self) -> None:
        field = in_precision(self.field, EXACT.arithmetic)
        blocks, inverse = self._stored[EXACT]
        for links, one, other in zip(field.slabs, blocks, inverse, strict=True):
            one.launch(
                CLOVER_TERM,
                one.whole(),
                EXACT.choice,
                links=links.buffer.address,
                blocks=one.buffer.address,
                inverse=other.buffer.address,
                factor=self.kappa * self.csw,
                mass=2 * self.kappa * self.mu,
            )
            one.device.synchronize()

    def _convert(self, storage: Storage) -> None:
        for mine, exact in zip(self._stored[storage], self._stored[EXACT], strict=True):
            for slab, old in zip(mine, exact, strict=True):
                slab.launch(
                    CONVERT_BLOCKS,
                    slab.whole(),
                    storage.choice,
                    target=slab.buffer.address,
                    source=old.buffer.address,
                    elsewhere=elsewhere(EXACT.number_bytes, slab.layout, old.layout).structure,
                )


Slabs = tuple[StoredSlab, ...]
"""Hermitian blocks of all sites on the devices of this process."""

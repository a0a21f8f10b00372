"""Propagators that are kept in a folder, so that they are computed once."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.quarks.hadrons.propagator_files import (
    STRICTLY,
    StoredPropagator,
    read_propagator,
    scalar_source,
)
from gauge_mc.quarks.hadrons.propagators import columns_of, elements_of
from gauge_mc.quarks.matrices.preconditioned import System
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.solvers import Solution
from gauge_mc.quarks.vectors.spinors import SpinorField

READ = "file"
"""Name of the solver in tables of solutions, if a propagator was read from a file."""


@dataclass(frozen=True)
class PropagatorPath:
    """The path of a propagator that is kept in a folder.

    Its name has the hopping parameter, the source, and a digest of the links and of the metadata.
    """

    folder: Path
    """Folder in which propagators are kept."""
    metadata: Mapping[str, str]
    """Metadata that identify the propagator, apart from the links."""

    def path(self, field: Field) -> Path:
        """Return the file for a field of links; all processes must call this."""
        digest = hashlib.sha256(repr((str(field.lattice), field.group.name)).encode())
        digest.update(repr(sorted(self.metadata.items())).encode())
        for links in field.slices():
            digest.update(np.ascontiguousarray(links).data)
        text: str = field.devices.processes.broadcast(digest.hexdigest()[:16])
        source = re.sub("[^0-9A-Za-z.-]+", "_", self.metadata["sources"])
        return self.folder / f"k{float(self.metadata['kappa']):g}_{source}_{text}.lime"

    def read(
        self, operator: DiracOperator, source: SpinorField, tolerance: float
    ) -> Solution | None:
        """Return the solutions that are in the folder, or None if there are none.

        Raises
        ------
        GaugeError
            If the file is damaged, of other quarks, or does not solve the Dirac equation.
        """
        path, began = self.path(operator.field), time.perf_counter()
        if not operator.field.devices.processes.broadcast(path.exists()):
            return None
        stored = read_propagator(path)
        self._check_strict(path, stored, source)
        try:
            columns = columns_of(operator.field, stored.elements)
        except GaugeError as error:
            raise GaugeError(f"{path} does not fit: {error}") from error
        system = System(operator, source, with_adjoint=True)
        x = SpinorField.from_numpy(operator.field, columns)
        system.take(x)
        residual = system.residual_norms()
        if not (residual <= tolerance).all():
            raise GaugeError(
                f"{path} is not a solution on these links: its residual is {residual.max():.2g} of "
                f"the source, and the tolerance is {tolerance:g}; remove the file, or choose a "
                "larger tolerance."
            )
        seconds = time.perf_counter() - began
        return Solution(x, READ, x.storage.name, 0, 0, residual, residual, seconds, ())

    def _check_strict(self, path: Path, stored: StoredPropagator, source: SpinorField) -> None:
        """Refuse a file for a strict measurement whose bits may be others."""
        how = self.metadata.get(STRICTLY)
        if not how:
            return
        own, sources = scalar_source(elements_of(source)), stored.sources
        alike = sources is not None and np.array_equal(sources, own)
        if not alike or stored.metadata.get(STRICTLY) != how:
            raise GaugeError(
                f"{path} does not say that a strict measurement has computed it in the same way "
                "from the same source; remove the file, or choose another folder."
            )

    def write(self, source: SpinorField, solution: SpinorField) -> None:
        """Write solutions for the spins and colours of a source."""
        field = solution.field
        path, elements, sources = self.path(field), elements_of(solution), elements_of(source)
        if not field.devices.root:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GaugeError(
                f"The folder {self.folder} cannot be created ({error.strerror}); choose another "
                "one."
            ) from error
        StoredPropagator(elements, scalar_source(sources), self.metadata).write(path)

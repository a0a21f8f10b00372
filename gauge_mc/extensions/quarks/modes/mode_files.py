"""Eigenvectors that are kept in a folder, so that they are computed once.

A file is a LIME container. Its first record, ``gauge-mc-modes``, is JSON with the metadata that
identify the modes, the digest of the links, and numbers such as eigenvalues. Every vector is a
record ``gauge-mc-vector`` with the numbers [t][z][y][x][spin][colour][re, im] of 64 bits, big
endian, in the basis of DeGrand and Rossi. The last record, ``gauge-mc-digest``, is the SHA-256 sum
of all bytes before it.

Modes are read from the folder if it has them, and otherwise computed and written there. Those that
are read count only if they are orthonormal and their true residuals are those that they
had; otherwise they are computed again, and replaced.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from gauge_mc.arrays import Array
from gauge_mc.errors import DamagedError, UnsupportedError, UsageError
from gauge_mc.extensions.quarks import hopping
from gauge_mc.extensions.quarks.modes import LowModeRequest, LowModes, low_modes, random_vector
from gauge_mc.extensions.quarks.modes.chirality import norm_bound
from gauge_mc.extensions.quarks.operators import DiracOperator
from gauge_mc.extensions.quarks.vectors import SPINS, Complex, SpinorField
from gauge_mc.extensions.quarks.vectors.algebra import Combine
from gauge_mc.extensions.quarks.vectors.basis import BasisProducts
from gauge_mc.fields.field import Field
from gauge_mc.files.atomic import replacing
from gauge_mc.files.input import InputFile, make_folder
from gauge_mc.files.structured import parse_json
from gauge_mc.options import Option, check_declared
from gauge_mc.storage.scidac import LimeRecord, read_records, write_record

MODES, VECTOR, DIGEST = "gauge-mc-modes", "gauge-mc-vector", "gauge-mc-digest"
"""Types of the records."""

VERSION = 1
"""Version of the format."""

STORED_MODES = Option(
    "stored_modes",
    str,
    "Folder of eigenvectors of Dirac operators: those that it has are read, and the others are "
    "written there.",
    metavar="FOLDER",
    folder=True,
)

ORTHONORMAL = 1e-9
"""Largest deviation of scalar products of stored vectors from those of orthonormal ones."""

GROWTH = 2.0
"""Largest ratio of the residual of a stored vector to the one that it had."""

BLOCK = 1 << 22
"""Bytes that are read at once to compute a sum."""

HEADER_BYTES = 144
"""Bytes of the header of a LIME record."""

Numbers = dict[str, list[float]]


@dataclass(frozen=True)
class KeptModes:
    """Modes that were read from a file."""

    numbers: Numbers
    """Numbers by name, such as eigenvalues."""
    vectors: SpinorField | None
    """The vectors; None if there are none."""

    def residuals(self, operator: hopping.LinearOperator, rounding: float) -> Array | None:
        """Return the true residuals of the vectors, or None if they are not what was stored."""
        values, stored = (np.array(self.numbers[name]) for name in ("values", "residuals"))
        if self.vectors is None:
            return stored if not values.size else None
        if self.vectors.count != values.size:
            return None
        norms = _residuals(operator, self.vectors, values.tolist())
        if norms is None or (norms > GROWTH * stored + rounding).any():
            return None
        return np.asarray(np.maximum(norms, stored))


def _residuals(
    operator: hopping.LinearOperator, vectors: SpinorField, values: Sequence[float]
) -> Array | None:
    """Return the norms of A v - value v, or None if the vectors are not orthonormal."""
    v = vectors.like(count=1)
    image = v.like()
    apply = operator.apply(image, v)
    products = BasisProducts(vectors, v, 0, vectors.count)
    residuals = np.zeros(len(values))
    for n, value in enumerate(values):
        v.copy(vectors, n)
        deviation = products() - np.eye(len(values))[n]
        if not np.abs(deviation).max() <= ORTHONORMAL:
            return None
        apply()
        Combine(image, v)(1, -value)
        residuals[n] = hopping.norms_of(image)[0]
    return residuals


@dataclass(frozen=True)
class ModePath:
    """The path of modes that are kept in a folder.

    The name of the file has a digest of the links and of the metadata.
    """

    folder: Path
    """Folder in which modes are kept."""
    metadata: Mapping[str, str]
    """Metadata that identify the modes, apart from the links; ``modes`` says of what they are."""
    parity: int | None = None
    """Parity of the sites on which the vectors are, 0 on all others; None if they are on all."""

    def path(self, field: Field) -> tuple[Path, str]:
        """Return the file for a field of links, and their digest; all processes must call this."""
        links = hashlib.sha256(repr((str(field.lattice), field.group.name)).encode())
        for slice_ in field.slices():
            links.update(np.ascontiguousarray(slice_).data)
        text: str = field.devices.processes.broadcast(links.hexdigest())
        key = repr((text, sorted(self.metadata.items()))).encode()
        name = f"{self.metadata['modes']}_{hashlib.sha256(key).hexdigest()[:16]}.lime"
        return self.folder / name, text

    def read(self, field: Field) -> KeptModes | None:
        """Return the modes that are in the folder, or None if there are none.

        A file that is damaged, or has other modes than its name says, is announced on standard
        error, and counts as none, so that it is replaced.
        """
        path, links = self.path(field)
        if not field.devices.processes.broadcast(path.exists()):
            return None
        try:
            with InputFile(path) as file:
                return self._read(file, field, links)
        except (DamagedError, UnsupportedError) as error:
            self.replace(field, str(error))
            return None

    def replace(self, field: Field, reason: str) -> None:
        """Say on standard error that the modes of a file are computed again, and why."""
        if field.devices.root:
            print(f"gauge-mc: {reason.rstrip('.')}; its modes are computed again.", file=sys.stderr)

    def _expected(self, field: Field, links: str) -> dict[str, Any]:
        """Return what the first record must say, but for the numbers."""
        return {
            "version": VERSION,
            "lattice": str(field.lattice),
            "group": field.group.name,
            "links": links,
            "metadata": dict(self.metadata),
        }

    def _read(self, file: InputFile, field: Field, links: str) -> KeptModes:
        records = read_records(file)
        if [record.type for record in records[:1]] != [MODES] or records[-1].type != DIGEST:
            raise file.refusal("its first or last record is not that of modes")
        end = records[-1].offset - HEADER_BYTES
        digest, at = hashlib.sha256(), 0
        while at < end:
            part = file.read(at, min(BLOCK, end - at))
            digest.update(part.data)
            at += part.size
        last = file.read(records[-1].offset, records[-1].length).tobytes()
        if digest.hexdigest().encode() != last:
            raise file.refusal("its bytes do not have the stated SHA-256 sum", agrees=False)
        try:
            header = parse_json(file.read(records[0].offset, records[0].length).tobytes())
            numbers = {name: [float(x) for x in y] for name, y in header["numbers"].items()}
            stated = {name: header[name] for name in self._expected(field, links)}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise file.refusal(f"its first record cannot be read ({error})") from error
        if stated != self._expected(field, links):
            raise file.refusal("it has the modes of other links or of another operator")
        vectors = [record for record in records if record.type == VECTOR]
        return KeptModes(numbers, self._vectors(file, vectors, field))

    def _vectors(
        self, file: InputFile, records: Sequence[LimeRecord], field: Field
    ) -> SpinorField | None:
        if not records:
            return None
        shape = (*field.lattice.extents[::-1], SPINS, field.group.colours)
        if any(record.length != 16 * math.prod(shape) for record in records):
            raise file.refusal("a vector has the wrong length")
        vectors = SpinorField.empty(field, "double", len(records), self.parity)
        vector = vectors.like(count=1)
        for n, record in enumerate(records):
            data = file.read(record.offset, record.length).view(">c16").reshape(shape)
            vector.restore(data.astype(np.complex128))
            vectors.copy(vector, 0, n)
        return vectors

    def write(self, field: Field, numbers: Numbers, vectors: SpinorField | None) -> None:
        """Write modes, whose file appears complete or not at all; all processes must call this."""
        path, links = self.path(field)
        header = {**self._expected(field, links), "numbers": numbers}
        with ExitStack() as stack:
            out = None
            if field.devices.root:
                make_folder(self.folder)
                out = stack.enter_context(replacing(path))
                write_record(out, MODES, json.dumps(header).encode(), begins=True)
            for values in _arrays(vectors):
                if out:
                    write_record(out, VECTOR, values.astype(">c16").tobytes())
            if out:
                out.seek(0)
                digest = hashlib.file_digest(
                    cast(Any, out), "sha256"
                ).hexdigest()  # goes to the end
                write_record(out, DIGEST, digest.encode(), ends=True)


def _arrays(vectors: SpinorField | None) -> Iterator[Complex]:
    """Yield one vector after the other in every process."""
    if vectors:
        vector = vectors.like("double", count=1)
        for n in range(vectors.count):
            vector.copy(vectors, n)
            yield vector.to_numpy()


ROUNDING = 1e-12
"""Residual that rounding errors may add, as a part of the norm of the operator."""

WRONG = "are not eigenvectors with the residuals that they had"
"""Reason for refusing modes."""


APPLICATIONS = "applications"
"""Name of the number of applications of the search, which tables state, however often the modes
are read: a measurement that was killed then has the same rows. Earlier versions did not keep it."""


def kept_low_modes(
    operator: hopping.LinearOperator,
    field: Field,
    path: ModePath | None,
    search: Callable[[], LowModes],
    norm: float = 1.0,
) -> LowModes:
    """Return low modes of a positive operator."""
    stored = path.read(field) if path else None
    if path and stored:
        residuals = stored.residuals(operator, ROUNDING * norm)
        if residuals is not None and stored.vectors:
            values = np.array(stored.numbers["values"])
            count = int(stored.numbers.get(APPLICATIONS, [stored.vectors.count])[0])
            return LowModes(values, residuals, stored.vectors, count)
        path.replace(field, f"{path.path(field)[0]}: the vectors {WRONG}")
    modes = search()
    if path:
        pairs = {"values": modes.values.tolist(), "residuals": modes.residuals.tolist()}
        path.write(field, pairs | {APPLICATIONS: [modes.applications]}, modes.vectors)
    return modes


DEFLATED = 1e-9
"""Residual of the modes, as a part of the norm of Mh^dagger Mh. Parts of solutions that they miss
are found when the true residual is computed, as it is several times for a usual tolerance."""


def reduced_modes(
    operator: DiracOperator,
    number: int,
    folder: str | os.PathLike[str] | None = None,
    seed: int = 1,
) -> hopping.Deflation:
    """Return the lowest eigenvectors of Mh^dagger Mh, with which `solve` deflates.

    Parameters
    ----------
    operator : DiracOperator
        The operator M, without a fifth direction.
    number : int
        Number of modes.
    folder : path, optional
        Folder in which modes are kept: those of these links and parameters are read, if they are
        eigenvectors with the residuals that they had, and are else written there.
    seed : int
        Seed of the vectors with which searches begin.

    Raises
    ------
    UsageError
        If the number is invalid, the lattice has too few modes, or there is a fifth direction.
    GaugeError
        If the search fails, or the folder cannot be written.
    """
    check_declared((hopping.DEFLATE,), {hopping.DEFLATE.name: number})
    if operator.fifth:
        raise UsageError(
            f"{hopping.DEFLATE.flag} is for operators in four dimensions, and this one has a fifth "
            "direction; leave it out."
        )
    square = hopping.NormalOperator(hopping.AdjointOperator(operator.reduced(True)))
    start = random_vector(SpinorField.empty(operator.field, "double", parity=hopping.EVEN), seed)
    norm = norm_bound(square, start)
    search = partial(low_modes, square, start, LowModeRequest(number, norm, DEFLATED, seed))
    settings = {"number": str(number), "seed": str(seed), "tolerance": repr(DEFLATED)}
    metadata = {"modes": "reduced", **identity(operator), **settings}
    path = ModePath(Path(folder), metadata, hopping.EVEN) if folder else None
    modes = kept_low_modes(square, operator.field, path, search, norm)
    return hopping.Deflation(modes.values, modes.vectors)


def identity(operator: DiracOperator) -> Mapping[str, str]:
    """Return all on which an operator depends besides the links, as text by name."""
    numbers = {"kappa": repr(operator.kappa), "boundary": repr(operator.boundary.phases)}
    terms = {
        type(term).__name__: f"{term.mass!r} {dict(term.coefficients)!r}"
        for term in operator.diagonal_terms
    }
    return {"operator": type(operator).__name__, **numbers, **terms}

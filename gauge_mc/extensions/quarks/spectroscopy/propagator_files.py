"""Quark propagators in files, in the format of USQCD.

A file is a LIME container of QIO (USQCD, QIO programmer's manual, version 2.3). It begins with the
XML ``usqcdPropFile``. Every field is a message: private XML that states its type, the XML
``usqcdSourceInfo`` or ``usqcdPropInfo``, the numbers [t][z][y][x][spin][colour][re, im], big
endian, and a checksum. Written are propagators in double precision and with the gamma matrices of
DeGrand and Rossi unless another basis is chosen, of the type

- ``USQCD_DiracFermion_ScalarSource_TwelveSink`` if the source is a function times 1 in spin and
  colour: it is stored once as a complex field, followed by 4 N solutions;
- ``USQCD_DiracFermion_Source_Sink_Pairs`` otherwise: every source is followed by its solution.

Both are read, and pairs with scalar sources, in single or double precision.
"""

from __future__ import annotations

import hashlib
import html
import re
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.hopping import System
from gauge_mc.extensions.quarks.operators import DiracOperator
from gauge_mc.extensions.quarks.solvers import Solution
from gauge_mc.extensions.quarks.spectroscopy.contractions import columns_of, elements_of
from gauge_mc.extensions.quarks.vectors import SPINS, Complex, SpinorField
from gauge_mc.extensions.quarks.vectors.basis import DEGRAND_ROSSI, change_of_basis
from gauge_mc.fields.field import Field
from gauge_mc.files.atomic import replacing
from gauge_mc.files.input import InputFile, make_folder
from gauge_mc.options import Option
from gauge_mc.results import documented, result_field
from gauge_mc.run.convert import OtherConversion, new_file
from gauge_mc.signatures import checks_types
from gauge_mc.storage import scidac
from gauge_mc.storage.links import checksum_words, lattice_of

TWELVE_SINK = "USQCD_DiracFermion_ScalarSource_TwelveSink"
SCALAR_PAIRS = "USQCD_DiracFermion_ScalarSource_Sink_Pairs"
PAIRS = "USQCD_DiracFermion_Source_Sink_Pairs"

TYPES = (TWELVE_SINK, SCALAR_PAIRS, PAIRS)
"""Types of files that are read."""

BASIS = "gamma basis"
"""Name of the basis of gamma matrices among the metadata of a file."""

STRICTLY = "strictly"
"""Name of what makes every bit of a strict solution among the metadata of a file."""

REALS = {"F": ">f4", "D": ">f8"}
"""NumPy type of a real by the letter of the precision in the private XML."""

SOURCE, SINK = "usqcdSourceInfo", "usqcdPropInfo"
"""XML of a source and of a solution."""


@dataclass(frozen=True)
class StoredPropagator:
    """A propagator as a file has it.

    Attributes
    ----------
    elements : ndarray of complex128, shape (T, Z, Y, X, 4, N, 4, N)
        ``S[t, z, y, x, spin, colour, source spin, source colour]``.
    sources : ndarray of complex128, optional
        The sources in the same form, or (T, Z, Y, X) if they are a function times 1.
    metadata : mapping of str to str
        What the file says about itself, such as ``kappa`` and ``gamma basis``.
    """

    elements: Complex
    sources: Complex | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def basis(self) -> str:
        """Name of the basis of gamma matrices, by default that of DeGrand and Rossi."""
        return self.metadata.get(BASIS, DEGRAND_ROSSI)

    def in_basis(self, name: str) -> StoredPropagator:
        """Return the propagator with another basis of gamma matrices.

        Raises
        ------
        UsageError
            If a basis is unknown.
        """
        q = change_of_basis(self.basis, name)

        def changed(array: Complex) -> Complex:
            product = np.einsum("ij,...jakb,lk->...ialb", q, array, q.conj(), optimize=True)
            return np.asarray(product)

        sources = self.sources
        if sources is not None and sources.ndim > 4:
            sources = changed(sources)
        # A product with matrices has other roundings.
        metadata = {key: text for key, text in self.metadata.items() if key != STRICTLY}
        return StoredPropagator(changed(self.elements), sources, {**metadata, BASIS: name})

    def write(self, path: str | Path) -> None:
        """Write a file, which appears complete or not at all.

        Raises
        ------
        GaugeError
            If the sources are missing, or the file cannot be written.
        """
        if self.sources is None:
            raise GaugeError("The sources of the propagator are missing; give them.")
        with replacing(Path(path)) as out:
            _write(out, self)


@checks_types
def read_propagator(path: str | Path, basis: str | None = DEGRAND_ROSSI) -> StoredPropagator:
    """Read a propagator.

    Parameters
    ----------
    path : path
        The file, in USQCD's format (SciDAC).
    basis : str or None
        Basis of gamma matrices in which it is returned; a file that states none has that of DeGrand
        and Rossi. None leaves it as it is.

    Raises
    ------
    UsageError
        If a basis is unknown.
    GaugeError
        If the file is damaged, or of another kind.
    """
    with InputFile(path) as file:
        stored = _read(file)
    return stored if basis in (None, stored.basis) else stored.in_basis(basis)


def scalar_source(sources: Complex) -> Complex:
    """Return sources as a function of (T, Z, Y, X), if they are one times 1, or as they are."""
    function = np.ascontiguousarray(sources[..., 0, 0, 0, 0])
    columns = SPINS * sources.shape[-1]
    rest = sources.reshape(*function.shape, columns, columns)
    scalar = np.array_equal(rest, function[..., None, None] * np.eye(columns))
    return function if scalar else sources


def site_checksum(data: bytes, site_bytes: int) -> tuple[int, int]:
    """Return the SciDAC checksum of a field; see `gauge_mc.storage.links.Checksums`."""
    view, first, second = memoryview(data), 0, 0
    for number, at in enumerate(range(0, len(data), site_bytes)):
        crc = zlib.crc32(view[at : at + site_bytes])
        first ^= _rotated(crc, number % 29)
        second ^= _rotated(crc, number % 31)
    return first, second


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & 0xFFFFFFFF


def _write(out: BinaryIO, stored: StoredPropagator) -> None:
    elements, sources = stored.elements, stored.sources
    assert sources is not None
    *extents, colours = elements.shape[:4] + elements.shape[-1:]
    scalar = sources.ndim == 4
    metadata = {**stored.metadata, BASIS: stored.basis}
    info = "".join(f"{name} = {' '.join(text.split())}\n" for name, text in metadata.items())
    kind = TWELVE_SINK if scalar else PAIRS
    contents = {"version": "1.0", "type": kind, "info": info}
    lattice = Lattice(*extents[::-1])
    scidac.write_record(
        out, "scidac-private-file-xml", scidac.private_file_xml(lattice), begins=True
    )
    scidac.write_record(
        out, "scidac-file-xml", scidac.document("usqcdPropFile", contents), ends=True
    )
    if scalar:
        _write_field(out, sources, SOURCE, {}, colours)
    for spin, colour in np.ndindex(SPINS, colours):
        indices = {"spin": spin, "color": colour}
        if not scalar:
            _write_field(out, sources[..., spin, colour], SOURCE, indices, colours)
        _write_field(out, elements[..., spin, colour], SINK, indices, colours)


def _write_field(
    out: BinaryIO, values: Complex, root: str, indices: Mapping[str, int], colours: int
) -> None:
    data = np.ascontiguousarray(values).astype(">c16").tobytes()
    size = 16 * int(np.prod(values.shape[4:]))
    of_spinors = values.ndim > 4
    private = {
        "version": "1.1",
        "date": "unknown",
        "recordtype": 0,
        "datatype": f"USQCD_D{colours}_DiracFermion" if of_spinors else "USQCD_D_Complex",
        "precision": "D",
        **({"colors": colours, "spins": SPINS} if of_spinors else {}),
        "typesize": size,
        "datacount": 1,
    }
    user = {"version": "1.0", **indices, "info": "gauge-mc"}
    for kind, name, fields in (
        ("scidac-private-record-xml", "scidacRecord", private),
        ("scidac-record-xml", root, user),
    ):
        scidac.write_record(out, kind, scidac.document(name, fields), begins=name == "scidacRecord")
    scidac.write_record(out, "scidac-binary-data", data)
    words = scidac.checksum_xml(site_checksum(data, size))
    scidac.write_record(out, "scidac-checksum", words, ends=True)


@dataclass(frozen=True)
class _FieldRecords:
    """The LIME records of a field, with their content."""

    file: InputFile
    records: list[scidac.LimeRecord]

    def fields(self) -> tuple[str, dict[str, str], dict[str, str]]:
        """Return the root and the content of the user XML, and the content of the private XML."""
        record = scidac.only(self.file, self.records, "scidac-record-xml")
        head = self.file.read(record.offset, min(record.length, 4096)).tobytes()
        root = SOURCE if SOURCE.encode() in head else SINK
        private = scidac.only(self.file, self.records, "scidac-private-record-xml")
        user = scidac.fields_of(self.file, record, root)
        return root, user, scidac.fields_of(self.file, private, "scidacRecord")

    def values(self, lattice: Lattice, private: Mapping[str, str], colours: int) -> Complex:
        """Return the numbers, as spinors (T, Z, Y, X, 4, N) or as (T, Z, Y, X).

        If the number of colours is 0, it follows from the number of bytes.
        """
        data = scidac.only(self.file, self.records, "scidac-binary-data")
        dtype = REALS.get(private.get("precision", "").upper())
        if dtype is None:
            raise self.file.refusal("its numbers are neither F nor D")
        size = 2 * np.dtype(dtype).itemsize
        shape: tuple[int, ...] = lattice.extents[::-1]
        if data.length != lattice.sites * size:
            shape = (*shape, SPINS, colours or data.length // (lattice.sites * size * SPINS))
        expected = size * int(np.prod(shape))
        if data.length != expected or not expected:
            raise self.file.refusal(
                f"a field has {data.length} bytes, which are not those of spinors on {lattice}"
            )
        content = self.file.read(data.offset, data.length).tobytes()
        stated = scidac.stated_checksum(self.file, self.records)
        checksum = checksum_words(site_checksum(content, data.length // lattice.sites))
        if stated not in ("", checksum):
            raise self.file.refusal(
                f"a field has the SciDAC checksum {checksum}, its header says {stated}",
                agrees=False,
            )
        values = np.frombuffer(content, dtype).astype(np.float64).view(np.complex128)
        if not np.isfinite(values).all():
            words = "it contains a value that is not a number"
            raise self.file.refusal(words, agrees=bool(stated) or None, outside=True)
        return values.reshape(shape)


def _read(file: InputFile) -> StoredPropagator:
    records = scidac.read_records(file)
    lattice = _lattice(file, records)
    head = scidac.fields_of(file, scidac.only(file, records, "scidac-file-xml"), "usqcdPropFile")
    if head.get("type") not in TYPES:
        raise file.refusal(
            f"it is of the type '{head.get('type', '')}', but the known ones are {', '.join(TYPES)}"
        )
    fields: dict[str, dict[tuple[int, int], Complex]] = {SOURCE: {}, SINK: {}}
    function, colours, last = None, 0, (0, 0)
    begins = [n for n, record in enumerate(records) if record.type == "scidac-private-record-xml"]
    for begin, end in pairwise([*begins, len(records)]):
        message = _FieldRecords(file, records[begin:end])
        root, user, private = message.fields()
        values = message.values(lattice, private, colours)
        colours = values.shape[-1] if values.ndim > 4 else colours
        last = _which(file, user, last)
        if values.ndim == 4:
            function = values
        elif last in fields[root]:
            raise file.refusal(f"it has the field of spin {last[0]} and colour {last[1]} twice")
        else:
            fields[root][last] = values
    elements = _assembled(file, fields[SINK], colours, lattice)
    sources = _assembled(file, fields[SOURCE], colours, lattice) if fields[SOURCE] else function
    pairs = (line.partition("=") for line in html.unescape(head.get("info", "")).splitlines())
    metadata = {name.strip(): text.strip() for name, equals, text in pairs if equals}
    return StoredPropagator(elements, sources, metadata)


def _lattice(file: InputFile, records: list[scidac.LimeRecord]) -> Lattice:
    words = scidac.private_extents(file, records)
    if len(words) != 4 or not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
        raise file.refusal("its header does not state four extents")
    return lattice_of(file, *map(int, words))


def _which(file: InputFile, user: Mapping[str, str], last: tuple[int, int]) -> tuple[int, int]:
    """Return source spin and colour of a field, by default those of the field before."""
    words = user.get("spin"), user.get("color")
    if None in words:
        return last
    if not all(re.fullmatch("[0-9]", word or "") for word in words):
        raise file.refusal("the spin and the colour of a field are not numbers")
    return int(words[0] or 0), int(words[1] or 0)


def _assembled(
    file: InputFile, columns: Mapping[tuple[int, int], Complex], colours: int, lattice: Lattice
) -> Complex:
    indices = [*np.ndindex(SPINS, colours)]
    if not indices or set(columns) != set(indices):  # of no colours if there are no spinors
        raise file.refusal(
            f"it has {len(columns)} of the {len(indices)} fields of all spins and colours"
        )
    elements = np.stack([columns[x] for x in indices], axis=-1)
    return elements.reshape(*lattice.extents[::-1], SPINS, colours, SPINS, colours)


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
        """Return the solutions that are in the folder, or None if there are none."""
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
        method = self.metadata.get(STRICTLY)
        if not method:
            return
        expected, sources = scalar_source(elements_of(source)), stored.sources
        alike = sources is not None and np.array_equal(sources, expected)
        if not alike or stored.metadata.get(STRICTLY) != method:
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
        make_folder(self.folder)
        StoredPropagator(elements, scalar_source(sources), self.metadata).write(path)


@documented
@dataclass(frozen=True)
class PropagatorReport:
    """The document of ``convert`` for a propagator."""

    file: str = result_field("File that was written or read.")
    basis: str = result_field("Basis of the gamma matrices.", "")


class PropagatorConversion(OtherConversion):
    """A propagator in USQCD's format, which is written in another basis."""

    name = "propagator"
    options = (
        Option(
            "basis", str, "Basis of gamma matrices of OUT, for a quark propagator.", metavar="NAME"
        ),
        Option(
            "from_basis",
            str,
            "Basis of a propagator whose file states none.",
            default="degrand-rossi",
            metavar="NAME",
        ),
    )
    alone = (
        "--basis is for propagators; give it alone or with --from-basis, and --to and "
        "--precision for configurations."
    )
    results = (f"{__name__}:PropagatorReport",)

    def convert(self, source: Path, target: Path, values: Mapping[str, Any]) -> tuple[str, Any]:
        """Write a propagator; see `OtherConversion.convert`."""
        if not values.get("basis"):
            raise UsageError(self.alone)
        propagator = convert_propagator(source, target, values["basis"], values.get("from_basis"))
        words = f"{target}: a propagator in the basis {propagator.basis}"
        return words, PropagatorReport(str(target), propagator.basis)


PROPAGATORS = PropagatorConversion()


def convert_propagator(
    source: str | Path, target: str | Path, basis: str, formerly: str | None = None
) -> StoredPropagator:
    """Write a quark propagator with another basis of gamma matrices."""
    out = new_file(target)
    propagator = read_propagator(source, None)
    named = propagator.metadata.get(BASIS)
    if formerly and named and named != formerly:
        raise UsageError(f"{source} has the basis {named}, not {formerly}; leave --from-basis out.")
    if formerly:
        propagator = replace(propagator, metadata={**propagator.metadata, BASIS: formerly})
    converted = propagator.in_basis(basis)
    converted.write(out)
    return converted

"""ILDG's metadata of ensembles and configurations: QCDml 2.0.

One document describes the Markov chain, and one each of its files. Elements and their order are
those of the schemas QCDmlEnsemble 2.0.0 and QCDmlConfig 2.0.0 of the ILDG Metadata Working Group
(http://www.lqcd.org/ildg). Every term of the action declares its elements, as `qcdml`. An ensemble
has no document if a term has no element that states all of its options.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from gauge_mc import __version__
from gauge_mc.actions import SIX_LINKS
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.domain.loops import PARALLELOGRAMS, PLAQUETTES, RECTANGLES
from gauge_mc.errors import GaugeError
from gauge_mc.formats import FORMATS
from gauge_mc.groups import GROUPS, special_unitary
from gauge_mc.publication.publisher import UNKNOWN, Publisher
from gauge_mc.publication.record import PublishedConfiguration
from gauge_mc.quarks.vectors.angles import NAMES
from gauge_mc.registry import in_words
from gauge_mc.run.directory import SessionRecord
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.monomials import MONOMIALS
from gauge_mc.updates.quarks import DynamicalQuarks

ENSEMBLE, CONFIGURATION = (
    f"http://www.lqcd.org/ildg/QCDml/{kind}2.0" for kind in ("ensemble", "config")
)
"""Namespaces."""

GLOSSARY = "http://www.lqcd.org/ildg/actionGlossaries"
"""Address of the documents that define actions and algorithms."""

PARTS = (("x", 0), ("y", 1), ("z", 2), ("t", 3))


def reason_for_none(parameters: Parameters) -> str:
    """Return why an ensemble has no documents, in a sentence; or nothing if it has."""
    p = parameters
    if p.keeps_configs and not FORMATS[p.format].qcdml:
        known = in_words(name for name, one in FORMATS.items() if one.qcdml)
        return f"QCDml describes files in the format {known}, and these are in {p.format}."
    group = GROUPS[p.group]
    if group.name != special_unitary(group.colours):
        return f"QCDml has no name for the gauge group {group.label}."
    terms = [*_gluons(p), *map(_quark_term, _quarks(p))]
    reasons = [*(one.reason for one in terms), *map(_reason_of_boundary, _quarks(p))]
    return next(filter(None, reasons), "")


def chain_uri(parameters: Parameters, publisher: Publisher) -> str:
    """Return the URI of the Markov chain, which ILDG assigns when it is submitted."""
    return f"mc://ldg/{_word(publisher.project)}/{_word(parameters.name)}"


def ensemble(parameters: Parameters, publisher: Publisher) -> bytes:
    """Return the document of the Markov chain."""
    p = parameters
    root = ET.Element("markovChain", xmlns=ENSEMBLE)
    _add(root, "markovChainURI", chain_uri(p, publisher))
    management = _add(root, "management")
    _add(management, "collaboration", publisher.project)
    _add(management, "projectName", publisher.title)
    _add(management, "ensembleLabel", p.name)
    _add(management, "archiveHistory")
    terms = _add(root, "license")
    _add(terms, "licenseName", publisher.license)
    _add(terms, "licenseURI", publisher.license_url)
    physics = _add(root, "physics")
    _extents(_add(physics, "size"), p.lattice.extents)
    action = _add(physics, "action")
    gluon = _add(action, "gluon")
    for term in _gluons(p):
        _gluon_action(gluon, term, p)
    if quarks := _quarks(p):
        parent = _add(action, "quark")
        for one in quarks:
            _quark_action(parent, one)
    _algorithm(_add(root, "algorithm"), p)
    return _document(root)


def configuration(
    parameters: Parameters,
    publisher: Publisher,
    row: PublishedConfiguration,
    checksum: str,
    session: SessionRecord,
) -> bytes:
    """Return the document of a configuration.

    Parameters
    ----------
    parameters : Parameters
        Parameters of the run.
    publisher : Publisher
        Who publishes it.
    row : PublishedConfiguration
        The row of the file in the list of configurations.
    checksum : str
        Its checksum; see `posix_checksum`.
    session : SessionRecord
        The session that has made it.
    """
    p, institution = parameters, publisher.institution or UNKNOWN
    root = ET.Element("gaugeConfiguration", xmlns=CONFIGURATION)
    name = f"{_word(publisher.project)}/{_word(p.name)}/{Path(row.file).name}"
    _add(root, "dataLFN", f"lfn://ldg/{name}")
    event = _add(_add(_add(root, "management"), "archiveHistory"), "archiveEvent")
    _add(event, "revisionAction", "generate")
    participant = _add(event, "participant")
    _add(participant, "name", str(publisher.authors[0]))
    _add(participant, "institution", institution)
    _add(event, "date", session.started)
    implementation = _add(root, "implementation")
    machine = _add(implementation, "machine")
    _add(machine, "name", session.host)
    _add(machine, "institution", institution)
    _add(machine, "machineType", session.device)
    code = _add(implementation, "code")
    _add(code, "name", "gauge-mc")
    _add(code, "version", session.version)
    _add(code, "date", session.started)
    numbers = {"seed": p.seed, "rng": p.rng}
    _parameters(_add(root, "algorithm"), numbers)
    _add(root, "precision", p.precision)
    sequence = _add(root, "markovSequence")
    _add(sequence, "markovChainURI", chain_uri(p, publisher))
    _add(sequence, "series", str(p.seed))
    step = _add(sequence, "markovStep")
    _add(step, "update", str(row.update))
    record = _add(step, "record")
    _add(record, "field", f"{p.group}gauge")
    _add(record, "crcCheckSum", checksum)
    _add(record, "avePlaquette", repr(row.plaquette))
    return _document(root)


def posix_checksum(path: Path) -> str:
    """Return the CRC-32 of POSIX's cksum of the links in a file, as ILDG states it.

    Raises
    ------
    GaugeError
        If the program cksum does not exist or fails.
    """
    offset, size = open_configuration(path).span
    try:
        with path.open("rb") as file:
            file.seek(offset)
            with subprocess.Popen(["cksum"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
                assert one.stdin
                assert one.stdout
                for piece in _pieces(file.read, size):
                    one.stdin.write(piece)
                one.stdin.close()
                words = one.stdout.read().split()
    except OSError as error:
        raise GaugeError(f"The program cksum fails ({error.strerror}): install it.") from error
    if len(words) != 2 or int(words[1]) != size:
        raise GaugeError(f"The checksum of {path} cannot be computed by cksum.")
    return words[0].decode()


def _pieces(read: Callable[[int], bytes], size: int) -> Iterable[bytes]:
    while size > 0:
        piece = read(min(size, 2**20))
        if not piece:
            return
        size -= len(piece)
        yield piece


class _Term(NamedTuple):
    """A term of the action, and what its element states."""

    words: str
    """The term in sentences."""
    kind: type
    """The class that declares the elements; `object` if none does."""
    needed: Set[str]
    """Names of the values that the element must state."""
    values: Mapping[str, object]
    """Values of the children of elements."""
    formula: str
    """Formula of the term."""
    representation: str = "fundamental"
    """Representation of its links."""

    @property
    def _elements(self) -> Mapping[str, Mapping[str, str]]:
        """The elements that the class declares itself, since a derived one is something else."""
        found: Mapping[str, Mapping[str, str]] = vars(self.kind).get("qcdml", {})
        return found

    @property
    def reason(self) -> str:
        """The sentence why there is no element; nothing if there is one."""
        if any(self.needed <= {*one.values()} for one in self._elements.values()):
            return ""
        stated = {name for one in self._elements.values() for name in one.values()}
        unstated = (
            f" that states its {in_words(sorted(self.needed - stated or self.needed))}"
            if stated
            else ""
        )
        return f"QCDml has no element for {self.words}{unstated}."

    @property
    def element(self) -> tuple[str, Mapping[str, str]]:
        """The name of the first element that states what it must, and its children."""
        return next(one for one in self._elements.items() if self.needed <= {*one[1].values()})


def _gluons(parameters: Parameters) -> Iterator[_Term]:
    """Yield the terms of the action with links only."""
    p, action = parameters, parameters.action
    of_loops = (PLAQUETTES, RECTANGLES, None, PARALLELOGRAMS)
    loops = {kind: float(value) for kind, value in action.loops.items()}
    coefficients = [loops.get(kind, 0.0) if kind else 0.0 for kind in of_loops]
    form = "c0_is_one" if coefficients[0] == 1 else "cs_sum_to_one"
    six_links = dict(zip(SIX_LINKS, (p.beta, form, *coefficients), strict=True))
    values = {**six_links, "anisoDirection": "T", **action.values}
    needed = {one.name for one in action.changed}
    yield _Term(f"the action {action}", type(action), needed, values, action.formula)
    for one in p.algorithm.values.get("monomials", ()):
        term, own = MONOMIALS[one.monomial], one.own_values
        words = f"the term {one.monomial} of the action"
        yield _Term(words, term, own.keys(), own, _formula(term), term.representation)


def _quarks(parameters: Parameters) -> Sequence[DynamicalQuarks]:
    """Return the dynamical quarks, whose heavier masses belong to the algorithm."""
    found: Sequence[DynamicalQuarks] = parameters.algorithm.values.get("quarks", ())
    return found


def _quark_term(quarks: DynamicalQuarks) -> _Term:
    """Return the term of the action with some quarks."""
    kind, couplings = quarks.dirac_operator, quarks.couplings
    if kind is None:
        words = f"quarks with {in_words(couplings)} together"
        return _Term(words, object, couplings.keys(), couplings, "")
    words = f"quarks with the Dirac operator {kind.name}"
    return _Term(words, kind, couplings.keys(), couplings, _formula(kind))


def _reason_of_boundary(quarks: DynamicalQuarks) -> str:
    """Return why boundary conditions of quarks cannot be described; nothing if they can."""
    angles = quarks.angles
    if all(one == int(one) for one in angles):
        return ""
    numbers = ",".join(f"{one:g}" for one in angles)
    return (
        f"QCDml describes quarks that are {in_words(NAMES, 'or')} in a direction, and these have "
        f"the angles {numbers} in units of pi."
    )


def _formula(kind: type) -> str:
    """Return the formula with which the description of a class begins."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def _gluon_action(parent: ET.Element, term: _Term, parameters: Parameters) -> None:
    p = parameters
    name, children = term.element
    element = _action(parent, name, term.formula)
    field = _add(element, "gluonField")
    _add(field, "gaugeGroup", f"SU({GROUPS[p.group].colours})")
    _add(field, "representation", term.representation)
    _boundary(field, [one.value for one in p.lattice.boundaries])
    _numbers(element, children, term.values)


def _quark_action(parent: ET.Element, quarks: DynamicalQuarks) -> None:
    term = _quark_term(quarks)
    name, children = term.element
    modulus = "; the modulus of the determinant is simulated, without its sign"
    element = _action(parent, name, term.formula.rstrip(".") + modulus * quarks.has_sign)
    field = _add(element, "quarkField")
    _add(field, "normalisation", "sqrt2kappa")
    _boundary(field, ["antiperiodic" if one % 2 else "periodic" for one in quarks.angles])
    _add(element, "numberOfFlavours", str(quarks.flavours))
    _numbers(element, children, term.values)


def _action(parent: ET.Element, name: str, formula: str) -> ET.Element:
    element = _add(parent, name)
    _add(element, "annotation", formula)
    _add(element, "glossary", GLOSSARY)
    return element


def _boundary(field: ET.Element, conditions: Sequence[str]) -> None:
    element = _add(field, "boundaryCondition")
    for name, place in PARTS:
        _add(element, name, conditions[place])


def _numbers(
    element: ET.Element, children: Mapping[str, str], values: Mapping[str, object]
) -> None:
    """Add children for numbers; parameters of Dirac operators that do not occur are 0."""
    for child, name in children.items():
        value = values.get(name, 0.0)
        _add(element, child, value if isinstance(value, str) else repr(value))


def _algorithm(element: ET.Element, parameters: Parameters) -> None:
    """Describe the algorithm; the sign of a determinant and coarse functions need reweighting."""
    p, quarks = parameters, _quarks(parameters)
    exact = all(one.is_exact for one in quarks)
    reweighted = not exact or any(one.has_sign for one in quarks)
    _add(element, "name", p.algorithm.name)
    _add(element, "glossary", GLOSSARY)
    _add(element, "reference", f"gauge-mc {__version__}: {p.algorithm.summary}")
    _add(element, "exact", str(exact).lower())
    _add(element, "reweightingNeeded", str(reweighted).lower())
    _parameters(element, {**p.algorithm.written, "thermalize": p.thermalize})


def _parameters(element: ET.Element, numbers: Mapping[str, object]) -> None:
    listed = _add(element, "parameters")
    for name, value in numbers.items():
        one = _add(listed, "parameter")
        _add(one, "name", name)
        _add(one, "value", str(value))


def _extents(element: ET.Element, extents: Sequence[int]) -> None:
    for name, place in PARTS:
        _add(element, name, str(extents[place]))


def _word(text: str) -> str:
    """Return a text without characters that a URI may not have."""
    return re.sub("[^A-Za-z0-9._-]", "_", text)


def _add(parent: ET.Element, name: str, text: str = "") -> ET.Element:
    child = ET.SubElement(parent, name)
    if text:
        child.text = text
    return child


def _document(root: ET.Element) -> bytes:
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"

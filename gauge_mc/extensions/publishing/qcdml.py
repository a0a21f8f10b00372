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
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from gauge_mc import __version__
from gauge_mc.actions import SIX_LINKS
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.domain.lattice import PARALLELOGRAMS, PLAQUETTES, RECTANGLES
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.publishing.record import UNKNOWN, PublishedConfiguration, Publisher
from gauge_mc.formats import FORMATS
from gauge_mc.groups import GROUPS, special_unitary
from gauge_mc.registry import Registry, in_words
from gauge_mc.run.directory import SessionRecord
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.monomials import MONOMIALS
from gauge_mc.updates.terms import ACTION_TERMS

ENSEMBLE, CONFIGURATION = (
    f"http://www.lqcd.org/ildg/QCDml/{kind}2.0" for kind in ("ensemble", "config")
)
"""Namespaces."""

GLOSSARY = "http://www.lqcd.org/ildg/actionGlossaries"
"""Address of the documents that define actions and algorithms."""

GLUON = "gluon"
"""Element within ``action`` that has those of terms with links only."""

PLACES = (("x", 0), ("y", 1), ("z", 2), ("t", 3))


def reason_for_none(parameters: Parameters) -> str:
    """Return why an ensemble has no documents, in a sentence; or nothing if it has."""
    p = parameters
    if p.keeps_configs and not FORMATS[p.format].qcdml:
        words = in_words(name for name, x in FORMATS.items() if x.qcdml)
        return f"QCDml describes files in the format {words}, and these are in {p.format}."
    group = GROUPS[p.group]
    if group.name != special_unitary(group.colours):
        return f"QCDml has no name for the gauge group {group.label}."
    reasons = [gluon.reason for gluon in _gluons(p)]
    reasons += [
        f"QCDml has no element for {kind.words or name}."
        for name, kind in ACTION_TERMS.items()
        if p.algorithm.values.get(name) and name not in PARTS_OF_ACTION
    ]
    reasons += [kind.reason(x) for kind, x in _others(p)]
    return next(filter(None, reasons), "")


def chain_uri(parameters: Parameters, publisher: Publisher) -> str:
    """Return the URI of the Markov chain, which ILDG assigns when it is submitted."""
    return f"mc://ldg/{_word(publisher.project)}/{_word(parameters.name)}"


def ensemble(parameters: Parameters, publisher: Publisher) -> bytes:
    """Return the document of the Markov chain."""
    p = parameters
    root = ET.Element("markovChain", xmlns=ENSEMBLE)
    add(root, "markovChainURI", chain_uri(p, publisher))
    titles = {"collaboration": publisher.project, "projectName": publisher.title}
    add(root, "management", **titles, ensembleLabel=p.name, archiveHistory="")
    add(root, "license", licenseName=publisher.license, licenseURI=publisher.license_url)
    physics = add(root, "physics")
    add(physics, "size", **{name: str(p.lattice.extents[place]) for name, place in PLACES})
    action = add(physics, "action")
    gluon = add(action, GLUON)
    for term in _gluons(p):
        name, children = term.element
        element = action_element(gluon, name, term.formula)
        group = f"SU({GROUPS[p.group].colours})"
        field = add(element, "gluonField", gaugeGroup=group, representation=term.representation)
        boundary(field, [b.value for b in p.lattice.boundaries])
        numbers(element, children, term.values)
    parents = {GLUON: gluon}
    for kind, part in _others(p):
        if kind.element not in parents:
            parents[kind.element] = add(action, kind.element)
        kind.describe(parents[kind.element], part)
    _algorithm(root, p)
    return _document(root)


def configuration(
    parameters: Parameters,
    publisher: Publisher,
    row: PublishedConfiguration,
    checksum: str,
    session: SessionRecord,
) -> bytes:
    """Return the document of a configuration."""
    p, institution = parameters, publisher.institution or UNKNOWN
    root = ET.Element("gaugeConfiguration", xmlns=CONFIGURATION)
    name = f"{_word(publisher.project)}/{_word(p.name)}/{Path(row.file).name}"
    add(root, "dataLFN", f"lfn://ldg/{name}")
    event = add(add(add(root, "management"), "archiveHistory"), "archiveEvent")
    add(event, "revisionAction", "generate")
    add(event, "participant", name=str(publisher.authors[0]), institution=institution)
    add(event, "date", session.started)
    implementation = add(root, "implementation")
    machine = {"name": session.host, "institution": institution, "machineType": session.device}
    add(implementation, "machine", **machine)
    code = {"name": "gauge-mc", "version": session.version, "date": session.started}
    add(implementation, "code", **code)
    _parameters(add(root, "algorithm"), {"seed": p.seed, "rng": p.rng})
    add(root, "precision", p.precision)
    chain = {"markovChainURI": chain_uri(p, publisher), "series": str(p.seed)}
    step = add(add(root, "markovSequence", **chain), "markovStep", update=str(row.update))
    record = {"field": f"{p.group}gauge", "crcCheckSum": checksum}
    add(step, "record", **record, avePlaquette=repr(row.plaquette))
    return _document(root)


def posix_checksum(path: Path) -> str:
    """Return the CRC-32 of POSIX's cksum of the links in a file, as ILDG states it."""
    offset, size = open_configuration(path).span
    try:
        with path.open("rb") as file:
            file.seek(offset)
            with subprocess.Popen(
                ["cksum"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            ) as process:
                assert process.stdin
                assert process.stdout
                missing = size
                while piece := file.read(min(missing, 2**20)):
                    process.stdin.write(piece)
                    missing -= len(piece)
                process.stdin.close()
                words = process.stdout.read().split()
    except OSError as error:
        raise GaugeError(f"The program cksum fails ({error.strerror}): install it.") from error
    if len(words) != 2 or int(words[1]) != size:
        raise GaugeError(f"The checksum of {path} cannot be computed by cksum.")
    return words[0].decode()


class QcdmlTerm(NamedTuple):
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
        elements: Mapping[str, Mapping[str, str]] = vars(self.kind).get("qcdml", {})
        return elements

    @property
    def reason(self) -> str:
        """The sentence why there is no element; nothing if there is one."""
        if any(self.needed <= {*e.values()} for e in self._elements.values()):
            return ""
        stated = {name for e in self._elements.values() for name in e.values()}
        lacking = sorted(self.needed - stated or self.needed)
        unstated = f" that states its {in_words(lacking)}" if stated else ""
        return f"QCDml has no element for {self.words}{unstated}."

    @property
    def element(self) -> tuple[str, Mapping[str, str]]:
        """The name of the first element that states what it must, and its children."""
        return next(x for x in self._elements.items() if self.needed <= {*x[1].values()})


def _gluons(parameters: Parameters) -> Iterator[QcdmlTerm]:
    """Yield the terms of the action with links only."""
    p, action = parameters, parameters.action
    of_loops = (PLAQUETTES, RECTANGLES, None, PARALLELOGRAMS)
    loops = {kind: float(value) for kind, value in action.loops.items()}
    coefficients = [loops.get(kind, 0.0) if kind else 0.0 for kind in of_loops]
    form = "c0_is_one" if coefficients[0] == 1 else "cs_sum_to_one"
    six_links = dict(zip(SIX_LINKS, (p.beta, form, *coefficients), strict=True))
    values = {**six_links, "anisoDirection": "T", **action.values}
    names = {x.name for x in action.changed}
    yield QcdmlTerm(f"the action {action}", type(action), names, values, action.formula)
    for monomial in p.algorithm.values.get("monomials", ()):
        term, own_values = MONOMIALS[monomial.monomial], monomial.own_values
        words = f"the term {monomial.monomial} of the action"
        yield QcdmlTerm(
            words, term, own_values.keys(), own_values, formula(term), term.representation
        )


class ActionPart(ABC):
    """Terms of the action that an option of the algorithm stands for, such as quarks."""

    name: str
    """Name of the option."""
    element: str
    """Element within ``action`` that has those of the terms."""

    @abstractmethod
    def reason(self, value: Any) -> str:
        """Return the sentence why QCDml cannot describe a value; nothing if it can."""

    @abstractmethod
    def describe(self, parent: ET.Element, value: Any) -> None:
        """Add the elements of a value."""

    def exact(self, value: Any) -> bool:
        """Return whether the algorithm is exact for a value."""
        return True

    def reweighted(self, value: Any) -> bool:
        """Return whether averages need reweighting for a value."""
        return not self.exact(value)


PARTS_OF_ACTION: Registry[ActionPart] = Registry(
    "part of the action in QCDml", __name__, ActionPart
)


def _others(parameters: Parameters) -> Iterator[tuple[ActionPart, Any]]:
    """Yield the terms of the action besides those of links, whose kinds describe them."""
    for name, kind in PARTS_OF_ACTION.items():
        for value in parameters.algorithm.values.get(name, ()):
            yield kind, value


def formula(kind: type) -> str:
    """Return the formula with which the description of a class begins."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def action_element(parent: ET.Element, name: str, formula: str) -> ET.Element:
    """Add the element of a term of the action."""
    return add(parent, name, annotation=formula, glossary=GLOSSARY)


def boundary(field: ET.Element, conditions: Sequence[str]) -> None:
    """Add the boundary conditions of a field along x, y, z and t."""
    add(field, "boundaryCondition", **{name: conditions[place] for name, place in PLACES})


def numbers(element: ET.Element, children: Mapping[str, str], values: Mapping[str, object]) -> None:
    """Add children for numbers; parameters of Dirac operators that do not occur are 0."""
    for child, name in children.items():
        value = values.get(name, 0.0)
        add(element, child, value if isinstance(value, str) else repr(value))


def _algorithm(root: ET.Element, parameters: Parameters) -> None:
    """Describe the algorithm; the sign of a determinant and coarse functions need reweighting."""
    p, parts = parameters, [*_others(parameters)]
    exact = all(kind.exact(x) for kind, x in parts)
    reweighted = any(kind.reweighted(x) for kind, x in parts)
    reference = f"gauge-mc {__version__}: {p.algorithm.summary}"
    words = {"name": p.algorithm.name, "glossary": GLOSSARY, "reference": reference}
    flags = {"exact": str(exact).lower(), "reweightingNeeded": str(reweighted).lower()}
    element = add(root, "algorithm", **words, **flags)
    _parameters(element, {**p.algorithm.written, "thermalize": p.thermalize})


def _parameters(element: ET.Element, numbers: Mapping[str, object]) -> None:
    listed = add(element, "parameters")
    for name, value in numbers.items():
        add(listed, "parameter", name=name, value=str(value))


def _word(text: str) -> str:
    """Return a text without characters that a URI may not have."""
    return re.sub("[^A-Za-z0-9._-]", "_", text)


def add(parent: ET.Element, tag: str, text: str = "", /, **children: str) -> ET.Element:
    """Add an element with a text, or with texts of its children by name, and return it."""
    element = ET.SubElement(parent, tag)
    if text:
        element.text = text
    for name, content in children.items():
        add(element, name, content)
    return element


def _document(root: ET.Element) -> bytes:
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"

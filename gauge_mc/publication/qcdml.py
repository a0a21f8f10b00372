"""ILDG's metadata of ensembles and configurations: QCDml 2.0.

One document describes the Markov chain, and one each of its files. Elements and their order are
those of the schemas QCDmlEnsemble 2.0.0 and QCDmlConfig 2.0.0 of the ILDG Metadata Working Group
(http://www.lqcd.org/ildg). The schemas know no rectangles with any coefficient, and quarks are not
described here, so that such ensembles have no document.
"""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from gauge_mc import __version__
from gauge_mc.actions import ANISOTROPY
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.domain.loops import PARALLELOGRAMS, PLAQUETTES, RECTANGLES
from gauge_mc.errors import GaugeError
from gauge_mc.formats import FORMATS
from gauge_mc.groups import GROUPS
from gauge_mc.publication.publisher import Publisher
from gauge_mc.publication.record import PublishedConfiguration
from gauge_mc.registry import in_words
from gauge_mc.run.directory import SessionRecord
from gauge_mc.run.parameters import Parameters

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
    if getattr(p.algorithm, "values", {}).get("quarks"):
        return "Quarks are not described in QCDml here."
    if getattr(p.algorithm, "values", {}).get("monomials"):
        return "Further terms of the action are not described in QCDml here."
    if not _element(p):
        return f"QCDml has no element for the action {p.action}."
    return ""


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
    _gluon_action(_add(_add(physics, "action"), "gluon"), p)
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
    p = parameters
    root = ET.Element("gaugeConfiguration", xmlns=CONFIGURATION)
    name = f"{_word(publisher.project)}/{_word(p.name)}/{Path(row.file).name}"
    _add(root, "dataLFN", f"lfn://ldg/{name}")
    event = _add(_add(_add(root, "management"), "archiveHistory"), "archiveEvent")
    _add(event, "revisionAction", "generate")
    participant = _add(event, "participant")
    _add(participant, "name", str(publisher.authors[0]))
    _add(participant, "institution", publisher.institution)
    _add(event, "date", session.started)
    implementation = _add(root, "implementation")
    machine = _add(implementation, "machine")
    _add(machine, "name", session.host)
    _add(machine, "institution", publisher.institution)
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


def _element(parameters: Parameters) -> str:
    """Return the element of the action; nothing if QCDml has none.

    An action that is derived from another one does not have its element, and neither has one with
    an option that the element does not state.
    """
    action = parameters.action
    unstated = {one.name for one in action.changed} - {ANISOTROPY.name, *action.qcdml_options}
    if unstated or "qcdml" not in vars(type(action)):
        return ""
    return action.qcdml if action.anisotropy == 1 else action.anisotropic_qcdml


def _gluon_action(parent: ET.Element, parameters: Parameters) -> None:
    p, action = parameters, parameters.action
    element = _add(parent, _element(p))
    _add(element, "annotation", action.formula)
    _add(element, "glossary", GLOSSARY)
    field = _add(element, "gluonField")
    _add(field, "gaugeGroup", f"SU({GROUPS[p.group].colours})")
    _add(field, "representation", "fundamental")
    boundary = _add(field, "boundaryCondition")
    for name, _ in PARTS:
        _add(boundary, name, "periodic")
    if action.anisotropy != 1:
        _add(element, "xi0", repr(action.anisotropy))
        _add(element, "anisoDirection", "T")
    _add(element, "beta", repr(p.beta))
    loops = action.loops
    if {*loops} == {PLAQUETTES}:
        return
    _add(element, "normalisation", "c0_is_one" if loops[PLAQUETTES] == 1 else "cs_sum_to_one")
    of_loops = (PLAQUETTES, RECTANGLES, None, PARALLELOGRAMS)
    for number, kind in enumerate(of_loops):
        _add(element, f"c{number}", repr(float(loops.get(kind, 0.0)) if kind else 0.0))
    if "u0" in action.values:
        _add(element, "u0", repr(float(action.values["u0"])))


def _algorithm(element: ET.Element, parameters: Parameters) -> None:
    p = parameters
    _add(element, "name", p.algorithm.name)
    _add(element, "glossary", GLOSSARY)
    _add(element, "reference", f"gauge-mc {__version__}: {p.algorithm.summary}")
    _add(element, "exact", "true")
    _add(element, "reweightingNeeded", "false")
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

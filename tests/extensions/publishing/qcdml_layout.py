"""The layout of QCDml 2.0 as far as documents use it: children in their order, and values.

These facts are read from the schemas QCDmlEnsemble2.0.0.xsd and QCDmlConfig2.0.0.xsd of the ILDG
Metadata Working Group. The schemas themselves are not here, because they state no licence;
`test_qcdml.py` also validates against them if it is told where they are. They allow for more than
what is written here.
"""

import re
import xml.etree.ElementTree as ET

DOUBLE = r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?"
BOOLEAN = "true|false"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)?"
NAME = r"[A-Za-z_:][-\w.:]*"
WORD = r"[-\w.:]+"
TEXT = "(.|\n)+"
ANY = "(.|\n)*"
URI = r"\S+"
CONDITION = "periodic|antiperiodic|open|openSF|dirichlet|cstar"

SIZES = dict.fromkeys("xyzt", "[1-9][0-9]*")
CONDITIONS = dict.fromkeys("xyzt", CONDITION)

GLUON = "annotation glossary gluonField "
SIX_LINKS = GLUON + "beta normalisation c0 c1 c2 c3"
QUARK = "annotation glossary quarkField numberOfFlavours kappa"

GLUONS = {
    "plaquetteGluonAction": GLUON + "beta",
    "anisotropicWilsonGluonAction": GLUON + "xi0 anisoDirection beta",
    "iwasakiRGGluonAction": SIX_LINKS,
    "DBW2GluonAction": SIX_LINKS,
    "treelevelSymanzikGluonAction": SIX_LINKS,
    "tpLuescherWeiszGluonAction": SIX_LINKS + " u0",
}
QUARKS = {
    "wilsonQuarkAction": QUARK,
    "cloverQuarkAction": QUARK + " cSW",
    "wilsonTmQuarkAction": QUARK + " mu",
    "wilsonCloverTmQuarkAction": QUARK + " mu cSW",
    "wilsonTmMassSplitQuarkAction": QUARK + " muTwist muMassSplit",
}

COMMON = {"parameters": "parameter+", "parameter": "name value"}
NUMBERS = ("beta", "xi0", "c0", "c1", "c2", "c3", "u0", "kappa", "cSW", "mu", "muTwist")
VALUES = {
    "annotation": TEXT,
    "markovChainURI": URI,
    "glossary": URI,
    "parameter/name": NAME,
    "parameter/value": ANY,
}

ENSEMBLE = {
    **COMMON,
    **GLUONS,
    **QUARKS,
    "markovChain": "markovChainURI management license physics algorithm",
    "management": "collaboration projectName ensembleLabel archiveHistory",
    "license": "licenseName licenseURI",
    "physics": "size action",
    "size": "x y z t",
    "action": "gluon quark?",
    "gluon": "|".join(GLUONS) + "+",
    "quark": "|".join(QUARKS) + "+",
    "gluonField": "gaugeGroup representation boundaryCondition",
    "quarkField": "normalisation boundaryCondition",
    "boundaryCondition": "x y z t",
    "algorithm": "name glossary reference exact reweightingNeeded parameters",
}
ENSEMBLE_VALUES = {
    **VALUES,
    **{f"size/{name}": value for name, value in SIZES.items()},
    **{f"boundaryCondition/{name}": value for name, value in CONDITIONS.items()},
    **dict.fromkeys((*NUMBERS, "muMassSplit"), DOUBLE),
    **dict.fromkeys(("collaboration", "projectName", "ensembleLabel", "licenseName"), ANY),
    "archiveHistory": "",
    "licenseURI": URI,
    "gaugeGroup": r"SU\(([2-9]|[1-9][0-9]+)\)",
    "representation": "fundamental|adjoint",
    "anisoDirection": NAME,
    "quarkField/normalisation": ANY,
    "normalisation": "cs_sum_to_one|c0_is_one",
    "numberOfFlavours": "[0-9]+",
    "name": NAME,
    "reference": TEXT,
    "exact": BOOLEAN,
    "reweightingNeeded": BOOLEAN,
}

CONFIGURATION = {
    **COMMON,
    "gaugeConfiguration": "dataLFN management implementation algorithm precision markovSequence",
    "management": "archiveHistory",
    "archiveHistory": "archiveEvent",
    "archiveEvent": "revisionAction participant date",
    "participant": "name institution",
    "implementation": "machine code",
    "machine": "name institution machineType",
    "code": "name version date",
    "algorithm": "parameters",
    "markovSequence": "markovChainURI series markovStep",
    "markovStep": "update record",
    "record": "field crcCheckSum avePlaquette",
}
CONFIGURATION_VALUES = {
    **VALUES,
    **dict.fromkeys(("name", "institution", "machineType", "version", "series", "update"), TEXT),
    "dataLFN": URI,
    "revisionAction": "generate|add|replace|remove",
    "date": TIME,
    "precision": "single|double|mixed",
    "field": "su([2-9]|[1-9][0-9]+)gauge",
    "crcCheckSum": WORD,
    "avePlaquette": DOUBLE,
}

LAYOUTS = {
    "{http://www.lqcd.org/ildg/QCDml/ensemble2.0}markovChain": (ENSEMBLE, ENSEMBLE_VALUES),
    "{http://www.lqcd.org/ildg/QCDml/config2.0}gaugeConfiguration": (
        CONFIGURATION,
        CONFIGURATION_VALUES,
    ),
}


def faults(document):
    """Return what contradicts the layout in a document, in sentences."""
    root = ET.fromstring(document)
    if root.tag not in LAYOUTS:
        return [f"{root.tag} is no document"]
    return [*_faults(root, "", *LAYOUTS[root.tag])]


def _faults(element, parent, children, values):
    name = element.tag.partition("}")[2]
    if name in children:
        found = [one.tag.partition("}")[2] for one in element]
        if not re.fullmatch(_pattern(children[name]), "".join(f"{one} " for one in found)):
            yield f"{name} has {found}, not {children[name]}"
        for one in element:
            yield from _faults(one, name, children, values)
        return
    wanted = values.get(f"{parent}/{name}", values.get(name))
    if wanted is None or len(element) or not re.fullmatch(wanted, element.text or ""):
        yield f"{parent}/{name} is {element.text!r}"


def _pattern(words):
    """Return a regular expression for names of children, each with a blank after it."""
    return "".join(
        f"(?:(?:{word.rstrip('?+')}) ){word[len(word.rstrip('?+')) :]}" for word in words.split()
    )

"""QCDml of ensembles: every term of the action with its options, or a sentence why not."""

import itertools
import os
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.actions.loops import Iwasaki, Wilson
from gauge_mc.extensions.publishing.qcdml import configuration, ensemble, reason_for_none
from gauge_mc.extensions.publishing.record import Author, PublishedConfiguration, Publisher
from gauge_mc.extensions.quarks.domain_walls import TwistedDoublet
from gauge_mc.extensions.quarks.dynamical import flavours as dynamical
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.run.directory import SessionRecord
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.monomials import MONOMIALS
from gauge_mc.updates.terms import named_monomials
from tests.extensions.publishing.qcdml_layout import GLUONS, QUARKS, faults
from tests.updates.every_action import EVERY, coupling_of, examples

PUBLISHER = Publisher((Author("Doe", "Jane"),), "Town & <Gown>", "A title", "project", "CC-BY-4.0")
HMC = {"algorithm": "hmc", "precision": "double", "steps": 20}
SPACE = "{http://www.lqcd.org/ildg/QCDml/ensemble2.0}"
SESSION = SessionRecord.begin(0, "a processor")


def parameters(group="su3", **values):
    return Parameters.from_values({"group": group, **values})


def physics(run):
    """The elements of the terms of the action in a document: their names, and values by child."""
    assert reason_for_none(run) == ""
    document = ensemble(run, PUBLISHER)
    assert faults(document) == []
    found = ET.fromstring(document).iter(f"{SPACE}action")
    return [
        (one.tag.removeprefix(SPACE), {leaf.tag.removeprefix(SPACE): leaf.text for leaf in one})
        for kind in next(found)
        for one in kind
    ]


def with_quarks(text):
    return parameters(**HMC, quarks=text)


OPTIONS = [(action, option) for action in EVERY for option in action.options]


@pytest.mark.parametrize(
    ("action", "option"), OPTIONS, ids=[f"{action.name}-{one.name}" for action, one in OPTIONS]
)
def test_every_option_of_an_action_is_stated_or_there_is_no_document(action, option):
    values = [one for one in examples(option) if one != option.usual]
    assert values
    for value in values:
        chosen = coupling_of(action).action.with_options(**{option.name: value})
        run = Parameters(group="su3", action=chosen)
        if reason := reason_for_none(run):
            assert str(chosen) in reason
        else:
            ((_, stated),) = physics(run)
            assert repr(float(value)) in stated.values()


@pytest.mark.parametrize("action", EVERY, ids=lambda one: one.name)
@pytest.mark.parametrize("group", [*GROUPS])
def test_the_element_of_every_action(action, group):
    run = Parameters(group=group, action=coupling_of(action, group=group).action)
    if "qcdml" not in vars(type(action)):
        assert reason_for_none(run) == f"QCDml has no element for the action {run.action}."
        return
    ((name, stated),) = physics(run)
    assert name in action.qcdml
    assert float(stated["beta"]) == run.beta
    assert f"SU({GROUPS[group].colours})".encode() in ensemble(run, PUBLISHER)
    for child, loops in zip(("c0", "c1", "c3"), run.action.loops.values(), strict=False):
        assert float(stated.get(child, 1.0)) == pytest.approx(loops)


def test_the_anisotropic_element():
    (found,) = physics(parameters(action="wilson:anisotropy=2"))
    assert found[0] == "anisotropicWilsonGluonAction"
    assert found[1]["xi0"] == "2.0"
    assert reason_for_none(parameters(action="iwasaki:anisotropy=2")) == (
        "QCDml has no element for the action iwasaki:anisotropy=2.0 that states its anisotropy."
    )


def test_an_action_is_not_published_under_the_name_of_another_one():
    """One with an option that QCDml does not state, or that is derived from another action."""

    class Weighted(Wilson):
        name = "weighted"
        qcdml = Wilson.qcdml
        options = (*Wilson.options, Option("weight", float, "Weight.", usual=1.0))

    class Derived(Iwasaki):
        name = "derived"

    for kind in (Weighted, Derived):
        ACTIONS.register(kind())
    try:
        chosen = ("weighted", "weighted:weight=2", "derived")
        reasons = [reason_for_none(parameters(action=one)) for one in chosen]
    finally:
        for kind in (Weighted, Derived):
            ACTIONS.remove(kind.name)
    assert reasons == [
        "",
        "QCDml has no element for the action weighted:weight=2.0 that states its weight.",
        "QCDml has no element for the action derived.",
    ]


NUMBERS = {one.name: 0.03 * k for k, one in enumerate(dynamical.parameter_options(), 2)}
"""Values of all parameters of Dirac operators besides kappa."""

OWN = {name: kind.parameters for name, kind in dynamical.hopping_operators().items()}
"""Parameters of Dirac operators, and of those without a name."""
OWN[""] = dynamical.parameter_options()

SUBSETS = [
    (named, tuple(one.name for one in some))
    for named, own in OWN.items()
    for count in range(len(own) + 1)
    for some in itertools.combinations(own, count)
]


@pytest.mark.parametrize(("named", "names"), SUBSETS)
def test_all_parameters_of_quarks_are_stated(named, names):
    """With and without the name of the operator."""
    words = [f"operator={named}"] if named else []
    words += ["kappa=0.15", *(f"{name}={NUMBERS[name]}" for name in names)]
    _, (name, stated) = physics(with_quarks(":".join(words)))
    assert name in QUARKS
    assert (stated["kappa"], stated["numberOfFlavours"]) == ("0.15", "2")
    for one in names:
        assert repr(NUMBERS[one]) in stated.values()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("kappa=0.15", [("wilsonQuarkAction", "2", {"kappa": "0.15"})]),
        ("kappa=0.15:csw=1.5", [("cloverQuarkAction", "2", {"cSW": "1.5"})]),
        ("kappa=0.15:mu=0.1", [("wilsonTmQuarkAction", "2", {"mu": "0.1"})]),
        (
            "kappa=0.15:mu=0.1:csw=1.5",
            [("wilsonCloverTmQuarkAction", "2", {"mu": "0.1", "cSW": "1.5"})],
        ),
        (
            "kappa=0.15:mu_sigma=0.2:mu_delta=0.1",
            [("wilsonTmMassSplitQuarkAction", "2", {"muTwist": "0.2", "muMassSplit": "0.1"})],
        ),
        (
            "kappa=0.15:csw=1.5,kappa=0.14:csw=1.5:flavours=1",
            [("cloverQuarkAction", n, {"kappa": k}) for n, k in (("2", "0.15"), ("1", "0.14"))],
        ),
    ],
)
def test_elements_of_quarks(text, found):
    _, *elements = physics(with_quarks(text))
    for (name, stated), (expected, flavours, numbers) in zip(elements, found, strict=True):
        assert (name, stated["numberOfFlavours"]) == (expected, flavours)
        assert stated.items() >= numbers.items()


def test_heavier_masses_belong_to_the_algorithm():
    run = with_quarks("kappa=0.15:heavier=kappa=0.14/kappa=0.13")
    _, (_, stated) = physics(run)
    assert stated["kappa"] == "0.15"
    values = [one.text for one in ET.fromstring(ensemble(run, PUBLISHER)).iter(f"{SPACE}value")]
    assert "kappa=0.15:heavier=kappa=0.14/kappa=0.13" in values


@pytest.mark.parametrize(
    ("text", "exact", "reweighted"),
    [
        ("kappa=0.15", "true", "false"),
        ("kappa=0.15:accuracy=0.001", "true", "false"),  # two flavours have no rational function
        ("kappa=0.15:flavours=1", "true", "true"),  # the sign
        ("kappa=0.15:flavours=1:accuracy=0.001", "false", "true"),
        ("kappa=0.15:mu_sigma=0.2:mu_delta=0.1", "true", "false"),
        ("kappa=0.15:mu_sigma=0.1:mu_delta=0.2", "true", "true"),
    ],
)
def test_what_is_simulated_exactly(text, exact, reweighted):
    root = ET.fromstring(ensemble(with_quarks(text), PUBLISHER))
    assert root.findtext(f".//{SPACE}exact") == exact
    assert root.findtext(f".//{SPACE}reweightingNeeded") == reweighted
    notes = " ".join(one.text for one in root.iter(f"{SPACE}annotation"))
    assert ("without its sign" in notes) == (reweighted == "true")


def test_quarks_on_domain_walls_have_no_element():
    assert reason_for_none(with_quarks("domain-wall:m=0.1:optimal=0.2,5:c=1")) == (
        "QCDml has no element for quarks with the Dirac operator domain-wall."
    )


@pytest.mark.parametrize(
    ("boundary", "conditions"),
    [
        ("antiperiodic", ["periodic", "periodic", "periodic", "antiperiodic"]),
        ("periodic", ["periodic"] * 4),
        ("1,0,-1,2", ["antiperiodic", "periodic", "antiperiodic", "periodic"]),
        ("0.2,0,0,1", []),
    ],
)
def test_boundary_conditions_of_quarks(boundary, conditions):
    run = with_quarks(f"kappa=0.15:boundary={boundary}")
    if not conditions:
        assert reason_for_none(run) == (
            "QCDml describes quarks that are antiperiodic or periodic in a direction, and these "
            "have the angles 0.2,0,0,1 in units of pi."
        )
        return
    field = ET.fromstring(ensemble(run, PUBLISHER)).find(f".//{SPACE}quarkField")
    assert [one.text for one in field.find(f"{SPACE}boundaryCondition")] == conditions


def test_further_terms_of_the_action():
    run = parameters(**HMC, monomials="adjoint-plaquette:beta=0.5", action="iwasaki")
    (first, _), (second, stated) = physics(run)
    assert (first, second) == ("iwasakiRGGluonAction", "plaquetteGluonAction")
    assert stated["beta"] == "0.5"
    fields = ET.fromstring(ensemble(run, PUBLISHER)).iter(f"{SPACE}representation")
    assert [one.text for one in fields] == ["fundamental", "adjoint"]


@pytest.mark.parametrize("name", [*named_monomials()])
def test_every_option_of_a_term_is_stated_or_there_is_no_document(name):
    kind = named_monomials()[name]
    values = {one.name: examples(one)[-1] for one in kind.options}
    text = ":".join([name, *(f"{key}={value}" for key, value in values.items())])
    run = parameters(**HMC, monomials=text)
    if reason := reason_for_none(run):
        assert name in reason
    else:
        assert {repr(float(one)) for one in values.values()} <= {*physics(run)[-1][1].values()}


def test_every_option_of_the_algorithm_is_a_parameter():
    run = with_quarks("kappa=0.15:accuracy=1e-5:history=0:range=0.1,2:flavours=1")
    root = ET.fromstring(ensemble(run, PUBLISHER))
    listed = {one[0].text: one[1].text or "" for one in root.iter(f"{SPACE}parameter")}
    written = {name: str(value) for name, value in run.algorithm.written.items()}
    assert listed.items() >= written.items()
    assert "range=0.1,2" in listed["quarks"]


OTHERS = [
    {"action": "wilson:anisotropy=2"},
    {**HMC, "monomials": "adjoint-plaquette:beta=0.5"},
    *(
        {**HMC, "quarks": text}
        for text in (
            "kappa=0.15",
            "kappa=0.15:flavours=1",
            "kappa=0.15:csw=1.5,kappa=0.14:csw=1.5:flavours=1",
            "kappa=0.15:mu=0.1:heavier=mu=0.5",
            "kappa=0.15:mu=0.1:csw=1.5",
            "kappa=0.15:mu_sigma=0.2:mu_delta=0.1",
        )
    ),
]


ROW = PublishedConfiguration(5, "configs/0000005.lime", 1, "0", "0", 0.5)


def test_authors_without_an_institution():
    nobody = replace(PUBLISHER, institution="")
    assert faults(configuration(parameters(), nobody, ROW, "1", SESSION)) == []


def documents(group):
    """Documents of ensembles of all kinds, and of configurations of theirs."""
    actions = [coupling_of(one, group=group).action for one in ACTIONS.values()]
    for values in [*({"action": str(one)} for one in actions), *OTHERS]:
        run = parameters(group, **values)
        if not reason_for_none(run):
            yield ensemble(run, PUBLISHER)
            yield configuration(run, PUBLISHER, ROW, "4294967295", SESSION)


@pytest.mark.parametrize("group", ["su2", "su3", "su8"])
def test_documents_have_the_layout_of_the_schemas(group):
    found = [*documents(group)]
    assert len(found) > 20
    assert [fault for one in found for fault in faults(one)] == []


def test_elements_are_in_the_reference(root):
    text = (root / "docs/reference/files.md").read_text()
    kinds = (*map(type, ACTIONS.values()), *dynamical.hopping_operators().values(), TwistedDoublet)
    named = {name for one in (*kinds, *MONOMIALS.values()) for name in one.qcdml}
    assert named == {*GLUONS, *QUARKS}
    assert {name for name in named if f"`{name}`" not in text} == set()


@pytest.mark.skipif("QCDML_SCHEMAS" not in os.environ, reason="QCDML_SCHEMAS names no folder")
def test_documents_are_valid():
    """Against QCDmlEnsemble2.0.0.xsd and QCDmlConfig2.0.0.xsd in the folder QCDML_SCHEMAS."""
    xmlschema = pytest.importorskip("xmlschema")
    folder = Path(os.environ["QCDML_SCHEMAS"])
    kinds = ("Ensemble", "Config")
    schemas = [xmlschema.XMLSchema(folder / f"QCDml{kind}2.0.0.xsd") for kind in kinds]
    for group in GROUPS:
        for number, document in enumerate(documents(group)):
            schemas[number % 2].validate(ET.ElementTree(ET.fromstring(document)))

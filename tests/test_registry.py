"""Registries: plug-ins are found by their names, and names are unique."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest

from gauge_mc import registry
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.registry import Registry, in_words, nearest, ours
from tests.toys.installed import all_registries

REGISTRIES = all_registries()


SUN = sorted(ours().select(group="gauge_mc.groups").names)
"""The groups of this package."""


@dataclass(frozen=True)
class Thing:
    name: str


@pytest.mark.parametrize("things", REGISTRIES, ids=lambda things: things.kind)
def test_every_module_declares_the_plug_in_of_its_name(things):
    assert list(things) == sorted(things) == list(things.names)
    assert len(things) == len(set(things))
    assert things or things._group not in ours().groups
    for name in things:
        assert things[name].name == name
        assert name in things
    with pytest.raises(UsageError, match=f"There is no {things.kind} 'nothing like it'"):
        things["nothing like it"]


@pytest.fixture
def groups(monkeypatch):
    """A second registry of groups, which does not see other installed packages."""
    monkeypatch.setattr(registry, "entry_points", lambda group: ours().select(group=group))
    return Registry("group", "gauge_mc.groups")


def test_a_program_can_register_a_plug_in(groups):
    mine = groups.register(Thing("mine"))
    assert groups.register(mine) is groups["mine"] is mine
    assert list(groups) == ["mine", *SUN]
    for name in ("mine", "su2"):
        with pytest.raises(GaugeError, match=f"There are two groups named '{name}'; rename one"):
            groups.register(Thing(name))
    groups.remove("mine")
    assert "mine" not in groups


def test_other_packages_can_declare_plug_ins(groups, monkeypatch):
    good = EntryPoint("good", "tests.test_registry:GOOD", "gauge_mc.groups")
    bad = EntryPoint("bad", "no_such_package:THING", "gauge_mc.groups")
    own = ours().select(group="gauge_mc.groups")
    monkeypatch.setattr(registry, "entry_points", lambda group: (good, bad, *own))
    assert list(groups) == ["bad", "good", *SUN]
    assert groups["good"] is GOOD
    with pytest.raises(GaugeError, match=r"group 'bad' of the package .* cannot be imported"):
        groups["bad"]


GOOD = Thing("good")


def test_unknown_names_are_refused_with_advice(groups):
    for name, advice in (
        ("zu8", "; did you mean 'su8'?"),
        ("e8", f"; choose {in_words(SUN, 'or')}."),
    ):
        with pytest.raises(UsageError) as caught:
            groups.check(name)
        assert str(caught.value) == f"There is no group '{name}'{advice}"
    with pytest.raises(UsageError, match=r"^group: There is no group 'e8'"):
        groups.check("e8", "group")
    groups.check("su2")
    assert nearest("a", []) == "."
    flags = ("--optimal", "--ls")
    assert nearest("--kappa", flags) == "; choose --optimal or --ls."
    assert nearest("--optmal", flags) == "; did you mean '--optimal'?"

"""Mistakes in declarations end in one sentence that names the module, or both owners."""

import os
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import pytest

from gauge_mc import registry
from gauge_mc.benchmarks import BENCH_KINDS
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import Column
from gauge_mc.fits import Fit
from gauge_mc.observables import Observable, check_observable
from gauge_mc.options import Option, merged
from gauge_mc.registry import Registry
from gauge_mc.run.generate import generate
from gauge_mc.scans.additions import ADDITIONS
from gauge_mc.stored.measure import measure
from gauge_mc.updates.terms import ACTION_TERMS
from tests.calls import make_run
from tests.children import run

HERE = __name__


@pytest.fixture
def observables(monkeypatch):
    """A registry of observables that is not that of the program."""
    monkeypatch.setattr(registry, "entry_points", lambda group: ())
    return Registry("observable", "gauge_mc.observables", Observable, check_observable)


class Good(Observable):
    """An observable whose declaration is complete."""

    name: ClassVar[str] = "good"
    summary: ClassVar[str] = "one"
    columns: ClassVar[tuple[str, ...]] = ("value",)
    normalisation: ClassVar[str] = "none"

    def measure(self, field):
        """Return 1."""
        return (1.0,)


def several(self):
    """Return the number of records per field of an array."""
    return 2


MISTAKES = {
    "has no summary; declare summary": {"summary": None},
    "has the name ''; declare a text": {"name": ""},
    "has no normalisation": {"normalisation": None},
    "has the columns": {"columns": ("value", 2)},
    "has a column 'sweep'": {"columns": ("value", "sweep")},
    "has a column 'value'": {"columns": ("value", "value")},
    "no column with an index": {"columns": ("i", "value"), "records": property(several)},
}


def test_a_complete_declaration_is_accepted(observables):
    assert observables.register(Good) is observables["good"] is Good
    columns = (Column("site", int, index=True), "value")
    indexed = type("Indexed", (Good,), {"columns": columns, "records": property(several)})
    indexed.name = "indexed"
    assert observables.register(indexed)


@pytest.mark.parametrize("said", MISTAKES)
def test_incomplete_declarations_are_refused(observables, said):
    bad = type("Bad", (Good,), {"__module__": HERE, **MISTAKES[said]})
    with pytest.raises(GaugeError, match=rf"The observable Bad in the module {HERE} .*{said}"):
        observables.register(bad)


def test_an_abstract_method_and_another_class_are_refused(monkeypatch):
    monkeypatch.setattr(registry, "entry_points", lambda group: ())
    fits = Registry("fit", "gauge_mc.fits", Fit)

    class Lazy(Fit):
        name, summary, columns = "lazy", "nothing", ("value",)

    with pytest.raises(GaugeError, match=f"The fit Lazy in the module {HERE} lacks carry_out"):
        fits.register(Lazy)
    with pytest.raises(GaugeError, match=f"The fit Good in the module {HERE} is not a Fit"):
        fits.register(Good)


def test_a_module_that_registers_nothing_is_named(tmp_path, monkeypatch):
    """The decorator is missing, or the name is another one."""
    package = tmp_path / "halves"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "one.py").write_text("class One:\n    name = 'one'\n")
    (package / "two.py").write_text("from gauge_mc.devices.kernels import Kernel\nKernel('hopp')\n")
    monkeypatch.syspath_prepend(tmp_path)
    entries = [EntryPoint(name, f"halves.{name}", "halves") for name in ("one", "two")]
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)
    halves = Registry("half", "halves")
    with pytest.raises(GaugeError, match=r"The module halves.one registers no half named 'one'"):
        halves["one"]
    said = r"half 'two' of the package halves.two cannot be imported \(There is no kernel 'hopp'"
    with pytest.raises(GaugeError, match=said):
        halves["two"]
    monkeypatch.setattr(registry, "is_ours", lambda entry: True)
    with pytest.raises(GaugeError, match=r"^In the module halves.two: There is no kernel 'hopp'"):
        halves["two"]


def test_a_misspelt_kernel_is_refused_when_it_is_named(tmp_path):
    with pytest.raises(GaugeError, match=r"no kernel 'plaquete', .*; did you mean 'plaquette'\?"):
        Kernel("plaquete")


@dataclass(frozen=True)
class Wrong(Good):
    """An observable whose records are not what it declares."""

    length: int = 1
    count: int = 1
    name: ClassVar[str] = "wrong"

    @property
    def records(self):
        """Number of records."""
        return 1

    def measurer(self, like):
        """Return a function that returns wrong records."""
        return lambda field: [(1.0,) * self.length] * self.count


@pytest.mark.parametrize(("length", "count"), [(2, 1), (0, 1), (1, 2), (1, 0)])
def test_records_that_are_not_as_declared_are_refused(tmp_path, length, count):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", "single", CpuDevice(1))
    said = f"The observable wrong in the module {HERE} returned {count} records"
    with pytest.raises(GaugeError, match=said):
        measure(field, Wrong(length, count))
    tiny = {"lattice": "4", "thermalize": 0, "configs": 1, "backend": "cpu", "threads": 1}
    with pytest.raises(GaugeError, match=said):
        generate(tiny, output=tmp_path / "a", observables=[Wrong(length, count)], progress=False)
    assert [*tmp_path.iterdir()] == []


SEVERAL = """
from gauge_mc.actions.loops import Wilson
from gauge_mc.option_items import Items
from gauge_mc.options import Option
from gauge_mc.smearing.kinds import Ape
from gauge_mc.updates.terms import ActionTerms, NamedMonomial


def action(name, *options):
    return type(name, (Wilson,), {"name": name, "options": options})()


def terms(name):
    option = Option(name, str, "Further terms.", usual=Items(), items=NamedMonomial)
    values = {"name": name, "option": option, "items": NamedMonomial, "terms": lambda *_: []}
    return type(name, (ActionTerms,), values)()


WEIGHT, LENGTH, OVERRELAX, LATTICE, FINE = map(
    terms, ("weight", "length", "overrelax", "lattice", "fine")
)
FOO = Option("foo", float, "A number.", usual=1.0)
FIRST, SHARING = action("first", FOO), action("sharing", FOO)
SECOND = action("second", Option("foo", float, "Another number.", usual=1.0))
BETAS = action("betas", Option("beta", float, "Another coupling.", usual=1.0))
THREADED = action("threaded", Option("threads", int, "Of something else.", usual=1))
APELIKE = action("apelike", *Ape.options)
REFINED = action("refined", Option("refine", bool, "Something else."))
"""

REASONS = {
    "second": "foo has another meaning than that of the action first of the package several",
    "betas": "beta has another meaning than that of the observable polyakov-correlators of the "
    "package gauge-mc",
    "threaded": "threads has the name of an option of the program itself",
    "apelike": "weight is also one of the smearing ape of the package gauge-mc",
    "refined": "refine has another meaning than that of the addition to scans refine of the "
    "package gauge-mc",
}
TERMS = {
    "weight": "weight has another meaning than that of the smearing ape of the package gauge-mc",
    "length": "length has another meaning than that of the algorithm hmc of the package gauge-mc",
    "overrelax": "overrelax has another meaning than that of the algorithm heatbath of the package "
    "gauge-mc",
    "lattice": "lattice has the name of an option of the program itself",
}


CASES = [
    *(("actions", "action", name, ("sharing", "first"), REASONS[name]) for name in REASONS),
    *(("updates.terms", "kind of terms", name, ("fine",), TERMS[name]) for name in TERMS),
]


@pytest.mark.parametrize(("group", "kind", "name", "good", "reason"), CASES)
def test_installed_things_that_clash_are_left_out(tmp_path, group, kind, name, good, reason):
    """The first of two stays, an option may be shared, and help texts are there."""
    path = install(tmp_path, group, name, *good)
    said = (
        f"gauge-mc: The {kind} '{name}' of the package several is left out, because its option "
        f"--{reason}; rename it there.\n"
    )
    for words in [("scan",)] if name == "refined" else [("generate",), ("measure", "wilson-loops")]:
        done = run(*words, "--help", PYTHONPATH=path)
        assert (done.returncode, done.stderr) == (0, said)
        if group == "actions":
            assert "--foo" in done.stdout
            assert name not in done.stdout
        else:
            assert done.stdout.count("Further terms.") == (words == ("generate",))


def install(folder, kinds, *names):
    """Install the package `several` with things of a kind; return the path of modules."""
    (folder / "several.py").write_text(SEVERAL)
    about = folder / "several-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: several\nVersion: 1.0\n")
    entries = "".join(f"{name} = several:{name.upper()}\n" for name in names)
    (about / "entry_points.txt").write_text(f"[gauge_mc.{kinds}]\n{entries}")
    return os.pathsep.join([str(folder), *sys.path])


@pytest.mark.parametrize("kinds", [ACTION_TERMS, ADDITIONS, BENCH_KINDS], ids=lambda it: it.kind)
def test_a_thing_that_an_option_chooses_has_its_name(kinds):
    option = Option("charge", bool, "Charges.")
    values = {"name": "charges", "option": option, "options": (option,), "items": object}
    values |= {"results": ("a:A",), **dict.fromkeys(kinds._base.__abstractmethods__, several)}
    thing = type("Charges", (kinds._base,), {"__module__": HERE, **values})
    said = f"The {kinds.kind} Charges in the module {HERE} has the option charge; give both the "
    with pytest.raises(GaugeError, match=said):
        kinds.register(thing())


def test_one_option_may_be_shared_but_not_redefined():
    one, same = Option("size", int, "Size."), Option("size", int, "Size.")
    assert merged([("a", [one]), ("b", [same])]) == (one,)
    for other in (Option("size", int, "Weight."), Option("size", float, "Size.")):
        with pytest.raises(GaugeError, match="Both a and b declare an option --size"):
            merged([("a", [one]), ("b", [other])])


@pytest.mark.kernels
def test_commands_work_without_an_action_that_is_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_run(Path("run"), group="su2", precision="single", configs=2)
    path = install(tmp_path, "actions", "apelike", "first")
    words = ("wilson-loops", "run", "--weight", "0.3", "--output", "loops.csv", "--quiet")
    done = run("measure", *words, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert "smearing: APE, U -> P[U + w sum of staples], w = 0.3" in Path("loops.csv").read_text()
    done = run("generate", "--action", "apelike", "--output", "other", PYTHONPATH=path)
    assert done.returncode == 2
    known = "dbw2, first, iwasaki, luscher-weisz, rectangle, symanzik or wilson"
    assert f"There is no action 'apelike'; choose {known}." in done.stderr

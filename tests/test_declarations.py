"""Mistakes in declarations end in one sentence that names the module, or both owners."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from gauge_mc import registry
from gauge_mc.cli.command import OptionGroup, Subcommands, command_of
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import Column
from gauge_mc.fits import Fit
from gauge_mc.observables import Observable, check_observable
from gauge_mc.options import Option, merged
from gauge_mc.quarks.operators import OPERATORS, DiracOperator, operator_with
from gauge_mc.quarks.operators.wilson import PlainWilson as Wilson
from gauge_mc.registry import Registry
from gauge_mc.run.generate import generate
from gauge_mc.run.measure import measure
from gauge_mc.smearing import SMEARINGS
from gauge_mc.smearing.ape import Ape
from tests.calls import call

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
    halves = Registry("half", "halves")
    with pytest.raises(GaugeError, match=r"The module halves.one registers no half named 'one'"):
        halves["one"]
    with pytest.raises(GaugeError, match=r"In the module halves.two: There is no kernel 'hopp'"):
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


class Two(Wilson):
    """An operator with two parameters without defaults."""

    name = "two"
    parameters: ClassVar[tuple[Option, ...]] = (
        Option("one", float, "One.", "0"),
        Option("other", float, "Other.", "0"),
    )

    def __init__(self, field, kappa, one, other, boundary=-1):
        super().__init__(field, kappa, boundary)
        self.values = one, other


@pytest.fixture
def two():
    """Register an operator for a while."""
    OPERATORS.register(Two)
    yield Two
    OPERATORS.remove("two")


def test_parameters_of_operators_that_are_not_given_are_zero(two):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", "double", CpuDevice(1))
    made = operator_with(field, 0.1, other=2.0)
    assert isinstance(made, Two)
    assert made.values == (0.0, 2.0)


def test_an_operator_must_take_the_parameters_that_it_declares():
    class Deaf(DiracOperator):
        name = "deaf"
        parameters: ClassVar[tuple[Option, ...]] = (Option("volume", float, "Volume.", "0"),)
        diagonal = Wilson.diagonal

        def terms(self, prepared, slab):
            return None

    with pytest.raises(GaugeError, match=rf"Deaf in the module {HERE} declares .* volume, but"):
        OPERATORS.register(Deaf)


def test_options_of_one_name_are_refused_and_both_owners_are_named(monkeypatch):
    """`alpha` of an operator changed what `--alpha` of APE smearing meant."""
    alpha = Option("alpha", float, "Something else.", "0")

    class Loud(Two):
        name = "loud"
        parameters = (alpha,)

        def __init__(self, field, kappa, alpha, boundary=-1):
            DiracOperator.__init__(self, field, kappa, boundary)

    OPERATORS.register(Loud)
    try:
        said, code = call(
            *[
                "generate",
                "--lattice",
                "4",
                "--measure",
                "mesons:1:kappa=0.12:alpha=1",
                "--output",
                "nowhere",
            ]
        )
    finally:
        OPERATORS.remove("loud")
    assert "Both the Dirac operator loud and the smearing ape declare an option --alpha" in said
    assert code == 1


def test_one_option_may_be_shared_but_not_redefined():
    one, same = Option("size", int, "Size."), Option("size", int, "Size.")
    assert merged([("a", [one]), ("b", [same])]) == (one,)
    for other in (Option("size", int, "Weight."), Option("size", float, "Size.")):
        with pytest.raises(GaugeError, match="Both a and b declare an option --size"):
            merged([("a", [one]), ("b", [other])])


def test_an_option_with_the_name_of_an_option_of_the_command_is_refused():
    output, same = Option("output", str, "Output."), Option("a", str, "A.")
    owners = {
        "wrong": [OptionGroup("it", [output], "Options")],
        "twice": [
            OptionGroup("it", [same], "Options"),
            OptionGroup("that", [Option("a", int)], "Options"),
        ],
        "other": [OptionGroup("other", [Option("a", int, "Another A.")], "Options")],
        "right": [OptionGroup("it", [same], "Options"), OptionGroup("that", [same], "Options")],
    }

    @Subcommands("Things", lambda: owners, str, owners.__getitem__, lambda name: None)
    def show(what: str, output: str = "", **options):
        """Show."""
        shown.append((what, output, options))

    shown, command = [], command_of(show)
    with pytest.raises(GaugeError, match=r"--output of it has the name of an option of .* show"):
        command.subcommand("wrong")
    with pytest.raises(GaugeError, match="Both it and that declare an option --a, with different"):
        command.subcommand("twice")
    for words in (["other", "--a", "1"], ["--a=text", "right"]):
        with command.make_context("show", words) as context:
            context.command.invoke(context)
    assert shown == [("other", "", {"a": 1}), ("right", "", {"a": "text"})]


def test_the_smearings_of_this_package_share_their_options():
    assert Ape.options
    assert {option.name for option in merged((n, s.options) for n, s in SMEARINGS.items())}

"""Options of observables that are measured along the way."""

import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import INTERRUPTED, UsageError
from gauge_mc.files.table import read_table
from gauge_mc.run.measurement import Measurement, observable_along
from gauge_mc.run.parameters import Parameters
from tests.calls import call

LATTICE = Lattice(4, 4, 4, 8)
PARAMETERS = Parameters.from_values({"lattice": "4x4x4x8"})
WORDS = ["--lattice", "4x4x4x8", "--thermalize", "2", "--separation", "2", "--backend", "cpu"]
TEXT = "flow:2:to=0.2:slices,plaquette,wilson-loops:4:iterations=0,2:r-max=2"


def test_text_is_read_and_written():
    found = Parameters.from_values({"measure": TEXT}).measure
    assert found == (
        Measurement("flow", 2, ("to=0.2", "slices")),
        Measurement("plaquette"),
        Measurement("wilson-loops", 4, ("iterations=0,2", "r-max=2")),
    )
    assert ",".join(map(str, found)) == TEXT
    assert Parameters.from_values({"measure": TEXT.split(",p")[0].split(",")}).measure == found[:1]


def test_observables_have_the_options():
    flow = observable_along(Measurement.parse("flow:2:to=0.2:slices:flow=zeuthen"), PARAMETERS)
    assert (flow.to, flow.slices, flow.kind) == (0.2, True, "zeuthen")
    loops = observable_along(Measurement.parse("wilson-loops:4:smear=none:t-max=3"), PARAMETERS)
    assert (loops.smearing, loops.t_max) == (None, 3)
    weight = observable_along(Measurement.parse("wilson-loops:4:weight=0.5"), PARAMETERS)
    assert weight.smearing.weight == 0.5
    text = "wilson-loops:4:smear=ape:0.2x25:smear=hyp:0.75,0.6,0.3,exclude=nonex1:temporal=hyp2"
    (item,) = Parameters.from_values({"measure": text}).measure
    assert str(item) == text
    chain = observable_along(item, PARAMETERS)
    assert [(one.name, times) for one, times in chain.smearing.steps] == [("ape", 25), ("hyp", 1)]
    assert chain.smearing.smears_time
    assert (chain.levels, chain.temporal.name) == ((26,), "hyp2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flow:2:too=1", r"--too is not an option of flow; did you mean '--to'\?"),
        ("flow:2:to=x", "--to is 'x', but needs a number; write to=VALUE"),
        ("flow:2:to", "--to needs a value; write to=VALUE"),
        ("flow:2:slices=1", "--slices needs no value; write slices"),
        ("flow:2:to=1:to=2", "has the option to twice"),
        ("flow:2:until=0.3", "depends on a stored configuration"),
        ("plaquette:2:to=1", "--to is not an option of plaquette"),
        (f"flow:2:to={'1' * 1000}", "--to has 1000 characters; give at most 100"),
    ],
)
def test_wrong_options_are_refused(text, message):
    with pytest.raises(UsageError, match=message):
        observable_along(Measurement.parse(text), PARAMETERS)


@pytest.mark.slow
def test_a_run_measures_with_them_continues_and_is_verified(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for configs in (1, 2):
        more = ["--configs", str(configs), "--measure", TEXT, "--output", "run"]
        shown, code = call("generate", *WORDS, *more)
        assert code == 0, shown
        table = read_table(tmp_path / "run" / "flow.csv")
        assert len(table) == configs * 3 * (1 + LATTICE.t)
        assert table.header["to"] == "0.2"
    assert call("verify", "run")[1] == 0
    shown, code = call("generate", "--output", "run", "--measure", "flow:2:to=0.3")
    assert code != INTERRUPTED
    assert (code, "measure" in shown) == (2, True), shown


def test_measurements_can_be_added_to_the_default_ones():
    usual = Parameters.from_values({}).measure
    added = Parameters.from_values({"measure": "+wilson-loops:5,plaquette:2"})
    assert [str(one) for one in added.measure] == ["plaquette:2", "polyakov", "wilson-loops:5"]
    assert Parameters.from_values(added.values()).measure == added.measure
    assert Parameters.from_values({"measure": "+none"}).measure == usual
    with pytest.raises(UsageError, match="no observable 'energy'"):
        Parameters.from_values({"measure": "+energy"})


def test_options_of_another_algorithm_or_action_name_it():
    for values, sentence in (
        ({"steps": 3}, "of the algorithm heatbath, but of hmc; add --algorithm hmc"),
        ({"c1": -0.1}, "--c1 is not an option of the action wilson, but of rectangle; add"),
    ):
        with pytest.raises(UsageError, match=sentence):
            Parameters.from_values(values)

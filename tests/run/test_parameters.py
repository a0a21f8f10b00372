"""Parameters and measurements: defaults, cards, names, options, and when a run is another one."""

import dataclasses
import os

import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.actions.loops import Wilson
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import INTERRUPTED, UsageError
from gauge_mc.files.table import read_table
from gauge_mc.groups import GROUPS
from gauge_mc.registry import in_words
from gauge_mc.run.cards import MAX_CARD, read_card
from gauge_mc.run.measurement import Measurement, observable_along
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import Execution, parse_duration
from tests.calls import call


def card(tmp_path, text):
    path = tmp_path / "card.toml"
    path.write_text(text)
    return read_card(path)


@pytest.fixture
def another_action():
    class Another(Wilson):
        name = "another"

    yield ACTIONS.register(Another()).name
    ACTIONS.remove(Another.name)


def test_card_round_trip(tmp_path, another_action):
    values = {
        "action": another_action,
        "anisotropy": 2.5,
        "lattice": "4x6x8x10",
        "group": "su3",
        "beta": 5.7,
        "precision": "double",
        "start": "/data/x.lime",
        "seed": 2**63 - 1,
        "rng": "ranlux",
        "luxury": 4,
        "heatbath": 2,
        "overrelax": 0,
        "thermalize": 0,
        "configs": 3,
        "separation": 7,
        "measure": "polyakov:10,plaquette",
        "format": "nersc",
        "chain_version": 2,
        "strict": True,
        "tempering": True,
        "exchange_every": 4,
    }
    parameters = Parameters.from_values(values)
    assert parameters.lattice == Lattice(4, 6, 8, 10)
    assert parameters.measure == (Measurement("plaquette"), Measurement("polyakov", 10))
    assert all(
        getattr(parameters, item.name) != getattr(Parameters(), item.name)
        for item in dataclasses.fields(Parameters)
    )
    assert Parameters.from_values(card(tmp_path, parameters.to_toml())) == parameters


def test_defaults_depend_on_the_group():
    assert Parameters.from_values({}).beta == 2.5
    assert Parameters.from_values({"group": "su3"}).beta == 6.0
    assert Parameters.from_values({"group": "su3", "beta": 5}).beta == 5.0


def test_what_goes_on_keeps_its_parameters_and_may_have_other_configs():
    there = Parameters.from_values({"group": "su3", "seed": 7, "configs": 50})
    done = there.thermalize + 20 * there.separation + 1
    assert there.continued({}, "It", done) == there
    for configs in (60, 20):
        other = there.continued({"configs": configs, "beta": 6.0}, "It", done)
        assert other == dataclasses.replace(there, configs=configs)
    with pytest.raises(UsageError, match=r"^It has made 20 configurations; .* but not to 19\.$"):
        there.continued({"configs": 19}, "It", done)
    with pytest.raises(UsageError, match="--configs is -1; give a whole number from 0"):
        there.continued({"configs": -1}, "It", 0)


def test_what_differs_is_named_but_not_configs():
    there = Parameters(beta=2.5, measure=(Measurement("plaquette"),))
    differences = "beta = 2.5, not 2.6; seed = 1, not 2; measure = plaquette, not none"
    with pytest.raises(UsageError, match=f"^It has {differences}; choose another --output"):
        there.continued({"beta": 2.6, "seed": 2, "configs": 99, "measure": "none"}, "It", 0)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"beta": 2.5, "lattice": "24x24x24x32"}, "su2_b2.5_24x24x24x32"),
        ({"group": "su3", "configs": 1, "thermalize": 5, "measure": "none"}, "su3_b6_16x16x16x16"),
        (
            {"lattice": "4", "precision": "double", "start": "hot", "seed": 3, "rng": "lcg"},
            "su2_b2.5_4x4x4x4_double_hot_seed3_lcg",
        ),
        ({"rng": "ranlux", "luxury": 4}, "su2_b2.5_16x16x16x16_ranlux_luxury4"),
        (
            {"start": "/a/b/0000100.lime", "heatbath": 2, "overrelax": 0, "beta": 2.2986},
            "su2_b2.2986_16x16x16x16_from-0000100_hb2_or0",
        ),
    ],
)
def test_name_tells_the_chain(values, name):
    assert Parameters.from_values(values).name == name


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lattice": "5x4x4x4"}, "even"),
        ({"lattice": 4}, "lattice must be a string"),
        ({"group": "zu8"}, "no group 'zu8'; did you mean 'su8'"),
        ({"group": "e8"}, f"no group 'e8'; choose {in_words(GROUPS, 'or')}"),
        ({"action": "iwasaki", "lattice": "4x4x4x2"}, "do not fit on the lattice 4x4x4x2"),
        ({"action": "wilsen"}, "no action 'wilsen'; did you mean 'wilson'"),
        ({"action": "rectangle"}, "rectangle needs --c1"),
        ({"action": "luscher-weisz"}, "luscher-weisz needs --u0"),
        ({"action": "luscher-weisz:0.9"}, "choose this group, or --u0 1 at tree level"),
        ({"beta": 0}, "--beta is 0; give a number from 1e-06 to 1000000"),
        ({"beta": float("nan")}, "--beta is nan; give a number"),
        ({"beta": "2.5"}, "beta must be a number, not '2.5'"),
        ({"precision": "half"}, "single or double"),
        ({"rng": "mt19937"}, "philox"),
        ({"rng": "ranlux", "luxury": 5}, "luxury must lie between 0 and 4, not 5"),
        ({"rng": "lcg", "luxury": 4}, "luxury does not apply to lcg"),
        ({"format": "milc"}, "in single precision: choose ildg, hdf5, nersc or scidac"),
        ({"format": "openqcd", "group": "su3"}, "double precision"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"configs": True}, "configs must be a whole number"),
        ({"start": ""}, "start"),
        ({"heatbath": 0}, "--heatbath is 0; give a whole number from 1 to 1000000"),
        ({"overrelax": -1}, "overrelax"),
        ({"thermalize": -1}, "thermalize"),
        ({"configs": -1}, "configs"),
        ({"separation": 0}, "separation"),
        ({"measure": "plaquete"}, "no observable 'plaquete'; did you mean 'plaquette'"),
        ({"measure": "plaquette:0"}, "after each 0 updates; choose an interval from 1"),
        ({"measure": "plaquette:x"}, "OBSERVABLE:UPDATES"),
        ({"measure": "plaquette,plaquette:2"}, "twice"),
    ],
)
def test_wrong_parameters_are_refused(values, message):
    with pytest.raises(UsageError, match=message):
        Parameters.from_values(values)


def test_execution_reads_the_same_card(tmp_path):
    values = card(tmp_path, 'output = "x"\ntime-limit = 23:30:00\nthreads = 2\nquiet = true\n')
    assert Execution.from_values(values) == Execution(
        "x", threads=2, quiet=True, time_limit=84600.0, checkpoint_every=10.0
    )


@pytest.mark.parametrize(
    "values", [{"threads": 0}, {"threads": 10**6}, {"checkpoint_every": -1}, {"quiet": 1}]
)
def test_wrong_execution_is_refused(values):
    with pytest.raises(UsageError, match=next(iter(values)).replace("_", "[_-]")):
        Execution.from_values(values)


@pytest.mark.parametrize("text", ["", "12", "1:2", "1:-2:3", "a:b:c", "1:2:3:4"])
def test_wrong_durations_are_refused(text):
    with pytest.raises(UsageError, match="HH:MM:SS"):
        parse_duration(text)


def test_durations():
    assert parse_duration("100:01:02") == 360062.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("overelax = 4", "Unknown key 'overelax'.*did you mean 'overrelax'"),
        ("time_limits = '1:0:0'", "did you mean 'time_limit'"),
        ("zzz = 4", "Unknown key 'zzz' in .*; `gauge-mc card` lists all."),
        ("beta = ", "not valid TOML"),
        ("beta = '\xff'", "not text in UTF-8"),
        ("beta = " + 1000 * "[", "nested too deeply"),
        ("beta = " + 5000 * "9", "not valid TOML"),
    ],
)
def test_wrong_cards_are_refused(tmp_path, text, message):
    path = tmp_path / "card.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=message):
        read_card(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("beta = " + 400 * "9", "beta must be a number below 1e308"),
        ("heatbath = " + 20 * "9", "--heatbath is 9+; give a whole number from 1 to 1000000"),
        ("heatbath = 1000001", "--heatbath is 1000001; give .* to 1000000"),
        ("configs = 2000000000000", "--configs is 2000000000000; give .* to 1000000000000"),
        ("beta = 1e7", r"--beta is 1e\+07; give a number from 1e-06 to 1000000"),
        ("beta = 1e-7", "--beta is 1e-07; give a number"),
        ("beta = nan", "--beta is nan; give a number"),
        ('start = "a\\u0000b"', "start must be a string of UTF-8 without control characters"),
        ('output = "a\\u0000b"', "output must be a path that is not empty"),
        ("output = ''", "output must be a path that is not empty"),
        ("time_limit = '" + 400 * "9" + ":0:0'", "characters.*is not of the form HH:MM:SS"),
        ("lattice = '1_6x4x4x4'", "does not have the form"),
        ("measure = 'plaquette:" + 5000 * "9" + "'", "is not of the form OBSERVABLE:UPDATES"),
        ("checkpoint_every = inf", "--checkpoint-every is inf; give a number of at least 0"),
    ],
)
def test_values_beyond_all_bounds_are_refused(tmp_path, text, message):
    path = tmp_path / "card.toml"
    path.write_text(text)
    values = read_card(path)
    kind = Parameters if set(values) & set(Parameters().values()) else Execution
    with pytest.raises(UsageError, match=message):
        kind.from_values(values)


def test_unreadable_cards_are_refused(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read_card(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="directory"):
        read_card(tmp_path)
    with pytest.raises(UsageError, match="is not a regular file"):
        read_card("/dev/zero")
    (tmp_path / "large").write_bytes(bytes(MAX_CARD + 1))
    with pytest.raises(UsageError, match="larger than"):
        read_card(tmp_path / "large")
    os.mkfifo(tmp_path / "pipe")  # opening it for reading would wait for a writer
    with pytest.raises(UsageError, match="is not a regular file"):
        read_card(tmp_path / "pipe")


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

"""Run cards with tables, their comments and their schema."""

import json
import re
import tomllib

import pytest

from gauge_mc.actions import couplings
from gauge_mc.errors import UsageError
from gauge_mc.observables import OBSERVABLES
from gauge_mc.run.cards import check_card, commented, read_card, schema
from gauge_mc.run.measurement import measurements
from gauge_mc.run.parameters import Parameters, known_options
from gauge_mc.run.settings import Execution
from tests.calls import call

TABLES = """
beta = 5.7
lattice = "4x4x4x8"
[action]
name = "rectangle"
c1 = -0.1
[measure.plaquette]
[measure.flow]
every = 50
to = 6.4
slices = true
[measure.wilson-loops]
every = 5
iterations = [0, 10]
"""


def written(folder, text):
    path = folder / "card.toml"
    path.write_text(text)
    return path


def test_tables_say_what_text_says(tmp_path):
    found = check_card(written(tmp_path, TABLES))
    text = "flow:50:to=6.4:slices,plaquette,wilson-loops:5:iterations=0,10"
    same = Parameters(
        lattice="4x4x4x8", beta=5.7, action="rectangle:c1=-0.1", measure=measurements(text)
    )
    assert found == same
    assert check_card(written(tmp_path, found.to_toml())) == found


HMC = """
beta = 5.7
[algorithm]
name = "hmc"
length = 0.5
[[levels]]
integrator = "omf4"
steps = 3
[[levels]]
steps = 2
"""


def test_lists_of_tables_say_what_text_says(tmp_path):
    found = check_card(written(tmp_path, HMC))
    assert found == Parameters.from_values(
        {"beta": 5.7, "algorithm": "hmc", "length": 0.5, "levels": "omf4:3,2"}
    )
    assert check_card(written(tmp_path, found.to_toml())) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[algorithm]\nname = 'hmc'\nlenght = 1.0", r"'lenght' in \[algorithm\].*did you mean"),
        ("[algorithm]\nsteps = 4", r"\[algorithm\] has no name; add it, as in name = 'heatbath'"),
        ("steps = 1\n[algorithm]\nname = 'hmc'\nsteps = 4", "steps is given twice"),
        ("algorithm = 'hmc'\n[[levels]]\nstep = 4", "step is not an option of a level"),
        ("[[levels]]\nsteps = 4", "--levels is not an option of the algorithm heatbath"),
        ("[action]\nc1 = -0.1", r"\[action\] has no name"),
        ("c1 = 0\n[action]\nname = 'rectangle'\nc1 = -0.1", "c1 is given twice"),
        (
            "[action]\nname = 'rectangle'\nc2 = -0.1",
            r"Unknown key 'c2' in \[action\].*did you mean",
        ),
        ("[action]\nname = 'rectangle'\nc1 = 'x'", "--c1 is 'x'; give a number"),
        ("[action]\nname = 'rectangle'", "The action rectangle needs --c1"),
        ("action = 'wilson'\nc1 = -0.1", "--c1 is not an option of the action wilson"),
        ("[measure.flow]\nevery = 1.5", "every is 1.5; give a whole number"),
        ("[measure.flow]\nto = [[1]]\n", "to is"),
        ("[measure.flow]\nsteep = 1", "--steep is not an option of flow"),
        ("[measure.flow]\nto = 'x'", "--to is 'x', but needs a number"),
        ("[measure.flw]\n", "There is no observable 'flw'"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, said):
    with pytest.raises(UsageError, match=said):
        check_card(written(tmp_path, text))


def test_a_card_with_comments_is_the_usual_one(tmp_path):
    """Each line but the comments is a value that was given; without `# ` all of them are."""
    given = {"beta": 5.7, "action": "rectangle", "c1": -0.1, "lattice": "4x4x4x8"}
    text = "\n".join(commented(given))
    assert tomllib.loads(text) == given
    assert check_card(written(tmp_path, text)) == Parameters.from_values(given)
    keys = re.findall("^(?:# )?([a-z0-9_]+) = ", text, re.MULTILINE)
    assert {*known_options()} == {*keys} - {"every", "to"}
    whole = re.sub(r"^# (?=[a-z0-9_]+ = )", "", text.partition("# Observables may")[0], flags=re.M)
    whole = re.sub(r"^(u0|output|devices|threads|time_limit) = .*\n", "", whole, flags=re.M)
    values = read_card(written(tmp_path, whole))
    assert Parameters.from_values(values) == Parameters.from_values(given)
    assert Execution.from_values(values) == Execution()


def test_the_schema_knows_all_keys_and_bounds():
    found = schema()
    assert found["properties"].keys() == known_options().keys()
    assert found["properties"]["heatbath"]["minimum"] == 1
    named, table = found["properties"]["action"]["anyOf"]
    assert "iwasaki" in named["enum"]
    assert table["properties"].keys() == {"name", *(one.name for one in couplings())}
    listed = found["properties"]["levels"]["anyOf"][1]["items"]["anyOf"][1]
    assert listed["properties"].keys() == {"integrator", "steps", "gauge"}
    algorithm = found["properties"]["algorithm"]["anyOf"][1]
    assert {"name", "length", "levels", "overrelax"} <= algorithm["properties"].keys()
    *_, measured = found["properties"]["measure"]["anyOf"]
    assert measured["properties"].keys() == {*OBSERVABLES}
    *_, flow = measured["properties"]["flow"]["anyOf"]
    assert {"every", "to", "slices"} <= flow["properties"].keys()
    assert flow["properties"]["every"]["type"] == "integer"  # updates, not the time of the flow
    assert not measured["additionalProperties"]
    *_, extents = found["properties"]["lattice"]["anyOf"]
    assert extents == {"type": "array", "items": {"type": "integer"}}


def test_the_command(tmp_path):
    shown, code = call("card", "--beta", "5.7", "--action", "rectangle", "--c1", "-0.1")
    assert code == 0
    path = written(tmp_path, shown)
    assert call("card", path) == (f"{path} is sound, for the run {check_card(path).name}.\n", 0)
    assert json.loads(call("card", "--schema")[0]) == schema()
    path.write_text("beta = 5.7\nlatice = '4'\n")
    said, code = call("card", path)
    assert (code, "did you mean 'lattice'" in said) == (2, True), said
    assert call("card", path, "--beta", "2")[1] == 2


def test_the_readme_has_a_command_for_every_card(root):
    pytest.importorskip("gauge_mc.extensions.quarks")
    text = (root / "runs" / "README.md").read_text()
    cards = sorted((root / "runs").glob("*.toml"))
    assert cards
    for path in cards:
        Parameters.from_values({"beta": 2.5} | read_card(path))
        assert f"--card runs/{path.name}" in text or path.name in text, path.name

"""Several chains that are generated together, by the command line and from Python."""

import json

import pytest

import gauge_mc
from gauge_mc.errors import INTERRUPTED
from gauge_mc.run.directory import Run
from tests.calls import call
from tests.run.sessions import written

pytestmark = pytest.mark.slow

SMALL = {
    "lattice": "4x4x4x6",
    "thermalize": 3,
    "configs": 2,
    "separation": 4,
    "backend": "cpu",
    "progress": False,
}
WORDS = [
    word
    for name, value in SMALL.items()
    if name != "progress"
    for word in (f"--{name}", str(value))
]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def alone(seed, **more):
    """Generate a chain by itself; return what it has written."""
    run = gauge_mc.generate(output=f"alone_{seed}", seed=seed, **{**SMALL, **more})
    return written(run.path)


def test_each_chain_is_a_run_of_its_own():
    found = gauge_mc.generate_chains(chains=3, output="some", **SMALL)
    assert [str(one.path) for one in found] == ["some_chain1", "some_chain2", "some_chain3"]
    assert [one.parameters.seed for one in found] == [1, 2, 3]
    assert [one.stopped for one in found] == [None] * 3
    for seed, one in enumerate(found, 1):
        assert written(one.path) == alone(seed)
        assert Run(one.path).read()[1][0].sweep == 0


def test_chains_are_continued_together_or_alone():
    gauge_mc.generate_chains(chains=2, output="some", seed=5, **SMALL)
    longer = {**SMALL, "configs": 3}
    gauge_mc.generate(output="some_chain2", **longer)
    found = gauge_mc.generate_chains(chains=3, output="some", seed=5, **longer)
    assert [one.sweep for one in found] == [15] * 3
    assert [written(one.path) for one in found] == [alone(seed, configs=3) for seed in (5, 6, 7)]


def test_the_command_names_the_directories_and_shows_averages_over_all_chains():
    shown, code = call("generate", *WORDS, "--chains", "3", "--seed", "8")
    assert (code, "3 chains are updated together" in shown) == (0, True), shown
    paths = [f"runs/su2_b2.5_4x4x4x6_seed8_chain{n}" for n in (1, 2, 3)]
    assert f"files   {paths[0]} ... {paths[2]} (6 configurations)" in shown
    line = next(line for line in shown.splitlines() if line.startswith("plaquette"))
    assert line.split()[-1] == "24"  # 8 measurements of each chain
    assert all(Run(gauge_mc.generate(output=path, progress=False).path).begun() for path in paths)


def test_results_as_json_and_a_time_limit():
    words = [*WORDS, "--configs", "20000", "--chains", "2", "--output", "x", "--json"]
    for limit in ("0:0:2", "0:0:20", "0:3:20"):  # a slow machine only starts in the first one
        shown, code = call("generate", *words, "--time-limit", limit)
        assert code == INTERRUPTED
        result = json.loads(shown)
        assert result["stopped"] == "the time limit"
        (sweep,) = {one["sweep"] for one in result["runs"]}
        if sweep:
            break
    assert 0 < sweep < 400003

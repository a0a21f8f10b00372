"""``gauge-mc fit`` as a user meets it."""

import json
import math

import numpy as np
import pytest

from tests.analysis.synthetic_loops import SIGMA, synthetic_loops, write_loops
from tests.calls import call, call_apart, make_run
from tests.quantities.flow.test_scales import make

ENSEMBLE = {"group": "su2", "beta": "2.5", "lattice": "24x24x24x32"}


def make_loops(folder, samples, seed=3):
    folder.mkdir()
    header = {"observable": "wilson_loops", **ENSEMBLE}
    loops = synthetic_loops(np.random.default_rng(seed), samples)
    write_loops(folder / "wilson_loops.csv", loops, header=header)
    return folder


@pytest.mark.slow
def test_a_string_tension(tmp_path):
    runs = [make_loops(tmp_path / name, 200, seed) for seed, name in enumerate("ab")]
    shown, code = call("fit", "potential", *runs, "--separate")
    assert (code, "Scales of the static potential" in shown) == (0, True), shown
    for run in runs:
        assert f"{run}/potential.json\n" in shown
        result = json.loads((run / "potential.json").read_text())
        sigma = result["scales"]["sigma"]
        total = math.hypot(sigma["value"]["error"], sigma["systematic"])
        assert abs(sigma["value"]["value"] - SIGMA) < 3 * total < SIGMA
        assert result["ensemble"] == ENSEMBLE
    assert call("fit", "creutz", runs[0])[1] == 0
    ratios = json.loads((runs[0] / "creutz.json").read_text())
    value, error = ratios["chi"][3][3], ratios["error"][3][3]
    # chi(R, T) of a pure exponential is V(R) - V(R-1).
    assert abs(value - (SIGMA - 0.25 / 4 + 0.25 / 3)) < 4 * error


@pytest.mark.slow
def test_the_gradient_flow(tmp_path, sketched):
    run = make(tmp_path, 60)
    shown, code = call("fit", "scale", run, "--tree-level", "--target", "0.25", "--sqrt-t0", "0.15")
    assert (code, "given with --sqrt-t0" in " ".join(shown.split())) == (0, True)
    assert f"{run}/scale.json\nresult: t0/a² = " in shown
    shown, code = call("fit", "topology", run, "--round", "--t", "2.5", "--charge", "improved")
    assert (code, "Topological charge at t/a² = 2.5" in shown) == (0, True)
    out, said, _ = call_apart("plot", "topology", run, "--round")
    assert (out, "The series is only" in said) == (f"{run}/topology.pdf\n", True)
    assert call_apart("plot", "flow", run, "--target", "0.2")[0] == f"{run}/flow.pdf\n"
    refused = call("plot", "flow", run, "--energy", "clover")[0]
    assert "--energy is not an option of gauge-mc plot flow, but of energy-momentum" in refused


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    path = tmp_path_factory.mktemp("folders")
    make_loops(path / "good", 20)
    make_loops(path / "few", 6)
    make_run(path / "run", format="none")
    return path


@pytest.mark.parametrize(
    ("words", "sentence", "code"),
    [
        (("potential", "run"), "make one with `gauge-mc measure wilson-loops run --at 5:11:3`", 1),
        (("potential", "few"), "at least 10 configurations; measure more than these 6", 1),
        (("potential", "good", "--level", "7"), "choose from the levels 25", 1),
        (("potential", "good", "--t-min", "9"), "No fit can go from t = 9", 2),
        (("potential", "run/plaquette.csv"), "it is not a table of Wilson loops", 1),
        (("potential", "no"), "There is no run no.", 2),
        (("creutz", "ruun"), "There is no run ruun; did you mean 'run'?", 2),
        (("hmc", "."), "There is no table of hmc in run, as runs have", 1),
        (("creutz", "good", "--r-min", "2"), "--r-min is not an option of gauge-mc fit creutz", 2),
        (("creutz", "good", "--level", "x"), "--level", 2),
        (("xyz",), "no fit 'xyz'; --help lists all.", 2),
        (("potential",), "There are no runs and no scans in runs", 2),
    ],
)
def test_fits_that_are_refused(folders, monkeypatch, words, sentence, code):
    monkeypatch.chdir(folders)
    said, found = call("fit", *words)
    assert (sentence in said, found) == (True, code), said
    assert not list(folders.glob("*/*.json"))

"""`fit free-energy`: synthetic correlators whose parameters are known."""

import math
from itertools import product

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import write_table
from gauge_mc.fits.files import read_fit
from gauge_mc.quantities.polyakov.observables import CORRELATOR_COLUMNS
from tests.quantities.shown import shown

EXTENTS, EXTENT = (16, 20, 24), 4
MASS, AMPLITUDE, CONSTANT = 0.7, 0.02, 0.04
DISTANCES = [("100", r) for r in range(1, 9)] + [("110", r) for r in range(1, 9)]


def exact(path, steps, constant):
    """C(R) with all images that matter."""
    vector = np.array([steps * int(one) for one in path])
    images = [vector + np.multiply(n, EXTENTS) for n in product(range(-2, 3), repeat=3)]
    r = np.linalg.norm(images, axis=1)
    return constant + AMPLITUDE * float((np.exp(-MASS * r) / r).sum())


def write_correlators(folder, constant, noise=1e-4, common=2e-3, size=200):
    """Write correlators with independent noise, and noise that all distances share."""
    rng = np.random.default_rng(7)
    lattice = "x".join(map(str, (*EXTENTS, EXTENT)))
    head = {"observable": "polyakov-correlators", "group": "su2", "beta": "2.4"}
    head |= {"action": "wilson", "lattice": lattice}
    rows = []
    for sweep in range(1, size + 1):
        shared = 1 + common * rng.normal()
        for path, steps in DISTANCES:
            value = exact(path, steps, constant) * shared + noise * rng.normal()
            rows.append((sweep, path, steps, float(value)))
    folder.mkdir(exist_ok=True)
    write_table(folder / "polyakov_correlators.csv", head, CORRELATOR_COLUMNS, rows)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "constant"), [("deconfined", CONSTANT), ("confined", 0.0)])
def test_the_known_mass_is_found(tmp_path, phase, constant):
    run = write_correlators(tmp_path / "run", constant, noise=2e-5)
    result = gauge_mc.fit("free-energy", run)
    found, text = result.found, shown(result)
    assert found.phase == phase
    assert abs(found.mass.value - EXTENT * MASS) < 4.5 * found.mass.error < 0.6
    assert abs(found.amplitude.value - AMPLITUDE) < 4.5 * found.amplitude.error
    assert 0.001 < found.p_value < 0.999
    assert str(found.mass) in text
    assert read_fit(run / "free-energy.json")["mass"].value == found.mass.value
    if phase == "deconfined":
        assert abs(found.limit.value + math.log(CONSTANT)) < 4.5 * found.limit.error < 0.02
        assert "Screening mass m/T" in text
    else:
        assert found.limit is None
        assert "String tension σ(T)/T²" in text
    first = found.points[0]
    assert (first.path, first.distance, first.scaled, first.fitted) == ("100", 1, 1 / EXTENT, False)
    expected = -math.log(exact("100", 1, constant))
    assert abs(first.free_energy.value - expected) < 4.5 * first.free_energy.error
    second = found.points[1]
    assert second.distance == pytest.approx(math.sqrt(2))
    assert [one.distance for one in found.points] == sorted(one.distance for one in found.points)


@pytest.mark.slow
def test_the_error_of_the_mass_is_that_of_repeated_ensembles(tmp_path):
    rng_noise = []
    errors = []
    run = write_correlators(tmp_path / "run", CONSTANT, noise=2e-5, size=1200)
    for first in range(0, 1200, 100):
        part = gauge_mc.fit("free-energy", _part(run, tmp_path / str(first), first), r_min=1.5)
        rng_noise.append(part.found.mass.value)
        errors.append(part.found.mass.error)
    assert np.std(rng_noise, ddof=1) == pytest.approx(np.mean(errors), rel=0.6)


def _part(run, folder, first):
    """Write a hundred configurations of a table as a table of its own."""
    lines = (run / "polyakov_correlators.csv").read_text().splitlines()
    head = dict(one[2:].split(": ", 1) for one in lines if one.startswith("# ") and ": " in one)
    rows = [one.split(",") for one in lines if one[0].isdigit()]
    count = len(DISTANCES)
    chosen = rows[first * count : (first + 100) * count]
    folder.mkdir()
    values = [(int(a), b, int(c), float(d)) for a, b, c, d in chosen]
    write_table(folder / "polyakov_correlators.csv", head, CORRELATOR_COLUMNS, values)
    return folder


@pytest.mark.slow
def test_the_form_and_the_range_can_be_chosen(tmp_path):
    run = write_correlators(tmp_path / "run", CONSTANT, noise=2e-5)
    wrong = gauge_mc.fit("free-energy", run, phase="confined")
    assert wrong.found.p_value < 0.01
    assert "The form does not fit" in shown(wrong)
    part = gauge_mc.fit("free-energy", run, r_min=3.0, r_max=6.0).found
    distances = [one.distance for one in part.points if one.fitted]
    root = math.sqrt(2)
    assert distances == pytest.approx([3, 4, 3 * root, 5, 4 * root, 6])
    with pytest.raises(GaugeError, match="needs three distances, and there are 2 from R = 7"):
        gauge_mc.fit("free-energy", run, r_min=7.0, r_max=7.5)
    with pytest.raises(UsageError, match="--phase is 'x'; choose deconfined or confined"):
        gauge_mc.fit("free-energy", run, phase="x")
    with pytest.raises(UsageError, match="from 5 to 4"):
        gauge_mc.fit("free-energy", run, r_min=5.0, r_max=4.0)


@pytest.mark.slow
def test_correlators_that_are_noise_have_no_free_energy(tmp_path):
    run = write_correlators(tmp_path / "run", 0.0, noise=2e-2, common=0.0)
    with pytest.raises(GaugeError, match="cannot be fitted"):
        gauge_mc.fit("free-energy", run, phase="confined", r_min=6.0)

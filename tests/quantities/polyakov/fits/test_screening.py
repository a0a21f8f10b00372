"""`fit screening`: synthetic planes whose masses are known."""

import math

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import write_table
from gauge_mc.fits.files import read_fit
from gauge_mc.plots.figures.pictures import Stroke
from gauge_mc.quantities.polyakov.fits import ScreeningPlot
from gauge_mc.quantities.polyakov.observables import PLANE_COLUMNS
from gauge_mc.quantities.polyakov.screening import _ScreenedFit
from tests.quantities.shown import shown

EXTENTS, NT = (8, 12, 24), 4
EVEN, ODD = 0.45, 0.8
LOOP = 0.1


def gaussian_planes(rng, mass, planes, size):
    """Return periodic series of planes whose correlator is exactly the sum of two exponentials."""
    r = np.arange(planes)
    exact = np.exp(-mass * r) + np.exp(-mass * (planes - r))
    spectrum = np.fft.fft(exact).real
    noise = rng.normal(size=(size, planes))
    return np.fft.ifft(np.fft.fft(noise, axis=1) * np.sqrt(spectrum), axis=1).real


def write_planes(
    folder, loop=LOOP, size=2000, masses=(EVEN, ODD), group="su3", seed=5, excited=0.0, lost=0
):
    """Write the table of independent configurations; the shorter axes have other masses.

    `excited` is the amplitude of a state of mass 2, and `lost` the number of rows left out.
    """
    rng = np.random.default_rng(seed)
    lattice = "x".join(map(str, (*EXTENTS, NT)))
    head = {"observable": "polyakov-planes", "group": group, "beta": "6", "lattice": lattice}
    parts = {}
    for axis, extent in zip("xyz", EXTENTS, strict=True):
        other = 1.0 if extent == max(EXTENTS) else 2.0
        re, im = (0.01 * gaussian_planes(rng, other * m, extent, size) for m in masses)
        parts[axis] = (loop + re, im * (group != "su2"))
    rows = []
    for sweep in range(size):
        for axis, extent in zip("xyz", EXTENTS, strict=True):
            for r in range(extent // 2 + 1):
                values = [float((p[sweep] * np.roll(p[sweep], -r)).mean()) for p in parts[axis]]
                values[0] += excited * math.exp(-2.0 * r)
                rows.append((sweep + 1, axis, r, *values))
    folder.mkdir(exist_ok=True)
    write_table(folder / "polyakov_planes.csv", head, PLANE_COLUMNS, rows[: len(rows) - lost])
    return folder


@pytest.mark.slow
def test_the_masses_of_both_parts_are_found(tmp_path):
    run = write_planes(tmp_path / "run")
    result = gauge_mc.fit("screening", run)
    found = result.found
    assert found.phase == "deconfined"
    assert [one.part for one in found.masses] == ["Re L", "Im L"]
    for one, mass in zip(found.masses, (EVEN, ODD), strict=True):
        assert abs(one.mass.value - NT * mass) < 4 * one.mass.error < 0.25 * NT * mass
        assert abs(one.amplitude.value - 1e-4) < 4 * one.amplitude.error
        assert 0.01 < one.p_value < 0.9999
        assert str(one.mass) in shown(result)
    even, odd = found.masses
    assert abs(even.constant.value - LOOP**2) < 4 * even.constant.error
    assert odd.constant is None
    assert (even.r_min, even.r_max) == (1, 12)  # of the longest axis
    first = next(one for one in found.points if one.part == "Im L" and one.r == 2)
    assert abs(first.effective_mass.value - NT * ODD) < 4 * first.effective_mass.error
    assert read_fit(run / "screening.json")["masses"][1]["mass"].value == odd.mass.value


@pytest.mark.slow
def test_both_parts_have_the_same_states_in_the_confined_phase(tmp_path):
    run = write_planes(tmp_path / "run", loop=0.0, masses=(EVEN, EVEN))
    result = gauge_mc.fit("screening", run)
    (one,) = result.found.masses
    assert (result.found.phase, one.part, one.constant) == ("confined", "L", None)
    assert abs(one.mass.value - NT * EVEN) < 4 * one.mass.error < 0.15 * NT * EVEN
    assert "σ(T)/T²" in shown(result)


@pytest.mark.slow
def test_the_confined_form_is_fitted_where_that_with_a_constant_does_not_converge(
    tmp_path, monkeypatch
):
    run = write_planes(tmp_path / "run", loop=0.0, masses=(EVEN, EVEN))
    fit = _ScreenedFit._fit

    def without_constant(self, values, first, constant):
        return None if constant else fit(self, values, first, constant)

    monkeypatch.setattr(_ScreenedFit, "_fit", without_constant)
    found = gauge_mc.fit("screening", run).found
    assert (found.phase, [one.part for one in found.masses]) == ("confined", ["L"])
    with pytest.raises(GaugeError, match="The decrease of the correlator of Re L cannot be fitted"):
        gauge_mc.fit("screening", run, phase="deconfined")


@pytest.mark.slow
def test_su2_has_a_real_part_only(tmp_path):
    found = gauge_mc.fit("screening", write_planes(tmp_path / "run", group="su2")).found
    assert [one.part for one in found.masses] == ["Re L"]


@pytest.mark.slow
def test_the_range_leaves_out_distances_that_do_not_fit(tmp_path):
    """A second state decays within a few steps."""
    run = write_planes(tmp_path / "run", masses=(EVEN, EVEN), loop=0.0, excited=4e-4)
    (one,) = gauge_mc.fit("screening", run).found.masses
    assert one.r_min > 1
    assert abs(one.mass.value - NT * EVEN) < 4 * one.mass.error
    (short,) = gauge_mc.fit("screening", run, r_min=0, r_max=4, phase="confined").found.masses
    assert (short.r_min, short.r_max) == (0, 4)
    assert short.p_value < 0.01
    assert "The form does not fit" in shown(
        gauge_mc.fit("screening", run, r_min=0, r_max=4, phase="confined")
    )
    options = {"r_min": 0, "r_max": 4, "phase": "confined"}
    marks = ScreeningPlot().picture(run / "polyakov_planes.csv", options).frames[0].marks
    (curve,) = (one for one in marks if isinstance(one, Stroke))
    assert (curve.x[0], curve.x[-1]) == (0, 4)


@pytest.mark.slow
def test_the_errors_of_masses_are_those_of_repeated_ensembles(tmp_path):
    fits = []
    for seed in range(20):
        run = write_planes(tmp_path / str(seed), size=150, seed=seed)
        fits.append(gauge_mc.fit("screening", run, r_min=1, phase="deconfined").found.masses)
    for masses in zip(*fits, strict=True):
        values, errors = zip(*((one.mass.value, one.mass.error) for one in masses), strict=True)
        # the spread of twenty is known to 16 %
        assert np.std(values, ddof=1) == pytest.approx(np.mean(errors), rel=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"r_min": 5, "r_max": 4}, UsageError, "from 5 to 4; choose --r-min below --r-max"),
        ({"r_min": 10}, GaugeError, "The fit needs 4 distances, and there are 3 from r = 10 to 12"),
        ({"phase": "x"}, UsageError, "--phase is 'x'; choose deconfined or confined"),
        ({"skip": 1999}, GaugeError, "has 1 configuration, and"),
    ],
)
def test_what_cannot_be_fitted(tmp_path_factory, options, kind, sentence):
    run = tmp_path_factory.getbasetemp() / "planes"
    if not run.exists():
        write_planes(run)
    with pytest.raises(kind, match=sentence):
        gauge_mc.fit("screening", run, **options)


def test_a_table_that_is_incomplete_is_refused(tmp_path):
    run = write_planes(tmp_path / "run", size=20, lost=1)
    with pytest.raises(GaugeError, match="configuration 20 does not have the same rows"):
        gauge_mc.fit("screening", run)

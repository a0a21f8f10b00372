"""Plots of the gradient flow and of the topological charge."""

import numpy as np
import pytest

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.pictures import COLOURS
from tests.analysis.synthetic_flow import TIMES
from tests.plots.test_plots import drawn_texts, pixels_near
from tests.quantities.flow.fits.test_scale import make


@pytest.mark.slow
def test_the_flow_names_its_scales(tmp_path, monkeypatch):
    texts = drawn_texts(monkeypatch, save=True)
    run, file = make(tmp_path), tmp_path / "flow.png"
    assert PLOTS["flow"].draw([run], file) == []
    for name in ("clover", "plaquette", "improved"):
        assert any(text.startswith(f"{name}: $t_0/a^2=2.") for text in texts)
        assert any(text.startswith(f"{name}: $w_0/a=1.7") for text in texts)
    assert "target 0.3" in texts
    assert any("Wilson flow" in text for text in texts)
    assert all(pixels_near(file, colour) > 200 for colour in COLOURS[:3])


@pytest.mark.slow
def test_a_short_flow_is_drawn_without_scales(tmp_path, monkeypatch):
    texts = drawn_texts(monkeypatch)
    run = make(tmp_path, t=TIMES[:15])
    PLOTS["flow"].draw([run], tmp_path / "flow.png", target=0.2)
    assert "clover: not reached" in texts
    assert "target 0.2" in texts


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_a_charge_that_is_always_zero(tmp_path, monkeypatch):
    texts = drawn_texts(monkeypatch)
    run = make(tmp_path, 20, charges=np.zeros(20), smear=0.0)
    PLOTS["topology"].draw([run], tmp_path / "topology.png", round=True)
    assert not any("normal" in text for text in texts)
    assert not any("nan" in text for text in texts)


def test_what_is_refused(tmp_path):
    file = tmp_path / "plot.png"
    for name in ("flow", "topology"):
        with pytest.raises(UsageError, match="one run at a time"):
            PLOTS[name].draw([tmp_path, tmp_path], file)
        with pytest.raises(GaugeError, match="There is no run in"):
            PLOTS[name].draw([tmp_path], file)
    make(tmp_path, 12)
    for name in ("flow", "topology"):
        with pytest.raises(UsageError, match="--target is 0; give a positive number"):
            PLOTS[name].draw([tmp_path], file, target=0.0)
    with pytest.raises(UsageError, match=r"let its name end in \.pdf"):
        PLOTS["flow"].draw([tmp_path], tmp_path / "plot.gif")
    assert not file.exists()


@pytest.mark.slow
@pytest.mark.parametrize("rounded", [False, True])
def test_the_charge(tmp_path, monkeypatch, rounded):
    texts = drawn_texts(monkeypatch, save=True)
    run, file = make(tmp_path, 200), tmp_path / "topology.png"
    PLOTS["topology"].draw([run], file, round=rounded, t=3.0)
    assert any(r"\langle Q^2\rangle=" in text and "updates" in text for text in texts)
    assert any("clover charge" in text and "= 3" in text for text in texts)
    assert ("$Q$ (rounded)" in texts) == rounded
    assert pixels_near(file, COLOURS[1]) > 100  # the normal distribution

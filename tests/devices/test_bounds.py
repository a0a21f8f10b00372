"""Launch bounds of CUDA kernels: those that were found fastest are kept for a kind of GPU."""

import re

import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.devices.cuda.kernel import Bounds, TunedBounds
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.groups import GROUPS
from gauge_mc.random import GENERATORS
from gauge_mc.updates.heatbath import ONE_REPLICA
from gauge_mc.updates.sweep import norms_of

HEATBATH, OVERRELAXATION, PLAQUETTE, ADD_PARTIAL_SUMS = map(
    Kernel, ("heatbath", "overrelaxation", "plaquette", "add_partial_sums")
)
CHOICES = (
    *GROUPS["su3"].choices,
    *ACTIONS["wilson"].choices,
    norms_of("single"),
    GENERATORS["philox"].choice(),
    ONE_REPLICA,
)
SU3 = Variant("single", CHOICES)
USUAL = Bounds(*GROUPS["su3"].launch_bounds["single"])


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Keep what the tests find apart from what was found for this machine."""
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path))


def test_bounds_are_kept_for_a_gpu_and_a_kernel():
    assert TunedBounds("A GPU").bounds(HEATBATH, SU3) == USUAL
    TunedBounds("A GPU").keep(HEATBATH, SU3, Bounds(64, 8))
    TunedBounds("A GPU").keep(OVERRELAXATION, SU3, Bounds(256, 2))
    assert TunedBounds("A GPU").bounds(HEATBATH, SU3) == Bounds(64, 8)
    assert TunedBounds("A GPU").bounds(OVERRELAXATION, SU3) == Bounds(256, 2)
    assert TunedBounds("A GPU").bounds(PLAQUETTE, SU3) == USUAL
    assert TunedBounds("Another GPU").bounds(HEATBATH, SU3) == USUAL


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"heatbath": 1}', "other sources"])
def test_what_is_damaged_or_of_other_sources_is_forgotten(tmp_path, damage):
    TunedBounds("A GPU").keep(HEATBATH, SU3, Bounds(64, 8))
    file = next(tmp_path.glob("bounds-*"))
    text = file.read_text()
    other_sources = re.sub(r"[0-9a-f]{16}", 16 * "0", text)
    assert other_sources != text
    file.write_text(other_sources if damage == "other sources" else damage)
    assert TunedBounds("A GPU").bounds(HEATBATH, SU3) == USUAL

"""How kernels are divided into thread blocks on a GPU, and their launch bounds."""

import re
from types import SimpleNamespace

import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.devices.base import Registers
from gauge_mc.devices.cuda.kernel import Bounds, CudaKernel, SweepFunction, TunedBounds
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import Layout, work
from gauge_mc.errors import GaugeError
from gauge_mc.groups import GROUPS
from gauge_mc.random import GENERATORS
from gauge_mc.updates.heatbath import ONE_REPLICA
from gauge_mc.updates.sweep import norms_of


def test_blocks_of_a_sweep_are_all_there_at_once():
    sweep = SweepFunction(None, Registers(121, 0), multiprocessors=10, arrived=None)
    assert [sweep.threads(sites) for sites in (64, 320, 321, 10**6)] == [32, 32, 64, 256]
    assert sweep.fits(20, 256)  # 2 * 256 * 128 registers
    assert not sweep.fits(21, 256)
    assert sweep.fits(50, 96)
    assert not sweep.fits(51, 96)


def test_partly_filled_multiprocessors_do_not_count_as_room():
    """Five warps with 184 registers leave room for three more, two in each fourth of the SM."""
    sweep = SweepFunction(None, Registers(178, 0), multiprocessors=132, arrived=None)
    assert sweep.fits(132, 144)
    assert not sweep.fits(133, 144)
    assert sweep.fits(264, 128)


@pytest.mark.parametrize(
    ("vectors", "parities", "slices", "fits"),
    [(72, 2, 48, True), (72, 0, 256, False), (1, 2, 2**16, False)],
)
def test_grids_with_too_many_blocks_are_refused(vectors, parities, slices, fits):
    """Twelve right-hand sides have 72 parts of the work on a site."""
    layout = Layout(Lattice(24, 24, 24, slices), "single", (1, 1, 1), 16, 0, slices)
    step = SimpleNamespace(
        geometry=layout.geometry,
        work=work(0, 1, slices, parities),
        shares=SimpleNamespace(threads=1, blocks=vectors),
    )
    kernel = CudaKernel(None, None, None, 128, None, sums=vectors == 1, shared=vectors > 1)
    if fits:
        assert kernel._shape([step], 128)[0][2] <= 65535
    else:
        with pytest.raises(GaugeError, match=f"on {slices} time slices of 24x24x24 .* 65535 along"):
            kernel._shape([step], 128)


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

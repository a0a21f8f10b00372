"""Updates against NumPy, the heatbath's distribution, and independence of threads and lanes."""

import itertools
from functools import cache

import numpy as np
import pytest

from gauge_mc.devices.cpu import CpuDevice
from gauge_mc.devices.cuda import CudaDevice
from gauge_mc.errors import UsageError
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.observables.plaquette import plaquette
from gauge_mc.random import Random
from gauge_mc.updates import heatbath, overrelax
from gauge_mc.waves import CHECKERBOARD, Wave, sweep_order
from tests.reference import updates as reference
from tests.reference.distributions import a0_pvalue
from tests.reference.fields import cold_field, dagger, parity, random_field, reunitarise
from tests.reference.observables import staple
from tests.reference.randoms import philox4x32

LATTICES = [Lattice(4, 6, 8, 10), Lattice(8, 8, 4, 6)]
TOLERANCE = {"single": 1e-5, "double": 1e-13}


def unitarity_violation(links):
    n = links.shape[-1]
    return max(
        np.abs(links @ dagger(links) - np.eye(n)).max(), np.abs(np.linalg.det(links) - 1).max()
    )


@cache
def start(lattice, group):
    """Random links about one, since noise alone has links that its staples leave undetermined."""
    rough = random_field(lattice.extents, group, np.random.default_rng(61))
    return reunitarise(cold_field(lattice.extents, group) + 0.7 * rough)


@cache
def overrelaxed(lattice, group):
    return reference.overrelax(start(lattice, group))


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_overrelaxation(lattice, group, precision, device):
    field = Field.load(lattice, group, start(lattice, group), precision, device)
    overrelax(field)
    difference = field.to_numpy() - overrelaxed(lattice, group)
    assert np.abs(difference).max() < 20 * TOLERANCE[precision]
    assert np.sqrt(np.mean(np.abs(difference) ** 2)) < TOLERANCE[precision]


def test_overrelaxation_keeps_the_action_and_moves(group, precision, best_device):
    field = Field.hot(Lattice(8, 8, 8, 8), group, precision, best_device)
    heatbath(field, 2.5 if group == "su2" else 6.0, Random.for_field(field), sweeps=5)
    before, links = plaquette(field).mean, field.to_numpy()
    overrelax(field, sweeps=20)
    assert plaquette(field).mean == pytest.approx(
        before, rel=1e-6 if precision == "single" else 1e-13
    )
    # As far from where it was as another configuration would be.
    overlap = np.trace(field.to_numpy() @ dagger(links), axis1=-2, axis2=-1).real.mean()
    assert overlap < 0.75 * links.shape[-1]


class PhiloxDraws:
    """The heatbath's draws, anew from the generator's definition and the sampler's."""

    def __init__(self, lattice, seed, step, mu, precision):
        self.site = np.arange(lattice.sites, dtype=np.uint64)
        self.shape = (lattice.t, lattice.z, lattice.y, lattice.x)
        self.seed, self.step, self.mu, self.precision = seed, step, mu, precision

    def block(self, stream, number):
        word = self.mu | stream << 2 | number << 4
        counter = np.empty((self.site.size, 4), np.uint32)
        counter[:, 0] = self.site
        counter[:, 1:] = word, self.step & 0xFFFFFFFF, self.step >> 32
        key = np.array([self.seed & 0xFFFFFFFF, self.seed >> 32], np.uint32)
        words = philox4x32(counter, np.broadcast_to(key, (*counter.shape[:-1], 2)))
        words = words.astype(np.uint64)
        if self.precision == "single":
            uniform = ((words >> 1) + 0.5) * 2.0**-31
        else:
            pairs = words[..., 0::2] << np.uint64(32) | words[..., 1::2]
            uniform = (pairs >> np.uint64(12)) * 2.0**-52 + 2.0**-53
        return uniform.reshape(*self.shape, -1)

    def uniforms(self, stream, first, count):
        per_block = 4 if self.precision == "single" else 2
        blocks = range(first * -(-count // per_block), (first + 1) * -(-count // per_block))
        return np.concatenate([self.block(stream, b) for b in blocks], axis=-1)[..., :count]

    def __call__(self, subgroup, alpha):
        delta = np.full(self.shape, np.nan)
        attempt, c = 0, 0.25 + 0.75 / (1 + 4 * alpha)
        while np.isnan(delta).any():
            u = np.moveaxis(self.uniforms(subgroup, attempt, 4), -1, 0)
            gamma = -(np.log(u[0]) + np.log(u[1]) * np.cos(np.pi * u[2] / 2) ** 2)
            trial = gamma / (alpha + c)
            # Wanted over proposed, and that over its maximum, where 1 - trial / 2 = 1 / (4 c).
            ratio = np.sqrt(np.maximum(1 - trial / 2, 0)) * np.exp(c * trial)
            accept = np.isnan(delta) & (
                u[3] <= ratio / (np.sqrt(1 / (4 * c)) * np.exp(2 * c - 0.5))
            )
            delta[accept] = trial[accept]
            attempt += 1
        u = self.uniforms(3, 0, 6)[..., 2 * subgroup : 2 * subgroup + 2]
        cosine, phi = 2 * u[..., 0] - 1, 2 * np.pi * (u[..., 1] - 0.5)
        sine = np.sqrt(1 - cosine**2)
        unit = np.stack([sine * np.cos(phi), sine * np.sin(phi), cosine], axis=-1)
        return reference.given((1 - delta)[None], unit[None])(0, alpha)


SEED, STEP = 2**40 + 7, 2**33


@cache
def heated(lattice, group, beta, precision):
    links = start(lattice, group)
    for mu in range(4):
        draws = PhiloxDraws(lattice, SEED, STEP, mu, precision)
        for odd in range(2):
            links = reference.heatbath_half(links, beta, mu, odd, draws)
    return links


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
@pytest.mark.parametrize("beta", [0.3, 5.0])
def test_heatbath(lattice, beta, group, precision, device):
    field = Field.load(lattice, group, start(lattice, group), precision, device)
    random = Random.for_field(field, seed=SEED)
    random.step = STEP - 1
    heatbath(field, beta, random)
    assert random.step == STEP
    difference = np.abs(field.to_numpy() - heated(lattice, group, beta, precision)).max(
        axis=(-1, -2)
    )
    if precision == "double":
        assert difference.max() < 1e-11
        assert np.sqrt(np.mean(difference**2)) < 1e-13
    else:
        # Rounding may turn a narrow acceptance: another link, and other neighbours after it.
        assert np.median(difference) < 4e-6
        assert np.mean(difference > 1e-4) < 0.01


@pytest.mark.parametrize("alpha", [0.01, 0.5, 1.6, 1.7, 5.0, 100.0])
@pytest.mark.parametrize("kind", ["philox", "lcg", "ranlux"])
def test_heatbath_distribution(alpha, kind, precision, best_device):
    """On a cold field the staples of the first direction and parity add up to 6 everywhere."""
    lattice = Lattice(32, 32, 32, 8)
    field = Field.cold(lattice, "su2", precision, best_device)
    heatbath(field, alpha / 6, Random.for_field(field, kind, seed=11))
    even = parity(lattice.extents) == 0
    links = field.to_numpy()[..., 0, :, :][even]
    a0 = links[:, 0, 0].real
    assert a0.size > 1e5
    assert a0_pvalue(a0, alpha) > 1e-3
    # The other components are isotropic.
    vector = np.stack([links[:, 0, 1].imag, links[:, 0, 1].real, links[:, 0, 0].imag])
    unit = vector / np.linalg.norm(vector, axis=0)
    assert np.abs(unit.mean(axis=1)).max() < 4 / np.sqrt(3 * a0.size)
    assert np.abs(unit @ unit.T / a0.size - np.eye(3) / 3).max() < 4 * 0.3 / np.sqrt(a0.size)


def test_su3_heatbath_distribution(precision, best_device, rng):
    """The last subgroup's quaternion follows its distribution at the alpha of every link."""
    lattice = Lattice(16, 16, 16, 16)
    links = random_field(lattice.extents, "su3", rng)
    field = Field.load(lattice, "su3", links, precision, best_device)
    heatbath(field, 6.0, Random.for_field(field, seed=12))
    after = field.to_numpy()
    # Direction t, odd parity was updated last: its staples are still the ones it saw.
    odd = parity(lattice.extents) == 1
    w = (after[..., 3, :, :] @ staple(after, 3))[odd]
    q = reference.quaternion(w, 1, 2)
    k = np.linalg.norm(q, axis=-1)
    assert a0_pvalue(q[:, 0] / k, 2 * 6.0 / 3 * k) > 1e-3


def test_where_staples_cancel_links_are_haar_distributed(group, precision, best_device, rng):
    lattice = Lattice(8, 8, 8, 8)
    links = random_field(lattice.extents, group, rng)
    links[..., 1:, :, :] = 0  # so the staples of the links along x, which are updated first, are 0
    field = Field.load(lattice, group, links, precision, best_device)
    heatbath(field, 2.0, Random.for_field(field))
    updated = field.to_numpy()[..., 0, :, :]
    assert unitarity_violation(updated) < (1e-6 if precision == "single" else 1e-13)
    traces = np.trace(updated, axis1=-2, axis2=-1).ravel()
    assert abs(np.mean(np.abs(traces) ** 2) - 1) < 4.5 / np.sqrt(traces.size)
    overlap = np.trace(updated @ dagger(links[..., 0, :, :]), axis1=-2, axis2=-1)
    assert abs(overlap.mean()) < 4.5 / np.sqrt(traces.size)


def test_links_stay_in_the_group(group, precision, best_device):
    field = Field.hot(Lattice(8, 8, 8, 8), group, precision, best_device)
    random = Random.for_field(field)
    for _ in range(20):
        heatbath(field, 6.0, random, sweeps=5)
        overrelax(field, sweeps=5)
    assert unitarity_violation(field.to_numpy()) < (1e-6 if precision == "single" else 1e-14)


@pytest.mark.parametrize("kind", ["philox", "lcg", "ranlux"])
def test_same_bits_for_any_threads_and_lanes(kind, group, precision):
    lattice = Lattice(8, 8, 8, 6)

    def chain(threads, lanes):
        device = CpuDevice(threads, lanes)
        field = Field.hot(lattice, group, precision, device, seed=4)
        heatbath(field, 5.0, Random.for_field(field, kind, seed=5), sweeps=3)
        overrelax(field, sweeps=2)
        return np.stack(list(field.stored())), plaquette(field).mean

    links, mean = chain(1, 16)
    for threads in (2, 3, 5):
        same, same_mean = chain(threads, 16)
        assert np.array_equal(links, same)
        assert mean == same_mean
    for lanes in (2, 4, 8):
        assert np.array_equal(links, chain(2, lanes)[0])
    # What is no vector, a compiler may round in another order.
    assert np.abs(links - chain(2, 1)[0]).max() < (1e-3 if precision == "single" else 1e-11)


@pytest.mark.parametrize("extent", [2, 4, 6, 16])
@pytest.mark.parametrize(("slices", "wave"), [(0, None), (1.2, (2, 2)), (3, (4, 5)), (7, (4, 16))])
def test_waves_of_updates_do_not_change_a_bit(group, extent, slices, wave):
    """A cache of so many time slices makes so many updates follow each other, in planes of z."""
    lattice = Lattice(4, 4, 16, extent)

    def chain(cache_slices):
        device = CpuDevice(2, lanes=1)
        device.cache_bytes = 0
        field = Field.hot(lattice, group, "single", device, seed=2)
        device.cache_bytes = int(cache_slices * field.slabs[0].slice_bytes)
        if cache_slices and 2 * extent > cache_slices:
            order = sweep_order(field.slabs[0])
            assert [bytes(w) for w in order] == [
                bytes(w) for w in sweep_order(field.slabs[0], Wave(*wave))
            ]
        heatbath(field, 4.0, Random.for_field(field, "lcg", seed=3), sweeps=2)
        overrelax(field, sweeps=2)
        return field.to_numpy()

    assert np.array_equal(chain(slices), chain(0))


@pytest.mark.parametrize(("planes", "slices"), [(2, 2), (4, 6), (10, 4), (16, 16)])
@pytest.mark.parametrize("together", [1, 2, 4, 8])
def test_updates_in_a_wave_find_their_neighbours_as_they_want_them(planes, slices, together):
    slab = Field.cold(Lattice(2, 2, planes, slices), "su2", "single", CpuDevice(1, 1)).slabs[0]
    near = list(itertools.product((-1, 0, 1), repeat=2))
    for thick in range(1, planes + 1):
        done = np.zeros((slices, planes), int)
        for work in sweep_order(slab, Wave(together, thick)):
            update = CHECKERBOARD.index((work.mu, work.parity))
            t, (first, count) = work.t_begin, (work.first_slot // 2, work.slots // 2)
            for z in range(first, first + count):
                assert done[t, z] == update
                around = [done[(t + dt) % slices, (z + dz) % planes] for dt, dz in near]
                assert {update, update + 1} >= set(around)
            done[t, first : first + count] += 1
        assert np.all(done == len(CHECKERBOARD))


@pytest.mark.gpu
def test_cpu_and_gpu_agree(group, gpu, rng):
    lattice = Lattice(8, 8, 4, 6)
    links = random_field(lattice.extents, group, rng)
    results = []
    for device in (CpuDevice(), gpu):
        field = Field.load(lattice, group, links, "double", device)
        heatbath(field, 6.0, Random.for_field(field, seed=8))
        overrelax(field)
        results.append(field.to_numpy())
    assert np.abs(results[0] - results[1]).max() < 1e-12


@pytest.mark.gpu
def test_one_launch_a_sweep_equals_one_a_step(group, precision, gpu):
    def chain(sweep_launches):
        field = Field.hot(Lattice(8, 8, 8, 6), group, precision, gpu, seed=2)
        if not sweep_launches:
            for name in ("heatbath", "overrelaxation"):
                field.slabs[0].kernel(name)._sweep = None
        heatbath(field, 4.0, Random.for_field(field, seed=3), sweeps=20)
        overrelax(field, sweeps=20)
        return field.to_numpy()

    assert all(
        gpu.kernel(
            name, Field.cold(Lattice(4, 4, 4, 4), group, precision, gpu).slabs[0].variant()
        )._sweep
        for name in ("heatbath", "overrelaxation")
    )
    assert np.array_equal(chain(True), chain(False))


@pytest.mark.gpu
def test_blocks_do_not_wait_for_each_other_beside_other_processes(gpu, monkeypatch, tmp_path):
    variant = Field.cold(Lattice(4, 4, 4, 4), "su2", "single", gpu).slabs[0].variant()
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    assert CudaDevice(gpu.ordinal).kernel("overrelaxation", variant)._sweep
    (tmp_path / "control").touch()
    assert not CudaDevice(gpu.ordinal).kernel("overrelaxation", variant)._sweep


@pytest.mark.parametrize("beta", [0.0, -1.0, float("nan"), float("inf")])
def test_beta_must_be_positive(beta):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", device=CpuDevice(1))
    with pytest.raises(UsageError, match="must be positive"):
        heatbath(field, beta, Random.for_field(field))

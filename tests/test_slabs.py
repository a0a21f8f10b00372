"""One lattice over several devices: the same bits as on one."""

import itertools

import numpy as np
import pytest

from gauge_mc.devices.cpu import CpuDevice
from gauge_mc.devices.cuda import CudaDevice, gpu_count
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.observables.plaquette import plaquette
from gauge_mc.observables.polyakov import polyakov_loop
from gauge_mc.observables.wilson import PATHS, WilsonLoops
from gauge_mc.random import KINDS, Random
from gauge_mc.ring import Ring
from gauge_mc.smearing import Ape
from gauge_mc.updates import heatbath, overrelax
from gauge_mc.waves import CHECKERBOARD, Wave, slab_order

LATTICE = Lattice(4, 8, 4, 12)
DIVISIONS = [(12,), (6, 6), (2, 10), (4, 3, 5), (2, 2, 2, 6)]


def ring_of(kind, slices):
    """Make a ring of devices of a kind: different GPUs where there are as many."""
    if kind.startswith("cpu"):
        devices = tuple(CpuDevice(1, int(kind[4:].rstrip("w")), len(slices) > 1) for _ in slices)
        for device in devices:
            device.cache_bytes = 100_000 if kind.endswith("w") else 2**30
        return Ring(devices, slices=slices)
    try:
        count = gpu_count()
        gpus = tuple(CudaDevice(n % count) for n in range(len(slices)))
        for gpu in gpus if kind.endswith("sent") else ():
            gpu.stores_in = lambda other: False
        return Ring(gpus, slices=slices)
    except GaugeError as error:
        pytest.skip(str(error))


GPUS = [pytest.param(kind, marks=pytest.mark.gpu) for kind in ("cuda", "cuda-sent")]


@pytest.fixture(params=["cpu-1", "cpu-1w", "cpu-16", *GPUS])
def rings(request):
    """Rings that divide the lattice in several ways; the first has one device.

    GPUs store what others have copies of there, or send it.
    """
    return [ring_of(request.param, slices) for slices in DIVISIONS]


def bits(field):
    return np.stack(list(field.stored()))


def same(results):
    """Compare arrays, or tuples of arrays, bit for bit."""
    first, *others = results
    for other in others:
        for one, another in zip(first, other, strict=True):
            np.testing.assert_array_equal(another, one)


@pytest.mark.parametrize("kind", KINDS)
def test_updates_and_observables(rings, group, precision, kind):
    def chain(ring):
        field = Field.hot(LATTICE, group, precision, ring, seed=4)
        random = Random.for_field(field, kind, seed=5)
        overrelax(field)
        heatbath(field, 2.5, random, sweeps=2)
        overrelax(field, sweeps=3)
        found = plaquette(field)
        averages = (found.spatial, found.temporal, polyakov_loop(field))
        return bits(field), averages, random.numbers(2), list(random.stored())

    same([chain(ring) for ring in rings])


@pytest.mark.parametrize("dims", [3, 4])
def test_smearing_and_wilson_loops(rings, group, precision, dims):
    def measured(ring):
        field = Field.hot(LATTICE, group, precision, ring, seed=4)
        other = Field.empty(LATTICE, group, precision, ring)
        ape = Ape(0.2, dims)
        ape(field, other)
        loops = WilsonLoops(field, 2, 6, PATHS if dims == 3 else PATHS[:1], ape, (0, 2))
        return bits(other), *(found for _, _, found in loops(field))

    same([measured(ring) for ring in rings])


def test_links_go_in_and_out(rings, group):
    whole = Field.hot(LATTICE, group, "double", rings[0], seed=1)
    for ring in rings:
        field = Field.load(LATTICE, group, whole.slices(), "double", ring)
        assert np.array_equal(bits(field), bits(whole))
        assert plaquette(field) == plaquette(whole)


def test_copies_are_what_they_copy(rings, group):
    field = Field.empty(LATTICE, group, "single", rings[3], above=5)
    words = np.arange(LATTICE.t, dtype=np.float32)
    x, y, z, t = LATTICE.extents
    field.restore(
        iter(
            np.broadcast_to(
                words[:, None, None, None, None, None], (t, z, y, x, 4, field.components)
            )
        )
    )
    for nearest, held in ((True, 1), (False, 5)):
        field.exchange(nearest)
        for slab in field.slabs:
            nbytes, layout = slab.slice_bytes, slab.layout
            slices = np.stack(
                [slab.device.read(slab.buffer, n * nbytes, nbytes) for n in range(layout.stored)]
            )
            found = slices.view(np.float32)
            assert np.all(found == found[:, :1])
            times = found[:, 0]
            own = np.arange(layout.first, layout.first + layout.slices + held) % t
            assert np.array_equal(times[: own.size], own)
            assert times[-1] == (layout.first - 1) % t


@pytest.mark.parametrize("slices", [2, 4, 9, 12])
@pytest.mark.parametrize("together", [1, 2, 4])
@pytest.mark.parametrize("thick", [1, 3, 6])
def test_waves_find_slices_and_copies_as_they_want_them(slices, together, thick):
    planes, total = 6, slices + slices % 2 + 2
    ring = Ring(tuple(CpuDevice(1, 1) for _ in range(2)), slices=(slices, total - slices))
    field = Field.cold(Lattice(2, 2, planes, total), "su2", "single", ring)
    orders = [slab_order(slab, Wave(together, thick)) for slab in field.slabs]
    done = [np.zeros((slab.layout.slices, planes), int) for slab in field.slabs]
    for update in range(len(CHECKERBOARD)):
        for own, order in zip(done, orders, strict=True):
            # Copies have had the updates before, since every one is exchanged.
            known = np.pad(own, ((1, 1), (0, 0)), constant_values=update)
            for work in order[update]:
                one = CHECKERBOARD.index((work.mu, work.parity))
                t, count = work.t_begin, work.slots // 2 or planes
                for z in range(work.first_slot // 2, work.first_slot // 2 + count):
                    assert known[t + 1, z] == one
                    near = known[t : t + 3, [z - 1, z, (z + 1) % planes]]
                    assert {one, one + 1} >= set(near.flat)
                known[t + 1, work.first_slot // 2 : work.first_slot // 2 + count] += 1
            own[:] = known[1:-1]
            assert set(own[0]) == set(own[-1]) == {update + 1}
    assert all(np.all(own == len(CHECKERBOARD)) for own in done)


def test_divisions():
    devices = tuple(CpuDevice(1) for _ in range(3))
    for extent, count in itertools.product(range(2, 40, 2), range(1, 4)):
        lattice = Lattice(2, 2, 2, extent)
        ring = Ring(devices[:count])
        if extent < 2 * count:
            with pytest.raises(UsageError, match="use at most"):
                ring.slabs(lattice)
            continue
        slabs = ring.slabs(lattice)
        assert [t for slab in slabs for t in slab] == list(range(extent))
        sizes = [len(slab) for slab in slabs]
        assert len(slabs) == count
        assert max(sizes) - min(sizes) <= 2
    for slices in ((6, 6), (1, 5, 6), (4, 4, 6)):
        with pytest.raises(UsageError, match="do not make the lattice"):
            Ring(devices, slices=slices).slabs(LATTICE)
    with pytest.raises(GaugeError, match="processors of one kind"):
        Ring((CpuDevice(1, 1), CpuDevice(1, 4)))

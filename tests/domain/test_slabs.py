"""Lattices, halos, and one lattice over several devices: the same bits as on one."""

from dataclasses import replace

import numpy as np
import pytest

from gauge_mc.domain.lattice import PATHS, Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.gradient_flow import GradientFlow, field_strength, improved_charge
from gauge_mc.fields.random_field import Random
from gauge_mc.flows import FLOWS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.quantities.plaquette import Plaquette, plaquette
from gauge_mc.quantities.polyakov.observables import (
    PolyakovCorrelators,
    polyakov_correlators,
    polyakov_loop,
)
from gauge_mc.quantities.potential.loops import LoopMeasurer
from gauge_mc.quantities.potential.observables import WilsonLoops
from gauge_mc.random import GENERATORS
from gauge_mc.smearing import SmearingSequence
from gauge_mc.smearing.kinds import Ape, Hyp, Stout
from gauge_mc.temporal_links import make_temporal_links
from gauge_mc.updates.heatbath import heatbath, overrelax
from tests.domain.conftest import GPUS, LATTICE, open_group


def bits(field):
    return np.stack(list(field.packed_slices()))


def assert_same_bits(results):
    """Compare tuples of arrays, bit for bit."""
    first, *others = results
    for other in others:
        for one, another in zip(first, other, strict=True):
            np.testing.assert_array_equal(another, one)


@pytest.mark.longer
@pytest.mark.parametrize(
    "generator",
    [pytest.param(one, marks=() if one == "philox" else pytest.mark.slow) for one in GENERATORS],
)
def test_updates_and_observables(device_groups, group, precision, generator):
    def chain(devices):
        field = Field.hot(LATTICE, group, precision, devices, seed=4)
        random = Random.for_field(field, generator, seed=5)
        overrelax(field)
        heatbath(field, 2.5, random, sweeps=2)
        overrelax(field, sweeps=3)
        averages = (*Plaquette().measure(field), polyakov_loop(field))
        return bits(field), averages, random.numbers(2), list(random.packed_slices())

    assert_same_bits([chain(devices) for devices in device_groups])


@pytest.mark.longer
@pytest.mark.parametrize(
    ("action", "precision", "generator"),
    [
        ("iwasaki", "double", "philox"),
        pytest.param("iwasaki", "single", "ranlux", marks=pytest.mark.slow),
        pytest.param("rectangle:0.05", "single", "ranlux", marks=pytest.mark.slow),
    ],
)
def test_updates_with_rectangles(device_groups, action, precision, generator):
    """Also where an action with smaller halos has been at work before."""

    def chain(devices):
        field = Field.hot(LATTICE, "su3", precision, devices, seed=4)
        random = Random.for_field(field, generator, seed=5)
        for _ in range(2):
            heatbath(field, 5.7, random)
            heatbath(field, 2.6, random, action=action)
            overrelax(field, 2, action=action)
        return bits(field), list(random.packed_slices())

    assert_same_bits([chain(devices) for devices in device_groups])


@pytest.mark.longer
@pytest.mark.parametrize("dims", [3, 4])
def test_smearing_and_wilson_loops(device_groups, group, precision, dims):
    def measured(devices):
        field = Field.hot(LATTICE, group, precision, devices, seed=4)
        smeared = Field.empty(LATTICE, group, precision, devices)
        ape = Ape(0.2, dims)
        ape(field, smeared)
        loops = WilsonLoops(LATTICE, 2, 6, PATHS if dims == 3 else PATHS[:1], ape, (0, 2))
        found = list(LoopMeasurer(loops, field)(field))
        assert len(found) == 2 * len(loops.paths)
        if dims == 3:
            pairs = replace(loops, correlations=True, orderings="blocks")
            found += LoopMeasurer(pairs, field)(field)
            assert len(found) == 5 * len(loops.paths)
        return bits(smeared), *(values for _, _, values in found)

    assert_same_bits([measured(devices) for devices in device_groups])


@pytest.mark.longer
@pytest.mark.parametrize(
    ("chain", "temporal"),
    [
        ((Hyp(exclude="none"), Stout(exclude="none")), "none"),
        ((Hyp(), Stout(0.1)), "hyp2"),
        pytest.param((Ape(0.2, 4), Hyp(exclude="x")), "hyp1", marks=pytest.mark.slow),
    ],
)
def test_chains_of_smearings_and_static_sources(device_groups, group, precision, chain, temporal):
    def measured(devices):
        field = Field.hot(LATTICE, group, precision, devices, seed=4)
        smeared = [Field.empty(LATTICE, group, precision, devices) for _ in chain]
        before = field
        for smearing, target in zip(chain, smeared, strict=True):
            smearing(before, target)
            before = target
        smearing, links = (
            SmearingSequence(tuple((one, 1) for one in chain)),
            make_temporal_links(temporal),
        )
        loops = WilsonLoops(LATTICE, 2, 6, PATHS[:2], smearing, (0, 1, 2), links)
        found = list(LoopMeasurer(loops, field)(field))
        assert len(found) == 3 * len(loops.paths)
        return *map(bits, smeared), *(values for _, _, values in found)

    assert_same_bits([measured(devices) for devices in device_groups])


def test_polyakov_correlators(device_groups, group, precision):
    def measured(devices):
        field = Field.hot(LATTICE, group, precision, devices, seed=4)
        return (polyakov_correlators(PolyakovCorrelators(LATTICE, 2, PATHS), field),)

    assert_same_bits([measured(devices) for devices in device_groups])


@pytest.mark.longer
@pytest.mark.parametrize(("multilevel", "multihit"), [("1,3", False), ("2,2/1,3", True)])
@pytest.mark.parametrize("kind", ["polyakov-correlators", "wilson-loops"])
def test_multilevel_averages(device_groups, group, precision, kind, multilevel, multihit):
    """The divisions whose slabs of slices fit on devices."""
    noise = {"multilevel": multilevel, "multihit": multihit, "beta": 2.5}
    loops = {"iterations": "0,1", "t_max": 6} if kind == "wilson-loops" else {}
    observable = OBSERVABLES[kind].for_lattice(LATTICE, off_axis=True, **noise, **loops)

    def measured(devices):
        field = Field.hot(LATTICE, group, precision, devices, seed=4)
        measure = observable.measurer(field)
        return [(np.array([record[-1] for record in measure(field)]),) for _ in range(2)]

    thickness = observable.noise.thickness
    fitting = [one for one in device_groups if not any(n % thickness for n in one.slices)]
    assert_same_bits([values for devices in fitting for values in measured(devices)])
    for devices in device_groups:
        if devices not in fitting:
            with pytest.raises(UsageError, match="do not fit a device with the slices"):
                measured(devices)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
@pytest.mark.parametrize("multilevel", [None, "2,2/1,3"])
@pytest.mark.parametrize("name", ["polyakov-correlators", "wilson-loops"])
def test_multihit_of_larger_groups(kind, name, multilevel):
    lattice = Lattice(4, 4, 4, 8)
    noise = {"multilevel": multilevel, "multihit": True, "beta": 11.0}
    observable = OBSERVABLES[name].for_lattice(lattice, off_axis=True, **noise)

    def measured(slices):
        field = Field.hot(lattice, "su4", "single", open_group(kind, slices), seed=4)
        return (np.array([record[-1] for record in observable.measurer(field)(field)]),)

    whole, *divided = (measured(slices) for slices in ((8,), (4, 4), (2, 2, 4)))
    assert whole[0].size
    assert whole[0].all()
    assert_same_bits([whole, *divided])


def test_links_go_in_and_out(device_groups, group):
    whole = Field.hot(LATTICE, group, "double", device_groups[0], seed=1)
    for devices in device_groups:
        field = Field.from_slices(LATTICE, group, whole.slices(), "double", devices)
        assert np.array_equal(bits(field), bits(whole))
        assert plaquette(field) == plaquette(whole)


@pytest.mark.longer
@pytest.mark.parametrize(
    "kind", ["wilson", pytest.param("symanzik", marks=pytest.mark.slow), "zeuthen"]
)
def test_gradient_flow(device_groups, group, precision, kind):
    def measured(devices):
        field = Field.hot(LATTICE, group, precision, devices, seed=4)
        flow = GradientFlow(FLOWS[kind], field, adaptive=True)
        flow.start(field)
        flow.advance(0.1, 0.05)
        flow.advance(0.2, 0.05, 1e-3)
        flow.field.exchange_halo(depth=None)
        found = field_strength(flow.field)
        links = bits(flow.field)
        improved = improved_charge(flow.field, flow.spare, found.charge)
        return links, found.plaquette, found.clover, found.charge, found.largest, improved

    assert_same_bits([measured(devices) for devices in device_groups])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("planar-loops", {}),
        ("polyakov-planes", {}),
        ("thermal-flow", {"to": 0.1}),
        ("field-correlators", {"to": 0.1}),
    ],
)
def test_records(device_groups, group, name, options):
    observable = OBSERVABLES[name].for_lattice(LATTICE, **options)
    found = []
    for devices in device_groups:
        field = Field.hot(LATTICE, group, "single", devices, seed=2)
        found.append(observable.measurer(field)(field))
    assert len(found[0]) == observable.records > 0
    assert all(one == found[0] for one in found)


def numbered_slices(components):
    """Return slices whose links are all the number of the slice."""
    x, y, z, t = LATTICE.extents
    numbers = np.arange(t, dtype=np.float32).reshape(t, 1, 1, 1, 1, 1)
    return iter(np.broadcast_to(numbers, (t, z, y, x, 4, components)))


def test_halos_are_copies_of_the_neighbours_slices(device_groups, group):
    field = Field.empty(LATTICE, group, "single", device_groups[3], above=5, below=2)
    field.restore(numbered_slices(field.group.components))
    for depth, above, below in ((1, 1, 1), (2, 2, 2), (3, 3, 2), (None, 5, 2)):
        field.exchange_halo(depth)
        for slab in field.slabs:
            nbytes, layout = slab.slice_bytes, slab.layout
            places = range(layout.slices_in_memory)
            slices = [slab.device.read(slab.buffer, n * nbytes, nbytes) for n in places]
            found = np.stack(slices).view(np.float32)
            assert np.all(found == found[:, :1])
            times = found[:, 0]
            known = np.arange(layout.first, layout.first + layout.slices + above) % LATTICE.t
            assert np.array_equal(times[: known.size], known)
            before = np.arange(layout.first - below, layout.first) % LATTICE.t
            assert np.array_equal(times[-below:], before)


def test_a_lattice_is_read():
    lattice = Lattice.parse("24x16X8x32")
    assert lattice.extents == (24, 16, 8, 32)
    assert str(lattice) == "24x16x8x32"
    assert Lattice.parse("16") == Lattice(16, 16, 16, 16)
    assert (lattice.slice_sites, lattice.sites, lattice.links) == (3072, 98304, 393216)


@pytest.mark.parametrize(
    "text",
    [
        *["3x4x4x4", "4x4x4x0", "4x4", "4x4x4x4x4", "ax4x4x4", "4x4x4x-2", "1_6", "+4", "４x4x4x4"],
        5000 * "8",
    ],
)
def test_wrong_lattices_are_refused(text):
    with pytest.raises(UsageError):
        Lattice.parse(text)


def test_a_lattice_with_too_many_sites_is_refused():
    assert Lattice(256, 256, 256, 254).sites < 2**32
    with pytest.raises(UsageError, match=r"fewer than 4294967296 \(2\^32\) sites"):
        Lattice(256, 256, 256, 256)

"""Kernels store to their own site only: what the compilation refuses, and what is found later."""

import numpy as np
import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.devices.source import store_elsewhere
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.groups import GROUPS
from tests.emulator.own_sites import own_sites_only
from tests.reference.fields import random_field

LATTICE = Lattice(4, 4, 4, 4)

MOVED = """
#include "arch/launch.h"
#include "group/group.h"

struct Arguments {{
    Geometry geometry;
    Work work;
    GROUP::Field source, target;
}};

INLINE void moved_site(const Arguments& a, const Site& site) {{
    typedef GROUP::Field Field;
    const Geometry& g = a.geometry;
    for (int mu = 0; mu < 4; mu++) {{
        const Offset o = Field::step(g, site, 0, {forward});
        const packet_index here = Field::place(g, site) + Field::direction(g, site.parity, mu);
        {statements}
    }}
}}

SITE_KERNEL(moved, moved_site)
"""
"""A kernel that moves the links by one site along x."""

DISTANT = "Field::place(g, site) + Field::direction(g, 1 - site.parity, mu)"

LOADED = (
    f"GROUP::store(a.target, g, here, GROUP::load(a.source, g, {DISTANT} + o.packets, o.crossing));"
)
"""Right: every site takes the links of its neighbour."""

STORED = [
    f"GROUP::store(a.target, g, {DISTANT} + o.packets, GROUP::load(a.source, g, here));",
    f"const packet_index to = {DISTANT} + o.packets;"
    "GROUP::store(a.target, g, to, GROUP::load(a.source, g, here));",
    f"packet_index to = {DISTANT}; to += Field::step(g, site, 0, true).packets;"
    "const packet_index there = to;"
    "GROUP::store<true>(a.target, g, there, GROUP::load(a.source, g, here));",
    f"real c[GROUP::Field::PACKETS * COMPONENTS_PER_PACKET]; a.source.read(g, here, 0, c);"
    f"const packet_index to = {DISTANT} + o.packets; a.target.write(g, to, c);",
]
"""Wrong: every site stores its links at its neighbour."""


def moved(folder, statements, forward=True):
    """Write the kernel."""
    text = MOVED.format(forward=str(forward).lower(), statements=statements)
    (folder / "moved.cu").write_text(text)
    return Kernel("moved", folder)


@pytest.mark.parametrize("statements", STORED, ids=["call", "name", "names", "write"])
def test_a_store_to_a_neighbour_is_refused(statements, tmp_path):
    sentence = r"kernel 'moved' stores to the site of a neighbour \(.*moved.cu: '.*(store|write)"
    with pytest.raises(GaugeError, match=sentence):
        moved(tmp_path, statements).translation_unit(Variant("single", GROUPS["su2"].choices))


def test_what_loads_from_neighbours_is_not(tmp_path):
    path = moved(tmp_path, f"const packet_index to = here; {LOADED}").source
    assert store_elsewhere(path) is None
    again = f"packet_index at = {DISTANT} + o.packets; at = here; a.target.write(g, at, c);"
    (tmp_path / "again").mkdir()
    assert store_elsewhere(moved(tmp_path / "again", again).source) is None


HIDDEN = (
    f"auto at = [&](const Offset& by) {{ return {DISTANT} + (by.packets); }};"
    "GROUP::store(a.target, g, at(o), GROUP::load(a.source, g, here));"
)
"""The same, as the compilation does not see it."""


def run(kernel, links, lanes=None):
    """Return what the kernel makes of links."""
    device = CpuDevice(threads=1, lanes=lanes)
    field = Field.from_slices(LATTICE, "su2", links, "single", device)
    target = Field.cold(LATTICE, "su2", "single", device)
    (slab,), (other,) = field.slabs, target.slabs
    slab.launch(kernel, slab.whole(), source=slab.buffer.address, target=other.buffer.address)
    return target.to_numpy()


@pytest.mark.slow
def test_one_slot_after_the_other_finds_what_the_compilation_does_not_see(tmp_path, rng):
    """It is right with one lane, and wrong with several."""
    links = random_field(LATTICE.extents, "su2", rng)
    kernel, expected = moved(tmp_path, HIDDEN), np.roll(links, 1, axis=3)
    np.testing.assert_allclose(run(kernel, links, lanes=1), expected, atol=1e-6)
    assert np.abs(run(kernel, links) - expected).max() > 0.1
    for lanes in (1, None):
        with own_sites_only(), pytest.raises(AssertionError, match="moved stores to other sites"):
            run(kernel, links, lanes)


def test_one_slot_after_the_other_gives_the_same(tmp_path, rng):
    links = random_field(LATTICE.extents, "su2", rng)
    kernel = moved(tmp_path, LOADED, forward=False)
    with own_sites_only():
        found = run(kernel, links)
    np.testing.assert_array_equal(found, run(kernel, links))
    np.testing.assert_allclose(found, np.roll(links, 1, axis=3), atol=1e-6)

"""Links that pass through memory: NumPy does what kernels do."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from gauge_mc.configurations.window import DeviceWindow, HostWindow
from gauge_mc.devices.choice import open_host
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.file_links import TOLERANCE
from gauge_mc.formats.programs import BY_ODD_SITE
from gauge_mc.groups import GROUPS
from gauge_mc.storage import links as host_links
from gauge_mc.storage.links import BY_SITE, ROTATED_WORDS, SITE_CRC, WORD_SUM, StoredLinks
from tests.reference.fields import random_field

LATTICE = Lattice(4, 6, 2, 4)
SUMS = (frozenset({WORD_SUM, SITE_CRC}), frozenset({ROTATED_WORDS}))
ORDERS = (BY_SITE, BY_ODD_SITE)
EPSILON = {"4": 2**-23, "8": 2**-52}
"""Relative accuracy of reals, by their size."""


def blocks_of(group, seed=3):
    links = random_field(LATTICE.extents, group, np.random.default_rng(seed))
    return [one.reshape(-1).view(np.uint8) for one in np.ascontiguousarray(links, complex)]


def passed(window, blocks):
    """Return the blocks that a window makes, in order."""
    found = {t: block.copy() if block is not None else None for t, block in window.read(blocks)}
    return [found[t] for t in range(LATTICE.t)]


def forms(group, dtype):
    """Return all ways to store links."""
    whole = StoredLinks(LATTICE, GROUPS[group], dtype)
    for order, checksums in product(ORDERS, SUMS):
        yield replace(whole, order=order, checksums=checksums)
    yield replace(whole, rows=whole.group.colours - 1, checksums=SUMS[0])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["<f4", ">f8"])
@pytest.mark.parametrize(
    "group", ["su3", *(pytest.param(f"su{n}", marks=pytest.mark.slow) for n in (2, 4, 5, 6, 7, 8))]
)
def test_numpy_does_what_kernels_do(group, dtype):
    device = open_host()
    memory = StoredLinks(LATTICE, GROUPS[group], "<f8")
    for form in forms(group, dtype):
        pair = DeviceWindow(memory, "double", device, form), HostWindow(memory, form)
        one, other = (passed(window, blocks_of(group)) for window in pair)
        assert all(map(np.array_equal, one, other))
        if form.order is BY_SITE:
            for name in form.checksums:
                assert getattr(pair[0].written, name) == getattr(pair[1].written, name)

        pair = DeviceWindow(form, "double", device, memory), HostWindow(form, memory)
        back = [np.concatenate(passed(window, one)).view(np.float64) for window in pair]
        # A row that follows from others: N^2 roundings of numbers, which are orthogonal in theirs.
        allowed = GROUPS[group].colours ** 2 * EPSILON[dtype[-1]] if form.rows else 0
        np.testing.assert_allclose(*back, rtol=0, atol=allowed)
        for name in form.checksums:
            one, other = (getattr(window.found.checksums, name) for window in pair)
            assert one == other
        assert pair[0].found.bad is pair[1].found.bad is None
        for name in ("spatial", "temporal", "link_trace"):
            values = [getattr(window.averages, name) for window in pair]
            assert values[0] == pytest.approx(values[1], rel=0, abs=4 * EPSILON[dtype[-1]])


@pytest.mark.parametrize("wrong", [1.01, np.nan, np.inf])
def test_the_same_link_is_outside_of_the_group(wrong):
    stored = StoredLinks(LATTICE, GROUPS["su3"], "<f8")
    for t, place in ((2, 5), (0, -3), (3, 3431)):  # an element of a row and of the last row
        blocks = blocks_of("su3")
        blocks[t].view(np.float64)[place] *= wrong
        pair = DeviceWindow(stored, "double", open_host()), HostWindow(stored)
        for window in pair:
            passed(window, blocks)
        link = (t, place % 3456 // 18)
        assert [window.found.bad for window in pair] == [link] * 2
        assert [window.bad(t) for window in pair] == [link] * 2
        one, other = (window.found.deviation for window in pair)
        assert one == pytest.approx(other, rel=1e-6, abs=1e-14)
        assert [window.bad((t + 1) % 4) for window in pair] == [None, None]


@pytest.mark.parametrize("colours", range(2, 9))
def test_the_last_row_follows_from_the_others(colours):
    links = random_field((2, 2, 2, 2), f"su{colours}", np.random.default_rng(5))
    matrices = links.reshape(-1, colours, colours)
    np.testing.assert_allclose(
        host_links.last_row(matrices[:, :-1]), matrices[:, -1:], rtol=0, atol=1e-14
    )
    assert host_links.deviations(matrices).max() < 1e-13
    turned = matrices.copy()
    turned[7] *= np.exp(0.001j)  # in U(N), not in SU(N)
    assert np.flatnonzero(host_links.deviations(turned) > TOLERANCE).tolist() == [7]


@pytest.mark.parametrize("group", ["su2", "su3", "su5"])
def test_averages_do_not_need_even_extents(group):
    """Those of a lattice are those of two copies of it, one after the other."""
    n = GROUPS[group].colours
    for axis in range(4):
        shape = [4, 2, 6, 2]
        shape[axis] = 3
        links = random_field(tuple(shape), group, np.random.default_rng(6))
        twice = np.concatenate([links, links], axis=3 - axis)
        found = []
        for one in (links, twice):
            t, z, y, x = one.shape[:4]
            slices = one.reshape(t, -1, n, n)
            sums = (
                host_links.trace_sums((x, y, z), slices[i], slices[(i + 1) % t]) for i in range(t)
            )
            found.append(sum(sums) / (x * y * z * t))
        np.testing.assert_allclose(*found, rtol=0, atol=1e-13)

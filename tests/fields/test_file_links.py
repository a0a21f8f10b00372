"""Links in the bytes of files: the kernels against NumPy, on all machines, orders and types."""

import zlib
from dataclasses import replace

import numpy as np
import pytest

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.fields.file_links import FieldBlocks, read_blocks
from gauge_mc.formats.programs import BY_ODD_SITE
from gauge_mc.groups import GROUPS
from gauge_mc.storage.links import (
    BY_SITE,
    ROTATED_WORDS,
    SITE_CRC,
    WORD_SUM,
    Checksums,
    FileOrder,
    StoredLinks,
)
from tests.reference.fields import random_field

pytestmark = pytest.mark.kernels

LATTICE = Lattice(8, 4, 6, 10)
ALL = frozenset({WORD_SUM, SITE_CRC, ROTATED_WORDS})


def rotated(words, periods=(29, 31)):
    """The words rotated by their number modulo a period, combined by exclusive or."""
    found = []
    for period in periods:
        result = 0
        for number, word in enumerate(words):
            turns = number % period
            result ^= (word << turns | word >> (32 - turns)) & 0xFFFFFFFF
        found.append(result)
    return tuple(found)


def checksums(data, dtype, site_bytes):
    """The checksums of all bytes."""
    words = data.view(dtype[0] + "u4").astype(np.uint64).tolist()
    raw = data.tobytes()
    sites = [zlib.crc32(raw[i : i + site_bytes]) for i in range(0, len(raw), site_bytes)]
    return sum(words) & 0xFFFFFFFF, rotated(sites), rotated(words)


def field_and_links(group, precision, device):
    links = random_field(LATTICE.extents, group, np.random.default_rng(3))
    field = Field.from_slices(LATTICE, group, links, precision, device)
    return field, links


def tolerance(*precisions):
    return 1e-6 if "single" in precisions else 1e-14


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8"])
def test_blocks_are_the_links_in_order(group, precision, device, dtype):
    field, links = field_and_links(group, precision, device)
    stored = StoredLinks(LATTICE, field.group, dtype, checksums=frozenset({WORD_SUM}))
    found = np.concatenate(list(FieldBlocks(field, stored).blocks()))
    reals = found.view(dtype).astype(np.float64)
    allowed = tolerance(precision, stored.precision)
    np.testing.assert_allclose(reals, links.view(np.float64).ravel(), rtol=0, atol=allowed)


@pytest.mark.parametrize("dtype", [">f4", "<f8"])
@pytest.mark.parametrize("checksum", sorted(ALL))
def test_checksums_are_those_of_the_bytes(group, precision, device, dtype, checksum):
    field, _ = field_and_links(group, precision, device)
    stored = StoredLinks(LATTICE, field.group, dtype, checksums=frozenset({checksum}))
    writing = FieldBlocks(field, stored)
    blocks = list(writing.blocks())
    total, sites, words = checksums(np.concatenate(blocks), dtype, stored.site_bytes)
    expected = Checksums(total, sites, words)
    copy = Field.empty(LATTICE, group, precision, device)
    for found in (writing.found, read_blocks(copy, stored, blocks)):
        assert getattr(found.checksums, checksum) == getattr(expected, checksum)
        assert found.bad is None


@pytest.mark.parametrize("order", [BY_SITE, BY_ODD_SITE], ids=lambda order: order.name)
@pytest.mark.parametrize("slabs", [1, 2, 3])
def test_what_is_written_is_read(group, precision, device, order, slabs):
    devices = DeviceGroup((device,) * slabs)
    links = random_field(LATTICE.extents, group, np.random.default_rng(4))
    field = Field.from_slices(LATTICE, group, links, precision, devices)
    dtype = "<f4" if precision == "single" else "<f8"
    stored = StoredLinks(LATTICE, field.group, dtype, order=order)
    blocks = list(FieldBlocks(field, stored).blocks())
    alone = Field.from_slices(LATTICE, group, links, precision, device)
    same = FieldBlocks(alone, stored).blocks()
    assert all(np.array_equal(one, other) for one, other in zip(blocks, same, strict=True))
    copy = Field.empty(LATTICE, group, precision, devices)
    assert read_blocks(copy, stored, blocks).bad is None
    for one, other in zip(copy.packed_slices(), field.packed_slices(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.longer
def test_odd_sites_have_eight_links(precision, device):
    """The order of openQCD: t, x, y, z leaving and arriving, sites with z fastest."""
    field, links = field_and_links("su3", precision, device)
    stored = StoredLinks(LATTICE, field.group, "<f8", order=BY_ODD_SITE)
    x, y, z, _ = LATTICE.extents
    for t, block in enumerate(FieldBlocks(field, stored).blocks()):
        found = block.view(np.complex128).reshape(-1, 4, 2, 3, 3)
        n = 0
        for site in np.ndindex(x, y, z):
            if (sum(site) + t) % 2 == 0:
                continue
            here = (*site, t)
            for place, mu in enumerate((3, 0, 1, 2)):
                before = list(here)
                before[mu] = (before[mu] - 1) % LATTICE.extents[mu]
                for which, from_site in enumerate((here, before)):
                    expected = links[(*reversed(from_site), mu)]
                    np.testing.assert_allclose(
                        found[n, place, which], expected, rtol=0, atol=tolerance(precision)
                    )
            n += 1
        assert n == len(found)


def test_rows_that_are_missing_follow_from_the_others(group, precision, device):
    field, links = field_and_links(group, precision, device)
    n = field.group.colours
    stored = StoredLinks(LATTICE, field.group, ">f8", rows=n - 1)
    blocks = [
        np.ascontiguousarray(one[..., : n - 1, :]).view(np.float64).astype(">f8").reshape(-1)
        for one in links
    ]
    copy = Field.empty(LATTICE, group, precision, device)
    found = read_blocks(copy, stored, [one.view(np.uint8) for one in blocks])
    assert found.bad is None
    np.testing.assert_allclose(copy.to_numpy(), links, rtol=0, atol=tolerance(precision))


@pytest.mark.parametrize("damage", ["first row", "last row", "not a number", "infinite"])
@pytest.mark.parametrize("link", [(3, 5, 2, 7, 1), (0, 0, 0, 0, 0), (9, 5, 3, 7, 3)])
def test_the_first_link_outside_the_group_is_named(group, precision, device, damage, link):
    _, links = field_and_links(group, precision, device)
    n = GROUPS[group].colours
    bad = links.copy()
    entry = (n - 1, 0) if damage == "last row" else (0, 0)
    change = {"not a number": np.nan, "infinite": np.inf}.get(damage, 3e-4)
    bad[(*link, *entry)] += change
    bad[(9, 5, 3, 7, 3, 0, 0)] += 1  # a later one, or the same
    stored = StoredLinks(LATTICE, GROUPS[group], "<f8")
    copy = Field.empty(LATTICE, group, precision, device)
    found = read_blocks(copy, stored, [one.reshape(-1).view(np.uint8) for one in bad])
    t, z, y, x, mu = link
    assert found.bad == (t, ((z * LATTICE.y + y) * LATTICE.x + x) * 4 + mu)


def test_a_field_that_is_damaged_is_not_written(group, precision, device, tmp_path):
    field, _ = field_and_links(group, precision, device)
    slices = [one.copy() for one in field.packed_slices()]
    slices[2][0, 1, 2, 3, 0] += 0.5
    field.restore(iter(slices))
    with pytest.raises(GaugeError, match=r"direction t at \(x, y, z, t\) = \(2, 1, 0, 2\)"):
        field.save(tmp_path / "config")
    assert not list(tmp_path.iterdir())


@pytest.mark.longer
def test_an_order_of_another_package(tmp_path, precision, device):
    """The links of a site in the order t, z, y, x, declared by a header of its own."""
    header = tmp_path / "backwards.h"
    header.write_text(
        """
        #pragma once
        #include "arch/arch.h"
        struct Backwards {
            static constexpr bool REACHES_BACK = false;
            static INLINE bool in_next_block(int, int) { return false; }
            static INLINE unsigned place(const int (&full)[4], int, const int (&at)[3], int mu) {
                return 4 * (((unsigned)at[2] * full[1] + at[1]) * full[0] + at[0]) + 3 - mu;
            }
        };
        """
    )
    field, links = field_and_links("su2", precision, device)
    order = FileOrder("backwards", str(header), "Backwards")
    stored = replace(StoredLinks(LATTICE, field.group, "<f8"), order=order)
    found = np.concatenate(list(FieldBlocks(field, stored).blocks())).view(np.complex128)
    expected = links[:, :, :, :, ::-1].ravel()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance(precision))

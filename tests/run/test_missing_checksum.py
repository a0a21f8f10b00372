"""A configuration without a checksum is used, and it is said that it could not be checked."""

import pytest

from tests.calls import call
from tests.formats.format_samples import ildg_bytes, random_links

pytestmark = pytest.mark.kernels

SAID = "it has no SciDAC checksum, so its links were not verified with one"


@pytest.mark.parametrize("checksum", [True, False])
def test_it_is_said_when_it_is_measured_or_started_from(tmp_path, checksum):
    path = tmp_path / "in.lime"
    links = random_links("su2", extents=(4, 4, 4, 4))
    path.write_bytes(ildg_bytes(links, "double", checksum=checksum))
    tiny = ("--lattice", 4, "--precision", "double", "--thermalize", 0, "--configs", 0)
    for words in (
        ("measure", "plaquette", path, "--output", tmp_path / "table.csv", "--backend", "cpu"),
        ("generate", "--start", path, *tiny, "--output", tmp_path / "run", "--backend", "cpu"),
    ):
        shown, code = call(*words)
        assert code == 0
        assert (f"{path}: {SAID}" in shown) != checksum

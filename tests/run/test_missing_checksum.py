"""A configuration without a checksum is used, and it is said that it could not be checked."""

import pytest

from tests.calls import call, make_run
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


@pytest.mark.parametrize("key", ["CHECKSUM", "FLOATING_POINT"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_nersc_header_without_a_key_is_absent_not_damaged(tmp_path, monkeypatch, key, precision):
    """It is refused, unless that is on purpose; then it is said once."""
    run = make_run(tmp_path / "run", format="nersc", configs=1, precision=precision)
    (path,) = (run / "configs").iterdir()
    good = call("measure", "plaquette", path, "--output", tmp_path / "good.csv", "--quiet")
    head, end, links = path.read_bytes().partition(b"END_HEADER\n")
    lines = [line for line in head.split(b"\n") if not line.startswith(key.encode())]
    path.write_bytes(b"\n".join(lines) + end + links)
    words = ("measure", "plaquette", path, "--output", tmp_path / "table.csv")
    said, code = call(*words)
    assert f"{path} states no {key}, so that" in said
    assert (code, "GAUGE_MC_UNCHECKED=1" in said) == (69, True), said
    monkeypatch.setenv("GAUGE_MC_UNCHECKED", "1")
    said, code = call(*words)
    assert code == good[1] == 0
    assert said.count(f"states no {key}") == 1
    values = [
        (tmp_path / name).read_text().split("\n")[-4:-2] for name in ("good.csv", "table.csv")
    ]
    assert values[0] == values[1]
    path.write_bytes(b"\n".join(lines) + end + links[:-8])
    assert "is truncated" in call("info", path)[0]

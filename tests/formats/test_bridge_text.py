"""Text files of links, by the sample of another program; see `of_others/README.md`."""

from pathlib import Path

import numpy as np
import pytest

import gauge_mc
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.errors import UnsupportedError, UsageError
from gauge_mc.formats import is_configuration
from tests.calls import call, call_apart
from tests.formats.format_samples import averages, random_links

SAMPLE = Path(__file__).parent / "of_others" / "gaugefields_su2.txt"
KIND = ("4x4x4x4", "su2")
WORDS = ("--lattice", "4x4x4x4", "--group", "su2")
PLAQUETTE = 0.524838075045
"""Plaquette of the sample by NumPy alone. With other orders of its links it is below 0.16."""


def text_of(links):
    return "".join(f"{one!r}\n" for one in links.reshape(-1).view(np.float64).tolist())


def test_the_sample_of_another_program():
    found = open_configuration(SAMPLE, *KIND)
    assert (found.header.format, found.header.precision) == ("bridge-text", "double")
    lines = np.loadtxt(SAMPLE).view(np.complex128).reshape(4, 4, 4, 4, 4, 2, 2)
    np.testing.assert_array_equal(found.to_numpy(), lines)
    assert averages(lines)[0] == pytest.approx(PLAQUETTE, abs=1e-12)
    assert "no checksum" in found.header.warning


@pytest.mark.slow
@pytest.mark.kernels
def test_commands_take_the_sample(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "good" in call("verify", SAMPLE, *WORDS)[0]
    shown, _, code = call_apart("convert", SAMPLE, "x.lime", "--to", "ildg", "--verify", *WORDS)
    assert ("good  x.lime  plaquette 0.524838075045" in shown, code) == (True, 0)
    found = open_configuration(SAMPLE, *KIND)
    assert found.check().mean == pytest.approx(PLAQUETTE, abs=1e-12)
    written = open_configuration("x.lime").to_numpy()
    np.testing.assert_allclose(found.load().to_numpy(), written, rtol=0, atol=1e-12)
    info = gauge_mc.info(SAMPLE, lattice=KIND[0], group=KIND[1])
    assert info.recomputed.mean == pytest.approx(PLAQUETTE, abs=1e-12)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "  \n"])
@pytest.mark.parametrize("group", ["su2", "su3", "su8"])
def test_other_groups_and_ends_of_lines(tmp_path, group, ending):
    links = random_links(group, extents=(3, 2, 1, 2))
    path = tmp_path / "file"
    path.write_bytes(text_of(links).replace("\n", ending).encode())
    found = open_configuration(path, "3x2x1x2", group)
    np.testing.assert_array_equal(found.to_numpy(), links)


def test_cold_links_are_known(tmp_path):
    links = np.broadcast_to(np.eye(3, dtype=complex), (2, 2, 2, 2, 4, 3, 3)).copy()
    (tmp_path / "file").write_text(text_of(links))
    assert is_configuration(tmp_path / "file")


@pytest.mark.parametrize(
    "text", ["0.5\n0.25\n" * 500, "1.0\n0.0\n", "0.5 0.5\n" * 99, "1\n2\n" * 99, "0.1\n0.2\nx\n"]
)
def test_other_numbers_are_no_links(tmp_path, text):
    (tmp_path / "file").write_text(text)
    assert not is_configuration(tmp_path / "file")


@pytest.mark.parametrize(
    ("change", "kind", "error", "words"),
    [
        (lambda text: text, (None, None), UnsupportedError, "states neither their group nor"),
        (lambda text: text, ("4x4x4x8", "su2"), UsageError, "8192 numbers, which are not"),
        (lambda text: text, ("4x4x4x4", "su3"), UsageError, "8192 numbers, which are not"),
        (
            lambda text: text[: text[:-1].rindex("\n") + 1],
            KIND,
            UsageError,
            "numbers, which are not the links of",
        ),
        (lambda text: text[:-40] + "x" + text[-39:], KIND, UnsupportedError, "is not a number"),
    ],
)
def test_what_is_refused(tmp_path, change, kind, error, words):
    (tmp_path / "file").write_text(change(SAMPLE.read_text()))
    with pytest.raises(error, match=words):
        open_configuration(tmp_path / "file", *kind)


def test_links_in_another_order_are_not_in_the_group(tmp_path):
    """As far as that can be seen; the plaquette tells the rest."""
    lines = SAMPLE.read_text().splitlines(keepends=True)
    (tmp_path / "file").write_text("".join(lines[:8] + lines[9:] + lines[8:9]))
    with pytest.raises(UsageError, match="may have links of another group"):
        list(open_configuration(tmp_path / "file", *KIND).slices())

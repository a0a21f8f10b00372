"""Files are read, checked and converted where no kernel can be compiled, and nothing is damaged."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.devices.cpu import compiler
from gauge_mc.errors import UNCHECKED, NoKernelsError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import action_density, averages
from gauge_mc.formats import writable_formats
from tests.calls import call, call_apart, forbid, make_run

CONFIG = "configs/0000005.lime"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run") / "run", group="su3", precision="double")


def no_compiler(folder, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(compiler, "candidates", list)
    monkeypatch.setattr(compiler, "find_compiler", compiler.find_compiler.__wrapped__)


def failing_compiler(folder, monkeypatch):
    path = folder / "failing"
    path.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exec echo 1.0\necho "error: no" >&2\nexit 1\n'
    )
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    monkeypatch.setattr(compiler, "find_compiler", compiler.find_compiler.__wrapped__)
    monkeypatch.setenv("GAUGE_MC_CACHE", str(folder / "empty"))


def cache_is_a_file(folder, monkeypatch):
    (folder / "cache").write_text("")
    monkeypatch.setenv("GAUGE_MC_CACHE", str(folder / "cache"))


def cache_in_no_folder(folder, monkeypatch):
    (folder / "file").write_text("")
    monkeypatch.setenv("GAUGE_MC_CACHE", str(folder / "file" / "cache"))


def cache_is_open_to_others(folder, monkeypatch):
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o777)
    monkeypatch.setenv("GAUGE_MC_CACHE", str(folder / "cache"))


LACKS = {
    no_compiler: "No C++ compiler was found",
    failing_compiler: "does not take the options of kernels",
    cache_is_a_file: "is not a folder",
    cache_in_no_folder: "cannot be stored",
    cache_is_open_to_others: "Others may write",
}


@pytest.fixture(params=LACKS, ids=lambda lack: lack.__name__)
def lack(request, tmp_path, monkeypatch):
    """Take the kernels away when called; return what a command that needs them says."""

    def take_away():
        request.param(tmp_path, monkeypatch)
        return LACKS[request.param]

    return take_away


@pytest.fixture
def without(tmp_path, monkeypatch):
    return lambda: no_compiler(tmp_path, monkeypatch)


def test_a_run_is_good_everywhere_with_the_same_words(run, lack):
    expected = call("verify", run)
    lack()
    assert call("verify", run) == expected
    assert expected[0].endswith("All 7 files are good.\n")


def test_contents_are_the_same(run, without):
    before = json.loads(call("info", run / CONFIG, "--json")[0])
    without()
    after = json.loads(call("info", run / CONFIG, "--json")[0])
    one, other = before.pop("recomputed"), after.pop("recomputed")
    assert after == before
    assert other == pytest.approx(one, rel=0, abs=1e-15)


@pytest.mark.parametrize("format", writable_formats())
def test_formats_have_the_same_links_and_averages(run, tmp_path, without, format):
    names = [tmp_path / name for name in ("with", "without", "back")]
    call("convert", run / CONFIG, names[0], "--to", format)
    without()
    call("convert", run / CONFIG, names[1], "--to", format)
    call("convert", names[0], names[2], "--to", "ildg")
    made, alike, back = map(open_configuration, names)
    begin, size = made.span
    one, other = (path.read_bytes()[begin : begin + size] for path in names[:2])
    assert one == other
    assert made.header.checksum == alike.header.checksum
    assert [one.header.plaquette is None for one in (made, alike)] == [format == "milc"] * 2
    plaquettes = [one.header.plaquette or 0 for one in (made, alike)]
    assert plaquettes[0] == pytest.approx(plaquettes[1], rel=0, abs=1e-14)
    original = open_configuration(run / CONFIG)
    same = back.header.precision == original.header.precision
    assert same == (format != "milc")  # in which links are in single precision
    stored = original.to_numpy() if same else original.to_numpy().astype(np.complex64)
    assert np.array_equal(back.to_numpy(), stored)
    assert (back.digest() == original.digest()) == same


@pytest.mark.parametrize("place", [0.3, 0.9])
def test_damage_is_found(run, tmp_path, without, place):
    path = shutil.copy(run / CONFIG, tmp_path / "damaged.lime")
    begin, size = open_configuration(path).span
    data = bytearray(path.read_bytes())
    data[begin + int(place * size) // 8 * 8] ^= 4  # in the exponent, so that it leaves the group
    data[begin + int(place * size) // 8 * 8 + 6] ^= 4
    path.write_bytes(data)
    expected = call("verify", path)
    assert expected[0].startswith("BAD")
    assert expected[1] == 1
    without()
    assert call("verify", path) == expected


def test_a_wrong_checksum_is_found(run, tmp_path, without):
    """The links are still in the group."""
    path = shutil.copy(run / CONFIG, tmp_path / "damaged.lime")
    begin, _ = open_configuration(path).span
    data = bytearray(path.read_bytes())
    data[begin + 7] ^= 1
    path.write_bytes(data)
    without()
    shown, code = call("verify", path)
    assert "BAD" in shown
    assert (code, "checksum" in shown) == (1, True), shown


def test_what_needs_kernels_says_what_is_missing(run, tmp_path, lack):
    shutil.copytree(run, tmp_path / "run")
    words = lack()
    shown, code = call("measure", "wilson-loops", tmp_path / "run")
    assert words in shown
    assert "damaged" not in shown
    assert code == 1
    field = Field.load(run / CONFIG)
    for needs in (averages, Field.packed_slices, lambda field: action_density(field, 6.0)):
        with pytest.raises(NoKernelsError, match=re.escape(words)):
            list(needs(field))
    with pytest.raises(UsageError, match="There is no precision 'half'; choose single or double"):
        Field.load(run / CONFIG, "half")


@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_field_has_the_same_links(run, tmp_path, lack, precision):
    def written(field, name):
        field.save(tmp_path / name, "nersc")
        return open_configuration(tmp_path / name)

    path = run / CONFIG
    with_kernels = Field.load(path, precision)
    matrices, file = with_kernels.to_numpy(), written(with_kernels, "with")
    lack()
    field = Field.load(path, precision)
    assert repr(field) == f"<Field SU(3) 4x4x4x6, {precision} precision, without kernels>"
    # Compilers may fuse the additions of the last row, which follows from the others.
    assert np.array_equal(field.to_numpy()[..., :2, :], matrices[..., :2, :])
    np.testing.assert_allclose(field.to_numpy(), matrices, rtol=0, atol=4 * 2**-52)
    other = written(field, "without")
    assert other.header.precision == precision
    np.testing.assert_allclose(other.to_numpy(), file.to_numpy(), rtol=0, atol=2**-23)


def strange(path, run):
    path.write_text("Dear colleague,\n")


def unsupported(path, run):
    path.write_text("BEGIN_HEADER\nDATATYPE = 4D_SU3_STAPLE\nEND_HEADER\n")


def no_checksum(path, run):
    call("convert", run / CONFIG, path, "--to", "nersc")
    data = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(line for line in data if not line.startswith(b"CHECKSUM")))


@pytest.mark.parametrize("kind", [strange, unsupported, no_checksum])
def test_what_cannot_be_judged_is_not_called_damaged(run, tmp_path, kind):
    kind(tmp_path / "other", run)
    out, complaint, code = call_apart("verify", tmp_path / "other", run, "--json")
    document = json.loads(out)
    assert code == UNCHECKED
    assert (document["damaged"], document["unchecked"]) == (0, 1)
    assert [one["sound"] for one in document["files"]] == [None] + [True] * 7
    assert complaint.startswith("gauge-mc: Could not be checked here: 1 of 8 files, ")
    shown, code = call("verify", tmp_path / "other")
    assert shown.startswith("cannot be checked here: ")
    assert "BAD" not in shown
    assert code == UNCHECKED


@pytest.mark.slow
def test_a_shell_sees_the_exit_codes(run, tmp_path):
    strange(tmp_path / "other", run)
    (tmp_path / "file").write_text("")
    lacking = {"PATH": str(tmp_path), "CXX": "", "GAUGE_MC_CACHE": str(tmp_path / "file")}

    def code(*words):
        command = [sys.executable, "-m", "gauge_mc", *map(str, words)]
        return subprocess.run(command, env=os.environ | lacking, capture_output=True).returncode

    assert code("verify", run) == 0
    assert code("info", run / CONFIG) == 0
    assert code("verify", run, tmp_path / "other") == 69
    assert code("verify", run, tmp_path / "none") == 2
    assert code("measure", "plaquette", run / CONFIG, "--output", tmp_path / "table.csv") == 1


def test_damage_comes_first(run, tmp_path):
    strange(tmp_path / "other", run)
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / CONFIG).write_bytes(b"nothing of the kind")
    shown, code = call("verify", tmp_path / "other", tmp_path / "run")
    assert (code, "Damaged or missing: 1 of 8 files" in shown) == (1, True), shown
    assert "Could not be checked here: 1 of 8 files" in shown


@pytest.mark.parametrize(
    "name", ["run.toml", "checkpoint/latest", "plaquette.csv", CONFIG, "thinned.toml"]
)
def test_a_file_that_must_not_be_read_is_not_called_damaged(run, tmp_path, monkeypatch, name):
    """Nor are others, such as configurations that were removed on purpose."""
    folder = shutil.copytree(run, tmp_path / "run")
    if name == "thinned.toml":
        call("thin", folder, "--keep", 3, "--unchecked")
    forbid(monkeypatch, folder / name)
    shown, code = call("verify", folder)
    assert code == UNCHECKED
    assert shown.count("cannot be checked here: ") == 1
    assert "Permission denied" in shown
    assert "BAD" not in shown


@pytest.mark.parametrize("name", ["run.toml", "checkpoint/latest", CONFIG])
def test_nor_is_one_in_a_folder_that_must_not_be_entered(run, tmp_path, monkeypatch, name):
    folder = shutil.copytree(run, tmp_path / "run")
    forbid(monkeypatch, folder / name, "open", "stat")
    shown, code = call("verify", folder)
    assert code == UNCHECKED
    assert f"cannot be checked here: {folder / name} cannot be read (Permission denied)" in shown
    assert "BAD" not in shown


def test_a_run_of_what_is_not_installed_is_not_called_damaged(run, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    path = folder / "run.toml"
    path.write_text(path.read_text().replace('action = "wilson"', 'action = "theirs"'))
    shown, code = call("verify", folder)
    assert "There is no action 'theirs'" in shown
    assert "is damaged:" not in shown
    assert code == UNCHECKED

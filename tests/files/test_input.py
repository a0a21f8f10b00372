"""Reading small files that others may have prepared."""

import errno
import os
from pathlib import Path

import pytest

from gauge_mc.errors import GaugeError
from gauge_mc.files.input import may_be_made, open_regular, read_bytes, read_text


def test_a_regular_file_is_read(tmp_path):
    path = tmp_path / "file"
    path.write_text("β")
    assert read_bytes(path, 2) == "β".encode()
    assert read_text(path, 2) == "β"
    with open_regular(path) as file:
        assert file.read() == "β".encode()


def test_only_a_folder_that_is_to_blame_is_refused(tmp_path, monkeypatch):
    def mkdir(path):
        raise OSError(reason, "refused")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    reason = errno.EACCES
    assert not may_be_made(tmp_path / "new")
    reason = errno.EIO
    with pytest.raises(GaugeError, match="check the disk") as caught:
        may_be_made(tmp_path / "new")
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (os.mkfifo, "not a regular file"),
        (os.mkdir, "a directory"),
        (lambda path: path.symlink_to(path), "symbolic links"),
        (lambda path: os.symlink("/dev/zero", path), "not a regular file"),
        (lambda path: None, "No such file"),
        (lambda path: path.write_bytes(b"\xff"), "not text in UTF-8"),
        (lambda path: path.write_bytes(b"12345"), "larger than 4 bytes"),
    ],
)
def test_anything_else_is_refused_at_once(tmp_path, make, reason):
    path = tmp_path / "file"
    make(path)
    with pytest.raises(GaugeError, match=reason) as caught:
        read_text(path, 4)
    assert str(path) in str(caught.value)

import errno
import os

import pytest

from gauge_mc.errors import GaugeError
from gauge_mc.files import atomic
from gauge_mc.files.atomic import replacing


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    return path


def write(path, content):
    with replacing(path) as file:
        file.write(content)
        assert path.read_text() == "old"
        assert len(os.listdir(path.parent)) == 2


def test_a_file_is_replaced_as_a_whole(path):
    write(path, b"new")
    assert path.read_text() == "new"
    assert os.listdir(path.parent) == ["file"]


def test_what_fails_leaves_the_old_file(path):
    with pytest.raises(KeyboardInterrupt), replacing(path):
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["file"]


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EACCES, "choose a folder in which you may write"),
    ],
)
def test_the_error_says_what_to_do(path, monkeypatch, number, advice):
    def fail(handle):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic.os, "fsync", fail)
    with pytest.raises(GaugeError, match=advice) as error:
        write(path, b"new")
    assert str(path) in str(error.value)
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["file"]


def test_a_folder_that_cannot_be_synced_is_no_failure(path, monkeypatch):
    sync, synced = os.fsync, []

    def only_files(handle):
        if synced:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        synced.append(handle)
        sync(handle)

    monkeypatch.setattr(atomic.os, "fsync", only_files)
    write(path, b"new")
    assert path.read_text() == "new"
    assert len(synced) == 1

import errno
import fcntl
import os
import time
from pathlib import Path

import pytest

from gauge_mc.errors import GaugeError
from gauge_mc.files import atomic
from gauge_mc.files.atomic import replacing
from gauge_mc.files.input import may_be_made, open_regular, read_bytes, read_text


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


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EACCES, "choose a folder in which you may write"),
        (errno.EIO, "check the disk"),
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


def leftover(path, age, link=None):
    """Make what a killed process would have left for a path, so many seconds ago."""
    made = path.with_name(f".{path.name}.0123456789abcdef.tmp")
    if link:
        made.symlink_to(link)
    else:
        made.write_text("half")
    then = time.time() - age
    os.utime(made, (then, then), follow_symlinks=False)
    return made


def test_what_a_killed_process_has_left_is_removed(path):
    stale = leftover(path, 2 * atomic.STALE_SECONDS)
    with replacing(path) as file:
        file.write(b"new")
    assert not stale.exists()
    assert path.read_text() == "new"


def test_what_others_may_be_writing_is_left(path, tmp_path):
    """Temporary files that are young, locked, links, or those of another file are kept."""
    young = leftover(path, 0)
    with replacing(path):
        pass
    assert young.exists()
    then = time.time() - 1000
    os.utime(young, (then, then))
    with young.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with replacing(path):
            pass
    assert young.exists()
    other = leftover(tmp_path / "other", 1000)
    link = leftover(tmp_path / "link", 1000, link=path)
    for name in ("file", "link"):
        with replacing(tmp_path / name):
            pass
    assert not young.exists()
    assert other.exists()
    assert link.is_symlink()


def test_a_file_that_is_being_written_is_not_a_leftover(path):
    """However long it takes: another process holds it."""
    with replacing(path) as file:
        (temporary,) = (one for one in path.parent.iterdir() if one != path)
        os.utime(temporary, (0, 0))
        with replacing(path) as second:
            second.write(b"second")
        assert temporary.exists()
        file.write(b"first")
    assert path.read_text() == "first"
    assert os.listdir(path.parent) == ["file"]


def test_the_temporary_name_cannot_be_guessed(path, monkeypatch):
    """And what is already there under that name, such as a link, is not followed."""
    names = set()
    for _ in range(3):
        with replacing(path):
            names |= {one.name for one in path.parent.iterdir() if one != path}
    assert len(names) == 3
    monkeypatch.setattr(atomic.secrets, "token_hex", lambda count: "0" * 2 * count)
    victim = path.with_name("victim")
    victim.write_text("precious")
    path.with_name(f".file.{16 * '0'}.tmp").symlink_to(victim)
    with pytest.raises(GaugeError, match="could not be written"), replacing(path) as file:
        file.write(b"new")
    assert victim.read_text() == "precious"
    assert path.read_text() == ""


def test_a_link_at_the_place_of_a_file_is_replaced_not_followed(path):
    victim = path.with_name("victim")
    path.rename(victim)
    path.symlink_to(victim)
    with replacing(path) as file:
        file.write(b"new")
    assert (victim.read_text(), path.read_text()) == ("old", "new")
    assert not path.is_symlink()


def test_long_names_and_names_that_are_not_utf8(tmp_path):
    for name in (b"x" * 250, b"\xff\xfe" * 100):
        path = tmp_path / os.fsdecode(name)
        with replacing(path) as file:
            file.write(b"new")
        assert path.read_bytes() == b"new"


def test_the_permissions_are_those_of_an_ordinary_file(path):
    old = os.umask(0o027)
    try:
        with replacing(path):
            pass
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_file_is_replaced_as_a_whole(path):
    write(path, b"new")
    assert path.read_text() == "new"
    assert os.listdir(path.parent) == ["file"]


def test_what_fails_leaves_the_old_file(path):
    with pytest.raises(KeyboardInterrupt), replacing(path):
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["file"]


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

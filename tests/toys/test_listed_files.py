"""A folder with the sums of its files, one of which changes."""

import hashlib

from gauge_mc.inspection.verify import verify


def test_a_file_that_is_not_as_listed_is_found(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    sums = [f"{hashlib.sha256(b).hexdigest()}  {b.decode()}\n" for b in (b"a.txt", b"b.txt")]
    (tmp_path / "SHA256SUMS").write_text("".join(sums))
    assert [one.words for one in verify(tmp_path)] == ["as listed"] * 2
    (tmp_path / "b.txt").write_text("c")
    assert [one.sound for one in verify(tmp_path)] == [True, False]
    (tmp_path / "b.txt").unlink()
    assert [one.sound for one in verify(tmp_path)] == [True, False]

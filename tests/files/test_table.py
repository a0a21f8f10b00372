"""Tables: complete rows are read back after any interruption, and damage is found."""

import contextlib
import errno
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gauge_mc.errors import GaugeError
from gauge_mc.files.table import Table, TableTail, read_heading, read_table, write_table

HEADER = {"observable": "plaquette", "normalisation": "Re Tr / N", "beta": "2.5"}
COLUMNS = ("sweep", "plaquette", "path")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "plaquette.csv"


def rows(first, last):
    return [(sweep, 1.0 / (3 + sweep), "100") for sweep in range(first, last + 1)]


def write(path, first, last):
    with Table(path, HEADER, COLUMNS) as table:
        table.append(rows(first, last))


def seal_of(content):
    return b"# sha256: " + hashlib.sha256(content).hexdigest().encode() + b"\n"


def unsealed(path):
    """Return a table as versions without seals wrote it."""
    content, seal, _ = path.read_bytes().partition(b"# sha256: ")
    assert seal
    return content


def test_floats_read_back_bit_for_bit_and_words_stay_words(path):
    rng = np.random.default_rng(5)
    values = np.concatenate([rng.normal(size=100), [5e-324, 1e308, -0.0, 1.0]])
    with Table(path, HEADER, COLUMNS) as table:
        for sweep, value in enumerate(values):
            table.append([(np.int64(sweep), np.float64(value), "210")])
    found = read_table(path)
    assert found.header == HEADER
    assert found.columns["sweep"].dtype == np.int64
    assert found.columns["plaquette"].tobytes() == values.tobytes()
    assert found.columns["path"].tolist() == ["210"] * len(values)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(tmp_path, value):
    ways = {
        "rows": lambda table: table.append([(2, 0.5, 1.0), (3, 0.5, value)]),
        "numbers": lambda table: table.append_numbers([2, 3], np.array([[1, 2], [3, value]])),
    }
    for name, add in ways.items():
        path = tmp_path / name
        with Table(path, {}, ("sweep", "x", "y")) as table:
            table.append([(1, 0.5, 0.25)])
            with pytest.raises(GaugeError, match=f"y is {value} at sweep 3, so"):
                add(table)
        assert read_table(path).columns["sweep"].tolist() == [1]


def test_a_header_from_another_file_stays_a_header(path):
    """Texts such as the provenance of a configuration."""
    header = {"beta": "2.5\nsweep,plaquette,path\n1,2,3", "evil": "\x1b[31m", "a\nb": "c"}
    write_table(path, header, COLUMNS, [(1, 0.5, "100")])
    found = read_table(path)
    assert found.header == {
        "beta": "2.5 sweep,plaquette,path 1,2,3",
        "evil": r"\x1b[31m",
        "a b": "c",
    }
    assert found.columns["sweep"].tolist() == [1]


def test_layout_is_plain_csv(path):
    with Table(path, HEADER, COLUMNS) as table:
        table.append([(10, 0.5, "100"), (10, np.float32(0.25), "110")])
        table.sync()
        content = (
            b"# observable: plaquette\n# normalisation: Re Tr / N\n# beta: 2.5\n"
            b"sweep,plaquette,path\n10,0.5,100\n10,0.25,110\n"
        )
        assert path.read_bytes() == content
    assert path.read_bytes() == content + seal_of(content)
    whole = path.with_name("whole.csv")
    write_table(whole, HEADER, COLUMNS, [(10, 0.5, "100"), (10, 0.25, "110")])
    assert whole.read_bytes() == path.read_bytes()


def test_appending_removes_the_seal_and_finishing_puts_it_back(path):
    write(path, 1, 2)
    content = unsealed(path)
    table = Table(path, HEADER, COLUMNS)
    assert path.read_bytes() == content + seal_of(content)
    table.append(rows(3, 3))
    grown = path.read_bytes()
    assert grown == content + f"3,{1 / 6!r},100\n".encode()
    table.close()
    assert path.read_bytes() == grown
    with Table(path, HEADER, COLUMNS) as table:
        table.seal()
    assert path.read_bytes() == grown + seal_of(grown)
    with contextlib.suppress(KeyboardInterrupt), Table(path, HEADER, COLUMNS) as table:
        table.append(rows(4, 4))
        raise KeyboardInterrupt
    assert path.read_bytes() == grown + f"4,{1 / 7!r},100\n".encode()
    write(path, 5, 5)
    fresh = path.with_name("fresh.csv")
    write(fresh, 1, 5)
    assert path.read_bytes() == fresh.read_bytes()


def test_a_tail_reads_what_is_new_whatever_the_writer_does(path):
    write(path, 1, 5)
    tail = TableTail(path)

    def check():
        found, whole = tail.read(), read_table(path)
        assert found.header == whole.header
        assert {name: list(found[name]) for name in found} == {n: list(whole[n]) for n in whole}

    check()
    write(path, 6, 9)  # without the seal, and with a new one
    check()
    with Table(path, HEADER, COLUMNS) as table:
        table.append(rows(10, 12))
        check()
        with path.open("ab") as file:
            file.write(b"13,0.")  # torn
        check()
        os.truncate(path, path.stat().st_size - len(b"13,0."))
    with Table(path, HEADER, COLUMNS) as table:
        table.truncate(after=8, expected=8)
        check()
        table.append(rows(9, 20))
        check()
    path.unlink()
    write(path, 2, 3)
    check()


def test_a_tail_of_a_long_table_begins_near_its_end(path, monkeypatch):
    monkeypatch.setattr("gauge_mc.files.table.MOST_TAIL", 200)
    write(path, 1, 100)
    tail = TableTail(path)
    found, whole = tail.read(), read_table(path)
    assert 2 < len(found) < 10
    assert found["plaquette"].tolist() == whole["plaquette"].tolist()[-len(found) :]


def test_a_table_without_a_seal_is_read(path):
    write(path, 1, 4)
    expected = read_table(path)
    path.write_bytes(unsealed(path))
    found = read_table(path)
    assert found.header == expected.header
    for name, column in expected.columns.items():
        np.testing.assert_array_equal(found[name], column)
    write(path, 5, 5)
    assert path.read_bytes() == unsealed(path) + seal_of(unsealed(path))
    assert read_table(path)["sweep"].tolist() == [1, 2, 3, 4, 5]


def test_every_damaged_byte_of_a_sealed_table_is_found(path):
    write(path, 1, 3)
    whole, begin = path.read_bytes(), len(unsealed(path))
    for place in range(len(whole) - 1):
        for bit in (0, 6):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            with pytest.raises(GaugeError, match=r"damaged|not a table") as error:
                read_table(path)
            assert str(path) in str(error.value)
            assert str(error.value).endswith(".")
            if not begin <= place < begin + len("# sha256: "):
                with pytest.raises(GaugeError):
                    Table(path, HEADER, COLUMNS)
            assert path.read_bytes() == damaged


def test_damage_is_told_from_a_row_that_does_not_fit(path):
    write(path, 1, 3)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"\n2,", b"\n7,"))
    with pytest.raises(
        GaugeError, match=r"csv is damaged: .* checksum is not that of its last line"
    ):
        read_table(path)
    path.write_bytes(whole + b"4,0.1,100\n")
    with pytest.raises(GaugeError, match=r"Line 8 of the table .* has 1 values instead of 3"):
        read_table(path)


def test_the_heading_is_read_alone(path):
    write(path, 1, 3)
    path.write_bytes(path.read_bytes().replace(b"\n2,", b"\n\xff,"))
    assert read_heading(path) == (HEADER, list(COLUMNS))
    for content in (b"", b"# a: b\n", b"\xff\n"):
        path.write_bytes(content)
        with pytest.raises(GaugeError, match="not a table"):
            read_heading(path)
    path.unlink()
    with pytest.raises(GaugeError, match="No such file"):
        read_heading(path)


def test_every_cut_loses_only_the_torn_row(path):
    write(path, 1, 3)
    whole = path.read_bytes()
    start = whole.index(b"1,")
    for cut in range(start, len(whole)):
        path.write_bytes(whole[:cut])
        kept = whole[start:cut].count(b"\n")
        assert read_table(path).columns["sweep"].tolist() == list(range(1, kept + 1))
        write(path, kept + 1, 3)
        assert path.read_bytes() == whole


def test_truncate_drops_what_comes_after_a_sweep(path):
    write(path, 1, 9)
    with Table(path, HEADER, COLUMNS) as table:
        table.truncate(after=20, expected=9)
        table.truncate(after=4, expected=4)
        table.append(rows(5, 6))
        table.truncate(after=0, expected=0)
        table.append(rows(1, 2))
    fresh = path.with_name("fresh.csv")
    write(fresh, 1, 2)
    assert path.read_bytes() == fresh.read_bytes()


def test_truncate_also_drops_damage_after_the_sweep(path):
    write(path, 1, 2)
    sound = unsealed(path) + b"3,0.1,100\n"
    path.write_bytes(sound + b"\0\0\0\0\n4,0.2,100\n")
    with Table(path, HEADER, COLUMNS) as table:
        table.truncate(after=3, expected=3)
    assert path.read_bytes() == sound + seal_of(sound)


def test_truncate_leaves_a_table_with_lost_rows_alone(path):
    write(path, 1, 9)
    damaged = unsealed(path).replace(b"\n5,", b"\nx,")
    path.write_bytes(damaged)
    table = Table(path, HEADER, COLUMNS)
    with pytest.raises(GaugeError, match="4 intact rows"):
        table.truncate(after=6, expected=6)
    table.close()
    assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not a table"),
        (b"# observable: plaquette\n", "not a table"),
        (b"\xff\xfe\n", "not a table"),
        (b"# a: b\nsweep,plaquette\n1,0.5\n2\n", "Line 4"),
        (b"# a: \0b\nsweep,plaquette\n", "header is not printable text"),
        (b"# : b\nsweep,plaquette\n", "name in its header"),
        (b"# a: b\nsweep,\x07plaquette\n", "name in its header"),
        (b"# a: b\nsweep,plaquette\n1,0.5\n2,0.x\n3,0.5\n", "Line 4.*plaquette"),
    ],
)
def test_damage_is_named(path, text, message):
    path.write_bytes(text)
    with pytest.raises(GaugeError, match=message):
        read_table(path)


def test_missing_or_other_table(path):
    with pytest.raises(GaugeError, match="No such file"):
        read_table(path)
    write(path, 1, 1)
    with pytest.raises(GaugeError, match="columns sweep,plaquette,path instead of sweep,re"):
        Table(path, HEADER, ("sweep", "re"))


@pytest.mark.parametrize(
    ("function", "action"),
    [
        ("open", lambda path: Table(path, HEADER, COLUMNS)),
        ("ftruncate", lambda path: Table(path, HEADER, COLUMNS).truncate(1, 1)),
        ("ftruncate", lambda path: Table(path, HEADER, COLUMNS).append(rows(4, 4))),
        ("ftruncate", lambda path: Table(path, HEADER, COLUMNS).seal()),
        ("write", lambda path: Table(path, HEADER, COLUMNS).seal()),
        ("fsync", lambda path: Table(path, HEADER, COLUMNS).seal()),
    ],
)
@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.ENOSPC, "free some space"), (errno.EIO, "check the disk")]
)
def test_failures_of_the_system_are_explained(path, monkeypatch, function, action, number, remedy):
    write(path, 1, 3)

    usual = getattr(os, function)

    def fail(*arguments):
        if function == "open" and not arguments[1] & os.O_APPEND:  # it is only read
            return usual(*arguments)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(GaugeError) as caught:
        action(path)
    reason = os.strerror(number)
    assert str(caught.value).startswith(f"{path} could not be written ({reason}): {remedy}")


@pytest.mark.slow
def test_full_disk_leaves_whole_rows_readable(path):
    """A limit on the file's size stands in for the disk; the row that hits it is torn."""
    script = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from gauge_mc.files.table import Table\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "table = Table(Path(sys.argv[1]), {'beta': '2.5'}, ('sweep', 'plaquette', 'path'))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
        "for sweep in range(1, 100): table.append([(sweep, 1 / (3 + sweep), '100')])\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, env=os.environ)
    assert b"File too large" in done.stderr
    assert path.stat().st_size == 500
    kept = read_table(path).columns["sweep"]
    assert 5 < len(kept) < 100
    whole = path.with_name("whole.csv")
    with Table(whole, {"beta": "2.5"}, COLUMNS) as table:
        table.append(rows(1, 99))
    with Table(path, {"beta": "2.5"}, COLUMNS) as table:
        table.append(rows(len(kept) + 1, 99))
    assert path.read_bytes() == whole.read_bytes()


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.slow
@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_rows_of_numbers_are_written_like_other_rows(rows):
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in "ab"]
        columns = ("sweep", "x", "y", "z")
        with Table(paths[0], {}, columns) as table:
            table.append((n, *row) for n, row in enumerate(rows))
        with Table(paths[1], {}, columns) as table:
            table.append_numbers(range(len(rows)), np.array(rows))
            table.append_numbers([], np.empty((0, 3)))
        assert paths[0].read_bytes() == paths[1].read_bytes()


OLD, NEW = "gauge-mc 0.1.0", "gauge-mc 0.2.0, others 1.3"


def by_version(path, version, first, last, kept=0):
    """Write rows as a version does, after those up to a sweep that are kept."""
    header = {**HEADER, "version": version} if version else HEADER
    with Table(path, header, COLUMNS) as table:
        table.truncate(after=kept, expected=kept)
        for row in rows(first, last):
            table.append([row])


def test_another_version_stands_before_its_rows(path):
    by_version(path, OLD, 1, 3)
    by_version(path, OLD, 4, 4, kept=4 - 1)
    by_version(path, NEW, 5, 6, kept=4)
    by_version(path, OLD, 7, 7, kept=6)
    heading, lines = path.read_text().split(f"{','.join(COLUMNS)}\n")
    assert f"# version: {OLD}\n" in heading
    lines = lines.splitlines()[:-1]
    assert [one for one in lines if one.startswith("#")] == [
        f"# made by: {NEW}",
        f"# made by: {OLD}",
    ]
    assert (lines.index(f"# made by: {NEW}"), lines.index(f"# made by: {OLD}")) == (4, 7)
    found = read_table(path)
    assert found.header["version"] == OLD
    assert found.makers == {0: OLD, 4: NEW, 6: OLD}
    assert found.made_by_others(NEW).tolist() == [*[True] * 4, False, False, True]
    assert found.made_by_others("gauge-mc 0.3.0").all()
    assert found["sweep"].tolist() == [*range(1, 8)]
    assert TableTail(path).read()["sweep"].tolist() == [*range(1, 8)]
    assert read_heading(path) == ({**HEADER, "version": OLD}, [*COLUMNS])


def test_a_table_of_two_versions_is_the_same_after_a_kill_at_any_byte(path):
    by_version(path, OLD, 1, 2)
    by_version(path, NEW, 3, 4, kept=2)
    whole = path.read_bytes()
    begin = whole.index(f"# made by: {NEW}".encode())
    for cut in range(begin, len(whole)):
        path.write_bytes(whole[:cut])
        by_version(path, NEW, 3, 4, kept=2)
        assert path.read_bytes() == whole
    first = whole.index(b"\n1,") + 1
    for cut in range(first, whole.index(b"2,")):
        path.write_bytes(whole[:cut])
        by_version(path, OLD, 1, 2)
        by_version(path, NEW, 3, 4, kept=2)
        assert path.read_bytes() == whole


def test_rows_that_are_taken_back_take_the_version_with_them(path):
    by_version(path, OLD, 1, 2)
    by_version(path, NEW, 3, 4, kept=2)
    by_version(path, OLD, 3, 4, kept=2)
    assert read_table(path).makers == {0: OLD}
    assert NEW.encode() not in path.read_bytes()
    by_version(path, NEW, 1, 2)
    assert read_table(path).makers == {0: NEW}
    assert f"# version: {OLD}\n".encode() in path.read_bytes()  # which has begun the table


def test_a_version_that_made_no_row_does_not_count(path):
    by_version(path, OLD, 1, 2)
    by_version(path, NEW, 3, 3, kept=2)
    path.write_bytes(path.read_bytes().partition(b"\n3,")[0] + b"\n")  # as a kill leaves it
    assert path.read_bytes().endswith(f"# made by: {NEW}\n".encode())
    found = read_table(path)
    assert found.makers == {0: OLD}
    assert not found.made_by_others(OLD).any()


def test_an_unknown_version_is_named_only_after_a_known_one(path):
    by_version(path, "", 1, 2)
    assert b"# made by" not in path.read_bytes()
    by_version(path, NEW, 3, 4, kept=2)
    by_version(path, "", 5, 5, kept=4)
    by_version(path, "", 6, 6, kept=5)
    found = read_table(path)
    assert found.makers == {2: NEW, 4: "unknown"}
    assert found.made_by_others(OLD).tolist() == [False, False, True, True, False, False]


def test_tables_with_digests_of_sources_are_read_and_continued(path):
    """Versions up to 0.2.0 wrote them, and they say nothing any more."""
    by_version(path, OLD, 1, 4)
    content = unsealed(path)
    for row, digest in (("1", "0123456789abcdef"), ("3", "unknown"), ("4", "fedcba9876543210")):
        content = content.replace(f"\n{row},".encode(), f"\n# sources: {digest}\n{row},".encode())
    assert content.count(b"\n# sources: ") == 3
    path.write_bytes(content + seal_of(content))
    found = read_table(path)
    assert found["sweep"].tolist() == [1, 2, 3, 4]
    assert found.makers == {0: OLD}
    assert TableTail(path).read()["sweep"].tolist() == [1, 2, 3, 4]
    by_version(path, NEW, 5, 5, kept=4)
    assert path.read_bytes().startswith(content + f"# made by: {NEW}\n5,".encode())
    assert read_table(path).makers == {0: OLD, 4: NEW}
    by_version(path, OLD, 3, 3, kept=2)
    assert read_table(path).makers == {0: OLD}
    assert path.read_bytes().count(b"\n# sources: ") == 1


@pytest.mark.parametrize(
    "line",
    ["# sources: 0123", "# sources: xyz", "# sources 0123456789abcdef", "# made by: ", "# made by"],
)
def test_other_lines_among_the_rows_are_damage(path, line):
    by_version(path, "", 1, 2)
    path.write_bytes(unsealed(path) + f"{line}\n".encode())
    with pytest.raises(GaugeError, match="is damaged"):
        read_table(path)

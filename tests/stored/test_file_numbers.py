"""``gauge-mc measure --number``: numbers of configurations in the names of files of others."""

from pathlib import Path

import pytest

import gauge_mc
from gauge_mc.errors import UsageError
from gauge_mc.files.table import read_table
from gauge_mc.stored.measurement_table import find_ensemble
from tests.calls import call
from tests.formats.format_samples import nersc_bytes, random_links

NAMES = ("b5.7_cfg100_r2.lat", "b5.7_cfg90_r2.lat", "b5.7_cfg0_r2.lat")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files whose headers say nothing useful, and whose last number is that of the replica."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs").mkdir()
    for seed, name in enumerate(NAMES):
        links = random_links("su2", extents=(4, 2, 2, 2), seed=seed)
        (tmp_path / "theirs" / name).write_bytes(nersc_bytes(links, SEQUENCE_NUMBER=1))
    return tmp_path


def numbered(paths, pattern):
    files = find_ensemble([*map(Path, paths)], number=pattern).files
    return {number: path.name for number, path in files.items()}


@pytest.mark.parametrize("pattern", ["cfg([0-9]+)", r"(?:^b[\d.]+_cfg)(\d+)_r(\d+)"])
@pytest.mark.parametrize("by", ["folder", "files"])
def test_the_first_group_in_the_name_is_the_number(folder, pattern, by):
    paths = ["theirs"] if by == "folder" else [folder / "theirs" / name for name in NAMES]
    found = numbered(paths, pattern)
    assert found == {0: NAMES[2], 90: NAMES[1], 100: NAMES[0]}
    assert [*found] == [0, 90, 100]


def test_only_the_name_of_the_file_counts(folder):
    (folder / "theirs").rename(folder / "cfg7")
    assert [*numbered(["cfg7"], "cfg([0-9]+)")] == [0, 90, 100]


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("cfg([0-9]+", "is not a regular expression (missing )"),
        ("(a){99999999999}", "is not a regular expression"),
        ("cfg[0-9]+", "has no group"),
        ("cfg(?:[0-9]+)", "has no group"),
        ("", "has no group"),
        ("conf([0-9]+)", "does not match the name of theirs/b5.7_cfg0_r2.lat"),
        ("cfg100()_", "does not match the name of theirs/b5.7_cfg0_r2.lat"),
        ("(cfg[0-9]+)", "finds 'cfg0' in the name of theirs/b5.7_cfg0_r2.lat, which is not a"),
        (r"b([0-9.]+)", "finds '5.7' in the name"),
        ("(x)?cfg", "finds '' in the name"),
        ("r([0-9])", "finds 2 in the names of both theirs/b5.7_cfg0_r2.lat and theirs/b5.7_cfg100"),
    ],
)
def test_patterns_that_give_no_numbers_are_refused(folder, pattern, sentence):
    shown, code = call("measure", "plaquette", "theirs", "--number", pattern)
    assert (code, sentence in shown) == (2, True), shown
    assert not (folder / "plaquette.csv").exists()


def test_digits_of_other_scripts_and_very_long_numbers_are_not_numbers(folder):
    for name in ("cfg٣.lat", f"cfg{'9' * 40}.lat"):
        path = folder / name
        path.write_bytes((folder / "theirs" / NAMES[0]).read_bytes())
        with pytest.raises(UsageError, match="not a whole number"):
            find_ensemble([path], number=r"cfg(\d+)")


@pytest.mark.kernels
def test_tables_have_the_numbers(folder):
    words = ("measure", "plaquette", "theirs", "--number", "cfg([0-9]+)", "--backend", "cpu")
    assert "on 3 configurations" in call(*words)[0]
    table = read_table("plaquette_theirs.csv")
    assert table["sweep"].tolist() == [0, 90, 100]
    assert [one.name for one in table.origins.values()] == [NAMES[2], NAMES[1], NAMES[0]]
    assert "3 already measured" in call(*words)[0]
    found = gauge_mc.measure(
        "theirs", "plaquette", number="cfg([0-9]+)", output="again.csv", progress=False
    )
    assert found["sweep"].tolist() == [0, 90, 100]
    # Without the option all of them have the number of the replica.
    shown, code = call("measure", "plaquette", "theirs", "--output", "other.csv")
    assert (code, "both have the number 2" in shown) == (2, True)

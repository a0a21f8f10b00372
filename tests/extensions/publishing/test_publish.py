"""``gauge-mc publish``: folders from which configurations are made again and compared."""

import csv
import dataclasses
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import xml.etree.ElementTree as ET

import pytest

from gauge_mc import publish
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.errors import UNCHECKED, DamagedError, GaugeError, UsageError
from gauge_mc.extensions.publishing import publish as publishing
from gauge_mc.extensions.publishing import record
from gauge_mc.extensions.publishing.publish import check_chain, make_again
from gauge_mc.extensions.publishing.record import published_files
from gauge_mc.inspection.verify import verify
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from tests.calls import call, call_apart, forbid, make_run
from tests.extensions.publishing.qcdml_layout import faults
from tests.inspection.test_without_kernels import CONFIG, no_compiler

pytestmark = pytest.mark.kernels

AUTHORS = ("Doe, Jane", "Muster, Max")
GROUP = {"group": "su3", "action": "iwasaki", "precision": "double", "configs": 5}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("made") / "run", **GROUP)


@pytest.fixture
def folder(run, tmp_path):
    publish(run, tmp_path / "data", authors=AUTHORS, institution="Town & <Gown>", title='"a: b"')
    return tmp_path / "data"


def bad(folder):
    return {one.path.name: one.words for one in verify(folder) if one.sound is False}


def test_the_list_of_configurations(run, folder):
    rows = list(csv.DictReader((folder / "configurations.csv").open()))
    assert [int(row["update"]) for row in rows] == [5, 8, 11, 14, 17]
    for row in rows:
        data = (run / row["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == row["sha256"]
        assert len(data) == int(row["bytes"])
        configuration = open_configuration(run / row["file"])
        assert configuration.digest() == row["links"]
        assert float(row["plaquette"]) == pytest.approx(configuration.header.plaquette, abs=1e-7)
    assert [*Run(folder).configs()] == [5, 17]
    for path in (folder / "configs").iterdir():
        assert path.read_bytes() == (run / "configs" / path.name).read_bytes()


def test_every_file_is_described(run, folder):
    described = published_files(folder)
    there = {one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file()}
    assert there - described.keys() == {"ro-crate-metadata.json"}
    for name, digest in described.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    graph = json.loads((folder / "ro-crate-metadata.json").read_text())["@graph"]
    ids = [one["@id"] for one in graph]
    assert len(ids) == len({*ids})
    assert [one["name"] for one in graph if one["@type"] == "Person"] == ["Jane Doe", "Max Muster"]
    size = sum(one.stat().st_size for one in folder.rglob("*") if one.parent.name != "configs")
    assert size < 100_000
    assert (folder / "plaquette.csv").read_bytes() == (run / "plaquette.csv").read_bytes()


@pytest.mark.slow
def test_it_is_checked_and_made_again(folder):
    assert bad(folder) == {}
    shown, code = call("verify", folder, "--regenerate", "9")
    assert code == 0
    assert "with the same links: 5, 8, 11, 14 and 17" in shown
    assert "the sources of the kernels are those of this version" in shown


@pytest.mark.slow
def test_the_card_makes_the_run(run, folder, tmp_path):
    again = ("--output", tmp_path / "again", "--backend", "cpu", "--threads", "2", "--quiet")
    assert call("generate", "--card", folder / "card.toml", *again)[1] == 0
    for path in (run / "configs").iterdir():
        assert (tmp_path / "again/configs" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", ["run.toml", "plaquette.csv", "configs/0000005.lime", "README.md"])
def test_changes_are_noticed(folder, name):
    changed(folder / name, (folder / name).stat().st_size // 2)
    found = bad(folder)
    assert found.pop(name.split("/")[-1]) == (
        f"{folder / name} is not the file that was published; get the publication again."
    )
    assert {*found} <= ({"chain.json"} if name == "run.toml" else set())  # compared with it
    (folder / name).unlink()
    assert "is missing; get the publication again" in bad(folder)[name.split("/")[-1]]


def described_anew(folder):
    """Let the description of a folder agree with its files."""
    path = folder / "ro-crate-metadata.json"
    content = json.loads(path.read_text())
    graph = content["@graph"]
    for one in graph:
        file = folder / one["@id"]
        if "sha256" in one and file.is_file():
            one["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    kept = [one for one in graph if "sha256" not in one or (folder / one["@id"]).is_file()]
    path.write_text(json.dumps({**content, "@graph": kept}))


@pytest.fixture
def endless(folder):
    """A publication of a run with 10^12 updates, which agrees with itself."""
    more = 10**12 - 20
    for name in ("run.toml", "card.toml"):
        path = folder / name
        path.write_text(path.read_text().replace("thermalize = 2", f"thermalize = {more + 2}"))
    chain = folder / "chain.json"
    state = json.loads(chain.read_text())
    done = state["sweep"] + more
    step = state["step"] // state["sweep"] * done
    chain.write_text(json.dumps({**state, "sweep": done, "step": step}))
    path = folder / "configurations.csv"
    rows = list(csv.DictReader(path.open()))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({**row, "update": int(row["update"]) + more} for row in rows)
    for config in (folder / "configs").iterdir():
        config.unlink()
    described_anew(folder)
    return folder


@pytest.mark.slow
def test_what_takes_too_long_is_not_made_again(endless, monkeypatch):
    monkeypatch.setattr(publishing, "TRIAL_SECONDS", 0.05)
    found = [one for one in verify(endless, regenerate=1) if one.sound is not True]
    (refused,) = found
    assert (refused.path.name, refused.sound) == ("configurations.csv", None)
    words = (
        rf"Making 1 configuration of {endless} again on .* takes [0-9]{{12}} updates, .* years, "
        r"and 24 hours are allowed; give more time with --time-limit [0-9]+:00:00\."
    )
    assert re.fullmatch(words, refused.words)
    shown, _, code = call_apart("verify", endless, "--regenerate", "1")
    assert code == UNCHECKED
    assert "cannot be checked here: Making 1 configuration" in shown


@pytest.mark.slow
def test_a_time_limit_allows_what_takes_longer(folder, monkeypatch):
    monkeypatch.setattr(publishing, "TRIAL_SECONDS", 0)
    words = ("verify", folder, "--regenerate", "9")
    shown, _, code = call_apart(*words, "--time-limit", "0:00:00")
    assert code == UNCHECKED
    advice = re.search(r"--time-limit (\S+)\.", shown)[1]
    assert call(*words, "--time-limit", advice)[1] == 0
    assert call(*words, "--time-limit", "soon")[1] == 2


@pytest.mark.slow
def test_other_links_are_noticed(folder):
    path = folder / "configurations.csv"
    lines = path.read_text().splitlines()
    lines[3] = lines[3].replace("checksum ", "checksum 1")
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(GaugeError, match=r"configuration 11 of .* has different links"):
        make_again(folder, 5, lambda share: None)


def test_other_kernels_are_mentioned(folder):
    path = folder / "kernels.csv"
    path.write_text(path.read_text().replace("action/wilson.h,", "action/other.h,"))
    words = [one.words for one in verify(folder) if one.path == path]
    assert "caution: 2 sources of kernels differ in this version" in words


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "configs/../../outside"])
def test_a_description_leads_nowhere_else(folder, name):
    path = folder / "ro-crate-metadata.json"
    path.write_text(path.read_text().replace('"@id": "run.toml"', f'"@id": "{name}"'))
    assert "which is outside of the folder" in bad(folder)[path.name]


def test_configurations_in_qcdml(run, folder):
    space = {"q": "http://www.lqcd.org/ildg/QCDml/config2.0"}
    assert faults((folder / "ensemble.xml").read_text()) == []
    with tarfile.open(folder / "configurations-qcdml.tar.xz") as archive:
        members = {one.name: archive.extractfile(one).read() for one in archive}
    assert sorted(members) == [f"{n:07d}.xml" for n in (5, 8, 11, 14, 17)]
    assert [fault for one in members.values() for fault in faults(one)] == []
    root = ET.fromstring(members["0000011.xml"])
    stated = {"update": "11", "field": "su3gauge", "institution": "Town & <Gown>"}
    for name, text in stated.items():
        assert root.findtext(f".//q:{name}", namespaces=space) == text
    path = run / "configs" / "0000011.lime"
    offset, size = open_configuration(path).span
    data = path.read_bytes()[offset : offset + size]
    checksum, *_ = subprocess.check_output(["cksum"], input=data).decode().split()
    assert root.findtext(".//q:crcCheckSum", namespaces=space) == checksum


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"action": "rectangle:c1=-0.2"}, "QCDml has no element for the action rectangle:c1=-0.2."),
        ({"format": "nersc"}, "QCDml describes files in the format ildg, and these are in nersc."),
    ],
)
def test_what_qcdml_does_not_know_is_said(tmp_path, values, sentence):
    run = make_run(tmp_path / "run", configs=1, **values)
    assert publish(run, tmp_path / "data", authors=AUTHORS).notes == (sentence,)
    assert sentence in (tmp_path / "data/README.md").read_text()
    assert not (tmp_path / "data/ensemble.xml").exists()
    assert bad(tmp_path / "data") == {}


def test_a_publication_is_not_replaced_by_one_at_the_same_time(run, tmp_path, monkeypatch):
    target, usual = tmp_path / "some data", record.crate_text

    def faster(*parts):
        monkeypatch.setattr(record, "crate_text", usual)
        publish(run, target, authors=AUTHORS)
        return usual(*parts)

    monkeypatch.setattr(record, "crate_text", faster)
    with pytest.raises(UsageError, match="is a complete publication already") as caught:
        publish(run, target, authors=AUTHORS)
    assert [*tmp_path.iterdir()] == [target]
    words = shlex.split(str(caught.value).split("`")[1])
    assert call(*words[1:])[1] == 0


def test_what_is_refused(run, folder, tmp_path):
    new = tmp_path / "new"
    for source, target, how, message in (
        (run, folder, {}, "is a complete publication already"),
        (run, new, {"authors": []}, "name one with --author"),
        (run, new, {"authors": [", Jane"]}, "is not the name of an author"),
        (run, new, {"authors": ["Jane Doe"]}, "give it as 'Family, Given'"),
        (run, new, {"license": "foo"}, "'foo' is not an SPDX identifier"),
        (run, new, {"whole": -1}, "choose a number of configurations"),
        (folder / "configs", new, {}, "There is no run in"),
    ):
        with pytest.raises(UsageError, match=message):
            publish(source, target, **{"authors": AUTHORS, **how})
    assert not (tmp_path / "new").exists()
    shown, code = call("verify", run, "--regenerate", "1")
    assert ("is not a publication" in shown, code) == (True, 2)


def changed(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_a_damaged_configuration_is_not_published(tmp_path):
    run = make_run(tmp_path / "run", configs=1)
    changed(Run(run).config(5, "ildg"), -2000)
    with pytest.raises(GaugeError, match="damaged"):
        publish(run, tmp_path / "data", authors=AUTHORS)
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_a_folder_is_written_whole_or_not_at_all(run, tmp_path, monkeypatch):
    """Whatever fails, nothing is left, and the same command then works; also in an empty folder."""
    target = tmp_path / "new" / "data"
    words = ("publish", run, target, "--author", "Plato")

    def full(*_):
        raise OSError(28, "full")

    with monkeypatch.context() as patch:
        patch.setattr(record, "crate_text", full)
        said, code = call(*words)
    assert (code, "full" in said, [*tmp_path.iterdir()]) == (1, True, [])
    left = tmp_path / "new" / f".data.{16 * '0'}.tmp"  # of a process that was killed
    (left / "configs").mkdir(parents=True)
    os.utime(left, (0, 0))
    target.mkdir()
    assert call(*words)[1] == 0
    assert [*target.parent.iterdir()] == [target]
    assert bad(target) == {}


@pytest.mark.slow
def test_the_current_folder_is_not_replaced(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (".", "./", tmp_path):
        with pytest.raises(UsageError, match="is the current folder"):
            publish(run, name, authors=AUTHORS)
    with pytest.raises(UsageError, match="is not an empty folder"):
        publish(run, "..", authors=AUTHORS)
    assert publish(run, "data/", authors=AUTHORS).folder == "data"


@pytest.mark.parametrize("change", [
    "1000000000000000", "-1", "0", "6", "18", "20", "99999999999999999999", "1e3", "nan", "",
    '"' + 200000 * "x" + '"', "5,5", '"5\x00',
])  # fmt: skip
def test_updates_that_the_run_has_not_made_are_not_made_again(folder, change):
    path = folder / "configurations.csv"
    path.write_text(path.read_text().replace("\n17,", f"\n{change},"))
    with pytest.raises(GaugeError, match=r"configurations.csv (lists a|is damaged)"):
        make_again(folder, 5, lambda share: None)


@pytest.mark.slow
def test_a_run_that_is_at_work_is_not_published(run, tmp_path, monkeypatch):
    """Its configurations and the state of its chain would be of different moments."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    with Run(copy).locked(), pytest.raises(GaugeError, match=r"is in use by .* publish it when"):
        publish(copy, tmp_path / "data", authors=AUTHORS)
    assert not (tmp_path / "data").exists()
    states = iter([read_state(Run(copy).checkpoint)])
    later = dataclasses.replace(read_state(Run(copy).checkpoint), sweep=10**6)
    monkeypatch.setattr(publishing, "read_state", lambda path: next(states, later))
    with pytest.raises(GaugeError, match="has gone on meanwhile; publish it once more"):
        publish(copy, tmp_path / "data", authors=AUTHORS)
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_parameters_and_state_of_a_publication_are_compared(run, tmp_path):
    folder = tmp_path / "data"
    publish(run, folder, authors=AUTHORS)
    said = check_chain(folder)
    assert "as run.toml and the list of configurations say" in said
    assert said in [one.words for one in verify(folder)]
    text = (folder / "chain.json").read_text()
    stated = json.loads(text)
    for sweep, words in ((stated["sweep"] - 1, "lists a configuration"), (10**6, "at most")):
        draws = stated["step"] // stated["sweep"]
        changed = {**stated, "sweep": sweep, "step": sweep * draws}
        (folder / "chain.json").write_text(json.dumps(changed))
        with pytest.raises(DamagedError, match=words):
            check_chain(folder)


@pytest.mark.slow
def test_a_run_is_published_where_no_kernel_can_be_compiled(run, tmp_path, monkeypatch):
    publish(run, tmp_path / "with", authors=AUTHORS)
    no_compiler(tmp_path, monkeypatch)
    publish(run, tmp_path / "without", authors=AUTHORS)
    one, other = (record.read_configurations(tmp_path / name) for name in ("with", "without"))
    assert {n: row.links for n, row in one.items()} == {n: row.links for n, row in other.items()}
    assert call("verify", tmp_path / "without")[1] == 0


@pytest.mark.parametrize("name", [record.CRATE, "chain.json", CONFIG])
def test_a_file_that_must_not_be_read_is_no_verdict(folder, monkeypatch, name):
    forbid(monkeypatch, folder / name)
    shown, code = call("verify", folder)
    assert code == UNCHECKED
    assert "Permission denied" in shown
    assert "BAD" not in shown


def test_a_damaged_description_is_a_verdict(folder):
    (folder / record.CRATE).write_text("{")
    shown, code = call("verify", folder)
    assert shown.startswith(f"BAD   {folder / record.CRATE} is damaged")
    assert code == 1

"""Text of others cannot control the terminal, neither in messages nor in tables."""

import json
import os
import re
import shutil
import warnings
from pathlib import Path

import pytest

from gauge_mc.console import Console, plain_table
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.run.directory import Run
from tests.calls import call_apart, make_run
from tests.formats.format_samples import ildg_bytes, nersc_bytes, random_links, record

pytestmark = pytest.mark.kernels

EVIL = "\x1b[31m\x9b2J\u202ered\x07"
HARMLESS = re.compile(r"[^\n\x20-\x7e\xa1-\u200a\u2010-\u2027\u2030-\uffff]")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("escapes") / "run")


def shown(*words):
    text = "".join(call_apart(*words)[:2])
    assert not HARMLESS.search(text), ascii(text)
    return text


@pytest.mark.slow
def test_names_of_files(made, tmp_path):
    run = tmp_path / f"run{EVIL}"
    shutil.copytree(made, run)
    config = run / "configs" / "0000005.lime"
    out = tmp_path / f"out{EVIL}"
    for words in (
        ("status", run),
        ("info", run),
        ("info", config),
        ("verify", run),
        ("generate", "--output", run),
        ("measure", "polyakov", run, "--backend", "cpu"),
        ("export", run, f"{out}.h5"),
        ("plot", "plaquette", run),
        ("convert", config, out, "--to", "nersc"),
        ("convert", config, out, "--to", "nersc"),
        ("info", tmp_path / f"none{EVIL}"),
        ("generate", "--card", tmp_path / f"none{EVIL}"),
    ):
        assert r"\x1b[31m" in shown(*words), words


def test_names_of_several_chains(tmp_path):
    words = ["--lattice", "2x2x2x4", "--thermalize", "1", "--configs", "1", "--backend", "cpu"]
    output = tmp_path / f"some{EVIL}"
    text = shown("generate", *words, "--chains", "2", "--output", output)
    assert Path(f"{output}_chain2").is_dir()
    name = ascii(str(output))[1:-1]
    assert f"\n... {name}_chain2: 2 chains are updated together\n" in text
    assert f"\nfiles   {name}_chain1 ... {name}_chain2 (2 configurations)\n" in text
    assert f"{name}_chain1" in shown(
        "generate", *words, "--chains", "2", "--seed", "9", "--output", output
    )


@pytest.mark.slow
def test_headers_of_files(tmp_path):
    links = random_links("su3", extents=(2, 2, 2, 2))
    path = tmp_path / "file.nersc"
    path.write_bytes(nersc_bytes(links, REMARK="\x1b[31m red", **{"EVIL\x1b[2J": "1"}))
    for words in (("info", path), ("info", path, "--json"), ("verify", path)):
        shown(*words)
    more = record(b"xlf-info", EVIL.encode(), begins=1, ends=1)
    (tmp_path / "file.lime").write_bytes(ildg_bytes(links, "double", more=more))
    shown("info", tmp_path / "file.lime")
    shown("convert", tmp_path / "file.lime", tmp_path / "out", "--to", "nersc")


def test_locks_cards_and_tables(made, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(made, run)
    holder = {
        "host": EVIL,
        "process": 7,
        "since": EVIL,
        "sweep": 1,
        "rate": 1.0,
        "times": {EVIL: 1},
    }
    with Run(run).locked() as lock:
        (run / "lock").write_text(json.dumps(holder))
        lock.holder = type(lock.holder)(**holder)
        assert r"\x1b[31m" in shown("status", run)
        assert r"\x1b[31m" in shown("generate", "--output", run)
    card = tmp_path / "card.toml"
    card.write_text('"\\u001b[31m" = 1\n')
    assert r"\x1b[31m" in shown("generate", "--card", card)
    (run / "plaquette.csv").write_text(f"# observable: x\n# {EVIL}: 1\nsweep,{EVIL}\n1,2\n")
    shown("status", run)
    shown("verify", run)
    os.rename(run / "polyakov.csv", run / f"{EVIL}.csv")
    shown("info", run)


def test_a_console_escapes_but_keeps_its_own_colours(capsys):
    console = Console(force_terminal=True, color_system="standard", width=60)
    console.print(f"a{EVIL}b", style="red", markup=False, highlight=False)
    text = capsys.readouterr().out
    assert text.startswith("\x1b[31ma\\x1b[31m\\x9b2J\\u202ered")
    table = plain_table(["name", "more"])
    table.add_row(f"a{EVIL}b", "c")
    console.print(table)
    assert re.search(r"a\\x1b\[31m\\x9b2J\\u202ered\\x07b +c", capsys.readouterr().out)


def test_figures_show_no_control_characters(tmp_path, capfd):
    with warnings.catch_warnings(action="error"), figure_file(tmp_path / "a.pdf", (3, 2)) as figure:
        axes = figure.add_subplot()
        axes.plot([1, 2], label=EVIL)
        axes.set(title="two\nlines")
        axes.legend()
    assert axes.get_legend().get_texts()[0].get_text() == r"\x1b[31m\x9b2J\u202ered\x07"
    assert (axes.get_title(), capfd.readouterr().err) == ("two\nlines", "")

"""Advice works: what a message names exists, and carrying it out is accepted."""

import os
import re
import shlex
import shutil
from functools import cache
from pathlib import Path

import pytest

from gauge_mc import cli
from gauge_mc.quoting import CommandLine
from gauge_mc.updates.terms import ACTION_TERMS
from tests.advice.messages import COMMAND, OPTION, messages
from tests.advice.scenarios import ELSEWHERE, OF_EXTENSIONS, RUN, SCENARIOS
from tests.calls import call_apart
from tests.fits.tables import write_tables
from tests.samples import all_of, samples

ITEMS = {
    one.name.replace("_", "-") for kind in ACTION_TERMS.values() for one in kind.items.options()
}
"""Options of the items of kinds of terms such as --quarks, which messages name like others."""
FOREIGN = {"jobs", "version"}
"""Options of squeue and the compiler."""
PLACES = [Path(__file__), *(Path(one.__file__) for one in samples())]
OPEN = [path.with_name("open.txt") for path in PLACES]
ALL_SCENARIOS = [one for several in (SCENARIOS, *all_of("SCENARIOS")) for one in several]
"""Those of this package and of its extensions."""
PLACE = ("--backend", "cpu", "--threads", "1")
PLACED = ("generate", "measure", "regenerate", "scan")
"""Commands that compute."""


def open_messages():
    """The messages that no scenario reaches yet."""
    lines = [line for path in OPEN if path.exists() for line in path.read_text().splitlines()[2:]]
    return [line.encode().decode("unicode_escape") for line in lines]


MESSAGES = cache(messages)


def whole(part):
    """The message that this is, or the only one with this part."""
    found = [part] if part in MESSAGES() else [text for text in MESSAGES() if part in text]
    return found[0] if len(found) == 1 else part


def listed_messages():
    """The messages that have scenarios, or reasons for having none, or are open."""
    reasons = [whole(text) for several in (ELSEWHERE, *all_of("ELSEWHERE")) for text in several]
    return [*{whole(one.message) for one in ALL_SCENARIOS}, *reasons, *open_messages()]


def options_of(name):
    """The options of a command, with those of the things that it has."""
    command = cli.load_command(name)
    kind = getattr(command, "kind", None)
    own = [one.flag for thing in kind.names() for one, *_ in kind.options(thing)] if kind else []
    words = [*own, *(word for one in command.params for word in one.opts), "--help"]
    return {word.removeprefix("--") for word in words}


def call(words):
    """Call a command line; return all that it printed, with single spaces, and its exit code."""
    name, *rest = shlex.split(words)
    out, complaint, code = call_apart(name, *rest, *(PLACE if name in PLACED else ()))
    return " ".join(f"{out} {complaint}".split()), code


def as_pattern(message):
    """A message as a pattern of what is printed; a command may lack options with a value."""
    text = " ".join(message.split())
    pattern = ".*".join(map(re.escape, text.split("{}")))
    option = r"(?:\\ \\-\\-[a-z\\-]+\\ \.\*)"
    return re.sub(option, r"(?:\g<0>)?", pattern) if "gauge-mc" in text else pattern


def test_every_message_that_names_a_command_is_known():
    found, known = MESSAGES(), {*listed_messages(), *OF_EXTENSIONS}
    unknown = {text: module for text, module in found.items() if text not in known}
    assert not unknown, "add a scenario for each of them to tests/advice/scenarios.py"
    assert not known - found.keys(), "they are in the package no more; remove their entries"


def test_no_message_is_listed_twice():
    listed = listed_messages()
    assert len(listed) == len(set(listed))


def test_options_in_messages_exist_and_belong_to_the_command_before_them():
    found, options = MESSAGES(), {name: options_of(name) for name in cli.COMMANDS}
    everywhere = set().union(*options.values())
    wrong, absent = [], OF_EXTENSIONS - {*listed_messages()}
    for text in found.keys() - absent:
        for name, tail in re.findall(rf"{COMMAND.pattern}([^;.]*)", text):
            known = options.get(name, everywhere)
            wrong += [(text, one) for one in OPTION.findall(tail) if one not in known]
        wrong += [(text, one) for one in OPTION.findall(text) if one not in everywhere]
    assert not [one for one in wrong if one[1] not in ITEMS | FOREIGN]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with one run, and with tables for fits."""
    folder = tmp_path_factory.mktemp("advice")
    (folder / "tables").mkdir()
    write_tables(folder / "tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert call(f"{RUN} run")[1] == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("one", ALL_SCENARIOS, ids=lambda one: one.command)
def test_advice_is_accepted_where_it_is_given(one, made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    if one.program:
        Path(one.program[0]).write_text(one.program[1])
        Path(one.program[0]).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for line in one.before:
        shown, code = call(line)
        assert code == 0, shown
    if one.remove:
        Path(one.remove).unlink()
    if one.write:
        Path(one.write[0]).write_text(one.write[1])
    monkeypatch.setattr(CommandLine, "__str__", recorded(lines := []))
    shown, _ = call(one.command)
    assert re.search(as_pattern(whole(one.message)), shown), shown
    assert one.printed in shown
    pasted = [line.removeprefix("gauge-mc ") for line in dict.fromkeys(lines) if line in shown]
    follow = one.follow or one.printed.removeprefix("gauge-mc ")
    assert follow != one.command
    for line in dict.fromkeys(filter(None, (*pasted, follow, one.then))):
        answer, code = call(line)
        assert code == 0, answer


def recorded(lines):
    """How command lines become texts, which are also recorded."""
    usual = CommandLine.__str__

    def text(self):
        lines.append(usual(self))
        return lines[-1]

    return text

"""Wrong parameters of commands."""

import os
import random
import shutil

from gauge_mc import cli
from gauge_mc.cli.command import Chooser
from gauge_mc.errors import INTERRUPTED, UNCHECKED
from tests.calls import call

NUMBERS = (
    *("nan", "inf", "-inf", "sNaN", "1e400", "-1e400", "1e-400", "1e30", "-1", "1_0", "0x10", "1e"),
    *("", " ", "1 2", "٣", "１", "--", "-", "+", ".", "1.2.3", "1,2", "9" * 400, "9" * 5000),
    *(str(2**31), str(2**32), str(2**63), str(2**64), "-" + str(2**63)),
)
TEXTS = (
    *("", " ", ",", ":", "a" * 5000, "\x1b[31mred", "two\nlines", "\u202ereversed", "[bold]", "/"),
    *("../..", "/dev/null", "/dev/zero", "/dev/full", "/proc/self/mem", "x" * 300, "\udcff"),
    *("4x4x4x-4", "4x4x4x1e9", "x".join(4 * ["9" * 100]), "256", "4x4", "0", "cpu:1000000"),
    *("cpu:" + "9" * 5000, "9" * 5000, "0,0", "99999999999:0:0", ":".join(3 * ["9" * 400])),
    *("2.2:2.8:1e-300", "2.2:9e99:1", "plaquette:" + "9" * 400, "none,plaquette"),
)
LONG = {
    *("--submit", "--submit-option", "--install", "--json", "--quiet", "--collect", "--dry-run"),
    "--help",
}
"""Options that are left out: they take no value, or are tested elsewhere."""


def options_of(words):
    command = cli.load_command(words[0])
    if isinstance(command, Chooser):
        command = command.subcommand(words[1])
    options = (parameter.opts for parameter in command.params)
    flags = (one[0] for one in options)
    return [flag for flag in flags if flag.startswith("--") and flag not in LONG]


def snapshot(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files}


def tried(command, draw, count):
    words, arguments = command
    flags = options_of(words.split())
    everything = [(flag, value) for flag in flags for value in (*NUMBERS, *TEXTS)]
    everything += [(place, value) for place in arguments for value in TEXTS]
    for flag, value in draw.sample(everything, min(count, len(everything))):
        yield words.split(), arguments, flag, value


def attempt(command, folder, run, draw, count):
    """Call the program with wrong parameters; return how often, and what went wrong."""
    known = {"RUN": run, "CONFIG": run / "configs" / "0000005.lime", "OUT": folder / "out.nersc"}
    before, wrong, number = snapshot(run), [], 0
    name = command[0].split()[0]
    for words, arguments, flag, value in tried(command, draw, count):
        if any(path == os.path.normpath(value) for path in ("/", "/dev", "..")):
            continue
        number += 1
        given = [value if place == flag else str(known[place]) for place in arguments]
        more = [f"{flag}={value}"] if flag.startswith("--") else []
        if name == "convert" and flag != "--to":
            more.append("--to=nersc")
        if name in ("generate", "scan") and flag not in ("--output",):
            more.append(f"--output={folder / 'new'}")
        try:
            said, code = call(*words, *more, "--", *given)
            if len(said) > 20000 or (code and not said.isprintable() and "\n" not in said):
                wrong.append((flag, value[:40], said[-300:]))
            if code not in (0, 1, 2, INTERRUPTED, UNCHECKED):
                wrong.append((flag, value[:40], f"exit code {code}"))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            wrong.append((flag, value[:40], f"{type(error).__name__}: {str(error)[-400:]}"))
        made = [path for path in (folder / "new", folder / "out.nersc") if path.exists()]
        for path in made:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    after = snapshot(run)
    changed = [path for path in before if after.get(path) != before[path]]
    return number, wrong, changed


def check(command, folder, run, count):
    """Check that wrong parameters of a command are one sentence each, and change no run."""
    number, wrong, changed = attempt(command, folder, run, random.Random(7), count)
    print(f"{command[0]}: {number} bad parameters, {len(wrong)} failures")
    assert not wrong, wrong[:5]
    assert not changed
    assert number

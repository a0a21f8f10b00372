"""Kinds of files, and trials of their readers with extreme values.

The work is bounded by counting calls of functions, and of generators, not by time.
"""

import ast
import itertools
import json
import re
import sys
from contextlib import contextmanager
from pathlib import Path

import tomli_w

import gauge_mc
from gauge_mc.errors import GaugeError
from gauge_mc.files.structured import parse_json, parse_toml
from gauge_mc.quoting import sentence

MOST_WORK = 400_000
"""Largest number of calls when any of these files is read; good ones need less than a tenth."""

NUMBERS = [
    *("0", "-1", "1000000000000000", "9223372036854775807", "-9223372036854775808"),
    *("1" + 30 * "0", "1" + 400 * "0", "1" + 5000 * "0", "0.5", "1e308", "-1e308", "5e-324"),
]
LONG = '"' + 10_000 * "x" + '"'
TEXTS = ['""', LONG, '"\\u0000"', '"../../x"', '"1e400"', '"nan"', '"4x4x4x6"']
DEEP = 10_000 * "[" + 10_000 * "]", 40 * "[" + 40 * "]", 900 * "[" + 900 * "]"
JSON = [*NUMBERS, *TEXTS, *DEEP, "NaN", "Infinity", "-Infinity", "1e999", "null", "true", "[]",
    "{}", "[[1]]", '{"a": 1}', 500 * '{"a":' + "1" + 500 * "}", '0, "again": 0, "again": 1',
]  # fmt: skip
TOML = [*NUMBERS, *TEXTS, *DEEP, "nan", "inf", "-inf", "1e999", "true", "[]", "{}", "[[1]]",
    "{a = 1}", "{a = 1, a = 2}", "{" + 100 * "a." + "a = 1}", "1979-05-27T07:32:00Z",
    "0\nagain = 1\nagain = 2",
]  # fmt: skip
CSV = [*NUMBERS, "", "nan", "inf", "-inf", "1e999", "x" * 10_000, '"', '"x', "1,1", "0x10", "1_0",
    "\x00", "\u0661", " ", "1\n1", "#",
]  # fmt: skip
"""Values that stand in the place of good ones, as they are written."""

MARK = "in the place of this"


def places(content):
    """Yield the keys that lead to everything in a tree, of the elements of a list one of a kind."""
    seen = set()
    for keys in all_places(content):
        kind = tuple(0 if isinstance(key, int) else key for key in keys)
        if kind not in seen:
            seen.add(kind)
            yield keys


def all_places(content, before=()):
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield (*before, key)
        if isinstance(value, dict | list):
            yield from all_places(value, (*before, key))


def marked(content, keys):
    """A copy of a tree with a mark in one place."""
    first, *rest = keys
    copy = content.copy()
    copy[first] = marked(content[first], rest) if rest else MARK
    return copy


class TooMuchWorkError(BaseException):
    """More functions were called than reading a small file can need."""


@contextmanager
def bounded():
    """Count calls, and end what is going on if there are too many."""
    count = itertools.count()

    def note(frame, event, argument):
        if next(count) > MOST_WORK:
            raise TooMuchWorkError

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


class Case:
    """A kind of file: its text, and everything that reads it."""

    values = JSON
    step = 3
    """Step between the places that the quick test tries; three times that of the slow one."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "file"
        self.make()
        self.good = self.text()

    def make(self):
        raise NotImplementedError

    def readers(self):
        raise NotImplementedError

    def text(self):
        return self.path.read_text()

    def store(self, text):
        self.path.write_text(text)

    def changed(self):
        """Yield the texts with a value in the place of another, by place and value."""
        content = parse_json(self.good)
        for keys in places(content):
            text = json.dumps(marked(content, keys))
            yield keys, lambda value, text=text: text.replace(f'"{MARK}"', value)


class TomlCase(Case):
    values = TOML

    def changed(self):
        content = parse_toml(self.good)
        for keys in places(content):
            text = tomli_w.dumps(marked(content, keys))
            yield keys, lambda value, text=text: text.replace(f'"{MARK}"', value)


class CsvCase(Case):
    values = CSV

    def changed(self):
        lines = self.good.splitlines()
        begin = next(n for n, line in enumerate(lines) if not line.startswith("#"))
        lines = [line for line in lines if not line.startswith("# sha256")]
        for row in {*range(begin, min(begin + 3, len(lines))), len(lines) - 1}:
            for column in range(lines[row].count(",") + 1):
                cells = lines[row].split(",")
                cells[column] = MARK
                text = "\n".join([*lines[:row], ",".join(cells), *lines[row + 1 :]]) + "\n"
                yield (row, column), lambda value, text=text: text.replace(MARK, value)
        for row in range(begin):
            key, _, _ = lines[row].partition(": ")
            text = "\n".join([*lines[:row], f"{key}: {MARK}", *lines[row + 1 :]]) + "\n"
            yield (row,), lambda value, text=text: text.replace(MARK, value)


def complaints(case, every):
    """Return what is wrong with the readers of a kind of file; nothing if they are good.

    One value is tried in each of some places, or, with `every`, all of them in three times as many.
    """
    for read in case.readers():
        with bounded():
            read()
    wrong, step = [], case.step // 3 if every else case.step
    for number, (keys, change) in enumerate(itertools.islice(case.changed(), None, None, step)):
        values = case.values if every else [case.values[7 * number % len(case.values)]]
        for value in values:
            case.store(change(value))
            for place, read in enumerate(case.readers()):
                try:
                    with bounded():
                        read()
                except GaugeError as error:
                    said = sentence(str(error))
                    if not said.isprintable() or len(said) > 2000 or not said.endswith((".", "?")):
                        wrong.append((keys, value[:40], place, said[:200]))
                except OSError:
                    pass  # the command line makes a sentence of it
                except (Exception, TooMuchWorkError) as error:
                    wrong.append((keys, value[:40], place, repr(error)[:200]))
    return "\n".join(map(str, wrong[:40]))


MAY_PARSE = re.compile(r"parse_(toml|json|csv)|json_with|tomllib|json\.load|csv\.|loadtxt|genfrom")
PARSERS = {"parse_toml", "parse_json", "parse_csv", "json_with"}


def calls_of_parsers():
    """Yield the functions and classes with calls of parsers, or the modules."""
    root = Path(gauge_mc.__file__).parent
    for path in sorted(root.rglob("*.py")):
        module, text = ".".join(path.relative_to(root).with_suffix("").parts), path.read_text()
        for names, node in within(ast.parse(text)) if MAY_PARSE.search(text) else ():
            if isinstance(node, ast.Call) and is_parser(node.func):
                yield ".".join([module, *names])


def within(node, names=()):
    for one in ast.iter_child_nodes(node):
        yield names, one
        named = isinstance(one, ast.FunctionDef | ast.ClassDef)
        yield from within(one, (*names, one.name) if named else names)


def is_parser(function):
    text = ast.unparse(function)
    parsers = r"tomllib\.loads?|json\.loads?|csv\.(Dict)?[rR]eader|(np|numpy)\.(loadtxt|genfromtxt)"
    return text in PARSERS or bool(re.fullmatch(parsers, text))

"""Mutations: small mistakes in the sources, which tests should find.

``python docs/studies/mutations.py --list`` prints the mutations, half of them of Python and half of
kernels. They follow from the sources and from ``--seed``. ``--run 3 7 --marks "not slow"`` applies
some of them, or all, to a copy of the checkout, one after the other, and runs the tests that
``tests/tools/changes.py`` finds for the file, or, with ``--all-tests``, all. Words that are unknown
here, such as ``-n 2``, go to pytest. With ``--out FILE.csv`` results are kept, and a further call
carries on.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from keyword import iskeyword
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.tools.changes import CHECKOUT, files_with_tests, git

NUMBER = 30
"""Number of mutations of each language."""

PAIRS = ["+ -", "* /", "+= -=", "*= /=", "< <=", "> >=", "== !=", "and or", "&& ||", "True False"]
PAIRS += ["true false", "min max", "minimum maximum", "mu nu"]
SWAPPED = {a: b for pair in PAIRS for a, b in (pair.split(), reversed(pair.split()))}
"""The replacements of operators between spaces, and of names."""

TEXT = r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'"
TRIPLE = r'"""(?:\\.|[^\\])*?"""|' + r"'''(?:\\.|[^\\])*?'''"
CODE = r"(?P<number>(?:\d[\d'_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\w*)|\w+|->|[-+*/%<>=!&|^]+|\S"
PYTHON = re.compile(rf"(?P<skipped>\#.*|(?<!\w)\w{{0,2}}(?:{TRIPLE}|{TEXT}))|{CODE}")
KERNELS = re.compile(
    rf"(?P<skipped>//.*|/\*[^\0]*?\*/|^[ \t]*\#(?:.*\\\n)*.*|{TEXT}"
    rf"|\btemplate <(?:[^<>]|<[^<>]*>)*>|\bstatic_assert\b[^;]*;)|{CODE}",
    re.MULTILINE,
)
"""Tokens. Comments and texts are skipped, in kernels also the preprocessor, and what templates and
assertions at compile time declare."""


@dataclass(frozen=True)
class Mutation:
    """A place in a file of the checkout, and what stands there instead."""

    file: str
    line: int
    start: int
    before: str
    after: str

    @property
    def kind(self) -> str:
        """The kind of the change; all numbers are of one kind."""
        return "number" if self.before[0] in ".0123456789" else self.before

    def applied(self, text: str) -> str:
        """Return the text of the file with the mutation."""
        return text[: self.start] + self.after + text[self.start + len(self.before) :]

    def __str__(self) -> str:
        line = (CHECKOUT / self.file).read_text().splitlines()[self.line - 1].strip()
        return f"{self.file}:{self.line}: {self.before} → {self.after or 'nothing'} in: {line}"


def next_number(text: str) -> str:
    """Return the literal of a number that is larger by one, with its suffix."""
    digits = re.match(r"0[xX][\da-fA-F']+|[\d.'_]*(?:[eE][+-]?\d+)?", text)[0]
    plain = digits.replace("'", "")
    whole = re.fullmatch(r"0[xX].*|[\d_]+", plain)
    return f"{int(plain, 0) + 1 if whole else float(plain) + 1}{text[len(digits) :]}"


def places(text: str, tokens: re.Pattern[str]) -> Iterator[tuple[int, str, str]]:
    """Yield what can be changed: the position, and the text before and after."""
    last, declares, names = "", False, {*re.findall(r"\w+", text)}
    quoted, operator = re.compile(rf" *\w?(?:{TEXT})"), re.compile(r"[(,?:\[{]|[-+*/%<>=!&|^]+|")
    for token in tokens.finditer(text):
        start, word, end = token.start(), token[0], token.end()
        spaced = text[start - 1 : start].isspace() and text[end : end + 1].isspace()
        after = None
        if token["number"]:
            after = next_number(word)
        elif word in ("mu", "nu"):
            if SWAPPED[word] in names and last not in (".", "->") and not declares:
                after = SWAPPED[word]
        elif word in ("!", "not") or (
            word == "-" and (operator.fullmatch(last) or declares is None)
        ):
            after = ""
        elif word in SWAPPED and (spaced or (word.isidentifier() and not declares)):
            joins_texts = last == '"' or (word == "+" and quoted.match(text, end))
            after = None if joins_texts else SWAPPED[word]
        if after is not None and not token["skipped"]:
            yield start, word, after
        last = '"' if token["skipped"] else word
        # A keyword such as `return` says that an expression follows.
        declares = word.isidentifier() or (word in ("*", "&") and not spaced)
        if iskeyword(word) or word == "case":
            declares = None


def spans_without_code(text: str) -> list[tuple[int, int]]:
    """Return where a module has annotations and decorators, and lets `zip` be strict."""
    lines, nodes = text.splitlines(keepends=True), []
    for node in ast.walk(ast.parse(text)):
        parts = [getattr(node, name, None) for name in ("annotation", "returns")]
        parts += getattr(node, "decorator_list", [])
        nodes += [part for part in parts if isinstance(part, ast.expr)]
        nodes += [node.value] if isinstance(node, ast.keyword) and node.arg == "strict" else []

    def position(line: int, column: int) -> int:  # columns count bytes
        before = lines[line - 1].encode()[:column].decode()
        return sum(map(len, lines[: line - 1])) + len(before)

    return [
        (position(one.lineno, one.col_offset), position(one.end_lineno, one.end_col_offset))
        for one in nodes
    ]


def of_file(name: str, text: str) -> list[Mutation]:
    """Return all mutations of a file that could compile."""
    python = name.endswith(".py")
    without = spans_without_code(text) if python else []
    return [
        Mutation(name, text.count("\n", 0, start) + 1, start, before, after)
        for start, before, after in places(text, PYTHON if python else KERNELS)
        if not any(begin <= start < end for begin, end in without)
    ]


def mutations(seed: int = 0) -> list[Mutation]:
    """Return the mutations of the checkout for a seed."""
    drawn, found = random.Random(seed), []
    for folder, endings in (("gauge_mc", (".py",)), ("cuda_src", (".h", ".cu"))):
        names = [one for one in sorted(git("ls-files", folder) or ()) if one.endswith(endings)]
        texts = {name: (CHECKOUT / name).read_text() for name in names}
        # Equal distances along all lines spread the files over the folders.
        lines = [name for name in names for line in texts[name].splitlines() if line.strip()]
        first = drawn.random()
        for n in range(NUMBER):
            place = int((n + first) * len(lines) / NUMBER)
            for name in dict.fromkeys(lines[place:] + lines[:place]):
                if one := drawn_from(of_file(name, texts[name]), texts[name], drawn, found):
                    found.append(one)
                    break
    return found


def drawn_from(
    every: Sequence[Mutation], text: str, drawn: random.Random, others: Sequence[Mutation]
) -> Mutation | None:
    """Draw a kind and then a place; None if a file has no other mutations."""
    left = [one for one in every if one not in others]
    while left:
        kind = drawn.choice(sorted({one.kind for one in left}))
        one = drawn.choice([one for one in left if one.kind == kind])
        if not one.file.endswith(".py") or compiles(one.applied(text)):
            return one
        left.remove(one)
    return None


def compiles(text: str) -> bool:
    """Return whether Python accepts a module."""
    try:
        compile(text, "mutated", "exec")
    except SyntaxError:
        return False
    return True


def copied(folder: Path) -> Path:
    """Copy the files of the checkout that git does not ignore."""
    for name in git("ls-files", "--cached", "--others", "--exclude-standard") or ():
        if (CHECKOUT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, folder / name)
    return folder


def environment(copy: Path, kernels: Path | None = None) -> Mapping[str, str]:
    """Return variables with which Python imports from the copy, and kernels are kept beside it."""
    own = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **own, "GAUGE_MC_CACHE": str(kernels or f"{copy}-kernels")}


def pytest(
    copy: Path, words: Sequence[str], variables: Mapping[str, str], seconds: float
) -> tuple[int | None, str]:
    """Run pytest in the copy; return its exit status, None if it is late, and its output."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x", *words]
    process = subprocess.Popen(
        command,
        cwd=copy,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output = process.communicate(timeout=seconds)[0]
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]


def outcome(
    copy: Path, one: Mutation, given: argparse.Namespace, words: Sequence[str]
) -> tuple[str, str]:
    """Apply a mutation, and return what tests say of it and, if one fails, which."""
    path, variables = copy / one.file, environment(copy, given.kernels)
    found = [CHECKOUT / "tests"] if given.all_tests else files_with_tests([CHECKOUT / one.file])
    tests = sorted(str(test.relative_to(CHECKOUT)) for test in found)
    if not tests:
        return "no tests", ""
    text, options = path.read_text(), ["-m", given.marks, *words]
    path.write_text(one.applied(text))
    try:
        code, output = pytest(copy, [*options, *tests], variables, given.seconds)
    finally:
        path.write_text(text)
    if code in (0, 5, None):
        return {0: "survived", 5: "no tests", None: "out of time"}[code], ""
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    again = [failed[1]] if failed else ["--collect-only", *tests]
    if pytest(copy, [*options, *again], variables, given.seconds)[0] != 0:
        return "fails without it, too", failed[1] if failed else output[-200:]
    compiled = "failed on the kernel '" not in output
    return "caught" if compiled else "does not compile", failed[1] if failed else "no test begins"


def main() -> None:
    """List mutations, or run tests with them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the mutations")
    parser.add_argument("--run", nargs="*", type=int, metavar="NUMBER", help="try these, or all")
    parser.add_argument("--seed", type=int, default=0, help="number that chooses the mutations")
    parser.add_argument("--marks", default="not slow", help="which tests, as for pytest's -m")
    parser.add_argument("--all-tests", action="store_true", help="not only those of the file")
    parser.add_argument("--seconds", type=float, default=300, help="limit for each mutation")
    parser.add_argument("--out", type=Path, help="CSV file of results, which is continued")
    parser.add_argument("--kernels", type=Path, help="folder in which compiled kernels are kept")
    given, words = parser.parse_known_args()
    every = dict(enumerate(mutations(given.seed), 1))
    for number, one in every.items() if given.list else ():
        print(number, one)
    if given.run is None:
        return
    known = {}
    if given.out and given.out.exists():
        known = {tuple(row[:6]): row for row in csv.reader(given.out.open())}
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder, "checkout"))
        for number in given.run or every:
            key = (str(number), *map(str, astuple(every[number])))
            if key in known:
                row = known[key]
            else:
                began = time.perf_counter()
                result = outcome(copy, every[number], given, words)
                row = [*key, *result, f"{time.perf_counter() - began:.0f}"]
                if given.out:
                    with given.out.open("a", newline="") as file:
                        csv.writer(file).writerow(row)
            *_, said, test, seconds = row
            print(f"{number} {said} {test} ({seconds} s): {every[number]}", flush=True)


if __name__ == "__main__":
    main()

"""Compare what a command prints with what a page says that it prints.

Both are taken as words; frames of tables and line breaks do not count. ``…`` on a line of its own
stands for any number of lines.

- Words must be equal.
- A number with an error, such as 0.6019(7), must agree within 5 combined errors. A second error in
  brackets, which is a systematic one, may have any value.
- Other numbers must be equal, but for the last digit of a decimal fraction. Where a page is
  compared loosely they may have any value, and so may checksums.
- Lines of progress are left out.
- Lines on times, rates and memory are compared by their first word (`TIMES`), and the names of
  machines and the dates not at all (`MACHINES`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ELLIPSIS = "…"

SIGMAS = 5.0
"""Largest difference of two numbers in units of their combined error.

Of ten thousand such comparisons one of independent results fails by chance in a thousand runs.
"""

TIMES = re.compile(r"^ *(time|start|rate|energy|remaining|checkpoint|bytes) .*", re.MULTILINE)
"""Lines that are different whenever a command is run."""

MACHINES = [
    (re.compile(r"\bon [^\n]*?, (\d+ threads?)(?=>?$)", re.MULTILINE), "on MACHINE"),
    (re.compile(r"\bprocess \d+ on \S+ since \S+"), "process MACHINE"),
    (re.compile(r"^works .*$", re.MULTILINE), "works"),
    (re.compile(r"^missing .*\n +.*$", re.MULTILINE), "missing"),
    (re.compile(r"gauge-mc \d+\.\d+\S*"), "gauge-mc VERSION"),
]
"""What depends on the machine or the day, and the words that take its place."""

PROGRESS = re.compile(r"^(?:.* ETA .*|compiling kernels.*)\n?", re.MULTILINE)
"""Lines of the progress of a command, which depend on how fast it is."""

DIGEST = re.compile(r"[0-9a-f]{16,}")
FRAMES = re.compile("[─-╿]+")
NUMBER = r"[-+−]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
WITH_ERROR = re.compile(r"([-+−]?\d*\.?\d+)\(([\d.]+)\)(?:\([\d.]+\))?(e[-+]?\d+)?")
NUMBERS = re.compile(rf"(?<![\w.])(?:{WITH_ERROR.pattern}|{NUMBER})(?!\w|\.\w)")


@dataclass(frozen=True)
class Number:
    """A number as it is printed.

    Attributes
    ----------
    value, error : float
        The error is None if none is printed.
    unit : float
        Unit of the last digit.
    """

    value: float
    error: float | None
    unit: float


def parse_number(text: str) -> Number | None:
    """Return a printed number, or None if a word is none."""
    if match := WITH_ERROR.fullmatch(text):
        digits, error, exponent = match.groups()
        scale = float("1" + (exponent or ""))
        unit = 10.0 ** -len(digits.partition(".")[2])
        errors = float(error) * (1 if "." in error else unit)
        return Number(float(digits.replace("−", "-")) * scale, errors * scale, unit * scale)
    if re.fullmatch(NUMBER, text):
        digits, _, exponent = text.replace("−", "-").partition("e")
        unit = 10.0 ** -len(digits.partition(".")[2]) if "." in digits else 0.0
        return Number(
            float(digits + "e" + (exponent or "0")), None, unit * 10 ** int(exponent or 0)
        )
    return None


def words(text: str) -> list[str]:
    """Return the words and numbers of an output."""
    text = TIMES.sub(r"\1", PROGRESS.sub("", text))
    for pattern, name in MACHINES:
        text = pattern.sub(name, text)
    spaced = NUMBERS.sub(lambda match: f" {match[0]} ", FRAMES.sub(" ", text))
    return spaced.split()


def agree(expected: str, found: str, loose: bool) -> bool:
    """Return whether a word or number is as expected."""
    if expected == found:
        return True
    if loose and DIGEST.fullmatch(expected) and DIGEST.fullmatch(found):
        return True
    one, other = parse_number(expected), parse_number(found)
    if one is None or other is None:
        return False
    if (one.error is None) != (other.error is None):
        return False
    if one.error is not None and other.error is not None:
        return abs(one.value - other.value) <= SIGMAS * (one.error**2 + other.error**2) ** 0.5
    if loose:
        return True
    return abs(one.value - other.value) <= 1.01 * max(one.unit, other.unit)


def position(part: list[str], found: list[str], begin: int, loose: bool) -> int:
    """Return where consecutive words occur first from a place on, or -1."""
    for start in range(begin, len(found) - len(part) + 1):
        if all(map(agree, part, found[start : start + len(part)], [loose] * len(part))):
            return start
    return -1


def difference(expected: str, found: str, loose: bool = False) -> str:
    """Return how an output differs from what is expected; empty if it does not.

    Parameters
    ----------
    expected, found : str
        What the page says, and what was printed.
    loose : bool
        Whether numbers without errors may have any value.
    """
    parts = re.split(rf"^ *{ELLIPSIS} *$", expected, flags=re.MULTILINE)
    got, place = words(found), 0
    for i, part in enumerate(map(words, parts)):
        first, last = i == 0, i == len(parts) - 1
        if last and not first:
            place = max(place, len(got) - len(part)) if part else place
        start = position(part, got, place, loose) if part else place
        if start < 0 or (first and part and start > 0):
            return _shown(" ".join(part), found)
        place = start + len(part)
    if place < len(got) and words(parts[-1]):
        return _shown("the end", found)
    return ""


def _shown(missing: str, found: str) -> str:
    """Return a sentence about an output that is not the expected one."""
    return f"This was expected, but was not printed:\n{missing}\nIt printed:\n{found}"


def renewed(expected: str, found: str) -> str:
    """Return what was printed, without progress and the lines that the page leaves out.

    Raises
    ------
    ValueError
        If a line that the page shows beside one that it leaves out is not printed any more.
    """
    lines = [line.rstrip() for line in PROGRESS.sub("", found).strip("\n").splitlines()]
    if ELLIPSIS not in expected:
        return "\n".join(lines)
    result, place, skipping = [], 0, False
    keys = [_key(line) for line in lines]
    for line in expected.strip("\n").splitlines():
        if line.strip() == ELLIPSIS:
            result.append(line)
            skipping = True
            continue
        last = len(lines) if skipping else place + 1
        same = [i for i in range(place, min(last, len(lines))) if keys[i] == _key(line)]
        if not same:
            raise ValueError(f"no line such as this one is printed any more: {line}")
        result.append(lines[same[0]])
        place, skipping = same[0] + 1, False
    return "\n".join(result)


def _key(line: str) -> str:
    """Return the part of a line by which it is found again: all but its numbers.

    In a row of a table the first two cells say which row it is.
    """
    cells = line.split("│")
    named, others = ("│".join(cells[:3]), cells[3:]) if len(cells) > 3 else ("", [line])
    rest = words(" ".join(others))
    changing = (parse_number(word) or DIGEST.fullmatch(word) for word in rest)
    return " ".join(
        [*named.split(), *("#" if one else word for one, word in zip(changing, rest, strict=True))]
    )

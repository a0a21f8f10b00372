"""Text from files, other users and the command line, in a form that is safe to show."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from contextvars import ContextVar
from decimal import Context, Decimal, localcontext
from pathlib import Path
from typing import TypeVar

N = TypeVar("N", int, float)

MOST_DIGITS = 19
"""Largest number of digits of a whole number."""


def whole_number(text: str | int) -> int:
    """Read a whole number of at most `MOST_DIGITS` digits."""
    word = str(text).strip()
    if not re.fullmatch("[+-]?[0-9]+", word):
        raise ValueError(f"'{shortened(word, 80)}' is not a whole number.")
    if len(word.lstrip("+-")) > MOST_DIGITS:
        raise ValueError(f"'{shortened(word, 80)}' has more than {MOST_DIGITS} digits.")
    return int(word)


def number(text: str | float) -> float:
    """Read a finite number."""
    word = str(text).strip()
    digits = r"([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})"
    plain = re.fullmatch(rf"[+-]?{digits}([eE][+-]?[0-9]{{1,3}})?", word)
    if not plain:
        raise ValueError(f"'{shortened(word, 80)}' is not a number.")
    if not math.isfinite(value := float(word)):
        raise ValueError(f"'{shortened(word, 80)}' is too large.")
    return value


def counted(number: int, noun: str) -> str:
    """Return a number with a noun that has a regular plural, such as ``2 updates``."""
    return f"{number} {noun}{'s' * (number != 1)}"


def these(number: int) -> str:
    """Return what there is in words, after "more than": ``these 6`` or ``this one``."""
    return {0: "none", 1: "this one"}.get(number, f"these {number}")


def listed(text: str, read: Callable[[str], N], separators: str = ",;") -> tuple[N, ...]:
    """Read numbers with a separator between each two of them."""
    return tuple(map(read, re.split(f"[{separators}]", text)))


LONGEST_WORD = 300
"""Largest number of characters of a word that is shown in full."""

LONGEST_MESSAGE = 2000
"""Largest number of characters of a message that is shown in full."""


def printable(text: str) -> str:
    """Return a text with everything that could control a terminal shown as an escape sequence.

    Line ends remain. Bytes of file names that are not UTF-8 are also shown as escape sequences.
    """
    if text.isprintable():
        return text
    letters = []
    for letter in text:
        if letter.isprintable() or letter == "\n":
            letters.append(letter)
        elif 0xDC80 <= ord(letter) <= 0xDCFF:  # how Python represents a byte that is not UTF-8
            letters.append(f"\\x{ord(letter) - 0xDC00:02x}")
        else:
            letters.append(letter.encode("unicode_escape").decode("ascii"))
    return "".join(letters)


def shortened(text: str, longest: int = LONGEST_WORD) -> str:
    """Return a text without its middle, unless it is short."""
    if len(text) <= longest:
        return text
    part = longest // 2 - 20
    return f"{text[:part]}… ({len(text)} characters) …{text[-part:]}"


def quoted(value: object) -> str:
    """Return a value as in Python's source code, without its middle unless it is short."""
    try:
        return shortened(repr(value))
    except ValueError:  # Python does not convert very large numbers
        return "a very large number"


def sentence(text: str) -> str:
    """Return a message of one line with all that it quotes shown safely, and not too long."""
    words = (shortened(word) for word in printable(text.replace("\n", " ")).split(" "))
    return shortened(" ".join(words), LONGEST_MESSAGE)


TYPED: ContextVar[tuple[str, ...]] = ContextVar("TYPED", default=())
"""The words of the command that is being carried out, as they were typed."""


def as_typed(run: Path) -> Path:
    """Return a run, or the folder of runs that was typed in its place, such as a scan."""
    named = [Path(word) for word in TYPED.get()]
    return run.parent if run not in named and run.parent in named else run


class CommandLine:
    """A call of the program that a message advises. Its text can be pasted into a shell.

    Parameters
    ----------
    *words : object
        Name of the command and its arguments.
    **options : object
        Options; those that are True are flags, those that are None are left out.
    """

    def __init__(self, *words: object, **options: object) -> None:
        self.words = ["gauge-mc", *map(str, words)]
        for name, value in options.items():
            flag = f"--{name.replace('_', '-')}"
            self.words += [] if value is None else [flag] if value is True else [flag, str(value)]

    def __str__(self) -> str:
        return shlex.join(self.words)


DIGITS = Context(prec=60)
"""Decimal digits of all steps, of which a number in double precision keeps 17."""

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")

VANISHING = -800.0
"""Argument below which the exponential function is 0 in double precision."""


def exponential(x: float) -> float:
    """Return exp(x) for finite x; infinity if it is too large."""
    if x < VANISHING:
        return 0.0
    return float(DIGITS.exp(Decimal(min(x, -VANISHING))))


def square(x: float, strict: bool = True) -> float:
    """Return x * x, or, unless strict, what the C library takes for it."""
    return x * x if strict else x**2


def power(x: float, y: float) -> float:
    """Return x to the power y for finite x > 0 and y; infinity if it is too large."""
    with localcontext(DIGITS):
        return float((Decimal(x).ln() * Decimal(y)).exp())


def modulus(re: float, im: float) -> float:
    """Return the modulus of a complex number; that of the C library if it is not finite."""
    if not (math.isfinite(re) and math.isfinite(im)):
        return math.hypot(re, im)
    (a, b), (c, d) = float(re).as_integer_ratio(), float(im).as_integer_ratio()
    scale = max(b, d) << 64
    square = (a * (scale // b)) ** 2 + (c * (scale // d)) ** 2
    root = math.isqrt(square)
    return (2 * root + (root * root < square)) / (2 * scale)


def complementary_error_function(x: float) -> float:
    """Return erfc(x) for 0 <= x <= 5, from the alternating series of erf."""
    with localcontext(DIGITS):
        square = Decimal(x) * Decimal(x)
        total, term, n = Decimal(0), Decimal(x), 0
        while abs(term) > Decimal("1e-40"):
            total += term / (2 * n + 1)
            n += 1
            term *= -square / n
        return float(1 - 2 * total / PI.sqrt())


def cosine(x: float) -> float:
    """Return cos(x) for a finite x."""
    with localcontext(DIGITS):
        return float(_parts_of_unit(Decimal(x) % (2 * PI))[0])


def unit_number(angle: float) -> complex:
    """Return exp(i pi angle) for a finite angle."""
    number, order = float(angle).as_integer_ratio()
    return complex(*root_of_unity(number, 2 * order))


def root_of_unity(number: int, order: int) -> tuple[float, float]:
    """Return real and imaginary part of exp(2 pi i number / order)."""
    with localcontext(DIGITS):
        parts = _parts_of_unit(2 * PI * (number % order) / order)
        # An angle whose cosine or sine is 0 leaves an error of the series.
        real, imaginary = (part if abs(part) > Decimal("1e-30") else Decimal(0) for part in parts)
        return float(real), float(imaginary)


def _parts_of_unit(angle: Decimal) -> list[Decimal]:
    """Return cosine and sine of a small angle, in the context of `DIGITS`."""
    parts, term, n = [Decimal(0), Decimal(0)], Decimal(1), 0
    while abs(term) > Decimal("1e-40") or n <= abs(angle):
        parts[n % 2] += -term if n % 4 > 1 else term
        n += 1
        term *= angle / n
    return parts

"""Text from files, other users and the command line, in a form that is safe to show."""

from __future__ import annotations

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
    return "".join(c if c.isprintable() or c == "\n" else _escape(c) for c in text)


def _escape(letter: str) -> str:
    code = ord(letter)
    if 0xDC80 <= code <= 0xDCFF:  # how Python represents a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode("ascii")


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

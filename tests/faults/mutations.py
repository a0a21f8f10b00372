"""Mutations of files, as by a failing disk or by somebody who wants to do harm."""

import random
import re

from tests.tools.fuzz_formats import mutate

TOKEN = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*|[-+]?[0-9][0-9.eE+-]*|\"[^\"\n]*\"|[\[\]{}=:,]")
"""A word, number, string or sign of TOML, JSON and tables."""

WORDS = (
    *(str(number).encode() for number in (0, -1, 1, 2.5, 2**31, 2**63, 2**64, 10**30, 10**400)),
    *(b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"1e999", b"1e-999", b"1_0", b"0x10"),
    *(b"true", b"null", b"none", b'""', b"''", b'"a"', b"[]", b"{}", b"[[1]]", b'{"a":1}'),
    *(b"\x00", b'"\\u0000"', b'"\\ud800"', b"\xff\xfe", b"\x1b[31m", "\u202e".encode()),
    *(b"\n", b"\r\n", b",", b"=", b":", b"#", b"# sha256: 0\n", b"../../x", b"/dev/zero"),
    *(5000 * b"9", 30000 * b"[", 30000 * b'{"a":', 3000 * b"x,"),
)


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Return a file with one to three changes in its bytes, its words, or its length."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        kind = draw.randrange(4)
        tokens = list(TOKEN.finditer(data[:20000])) if kind else []
        if not tokens:
            changed = bytearray(data)
            mutate(changed, draw)
            data = bytes(changed)
            continue
        one, other = draw.choice(tokens), draw.choice(tokens)
        word = draw.choice(WORDS) if kind < 3 else other[0]
        data = data[: one.start()] + word + data[one.end() :]
    return data

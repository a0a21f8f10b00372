"""Mutations of files, as by a failing disk or by somebody who wants to do harm."""

import random
import re

import numpy as np

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

NUMBERS = (0, 1, 2, 3, 4, 6, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**60, 2**64 - 1)
BYTES_OF_FORMATS = (
    *(str(number).encode() for number in (*NUMBERS, -1, -2, 10**40, "nan", "inf", "1e999", "0x")),
    *(
        number.to_bytes(size, order)
        for number in NUMBERS
        for size in (4, 8)
        for order in ("little", "big")
        if number < 2 ** (8 * size)
    ),
    b"\0",
    b"\n",
    b"=",
    b"END_HEADER\n",
    b"BEGIN_HEADER\n",
    b"su2gauge",
    b"su3gauge",
    b"IEEE32",
    b"IEEE64LITTLE",
    b"4D_SU2_GAUGE",
    b"4D_SU3_GAUGE_3x3",
    b"DIMENSION_4 = 4\n",
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
    b"&b;",
    b"<lx>4</lx>",
    b"]]>",
    b"<![CDATA[",
    b"</ildgFormat>",
    bytes.fromhex("456789ab00018000"),
    b"scidac-checksum",
    b"ildg-binary-data",
    b"ildg-format",
    np.float64(np.nan).tobytes(),
    np.float32(np.inf).tobytes(),
    np.float64(1e308).tobytes(),
)


def mutate(data: bytearray, draw: random.Random) -> None:
    """Change a file in one place, more often in its header than in its links."""
    end = len(data) if draw.random() < 0.4 else min(len(data), 1500)
    place = draw.randrange(end) if end else 0
    kind = draw.randrange(8)
    if kind == 0 and data:
        data[place] ^= 1 << draw.randrange(8)
    elif kind == 1 and data:
        data[place] = draw.randrange(256)
    elif kind == 2:
        word = draw.choice(BYTES_OF_FORMATS)
        data[place : place + len(word)] = word
    elif kind == 3:
        data[place:place] = draw.choice(BYTES_OF_FORMATS)
    elif kind == 4:
        del data[place : place + draw.choice((1, 2, 4, 8, 16, 100))]
    elif kind == 5:
        del data[place:]
    elif kind == 6:
        length = draw.choice((1, 4, 8, 144, 1000))
        other = draw.randrange(len(data)) if data else 0
        data[place : place + length] = data[other : other + length]
    else:
        # Replace a digit in the text.
        digits = [i for i in range(end) if data[i : i + 1].isdigit()]
        if digits:
            data[draw.choice(digits)] = ord(draw.choice("0123456789"))


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

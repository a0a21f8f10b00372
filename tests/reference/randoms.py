"""Random number generators by their published definitions."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]


def philox4x32(counter: Words, key: Words, rounds: int = 10) -> Words:
    """Philox4x32-R of counters ``[..., 4]`` and keys ``[..., 2]`` (Salmon et al., SC'11, sec. 3.3).

    Word 0 is the lowest. Each round maps (c0, c1, c2, c3) with (hi, lo) = products by the two
    multipliers to (hi(c2) ^ c1 ^ k0, lo(c2), hi(c0) ^ c3 ^ k1, lo(c0)); the key is raised by
    the Weyl constants between rounds.
    """
    low = np.uint64(0xFFFFFFFF)
    c0, c1, c2, c3 = np.moveaxis(counter.astype(np.uint64), -1, 0)
    k0, k1 = np.moveaxis(key.astype(np.uint64), -1, 0)
    for _ in range(rounds):
        p0, p1 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (
            (p1 >> np.uint64(32)) ^ c1 ^ k0,
            p1 & low,
            (p0 >> np.uint64(32)) ^ c3 ^ k1,
            p0 & low,
        )
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return np.stack(np.broadcast_arrays(c0, c1, c2, c3), axis=-1).astype(np.uint32)


def philox4x64(counter: Sequence[int], key: Sequence[int], rounds: int = 10) -> list[int]:
    """Philox4x64-R of one counter, word 0 the lowest (Salmon et al., SC'11, sec. 3.3)."""
    low = 2**64 - 1
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(rounds):
        p0, p1 = c0 * 0xD2E7470EE14C6C93, c2 * 0xCA5A826395121157
        c0, c1, c2, c3 = (p1 >> 64) ^ c1 ^ k0, p1 & low, (p0 >> 64) ^ c3 ^ k1, p0 & low
        k0, k1 = k0 + 0x9E3779B97F4A7C15 & low, k1 + 0xBB67AE8584CAA73B & low
    return [c0, c1, c2, c3]


LCG_MODULUS = 2147483647


def lcg_start(streams: int) -> list[int]:
    """First states: x(0, 0) = 1, x(0, j + 1) = c x(0, j) mod m (arXiv:1010.4834, eq. 20)."""
    states = [1]
    while len(states) < streams:
        states.append(16807 * states[-1] % LCG_MODULUS)
    return states[:streams]


def lcg_next(state: int) -> int:
    """x(i + 1, j) = (a x(i, j) + b) mod m (arXiv:1010.4834, eq. 19)."""
    return (1664525 * state + 1013904223) % LCG_MODULUS


def lehmer(seed: int, count: int) -> list[int]:
    """L'Ecuyer's s -> 40014 s mod 2147483563, each result mod 2^24: what seeds RANLUX."""
    words = []
    for _ in range(count):
        seed = 40014 * seed % 2147483563
        words.append(seed % 2**24)
    return words


def subtract_with_borrow(history: list[int], carry: int) -> Iterator[int]:
    """x_n = x_(n-10) - x_(n-24) - c mod 2^24, c = 1 if that was negative (Marsaglia, Zaman).

    `history` holds x_(-24) .. x_(-1), the oldest first.
    """
    window = deque(history, maxlen=24)
    while True:
        difference = window[14] - window[0] - carry
        carry = int(difference < 0)
        window.append(difference % 2**24)
        yield window[-1]


def luxury(numbers: Iterator[int], p: int, keep: int = 24) -> Iterator[int]:
    """Of every p numbers, the first `keep` (Luescher, Comput. Phys. Commun. 79 (1994) 100)."""
    while True:
        yield from islice(numbers, keep)
        next(islice(numbers, p - keep, p - keep), None)


def ranlux(seed: int = 314159265, p: int = 223) -> Iterator[int]:
    """RANLUX, 24-bit integers, with James's seeding (Comput. Phys. Commun. 79 (1994) 111).

    p = 24, 48, 97, 223, 389 are the luxury levels 0..4. James counts his 24 words downwards:
    the first from the seed is the youngest, and a zero in the oldest sets the carry.
    """
    words = lehmer(seed, 24)[::-1]
    return luxury(subtract_with_borrow(words, int(words[0] == 0)), p)


def ranlux24_base(seed: int = 19780503) -> Iterator[int]:
    """The C++ standard's engine [rand.predef]: the same core, first word from the seed oldest."""
    words = lehmer(seed, 24)
    return subtract_with_borrow(words, int(words[-1] == 0))


def ranlux24(seed: int = 19780503) -> Iterator[int]:
    """The C++ standard's engine [rand.predef]: of every 223 numbers the first 23."""
    return luxury(ranlux24_base(seed), 223, 23)

"""Noise of stochastic sources: random vectors eta with <eta eta^dagger> = 1, and their dilution.

Each noise is a subclass of `Noise` that is registered in `NOISES`. The numbers of a site depend
only on the seed, the configuration, the number of the source and the site.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, NamedTuple

from gauge_mc import defaults
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.slab import BOTH_PARITIES, work
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.sources import Position, SourceVectors
from gauge_mc.extensions.quarks.vectors import SPINS, SpinorField
from gauge_mc.fields.field import Field
from gauge_mc.quoting import quoted, root_of_unity
from gauge_mc.random import GENERATORS, stream
from gauge_mc.registry import Registry, in_words

NOISE = Kernel("noise")

MOST_ROOTS = NOISE.constant("MOST_ROOTS")
"""Largest number of roots of unity."""

NUMBER_BITS = 20
"""Number of bits of the number of a source in the number of its random numbers."""

OWN_STEPS = 1 << 63
"""Numbers of random numbers from which on they are those of noise, and of no update."""

CHIRALITIES = (0b0011, 0b1100)
"""Bits of the spins of the chirality 1, and of the chirality -1."""

UNDILUTED = "none"
"""Word for sources that are divided by their chirality alone."""


class Noise:
    """Independent random numbers z at every site, spin and colour, with <z> = 0 and <|z|^2> = 1."""

    name: ClassVar[str]
    """Name on the command line."""
    summary: ClassVar[str]
    """Short description, for help texts."""
    roots: ClassVar[int]
    """The numbers are the roots of unity of this order, up to `MOST_ROOTS`; 0 for normal numbers.
    """

    @classmethod
    def values(cls) -> list[complex]:
        """Return the roots of unity."""
        return [complex(*root_of_unity(n, cls.roots)) for n in range(cls.roots)]


def check_noise(kind: type[Noise]) -> None:
    """Refuse a noise with too many roots of unity, or with a single one, whose average is not 0."""
    if kind.roots == 1 or not 0 <= kind.roots <= MOST_ROOTS:
        raise ValueError(f"has {kind.roots} roots of unity; choose from 2 to {MOST_ROOTS}, or 0")


NOISES: Registry[type[Noise]] = Registry("noise", __name__, Noise, check_noise)


class SourcePart(NamedTuple):
    """The components of a diluted source that a vector has; all others are 0."""

    chirality: int
    """1 or -1: the chirality of all components."""
    spins: int
    """Bits of the spins."""
    colour: int
    """The colour, or -1 for all."""
    parity: int
    """Parity of the sites, or `BOTH_PARITIES`."""
    time: int
    """Time slice, or -1 for all."""


DILUTIONS = {
    "spin": "by spin",
    "colour": "by colour",
    "even-odd": "by even and odd sites",
    "time": "by time slice",
}
"""Divisions of a source besides that by chirality, with words for help texts."""


def dilution_of(text: str) -> tuple[str, ...]:
    """Return what a source is divided by, in the order of `DILUTIONS`."""
    words = [word.strip() for word in text.replace(";", ",").split(",")]
    if unknown := {*words} - {*DILUTIONS, UNDILUTED}:
        raise UsageError(
            f"--dilute is {quoted(text)}, but sources are not divided by {min(unknown)}; give "
            f"{in_words(DILUTIONS, 'or')}, or several with commas between them, or {UNDILUTED}."
        )
    if UNDILUTED in words and len(words) > 1:
        raise UsageError(f"--dilute is {quoted(text)}; leave out {UNDILUTED}, or all others.")
    if len({*words}) < len(words):
        raise UsageError(f"--dilute is {quoted(text)}, which repeats a word; give each only once.")
    return tuple(x for x in DILUTIONS if x in words)


def source_parts(dilution: Sequence[str], colours: int, times: int) -> list[SourcePart]:
    """Return the parts into which a source is divided.

    Parts have a chirality, so that gamma_5 times the solution of one is that of gamma_5 times the
    source, apart from a sign: the adjoint of the propagator needs no solution of its own.
    """
    spins = [1 << n for n in range(SPINS)] if "spin" in dilution else CHIRALITIES
    return [
        SourcePart(1 if x & CHIRALITIES[0] else -1, x, *rest)
        for x, *rest in product(
            spins,
            range(colours) if "colour" in dilution else (-1,),
            (0, 1) if "even-odd" in dilution else (BOTH_PARITIES,),
            range(times) if "time" in dilution else (-1,),
        )
    ]


@dataclass(frozen=True)
class NoiseSource(SourceVectors):
    """Parts of a stochastic source.

    Attributes
    ----------
    noise : str
        Name of a registered noise.
    number : int
        Number of the source on its configuration, from 0.
    seed : int
        Seed of the random numbers.
    digest : int
        A number of 40 bits that tells configurations apart.
    parts : tuple of SourcePart
        The parts, a vector for each.
    first : int
        Number of the first part among all those of the source.
    """

    noise: str
    number: int
    seed: int
    digest: int
    parts: tuple[SourcePart, ...]
    first: int = 0

    place: ClassVar[Position] = (0, 0, 0, 0)

    @property
    def label(self) -> str:
        """Text that identifies the source in tables; see `SourceVectors.label`."""
        return f"{self.noise}@{self.number};{self.first}"

    def count(self, colours: int) -> int:
        """Return the number of parts; see `SourceVectors.count`."""
        return len(self.parts)

    def fill(self, vectors: SpinorField, links: Field) -> None:
        """Set vectors, which are zero and in double precision, to the parts of the source."""
        generator, values = GENERATORS[defaults.START_RNG], NOISES[self.noise].values()
        padded = [*values, *[0j] * (MOST_ROOTS - len(values))]
        step = OWN_STEPS | self.digest << NUMBER_BITS | self.number
        for vector, part in enumerate(self.parts):
            for slab in vectors.slabs:
                times, over = slab.layout.times, slab.whole(part.parity)
                if part.time >= 0:
                    if part.time not in times:
                        continue
                    over = work(part.time - slab.layout.first, 1, 1, part.parity)
                slab.launch(
                    NOISE,
                    over,
                    vectors.storage.choice,
                    generator.choice(),
                    vectors=vectors.structure(slab),
                    stream=stream(generator.key(self.seed), step),
                    vector=vector,
                    roots=len(values),
                    spins=part.spins,
                    colour=part.colour,
                    re=tuple(x.real for x in padded),
                    im=tuple(x.imag for x in padded),
                )


@NOISES.register
class NormalNoise(Noise):
    """Complex numbers with the weight exp(-|z|^2)."""

    name = "gaussian"
    summary = "normal numbers"
    roots: ClassVar[int] = 0


@NOISES.register
class SignNoise(Noise):
    """1 or -1, each with the probability 1/2."""

    name = "z2"
    summary = "1 and -1"
    roots: ClassVar[int] = 2


@NOISES.register
class FourthRootNoise(Noise):
    """1, i, -1 or -i, each with the probability 1/4."""

    name = "z4"
    summary = "1, i, -1 and -i"
    roots: ClassVar[int] = 4

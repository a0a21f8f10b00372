"""The C++ compiler, and the processor for which it compiles."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import platform
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from gauge_mc.devices.cache import answer_of, version_of
from gauge_mc.errors import NoKernelsError
from gauge_mc.libraries import PYTHON
from gauge_mc.quoting import shortened
from gauge_mc.registry import in_words

ARM = platform.machine() in ("arm64", "aarch64")
"""Whether this is an ARM processor, whose name all compilers take in another option."""

NATIVE = "-mcpu=native" if ARM else "-march=native"
"""The member of `FLAGS` that another processor in the command replaces."""

OPTIMISED = "-O3"
"""The member of `FLAGS` that another level in the command replaces: `g++ -O1` compiles sooner."""

FLAGS = [
    "-std=c++17",
    OPTIMISED,
    NATIVE,
    # Options that could hide a NaN are not used.
    "-fno-math-errno",
    "-fno-trapping-math",
    "-shared",
    "-fPIC",
    "-pthread",
    "-Wall",
    "-Wextra",
    # Vectors wider than a register are returned by functions that are inlined alone.
    "-Wno-psabi",
    "-x",
    "c++",
]


CONTRACTIONS = {False: "-ffp-contract=fast", True: "-ffp-contract=off"}
"""Options for fusing multiplications and additions wherever possible, or, if kernels are strict,
only where the source says so.
"""


INSTRUCTIONS = {64: ("avx512f", "avx512dq", "avx512bw", "avx512vl"), 32: ("avx2",)}
"""Instruction sets that kernels need for registers of a size in bytes; 16 need none."""

CPUINFO = Path("/proc/cpuinfo")
"""File in which Linux describes the processor."""

SVE_BYTES = (16, 32, 64)
"""Lengths of vectors of ARM's SVE that kernels use as registers; of others they use 16 bytes."""

VECTORS, LENGTH = "-msve-vector-bits=", "__ARM_FEATURE_SVE_BITS"
"""The option and the macro for the length of vectors of SVE in bits."""

GET_LENGTH, LENGTH_MASK = 51, 0xFFFF
"""Linux's PR_SVE_GET_VL, and the bits of its answer that are the length."""


ZIG = str(Path(__file__).with_name("zig.py"))
"""The program that compiles by zig."""

POINTER = "__SIZEOF_POINTER__"
"""The macro that every compiler defines as the size of an address in bytes."""

ANOTHER = "name another one, or other options, in the environment variable CXX."
"""End of messages about a compiler."""


@dataclass(frozen=True)
class Compiler:
    """A working C++ compiler."""

    command: str
    """The command that runs it, as a shell would read it."""
    version: str
    """Output of ``command --version``."""

    @property
    def words(self) -> list[str]:
        """The command as a list of words."""
        return shlex.split(self.command)

    @property
    def flags(self) -> list[str]:
        """The options for kernels, which follow `words`."""
        replacing = {NATIVE: ("-march=", "-mcpu="), OPTIMISED: ("-O",)}
        replaced = {
            flag
            for flag, beginnings in replacing.items()
            if any(word.startswith(beginnings) for word in self.words)
        }
        flags = [flag for flag in FLAGS if flag not in replaced]
        named = any(word.startswith(VECTORS) for word in self.words)
        if NATIVE in flags and not named and vector_bytes() in SVE_BYTES:
            flags.append(f"{VECTORS}{8 * vector_bytes()}")
        return flags

    def flags_for(self, register: int) -> list[str]:
        """Return the options for kernels whose registers have a size in bytes.

        If that is not the length of vectors of SVE, they are put together from those of NEON: GCC
        12 computes wrong choices among parts of vectors.
        """
        flags = self.flags
        told = [word for word in (*self.words, *flags) if word.startswith(VECTORS)]
        partial = told and told[-1] != f"{VECTORS}{8 * register}"
        return [*flags, f"{VECTORS}scalable"] if partial else flags

    @property
    def identity(self) -> str:
        """Version, and the processor on which kernels depend besides the command and `flags`.

        Kernels for a processor that the command names are the same wherever they are compiled, but
        x86 and ARM processors may have names in common.
        """
        native = NATIVE in self.flags or any(word.endswith("=native") for word in self.words)
        sets = sorted(processor()[1]) if native else []
        return f"{self.version}{platform.machine()}{sets}"

    @functools.cached_property
    def register_bytes(self) -> int:
        """The size of a SIMD register in bytes, for which it compiles with its options."""
        shown = f"The C++ compiler '{shortened(self.command)}'"
        code, printed = answer_of(*self.words, *self.flags, "-dM", "-E", os.devnull)
        macros = dict(re.findall(r"^#define (\w+) (.*)$", printed, re.MULTILINE))
        if code != 0 or POINTER not in macros:
            first = shortened(next(iter(printed.splitlines()), "it says nothing"))
            raise NoKernelsError(
                f"{shown} does not take the options of kernels ({first}): {ANOTHER}"
            )
        if int(macros[POINTER]) != ctypes.sizeof(ctypes.c_void_p):
            raise NoKernelsError(
                f"{shown} compiles for {8 * int(macros[POINTER])} bits, but Python has "
                f"{8 * ctypes.sizeof(ctypes.c_void_p)}: {ANOTHER}"
            )
        for size, sets in INSTRUCTIONS.items():
            if all(f"__{s.upper()}__" in macros for s in sets):
                supported = processor()[1]  # nothing, if the system does not say
                if lacking := [s for s in sets if supported and s not in supported]:
                    raise NoKernelsError(
                        f"{shown} compiles for {in_words(lacking, 'and')}, which this processor "
                        f"does not have: {ANOTHER}"
                    )
                return size
        length = int(macros.get(LENGTH, "0")) // 8
        if length and length != vector_bytes():
            has = f"has {8 * vector_bytes()}" if vector_bytes() else "does not have them"
            raise NoKernelsError(
                f"{shown} compiles for vectors of SVE of {8 * length} bits, but this processor "
                f"{has}: {ANOTHER}"
            )
        return length if length in SVE_BYTES else 16


def candidates() -> list[str]:
    """Return the commands of the compilers to try, in order of preference.

    If the environment variable CXX names a compiler, that is the only one.
    """
    if named := os.environ.get("CXX", "").strip():
        return [named]
    zig = [shlex.join([*PYTHON, ZIG])] if importlib.util.find_spec("ziglang") else []
    return [c for c in ("c++", "g++", "clang++") if shutil.which(c)] + zig


def version(command: str) -> str | None:
    """Return the output of ``command --version``, or None if the compiler does not run."""
    try:
        words = shlex.split(command)
    except ValueError:  # a quotation mark is missing
        return None
    return version_of(*words) if words else None


@functools.cache
def find_compiler() -> Compiler:
    """Return the first compiler that runs."""
    for command in candidates():
        text = version(command)
        if text is not None:
            return Compiler(command, text)
    if named := os.environ.get("CXX", "").strip():
        raise NoKernelsError(
            f"The environment variable CXX names the compiler '{shortened(named)}', but "
            "`$CXX --version` fails or does not end: correct the variable, or unset it."
        )
    raise NoKernelsError(
        "No C++ compiler was found, which the CPU kernels need: install g++ "
        "(Debian and Ubuntu: apt install g++), or run `pip install 'gauge-mc[zig]'`, or name a "
        "compiler in the environment variable CXX."
    )


@functools.cache
def processor() -> tuple[str, frozenset[str]]:
    """Return the name of the processor and its instruction sets (Linux names).

    Linux knows ARM processors by two numbers, the implementer and the part.
    """
    name = platform.machine()
    if sys.platform == "darwin":
        name = answer_of("sysctl", "-n", "machdep.cpu.brand_string")[1].strip() or name
    lines = CPUINFO.read_text().splitlines() if CPUINFO.exists() else []
    pairs = (line.partition(":") for line in lines)
    properties = {key.strip(): value.strip() for key, _, value in pairs}
    if "CPU part" in properties:
        name += (
            f", implementer {properties.get('CPU implementer', 'unknown')}"
            f", part {properties['CPU part']}"
        )
    sets = properties.get("flags", properties.get("Features", ""))
    return properties.get("model name", name), frozenset(sets.split())


@functools.cache
def vector_bytes() -> int:
    """Return the length in bytes that vectors of SVE have in this process; 0 without SVE.

    Linux may set a shorter one than the processor's, and processes may change it for themselves.
    """
    if sys.platform != "linux":
        return 0
    length: int = ctypes.CDLL(None).prctl(GET_LENGTH)
    return max(0, length) & LENGTH_MASK


def register_bytes() -> int:
    """Return the size of a SIMD register in bytes; see `Compiler.register_bytes`."""
    return find_compiler().register_bytes

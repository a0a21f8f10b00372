"""A program that compiles as nvcc does, by the library NVRTC, which needs no C++ compiler.

``python nvrtc.py LIBRARY OPTION … SOURCE -o OBJECT`` compiles a file; ``--version`` states the
release, and ``--list-gpu-code`` the architectures. The library compiles in this process, so that a
kernel can be given up by killing it, as with nvcc. Nothing of gauge-mc is imported, because that
takes longer than to compile a short kernel.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path

HEADERS = {
    "cstddef": """
        #define offsetof(type, member) ((std::size_t)__INTADDR__(&((type*)0)->member))
        namespace std { using size_t = decltype(sizeof(int)); }
    """,
    "cstring": "",  # the functions are built in
}
"""The headers of the standard library that kernels for GPUs include. NVRTC comes with none, and
takes an address in a constant only from the built-in ``__INTADDR__``."""


class NvrtcError(Exception):
    """NVRTC cannot compile, for a reason that is not in the source."""


class NvrtcLibrary:
    """The library NVRTC (NVRTC documentation, section 2).

    Parameters
    ----------
    path : str
        The file ``libnvrtc.so``. Its functions are in another one, ``libnvrtc-builtins.so``, which
        it does not look for in its own folder.
    """

    def __init__(self, path: str):
        self._path = path
        self._functions = ctypes.CDLL(path)

    def version(self) -> str:
        """Return the words that state the release of CUDA to which it belongs."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return f"NVRTC, release {major.value}.{minor.value}\n"

    def architectures(self) -> list[int]:
        """Return the architectures for which it compiles, such as 90."""
        count = ctypes.c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", numbers)
        return [*numbers]

    def compile(
        self, source: bytes, name: bytes, options: Sequence[str], product: str
    ) -> tuple[bytes, bytes]:
        """Return ``CUBIN`` or ``PTX``, nothing if there is an error, and the compiler's report."""
        for builtins in Path(self._path).parent.glob("libnvrtc-builtins.so*"):
            ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
        program = ctypes.c_void_p()
        headers = (ctypes.c_char_p * len(HEADERS))(*(x.encode() for x in HEADERS.values()))
        names = (ctypes.c_char_p * len(HEADERS))(*(x.encode() for x in HEADERS))
        self._call(
            "nvrtcCreateProgram", ctypes.byref(program), source, name, len(HEADERS), headers, names
        )
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = self._functions.nvrtcCompileProgram(program, len(options), words)
        return b"" if failed else self._text(program, product), self._text(program, "ProgramLog")

    def _text(self, program: ctypes.c_void_p, product: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{product}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{product}", program, text)
        return text.raw

    def _call(self, function: str, *arguments: object) -> None:
        result = getattr(self._functions, function)(*arguments)
        if result:
            self._functions.nvrtcGetErrorString.restype = ctypes.c_char_p
            message = self._functions.nvrtcGetErrorString(result).decode()
            raise NvrtcError(f"{function}: {message}")


def main(path: str, *words: str) -> int:
    """Compile a file, or answer a question; return the exit code."""
    library = NvrtcLibrary(path)
    if words == ("--version",):
        print(library.version(), end="")
        return 0
    if words == ("--list-gpu-code",):
        print(*(f"sm_{a}" for a in library.architectures()), sep="\n")
        return 0
    *options, source, _, target = words
    product = "PTX" if target.endswith(".ptx") else "CUBIN"
    text = Path(source).read_bytes()
    code, printed = library.compile(text, source.encode(), options, product)
    print(printed.rstrip(b"\0\n").decode(errors="backslashreplace"))
    if code:
        Path(target).write_bytes(code.rstrip(b"\0") if product == "PTX" else code)
    return 0 if code else 1


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except (OSError, AttributeError, NvrtcError) as error:
        sys.exit(f"error: {error}")

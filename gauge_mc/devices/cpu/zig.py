"""A program that compiles by zig as other C++ compilers do, without the standard library of C++.

``python zig.py OPTION … SOURCE -o LIBRARY`` compiles and links in two steps: where the program that
links knows of C++, zig first makes the library of C++, which takes a minute and which kernels,
without exceptions, do not need. Everything else is a question, and goes to zig.
"""

import subprocess
import sys

COMPILE = (sys.executable, "-P", "-m", "ziglang", "c++")
LINK = (sys.executable, "-P", "-m", "ziglang", "cc", "-shared")
LINKED = ("-shared", "-pthread")
"""Options that say something to the linker."""


def main(*words: str) -> int:
    """Compile a library, or ask; return the exit code."""
    if "-shared" not in words or "-o" not in words:
        return subprocess.call([*COMPILE, *words])
    place = words.index("-o")
    target = words[place + 1]
    options = [word for word in words[:place] + words[place + 2 :] if word not in LINKED]
    code = subprocess.call([*COMPILE, *options, "-fno-exceptions", "-c", "-o", f"{target}.o"])
    return code or subprocess.call([*LINK, f"{target}.o", "-o", target])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

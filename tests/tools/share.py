"""A share of names, which a number chooses.

`.ci/run` takes a checksum of the sources as the number, so that every version of them tries another
share, and the same version the same one.
"""

from hashlib import sha256
from pathlib import Path

SOURCES = {".py", ".cu", ".h"}
"""Endings of the names of sources and tests."""


def is_chosen(name: str, share: str) -> bool:
    """Return whether a name is in a share such as ``1234/2``: half of all, which 1234 chooses."""
    number, _, parts = share.partition("/")
    # A linear checksum, such as CRC, would have few shares.
    return int.from_bytes(sha256(f"{number} {name}".encode()).digest()) % int(parts) == 0


def number_of_sources(checkout: Path) -> int:
    """Return a number that changes with the sources and the tests."""
    folders = (checkout / name for name in ("gauge_mc", "cuda_src", "tests"))
    paths = sorted(path for folder in folders for path in folder.rglob("*"))
    contents = (path.read_bytes() for path in paths if path.suffix in SOURCES)
    return int.from_bytes(sha256(b"".join(contents)).digest()[:4])

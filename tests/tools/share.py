"""A share of names, which a number chooses: `python tests/tools/share.py NUMBER/PARTS NAME...`.

`.ci/run` takes the checksum of the sources as the number, so that every version of them tries
another share, and the same version the same one.
"""

import sys
from hashlib import sha256


def is_chosen(name: str, share: str) -> bool:
    """Return whether a name is in a share such as ``1234/2``: half of all, which 1234 chooses."""
    number, _, parts = share.partition("/")
    # The checksum CRC is linear, so that there would be few shares.
    return int.from_bytes(sha256(f"{number} {name}".encode()).digest()) % int(parts) == 0


if __name__ == "__main__":
    print(*(name for name in sys.argv[2:] if is_chosen(name, sys.argv[1])), sep="\n")

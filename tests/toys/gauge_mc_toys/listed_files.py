"""A kind of folder for verify: one with a list of SHA-256 sums of its files."""

import hashlib
from functools import partial
from pathlib import Path

from gauge_mc.errors import DamagedError
from gauge_mc.inspection.verify import Check, CheckedFolder, CheckProgress

LIST = "SHA256SUMS"


class ListedFiles(CheckedFolder):
    """A folder with the output of ``sha256sum``."""

    name = "listed-files"

    def holds(self, folder: Path) -> bool:
        """Return whether there is a list."""
        return (folder / LIST).is_file()

    def checks(self, folder: Path, regenerate: int, longest: float | None) -> list[Check]:
        """Return a check for every file of the list."""
        lines = [line.split(maxsplit=1) for line in (folder / LIST).read_text().splitlines()]
        return [
            Check(folder / name, partial(check_sum, folder / name, digest))
            for digest, name in lines
        ]


def check_sum(path: Path, digest: str, advance: CheckProgress) -> str:
    """Compare a file with its sum."""
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        raise DamagedError(f"{path} is not the file in {LIST}; get it again.")
    return "as listed"


LISTED_FILES = ListedFiles()

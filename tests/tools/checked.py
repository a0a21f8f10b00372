"""The record of what has passed: `python tests/tools/checked.py STAGE` says if it need be repeated.

``.ci/checked.txt`` keeps, for stages of ``.ci/run`` and for CUDA kernels, a digest of the files on
which they depend as of when they passed. So a checkout without history, too, knows what it need not
repeat. With --record, the digest of a stage that has just passed is written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
RECORD = CHECKOUT / ".ci/checked.txt"

PROJECT = "pyproject.toml"

STAGES = {
    "oldest dependencies": (PROJECT, "tests/tools/lowest_versions.py"),
    "other versions of Python": (PROJECT,),
    "packages": (PROJECT, "gauge_mc/devices/source.py", "gauge_mc/devices/cache.py"),
}
"""Files on which a stage depends more than on all others; a page depends on itself and on its
directives. What is rare beyond these is found by the run with --every, which repeats all stages.
"""

BLOCKS = "tests/documentation/blocks.toml"
"""The list of the directives of all pages."""


def digest_of(paths: Iterable[Path], checkout: Path = CHECKOUT) -> str:
    """Return a digest of the names and the contents of files in the checkout."""
    found = hashlib.sha256()
    for path in sorted(paths):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        found.update(f"{path.relative_to(checkout).as_posix()} {content}\n".encode())
    return found.hexdigest()[:24]


def digest_of_stage(stage: str) -> str:
    """Return the digest of what a stage depends on: of `PROJECT` only what is installed."""
    names = {*STAGES.get(stage, (stage,))}
    found = digest_of(CHECKOUT / name for name in names - {PROJECT})
    listed = tomllib.loads((CHECKOUT / BLOCKS).read_text(encoding="utf-8")).get(stage)
    if listed:
        found = hashlib.sha256(f"{found} {json.dumps(listed)}".encode()).hexdigest()[:24]
    if PROJECT not in names:
        return found
    content = tomllib.loads((CHECKOUT / PROJECT).read_text(encoding="utf-8"))
    parts = [content["build-system"], content["project"], content["tool"]["hatch"]]
    return hashlib.sha256(f"{found} {json.dumps(parts, sort_keys=True)}".encode()).hexdigest()[:24]


def recorded(record: Path = RECORD) -> dict[str, str]:
    """Return the digests of what has passed, by name."""
    lines = record.read_text(encoding="utf-8").splitlines() if record.is_file() else []
    return dict(line.rsplit(" ", 1) for line in lines)


def add(passed: dict[str, str], record: Path = RECORD) -> None:
    """Write the digests of what has just passed into the record."""
    kept = {**recorded(record), **passed}
    lines = (f"{name} {digest}\n" for name, digest in sorted(kept.items()))
    record.write_text("".join(lines), encoding="utf-8")


def main() -> int:
    """Return 0 if a stage need not be repeated, or has been recorded; else 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", help=f"{', '.join(STAGES)}, or the path of a page")
    parser.add_argument("--record", action="store_true", help="the stage has passed")
    arguments = parser.parse_args()
    digest = digest_of_stage(arguments.stage)
    if arguments.record:
        add({arguments.stage: digest})
        return 0
    return int(recorded().get(arguments.stage) != digest)


if __name__ == "__main__":
    sys.exit(main())

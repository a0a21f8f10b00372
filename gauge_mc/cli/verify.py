"""``gauge-mc verify``: check runs, scans, configurations and tables for damage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gauge_mc.cli import options as o
from gauge_mc.cli.document import alone_on_stdout, print_document, prints
from gauge_mc.configurations.reading import LinkKind
from gauge_mc.results import documented, result_field

NAMED = 5
"""Maximum number of damaged files that the last line names; a line above reports each of them."""


@documented
@dataclass(frozen=True)
class FileCheck:
    """The result of the check of a file."""

    file: str = result_field("File that was written or read.")
    sound: bool | None = result_field(
        "Whether the file is neither damaged nor missing; null if it cannot be checked here."
    )
    result: str = result_field("What was found, in words.")


@documented
@dataclass(frozen=True)
class VerifyReport:
    """The document of ``verify``."""

    files: Sequence[FileCheck] = result_field("Files that were checked.")
    damaged: int = result_field("Number of files that are damaged or missing.")
    unchecked: int = result_field("Number of files that cannot be checked here.")


@prints(VerifyReport)
@o.described_by(
    "gauge_mc.inspection.verify:verify",
    paths="RUN|SCAN|FOLDER|CONFIG|TABLE",
    regenerate="N",
    time_limit="HH:MM:SS",
)
def verify(
    paths: list[Path] | None = None,
    regenerate: int = 0,
    lattice: o.StatedLattice = None,
    group: o.StatedGroup = None,
    time_limit: str | None = None,
    json: o.Json = False,
) -> None:
    """Check every file of runs and scans, or single configurations and tables, for damage.

    For a configuration, the checksum and the unitarity of the links are checked, and its plaquette
    is compared with its header and with the table of the run. For a table, the checksum and the
    numbers are checked, and in a run also that no row is missing. The files of a folder that
    gauge-mc publish has written are compared with its description. The exit code is 1 if a file is
    damaged or missing. It is 69 if none is, but some cannot be checked here, for instance because
    they must not be read or are of an unknown kind.

    gauge-mc verify
    gauge-mc verify RUN SCAN
    gauge-mc verify FOLDER --regenerate 3
    """
    from gauge_mc.console import Console
    from gauge_mc.inspection.verify import carry_out, checks_of, summarise
    from gauge_mc.progress import Progress

    targets = o.named_or_said(paths, json)
    kind = LinkKind(lattice, group)
    checks = [check for path in targets for check in checks_of(path, regenerate, kind, time_limit)]
    console = Console()
    total, verdicts = len(checks), []
    progress = Progress(console, total, "files", plain=False)
    with alone_on_stdout(json), progress:
        for number, check in enumerate(checks, 1):
            verdict = carry_out(check, partial(progress.advance, title="verifying"))
            verdicts.append(verdict)
            words, style = f"BAD   {verdict.words}", "bold red"
            if verdict.sound is None:
                words, style = f"cannot be checked here: {verdict.words}", "bold yellow"
            elif verdict.sound:
                words, style = f"good  {verdict.path}  {verdict.words}", ""
            if not json:
                console.print(words, style=style, soft_wrap=True)
            progress.update(number, title="verifying")
    if json:
        checked = [FileCheck(str(v.path), v.sound, v.words) for v in verdicts]
        sounds = [x.sound for x in checked]
        print_document("verify", VerifyReport(checked, sounds.count(False), sounds.count(None)))
    if failure := summarise(verdicts, NAMED):
        raise failure
    if not json:
        files = sum(not check.path.is_dir() for check in checks)
        several = f"All {files} files are" if files > 1 else "The file is"
        console.print(f"{several} good.")

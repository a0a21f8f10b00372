"""``gauge-mc doctor``: show what works on this machine, and how to fix the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import alone_on_stdout, print_document, prints
from gauge_mc.devices.base import Finding
from gauge_mc.devices.choice import BACKENDS
from gauge_mc.numbers import counted
from gauge_mc.results import documented, result_field

if TYPE_CHECKING:
    from gauge_mc.console import Console


@documented
@dataclass(frozen=True)
class Diagnosis:
    """The document of ``doctor``."""

    findings: Sequence[Finding] = result_field("What was examined.")
    works: bool = result_field("Whether it works; for the whole, whether any device works.")


@documented
@dataclass(frozen=True)
class CacheReport:
    """The document of ``doctor --clear-cache`` and of ``doctor --install``."""

    folder: str = result_field("Folder of the compiled kernels.")
    removed: int = result_field("Number of files that were removed.")
    installed: str = result_field("Backend for which software was installed.")


@prints(Diagnosis, CacheReport)
def doctor(
    clear_cache: Annotated[
        bool,
        o.option("Only remove all compiled kernels and tuned launch bounds.", flag="--clear-cache"),
    ] = False,
    install: Annotated[
        str | None,
        o.option(
            "Only install the software that the devices of a backend need.",
            metavar="|".join(BACKENDS),
            flag="--install",
        ),
    ] = None,
    physics: Annotated[
        bool,
        o.option(
            "Only compare averages of every device with those of long runs, which takes half a "
            "minute.",
            flag="--physics",
        ),
    ] = False,
    json: o.Json = False,
) -> None:
    """Show which devices, compilers and optional packages work, and how to fix the rest.

    The location of the compiled kernels is also shown. The exit code is 1 if no device works, or if
    averages are wrong.
    """
    from gauge_mc.console import Console
    from gauge_mc.devices.cache import cache_folder
    from gauge_mc.devices.cache import clear_cache as clear

    console = Console()
    if clear_cache:
        folder, removed = cache_folder(), clear()
        if json:
            print_document("doctor", {"folder": str(folder), "removed": removed})
        else:
            say(f"{folder}: {counted(removed, 'file')} removed")
        return
    if install is not None:
        BACKENDS.check(install, "--install")
        with alone_on_stdout(json), console.status("Installing"):
            BACKENDS[install].install(lambda line: console.print(line, soft_wrap=True))
        if json:
            print_document("doctor", {"installed": install})
        return
    if physics:
        _compare_physics(console, json)
        return
    from gauge_mc.inspection.doctor import examine

    with alone_on_stdout(json):
        findings = list(_shown(console, "Testing compilers and devices", examine(), json))
    labels = {backend.label for backend in BACKENDS.values()}
    works = any(one.works and one.subject.partition(" ")[0] in labels for one in findings)
    if json:
        print_document("doctor", Diagnosis(findings, works))
    if not works:
        raise typer.Exit(1)


def _compare_physics(console: Console, json: bool) -> None:
    """Show whether averages of all devices are those of long runs; exit with code 1 if not."""
    from gauge_mc.inspection.physics import examine_physics

    with alone_on_stdout(json):
        found = _shown(console, "Comparing averages", examine_physics(), json, bad="wrong")
        findings = list(found)
    works = bool(findings) and all(one.works for one in findings)
    if json:
        print_document("doctor", Diagnosis(findings, works))
    elif not findings:
        say("No device works; `gauge-mc doctor` says why.")
    if not works:
        raise typer.Exit(1)


def _shown(
    console: Console, doing: str, findings: Iterator[Finding], quiet: bool, bad: str = "missing"
) -> Iterator[Finding]:
    """Yield what works and what is bad, and show each finding unless it is to be quiet."""
    with console.status(doing):
        for finding in findings:
            if not quiet:
                mark, style = ("works", "green") if finding.works else (bad, "yellow")
                console.print(f"{mark:7} ", style=style, end="")
                console.print(f"{finding.subject}: {finding.detail}", soft_wrap=True)
                if finding.remedy and not finding.works:
                    console.print(f"          {finding.remedy}", style="bold", soft_wrap=True)
            yield finding

"""``gauge-mc doctor``: show what works on this machine, and how to fix the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import alone_on_stdout, print_document, prints, show_result
from gauge_mc.devices.base import Finding
from gauge_mc.devices.cache import cache_folder
from gauge_mc.devices.cache import clear_cache as clear
from gauge_mc.devices.choice import BACKENDS
from gauge_mc.quoting import counted
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

    gauge-mc doctor
    gauge-mc doctor --physics
    gauge-mc doctor --clear-cache
    """
    from gauge_mc.console import Console

    console = Console()
    if clear_cache:
        folder, removed = cache_folder(), clear()
        document = {"folder": str(folder), "removed": removed}
        words = f"{folder}: {counted(removed, 'file')} removed"
        show_result("doctor", document, json, words)
        return
    if install is not None:
        BACKENDS.check(install, "--install")
        with alone_on_stdout(json), console.status("Installing"):
            BACKENDS[install].install(lambda line: console.print(line, soft_wrap=True))
        if json:
            print_document("doctor", {"installed": install})
        return
    from gauge_mc.inspection.doctor import examine, examine_physics

    doing, tests, bad = "Testing compilers and devices", examine, "missing"
    if physics:
        doing, tests, bad = "Comparing averages", examine_physics, "wrong"
    findings = []
    with alone_on_stdout(json), console.status(doing):
        for finding in tests():
            findings.append(finding)
            if not json:
                _show(console, finding, bad)
    labels = {backend.label for backend in BACKENDS.values()}
    working = [f for f in findings if f.works]
    works = any(x.subject.partition(" ")[0] in labels for x in working)
    if physics:
        works = bool(findings) and working == findings
    if json:
        print_document("doctor", Diagnosis(findings, works))
    elif physics and not findings:
        say("No device works; `gauge-mc doctor` says why.")
    if not works:
        raise typer.Exit(1)


def _show(console: Console, finding: Finding, bad: str) -> None:
    """Show what works or is bad."""
    mark, style = ("works", "green") if finding.works else (bad, "yellow")
    console.print(f"{mark:7} ", style=style, end="")
    console.print(f"{finding.subject}: {finding.detail}", soft_wrap=True)
    if finding.remedy and not finding.works:
        console.print(f"          {finding.remedy}", style="bold", soft_wrap=True)

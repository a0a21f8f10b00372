"""``gauge-mc verify``, ``regenerate``, ``thin`` and ``convert``: treat files that are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import alone_on_stdout, print_document, prints, show_result
from gauge_mc.cli.options import after, is_function, with_settings
from gauge_mc.configurations.reading import LinkKind, open_configuration
from gauge_mc.configurations.writing import FileComparison
from gauge_mc.console import Console
from gauge_mc.devices.choice import check_threads, host_threads
from gauge_mc.domain.slab import REALS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.formats import FORMATS, writable_formats
from gauge_mc.progress import Progress
from gauge_mc.quoting import counted
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run import convert as conversion
from gauge_mc.run.convert import CONVERSIONS
from gauge_mc.storage.links import STATED, Block

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
    from gauge_mc.inspection.verify import carry_out, checks_of, summarise

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


@prints("gauge_mc.stored.regenerate:RegenerationReport")
@is_function("gauge_mc.stored.regenerate:regenerate", at="UPDATES", output="FOLDER", format=FORMATS)
def regenerate(out: Any, dry_run: bool) -> Iterator[str]:
    """Yield what was made, or would be made.

    gauge-mc regenerate RUN --at 250,300:400:10
    gauge-mc regenerate RUN --at 250 --output FOLDER
    gauge-mc regenerate RUN --at 250 --dry-run
    """
    if out.there:
        yield f"there already: {counted(len(out.there), 'configuration')}{after(out.there)}"
    if out.made and out.compared is None:
        yield f"{out.run} has no configuration with which this device could be compared"
    elif out.made:
        will = "would be made again first" if dry_run else "made again, with the same links"
        yield f"configuration {out.compared}: {will}"
    verb = "would be made" if dry_run else "made"
    work = f", {counted(out.updates, 'update')}" if out.made else ""
    yield f"{verb}: {counted(len(out.made), 'configuration')}{work}{after(out.made)}"
    yield out.folder


@prints("gauge_mc.stored.thinning:ThinningReport")
@is_function("gauge_mc.stored.thinning:thin", keep="N")
def thin(out: Any, dry_run: bool) -> Iterator[str]:
    """Yield what was removed, or would be removed.

    gauge-mc thin RUN --keep 2
    gauge-mc thin RUN --keep 10 --dry-run
    gauge-mc thin RUN --keep 10 --unchecked
    """
    from rich.filesize import decimal

    total = len(out.kept) + len(out.removed)
    verb, size = "would be removed" if dry_run else "removed", decimal(out.removed_bytes)
    yield f"{verb}: {len(out.removed)} of {total} configurations, {size}{after(out.removed)}"
    yield f"kept: {len(out.kept)}{after(out.kept)}"


_titles = in_words([x.title for x in FORMATS.values()], "or")


@documented
@dataclass(frozen=True)
class ConvertReport:
    """The document of ``convert``."""

    file: str = result_field("File that was written or read.")
    format: str = result_field("Name of the format.")
    group: str = result_field("Name of the group.")
    lattice: str = result_field("Extents of the lattice.")
    precision: str = result_field("Precision of the stored links, ``single`` or ``double``.")
    comparison: FileComparison | None = result_field(
        "Comparison of the file with the source, with `--verify`.", None
    )
    moved: float | None = result_field(
        "Largest change of an entry of a link by `--project`, if that was given.", None
    )


@prints(
    ConvertReport,
    "gauge_mc.stored.conversions:Conversions",
    *(name for kind in CONVERSIONS.values() for name in kind.results),
)
@o.listed("Formats", [(name, x.summary) for name, x in FORMATS.items()])
@with_settings(
    ("threads", "quiet"),
    {"threads": {"help": "Number of CPU threads, and of files at a time.", "default": "all"}},
    [option for kind in CONVERSIONS.values() for option in kind.options],
)
@o.described_by("gauge_mc.stored.conversions:convert_all")
def convert(
    paths: Annotated[
        list[Path],
        o.argument(
            f"Configuration file in {_titles} format and the file to write; with --output any "
            "number of such files, runs, scans and folders.",
            metavar="CONFIG OUT|CONFIG",
        ),
    ],
    to: Annotated[str | None, o.option("Format of OUT.", choices=writable_formats())] = None,
    output: Annotated[
        Path | None,
        o.option(
            "Folder of the new files, for any number of files; repeating the command goes on.",
            metavar="FOLDER",
        ),
    ] = None,
    precision: Annotated[
        str | None,
        o.option(
            "Precision of the links in OUT.",
            "as in CONFIG, if the format supports it",
            choices=REALS,
        ),
    ] = None,
    verify: bool = False,
    project: bool = False,
    lattice: o.StatedLattice = None,
    group: o.StatedGroup = None,
    json: o.Json = False,
    threads: int | None = None,
    quiet: bool | None = None,
    **settings: Any,
) -> None:
    """Write configurations in another format or precision, and keep their provenance.

    CONFIG is checked while it is read. OUT must not exist, and appears complete or not at all. With
    --output several files are converted at a time, which get the ending of the format. A file that
    is already there is compared with its source, link by link, and one that fails does not stop the
    others.

    gauge-mc convert CONFIG links.nersc --to nersc
    gauge-mc convert RUN --to ildg --output FOLDER
    gauge-mc convert CONFIG links.lime --to ildg --precision single --verify
    """
    options = {name: value for name, value in settings.items() if value is not None}
    kinds = [x for x in CONVERSIONS.values() if any(o.name in options for o in x.options)]
    if kinds and (to or precision or output or verify or project):
        raise UsageError(kinds[0].alone)
    if not kinds and to is None:
        raise UsageError(f"--to is missing; choose {in_words(writable_formats(), 'or')}.")
    stated: dict[str, Any] = {"lattice": lattice, "group": group}
    if output is not None:
        assert to
        keywords = stated | {"verify": verify, "project": project, "threads": threads}
        _convert_all(paths, output, to, precision, keywords | {"progress": not quiet}, json)
        return
    if len(paths) != 2:
        raise UsageError(
            "gauge-mc convert takes one CONFIG and one OUT, and not "
            f"{counted(len(paths), 'name')}; give --output FOLDER to convert any number of "
            "configurations."
        )
    config, out = paths
    if kinds:
        words, report = kinds[0].convert(config, out, options)
        show_result("convert", report, json, words)
        return
    assert to
    check_threads(threads)
    wrap = conversion.unwrapped if quiet else _show_progress
    with alone_on_stdout(json), host_threads(threads):
        source = open_configuration(config, **stated)
        if source.header.warning:
            say(f"gauge-mc: {config}: {source.header.warning}", error=True)
        target, width = (
            conversion.new_file(out),
            conversion.written_precision(source, to, precision),
        )
        source = source.projected() if project else source
        new, comparison = conversion.write_converted(source, target, width, to, wrap, verify)
    header = new.header
    if json:
        names = ("format", "group", "lattice", "precision")
        values = {name: getattr(header, name) for name in names}
        facts = {"comparison": comparison, "moved": source.moved}
        more = {name: value for name, value in facts.items() if value is not None}
        print_document("convert", {"file": str(out), **values, **more})
        return
    if not quiet:
        kind = f"{header.group} on {header.lattice} in {header.precision} precision"
        say(f"{out}: {kind}, {to}{_moved(source.moved)}")
        _show_verdict(str(out), comparison)


def _convert_all(
    paths: Sequence[Path],
    folder: Path,
    to: str,
    precision: str | None,
    keywords: dict[str, Any],
    as_json: bool,
) -> None:
    from gauge_mc.stored import conversions as stored
    from gauge_mc.stored import measure

    with alone_on_stdout(as_json):
        converted = stored.convert_all(paths, folder, to, precision, **keywords)
        conversions = stored.Conversions.of(converted)
    if as_json:
        print_document("convert", conversions)
    elif keywords["progress"]:
        for conversion in conversions.files if keywords["verify"] else ():
            _show_verdict(conversion.file, conversion.comparison)
        more = {"converted before": conversions.there, "failed": conversions.failed}
        words = "".join(f", {count} {name}" for name, count in more.items() if count)
        words += _moved(
            max((file.moved for file in conversions.files if file.moved is not None), default=None)
        )
        say(f"{folder}: {counted(conversions.converted, 'file')} converted to {to}{words}")
    warnings = [
        f"gauge-mc: {file.source}: {file.warning}" for file in conversions.files if file.warning
    ]
    say(*measure.shortest(warnings), error=True)
    failures = [file.failure for file in conversions.files if file.failure]
    for failure in failures[:-1]:
        say(f"gauge-mc: {failure}", error=True)
    if failures:
        raise GaugeError(failures[-1])


def _moved(largest: float | None) -> str:
    """Return how far `--project` has moved links, in words."""
    return "" if largest is None else f", entries of links moved by up to {largest:.1g}"


def _show_verdict(file: str, comparison: FileComparison | None) -> None:
    """Show the verdict on a file that was read back, with its averages and those of its source."""
    if comparison is None:
        return
    means = comparison.averages, comparison.source_averages
    words = [
        f"{name} {getattr(means[0], key):.12g} (source {getattr(means[1], key):.12g})"
        for name, key in STATED.items()
        if all(means)
    ] or [comparison.difference]
    say(f"{comparison.verdict}  {file}  {', '.join(words)}")


def _show_progress(blocks: Iterable[Block], count: int) -> Iterator[Block]:
    """Pass on the blocks of a file, and show the progress on a terminal."""
    from rich.progress import track

    console = Console(stderr=True)
    hidden = not console.is_terminal
    yield from track(blocks, "converting", count, console=console, transient=True, disable=hidden)

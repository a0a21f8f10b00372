"""``gauge-mc convert``: write a configuration in another format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import alone_on_stdout, print_document, prints, show_result
from gauge_mc.cli.options import with_settings
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import FileComparison
from gauge_mc.devices.choice import check_threads, host_threads
from gauge_mc.domain.slab import REALS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.formats import FORMATS, writable_formats
from gauge_mc.quoting import counted
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.convert import CONVERSIONS
from gauge_mc.storage.links import STATED, Block

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
    from gauge_mc.run import convert as run

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
    wrap = run.unwrapped if quiet else _show_progress
    with alone_on_stdout(json), host_threads(threads):
        source = open_configuration(config, **stated)
        if source.header.warning:
            say(f"gauge-mc: {config}: {source.header.warning}", error=True)
        target, width = run.new_file(out), run.written_precision(source, to, precision)
        source = source.projected() if project else source
        new, comparison = run.write_converted(source, target, width, to, wrap, verify)
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
    from gauge_mc.stored.conversions import Conversions, convert_all
    from gauge_mc.stored.measure import shortest

    with alone_on_stdout(as_json):
        conversions = Conversions.of(convert_all(paths, folder, to, precision, **keywords))
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
    say(*shortest(warnings), error=True)
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

    from gauge_mc.console import Console

    console = Console(stderr=True)
    hidden = not console.is_terminal
    yield from track(blocks, "converting", count, console=console, transient=True, disable=hidden)

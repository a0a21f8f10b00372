"""The workflow of a published run: a Snakefile that makes everything again and compares it.

Its rules follow from what the run has: the card, the tables that were measured on stored
configurations with the commands in the log, the results of fits with their options, and the
figures. Everything is made in a folder beside the published files, which are then compared.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from gauge_mc import __version__
from gauge_mc.errors import GaugeError
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_json
from gauge_mc.options import flag_of
from gauge_mc.publication.record import CARD, CONFIGURATIONS
from gauge_mc.run.directory import Run
from gauge_mc.run.execution import Execution
from gauge_mc.run.log import SESSION, LogTail

SNAKEFILE = Path("Snakefile")
"""File of the workflow."""

AGAIN = "again"
"""Folder in which everything is made again."""

RUN = f"{AGAIN}/run"
"""Run directory of what is made again."""

MADE_AGAIN = 3
"""Number of configurations that are made again from the published state."""

PROGRAM, MEASURE = "gauge-mc", "measure"

HELP = {"-h", "--help"}
"""Options with which a command only describes itself."""

HERE = {one.name for one in fields(Execution)} | {"json", "dry_run", "run"}
"""Options of a measurement that depend on the machine or the folders."""


@dataclass(frozen=True)
class WorkflowRule:
    """A rule of the workflow."""

    name: str
    """Name of the rule."""
    needs: Sequence[str]
    """Files that must be there before."""
    makes: str
    """File that it makes; an empty one that notes the end if the command makes others."""
    commands: Sequence[str]
    """Command lines."""
    marks: bool = True
    """Whether the file only notes the end."""

    def __str__(self) -> str:
        made = f"touch({self.makes!r})" if self.marks else repr(self.makes)
        needed = "".join(f"        {one!r},\n" for one in self.needs)
        # Braces are Snakemake's.
        lines = [one.replace("{", "{{").replace("}", "}}") for one in self.commands]
        shell = "".join(f"        {one + chr(10)!r}\n" for one in lines)
        return (
            f"\nrule {self.name}:\n    input:\n{needed}    output:\n        {made},\n"
            f"    threads: workflow.cores\n    shell:\n{shell}"
        )


def workflow_text(run: Run, configurations: int) -> str:
    """Return the Snakefile of a run that is complete.

    Parameters
    ----------
    run : Run
        The run.
    configurations : int
        Number of configurations in the published list.
    """
    measured, fits = dict(_measurements(run)), kept_fits(run)
    unrepeated = {file for file, words in measured.items() if not words}
    repeated = [one for one in fits if unrepeated.isdisjoint(one.tables)]
    made = [*_making(run, measured, repeated)]
    files = [path.name for path in run.tables() if path.exists() and path.name not in unrepeated]
    files += [one.file for one in repeated]
    checks = [*_checking(files, made, configurations)]
    targets = [one.makes for one in (*made, *checks)]
    first = "".join(f"        {one!r},\n" for one in targets)
    return (
        f"# Makes this ensemble in the folder {AGAIN}/, with what was measured, fitted and drawn,\n"
        f"# and compares it with the files of this folder: snakemake --cores all\n"
        f"# It needs gauge-mc {__version__} on the kind of device that run.toml names.\n\n"
        f"rule all:\n    input:\n{first}" + "".join(map(str, (*made, *checks)))
    )


@dataclass(frozen=True)
class KeptFit:
    """A result of a fit that a run has kept."""

    name: str
    """Name of the fit."""
    file: str
    """Name of the file."""
    tables: Sequence[str]
    """Files of the tables from which it was made."""
    options: Mapping[str, object]
    """Options that were given."""


def kept_fits(run: Run) -> list[KeptFit]:
    """Return the results of fits in a run, in the order of the names of their files."""
    from gauge_mc.fits import FITS
    from gauge_mc.fits.shared.files import FITTED, MAX_RESULT, OPTIONS, RESULT

    found = []
    for path in sorted(run.path.glob("*.json")):
        named = [one for one in FITS.values() if path.stem.startswith(Path(one.file).stem)]
        if named and RESULT.recognises(path) and not path.is_symlink():
            name = max(named, key=lambda one: len(one.file)).name
            try:
                content = parse_json(read_text(path, MAX_RESULT))
                tables = [str(one["file"]) for one in content.get(FITTED, ())]
                found.append(KeptFit(name, path.name, tables, dict(content.get(OPTIONS, {}))))
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise GaugeError(
                    f"{path} is damaged: repeat the fit, or remove the file."
                ) from error
    return found


def _making(
    run: Run, measured: Mapping[str, list[str] | None], fits: Sequence[KeptFit]
) -> Iterator[WorkflowRule]:
    """Yield the rules that make the run, its tables, fits and figures."""
    generated = WorkflowRule("run", [str(CARD)], f"{AGAIN}/run.done", [_line("generate", *_card())])
    yield generated
    tables = {}
    for file, words in measured.items():
        if words:
            tables[file] = f"{AGAIN}/{file}.done"
            line = _line(MEASURE, *words)
            yield WorkflowRule(_name(MEASURE, file), [generated.makes], tables[file], [line])
    results = []
    for one in fits:
        needs = [generated.makes, *(tables[file] for file in one.tables if file in tables)]
        line = _line("fit", one.name, RUN, *_options(one.options))
        results.append(f"{RUN}/{one.file}")
        yield WorkflowRule(_name("fit", one.file), needs, results[-1], [line], marks=False)
    for name, file in _figures(run):
        path = f"{AGAIN}/{file}"
        line = _line("plot", name, RUN, "--output", path)
        needs = [generated.makes, *tables.values(), *results]
        yield WorkflowRule(_name("plot", file), needs, path, [line], marks=False)


def _checking(
    files: Sequence[str], made: Sequence[WorkflowRule], configurations: int
) -> Iterator[WorkflowRule]:
    """Yield the rules that compare files that were made again with the published ones."""
    needs = [one.makes for one in made]
    compared = [shlex.join(["cmp", one, f"{RUN}/{one}"]) for one in files]
    if configurations:
        digests = f"""awk -F, 'NR > 1 {{print $4 "  " $2}}' {CONFIGURATIONS}"""
        compared.append(f"{digests} | (cd {RUN} && sha256sum -c --quiet)")
    compared.append(_line("verify", RUN))
    yield WorkflowRule("compare", needs, f"{AGAIN}/compared.done", compared)
    if configurations:
        number = min(MADE_AGAIN, configurations)
        line = _line("verify", ".", "--regenerate", str(number))
        yield WorkflowRule("regenerate", [str(CARD)], f"{AGAIN}/regenerated.done", [line])


def _card() -> tuple[str, ...]:
    return ("--card", str(CARD), "--output", RUN, "--quiet")


def _measurements(run: Run) -> Iterator[tuple[str, list[str] | None]]:
    """Yield the tables that were measured on stored configurations, with the words of the command.

    They are those of the log that the run still has; the last command for a table counts. There are
    no words if a program in Python has measured, which is no command that could be repeated.
    """
    commands = {}
    for one in LogTail(run.path).new():
        if one.event == SESSION and "table" in one.fields:
            commands[str(one.fields["table"])] = str(one.fields.get("command", ""))
    for file, command in commands.items():
        if (run.path / file) in run.tables():
            yield file, _of_command(command)


def _of_command(command: str) -> list[str] | None:
    """Return the words of a measurement for the run that is made again; None if it is none."""
    from gauge_mc.cli import load_command
    from gauge_mc.cli.help import is_argument

    try:
        program, verb, *words = shlex.split(command)
        if (program, verb) != (PROGRAM, MEASURE) or HELP & {*words}:
            return None
        context = load_command(MEASURE).make_context(MEASURE, words)
    except (ValueError, GaugeError):
        return None
    found = [context.info_name.split()[1], RUN]
    for one in context.command.params:
        value = context.params.get(one.name)
        given = context.get_parameter_source(one.name)
        if one.name in HERE or is_argument(one) or value is None or given.name != "COMMANDLINE":
            continue
        found += _options({one.name: value})
    return found


def _options(given: Mapping[str, object]) -> list[str]:
    """Return options by name as words of the command line."""
    found: list[str] = []
    for name, value in given.items():
        if isinstance(value, bool):
            found += [flag_of(name)] * value
        elif isinstance(value, list | tuple):
            found += [flag_of(name), ",".join(map(str, value))]
        else:
            found += [flag_of(name), str(value)]
    return found


def _figures(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the plots whose figures a run has, with the names of the files."""
    from gauge_mc.plots.figures.files import ENDINGS
    from gauge_mc.plots.runs.drawing import find_plot

    for path in sorted(run.path.iterdir()):
        if path.suffix.removeprefix(".") in ENDINGS:
            try:
                find_plot(path.stem, [run.path])
            except GaugeError:
                continue
            yield path.stem, path.name


def _line(*words: str) -> str:
    return shlex.join([PROGRAM, *words])


def _name(verb: str, file: str) -> str:
    """Return the name of a rule, an identifier."""
    stem = os.path.splitext(file)[0]
    return f"{verb}_" + "".join(one if one.isalnum() and one.isascii() else "_" for one in stem)

"""Help texts of commands, in which most options take one line."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import typer
from rich.text import Text

from gauge_mc.console import Console
from gauge_mc.registry import words_in_any_case


def leave_values(parameters: Iterable[Any]) -> None:
    """Leave the values of parameters as text while a shell completes.

    Converting them would import what takes a third of the time.
    """
    for parameter in parameters:
        parameter.process_value = lambda ctx, value: value


def choosing(words: Iterable[str], separator: str | None = None) -> dict[str, Any]:
    """Return arguments of `typer.Option` for an option whose value begins with a known word.

    A shell completes the words, and they are read in any case. Other values are left as they are,
    so that the owner of the option can refuse them.
    """
    choices = list(words)

    def complete(incomplete: str) -> list[str]:
        before, delimiter, _ = incomplete.rpartition(separator) if separator else ("", "", "")
        return [before + delimiter + word for word in choices]

    def read(text: str) -> str:
        return words_in_any_case(text, choices, separator or "")

    return {"autocompletion": complete, "parser": read}


Row = tuple[str, str, str]
"""A line of a section: a name, what stands for its value, and a description."""

Sections = dict[str, list[Row]]
"""Lines of a help text by the heading of their section."""

ARGUMENTS = "Arguments"
"""Section of arguments, which is shown without a heading."""

COMMON = "Common options"
"""Section that a long help text abridges."""

MOST_LINES = 45
"""Number of lines above which a short help text abridges."""

USUAL = (
    "lattice group beta action precision start seed thermalize configs separation measure chains "
    "refine format output card backend devices time-limit error time hmc over submit collect "
    "dry-run out help"
)
"""Names of the options that the short help text of a command with many options describes."""

COLUMN = 25
"""Column in which descriptions begin, unless a name with its value is longer."""

LEAST_WIDTH = 60
"""Width that is used even if the terminal is narrower."""

DEFAULT = re.compile(r"\s*\[default:\s(.*)\]\Z", re.DOTALL)
"""The default at the end of a description."""


def with_default(help: str, default: object) -> str:
    """Return a help text with the default appended, unless the default is empty."""
    return f"{help} [dim]\\[default: {default}][/dim]" if default != "" else help


def show_help(command: Any, ctx: Any, lists: Sections, examples: Sequence[str]) -> NoReturn:
    """Print the help text of a command, with colours on a terminal, and end the program.

    If it is long, ``-h`` describes only common options, and names the others.
    """
    console = Console()
    width = max(console.width, LEAST_WIDTH)
    path, parameters = ctx.command_path, command.get_params(ctx)
    rest = getattr(command, "subcommand_metavar", "")  # of a group
    head = [Text(f"Usage: {usage(path, parameters)} {rest}".rstrip())]
    head += [Text("\n".join(f"  {e}" for e in examples))] if examples else []
    texts = Text.from_markup(command.help or "").plain.split("\n\n")
    first, *more = (Text(textwrap.fill(text, width)) for text in texts)
    options = option_sections(parameters)
    sections = lists | options if rest else options | lists
    blocks = [*head, first, *more, *(_section(*x, width) for x in sections.items())]
    if ctx.meta.get("short") and _height(blocks) > MOST_LINES:
        head += [first, *_common_options(path, parameters, width)]
        blocks = [*head, *(_section(*x, width, brief=True) for x in lists.items())]
        if _height(blocks) > MOST_LINES:
            blocks = [*head, *(_named(*x, path, width) for x in lists.items())]
    console.print(Text("\n\n").join(blocks), soft_wrap=True)
    raise typer.Exit


def _height(blocks: Iterable[Text]) -> int:
    return sum(str(block).count("\n") + 2 for block in blocks) - 1


def _common_options(path: str, parameters: Sequence[Any], width: int) -> Iterator[Text]:
    """Yield sections of arguments and common options, and one that names all other options.

    The common options of a thing, such as an observable, are its own.
    """
    sections = option_sections(parameters)
    further = sections.pop(COMMON, [])
    if further:
        yield from (_section(*x, width, brief=True) for x in sections.items())
    else:
        arguments = sections.pop(ARGUMENTS, [])
        rows = [row for rows in sections.values() for row in rows]
        common = [row for row in rows if row[0].split("--")[-1] in USUAL.split()]
        further = [row for row in rows if row not in common]
        yield from [_section(ARGUMENTS, arguments, width)] if arguments else []
        yield _section(COMMON, common, width, brief=True)
    yield _named("Further options", further, path, width)


def _section(heading: str, rows: Iterable[Row], width: int, brief: bool = False) -> Text:
    head = [Text(heading, "bold")] * (heading != ARGUMENTS)
    return Text("\n").join([*head, *(_line(*row, width, brief) for row in rows)])


def _named(heading: str, rows: Iterable[Row], path: str, width: int) -> Text:
    """Return the names of a section."""
    words = "  " + ", ".join(name for name, *_ in rows)
    lines = textwrap.fill(words, width, subsequent_indent="  ", break_on_hyphens=False)
    return Text.assemble((f"{heading}, which {path} --help describes", "bold"), "\n", lines)


def _line(name: str, value: str, text: str, width: int, brief: bool) -> Text:
    """Return a row of a section, which may be continued below the description unless brief."""
    head = f"  {name} {value}".rstrip()
    start = max(len(head) + 2, COLUMN)
    if brief and len(text) > (room := max(width - start, COLUMN)):
        sentence, *_ = re.split(r"(?<=[.;]) ", DEFAULT.sub("", text))
        text = textwrap.shorten(sentence.rstrip(";"), room, placeholder=" ...")
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=" " * start,
        subsequent_indent=" " * COLUMN,
        break_long_words=False,
        break_on_hyphens=False,
    )
    shown = Text("\n".join([head + lines[0][len(head) :], *lines[1:]]) if lines else head)
    shown.stylize("bold cyan", 2, 2 + len(name))
    shown.stylize("yellow", 3 + len(name), len(head))
    shown.highlight_regex(DEFAULT, "dim")
    return shown


def option_sections(parameters: Iterable[Any]) -> Sections:
    """Return the arguments and options of a command by the section in which they are shown."""
    sections: Sections = {}
    for parameter in sorted(parameters, key=is_argument, reverse=True):
        usual = COMMON if COMMON in sections else "Options"
        heading = ARGUMENTS if is_argument(parameter) else parameter.rich_help_panel or usual
        name = (
            placeholder(parameter)
            if is_argument(parameter)
            else ", ".join(sorted(parameter.opts, key=len))
        )
        value = "" if is_argument(parameter) else placeholder(parameter)
        sections.setdefault(heading, []).append((name, value, description(parameter)))
    return sections


def is_argument(parameter: Any) -> bool:
    """Return whether a parameter is an argument, given by its position, and not an option."""
    return str(parameter.param_type_name) == "argument"


def placeholder(parameter: Any) -> str:
    """Return what stands for the value of an option or argument; empty for a flag."""
    if getattr(parameter, "is_flag", False):
        return ""
    return str(parameter.metavar or parameter.name.upper())


def description(parameter: Any) -> str:
    """Return the description of an option or argument, with its default at the end."""
    text, value = Text.from_markup(parameter.help or "").plain, parameter.default
    if not DEFAULT.search(text) and isinstance(value, int | float) and value is not False:
        text += f" [default: {value}]"
    return text


def usage(path: str, parameters: Iterable[Any]) -> str:
    """Return the line that shows how to call a command, given the words before its options."""
    return " ".join([path, "[OPTIONS]", *needed_words(parameters)])


def needed_words(parameters: Iterable[Any]) -> Iterator[str]:
    """Yield the required options and the arguments of a command."""
    for parameter in sorted(parameters, key=is_argument):
        if is_argument(parameter):
            word = placeholder(parameter) if parameter.required else f"[{placeholder(parameter)}]"
            yield word + "..." * (parameter.nargs == -1)
        elif parameter.required:
            yield f"{parameter.opts[0]} {placeholder(parameter)}"

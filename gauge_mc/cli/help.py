"""Help texts of commands, in which most options take one line."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from gauge_mc.registry import words_in_any_case

if TYPE_CHECKING:
    from rich.text import Text


def leave_values(parameters: Iterable[Any]) -> None:
    """Leave the values of parameters as text while a shell completes.

    Converting them would import what takes a third of the time.
    """
    for one in parameters:
        one.process_value = lambda ctx, value: value


def choosing(words: Iterable[str], separator: str | None = None) -> dict[str, Any]:
    """Return arguments of `typer.Option` for an option whose value begins with a known word.

    A shell completes the words, and they are read in any case. Other values are left as they are,
    so that the owner of the option can refuse them.

    Parameters
    ----------
    words : iterable of str
        The known words, which completion offers.
    separator : str, optional
        Character between the values of a list, as in ``plaquette,flow:50``.
    """
    known = list(words)

    def complete(incomplete: str) -> list[str]:
        before, found, _ = incomplete.rpartition(separator) if separator else ("", "", "")
        return [before + found + word for word in known]

    def read(text: str) -> str:
        return words_in_any_case(text, known, separator or "")

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
"""Number of lines above which a help text abridges its common options."""

COLUMN = 25
"""Column in which descriptions begin, unless a name with its value is longer."""

LEAST_WIDTH = 60
"""Width that is used even if the terminal is narrower."""

DEFAULT = re.compile(r"\s*\[default:\s(.*)\]\Z", re.DOTALL)
"""The default at the end of a description."""


def with_default(help: str, default: object) -> str:
    """Return a help text with the default appended, unless the default is empty."""
    return f"{help} [dim]\\[default: {default}][/dim]" if default != "" else help


def show_help(command: Any, ctx: Any, lists: Sections) -> NoReturn:
    """Print the help text of a command, with colours on a terminal, and end the program.

    Parameters
    ----------
    command : Command
        The command that is described.
    ctx : Context
        Its context, for Click.
    lists : dict of str to list of Row
        Sections that precede those of the options.
    """
    from rich.text import Text

    from gauge_mc.console import Console

    console = Console()
    width = max(console.width, LEAST_WIDTH)
    parameters = command.get_params(ctx)
    rest = getattr(command, "subcommand_metavar", "")  # of a group
    blocks = [Text(f"Usage: {usage(ctx.command_path, parameters)} {rest}".rstrip())]
    paragraphs = Text.from_markup(command.help or "").plain.split("\n\n")
    blocks += [Text(textwrap.fill(one, width)) for one in paragraphs]
    sections = lists | option_sections(parameters)
    blocks += [_section(heading, rows, width) for heading, rows in sections.items()]
    if COMMON in sections and "\n\n".join(map(str, blocks)).count("\n") >= MOST_LINES:
        where = list(sections).index(COMMON) - len(sections)
        parent = ctx.command_path.rpartition(" ")[0]
        blocks[where] = _abridged(sections[COMMON], parent, width)
    console.print(Text("\n\n").join(blocks), soft_wrap=True)
    raise typer.Exit


def _section(heading: str, rows: Iterable[Row], width: int) -> Text:
    from rich.text import Text

    lines = [Text(heading, "bold")] * (heading != ARGUMENTS)
    return Text("\n").join([*lines, *(_line(*row, width) for row in rows)])


def _abridged(rows: Iterable[Row], command: str, width: int) -> Text:
    """Return the section of common options without descriptions."""
    from rich.text import Text

    words = ", ".join(f"{name} {value}".rstrip().replace(" ", "\0") for name, value, _ in rows)
    how = textwrap.TextWrapper(width, "  ", "  ", break_on_hyphens=False)
    lines = how.fill(words)
    heading = f"{COMMON}, which {command} --help describes"
    return Text.assemble((heading, "bold"), "\n", lines.replace("\0", " "))


def _line(name: str, value: str, text: str, width: int) -> Text:
    """Return a line of a section, which may be continued below the description."""
    from rich.text import Text

    head = f"  {name} {value}".rstrip()
    start = max(len(head) + 2, COLUMN)
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
    for one in sorted(parameters, key=is_argument, reverse=True):
        usual = COMMON if COMMON in sections else "Options"
        heading = ARGUMENTS if is_argument(one) else one.rich_help_panel or usual
        name = placeholder(one) if is_argument(one) else ", ".join(sorted(one.opts, key=len))
        value = "" if is_argument(one) else placeholder(one)
        sections.setdefault(heading, []).append((name, value, description(one)))
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
    from rich.text import Text

    text, value = Text.from_markup(parameter.help or "").plain, parameter.default
    if not DEFAULT.search(text) and isinstance(value, int | float) and value is not False:
        text += f" [default: {value}]"
    return text


def usage(path: str, parameters: Iterable[Any]) -> str:
    """Return the line that shows how to call a command, given the words before its options."""
    return " ".join([path, "[OPTIONS]", *needed_words(parameters)])


def needed_words(parameters: Iterable[Any]) -> Iterator[str]:
    """Yield the required options and the arguments of a command."""
    for one in sorted(parameters, key=is_argument):
        if is_argument(one):
            word = placeholder(one) if one.required else f"[{placeholder(one)}]"
            yield word + "..." * (one.nargs == -1)
        elif one.required:
            yield f"{one.opts[0]} {placeholder(one)}"

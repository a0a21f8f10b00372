"""Tools for options and lists in help texts.

All options default to None, which means that an option was not given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

import typer

from gauge_mc.cli.completion import choosing
from gauge_mc.cli.help import with_default as with_default
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.run.settings import ENSEMBLE as ENSEMBLE
from gauge_mc.run.settings import EXECUTION as EXECUTION
from gauge_mc.run.settings import FILES as FILES

Function = TypeVar("Function", bound=Callable[..., Any])

NEWEST = "newest run or scan in runs/"
"""Default of an argument that names a run or a scan."""

OBSERVABLE_SUMMARIES = [(name, one.summary) for name, one in OBSERVABLES.items()]
"""Names and summaries of the observables, for `listed`."""


def option(
    help: str,
    usual: object = "",
    metavar: str | None = None,
    choices: Iterable[str] = (),
    separator: str | None = None,
    flag: str = "",
    panel: str | None = None,
) -> Any:
    """Return an option for Typer.

    Parameters
    ----------
    help : str
        Description in the help text.
    usual : object
        Default, as shown in the help text; empty if there is none.
    metavar : str, optional
        Placeholder for the value in the help text; by default the choices.
    choices : iterable of str, optional
        Words that the value may be, which a shell completes and which are taken in any case.
    separator : str, optional
        Character between the words of a value that is a list.
    flag : str
        The option as it is given, for one without a value or with several names.
    panel : str, optional
        Panel of the help text.
    """
    words = list(choices)
    return typer.Option(
        *flag.split(),
        help=with_default(help, usual),
        rich_help_panel=panel,
        metavar=metavar or "|".join(words) or None,
        show_default=False,
        **(choosing(words, separator) if words else {}),
    )


def declared(one: Option, usual: str | None = None, panel: str | None = None) -> Any:
    """Return a declared option for Typer that is a number or a word instead of it."""
    made = option(one.help, usual or one.default, one.metavar, one.instead, panel=panel)
    made.parser = one.read
    return made


def argument(help: str, usual: object = "", metavar: str = "", choices: Iterable[str] = ()) -> Any:
    """Return an argument for Typer, which is given by its place; see `option`."""
    words = list(choices)
    return typer.Argument(
        metavar=metavar,
        help=with_default(help, usual),
        show_default=False,
        **(choosing(words) if words else {}),
    )


def listed(title: str, entries: Iterable[tuple[str, str]]) -> Callable[[Function], Function]:
    """Add a list of names with summaries to the help text of a command; this is a decorator.

    Parameters
    ----------
    title : str
        Title of the list.
    entries : iterable of (str, str)
        Names and their summaries.
    """
    rows = [(name, "", summary) for name, summary in entries]

    def decorate(function: Function) -> Function:
        function.lists = {title: rows}  # type: ignore[attr-defined]
        return function

    return decorate


Card = Annotated[
    str | None,
    option("Run card, a TOML file with any of these options.", metavar="FILE", panel=FILES),
]
StatedLattice = Annotated[
    str | None,
    option("Extents of links whose file does not state them.", metavar="XxYxZxT"),
]
StatedGroup = Annotated[str | None, option("Group of such links.", choices=GROUPS)]
Json = Annotated[
    bool,
    option("Print the result as one JSON object; all else goes to standard error.", flag="--json"),
]

"""Commands as Click calls them: their help, their subcommands, and advice about misspelt words.

The first argument of some commands, such as ``gauge-mc measure``, chooses a registered thing, here
an observable. For each thing there is a subcommand with the options that the thing declares.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, get_args

import typer
import typer.core

from gauge_mc.cli import help
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.options import Option, flag_of, merged
from gauge_mc.quoting import CommandLine, number, whole_number
from gauge_mc.registry import in_any_case, in_words, nearest
from gauge_mc.scans.grid import axes

HELP = ["-h", "--help"]
"""Options that show the help text."""

Function = TypeVar("Function", bound=Callable[..., Any])


class DescribedCommand(typer.core.TyperCommand):
    """A command with one line for most options in its help, and advice about unknown options."""

    function: Callable[..., Any]
    parameters: Sequence[inspect.Parameter]
    """Parameters of the function, with the types of their values."""
    examples: Sequence[str] = ()
    """Command lines, the usual one first."""
    several: str = ""
    """Command that takes several couplings and lattices, if this one takes one."""

    def lists(self) -> help.Sections:
        """Return the lists of its help text, which `listed` declares."""
        lists: help.Sections = getattr(self.function, "lists", {})
        return lists

    def get_help(self, ctx: Any) -> NoReturn:
        """Show the help text, and end the program."""
        help.show_help(self, ctx, self.lists(), self.examples)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, and refuse unknown ones in a sentence that says what to do."""
        if ctx.resilient_parsing:
            help.leave_values(self.get_params(ctx))
        ctx.meta["short"] = "-h" in args  # which its help text reads
        if self.several and not ctx.resilient_parsing:
            self.refuse_several(args)
        takes_more, ctx.allow_extra_args = ctx.allow_extra_args, True
        try:
            rest = super().parse_args(ctx, args)
        except Exception as error:
            # The classes of these exceptions depend on the version of Typer.
            if type(error).__name__ == "MissingParameter":
                raise UsageError(self.missing(ctx)) from error
            if type(error).__name__ != "NoSuchOption":
                raise
            flag = str(getattr(error, "option_name", ""))
            text = f"{flag} is not an option of {ctx.command_path}{self.advice(ctx, flag)}"
            raise UsageError(text) from error
        if rest and not (takes_more or ctx.resilient_parsing):
            raise UsageError(self.excess(ctx, rest[0]))
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Carry out the command. Messages about an option have its name on the command line."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            name, *rest = re.split(r"(?=: | is | must )", str(error), maxsplit=1)
            if ctx.params.get(name) is not None:
                error.args = (f"{flag_of(name)}{''.join(rest)}",)
            raise

    def refuse_several(self, args: Sequence[str]) -> None:
        """Refuse several couplings or lattices, and name the command that takes them."""
        for flag, value in pairwise(args):
            if re.search("[,:]", value) and flag in map(flag_of, axes()):
                line = CommandLine(self.several, *args)
                raise UsageError(f"{flag} has one value here; for several, give `{line}`.")

    def missing(self, ctx: Any) -> str:
        """Return the message that words are missing which the command needs."""
        words = in_words(
            [*help.needed_words(param for param in self.get_params(ctx) if param.required)]
        )
        example = f", as in {self.examples[0]}" if self.examples else ""
        return f"gauge-mc {ctx.info_name} needs {words}{example}."

    def excess(self, ctx: Any, word: str) -> str:
        """Return the message that the command does not take a word."""
        has_card = any("--card" in param.opts for param in self.get_params(ctx))
        is_card = has_card and word.endswith(".toml")
        advice = "a run card follows --card" if is_card else "--help shows what it takes"
        return f"{word!r} is not an argument of {ctx.command_path}; {advice}."

    def advice(self, ctx: Any, flag: str) -> str:
        """Return the end of the message about an unknown option."""
        words = (word for param in self.get_params(ctx) for word in param.opts)
        return nearest(flag, [word for word in words if word.startswith("--")])


@dataclass(frozen=True)
class OptionGroup:
    """The options of a subcommand that are declared together, such as those of an observable."""

    name: str
    """Its name in messages."""
    options: Sequence[Option]
    """Options of this group."""
    section: str
    """Heading of the options in the help text."""
    label: str = ""
    """Its name before the descriptions of its options, if several owners share the section."""


@dataclass(frozen=True)
class Subcommands:
    """The subcommands of a command, one for each registered thing, such as an observable."""

    title: str
    """Heading of their list, such as ``Observables``."""
    names: Callable[[], Iterable[str]]
    """Returns the names of all things."""
    summary: Callable[[str], str]
    """Returns the short description of a thing, given its name."""
    owners: Callable[[str], Sequence[OptionGroup]]
    """Returns what declares the options of a thing, given its name."""
    check: Callable[[str], object]
    """Raises a `UsageError` if there is no thing of a name. If it raises nothing, the function of
    the command refuses the name.
    """
    listed: Callable[[str], bool] = lambda name: True
    """Returns whether the help text of the command lists a thing, given its name."""

    def __call__(self, function: Function) -> Function:
        """Decorate a function whose first argument chooses one of the things."""
        function.kind = self  # type: ignore[attr-defined]
        return function

    def options(self, name: str) -> list[tuple[Option, OptionGroup, str]]:
        """Return the options of a thing, with what declares them first, and their descriptions."""
        owners, entries = self.owners(name), []
        for option in merged((owner.name, owner.options) for owner in owners):
            having = [
                owner
                for owner in owners
                if option.name in {option.name for option in owner.options}
            ]
            labels = [x.label for x in having if x.label]
            if having == [owner for owner in owners if owner.section == having[0].section]:
                labels = []
            text = f"{in_words(labels)}: {option.help}" if labels else option.help
            entries.append((option, having[0], help.with_default(text, option.default)))
        return entries

    def with_option(self, flag: str) -> dict[str, Option]:
        """Return the things that have an option, given its name on the command line."""
        return {
            name: option
            for name in self.names()
            for owner in self.owners(name)
            for option in owner.options
            if option.flag == flag
        }


class Chooser(DescribedCommand):
    """A command whose first argument chooses a registered thing, and with it a subcommand."""

    kind: Subcommands

    def lists(self) -> help.Sections:
        """Return the list of the things."""
        names = filter(self.kind.listed, self.kind.names())
        return {self.kind.title: [(name, "", self.kind.summary(name)) for name in names]}

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Return the context of a subcommand, or of this command if nothing is chosen."""
        place, names = self._place(args), list(self.kind.names())
        if place < len(args):
            name = in_any_case(args[place], names)
            if name not in names and Path(name).exists():
                later = next((word for word in args[place + 1 :] if word in names), "")
                rest = [word for word in args if word != later]
                line = CommandLine(info_name, later or self.examples[0].split()[2], *rest)
                kind = self.kind.title.removesuffix("s").lower()
                raise UsageError(f"Name the {kind} before {name}, as in `{line}`.")
            try:
                command = self.subcommand(name)
            except GaugeError:
                if not extra.get("resilient_parsing"):  # a shell that completes takes no advice
                    raise
            else:
                rest = args[:place] + args[place + 1 :]
                return command.make_context(f"{info_name} {name}", rest, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def missing(self, ctx: Any) -> str:
        """Return the message that no thing is named."""
        command = f"gauge-mc {ctx.info_name}"
        return f"{command} needs a name, as in {self.examples[0]}; {command} -h lists all."

    def _place(self, args: Sequence[str]) -> int:
        """Return the index of the first word that is neither an option nor its value."""
        place = 0
        while place < len(args) and args[place].startswith("-") and args[place] != "-":
            if args[place] == "--":
                return place + 1
            place += 1 + self._takes_value(args[place])
        return place

    def _takes_value(self, flag: str) -> bool:
        """Return whether the word after an option is its value."""
        if flag in HELP or "=" in flag:
            return False
        for param in self.params:
            if flag in param.opts:
                return not getattr(param, "is_flag", False)
        return any(x.kind is not bool for x in self.kind.with_option(flag).values())

    def subcommand(self, name: str) -> OneOfKind:
        """Return the command of a thing."""
        self.kind.check(name)
        function = self.function

        def carry_out(**values: Any) -> Any:
            return function(name, **values)

        verb = (function.__doc__ or "").split(maxsplit=1)[0]
        carry_out.__doc__ = f"{verb} {self.kind.summary(name)}."
        _, *common = parameters_of(function)
        names = {each.name for each in common}
        parameters, flags = [], {option.flag for option, *_ in self.kind.options(name)}
        for option, owner, text in self.kind.options(name):
            if option.name in names:
                raise GaugeError(
                    f"The option {option.flag} of {owner.name} has the name of an option of "
                    f"gauge-mc {function.__name__}; rename it."
                )
            parameters.append(declared_parameter(option, owner.section, text))
        common = [without_flags(each, flags) for each in common]
        command = made_command(OneOfKind, function.__name__, carry_out, [*parameters, *common])
        command.kind = self.kind
        command.examples = [re.sub(r"( \S+) \S+", rf"\1 {name}", x, count=1) for x in self.examples]
        for each in command.params:
            if each.name in names and not help.is_argument(each):
                each.rich_help_panel = help.COMMON  # type: ignore[attr-defined]
        return command


class OneOfKind(DescribedCommand):
    """The subcommand of one thing, which has the options of that thing."""

    kind: Subcommands

    def advice(self, ctx: Any, flag: str) -> str:
        """Return the end of the message about an unknown option."""
        if option := self.kind.with_option(flag):
            return f", but of {in_words(option)}; leave it out."
        return super().advice(ctx, flag)


def command_of(function: Callable[..., Any]) -> DescribedCommand:
    """Return the command of a function that is annotated for Typer."""
    kind: Subcommands | None = getattr(function, "kind", None)
    name, parameters = function.__name__, parameters_of(function)
    if not kind:
        return made_command(DescribedCommand, name, function, parameters)
    command = made_command(Chooser, name, function, parameters)
    command.kind = kind
    return command


CommandClass = TypeVar("CommandClass", bound=DescribedCommand)


def made_command(
    cls: type[CommandClass],
    name: str,
    function: Callable[..., Any],
    parameters: Sequence[inspect.Parameter],
) -> CommandClass:
    """Return a command that calls a function with the given parameters."""

    def call(**values: Any) -> Any:
        return function(**values)

    # Typer reads both, and would evaluate annotations that are text without the parsers.
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    text, start, lines = inspect.cleandoc(function.__doc__ or "").partition("\n\ngauge-mc ")
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    single.command(name, cls=cls, help=text, context_settings={"help_option_names": HELP})(call)
    command = typer.main.get_command(single)
    assert isinstance(command, cls)
    command.function, command.parameters = function, parameters
    command.examples = f"{start}{lines}".split("\n")[2:]
    return command


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a command, which accept only plain numbers and no empty paths."""
    declared = inspect.signature(function, eval_str=True).parameters.values()
    parameters = [x.replace(kind=x.KEYWORD_ONLY) for x in declared if x.kind is not x.VAR_KEYWORD]
    for parameter in parameters:
        kind, *described = get_args(parameter.annotation) or (parameter.annotation,)
        parts = [get_args(arg) or (arg,) for arg in get_args(kind) or [kind]]
        kinds = {part for p in parts for part in p} & PARSERS.keys()
        if kinds and described:
            (kind,) = kinds
            described[0].parser = PARSERS[kind]
            described[0].metavar = described[0].metavar or f"<{kind.__name__.lower()}>"
    return parameters


def without_flags(parameter: inspect.Parameter, flags: Set[str]) -> inspect.Parameter:
    """Return a parameter of a command without those of its several flags that are taken."""
    kind, *described = get_args(parameter.annotation) or (parameter.annotation, None)
    # Typer has the first name of an annotated option as its default.
    first, more = (getattr(described[0], x, None) for x in ("default", "param_decls"))
    names = (first, *(more or ()))
    if flags.isdisjoint(names):
        return parameter
    declaration = copy(described[0])
    declaration.default, *declaration.param_decls = [name for name in names if name not in flags]
    return parameter.replace(annotation=Annotated[kind, declaration])


def declared_parameter(option: Option, section: str, text: str) -> inspect.Parameter:
    """Return a declared option as a parameter for Typer, in a section and with a description."""
    more: dict[str, Any] = {}
    if option.choices:
        more = help.choosing(option.choices, option.separator or None)
    if option.kind in PARSERS:
        more = {"parser": PARSERS[option.kind]}
    if option.instead:
        more = {**help.choosing(option.instead), "parser": option.read}
    declaration = typer.Option(
        option.flag,
        help=text,
        rich_help_panel=section,
        metavar=option.placeholder or None,
        show_default=False,
        **more,
    )
    kind = list[str] if option.repeated else option.kind
    annotation = Annotated[kind | None, declaration]  # type: ignore[valid-type]
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def a_path(text: str | Path) -> Path:
    """Read a path, and refuse an empty one, which Python would take for the current folder."""
    if not str(text) or "\0" in str(text):
        raise ValueError("A path is empty, or has a NUL character; give another one.")
    return Path(text)


PARSERS: Mapping[Any, Callable[[str], Any]] = {int: whole_number, float: number, Path: a_path}
"""How the values of options and arguments are read."""

"""Commands as tools of the Model Context Protocol: their schemas, and how they are called.

The tools are the commands that print JSON, with the options that they declare. A call is a process
of the command in the served folder, so that it cannot disturb the server, and can be stopped as by
a batch system. Every text among the arguments is taken for a path that must not leave the folder,
since options may contain paths; a text that is none, such as ``2.2:2.4``, then does no harm.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from gauge_mc.cli import COMMANDS, load_command
from gauge_mc.cli.command import PARSERS, Chooser
from gauge_mc.cli.document import documents, vocabulary
from gauge_mc.cli.help import description, is_argument
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.registry import nearest
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import RUNS

ITSELF = "mcp"
"""The command that serves the others."""

NOT_OFFERED = ("json", "help", "quiet")
"""Options that are set by this module, or only describe."""

SEPARATORS = re.compile(r"[,:;=\s]")
"""Characters between the parts of a value, of which each may be a path."""

TYPES = {bool: "boolean", int: "integer", float: "number"}
"""Types of values in JSON; all others are texts."""

FILE = "file"
"""Key of the file that was written in the document of a command with a scratch file."""

POLL = 0.2
"""Seconds between two looks whether a call is to be stopped."""

SCHEMA = "gauge-mc://card/schema"
"""Address of the schema of run cards."""

REFERENCE = "gauge-mc://json/"
"""Beginning of the addresses of the keys that commands print."""


@documented
@dataclass(frozen=True)
class ServedCommands:
    """The tools and documents that ``gauge-mc mcp`` offers."""

    folder: str = result_field("Folder that was served, or would be.")
    tools: list[str] = result_field("Names of the commands that are offered as tools.")
    resources: list[str] = result_field("Addresses of the documents that are offered.")


@dataclass(frozen=True)
class Tool:
    """A command as a tool."""

    name: str
    """Name of the command."""

    @cached_property
    def commands(self) -> list[Any]:
        """The command, and its subcommands if it has some."""
        command = load_command(self.name)
        if not isinstance(command, Chooser):
            return [command]
        return [command, *map(command.subcommand, command.kind.names())]

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The arguments and options that are offered, as Click has them, by name."""
        found = [one for command in self.commands for one in command.params]
        left_out = {*NOT_OFFERED, *COMMANDS[self.name].by_hand}
        first = {one.name: one for one in reversed(found)}
        return {one.name: first[one.name] for one in found if one.name not in left_out}

    def kinds(self) -> dict[str, str | list[str]]:
        """Return the types of the values in JSON, by the name of the argument or option."""
        found: dict[str, str | list[str]] = {}
        for one in (each for command in self.commands for each in command.parameters):
            found.setdefault(one.name, _kind(one))
        return found

    def offered(self, writes: bool) -> dict[str, Any]:
        """Return the arguments and options that are offered to somebody who may write or not."""
        scratch = "" if writes else COMMANDS[self.name].scratch
        return {name: one for name, one in self.parameters.items() if name != scratch}

    def entry(self, writes: bool) -> dict[str, Any]:
        """Return the entry of the tool in the list of the protocol."""
        command, offered, kinds = self.commands[0], self.offered(writes), self.kinds()
        properties = {name: _property(one, kinds[name]) for name, one in sorted(offered.items())}
        if isinstance(command, Chooser):
            properties[_first(command)]["enum"] = list(command.kind.names())
        return {
            "name": self.name,
            "description": f"{COMMANDS[self.name].help}\n\n{command.help}",
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": [name for name, one in offered.items() if one.required],
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": COMMANDS[self.name].reads and not writes},
        }

    def words(self, given: Mapping[str, Any], writes: bool) -> list[str]:
        """Return the words of the command line for arguments by name.

        Raises
        ------
        UsageError
            If there is no such argument, or a value has another type than its schema says.
        """
        offered = self.offered(writes)
        options: list[str] = []
        places: dict[str, list[str]] = {
            one.name: [] for one in offered.values() if is_argument(one)
        }
        for name, value in given.items():
            if name not in offered:
                raise UsageError(f"{self.name} has no argument '{name}'{nearest(name, offered)}")
            one = offered[name]
            if getattr(one, "is_flag", False):
                if not isinstance(value, bool):
                    raise UsageError(f"{name} is true or false, not {json.dumps(value)}.")
                options += [one.opts[0]] * value
                continue
            values = [_word(name, item) for item in (value if _several(one) else [value])]
            if name in places:
                places[name] = values
            else:
                options += [f"{one.opts[0]}={word}" for word in values]
        # The choice comes first; after "--" nothing is an option.
        chosen = [word for words in places.values() for word in words]
        return [self.name, *options, "--", *chosen] if chosen else [self.name, *options]


def _first(command: Any) -> str:
    return str(next(one.name for one in command.params if is_argument(one)))


def _several(parameter: Any) -> bool:
    return parameter.nargs == -1 or getattr(parameter, "multiple", False)


def _kind(parameter: inspect.Parameter) -> str | list[str]:
    """Return the type of a value in JSON; several if a word may stand for a number."""
    annotation, *described = get_args(parameter.annotation) or (parameter.annotation,)
    parts = {
        each for one in get_args(annotation) or (annotation,) for each in (one, *get_args(one))
    }
    (kind,) = [TYPES[one] for one in parts & TYPES.keys()] or ["string"]
    reads = getattr(described[0], "parser", None) if described else None
    words = kind != "string" and reads and reads not in PARSERS.values()
    return [kind, "string"] if words else kind


def _property(parameter: Any, kind: str | list[str]) -> dict[str, Any]:
    """Return the schema of the value of an argument or option."""
    about = {"description": description(parameter)}
    if _several(parameter):
        return {"type": "array", "items": {"type": kind}, **about}
    return {"type": kind, **about}


def _word(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"{name} cannot be {json.dumps(value)}; give a text or a number.")
    return str(value)


@dataclass(frozen=True)
class ServedFolder:
    """A folder with the tools that work in it."""

    root: Path
    """The folder, resolved."""
    writes: bool
    """Whether tools may write in it."""

    @cached_property
    def tools(self) -> dict[str, Tool]:
        """The tools by name."""
        names = (one for one in COMMANDS if one != ITSELF and (self.writes or COMMANDS[one].reads))
        return {name: Tool(name) for name in names}

    def resources(self) -> dict[str, str]:
        """Return descriptions of the documents that are offered, by their addresses."""
        found = {SCHEMA: "JSON schema of run cards"}
        return found | {
            f"{REFERENCE}{name}": f"Keys of what {name} prints as JSON" for name in self.tools
        }

    def list_tools(self, given: Mapping[str, Any], stop: threading.Event) -> dict[str, Any]:
        """Answer ``tools/list``."""
        return {"tools": [one.entry(self.writes) for one in self.tools.values()]}

    def list_resources(self, given: Mapping[str, Any], stop: threading.Event) -> dict[str, Any]:
        """Answer ``resources/list``."""
        kind = "application/json"
        listed = self.resources().items()
        return {"resources": [{"uri": uri, "name": name, "mimeType": kind} for uri, name in listed]}

    def read_resource(self, given: Mapping[str, Any], stop: threading.Event) -> dict[str, Any]:
        """Answer ``resources/read``.

        Raises
        ------
        UsageError
            If there is no such document.
        """
        uri = given.get("uri")
        if not isinstance(uri, str) or uri not in self.resources():
            raise UsageError(f"There is no resource {uri}; resources/list has all of them.")
        text = json.dumps(_document(uri), indent=1, ensure_ascii=False)
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}

    def call(self, given: Mapping[str, Any], stop: threading.Event) -> dict[str, Any]:
        """Answer ``tools/call``. A command that fails or is refused is a result with its sentence.

        Raises
        ------
        UsageError
            If there is no such tool, or it is not offered.
        """
        name, arguments = given.get("name"), given.get("arguments") or {}
        if not isinstance(name, str) or name not in self.tools:
            known = isinstance(name, str) and name in COMMANDS and name != ITSELF
            reason = "; it writes, for which gauge-mc mcp needs --write" if known else ""
            raise UsageError(f"There is no tool {name}{reason}.")
        try:
            if not isinstance(arguments, dict):
                raise UsageError("The arguments are no object.")
            words = self.tools[name].words(arguments, self.writes)
            for value in (*_texts(arguments), str(RUNS)):
                self.check(value)
            self._check_card(arguments.get("card"))
            return self._carried_out(name, words, stop)
        except GaugeError as error:
            return _failed(str(error))

    def check(self, value: str) -> None:
        """Refuse a value that is, or contains, a path that leads out of the folder.

        Raises
        ------
        UsageError
            If it does, or a link below it does.
        """
        for part in {value, *SEPARATORS.split(value)}:
            path = self.root / part
            if "\0" in part or not path.resolve().is_relative_to(self.root):
                raise UsageError(f"{part!r} is outside of the folder {self.root}.")
            for one in _links(path):
                if not one.resolve().is_relative_to(self.root):
                    raise UsageError(f"{one} is a link to what is outside of {self.root}.")

    def _check_card(self, card: object) -> None:
        """Refuse a run card with a value that leads out of the folder."""
        from gauge_mc.run.cards import read_card

        if isinstance(card, str):
            for value in _texts(read_card(self.root / card)):
                self.check(value)

    def _carried_out(self, name: str, words: list[str], stop: threading.Event) -> dict[str, Any]:
        """Carry out a command, and return its result."""
        scratch = "" if self.writes else COMMANDS[name].scratch
        with tempfile.TemporaryDirectory() as temporary:
            if scratch:
                words = [name, f"--{scratch}={temporary}/{name}.json", *words[1:]]
            command = [sys.executable, "-m", "gauge_mc", words[0], "--json", *words[1:]]
            with subprocess.Popen(
                command,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as process:
                return _result(process, stop, {FILE: None} if scratch else {})


def _result(
    process: subprocess.Popen[bytes], stop: threading.Event, instead: Mapping[str, Any]
) -> dict[str, Any]:
    """Wait for a command; SIGTERM stops it if the call is to be stopped.

    Parameters
    ----------
    process : Popen
        The process of the command.
    stop : Event
        Set if the call is to be stopped.
    instead : mapping of str to object
        Values that replace those of the document that it prints.
    """
    while True:
        try:
            out, said = process.communicate(timeout=POLL)
            break
        except subprocess.TimeoutExpired:
            if stop.is_set():
                process.terminate()
    text, complaint = out.decode(errors="replace"), said.decode(errors="replace")
    found = _object(text)
    if found is not None and instead:
        found |= instead
        text = json.dumps(found, indent=2)
    result: dict[str, Any] = _failed(_sentence(complaint)) if process.returncode else {}
    if found is not None:
        content = [*result.get("content", []), {"type": "text", "text": text}]
        result |= {"content": content, "structuredContent": found}
    elif not result:
        result["content"] = [{"type": "text", "text": text}]
    return result


def _failed(sentence: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": sentence}], "isError": True}


def _sentence(complaint: str) -> str:
    """Return the sentence with which a command has failed."""
    lines = complaint.strip().splitlines() or ["The command failed without a reason."]
    return lines[-1].removeprefix("gauge-mc: ")


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _document(uri: str) -> Any:
    """Return the content of a resource."""
    if uri == SCHEMA:
        from gauge_mc.run.cards import schema

        return schema()
    words = vocabulary(documents(uri.removeprefix(REFERENCE)))
    return {
        name: {"types": one.types, "meanings": [" ".join(m.split()) for m in one.meanings if m]}
        for name, one in words.items()
    }


def _texts(values: object) -> Iterator[str]:
    """Yield all texts in a tree of values."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping):
        for one in values.values():
            yield from _texts(one)
    elif isinstance(values, list | tuple):
        for one in values:
            yield from _texts(one)


def _links(path: Path) -> Iterator[Path]:
    """Yield the symbolic links below a folder."""
    for parent, folders, files in os.walk(path):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(parent, name)):
                yield Path(parent, name)

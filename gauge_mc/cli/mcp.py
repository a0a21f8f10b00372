"""``gauge-mc mcp``: serve the other commands to assistants, by the Model Context Protocol."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from gauge_mc.cli import options as o
from gauge_mc.cli.document import print_document, prints
from gauge_mc.errors import UsageError

INSTRUCTIONS = (
    "Lattice gauge theory with gauge-mc. Tools are its commands, whose results are JSON; the "
    "resources say what their keys mean. All paths are in the folder {}."
)
"""Instructions for clients."""


@prints("gauge_mc.cli.tools:ServedCommands")
def mcp(
    folder: Annotated[
        Path | None, o.argument("Folder to serve.", "the current one", metavar="FOLDER")
    ] = None,
    write: Annotated[
        bool, o.option("Also offer the commands that write, such as generate.", flag="--write")
    ] = False,
    json: o.Json = False,
) -> None:
    """Serve the other commands to assistants, by the Model Context Protocol.

    Requests are read from standard input, and answered on standard output; a program that uses them
    begins this command itself. Nothing outside of FOLDER is read or written, and without --write
    only commands are offered that read. With --json they are listed instead.
    """
    from gauge_mc.cli.protocol import Server
    from gauge_mc.cli.tools import ServedCommands, ServedFolder

    root = (folder or Path()).resolve()
    if not root.is_dir():
        raise UsageError(f"{folder} is no folder; name one.")
    served = ServedFolder(root, write)
    if json:
        found = ServedCommands(str(root), [*served.tools], [*served.resources()])
        print_document("mcp", found)
        return
    methods = {
        "tools/list": served.list_tools,
        "tools/call": served.call,
        "resources/list": served.list_resources,
        "resources/read": served.read_resource,
    }
    Server(methods, INSTRUCTIONS.format(root), sys.stdout).serve(sys.stdin.buffer)

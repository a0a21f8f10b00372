"""The Model Context Protocol over standard input and output: one JSON object per line.

A message is a request of JSON-RPC 2.0, or a notification, which has no ``id``. The protocol of a
server with tools and resources is a handful of methods, for which its SDK would bring 29 packages
(55 MB, among them a web server), so that it is written here, and needs nothing to be installed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, TextIO

from gauge_mc import __version__
from gauge_mc.errors import GaugeError

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Versions of the protocol, the newest first."""

PARSE_ERROR, INVALID_REQUEST, NO_METHOD = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL = -32602, -32603
"""Codes of errors in messages."""

LONGEST = 2**20
"""Number of bytes of the longest message."""

AT_ONCE = 4
"""Number of calls that are carried out at the same time."""

Handler = Callable[[Mapping[str, Any], threading.Event], Mapping[str, Any]]
"""A method: it takes the parameters, and an event that is set when the call is to be stopped."""


class Server:
    """A server of the Model Context Protocol.

    Parameters
    ----------
    methods : mapping of str to callable
        The methods besides those of the protocol itself. Their `GaugeError` is an error of the
        parameters.
    instructions : str
        Instructions for the client.
    out : text file
        Where answers are written.
    """

    def __init__(self, methods: Mapping[str, Handler], instructions: str, out: TextIO) -> None:
        self._methods = {"initialize": self._initialize, "ping": lambda *_: {}, **methods}
        self._instructions = instructions
        self._out = out
        self._lock = threading.Lock()
        self._stops: dict[Any, threading.Event] = {}

    def serve(self, source: BinaryIO) -> None:
        """Answer messages until there are no more; calls that are at work then are stopped."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                while line := source.readline(LONGEST + 1):
                    if line.strip():
                        self._take(line, pool)
            finally:
                for one in [*self._stops.values()]:
                    one.set()

    def _take(self, line: bytes, pool: ThreadPoolExecutor) -> None:
        """Begin with a message, or refuse it."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._fail(None, PARSE_ERROR, "The line is not JSON in UTF-8.")
            return
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            if not (isinstance(message, dict) and {"result", "error"} & message.keys()):
                self._fail(None, INVALID_REQUEST, "The message is no request of JSON-RPC 2.0.")
            return
        number, given = message.get("id"), message.get("params", {})
        if message["method"] == "notifications/cancelled" and isinstance(given, dict):
            stop = self._stops.get(_key(given.get("requestId")))
            if stop:
                stop.set()
        if "id" not in message:
            return
        if message.get("jsonrpc") != "2.0" or not isinstance(number, str | int):
            self._fail(None, INVALID_REQUEST, "The message is no request of JSON-RPC 2.0.")
        elif message["method"] not in self._methods:
            self._fail(number, NO_METHOD, f"There is no method {message['method']}.")
        elif not isinstance(given, dict):
            self._fail(number, INVALID_PARAMS, "The parameters are no object.")
        else:
            stop = self._stops[_key(number)] = threading.Event()
            pool.submit(self._answer, number, message["method"], given, stop)

    def _answer(
        self, number: Any, method: str, given: Mapping[str, Any], stop: threading.Event
    ) -> None:
        """Carry out a request, and write the answer."""
        try:
            result = self._methods[method](given, stop)
            self._write({"jsonrpc": "2.0", "id": number, "result": result})
        except GaugeError as error:
            self._fail(number, INVALID_PARAMS, str(error))
        except Exception as error:  # whatever it is, the client waits for an answer
            self._fail(number, INTERNAL, f"{type(error).__name__}: {error}")
        finally:
            self._stops.pop(_key(number), None)

    def _initialize(self, given: Mapping[str, Any], stop: threading.Event) -> Mapping[str, Any]:
        asked = given.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "gauge-mc", "version": __version__},
            "instructions": self._instructions,
        }

    def _fail(self, number: Any, code: int, message: str) -> None:
        error = {"code": code, "message": message}
        self._write({"jsonrpc": "2.0", "id": number, "error": error})

    def _write(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            self._out.write(json.dumps(message) + "\n")
            self._out.flush()


def _key(number: object) -> str:
    """Return the key of a request among those at work: 1 and "1" are different ones."""
    return repr(number)

"""A page that follows a run, for browsers on this machine.

The server answers four addresses below a random token, and everything else alike. No address is
ever taken for the name of a file.
"""

from __future__ import annotations

import errno
import hmac
import json
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.watch.feed import Feed, Parts
from gauge_mc.watch.live_page import SCRIPT, STYLE, live_page, parts_of, script, style
from gauge_mc.watch.snapshot import Watcher

LOCAL = "127.0.0.1"
"""Address of this machine, which other machines cannot reach."""

HOSTS = (LOCAL, "localhost")
"""Names by which browsers may call the server; another one may be that of a foreign page."""

SECONDS = 1.0
"""Time in seconds between two looks at the run."""

PATIENCE = 20.0
"""Time in seconds that a browser has for its whole request, and for taking each message."""

MOST_READERS = 64
"""Number of connections at a time that have shown the token."""

MOST_STRANGERS = 16
"""Number of connections at a time that have not shown it; a new one takes the oldest one's place.
So whoever opens them and says nothing keeps nobody out.
"""

MOST_PORTS = 65535
"""Largest number of a port."""

TOKEN = "GAUGE_MC_WATCH_TOKEN"
"""Environment variable with the secret part of addresses, by default a new random one."""

TOKEN_FORM = re.compile(r"[A-Za-z0-9_-]{32,128}")
TOKEN_WORDS = "32 to 128 letters, digits, _ and -"
"""Form of the secret part, and in words."""

EVENTS = "events"
"""Address of the events."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "; ".join(
        [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer."""


class LiveServer(ThreadingHTTPServer):
    """The server of a page, in threads that end with the program.

    Parameters
    ----------
    read : callable
        Makes the parts of the page.
    port : int
        Port; 0 for one that is free.
    token : str, optional
        Secret part of the address; by default a new random one.

    Raises
    ------
    UsageError
        If the port cannot be used.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_READERS

    def __init__(self, read: Callable[[], Parts], port: int = 0, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(32)
        self.feed = Feed(read, SECONDS)
        self.stopping = threading.Event()
        self._strangers: dict[Any, float] = {}  # until when they must have shown the token
        self._readers: set[Any] = set()
        self._counting = threading.Lock()
        try:
            super().__init__((LOCAL, port), _Answer)
        except OSError as error:
            raise _no_port(port, error) from error

    def server_bind(self) -> None:
        """Take the port, without a search for a name of this machine."""
        TCPServer.server_bind(self)
        self.server_port = self.server_address[1]

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{LOCAL}:{self.server_port}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a request in a thread of its own, which must show the token before long."""
        with self._counting:
            self._give_up(lambda _: len(self._strangers) >= MOST_STRANGERS)
            self._strangers[request] = time.monotonic() + _Answer.timeout
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Give up connections that have not shown the token in time."""
        with self._counting:
            self._give_up(lambda deadline: deadline < time.monotonic())

    def _give_up(self, refused: Callable[[float], bool]) -> None:
        """End the oldest connections without a token, as long as they are refused."""
        for request, deadline in [*self._strangers.items()]:
            if not refused(deadline):
                break
            del self._strangers[request]
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)  # its thread, which waits for it, closes it

    def admit(self, request: Any) -> bool:
        """Count a connection that has shown the token; return whether there is room for it."""
        with self._counting:
            room = request in self._strangers and len(self._readers) < MOST_READERS
            if room:
                del self._strangers[request]
                self._readers.add(request)
        return room

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, and make room for the next one."""
        with self._counting:
            self._strangers.pop(request, None)
            self._readers.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let a browser that has gone away be no error."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        """Close the port, and let all answers end."""
        self.stopping.set()
        super().server_close()


class _Answer(BaseHTTPRequestHandler):
    """The answer to a request."""

    server: LiveServer
    timeout = PATIENCE

    def do_GET(self) -> None:
        """Answer with the content; `http.server` calls this."""
        name = self._asked()
        if name is None:
            self.send_error(404)
        elif not self.server.admit(self.connection):
            return
        elif name == EVENTS:
            self._send_events()
        else:
            self._send(*self._content(name))

    def do_HEAD(self) -> None:
        """Answer without the content; `http.server` calls this."""
        self.do_GET()

    def _asked(self) -> str | None:
        """Return the part of the address below the token; None if the request is not answered."""
        empty, token, name = (*self.path.split("/", 2), "/", "/")[:3]
        known = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        hosts = self.headers.get_all("Host", [])
        local = len(hosts) == 1 and re.sub(r":\d+\Z", "", hosts[0], flags=re.A) in HOSTS
        there = name in ("", EVENTS, SCRIPT, STYLE)
        return name if known and local and there and not empty else None

    def _content(self, name: str) -> tuple[str, str]:
        """Return the type and the content of an address that is not that of the events."""
        if name == SCRIPT:
            return "text/javascript", script()
        if name == STYLE:
            return "text/css", style()
        return "text/html", live_page(self.server.feed.state().parts)

    def _send(self, kind: str, content: str, code: int = 200) -> None:
        written = content.encode("utf-8", "backslashreplace")
        self._begin(kind, code, len(written))
        if self.command != "HEAD":
            self.wfile.write(written)

    def _begin(self, kind: str, code: int = 200, size: int | None = None) -> None:
        self.send_response_only(code)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        if size is not None:
            self.send_header("Content-Length", str(size))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_events(self) -> None:
        """Send the parts that change, until the browser goes away or the server ends."""
        self._begin("text/event-stream")
        if self.command == "HEAD":
            return
        seen = 0
        while not self.server.stopping.is_set():
            state = self.server.feed.state()
            message = ":\n\n"  # a comment, which finds out whether the browser is still there
            if state.number > seen:
                parts = [*state.since(seen).items()]
                message = f"data: {json.dumps(parts, separators=(',', ':'))}\n\n"
                seen = state.number
            self.wfile.write(message.encode())
            self.server.stopping.wait(SECONDS)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request without saying why; `http.server` calls this as well."""
        self.close_connection = True
        code = 405 if code == 501 else code
        words = {404: "There is nothing here.\n"}.get(code, "This is not possible.\n")
        self._send("text/plain", words, code)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Write nothing, since addresses contain the token."""


def serve(
    watcher: Watcher,
    port: int = 0,
    *,
    token: str | None = None,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve a page that follows a run or a scan, until Ctrl-C.

    The page is for browsers on this machine that know its address, which contains a random token.
    Nothing is written, and nothing but this run can be read.

    Parameters
    ----------
    watcher : Watcher
        Source of snapshots of the run or the scan.
    port : int
        Port; 0 for one that is free.
    token : str, optional
        Secret part of the address, for one that stays the same; by default a new random one.
    announce : callable
        Is called with the address and with what there is to know about it, line by line.

    Raises
    ------
    UsageError
        If the path is not a directory, or if the port or the token cannot be used.
    GaugeError
        If a scan.toml is damaged.
    """
    if not 0 <= port <= MOST_PORTS:
        raise UsageError(f"--port is {port}; give a number from 1 to {MOST_PORTS}.")
    if token is not None and not TOKEN_FORM.fullmatch(token):
        raise UsageError(f"{TOKEN} has a bad value; give {TOKEN_WORDS}, chosen at random.")
    watcher.snapshot()
    with LiveServer(lambda: parts_of(watcher.snapshot()), port, token) as server:
        announce(server.address)
        announce(f"This page follows {watcher.path}, for browsers on this machine, until Ctrl-C.")
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            announce("The page has ended; it has not changed anything.")


def _no_port(port: int, error: OSError) -> GaugeError:
    if error.errno == errno.EADDRINUSE:
        return UsageError(
            f"Port {port} is in use by another program; choose another --port, or none for a free "
            "one."
        )
    if error.errno == errno.EACCES:
        return UsageError(f"Port {port} is for the system; choose a --port from 1024 to 65535.")
    return GaugeError(f"Port {port} cannot be used ({error.strerror}); choose another --port.")

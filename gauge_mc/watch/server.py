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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

import numpy as np

from gauge_mc import __version__
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.progress import duration
from gauge_mc.quoting import counted
from gauge_mc.reports.charts import Chart, ChartLine
from gauge_mc.reports.markup import Markup, element, table
from gauge_mc.reports.page import SCRIPTS, STYLES, asset
from gauge_mc.run.state import energy_text, link_rate
from gauge_mc.watch.snapshot import LiveSeries, LiveSnapshot, RunSnapshot, Watcher

Parts = Mapping[str, Markup]
"""Parts of a page by their names, in the order in which they are shown."""

TROUBLE = "trouble"
"""The part that says why the others cannot be made."""

SHARE = 0.05
"""Fraction of the time that reading the files of a run may take, at most."""


@dataclass(frozen=True)
class FeedState:
    """The parts of a page at some time."""

    number: int
    """Number of the state, counted from 1."""
    parts: Parts
    """The parts."""
    changed: Mapping[str, int]
    """Number of the state in which each part has changed last."""

    def since(self, number: int) -> dict[str, Markup | None]:
        """Return all parts in order, those that have changed after a state with their content."""
        return {
            name: part if self.changed[name] > number else None for name, part in self.parts.items()
        }


class Feed:
    """The parts of a page, which are made again when a reader asks for them and they are old.

    Nothing is read without a reader, and several readers share what was read.

    Parameters
    ----------
    read : callable
        Makes the parts.
        The first one has the name `TROUBLE`.
    seconds : float
        Age from which parts are made again. It grows with the time that this takes, see `SHARE`.
    """

    def __init__(self, read: Callable[[], Parts], seconds: float) -> None:
        self._read, self._seconds = read, seconds
        self._state = FeedState(0, {}, {})
        self._due = -float("inf")
        self._lock = threading.Lock()

    def state(self) -> FeedState:
        """Return the newest state."""
        with self._lock:
            begun = time.monotonic()
            if begun >= self._due:
                self._renew(self._parts())
                end = time.monotonic()
                self._due = end + max(self._seconds, (end - begun) / SHARE)
            return self._state

    def _parts(self) -> Parts:
        """Return the parts, or the old ones if a file cannot be read, with the reason."""
        try:
            return self._read()
        except (GaugeError, OSError) as error:
            words = element("p", str(error), class_="caution")
            trouble = element("section", words, data_part=TROUBLE)
            return {**self._state.parts, TROUBLE: trouble}

    def _renew(self, parts: Parts) -> None:
        old = self._state
        if [*parts.items()] == [*old.parts.items()]:
            return
        number = old.number + 1
        changed = {
            name: old.changed[name] if old.parts.get(name) == part else number
            for name, part in parts.items()
        }
        self._state = FeedState(number, parts, changed)


SCRIPT, STYLE = "page.js", "page.css"
"""Addresses of the script and of the style sheet."""

OWN = "gauge_mc.watch"
"""Package with the files of this page that reports do not have."""

AVERAGES = ("quantity", "latest", "average", "τ_int [updates]", "measurements", "averaged")
"""Headings of the table of averages."""

CAPTION = (
    "Averages without what has not thermalised, made again when there are 10 % more measurements; "
    "errors include autocorrelations"
)
"""Caption of that table."""

MEMBERS = ("run", "couplings and lattice", "state", "updates", "speed")
"""Headings of the table of the runs of a scan."""


LEAST = 0.005
"""Fraction of the time of a process below which a part of it is not shown."""

ENDED = "this page stays until the server ends"
"""Remark on a run or a scan that is complete."""


def live_page(parts: Parts) -> str:
    """Return the page with its parts as they are now; a script brings them up to date."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", "gauge-mc watch"),
        element("link", rel="icon", href="data:,"),
        element("link", rel="stylesheet", href=STYLE),
        element("script", src=SCRIPT, defer=True),
    )
    still = "Without scripts this page does not change by itself; load it again to see what is new."
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="jump"),
        element("p", element("noscript", still), id="connection", role="status"),
        element("main", *parts.values(), id="content", tabindex="-1"),
        element("footer", element("p", f"gauge-mc {__version__}")),
    )
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en") + "\n"


@cache
def script() -> str:
    """Return the scripts of the page, which nothing in a run can change."""
    return "\n".join([*map(asset, SCRIPTS), asset("assets/live.js", OWN)])


@cache
def style() -> str:
    """Return the style sheets of the page."""
    return "\n".join([*map(asset, STYLES), asset("assets/live.css", OWN)])


def parts_of(snapshot: LiveSnapshot) -> Parts:
    """Return the parts of the page of a run or a scan, by name."""
    parts = {TROUBLE: _part(TROUBLE), "state": _state(snapshot)}
    every = [*snapshot.warnings]
    if snapshot.is_scan:
        every += [f"{run.name}: {words}" for run in snapshot.runs for words in run.warnings]
    cautions = [element("p", words, class_="caution") for words in every]
    parts["warnings"] = _part("warnings", *_headed("Warnings", cautions))
    if snapshot.is_scan:
        rows = [
            (
                member.name,
                member.point,
                member.state,
                _of(member.sweep, member.sweeps),
                _speed(member.links_per_s),
            )
            for member in snapshot.members
        ]
        parts["members"] = _part("members", element("h2", "Runs"), table(MEMBERS, rows, "Progress"))
    for run in snapshot.runs:
        parts.update(_run_parts(run, snapshot.is_scan))
    lines = [element("p", str(x)) for x in reversed(snapshot.log)]
    log = element("div", *lines, class_="log", tabindex="0", role="region", aria_label="Log")
    parts["log"] = _part("log", *_headed("Log, newest first", [log] if lines else []))
    return parts


def _run_parts(run: RunSnapshot, several: bool) -> Iterator[tuple[str, Markup]]:
    """Yield the histories and the averages of a run, below its name if there are several runs."""
    if several:
        name = f"run {run.path}"
        yield name, _part(name, element("h2", run.name), element("p", run.chain, class_="summary"))
    for history in sorted(run.histories, key=lambda h: not h.main):
        name = f"history {run.path} {history.table} {history.column}"
        yield name, _part(name, history_chart(history, run).html(), class_="live-series")
    rows = [(h.name, *_numbers(h)) for h in run.histories]
    name, title = f"averages {run.path}", element("h3" if several else "h2", "Averages so far")
    yield name, _part(name, *([title, table(AVERAGES, rows, CAPTION)] if rows else []))


def history_chart(history: LiveSeries, run: RunSnapshot) -> Chart:
    """Return the chart of a quantity along a run, with its average so far and the error of it."""
    label = f"mean of {history.per_point}" if history.per_point > 1 else "value"
    lines = [ChartLine(label, history.values, look="thin")]
    words, average = f"{history.name} along {run.name}", history.average
    if average is not None:
        flat = np.ones(len(history.values))
        lines.append(ChartLine("average", average.value * flat, average.error * flat, colour=1))
        words += f", with the average {average.format()}"
        words += f" without updates up to {run.left_out}" if run.left_out else ""
    axis = f"{history.symbol} [{history.unit}]" if history.unit else history.symbol
    shaded = float(run.left_out) if history.sweeps and run.left_out >= history.sweeps[0] else None
    title = f"{history.name} ({history.table})"
    return Chart(title, "update", axis, history.sweeps, lines, f"{words}.", shaded)


def _numbers(history: LiveSeries) -> tuple[str, str, str, str, str]:
    """Return the latest value, the average, tau_int in updates, and numbers of measurements."""
    latest, count, average = f"{history.latest:.6g}", str(history.measurements), history.average
    if average is None:
        return latest, "", "", count, ""
    steps = np.diff(history.sweeps)
    even = steps.size and (steps == steps[0]).all()
    tau = average.format_tau(int(steps[0]) // history.per_point) if even else ""
    return latest, average.format(), tau, count, str(average.samples)


def _state(snapshot: LiveSnapshot) -> Markup:
    """Return the state and the progress of a run or a scan."""
    run = None if snapshot.is_scan else snapshot.runs[0]
    remaining_seconds, share = snapshot.remaining_seconds, f"{snapshot.done:.1%}"
    remark = ENDED if snapshot.over else snapshot.remark
    rows = {
        "updates": f"{_of(run.sweep, run.sweeps)}, {run.phase}" if run and run.phase else "",
        "remaining": "" if remaining_seconds is None else duration(remaining_seconds),
        "speed": _speed(snapshot.links_per_s),
        **(_progress(run) if run else {}),
    }
    shown = [(name, words) for name, words in rows.items() if words]
    facts = [element("div", element("dt", name), element("dd", words)) for name, words in shown]
    return _part(
        "state",
        element("h1", snapshot.path),
        element(
            "p",
            run.chain if run else f"scan of {counted(len(snapshot.members), 'run')}",
            class_="summary",
        ),
        element(
            "p",
            element("strong", snapshot.state, role="status"),
            f", {share} done{f'; {remark}' if remark else ''}",
        ),
        element("progress", share, max=1, value=f"{snapshot.done:.4f}", aria_label="Progress"),
        element("dl", *facts),
        data_title=f"{share} {snapshot.state}: {snapshot.path}",
    )


def _progress(run: RunSnapshot) -> dict[str, str]:
    """Return what is known of a run, in words; empty words are not shown."""
    acceptance, age, ns = run.acceptance, run.checkpoint_seconds, run.ns_per_link
    checkpoint = "" if age is None else f"after update {run.checkpoint_sweep}, {duration(age)} ago"
    total = sum(run.times.values()) or 1
    parts = sorted(((name, time / total) for name, time in run.times.items()), key=lambda x: -x[1])
    return {
        "time per link update": "" if ns is None else _time(ns),
        "of the speed of the sweeps alone": f"{run.benched:.0%}" if run.benched else "",
        acceptance.name if acceptance else "": acceptance.average.format()
        if acceptance and acceptance.average
        else "",
        "now": run.physics,
        "configurations": run.configurations,
        "checkpoint": checkpoint,
        "energy": "" if run.joules is None else energy_text(run.joules),
        "process": run.process,
        "device": run.device,
        "time for": ", ".join(f"{name} {part:.0%}" for name, part in parts if part >= LEAST),
    }


def _of(sweep: int, sweeps: int) -> str:
    return f"{sweep} of {sweeps}"


def _speed(links_per_s: float | None) -> str:
    return link_rate(links_per_s) if links_per_s else ""


def _time(ns: float) -> str:
    return f"{ns:.3g} ns" if ns < 1000 else f"{ns / 1000:.3g} µs"


def _headed(title: str, content: list[Markup]) -> list[Markup]:
    """Return content below a heading; nothing if there is no content."""
    return [element("h2", title), *content] if content else []


def _part(name: str, *content: object, **attributes: object) -> Markup:
    return element("section", *content, data_part=name, **attributes)


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
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
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
        digest = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        hosts = self.headers.get_all("Host", [])
        local = len(hosts) == 1 and re.sub(r":\d+\Z", "", hosts[0], flags=re.A) in HOSTS
        served = name in ("", EVENTS, SCRIPT, STYLE)
        return name if digest and local and served and not empty else None

    def _content(self, name: str) -> tuple[str, str]:
        """Return the type and the content of an address that is not that of the events."""
        if name == SCRIPT:
            return "text/javascript", script()
        if name == STYLE:
            return "text/css", style()
        return "text/html", live_page(self.server.feed.state().parts)

    def _send(self, kind: str, content: str, code: int = 200) -> None:
        body = content.encode("utf-8", "backslashreplace")
        self._begin(kind, code, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

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
        number = 0
        while not self.server.stopping.is_set():
            state = self.server.feed.state()
            message = ":\n\n"  # a comment, which finds out whether the browser is still there
            if state.number > number:
                parts = [*state.since(number).items()]
                message = f"data: {json.dumps(parts, separators=(',', ':'))}\n\n"
                number = state.number
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

"""The server of `watch --serve`: who is answered, and that nothing but the run is reached."""

import contextlib
import http.client
import itertools
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from gauge_mc.errors import UsageError
from gauge_mc.reports.markup import element
from gauge_mc.scans.carry_out import MemberState
from gauge_mc.watch import server as feeding
from gauge_mc.watch import server as module
from gauge_mc.watch.server import (
    HEADERS,
    MOST_READERS,
    MOST_STRANGERS,
    SHARE,
    TOKEN,
    TROUBLE,
    Feed,
    LiveServer,
    parts_of,
    serve,
)
from gauge_mc.watch.snapshot import Watcher
from tests.calls import call
from tests.patience import PATIENCE, wait_for
from tests.reports.pages import HOSTILE, write_run
from tests.reports.test_page import Reader

REFUSED = (404, b"There is nothing here.\n")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    (folder / "secret.txt").write_text("# note: SECRET\nsweep,SECRET\n1,0.5\n2,0.25\n")
    path = write_run(folder / "run", 60, device=HOSTILE)
    (path / "mine.csv").write_text(f"# observable: {HOSTILE[:40]}\nsweep,x\n1,2\n2,4\n3,3\n")
    (path / "link.csv").symlink_to(folder / "secret.txt")
    (path / "within.csv").symlink_to("mine.csv")
    message = json.dumps({"time": "now", "level": "info", "event": "end", "message": HOSTILE})
    (path / "run.log").write_text(f"{message}\n")
    return path


@pytest.fixture
def started(run, monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.05)
    monkeypatch.setattr(feeding, "SHARE", 1)
    watcher = Watcher(run)
    with LiveServer(lambda: parts_of(watcher.snapshot())) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()


def ask(server, path, method="GET", host="127.0.0.1:80", **headers):
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE)
    link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for one in [host] if isinstance(host, str) else host:
        link.putheader("Host", one)
    for name, value in headers.items():
        link.putheader(name, value)
    link.endheaders()
    found = link.getresponse()
    return found, found.read()


def refused(server, path, **options):
    found, content = ask(server, path, **options)
    return (found.status, content) == REFUSED


def raw(server, data):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=PATIENCE) as link:
        found = b""
        with contextlib.suppress(ConnectionError):  # it has been closed
            link.sendall(data)
            while piece := link.recv(65536):
                found += piece
        return found


def test_the_page_has_headers_and_no_script_of_its_own(started):
    found, content = ask(started, f"/{started.token}/")
    assert found.status == 200
    assert found.headers.get_content_type() == "text/html"
    page = Reader(content.decode())
    (script,) = [one for one in page.attributes("script") if one.get("type") != "application/json"]
    assert script["src"] == "page.js"
    assert not [one for _, attributes in page.tags for one in attributes if one == "style"]
    for name, kind in (("page.js", "text/javascript"), ("page.css", "text/css")):
        found, content = ask(started, f"/{started.token}/{name}")
        assert (found.status, found.headers.get_content_type()) == (200, kind)
        assert content


@pytest.mark.parametrize("name", ["", "events", "page.js", "nothing"])
@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_every_answer_has_the_headers(started, name, method):
    found, content = ask(started, f"/{started.token}/{name}", method)
    assert found.status == (405 if method == "POST" else 404 if name == "nothing" else 200)
    assert {key: found.headers[key] for key in HEADERS} == HEADERS
    assert "default-src 'none'" in found.headers["Content-Security-Policy"]
    assert "unsafe" not in found.headers["Content-Security-Policy"]
    assert not {"Server", "Access-Control-Allow-Origin"} & {*found.headers}
    assert content == (b"" if method == "HEAD" else b"This is not possible.\n")


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"]
)
def test_nothing_but_reading_is_possible(started, method):
    for path in (f"/{started.token}/", "/"):
        found, content = ask(started, path, method)
        assert (found.status, content) == (405, b"This is not possible.\n")


def test_who_does_not_know_the_token_learns_nothing(started):
    token = started.token
    assert len(token) >= 43  # 256 bits
    other = "A" if token[-1] != "A" else "B"
    for wrong in (
        "",
        token[:-1],
        token + "A",
        token[:-1] + other,
        token.swapcase(),
        "%00",
        "%C3%A9",
    ):
        for name in ("", "page.js", "events"):
            path = f"/{wrong}/{name}".encode().decode("latin-1").replace("Ã©", "%C3%A9")
            assert refused(started, path), path
    for path in ("/", "/page.js", f"/{token}", f"/x/{token}/", f"/?{token}", f"/{token}/?", "*"):
        assert refused(started, path), path
    with LiveServer(dict) as another:
        assert another.token != token


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80",
    "127.0.0.1:80:80", "localhost@evil.example", "[::1]", "0.0.0.0", "", [], ["localhost"] * 2,
    "localhost:x", "localhost:8\xb2"])  # fmt: skip
def test_a_page_of_another_name_gets_no_answer(started, host):
    assert refused(started, f"/{started.token}/", host=host)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:8080"])
def test_a_forwarded_port_is_answered(started, host):
    assert ask(started, f"/{started.token}/", host=host)[0].status == 200


@pytest.mark.parametrize("name", [
    "../secret.txt", "..", ".", "./", "%2e%2e/secret.txt", "..%2fsecret.txt", "%2e%2e%2fsecret.txt",
    "..\\secret.txt", "..%5csecret.txt", "%252e%252e%252fsecret.txt", "run.toml", "link.csv",
    "plaquette.csv", "lock", "/etc/passwd", "%2fetc%2fpasswd", "//etc/passwd", "page.js%00.csv",
    "%00", "page.js/", "page.js/../run.toml", "events/../run.toml", "PAGE.JS", "page.js?x",
    "page.js;x", "assets/live.js", "a" * 60000, "file:///etc/passwd", "....//secret.txt",
    "%c0%ae%c0%ae/secret.txt",
])  # fmt: skip
def test_no_file_can_be_reached(started, name):
    """Neither of the run nor from outside of it: no address is a name of a file."""
    assert refused(started, f"/{started.token}/{name}")


def test_requests_that_are_not_http_are_refused(started):
    token = started.token.encode()
    for data in (
        b"GET /" + b"a" * 70000 + b" HTTP/1.0\r\nHost: localhost\r\n\r\n",
        b"GET /" + token + b"/\0 HTTP/1.0\r\nHost: localhost\r\n\r\n",
        b"GET http://evil/" + token + b"/ HTTP/1.0\r\nHost: localhost\r\n\r\n",
        b"GET /" + token + b"/ HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /" + token + b"/ HTTP/1.0\r\n" + b"X: y\r\n" * 500 + b"Host: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
        b"GET\r\n\r\n",
    ):
        found = raw(started, data)
        assert b" 200 " not in found
        assert found.endswith((b"nothing here.\n", b"not possible.\n")), data[:60]
        assert b"data-part" not in found
    assert ask(started, f"/{started.token}/")[0].status == 200  # it still answers


def events(server, seconds=PATIENCE):
    """The connection to the events, and a function that returns the next parts."""
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=seconds)
    link.request("GET", f"/{server.token}/events", headers={"Host": "localhost"})
    answer = link.getresponse()
    assert answer.headers.get_content_type() == "text/event-stream"

    def following():
        while line := answer.readline():
            if line.startswith(b"data: "):
                return dict(json.loads(line[6:]))
        raise EOFError

    return answer, following


def test_what_comes_from_a_run_is_text(started):
    content = ask(started, f"/{started.token}/")[1].decode()
    answer, following = events(started)
    sent = following()
    answer.close()
    for words in (content, "".join(sent.values())):
        assert "<img" not in words
        page = Reader(words)
        assert page.text.replace("&#x27;", "'").count(HOSTILE) >= 2  # the device and the log
        assert HOSTILE[:40] in page.text
        assert {tag for tag, _ in page.tags} & {"img", "iframe", "object", "style", "form"} == set()
        for _, attributes in page.tags:
            assert not [one for one in attributes if one.startswith("on")]


def test_links_out_of_the_run_are_not_followed(run, tmp_path):
    found = Watcher(run).snapshot()
    shown = "".join(parts_of(found).values())
    assert "SECRET" not in shown
    assert f"{run}/link.csv is a link to another folder, so that it is not shown." in shown
    assert "(within.csv)" in shown
    entry = json.dumps({"time": "now", "level": "info", "event": "end", "message": "SECRET"})
    (tmp_path / "log").write_text(f"{entry}\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.log").symlink_to(tmp_path / "log")
    assert Watcher(tmp_path / "run").snapshot().log == ()
    (tmp_path / "run" / "run.log").unlink()
    (tmp_path / "run" / "run.log").write_text(f"{entry}\n")
    assert len(Watcher(tmp_path / "run").snapshot().log) == 1


def test_events_have_what_has_changed(started, run):
    answer, following = events(started)
    first = following()
    assert all(first.values())
    table = run / "new.csv"
    table.write_text("# observable: new\nsweep,x\n1,2\n2,4\n3,3\n")
    second = following()
    place = [*first].index(f"history {run} mine.csv x") + 1
    assert [*second] == [*[*first][:place], f"history {run} new.csv x", *[*first][place:]]
    changed = {name for name, part in second.items() if part}
    assert f"history {run} new.csv x" in changed
    assert f"history {run} plaquette.csv plaquette" not in changed
    with table.open("a") as file:
        file.write("4,7\n")
    third = following()
    chart = Reader(third[f"history {run} new.csv x"]).charts[0]
    assert (chart["x"], chart["lines"][0]["values"]) == ([1, 2, 3, 4], [2, 4, 3, 7])
    table.unlink()
    assert f"history {run} new.csv x" not in following()
    answer.close()


@contextlib.contextmanager
def silent_readers(monkeypatch, timeout):
    """A server with three readers that ask for events and take nothing."""
    monkeypatch.setattr(module, "SECONDS", 0.01)
    monkeypatch.setattr(module._Answer, "timeout", timeout)
    number = itertools.count()
    read = lambda: {TROUBLE: element("p", next(number), "x" * 2_000_000)}  # noqa: E731
    with LiveServer(read) as server, contextlib.ExitStack() as links:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        for _ in range(3):
            link = socket.create_connection(("127.0.0.1", server.server_port))
            links.enter_context(link)
            link.sendall(f"GET /{server.token}/events HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            assert link.recv(1)  # it is answered
        yield server
        server.shutdown()


@pytest.mark.slow
def test_a_reader_that_takes_nothing_stops_no_other(monkeypatch):
    with silent_readers(monkeypatch, PATIENCE) as server:
        quick = [events(server) for _ in range(4)]
        for _ in range(3):
            for _, following in quick:
                assert following()
        assert len(server._readers) == 7
        for answer, _ in quick:
            answer.close()


def test_a_reader_that_takes_nothing_is_given_up(monkeypatch):
    with silent_readers(monkeypatch, 0.5) as server:
        wait_for(lambda: not server._readers)


def page(server):
    """The beginning of the answer with the page; empty if there is none."""
    request = f"GET /{server.token}/ HTTP/1.0\r\nHost: localhost\r\n\r\n"
    return raw(server, request.encode())[:12]


def test_connections_are_limited(started):
    started._readers.update(range(MOST_READERS))
    assert page(started) == b""
    started._readers.clear()
    assert page(started) == b"HTTP/1.0 200"


@pytest.mark.slow
def test_connections_without_the_token_keep_nobody_out(started):
    """However many there are, and also while they send something from time to time."""
    with contextlib.ExitStack() as links:
        silent = []
        for _ in range(2 * MOST_READERS):
            link = socket.create_connection(("127.0.0.1", started.server_port), timeout=PATIENCE)
            silent.append(links.enter_context(link))
            with contextlib.suppress(ConnectionError):
                link.sendall(b"GET /")
        wait_for(lambda: len(started._strangers) == MOST_STRANGERS)
        assert page(started) == b"HTTP/1.0 200"
        assert not started._readers
        answer, following = events(started)
        assert following()
        assert len(started._readers) == 1
        with contextlib.suppress(ConnectionError):
            assert silent[0].recv(1) == b""  # the oldest ones were given up
        answer.close()


def test_a_request_has_a_time_in_which_it_must_be_complete(started, monkeypatch):
    """Bytes that keep coming do not extend it."""
    monkeypatch.setattr(module._Answer, "timeout", 0.5)
    with socket.create_connection(("127.0.0.1", started.server_port), timeout=PATIENCE) as link:
        link.sendall(b"GET /")

        def ended():
            try:
                link.sendall(b"a")
            except ConnectionError:
                return True
            return False

        wait_for(ended)
    wait_for(lambda: not started._strangers)


def test_the_port_is_local_and_may_be_in_use(started, run):
    assert started.server_address[0] == "127.0.0.1"
    assert started.address == f"http://127.0.0.1:{started.server_port}/{started.token}/"
    with pytest.raises(UsageError, match=f"^Port {started.server_port} is in use by another"):
        serve(Watcher(run), started.server_port)


def test_a_run_that_cannot_be_read_leaves_the_page(tmp_path):
    def read():
        if broken:
            raise UsageError("It is <gone>.")
        return {TROUBLE: element("section"), "state": element("p", "fine")}

    broken = []
    feed = Feed(read, 0)
    feed._due = 0
    first = feed.state()
    broken.append(True)
    feed._due = 0
    second = feed.state()
    found = second.since(first.number)
    assert "It is &lt;gone&gt;." in found[TROUBLE]
    assert found["state"] is None
    broken.clear()
    feed._due = 0
    assert feed.state().since(second.number) == {TROUBLE: "<section></section>", "state": None}


@pytest.mark.slow
def test_the_command_prints_the_address_and_ends_by_ctrl_c(run, tmp_path):
    arguments = [sys.executable, "-m", "gauge_mc", "watch", str(run), "--serve"]
    environment = {**os.environ, TOKEN: "x" * 32}
    with (
        subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process,
        contextlib.ExitStack() as last,
    ):
        last.callback(process.kill)
        assert select.select([process.stdout], [], [], PATIENCE)[0]  # nothing waits in a buffer
        address, about = process.stdout.readline(), process.stdout.readline()
        found = re.fullmatch(rf"http://127\.0\.0\.1:(\d+)/{'x' * 32}/\n", address)
        link = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=PATIENCE)
        link.request("GET", f"/{'x' * 32}/")
        assert link.getresponse().status == 200
        said, code = call("watch", run, "--serve", "--port", found[1])
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=PATIENCE)
    assert code == 2
    assert said.count("\n") == 1
    assert f"Port {found[1]} is in use by another program" in said
    assert about == f"This page follows {run}, for browsers on this machine, until Ctrl-C.\n"
    assert out == "The page has ended; it has not changed anything.\n"
    assert (error, process.returncode) == ("", 0)


def test_what_cannot_be_served_is_refused_in_a_sentence(run, monkeypatch):
    monkeypatch.setattr(LiveServer, "serve_forever", lambda *_, **__: pytest.fail("served"))
    for port in ("-1", "65536"):
        said, code = call("watch", run, "--serve", "--port", port)
        assert (code, said) == (2, f"gauge-mc: --port is {port}; give a number from 1 to 65535.\n")
    said, code = call("watch", run, "--port", "1234")
    assert (code, "--serve" in said) == (2, True), said
    for token in ("", "x" * 31, "x" * 40 + "/", "x" * 40 + "\n", "é" * 40):
        with pytest.raises(UsageError, match=f"^{TOKEN} has a bad value; give 32 to 128"):
            serve(Watcher(run), token=token)
    with pytest.raises(UsageError, match="is a file; name the directory"):
        serve(Watcher(run / "run.toml"))


def member(run, point, **state):
    return MemberState(run, 5.7, "4x4x4x4", {}, 1, point, None, **state)


def test_a_scan_has_its_runs_with_their_histories(run):
    one = Watcher(run).snapshot()
    members = [
        member("s/b5.7", HOSTILE, state="running", sweep=7, sweeps=60, links_per_s=1e9),
        member("s/b5.8", "beta = 5.8", state="waiting", sweeps=60),
    ]
    working = replace(
        one.runs[0],
        links_per_s=2e9,
        benched=0.5,
        times={"wait": 0.01, "measure": 2.0, "update": 6.0},
    )
    scan = replace(one, is_scan=True, members=members, runs=[working, replace(working, path="b")])
    parts = parts_of(scan)
    assert [*parts][:4] == [TROUBLE, "state", "warnings", "members"]
    page = Reader("".join(parts.values()))
    assert f"b5.7 {HOSTILE} running 7 of 60 1 Glink/s b5.8 beta = 5.8 waiting 0 of 60" in (
        page.text
    )
    assert len(page.charts) == 2 * len(one.runs[0].histories)
    alone = Reader("".join(parts_of(replace(one, runs=[working])).values())).text
    assert "time per link update 0.5 ns of the speed of the sweeps alone 50%" in alone
    assert "time for update 75%, measure 25%" in alone
    assert "wait" not in alone
    shaded = replace(working, left_out=9)
    chart = Reader("".join(parts_of(replace(one, runs=[shaded])).values())).charts[1]
    assert (chart["cut"], chart["lines"][1]["label"]) == (9, "average")


@pytest.mark.slow
def test_reading_takes_a_small_share_of_the_time():
    calls = []

    def read():
        calls.append(time.monotonic())
        time.sleep(0.05)
        return {TROUBLE: element("p", len(calls))}

    feed = Feed(read, 0.01)
    assert not calls  # nobody has asked
    wait_for(lambda: feed.state() and len(calls) == 3)
    assert min(b - a for a, b in itertools.pairwise(calls)) >= 0.05 / SHARE

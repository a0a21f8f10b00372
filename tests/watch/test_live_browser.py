"""The live page in Chromium: it follows a run, keeps what the reader has chosen, and reconnects."""

import contextlib
import threading
import time

import numpy as np
import pytest

from gauge_mc.watch import server as feed
from gauge_mc.watch import server as module
from gauge_mc.watch.server import LiveServer, parts_of
from gauge_mc.watch.snapshot import Watcher
from tests.calls import make_run
from tests.reports.pages import HOSTILE, write_run

pytest.importorskip("playwright.sync_api")

from tests.patience import wait_for
from tests.reports.test_browser import FOUND, SIZES, apart, drawn, opened, painted
from tests.tools.check_site import WIDTHS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(FOUND is None, reason="there is no Chromium")]

TABLE = "mine.csv"
TITLE = "figcaption:has-text('(mine.csv)')"


@contextlib.contextmanager
def serving(run, port=0, token=None):
    watcher = Watcher(run)
    with LiveServer(lambda: parts_of(watcher.snapshot()), port, token) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def quick(monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.05)
    monkeypatch.setattr(feed, "SHARE", 1)


@pytest.fixture
def run(tmp_path, monkeypatch):
    quick(monkeypatch)
    path = write_run(tmp_path / "run", 60, device=HOSTILE)
    rows = "".join(f"{n},{np.sin(n)}\n" for n in range(1, 41))
    (path / TABLE).write_text(f"# observable: {HOSTILE[:40]}\nsweep,x\n{rows}")
    return path


def add(run, *values, table=TABLE):
    """Go on with a run: append rows to a table, and return the number of its rows."""
    with (run / table).open("a") as file:
        begun = sum(1 for line in (run / table).read_text().splitlines() if line[0].isdigit())
        for number, value in enumerate(values, begun + 1):
            file.write(f"{number},{value}\n")
    return begun + len(values)


def count(page, number):
    """Wait until the table of averages has a row with so many measurements."""
    page.locator(f"tr:has-text('document') td:text-is('{number}')").wait_for()


def look(run, width):
    scheme = "dark" if width == WIDTHS[1] else "light"
    with (
        serving(run) as server,
        opened(server.address, width, color_scheme=scheme) as (page, wrong),
    ):
        page.locator("text=This page follows the run.").wait_for()
        count, live = drawn(page)
        filled, sizes = painted(page), page.evaluate(SIZES)
        words = page.locator("main").inner_text()
        return count, live, filled, sizes, words, page.title(), wrong


@pytest.mark.parametrize("width", WIDTHS)
def test_all_charts_are_drawn_and_words_are_words(run, width):
    count, live, filled, (needed, there), words, title, wrong = apart(look, run, width)
    assert wrong == []
    assert count == live == len(filled) == 6
    assert all(filled)
    assert needed <= there
    assert HOSTILE in words
    assert title == f"0.0% stopped: {run}"


def another(page, picture, before):
    """Wait until a chart is drawn in another way, and return its picture."""
    wait_for(lambda: page.evaluate(picture) != before)
    return page.evaluate(picture)


def follow(run):
    with serving(run) as server, opened(server.address) as (page, wrong):
        drawn(page)
        count(page, 40)
        figure = page.locator("figure.chart", has=page.locator(TITLE))
        live = figure.locator(".live")
        live.focus()
        for key in ("+", "+", "ArrowRight", "ArrowRight"):
            live.press(key)
        figure.locator("tr.u-series:has-text('average')").locator("th").click()
        live.focus()
        legend = figure.locator(".u-legend").inner_text()
        picture = "() => document.activeElement.querySelector('canvas').toDataURL()"
        before = page.evaluate(picture)
        count(page, add(run, 3.0, 4.0))
        page.wait_for_timeout(100)
        kept = page.evaluate("document.activeElement.className"), before == page.evaluate(picture)
        after = figure.locator(".u-legend").inner_text()
        hidden = figure.locator("tr.u-series.u-off").count()
        live.press("0")
        whole = another(page, picture, before)
        count(page, add(run, 9.0))
        another(page, picture, whole)
        (run / "late.csv").write_text("# observable: late\nsweep,y\n1,2\n2,4\n3,3\n")
        late = page.locator("figure.chart", has=page.locator("figcaption:has-text('(late.csv)')"))
        late.scroll_into_view_if_needed()
        late.locator("canvas").wait_for()
        (run / "late.csv").unlink()
        late.wait_for(state="detached")
        return legend, after, kept, hidden, page.title(), wrong


def test_the_page_follows_the_run_and_keeps_what_was_chosen(run):
    """Zoom, values below the cursor, hidden lines and the focus stay; new columns appear."""
    legend, after, kept, hidden, title, wrong = apart(follow, run)
    assert wrong == []
    assert legend == after
    assert "update" in legend
    assert kept == ("live", True)
    assert hidden == 1
    assert "taken" not in title


def hide(page, hidden):
    """Let the page believe that its tab is in the background, or no longer is."""
    page.evaluate(
        """hidden => {
        Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
        document.dispatchEvent(new Event("visibilitychange"));
    }""",
        hidden,
    )


def end(run):
    with serving(run) as server, opened(server.address) as (page, wrong):
        page.locator("[role=status]:text-is('stopped')").wait_for()
        count(page, 40)
        with serving(run) as second, opened_again(page, second.address) as other:
            count(other, 40)
            count(page, add(run, 1.0))
            count(other, 41)
        readers = len(server._readers)
        hide(page, True)
        wait_for(lambda: len(server._readers) == readers - 1)  # nobody looks, nothing is read
        add(run, 1.5)
        hide(page, False)
        count(page, 42)
        run.rename(run.with_name("gone"))
        page.locator("[role=status]:text-is('waiting')").wait_for()
        run.with_name("gone").rename(run)
        page.locator("[role=status]:text-is('stopped')").wait_for()
        count(page, add(run, 2.0))
        return wrong


@contextlib.contextmanager
def opened_again(page, address):
    other = page.context.new_page()
    other.goto(address)
    yield other
    other.close()


def test_several_pages_follow_and_a_run_may_go_away(run):
    assert apart(end, run) == []


def from_the_beginning(path):
    with serving(path) as server, opened(server.address) as (page, wrong):
        page.locator("main:has-text('waiting, 0.0% done; it has not begun yet')").wait_for()
        make_run(path)
        page.locator("main:has-text('complete, 100.0% done; this page stays')").wait_for()
        drawn(page)
        shown = page.locator("figcaption").all_inner_texts()
        return shown, page.locator("progress").get_attribute("value"), page.title(), wrong


def test_the_page_shows_a_run_from_before_it_begins_until_it_has_ended(tmp_path, monkeypatch):
    quick(monkeypatch)
    path = tmp_path / "new"
    shown, value, title, wrong = apart(from_the_beginning, path)
    assert wrong == []
    assert {"plaquette (plaquette.csv)", "Polyakov loop, modulus (polyakov.csv)"} <= {*shown}
    assert (value, title) == ("1.0000", f"100.0% complete: {path}")


def reconnect(run):
    with serving(run) as server:
        port, token, address = server.server_port, server.token, server.address
        with opened(address) as (page, wrong):
            count(page, 40)
            drawn(page)
            canvases = page.locator("canvas").count()
            server.shutdown()
            server.server_close()
            page.locator("#connection.caution:has-text('does not answer')").wait_for()
            count(page, 40)  # what is known stays
            add(run, 5.0)
            time.sleep(0.3)
            lost = [one for one in wrong if "ERR_" not in one]
            wrong.clear()
            with serving(run, port, token):
                count(page, 41)
                page.locator("#connection:not(.caution)").wait_for()
                wrong = [one for one in wrong if "ERR_CONNECTION_REFUSED" not in one]
                return canvases, page.locator("canvas").count(), lost, wrong


def test_the_page_reconnects(run):
    before, after, lost, wrong = apart(reconnect, run)
    assert before == after == 6
    assert (lost, wrong) == ([], [])


def without_scripts(run):
    with serving(run) as server, opened(server.address, java_script_enabled=False) as (page, wrong):
        words = page.locator("#connection").inner_text()
        return words, page.locator("figure.chart svg:visible").count(), wrong


def test_without_scripts_the_page_shows_the_run_as_it_is(run):
    words, shown, wrong = apart(without_scripts, run)
    assert "load it again" in words
    assert (shown, wrong) == (6, [])

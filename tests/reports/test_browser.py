"""A page of a report in Chromium: no error, charts, keys, values, drawings without scripts."""

import contextlib
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

import gauge_mc
from tests.reports.pages import HOSTILE, write_run

playwright = pytest.importorskip("playwright.sync_api")

from tests.patience import PATIENCE  # noqa: E402
from tests.tools.check_site import BROWSERS, OPTIONS, WIDTHS  # noqa: E402 - which imports it too

FOUND = next((path for name in BROWSERS if (path := shutil.which(name))), None)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(FOUND is None, reason="there is no Chromium")]


@contextlib.contextmanager
def opened(address, width=WIDTHS[0], **context):
    """Open a page, and note messages, errors, and requests to other addresses."""
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=FOUND, args=OPTIONS)
        page = browser.new_context(viewport={"width": width, "height": 900}, **context).new_page()
        page.set_default_timeout(1000 * PATIENCE)
        wrong = []

        def allowed(url):
            return address in url or "http" not in url

        page.on("console", lambda one: wrong.append(one.text))
        page.on("pageerror", lambda one: wrong.append(str(one)))
        page.on("request", lambda one: None if allowed(one.url) else wrong.append(one.url))
        page.goto(address, wait_until="load")
        yield page, wrong
        browser.close()


def apart(function, *arguments):
    """Call a function in a thread of its own, where no other test has an event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    runs = [write_run(folder / name, 120, seed=n, device=HOSTILE) for n, name in enumerate("ab")]
    (runs[0] / "mine.csv").write_text(f"# observable: {HOSTILE[:40]}\nsweep,x\n1,2\n2,4\n3,3\n")
    gauge_mc.report(runs, folder / "page.html", skip=5)
    return (folder / "page.html").as_uri()


def drawn(page):
    """Scroll to all charts, and return how many there are and how many have a canvas."""
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    every = page.locator("figure.chart")
    for n in range(every.count()):
        every.nth(n).scroll_into_view_if_needed()
        every.nth(n).locator("canvas").wait_for()
    return every.count(), page.locator("figure.chart.drawn canvas").count()


SIZES = "[document.documentElement.scrollWidth, innerWidth]"


def painted(page):
    return page.evaluate(
        """() => [...document.querySelectorAll("canvas")].map(one => {
            const {data} = one.getContext("2d").getImageData(0, 0, one.width, one.height);
            return data.some(value => value);
        })"""
    )


def look(address, width):
    scheme = "dark" if width == WIDTHS[1] else "light"
    with opened(address, width, color_scheme=scheme) as (page, wrong):
        count, live = drawn(page)
        filled, sizes = painted(page), page.evaluate(SIZES)
        hidden = page.locator("figure.drawn .static:visible").count()
        return count, live, filled, sizes, hidden, page.title(), wrong


@pytest.mark.parametrize("width", WIDTHS)
def test_all_charts_are_drawn(address, width):
    count, live, filled, (needed, there), hidden, title, wrong = apart(look, address, width)
    assert wrong == []
    assert count == live == len(filled) >= 15
    assert all(filled)
    assert needed <= there
    assert hidden == 0
    assert title.startswith("Report: SU(3)")


def press(address):
    with opened(address) as (page, wrong):
        first = page.locator("h3:has-text('(plaquette.csv)') + div figure").first
        first.scroll_into_view_if_needed()
        live = first.locator(".live")
        live.wait_for()
        live.focus()
        live.press("ArrowRight")
        before = first.locator(".u-legend").inner_text()
        live.press("ArrowRight")
        after = first.locator(".u-legend").inner_text()
        picture = "() => document.activeElement.querySelector('canvas').toDataURL()"
        pictures = [page.evaluate(picture)]
        for key in ("+", "+", "Shift+ArrowRight", "-", "0"):
            live.press(key)
            page.wait_for_timeout(50)
            pictures.append(page.evaluate(picture))
        page.keyboard.press("Tab")
        focus = page.evaluate("document.activeElement.className")
        return before, after, pictures, focus, wrong


def test_keys_show_values_with_errors(address):
    before, after, pictures, focus, wrong = apart(press, address)
    assert wrong == []
    assert before != after
    assert "±" in after
    assert len({*pictures}) == len(pictures) - 1  # the last one shows all again
    assert pictures[-1] == pictures[0]
    assert focus  # the focus goes on to something else


def without_scripts(address):
    with opened(address, java_script_enabled=False) as (page, wrong):
        for one in page.locator("summary").all():
            one.click()
        count = page.locator("figure.chart").count()
        return count, page.locator("figure.chart svg:visible").count(), wrong


def test_drawings_are_shown_without_scripts(address):
    count, shown, wrong = apart(without_scripts, address)
    assert (count, wrong) == (shown, [])

"""Open every page of the site in a browser without network, as a reader does, at two widths.

``python tests/tools/check_site.py SITE [--pictures FOLDER]``, where SITE is what MkDocs has built.
Every page is opened from its file. There must be no error in the console and no request to the
network; all formulas, diagrams and pictures must be drawn; nothing may be wider than the page; and
the search must find what is there. Without a browser the check says so and ends well: it needs
Chromium (Debian and Ubuntu: apt install chromium).
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from playwright.sync_api import Page, TimeoutError, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

WIDTHS = (1440, 390)
"""Widths of a window on a desk and of a telephone, in pixels."""

SERVED = "404.html"
"""The page that only a server shows."""

OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

UNDRAWN = """() => {
    const all = selector => [...document.querySelectorAll(selector)];
    const shown = (what, found) => found.map(one => `${what}: ${one}`);
    const FORMULA = ".katex-html";
    const texts = found => found.map(one => one.textContent.trim().slice(0, 60));
    return [
        ...shown("formula", texts(all(".arithmatex").filter(one => !one.querySelector(FORMULA)))),
        ...shown("diagram", texts(all("pre.mermaid"))),
        ...shown("empty diagram", texts(all("div.mermaid").filter(one => !one.offsetHeight))),
        ...shown("picture", all("img").filter(one => !one.naturalWidth).map(one => one.src)),
    ];
}"""
"""JavaScript that lists what a page has not drawn."""

WIDER = """() => {
    const width = document.documentElement.clientWidth;
    return document.documentElement.scrollWidth > width
        ? [`wider than the window: ${document.documentElement.scrollWidth} > ${width}`] : [];
}"""


def complaints(page: Page, path: Path) -> Iterator[str]:
    """Open a page, and yield what is wrong with it."""
    found: list[str] = []
    page.on("console", lambda one: found.append(one.text) if one.type == "error" else None)
    page.on("pageerror", lambda one: found.append(str(one)))
    page.on("requestfailed", lambda one: found.append(f"not loaded: {one.url}"))
    page.on("request", lambda one: found.append(one.url) if one.url.startswith("http") else None)
    page.goto(path.as_uri(), wait_until="load")
    with suppress(TimeoutError):  # the list of what is not drawn says so
        page.wait_for_function("() => !document.querySelector('pre.mermaid')")
    yield from page.evaluate(UNDRAWN)
    yield from page.evaluate(WIDER)
    yield from found


def search(page: Page, site: Path, word: str) -> Iterator[str]:
    """Search for a word, and yield what is wrong with the result."""
    page.goto((site / "index.html").as_uri(), wait_until="load")
    for _ in range(5):  # keys that are pressed before the theme listens are lost
        page.keyboard.press("/")
        page.wait_for_timeout(500)
        page.keyboard.type(word, delay=20)
        with suppress(TimeoutError):
            page.wait_for_selector(".md-search-result__item mark", state="attached")
            return
        page.reload(wait_until="load")
    yield f"the search does not find '{word}'"


def main() -> int:
    """Check a site, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--pictures", type=Path, help="folder for pictures of all pages")
    chosen = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("The site was not opened in a browser, because there is no Chromium here.")
        return 0
    site = chosen.site.resolve()
    pages = [path for path in sorted(site.rglob("*.html")) if path.name != SERVED]
    wrong = 0
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=OPTIONS)
        for width in WIDTHS:
            context = chromium.new_context(viewport={"width": width, "height": 900}, offline=True)
            for path in pages:
                page, name = context.new_page(), path.relative_to(site)
                for complaint in complaints(page, path):
                    wrong += 1
                    print(f"{name} at {width} pixels: {complaint}")
                if chosen.pictures:
                    file = chosen.pictures / f"{'_'.join(name.with_suffix('').parts)}_{width}.png"
                    page.screenshot(path=file)
                page.close()
            page = context.new_page()
            for complaint in search(page, site, "overrelaxation"):
                wrong += 1
                print(f"index.html at {width} pixels: {complaint}")
            context.close()
        chromium.close()
    print(f"{len(pages)} pages at {len(WIDTHS)} widths in {browser}: {wrong} complaints.")
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main())

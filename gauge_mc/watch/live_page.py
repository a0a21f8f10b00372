"""The page that follows a run: its frame, and the parts that change while the run goes on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from gauge_mc import __version__
from gauge_mc.numbers import counted
from gauge_mc.reports.charts import Chart, ChartLine
from gauge_mc.reports.markup import Markup, element, table
from gauge_mc.reports.page import SCRIPTS, STYLES, asset
from gauge_mc.run.display import duration, energy_text, link_rate
from gauge_mc.watch.feed import TROUBLE, Parts
from gauge_mc.watch.snapshot import LiveSeries, LiveSnapshot, RunSnapshot

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


def parts_of(found: LiveSnapshot) -> Parts:
    """Return the parts of the page of a run or a scan, by name."""
    parts = {TROUBLE: _part(TROUBLE), "state": _state(found)}
    every = [*found.warnings]
    if found.is_scan:
        every += [f"{run.name}: {words}" for run in found.runs for words in run.warnings]
    cautions = [element("p", words, class_="caution") for words in every]
    parts["warnings"] = _part("warnings", *_headed("Warnings", cautions))
    if found.is_scan:
        rows = [
            (
                one.name,
                one.point,
                one.state,
                _of(one.sweep, one.sweeps),
                _speed(one.links_per_s),
            )
            for one in found.members
        ]
        parts["members"] = _part("members", element("h2", "Runs"), table(MEMBERS, rows, "Progress"))
    for run in found.runs:
        parts.update(_run_parts(run, found.is_scan))
    lines = [element("p", str(one)) for one in reversed(found.log)]
    log = element("div", *lines, class_="log", tabindex="0", role="region", aria_label="Log")
    parts["log"] = _part("log", *_headed("Log, newest first", [log] if lines else []))
    return parts


def _run_parts(run: RunSnapshot, several: bool) -> Iterator[tuple[str, Markup]]:
    """Yield the histories and the averages of a run, below its name if there are several runs."""
    if several:
        name = f"run {run.path}"
        yield name, _part(name, element("h2", run.name), element("p", run.chain, class_="summary"))
    for one in sorted(run.histories, key=lambda one: not one.main):
        name = f"history {run.path} {one.table} {one.column}"
        chart = history_chart(one, run)
        yield name, _part(name, chart.html(), class_="live-series")
    rows = [(one.name, *_numbers(one)) for one in run.histories]
    name, title = f"averages {run.path}", element("h3" if several else "h2", "Averages so far")
    yield name, _part(name, *([title, table(AVERAGES, rows, CAPTION)] if rows else []))


def history_chart(history: LiveSeries, run: RunSnapshot) -> Chart:
    """Return the chart of a quantity along a run, with its average so far and the error of it."""
    label = f"mean of {history.per_point}" if history.per_point > 1 else "value"
    lines = [ChartLine(label, history.values, look="thin")]
    words, found = f"{history.name} along {run.name}", history.average
    if found is not None:
        same = np.ones(len(history.values))
        lines.append(ChartLine("average", found.value * same, found.error * same, colour=1))
        words += f", with the average {found.format()}"
        words += f" without updates up to {run.left_out}" if run.left_out else ""
    axis = f"{history.symbol} [{history.unit}]" if history.unit else history.symbol
    shaded = float(run.left_out) if history.sweeps and run.left_out >= history.sweeps[0] else None
    title = f"{history.name} ({history.table})"
    return Chart(title, "update", axis, history.sweeps, lines, f"{words}.", shaded)


def _numbers(history: LiveSeries) -> tuple[str, str, str, str, str]:
    """Return the latest value, the average, tau_int in updates, and numbers of measurements."""
    latest, count, found = f"{history.latest:.6g}", str(history.measurements), history.average
    if found is None:
        return latest, "", "", count, ""
    steps = np.diff(history.sweeps)
    even = steps.size and (steps == steps[0]).all()
    tau = found.format_tau(int(steps[0]) // history.per_point) if even else ""
    return latest, found.format(), tau, count, str(found.samples)


def _state(found: LiveSnapshot) -> Markup:
    """Return the state and the progress of a run or a scan."""
    run = None if found.is_scan else found.runs[0]
    left, share = found.remaining_seconds, f"{found.done:.1%}"
    remark = ENDED if found.over else found.remark
    rows = {
        "updates": f"{_of(run.sweep, run.sweeps)}, {run.phase}" if run and run.phase else "",
        "remaining": "" if left is None else duration(left),
        "speed": _speed(found.links_per_s),
        **(_progress(run) if run else {}),
    }
    return _part(
        "state",
        element("h1", found.path),
        element(
            "p",
            run.chain if run else f"scan of {counted(len(found.members), 'run')}",
            class_="summary",
        ),
        element(
            "p",
            element("strong", found.state, role="status"),
            f", {share} done{f'; {remark}' if remark else ''}",
        ),
        element("progress", share, max=1, value=f"{found.done:.4f}", aria_label="Progress"),
        element("dl", *(_fact(*row) for row in rows.items() if row[1])),
        data_title=f"{share} {found.state}: {found.path}",
    )


def _fact(name: str, value: str) -> Markup:
    return element("div", element("dt", name), element("dd", value))


def _progress(run: RunSnapshot) -> dict[str, str]:
    """Return what is known of a run, in words; empty words are not shown."""
    found, age, ns = run.acceptance, run.checkpoint_seconds, run.ns_per_link
    checkpoint = "" if age is None else f"after update {run.checkpoint_sweep}, {duration(age)} ago"
    total = sum(run.times.values()) or 1
    parts = sorted(
        ((name, one / total) for name, one in run.times.items()), key=lambda one: -one[1]
    )
    return {
        "time per link update": "" if ns is None else _time(ns),
        "of the speed of the sweeps alone": f"{run.benched:.0%}" if run.benched else "",
        found.name if found else "": found.average.format() if found and found.average else "",
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

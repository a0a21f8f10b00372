"""Charts of a page: data for the script that draws them, and a drawing without scripts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gauge_mc.reports.markup import Markup, data, element

WIDTH, HEIGHT = 720, 250
"""Size of the drawing without scripts, in its own units."""

LEFT, RIGHT, TOP, BOTTOM = 78, 12, 10, 40
"""Margins of the frame."""

DIGITS = 7
"""Significant digits of the numbers of a chart."""

COLOURS = 8
"""Number of colours that the style sheet of a page has for lines."""

PLAIN_COLOURS = (
    "#3184c4", "#d0661c", "#1d9873", "#bd5b96", "#ab7c10", "#4a9bc9", "#808080", "#8b62b8"
)  # fmt: skip
"""Colours of lines where there is no style sheet, to be seen on white and on black."""

PLAIN_LOOKS = {
    "cut": {"fill": "currentColor", "fill_opacity": 0.12},
    "frame": {"fill": "none", "stroke": "currentColor", "stroke_opacity": 0.6},
    "tick": {"stroke": "currentColor", "stroke_opacity": 0.6},
    "line": {"fill": "none", "stroke_width": 2},
    "steps": {"fill": "none", "stroke_width": 2},
    "thin": {"fill": "none", "stroke_width": 0.8, "stroke_opacity": 0.65},
    "points": {"fill": "none", "stroke_width": 6, "stroke_linecap": "round"},
    "band": {"stroke": "none", "fill_opacity": 0.25},
}
"""Attributes that take the place of the style sheet of a page, by class."""


_Looks = Callable[[str], dict[str, object]]
"""The attributes of an element of a drawing by its classes."""


def _plain(words: str) -> dict[str, object]:
    """Return the attributes of an element with these classes where there is no style sheet."""
    look, _, colour = words.partition(" c")
    painted = "fill" if look == "band" else "stroke"
    paint = {painted: PLAIN_COLOURS[int(colour)]} if colour else {}
    return {**PLAIN_LOOKS[look], **paint}


def _named(words: str) -> dict[str, object]:
    """Return the attributes of an element to which a style sheet gives its look."""
    return {"class_": words}


@dataclass(frozen=True)
class ChartLine:
    """A line of a chart, or the band between two of them."""

    label: str
    """Label in the legend."""
    values: ArrayLike
    """One value for every place of the chart; NaN where there is none."""
    error: ArrayLike | None = None
    """Errors of the values, which are drawn as a band and shown beside them."""
    colour: int = 0
    """Number of the colour."""
    look: str = "line"
    """``line``, ``thin`` for single measurements, ``range`` for one end of a range of them,
    ``steps`` for a histogram, or ``points``.
    """
    joined: bool = False
    """Whether the line goes on where there is no value."""


@dataclass(frozen=True)
class Chart:
    """A chart with one horizontal axis for all its lines."""

    title: str
    """Title of the chart."""
    x_label: str
    """Label of the horizontal axis."""
    y_label: str
    """Label of the vertical axis."""
    x: ArrayLike
    """Places on the horizontal axis, ascending."""
    lines: Sequence[ChartLine]
    """The lines."""
    description: str
    """Description for those who do not see the chart."""
    cut: float | None = None
    """Place up to which the chart is shaded."""
    zero: bool = False
    """Whether the vertical axis includes zero."""

    def html(self) -> Markup:
        """Return the chart as an element of a page."""
        x = _numbers(self.x)
        lines = [
            {
                "label": line.label,
                "values": _numbers(line.values),
                "error": None if line.error is None else _numbers(line.error),
                "colour": line.colour % COLOURS,
                "look": line.look,
                "joined": line.joined,
            }
            for line in self.lines
        ]
        content = {
            "x": x,
            "xLabel": self.x_label,
            "yLabel": self.y_label,
            "lines": lines,
            "cut": self.cut,
            "zero": self.zero,
            "title": self.title,
        }
        drawing = element("div", self._drawing(), class_="static")
        title = element("figcaption", self.title)
        return element("figure", title, drawing, data(content), class_="chart")

    def drawing(self) -> Markup:
        """Return the chart as an SVG drawing that needs no style sheet, as for a notebook."""
        return self._drawing(_plain, width="100%", font_size=13, fill="currentColor")

    def _drawing(self, look: _Looks = _named, **more: object) -> Markup:
        """Return the chart as an SVG drawing."""
        x = np.asarray(self.x, dtype=np.float64)
        values = [np.asarray(line.values, dtype=np.float64) for line in self.lines]
        errors = [
            np.zeros_like(value) if line.error is None else np.asarray(line.error, dtype=np.float64)
            for line, value in zip(self.lines, values, strict=True)
        ]
        both = [(value, np.nan_to_num(error)) for value, error in zip(values, errors, strict=True)]
        every = np.concatenate([x + sign * error for x, error in both for sign in (-1, 1)])
        across = _Axis.of(x, LEFT, WIDTH - RIGHT)
        up = _Axis.of([*every, *([0.0] if self.zero else [])], HEIGHT - BOTTOM, TOP, 0.05)
        parts: list[Markup] = []
        if self.cut is not None and x.size and self.cut >= x[0]:
            end = min(across.place(self.cut), WIDTH - RIGHT)
            size = {"width": f"{end - LEFT:.1f}", "height": HEIGHT - TOP - BOTTOM}
            parts.append(element("rect", x=LEFT, y=TOP, **look("cut"), **size))
        parts += self._frame(across, up, look)
        places = across.places(x)
        ranges = [n for n, line in enumerate(self.lines) if line.look == "range"]
        for low, high in zip(ranges[::2], ranges[1::2], strict=True):
            band = _band(places, up.places(values[low]), up.places(values[high]))
            parts.append(_path(band, look(f"band c{self.lines[low].colour % COLOURS}")))
        for curve, value, error in zip(self.lines, values, errors, strict=True):
            colour = f"c{curve.colour % COLOURS}"
            if curve.error is not None and curve.look == "points":
                ends = (places, up.places(value - error), up.places(value + error))
                whiskers = zip(*(end.tolist() for end in ends), strict=True)
                d = "".join(f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in whiskers if b == b)
                parts.append(_path(d, look(f"thin {colour}")))
            elif curve.error is not None:
                band = _band(places, up.places(value - error), up.places(value + error))
                parts.append(_path(band, look(f"band {colour}")))
            if curve.look != "range":
                finite = np.isfinite(value) if curve.joined else np.full(value.size, True)
                line = places[finite], up.places(value[finite])
                d = (
                    _dots(*line)
                    if curve.look == "points"
                    else _polyline(*line, curve.look == "steps")
                )
                parts.append(_path(d, look(f"{curve.look} {colour}")))
        names = {"x": LEFT + (WIDTH - RIGHT - LEFT) / 2, "y": HEIGHT - 4, "text_anchor": "middle"}
        parts.append(element("text", self.x_label, **names))
        turned = f"translate(12 {TOP + (HEIGHT - TOP - BOTTOM) / 2:g}) rotate(-90)"
        parts.append(element("text", self.y_label, transform=turned, text_anchor="middle"))
        attributes = {
            "viewBox": f"0 0 {WIDTH} {HEIGHT}",
            "role": "img",
            "aria_label": self.description,
        }
        return element("svg", *parts, **attributes, **more)

    @staticmethod
    def _frame(across: _Axis, up: _Axis, look: _Looks) -> list[Markup]:
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        box = {"width": right - LEFT, "height": bottom - TOP}
        parts = [element("rect", x=LEFT, y=TOP, **look("frame"), **box)]
        for at, word in across.ticks():
            parts.append(element("path", d=f"M{at:.1f} {bottom}v-5", **look("tick")))
            parts.append(element("text", word, x=f"{at:.1f}", y=bottom + 15, text_anchor="middle"))
        for at, word in up.ticks():
            parts.append(element("path", d=f"M{LEFT} {at:.1f}h5", **look("tick")))
            parts.append(element("text", word, x=LEFT - 5, y=f"{at + 4:.1f}", text_anchor="end"))
        return parts


@dataclass(frozen=True)
class _Axis:
    """An axis of a drawing."""

    low: float
    high: float
    begin: float
    end: float

    @classmethod
    def of(cls, values: Iterable[float], begin: float, end: float, margin: float = 0.0) -> _Axis:
        """Return the axis that shows all finite values between two places."""
        numbers = np.asarray([*values], dtype=np.float64)
        numbers = numbers[np.isfinite(numbers)]
        low, high = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 1.0)
        if low == high:
            low, high = low - max(abs(low), 1) / 2, high + max(abs(high), 1) / 2
        room = margin * (high - low)
        return cls(low - room, high + room, begin, end)

    def place(self, value: float) -> float:
        """Return the place of a value."""
        return float(self.places(np.array([value]))[0])

    def places(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the places of values."""
        share = (values - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the places of round numbers, and these in words."""
        rough = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * n for n in (1, 2, 5, 10) if unit * n >= rough)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        numbers = [n * step for n in range(first, last + 1)]
        return [(self.place(number), f"{number:.10g}".replace("-", "−")) for number in numbers]


def _path(d: str, look: dict[str, object]) -> Markup:
    return element("path", d=d, **look)


def _polyline(x: NDArray[np.float64], y: NDArray[np.float64], steps: bool = False) -> str:
    """Return the path through all points that are numbers."""
    words, pen = [], "M"
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if not math.isfinite(b):
            pen = "M"
            continue
        if steps and pen == "L":
            words.append(f"H{a:.1f}V{b:.1f}")
        else:
            words.append(f"{pen}{a:.1f} {b:.1f}")
        pen = "L"
    return "".join(words)


def _dots(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Return a path with a dot at every point that is a number."""
    points = zip(x.tolist(), y.tolist(), strict=True)
    return "".join(f"M{a:.1f} {b:.1f}h0" for a, b in points if math.isfinite(b))


def _band(x: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    """Return the outline of the area between two lines."""
    finite = np.isfinite(low) & np.isfinite(high)
    if not finite.any():
        return ""
    up = _polyline(x[finite], high[finite])
    down = _polyline(x[finite][::-1], low[finite][::-1])
    return f"{up}L{down[1:]}Z"


def _numbers(values: ArrayLike) -> list[float | None]:
    """Return numbers with few digits, and None for those that are not finite."""
    return [_short(x) for x in np.asarray(values, dtype=np.float64).tolist()]


def _short(value: float) -> Any:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short == int(short) and abs(short) < 1e15 else short

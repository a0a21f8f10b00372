"""Files of figures, their size and resolution."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gauge_mc.errors import UsageError
from gauge_mc.files.atomic import FileKind, replacing
from gauge_mc.libraries import load
from gauge_mc.process import in_context
from gauge_mc.quoting import printable, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INLINE_DPI = 110
"""Pixels per inch in a notebook."""


MARKS = {"pdf": b"%PDF-", "png": b"\x89PNG\r\n", "svg": b"<svg"}
"""Marks among the first `MARK_BYTES` of a figure, by the ending of its name."""

UNDATED: Mapping[str, Mapping[str, None]] = {
    "pdf": {"CreationDate": None},
    "png": {},
    "svg": {"Date": None},
}
"""Metadata by the ending with which a figure states no date, so that it has the same bytes again.
"""

MARK_BYTES = 4096

ENDINGS = tuple(MARKS)
"""File formats of figures, by the ending of the file name."""

STYLE_DPI = 200
"""Usual resolution of PNG files in pixels per inch."""

SIDES = 1.0, 60.0
"""Bounds of the sides of a figure in inches."""

DPIS = 20, 2400
"""Bounds of the resolution in pixels per inch."""

MOST_PIXELS = 20_000
"""Maximum number of pixels of a side of a figure, which otherwise could fill the memory."""

STYLE = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 11.0,
    "legend.fontsize": 9.5,
    "legend.title_fontsize": 9.5,
    "legend.handlelength": 1.6,
    "axes.linewidth": 0.8,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "xtick.minor.visible": True,
    "ytick.minor.visible": True,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "errorbar.capsize": 2.0,
    "legend.frameon": False,
    "axes.unicode_minus": True,
    "axes.formatter.useoffset": False,
    "svg.hashsalt": "gauge-mc",
}


@dataclass(frozen=True)
class FigureFormat:
    """Size and resolution of figures, as the user has chosen them.

    Raises
    ------
    UsageError
        If a side or the resolution is out of bounds, or the figure has too many pixels.
    """

    size: tuple[float, float] | None = None
    """Width and height in inches; None for the size that suits a figure."""
    dpi: int = STYLE_DPI
    """Pixels per inch of a PNG file."""

    def __post_init__(self) -> None:
        least, most = SIDES
        for side in self.size or ():
            if not least <= side <= most:
                raise UsageError(
                    f"--size has a side of {side:g} inches; choose {least:g} to {most:g}."
                )
        if not DPIS[0] <= self.dpi <= DPIS[1]:
            raise UsageError(f"--dpi is {self.dpi}; choose {DPIS[0]} to {DPIS[1]}.")
        if max(self.size or (0,)) * self.dpi > MOST_PIXELS:
            raise UsageError(
                f"--size and --dpi make more than {MOST_PIXELS} pixels; choose a smaller one."
            )

    @classmethod
    def parse(cls, size: str | None, dpi: int | None) -> FigureFormat:
        """Return the format for a size such as ``6x4`` and a resolution, both optional."""
        sides = None
        if size is not None:
            side = r"([0-9]{1,3}(?:\.[0-9]{1,6})?)"
            match = re.fullmatch(f"{side}x{side}", size)
            if not match:
                raise UsageError(
                    f"--size is '{shortened(size, 40)}'; give width and height in inches, as in "
                    "6.3x4."
                )
            sides = float(match[1]), float(match[2])
        return cls(sides, STYLE_DPI if dpi is None else dpi)


USUAL = FigureFormat()
"""The format of figures outside `drawn_as`."""

_form: ContextVar[FigureFormat] = ContextVar("form", default=USUAL)


def drawn_as(form: FigureFormat) -> AbstractContextManager[FigureFormat]:
    """Give all figures that are drawn in a context a size and a resolution."""
    return in_context(_form, form)


_kept: ContextVar[list[Figure] | None] = ContextVar("kept", default=None)
"""Figures that have been drawn within `kept_figures`."""


def kept_figures() -> AbstractContextManager[list[Figure]]:
    """Collect all figures that are drawn in a context, instead of writing them to files."""
    return in_context(_kept, [])


@contextmanager
def figure_file(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """Open an empty figure of the given size in inches, and write it to `path` on leaving.

    Within `drawn_as` its size and resolution are those given there. Within `kept_figures` it is not
    written.
    """
    figures = _kept.get()
    if figures is None:
        figure_kind(path).check(path)
    with _style():
        form = {"figsize": _form.get().size or size, "layout": "constrained"}
        figure = load("matplotlib.figure").Figure(**form)
        figure._repr_png_ = partial(_inline_bytes, figure)
        yield figure
        for text in figure.findobj(load("matplotlib.text").Text):
            text.set_text(printable(text.get_text()))
    if figures is None:
        write_figure(figure, path)
    else:
        figures.append(figure)


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure to a file; for errors see `figure_file`."""
    kind = figure_kind(path)
    kind.check(path)
    ending = _ending(path)
    with _style(), replacing(path, kind=kind) as file:
        figure.savefig(file, format=ending, metadata=UNDATED[ending], dpi=_form.get().dpi)


def figure_bytes(figure: Figure, ending: str) -> bytes:
    """Return a figure as the content of a file with one of `ENDINGS`."""
    with _style(), io.BytesIO() as file:
        figure.savefig(file, format=ending, metadata=UNDATED[ending], dpi=_form.get().dpi)
        return file.getvalue()


def _inline_bytes(figure: Figure) -> bytes:
    """Return a figure as a notebook shows it at the end of a cell, without pyplot."""
    with io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=INLINE_DPI)
        return file.getvalue()


def figure_kind(path: Path) -> FileKind:
    """Return the kind of figures with the ending of a path."""
    ending = _ending(path)
    if ending not in ENDINGS:
        raise UsageError(
            f"The plot {path} has an unknown format; let its name end in .pdf, .png or .svg."
        )
    return FileKind(f"a figure in {ending.upper()}", partial(_is_figure, ending))


def _ending(path: Path) -> str:
    return path.suffix.lower().lstrip(".")


@contextmanager
def _style() -> Iterator[None]:
    """Draw and write figures in the style of this package, whatever the user has set."""
    matplotlib = load("matplotlib")
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE}):
        yield


def _is_figure(ending: str, path: Path) -> bool:
    """Return whether a file begins like a figure of a format."""
    with suppress(OSError), path.open("rb") as file:
        return MARKS[ending] in file.read(MARK_BYTES)
    return False

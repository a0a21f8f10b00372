"""A figure of Matplotlib that notebooks show. The module needs Matplotlib."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure

INLINE_DPI = 110
"""Pixels per inch in a notebook."""


class InlineFigure(Figure):
    """A figure that a notebook shows at the end of a cell, without pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=INLINE_DPI)
        return buffer.getvalue()

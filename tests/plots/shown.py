"""What is in figures, without drawing them."""

from matplotlib.figure import Figure
from matplotlib.text import Text


def kept_figures(monkeypatch):
    """Keep the figures that would be written: what is in them can be seen before they are drawn."""
    found = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: found.append(figure))
    return found


def texts(figure):
    """All texts in a figure."""
    return [one.get_text() for one in figure.findobj(Text) if one.get_text()]

"""Labels of figures: ensembles, actions and estimates, as text and in mathematical mode."""

from __future__ import annotations

import re
from itertools import groupby

from gauge_mc import defaults
from gauge_mc.actions import Action
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.domain.lattice import Lattice

DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
"""The digits 0 to 9 as superscripts, for exponents."""

SUPERSCRIPTS, NORMAL = str.maketrans("0123456789", DIGITS), str.maketrans(DIGITS, "0123456789")
"""Translation tables from digits to superscripts, and back."""


def named_apart(action: Action) -> tuple[list[str], list[str]]:
    """Return the name of an action, unless it is the usual one, and its unusual options."""
    name = [] if action.name == defaults.ACTION else [action.name]
    return name, [one.drawn(value) for one, value in action.changed.items()]


def physics_label(group: str, lattice: Lattice, beta: float | None = None) -> str:
    """Return a short description of an ensemble, such as ``SU(3), β = 6, 16³×32``."""
    factors = []
    for extent, same in groupby(lattice.extents):
        count = len(list(same))
        factors.append(f"{extent}{str(count).translate(SUPERSCRIPTS) if count > 1 else ''}")
    coupling = [] if beta is None else [f"β = {beta:g}"]
    return ", ".join([group, *coupling, "×".join(factors)])


COMMANDS = {"β": r"\beta", "κ": r"\kappa", "μ": r"\mu", "×": r"\times", "Nₜ": "N_t"}
"""Mathematical text for symbols of labels."""


def typeset(label: str) -> str:
    """Return a label as Matplotlib text, with symbols and exponents in mathematical mode."""
    text = label.replace("$", r"\$")
    for character, command in COMMANDS.items():
        text = text.replace(character, f"${command}$")
    return re.sub(f"[{DIGITS}]+", lambda found: f"$^{{{found[0].translate(NORMAL)}}}$", text)


def minus(result: Estimate) -> str:
    """Return an estimate as mathematical text, with a minus sign that is set without spacing."""
    text = str(result).replace("-", "{-}", 1) if result.value < 0 else str(result)
    return re.sub(r"e([+-]?)0*(\d+)$", r"\\times10^{\1\2}", text)

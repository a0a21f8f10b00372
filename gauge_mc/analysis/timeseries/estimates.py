"""An average over a Markov chain with its error."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gauge_mc.analysis.timeseries.notation import with_decimals, with_error, with_exponent
from gauge_mc.errors import GaugeError
from gauge_mc.libraries import load
from gauge_mc.results import documented, result_field

MIN_TAUS = 50
"""Length of a series in units of tau_int below which tau_int, and thus the error, is uncertain."""

FEW_TAUS = 10
"""Length of a series in units of tau_int below which no error can be relied on."""

FORM = re.compile(r"((?:.?[<>^])?[0-9]*)(?:\.([0-9]{1,2})([ef]))?")
"""Format of an estimate in an f-string: alignment and width, number of decimals, and kind."""


@documented
@dataclass(frozen=True)
class Estimate:
    """An average over a Markov chain."""

    value: float = result_field("Mean, in the units of the series.")
    error: float = result_field("Standard error, in the units of the series.")
    tau_int: float = result_field(
        "Integrated autocorrelation time, in samples; 1/2 for independent samples."
    )
    tau_int_error: float = result_field("Error of the autocorrelation time, in samples.")
    samples: int = result_field("Number of samples.")

    @property
    def reliable(self) -> bool:
        """Whether the series is so long, `MIN_TAUS` times tau_int, that tau_int is known well."""
        return self.samples >= MIN_TAUS * (self.tau_int + self.tau_int_error)

    def _growth(self) -> float:
        """Return the factor by which long bins show a larger error; `compared` replaces this."""
        return 1.0

    @property
    def length_cautions(self) -> list[str]:
        """A caution about the error of a series that is too short, in one sentence, or none."""
        return caution_short(self.samples, self.tau_int + self.tau_int_error)

    @property
    def cautions(self) -> list[str]:
        """Cautions about the error: a short series, or slow modes that tau_int misses.

        They are those of commands, which know the numbers of updates too and also say if the
        beginning of the series deviates from the rest. Slow modes are looked for by longer bins, in
        what `estimate` has returned.
        """
        return [*self.length_cautions, *caution_growth(self._growth())]

    def compared(self, growth: Callable[[], float]) -> Estimate:
        """Return this estimate with a function that compares its error with that of long bins."""
        found = replace(self)
        vars(found)["_growth"] = growth
        return found

    def format(self) -> str:
        """Return the value with its error in brackets, such as ``0.65215(8)``."""
        return with_error(self.value, self.error)

    def format_tau(self, every: int = 1) -> str:
        """Return tau_int with its error, or an empty string if it is unknown.

        Parameters
        ----------
        every : int
            Updates between measurements, to return tau_int in updates.
        """
        if math.isnan(self.tau_int):
            return ""
        return with_error(every * self.tau_int, every * self.tau_int_error)

    def to_gvar(self) -> Any:
        """Return a ``gvar.GVar`` with this value and error, independent of all others.

        Raises
        ------
        GaugeError
            If gvar is not installed, or the error is unknown.
        """
        gvar = load("gvar", "The conversion needs")
        return gvar.gvar(self.value, self._known_error)

    def to_pyerrors(self, name: str) -> Any:
        """Return a ``pyerrors.Obs`` with this value and error, as ``pyerrors.cov_Obs`` makes it.

        The history of the Markov chain is not part of an estimate. `gauge_mc.export` writes it to a
        file for pyerrors.

        Parameters
        ----------
        name : str
            Name of the source of the error. Observables with different names are independent.

        Raises
        ------
        GaugeError
            If pyerrors is not installed, or the error is unknown.
        """
        pyerrors = load("pyerrors", "The conversion needs")
        observable = pyerrors.cov_Obs(self.value, self._known_error**2, name)
        observable.gamma_method()
        return observable

    @property
    def _known_error(self) -> float:
        if not math.isfinite(self.error):
            raise GaugeError(f"The error of {self} is unknown; measure more than once.")
        return self.error

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, form: str) -> str:
        found = FORM.fullmatch(form)
        if not found:
            raise ValueError(
                f"An estimate has no format '{form}'; choose a number of decimals, as in .3f or "
                ".3e, a width, as in >12, or nothing."
            )
        width, decimals, kind = found.groups()
        text = self.format()
        if kind:
            written = with_decimals if kind == "f" else with_exponent
            text = written(self.value, self.error, int(decimals))
        return format(text, width)

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        tau = self.format_tau()
        return f"<{self}, tau_int = {tau}>" if tau else f"<{self}>"


def caution_short(samples: int, tau_int: float, of: str = "") -> list[str]:
    """Return a caution about a series that is shorter than `MIN_TAUS` times tau_int, or nothing.

    Parameters
    ----------
    samples : int
        Length of the series.
    tau_int : float
        Integrated autocorrelation time in samples.
    of : str
        Symbol of the quantity.
    """
    if not samples < MIN_TAUS * tau_int:
        return []
    length = (
        f"The series is only {samples / tau_int:.0f} τ_int{f' of {of}' if of else ''} long, and "
        f"{MIN_TAUS} τ_int are needed: "
    )
    if samples < FEW_TAUS * tau_int:
        return [f"{length}no error can be relied on; make the run longer, or average several."]
    return [f"{length}errors are increased by the error of τ_int, to be on the safe side."]


def caution_growth(factor: float, of: str = "", remedy: str = "") -> list[str]:
    """Return the caution that long bins show errors larger by a factor; nothing if it is 1.

    Parameters
    ----------
    factor : float
        Error of the mean from long bins, divided by that of `estimate`.
    of : str
        Name of the quantity.
    remedy : str
        Further advice, which begins with a comma.
    """
    if factor == 1:
        return []
    return [
        f"Long bins show errors{f' of the {of}' if of else ''} that are larger by a factor of "
        f"{factor:.1f}, as if there were slow modes that τ_int misses; make the run longer, or "
        f"multiply the errors by it{remedy}."
    ]

"""Thermodynamics from the energy-momentum tensor of the gradient flow, from a scan.

Entropy density and trace anomaly from the energy-momentum tensor of the gradient flow.

With the flowed field strength G, E = G^a_mu_nu G^a_mu_nu / 4 and U_mu_nu = G^a_mu_rho G^a_nu_rho -
delta_mu_nu E, the energy-momentum tensor is the limit t -> 0 of U_mu_nu / alpha_U + delta_mu_nu (E
- <E>_0) / (4 alpha_E) (H. Suzuki, arXiv:1304.0533; M. Asakawa et al., arXiv:1312.7492), so that

    e + p = 4/3 (E_magnetic - E_electric) / alpha_U,    e - 3 p = (E_0 - E) / alpha_E,

where E_magnetic and E_electric are the parts of E of the planes without and with direction t, and
E_0 is E at T = 0. To one loop, with the coupling g of the MSbar scheme at the scale 1/sqrt(8 t),

    alpha_U = g^2 (1 + 2 b_0 s_1 g^2),    alpha_E = (1 + 2 b_0 s_2 g^2) / (2 b_0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gauge_mc.analysis.fitting import fit_linear
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError
from gauge_mc.results import documented, result_field

S_1 = 7 / 22 + np.euler_gamma / 2 - math.log(2)
S_2 = 27 / 484
"""Coefficients of one loop without quarks, for every N."""


def first_coefficient(colours: int) -> float:
    """Return b_0 = 11 N / (48 pi^2) of the beta function without quarks."""
    return 11 * colours / (48 * math.pi**2)


def running_coupling(scaled: Array, colours: int) -> Array:
    """Return g^2 of the MSbar scheme at the scale 1/sqrt(8 t), given t^2 <E> at T = 0.

    To one loop t^2 <E> = 3 (N^2 - 1) g^2 / (128 pi^2) (1 + c g^2), with c = N / (16 pi^2) (11/3
    gamma_E + 52/9 - 3 ln 3) (M. Luescher, arXiv:1006.4518, eq. 2.35).

    Parameters
    ----------
    scaled : ndarray
        t^2 <E>.
    colours : int
        Number of colours N.
    """
    c = colours / (16 * math.pi**2) * (11 / 3 * np.euler_gamma + 52 / 9 - 3 * math.log(3))
    x = 128 * math.pi**2 * scaled / (3 * (colours**2 - 1))
    return np.asarray((np.sqrt(1 + 4 * c * x) - 1) / (2 * c))


def alphas(coupling: Array, colours: int) -> tuple[Array, Array]:
    """Return alpha_U and alpha_E to one loop, given g^2."""
    b = first_coefficient(colours)
    return coupling * (1 + 2 * b * S_1 * coupling), (1 + 2 * b * S_2 * coupling) / (2 * b)


@dataclass(frozen=True)
class FlowedEnergies:
    """Electric and magnetic energy along the flow, of all configurations of one coupling."""

    t: Array
    """Flow times t/a^2, ascending, of shape (times,)."""
    electric: Array
    """a^4 E of the planes with direction t, of shape (configurations, times)."""
    magnetic: Array
    """The same of the planes in space."""
    loop: Array
    """Modulus of the Polyakov loop of the flowed links, of the same shape."""

    @property
    def total(self) -> Array:
        """a^4 E, of shape (configurations, times)."""
        return self.electric + self.magnetic

    def at(self, times: Array) -> FlowedEnergies:
        """Return the energies at some of the flow times."""
        chosen = np.isin(self.t, times)
        values = (one[:, chosen] for one in (self.electric, self.magnetic, self.loop))
        return FlowedEnergies(self.t[chosen], *values)


@documented
@dataclass(frozen=True)
class FlowState:
    """Thermodynamics at one coupling from the gradient flow, in the limit t -> 0."""

    beta: float = result_field("Coupling.", symbol="β")
    t: Sequence[float] = result_field("Flow times t/a^2 of the extrapolation.")
    entropy_at: Sequence[Estimate] = result_field("(e + p) / T^4 at these times.")
    anomaly_at: Sequence[Estimate] = result_field("(e - 3 p) / T^4 at these times.")
    coupling: Sequence[float] = result_field("g^2 of the MSbar scheme at the scale 1/sqrt(8 t).")
    entropy: Estimate = result_field("s / T^3 = (e + p) / T^4, extrapolated.", symbol="s/T³")
    anomaly: Estimate = result_field("(e - 3 p) / T^4, extrapolated.", symbol="(ε−3p)/T⁴")
    energy: Estimate = result_field("e / T^4.", symbol="ε/T⁴")
    pressure: Estimate = result_field("p / T^4.", symbol="p/T⁴")
    loop_at: Sequence[Estimate] = result_field(
        "Modulus of the Polyakov loop of the flowed links at these times at T > 0, a renormalised "
        "loop if the time is kept in physical units."
    )


def flow_state(
    beta: float,
    hot: FlowedEnergies,
    cold: FlowedEnergies,
    extent: int,
    colours: int,
    radii: tuple[float, float],
) -> FlowState:
    """Return thermodynamics at one coupling.

    Straight lines in t are fitted at the flow times at which sqrt(8 t)/a is in a range. The
    coupling, from t^2 <E> at T = 0, is taken without its error, which is small.

    Parameters
    ----------
    beta : float
        Coupling.
    hot, cold : FlowedEnergies
        Energies at T > 0 and at T = 0.
    extent : int
        Number N_t of links along t at T > 0.
    colours : int
        Number of colours N.
    radii : tuple of float
        Smallest and largest sqrt(8 t)/a.

    Raises
    ------
    GaugeError
        If there are fewer than two flow times in the range.
    """
    common, rounding = np.intersect1d(hot.t, cold.t), 1e-9
    radius = np.sqrt(8 * common)
    times = common[(radius >= radii[0] - rounding) & (radius <= radii[1] + rounding)]
    if times.size < 2:
        raise GaugeError(
            f"At β = {beta:.12g} there are {times.size} flow times with √(8t)/a from {radii[0]:g} "
            f"to {radii[1]:g} at both temperatures, and two are needed: measure the flow at more "
            "times, choose a larger N_t, or widen the range with --radius-min and --radius-max."
        )
    hot, cold = hot.at(times), cold.at(times)
    coupling = running_coupling(times**2 * cold.total.mean(axis=0), colours)
    alpha_u, alpha_e = alphas(coupling, colours)
    entropy = extent**4 * 4 / 3 * (hot.magnetic - hot.electric) / alpha_u
    warm, zero = (-(extent**4) * one.total / alpha_e for one in (hot, cold))
    design = np.stack([np.ones(times.size), times], axis=1)
    tau = max(estimate(one).tau_int for one in entropy.T)
    lines = [fit_linear(design, one, tau, False).projection[0] for one in (entropy, warm)]
    differences = [_minus(estimate(a), estimate(b)) for a, b in zip(warm.T, zero.T, strict=True)]
    both, constant = (entropy @ lines[0], warm @ lines[1]), estimate(zero @ lines[1])
    s, trace = map(estimate, both)
    return FlowState(
        beta,
        times.tolist(),
        [estimate(one) for one in entropy.T],
        differences,
        coupling.tolist(),
        s,
        _minus(trace, constant),
        _combined(both, constant, 3 / 4, 1 / 4),
        _combined(both, constant, 1 / 4, -1 / 4),
        [estimate(one) for one in hot.loop.T],
    )


def _combined(both: tuple[Array, Array], constant: Estimate, a: float, b: float) -> Estimate:
    """Return a times the first series plus b times the second one minus a constant."""
    found = estimate(a * both[0] + b * both[1])
    value = found.value - b * constant.value
    return replace(found, value=value, error=math.hypot(found.error, b * constant.error))


def _minus(first: Estimate, second: Estimate) -> Estimate:
    """Return the difference of two independent averages."""
    error = math.hypot(first.error, second.error)
    return replace(first, value=first.value - second.value, error=error)

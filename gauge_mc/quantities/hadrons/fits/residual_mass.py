"""The residual mass of domain-wall quarks, and Z_A."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.options import AVERAGE, T_MAX, T_MIN
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_number
from gauge_mc.options import Option
from gauge_mc.quantities.hadrons.analysis.residual_mass import (
    MASS_KEY,
    RESIDUAL_COLUMNS,
    ResidualMass,
    ResidualMasses,
    read_residual_table,
    residual_masses,
)
from gauge_mc.quantities.hadrons.fits.parts.hadron_fit import UNITS, ranges_of
from gauge_mc.quantities.hadrons.fits.parts.report import quality
from gauge_mc.run.thermalisation import SKIP


@dataclass(frozen=True, repr=False)
class ResidualMassResult(FitResult):
    """Residual masses of domain-wall quarks of an ensemble, and Z_A.

    Attributes
    ----------
    found : ResidualMasses
        The residual masses.
    """

    found: ResidualMasses

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {
            "observable": "residual mass of domain-wall quarks, and Z_A",
            "units": UNITS,
            **asdict(self.found),
        }

    def report(self) -> list[Any]:
        """Return a table of the residual masses."""
        found = self.found
        lines = [f"{found.configurations} configurations."]
        lines += [f"{MASS_KEY} = {found.ensemble[MASS_KEY]}."] if MASS_KEY in found.ensemble else []
        lines += [*(f"Left out: {one}" for one in found.left_out), *found.cautions]
        table = Table(
            title="Residual masses", caption="\n".join(lines), caption_justify="left"
        )  # fmt: skip
        names = ("m", "source", "m_res", "t", "χ²/⟨χ²⟩", "from sums", "Z_A", "t")
        for name in names:
            table.add_column(name, justify="right")
        for one in found.masses:
            table.add_row(f"{one.m:g}", one.source, *_plateau(one), str(one.summed), *_z_a(one))
        return [table]

    def quoted(self) -> list[QuotedNumber]:
        """Return the residual mass of the lightest quark and Z_A; that from sums if need be."""
        masses = self.found.masses
        light = [one for one in masses if one.m == min(other.m for other in masses)]
        several = len({one.m for one in masses}) > 1
        where = f" (m = {light[0].m:g})" if light and several else ""
        residual = [(one.m_res, "m_res") for one in light if one.m_res]
        residual += [(one.summed, "m_res from sums") for one in light]
        z_a = [(one.z_a, "Z_A") for one in light if one.z_a]
        return [quoted_number(name + where, one) for one, name in residual[:1] + z_a[:1]]


def _plateau(one: ResidualMass) -> tuple[str, str, str]:
    """Return the cells of the plateau of m_res(t)."""
    if one.m_res is None:
        return "", "", ""
    fit = quality(one.chi2 or 0.0, one.chi2_expected or 0.0)
    return str(one.m_res), f"{one.t_min}–{one.t_max}", fit


def _z_a(one: ResidualMass) -> tuple[str, str]:
    if one.z_a is None:
        return "", ""
    return str(one.z_a), f"{one.z_a_t_min}–{one.z_a_t_max}"


class ResidualMassFit(Fit):
    """Plateaus of m_res(t) and Z_A(t)."""

    name: ClassVar[str] = "residual-mass"
    summary: ClassVar[str] = "residual mass and Z_A of domain-wall quarks"
    columns: ClassVar[tuple[str, ...]] = RESIDUAL_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (ResidualMasses,)
    options: ClassVar[tuple[Option, ...]] = (T_MIN, T_MAX, AVERAGE, SKIP)

    def carry_out(self, table: Path, **options: Any) -> ResidualMassResult:
        """Fit the plateaus of all quarks; see `Fit.carry_out`."""
        skip = options.get(SKIP.name, 0)
        found = read_residual_table(table, skip)
        return ResidualMassResult(residual_masses(found, ranges_of(options), skip))


FITS.register(ResidualMassFit())

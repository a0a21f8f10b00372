"""The lowest eigenvalues of the overlap operator, and its index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc import observables
from gauge_mc.actions import ensemble_keys
from gauge_mc.analysis.table_series import Skips, TableSeries, joined_series, read_series
from gauge_mc.analysis.timeseries import Replicas
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.diagonal import CSW
from gauge_mc.extensions.quarks.modes.mode_files import STORED_MODES
from gauge_mc.extensions.quarks.overlap import (
    APPROXIMATION,
    DOWN,
    KERNEL_MASS,
    LOW_MODES,
    RHO,
    SIGN_ACCURACY,
    SIGN_COLUMNS,
    UP,
    Overlap,
    OverlapSpectrum,
    sign_report,
)
from gauge_mc.extensions.quarks.overlap.sign_function import ACCURACY, MODES, check_approximation
from gauge_mc.extensions.quarks.vectors.basis import BOUNDARY, angles_of, phases_of
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.files.input import may_be_made
from gauge_mc.options import Option, check_options

COLUMNS = TableColumns(
    Column(
        "index", int, "index of D(0), zero_down − zero_up; it has the sign of the flow's charge",
        symbol="index", average="index of D",
    ),
    Column("zero_up", int, "zero modes of the chirality 1"),
    Column("zero_down", int, "zero modes of the chirality −1"),
    Column(
        "lowest", float, "smallest |λ| of the eigenvalues of D(0) that are not 0",
        symbol="|λ₁|", axis=r"$|\lambda_1|$", average="lowest |λ| of D",
    ),
    Column("bound", float, "bound of the norm of the error of D(0), without rounding errors"),
)  # fmt: skip
"""Columns of a table of the spectrum, with a row for each configuration."""

SPECTRUM_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns of such a table."""

EIGENVALUES = "eigenvalues"
"""Name of the secondary table."""

EIGENVALUE_COLUMNS = TableColumns(
    Column("k", int, "number of the eigenvalue, from 1 for the smallest one", index=True),
    Column(
        "size", float,
        "|λ| of an eigenvalue of D(0) that is not 0, one of each pair of complex conjugates",
    ),
    Column(
        "projected", float,
        "|λ| / √(1 − |λ|²/4ρ²), the eigenvalue projected to the imaginary axis",
    ),
    Column("residual", float, "|A v − |λ|²/(4ρ²) v| for A = D(0)†D(0)/(4ρ²) and its mode v"),
)  # fmt: skip
"""Columns of the table of the eigenvalues that are not 0."""

RHO_KEY = "rho"
"""Key of the header with rho."""

METADATA = (*ensemble_keys(), RHO_KEY, "csw", "boundary", "accuracy")
"""Keys of the header that identify the ensemble and the operator."""


@dataclass(frozen=True)
class SpectrumTable:
    """The low spectrum of the overlap operator on an ensemble."""

    ensemble: Mapping[str, str]
    """Entries of the table's header about the ensemble and the operator."""
    lattice: Lattice
    """Extents of the lattice."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending in a chain, of shape (configurations,)."""
    replicas: Replicas
    """Division of the configurations into Markov chains."""
    index: Integers
    """The index on every configuration, of shape (configurations,)."""
    projected: Array
    """The lowest eigenvalues that are not 0, projected to the imaginary axis, of shape
    (configurations, eigenvalues)."""
    bound: float
    """Largest bound of the error of D(0)."""


def eigenvalue_table(path: Path) -> Path:
    """Return the file of the secondary table, given that of the main one."""
    return path.with_name(f"{path.stem}_{EIGENVALUES}{path.suffix}")


def read_spectra(tables: Sequence[Path], skips: Skips = 0) -> SpectrumTable:
    """Read the spectra of Markov chains of one ensemble."""
    spectra = read_series(tables, COLUMNS, "spectra of the overlap operator", skips)
    chains = zip(tables, spectra.replicas.split(spectra.sweeps), strict=True)
    projected = joined_series([_eigenvalues(*chain) for chain in chains]).values["projected"]
    index, bound = spectra.values["index"][:, 0].astype(np.int64), spectra.values["bound"].max()
    configurations = spectra.lattice, spectra.sweeps, spectra.replicas, index, projected
    return SpectrumTable(spectra.stated(METADATA), *configurations, float(bound))


def _eigenvalues(path: Path, sweeps: Integers) -> TableSeries:
    """Return the eigenvalues of some configurations."""
    beside = eigenvalue_table(path)
    if not beside.is_file():
        raise GaugeError(f"There is no table {beside} beside {path}; measure the spectrum again.")
    title = "eigenvalues of the overlap operator"
    series = read_series(
        beside,
        EIGENVALUE_COLUMNS,
        title,
        fewest=1,
        rows=lambda table: np.isin(table[SWEEP], sweeps),
    )
    if not np.array_equal(series.sweeps, sweeps):
        raise GaugeError(
            f"{beside} does not have eigenvalues of every configuration; measure the spectrum "
            "again."
        )
    return series


NUMBER = 4
"""Default of the number of eigenvalues that are not 0."""

MOST_EIGENVALUES = 200
"""Largest number of them, to catch typing errors."""

WARM_UP_ACCURACY = 0.1
"""Accuracy of the measurement with which a run compiles the kernels."""

EIGENVALUES_OPTION = Option(
    EIGENVALUES,
    int,
    "Number of eigenvalues that are not 0, one of each pair.",
    usual=NUMBER,
    least=1,
    most=MOST_EIGENVALUES,
)

EIGENVALUE_TABLE = observables.SecondaryTable(
    EIGENVALUES,
    "a row for each of the lowest eigenvalues that are not 0",
    EIGENVALUE_COLUMNS,
    lambda spectrum: spectrum.eigenvalues,
)
"""The table of the eigenvalues that are not 0."""

OPERATOR_TABLE = observables.SecondaryTable(
    "operator", "a row for every configuration", SIGN_COLUMNS, lambda spectrum: 1
)
"""The table of the accuracy of the sign function."""


@observables.OBSERVABLES.register
@dataclass(frozen=True)
class OverlapSpectrumObservable(observables.Observable):
    """The index and the lowest eigenvalues of the overlap operator, with one record per field.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    rho: float = RHO
    """rho, between 0 and 2."""
    csw: float = 0.0
    """Coefficient of the clover term of the kernel operator."""
    angles: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)
    """Boundary conditions psi(x + L) = exp(i pi angle) psi(x) along x, y, z and t."""
    accuracy: float = ACCURACY
    """Largest bound of the error of the sign function."""
    eigenvalues: int = NUMBER
    """Number of eigenvalues that are not 0; 0 to compute none, nor the index."""
    modes: int = MODES
    """Largest number of low modes of the kernel operator."""
    approximation: str | None = None
    """Name of the approximation of the sign; None for the one of the smallest cost."""
    stored_modes: str = ""
    """Folder in which modes are kept; if it is empty, they are not."""

    name: ClassVar[str] = "overlap-spectrum"
    summary: ClassVar[str] = "index and lowest eigenvalues of the overlap operator"
    columns: ClassVar[TableColumns] = COLUMNS
    secondary_tables: ClassVar[tuple[observables.SecondaryTable, ...]] = (
        EIGENVALUE_TABLE,
        OPERATOR_TABLE,
    )
    normalisation: ClassVar[str] = (
        "D(0) = rho (1 + gamma_5 sgn H), H = gamma_5 (D_w - rho), hep-lat/9707022; lambda: its "
        "eigenvalues; index: zero modes of the chirality -1 less those of 1"
    )
    units: ClassVar[str] = "lattice units"
    benched: ClassVar[bool] = False
    bench_options: ClassVar[Mapping[str, object]] = {
        EIGENVALUES: 1, "accuracy": 0.01, "modes": 0,
    }  # fmt: skip
    options: ClassVar[tuple[Option, ...]] = (
        KERNEL_MASS,
        CSW,
        BOUNDARY,
        SIGN_ACCURACY,
        EIGENVALUES_OPTION,
        LOW_MODES,
        APPROXIMATION,
        STORED_MODES,
    )

    def __post_init__(self) -> None:
        KERNEL_MASS.checked(self.rho)
        if self.approximation is not None:
            check_approximation(self.approximation)

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> OverlapSpectrumObservable:
        """Return the observable with the given options; see `Observable.for_lattice`."""
        values = check_options(cls.options, options, cls.name)
        if BOUNDARY.name in values:
            values["angles"] = angles_of(values.pop(BOUNDARY.name))
        return cls(**values)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table; see `Observable.header`."""
        clover = {CSW.name: f"{self.csw:g}"} if self.csw else {}
        approximation = {APPROXIMATION.name: self.approximation} if self.approximation else {}
        return {
            **super().header,
            RHO_KEY: f"{self.rho:.10g}",
            **clover,
            "boundary": f"{','.join(f'{x:g}' for x in self.angles)} (angles in units of pi)",
            SIGN_ACCURACY.name: f"{self.accuracy:g}",
            EIGENVALUES: f"{self.eigenvalues}",
            LOW_MODES.name: f"at most {self.modes}",
            **approximation,
        }

    @property
    def warm_up(self) -> OverlapSpectrumObservable:
        """A rough operator, whose spectrum is not computed; see `Observable.warm_up`.

        On the links with which a run may begin many modes are equal, which takes searches long.
        """
        return replace(self, accuracy=WARM_UP_ACCURACY, eigenvalues=0, modes=0, stored_modes="")

    def measurer(self, like: Field) -> observables.Measurer:
        """Return a function that measures fields of the same kind."""
        if self.stored_modes and not may_be_made(Path(self.stored_modes)):
            raise UsageError(
                f"{STORED_MODES.flag}: no files can be written in a folder {self.stored_modes}; "
                "choose another one."
            )

        def measure(field: Field) -> list[observables.Record]:
            kernel = field, self.rho, self.csw, phases_of(self.angles)
            sign = self.accuracy, self.modes, self.approximation, self.stored_modes or None
            overlap = Overlap(*kernel, *sign)
            spectrum = overlap.spectrum(self.eigenvalues) if self.eigenvalues else None
            rows = _rows(spectrum, self.rho) if spectrum else []
            secondary = {EIGENVALUES: rows, OPERATOR_TABLE.name: [sign_report(overlap)]}
            return observables.RecordsOfTables([_record(overlap, spectrum)], secondary)

        return measure


def _record(overlap: Overlap, spectrum: OverlapSpectrum | None) -> observables.Record:
    if not spectrum:
        return (0, 0, 0, 0.0, overlap.error_bound)
    up, down = (int((spectrum.chiralities == x).sum()) for x in (UP, DOWN))
    return (spectrum.index, up, down, float(spectrum.values[up + down]), overlap.error_bound)


def _rows(spectrum: OverlapSpectrum, rho: float) -> list[observables.Record]:
    paired = spectrum.chiralities == 0
    sizes = spectrum.values[paired]
    projected = sizes / np.sqrt(1 - np.minimum(sizes / (2 * rho), 1 - 1e-12) ** 2)
    columns = sizes.tolist(), projected.tolist(), spectrum.residuals[paired].tolist()
    return [(k, *x) for k, x in enumerate(zip(*columns, strict=True), 1)]

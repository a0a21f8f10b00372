"""Overlap quarks: Neuberger's operator, its propagators and its lowest eigenvalues.

D(0) = rho (1 + gamma_5 sgn H) with H = gamma_5 (D_w - rho), and D(m) = (1 - m / (2 rho)) D(0) + m
(H. Neuberger, Phys. Lett. B417 (1998) 141, hep-lat/9707022). D(0) is normal, and fulfils the
relation of Ginsparg and Wilson, gamma_5 D + D gamma_5 = D gamma_5 D / rho. On vectors of the
chirality c it has D(0)^dagger D(0) = 4 rho^2 A with A = (1 + c P_c sgn H P_c) / 2, which needs one
sign function, and D(m)^dagger D(m) = (4 rho^2 - m^2) A + m^2, so that masses are shifts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks import hopping
from gauge_mc.extensions.quarks.diagonal import CSW
from gauge_mc.extensions.quarks.hopping import norms_of
from gauge_mc.extensions.quarks.modes import (
    LowModeRequest,
    LowModes,
    all_low_modes,
    low_modes,
    mode_files,
    modes_up_to,
    random_vector,
)
from gauge_mc.extensions.quarks.modes.chirality import CombineChiralities, HermitianOperator
from gauge_mc.extensions.quarks.operators import OPERATORS, Wilson
from gauge_mc.extensions.quarks.overlap import sign_function
from gauge_mc.extensions.quarks.overlap.sign_function import (
    ACCURACY,
    MODES,
    KernelModes,
    SignFunction,
    kernel_modes,
)
from gauge_mc.extensions.quarks.rational_functions import LEAST_MINMAX_ERROR as LEAST_ERROR
from gauge_mc.extensions.quarks.solvers import ITERATIONS, SolverParameters
from gauge_mc.extensions.quarks.solvers.overlap import (
    TOGETHER,
    FamilySolution,
    MassFamily,
    OverlapSolution,
    solve_all,
)
from gauge_mc.extensions.quarks.spectroscopy.contractions import Propagator
from gauge_mc.extensions.quarks.vectors import Complex, SpinorField, in_turn, in_units, transport
from gauge_mc.extensions.quarks.vectors.algebra import Combine
from gauge_mc.extensions.quarks.vectors.transport import ANTIPERIODIC, Phases
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import Column, TableColumns
from gauge_mc.files.table import Value
from gauge_mc.options import Option, check_declared
from gauge_mc.signatures import checks_types


def kept_kernel_modes(
    operator: HermitianOperator, number: int, path: mode_files.ModePath | None
) -> KernelModes:
    """Return low modes of Q; see `kernel_modes`."""
    field = operator.prepared.operator.field
    stored = path.read(field) if path else None
    if path and stored:
        if modes := _kernel_modes(operator, stored):
            return modes
        path.replace(field, f"{path.path(field)[0]}: the vectors {mode_files.WRONG}")
    modes = kernel_modes(operator, number)
    if path:
        arrays = {name: getattr(modes, name).tolist() for name in ("values", "residuals", "found")}
        names = ("edge", "norm", "gap", "ritz", mode_files.APPLICATIONS)
        numbers = {name: [getattr(modes, name)] for name in names}
        path.write(field, arrays | numbers, modes.vectors)
    return modes


def _kernel_modes(operator: HermitianOperator, stored: mode_files.KeptModes) -> KernelModes | None:
    """Return modes of a file, or None if they are not those of the operator."""
    numbers = stored.numbers
    edge, norm, gap, ritz = (numbers[name][0] for name in ("edge", "norm", "gap", "ritz"))
    residuals = stored.residuals(operator, mode_files.ROUNDING * norm)
    if residuals is None:
        return None
    values, sizes = np.array(numbers["values"]), np.array(numbers["found"])
    products = int(numbers.get(mode_files.APPLICATIONS, [0])[0])
    return KernelModes(values, residuals, stored.vectors, edge, norm, sizes, gap, ritz, products)


RHO = 1.4
"""Default of rho."""

KERNEL_MASS = Option(
    "rho",
    float,
    "ρ of the kernel H = γ₅ (D_w - ρ), between 0 and 2.",
    usual=RHO,
    least=0,
    most=2,
    inside=True,
)

NORMALISED = 0.5
"""The hopping parameter for which a propagator is not multiplied by 2 kappa in correlators."""

TENTH = 0.1
"""Error of an eigenvalue of A that its search may leave, as a part of the error of the sign."""

DEFLATED = 1e-9
"""Residual of low modes of A whose parts of solutions are not iterated for."""

MOST_DEFLATED = 100
"""Largest number of them, to catch typing errors."""

ZERO = 10.0
"""An eigenvalue of A is 0 if it is at most this times what errors of the sign allow."""

SearchForModes = Callable[[hopping.LinearOperator, SpinorField, LowModeRequest], LowModes]
"""A search for low modes, such as `all_low_modes`."""

BOTH = (hopping.EVEN, hopping.ODD)
UP, DOWN = 1, -1
"""The chiralities, eigenvalues of gamma_5."""


class ChiralSquare(hopping.InexactOperator):
    """A = (1 + c P_c sgn H P_c) / 2 on vectors of the chirality c, D(0)^dagger D(0) / (4 rho^2).

    Parameters
    ----------
    sign : SignFunction
        The sign of H.
    chirality : int
        The chirality c, 1 or -1; vectors must have it.
    """

    parities = BOTH

    def __init__(self, sign: SignFunction, chirality: int) -> None:
        self._sign, self._chirality = sign, chirality

    def allow(self, error: float) -> None:
        """Allow an error, half of that of the sign; see `InexactOperator.allow`."""
        self._sign.allow(2 * error)

    def apply(
        self, target: SpinorField, source: SpinorField, dagger: bool = False
    ) -> hopping.Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        sign, join = self._sign.apply(target, source), CombineChiralities(target, source)
        # c P_c / 2 = (c + gamma_5) / 4
        return in_turn(sign, partial(join, self._chirality / 4, 1 / 4, 1 / 2, 0))


class MasslessOperator(hopping.LinearOperator):
    """D(0) / rho = 1 + gamma_5 sgn H.

    Parameters
    ----------
    sign : SignFunction
        The sign of H.
    """

    parities = BOTH

    def __init__(self, sign: SignFunction) -> None:
        self._sign = sign

    def apply(
        self, target: SpinorField, source: SpinorField, dagger: bool = False
    ) -> hopping.Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        join = CombineChiralities(target, source)
        if not dagger:
            return in_turn(self._sign.apply(target, source), partial(join, 0, 1, 1, 0))
        turned = source.like()
        turn, sign = CombineChiralities(turned, source), self._sign.apply(target, turned)
        return in_turn(partial(turn, 0, 0, 0, 1), sign, partial(join, 1, 0, 1, 0))


@dataclass(frozen=True)
class OverlapSpectrum:
    """The lowest eigenvalues of D(0), and its index."""

    values: Array
    """Sizes |lambda| of eigenvalues, ascending, of shape (number,): zeros, as many as there are
    modes that are 0 within the error, and then one for every pair of complex conjugates."""
    chiralities: Integers
    """The chirality of a mode that is 0; 0 for pairs, of shape (number,)."""
    index: int
    """The number of modes of the chirality -1 that are 0, less that of the chirality 1, which has
    the sign of the topological charge of the flow."""
    residuals: Array
    """The norms of A v - |lambda|^2 / (4 rho^2) v, of shape (number,)."""
    applications: int
    """Number of sign functions."""


class Overlap:
    """Neuberger's operator D(0) = rho (1 + gamma_5 sgn H) with H = gamma_5 (D_w - rho).

    The links must not change as long as it is used. Low modes of H are computed at once.

    Parameters
    ----------
    field : Field
        The links, whose halos must be up to date; all is computed in double precision.
    rho : float
        rho, between 0 and 2.
    csw : float
        Coefficient of the clover term of D_w.
    boundary : complex or sequence of complex
        See `DiracOperator`.
    accuracy : float
        Largest bound of the error of the sign function; the error of D(0) is at most rho times it.
    modes : int
        Largest number of low modes of H that are projected; see `kernel_modes`.
    approximation : str, optional
        ``polynomial``, ``zolotarev`` or ``double-pass``; by default the fastest one.
    folder : path, optional
        Folder of modes of H and of D(0): those that it has are read, and the others are written
        there.

    Raises
    ------
    UsageError
        If a value is invalid, or the accuracy is out of reach.
    GaugeError
        If the search for low modes fails, or the folder cannot be written.
    """

    @checks_types
    def __init__(
        self,
        field: Field,
        rho: float = RHO,
        csw: float = 0.0,
        boundary: transport.Phases = transport.ANTIPERIODIC,
        accuracy: float = ACCURACY,
        modes: int = MODES,
        approximation: str | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        check_declared((KERNEL_MASS,), {KERNEL_MASS.name: rho}, "Overlap")
        self.field = transport.in_precision(field, "double")
        self.rho, self.accuracy = float(rho), accuracy
        self.boundary = transport.Boundary.of(boundary)
        self.wilson = Wilson(self.field, 1 / (8 - 2 * rho), csw, 0.0, boundary)
        self.kernel = HermitianOperator(self.wilson.prepared())
        self._folder = Path(folder) if folder else None
        self._metadata = {
            "kappa": repr(self.wilson.kappa),
            "csw": repr(float(csw)),
            "boundary": repr(self.boundary.phases),
            "low modes of H": str(modes),
        }
        self.kernel_modes = kept_kernel_modes(self.kernel, modes, self._path("kernel"))
        self.sign = SignFunction(self.kernel, self.kernel_modes, accuracy, approximation)
        self.massless = MasslessOperator(self.sign)
        self._low: dict[tuple[int, int], dict[int, LowModes]] = {}
        self.squares = {c: ChiralSquare(self.sign, c) for c in (UP, DOWN)}

    @property
    def unit(self) -> float:
        """The eigenvalues of H, divided by those of gamma_5 M, of which `kernel_modes` are."""
        return 1 / (2 * self.wilson.kappa)

    @property
    def error_bound(self) -> float:
        """A bound of the norm of the error of D(0), without rounding errors."""
        return self.rho * self.sign.error_bound

    def _path(self, modes: str, **more: object) -> mode_files.ModePath | None:
        """Return the path of modes in the folder; None without a folder."""
        if not self._folder:
            return None
        labels = {name: str(value) for name, value in more.items()}
        return mode_files.ModePath(self._folder, {"modes": modes, **self._metadata, **labels})

    def apply(
        self, array: NDArray[np.complexfloating[Any, Any]], mass: float = 0.0, dagger: bool = False
    ) -> Complex:
        """Return D(m) psi, or D(m)^dagger psi.

        Parameters
        ----------
        array : ndarray, shape (T, Z, Y, X, 4, N) or (count, T, Z, Y, X, 4, N)
            ``psi[t, z, y, x, spin, colour]``, or several of them.
        mass : float
            The mass m.
        dagger : bool
            Whether to apply the adjoint.

        Returns
        -------
        ndarray, complex128
            An array of the same shape.

        Raises
        ------
        GaugeError
            If the array has the wrong shape.
        """
        source = SpinorField.from_numpy(self.field, array)
        target = source.like()
        self.product(target, source, mass, dagger)
        return target.to_numpy().reshape(np.shape(array))

    def product(
        self, target: SpinorField, source: SpinorField, mass: float, dagger: bool = False
    ) -> None:
        """Compute D(m) times vectors, or the adjoint."""
        self.massless.apply(target, source, dagger)()
        Combine(target, source)(self.rho - mass / 2, mass)

    def ginsparg_wilson(self, seed: int = 1) -> tuple[float, float]:
        """Return how well relations hold that are exact for the exact sign function.

        They are computed for a random vector.

        Returns
        -------
        sign : float
            The norm of (sgn^2 - 1) v, divided by that of v.
        relation : float
            The norm of (gamma_5 D + D gamma_5 - D gamma_5 D / rho) v, divided by rho and the norm
            of v.
        """
        v = random_vector(SpinorField.empty(self.field), seed)
        s, square, right, image = (v.like() for _ in range(4))
        self.sign.apply(s, v)()
        self.sign.apply(square, s)()
        Combine(square, v)(1, -1)
        self.massless.apply(image, v)()  # D v
        CombineChiralities(right, image)(0, 0, 0, 1)  # gamma_5 D v
        turned, product = v.like(), v.like()
        CombineChiralities(turned, v)(0, 0, 0, 1)
        Combine(turned, right)(1, -1)  # D gamma_5 (1 - D) v
        self.massless.apply(product, turned)()
        Combine(product, right)(1, 1)
        norm = float(norms_of(v)[0])
        return float(norms_of(square)[0]) / norm, float(norms_of(product)[0]) / norm

    def spectrum(self, number: int = 4, seed: int = 1) -> OverlapSpectrum:
        """Return the lowest eigenvalues of D(0) and the index.

        Modes are looked for among vectors of each chirality. An eigenvalue that is not 0 belongs to
        a pair of them, with the same size in both; one that is 0, within the error of the sign
        function, belongs to one. Pairs are taken from the chirality without zero modes; in the
        other one, modes are looked for until one is not 0.

        Parameters
        ----------
        number : int
            Number of eigenvalues that are not 0, one of each pair.
        seed : int
            Seed of the first vectors.

        Raises
        ------
        UsageError
            If the number is invalid.
        GaugeError
            If the search fails.
        """
        if number < 1:
            raise UsageError(f"The number of eigenvalues is {number}; give at least 1.")
        up = self._modes_beyond_zero(UP, number, 1, seed)
        zeros = {UP: self._zeros(up)}
        down = self._modes_beyond_zero(DOWN, 1, number if zeros[UP] else 1, seed)
        zeros[DOWN] = self._zeros(down)
        modes = {UP: up, DOWN: down}
        chirality = DOWN if zeros[UP] else UP  # zeros of the other one have no partner
        pairs = slice(zeros[chirality], zeros[chirality] + number)
        unpaired = [(c, n) for c in (UP, DOWN) for n in range(zeros[c])]
        squares = [*(0.0 for _ in unpaired), *modes[chirality].values[pairs].tolist()]
        errors = [float(modes[c].residuals[n]) for c, n in unpaired]
        return OverlapSpectrum(
            2 * self.rho * np.sqrt(np.array(squares)),
            np.array([*(c for c, _ in unpaired), *([0] * number)], np.int64),
            zeros[DOWN] - zeros[UP],
            np.array([*errors, *modes[chirality].residuals[pairs].tolist()]),
            sum(x.applications for x in modes.values()),
        )

    def _zeros(self, modes: LowModes) -> int:
        return int((modes.values <= self._zero).sum())

    def _modes_beyond_zero(self, chirality: int, first: int, beyond: int, seed: int) -> LowModes:
        """Return modes of a chirality, of which at least so many are not 0.

        At first `first` modes are looked for, and more if too many of them are 0.
        """
        number, applications = max(first, beyond), 0
        if number == 1:
            search = partial(modes_up_to, above=self._zero)
            return self._kept_modes(chirality, 0, seed, search)
        while True:
            modes = self._kept_modes(chirality, number, seed, all_low_modes)
            applications += modes.applications
            count = beyond + self._zeros(modes)
            if count <= number:
                return replace(modes, applications=applications)
            number = count

    @property
    def _zero(self) -> float:
        """The largest eigenvalue of A that counts as 0."""
        return ZERO * max(self.sign.error_bound, 1e-14) / 2

    def _kept_modes(
        self, chirality: int, number: int, seed: int, search: SearchForModes, tolerance: float = 0.0
    ) -> LowModes:
        """Return modes of a chirality, which are read if there are some in the folder.

        The number 0 stands for all that are 0 and one more. Without a tolerance of their residuals,
        eigenvalues are as accurate as the sign function.
        """
        square, approximation = self.squares[chirality], self.sign.approximation
        path = self._path(
            "massless",
            accuracy=repr(self.accuracy),
            approximation=f"{approximation.name} {approximation.size}",
            chirality=chirality,
            number=number or "1 beyond 0",
            seed=seed,
            **({"tolerance": repr(tolerance)} if tolerance else {}),
        )

        def search_now() -> LowModes:
            start = random_vector(SpinorField.empty(self.field), seed)
            CombineChiralities(start, start)(0.5, chirality / 2, 0, 0)
            error = max(1e-13, self.sign.error_bound)
            limits = number or 1, 1.0, tolerance or error, seed, chirality
            request = LowModeRequest(*limits, True, 0 if tolerance else error * TENTH)
            return search(square, start, request)

        return mode_files.kept_low_modes(square, self.field, path, search_now)

    def solve_all(
        self,
        source: SpinorField,
        masses: Sequence[float],
        tolerance: float = defaults.TOLERANCE,
        iterations: int = ITERATIONS,
        relaxed: bool = True,
        deflated: int = 0,
        together: int = TOGETHER,
        progress: Callable[[str], None] = lambda line: None,
    ) -> OverlapSolution:
        """Return the solutions of D(m) x = b for several masses at once.

        Vectors are solved for by their chiral parts, some of them at once, by conjugate gradients
        for all masses together.

        Parameters
        ----------
        source : SpinorField
            The vectors b on all sites, in double precision.
        masses : sequence of float
            The masses m, from 0 to below 2 rho; 0 has no solution if D(0) has modes that are 0.
        tolerance : float
            Largest norm of the true residual of a vector, divided by that of b.
        iterations : int
            Largest number of iterations for a chiral part of b.
        relaxed : bool
            Whether the sign function may have larger errors as residuals fall, which takes less
            time; see `gauge_mc.extensions.quarks.solvers.multishift`. The true residual is that of
            the best one.
        deflated : int
            Number of low modes of D(0)^dagger D(0) of each chirality whose parts of solutions are
            not iterated for; see `low_modes`.
        together : int
            Largest number of vectors that are solved for at once, which takes less time for each
            of them and as much more memory.
        progress : callable
            Called with a line about every such solution.

        Raises
        ------
        UsageError
            If a mass is below 0, or not below 2 rho.
        ConvergenceError
            If there are too many iterations, or the tolerance cannot be reached.
        """
        checked = checked_masses(masses, self.rho)
        request = SolverParameters(tolerance, iterations)
        low = self.low_modes(deflated) if deflated else None
        return solve_all(self, source, checked, request, relaxed, low, together, progress)

    def low_modes(self, number: int, seed: int = 1) -> dict[int, LowModes]:
        """Return low modes of A = D(0)^dagger D(0) / (4 rho^2) by chirality, 1 and -1.

        They are kept for further calls, and in the folder if there is one. Of an eigenvalue that
        occurs several times, there may be fewer modes.

        Parameters
        ----------
        number : int
            Number of modes of each chirality.
        seed : int
            Seed of the first vectors.

        Raises
        ------
        UsageError
            If the number is invalid, or the lattice has too few modes.
        GaugeError
            If the search fails.
        """
        if not 1 <= number <= MOST_DEFLATED:
            raise UsageError(
                f"The number of low modes of D is {number}; give one from 1 to {MOST_DEFLATED}."
            )
        if (number, seed) not in self._low:
            self._low[number, seed] = {
                c: self._kept_modes(c, number, seed, low_modes, DEFLATED) for c in (UP, DOWN)
            }
        return self._low[number, seed]

    def solve(
        self,
        source: NDArray[np.complexfloating[Any, Any]],
        mass: float,
        tolerance: float = defaults.TOLERANCE,
        iterations: int = ITERATIONS,
    ) -> Complex:
        """Return the solution x of D(m) x = source.

        Parameters
        ----------
        source : ndarray, shape (T, Z, Y, X, 4, N) or (count, T, Z, Y, X, 4, N)
            ``b[t, z, y, x, spin, colour]``, or several of them.
        mass : float
            The mass m, from 0 to below 2 rho.
        tolerance, iterations
            See `solve_all`.

        Returns
        -------
        ndarray, complex128
            An array of the same shape.

        Raises
        ------
        UsageError
            If a value is invalid.
        GaugeError
            If the tolerance cannot be reached, or the array has the wrong shape.
        """
        vectors, unit = in_units(self.field, source)
        (solution,) = self.solve_all(vectors, (mass,), tolerance, iterations).solutions
        return (solution.to_numpy() * unit).reshape(np.shape(source))

    def propagators(
        self,
        source: SpinorField,
        masses: Sequence[float],
        tolerance: float = defaults.TOLERANCE,
        place: tuple[int, int, int, int] = (0, 0, 0, 0),
        deflated: int = 0,
    ) -> list[Propagator]:
        """Return quark propagators without the contact term, for several masses.

        They are (1 - D(0) / (2 rho)) D(m)^-1 = (2 rho D(m)^-1 - 1) / (2 rho - m), whose chiral
        parts anticommute with gamma_5 at m = 0 as those of the continuum; mesons and baryons take
        them as they are.

        Parameters
        ----------
        source : SpinorField
            The 4 N vectors of a source on all sites, in double precision.
        masses, tolerance, deflated
            See `solve_all`.
        place : tuple of int
            x, y, z and t of the source.
        """
        solution = self.solve_all(source, masses, tolerance, deflated=deflated)
        return list(self.subtracted(solution, source, masses, place))

    def subtracted(
        self,
        solution: OverlapSolution,
        source: SpinorField,
        masses: Sequence[float],
        place: tuple[int, int, int, int] = (0, 0, 0, 0),
    ) -> tuple[Propagator, ...]:
        """Return propagators without the contact term, in the memory of the solutions.

        Parameters
        ----------
        solution : OverlapSolution
            Solutions for the masses.
        source, masses, place
            See `propagators`.
        """
        for mass, x in zip(masses, solution.solutions, strict=True):
            scale = 2 * self.rho - mass
            Combine(x, source)(2 * self.rho / scale, -1 / scale)
        return tuple(Propagator(x, NORMALISED, self.boundary, place) for x in solution.solutions)


def checked_masses(masses: Sequence[float], rho: float) -> tuple[float, ...]:
    """Return masses of overlap quarks."""
    numbers = tuple(float(mass) for mass in masses)
    if not numbers or not all(0 <= x < 2 * rho for x in numbers):
        text = ", ".join(f"{x:g}" for x in numbers) or "missing"
        raise UsageError(
            f"The masses are {text}; give numbers from 0 to below 2 rho, which is {2 * rho:g}."
        )
    return numbers


SIGN_COLUMNS = TableColumns(
    Column("modes", int, "number of low modes of H that are treated exactly"),
    Column("lowest", float, "smallest |eigenvalue| of H that was found; 0 if none was looked for"),
    Column("edge", float, "number below the |eigenvalues| of all other modes"),
    Column("norm", float, "number above all |eigenvalues|"),
    Column("gap", float, "|eigenvalue| of the first mode left, divided by that of the last one"),
    Column("approximation", str, "approximation of the sign of the other modes"),
    Column("size", int, "its degree, or its number of poles"),
    Column("bound", float, "bound of the norm of the error of the sign function"),
    Column("squared", float, "norm of (sgn² - 1) v for a random vector v, divided by that of v"),
    Column("relation", float, "residual of the Ginsparg-Wilson relation, in the same way"),
    Column("applications", int, "number of applications of H in the search for low modes"),
)
"""A row for a field of links. Eigenvalues are those of H = gamma_5 (D_w - rho)."""


def sign_report(overlap: Overlap) -> tuple[Value, ...]:
    """Return the values of `SIGN_COLUMNS`."""
    modes, sign, unit = overlap.kernel_modes, overlap.sign, overlap.unit
    return (
        modes.number,
        float(modes.found[0]) * unit if modes.found.size else 0.0,
        modes.edge * unit,
        modes.norm * unit,
        modes.gap,
        sign.approximation.name,
        sign.approximation.size,
        sign.error_bound,
        *overlap.ginsparg_wilson(),
        modes.applications,
    )


SIGN_ACCURACY = Option(
    "accuracy",
    float,
    "Largest bound of the error of the sign function.",
    usual=sign_function.ACCURACY,
    least=2 * LEAST_ERROR,
    most=0.5,
)

LOW_MODES = Option(
    "modes",
    int,
    "Largest number of low modes of H that are treated exactly.",
    usual=sign_function.MODES,
    least=0,
    most=sign_function.MOST_MODES,
)

APPROXIMATION = Option(
    "approximation",
    str,
    "Approximation of the sign function: "
    + ", ".join(f"{name} for a {x.summary}" for name, x in sign_function.APPROXIMATIONS.items())
    + ".",
    default="the one of the smallest cost",
    choices=tuple(sign_function.APPROXIMATIONS),
)


DEFLATED_MODES = Option(
    "deflated",
    int,
    "Number of low modes of D of each chirality whose parts of solutions are not iterated for.",
    default="none",
    least=0,
    most=MOST_DEFLATED,
)


@OPERATORS.register
class OverlapQuarks(MassFamily):
    """D(m) = (1 - m / (2 rho)) D(0) + m with D(0) = rho (1 + gamma_5 sgn H).

    H = gamma_5 (D_w - rho) is the kernel. Propagators are without the contact term, S = (1 - D(0) /
    (2 rho)) D(m)^-1, which is 1 / (D_c + m) with an operator D_c = D(0) / (1 - D(0) / (2 rho)) that
    anticommutes with gamma_5 (H. Neuberger, Phys. Lett. B417 (1998) 141, hep-lat/9707022).

    Parameters
    ----------
    field : Field
        The links, which must not change, and whose halos must be up to date.
    masses : float or sequence of float
        The mass m, or masses, from 0 to below 2 rho.
    rho : float
        rho, between 0 and 2.
    csw : float
        Coefficient of the clover term of D_w.
    accuracy : float
        Largest bound of the error of the sign function.
    modes : int
        Largest number of low modes of H that are treated exactly.
    approximation : str, optional
        How the sign is approximated; by default in the cheapest way.
    deflated : int
        Number of low modes of D of each chirality whose parts of solutions are not iterated for.
    boundary : complex or sequence of complex
        See `DiracOperator`.

    Raises
    ------
    UsageError
        If a value is invalid, or the accuracy is out of reach.
    GaugeError
        If the search for low modes fails.
    """

    name = "overlap"
    propagator: ClassVar[str] = "S = (1 - D(0) / (2 rho)) D(m)^-1"
    parameters: ClassVar[tuple[Option, ...]] = (
        KERNEL_MASS,
        CSW,
        SIGN_ACCURACY,
        LOW_MODES,
        APPROXIMATION,
        DEFLATED_MODES,
    )
    warm_up: ClassVar[Mapping[str, object]] = {"accuracy": 0.1, "modes": 0, "deflated": 0}
    solver = defaults.WALL_SOLVER
    together = TOGETHER
    columns = SIGN_COLUMNS

    def __init__(
        self,
        field: Field,
        masses: float | Sequence[float],
        rho: float = RHO,
        csw: float = 0.0,
        accuracy: float = sign_function.ACCURACY,
        modes: int = sign_function.MODES,
        approximation: str | None = None,
        deflated: int = 0,
        boundary: Phases = ANTIPERIODIC,
    ) -> None:
        self.check_parameters(rho, csw, accuracy, modes, approximation, deflated)
        several = (masses,) if isinstance(masses, int | float) else tuple(masses)
        self.masses = checked_masses(several, rho)
        self.overlap = Overlap(field, rho, csw, boundary, accuracy, modes, approximation)
        self.field, self.boundary = field, self.overlap.boundary
        self._deflated = deflated

    @classmethod
    def check_parameters(
        cls,
        rho: float = RHO,
        csw: float = 0.0,
        accuracy: float = sign_function.ACCURACY,
        modes: int = sign_function.MODES,
        approximation: str | None = None,
        deflated: int = 0,
        **parameters: Any,
    ) -> None:
        """Refuse parameters that do not fit, before there are links."""
        super().check_parameters(
            rho=rho, csw=csw, accuracy=accuracy, modes=modes, deflated=deflated
        )
        if approximation is not None:
            sign_function.check_approximation(approximation)

    @classmethod
    def check_masses(cls, masses: Sequence[float], rho: float = RHO, **parameters: Any) -> None:
        """Refuse masses that are not below 2 rho; see `QuarkOperator.check_masses`."""
        checked_masses(masses, rho)

    @classmethod
    def hopping_parameter(cls, rho: float = RHO, **parameters: Any) -> float:
        """Return kappa = 1 / (8 - 2 rho), that of D_w - rho."""
        return 1 / (8 - 2 * rho)

    def record(self) -> tuple[Value, ...]:
        """Return the row of the sign function; see `MassFamily.record`."""
        return sign_report(self.overlap)

    def propagators(
        self,
        source: SpinorField,
        request: SolverParameters,
        place: tuple[int, int, int, int] = (0, 0, 0, 0),
        together: int | None = None,
        progress: Callable[[str], None] = lambda line: None,
    ) -> FamilySolution:
        """Return the propagators of all masses; see `MassFamily.propagators`."""
        limits = request.tolerance, request.iterations, True, self._deflated
        together = together or self.together
        solution = self.overlap.solve_all(source, self.masses, *limits, together, progress)
        return FamilySolution(
            self.overlap.subtracted(solution, source, self.masses, place),
            solution.iterations,
            solution.updates,
            solution.iterated.max(axis=1),
            solution.residuals.max(axis=1),
        )

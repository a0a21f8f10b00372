"""Neuberger's overlap operator, for quarks of several masses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from gauge_mc import defaults
from gauge_mc.extensions.quarks.diagonal import CSW
from gauge_mc.extensions.quarks.operators import OPERATORS
from gauge_mc.extensions.quarks.overlap import quarks, sign_function
from gauge_mc.extensions.quarks.rational_functions import LEAST_MINMAX_ERROR as LEAST_ERROR
from gauge_mc.extensions.quarks.solvers import SolverParameters
from gauge_mc.extensions.quarks.solvers.overlap import TOGETHER, FamilySolution, MassFamily
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField
from gauge_mc.extensions.quarks.vectors.transport import ANTIPERIODIC, Phases
from gauge_mc.fields.field import Field
from gauge_mc.files.table import Value
from gauge_mc.options import Option

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
    most=quarks.MOST_DEFLATED,
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
        quarks.KERNEL_MASS,
        CSW,
        SIGN_ACCURACY,
        LOW_MODES,
        APPROXIMATION,
        DEFLATED_MODES,
    )
    warm_up: ClassVar[Mapping[str, object]] = {"accuracy": 0.1, "modes": 0, "deflated": 0}
    solver = defaults.WALL_SOLVER
    together = TOGETHER
    columns = quarks.SIGN_COLUMNS

    def __init__(
        self,
        field: Field,
        masses: float | Sequence[float],
        rho: float = quarks.RHO,
        csw: float = 0.0,
        accuracy: float = sign_function.ACCURACY,
        modes: int = sign_function.MODES,
        approximation: str | None = None,
        deflated: int = 0,
        boundary: Phases = ANTIPERIODIC,
    ) -> None:
        self.check_parameters(rho, csw, accuracy, modes, approximation, deflated)
        several = (masses,) if isinstance(masses, int | float) else tuple(masses)
        self.masses = quarks.checked_masses(several, rho)
        self.overlap = quarks.Overlap(field, rho, csw, boundary, accuracy, modes, approximation)
        self.field, self.boundary = field, self.overlap.boundary
        self._deflated = deflated

    @classmethod
    def check_parameters(
        cls,
        rho: float = quarks.RHO,
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
    def check_masses(
        cls, masses: Sequence[float], rho: float = quarks.RHO, **parameters: Any
    ) -> None:
        """Refuse masses that are not below 2 rho; see `QuarkOperator.check_masses`."""
        quarks.checked_masses(masses, rho)

    @classmethod
    def hopping_parameter(cls, rho: float = quarks.RHO, **parameters: Any) -> float:
        """Return kappa = 1 / (8 - 2 rho), that of D_w - rho."""
        return 1 / (8 - 2 * rho)

    def record(self) -> tuple[Value, ...]:
        """Return the row of the sign function; see `MassFamily.record`."""
        return quarks.sign_report(self.overlap)

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

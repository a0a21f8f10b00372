"""Dynamical quarks of hybrid Monte Carlo: what a user asks for, and the terms of the action."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gauge_mc import defaults
from gauge_mc.errors import NoMemoryError, UsageError
from gauge_mc.extensions.quarks.diagonal import LARGEST, MU, TERMS
from gauge_mc.extensions.quarks.domain_walls import TwistedDoublet
from gauge_mc.extensions.quarks.dynamical import normal_systems
from gauge_mc.extensions.quarks.dynamical.monomials import (
    ACCURACY,
    Determinant,
    Ratio,
    Rational,
    RationalRatio,
    TwoFlavours,
)
from gauge_mc.extensions.quarks.dynamical.normal_systems import QuarkSystem
from gauge_mc.extensions.quarks.operators import (
    CRITICAL_KAPPA,
    OPERATORS,
    QUARK_MASS,
    DiracOperator,
    Wilson,
    check_kappa,
    dirac_operators,
    hopping_operators,
    hopping_parameters,
    kind_with,
    operator_with,
    parameters_by_owner,
)
from gauge_mc.extensions.quarks.rational_functions import LEAST_ERROR
from gauge_mc.extensions.quarks.solvers import ITERATIONS, LEAST_TOLERANCE, REDUCTION, SOLVERS
from gauge_mc.extensions.quarks.vectors import STORAGES
from gauge_mc.extensions.quarks.vectors.basis import BOUNDARY, IMAGINARY_MU, angles_of, phases_of
from gauge_mc.extensions.quarks.vectors.transport import ANTIPERIODIC, Boundary, Phases
from gauge_mc.fields.field import Field
from gauge_mc.option_items import Items, OptionItem
from gauge_mc.options import Option, merged
from gauge_mc.quoting import counted, quoted
from gauge_mc.registry import in_words
from gauge_mc.updates.integrators import MOST_LEVELS
from gauge_mc.updates.monomials import Monomial
from gauge_mc.updates.terms import (
    ACTION_TERMS,
    ActionTerms,
    RunMonomial,
    TermLinks,
    check_precision,
)

if TYPE_CHECKING:
    from gauge_mc.domain.device_group import DeviceGroup
    from gauge_mc.domain.lattice import Lattice


def operator_on(
    links: TermLinks, name: str, number: float, boundary: Phases = ANTIPERIODIC, **parameters: Any
) -> DiracOperator:
    """Return a Dirac operator on links, the same for the same parameters."""
    check_precision("quarks", links.field.precision)
    phases = Boundary.of(boundary).phases

    def prepare() -> DiracOperator:
        make: Callable[..., DiracOperator] = operator_with_force(name) if name else operator_with
        return make(links.field, number, boundary=phases, **parameters)

    return links.prepared((name, number, phases, *sorted(parameters.items())), prepare)


def operator_with_force(name: str) -> type[DiracOperator]:
    """Return a registered operator."""
    kind = OPERATORS[name]
    if not issubclass(kind, DiracOperator):
        raise UsageError(
            f"The force of quarks with the operator '{name}' is not known yet; choose "
            f"{in_words(dirac_operators(), 'or')}."
        )
    return kind


def doublet_on(
    links: TermLinks,
    kappa: float,
    mu_sigma: float,
    mu_delta: float,
    boundary: Phases = ANTIPERIODIC,
) -> TwistedDoublet:
    """Return an operator of a doublet on links; see `TwistedDoublet`."""
    doublet = TwistedDoublet(links.field, kappa, mu_sigma, mu_delta, boundary)
    return links.prepared(object(), lambda: doublet)


REVERSIBLE = 1e-10
"""Largest residual of forces with which starts from earlier solutions are allowed."""

KAPPA = Option(
    "kappa", float, "Hopping parameter.", least=1e-6, most=CRITICAL_KAPPA * 4, symbol="κ"
)

MASS = Option("m", float, "Mass of quarks on domain walls, in place of kappa.", least=0, most=0.99)

PAULI_VILLARS = 1.0
"""Mass of the fields that divide the determinant of quarks on domain walls by that of the modes
inside the fifth direction."""

OPERATOR = Option(
    "operator",
    str,
    "Dirac operator; by default the one with the parameters that are given.",
    choices=tuple(dirac_operators()),
)

FLAVOURS = Option(
    "flavours", int, "Number of flavours with this mass: 1 or 2.", least=1, most=2, usual=2
)

RANGE = Option(
    "range",
    str,
    "Smallest and largest eigenvalue of Mh Mh^dagger for which one flavour is exact; the default "
    "depends on kappa.",
    least=1e-12,
    most=1e6,
    each=float,
)

RATIONAL_ACCURACY = Option(
    "accuracy",
    float,
    "Largest relative error of the rational function for one flavour.",
    least=LEAST_ERROR,
    most=1e-3,
    usual=ACCURACY,
)

DOUBLET = (
    Option(
        "mu_sigma",
        float,
        "Twisted mass mu_sigma of a doublet of two flavours with different masses.",
        least=0,
        most=LARGEST,
        usual=0.0,
    ),
    Option(
        "mu_delta", float, "Splitting mu_delta of the doublet.", least=0, most=LARGEST, usual=0.0
    ),
)
"""The parameters of `TwistedDoublet`."""

LEVEL = Option(
    "level",
    str,
    "Level of the forces, from 0 for the outermost one; or one for each mass, the lightest first.",
    least=0,
    most=MOST_LEVELS - 1,
    each=int,
)

SOLVER = (
    Option("solver", str, "Solver.", choices=tuple(SOLVERS), usual=defaults.QUARK_SOLVER),
    Option("inner", str, "Precision of iterations.", choices=tuple(STORAGES), usual=defaults.INNER),
    Option(
        "force_tolerance",
        float,
        "Largest norm of the true residual relative to the source, for forces.",
        least=LEAST_TOLERANCE,
        most=1e-2,
        usual=normal_systems.FORCE_TOLERANCE,
    ),
    Option(
        "action_tolerance",
        float,
        "The same for actions and pseudofermions.",
        least=LEAST_TOLERANCE,
        most=1e-2,
        usual=normal_systems.ACTION_TOLERANCE,
    ),
    Option("iterations", int, "Largest number of iterations.", least=1, usual=ITERATIONS),
    Option(
        "history",
        int,
        "Number of earlier solutions of a trajectory from which solvers start. Trajectories are "
        "then reversible only as far as force_tolerance goes, which must be 1e-10 or less.",
        least=0,
        most=normal_systems.MOST_HISTORY,
        usual=0,
    ),
    REDUCTION,
)
"""The options that are fields of `QuarkSolver`."""


def massive_operators() -> dict[str, type[DiracOperator]]:
    """Return the operators with a hopping term whose quarks have a mass, by name."""
    return {name: o for name, o in dirac_operators().items() if o.quark == QUARK_MASS}


def parameter_options() -> tuple[Option, ...]:
    """Return the parameters of operators with a hopping parameter apart from this."""
    return merged(hopping_parameters())


def massive_options() -> tuple[Option, ...]:
    """Return the parameters of operators with a mass apart from this."""
    return merged(parameters_by_owner("Dirac operator", massive_operators()))


class HeavierMass(OptionItem):
    """A mass between which and the next lighter one a ratio of determinants is simulated.

    In text masses have slashes between them, and the parameters of a mass plus signs.
    """

    kind = "heavier mass"
    between, joined = "/", "/"
    within, glued = r"\+", "+"

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return kappa, the mass, and the other parameters of operators with kappa."""
        return (KAPPA, MASS, *parameter_options())


@dataclass(frozen=True)
class QuarkMass:
    """The mass of quarks, as the numbers of their Dirac operator set it."""

    number: float
    """The hopping parameter, or the mass of an operator that has one."""
    parameters: tuple[tuple[str, Any], ...] = ()
    """The other parameters of the operator that are given, by name."""

    @property
    def names(self) -> set[str]:
        """Names of the other parameters."""
        return {name for name, _ in self.parameters}

    @property
    def mu(self) -> float:
        """Twisted mass."""
        return next((value for name, value in self.parameters if name == MU.name), 0.0)

    @property
    def has_link_term(self) -> bool:
        """Whether the diagonal part of the operator depends on the links."""
        options = (option for kind in TERMS.values() if kind.matrix for option in kind.parameters)
        return any(option.name in self.names for option in options)


HEAVIER = Option(
    "heavier",
    str,
    "Heavier masses, the lightest first, for ratios of determinants (Hasenbusch): what differs "
    "from the mass of the quarks, such as mu=0.1/mu=0.5, or m=0.1/m=0.4 of domain walls.",
    usual=Items(),
    items=HeavierMass,
)


class DynamicalQuarks(OptionItem):
    """One or two flavours of quarks of one mass, as the user asks for them.

    The options are kappa, or the mass, and the other parameters of Dirac operators, the number of
    flavours, the boundary conditions, the chemical potential, heavier masses, levels, and those of
    the solver; see `gauge_mc.extensions.quarks.dynamical.flavours`.
    """

    kind = "table of quarks"
    leading = ("operator",)
    between = rf",(?={KAPPA.name}=)|{OptionItem.between}"

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the options."""
        return (
            OPERATOR,
            KAPPA,
            *parameter_options(),
            MASS,
            *massive_options(),
            *DOUBLET,
            FLAVOURS,
            BOUNDARY,
            IMAGINARY_MU,
            HEAVIER,
            LEVEL,
            RANGE,
            RATIONAL_ACCURACY,
            *SOLVER,
        )

    @classmethod
    def axes(cls) -> tuple[Option, ...]:
        """Return kappa or the mass, the other numbers of the operator, and the chemical potential.

        See `OptionItem.axes`.
        """
        options = (KAPPA, *parameter_options(), MASS, *massive_options(), *DOUBLET, IMAGINARY_MU)
        return tuple(x for x in options if x.kind is float)

    def check(self) -> None:
        """Check the mass, the heavier ones, and the levels; see `OptionItem.check`."""
        self._check_operator()
        for option, text in ((LEVEL, "a whole number, or one for each mass"), (RANGE, "numbers")):
            if isinstance(words := self.values.get(option.name), str) and words:
                raise UsageError(f"{option.flag} is {quoted(words)}; give {text}.")
        if self.is_doublet:
            self._check_doublet()
        self.phases_if(strict=False)
        self.request  # noqa: B018
        self._check_masses()
        if self.history and self.force_tolerance > REVERSIBLE:
            raise UsageError(
                f"--history with a --force-tolerance of {self.force_tolerance:g} makes "
                f"trajectories irreversible; give {REVERSIBLE:g} or less."
            )
        one_by_one = {
            "history": self.history,
            "solver": self.solver != defaults.QUARK_SOLVER,
            REDUCTION.name: self.reduction,
        }
        if self.is_rational and any(one_by_one.values()):
            text = next(name for name, x in one_by_one.items() if x)
            raise UsageError(
                f"--{text} is for two flavours of one mass, but --quarks asks for a rational "
                "function, whose solutions conjugate gradients find all at once from 0; leave it "
                "out."
            )
        if self.level and len(self.level) not in (1, len(self.masses)):
            raise UsageError(
                f"--level has {counted(len(self.level), 'level')}, and the number of masses of "
                f"--quarks is {len(self.masses)}; give one level, or one for each mass."
            )

    def _check_operator(self) -> None:
        """Refuse an operator without a force, missing numbers, and those of other operators."""
        if self.operator:
            OPERATORS.check(self.operator, "operator")
            operator_with_force(self.operator)
        self._check_numbers()
        if self.is_massive:
            self._check_massive()
        elif self.operator:
            names = {p.name for p in OPERATORS[self.operator].parameters}
            if foreign := sorted(self.mass.names - names):
                raise UsageError(
                    f"The Dirac operator {self.operator} has no {in_words(foreign, 'or')}; leave "
                    "out the operator, which then is the one with these parameters."
                )

    def _check_numbers(self) -> None:
        """Refuse quarks with kappa that have numbers of those with a mass, or the reverse."""
        names = self.given.union(*(x.given for x in self.heavier))
        hopping = {option.name for option in (KAPPA, *parameter_options(), *DOUBLET)}
        massive = {option.name for option in (MASS, *massive_options())}
        if foreign := sorted(names & (hopping if self.is_massive else massive)):
            operators = hopping_operators() if self.is_massive else massive_operators()
            owner = f"the operator {self.operator}" if self.is_massive else "a hopping parameter"
            raise UsageError(
                f"Quarks with {owner} have no {in_words(foreign, 'or')}; leave that out, or choose "
                f"the operator {in_words(operators, 'or')}."
            )
        if self.is_massive and self.m is None:
            raise UsageError(
                f"--quarks {self.operator} needs m, the mass of the quarks; add m=NUMBER."
            )
        if not self.is_massive and self.kappa is None:
            raise UsageError("--quarks needs kappa, the hopping parameter; add kappa=NUMBER.")

    def _check_massive(self) -> None:
        """Refuse parameters that do not fit, and those that are measured on the links."""
        kind, parameters = OPERATORS[self.operator], dict(self.mass.parameters)
        kind.check_parameters(**parameters)
        kind.check_masses([mass.number for mass in self.determinants], **parameters)
        measured = kind.rehearsed(**parameters)
        if names := [name for name, value in parameters.items() if measured[name] != value]:
            raise UsageError(
                f"{in_words(names)} of dynamical quarks cannot be measured, because the action "
                "would then change with every configuration; give numbers."
            )

    def _check_masses(self) -> None:
        masses = self.masses
        if not self.is_massive:
            check_kappa(self.kappa)
        if self.flavours == 1 and (len(masses) > 1 or self.mass.mu):
            name = HEAVIER.name if len(masses) > 1 else MU.name
            raise UsageError(
                f"--{name} is for two flavours, but --quarks asks for one; leave it out, or choose "
                "flavours=2."
            )
        if self.range and not self.is_rational:
            raise UsageError(
                "--range is for one flavour, but --quarks asks for two; leave it out, or choose "
                "flavours=1."
            )
        if self.range and (len(self.range) != 2 or self.range[0] >= self.range[1]):
            numbers = ",".join(f"{x:g}" for x in self.range)
            raise UsageError(f"--range is {numbers}; give the smallest and the largest eigenvalue.")
        for light, heavy in pairwise(masses):
            smallest, largest = sorted((light.number, heavy.number))
            lighter = heavy.number != (largest if self.is_massive else smallest)
            if lighter or abs(heavy.mu) < abs(light.mu) or heavy == light:
                larger = "larger m" if self.is_massive else "smaller kappa or larger mu"
                raise UsageError(
                    f"--heavier is {self.heavier}, but one of its masses is not heavier than the "
                    f"one before; give {larger}, the lightest mass first."
                )

    def _check_doublet(self) -> None:
        foreign = sorted(self.mass.names)
        foreign += [OPERATOR.name] * bool(self.operator) + [HEAVIER.name] * bool(self.heavier)
        if foreign:
            raise UsageError(
                f"A doublet with mu_sigma has no {in_words(foreign, 'or')}; leave that out, or "
                "mu_sigma and mu_delta."
            )
        if self.flavours != 2:
            raise UsageError(
                "A doublet with mu_sigma is two flavours, but --quarks asks for one; leave out "
                "flavours, or mu_sigma and mu_delta."
            )
        if not self.mu_sigma:
            raise UsageError(
                "--mu-delta splits the masses of a doublet, which also needs the twisted mass "
                "mu_sigma; for Wilson quarks of two masses give two tables with flavours=1."
            )
        if 2 * self.kappa * self.mu_delta >= 1:
            raise UsageError(
                f"--mu-delta is {self.mu_delta:g}, but 2 kappa mu_delta must be below 1; choose a "
                "smaller one."
            )

    @property
    def is_massive(self) -> bool:
        """Whether the operator has a mass in place of a hopping parameter."""
        return self.operator in massive_operators()

    @property
    def mass(self) -> QuarkMass:
        """Kappa or the mass, and the parameters of the operator that are not 0."""
        return self._mass_with({})

    def _mass_with(self, changes: Mapping[str, Any]) -> QuarkMass:
        """Return the mass of the quarks, or a heavier one with other values."""
        values = {**self.values, **changes}
        if self.is_massive:
            names = [x.name for x in OPERATORS[self.operator].parameters if x.name in values]
        else:
            names = [x.name for x in parameter_options() if values.get(x.name)]
        return QuarkMass(values[self.mass_option.name], tuple((x, values[x]) for x in names))

    @property
    def mass_option(self) -> Option:
        """The option of the number that sets the mass: kappa or m."""
        return MASS if self.is_massive else KAPPA

    @property
    def label(self) -> str:
        """The flavours and their mass, for figures."""
        options = {option.name: option for option in self.options()}
        dense = {IMAGINARY_MU.name: self.imaginary_mu} if self.imaginary_mu else {}
        numbers = {**self.couplings, **dense}
        drawn = [options[name].drawn(value) for name, value in numbers.items()]
        return f"{self.flavours} flavour{'s' * (self.flavours > 1)} at {', '.join(drawn)}"

    @property
    def dirac_operator(self) -> type[DiracOperator] | None:
        """The Dirac operator; None if it is composed of terms, without a name."""
        if self.is_doublet:
            return TwistedDoublet
        if self.operator:
            return dirac_operators()[self.operator]
        return kind_with(self.mass.names)

    @property
    def couplings(self) -> dict[str, Any]:
        """All numbers of the operator that are not 0."""
        splitting = {x.name: self.values[x.name] for x in DOUBLET if self.values[x.name]}
        return {self.mass_option.name: self.mass.number, **dict(self.mass.parameters), **splitting}

    @property
    def is_exact(self) -> bool:
        """Whether the weight is as exact as by default."""
        return not self.is_rational or bool(self.accuracy <= ACCURACY)

    @property
    def has_sign(self) -> bool:
        """Whether the determinant may be negative, of which only the modulus is simulated.

        The determinant of a doublet is positive if mu_sigma is larger than mu_delta.
        """
        return self.flavours == 1 or (self.is_doublet and self.mu_sigma <= self.mu_delta)

    @property
    def is_doublet(self) -> bool:
        """Whether the two flavours have different masses and a twisted one."""
        return bool(self.mu_sigma or self.mu_delta)

    @property
    def is_rational(self) -> bool:
        """Whether the weight is a rational function."""
        return self.flavours == 1 or self.is_doublet

    @property
    def masses(self) -> list[QuarkMass]:
        """The mass of the quarks, and the heavier ones in their order."""
        changes = ({x: y.values[x] for x in y.given if y.values[x]} for y in self.heavier)
        return [self.mass, *map(self._mass_with, changes)]

    @property
    def determinants(self) -> list[QuarkMass]:
        """The masses in whose determinants the weight is factorised, Pauli-Villars' at the end."""
        last = [replace(self.mass, number=PAULI_VILLARS)] if self.is_massive else []
        return [*self.masses, *last]

    @property
    def extent(self) -> int:
        """Extent of the fifth direction of the vectors, or 1."""
        return 2 if self.is_doublet else self.ls if self.is_massive else 1

    @property
    def angles(self) -> tuple[float, ...]:
        """Angles across the boundaries along x, y, z and t, with the chemical potential."""
        return angles_of(self.boundary or BOUNDARY.default, self.imaginary_mu)

    def phases_if(self, strict: bool) -> tuple[complex, ...]:
        """Return the phases across the boundaries along x, y, z and t; see `phases_of`."""
        return phases_of(self.angles, strict)

    @property
    def request(self) -> normal_systems.QuarkSolver:
        """How solutions are computed."""
        return normal_systems.QuarkSolver(
            **{x.name: self.values.get(x.name, x.usual) for x in SOLVER}
        )

    def levels(self, count: int) -> list[int]:
        """Return the level of the force of every mass, given the number of levels.

        By default that of the lightest mass is on the outermost level, and that of each heavier one
        a level further in, but not on the innermost one, as long as there are others.
        """
        masses = len(self.masses)
        if self.level:
            return [*self.level] * (masses if len(self.level) == 1 else 1)
        return [min(n, max(count - 2, 0)) for n in range(masses)]


SITES_PER_GPU = 2**20
"""Sites of a GPU from which on more GPUs are never slower, so that nothing is tried."""

TRIAL_KAPPA, TOLERANCES = 0.13, (1e-3, 1e-10)
"""Hopping parameter of the quarks of the trial, and the residuals of their solutions. On random
links these take few iterations."""

TRIAL_ITERATIONS = 500
"""Iterations of a solution in a run, about. Its time follows from those of the trial."""

SOLVES = 4
"""Number of solutions, of which the fastest one counts. The first one loads kernels, and the second
one records them."""


def solver_seconds(devices: DeviceGroup, lattice: Lattice, group: str, precision: str) -> float:
    """Return the time of a solution for Wilson quarks with `TRIAL_ITERATIONS`, in seconds.

    It is infinite if there is not enough memory.
    """
    try:
        field = Field.hot(lattice, group, precision, devices)
        system = QuarkSystem(Wilson(field, TRIAL_KAPPA), normal_systems.QuarkSolver())
        system.phi.put_equal_slices()

        def solution(tolerance: float) -> tuple[float, int]:
            """Return the shortest time of a solution, and its iterations."""
            times = []
            for _ in range(SOLVES):
                began = time.perf_counter()
                progress = system.solve(tolerance, np.ones(1, np.bool_))
                progress.check()
                devices.synchronize()
                times.append(time.perf_counter() - began)
            return min(times), int(progress.iterations.max())

        (few_s, few), (many_s, many) = map(solution, TOLERANCES)
    except NoMemoryError:
        return math.inf
    return many_s + (many_s - few_s) / (many - few) * (TRIAL_ITERATIONS - many)


class QuarkTerms(ActionTerms):
    """The terms of dynamical quarks."""

    name = "quarks"
    option = Option(
        "quarks",
        str,
        "Dynamical quarks, such as wilson:kappa=0.1575:flavours=2:heavier=kappa=0.15 or "
        "domain-wall:LS=16:M5=1.8:m=0.02:heavier=m=0.2, several with commas between them.",
        default="none",
        metavar="NAME:kappa=K|m=M[:OPTION=VALUE...],...",
        usual=Items(),
        items=DynamicalQuarks,
        tag="",
    )
    items = DynamicalQuarks
    words, compared_by = "dynamical quarks", "crossover"
    needs_double = True

    def terms(self, values: Sequence[DynamicalQuarks], levels: int) -> list[RunMonomial]:
        """Return the terms of the action of all quarks; see `quark_terms`."""
        return quark_terms(values, levels)

    def fastest_devices(
        self, devices: DeviceGroup, lattice: Lattice, group: str, precision: str
    ) -> tuple[DeviceGroup, str]:
        """Return the GPUs on which solutions for quarks take the shortest time.

        On small lattices several GPUs wait for each other longer than they compute. The results do
        not depend on their number, so that a short trial decides. All are used on large lattices,
        if the user has divided the lattice, and if several processes share it.
        """
        count = len(devices.devices)
        fixed = devices.processes.size > 1 or devices.slices is not None
        large = lattice.sites >= count * SITES_PER_GPU
        if fixed or count == 1 or devices.devices[0].in_host_memory or large:
            return devices, ""
        numbers = [*(2**k for k in range(count.bit_length()) if 2**k < count), count]
        groups = {n: replace(devices, devices=devices.devices[:n]) for n in numbers}
        kind = lattice, group, precision
        seconds = {n: solver_seconds(some, *kind) for n, some in groups.items()}
        best = min(reversed(numbers), key=lambda n: seconds[n])
        if best == count:
            return devices, ""
        return (
            groups[best],
            f"On this lattice quarks are fastest on {best} of the {count} GPUs: {TRIAL_ITERATIONS} "
            f"iterations for them take {1e3 * seconds[best]:.3g} ms there, and "
            f"{1e3 * seconds[count]:.3g} ms on all. The others are not used.",
        )


ACTION_TERMS.register(QuarkTerms())


def quark_terms(quarks: Sequence[DynamicalQuarks], levels: int) -> list[RunMonomial]:
    """Return the terms of the action of all quarks."""
    monomials: list[RunMonomial] = []
    for n, quark in enumerate(quarks, 1):
        if max(quark.levels(levels)) >= levels:
            raise UsageError(
                f"--quarks asks for level {max(quark.levels(levels))}, but the last one is "
                f"{levels - 1}; add it to --levels, whose first one is 0."
            )
        # Every term may draw a field, with a fifth direction one for each of its sites.
        monomials += _terms(quark, f"quarks{n}", levels, sum(term.extent for term in monomials))
    return monomials


def _terms(quarks: DynamicalQuarks, name: str, levels: int, number: int) -> Iterator[RunMonomial]:
    """Yield the terms of some quarks; `number` is that of the first pseudofermions."""
    timescales, extent, request = quarks.levels(levels), quarks.extent, quarks.request

    def operator(links: TermLinks, mass: QuarkMass) -> DiracOperator:
        phases = quarks.phases_if(links.field.devices.strict)
        return operator_on(
            links, quarks.operator or "", mass.number, phases, **dict(mass.parameters)
        )

    def ratio(masses: Sequence[QuarkMass], number: int, title: str, level: int) -> RunMonomial:
        def make(links: TermLinks) -> Monomial:
            light, heavy = (operator(links, mass) for mass in masses)
            return Ratio(light, heavy, request, number, title)

        return RunMonomial(title, level, Ratio, make, extent, quarks.history)

    for k, pair in enumerate(pairwise(quarks.masses)):
        yield ratio(pair, number + k * extent, f"{name}_ratio{k + 1}", timescales[k])
    if quarks.mass.has_link_term:
        title = f"{name}_det"

        def determinant(links: TermLinks) -> Monomial:
            return Determinant(operator(links, quarks.mass), quarks.flavours, title)

        yield RunMonomial(title, timescales[-1], Determinant, determinant)
    number += (len(quarks.masses) - 1) * extent
    if quarks.is_massive and not quarks.is_rational:
        yield ratio(quarks.determinants[-2:], number, name, timescales[-1])
    elif quarks.is_rational:

        def rational(links: TermLinks) -> Monomial:
            ends = (quarks.range[0], quarks.range[1]) if quarks.range else None
            rest = request, number, 1, ends, quarks.accuracy, name
            if quarks.is_doublet:
                phases = quarks.phases_if(links.field.devices.strict)
                numbers = quarks.kappa, quarks.mu_sigma, quarks.mu_delta
                return Rational(doublet_on(links, *numbers, phases), *rest)
            light = operator(links, quarks.mass)
            if quarks.is_massive:
                return RationalRatio(light, operator(links, quarks.determinants[-1]), *rest)
            return Rational(light, *rest)

        kind = RationalRatio if quarks.is_massive else Rational
        yield RunMonomial(name, timescales[-1], kind, rational, extent)
    else:

        def two_flavours(links: TermLinks) -> Monomial:
            return TwoFlavours(operator(links, quarks.masses[-1]), request, number, name)

        make = two_flavours
        yield RunMonomial(name, timescales[-1], TwoFlavours, make, history=quarks.history)

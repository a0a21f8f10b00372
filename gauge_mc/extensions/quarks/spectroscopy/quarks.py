"""The quarks of a measurement."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Self

from gauge_mc import defaults
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.diagonal import LARGEST, MU
from gauge_mc.extensions.quarks.dynamical.flavours import DynamicalQuarks
from gauge_mc.extensions.quarks.hopping import DEFLATE
from gauge_mc.extensions.quarks.modes.mode_files import STORED_MODES
from gauge_mc.extensions.quarks.operators import (
    HOPPING_PARAMETER,
    OPERATORS,
    QUARK_MASS,
    QuarkOperator,
    check_kappa,
    hopping_parameters,
    operators_of,
    parameters_by_owner,
)
from gauge_mc.extensions.quarks.solvers import (
    ITERATIONS,
    LEAST_TOLERANCE,
    METHODS,
    REDUCTION,
    RELIABLE,
    SOLVERS,
    SolverParameters,
    check_deflates,
)
from gauge_mc.extensions.quarks.solvers.overlap import TOGETHER as OVERLAP_TOGETHER
from gauge_mc.extensions.quarks.solvers.overlap import MassFamily
from gauge_mc.extensions.quarks.sources import SOURCES, SourceVectors, parse_source
from gauge_mc.extensions.quarks.spectroscopy.contractions import AT_REST, Momentum
from gauge_mc.extensions.quarks.spectroscopy.correlators import Quark
from gauge_mc.extensions.quarks.vectors import STORAGES
from gauge_mc.extensions.quarks.vectors.basis import BOUNDARY, IMAGINARY_MU, angles_of, phases_of
from gauge_mc.extensions.quarks.vectors.transport import Boundary
from gauge_mc.fields.field import Field
from gauge_mc.files.input import may_be_made
from gauge_mc.option_items import OptionItem
from gauge_mc.options import Option, check_options, merged
from gauge_mc.quoting import number
from gauge_mc.smearing import NO_SMEARING, Smearing, make_smearing, smear_option, smearing_options

EXAMPLE = f"{next(iter(operators_of(QUARK_MASS)))}:LS=16,M5=1.8,m=0.02,0.04"
"""Example of quarks as text."""

OPERATOR = Option("operator", str, "Dirac operator.", choices=tuple(operators_of(QUARK_MASS)))

MASS = Option(
    "m", str, "Masses of the quarks.", metavar="M[,M...]", least=0, most=LARGEST, each=float
)


class QuarkMasses(OptionItem):
    """Quarks with one Dirac operator and one or several masses.

    In text they are the name of the operator, its parameters, which may be written in capital
    letters, and the masses, as in ``domain-wall:LS=16,M5=1.8,m=0.02,0.04``.
    """

    kind = "quark"
    flag = "--quark"
    leading = ("operator",)
    between = r",(?!\s*(?:[-+.0-9]|\w+=|measured))"
    within = r":|[,;](?=\s*\w+=)"

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Return the operator, its parameters, and the masses."""
        owners = parameters_by_owner("Dirac operator", operators_of(QUARK_MASS))
        return (OPERATOR, *merged(owners), MASS)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read quarks from text; see `OptionItem.parse`."""
        name = text.partition(":")[0].strip().lower()
        if name in operators_of(HOPPING_PARAMETER):
            raise UsageError(
                f"Quarks of {name} have a hopping parameter instead of a mass: give it with "
                "--kappa, without --quark."
            )
        return super().parse(text)

    def check(self) -> None:
        """Refuse quarks without a known operator, with a parameter of another one, or massless."""
        names = tuple(operators_of(QUARK_MASS))
        if self.operator not in names:
            subject = f"no operator '{self.operator}' of" if self.operator else "no operator for"
            raise UsageError(
                f"There is {subject} quarks with a mass; choose {' or '.join(names)}, as in "
                f"{names[0]}:{MASS.name}=0.04."
            )
        parameters = {p.name for p in self.operator_class.parameters}
        for name in sorted(self.given - parameters - {OPERATOR.name, MASS.name}):
            raise UsageError(f"The operator {self.operator} has no parameter {name}; leave it out.")
        if not self.masses:
            raise UsageError(f"The masses {MASS.name} of the quarks are missing; give some.")
        self.operator_class.check_parameters(**self.parameters)
        self.operator_class.check_masses(self.masses, **self.parameters)

    @property
    def operator_class(self) -> type[QuarkOperator]:
        """The class of the Dirac operator."""
        return OPERATORS[self.operator]

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the operator apart from the mass, by name."""
        names = {p.name for p in self.operator_class.parameters}
        return {name: value for name, value in self.values.items() if name in names}

    @property
    def masses(self) -> tuple[float, ...]:
        """The masses, ascending."""
        values = self.values.get(MASS.name, ())
        return tuple(sorted({*self.placed(self.values)[MASS.name].numbers(values, number)}))

    @property
    def kappa(self) -> float:
        """The hopping parameter of the operator, which does not depend on the mass."""
        return self.operator_class.hopping_parameter(**self.parameters)

    @property
    def header(self) -> dict[str, str]:
        """Entries for the header of a table: the operator, its parameters, and the masses."""
        texts = (
            word for word in str(self).split(self.glued) if not word.startswith(f"{MASS.name}=")
        )
        usual = {option.name: option.usual for option in self.options()}
        also = (f"{key}={value}" for key, value in self.parameters.items() if value == usual[key])
        return {
            OPERATOR.name: self.glued.join([*texts, *also]),
            MASS.name: ",".join(f"{m:g}" for m in self.masses),
            **self.operator_class.other_masses(self.masses, **self.parameters),
        }

    def with_mass(self, mass: float) -> QuarkMasses:
        """Return quarks of one mass with the same operator."""
        return self._with(**{MASS.name: (mass,)})

    @property
    def rehearsed(self) -> QuarkMasses:
        """The same without measurements on the links; see `QuarkOperator.rehearsed`."""
        return self._with(**self.operator_class.rehearsed(**self.parameters))

    def warm_up(self, mass: float) -> QuarkMasses:
        """Return quarks of one mass for a measurement that only compiles the kernels."""
        return self._with(**self.operator_class.warm_up, **{MASS.name: (mass,)})

    def _with(self, **values: object) -> QuarkMasses:
        settings = {name: self.values[name] for name in self.given}
        return QuarkMasses(**{**settings, **values})

    def made(
        self, field: Field, mass: float | tuple[float, ...], phases: Sequence[complex]
    ) -> QuarkOperator:
        """Return the operator on some links for one of the masses, given the boundary phases.

        An operator that solves for several masses together takes all of them.
        """
        make: Callable[..., QuarkOperator] = self.operator_class
        return make(field, mass, boundary=phases, **self.parameters)


KAPPA = Option(
    "kappa",
    str,
    "Hopping parameters, such as 0.1530,0.1550.",
    default="those of the run",
    metavar="K[,K...]",
    least=1 / LARGEST,
    most=LARGEST,
    each=float,
)

QUARK = Option(
    "quark",
    str,
    "Instead of kappa: an operator whose quarks have a mass, its parameters and the masses, such "
    f"as {EXAMPLE}.",
    metavar="OPERATOR:PARAMETERS",
    items=QuarkMasses,
)

MUS = Option(
    MU.name,
    str,
    "Twisted masses, in lattice units, each with each kappa.",
    default=MU.default,
    metavar="M[,M...]",
    least=-LARGEST,
    most=LARGEST,
    each=float,
)

SOURCE = Option(
    "source",
    str,
    "Source: "
    + ", or ".join(f"{name}:{x.parameters} for {x.summary}" for name, x in SOURCES.items())
    + ". Several are measured one after the other.",
    default=f"{defaults.SOURCE} at the origin",
    metavar="NAME:PARAMETERS",
    choices=tuple(SOURCES),
    repeated=True,
)

SMEAR_SINK = Option("smear_sink", bool, "Smear the sink in the same way as the source.")

MOST_TOGETHER = 1000
"""Largest number of right-hand sides together, to catch typing errors."""

MOST_MOMENTUM = 100
"""Largest squared momentum, to catch typing errors."""

MOMENTA = Option(
    "p2_max",
    int,
    "Largest n² of the momenta 2πn/L, with n for x, y and z.",
    default="0",
    least=0,
    most=MOST_MOMENTUM,
)

SOLVER = Option(
    "solver",
    str,
    "Solver of the Dirac equation.",
    default=f"{defaults.SOLVER}, or {defaults.WALL_SOLVER} with --quark or --deflate",
    choices=tuple(SOLVERS),
)

INNER = Option(
    "inner", str, "Precision of iterations.", default=defaults.INNER, choices=tuple(STORAGES)
)

METHOD = Option(
    "method", str, "How precisions are combined.", default=RELIABLE, choices=tuple(METHODS)
)

LINKS = Option(
    "links", int, "Stored reals per link: 8, 12 or 18 for SU(3).", default="12, or 4 for SU(2)"
)

TOLERANCE = Option(
    "tolerance",
    float,
    "Largest norm of the true residual relative to the source.",
    default=f"{defaults.TOLERANCE:g}",
    least=LEAST_TOLERANCE,
    most=1,
)

ITERATION_LIMIT = Option(
    "limit", int, "Largest number of iterations.", default=f"{ITERATIONS}", least=1
)

TOGETHER = Option(
    "together",
    int,
    "Spins and colours that are solved together for quarks with a mass, whose memory is as many "
    "times larger.",
    default=f"1 for domain walls, {OVERLAP_TOGETHER} for overlap quarks",
    least=1,
    most=MOST_TOGETHER,
)

PROPAGATORS = Option(
    "propagators",
    str,
    "Folder of propagators, before the sink is smeared: those that it has are read, and the others "
    "are written there.",
    metavar="FOLDER",
    folder=True,
)


def operator_owners() -> list[tuple[str, tuple[Option, ...]]]:
    """Return all Dirac operators and their terms, with their parameters apart from mu."""
    return [
        (owner, tuple(option for option in parameters if option.name != MU.name))
        for owner, parameters in hopping_parameters()
    ]


def quark_owners() -> list[tuple[str, tuple[Option, ...]]]:
    """Return what declares options of measurements with quarks, with the options of each."""
    before = (KAPPA, QUARK, MUS)
    after = (BOUNDARY, IMAGINARY_MU, SOURCE, SMEAR_SINK, MOMENTA)
    solving = (SOLVER, INNER, METHOD, REDUCTION, LINKS, TOLERANCE, ITERATION_LIMIT, TOGETHER)
    hadrons, storing = "all hadrons", (DEFLATE, STORED_MODES, PROPAGATORS)
    return [(hadrons, before), *operator_owners(), (hadrons, (*after, *solving, *storing))]


def quark_options() -> tuple[Option, ...]:
    """Return the options of all measurements with quarks."""
    return merged(quark_owners())


def numbers_of(options: Mapping[str, Any], option: Option) -> tuple[float, ...]:
    """Return the different numbers that an option gives, ascending; none if it is not given."""
    numbers = option.numbers(options[option.name], number) if option.name in options else ()
    return tuple(sorted({*numbers}))


def momenta_up_to(square: int, lattice: Lattice) -> tuple[Momentum, ...]:
    """Return all momenta with at most this square, the smaller ones first."""
    largest = math.isqrt(square)
    half = min(lattice.extents[:3]) // 2
    if largest > half:
        raise UsageError(
            f"{MOMENTA.flag} is {square}, but n and n - L are the same momentum on {lattice}; give "
            f"at most {(half + 1) ** 2 - 1}."
        )
    momenta = product(range(-largest, largest + 1), repeat=3)
    inside = [(x, y, z) for x, y, z in momenta if x * x + y * y + z * z <= square]
    return tuple(sorted(inside, key=lambda p: (sum(n * n for n in p), p)))


WHICH = (KAPPA, QUARK, MUS, BOUNDARY, IMAGINARY_MU)
"""Options that say which quarks are measured, besides parameters of operators."""


def family_of(massive: QuarkMasses) -> type[MassFamily] | None:
    """Return the class of the operator of quarks, if it solves for all masses together."""
    kind = massive.operator_class
    return kind if issubclass(kind, MassFamily) else None


@dataclass(frozen=True)
class Quarks:
    """The quarks of a measurement.

    Raises
    ------
    UsageError
        If a value is invalid.
    """

    lattice: Lattice
    """Lattice of the fields."""
    kappas: tuple[float, ...] = ()
    """Hopping parameters, ascending; empty if none has been chosen yet."""
    massive: QuarkMasses | None = None
    """Quarks with a mass instead of a hopping parameter."""
    mus: tuple[float, ...] = (0.0,)
    """Twisted masses, ascending; each is combined with each hopping parameter."""
    parameters: tuple[tuple[str, float], ...] = ()
    """Further parameters of the Dirac operator that are not 0."""
    angles: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)
    """Boundary conditions psi(x + L) = exp(i pi angle) psi(x) along x, y, z and t, with the
    chemical potential.
    """
    imaginary_mu: float = 0.0
    """Imaginary chemical potential, which `angles` contain; see `IMAGINARY_MU`."""
    sources: tuple[SourceVectors, ...] = ()
    """Sources, which are measured one after the other."""
    smear_sink: bool = False
    """Whether the sink is smeared as the source is."""
    smearing: Smearing | None = None
    """Smearing of the links with which sources and sinks are smeared."""
    momenta: tuple[Momentum, ...] = (AT_REST,)
    """Momenta of the hadrons."""
    solver: str = defaults.SOLVER
    """Name of the solver."""
    request: SolverParameters = field(default_factory=SolverParameters)
    """How to solve."""
    together: int = 1
    """Columns that are solved together for quarks with a mass."""
    folder: str = ""
    """Folder in which propagators are kept; if it is empty, they are not."""
    deflate: int = 0
    """Number of low modes along which solutions need no iteration."""
    stored_modes: str = ""
    """Folder in which low modes are kept; if it is empty, they are not."""
    unstated: bool = False
    """Whether nothing says which quarks are meant; then they are those of the ensemble."""

    def __post_init__(self) -> None:
        if self.massive and (self.kappas or any(self.mus) or self.parameters):
            raise UsageError(
                f"{QUARK.flag} has all parameters of the quarks; leave out {KAPPA.flag}, "
                f"{MUS.flag} and parameters of other operators."
            )
        if self.massive and self.folder:
            raise UsageError(
                f"{PROPAGATORS.flag} keeps only propagators of quarks with a hopping parameter; "
                f"leave it out, or leave out {QUARK.flag}."
            )
        SOLVERS.check(self.solver, SOLVER.flag)
        if self.stored_modes and not self.deflate:
            raise UsageError(
                f"{STORED_MODES.flag} keeps the low modes of {DEFLATE.flag}; give their number by "
                f"{DEFLATE.flag}, or leave it out."
            )
        if self.deflate and self.massive:
            raise UsageError(
                f"{DEFLATE.flag} is for quarks with a hopping parameter; leave it out, or leave "
                f"out {QUARK.flag}."
            )
        if self.deflate:
            check_deflates(self.solver)
        if self.family and self.solver != self.family.solver:
            raise UsageError(
                f"Quarks with the operator {self.family.name} are solved for by "
                f"{self.family.solver}, not by {self.solver}; leave out {SOLVER.flag}."
            )
        smeared = [source for source in self.sources if source.smears]
        if self.smear_sink and len(smeared) < len(self.sources):
            raise UsageError(f"{SMEAR_SINK.flag} needs a source that is smeared; choose one.")
        if self.smearing and not smeared:
            raise UsageError("--smear is for sources that are smeared; choose one.")
        if smeared and any(angle % 2 for angle in self.angles[:3]):
            raise UsageError(
                "Smeared sources need quarks that are periodic in space; choose another --boundary "
                "or another --source."
            )

    @classmethod
    def of_options(cls, lattice: Lattice, whose: str, options: Mapping[str, Any]) -> Quarks:
        """Return the quarks that options choose, by name."""
        declared = (*quark_options(), smear_option())
        settings = check_options((*declared, *smearing_options()), options, whose)
        keys = {option.name for option in declared}
        smearing = {name: value for name, value in settings.items() if name not in keys}
        names = [x.name for x in merged(operator_owners())]
        sources = settings.get(SOURCE.name, (defaults.SOURCE,))
        massive = QuarkMasses.several(settings.get(QUARK.name, ()))
        if len(massive) > 1:
            raise UsageError(f"{QUARK.flag} has {len(massive)} operators; give one.")
        family = family_of(massive[0]) if massive else None
        ignored = [x.flag for x in (INNER, METHOD, REDUCTION, LINKS) if x.name in settings]
        if family and ignored:
            raise UsageError(
                f"{ignored[0]} has no effect on quarks with the operator {family.name}, which are "
                "computed in double precision; leave it out."
            )
        imaginary_mu = settings.get(IMAGINARY_MU.name, IMAGINARY_MU.usual)
        normal = massive or DEFLATE.name in settings
        return cls(
            lattice,
            numbers_of(settings, KAPPA),
            massive[0] if massive else None,
            numbers_of(settings, MUS) or (0.0,),
            tuple((name, settings[name]) for name in names if settings.get(name)),
            angles_of(settings.get(BOUNDARY.name, "antiperiodic"), imaginary_mu),
            imaginary_mu,
            tuple(parse_source(source, lattice) for source in sources),
            settings.get(SMEAR_SINK.name, False),
            make_smearing(settings.get("smear", NO_SMEARING), smearing),
            momenta_up_to(settings.get(MOMENTA.name, 0), lattice),
            settings.get(SOLVER.name, defaults.WALL_SOLVER if normal else defaults.SOLVER),
            SolverParameters(
                settings.get(TOLERANCE.name, defaults.TOLERANCE),
                settings.get(ITERATION_LIMIT.name, ITERATIONS),
                settings.get(METHOD.name, RELIABLE),
                settings.get(INNER.name, defaults.INNER),
                settings.get(LINKS.name),
                settings.get(REDUCTION.name),
            ),
            settings.get(TOGETHER.name, family.together if family else 1),
            settings.get(PROPAGATORS.name, ""),
            settings.get(DEFLATE.name, 0),
            settings.get(STORED_MODES.name, ""),
            not settings.keys() & {*names, *(x.name for x in WHICH)},
        )

    def of_ensemble(self, text: str) -> Quarks:
        """Return the first dynamical quarks of an ensemble, unless others are stated.

        Those of a doublet with two masses are not taken, because they mix.
        """
        if not (self.unstated and text):
            return self
        first = DynamicalQuarks.several(text)[0]
        if first.is_doublet:
            return self
        mass = first.mass
        like = replace(self, angles=first.angles, imaginary_mu=first.imaginary_mu, unstated=False)
        if first.is_massive:
            numbers = {MASS.name: mass.number, **dict(mass.parameters)}
            massive = QuarkMasses(first.operator, **numbers)
            return replace(like, massive=massive, solver=defaults.WALL_SOLVER)
        parameters = tuple(x for x in mass.parameters if x[0] != MUS.name)
        return replace(like, kappas=(mass.number,), mus=(mass.mu,), parameters=parameters)

    @property
    def family(self) -> type[MassFamily] | None:
        """The class of the operator, if it solves for all masses together."""
        return family_of(self.massive) if self.massive else None

    def boundary(self, strict: bool = False) -> Boundary:
        """Return the phases of the boundary conditions; see `phases_of`."""
        return Boundary.of(phases_of(self.angles, strict))

    @property
    def header(self) -> dict[str, str]:
        """Entries for the header of a table."""
        smearing = {"smearing": str(self.smearing)} if self.smearing else {}
        dense = {IMAGINARY_MU.name: f"{self.imaginary_mu:.12g}"} if self.imaginary_mu else {}
        twisted = {MUS.name: _listed(self.mus)} if any(self.mus) else {}
        hopping = {"kappa": _listed(self.kappas), **twisted}
        return {
            **(self.massive.header if self.massive else hopping),
            **{name: f"{value:g}" for name, value in self.parameters},
            "boundary": f"{','.join(f'{x:g}' for x in self.angles)} (angles in units of pi)",
            **dense,
            "sources": " ".join(self.label(source) for source in self.sources),
            **smearing,
            "tolerance": f"{self.request.tolerance:g}",
            **({DEFLATE.name: f"{self.deflate} low modes"} if self.deflate else {}),
        }

    def label(self, source: SourceVectors) -> str:
        """Return the text that identifies a source, and its sink if that is smeared."""
        return source.label.replace("@", "-smeared@") if self.smear_sink else source.label

    def check(self) -> None:
        """Refuse to measure without a hopping parameter that can be, or a folder to write to."""
        if not self.kappas and not self.massive:
            raise UsageError(
                f"{KAPPA.flag} is missing; give the hopping parameters of the quarks, or quarks "
                f"with a mass by {QUARK.flag}."
            )
        for kappa in self.kappas:
            check_kappa(kappa)
        for option, folder in ((PROPAGATORS, self.folder), (STORED_MODES, self.stored_modes)):
            if folder and not may_be_made(Path(folder)):
                raise UsageError(
                    f"{option.flag}: no files can be written in a folder {folder}; choose another "
                    "one."
                )

    @property
    def kinds(self) -> tuple[Quark, ...]:
        """The quarks, with all hopping parameters and twisted masses, or all masses."""
        if self.massive:
            return tuple(Quark(self.massive.kappa, 0.0, m) for m in self.massive.masses)
        return tuple(Quark(*x) for x in product(self.kappas, self.mus))


def _listed(numbers: Sequence[float]) -> str:
    return ",".join(f"{number:g}" for number in numbers)

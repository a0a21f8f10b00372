"""The quarks of a measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from gauge_mc import defaults
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.files.folders import may_be_made
from gauge_mc.options import check_options, merged
from gauge_mc.quantities.hadrons.analysis.correlators import Quark
from gauge_mc.quantities.hadrons.observables.parts.options import (
    INNER,
    ITERATION_LIMIT,
    KAPPA,
    LINKS,
    METHOD,
    MOMENTA,
    MUS,
    PROPAGATORS,
    QUARK,
    SMEAR_SINK,
    SOLVER,
    SOURCE,
    TOGETHER,
    TOLERANCE,
    momenta_up_to,
    numbers_of,
    operator_owners,
    quark_options,
)
from gauge_mc.quantities.hadrons.observables.parts.quark_masses import QuarkMasses
from gauge_mc.quarks.hadrons.contractions import AT_REST, Momentum
from gauge_mc.quarks.matrices.deflation import DEFLATE
from gauge_mc.quarks.modes.mode_files import STORED_MODES
from gauge_mc.quarks.operators import check_kappa
from gauge_mc.quarks.overlap.mass_family import MassFamily
from gauge_mc.quarks.solvers import (
    ITERATIONS,
    REDUCTION,
    RELIABLE,
    SOLVERS,
    SolverParameters,
    check_deflates,
)
from gauge_mc.quarks.sources import SourceVectors, parse_source
from gauge_mc.quarks.vectors.angles import BOUNDARY, IMAGINARY_MU, angles_of, phases_of
from gauge_mc.quarks.vectors.transport import Boundary
from gauge_mc.smearing import NO_SMEARING, Smearing, make_smearing, smear_option, smearing_options
from gauge_mc.updates.quarks import DynamicalQuarks

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
                f"{PROPAGATORS.flag} keeps propagators of quarks with a hopping parameter alone; "
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
        smeared = [one for one in self.sources if one.smears]
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
        """Return the quarks that options choose, by name.

        Raises
        ------
        UsageError
            If an option is unknown or its value is invalid.
        """
        known = (*quark_options(), smear_option())
        given = check_options((*known, *smearing_options()), options, whose)
        own = {option.name for option in known}
        others = {name: value for name, value in given.items() if name not in own}
        names = [one.name for one in merged(operator_owners())]
        sources = given.get(SOURCE.name, (defaults.SOURCE,))
        massive = QuarkMasses.several(given.get(QUARK.name, ()))
        if len(massive) > 1:
            raise UsageError(f"{QUARK.flag} has {len(massive)} operators; give one.")
        family = family_of(massive[0]) if massive else None
        ignored = [one.flag for one in (INNER, METHOD, REDUCTION, LINKS) if one.name in given]
        if family and ignored:
            raise UsageError(
                f"{ignored[0]} has no effect on quarks with the operator {family.name}, which are "
                "computed in double precision; leave it out."
            )
        imaginary_mu = given.get(IMAGINARY_MU.name, IMAGINARY_MU.usual)
        normal = massive or DEFLATE.name in given
        return cls(
            lattice,
            numbers_of(given, KAPPA),
            massive[0] if massive else None,
            numbers_of(given, MUS) or (0.0,),
            tuple((name, given[name]) for name in names if given.get(name)),
            angles_of(given.get(BOUNDARY.name, "antiperiodic"), imaginary_mu),
            imaginary_mu,
            tuple(parse_source(one, lattice) for one in sources),
            given.get(SMEAR_SINK.name, False),
            make_smearing(given.get("smear", NO_SMEARING), others),
            momenta_up_to(given.get(MOMENTA.name, 0), lattice),
            given.get(SOLVER.name, defaults.WALL_SOLVER if normal else defaults.SOLVER),
            SolverParameters(
                given.get(TOLERANCE.name, defaults.TOLERANCE),
                given.get(ITERATION_LIMIT.name, ITERATIONS),
                given.get(METHOD.name, RELIABLE),
                given.get(INNER.name, defaults.INNER),
                given.get(LINKS.name),
                given.get(REDUCTION.name),
            ),
            given.get(TOGETHER.name, family.together if family else 1),
            given.get(PROPAGATORS.name, ""),
            given.get(DEFLATE.name, 0),
            given.get(STORED_MODES.name, ""),
            not given.keys() & {*names, *(one.name for one in WHICH)},
        )

    def of_ensemble(self, text: str) -> Quarks:
        """Return the first dynamical quarks of an ensemble, unless others are stated.

        Those of a doublet with two masses are not taken, because they mix.

        Parameters
        ----------
        text : str
            The dynamical quarks, as tables state them; empty if there are none.
        """
        if not (self.unstated and text):
            return self
        first = DynamicalQuarks.several(text)[0]
        if first.is_doublet:
            return self
        numbers = dict(first.mass)
        kappa, mu = numbers.pop(KAPPA.name, None), numbers.pop(MUS.name, 0.0)
        if first.is_massive:
            massive = QuarkMasses(first.operator, **numbers)
            own: dict[str, Any] = {"massive": massive, "solver": defaults.WALL_SOLVER}
        else:
            own = {"kappas": (kappa,), "mus": (mu,), "parameters": tuple(numbers.items())}
        return replace(
            self, **own, angles=first.angles, imaginary_mu=first.imaginary_mu, unstated=False
        )

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
        own = {"kappa": _listed(self.kappas), **twisted}
        if self.massive:
            own = self.massive.header
        return {
            **own,
            **{name: f"{value:g}" for name, value in self.parameters},
            "boundary": f"{','.join(f'{one:g}' for one in self.angles)} (angles in units of pi)",
            **dense,
            "sources": " ".join(self.label(one) for one in self.sources),
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
        return tuple(Quark(*one) for one in product(self.kappas, self.mus))


def _listed(numbers: Sequence[float]) -> str:
    return ",".join(f"{one:g}" for one in numbers)

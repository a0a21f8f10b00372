"""Kernels in Python: their source files, arguments and compile-time variants."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.devices import source as sources
from gauge_mc.errors import GaugeError
from gauge_mc.quoting import shortened
from gauge_mc.registry import nearest

REAL_BYTES = {"single": 4, "double": 8}
"""Bytes of a real number, by precision."""


class CachedHash:
    """Base class of keys that compute their hash once, since every launch looks them up."""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Not `astuple`, which copies all that the values contain.
        return hash(tuple(getattr(self, field.name) for field in fields(self)))  # type: ignore[arg-type]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the hash, which differs between processes."""
        return {name: value for name, value in vars(self).items() if name != "_hash"}


@dataclass(frozen=True)
class Choice(CachedHash):
    """A compile-time choice, such as the group SU(3) or the Wilson action."""

    kind: str
    """Kind of the choice, such as ``group``; see `gauge_mc.devices.source.choice_of`."""
    name: str
    """Name of the choice among those of its kind, such as ``su3``."""
    header: Path
    """The C++ header that declares it."""
    definitions: tuple[tuple[str, str], ...]
    """Names and values of the macros that select the choice."""
    needs_registers: bool = False
    """Whether kernels need more registers of a GPU than the launch bounds of the group allow."""
    launch_bounds: tuple[int, int] | None = None
    """Threads per block and minimum number of resident blocks per multiprocessor of a GPU, for
    kernels that need other bounds than the usual ones.
    """
    usual_bounds: tuple[tuple[str, tuple[int, int]], ...] = ()
    """Usual launch bounds on a GPU by precision, which the group has."""

    __hash__ = CachedHash.__hash__

    @classmethod
    def of(cls, kind: str, name: str, header: str | Path, cpp: str, **more: int) -> Choice:
        """Return the choice of a C++ class."""
        path = sources.source_file(header)
        macro = kind.upper()
        values = {macro: cpp, f"{macro}_HEADER": f'"{path}"', **more}
        return cls(kind, name, path, tuple((key, str(value)) for key, value in values.items()))


@dataclass(frozen=True)
class Variant(CachedHash):
    """The compile-time parameters of a kernel."""

    precision: str
    """A key of `REAL_BYTES`."""
    choices: tuple[Choice, ...] = ()
    """At most one of each kind."""
    lanes: int = 1
    """Number of sites in a SIMD register; 1 on a GPU."""
    large: bool = False
    """Whether packets are numbered with 64 bits instead of 32 (GPU)."""
    strict: bool = False
    """Whether all machines compute the same bits."""

    __hash__ = CachedHash.__hash__

    @property
    def definitions(self) -> list[str]:
        """The compiler options that select this variant."""
        values = {
            "REAL_BYTES": str(REAL_BYTES[self.precision]),
            "LANES": str(self.lanes),
            "LARGE": str(int(self.large)),
            "STRICT": str(int(self.strict)),
            **{key: value for choice in self.choices for key, value in choice.definitions},
        }
        return [f"-D{key}={value}" for key, value in values.items()]

    def __str__(self) -> str:
        """Name the variant, for the user and for the table of tuned launch bounds."""
        return " ".join([*filter(None, (choice.name for choice in self.choices)), self.precision])


ANY_VARIANT = Variant("double")
"""The variant of kernels that depend neither on a choice nor on the precision."""


@dataclass(frozen=True)
class Kernel(CachedHash):
    """A kernel, which its source file declares.

    Raises
    ------
    GaugeError
        If there is no such source file.
    """

    name: str
    """The name of its function and of its source file."""
    folder: Path | None = None
    """Folder of the source file; by default ``cuda_src/kernels`` here or in an extension."""

    structures: ClassVar[tuple[str, ...]] = (sources.ARGUMENTS,)
    """Names of the structures that the source file declares for Python."""

    __hash__ = CachedHash.__hash__

    def __post_init__(self) -> None:
        if not self.source.is_file():
            stems = [path.stem for path in self.source.parent.glob("*.cu")]
            raise GaugeError(
                f"There is no kernel '{self.name}', because {self.source} does not exist"
                f"{nearest(self.name, stems)}"
            )

    @cached_property
    def source(self) -> Path:
        """The source file."""
        file = f"{self.name}.cu"
        return self.folder / file if self.folder else sources.source_file(f"kernels/{file}")

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of choices that the kernel depends on."""
        kinds = {sources.choice_of(path) for path in sources.included((self.source,))}
        return frozenset(kinds - {"", "real_bytes"})  # every kernel depends on the precision

    @cached_property
    def sums(self) -> bool:
        """Whether the kernel computes sums, which it stores in its argument ``sums``."""
        return self.takes("sums")

    @cached_property
    def wide(self) -> bool:
        """Whether the values that it sums may have any size; see `gauge_mc.fields.sums.LEVELS`."""
        return "WIDE_SUM_KERNEL(" in self.source.read_text(encoding="utf-8")

    @cached_property
    def of_links(self) -> bool:
        """Whether a thread of a GPU works on links in one direction of both sites of a slot."""
        return "LINK_KERNEL(" in self.source.read_text(encoding="utf-8")

    @cached_property
    def shared(self) -> bool:
        """Whether threads of a GPU share the work on a site, as its argument ``shares`` says."""
        return self.takes("shares")

    def takes(self, argument: str) -> bool:
        """Return whether the kernel has an argument of this name."""
        return any(
            member.name == argument for member in sources.members(sources.ARGUMENTS, (self.source,))
        )

    def constant(self, name: str) -> int:
        """Return the value of a ``constexpr int`` in the source file."""
        return sources.constants(self.source)[name]

    def narrowed(self, variant: Variant) -> Variant:
        """Return the variant without the choices on which this kernel does not depend.

        Raises
        ------
        TypeError
            If the variant lacks a choice that the kernel depends on.
        """
        return _narrowed(self, variant)

    def arguments(self, variant: Variant, **values: Any) -> ctypes.Structure:
        """Return the structure of arguments, filled with values that are given by name.

        Raises
        ------
        TypeError
            If an argument is missing or unknown, or has the wrong type.
        """
        return _arguments(self, variant)(**values)

    def part(self, name: str, variant: Variant) -> type[sources.DeclaredStructure]:
        """Return the ctypes class of a nested structure, such as ``ACTION::Coefficients``."""
        return sources.structure(name, self.roots(variant))

    def translation_unit(self, variant: Variant, *checked: str) -> str:
        """Return the C++ code to compile: the kernel, and assertions on its arguments' layout.

        Parameters
        ----------
        variant : Variant
            The compile-time parameters of the kernel.
        checked : str
            Names of further structures whose layout is checked.

        Raises
        ------
        GaugeError
            If the kernel stores to the site of a neighbour.
        """
        return _translation_unit(self, variant, checked)

    def digest(self, variant: Variant) -> bytes:
        """Return a hash of all source files that the compiled kernel depends on."""
        launch = sources.source_folder() / "arch"
        return sources.digest_of(
            [*sources.included(self.roots(variant)), *sorted(launch.glob("*.h"))]
        )

    def roots(self, variant: Variant) -> tuple[Path, ...]:
        """Return the files that may contain declarations, the kernel's own source last."""
        choices = self.narrowed(variant).choices
        return (*(choice.header for choice in choices), self.source)


@dataclass(frozen=True)
class Library(Kernel):
    """Code that is compiled like a kernel, but has functions of its own and no arguments."""

    structures: ClassVar[tuple[str, ...]] = ()

    __hash__ = CachedHash.__hash__


@cache
def _translation_unit(kernel: Kernel, variant: Variant, checked: tuple[str, ...]) -> str:
    """See `Kernel.translation_unit`; cached like the declarations that it is made of."""
    for path in sources.included(kernel.roots(variant)):
        foreign = not any(
            folder in path.parents for folder in sources.source_folders()
        )  # which tests look at
        if (path == kernel.source or foreign) and (statement := sources.store_elsewhere(path)):
            raise GaugeError(
                f"The kernel '{kernel.name}' stores to the site of a neighbour ({path}: "
                f"'{shortened(statement)}'), which is wrong where the sites of a register have "
                "neighbours in other lanes: store to the kernel's own site, and load from the "
                "neighbours instead."
            )
    roots, names = kernel.roots(variant), (*kernel.structures, *checked)
    lines = [
        sources.TYPE_CHECKS,
        f'#include "{kernel.source}"',
        *dict.fromkeys(line for name in names for line in sources.assertions(name, roots)),
    ]
    return "\n".join(lines) + "\n"


@cache
def _narrowed(kernel: Kernel, variant: Variant) -> Variant:
    """See `Kernel.narrowed`; cached, because the search would slow down small lattices."""
    choices = tuple(choice for choice in variant.choices if choice.kind in kernel.kinds)
    lacking = kernel.kinds - {choice.kind for choice in choices}
    if lacking:
        raise TypeError(f"The kernel {kernel.name} needs a choice of {', '.join(lacking)}.")
    return replace(variant, choices=choices)


@cache
def _arguments(kernel: Kernel, variant: Variant) -> type[sources.DeclaredStructure]:
    """Return the structure of the arguments of a variant of a kernel."""
    return sources.structure(sources.ARGUMENTS, kernel.roots(variant))

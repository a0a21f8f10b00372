"""Kernels as Python sees them: a source file, its arguments, and what it is compiled for."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gauge_mc.devices.source import (
    Member,
    assertions,
    constants,
    digest_of,
    included,
    members,
    source_folder,
    structure,
)

SELECTING_HEADERS = {
    "group": "group/group.h",
    "action": "action/action.h",
    "random": "random/random.h",
}
"""Headers that include what a variant chooses. A kernel that includes one depends on the choice."""

REAL_BYTES = {"single": 4, "double": 8}
"""Bytes of a real number by precision."""

ARGUMENTS = "Arguments"
"""The structure of arguments that every kernel declares."""


@dataclass(frozen=True)
class Choice:
    """One thing of a kind that kernels are compiled for, such as a group.

    Attributes
    ----------
    kind : str
        A key of `SELECTING_HEADERS`.
    name : str
    header : Path
        The C++ header that declares it.
    definitions : tuple of (str, str)
        Macros that the header's users need, and their values.
    """

    kind: str
    name: str
    header: Path
    definitions: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, kind: str, name: str, header: str | Path, cpp: str, **more: int) -> Choice:
        """Choose a C++ class by its header, relative to ``cuda_src`` or absolute."""
        path = source_folder() / header
        macro = kind.upper()
        values = {macro: cpp, f"{macro}_HEADER": f'"{path}"', **more}
        return cls(kind, name, path, tuple((key, str(value)) for key, value in values.items()))


@dataclass(frozen=True)
class Variant:
    """What a kernel is compiled for.

    Attributes
    ----------
    precision : str
        A key of `REAL_BYTES`.
    choices : tuple of Choice
        At most one of each kind.
    lanes : int
        Sites in a SIMD register; 1 on a GPU.
    large : bool
        Whether packet numbers need 64 bits (GPU).
    """

    precision: str
    choices: tuple[Choice, ...] = ()
    lanes: int = 1
    large: bool = False

    @property
    def definitions(self) -> list[str]:
        """The compiler's options that select this variant."""
        values = {
            "REAL_BYTES": str(REAL_BYTES[self.precision]),
            "LANES": str(self.lanes),
            "LARGE": str(int(self.large)),
            **{key: value for choice in self.choices for key, value in choice.definitions},
        }
        return [f"-D{key}={value}" for key, value in values.items()]

    def __str__(self) -> str:
        """Name the variant for people and for tables of tuned bounds."""
        return " ".join([*(choice.name for choice in self.choices), self.precision])


@dataclass(frozen=True)
class Kernel:
    """A kernel, declared by its source.

    Attributes
    ----------
    name : str
        The name of its function and of its source file.
    folder : Path, optional
        Where the source is; by default ``cuda_src/kernels``.
    """

    name: str
    folder: Path | None = None

    @property
    def source(self) -> Path:
        """The source file."""
        return (self.folder or source_folder() / "kernels") / f"{self.name}.cu"

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of choices that the kernel depends on."""
        names = {source_folder() / header: kind for kind, header in SELECTING_HEADERS.items()}
        return frozenset(names[path] for path in included((self.source,)) if path in names)

    @cached_property
    def sums(self) -> bool:
        """Whether the kernel computes sums, which it stores at its argument ``sums``."""
        return any(member.name == "sums" for member in members(ARGUMENTS, (self.source,)))

    def constant(self, name: str) -> int:
        """Return a ``constexpr int`` of the source file."""
        return constants(self.source)[name]

    def narrowed(self, variant: Variant) -> Variant:
        """Return a variant without the choices that make no difference to this kernel.

        Raises
        ------
        TypeError
            If the variant lacks a choice that the kernel depends on.
        """
        choices = tuple(choice for choice in variant.choices if choice.kind in self.kinds)
        lacking = self.kinds - {choice.kind for choice in choices}
        if lacking:
            raise TypeError(f"The kernel {self.name} needs a choice of {', '.join(lacking)}.")
        return Variant(variant.precision, choices, variant.lanes, variant.large)

    def arguments(self, variant: Variant, **values: Any) -> ctypes.Structure:
        """Fill the structure of arguments, all by name.

        Raises
        ------
        TypeError
            If an argument is missing or unknown, or has the wrong type.
        """
        roots = self._roots(variant)
        wanted = members(ARGUMENTS, roots)
        names = {member.name for member in wanted}
        if names != values.keys():
            missing = ", ".join(sorted(names - values.keys())) or "none"
            unknown = ", ".join(sorted(values.keys() - names)) or "none"
            raise TypeError(
                f"Arguments of the kernel {self.name}: missing {missing}, unknown {unknown}."
            )
        made = structure(ARGUMENTS, roots)()
        for member in wanted:
            value = values[member.name]
            if not _fill(made, member, value):
                extents = "".join(f"[{extent}]" for extent in member.extents)
                raise TypeError(
                    f"The argument {member.name} of the kernel {self.name} is {value!r}, which is "
                    f"not a value of type {member.cpp}{extents}."
                )
        return made

    def part(self, name: str, variant: Variant) -> type[ctypes.Structure]:
        """Return the class of a structure among the arguments, such as ``ACTION::Coefficients``."""
        return structure(name, self._roots(variant))

    def translation_unit(self, variant: Variant, *checked: str) -> str:
        """Return the C++ text to compile: the kernel, and assertions on what Python read of it.

        Parameters
        ----------
        variant : Variant
        checked : str
            Structures to check besides the arguments.
        """
        roots = self._roots(variant)
        lines = [
            "#include <cstddef>",
            "#include <type_traits>",
            f'#include "{self.source}"',
            *dict.fromkeys(self._assertions(roots, (ARGUMENTS, *checked))),
        ]
        return "\n".join(lines) + "\n"

    def _assertions(self, roots: tuple[Path, ...], names: tuple[str, ...]) -> Iterator[str]:
        for name in names:
            yield from assertions(name, roots)

    def digest(self, variant: Variant) -> bytes:
        """Return a hash of all source files that the compiled kernel depends on."""
        launch = source_folder() / "arch"
        return digest_of([*included(self._roots(variant)), *sorted(launch.glob("*.h"))])

    def _roots(self, variant: Variant) -> tuple[Path, ...]:
        """Return the files to look for declarations in, the kernel's own source last."""
        choices = self.narrowed(variant).choices
        return (*(choice.header for choice in choices), self.source)


def _fill(made: ctypes.Structure, member: Member, value: object) -> bool:
    """Set a member; return whether it can hold the value."""
    if isinstance(value, tuple) and len(value) != member.elements:
        return False
    try:
        setattr(made, member.name, value)
    except (TypeError, RuntimeError):
        return False
    # A number that is too large for its type would lose its upper bits. A pointer to 0 reads None.
    return not isinstance(value, int) or (getattr(made, member.name) or 0) == value

"""Kernel sources: their location, their includes, and declarations shared with Python.

A kernel declares its arguments and constants once, in C++. This module reads the declarations from
the source, so that Python can fill the structure by name. Every layout that was read is also turned
into assertions, which the compiler checks (see `gauge_mc.devices.kernels`). A declaration that was
misread therefore fails the build.
"""

from __future__ import annotations

import ast
import ctypes
import hashlib
import numbers
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock, RLock
from typing import Any, ClassVar, TypeVar

from gauge_mc.errors import GaugeError

SCALARS = {
    "int": ctypes.c_int,
    "unsigned": ctypes.c_uint32,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "long long": ctypes.c_longlong,
    "unsigned long long": ctypes.c_ulonglong,
}
"""C++ types of numbers, and the corresponding ctypes."""

DECLARATOR = r"([A-Za-z_]\w*)((?:\[\w+\])*)\s*"
"""Pattern that matches the name of a member and its array extents."""

LAYOUT = "layout of"
"""First words of the messages of `assertions`."""

TYPE_CHECKS = """#include <cstddef>
template <class A, class B> constexpr bool same_type = false;
template <class A> constexpr bool same_type<A, A> = true;
template <class T> constexpr bool pointer_or_class = __is_class(T);
template <class T> constexpr bool pointer_or_class<T*> = true;
template <class T> constexpr bool pointer_or_class<T* const> = true;
template <class T, std::size_t N> constexpr bool pointer_or_class<T[N]> = pointer_or_class<T>;"""
"""C++ code that `assertions` need; <type_traits> would take a tenth of a small kernel's time."""

ARGUMENTS = "Arguments"
"""Name of the structure of arguments that every kernel declares."""

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


AnyStructure = TypeVar("AnyStructure", bound=ctypes.Structure)


@cache
def source_folder() -> Path:
    """Return the folder ``cuda_src``: inside the installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "cuda_src"
    return inside if inside.is_dir() else package.parent / "cuda_src"


@cache
def source_folders() -> tuple[Path, ...]:
    """Return ``cuda_src`` and the folders of that name of the extensions, in order of search."""
    extensions = Path(__file__).resolve().parent.parent / "extensions"
    return (source_folder(), *sorted(extensions.glob("*/cuda_src")))


@cache
def source_file(name: str | Path) -> Path:
    """Return a file of ``cuda_src`` or of an extension, given its path within that folder.

    A name that no folder has stands for a file of ``cuda_src``, which does not exist.
    """
    paths = [folder / name for folder in source_folders()]
    return next((path for path in paths if path.is_file()), paths[0])


CHOICE = re.compile(r"compiler's(?:\n//)? command line[^:\n]*:\n//\s+([A-Z_]+?)(?:_HEADER)?\b")
"""The words in the first comment of a header with which it declares a compile-time choice, before
the macro that makes it.
"""


@cache
def choice_of(header: Path) -> str:
    """Return the kind of choice that a header declares, such as ``group``; or an empty text."""
    match = CHOICE.search(_text(header))
    return match[1].lower() if match else ""


@cache
def included(roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return source files and the files that they include, each once, the innermost first."""
    paths: dict[Path, None] = {}

    def visit(path: Path) -> None:
        if path in paths:
            return
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', _text(path), re.MULTILINE):
            beside = path.parent / name
            inner = beside if beside.is_file() else source_file(name)
            if inner.is_file():
                visit(inner)
        paths[path] = None

    for root in roots:
        visit(root)
    return tuple(paths)


def digest_of(paths: Sequence[Path]) -> bytes:
    """Return a hash of the names and contents of files, in the given order."""
    digest = hashlib.sha256()
    for path in paths:
        status = path.stat()
        content = _content(path, status.st_mtime_ns, status.st_size)
        digest.update(path.name.encode() + b"\0" + content + b"\0")
    return digest.digest()


@cache
def _content(path: Path, changed: int, size: int) -> bytes:
    """Return the content of a file, cached until the file changes.

    Each file is part of the hashes of many kernels.
    """
    return path.read_bytes()


@cache
def constants(path: Path, *parameters: tuple[str, int]) -> dict[str, int]:
    """Return the values of the ``constexpr int`` declarations of a source file, by name.

    A declaration whose value cannot be evaluated (see `_evaluate`) is omitted.
    """
    values: dict[str, int] = dict(parameters)
    for declaration in re.findall(r"\bconstexpr\s+int\s+([^;]+);", _code(path)):
        for name, value in re.findall(r"(\w+)\s*=\s*([^,]+)", declaration):
            try:
                values[name] = _evaluate(value.rpartition("::")[2].strip(), values)
            except (SyntaxError, LookupError):
                continue
    return values


@dataclass(frozen=True)
class StructMember:
    """A member of a C++ structure."""

    name: str
    """Name of the member."""
    cpp: str
    """Type in C++, without array extents."""
    extents: tuple[int, ...]
    """Array extents; empty for a single value."""
    kind: type[Any]
    """Type in ctypes, including the array extents."""

    @property
    def elements(self) -> int:
        """Number of elements of an array, or of members of a structure; otherwise 1."""
        return self.extents[0] if self.extents else len(getattr(self.kind, "_fields_", "1"))


@cache
def members(name: str, roots: tuple[Path, ...]) -> tuple[StructMember, ...]:
    """Return the members of a structure that source files, or files they include, declare.

    A member is a number, a structure, an array of these, or a pointer. A type that is neither a
    number nor a plain structure, such as a field, is treated as a single pointer.
    """
    body = _body(name, roots)
    if body is None:
        raise GaugeError(f"No structure {name} is declared in {roots[-1]}.")
    sizes = {key: value for path in included(roots) for key, value in constants(path).items()}
    layout = []
    for statement in body:
        first, *declarators = statement.removeprefix("const ").split(",")
        match = re.fullmatch(rf"([^=]+?)\s*([\s*])\s*{DECLARATOR}", first)
        words = [re.fullmatch(rf"\s*(\*?)\s*{DECLARATOR}", x) for x in declarators]
        if not match or not all(words):
            raise GaugeError(f"The member '{statement}' of {name} in {roots[-1]} cannot be read.")
        cpp = match[1].strip()
        declared = [match.groups()[1:], *(word.groups() for word in words if word)]
        for star, member, brackets in declared:
            pointer = star.strip()
            kind = ctypes.c_void_p if pointer else _kind(cpp, roots)
            extents = tuple(_evaluate(n, sizes) for n in re.findall(r"\[(\w+)\]", brackets))
            for extent in reversed(extents):
                kind = kind * extent
            layout.append(StructMember(member, cpp + pointer, extents, kind))
    return tuple(layout)


class DeclaredStructure(ctypes.Structure):
    """Base class of the structures that C++ declares.

    Values are given for all members, by name or in their order, and so are those of structures
    inside, for which tuples may stand.

    Raises
    ------
    TypeError
        If a member is missing or unknown, or cannot hold its value.
    """

    __slots__ = ()  # so that no other attribute can be set
    declared: ClassVar[dict[str, StructMember]]
    """The members by name."""
    scalars: ClassVar[tuple[Callable[[Any], object], Callable[[Any], object]]]
    """Functions that get all members that are integers or addresses, and all values for them."""
    arrays: ClassVar[tuple[str, ...]]
    """Names of the members that are arrays."""
    owner: ClassVar[str]
    """Name of the structure in messages."""
    word: ClassVar[str] = "member"
    """Word for a member in messages."""

    def __init__(self, *values: Any, **named: Any) -> None:
        count = len(values) + len(named)
        if values:
            named.update(zip(self.declared, values, strict=False))
        if count != len(self.declared) or named.keys() != self.declared.keys():
            raise self._misnamed(named, values)
        try:
            super().__init__(**named)
        except (TypeError, OverflowError, RuntimeError):
            raise self._misfit(named) from None
        # ctypes drops the upper bits of numbers that are too large, and accepts short tuples.
        stored, passed = self.scalars  # of all scalars at once, because that is faster
        suspect = self.arrays if stored(self) == passed(named) else self.declared
        for name in suspect:
            if not _holds(getattr(self, name), named[name]):
                raise self._misfit({name: named[name]})

    def _misnamed(self, named: Mapping[str, Any], values: Sequence[Any]) -> TypeError:
        missing = ", ".join(sorted(self.declared.keys() - named.keys())) or "none"
        surplus = [repr(value) for value in values[len(self.declared) :]]
        unknown = ", ".join([*sorted(named.keys() - self.declared.keys()), *surplus]) or "none"
        return TypeError(
            f"{self.word.capitalize()}s of the {self.owner}: missing {missing}, unknown {unknown}."
        )

    def _misfit(self, named: Mapping[str, Any]) -> TypeError:
        """Return an error about the first value that its member cannot hold."""
        for name, value in named.items():
            empty = zero(type(self))
            try:
                setattr(empty, name, value)
            except (TypeError, OverflowError, RuntimeError):
                break
            if not _holds(getattr(empty, name), value):
                break
        member = self.declared[name]
        extents = "".join(f"[{extent}]" for extent in member.extents)
        return TypeError(
            f"The {self.word} {name} of the {self.owner} is {value!r}, which is not a value of "
            f"type {member.cpp}{extents}."
        )


def zero(kind: type[AnyStructure]) -> AnyStructure:
    """Return a structure whose members are all 0."""
    return kind.from_buffer_copy(bytes(ctypes.sizeof(kind)))


def _holds(stored: Any, value: Any) -> bool:
    """Return whether a member holds a value that ctypes has stored in it."""
    if isinstance(stored, ctypes.Array):
        return tuple(stored) == value or (
            len(stored) == len(value) and all(map(_holds, stored, value))
        )
    if isinstance(value, int | numbers.Integral):
        return bool((stored or 0) == value)  # a null pointer reads None
    return True  # a structure has checked the values of its members, and numbers are stored


@cache
def structure(name: str, roots: tuple[Path, ...]) -> type[DeclaredStructure]:
    """Return the ctypes class that corresponds to a C++ structure.

    The same declaration always gives the same class, whichever source includes it.
    """
    home = _home(name, roots)
    with _MAKING_STRUCTURES:
        return _structure(name, roots if home in (None, roots[-1]) else (home,))


_MAKING_STRUCTURES = RLock()
"""Held while a class is made: threads that compile side by side must not make it twice."""


@cache
def _structure(name: str, roots: tuple[Path, ...]) -> type[DeclaredStructure]:
    declared, plain = (
        {member.name: member for member in members(name, roots)},
        name.rpartition("::")[2],
    )
    exact = ctypes.c_float, ctypes.c_double, ctypes.Structure, ctypes.Array
    scalars = [key for key, x in declared.items() if not issubclass(x.kind, exact)]
    scalars = scalars or [*declared]
    values = {
        "__slots__": (),
        "_fields_": [(x.name, x.kind) for x in declared.values()],
        "declared": declared,
        "scalars": (operator.attrgetter(*scalars), operator.itemgetter(*scalars)),
        "arrays": tuple(key for key, x in declared.items() if x.extents),
        "owner": f"structure {name} in {_home(name, roots)}",
    }
    if plain == ARGUMENTS:
        values |= {"owner": f"kernel {roots[-1].stem}", "word": "argument"}
    return type(plain, (DeclaredStructure,), values)


def assertions(name: str, roots: tuple[Path, ...]) -> Iterator[str]:
    """Yield C++ assertions that a structure has the layout that `structure` assumes.

    The message of each assertion is `LAYOUT`, followed by the name of the member.
    """
    kind, plain = structure(name, roots), name.rpartition("::")[2]
    for member in members(name, roots):
        field, declared = getattr(kind, member.name), f"decltype({name}::{member.name})"
        message = f"{LAYOUT} {plain}::{member.name}"
        if member.cpp in SCALARS:
            extents = "".join(f"[{extent}]" for extent in member.extents)
            right = f"same_type<{declared}, {member.cpp}{extents}>"
            yield f'static_assert({right}, "{message}");'
        elif not member.cpp.endswith("*") and _body(member.cpp, roots) is not None:
            yield from assertions(member.cpp, roots)
        else:
            yield f'static_assert(pointer_or_class<{declared}>, "{message}");'
        place = f"offsetof({name}, {member.name}) == {field.offset}"
        size = f"sizeof({name}::{member.name}) == {field.size}"
        yield f'static_assert({place} && {size}, "{message}");'
    # This comes last, so that the first failed assertion names a misread member if there is one.
    yield f'static_assert(sizeof({name}) == {ctypes.sizeof(kind)}, "{LAYOUT} {plain}");'


STORE = re.compile(r"\b(?:store\w*|write)\s*(?:<[^;(){}]*>)?\s*\(")
"""Pattern of the beginning of a call that stores what belongs to a site."""


@cache
def store_elsewhere(path: Path) -> str | None:
    """Return a statement that stores to the place of a neighbour; None if there is none.

    Such a place is one to which the packets of an `Offset` are added, in the call or where a name
    is given to it. A register holds sites whose neighbours may be in other lanes, which a load
    takes from the `Offset`, and a store does not.
    """
    elsewhere: set[str] = set()
    for statement in re.split(r"[;{}]", _code(path)):
        for call in STORE.finditer(statement):
            rest = statement[call.end() :]
            outside_brackets = _outside_brackets(rest[: _closing(rest)])
            if ".packets" in outside_brackets or elsewhere & set(
                re.findall(r"\w+", outside_brackets)
            ):
                return " ".join(statement.split())
        named = re.split(r"(\w+)\s*([-+]?)=(?!=)", _outside_brackets(statement))
        for name, added, value in zip(named[1::3], named[2::3], named[3::3], strict=True):
            if ".packets" in value or elsewhere & set(re.findall(r"\w+", value)):
                elsewhere.add(name)
            elif not added:
                elsewhere.discard(name)
    return None


def _closing(text: str) -> int:
    """Return the place of the bracket that closes one before the text, or the end."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return place
    return len(text)


def _outside_brackets(text: str) -> str:
    """Return a text without what is between brackets in it."""
    while (shorter := re.sub(r"\([^()]*\)", " ", text)) != text:
        text = shorter
    return text


def _kind(cpp: str, roots: tuple[Path, ...]) -> type[Any]:
    if cpp in SCALARS:
        return SCALARS[cpp]
    if _body(cpp, roots) is None:
        return ctypes.c_void_p
    return structure(cpp, roots)


@cache
def _home(name: str, roots: tuple[Path, ...]) -> Path | None:
    """Return the file that declares a structure, or None; the roots are searched first."""
    pattern = re.compile(rf"\bstruct\s+{re.escape(name.rpartition('::')[2])}\s*\{{")
    paths = (*roots, *included(roots))
    return next((path for path in paths if pattern.search(_code(path))), None)


@cache
def _body(name: str, roots: tuple[Path, ...]) -> tuple[str, ...] | None:
    """Return the data members' declarations, or None if there is no such plain structure."""
    home = _home(name, roots)
    if home is None:
        return None
    begin = rf"\bstruct\s+{re.escape(name.rpartition('::')[2])}\s*\{{"
    return tuple(_statements(re.split(begin, _code(home), maxsplit=1)[1]))


def _statements(code: str) -> Iterator[str]:
    """Yield the declarations of data members up to the closing brace of a structure."""
    depth, statement = 0, ""
    for character in code:
        if character == "}" and depth == 0:
            return
        depth += (character == "{") - (character == "}")
        if (depth == 0 and character == ";") or (depth == 0 and character == "}"):
            text = " ".join(statement.split())
            skipped = re.match(r"(static|typedef|using|template|struct|INLINE)\b", text)
            if text and not skipped and "(" not in text:
                yield text
            statement = ""
        else:
            statement += character


def _evaluate(text: str, names: dict[str, int]) -> int:
    """Evaluate a C++ expression of integers, known constants, +, -, * and /."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                return names[name]
            case ast.BinOp(left=left, op=op, right=right):
                return int(OPERATORS[type(op)](value(left), value(right)))
        raise LookupError(text)

    with _PARSING:
        parsed = ast.parse(text.replace("/", "//"), mode="eval")
    return value(parsed.body)


_PARSING = Lock()
"""Held while an expression is parsed: before Python 3.11.8 two threads may not do so side by side
(https://github.com/python/cpython/issues/106905)."""


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _code(path: Path) -> str:
    """Return a source file without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", _text(path), flags=re.DOTALL)

"""Gauge groups.

Each group is an instance of `Group` that is registered in `GROUPS`, and a C++ header in
``cuda_src/group``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

from gauge_mc.devices.kernels import Choice
from gauge_mc.devices.source import constants, source_folder
from gauge_mc.registry import Registry

SPECIAL_UNITARY = Choice.of("law", "", "update/special_unitary.h", "SpecialUnitary")
"""The law of SU(N), in its SU(2) subgroups."""


class Group:
    """A gauge group with the storage format of its links."""

    name: str
    """Name on the command line, such as ``su3``."""
    label: str
    """Name in messages and plots, such as ``SU(3)``."""
    header: str
    """C++ header of the group, relative to ``cuda_src``."""
    cpp: str
    """Name of the class in the header."""
    parameters: Mapping[str, int] = MappingProxyType({})
    """Values of the template parameters of the class, by name; empty for a class that is none."""
    beta: float
    """Default of beta = 2 N / g^2, a value in the scaling region of the Wilson action with a
    lattice spacing of about 0.1 fm.
    """
    launch_bounds: Mapping[str, tuple[int, int]]
    """Default launch bounds of the updates on a GPU, by precision: threads per block and minimum
    number of resident blocks per multiprocessor. They were the fastest with ``gauge-mc bench
    --tune``.
    """
    law: Choice = SPECIAL_UNITARY
    """Compile-time selection of the distribution of a link, given all others: how the heatbath
    draws a link, and its mean (``cuda_src/update/law.h``). By default that of SU(N).
    """
    sqrt_t0: ClassVar[tuple[float, float, str] | None] = None
    """sqrt(t0) in fm, where t0^2 <E(t0)> = 0.3, with its error and its source; None if unknown."""

    @cached_property
    def _constants(self) -> dict[str, int]:
        return constants(source_folder() / self.header, *self.parameters.items())

    @property
    def colours(self) -> int:
        """Number of colours N, from the C++ header."""
        return self._constants["N"]

    @property
    def components(self) -> int:
        """Number of stored reals per link, from the C++ header."""
        return self._constants["COMPONENTS"]

    @property
    def reals(self) -> int:
        """Number of reals per link without padding, which checkpoints contain."""
        return min(self.components, 2 * self.colours**2)

    @property
    def matrix_components(self) -> int:
        """Number of stored reals per general matrix, from the C++ header."""
        return self._constants["MATRIX_COMPONENTS"]

    @property
    def algebra_components(self) -> int:
        """Number of stored reals per element of the Lie algebra, from the C++ header."""
        return self._constants["ALGEBRA_COMPONENTS"]

    @property
    def dimension(self) -> int:
        """Number of generators; N^2 - 1 for SU(N)."""
        return self.colours**2 - 1

    @property
    def largest_mean_beta(self) -> float:
        """Largest beta for which `law` computes the mean of a link.

        For SU(3) the integral is then below e^72, which single precision can represent. For SU(N)
        the singular values of beta / (2 N) times the sum of staples are then below 4 N.
        """
        return 4 / 3 * max(self.colours, 3) ** 2

    @property
    def choices(self) -> tuple[Choice, Choice]:
        """The compile-time selections of this group and of its law."""
        return self.choice, self.law

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of this group."""
        choice = Choice.of("group", self.name, self.header, self.cpp)
        return replace(choice, usual_bounds=tuple(self.launch_bounds.items()))

    def __repr__(self) -> str:
        return self.label


class GeneralGroup(Group):
    """SU(N) by the code for any N, which stores all entries of a link; see ``group/sun.h``.

    The default couplings of the groups are those at which 2 N^2 / (beta P), the 't Hooft coupling
    improved by the average plaquette P, is 5.05(2) as for SU(3) at beta = 6, with P measured on
    8^4. At an equal improved coupling, lattice spacings in units of the string tension differ by
    little (Lucini and Teper, hep-lat/0103027).

    Parameters
    ----------
    colours : int
        Number of colours N >= 2.
    beta : float
        See `Group`.
    """

    header = "group/sun.h"

    def __init__(self, colours: int, beta: float) -> None:
        self.name = special_unitary(colours)
        self.label = f"SU({colours})"
        self.cpp = f"SUN<{colours}>"
        self.parameters = {"COLOURS": colours}
        self.beta = beta
        # Two blocks leave each thread all registers that it can have, for one matrix as a whole.
        self.launch_bounds = {"single": (128, 3 if colours < 5 else 2), "double": (128, 2)}


GROUPS: Registry[Group] = Registry("group", __name__, Group)


def special_unitary(colours: int) -> str:
    """Return the name of SU(N) with N = `colours`.

    Groups are told apart by their names, because others may have as many colours. Files that state
    only N are, by this rule, those of SU(N).
    """
    return f"su{colours}"


class SU2(Group):
    """The group SU(2), ``a0 + i a.sigma``; see ``cuda_src/group/su2.h``."""

    name = "su2"
    label = "SU(2)"
    header = "group/su2.h"
    cpp = "SU2"
    beta = 2.5
    launch_bounds: Mapping[str, tuple[int, int]] = MappingProxyType(
        {"single": (256, 4), "double": (128, 4)}
    )


GROUPS.register(SU2())


class SU3(Group):
    """The group SU(3); see ``cuda_src/group/su3.h``."""

    name = "su3"
    label = "SU(3)"
    header = "group/su3.h"
    cpp = "SU3"
    beta = 6.0
    launch_bounds: Mapping[str, tuple[int, int]] = MappingProxyType(
        {"single": (128, 5), "double": (128, 3)}
    )
    # Tc r0 = 0.7457(45) and Tc sqrt(t0) = 0.2489(14), with their errors added in quadrature.
    sqrt_t0: ClassVar[tuple[float, float, str] | None] = (
        0.1669,
        0.0014,
        "r0 = 0.5 fm, with sqrt(t0)/r0 = 0.3338(28) from arXiv:1503.05652",
    )


GROUPS.register(SU3())


class SU4(GeneralGroup):
    """The group SU(4); see ``cuda_src/group/sun.h``."""

    def __init__(self) -> None:
        super().__init__(4, beta=11.0)


GROUPS.register(SU4())


class SU5(GeneralGroup):
    """The group SU(5); see ``cuda_src/group/sun.h``."""

    def __init__(self) -> None:
        super().__init__(5, beta=17.4)


GROUPS.register(SU5())


class SU6(GeneralGroup):
    """The group SU(6); see ``cuda_src/group/sun.h``."""

    def __init__(self) -> None:
        super().__init__(6, beta=25.3)


GROUPS.register(SU6())


class SU7(GeneralGroup):
    """The group SU(7); see ``cuda_src/group/sun.h``."""

    def __init__(self) -> None:
        super().__init__(7, beta=34.6)


GROUPS.register(SU7())


class SU8(GeneralGroup):
    """The group SU(8); see ``cuda_src/group/sun.h``."""

    def __init__(self) -> None:
        super().__init__(8, beta=45.4)


GROUPS.register(SU8())

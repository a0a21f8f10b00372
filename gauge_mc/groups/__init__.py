"""Gauge groups, one module each, named after the group.

A group is a C++ header in ``cuda_src/group`` and an instance of `Group`, registered in `GROUPS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Choice
from gauge_mc.devices.source import constants, source_folder
from gauge_mc.errors import GaugeError
from gauge_mc.registry import Registry

Components = NDArray[np.floating[Any]]
Matrices = NDArray[np.complexfloating[Any, Any]]


class Group(ABC):
    """A gauge group: how its links are stored, and what its kernels are called.

    Attributes
    ----------
    name : str
        Such as ``su3``.
    label : str
        For people: ``SU(3)``.
    header : str
        Its C++ header, relative to ``cuda_src``.
    cpp : str
        Its class there.
    beta : float
        A typical coupling 2 N / g^2 of the Wilson action, the default of a run.
    launch_bounds : mapping of str to (int, int)
        By precision: the threads of a block and the least number of resident blocks per
        multiprocessor that were fastest for the updates on a GPU.
    """

    name: str
    label: str
    header: str
    cpp: str
    beta: float
    launch_bounds: Mapping[str, tuple[int, int]]

    @cached_property
    def _constants(self) -> dict[str, int]:
        return constants(source_folder() / self.header)

    @property
    def colours(self) -> int:
        """The number of colours N, from the C++ header."""
        return self._constants["N"]

    @property
    def components(self) -> int:
        """The number of stored reals of a link, from the C++ header."""
        return self._constants["COMPONENTS"]

    @abstractmethod
    def matrices(self, components: Components) -> NDArray[np.complex128]:
        """Return the matrices of links.

        Parameters
        ----------
        components : ndarray, shape (..., components)
            Stored reals.

        Returns
        -------
        ndarray, shape (..., N, N), complex128
        """

    @abstractmethod
    def stored(self, matrices: Matrices) -> NDArray[np.float64]:
        """Return the stored reals of links, the inverse of `matrices`."""

    @cached_property
    def choice(self) -> Choice:
        """What kernels are compiled for to work on this group."""
        return Choice.of("group", self.name, self.header, self.cpp)

    def __repr__(self) -> str:
        return self.label


GROUPS: Registry[Group] = Registry("group", __name__)


def group_of(colours: int) -> Group:
    """Return the group SU(N) with so many colours.

    Raises
    ------
    GaugeError
        If there is none.
    """
    for group in GROUPS.values():
        if group.colours == colours:
            return group
    raise GaugeError(f"There is no group with {colours} colours.")

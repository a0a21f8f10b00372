"""Parts of updates, to be timed one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class UpdatePart:
    """A part of an update, for ``gauge-mc bench --hmc``.

    Attributes
    ----------
    name : str
        Its name in the table of results.
    call : callable
        Function that carries out a given number of them.
    calls : int
        Number of times that it is done in an update.
    essential : bool
        Whether it is a force or a solver.
    iterations : int
        Iterations of solvers in one of them.
    chains : int
        Number of chains for which it is done at once.
    """

    name: str
    call: Callable[[int], object]
    calls: int = 1
    essential: bool = False
    iterations: int = 0
    chains: int = 1

    @classmethod
    def of(
        cls,
        name: str,
        call: Callable[[], object],
        calls: int = 1,
        essential: bool = False,
        iterations: int = 0,
        chains: int = 1,
    ) -> UpdatePart:
        """Return a part that a call without arguments does once."""

        def repeat(times: int) -> None:
            for _ in range(times):
                call()

        return cls(name, repeat, calls, essential, iterations, chains)

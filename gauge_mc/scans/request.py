"""What is asked for of a scan, by the names of options or in a run card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gauge_mc.run.lock import RunLock
from gauge_mc.run.parameters import Execution, Parameters
from gauge_mc.scans.grid import parse_betas, parse_lattices
from gauge_mc.scans.scan import Scan, default_path


@dataclass(frozen=True)
class Request:
    """What options and a run card ask for.

    Attributes
    ----------
    values : mapping of str to object
        What all runs share, by the names of `Parameters`.
    execution : Execution
    path : Path
        The directory of the scan.
    beta, lattice : str, optional
        The grid, as on the command line.
    chains : int, optional
        Chains at each point.
    """

    values: Mapping[str, object]
    execution: Execution
    path: Path
    beta: str | None
    lattice: str | None
    chains: int | None

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Request:
        """Make it from values by the names of options.

        Raises
        ------
        UsageError
            If a value is of the wrong kind or not allowed.
        """
        shared = {name: value for name, value in values.items() if name not in ("beta", "lattice")}
        execution = Execution.from_values(values)
        path = Path(execution.output or default_path(Parameters.from_values(shared)))
        chains: Any = values.get("chains")
        return cls(
            shared, execution, path, _words(values, "beta"), _words(values, "lattice"), chains
        )

    def scan(self) -> Scan:
        """Return the scan that is asked for: new, or continued and perhaps enlarged.

        Raises
        ------
        UsageError
            If it is not possible, or differs from the one in the directory.
        """
        if Scan(self.path, Parameters()).exists():
            there = Scan.read(self.path).continued(self.values)
        else:
            there = Scan(self.path, Parameters.from_values(self.values))
        return there.enlarged(
            parse_betas(self.beta) if self.beta is not None else None,
            parse_lattices(self.lattice) if self.lattice is not None else None,
            self.chains,
        )

    @contextmanager
    def locked(self) -> Iterator[Scan]:
        """Write the scan that is asked for, and lock it while this is entered.

        Raises
        ------
        UsageError
            As of `scan`; also if there is something else at the path.
        GaugeError
            If another process is at work on the scan.
        """
        self.scan().make()
        with closing(RunLock(self.scan().lock)) as lock:
            lock.record(lock.holder)
            scan = self.scan()
            scan.write()
            yield scan


def _words(values: Mapping[str, object], name: str) -> str | None:
    """Return an entry as it is on the command line; a run card may have a number or a list."""
    value = values.get(name)
    if value is None:
        return None
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)

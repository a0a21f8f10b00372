"""The cores of this machine: how many a process may use, what they share, and whose they are."""

from __future__ import annotations

import math
import os
import socket
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gauge_mc.devices.host import allowed_cores, can_bind

CPUS = Path("/sys/devices/system/cpu")
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")

PIN = "GAUGE_MC_PIN"
"""Environment variable: with the value 0, threads are not bound to cores."""


@dataclass(frozen=True)
class Core:
    """A logical core, on which one thread can run."""

    number: int
    """Number by which Linux knows it."""
    physical: tuple[int, int]
    """Package and physical core, which hyperthreads share."""
    node: int
    """NUMA node, whose memory is nearest."""
    cache: int
    """The lowest number of a core that shares the last-level cache."""
    cache_bytes: int
    """Size of the last-level cache; 0 if it is unknown."""
    own_cache_bytes: int
    """Size of the level before it; 0 if it is unknown."""

    @property
    def place(self) -> tuple[object, ...]:
        """The key by which cores are sorted, so that neighbours share as much as possible."""
        return self.node, self.cache, self.physical, self.number


def core_quota(groups: Path = GROUPS, membership: Path = OWN_GROUPS) -> float:
    """Return the number of cores whose time the control groups grant; infinity without a limit."""
    quota = math.inf
    for line in _text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            quota = min(quota, *map(_quota, _chain(groups, path)))
        elif "cpu" in controllers.split(","):
            for mounted in (groups / controllers, groups / "cpu"):
                quota = min(quota, *map(_old_quota, _chain(mounted, path)))
    return quota


def usable_cores() -> int:
    """Return how many threads can run at a time: the allowed cores, or fewer if a quota is set."""
    return max(1, math.floor(min(len(allowed_cores()), core_quota() + 0.5)))


def _chain(root: Path, path: str) -> Iterable[Path]:
    """Yield a group's folder and those above it, each of which can have a limit."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return (root.joinpath(*parts[:n]) for n in range(len(parts), -1, -1))


def _quota(group: Path) -> float:
    words = _text(group / "cpu.max").split()
    return _ratio(words[0], words[1]) if len(words) == 2 else math.inf


def _old_quota(group: Path) -> float:
    return _ratio(_text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float:
    try:
        ratio = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):  # "max", or no such file
        return math.inf
    return ratio if ratio > 0 else math.inf


def read_cores(numbers: Iterable[int], root: Path = CPUS) -> list[Core]:
    """Return the topology of cores; what the system does not state counts as unshared."""
    return [_read_core(number, root / f"cpu{number}") for number in sorted(numbers)]


def _read_core(number: int, folder: Path) -> Core:
    package = _number(folder / "topology/physical_package_id", 0)
    physical = package, _number(folder / "topology/core_id", number)
    nodes = (path.name.removeprefix("node") for path in folder.glob("node[0-9]*"))
    caches = {}
    for path in folder.glob("cache/index*"):
        if _text(path / "type").strip() in ("Unified", "Data"):
            sharing = numbers_in(_text(path / "shared_cpu_list")) or [number]
            caches[_number(path / "level", 0)] = sharing[0], _bytes(_text(path / "size"))
    *_, inner, last = (0, 0), (number, 0), *(caches[level] for level in sorted(caches))
    node = min(map(int, nodes), default=0)
    return Core(number, physical, node, last[0], last[1], inner[1] if len(caches) > 1 else 0)


def numbers_in(text: str) -> list[int]:
    """Return the numbers of a list as Linux writes it, such as ``0-3,8``."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def cache_bytes(cores: Sequence[Core]) -> int:
    """Return the size of all last-level caches that some cores use."""
    return sum({core.cache: core.cache_bytes for core in cores}.values())


def in_order(cores: Sequence[Core]) -> list[Core]:
    """Return cores in the order in which a team takes them.

    Threads are placed on different physical cores first, and then close together: in the NUMA node
    with the most physical cores, one last-level cache after the other.
    """
    count: dict[tuple[str, int], set[tuple[int, int]]] = defaultdict(set)
    siblings: dict[tuple[int, int], list[int]] = defaultdict(list)
    for core in cores:
        count["node", core.node].add(core.physical)
        count["cache", core.cache].add(core.physical)
        siblings[core.physical].append(core.number)

    def rank(core: Core) -> tuple[int, ...]:
        turn = sorted(siblings[core.physical]).index(core.number)
        node, cache = len(count["node", core.node]), len(count["cache", core.cache])
        return turn, -node, core.node, -cache, core.cache, core.number

    return sorted(cores, key=rank)


class Claim:
    """Cores that no other team of this machine is bound to, until it is released.

    A claim is the address of a local socket for each core. The system frees it when the process
    ends, however it ends.

    Parameters
    ----------
    cores : sequence of Core
        Cores to choose from, in order of preference.
    count : int
        Number of cores to claim.

    Attributes
    ----------
    cores : list of Core
        The cores in this order; empty if fewer than `count` were free.
    """

    def __init__(self, cores: Sequence[Core], count: int) -> None:
        self._sockets: list[socket.socket] = []
        self.cores: list[Core] = []
        for core in cores:
            if len(self.cores) == count:
                break
            if self._take(core.number):
                self.cores.append(core)
        if len(self.cores) < count:
            self.release()

    def release(self) -> None:
        """Let others claim the cores."""
        for lock in self._sockets:
            lock.close()
        self._sockets, self.cores = [], []

    def _take(self, number: int) -> bool:
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0gauge-mc/core/{number}")
        except OSError:
            lock.close()
            return False
        self._sockets.append(lock)
        return True


def claim_cores(threads: int) -> Claim:
    """Claim cores for a number of threads; none if the system should move the threads.

    It should if there is a single thread, if there are more threads than cores, if a quota grants
    less time than the cores have (others then use the same cores), if the system binds no threads,
    or if `PIN` is 0.
    """
    cores = allowed_cores()
    bound = can_bind() and os.environ.get(PIN) != "0" and 1 < threads <= len(cores) <= core_quota()
    return Claim(in_order(read_cores(cores)) if bound else [], threads)


@cache
def topology() -> tuple[tuple[int, int], ...]:
    """Return the NUMA node and the cache of every core of this process, which timings depend on."""
    return tuple((core.node, core.cache) for core in read_cores(allowed_cores()))


@cache
def team_caches(threads: int) -> tuple[int, int]:
    """Return the sizes of the last-level caches, and of the caches before them, of a team."""
    cores = in_order(read_cores(allowed_cores()))[:threads]
    private = {core.physical: core.own_cache_bytes for core in cores}
    return cache_bytes(cores), sum(private.values())


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text()
    return ""


def _number(path: Path, default: int) -> int:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else default


def _bytes(text: str) -> int:
    text = text.strip()
    factor = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:], 1)
    digits = text.rstrip("KMG")
    return int(digits) * factor if digits.isdecimal() else 0

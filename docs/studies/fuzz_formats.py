"""Read mutated configuration files and count the outcomes.

    python docs/studies/fuzz_formats.py --cases 100000

Each case mutates a small valid file in one to four places. The reader must return links in the
group or raise a GaugeError of one sentence. Any other exception, more than ten seconds, or more
than 256 MiB of memory is a failure, and the file is kept. Links that differ from those of the
valid file are counted. With a checksum, they are possible only if the mutated header matches them.
Without one (openQCD, or ILDG if its checksum record is missing), the change may be too small to be
noticed.
"""

import argparse
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.configurations.writing import write_configuration
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from tests.faults.mutations import mutate
from tests.formats.format_samples import HELD, sample

SIZES = ((2, 2, 2, 2), (4, 2, 2, 2), (2, 2, 2, 4))


def good_files(folder: Path) -> list[tuple[str, np.ndarray, bytes]]:
    """Return the valid files to mutate: some made by the tests, some written by gauge-mc."""
    files = []
    for (format, group, precision), size in ((case, size) for case in HELD for size in SIZES):
        links, data = sample(format, group, precision, size)
        files.append((format, links, data))
        path = folder / "written"
        fields = {"beta": "6.0", "remark": "none"}
        write_configuration(path, links, Lattice(*size), group, precision, format, fields)
        files.append((format, links, path.read_bytes()))
    return files


def judge(path: Path, good: np.ndarray) -> str:
    """Read a file and return the outcome in words."""
    try:
        configuration = open_configuration(path)
        links = np.stack(list(configuration.slices()))
    except GaugeError as error:
        text = str(error)
        if "\n" in text or str(path) not in text or len(text) > 600 or "memory" in text:
            raise AssertionError(f"not a proper error message: {text!r}") from error
        return "refused"
    n = links.shape[-1]
    if not np.allclose(links @ links.conj().swapaxes(-1, -2), np.eye(n), atol=1e-3):
        raise AssertionError("links outside the group")
    if links.shape == good.shape and np.array_equal(links, good):
        return "right links"
    kind = "with a valid checksum" if configuration.header.checksum else "without a checksum"
    near = links.shape == good.shape and np.abs(links - good).max() < 1e-4
    return f"{'nearly right' if near else 'other'} links {kind}"


def main() -> int:
    """Run all cases; return 1 if any fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "fuzz_formats")
    options = parser.parse_args()
    warnings.simplefilter("error")
    draw = random.Random(options.seed)
    counts: Counter[tuple[str, str]] = Counter()
    failures, slowest, began = 0, 0.0, time.monotonic()

    def too_slow(*_: object) -> None:
        raise AssertionError("not finished after ten seconds")

    signal.signal(signal.SIGALRM, too_slow)
    with tempfile.TemporaryDirectory() as folder:
        files = good_files(Path(folder))
        path = Path(folder) / "file"
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, resource.RLIM_INFINITY))
        for number in range(options.cases):
            format, good, data = draw.choice(files)
            mutant = bytearray(data)
            for _ in range(draw.choice((1, 1, 2, 4))):
                mutate(mutant, draw)
            path.write_bytes(mutant)
            start = time.monotonic()
            signal.alarm(10)
            try:
                counts[format, judge(path, good)] += 1
            except Exception as error:
                failures += 1
                options.keep.mkdir(exist_ok=True)
                (options.keep / f"{format}-{number}").write_bytes(mutant)
                print(f"{format} {number}: {type(error).__name__}: {error}")
            finally:
                signal.alarm(0)
            slowest = max(slowest, time.monotonic() - start)
    for (format, outcome), count in sorted(counts.items()):
        print(f"{format:8s} {outcome:30s} {count:8d}")
    print(
        f"{options.cases} cases in {time.monotonic() - began:.0f} s, slowest {slowest:.3f} s, "
        f"{failures} failures"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

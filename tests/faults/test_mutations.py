"""Kinds of files that are read, mutated: they are right, or refused in one sentence.

Every bit of tables and of kept kernels is tried in their own tests.
"""

import random
import time
import traceback
from pathlib import Path

import numpy as np
import pytest

from gauge_mc.configurations.reading import open_configuration
from gauge_mc.devices import cache
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.cuda.kernel import Bounds, TunedBounds
from gauge_mc.devices.kernels import Kernel, Variant
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.fields.file_links import TOLERANCE
from gauge_mc.files.table import write_table
from gauge_mc.groups import GROUPS
from gauge_mc.inspection import verify
from gauge_mc.quoting import sentence
from gauge_mc.run import checkpoint, lock
from gauge_mc.run.chain import Chain
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates import sweep as plans
from tests.faults.mutations import mutated
from tests.files import test_extremes as extremes
from tests.formats.format_samples import HELD, sample
from tests.patience import PATIENCE

pytestmark = pytest.mark.kernels

OF_OTHERS = Path(__file__).resolve().parents[1] / "formats" / "of_others"
SU2 = Variant("single", (GROUPS["su2"].choice,))
SMALL = Parameters(lattice=Lattice(2, 2, 2, 2), measure=("plaquette",))


class Kind:
    """A kind of file: how it is made, and how it is read.

    `read` returns None, or what must be equal to what the intact file gives.
    """

    def __init__(self, folder):
        self.path = folder / "file"
        self.make()

    def make(self):
        raise NotImplementedError

    def read(self):
        raise NotImplementedError

    def same(self, found, expected):
        return found == expected


def everything_of(case):
    """A kind of file of `tests.files.test_extremes`, read by everything that reads it."""

    class OfCase(Kind):
        def __init__(self, folder):
            self.case = case(folder)
            self.path = self.case.path

        def read(self):
            refusals = []
            for read in self.case.readers():
                try:
                    read()
                except GaugeError as error:
                    refusals.append(error)
                except OSError:
                    pass  # the command line makes a sentence of it
            if refusals:
                raise refusals[0]

    return OfCase


class Record(Kind):
    """The record of a holder in a lock file, which is never refused."""

    def make(self):
        with Run(self.path.with_name("run")).locked() as held:
            self.path.write_bytes(held._path.read_bytes())

    def read(self):
        str(lock._in_use(self.path, lock.read_holder(self.path)))


class Checkpoint(Kind):
    def make(self):
        self.device = CpuDevice(threads=1)
        Chain.begin(SMALL, self.device).save(self.path)

    def read(self):
        checkpoint.read_state(self.path)
        chain, state = Chain.resume(SMALL, self.device, self.path)
        return state, chain.field.to_numpy().tobytes()


class ScanTable(Kind):
    def make(self):
        rows = [(2.3, "4x4x4x4", 1, 10, 0.5, 0.1, 0.5), (2.4, "4x4x4x4", 1, 10, 0.6, 0.1, 0.5)]
        names = ("beta", "lattice", "chains", "sweeps", "plaquette", "plaquette_error", "tau")
        write_table(self.path, {"group": "su2"}, names, rows)

    def read(self):
        verify._points(self.path)


class LaunchBounds(Kind):
    def make(self):
        TunedBounds("GPU").keep(Kernel("copy"), SU2, Bounds(256, 2))
        (self.path,) = cache.cache_folder().glob("bounds-*.json")

    def read(self):
        found = TunedBounds("GPU")._found
        if not found:
            raise GaugeError("It is tuned again.")
        return found


class RememberedPlan(Kind):
    def make(self):
        self.path = cache.make_private_folder() / f"plan-{24 * '0'}.json"
        plans._write(self.path, "key", plans.Plan(2, None))

    def read(self):
        found = plans._read(self.path, "key", 2, [])
        if found is None:
            raise GaugeError("It is found again.")
        return found


class OpenQcd(Kind):
    """A format without a checksum: what is accepted need not be what was written."""

    def make(self):
        Field.hot(Lattice(4, 4, 4, 4), "su3", "double", CpuDevice(threads=1)).save(
            self.path, "openqcd"
        )

    def read(self):
        for links in open_configuration(self.path).slices():
            assert np.isfinite(links).all()


def configuration(case):
    class ConfigurationFile(Kind):
        def make(self):
            self.path.write_bytes(sample(*case, (2, 2, 2, 2))[1])

        def read(self):
            found = open_configuration(self.path)
            links = np.stack(list(found.slices()))
            # A mutated header may describe the same links on another lattice.
            return np.sort(links.ravel()).tobytes() if found.header.checksum else None

    return ConfigurationFile


def nersc_file(case):
    class NerscFile(configuration(case)):
        """Its checksum is a sum, in which a byte can make up for another one.

        The averages and the unitarity of the links then leave changes below the tolerance of the
        latter, which is for links that other programs have computed in single precision.
        """

        def read(self):
            found = open_configuration(self.path)
            return np.stack(list(found.slices())).ravel()

        def same(self, found, expected):
            return np.abs(found - expected).max() < 2 * TOLERANCE

    return NerscFile


class OddExtents(nersc_file(("nersc", "su2", "double"))):
    """Links that NumPy reads, because no device can have them."""

    def make(self):
        self.path.write_bytes((OF_OTHERS / "odd_3x2x2x3.nersc").read_bytes())


KINDS = {
    "card": everything_of(extremes.Card),
    "run.toml": everything_of(extremes.RunToml),
    "scan.toml": everything_of(extremes.ScanToml),
    "lock": Record,
    "checkpoint": Checkpoint,
    "scan.csv": ScanTable,
    "result of a fit": everything_of(extremes.FitResult),
    "result of bench": everything_of(extremes.BenchResult),
    "launch bounds": LaunchBounds,
    "plan of sweeps": RememberedPlan,
    "openqcd": OpenQcd,
    "odd extents": OddExtents,
    **{
        "-".join(case): (nersc_file if case[0] == "nersc" else configuration)(case) for case in HELD
    },
}


def attack(kind, cases, seed):
    """Read a file in many mutations; return what went wrong, and how many were refused."""
    good = kind.path.read_bytes()
    expected = kind.read()
    draw, wrong, refused = random.Random(seed), [], 0
    for number in range(cases):
        data = mutated(good, draw)
        kind.path.write_bytes(data)
        began = time.monotonic()
        try:
            found = kind.read()
            if found is not None and expected is not None and not kind.same(found, expected):
                wrong.append((number, "it was accepted, with another content"))
        except GaugeError as error:
            refused += 1
            text = sentence(str(error))
            if not text.isprintable() or len(text) > 2000 or not text.endswith((".", "?")):
                wrong.append((number, text))
        except Exception:
            wrong.append((number, traceback.format_exc()[-1500:]))
        if time.monotonic() - began > PATIENCE:
            wrong.append((number, "it took too long"))
    kind.path.write_bytes(good)
    return wrong, refused


@pytest.mark.first_quick
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "cases",
    [20, pytest.param(60, marks=pytest.mark.slow), pytest.param(8000, marks=pytest.mark.faults)],
    ids=["few", "some", "many"],
)
def test_mutated_files_are_right_or_refused(tmp_path, monkeypatch, name, cases):
    if "bounds" in name or "plan" in name:
        monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    kind = KINDS[name](tmp_path)
    wrong, refused = attack(kind, cases, len(name))
    print(f"{name}: {cases} mutations, {refused} refused, {len(wrong)} wrong")
    assert not wrong, f"{len(wrong)} of {cases}; the first: {wrong[0][0]}: {wrong[0][1]}"
    assert refused or name == "lock"

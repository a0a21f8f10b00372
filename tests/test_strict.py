"""Strict runs have the same bits with every compiler, register width, number of threads and GPU.

The digests of links and tables are stored, so that every machine on which the tests run is compared
with all others.
"""

import json
import random as shuffling
import shutil
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from gauge_mc import Field, Lattice, Random, heatbath, measure, overrelax
from gauge_mc.actions import Coupling
from gauge_mc.devices.cpu import compiler
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.host import GEOMETRY
from gauge_mc.devices.source import constants
from gauge_mc.domain.lattice import PLAQUETTES
from gauge_mc.domain.slab import sum_shift
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import AlgebraField
from gauge_mc.fields.gradient_flow import field_strength
from gauge_mc.fields.sums import lattice_sums
from gauge_mc.files.table import read_table
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.updates.monomials.gauge import GaugeMonomial
from tests.calls import call
from tests.conftest import WARNING, gpus
from tests.samples import all_of
from tests.strictness import BETA, LATTICE, digest, measurements, table_digests, trajectory_digests
from tests.updates.moving import gauge_kick

PINS = json.loads((Path(__file__).parent / "pins" / "strict.json").read_text())
OF_EXTENSIONS = all_of("PINS", "strictness")
STORED = PINS["sweeps"]
"""Digests by group, precision, action and generator; see `found`."""

OF_TABLES = {
    case: {key: one for pins in (PINS, *OF_EXTENSIONS) for key, one in pins["tables"][case].items()}
    for case in PINS["tables"]
}
OF_TRAJECTORIES = {
    case: one for pins in (PINS, *OF_EXTENSIONS) for case, one in pins["trajectories"].items()
}
"""Digests of `table_digests` by group, precision and option, and of `trajectory_digests` by group,
precision, action and generator.
"""

SMEARED = {"r_max": 2, "t_max": 2, "smear": ["hyp:0.75,0.6,0.3x1"], "temporal": "hyp2"}
TABLES = {"plaquette": {}, "polyakov": {}, "polyakov-representations": {}, "wilson-loops": SMEARED}
QUICK = "su3 single wilson philox"
SMALL, SWEEPS = "su2 single", "su2 single wilson philox"
SLOW, EVERY = pytest.mark.slow, pytest.mark.every
KINDS = {"sweeps": STORED, "tables": OF_TABLES, "trajectories": OF_TRAJECTORIES}
SLOW_TRAJECTORIES = {*chain(*all_of("SLOW", "strictness"))}


def of_trajectory(case):
    return [] if case == SWEEPS else [SLOW] if case in SLOW_TRAJECTORIES else [EVERY]


def cases(kind, marks, *how):
    """All stored cases of a kind, with marks that a function of the case returns."""
    return [pytest.param(kind, case, *how, marks=marks(case)) for case in KINDS[kind]]


CPU = ("--backend", "cpu", "--threads", "2", "--quiet")


def found(device, case):
    """Return the digests of links after some sweeps, and of tables of these."""
    group, precision, action, rng = case.split()
    device.strict = True
    more = {"u0": 0.9} if action == "luscher-weisz" else {}
    field = Field.hot(Lattice(8, 8, 8, 8), group, precision, device, 5)
    random = Random.for_field(field, rng, 7)
    heatbath(field, BETA[group], random, sweeps=20, action=action, **more)
    overrelax(field, sweeps=20, action=action, **more)
    result = {"links": digest(field.to_numpy())}
    for name, options in TABLES.items() if action == "wilson" and rng == "philox" else ():
        columns = measure(field, name, progress=False, **options).columns.values()
        numbers = [one.astype(float) for one in columns if one.dtype.kind in "if"]
        assert np.isfinite(numbers).all()
        result[name] = digest(np.concatenate(numbers))
    return result


def digests(device, kind, case):
    of_kind = {"tables": table_digests, "trajectories": trajectory_digests}
    result = of_kind[kind](device, *case.split()) if kind in of_kind else found(device, case)
    device.close()
    return result


@pytest.fixture(params=["g++", "clang++", pytest.param("zig.py", marks=pytest.mark.every)])
def compiled_by(request, monkeypatch):
    """Each compiler that is installed, but for the one that all other tests have."""
    name = request.param
    command = shutil.which(name) or next((c for c in compiler.candidates() if name in c), None)
    if command is None:
        pytest.skip(f"{name} is not installed")
    if without_name(compiler.version(command)) == without_name(compiler.find_compiler().version):
        pytest.skip("all other tests have this compiler")
    monkeypatch.setenv("CXX", command)
    compiler.find_compiler.cache_clear()
    yield
    compiler.find_compiler.cache_clear()


def without_name(version):
    """Return what a compiler says of its version, without the name by which it is called."""
    return version.partition(" ")[2]


def test_kernels_compile_without_warnings(compiled_by, tmp_path, monkeypatch):
    """Those of the headers that all kernels include; other compilers warn of other things."""
    monkeypatch.setenv("GAUGE_MC_CACHE", str(tmp_path))
    device = CpuDevice(1, 4)
    device.strict = True
    measure(Field.cold(Lattice(4, 4, 4, 4), "su2", "single", device), "plaquette")
    device.close()
    reports = [one.read_text() for one in tmp_path.glob("*.txt")]
    assert reports
    assert [match[0] for text in reports for match in WARNING.finditer(text)] == []


@pytest.mark.parametrize(
    ("kind", "case", "lanes", "threads"),
    [
        *(pytest.param("sweeps", QUICK, *how, marks=SLOW) for how in ((16, 1), (4, 2), (1, 1))),
        *(pytest.param("sweeps", QUICK, n, 1, marks=[SLOW, EVERY]) for n in (2, 8)),
        *cases("sweeps", lambda case: [SLOW] + [EVERY] * ("wilson philox" not in case), 16, 2),
        pytest.param("tables", SMALL, 4, 2, marks=SLOW),
        *cases("tables", lambda case: EVERY, 16, 1),
        pytest.param("tables", SMALL, 1, 1, marks=EVERY),
        *cases("trajectories", lambda case: [SLOW, *of_trajectory(case)], 16, 1),
        pytest.param("trajectories", SWEEPS, 4, 2, marks=SLOW),
        pytest.param("trajectories", SWEEPS, 1, 1, marks=[SLOW, EVERY]),
    ],
)
def test_links_and_tables_are_those_of_all_machines(kind, case, lanes, threads):
    """The stored digests of tables are those of all observables that declare themselves strict."""
    assert digests(CpuDevice(threads, lanes), kind, case) == KINDS[kind][case]


def test_all_strict_observables_have_digests():
    assert {name for name, _ in measurements()} == {
        one.split()[0] for one in OF_TABLES[SMALL] if one != "links"
    }


COMPARED = (QUICK, "su3 double wilson philox")
OF_COMPILERS = [
    *cases("sweeps", lambda case: SLOW if case in COMPARED else EVERY),
    *cases("tables", lambda case: SLOW if case == SMALL else EVERY),
    *cases("trajectories", lambda case: [SLOW, *of_trajectory(case)]),
]
OF_GPUS = [
    *cases("tables", lambda case: SLOW if case == SMALL else EVERY),
    *cases("trajectories", of_trajectory),
    pytest.param("sweeps", SWEEPS),
    *cases("sweeps", lambda case: SLOW if "wilson philox" in case else EVERY)[1:],
]


@pytest.mark.parametrize(("kind", "case"), OF_COMPILERS)
def test_compilers_agree(compiled_by, kind, case):
    assert digests(CpuDevice(2), kind, case) == KINDS[kind][case]


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "case"), OF_GPUS)
def test_gpus_agree_with_cpus(kind, case):
    assert digests(gpus().open(), kind, case) == KINDS[kind][case]


@pytest.mark.parametrize("extents", [(4, 4, 4, 8), (6, 2, 10, 4), (48, 48, 48, 96)])
def test_sums_of_rounded_values_do_not_depend_on_the_order(extents):
    lattice, largest = Lattice(*extents), constants(GEOMETRY)["LARGEST_SUMMAND"]
    shift = sum_shift(lattice)
    values = np.random.default_rng(1).uniform(0.5, 1.0, lattice.slice_sites) * largest
    rounded = (values + shift) - shift
    total = sum(rounded.tolist())
    shuffled = rounded.tolist()
    shuffling.Random(2).shuffle(shuffled)
    assert sum(shuffled) == total == rounded.sum()
    assert abs(total - values.sum()) <= 1e-12 * total
    # Values near 1 keep as many digits as the sum of a slice has.
    assert np.spacing(shift) <= 2.0**-52 * largest * 2 * lattice.slice_sites


def generated(folder, *more):
    words = ["--lattice=4x4x4x4", "--thermalize=2", "--separation=2", "--strict", "--start=hot"]
    out, code = call("generate", *words, *more, *CPU, "--output", folder)
    assert code == 0, out


@pytest.mark.slow
def test_a_strict_run_says_so_and_stays_strict(tmp_path):
    """In its record, headers and tables; when it goes on; and in what is measured or made again."""
    generated(tmp_path / "whole", "--configs=3")
    generated(tmp_path / "parts", "--configs=1")
    generated(tmp_path / "parts", "--configs=3")
    whole, parts = Run(tmp_path / "whole"), Run(tmp_path / "parts")
    assert whole.read()[0].strict
    for one in ("plaquette.csv", "polyakov.csv", "configs/0000008.lime"):
        assert (whole.path / one).read_bytes() == (parts.path / one).read_bytes()
    assert b"strict" in (whole.path / "configs" / "0000008.lime").read_bytes()
    assert call("measure", "plaquette", whole.path, *CPU[:-1])[1] == 0
    stored, along = (read_table(whole.path / f"plaquette{end}.csv") for end in ("_configs", ""))
    assert stored.header["measured in"] == "single precision, strictly"
    both = np.isin(along.columns["sweep"], stored.columns["sweep"])
    assert stored.columns["plaquette"].tolist() == along.columns["plaquette"][both].tolist()
    removed = whole.path / "configs" / "0000006.lime"
    before = removed.read_bytes()
    removed.unlink()
    assert call("regenerate", whole.path, "--at", "6", *CPU[:-1])[1] == 0
    assert removed.read_bytes() == before
    assert call("verify", whole.path)[1] == 0


@pytest.mark.slow
def test_strict_links_differ_from_usual_ones(tmp_path):
    generated(tmp_path / "strict", "--configs=1")
    words = ["--lattice=4x4x4x4", "--thermalize=2", "--separation=2", "--start=hot", "--configs=1"]
    assert call("generate", *words, *CPU, "--output", tmp_path / "usual")[1] == 0
    tables = [read_table(tmp_path / one / "plaquette.csv") for one in ("strict", "usual")]
    assert not np.array_equal(*(one.columns["plaquette"] for one in tables))


def test_names_of_directories_and_earlier_runs():
    assert Parameters(strict=True).name.endswith("_strict")
    stated = Parameters().fixed()
    del stated["strict"]
    assert Parameters().is_of(stated)
    assert not Parameters(strict=True).is_of(stated)
    with pytest.raises(UsageError, match="strict must be true or false"):
        Parameters.from_values({"strict": "yes"})


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [1, 16])
def test_flows_of_any_anisotropy_and_forces_of_any_coupling_are_finite(lanes):
    """Plaquettes times the squared anisotropy, and squares of forces, are above 1e6 at a site."""
    strict, usual = CpuDevice(1, lanes), CpuDevice(1, lanes)
    strict.strict = True
    both = [Field.hot(LATTICE, "su2", "double", one, 5) for one in (strict, usual)]
    flows = [field_strength(one, anisotropy=1e4).plaquette for one in both]
    assert flows[0] == pytest.approx(flows[1], rel=1e-12)
    forces = []
    for field in both:
        gauge = GaugeMonomial([Coupling.of(1e6)], field)
        momenta = AlgebraField.like(field)
        forces.append(gauge_kick(gauge, field, momenta, 0.01))
    assert float(forces[0].kinetic) == pytest.approx(float(forces[1].kinetic), rel=1e-12)
    assert forces[0].mean == pytest.approx(forces[1].mean, rel=1e-12)
    for device in (strict, usual):
        device.close()


def test_values_too_large_for_exact_sums_become_nan():
    """Links that are far from the group have plaquettes above 1024."""
    device = CpuDevice(1)
    device.strict = True
    lattice = Lattice(4, 4, 4, 4)
    field = Field.cold(lattice, "su3", "single", device)
    one = lattice_sums(field, PLAQUETTES.kernel, 2)
    assert one.tolist() == [9.0 * lattice.sites] * 2
    buffer = field.slabs[0].buffer
    links = device.read(buffer, 0, buffer.nbytes).view(np.float32)
    device.write(buffer, 0, 10 * links)
    assert np.isnan(lattice_sums(field, PLAQUETTES.kernel, 2)).all()
    device.close()

"""Batches: every run of a batch is bit-for-bit what it is alone."""

import dataclasses

import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.errors import GaugeError
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from tests.run.sessions import carry_out, carry_out_batch, stop_after, written

BETAS = {"su2": (2.2, 2.5, 2.5, 3.1, 0.4), "su3": (5.5, 6.0, 6.0, 7.3, 1.2)}


def members(group, **values):
    """Return the parameters of runs with different couplings, seeds, or both."""
    first = Parameters.from_values(
        {
            "group": group,
            "lattice": "8x4x6x2",
            "thermalize": 2,
            "configs": 2,
            "separation": 3,
            "heatbath": 2,
            "overrelax": 1,
            "measure": "plaquette,polyakov:2",
            **values,
        }
    )
    pairs = enumerate(BETAS[group], 7)
    return [dataclasses.replace(first, beta=beta, seed=seed) for seed, beta in pairs]


def alone(path, parameters, device):
    """Carry out every run by itself; return what they have written."""
    found = []
    for n, p in enumerate(parameters):
        run = Run(path / f"alone_{n}")
        carry_out(run, p, device)
        found.append(written(run.path))
    return found


def together(path, parameters, device, numbers=None, **options):
    """Carry out runs as a batch; return the reason for stopping."""
    chosen = range(len(parameters)) if numbers is None else numbers
    runs = [(Run(path / f"batch_{n}"), parameters[n]) for n in chosen]
    return carry_out_batch(runs, device, **options)[1]


def found_in(path, parameters):
    return [written(path / f"batch_{n}") for n in range(len(parameters))]


def assert_as_alone(path, parameters, device):
    """Carry out runs by themselves and as a batch, and compare what they write."""
    expected = alone(path, parameters, device)
    assert len({str(files) for files in expected}) == len(parameters)
    assert together(path, parameters, device) is None
    assert found_in(path, parameters) == expected


@pytest.mark.longer
@pytest.mark.parametrize(
    ("group", "precision", "start", "rng"),
    [
        ("su2", "single", "hot", "lcg"),
        ("su2", "single", "cold", "ranlux"),
        ("su3", "double", "hot", "philox"),
        *(
            pytest.param(group, precision, start, rng, marks=pytest.mark.slow)
            for group in BETAS
            for precision in ("single", "double")
            for start, rng in (("hot", "philox"), ("cold", "ranlux"), ("hot", "lcg"))
        ),
    ],
)
def test_runs_of_a_batch_write_what_each_writes_alone(
    tmp_path, best_device, group, precision, start, rng
):
    parameters = members(group, precision=precision, start=start, rng=rng)
    assert_as_alone(tmp_path, parameters, best_device)


@pytest.mark.longer
@pytest.mark.parametrize(
    "lattice", [pytest.param("2x2x2x4", marks=pytest.mark.slow), "4x4x4x2", "4x8x2x6"]
)
def test_lattices_of_any_shape_can_be_batched(tmp_path, best_device, lattice):
    parameters = members("su3", lattice=lattice, precision="double", format="nersc")
    assert_as_alone(tmp_path, parameters, best_device)


@pytest.mark.longer
@pytest.mark.parametrize("action", ["wilson", pytest.param("iwasaki", marks=pytest.mark.slow)])
def test_runs_of_a_batch_can_have_different_anisotropies(tmp_path, best_device, action):
    ratios = (2.0, 2.0, 3.5, 0.7, 1.5)
    kind = {"lattice": "8x4x6x4", "action": action, "measure": "plaquette,flow:3:to=0.1"}
    same = members("su3", precision="double", **kind)
    parameters = [
        dataclasses.replace(one, action=one.action.with_options(anisotropy=xi0))
        for one, xi0 in zip(same, ratios, strict=True)
    ]
    assert_as_alone(tmp_path, parameters, best_device)


@pytest.mark.slow
def test_every_observable_can_be_measured_in_a_batch(tmp_path, best_device):
    smear = "smear=ape:0.2x1:smear=stout:0.1,exclude=none:temporal=hyp2"
    smear += ":iterations=1,2:correlations"
    measure = f"plaquette:2,polyakov,wilson-loops:3:{smear}"
    measure += ",polyakov-correlators:2:multilevel=2,3"
    parameters = members("su3", lattice="4x6x8x4", precision="double", measure=measure)
    assert_as_alone(tmp_path, parameters, best_device)


@pytest.mark.longer
def test_a_batch_can_be_continued_with_another_packing(tmp_path, best_device):
    parameters = members("su3", precision="double", rng="ranlux")
    expected = alone(tmp_path, parameters, best_device)
    assert together(tmp_path, parameters, best_device, stop=stop_after(3)) == "enough"
    two = {"stop": stop_after(2)}
    assert together(tmp_path, parameters, best_device, [1, 4], **two) == "enough"
    assert together(tmp_path, parameters, best_device, [4, 1]) is None
    assert together(tmp_path, parameters, best_device, [0]) is None
    assert together(tmp_path, parameters, best_device, [3, 2]) is None
    assert found_in(tmp_path, parameters) == expected


@pytest.mark.longer
def test_runs_after_different_updates_are_refused(tmp_path, best_device):
    parameters = members("su3", precision="double")
    together(tmp_path, parameters, best_device, [0, 1], stop=stop_after(2))
    together(tmp_path, parameters, best_device, [2], stop=stop_after(3))
    with pytest.raises(GaugeError, match="continue the runs one by one"):
        together(tmp_path, parameters, best_device, [0, 1, 2])
    assert together(tmp_path, parameters, best_device, [0, 1]) is None


@pytest.mark.slow
def test_replicas_that_exceed_the_cache_are_updated_one_by_one(tmp_path, monkeypatch):
    device = CpuDevice(threads=2)
    parameters = members("su3", lattice="4x4x8x6", precision="double")
    expected = alone(tmp_path, parameters, device)
    for share in (0.4, 5):  # of the field in the cache: wavefronts in each, and two at a time
        monkeypatch.setattr(device, "cache_bytes", int(share * 4 * 4 * 8 * 6 * 4 * 96))
        together(tmp_path / str(share), parameters, device)
        assert found_in(tmp_path / str(share), parameters) == expected

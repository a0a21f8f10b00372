"""Low modes of the preconditioned operator and solutions with them, against dense matrices."""

import shutil

import numpy as np
import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UnreadableError, UsageError
from gauge_mc.extensions.quarks.hopping import Deflation
from gauge_mc.extensions.quarks.modes.mode_files import DEFLATED, ModePath, reduced_modes
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.operators.domain_wall import DomainWall
from gauge_mc.extensions.quarks.solvers import SolverParameters, solve
from gauge_mc.extensions.quarks.vectors import STORAGES, SpinorField
from gauge_mc.fields.field import Field
from tests.calls import forbid
from tests.domain.conftest import GPUS
from tests.extensions.quarks.links import check_divisions, field_of
from tests.extensions.quarks.reference import dirac as reference
from tests.reference.fields import random_field

LATTICE = Lattice(2, 4, 2, 4)
KAPPA = 0.22
PHASES = [1, 1, 1, -1]
TOLERANCE = 1e-10
NUMBER = 6


def links_of(group, seed=5):
    return random_field(LATTICE.extents, group, np.random.default_rng(seed))


def operator_on(links, devices, **parameters):
    return Wilson(field_of(links, devices), KAPPA, **parameters)


def even_sites(colours):
    sites = np.indices(LATTICE.extents[::-1]).sum(axis=0) % 2 == 0
    return np.repeat(sites.ravel(), 4 * colours)


def reduced(matrix, colours):
    """The matrix on the even sites when the odd sites are eliminated."""
    even = even_sites(colours)
    odd = ~even
    inner = np.linalg.solve(matrix[np.ix_(odd, odd)], matrix[np.ix_(odd, even)])
    return matrix[np.ix_(even, even)] - matrix[np.ix_(even, odd)] @ inner


@pytest.mark.longer
@pytest.mark.parametrize("parameters", [{}, {"csw": 1.0, "mu": 0.05}], ids=str)
def test_modes_and_solutions_of_dense_matrices(group, parameters, best_device, rng):
    """Fewer iterations lead to the same solution, in every precision."""
    links, n = links_of(group), int(group[2])
    matrix = reference.dense(links, KAPPA, PHASES, **parameters)
    exact = np.linalg.svd(reduced(matrix, n), compute_uv=False)[::-1] ** 2
    operator = operator_on(links, best_device, **parameters)
    low = reduced_modes(operator, NUMBER)
    assert np.abs(low.values - exact[:NUMBER]).max() < DEFLATED * exact[-1]
    flat = low.vectors.to_numpy().reshape(NUMBER, -1)
    assert not flat[:, ~even_sites(n)].any()
    assert np.abs(flat.conj() @ flat.T - np.eye(NUMBER)).max() < 1e-9
    sources = np.stack([reference.random_spinor(LATTICE.extents, n, rng) for _ in range(3)])
    sources[1] = 0
    b = SpinorField.from_numpy(operator.field, sources)
    solutions = np.linalg.solve(matrix, sources.reshape(3, -1).T).T
    for inner in STORAGES:
        request = SolverParameters(TOLERANCE, inner=inner)
        plain, found = (solve(operator, b, "cg", request, one) for one in (None, low))
        assert found.iterations < 0.85 * plain.iterations
        x = found.x.to_numpy().reshape(3, -1)
        rests = np.linalg.norm(sources.reshape(3, -1) - x @ matrix.T, axis=1)
        assert (rests <= 1.001 * TOLERANCE * np.linalg.norm(sources.reshape(3, -1), axis=1)).all()
        error = np.abs(x - solutions).max() / np.abs(solutions).max()
        assert error < TOLERANCE * np.linalg.cond(matrix)


@pytest.mark.slow
def test_modes_are_kept_for_their_links_and_parameters(tmp_path, best_device, capsys):
    operator = operator_on(links_of("su3"), best_device)
    low = reduced_modes(operator, 2, tmp_path)
    (path,) = tmp_path.iterdir()
    again = reduced_modes(operator, 2, tmp_path)
    assert [*tmp_path.iterdir()] == [path]
    np.testing.assert_array_equal(again.vectors.to_numpy(), low.vectors.to_numpy())
    np.testing.assert_array_equal(again.values, low.values)
    assert again.vectors.parities == low.vectors.parities == (0,)
    assert capsys.readouterr().err == ""
    others = (
        *(operator_on(links_of("su3"), best_device, csw=csw) for csw in (0.5, 0.7)),
        *(operator_on(links_of("su3"), best_device, mu=mu) for mu in (0.1, 0.2)),
        operator_on(links_of("su3"), best_device, boundary=1),
        operator_on(links_of("su3", 6), best_device),
    )
    for other in others:
        before = {*tmp_path.iterdir()}
        own = reduced_modes(other, 2, tmp_path)
        (new,) = {*tmp_path.iterdir()} - before
        shutil.copy(path, new)
        capsys.readouterr()
        found = reduced_modes(other, 2, tmp_path)
        assert "of other links or of another operator" in capsys.readouterr().err
        np.testing.assert_array_equal(found.vectors.to_numpy(), own.vectors.to_numpy())


@pytest.mark.slow
def test_modes_of_other_links_are_refused(best_device, rng):
    """Otherwise a solver would need more iterations, without a word."""
    one, other = (operator_on(links_of("su3", n), best_device) for n in (5, 6))
    b = SpinorField.from_numpy(one.field, reference.random_spinor(LATTICE.extents, 3, rng))
    low = reduced_modes(one, NUMBER)
    solve(one, b, "cg", SolverParameters(), low)
    with pytest.raises(GaugeError, match="The low modes are not those of this operator"):
        solve(other, b, "cg", SolverParameters(), low)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cpu-16", *GPUS])
def test_slabs_give_the_same_bytes(kind, rng):
    links = random_field((4, 4, 4, 4), "su3", rng)
    source = np.stack([reference.random_spinor((4, 4, 4, 4), 3, rng) for _ in range(2)])

    def calculate(devices):
        operator = Wilson(field_of(links, devices), 0.15)
        b, low = SpinorField.from_numpy(operator.field, source), reduced_modes(operator, 4)
        x = solve(operator, b, "cg", SolverParameters(inner="half"), low).x
        return low.values, low.vectors.to_numpy(), x.to_numpy()

    check_divisions(kind, [(4,), (2, 2)], calculate)


def test_what_is_refused():
    field = Field.cold(Lattice(2, 2, 2, 2), "su2", "double", CpuDevice(1))
    operator = Wilson(field, 0.1)
    for number in (0, 501):
        with pytest.raises(UsageError, match=f"--deflate is {number}; give a whole number from 1"):
            reduced_modes(operator, number)
    with pytest.raises(UsageError, match="this one has a fifth direction; leave it out"):
        reduced_modes(DomainWall(field, 0.1, 4), 1)
    vectors = SpinorField.empty(field, "double", 2, 0)
    for values in ([0.0, 1.0], [1.0]):
        with pytest.raises(UsageError, match="There are 2 modes with the eigenvalues"):
            Deflation(np.array(values), vectors)
    low = Deflation(np.array([1.0, 2.0]), vectors)
    with pytest.raises(UsageError, match="--deflate is for solvers that use the adjoint"):
        solve(operator, SpinorField.empty(field), "bicgstab", SolverParameters(), low)


def test_only_damaged_modes_are_computed_again(tmp_path, monkeypatch, capsys):
    """The modes in a file that must not be read may have taken hours."""
    field = Field.cold(Lattice(2, 2, 2, 2), "su3", "double")
    modes = ModePath(tmp_path, {"modes": "kernel"})
    modes.write(field, {"values": [1.5, 2.5]}, None)
    assert modes.read(field).numbers == {"values": [1.5, 2.5]}
    (path,) = tmp_path.iterdir()
    with monkeypatch.context() as refusing:
        forbid(refusing, path)
        with pytest.raises(UnreadableError, match="Permission denied"):
            modes.read(field)
    assert capsys.readouterr().err == ""
    path.write_bytes(path.read_bytes()[:-9])
    assert modes.read(field) is None
    assert "is damaged" in capsys.readouterr().err

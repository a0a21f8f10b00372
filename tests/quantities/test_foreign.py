"""Series of openQCD, MILC and tmLQCD against the same numbers in tables of our own."""

import struct
import warnings

import numpy as np
import pytest

from gauge_mc import Field, Lattice, flow
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import read_table, write_table
from gauge_mc.fits import fit, fit_all
from gauge_mc.quantities.flow.curves import FLOW_COLUMNS, WHOLE
from tests.analysis.synthetic_loops import autoregressive

L, T, EVERY, SITES = 4, 8, 0.25, 4**3 * 8
LATTICE = "4x4x4x8"
TIMES = EVERY * np.arange(1, 17)


@pytest.fixture
def values():
    """Plaquette energy, clover energy and charge, (3, configurations, times)."""
    rng = np.random.default_rng(3)
    size, charge = autoregressive(rng, 400, 2, 0.6).reshape(400, 2).T
    size = 0.12 * (1 + 0.05 * size)
    clover = size[:, None] / TIMES**0.9
    charge = 3 * charge[:, None] * np.ones(TIMES.size)
    return np.stack([1.1 * clover, clover, charge])


@pytest.fixture
def own(tmp_path, values):
    """The same flow in a table of our own."""
    header = {"observable": "flow", "group": "su3", "lattice": LATTICE, "flow": "wilson"}
    rows = (
        (10 * n + 10, t, WHOLE, plaquette, clover, charge, 0.0, 0.0)
        for n, each in enumerate(values.swapaxes(0, 1))
        for t, plaquette, clover, charge in zip(TIMES, *each.tolist(), strict=True)
    )
    write_table(tmp_path / "own.csv", header, FLOW_COLUMNS, rows)
    return tmp_path / "own.csv"


def openqcd(values):
    """As ms3 writes it, with t = 0, and sums over slices that fluctuate."""
    sums = values * np.array([SITES, SITES, -1])[:, None, None]
    sums = np.concatenate([sums[:, :, :1], sums], axis=2)
    shares = np.random.default_rng(5).dirichlet(np.ones(T), sums.shape)
    data = [struct.pack("<iiid", 10, TIMES.size, T, EVERY / 10)]
    for n, each in enumerate((sums[..., None] * shares).swapaxes(0, 1)):
        data += [struct.pack("<i", 10 * n + 10), each.astype("<f8").tobytes()]
    return b"".join(data)


def milc(values, plaquette=True):
    """The standard output of one job per configuration."""
    text = ""
    for n, (first, clover, charge) in enumerate(values.swapaxes(0, 1)):
        text += f"Options selected...\nnx {L}\nny {L}\nnz {L}\nnt {T}\n\n"
        text += (
            f"reload_parallel a/l48.{10 * n + 10}\nwilson\nset staple to wilson\n#LABEL time ...\n"
        )
        for t, p, e, q in zip(TIMES, first, clover, charge, strict=True):
            trace = 3 - p / 12
            more = [trace + 0.01, trace - 0.01, 0.0, 0.0] if plaquette else []
            numbers = " ".join(map(repr, map(float, [t, 0.4 * e, 0.6 * e, *more, q])))
            text += f"{'GFLOW:' if plaquette else 'WFLOW'} {numbers}\n"
        text += "Number of steps = 16\n"
    return text.encode()


def write_tmlqcd(folder, values):
    """A file for each configuration."""
    for n, (plaquette, clover, charge) in enumerate(values.swapaxes(0, 1)):
        lines = ["traj t P Eplaq Esym tsqEplaq tsqEsym Wsym Qsym"]
        for t, p, e, q in zip(TIMES, plaquette, clover, charge, strict=True):
            lines.append(f"{10 * n + 10:06d} {t:f} 0 {p:.17g} {e:.17g} 0 0 0 {-q:.17g} ")
        (folder / f"gradflow.{10 * n + 10:06d}").write_text("\n".join([*lines, ""]))
    return folder / "gradflow.000200"


def write(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("energy", ["clover", "plaquette"])
@pytest.mark.parametrize("program", ["openqcd", "milc", "tmlqcd"])
def test_flows_give_the_results_and_errors_of_our_own_table(tmp_path, values, own, program, energy):
    lattice = None if program == "milc" else LATTICE
    if program == "tmlqcd":
        path = write_tmlqcd(tmp_path, values)
    else:
        data = openqcd(values) if program == "openqcd" else milc(values)
        path = write(tmp_path / "flow", data)
    a = fit("scale", own, energy=energy).scales
    b = fit("scale", path, energy=energy, lattice=lattice).scales
    assert (b.configurations, b.updates, b.ensemble["flow"]) == (400, 10, "wilson")
    assert a.t0.error > 0
    for name in ("t0", "w0", "radius"):
        x, y = getattr(a, name), getattr(b, name)
        near = (
            1e-4 if program == "openqcd" else 1e-7
        )  # which has another point of the spline, t = 0
        assert (y.value, y.error, y.tau_int) == pytest.approx((x.value, x.error, x.tau_int), near)
    assert b.spacing_t0.source == a.spacing_t0.source
    q = [
        fit("topology", one, lattice=x, t=2.0).topology for one, x in ((own, None), (path, lattice))
    ]
    assert q[1].mean.value == pytest.approx(q[0].mean.value)  # with its sign
    assert q[1].susceptibility.error == pytest.approx(q[0].susceptibility.error)
    assert np.isnan(q[1].s_max)


def test_openqcd_agrees_with_pyerrors(tmp_path, values):
    pyerrors = pytest.importorskip("pyerrors")
    path = write(tmp_path / "er1.ms.dat", openqcd(values))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t0 = pyerrors.input.openQCD.extract_t0(str(tmp_path), "e", 10, 0, L, fit_range=1)
        t0.gamma_method()
    ours = fit("scale", path, lattice=LATTICE).scales.t0
    assert ours.value == pytest.approx(t0.value, rel=1e-3)
    assert ours.error == pytest.approx(t0.dvalue, rel=0.05)


def test_series_are_not_joined(tmp_path, values):
    """They state no coupling, so that equal extents do not make them chains of one ensemble."""
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        paths.append(write(tmp_path / folder / "flow", openqcd(values)))
    results = [*fit_all("scale", paths, {}, lattice=LATTICE)]
    assert [one.scales.configurations for one, _ in results] == [400, 400]


def test_whole_records_are_taken(tmp_path, values):
    data = openqcd(values[:, :50])
    path = write(tmp_path / "flow", data[:-5])
    found = fit("scale", path, lattice=LATTICE)
    assert found.scales.configurations == 49
    assert found.cautions[0].sentence.startswith("flow: The last record is incomplete")
    text = milc(values[:, :50], plaquette=False)
    found = fit("scale", write(tmp_path / "flow", text[: text.rindex(b"Number")]))
    assert found.scales.configurations == 49
    assert "incomplete" in found.cautions[0].sentence
    with pytest.raises(UsageError, match="has no energy_plaquette, only energy_clover"):
        fit("scale", path, energy="plaquette")
    last = write_tmlqcd(tmp_path, values[:, :50]).parent / "gradflow.000500"
    last.write_bytes(last.read_bytes()[:-30])
    found = fit("scale", last, lattice=LATTICE)
    assert found.scales.configurations == 49
    assert "incomplete" in found.cautions[0].sentence


def test_what_is_wrong_is_said_in_one_sentence(tmp_path, values):
    path = write(tmp_path / "flow", openqcd(values))
    for lattice, words in ((None, "--lattice"), ("4x4x4x6", "T = 8"), ("4x4", "form")):
        with pytest.raises(UsageError, match=words):
            fit("scale", path, lattice=lattice)
    with pytest.raises(GaugeError, match="does not state the action"):
        fit("scale", path, lattice=LATTICE, tree_level=True)
    head, records = openqcd(values)[:20], openqcd(values)[20:]
    shape = np.dtype([("n", "<i4"), ("sums", "<f8", (3, TIMES.size + 1, T))])
    closed = np.frombuffer(records, shape).copy()
    closed["sums"][..., 0] = 0
    with pytest.raises(GaugeError, match="only periodic lattices"):
        fit("scale", write(path, head + closed.tobytes()), lattice=LATTICE)
    text = milc(values)
    with pytest.raises(UsageError, match="leave it out"):
        fit("scale", write(path, text), lattice=LATTICE)
    other = text.replace(b"nt 8", b"nt 16", 1)
    anisotropic = text.replace(b"nt 8\n", b"nt 8\nanisotropy 2\n")
    for wrong in (other, anisotropic, text.replace(b"GFLOW: 0.5 ", b"GFLOW: 0.51 ", 1)):
        with pytest.raises(GaugeError, match="only equal isotropic flows"):
            fit("scale", write(path, wrong))
    for wrong in (
        text.replace(b"Number of", b"", 1),
        text.replace(b"GFLOW: 0.5 ", b"GFLOW: x ", 1),
    ):
        with pytest.raises(GaugeError, match=r"flow(:|\b).*(incomplete|damaged)"):
            fit("scale", write(path, wrong))


def test_the_traces_of_milc_are_those_of_our_energy():
    """Averages of Re Tr in both kinds of planes give the energy of a field, as `milc` says."""
    field = Field.hot(Lattice.parse(LATTICE), "su3", "double", seed=3)
    links = field.to_numpy()
    traces = {True: [], False: []}
    for mu in range(4):
        for nu in range(mu):
            a, b = links[..., mu, :, :], links[..., nu, :, :]
            ahead, up = np.roll(b, -1, axis=3 - mu), np.roll(a, -1, axis=3 - nu)
            loops = np.einsum("...ij,...jk,...lk,...il->...", a, ahead, up.conj(), b.conj())
            traces[mu == 3].append(loops.real.mean())
    temporal, spatial = np.mean(traces[True]), np.mean(traces[False])
    energy = next(iter(flow(field, 0.0))).energy_plaquette
    assert 12 * (3 - (temporal + spatial) / 2) == pytest.approx(energy, rel=1e-13)


@pytest.mark.parametrize("rectangle", ["", " 2.5e-01"])
def test_histories_of_tmlqcd(tmp_path, rectangle):
    line = "{:08d} {:14.12f} {:14.12f} 9.0e-01 11 22 33 44 {} 1.5e+00" + rectangle + "\n"
    rows = [(n, round(0.5 + n / 100, 2), (-1) ** n * n / 10, n % 2) for n in range(12)]
    path = tmp_path / "output.data"
    path.write_text("".join(line.format(*row) for row in rows) + "00000012 0.62")
    table = read_table(path)
    names = ("sweep", "plaquette", "delta_h", "accepted")
    assert [tuple(row) for row in zip(*(table[name] for name in names), strict=True)] == rows
    assert "incomplete" in table.header["left out"]
    with pytest.raises(GaugeError, match="not a table of the gradient flow"):
        fit("scale", path)

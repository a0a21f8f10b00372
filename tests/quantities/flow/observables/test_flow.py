"""The observable ``flow``: on stored configurations, along the way, from Python, and in exports."""

import math
import shutil
from itertools import pairwise

import numpy as np
import pytest

import gauge_mc
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.gradient_flow import STABLE, GradientFlow, field_strength, improved_charge
from gauge_mc.files.table import TableData, read_table
from gauge_mc.flows import FLOWS
from gauge_mc.quantities.flow.curves import FLOW_COLUMNS, WHOLE
from gauge_mc.quantities.flow.observable import BEYOND, EVERY, STEP, GradientFlowObservable, flow
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from tests.calls import call, make_run
from tests.reference import flow as reference
from tests.run.sessions import carry_out, stop_after, written

LATTICE = Lattice(4, 4, 4, 6)
VALUES = FLOW_COLUMNS[3:]
ON_CPU = ("--backend", "cpu", "--threads", "1")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A run of three configurations that measures nothing."""
    return make_run(tmp_path_factory.mktemp("run") / "run", measure="none", precision="double")


@pytest.fixture
def run(good, tmp_path, monkeypatch):
    """A copy of it, in a folder to work in."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(good, tmp_path / "run")
    return tmp_path / "run"


def measured(*words, run="run", table="flow.csv"):
    """Measure on stored configurations, and return the table."""
    shown, code = call("measure", "flow", run, *words, *ON_CPU, "--quiet", "--output", table)
    assert (shown, code) == ("", 0)
    return read_table(table)


def refused(*words, run="run"):
    """Return the sentence with which a measurement is refused."""
    shown, code = call("measure", "flow", run, *words, *ON_CPU)
    assert code == 2
    return shown


def rows_of(table, **where):
    """Return the values of the rows with the given entries, shape (rows, columns)."""
    chosen = np.full(len(table), True)
    for name, value in where.items():
        chosen &= table[name] == value
    return np.stack([table[name][chosen] for name in VALUES], axis=1)


def links_of(run):
    """Return the configurations by number."""
    return {number: Field.load(path) for number, path in Run(run).configs().items()}


def by_hand(field, kind, times, step=STEP):
    """Yield energies, charges and the largest s of a field at some flow times."""
    made = GradientFlow(FLOWS[kind], field)
    made.start(field)
    for t in times:
        made.advance(t, step)
        found = field_strength(made.field)
        improved = improved_charge(made.field, made.spare, found.charge)
        sites = field.lattice.sites
        energies = (found.plaquette.sum() / sites, found.clover.sum() / sites)
        yield (*energies, found.charge.sum(), improved.sum(), found.largest.max())


@pytest.mark.first_quick
@pytest.mark.parametrize("kind", ["wilson", "symanzik"])
def test_the_table_has_the_flow_of_every_configuration(run, kind):
    table = measured("--flow", kind, "--to", "0.5", "--every", "0.2", "--step", "0.05")
    assert (
        list(table.columns) == ["sweep", *GradientFlowObservable.columns.names] == [*FLOW_COLUMNS]
    )
    assert table["t"].tolist() == 3 * [0.0, 0.2, 0.4]
    assert (table["slice"] == WHOLE).all()
    assert sorted(set(table["sweep"])) == [5, 8, 11]
    for number, field in links_of(run).items():
        expected = np.array(list(by_hand(field, kind, [0, 0.2, 0.4], 0.05)))
        assert np.array_equal(rows_of(table, sweep=number), expected)
    keys = ("observable", "flow", "force", "steps", "every", "to", "slices", "measured in")
    assert [table.header[key] for key in keys] == [
        "flow",
        kind,
        FLOWS[kind].formula,
        "fixed, at most 0.05; third-order Runge-Kutta (arXiv:1006.4518)",
        "0.2",
        "0.5",
        "no",
        "double precision",
    ]


def test_values_are_those_of_the_reference(run):
    table = measured("--to", "0.2", "--step", "0.1", "--slices")
    links = next(iter(links_of(run).values())).to_numpy()
    for t, steps in ((0.0, 0), (0.1, 1), (0.2, 2)):
        flowed = reference.flow(links, t, steps, "wilson") if steps else links
        densities = (
            reference.energy_plaquette(flowed),
            reference.energy_clover(flowed),
            reference.charge(flowed),
        )
        found = np.array([rows_of(table, sweep=5, t=t, slice=n)[0] for n in range(LATTICE.t)])
        for column, density in enumerate(densities):
            by_slice = density.mean(axis=(1, 2, 3)) if column < 2 else density.sum(axis=(1, 2, 3))
            np.testing.assert_allclose(found[:, column], by_slice, atol=1e-12)
        (whole,) = rows_of(table, sweep=5, t=t, slice=WHOLE)
        assert whole[-1] == pytest.approx(reference.largest_plaquette_action(flowed), rel=1e-6)


def test_slices_add_up(run):
    table, plain = measured("--to", "0.3", "--slices"), measured("--to", "0.3", table="plain.csv")
    whole = table["slice"] == WHOLE
    for name in FLOW_COLUMNS:
        assert np.array_equal(table[name][whole], plain[name])
    assert table["slice"].reshape(3, 4, -1)[0, 0].tolist() == [WHOLE, *range(LATTICE.t)]
    values = {name: table[name].reshape(3, 4, 1 + LATTICE.t) for name in VALUES}
    for name, column in values.items():
        total = {"energy": column[..., 1:].mean(-1), "charge": column[..., 1:].sum(-1)}
        total["s"] = column[..., 1:].max(-1)
        np.testing.assert_allclose(column[..., 0], total[name.partition("_")[0]], atol=1e-12)
    assert table.header["slices"] == "yes"
    assert refused("--to", "0.3", "--output", "flow.csv").startswith(
        "gauge-mc: The table flow.csv has slices = yes, not no; choose another --output"
    )


def test_by_default_the_flow_ends_where_its_radius_is_half_the_shortest_extent(run):
    table = measured()
    assert table["t"].max() == pytest.approx(min(LATTICE.extents) ** 2 / 32)
    assert np.sqrt(8 * table["t"].max()) == pytest.approx(min(LATTICE.extents) / 2)
    np.testing.assert_allclose(np.diff(np.unique(table["t"])), EVERY, rtol=1e-9)
    assert (table.header["flow"], table.header["to"]) == ("wilson", "0.5")


@pytest.mark.slow
def test_the_first_configuration_decides_how_long_the_flow_is(run):
    words = ("--until", "0.02", "--every", "0.05")
    whole = measured(*words, table="whole.csv")
    assert whole.header["until"] == "0.02"
    assert "to" not in whole.header
    first = whole["sweep"] == 5
    target = BEYOND * 0.02
    reached = (whole["t"] ** 2 * whole["energy_clover"])[first]
    assert reached[-1] >= target > reached[-2]
    for number in (8, 11):
        assert np.array_equal(whole["t"][whole["sweep"] == number], whole["t"][first])
    last = run / "configs" / "0000011.lime"
    last.rename("later.lime")
    assert set(measured(*words)["sweep"]) == {5, 8}
    shutil.move("later.lime", last)
    measured(*words)
    paths = (run.parent / "flow.csv", run.parent / "whole.csv")
    assert paths[0].read_bytes() == paths[1].read_bytes()
    links = next(iter(links_of(run).values()))
    found = gauge_mc.measure(links, "flow", until=0.02, every=0.05)
    assert np.array_equal(found["t"], whole["t"][first])
    assert np.array_equal(found["energy_clover"], whole["energy_clover"][first])


def test_a_target_out_of_reach(run):
    sentence = refused("--until", "9.5", "--every", "0.5")
    assert "t²E of the first configuration does not reach 1.25 times 9.5" in sentence
    assert "choose a smaller --until, or --to" in sentence


@pytest.mark.parametrize("words", [("--to", "0.2"), ("--until", "0.02", "--slices")])
def test_an_incomplete_configuration_is_measured_again(run, words):
    measured(*words)
    path = run.parent / "flow.csv"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]))  # as if it had been killed
    measured(*words)
    assert path.read_bytes() == whole


@pytest.mark.slow
def test_adaptive_steps(run):
    words = ("--to", "0.5", "--every", "0.25")
    fixed = measured(*words, "--step", "0.005")
    errors = []
    for tolerance in ("1e-2", "1e-5"):
        table = measured(*words, "--tolerance", tolerance, table=f"{tolerance}.csv")
        assert f"adaptive from 0.05, tolerance {float(tolerance):g} (" in table.header["steps"]
        errors.append(np.abs(table["energy_clover"] / fixed["energy_clover"] - 1).max())
    assert errors[1] < 1e-5
    assert errors[1] < 0.1 * errors[0]
    # Every configuration begins with the given step, so that it does not depend on the others.
    one = measured(*words, "--tolerance", "1e-5", run="run/configs/0000011.lime", table="one.csv")
    assert np.array_equal(rows_of(one), rows_of(table, sweep=11))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--flow", "wilsn"), "There is no flow 'wilsn'; did you mean 'wilson'?"),
        (
            ("--step", "0.16"),
            "--step is 0.16, with which the flow wilson is not stable; give at most",
        ),
        (
            ("--step", "0.1", "--flow", "symanzik"),
            "--step is 0.1, with which the flow symanzik is not stable; give at most 0.09.",
        ),
        (("--step", "0"), "--step is 0; give a number of at least 1e-05."),
        (("--to", "-0.1"), "--to is -0.1; give a number of at least 0."),
        (("--to", "nan"), "Invalid value for '--to': 'nan' is not a number."),
        (("--every", "inf"), "Invalid value for '--every': 'inf' is not a number."),
        (("--to", "1e9"), "--to is 1e+09; choose a flow time"),
        (("--to", "1", "--until", "0.3"), "--to and --until exclude each other; give one."),
        (("--until", "0"), "--until is 0; give a number from 0.001 to 10."),
        (("--until", "11"), "--until is 11; give a number from 0.001 to 10."),
        (("--every", "0"), "--every is 0; give a number from 1e-05 to 100000."),
        (("--tolerance", "-1"), "--tolerance is -1; give a number"),
        (("--r-max", "2"), "--r-max is not an option of gauge-mc measure flow, but of "),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(run, words, sentence):
    assert f"gauge-mc: {sentence}" in refused(*words)
    assert not (run / "flow.csv").exists()


@pytest.mark.parametrize("name", ["to", "until", "every", "step", "tolerance"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_refused_in_python_too(name, value):
    with pytest.raises(UsageError, match=rf"^--{name} is -?(nan|inf); give a number"):
        GradientFlowObservable.for_lattice(LATTICE, **{name: value})


def test_the_largest_step_is_that_of_the_flow(run):
    for kind, one in FLOWS.items():
        gauge_mc.measure(run, "flow", flow=kind, to=0.0, step=STABLE / one.fastest, progress=False)
        (run / "flow.csv").unlink()
        with pytest.raises(UsageError, match="--step is"):
            gauge_mc.measure(run, "flow", flow=kind, to=0.0, step=1.01 * STABLE / one.fastest)


def test_a_tolerance_that_cannot_be_reached_ends_the_measurement(run):
    shown, code = call(
        "measure", "flow", "run", *ON_CPU, "--precision", "single", "--tolerance", "1e-11"
    )
    assert code == 1
    assert "does not reach the tolerance 1e-11" in shown.splitlines()[-1]


@pytest.mark.longer
def test_a_stopped_run_goes_on_with_the_same_table(tmp_path, best_device):
    values = {
        "group": "su2",
        "lattice": str(LATTICE),
        "thermalize": 2,
        "configs": 3,
        "separation": 3,
    }
    p = Parameters.from_values({**values, "measure": "flow:3,plaquette"})
    whole, broken = Run(tmp_path / "whole"), Run(tmp_path / "broken")
    carry_out(whole, p, best_device)
    reason, sessions = "enough", 0
    while reason:
        reason = carry_out(broken, p, best_device, stop=stop_after(2))[1]
        sessions += 1
    assert sessions > 3
    assert written(broken.path) == written(whole.path)
    # As if it had been killed after its last checkpoint.
    early = (broken.path / "checkpoint" / "latest").read_bytes()
    longer = Parameters.from_values({**p.values(), "configs": 4})
    carry_out(broken, longer, best_device)
    (broken.path / "checkpoint" / "latest").write_bytes(early)
    carry_out(broken, longer, best_device)
    carry_out(whole, longer, best_device)
    assert written(broken.path) == written(whole.path)


@pytest.mark.slow
def test_chains_are_measured_like_single_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = {"lattice": str(LATTICE), "thermalize": 2, "configs": 2, "separation": 3}
    how |= {"measure": "flow:3", "backend": "cpu", "progress": False}
    found = gauge_mc.generate_chains(chains=3, output="some", **how)
    for seed, one in enumerate(found, 1):
        alone = gauge_mc.generate(output=f"alone_{seed}", seed=seed, **how)
        assert written(one.path) == written(alone.path)


@pytest.fixture
def field(best_device):
    return Field.hot(LATTICE, "su2", "double", best_device, seed=2)


@pytest.mark.slow
def test_python_yields_fields_along_the_flow(field, tmp_path):
    before = field.to_numpy()
    times, paths = [], []
    for flowed in gauge_mc.flow(field, 0.3, every=0.15, step=0.05):
        times.append(flowed.t)
        paths.append(tmp_path / f"{flowed.t:g}.lime")
        flowed.field.save(paths[-1])
        links = flowed.field.to_numpy()
        expected = reference.flow(before, flowed.t, round(flowed.t / 0.05), "wilson")
        assert np.abs(links - (expected if flowed.t else before)).max() < 1e-12
        energies = reference.energy_plaquette(links).mean(), reference.energy_clover(links).mean()
        assert (flowed.energy_plaquette, flowed.energy_clover) == pytest.approx(energies)
        assert flowed.charge == pytest.approx(reference.charge(links).sum())
        assert flowed.charge_improved == pytest.approx(flowed.charge_improved_by_slice.sum())
        assert flowed.charge == pytest.approx(flowed.by_slice.charge.sum())
        assert np.array_equal(Field.load(paths[-1]).to_numpy(), links)
    assert times == [0, 0.15, 0.3]
    assert np.array_equal(field.to_numpy(), before)
    table = gauge_mc.measure(field, "flow", to=0.3, every=0.15, step=0.05)
    assert table["t"].tolist() == times
    assert table["energy_clover"][-1] == flowed.energy_clover


def test_saving_does_not_disturb_the_flow_nor_depend_on_the_devices(tmp_path):
    """Fields along the flow have deeper halos than others."""
    contents = []
    for devices in ("cpu:1", "cpu:2"):
        field = Field.hot(Lattice(4, 4, 4, 8), "su2", "single", open_device_group(devices), seed=2)
        along = []
        for flowed in flow(field, 0.2):
            path = tmp_path / "flowed.lime"
            flowed.field.save(path)
            along.append((path.read_bytes(), flowed.energy_clover, flowed.charge_improved))
        assert [values[1:] for values in along] == [
            (one.energy_clover, one.charge_improved) for one in flow(field, 0.2)
        ]
        contents.append(along)
    assert contents[0] == contents[1]


@pytest.mark.parametrize("how", [{}, {"tolerance": 1e-4}, {"until": 0.3}])
def test_links_that_are_not_numbers_end_the_flow(how):
    links = Field.hot(LATTICE, "su2", "single", CpuDevice(1)).to_numpy()
    links[3, 2, 1, 0, 2] = math.nan
    field = Field.from_slices(LATTICE, "su2", links, "single", CpuDevice(1))
    with pytest.raises(GaugeError, match="not all numbers at the flow time 0; check where"):
        gauge_mc.measure(field, "flow", **how)
    if "until" not in how:
        with pytest.raises(GaugeError, match="not all numbers at the flow time 0; check where"):
            list(flow(field, 0.5, **how))


@pytest.fixture(scope="module")
def table():
    """The flow with records of two slices, of six configurations."""
    rows = [
        (sweep, t, n, *(sweep + 10 * t + n / 10 + k for k in range(len(VALUES))))
        for sweep in range(20, 80, 10)
        for t in (0.0, 0.5, 1.0)
        for n in (WHOLE, 0, 1)
    ]
    columns = {
        name: np.array(one) for name, one in zip(FLOW_COLUMNS, zip(*rows, strict=True), strict=True)
    }
    return TableData({"observable": "flow"}, columns)


def test_series_are_functions_of_the_flow_time(table):
    series = GradientFlowObservable.series(table, "flow.csv")
    assert set(series) == {
        f"{name}{at}" for name in VALUES for at in ("", ",t=0", ",t=0.5", ",t=1")
    }
    one = series["charge"]
    assert (one.sweeps.tolist(), one.first) == ([20, 30, 40, 50, 60, 70], 0)
    assert one.samples[1].tolist() == [31.9, 36.9, 41.9]
    assert series["charge,t=0.5"].samples[0].tolist() == [27, 27.1]
    whole = table["slice"] == WHOLE
    plain = TableData({}, {name: column[whole] for name, column in table.columns.items()})
    assert set(GradientFlowObservable.series(plain, "flow.csv")) == {*VALUES}
    empty = TableData({}, {name: column[:0] for name, column in table.columns.items()})
    assert GradientFlowObservable.series(empty, "flow.csv") == {}


@pytest.mark.parametrize("damage", ["short", "time", "slice", "words", "column"])
def test_series_of_a_damaged_table(table, damage):
    columns = {name: column.copy() for name, column in table.columns.items()}
    if damage == "short":
        columns = {name: column[:-1] for name, column in columns.items()}
    elif damage == "words":
        columns["charge"] = np.full(len(columns["charge"]), "one")
    elif damage == "column":
        del columns["charge"]
    else:
        columns["t" if damage == "time" else "slice"][4] = 3
    with pytest.raises(GaugeError, match=r"The table flow\.csv is damaged"):
        GradientFlowObservable.series(TableData({}, columns), "flow.csv")


def test_pyerrors_reads_what_is_exported(tmp_path, monkeypatch, pyerrors):
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path / "run", configs=6, measure="flow:3", precision="double")
    table = read_table(run / "flow.csv")
    assert call("export", run, "x.json.gz") == ("x.json.gz: flow\n", 0)
    content = pyerrors.input.json.load_json_dict("x.json.gz", verbose=False)["flow"]
    assert set(content) == {*VALUES}
    for name in VALUES:
        assert content[name].T == 6
        for n, t in enumerate(np.unique(table["t"])):
            mean = table[name][table["t"] == t].mean()
            assert content[name][n].value == pytest.approx(mean)


def test_runs_of_a_batch_have_flows_of_their_own_anisotropies():
    one = Field.hot(LATTICE, "su2", "double", CpuDevice(1), seed=3)
    batch = one.repeated(3)
    for replica in batch.replicas:
        replica.copy(one)
    observable = GradientFlowObservable.for_lattice(LATTICE, to=0.1)
    runs = [observable.for_ensemble({"anisotropy": xi}) for xi in ("1", "2", "1")]
    recorder = observable.recorder(batch, runs)
    with batch.devices.measuring():
        recorder.begin()
    found = [records for (records,) in recorder.fetch()]
    assert found == [run.measurer(one)(one) for run in runs]
    assert found[0] == found[2] != found[1]


def test_the_energy_falls_and_kinds_differ(field):
    for kind in FLOWS:
        energies = [one.energy_plaquette for one in flow(field, 0.4, kind)]
        assert len(energies) == 5
        assert all(later < earlier for earlier, later in pairwise(energies))

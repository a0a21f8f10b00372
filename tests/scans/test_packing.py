"""Packing of the runs of a scan into batches."""

from gauge_mc.domain.lattice import Lattice
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.ladders import pack
from gauge_mc.scans.scan import Scan
from tests.run.sessions import carry_out, stop_after

SMALL, LARGE = Lattice(4, 4, 4, 2), Lattice(4, 4, 4, 4)


def scan(folder, chains=3):
    shared = Parameters(thermalize=5, configs=1, separation=1)
    return Scan(folder / "s", shared).enlarged((2.3, 2.4), (SMALL, LARGE), chains)


def names(batches):
    return [[member.name for member in batch] for batch in batches]


def test_batches_have_one_lattice_and_at_most_the_sites_that_keep_a_device_busy(tmp_path):
    members = scan(tmp_path).members()
    batches = pack(members, 4 * SMALL.sites, 1)
    assert [len(batch) for batch in batches] == [2, 2, 2, 4, 2]
    assert all(len({member.parameters.lattice for member in batch}) == 1 for batch in batches)
    packed = [name for batch in names(batches) for name in batch]
    assert sorted(packed) == sorted(member.name for member in members)


def test_only_runs_after_the_same_update_are_packed(tmp_path, best_device):
    members = scan(tmp_path, chains=1).members()
    members[0].run.path.mkdir(parents=True)
    carry_out(members[0].run, members[0].parameters, best_device, stop=stop_after(2))
    batches = pack(members, 10**9, 1)
    assert sorted(map(len, batches)) == [1, 1, 2]
    assert [members[0].name] in names(batches)

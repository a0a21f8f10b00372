"""One core, compared with the CPU."""

from gauge_mc.devices import open_device
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.heatbath import heatbath, overrelax


def test_updates_give_the_same_links():
    devices = [open_device(backend=name) for name in ("cpu", "one-core")]
    fields = [Field.hot(Lattice(4, 4, 4, 4), "su2", device=device) for device in devices]
    for field in fields:
        heatbath(field, 2.3, Random.for_field(field))
        overrelax(field)
    assert (fields[0].to_numpy() == fields[-1].to_numpy()).all()

"""Digests of the links and tables of everything that declares itself strict."""

import hashlib
from collections import ChainMap

import numpy as np

from gauge_mc import Field, Lattice, Random, heatbath, measure
from gauge_mc.actions import Coupling
from gauge_mc.algorithms import ALGORITHMS, Tuning
from gauge_mc.defaults import CHAIN_VERSION
from gauge_mc.flows import FLOWS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.smearing import SMEARINGS
from gauge_mc.temporal_links import TEMPORAL_LINKS
from tests.samples import all_of

BETA = {"su2": 2.3, "su3": 5.7, "su4": 11.0}
LATTICE = Lattice(8, 8, 4, 4)
"""The smallest lattice on which registers have 16 lanes."""

REDUCED = {"multilevel": "2,3", "multihit": True}
LOOPS = {"r_max": 2, "t_max": 2}
OPTIONS = {
    "flow": [
        *({"to": 0.1, "flow": flow} for flow in FLOWS),
        {"to": 0.3, "every": 0.3, "tolerance": 1e-3, "slices": True},
        {"to": 0.1, "anisotropy": 1.3},
    ],
    "thermal-flow": [{"to": 0.1}],
    "field-correlators": [{"to": 0.1, "every": 0.1}],
    "polyakov-correlators": [{"off_axis": True}, REDUCED],
    "wilson-loops": [
        *({**LOOPS, "smear": [f"{smearing}x1"]} for smearing in SMEARINGS),
        *({**LOOPS, "smear": "none", "temporal": links} for links in TEMPORAL_LINKS),
        {**LOOPS, **REDUCED, "smear": "none"},
    ],
}
"""Options of observables, several times each; extensions have those of theirs."""

INTEGRATORS = {"wilson": "omf4", "luscher-weisz": "leapfrog", "iwasaki": "force-gradient"}
"""Integrators of trajectories, by action."""


def digest(data):
    return hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest()[:16]


def measurements():
    """All observables that are strict, with options."""
    known = ChainMap(OPTIONS, *all_of("OPTIONS", "strictness"))
    for name, kind in OBSERVABLES.items():
        if kind.strict:
            yield from ((name, options) for options in known.get(name, [{}]))


def table_digests(device, group, precision, option=None):
    """Return the digests of all tables of some links, or of those with a certain option."""
    device.strict = True
    field = Field.hot(LATTICE, group, precision, device, 5)
    heatbath(field, BETA[group], Random.for_field(field, "philox", 7), sweeps=3)
    result = {"links": digest(field.to_numpy())}
    for name, options in measurements():
        if option and option not in options:
            continue
        own = {**options, "beta": BETA[group]} if "multilevel" in options else options
        columns = measure(field, name, progress=False, **own).columns.values()
        numbers = [one.astype(float) for one in columns if one.dtype.kind in "if"]
        assert np.isfinite(numbers).all()
        words = " ".join(f"{key}={value}" for key, value in options.items())
        result[f"{name} {words}".strip()] = digest(np.concatenate(numbers))
    return result


def trajectory_digests(device, group, precision, action, rng, terms=""):
    """Return the digests of the links after some trajectories, and of their records.

    Trajectories with terms of extensions, by a name that these have for them, are fewer.
    """
    device.strict = True
    options = {"u0": 0.9} if action == "luscher-weisz" else {}
    coupling = Coupling.of(BETA[group], action, **options)
    field = Field.hot(LATTICE, group, precision, device, 5)
    random = Random.for_field(field, rng, 7)
    more = ChainMap(*all_of("TERMS", "strictness"))[terms] if terms else {}
    hmc = ALGORITHMS["hmc"].with_options(integrator=INTEGRATORS[action], length=0.5, **more)
    update = hmc.prepare(field, [coupling], [random], CHAIN_VERSION, [Tuning(updates=6)])
    records = np.array([update()[0] for _ in range(3 if terms else 9)], float)
    assert np.isfinite(records).all()
    return {"links": digest(field.to_numpy()), "records": digest(records)}

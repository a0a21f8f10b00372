"""Digests of the links and tables of everything that declares itself strict."""

import hashlib

import numpy as np

from gauge_mc import Field, Lattice, Random, heatbath, measure
from gauge_mc.actions import Coupling
from gauge_mc.algorithms import ALGORITHMS, Tuning
from gauge_mc.defaults import CHAIN_VERSION
from gauge_mc.flows import FLOWS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.smearing import SMEARINGS
from gauge_mc.temporal_links import TEMPORAL_LINKS

BETA = {"su2": 2.3, "su3": 5.7, "su4": 11.0}
LATTICE = Lattice(8, 8, 4, 4)
"""The smallest lattice on which registers have 16 lanes."""

REDUCED = {"multilevel": "2,3", "multihit": True}
LOOPS = {"r_max": 2, "t_max": 2}
POINT = {"source": ("point:1,2,3,1",), "boundary": "0.3,0,0.2,1", "p2_max": 1}
SMEARED = {"source": ("gauss:1.2,5,1,2,3,1",), "smear_sink": True, "smear": ["stout:0.1x2"]}
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
    "mesons": [
        {"kappa": "0.12", "csw": 1.0, **POINT},
        {"kappa": "0.12", "mu": "0,0.1", "solver": "cg", **SMEARED},
        {"kappa": "0.12", "mu": "0.1", "csw": 1.0, "inner": "half", "source": ("wall:1",)},
        {"quark": "domain-wall:ls=4,b=1.5,c=0.5,m=0.3,0.5", "together": 3, "p2_max": 1},
    ],
    "residual-mass": [
        {"quark": "domain-wall:ls=4,m=0.5", "source": ("point:1,2,3,1",), "inner": "half"},
        {"quark": "domain-wall:ls=3,b=1,c=1,optimal=measured,m=0.5"},
    ],
    "condensate": [
        {
            "kappa": "0.12",
            "csw": 1.0,
            "dilute": "even-odd",
            "sources": 2,
            "boundary": "0.3,0,0.2,1",
        },
        {"kappa": "0.12", "mu": "0.1", "noise": "gaussian", "inner": "half", "imaginary_mu": 0.2},
        {"quark": "domain-wall:ls=4,m=0.5", "noise": "z2", "dilute": "spin", "sources": 1},
    ],
    "baryons": [{"kappa": "0.12,0.11", "inner": "double", "solver": "cg", "p2_max": 1}],
}
"""Options of observables, several times each."""

INTEGRATORS = {"wilson": "omf4", "luscher-weisz": "leapfrog", "iwasaki": "force-gradient"}
"""Integrators of trajectories, by action."""


QUARKS = {
    "clover": {"quarks": "kappa=0.12:csw=1:heavier=kappa=0.1:boundary=0.3,0,0.2,1"},
    "history": {"quarks": "kappa=0.12:csw=1:history=2:force_tolerance=1e-11"},
    "doublet": {"quarks": "kappa=0.12:mu_sigma=0.2:mu_delta=0.15:boundary=0.3,0,0.2,1"},
    "flavour": {"quarks": "kappa=0.12:csw=1:flavours=1,kappa=0.1:flavours=1:inner=double"},
    "walls": {"quarks": "domain-wall:ls=4:c=1:optimal=0.2,5:m=0.2:heavier=m=0.5:inner=single"},
    "wall": {"quarks": "domain-wall:ls=3:b=1.5:c=0.5:m=0.2:flavours=1:force_tolerance=1e-6"},
    "twisted": {"quarks": "kappa=0.12:mu=0.1:solver=bicgstab:inner=half"},
}
"""Options of trajectories with quarks, by a name."""


def digest(data):
    return hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest()[:16]


def measurements():
    """All observables that are strict, with options."""
    for name, kind in OBSERVABLES.items():
        if kind.strict:
            yield from ((name, options) for options in OPTIONS.get(name, [{}]))


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


def trajectory_digests(device, group, precision, action, rng, quarks=""):
    """Return the digests of the links after some trajectories, and of their records.

    Trajectories with quarks, by a name in `QUARKS`, are fewer.
    """
    device.strict = True
    options = {"u0": 0.9} if action == "luscher-weisz" else {}
    coupling = Coupling.of(BETA[group], action, **options)
    field = Field.hot(LATTICE, group, precision, device, 5)
    random = Random.for_field(field, rng, 7)
    more = QUARKS.get(quarks, {})
    hmc = ALGORITHMS["hmc"].with_options(integrator=INTEGRATORS[action], length=0.5, **more)
    update = hmc.prepare(field, [coupling], [random], CHAIN_VERSION, [Tuning(updates=6)])
    records = np.array([update()[0] for _ in range(3 if quarks else 9)], float)
    assert np.isfinite(records).all()
    return {"links": digest(field.to_numpy()), "records": digest(records)}

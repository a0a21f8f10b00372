"""What strict runs with quarks compute whose digests are stored; see `tests.strictness`."""

import json
from pathlib import Path

PINS = json.loads((Path(__file__).parent / "pins" / "strict.json").read_text())
"""Digests, as in ``tests/pins/strict.json``."""

SLOW = {f"su2 double wilson philox {name}" for name in ("clover", "doublet", "flavour")}
"""Trajectories of slow tests; the others are marked `every`."""

POINT = {"source": ("point:1,2,3,1",), "boundary": "0.3,0,0.2,1", "p2_max": 1}
SMEARED = {"source": ("gauss:1.2,5,1,2,3,1",), "smear_sink": True, "smear": ["stout:0.1x2"]}
OPTIONS = {
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

TERMS = {
    "clover": {"quarks": "kappa=0.12:csw=1:heavier=kappa=0.1:boundary=0.3,0,0.2,1"},
    "history": {"quarks": "kappa=0.12:csw=1:history=2:force_tolerance=1e-11"},
    "doublet": {"quarks": "kappa=0.12:mu_sigma=0.2:mu_delta=0.15:boundary=0.3,0,0.2,1"},
    "flavour": {"quarks": "kappa=0.12:csw=1:flavours=1,kappa=0.1:flavours=1:inner=double"},
    "walls": {"quarks": "domain-wall:ls=4:c=1:optimal=0.2,5:m=0.2:heavier=m=0.5:inner=single"},
    "wall": {"quarks": "domain-wall:ls=3:b=1.5:c=0.5:m=0.2:flavours=1:force_tolerance=1e-6"},
    "twisted": {"quarks": "kappa=0.12:mu=0.1:solver=bicgstab:inner=half"},
}
"""Options of trajectories with quarks, by a name."""

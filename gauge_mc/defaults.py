"""The defaults of a run, in one place.

They give a short SU(2) run with common settings, such as four overrelaxation sweeps per heatbath
sweep. They are not tuned: autocorrelations depend on beta and the lattice.
"""

GROUP = "su2"
LATTICE = "16x16x16x16"
PRECISION = "single"
ACTION = "wilson"
ANISOTROPY = 1.0
"""Bare anisotropy."""

START = "cold"
SEED = 1
RNG = "philox"
LUXURY = 3
"""Quality level of generators that have levels."""

ALGORITHM = "heatbath"
HEATBATH = 1
"""Heatbath sweeps per update."""

OVERRELAX = 4
"""Overrelaxation sweeps per update."""

INTEGRATOR = "omf2"
"""Integrator of hybrid Monte Carlo."""

CHAIN_VERSION = 1
"""Version of the Markov chain, as in `gauge_mc.updates.sweep`: a seed has given the same
configurations in all versions of gauge-mc so far."""

THERMALIZE = 200
"""Updates before the first configuration."""

CONFIGS = 10
"""Number of configurations."""

SEPARATION = 20
"""Updates between configurations."""

EXCHANGE_EVERY = 1
"""Updates between exchanges of couplings, with tempering."""

MEASURE = ("plaquette", "polyakov")
FORMAT = "ildg"
SMEARING = "ape"
FLOW = "wilson"
CHECKPOINT_EVERY = 10.0
"""Longest time between checkpoints in minutes."""

START_RNG = "philox"
"""Generator for random starts and noise, for every generator of the run, because Philox needs no
states."""

SOLVER = "bicgstab"
QUARK_SOLVER = "cg"
"""Solver for the forces of quarks in hybrid Monte Carlo."""

WALL_SOLVER = "cg"
"""Solver of quarks with a mass. BiCGstab hardly converges for domain walls."""

SOURCE = "point"
NOISE = "z4"
TOLERANCE = 1e-10
"""Norm of the residual of a solver, divided by that of the source."""

INNER = "single"
"""Precision of a solver's iterations."""

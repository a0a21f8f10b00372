"""The defaults of a run, and other words for names, in one place.

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

WORDS = {
    "generate --output RUN": "resume continue restart",
    "status": "ls list show progress",
    "group su3": "n nc ncol ncolors ncolours colors colours gauge-group",
    "lattice 16x16x16x32": "l ns nx lx ls nt lt size volume geometry dims extents",
    "thermalize 200": "ntherm therm thermalise thermalization nwarm warmup equilibrate burn-in",
    "configs 100": "nconf nconfs nconfig nconfigs n-configs nmeas measurements",
    "configs 100 --separation 10": "sweeps nsweeps nsweep updates nupdates trajectories ntraj mcs",
    "separation 10": "nskip stride interval save-every nsave every",
    "overrelax 4": "nor nover or overrelaxation",
    "chains 4": "nchains replicas",
    "backend cuda": "gpu gpus cuda nvidia",
    "devices 2": "ngpu ngpus num-gpus ndevices",
    "threads 4": "nthreads num-threads omp cores ncores j",
    "precision double": "double dp fp64 f64",
    "output RUN": "dir outdir out-dir folder o",
    "time-limit 12:00:00": "walltime max-time",
    "cuda": "gpu gpus nvidia",
    "hip": "amd rocm",
    "wilson-loops": "potential string-tension sigma r0",
    "flow": "gradient-flow wilson-flow topology charge t0 w0",
    "polyakov": "deconfinement susceptibility",
    "potential": "string-tension sigma sqrt-sigma r0 r1 sommer static-potential force",
    "scale": "t0 w0 lattice-spacing",
    "topology": "susceptibility chi-t charge q instantons",
    "transition": "susceptibility beta-c betac tc critical deconfinement binder",
    "thermodynamics": "pressure eos",
    "sqrt-sigma": "sigma string-tension",
    "chi-t": "susceptibility topology",
    "beta-c": "betac tc critical",
}
"""Words of the field and of other programs, by how they are said here: the name of a command, an
option or a thing, and what follows it.
"""

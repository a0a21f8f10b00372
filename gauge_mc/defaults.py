"""The defaults of a run: the one place that names what is chosen if nothing is said."""

GROUP = "su2"
LATTICE = "16x16x16x16"
PRECISION = "single"
ACTION = "wilson"
START = "cold"
SEED = 1
RNG = "philox"
LUXURY = 3
"""The quality level of generators that have levels."""
HEATBATH = 1
OVERRELAX = 4
THERMALIZE = 200
CONFIGS = 10
SEPARATION = 20
MEASURE = ("plaquette", "polyakov")
FORMAT = "ildg"
SMEARING = "ape"
CHECKPOINT_EVERY = 10.0
"""Minutes between checkpoints."""

START_RNG = "philox"
"""The generator of Haar-random starts, whatever the run's own: one that needs no states."""

"""Situations with quarks in which a command or an option is named; see `tests.advice`."""

from tests.advice.scenarios import Scenario

THERMAL = (
    "scan --lattice 4x4x4x2 --thermalize 2 --configs 20 --separation 1 --format none --quiet "
    "--algorithm hmc --precision double --steps 4 --output s"
)
TRACED = (
    "generate --lattice 4x4x4x4 --thermalize 2 --configs 24 --separation 1 --format none --quiet "
    "--beta 1000 --measure condensate:1:kappa=0.05:noise=gaussian:sources="
)

MESONS = "--measure mesons:1:kappa=0.1:propagators=kept/../kept"
KEPT = "generate --output kept --quiet --configs"
QUARKS = f"{THERMAL} --beta 1.6 --quarks wilson:kappa=0.05,0.06"
BOTH = f"{THERMAL} --beta 1.6,1.7 --quarks wilson:kappa=0.05,0.06"
DYNAMICAL = (
    "generate --lattice 4x4x4x6 --thermalize 1 --configs 1 --separation 1 --quiet --output other "
    "--algorithm hmc --precision double --quarks"
)
DOUBLET = "kappa=0.1:mu_sigma=0.1:mu_delta=0.05"
MESON_RUN = "measure mesons run --kappa 0.1 --source"
TRACED_RUN = "measure condensate run --kappa 0.1 --sources 1 --dilute"


def dynamical(message, refused, advice, followed, steps=" --steps 4"):
    """What a run says about dynamical quarks, and the quarks that follow its advice."""
    return Scenario(message, f"{DYNAMICAL} {refused}", advice, f"{DYNAMICAL} {followed}{steps}")


SCENARIOS = [
    Scenario(
        "add --measure {} to allow it",
        f"{KEPT} 2",
        f"add {MESONS} to allow it",
        f"{KEPT} 2 {MESONS}",
        before=(
            f"{KEPT} 1 {MESONS} --lattice 4x4x4x6 --thermalize 0 --separation 1 --format none",
        ),
    ),
    Scenario(
        "--dry-run is for configurations that are kept; leave out --at.",
        "measure mesons run --kappa 0.1 --dry-run --at 6",
        "leave out --at",
        "measure mesons run --kappa 0.1 --dry-run",
    ),
    Scenario(
        "gauge-mc fit {} {}", "fit transition s", "gauge-mc fit crossover s", before=(QUARKS,)
    ),
    Scenario(
        "The quarks of all runs are the same, so that all measurements of the Polyakov loop count "
        "at every β with `gauge-mc fit transition {}`.",
        "fit crossover s",
        "gauge-mc fit transition s",
        before=(f"{THERMAL} --beta 1.6,1.7",),
    ),
    Scenario(
        "The runs in {} differ in {}; say with --over {} which of them is varied along a curve.",
        "fit crossover s",
        "--over beta",
        "fit crossover s --over beta",
        before=(BOTH,),
    ),
    Scenario(
        "--over is {}, but the runs in {} differ in {}; give {}.",
        "fit crossover s --over lambda",
        "give beta or kappa",
        "fit crossover s --over kappa",
        before=(BOTH,),
    ),
    Scenario(
        "--refine adds values of β, of which {} has one for each of its quarks; add values to "
        "--quarks, or several to --beta.",
        "scan --output s --refine",
        "add values to --quarks",
        "scan --output s --quarks wilson:kappa=0.07 --quiet",
        before=(QUARKS,),
    ),
    Scenario(
        "--t-max is {}; a fit from t = {} on needs at least {}.",
        "fit mesons tables --t-min 3 --t-max 3",
        "needs at least",
        "fit mesons tables --t-min 3 --t-max 8",
    ),
    Scenario(
        "--t-min is {}; choose a time from 1 on.",
        "fit mesons tables --t-min 0",
        "choose a time from 1 on",
        "fit mesons tables --t-min 1",
    ),
    Scenario(
        "With one source the noise cannot be told from the fluctuations of the links, and the "
        "disconnected susceptibility is not known; measure with more --sources.",
        "fit condensate traced",
        "measure with more --sources",
        f"{TRACED}2 --output more",
        before=(f"{TRACED}1 --output traced",),
        then="fit condensate more",
    ),
    Scenario(
        "Most of the error of the condensate is noise of the sources: measure with more --sources, "
        "or divide them by more with --dilute.",
        "fit condensate traced",
        "or divide them by more with --dilute",
        f"{TRACED}2:dilute=spin;colour --output more",
        before=(f"{TRACED}2 --output traced",),
        then="fit condensate more",
    ),
    Scenario(
        "--dilute is {}, but sources are not divided by {}; give {}, or several with commas "
        "between them, or {}.",
        f"{TRACED_RUN} chiral",
        "give spin, colour, even-odd or time",
        f"{TRACED_RUN} spin",
    ),
    Scenario(
        "--dilute is {}; leave out {}, or all others.",
        f"{TRACED_RUN} none,spin",
        "leave out none, or all others",
        f"{TRACED_RUN} spin",
    ),
    Scenario(
        "--dilute is {}, which repeats a word; give each only once.",
        f"{TRACED_RUN} spin,spin",
        "give each only once",
        f"{TRACED_RUN} spin",
    ),
    Scenario(
        "--basis is for propagators; give it alone or with --from-basis, and --to and "
        "--precision for configurations.",
        "convert run/configs/0000005.lime x.nersc --to nersc --basis dirac",
        "--to and --precision for configurations",
        "convert run/configs/0000005.lime x.nersc --to nersc",
    ),
    Scenario(
        "Quarks of {} have a hopping parameter instead of a mass: give it with --kappa, "
        "without --quark.",
        "measure mesons run --quark wilson:kappa=0.1",
        "give it with --kappa",
        f"{MESON_RUN} point:0,0,0,0",
    ),
    Scenario(
        "--source is '{}'; write {}:{} with numbers.",
        f"{MESON_RUN} point:a",
        "write point",
        f"{MESON_RUN} point:0,0,0,0",
    ),
    Scenario(
        "--kappa is {}, which is beyond its critical value at every coupling, also with a"
        " twisted mass; choose one below {}.",
        "measure mesons run --kappa 0.3",
        "choose one below",
        f"{MESON_RUN} point:0,0,0,0",
    ),
    dynamical(
        "--quarks needs kappa, the hopping parameter; add kappa=NUMBER.",
        "wilson",
        "add kappa=NUMBER",
        "wilson:kappa=0.1",
    ),
    dynamical(
        "--quarks {} needs m, the mass of the quarks; add m=NUMBER.",
        "domain-wall:LS=2",
        "add m=NUMBER",
        "domain-wall:LS=2:m=0.5",
    ),
    dynamical(
        "--heavier is {}, but one of its masses is not heavier than the one before; give {}, "
        "the lightest mass first.",
        "wilson:kappa=0.1:heavier=kappa=0.12",
        "give smaller kappa",
        "wilson:kappa=0.1:heavier=kappa=0.08",
    ),
    dynamical(
        "--quarks asks for level {}, but the last one is {}; add it to --levels, whose "
        "first one is 0.",
        "wilson:kappa=0.1:level=2",
        "add it to --levels",
        "wilson:kappa=0.1:level=1 --levels omf2:4,omf2:3",
        steps="",
    ),
    dynamical(
        "--range is for one flavour, but --quarks asks for two; leave it out, or choose "
        "flavours=1.",
        "wilson:kappa=0.1:range=0.01,6",
        "leave it out",
        "wilson:kappa=0.1",
    ),
    dynamical(
        "--range is {}; give the smallest and the largest eigenvalue.",
        "wilson:kappa=0.1:flavours=1:range=6,0.01",
        "give the smallest",
        "wilson:kappa=0.1:flavours=1:range=0.01,6",
    ),
    dynamical(
        "--history with a --force-tolerance of {} makes trajectories irreversible; give "
        "{} or less.",
        "wilson:kappa=0.1:history=3:force_tolerance=1e-3",
        "give",
        "wilson:kappa=0.1:history=3:force_tolerance=1e-10",
    ),
    dynamical(
        "--level has {}, and the number of masses of --quarks is {}; give one level, or one "
        "for each mass.",
        "wilson:kappa=0.1:level=0,0,0",
        "give one level",
        "wilson:kappa=0.1:level=0",
    ),
    dynamical(
        "--{} is for two flavours, but --quarks asks for one; leave it out, or choose flavours=2.",
        "wilson:kappa=0.1:flavours=1:range=0.01,6:heavier=kappa=0.08",
        "leave it out",
        "wilson:kappa=0.1:flavours=1:range=0.01,6",
    ),
    dynamical(
        "Links in {} precision are too inexact for trajectories with {}; choose --precision {}.",
        "wilson:kappa=0.1 --precision single",
        "choose --precision",
        "wilson:kappa=0.1",
    ),
    Scenario(
        "--smear is for sources that are smeared; choose one.",
        f"{MESON_RUN} point:0,0,0,0 --smear ape:0.5x2",
        "choose one",
        f"{MESON_RUN} gauss:1,5 --smear ape:0.5x2",
    ),
    Scenario(
        "Smeared sources need quarks that are periodic in space; choose another "
        "--boundary or another --source.",
        f"{MESON_RUN} gauss:1,5 --boundary 1,0,0,0",
        "choose another --boundary",
        f"{MESON_RUN} point:0,0,0,0 --boundary 1,0,0,0",
    ),
    dynamical(
        "--mu-delta is {}, but 2 kappa mu_delta must be below 1; choose a smaller one.",
        "kappa=0.1:mu_sigma=0.1:mu_delta=10",
        "choose a smaller one",
        DOUBLET,
    ),
    dynamical(
        "A doublet with mu_sigma is two flavours, but --quarks asks for one; leave out "
        "flavours, or mu_sigma and mu_delta.",
        f"{DOUBLET}:flavours=1",
        "leave out flavours",
        DOUBLET,
    ),
    dynamical(
        "--mu-delta splits the masses of a doublet, which also needs the twisted mass "
        "mu_sigma; for Wilson quarks of two masses give two tables with flavours=1.",
        "kappa=0.1:mu_delta=0.05",
        "needs the twisted mass",
        DOUBLET,
    ),
    dynamical(
        "--{} is for two flavours of one mass, but --quarks asks for a rational function,"
        " whose solutions conjugate gradients find all at once from 0; leave it out.",
        "wilson:kappa=0.1:flavours=1:range=0.01,6:history=3:force_tolerance=1e-11",
        "leave it out",
        "wilson:kappa=0.1:flavours=1:range=0.01,6",
    ),
]


ELSEWHERE = {
    ", or name the times anyway, as in --t-min {} --t-max {}": (
        "spectroscopy/test_masses.py carries it out"
    ),
    "The effective mass has no plateau up to t = {}, because excited states contribute or because "
    "it is too noisy; measure more configurations, use a longer lattice, or name the times, as in "
    "--t-min {} --t-max {}.": "spectroscopy/test_masses.py carries it out",
}
"""Messages that are carried out nowhere here, and why."""

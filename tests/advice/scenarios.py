"""Situations in which the package names a command or an option, and what then is done.

A new message that names one needs an entry: a `Scenario`, or a reason in `ELSEWHERE` why it cannot
be carried out in a test. Messages that no scenario reaches yet are listed in ``open.txt``.
"""

from dataclasses import dataclass
from pathlib import Path

OF_OTHERS = Path(__file__).resolve().parents[1] / "formats" / "of_others"
CONVERT = f"convert {OF_OTHERS / 'lqjl_su2.ildg'} links.lime --to ildg"
RUN = "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet --output"


@dataclass(frozen=True)
class Scenario:
    """A command line that prints a message, and the one that follows its advice."""

    message: str
    """The message as `tests.advice.messages` has it."""
    command: str
    """The command line that prints it, in a folder with the run ``run``."""
    printed: str
    """The part of what is printed that is followed."""
    follow: str = ""
    """The command line that follows the advice; by default the command that was printed."""
    before: tuple[str, ...] = ()
    """Command lines that lead to the situation."""
    then: str = ""
    """A command line that was refused before and now is accepted."""
    remove: str = ""
    """A file that is lost before."""


SCAN = "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 --quiet"
IMPROVED = (
    "scan --output scan --lattice 4x4x4x4 --configs 20 --separation 1 --thermalize 0 "
    "--beta 1.6,1.7 --action symanzik"
)
LOOPS = "measure wilson-loops run --r-max 1 --t-max 2"
HMC = "--algorithm hmc --precision double"
UNKEPT = (f"{RUN} none --format none",)

LOOPED = (
    "generate --lattice 4x4x4x8 --thermalize 20 --configs 40 --separation 1 --format none "
    "--measure wilson-loops:1:r-max=2:t-max=4 --quiet --output looped",
)

SCENARIOS = [
    Scenario(
        "{} with --all.",
        "fit potential looped --t-min 1 --t-max 2",
        "1 further table with --all.",
        "fit potential looped --t-min 1 --t-max 2 --all",
        before=LOOPED,
    ),
    Scenario(
        "gauge-mc {} --output {}{}",
        "measure flow run --to 0.4",
        "gauge-mc generate --output run --configs 10",
        then="measure flow run --to 0.4",
    ),
    Scenario(
        " --configs {}",
        LOOPS,
        "gauge-mc generate --output run --configs 10",
        then=LOOPS,
    ),
    Scenario(
        "--at {}:{}:{}",
        "measure flow none --at 5 --to 0.4",
        "--at 5:32:3",
        "generate --output none --configs 10 --quiet",
        before=UNKEPT,
        then="measure flow none --to 0.4 --at 5:32:3",
    ),
    Scenario(
        "make one with gauge-mc measure {} {}{}",
        "fit scale run",
        "gauge-mc measure flow run",
    ),
    Scenario(
        " --at {}",
        "fit scale none",
        "gauge-mc measure flow none --at 5:11:3",
        before=UNKEPT,
    ),
    Scenario(
        "repeat the command with --at {}, which makes them again",
        "measure plaquette none",
        "--at 5:11:3",
        "measure plaquette none --at 5:11:3",
        before=UNKEPT,
    ),
    Scenario(
        "The run {} keeps no configurations, because its format is {}; give a folder for them "
        "with --output.",
        "regenerate none --at 8",
        "give a folder for them with --output",
        "regenerate none --at 8 --output made",
        before=UNKEPT,
    ),
    Scenario(
        "The run {} keeps no configuration after update {}, but after every {} updates from {} "
        "on; give a folder for others with --output.",
        "regenerate run --at 6",
        "give a folder for others with --output",
        "regenerate run --at 6 --output made",
    ),
    Scenario(
        "The run {} has configurations in the format {}; give --output for others in {}.",
        "regenerate run --at 8 --format nersc",
        "give --output for others in nersc",
        "regenerate run --at 8 --format nersc --output made",
    ),
    Scenario(
        "make {} again with gauge-mc regenerate {} --at {}",
        "verify run",
        "gauge-mc regenerate run --at 8",
        remove="run/configs/0000008.lime",
    ),
    Scenario(
        "Name the plot before the run, as in gauge-mc plot plaquette {}.",
        "plot run",
        "gauge-mc plot plaquette run",
    ),
    Scenario(
        "{} has {}; choose another --output.",
        f"{RUN} run --beta 2.4",
        "choose another --output",
        f"{RUN} other --beta 2.4",
    ),
    Scenario(
        "{} has configs = {}; --configs can be increased, but not decreased to {}.",
        "generate --output run --configs 2 --quiet",
        "--configs can be increased",
        "generate --output run --configs 4 --quiet",
    ),
    Scenario(
        "--exchange-every is {}, but has an effect only with --tempering; add that, or leave it "
        "out.",
        f"{SCAN} --beta 2.2 --exchange-every 2",
        "leave it out",
        f"{SCAN} --beta 2.2",
    ),
    Scenario(
        "--start {} names the starts of {} chains; add --chains {}, or choose one of them.",
        f"{RUN} other --start hot,cold",
        "add --chains 2",
        f"{RUN} other --start hot,cold --chains 2",
    ),
    Scenario(
        "--dry-run describes a single chain; leave out --chains.",
        f"{RUN} other --chains 2 --dry-run",
        "leave out --chains",
        f"{RUN} other --dry-run",
    ),
    Scenario(
        "--output names one file, but there are several runs; leave it out.",
        "fit hmc hmc hmc --output x.json",
        "leave it out",
        "fit hmc hmc hmc",
        before=(f"{RUN} hmc {HMC}",),
    ),
    Scenario(
        "There is no folder {} for the table {}; create it, or choose another --output.",
        "measure plaquette run --output no/x.csv",
        "choose another --output",
        "measure plaquette run --output x.csv",
    ),
    Scenario(
        "{} is a folder; name a file for the table with --output.",
        "measure plaquette run --output run",
        "name a file for the table with --output",
        "measure plaquette run --output x.csv",
    ),
    Scenario(
        "The table {} has {}; choose another --output, or remove the table.",
        "measure polyakov run --output x.csv",
        "choose another --output",
        "measure polyakov run --output y.csv",
        before=("measure plaquette run --output x.csv --quiet",),
    ),
    Scenario(
        "--dry-run is for configurations that are kept; leave out --at.",
        "measure mesons run --kappa 0.1 --dry-run --at 6",
        "leave out --at",
        "measure mesons run --kappa 0.1 --dry-run",
    ),
    Scenario(
        "--keep is {}; choose at least 2, which keeps every other one.",
        "thin run --keep 1",
        "choose at least 2",
        "thin run --keep 2",
    ),
    Scenario(
        "--keep {} would remove all {} configurations of {}; choose a smaller number.",
        "thin run --keep 9",
        "choose a smaller number",
        "thin run --keep 3",
    ),
    Scenario(
        "There is no scan in {} yet; to begin one, give --beta, such as --beta 2.2:2.8:0.05.",
        SCAN,
        "--beta 2.2:2.8:0.05",
        f"{SCAN} --beta 2.2:2.8:0.05",
    ),
    Scenario(
        "--to and --until exclude each other; give one.",
        "measure flow run --to 1 --until 0.3",
        "give one",
        "measure flow run --to 1",
    ),
    Scenario(
        "--skip {} leaves no measurements of {}, whose last one was made after update {}; skip "
        "less.",
        "plot plaquette run --skip 100",
        "skip less",
        "plot plaquette run --skip 2",
    ),
    Scenario(
        "Tempering exchanges couplings, and on {} there is only β = {}; give --beta several "
        "values, or leave out --tempering.",
        f"{SCAN} --beta 2.2 --tempering",
        "leave out --tempering",
        f"{SCAN} --beta 2.2",
    ),
    Scenario(
        "--dry-run cannot be combined with {}; leave out one of them.",
        f"{SCAN} --beta 2.2 --dry-run --collect",
        "leave out one of them",
        f"{SCAN} --beta 2.2 --dry-run",
    ),
    Scenario(
        "--output names one table, but {} ensembles are measured; leave it out, so that each run "
        "has its own.",
        "measure plaquette run other --output x.csv",
        "leave it out",
        "measure plaquette run other",
        before=(f"{RUN} other --beta 2.4",),
    ),
    Scenario(
        "--weight and --alpha are two forms of the same parameter; give one.",
        f"{LOOPS} --weight 0.2 --alpha 0.5",
        "give one",
        f"{LOOPS} --weight 0.2",
    ),
    Scenario(
        "The memory of {} is not forecast, because it is about that of the links; leave out "
        "--dry-run, which is for quarks.",
        "measure plaquette run --dry-run",
        "leave out --dry-run",
        "measure plaquette run",
    ),
    Scenario(
        "--step is {}, with which the flow {} is not stable; give at most {}.",
        "measure flow run --step 1",
        "give at most",
        "measure flow run --step 0.05",
    ),
    Scenario(
        "--json describes the check of a card; name one, or leave it out.",
        "card --json",
        "leave it out",
        "card",
    ),
    Scenario(
        "--json prints one object; follow the file {}, which consists of them.",
        "status run --json --follow",
        "follow the file run.log",
        "status run --json",
    ),
    Scenario(
        "{} is not a publication whose configurations could be made again; leave out --regenerate.",
        "verify run --regenerate 2",
        "leave out --regenerate",
        "verify run",
    ),
    Scenario(
        "--thermalize is 0, so that there are no trajectories from which to find the number of "
        "steps; give --steps.",
        f"{RUN} other {HMC} --thermalize 0",
        "give --steps",
        f"{RUN} other {HMC} --thermalize 0 --steps 4",
    ),
    Scenario(
        "There is no table of {} in {}, as runs have that were made with --algorithm {}; name "
        "such a run.",
        "fit hmc run",
        "made with --algorithm hmc; name such a run",
        "fit hmc hmc",
        before=(f"{RUN} hmc {HMC}",),
    ),
    Scenario(
        "{} is not empty and has no run.toml; choose another --output.",
        f"{RUN} run/configs",
        "choose another --output",
        f"{RUN} other",
    ),
    Scenario(
        "{} is a file; choose another --output.",
        f"{RUN} run/run.toml",
        "choose another --output",
        f"{RUN} other",
    ),
    Scenario(
        "--devices {} is not possible with --backend {}: give a number of GPUs, a list of GPUs "
        "such as 0,2, all, or {}.",
        "measure plaquette run --devices 2",
        "or cpu:N",
        "measure plaquette run --devices cpu:1",
    ),
    Scenario(
        "gauge-mc scan {} {} {} {}",
        "fit transition scan",
        "gauge-mc scan --card scan/b1.6_4x4x4x4_chain1/run.toml --beta 1.6,1.7 --lattice 4x4x4x4 "
        "--chains 1 --measure plaquette,polyakov,rectangles --output scan_again",
        then="fit transition scan_again",
        before=(f"{IMPROVED} --measure plaquette,polyakov",),
    ),
    Scenario(
        "The value of the action {}, which fits of scans need, will not be known: measure its "
        "loops as well, with --measure {}.",
        f"{IMPROVED} --measure plaquette,polyakov",
        "with --measure plaquette,polyakov,rectangles",
        f"{IMPROVED} --measure plaquette,polyakov,rectangles --output other",
    ),
]

SCENARIOS += [
    Scenario(
        "RUN --at 250,300:400:10",
        "regenerate run",
        "gauge-mc regenerate RUN --at 250,300:400:10",
        "regenerate run --at 6 --output made",
    ),
    Scenario("RUN --keep 2", "thin", "gauge-mc thin RUN --keep 2", "thin run --keep 2"),
    Scenario(
        "RUN FOLDER --author 'Family, Given'",
        "publish run",
        "gauge-mc publish RUN FOLDER --author 'Family, Given'",
        "publish run data --author 'Family, Given'",
    ),
    Scenario(
        "gauge-mc {} needs {}{}.",
        "export run",
        "needs RUN and OUT, as in gauge-mc export RUN tables.h5",
        "export run tables.h5",
    ),
    Scenario(
        ", as in gauge-mc {} {}",
        "convert",
        "as in gauge-mc convert CONFIG OUT",
        "convert run/configs/0000008.lime links.nersc --to nersc",
    ),
    Scenario(
        "gauge-mc {} needs a name, as in gauge-mc {} {}; choose {}.",
        "plot",
        "as in gauge-mc plot",
        "plot plaquette run",
    ),
    Scenario(
        "{} exists; choose another --out.",
        "card --beta 2.4 --out card.toml",
        "choose another --out",
        "card --beta 2.4 --out other.toml",
        before=("card --out card.toml",),
    ),
    Scenario(
        "{} has {} of {} configurations of the run; measure the others with gauge-mc measure {} "
        "{}.",
        "fit creutz run",
        "gauge-mc measure wilson-loops run",
        "measure wilson-loops run --r-max 1 --t-max 2",
        before=(LOOPS, "generate --output run --configs 4 --quiet"),
    ),
    Scenario(
        "it has links, but states neither their group nor their extents; give both to info, "
        "verify or measure, as in --lattice 8x8x8x16 --group su3, or to gauge-mc convert, "
        "which writes a file that states them",
        f"measure plaquette {OF_OTHERS / 'lqjl_su2.ildg'}",
        "measure, as in --lattice 8x8x8x16 --group su3",
        f"measure plaquette {OF_OTHERS / 'lqjl_su2.ildg'} --lattice 4x4x4x4 --group su2",
        then=f"{CONVERT} --lattice 4x4x4x4 --group su2",
    ),
    Scenario(
        "{} may have links of another group or on another lattice than {} on {}, which --lattice "
        "and --group say, because {}; give others, or restore it from a copy if they are right.",
        f"verify {OF_OTHERS / 'lqjl_su2.ildg'} --lattice 4x4x4x8 --group su2",
        "SU(2) on 4x4x4x8, which --lattice and --group say",
        f"verify {OF_OTHERS / 'lqjl_su2.ildg'} --lattice 4x4x4x4 --group su2",
    ),
    Scenario(
        "{} states its lattice and its group; leave --lattice and --group out.",
        f"info {OF_OTHERS / 'milc_inst_v4'} --lattice 4x4x4x4 --group su3",
        "leave --lattice and --group out",
        f"info {OF_OTHERS / 'milc_inst_v4'}",
    ),
    Scenario(
        "--multilevel and --multihit are for even extents, but the lattice is {}; leave them out.",
        f"measure wilson-loops {OF_OTHERS / 'odd_3x2x2x3.nersc'} --multilevel 1,2",
        "leave them out",
        f"measure wilson-loops {OF_OTHERS / 'odd_3x2x2x3.nersc'}",
    ),
    Scenario(
        "--lattice and --group belong together; give both, or neither.",
        f"{CONVERT} --lattice 4x4x4x4",
        "give both",
        f"{CONVERT} --lattice 4x4x4x4 --group su2",
    ),
    Scenario(
        "--every is {}, the flow time between records, but the flow ends at {} already; give a "
        "shorter one.",
        "measure flow run --every 10 --to 0.1",
        "give a shorter one",
        "measure flow run --every 0.1 --to 0.1",
    ),
]

ELSEWHERE = {
    "gauge-mc {}": "a version",
    "gauge-mc {}: {}": "a version",
    "Made by gauge-mc {}, {}": "a version",
    "{} with gauge-mc {}": "a version",
    "with the loops of its action in --measure": "for tables that were copied without their run",
    "--strict does not hold for {} yet, but for {}; choose one of these, or leave out --strict.": (
        "for algorithms of other packages; it holds for all of this one"
    ),
    "{} --again": (
        "for sources that have changed; tests/run/test_source_versions.py carries it out"
    ),
}
"""Messages that are carried out nowhere, and why."""

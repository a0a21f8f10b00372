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
    write: tuple[str, str] | None = None
    """A file that somebody has written before, and its content."""
    program: tuple[str, str] | None = None
    """A program on the search path, and its content."""


SCAN = "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 --quiet"
IMPROVED = (
    "scan --output scan --lattice 4x4x4x4 --configs 20 --separation 1 --thermalize 0 "
    "--beta 1.6,1.7 --action symanzik"
)
HUGE = f"{SCAN} --lattice 256x256x256x128 --group su3 --precision double --beta 6"
LOOPS = "measure wilson-loops run --r-max 1 --t-max 2"
HMC = "--algorithm hmc --precision double"
COPIED = ("convert run --to ildg --output copy --quiet",)
UNKEPT = (f"{RUN} none --format none",)

LOOPED = (
    "generate --lattice 4x4x4x8 --thermalize 20 --configs 40 --separation 1 --format none "
    "--measure wilson-loops:1:r-max=2:t-max=4 --quiet --output looped",
)


FLOWED = (
    "generate --lattice 8x8x8x8 --beta 2.3 --thermalize 9 --configs 10 --separation 1 --quiet "
    "--measure flow:1:to=0.4 --output flowed",
)

TEMPERED = (
    "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 --quiet "
    "--beta 2.2,2.4 --tempering"
)

DETERMINE = "determine t0 --lattice 6x6x6x6 --beta 2.2 --target 0.05 --quiet"

SCENARIOS = [
    Scenario(
        "gauge-mc {} needs {}{}.",
        "determine",
        "as in gauge-mc determine r0 --error 1%",
        f"{DETERMINE} --error 90%",
    ),
    Scenario(
        "{} needs --error, --time or both, as in --error 1% --time 10m.",
        DETERMINE,
        "as in --error 1% --time 10m.",
        f"{DETERMINE} --error 90% --time 10m",
    ),
    Scenario(
        "--error is '{}'; give one such as 0.5% or 0.005.",
        f"{DETERMINE} --error 200%",
        "give one such as 0.5% or 0.005",
        f"{DETERMINE} --error 0.9",
    ),
    Scenario(
        "No length of {} is known; name a --beta near {}.",
        "determine beta-c --nt 2 --error 90% --quiet",
        "name a --beta near beta-c",
        "determine beta-c --nt 2 --error 90% --quiet --beta 1.87 --lattice 4x4x4x2,6x6x6x2",
    ),
    Scenario(
        "{} with --all.",
        "fit potential looped",
        "3 further tables with --all.",
        "fit potential looped --all",
        before=LOOPED,
    ),
    Scenario(
        "Too few distances are from R = {} to {}: a fit needs {}; choose a wider window with "
        "--r-min and --r-max.",
        "fit potential looped --r-min 3",
        "choose a wider window with --r-min",
        "fit potential looped --r-min 1",
        before=LOOPED,
    ),
    Scenario(
        " ({} more with --all)",
        "fit potential looped",
        "more with --all)",
        "fit potential looped --all",
        before=LOOPED,
    ),
    Scenario(
        "`gauge-mc {} --output {} --configs {}`",
        "measure flow run --to 0.4",
        "gauge-mc generate --output run --configs 10",
        then="measure flow run --to 0.4",
    ),
    Scenario(
        "`gauge-mc {} --output {} --configs {}`",
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
        "make one with `gauge-mc measure {} {} --at {}`",
        "fit scale run",
        "gauge-mc measure flow run",
    ),
    Scenario(
        "make one with `gauge-mc measure {} {} --at {}`",
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
        "make {} again with `gauge-mc regenerate {} --at {}`",
        "verify run",
        "gauge-mc regenerate run --at 8",
        remove="run/configs/0000008.lime",
    ),
    Scenario(
        "gauge-mc {} {} {}",
        "plot run",
        "gauge-mc plot plaquette run",
    ),
    Scenario("gauge-mc {} {} {}", "measure run plaquette", "gauge-mc measure plaquette run"),
    Scenario(
        "make one with `gauge-mc measure {} {} --at {}`",
        "fit creutz scan",
        "`gauge-mc measure wilson-loops scan`",
        "measure wilson-loops scan --quiet",
        before=(f"{SCAN} --beta 2.2,2.4",),
    ),
    Scenario(
        "gauge-mc {} {}",
        "generate --beta 2.2:2.4:0.1 --lattice 4x4x4x4 --thermalize 0 --configs 1 --quiet",
        "gauge-mc scan --beta 2.2:2.4:0.1 --lattice 4x4x4x4",
    ),
    Scenario(
        "generate --output RUN",
        "resume",
        "generate --output RUN",
        "generate --output run --configs 4 --quiet",
    ),
    Scenario(
        "configs 100 --separation 10",
        "generate --sweeps 9",
        "--configs 100 --separation 10",
        f"{RUN} other --configs 2 --separation 10",
    ),
    Scenario(
        "generate --lattice 8x8x8x8 --beta 2.4",
        "help",
        "gauge-mc generate --lattice 8x8x8x8 --beta 2.4",
        "generate --lattice 8x8x8x8 --beta 2.4 --quiet",
        then="measure wilson-loops --quiet",
    ),
    Scenario(
        " with `gauge-mc scan --output {} --refine`",
        "fit transition scan",
        "hardly overlap",
        "scan --output scan --refine --quiet",
        before=(f"{SCAN} --beta 1.2,2.8 --configs 60 --format none",),
    ),
    Scenario(
        "--per-device must lie between 1 and {}, not {}.",
        f"{SCAN} --beta 2.2 --per-device 0",
        "must lie between 1",
        f"{SCAN} --beta 2.2 --per-device 1",
    ),
    Scenario(
        "--r-max is {}; on {} choose it between 1 and {}, half the lattice.",
        "measure polyakov-correlators run --r-max 3",
        "--r-max is 3; on 4x4x4x6 choose it between 1 and 2",
        "measure polyakov-correlators run --r-max 2",
    ),
    Scenario(
        "--r-max is {}, less than one step along {}; choose a larger one.",
        "measure wilson-loops run --t-max 2 --r-max 1 --off-axis",
        "choose a larger one",
        "measure wilson-loops run --t-max 2 --r-max 2 --off-axis",
    ),
    Scenario(
        "{} has {}; choose another --output.",
        f"{RUN} run --beta 2.4",
        "choose another --output",
        f"{RUN} other --beta 2.4",
    ),
    Scenario(
        "{} has made {}; --configs can be increased, or decreased to {}, but not to {}.",
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
        "--remove takes out the points that --beta, --lattice and other options of the grid name, "
        "and nothing else; give these only.",
        "scan --output scan --remove --beta 2.4 --configs 2",
        "give these only",
        "scan --output scan --remove --beta 2.4",
        before=(f"{SCAN} --beta 2.2,2.4",),
    ),
    Scenario(
        "--remove would take out {} of the {} runs of {}; name other points, or remove the folder "
        "to begin anew.",
        "scan --output scan --remove --beta 2.6",
        "name other points",
        "scan --output scan --remove --beta 2.4",
        before=(f"{SCAN} --beta 2.2,2.4",),
    ),
    Scenario(
        "{} To begin one, state its physics, such as --lattice and --beta.",
        "generate --output ru --configs 4",
        "did you mean 'run'?",
        "generate --output run --configs 4",
        then=f"{RUN} ru --beta 2.4",
    ),
    Scenario(
        "--every and --skip choose stored configurations, and --at updates; leave out one.",
        "measure plaquette run --at 5 --every 2",
        "leave out one",
        "measure plaquette run --at 5",
    ),
    Scenario(
        "--skip {} --every {} leaves none of the {}, the last of which is {}; choose other "
        "numbers.",
        "measure plaquette run --skip 5 --every 3",
        "choose other numbers",
        "measure plaquette run --skip 5 --every 2",
    ),
    Scenario(
        "{} and {} would both have the table {}; measure on the second alone, with --output.",
        "measure plaquette one/x two/x",
        "measure on the second alone, with --output",
        "measure plaquette two/x --output x.csv",
        before=(
            "convert run --to ildg --output one/x --quiet",
            "convert run --to ildg --output two/x --quiet",
        ),
    ),
    Scenario(
        "--output names one table, but {} ensembles are measured; leave it out, so that each "
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
        "{} is not empty and has no {}; choose another --output.",
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
        "gauge-mc {} needs {}{}.",
        "regenerate run",
        "gauge-mc regenerate RUN --at 250,300:400:10",
        "regenerate run --at 6 --output made",
    ),
    Scenario("gauge-mc {} needs {}{}.", "thin", "gauge-mc thin RUN --keep 2", "thin run --keep 2"),
    Scenario(
        "A Parquet file has one table; choose {} by --table.",
        "export run tables.parquet",
        "plaquette or polyakov by --table",
        "export run tables.parquet --table plaquette",
    ),
    Scenario(
        "A file of primary observables has one set of configurations, and the tables have several; "
        "choose {} by --table, or let the name end in .dobs.xml.gz.",
        "export longer tables.pobs.xml.gz",
        "choose plaquette or polyakov by --table",
        "export longer tables.pobs.xml.gz --table plaquette",
        before=(f"{RUN} longer --configs 6 --measure plaquette,polyakov:3",),
        then="export longer tables.dobs.xml.gz",
    ),
    Scenario(
        "gauge-mc {} needs {}{}.",
        "export run",
        "needs RUN|SCAN and OUT, as in gauge-mc export RUN tables.h5",
        "export run tables.h5",
    ),
    Scenario(
        "gauge-mc {} needs {}{}.",
        "convert",
        "as in gauge-mc convert CONFIG links.nersc --to nersc",
        "convert run/configs/0000008.lime links.nersc --to nersc",
    ),
    Scenario(
        "{} exists; choose another --out.",
        "card --beta 2.4 --out card.toml",
        "choose another --out",
        "card --beta 2.4 --out other.toml",
        before=("card --out card.toml",),
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
    Scenario(
        "--charge is '{}'; choose {}.",
        "fit topology tables --charge x",
        "choose",
        "fit topology tables",
    ),
    Scenario(
        "--energy is '{}'; choose {}.", "fit scale tables --energy x", "choose", "fit scale tables"
    ),
    Scenario(
        "--target is {}; give a positive number, such as {}.",
        "fit scale tables --target 0",
        "give a positive number",
        "fit scale tables --target 0.3",
    ),
    Scenario(
        "--t is {}; give a flow time between 0 and {}.",
        "fit topology tables --t -1",
        "give a flow time",
        "fit topology tables --t 1",
    ),
    Scenario(
        "--t is {}, but the flow ends at t/a² = {}; {}.",
        "fit topology flowed --t 1",
        "gauge-mc measure flow flowed --to 1 --output flowed/flow_to_1.csv",
        before=FLOWED,
        then="fit topology flowed/flow_to_1.csv --t 1",
    ),
    Scenario(
        "gauge-mc measure flow {} --to {} --every {} --flow {} --output {}",
        "fit scale flowed --target 0.002",
        "gauge-mc measure flow flowed --to 0.4 --every 0.025 --output flowed/flow_to_0.4.csv",
        before=FLOWED,
        then="fit topology flowed/flow_to_0.4.csv",
    ),
    Scenario(
        "--least is {}; choose it between 1 and {}.",
        "fit anisotropy tables --least 1000",
        "choose it between 1 and",
        "fit anisotropy tables --least 1",
    ),
    Scenario(
        (
            "--skip {} leaves nothing of {}, whose last measurement was made after update {};"
            " skip less."
        ),
        "fit scale tables --skip 100000",
        "skip less",
        "fit scale tables --skip 2",
    ),
    Scenario(
        "--chains is for --hmc; add it, or leave out --chains.",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --chains 2",
        "add it",
        (
            "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --chains 2 "
            "--hmc --precision double"
        ),
    ),
    Scenario(
        "--chains must lie between 1 and {}, not {}.",
        (
            "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --hmc "
            "--precision double --chains 0"
        ),
        "between 1 and",
        (
            "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --hmc "
            "--precision double --chains 1"
        ),
    ),
    Scenario(
        "--seconds must lie between {} and {}, not {}.",
        "bench --lattice 4x4x4x4 --backend cpu --threads 1 --seconds -1",
        "must lie",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1",
    ),
    Scenario(
        ("--observables: There is no observable, smearing, kind of temporal links or flow '{}'{}"),
        ("bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --observables foo"),
        "There is no",
        (
            "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --observables "
            "plaquette"
        ),
    ),
    Scenario(
        ("--action and its options are for the times of updates; leave them out, or leave out {}."),
        (
            "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --action "
            "iwasaki --observables plaquette"
        ),
        "leave them out",
        (
            "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --observables "
            "plaquette"
        ),
    ),
    Scenario(
        "a run card follows --card",
        "generate card.toml",
        "a run card follows --card",
        "generate --card card.toml --output from-card",
        write=(
            "card.toml",
            'lattice = "4x4x4x4"\nbeta = 5.7\nthermalize = 0\nconfigs = 1\nseparation = 1\n',
        ),
    ),
    Scenario(
        "`gauge-mc card`",
        "generate --card card.toml",
        "`gauge-mc card` lists all.",
        "card",
        write=("card.toml", "zzz = 4\n"),
    ),
    Scenario(
        "--help shows what it takes",
        "status run run",
        "--help shows what it takes",
        "status --help",
    ),
    Scenario(
        "--card is for --hmc; add it, or leave out --card.",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --card x.toml",
        "leave out --card",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1",
    ),
    Scenario(
        "--over compares rates, which --end-to-end and others do not have; leave it out.",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --end-to-end --over threads=1",
        "leave it out",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette",
    ),
    Scenario(
        "Names are for the times of updates and of --observables; leave out {}, or leave them out.",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --end-to-end plaquette",
        "leave out --end-to-end",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette",
    ),
    Scenario(
        "--over must be {} with values, as in devices=1,2,4.",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette --over beta=1,2",
        "as in devices=1,2,4",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette --over devices=cpu:1",
    ),
    Scenario(
        "--over must have different values, {} at most.",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette --over threads=1,1",
        "different values",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette --over threads=1",
    ),
    Scenario(
        "--weak is for --over {}; leave it out.",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette --over lattice=4 --weak",
        "leave it out",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette --over lattice=4",
    ),
    Scenario(
        "--over {} takes numbers, as in {}=1,2,4.",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette --over threads=all",
        "as in threads=1,2,4",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette --over threads=1,2",
    ),
    Scenario(
        "--weak and --plot are for --over; add it, or leave them out.",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette --weak",
        "leave them out",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette",
    ),
    Scenario(
        "--over is for one benchmark after the other; leave out --tune and --compare.",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette --over threads=1 --tune",
        "leave out --tune",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu plaquette --over threads=1",
    ),
    Scenario(
        "--tune works only on a GPU and in one process; leave it out.",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --tune",
        "leave it out",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1",
    ),
    Scenario(
        "{} is not a result of gauge-mc bench; write one with --save.",
        ("bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --compare run/run.toml"),
        "write one with --save",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --save b.json",
    ),
    Scenario(
        (
            "gauge-mc convert takes one CONFIG and one OUT, and not {}; give --output "
            "FOLDER to convert any number of configurations."
        ),
        "convert run/configs/0000005.lime --to nersc",
        "give --output FOLDER",
        "convert run/configs/0000005.lime --to nersc --output new",
    ),
    Scenario(
        "{} already exists and is not what {} becomes ({}); remove it, or choose another --output.",
        "convert run --to nersc --output new",
        "choose another --output",
        "convert run --to nersc --output other",
        before=("convert run --to nersc --output new --precision double",),
    ),
    Scenario(
        "{} and {} would both become {}; convert them separately, each with another --output.",
        "convert run run/configs/0000005.lime --to nersc --output new",
        "each with another --output",
        "convert run --to nersc --output new",
        then="convert run/configs/0000005.lime --to nersc --output other",
    ),
    Scenario(
        "{} is no folder; choose another --output.",
        "convert run --to nersc --output run/run.toml",
        "choose another --output",
        "convert run --to nersc --output new",
    ),
    Scenario(
        "--to is missing; choose {}.",
        "convert run/configs/0000005.lime x.nersc",
        "choose",
        "convert run/configs/0000005.lime x.nersc --to nersc",
    ),
    Scenario(
        "{} adds runs, and --collect carries out none; leave out one.",
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2 --refine --collect"
        ),
        "leave out one",
        "scan --output scan --collect",
        before=(
            (
                "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
                "--quiet --beta 2.2"
            ),
        ),
    ),
    Scenario(
        (
            "--skip cannot be combined with --submit; give it with --collect, when the "
            "results are averaged."
        ),
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2 --submit slurm --skip 2"
        ),
        "give it with --collect",
        "scan --output scan --collect --skip 0",
        before=(
            (
                "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
                "--quiet --beta 2.2"
            ),
        ),
    ),
    Scenario(
        (
            "no run is running: the jobs are queued or have ended; to see which: {}; once they "
            "have ended, to submit the rest: {} --submit {}"
        ),
        "status scan",
        "--submit pbs",
        "scan --output scan --submit pbs --dry-run",
        before=(f"{SCAN} --beta 2.2 --submit pbs --submit-option time=1:00:00",),
        program=("qsub", "#!/bin/sh\necho 42.server\n"),
    ),
    Scenario(
        "--submit-option: '{}' is not of the form KEY=VALUE, as in time=12:00:00.",
        f"{SCAN} --beta 2.2 --submit pbs --submit-option =gpu",
        "as in time=12:00:00",
        f"{SCAN} --beta 2.2 --submit pbs --submit-option time=12:00:00 --dry-run",
    ),
    Scenario(
        "--submit-option: {} is decided by the script; leave it out, and give a time limit as "
        "{}=12:00:00.",
        f"{SCAN} --beta 2.2 --submit pbs --submit-option walltime=12:00:00",
        "give a time limit as time=12:00:00",
        f"{SCAN} --beta 2.2 --submit pbs --submit-option time=12:00:00 --dry-run",
    ),
    Scenario(
        "The time of the jobs is not known, since runs cannot be tried here ({}); give it, as in "
        "--submit-option time=12:00:00.",
        f"{HUGE} --submit lsf",
        "as in --submit-option time=12:00:00",
        f"{HUGE} --submit lsf --submit-option time=12:00:00 --dry-run",
    ),
    Scenario(
        "--submit-option: {} is an option of {} and not of {}; give that of {}, or leave it out.",
        f"{SCAN} --beta 2.2 --submit pbs --submit-option cpus-per-task=2",
        "give that of PBS, or leave it out",
        f"{SCAN} --beta 2.2 --submit pbs --submit-option ncpus=2 --dry-run",
    ),
    Scenario(
        "--submit-option: {} must be a positive whole number, not '{}'.",
        f"{SCAN} --beta 2.2 --submit lsf --submit-option time=1 --submit-option "
        "array_parallelism=all",
        "a positive whole number",
        f"{SCAN} --beta 2.2 --submit lsf --submit-option time=1 --submit-option "
        "array_parallelism=3 --dry-run",
    ),
    Scenario(
        "--submit-option has an effect only with --submit; add that, or leave it out.",
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2 --submit-option time=1:00:00"
        ),
        "leave it out",
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2"
        ),
    ),
    Scenario(
        "--devices {} is invalid: N in {}:N must lie between 1 and {}.",
        "measure plaquette run --devices cpu:0",
        "N in",
        "measure plaquette run --devices cpu:1",
    ),
    Scenario(
        "--threads is {}; give a whole number from 1 to {}.",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 0",
        "give a whole number",
        "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1",
    ),
    Scenario(
        (
            "--correlations needs at least two smearing levels; name them with --iterations, "
            "such as 0,10,25."
        ),
        "measure wilson-loops run --r-max 2 --t-max 2 --correlations --iterations 2",
        "name them with --iterations",
        "measure wilson-loops run --r-max 2 --t-max 2 --correlations --iterations 0,2",
    ),
    Scenario(
        (
            "--correlations needs the same links in direction t at all levels, but they are "
            "smeared; leave them out with --exclude t, or choose --temporal."
        ),
        (
            "measure wilson-loops run --r-max 2 --t-max 2 --correlations --iterations 0,2 "
            "--exclude none"
        ),
        "leave them out with --exclude t",
        (
            "measure wilson-loops run --r-max 2 --t-max 2 --correlations --iterations 0,2 "
            "--exclude t"
        ),
    ),
    Scenario(
        (
            "--multilevel and --multihit are for smearing within time slices; exclude t from "
            "the smearing."
        ),
        "measure wilson-loops run --r-max 2 --t-max 2 --multihit --exclude none",
        "exclude t from the smearing",
        "measure wilson-loops run --r-max 2 --t-max 2 --multihit --exclude t",
    ),
    Scenario(
        (
            "--multilevel and --multihit are for the temporal links of the field; leave "
            "--temporal out."
        ),
        "measure wilson-loops run --r-max 2 --t-max 2 --multihit --temporal hyp2",
        "leave --temporal out",
        "measure wilson-loops run --r-max 2 --t-max 2 --multihit",
    ),
    Scenario(
        (
            "--multilevel and --multihit are not for loops between smearing levels; leave "
            "--correlations out."
        ),
        ("measure wilson-loops run --r-max 2 --t-max 2 --multihit --correlations --iterations 0,2"),
        "leave --correlations out",
        "measure wilson-loops run --r-max 2 --t-max 2 --multihit --iterations 0,2",
    ),
    Scenario(
        (
            "There are {} smearing iterations in all, fewer than {}; choose fewer with "
            "--iterations, or more with --smear."
        ),
        ("measure wilson-loops run --r-max 2 --t-max 2 --iterations 0,200 --smear ape:0.2x10"),
        "choose fewer with --iterations",
        ("measure wilson-loops run --r-max 2 --t-max 2 --iterations 0,5 --smear ape:0.2x10"),
    ),
    Scenario(
        (
            "--t-max is {}, but with slabs of {} time slices T is a multiple of {}; choose a "
            "larger --t-max or thinner slabs."
        ),
        "measure wilson-loops run --r-max 2 --t-max 1 --multilevel 2,2",
        "choose a larger --t-max",
        "measure wilson-loops run --r-max 2 --t-max 2 --multilevel 2,2",
    ),
    Scenario(
        (
            "--multilevel: slabs of {} time slices do not make up the lattice {}; choose a "
            "thickness that divides {}."
        ),
        "measure wilson-loops run --r-max 2 --t-max 2 --multilevel 4,2",
        "choose a thickness",
        "measure wilson-loops run --r-max 2 --t-max 2 --multilevel 2,2",
    ),
    Scenario(
        (
            "--multilevel: slabs of {} time slices are not made up of several slabs of {}; "
            "give the thicker slabs first."
        ),
        "measure wilson-loops run --r-max 2 --t-max 2 --multilevel 2,2/3,2",
        "give the thicker slabs first",
        "measure wilson-loops run --r-max 2 --t-max 2 --multilevel 2,2",
    ),
    Scenario(
        (
            "--multilevel: {} has an invalid number; choose slabs of at least one time slice,"
            " and from 1 to {} values."
        ),
        "measure wilson-loops run --r-max 2 --t-max 2 --multilevel 0,2",
        "choose slabs",
        "measure wilson-loops run --r-max 2 --t-max 2 --multilevel 2,2",
    ),
    Scenario(
        (
            "--multilevel: {} is not of the form THICKNESS,VALUES, such as 4,100, or "
            "4,20/2,50 for two levels."
        ),
        "measure wilson-loops run --r-max 2 --t-max 2 --multilevel x",
        "is not of the form",
        "measure wilson-loops run --r-max 2 --t-max 2 --multilevel 2,2",
    ),
    Scenario(
        "--r-max is 1, where --multihit is not possible; choose a larger one.",
        "measure wilson-loops run --r-max 1 --t-max 2 --multihit",
        "choose a larger one",
        "measure wilson-loops run --r-max 2 --t-max 2 --multihit",
    ),
    Scenario(
        "--iterations: '{}' is not of the form N or N,N,..., such as 0,25.",
        "measure wilson-loops run --r-max 2 --t-max 2 --iterations x",
        "of the form",
        "measure wilson-loops run --r-max 2 --t-max 2 --iterations 0,2",
    ),
    Scenario(
        (
            "--{} is for one --smear without parameters; give the parameters with the "
            "smearing, as in --smear {}:{}=VALUE."
        ),
        "measure wilson-loops run --r-max 2 --t-max 2 --smear ape:0.2x2 --weight 0.3",
        "give the parameters with the smearing",
        "measure wilson-loops run --r-max 2 --t-max 2 --smear ape:0.2x2",
    ),
    Scenario(
        "--smear {} excludes other smearings; leave one of them out.",
        "measure wilson-loops run --r-max 2 --t-max 2 --smear none --smear ape:0.2x2",
        "leave one of them out",
        "measure wilson-loops run --r-max 2 --t-max 2 --smear none",
    ),
    Scenario(
        "--temporal: there are no temporal links '{}'{}",
        "measure wilson-loops run --r-max 2 --t-max 2 --temporal foo",
        "there are no temporal links",
        "measure wilson-loops run --r-max 2 --t-max 2 --temporal hyp2",
    ),
    Scenario(
        "--size is '{}'; give width and height in inches, as in 6.3x4.",
        "plot plaquette run --size x",
        "as in 6.3x4",
        "plot plaquette run --size 6.3x4",
    ),
    Scenario(
        "--size has a side of {} inches; choose {} to {}.",
        "plot plaquette run --size 0.01x4",
        "choose",
        "plot plaquette run --size 6.3x4",
    ),
    Scenario(
        "--dpi is {}; choose {} to {}.",
        "plot plaquette run --dpi 1",
        "choose",
        "plot plaquette run --dpi 100",
    ),
    Scenario(
        "--size and --dpi make more than {} pixels; choose a smaller one.",
        "plot plaquette run --size 50x50 --dpi 2000",
        "choose a smaller one",
        "plot plaquette run --size 6x4 --dpi 100",
    ),
    Scenario(
        "--split has no effect with one device; choose more devices with --devices.",
        "measure plaquette run --split",
        "choose more devices with --devices",
        "measure polyakov run --split --devices cpu:2",
    ),
    Scenario(
        "The updates of --at are those of a single run; name one.",
        "measure plaquette run/configs/0000005.lime run/configs/0000008.lime --at 5",
        "name one",
        "measure plaquette run --at 5",
    ),
    Scenario(
        "--skip is {}; give 0 or a positive number of updates.",
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2 --skip -1"
        ),
        "give 0 or a positive",
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2 --skip 0"
        ),
    ),
    Scenario(
        (
            "--skip {} leaves nothing of the runs, whose last measurement is made after "
            "update {}; skip less."
        ),
        "scan --output scan --collect --skip 1000",
        "skip less",
        "scan --output scan --collect --skip 0",
        before=(
            (
                "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
                "--quiet --beta 2.2"
            ),
        ),
    ),
    Scenario(
        (
            "The runs of {} on {} exchange their couplings, so that no β can be added or taken "
            "out; choose another --output, or another --lattice."
        ),
        "scan --output scan --beta 2.6 --quiet",
        "choose another --output",
        (
            "scan --output scan2 --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2"
        ),
        before=(
            (
                "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
                "--quiet --beta 2.2,2.4 --tempering"
            ),
        ),
    ),
    Scenario(
        "{} is not empty and has no {}; choose another --output.",
        (
            "scan --output run --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2"
        ),
        "choose another --output",
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2"
        ),
    ),
    Scenario(
        ("--steps is {}, but --levels says {} for the outermost level; leave one of them out."),
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --algorithm hmc --precision double --thermalize 1 --configs 1 "
            "--separation 1 --steps 5 --levels omf2:4"
        ),
        "leave one of them out",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --algorithm hmc --precision double --thermalize 1 --configs 1 "
            "--separation 1 --levels omf2:4"
        ),
    ),
    Scenario(
        (
            "--steps is {}, too few for a trajectory of the length {}; give at least {}, or a"
            " smaller --length."
        ),
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --algorithm hmc --precision double --thermalize 1 --configs 1 "
            "--separation 1 --steps 1 --length 100"
        ),
        "give at least",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --algorithm hmc --precision double --thermalize 1 --configs 1 "
            "--separation 1 --steps 4 --length 1"
        ),
    ),
    Scenario(
        "--levels has the gauge action on several levels; choose one.",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --algorithm hmc --precision double --thermalize 1 --configs 1 "
            "--separation 1 --levels omf2:4:gauge,omf2:3:gauge"
        ),
        "choose one",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --algorithm hmc --precision double --thermalize 1 --configs 1 "
            "--separation 1 --levels omf2:4,omf2:3:gauge"
        ),
    ),
    Scenario(
        "--levels has {} levels; give at most {}.",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --algorithm hmc --precision double --thermalize 1 --configs 1 "
            "--separation 1 --levels "
            "omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2,omf2:2"
        ),
        "give at most",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --algorithm hmc --precision double --thermalize 1 --configs 1 "
            "--separation 1 --levels omf2:4,omf2:3"
        ),
    ),
    Scenario(
        (
            "--levels says no steps for level {}; give them, as in omf2:5,omf2:4, because "
            "only those of the first level (0) can be found."
        ),
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --algorithm hmc --precision double --thermalize 1 --configs 1 "
            "--separation 1 --levels omf2:4,omf2"
        ),
        "give them",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --algorithm hmc --precision double --thermalize 1 --configs 1 "
            "--separation 1 --levels omf2:4,omf2:3"
        ),
    ),
    Scenario(
        (
            "{} has {} trajectory after update {}; at least two are needed, so continue the"
            " run with more --configs."
        ),
        "fit hmc hmc --skip 10",
        "continue the run with more --configs",
        "generate --output hmc --configs 30 --quiet",
        before=(
            (
                "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
                "--output hmc --algorithm hmc --precision double"
            ),
        ),
    ),
    Scenario(
        "--submit-option: time={} is not of the form HH:MM:SS or D-HH:MM:SS.",
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2 --submit-option time=x --submit slurm"
        ),
        "HH:MM:SS",
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2"
        ),
    ),
    Scenario(
        "--submit-option: time={} must be longer than zero.",
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2 --submit-option time=0:00:00 --submit slurm"
        ),
        "must be longer",
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2"
        ),
    ),
    Scenario(
        "--to is {}; choose a flow time from 0 to {} times --every.",
        "measure flow run --to 10000 --every 0.001",
        "choose a flow time",
        "measure flow run --to 1",
    ),
    Scenario(
        "--beta is {}; choose a positive coupling.",
        "measure wilson-loops run --r-max 2 --t-max 2 --multihit --beta -1",
        "choose a positive coupling",
        "measure wilson-loops run --r-max 2 --t-max 2 --multihit --beta 2.5",
    ),
    Scenario(
        "{} is for --multilevel and --multihit; give one of them too.",
        "measure wilson-loops run --r-max 2 --t-max 2 --beta 2.5",
        "give one of them too",
        "measure wilson-loops run --r-max 2 --t-max 2 --multihit --beta 2.5",
    ),
    Scenario(
        (
            "Each run of a scan uses one device, which cannot be divided by --devices; choose"
            " --per-device N to carry out runs in N processes."
        ),
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2 --devices cpu:2"
        ),
        "choose --per-device N",
        (
            "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2 --per-device 2"
        ),
    ),
    Scenario(
        (
            "Several chains share one device; choose one with --devices, such as --devices 0,"
            " or leave out --chains."
        ),
        "generate --lattice 4x4x4x4 --output a --chains 2 --devices cpu:2",
        "",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --chains 2"
        ),
    ),
    Scenario(
        (
            "Several chains are timed on one device and by one process; choose one with "
            "--devices, and leave out mpirun, or leave out --chains."
        ),
        "bench --hmc --lattice 4x4x4x4 --chains 2 --devices cpu:2",
        "leave out --chains",
        (
            "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1 --hmc "
            "--precision double"
        ),
    ),
    Scenario(
        "generate another run with --measure, which measures along the way, or --format",
        "measure plaquette lcg",
        "generate another run with --measure",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --measure plaquette"
        ),
        before=(
            (
                "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
                "--output lcg --format none --thermalize 0 --configs 0"
            ),
        ),
    ),
    Scenario(
        (
            "The table {} already contains configuration {}, so that configuration {} cannot "
            "be appended; choose another --output, or remove the table to measure all "
            "configurations again."
        ),
        ("measure plaquette run/configs/0000005.lime run/configs/0000008.lime --output x.csv"),
        "choose another --output",
        ("measure plaquette run/configs/0000005.lime run/configs/0000008.lime --output y.csv"),
        before=("measure plaquette run/configs/0000008.lime --output x.csv --quiet",),
    ),
    Scenario(
        ("The run {} contains results but no checkpoint; start a new run with {}another --output."),
        "generate --output run --configs 4 --quiet",
        "another --output",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --start run/configs/0000011.lime"
        ),
        remove="run/checkpoint/latest",
    ),
    Scenario(
        "--start from its last configuration and ",
        "generate --output run --configs 4 --quiet",
        "--start from its last configuration",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --start run/configs/0000011.lime"
        ),
        remove="run/checkpoint/latest",
    ),
    Scenario(
        (
            "Links in single precision: trajectories are reversible to 1e-6 only, and "
            "rounding changes ΔH by some 1e-6 times the square root of the number of links; "
            "choose --precision double for averages that can be trusted."
        ),
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --output "
            "other --algorithm hmc --precision single --thermalize 1 --configs 1 --separation"
            " 1 --steps 4"
        ),
        "choose --precision double",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output double --algorithm hmc --precision double --thermalize 1 --configs 1 "
            "--separation 1 --steps 4"
        ),
    ),
    Scenario(
        (
            "t²E of the first configuration does not reach {} times {}, even when √(8t) is "
            "the extent of the lattice; choose a smaller --until, or --to."
        ),
        "measure flow run --until 10",
        "choose a smaller --until",
        "measure flow run --until 0.02",
    ),
    Scenario(
        "gauge-mc scan --collect --output {}",
        "plot scan scan",
        "gauge-mc scan --collect --output scan",
        before=(
            (
                "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
                "--quiet --beta 2.2"
            ),
        ),
        write=(
            "scan/scan.csv",
            "sweep,x\n1,2\n",
        ),
    ),
    Scenario(
        (
            "The run {} exchanges couplings with other runs, so that its configurations "
            "cannot be made again by itself; repeat the scan with another --output."
        ),
        "regenerate scan/b2.2_4x4x4x4_chain1 --at 1 --output made",
        "another --output",
        (
            "scan --output scan2 --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
            "--quiet --beta 2.2,2.4 --tempering"
        ),
        before=(
            (
                "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
                "--quiet --beta 2.2,2.4 --tempering"
            ),
        ),
    ),
    Scenario(
        (
            "The run {} exchanges couplings with other runs, so that what is removed can only"
            " be made again by the whole scan: add --unchecked to remove it all the same."
        ),
        "thin scan/b2.2_4x4x4x4_chain1 --keep 2",
        "add --unchecked",
        "thin scan/b2.2_4x4x4x4_chain1 --keep 2 --unchecked",
        before=(
            (
                "scan --output scan --lattice 4x4x4x4 --configs 4 --separation 1 --thermalize 0 "
                "--quiet --beta 2.2,2.4 --tempering"
            ),
        ),
    ),
    Scenario(
        "measure it along the way in another run, with --measure {}",
        "fit scale scan/b2.2_4x4x4x4_chain1",
        "--measure flow",
        (
            "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
            "--output other --measure flow:3:to=1"
        ),
        before=(
            (
                "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
                "--quiet --beta 2.2,2.4 --tempering --format none"
            ),
        ),
    ),
    Scenario(
        (
            "{} has the number {}, which the table {} has of other links (in a file {}); "
            "choose another --output, or remove the table to measure all configurations "
            "again."
        ),
        "measure plaquette run/configs/0000005.lime --output x.csv",
        "choose another --output",
        "measure plaquette run/configs/0000005.lime --output y.csv",
        before=(
            (
                "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
                "--output other --seed 7"
            ),
            "measure plaquette other/configs/0000005.lime --output x.csv --quiet",
        ),
    ),
    Scenario(
        (
            "{} and {} both have the number {} (the sequence number in the header, or else "
            "the last number in the name), which must identify a configuration; say with "
            "--number where it is in the names"
        ),
        "measure plaquette run/configs/0000005.lime other/configs/0000005.lime",
        "say with --number where it is in the names",
        "measure plaquette other/configs/0000005.lime --output x.csv",
        before=(
            (
                "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
                "--output other --seed 7"
            ),
        ),
    ),
    Scenario(
        "{}, or measure on them separately, with another --output.",
        "measure plaquette run/configs/0000005.lime other/configs/0000005.lime",
        "measure on them separately, with another --output",
        "measure plaquette other/configs/0000005.lime --output x.csv",
        before=(
            (
                "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet "
                "--output other --seed 7"
            ),
        ),
    ),
    Scenario(
        (
            "--number '{}' is not a regular expression ({}); put a backslash before letters that "
            "stand for themselves, and close what is opened."
        ),
        "measure plaquette copy --number '([0-9]+'",
        "close what is opened",
        "measure plaquette copy --number '([0-9]+)'",
        before=COPIED,
    ),
    Scenario(
        "--number '{}' has no group; put parentheses around the number, as in 'cfg([0-9]+)'.",
        "measure plaquette copy --number '[0-9]+'",
        "put parentheses around the number",
        "measure plaquette copy --number '([0-9]+)'",
        before=COPIED,
    ),
    Scenario(
        (
            "--number '{}' does not match the name of {}; give one that matches the names of all "
            "files, or name the others only."
        ),
        "measure plaquette copy --number '([0-9]+5)'",
        "name the others only",
        "measure plaquette run/configs/0000005.lime --number '([0-9]+5)'",
        before=COPIED,
    ),
    Scenario(
        (
            "--number '{}' finds '{}' in the name of {}, which is not a whole number; put the "
            "first parentheses around digits, as in '([0-9]+)'."
        ),
        "measure plaquette copy --number '([0-9]+.)lime'",
        "as in '([0-9]+)'",
        "measure plaquette copy --number '([0-9]+)'",
        before=COPIED,
    ),
    Scenario(
        (
            "--number '{}' finds {} in the names of both {} and {}, but the number must identify a "
            "configuration; choose another part of the names"
        ),
        "measure plaquette copy --number '(0)'",
        "choose another part of the names",
        "measure plaquette copy --number '([0-9]+)'",
        before=COPIED,
    ),
    Scenario(
        (
            "{} has no files whose names are to be numbered; leave --number out, which is for "
            "files of other programs."
        ),
        "measure plaquette run --number '([0-9]+)'",
        "leave --number out",
        "measure plaquette run",
    ),
    Scenario(
        "--iterations is not for --smear {}.",
        "measure wilson-loops run --r-max 2 --t-max 2 --smear none --iterations 5",
        "is not for",
        "measure wilson-loops run --r-max 2 --t-max 2 --smear none",
    ),
    Scenario(
        "--{} is not for --smear {}.",
        "measure wilson-loops run --r-max 2 --t-max 2 --smear hyp:0.75,0.6,0.3x1 --alpha 0.5",
        "--alpha is not for --smear hyp.",
        "measure wilson-loops run --r-max 2 --t-max 2 --smear hyp:0.75,0.6,0.3x1",
    ),
    Scenario(
        "the whole scan with `gauge-mc scan --output {}`",
        "generate --output scan/b2.2_4x4x4x4_chain1 --quiet",
        "gauge-mc scan --output scan",
        before=(TEMPERED,),
    ),
    Scenario(
        "--submit makes a job of every run, and runs that exchange their couplings are one "
        "process; repeat the command without --submit in a job, or leave out --tempering.",
        f"{TEMPERED} --submit slurm --submit-option time=1:00:00",
        "repeat the command without --submit",
        TEMPERED,
    ),
]


ELSEWHERE = {
    "{} has links that cannot be projected; leave --project out.": "formats of other packages",
    "its links are in {} to {} only; `gauge-mc convert {} OUT --project` brings them into the "
    "group": "tests of formats, which project such a file",
    "{} ({} more with --json)": "several runs with a transient, in the tests of the transition",
    "The most probable fit is poor (p = {}); name a window with --r-min, or measure along more "
    "directions.": "for loops whose V(R) has none of the forms; see the tests of the potential",
    "{} was stopped by {} before it could choose a lattice; repeat the command, or name one with "
    "--lattice.": "the repeated command is the same; a signal in tests/test_determinations.py",
    "No pilot run tells the lattice{}; name one with --lattice.": (
        "tests/test_determinations.py, as only lattices of 32⁴ are too small; --lattice needs none"
    ),
    "gauge-mc determine is one process; start it without mpirun or srun.": "other launchers",
    "squeue --jobs": "a command of Slurm",
    "The path of the scan has characters that a script cannot have; choose another --output.": (
        "tests/scans/test_batch_systems.py has such a path"
    ),
    "gauge-mc {}": "a version",
    "Made by gauge-mc {}, {}": "a version",
    "GPU {}, {}, has compute capability {}.{}, but kernels are written for {}.{} (Volta, 2017) and "
    "later: use the CPU, or choose another GPU with --devices.": (
        "tests/devices/test_cuda_device.py shows it; there is no such GPU"
    ),
    "{} with gauge-mc {}": "a version",
    "with the loops of its action in --measure": "for tables that were copied without their run",
    "--strict does not hold for {} yet, but for {}; choose one of these, or leave out --strict.": (
        "for algorithms of other packages; it holds for all of this one"
    ),
    "{} {} asks for level {}, but the last one is {}; add it to --levels, whose first one is 0.": (
        "tests/updates/test_run_monomials.py carries it out"
    ),
    "{} --again": ("for rows of another version; tests/run/test_row_versions.py carries it out"),
}
"""Messages that are carried out nowhere, and why."""

OF_EXTENSIONS = {
    "--dry-run is for configurations that are kept; leave out --at.",
    "Links in {} precision are too inexact for trajectories with {}; choose --precision {}.",
    "add --measure {} to allow it",
    "gauge-mc fit {} {}",
    "gauge-mc publish RUN FOLDER --author 'Family, Given'",
    "--refine adds values of β, of which {} has one for each of its quarks; add values to "
    "--quarks, or several to --beta.",
}
"""Messages to which only things of extensions lead, whose tests list them."""

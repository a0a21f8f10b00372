"""Situations in which the package names a command or an option, and what then is done.

A new message that names one needs an entry: a `Scenario`, or a reason in `ELSEWHERE` why it cannot
be carried out in a test. Messages that no scenario reaches yet are listed in ``open.txt``.
"""

from dataclasses import dataclass

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
    remove: str = ""
    """A file that is lost before."""


SCAN = "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 --quiet"
UNKEPT = (f"{RUN} none --format none",)

SCENARIOS = [
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
        before=(f"{RUN} hmc --algorithm hmc --precision double",),
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
]

ELSEWHERE = {
    "gauge-mc {}": "a version",
    "gauge-mc {}: {}": "a version",
    "Made by gauge-mc {}, {}": "a version",
    "{} with gauge-mc {}": "a version",
    "--strict does not hold for {} yet, but for {}; choose one of these, or leave out --strict.": (
        "for algorithms of other packages; it holds for all of this one"
    ),
}
"""Messages that are carried out nowhere, and why."""

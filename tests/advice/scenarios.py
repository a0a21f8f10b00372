"""Situations in which the package names a command or an option, and what then is done.

A new message that names one needs an entry: lines of `TEXT` or a `Scenario`, or a reason in
`ELSEWHERE` why it cannot be carried out in a test. Messages that no scenario reaches yet are listed
in ``open.txt``. Any part of a message that no other one has stands for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORDS = {
    "run": "generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --quiet --output",
    "scan": "scan --output scan --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 "
    "--quiet",
    "levels": ",".join(20 * ["omf2:2"]),
    "improved": "scan --output scan --lattice 4x4x4x4 --configs 20 --separation 1 --thermalize 0 "
    "--beta 1.6,1.7 --action symanzik",
    "looped": "generate --lattice 4x4x4x8 --thermalize 20 --configs 40 --separation 1 --format "
    "none --measure wilson-loops:1:r-max=2:t-max=4 --quiet --output looped",
    "flow": "generate --lattice 8x8x8x8 --beta 2.3 --thermalize 9 --configs 10 --separation 1 "
    "--quiet --measure flow:1:to=0.4 --output flowed",
    "wilson": "measure wilson-loops run --r-max 2 --t-max 2",
    "loops": "measure wilson-loops run --r-max 1 --t-max 2",
    "bench": "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu --threads 1",
    "rates": "bench --lattice 4x4x4x4 --seconds 0.05 --backend cpu",
    "determine": "determine t0 --lattice 6x6x6x6 --beta 2.2 --target 0.05 --quiet",
    "hmc": "--algorithm hmc --precision double",
    "short": "--thermalize 1 --configs 1 --separation 1",
    "others": str(Path(__file__).resolve().parents[1] / "formats" / "of_others"),
}
"""Words that stand for several in `TEXT`."""
WORDS["convert"] = f"convert {WORDS['others']}/lqjl_su2.ildg links.lime --to ildg"
RUN = WORDS["run"]
SUBMITTED = f"{WORDS['scan']} --beta 2.2 --submit pbs --submit-option time=1:00:00"


@dataclass(frozen=True)
class Scenario:
    """A command line that prints a message, and the one that follows its advice."""

    message: str
    """The message as `tests.advice.messages` has it, or a part that no other one has."""
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


def scenarios(text: str) -> Iterator[Scenario]:
    """Read situations of lines that begin with a sign, of which # is for the message.

    ! carried out before, - file that is lost, $ prints the message, = printed besides, > carried
    out afterwards; it is what was printed if it begins with gauge-mc.
    """
    for situation in text.replace("\n    ", " ").strip().removeprefix("# ").split("\n# "):
        message, *lines = situation.split("\n")
        signs = {sign: [] for sign in "!-$=>"}
        for line in lines:
            signs[line[0]].append(line[2:].format(**WORDS))
        (command,), follow = signs["$"], signs[">"]
        printed = follow.pop(0) if follow[0].startswith("gauge-mc ") else ""
        follow = [*follow, "", ""] if not printed else ["", *follow, ""]
        shown = printed or "".join(signs["="])
        before, lost = tuple(signs["!"]), "".join(signs["-"])
        yield Scenario(message, command, shown, follow[0], before, follow[1], lost)


TEXT = r"""
# gauge-mc {} needs {}{}.
$ determine
= as in gauge-mc determine r0 --error 1%
> {determine} --error 90%
# {} needs --error, --time or both, as in --error 1% --time 10m.
$ {determine}
> {determine} --error 90% --time 10m
# --error is '{}'; give one such as 0.5% or 0.005.
$ {determine} --error 200%
> {determine} --error 0.9
# No length of {} is known; name a --beta near {}.
$ determine beta-c --nt 2 --error 90% --quiet
= name a --beta near beta-c
> determine beta-c --nt 2 --error 90% --quiet --beta 1.87 --lattice 4x4x4x2,6x6x6x2
# {} with --all.
! {looped}
$ fit potential looped
= 3 further tables with --all.
> fit potential looped --all
# choose a wider window with --r-min
! {looped}
$ fit potential looped --r-min 3
> fit potential looped --r-min 1
# more with --all)
! {looped}
$ fit potential looped
> fit potential looped --all
# `gauge-mc {} --output {} --configs {}`
$ measure flow run --to 0.4
> gauge-mc generate --output run --configs 10
> measure flow run --to 0.4
# `gauge-mc {} --output {} --configs {}`
$ {loops}
> gauge-mc generate --output run --configs 10
> {loops}
# --at {}:{}:{}
! {run} none --format none
$ measure flow none --at 5 --to 0.4
= --at 5:32:3
> generate --output none --configs 10 --quiet
> measure flow none --to 0.4 --at 5:32:3
# make one with `gauge-mc measure {} {} --at {}`
$ fit scale run
> gauge-mc measure flow run
# make one with `gauge-mc measure {} {} --at {}`
! {run} none --format none
$ fit scale none
> gauge-mc measure flow none --at 5:11:3
# repeat the command with --at {}, which makes them again
! {run} none --format none
$ measure plaquette none
= --at 5:11:3
> measure plaquette none --at 5:11:3
# give a folder for them with --output
! {run} none --format none
$ regenerate none --at 8
> regenerate none --at 8 --output made
# give a folder for others with --output
$ regenerate run --at 6
> regenerate run --at 6 --output made
# give --output for others
$ regenerate run --at 8 --format nersc
= give --output for others in nersc
> regenerate run --at 8 --format nersc --output made
# make {} again with `gauge-mc regenerate {} --at {}`
- run/configs/0000008.lime
$ verify run
> gauge-mc regenerate run --at 8
# gauge-mc {} {} {}
$ plot run
> gauge-mc plot plaquette run
# gauge-mc {} {} {}
$ measure run plaquette
> gauge-mc measure plaquette run
# make one with `gauge-mc measure {} {} --at {}`
! {scan} --beta 2.2,2.4
$ fit creutz scan
= `gauge-mc measure wilson-loops scan`
> measure wilson-loops scan --quiet
# gauge-mc {} {}
$ generate --beta 2.2:2.4:0.1 --lattice 4x4x4x4 --thermalize 0 --configs 1 --quiet
> gauge-mc scan --beta 2.2:2.4:0.1 --lattice 4x4x4x4
# generate --output RUN
$ resume
> generate --output run --configs 4 --quiet
# configs 100 --separation 10
$ generate --sweeps 9
= --configs 100 --separation 10
> {run} other --configs 2 --separation 10
# generate --lattice 8x8x8x8 --beta 2.4
$ help
= gauge-mc generate --lattice 8x8x8x8 --beta 2.4
> generate --lattice 8x8x8x8 --beta 2.4 --quiet
> measure wilson-loops --quiet
# scan --output {} --refine`
! {scan} --beta 1.2,2.8 --configs 60 --format none
$ fit transition scan
= hardly overlap
> scan --output scan --refine --quiet
# --per-device must lie between 1 and {}, not {}.
$ {scan} --beta 2.2 --per-device 0
> {scan} --beta 2.2 --per-device 1
# --r-max is {}; on {} choose it between 1 and {}, half the lattice.
$ measure polyakov-correlators run --r-max 3
= --r-max is 3; on 4x4x4x6 choose it between 1 and 2
> measure polyakov-correlators run --r-max 2
# --r-max is {}, less than one step along {}; choose a larger one.
$ measure wilson-loops run --t-max 2 --r-max 1 --off-axis
> measure wilson-loops run --t-max 2 --r-max 2 --off-axis
# {} has {}; choose another --output.
$ {run} run --beta 2.4
> {run} other --beta 2.4
# --configs can be increased
$ generate --output run --configs 2 --quiet
> generate --output run --configs 4 --quiet
# --exchange-every is {},
$ {scan} --beta 2.2 --exchange-every 2
> {scan} --beta 2.2
# chains; add --chains {},
$ {run} other --start hot,cold
= add --chains 2
> {run} other --start hot,cold --chains 2
# --dry-run describes a single chain; leave out --chains.
$ {run} other --chains 2 --dry-run
> {run} other --dry-run
# --output names one file, but there are several runs; leave it out.
! {run} hmc {hmc}
$ fit hmc hmc hmc --output x.json
> fit hmc hmc hmc
# create it, or choose another
$ measure plaquette run --output no/x.csv
> measure plaquette run --output x.csv
# {} is a folder; name a file for the table with --output.
$ measure plaquette run --output run
> measure plaquette run --output x.csv
# The table {} has {}; choose another --output, or remove the table.
! measure plaquette run --output x.csv --quiet
$ measure polyakov run --output x.csv
> measure polyakov run --output y.csv
# --keep is {}; choose at least 2, which keeps every other one.
$ thin run --keep 1
> thin run --keep 2
# choose a smaller number
$ thin run --keep 9
> thin run --keep 3
# --beta 2.2:2.8:0.05
$ {scan}
> {scan} --beta 2.2:2.8:0.05
# --to and --until exclude each other; give one.
$ measure flow run --to 1 --until 0.3
> measure flow run --to 1
# measurements of {}, whose
$ plot plaquette run --skip 100
> plot plaquette run --skip 2
# exchanges couplings, and
$ {scan} --beta 2.2 --tempering
> {scan} --beta 2.2
# give these only
! {scan} --beta 2.2,2.4
$ scan --output scan --remove --beta 2.4 --configs 2
> scan --output scan --remove --beta 2.4
# name other points
! {scan} --beta 2.2,2.4
$ scan --output scan --remove --beta 2.6
> scan --output scan --remove --beta 2.4
# {} To begin one, state its physics, such as --lattice and --beta.
$ generate --output ru --configs 4
= did you mean 'run'?
> generate --output run --configs 4
> {run} ru --beta 2.4
# configurations, and --at
$ measure plaquette run --at 5 --every 2
> measure plaquette run --at 5
# choose other numbers
$ measure plaquette run --skip 5 --every 3
> measure plaquette run --skip 5 --every 2
# measure on the second alone, with --output
! convert run --to ildg --output one/x --quiet
! convert run --to ildg --output two/x --quiet
$ measure plaquette one/x two/x
> measure plaquette two/x --output x.csv
# ensembles are measured;
! {run} other --beta 2.4
$ measure plaquette run other --output x.csv
> measure plaquette run other
# --weight and --alpha are two forms of the same parameter; give one.
$ {loops} --weight 0.2 --alpha 0.5
> {loops} --weight 0.2
# --dry-run, which is for
$ measure plaquette run --dry-run
> measure plaquette run
# --step is {}, with which the flow {} is not stable; give at most {}.
$ measure flow run --step 1
> measure flow run --step 0.05
# --json describes the check of a card; name one, or leave it out.
$ card --json
> card
# --json prints one object; follow the file {}, which consists of them.
$ status run --json --follow
= follow the file run.log
> status run --json
# leave out --regenerate
$ verify run --regenerate 2
> verify run
# trajectories from which
$ {run} other {hmc} --thermalize 0
> {run} other {hmc} --thermalize 0 --steps 4
# --algorithm {}; name such
! {run} hmc {hmc}
$ fit hmc run
= made with --algorithm hmc; name such a run
> fit hmc hmc
# {} is not empty and has no {}; choose another --output.
$ {run} run/configs
> {run} other
# {} is a file; choose another --output.
$ {run} run/run.toml
> {run} other
# possible with --backend
$ measure plaquette run --devices 2
= or cpu:N
> measure plaquette run --devices cpu:1
# gauge-mc scan {} {} {} {}
! {improved} --measure plaquette,polyakov
$ fit transition scan
> gauge-mc scan --card scan/b1.6_4x4x4x4_chain1/run.toml --beta 1.6,1.7 --lattice 4x4x4x4
    --chains 1 --measure plaquette,polyakov,rectangles --output scan_again
> fit transition scan_again
# well, with --measure {}.
$ {improved} --measure plaquette,polyakov
= with --measure plaquette,polyakov,rectangles
> {improved} --measure plaquette,polyakov,rectangles --output other
# gauge-mc {} needs {}{}.
$ regenerate run
= gauge-mc regenerate RUN --at 250,300:400:10
> regenerate run --at 6 --output made
# gauge-mc {} needs {}{}.
$ thin
= gauge-mc thin RUN --keep 2
> thin run --keep 2
# A Parquet file has one table; choose {} by --table.
$ export run tables.parquet
= plaquette or polyakov by --table
> export run tables.parquet --table plaquette
# configurations, and the
! {run} longer --configs 6 --measure plaquette,polyakov:3
$ export longer tables.pobs.xml.gz
= choose plaquette or polyakov by --table
> export longer tables.pobs.xml.gz --table plaquette
> export longer tables.dobs.xml.gz
# gauge-mc {} needs {}{}.
$ export run
= needs RUN|SCAN and OUT, as in gauge-mc export RUN tables.h5
> export run tables.h5
# gauge-mc {} needs {}{}.
$ convert
= as in gauge-mc convert CONFIG links.nersc --to nersc
> convert run/configs/0000008.lime links.nersc --to nersc
# {} exists; choose another --out.
! card --out card.toml
$ card --beta 2.4 --out card.toml
> card --beta 2.4 --out other.toml
# measure, as in --lattice 8x8x8x16 --group su3
$ measure plaquette {others}/lqjl_su2.ildg
> measure plaquette {others}/lqjl_su2.ildg --lattice 4x4x4x4 --group su2
> {convert} --lattice 4x4x4x4 --group su2
# give others, or restore
$ verify {others}/lqjl_su2.ildg --lattice 4x4x4x8 --group su2
= SU(2) on 4x4x4x8, which --lattice and --group say
> verify {others}/lqjl_su2.ildg --lattice 4x4x4x4 --group su2
# {} states its lattice and its group; leave --lattice and --group out.
$ info {others}/milc_inst_v4 --lattice 4x4x4x4 --group su3
> info {others}/milc_inst_v4
# extents, but the lattice
$ measure wilson-loops {others}/odd_3x2x2x3.nersc --multilevel 1,2
> measure wilson-loops {others}/odd_3x2x2x3.nersc
# --lattice and --group belong together; give both, or neither.
$ {convert} --lattice 4x4x4x4
> {convert} --lattice 4x4x4x4 --group su2
# give a shorter one
$ measure flow run --every 10 --to 0.1
> measure flow run --every 0.1 --to 0.1
# --charge is '{}'; choose {}.
$ fit topology tables --charge x
> fit topology tables
# --energy is '{}'; choose {}.
$ fit scale tables --energy x
> fit scale tables
# --target is {}; give a positive number, such as {}.
$ fit scale tables --target 0
> fit scale tables --target 0.3
# --t is {}; give a flow time between 0 and {}.
$ fit topology tables --t -1
> fit topology tables --t 1
# --t is {}, but the flow ends at t/a² = {}; {}.
! {flow}
$ fit topology flowed --t 1
> gauge-mc measure flow flowed --to 1 --output flowed/flow_to_1.csv
> fit topology flowed/flow_to_1.csv --t 1
# gauge-mc measure flow {} --to {} --every {} --flow {} --output {}
! {flow}
$ fit scale flowed --target 0.002
> gauge-mc measure flow flowed --to 0.4 --every 0.025 --output flowed/flow_to_0.4.csv
> fit topology flowed/flow_to_0.4.csv
# --least is {}; choose it between 1 and {}.
$ fit anisotropy tables --least 1000
> fit anisotropy tables --least 1
# measurement was made after
$ fit scale tables --skip 100000
> fit scale tables --skip 2
# --chains is for --hmc; add it, or leave out --chains.
$ {bench} --chains 2
> {bench} --chains 2 --hmc --precision double
# --chains must lie between 1 and {}, not {}.
$ {bench} --hmc --precision double --chains 0
> {bench} --hmc --precision double --chains 1
# --seconds must lie between {} and {}, not {}.
$ bench --lattice 4x4x4x4 --backend cpu --threads 1 --seconds -1
> {bench}
# observable, smearing, kind
$ {bench} --observables foo
> {bench} --observables plaquette
# updates; leave them out,
$ {bench} --action iwasaki --observables plaquette
> {bench} --observables plaquette
# --help shows what it takes
$ status run run
> status --help
# --card is for --hmc; add it, or leave out --card.
$ {bench} --card x.toml
> {bench}
# --end-to-end and others
$ {rates} --end-to-end --over threads=1
> {rates} plaquette
# --observables; leave out
$ {rates} --end-to-end plaquette
= leave out --end-to-end
> {rates} plaquette
# --over must be {} with values, as in devices=1,2,4.
$ {rates} plaquette --over beta=1,2
> {rates} plaquette --over devices=cpu:1
# --over must have different values, {} at most.
$ {rates} plaquette --over threads=1,1
> {rates} plaquette --over threads=1
# --weak is for --over {}; leave it out.
$ {rates} plaquette --over lattice=4 --weak
> {rates} plaquette --over lattice=4
# --over {} takes numbers, as in {}=1,2,4.
$ {rates} plaquette --over threads=all
= as in threads=1,2,4
> {rates} plaquette --over threads=1,2
# --weak and --plot are for --over; add it, or leave them out.
$ {rates} plaquette --weak
> {rates} plaquette
# leave out --tune
$ {rates} plaquette --over threads=1 --tune
> {rates} plaquette --over threads=1
# --tune works only on a GPU and in one process; leave it out.
$ {bench} --tune
> {bench}
# {} is not a result of gauge-mc bench; write one with --save.
$ {bench} --compare run/run.toml
> {bench} --save b.json
# give --output FOLDER
$ convert run/configs/0000005.lime --to nersc
> convert run/configs/0000005.lime --to nersc --output new
# becomes ({}); remove it,
! convert run --to nersc --output new --precision double
$ convert run --to nersc --output new
> convert run --to nersc --output other
# each with another --output
$ convert run run/configs/0000005.lime --to nersc --output new
> convert run --to nersc --output new
> convert run/configs/0000005.lime --to nersc --output other
# {} is not a folder; choose another --output.
$ convert run --to nersc --output run/run.toml
> convert run --to nersc --output new
# --to is missing; choose {}.
$ convert run/configs/0000005.lime x.nersc
> convert run/configs/0000005.lime x.nersc --to nersc
# {} adds runs, and --collect carries out none; leave out one.
! {scan} --beta 2.2
$ {scan} --beta 2.2 --refine --collect
> scan --output scan --collect
# give it with --collect
! {scan} --beta 2.2
$ {scan} --beta 2.2 --submit slurm --skip 2
> scan --output scan --collect --skip 0
# as in time=12:00:00
$ {scan} --beta 2.2 --submit pbs --submit-option =gpu
> {scan} --beta 2.2 --submit pbs --submit-option time=12:00:00 --dry-run
# time limit as {}=12:00:00.
$ {scan} --beta 2.2 --submit pbs --submit-option walltime=12:00:00
= give a time limit as time=12:00:00
> {scan} --beta 2.2 --submit pbs --submit-option time=12:00:00 --dry-run
# as in --submit-option time=12:00:00
$ {scan} --lattice 256x256x256x128 --group su3 --precision double --beta 6 --submit lsf
> {scan} --lattice 256x256x256x128 --group su3 --precision double --beta 6 --submit lsf
    --submit-option time=12:00:00 --dry-run
# --submit-option: {} is an
$ {scan} --beta 2.2 --submit pbs --submit-option cpus-per-task=2
= give that of PBS, or leave it out
> {scan} --beta 2.2 --submit pbs --submit-option ncpus=2 --dry-run
# --submit-option: {} must be a positive whole number, not '{}'.
$ {scan} --beta 2.2 --submit lsf --submit-option time=1 --submit-option array_parallelism=all
> {scan} --beta 2.2 --submit lsf --submit-option time=1 --submit-option array_parallelism=3
    --dry-run
# with --submit; add that,
$ {scan} --beta 2.2 --submit-option time=1:00:00
> {scan} --beta 2.2
# --devices {} is invalid: N in {}:N must lie between 1 and {}.
$ measure plaquette run --devices cpu:0
> measure plaquette run --devices cpu:1
# --threads is {}; give a whole number from 1 to {}.
$ {rates} --threads 0
> {bench}
# name them with --iterations
$ {wilson} --correlations --iterations 2
> {wilson} --correlations --iterations 0,2
# leave them out with --exclude t
$ {wilson} --correlations --iterations 0,2 --exclude none
> {wilson} --correlations --iterations 0,2 --exclude t
# exclude t from the smearing
$ {wilson} --multihit --exclude none
> {wilson} --multihit --exclude t
# leave --temporal out
$ {wilson} --multihit --temporal hyp2
> {wilson} --multihit
# leave --correlations out
$ {wilson} --multihit --correlations --iterations 0,2
> {wilson} --multihit --iterations 0,2
# choose fewer with --iterations
$ {wilson} --iterations 0,200 --smear ape:0.2x10
> {wilson} --iterations 0,5 --smear ape:0.2x10
# choose a larger --t-max
$ measure wilson-loops run --r-max 2 --t-max 1 --multilevel 2,2
> {wilson} --multilevel 2,2
# choose a thickness
$ {wilson} --multilevel 4,2
> {wilson} --multilevel 2,2
# give the thicker slabs first
$ {wilson} --multilevel 2,2/3,2
> {wilson} --multilevel 2,2
# number; choose slabs of
$ {wilson} --multilevel 0,2
> {wilson} --multilevel 2,2
# THICKNESS,VALUES, such as
$ {wilson} --multilevel x
> {wilson} --multilevel 2,2
# --r-max is 1, where --multihit is not possible; choose a larger one.
$ {loops} --multihit
> {wilson} --multihit
# --iterations: '{}' is not of the form N or N,N,..., such as 0,25.
$ {wilson} --iterations x
> {wilson} --iterations 0,2
# give the parameters with the smearing
$ {wilson} --smear ape:0.2x2 --weight 0.3
> {wilson} --smear ape:0.2x2
# --smear {} excludes other smearings; leave one of them out.
$ {wilson} --smear none --smear ape:0.2x2
> {wilson} --smear none
# --temporal: there are no temporal links '{}'{}
$ {wilson} --temporal foo
> {wilson} --temporal hyp2
# --size is '{}'; give width and height in inches, as in 6.3x4.
$ plot plaquette run --size x
> plot plaquette run --size 6.3x4
# --size has a side of {} inches; choose {} to {}.
$ plot plaquette run --size 0.01x4
> plot plaquette run --size 6.3x4
# --dpi is {}; choose {} to {}.
$ plot plaquette run --dpi 1
> plot plaquette run --dpi 100
# --size and --dpi make more than {} pixels; choose a smaller one.
$ plot plaquette run --size 50x50 --dpi 2000
> plot plaquette run --size 6x4 --dpi 100
# choose more devices with --devices
$ measure plaquette run --split
> measure polyakov run --split --devices cpu:2
# The updates of --at are those of a single run; name one.
$ measure plaquette run/configs/0000005.lime run/configs/0000008.lime --at 5
> measure plaquette run --at 5
# --skip is {}; give 0 or a positive number of updates.
$ {scan} --beta 2.2 --skip -1
> {scan} --beta 2.2 --skip 0
# measurement is made after
! {scan} --beta 2.2
$ scan --output scan --collect --skip 1000
> scan --output scan --collect --skip 0
# exchange their couplings,
! {scan} --beta 2.2,2.4 --tempering
$ scan --output scan --beta 2.6 --quiet
> scan --output scan2 --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 --quiet --beta
    2.2
# {} is not empty and has no {}; choose another --output.
$ scan --output run --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 --quiet --beta 2.2
> {scan} --beta 2.2
# outermost level; leave one
$ {run} other {hmc} {short} --steps 5 --levels omf2:4
> {run} other {hmc} {short} --levels omf2:4
# trajectory of the length
$ {run} other {hmc} {short} --steps 1 --length 100
> {run} other {hmc} {short} --steps 4 --length 1
# --levels has the gauge action on several levels; choose one.
$ {run} other {hmc} {short} --levels omf2:4:gauge,omf2:3:gauge
> {run} other {hmc} {short} --levels omf2:4,omf2:3:gauge
# --levels has {} levels; give at most {}.
$ {run} other {hmc} {short} --levels {levels}
> {run} other {hmc} {short} --levels omf2:4,omf2:3
# omf2:5,omf2:4, because only
$ {run} other {hmc} {short} --levels omf2:4,omf2
> {run} other {hmc} {short} --levels omf2:4,omf2:3
# continue the run with more --configs
! {run} hmc {hmc}
$ fit hmc hmc --skip 10
> generate --output hmc --configs 30 --quiet
# --submit-option: time={} is not of the form HH:MM:SS or D-HH:MM:SS.
$ {scan} --beta 2.2 --submit-option time=x --submit slurm
> {scan} --beta 2.2
# --submit-option: time={} must be longer than zero.
$ {scan} --beta 2.2 --submit-option time=0:00:00 --submit slurm
> {scan} --beta 2.2
# --to is {}; choose a flow time from 0 to {} times --every.
$ measure flow run --to 10000 --every 0.001
> measure flow run --to 1
# --beta is {}; choose a positive coupling.
$ {wilson} --multihit --beta -1
> {wilson} --multihit --beta 2.5
# {} is for --multilevel and --multihit; give one of them too.
$ {wilson} --beta 2.5
> {wilson} --multihit --beta 2.5
# choose --per-device N
$ {scan} --beta 2.2 --devices cpu:2
> {scan} --beta 2.2 --per-device 2
# --devices, such as --devices
$ generate --lattice 4x4x4x4 --output a --chains 2 --devices cpu:2
> {run} other --chains 2
# Several chains are timed
$ bench --hmc --lattice 4x4x4x4 --chains 2 --devices cpu:2
> {bench} --hmc --precision double
# generate another run with --measure
! {run} lcg --format none --thermalize 0 --configs 0
$ measure plaquette lcg
> {run} other --measure plaquette
# appended; choose another
! measure plaquette run/configs/0000008.lime --output x.csv --quiet
$ measure plaquette run/configs/0000005.lime run/configs/0000008.lime --output x.csv
> measure plaquette run/configs/0000005.lime run/configs/0000008.lime --output y.csv
# with {}another --output.
- run/checkpoint/latest
$ generate --output run --configs 4 --quiet
> {run} other --start run/configs/0000011.lime
# --start from its last configuration
- run/checkpoint/latest
$ generate --output run --configs 4 --quiet
> {run} other --start run/configs/0000011.lime
# choose --precision double
$ generate --lattice 4x4x4x6 --thermalize 2 --configs 3 --separation 3 --output other
    --algorithm hmc --precision single {short} --steps 4
> {run} double {hmc} {short} --steps 4
# choose a smaller --until
$ measure flow run --until 10
> measure flow run --until 0.02
# configurations cannot be
! {scan} --beta 2.2,2.4 --tempering
$ regenerate scan/b2.2_4x4x4x4_chain1 --at 1 --output made
> scan --output scan2 --lattice 4x4x4x4 --configs 1 --separation 1 --thermalize 0 --quiet --beta
    2.2,2.4 --tempering
# add --unchecked
! scan --output scan --lattice 4x4x4x4 --configs 4 --separation 1 --thermalize 0 --quiet --beta
    2.2,2.4 --tempering
$ thin scan/b2.2_4x4x4x4_chain1 --keep 2
> thin scan/b2.2_4x4x4x4_chain1 --keep 2 --unchecked
# measure it along the way in another run, with --measure {}
! {scan} --beta 2.2,2.4 --tempering --format none
$ fit scale scan/b2.2_4x4x4x4_chain1
= --measure flow
> {run} other --measure flow:3:to=1
# {}); choose another --output,
! {run} other --seed 7
! measure plaquette other/configs/0000005.lime --output x.csv --quiet
$ measure plaquette run/configs/0000005.lime --output x.csv
> measure plaquette run/configs/0000005.lime --output y.csv
# say with --number where it is in the names
! {run} other --seed 7
$ measure plaquette run/configs/0000005.lime other/configs/0000005.lime
> measure plaquette other/configs/0000005.lime --output x.csv
# {}, or measure on them separately, with another --output.
! {run} other --seed 7
$ measure plaquette run/configs/0000005.lime other/configs/0000005.lime
> measure plaquette other/configs/0000005.lime --output x.csv
# close what is opened
! convert run --to ildg --output copy --quiet
$ measure plaquette copy --number '([0-9]+'
> measure plaquette copy --number '([0-9]+)'
# put parentheses around the number
! convert run --to ildg --output copy --quiet
$ measure plaquette copy --number '[0-9]+'
> measure plaquette copy --number '([0-9]+)'
# name the others only
! convert run --to ildg --output copy --quiet
$ measure plaquette copy --number '([0-9]+5)'
> measure plaquette run/configs/0000005.lime --number '([0-9]+5)'
# as in '([0-9]+)'
! convert run --to ildg --output copy --quiet
$ measure plaquette copy --number '([0-9]+.)lime'
> measure plaquette copy --number '([0-9]+)'
# choose another part of the names
! convert run --to ildg --output copy --quiet
$ measure plaquette copy --number '(0)'
> measure plaquette copy --number '([0-9]+)'
# leave --number out
$ measure plaquette run --number '([0-9]+)'
> measure plaquette run
# --iterations is not for --smear {}.
$ {wilson} --smear none --iterations 5
> {wilson} --smear none
# --{} is not for --smear {}.
$ {wilson} --smear hyp:0.75,0.6,0.3x1 --alpha 0.5
= --alpha is not for --smear hyp.
> {wilson} --smear hyp:0.75,0.6,0.3x1
# the whole scan with `gauge-mc scan --output {}`
! {scan} --beta 2.2,2.4 --tempering
$ generate --output scan/b2.2_4x4x4x4_chain1 --quiet
> gauge-mc scan --output scan
# repeat the command without --submit
$ {scan} --beta 2.2,2.4 --tempering --submit slurm --submit-option time=1:00:00
> {scan} --beta 2.2,2.4 --tempering
"""

SCENARIOS = [
    *scenarios(TEXT),
    Scenario(
        "a run card follows --card",
        "generate card.toml",
        "",
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
        "no run is running: the jobs are queued or have ended",
        "status scan",
        "--submit pbs",
        "scan --output scan --submit pbs --dry-run",
        before=(SUBMITTED,),
        program=("qsub", "#!/bin/sh\necho 42.server\n"),
    ),
    Scenario(
        "gauge-mc scan --collect --output {}",
        "plot scan scan",
        "gauge-mc scan --collect --output scan",
        before=(f"{WORDS['scan']} --beta 2.2",),
        write=("scan/scan.csv", "sweep,x\n1,2\n"),
    ),
]


ELSEWHERE = {
    "{} has links that cannot be projected; leave --project out.": "formats of other packages",
    "only; `gauge-mc convert": "tests of formats, which project such a file",
    "{} ({} more with --json)": "several runs with a transient, in the tests of the transition",
    "measure along more directions.": (
        "for loops whose V(R) has none of the forms; see the tests of the potential"
    ),
    "lattice; repeat the command,": (
        "the repeated command is the same; a signal in tests/test_determinations.py"
    ),
    "No pilot run tells the lattice{}; name one with --lattice.": (
        "tests/test_determinations.py, as only lattices of 32⁴ are too small; --lattice needs none"
    ),
    "gauge-mc determine is one process; start it without mpirun or srun.": "other launchers",
    "squeue --jobs": "a command of Slurm",
    "have; choose another --output.": "tests/scans/test_batch_systems.py has such a path",
    "gauge-mc {}": "a version",
    "Made by gauge-mc {}, {}": "a version",
    "compute capability {}.{},": (
        "tests/devices/test_cuda_device.py shows it; there is no such GPU"
    ),
    "{} with gauge-mc {}": "a version",
    "with the loops of its action in --measure": "for tables that were copied without their run",
    "these, or leave out --strict.": (
        "for algorithms of other packages; it holds for all of this one"
    ),
    "{} asks for level {}, but": "tests/updates/test_run_monomials.py carries it out",
    "{} --again": "for rows of another version; tests/stored/test_row_versions.py carries it out",
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

"""Help texts, completion and imports: what commands do before they do what they are for."""

import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import gauge_mc as package
from gauge_mc.cli import COMMANDS, FIRST, load_command
from gauge_mc.defaults import WORDS
from gauge_mc.determinations import goals
from gauge_mc.devices import BACKENDS
from gauge_mc.fits import FITS
from gauge_mc.flows import FLOWS
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.plots.drawing import plot_names
from gauge_mc.random import GENERATORS
from tests.calls import call, call_apart
from tests.patience import PATIENCE

WIDTH, MOST_LINES = 100, 45
BESIDES = 17
"""Lines of the help text of a thing besides one for each of its options."""

THINGS = {"measure": list(OBSERVABLES), "fit": list(FITS), "plot": plot_names()}
PAIRS = [(command, name) for command, names in THINGS.items() for name in names]


@pytest.fixture(autouse=True)
def width(monkeypatch):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.delenv("TERMINAL_WIDTH", raising=False)


def shown(*words):
    text, code = call(*words)
    assert code == 0
    return text


HELP = ("-h", "--help")


def flag_names(text):
    return {*re.findall(r"(?<![\w-])--[a-z0-9-]+", text)}


def flags(text):
    """The options that a help text lists, as opposed to those that it mentions."""
    return set(re.findall(r"^  (?:-h, )?(--[a-z0-9-]+)|, (--[a-z0-9-]+)", text, re.M))


@pytest.mark.parametrize(("command", "name"), PAIRS)
def test_a_thing_has_a_help_text_of_its_own_options(command, name):
    text = shown(command, name, "-h")
    lines, chosen = text.splitlines(), load_command(command).subcommand(name)
    assert lines[0].startswith(f"Usage: gauge-mc {command} {name} [OPTIONS] [RUN")
    own = {option.flag for option, *_ in chosen.kind.options(name)}
    assert len(lines) <= max(MOST_LINES, BESIDES + len(own))
    assert max(map(len, lines)) <= WIDTH
    listed = {one or other for one, other in flags(text)}
    assert listed == {flag for one in chosen.params for flag in one.opts if "--" in flag} | {
        "--help"
    }
    others = {option.flag for other in THINGS[command] for option, *_ in chosen.kind.options(other)}
    common = {flag for one in load_command(command).params for flag in one.opts}
    assert not listed & (others - own - common)


CALLS = [(), *((name,) for name in COMMANDS), ("measure", "flow")]


@pytest.mark.parametrize("words", CALLS)
def test_h_is_a_page_of_help_that_names_every_option(words):
    short, long = (shown(*words, one) for one in HELP)
    for text in (short, long):
        assert text.startswith(" ".join(["Usage: gauge-mc", *words, "[OPTIONS]"]))
        assert all(one.startswith("  gauge-mc ") for one in text.splitlines()[2:5])
    assert flag_names(short) == flag_names(long)
    assert short == long or len(long.splitlines()) > MOST_LINES >= len(short.splitlines())


@pytest.mark.slow
def test_the_first_commands_lead_to_a_number(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = [shown(*line.split()) for line in FIRST][-1]
    assert "result: √σ a = " in text


@pytest.mark.parametrize(
    ("name", "example"), [(n, e) for n in COMMANDS for e in load_command(n).examples]
)
def test_examples_are_taken(name, example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, *words = shlex.split(example.removeprefix("gauge-mc "))
    assert command == name
    load_command(name).make_context(name, words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("delete", "There is no command 'delete'; --help lists all."),
        ("generate --rng x", "There is no generator 'x'; choose lcg, philox or ranlux."),
        ("measur", "There is no command 'measur'; did you mean 'measure'?"),
        ("measure flwo", "There is no observable 'flwo'; did you mean 'flow'?"),
        ("fit potental", "There is no fit 'potental'; did you mean 'potential'?"),
        ("measure flow --tolerence 1", "measure flow; did you mean '--tolerance'?"),
        ("measure flow --multihit", "but of polyakov-correlators and wilson-loops; leave it out."),
        ("generate --groop su3", "did you mean '--group'?"),
        ("fit", "fit needs a name, as in gauge-mc fit potential; gauge-mc fit -h lists all"),
        ("measure --json", "as in gauge-mc measure wilson-loops; gauge-mc measure -h lists all"),
        ("generate --group zu8", ": --group: There is no group 'zu8'; did you mean 'su8'?"),
        (
            "generate --beta 2.2,2.4 --seed 7",
            "--beta has one value here; for several, give `gauge-mc scan --beta 2.2,2.4 --seed 7`.",
        ),
        ("measure . flow", "Name the observable before ., as in `gauge-mc measure flow .`."),
        ("fit .", "Name the fit before ., as in `gauge-mc fit potential .`."),
        ("generate card.toml", "not an argument of gauge-mc generate; a run card follows --card."),
        ("generate --quiet yes", "'yes' is not an argument of gauge-mc generate; --help shows"),
        ("watch a b.toml", "'b.toml' is not an argument of gauge-mc watch; --help shows what it"),
    ],
)
def test_misspelt_words_get_advice(words, sentence):
    said, code = call(*words.split())
    assert (sentence in said, code) == (True, 2), said


@pytest.mark.parametrize("program", ["-c", "/usr/lib/gauge_mc/__main__.py", "execnet"])
def test_the_program_has_its_name_however_it_was_started(program):
    """Also by ``python -c`` and in the processes of others, such as those of pytest-xdist."""
    for words, sentence in (
        (["measure", "flow", "--nope"], "--nope is not an option of gauge-mc measure flow"),
        (["status", "--help"], "Usage: gauge-mc status [OPTIONS]"),
        (["--help"], "Usage: gauge-mc [OPTIONS]"),
        (["fit"], "gauge-mc: gauge-mc fit needs a name"),
    ):
        shown = " ".join(call_apart(*words, program=program)[:2])
        assert sentence in shown
        assert f" {program} " not in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("delete", "There is no command 'delete'; --help lists all."),
        ("measure delete", "There is no observable 'delete'; "),  # the list depends on extensions
        ("fit delete", "There is no fit 'delete'; --help lists all."),
        ("generate --rng x", "There is no generator 'x'; choose lcg, philox or ranlux."),
        ("measure wilson", "did you mean 'wilson-loops'?"),
        ("generate --bet 2", "did you mean '--beta'?"),
    ],
)
def test_only_words_that_are_near_are_suggested(words, sentence):
    said, code = call(*words.split())
    assert (sentence in said, code) == (True, 2), said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "generate --nc 3",
            "--nc is not an option of gauge-mc generate; here it is '--group su3'.",
        ),
        ("measure flow --L 8", "here it is '--lattice 16x16x16x32'."),
        ("scan --size 8", "here it is '--lattice 16x16x16x32'."),
        ("generate --ntherm 8", "here it is '--thermalize 200'."),
        ("generate --sweeps 8", "here it is '--configs 100 --separation 10'."),
        ("bench --gpu", "here it is '--backend cuda'."),
        ("bench --backend gpu", "There is no backend 'gpu'; here it is 'cuda'."),
        ("fit string-tension", "There is no fit 'string-tension'; here it is 'potential'."),
        ("fit sigma", "here it is 'potential'."),
        ("fit susceptibility", "here it is 'topology' or 'transition'."),
        ("fit r0", "here it is 'potential'."),
        ("fit beta_c", "here it is 'transition'."),
        ("determine sigma", "There is no number 'sigma'; here it is 'sqrt-sigma'."),
        ("resume", "There is no command 'resume'; here it is 'generate --output RUN'."),
        ("ls", "There is no command 'ls'; here it is 'status'."),
    ],
)
def test_words_of_the_field_are_understood(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, code = call(*words.split())
    assert (text.rstrip().endswith(said), code) == (True, 2), text


def test_words_of_the_field_mean_what_there_is():
    """A command, a thing, or an option with a value that its command takes."""
    things = {*COMMANDS, *FITS, *OBSERVABLES, *plot_names(), *goals(), *BACKENDS}
    for name, *rest in map(str.split, WORDS):
        words = [] if name in things - {"card"} else [f"--{name}"]
        load_command("generate").make_context("generate", [*words, *rest])


def test_help_and_version_are_taken_as_words():
    assert shown("help") == shown("--help")
    assert shown("help", "measure", "flow") == shown("measure", "flow", "--help")
    assert shown("version") == shown("--version")


def test_names_are_taken_in_any_case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "--lattice 4 --thermalize 1 --configs 2 --separation 1 --quiet --backend CPU"
    words += " --output run --precision Single --start Cold --rng PHILOX --format NERSC"
    shown("Generate", *words.split(), "--group", "SU2", "--measure", "Plaquette:2,POLYAKOV")
    card = (tmp_path / "run" / "run.toml").read_text()
    for line in ('group = "su2"', 'measure = "plaquette:2,polyakov"', 'start = "cold"'):
        assert line in card
    assert shown("Measure", "Plaquette", "run", "--backend", "Cpu").endswith("_configs.csv\n")
    assert shown("measure", "Flow", "--help") == shown("measure", "flow", "--help")


def test_options_may_precede_the_name_of_a_thing():
    """Whether they take a value, belong to all things, or only to one."""
    sentence = "nowhere cannot be read"
    for words in (
        "--to 0.4 flow nowhere",
        "--to=0.4 --slices --backend cpu flow nowhere",
        "--quiet flow --to 0.4 nowhere",
        "-- flow nowhere",
    ):
        said, code = call("measure", *words.split())
        assert sentence in said
        assert code in (1, 2)
    assert shown("measure", "--help", "flow") == shown("measure", "flow", "--help")


def completed(monkeypatch, words):
    """Return what a shell would offer after words, of which the last one is incomplete."""
    monkeypatch.setenv("_GAUGE_MC_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"gauge-mc {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
    out, err, code = call_apart()
    assert err == ""
    return out.split(), code


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("meas", ["measure"]),
        ("measure ", THINGS["measure"]),
        ("fit po", ["potential"]),
        ("plot to", ["topology"]),
        ("generate --start ", ["cold", "hot"]),
        ("measure --quiet fl", ["flow"]),
        ("measure flow --flow ", list(FLOWS)),
        ("measure wilson-loops --smear h", ["hyp"]),
        ("measure --backend c", ["cuda", "cpu"]),
        ("fit topology --charge ", ["clover", "improved"]),
        ("generate --group su", [name for name in GROUPS if name.startswith("su")]),
        ("generate --action iw", ["iwasaki"]),
        ("generate --rng ", list(GENERATORS)),
        ("generate --format ne", ["nersc"]),
        ("generate --precision ", ["single", "double"]),
        ("generate --measure plaquette,polyakov-c", ["plaquette,polyakov-correlators"]),
        ("scan --group=su3", ["su3"]),
        ("convert a b --to i", ["ildg"]),
        ("measure flow --to", ["--to", "--tolerance"]),
        ("measure nonsense --out", ["--output"]),
        ("nonsense --gr", []),
    ],
)
def test_a_shell_completes(monkeypatch, words, offered):
    assert completed(monkeypatch, words) == (offered, 0)


def test_a_shell_offers_only_the_options_of_the_thing(monkeypatch):
    offered, _ = completed(monkeypatch, "measure flow --")
    assert {"--to", "--tolerance", "--backend", "--json"} <= {*offered}
    assert not {"--iterations", "--smear", "--weight"} & {*offered}
    assert "--smear" in completed(monkeypatch, "measure wilson-loops --sm")[0]


def test_a_failure_leaves_the_line_of_the_shell_as_it_is(monkeypatch):
    def fail(name):
        raise RuntimeError

    monkeypatch.setattr("gauge_mc.cli.load_command", fail)
    assert completed(monkeypatch, "measure fl") == ([], 1)


ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(package.__file__).parent.parent)}


def imported_by(*words, **variables):
    command = [sys.executable, "-X", "importtime", "-m", "gauge_mc", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT | variables, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.slow
def test_help_imports_nothing_that_takes_time():
    """Neither NumPy nor any module of the package but those of the command line itself."""
    found = imported_by("--help")
    ours = {name for name in found if name.partition(".")[0] == "gauge_mc"}
    own = {"cli", "cli.help", "console", "errors", "process", "quoting", "registry"}
    assert ours == {"gauge_mc", "gauge_mc.defaults", *(f"gauge_mc.{name}" for name in own)}
    assert "numpy" not in found


@pytest.mark.parametrize("name", ["regenerate", "report", "thin"])
def test_commands_that_are_functions_have_their_parameters(name):
    """Options are those of the docstring, and their values are passed by name."""
    function = inspect.signature(getattr(package, name)).parameters.values()
    needed = {"quiet" if x.name == "progress" else x.name: x.default is x.empty for x in function}
    options = {x.name: x.required for x in load_command(name).params if x.name != "help"}
    assert options == {**needed, "json": False}


def test_version():
    assert call("--version") == (f"gauge-mc {package.__version__}\n", 0)

"""Help texts and completion: what a user is told about commands before they do something."""

import inspect
import re
import shlex

import pytest
from typer.models import OptionInfo

from gauge_mc.cli import COMMANDS, function_of, load_command
from gauge_mc.fits import FITS
from gauge_mc.flows import FLOWS
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.plots import AGAINST_BETA
from gauge_mc.plots.drawing import plot_names
from gauge_mc.random import GENERATORS
from tests.calls import call, call_apart

WIDTH, MOST_LINES = 100, 46
MOST_COMMON_LINES = 34
"""Lines of a list of things besides one for each of them."""
MANY, LONGEST = 24, 3
"""Options of a thing for which a page is enough, and lines of each one more."""

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


def flags(text):
    """The options that a help text lists, as opposed to those that it mentions."""
    return set(re.findall(r"^  (?:-h, )?(--[a-z0-9-]+)|, (--[a-z0-9-]+)", text, re.M))


@pytest.mark.parametrize(("command", "name"), PAIRS)
def test_a_thing_has_a_help_text_of_its_own_that_fits_on_a_page(command, name):
    text = shown(command, name, "--help")
    lines = text.splitlines()
    assert lines[0].startswith(f"Usage: gauge-mc {command} {name} [OPTIONS] [RUN")
    own = [*load_command(command).subcommand(name).kind.options(name)]
    assert len(lines) <= MOST_LINES + LONGEST * max(0, len(own) - MANY)
    assert max(map(len, lines)) <= WIDTH
    assert "<bool>" not in text
    assert "[default: False]" not in text
    listed = {one or other for one, other in flags(text)}
    chosen = load_command(command).subcommand(name)
    words = [flag for one in chosen.params for flag in one.opts if flag.startswith("--")]
    own = {*words}
    assert len(words) == len(own)
    assert listed == own | {"--help"}
    others = {option.flag for other in THINGS[command] for option, *_ in chosen.kind.options(other)}
    declared = {option.flag for option, *_ in chosen.kind.options(name)}
    common = {flag for one in load_command(command).params for flag in one.opts}
    assert not listed & (others - declared - common)


def test_a_description_is_that_of_the_thing():
    """The tolerance of solvers was described at that of the flow."""
    assert "residual" not in shown("measure", "flow", "--help")
    assert "error of every link" in shown("measure", "flow", "--help")
    assert "Largest norm" not in shown("measure", "wilson-loops", "--help")
    assert "[default: 6, or half the lattice]" in shown("measure", "planar-loops", "--help")


@pytest.mark.parametrize("command", THINGS)
def test_a_command_lists_the_things_and_common_options(command):
    lines = shown(command, "--help").splitlines()
    listed = {name for name in THINGS[command] if not name.endswith(AGAINST_BETA)}
    assert len(lines) <= MOST_COMMON_LINES + len(listed)
    rows = {line.split()[0] for line in lines if line.startswith("  ")}
    assert {*listed, "--json", "--output"} <= rows
    assert f"NAME{AGAINST_BETA}" in shown("plot", "--help")
    chosen = load_command(command)
    own = {option.flag for name in THINGS[command] for option, *_ in chosen.kind.options(name)}
    assert not rows & own


def test_common_options_are_abridged_only_where_they_must_be():
    long = " ".join(shown("measure", "wilson-loops", "--help").split())
    assert "Common options, which gauge-mc measure --help describes" in long
    assert re.search(r"--devices N\|I,J,\.\.\.\|all\|cpu:N\S*, --threads <int>", long)
    assert "Number of CPU threads" in shown("measure", "plaquette", "--help")


@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS), ("measure", "flow")])
def test_h_is_help(words):
    text = shown(*words, "-h")
    assert text == shown(*words, "--help")
    assert text.startswith(" ".join(["Usage: gauge-mc", *words, "[OPTIONS]"]))
    assert "<bool>" not in text
    assert re.search(r"^  -h, --help  +Show this message and exit\.$", text, re.M)


def test_flags_have_no_value():
    assert re.search(r"^  --dry-run  +Show", shown("generate", "--help"), re.M)
    assert re.search(r"^  --slices  +Also record", shown("measure", "flow", "--help"), re.M)
    assert re.search(r"^  --seed <int>  +Seed", shown("generate", "--help"), re.M)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("measur", "There is no command 'measur'; did you mean 'measure'?"),
        ("measure flwo", "There is no observable 'flwo'; did you mean 'flow'?"),
        ("fit potental", "There is no fit 'potental'; did you mean 'potential'?"),
        ("measure flow --tolerence 1", "measure flow; did you mean '--tolerance'?"),
        (
            "measure flow --multihit",
            "but of polyakov-correlators and wilson-loops; leave it out.",
        ),
        ("generate --groop su3", "did you mean '--group'?"),
        *(
            (words, f"needs a name, as in gauge-mc {command} {THINGS[command][0]}; {first}, ")
            for words, command in (("fit", "fit"), ("measure --json", "measure"))
            for first in [f"choose {', '.join(THINGS[command][:2])}"]
        ),
        ("generate --group zu8", "There is no group 'zu8'; did you mean 'su8'?"),
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
        ("list", "There is no command 'list'; choose "),
        ("delete", "There is no command 'delete'; choose "),
        ("measure topology", "There is no observable 'topology'; choose "),
        ("fit string-tension", "There is no fit 'string-tension'; choose "),
        ("measure wilson", "did you mean 'wilson-loops'?"),
        ("generate --bet 2", "did you mean '--beta'?"),
    ],
)
def test_only_words_that_are_near_are_suggested(words, sentence):
    said, code = call(*words.split())
    assert (sentence in said, code) == (True, 2), said


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_lacks_words_has_an_example(name, tmp_path, monkeypatch):
    """The example is accepted as far as its words go, and names everything that is needed."""
    monkeypatch.chdir(tmp_path)
    command = load_command(name)
    needed = [one for one in command.params if one.required]
    assert bool(COMMANDS[name].example) == bool(needed and not hasattr(command, "kind"))
    if needed:
        said, code = call(name)
        example = re.search(rf"as in gauge-mc {name} (.*?)[;.]", said)[1]
        assert code == 2
        load_command(name).make_context(name, shlex.split(example))


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


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_small_letters_with_any_typer(name):
    """Some versions of Typer take the letters of a placeholder that is the name in capitals."""
    for parameter in inspect.signature(function_of(name), eval_str=True).parameters.values():
        for declared in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(declared, OptionInfo) and declared.default is ...:  # no name is given
                assert (declared.metavar or "").lower() != parameter.name.replace("_", "-")

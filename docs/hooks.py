"""MkDocs hook: the parts of the reference that follow from what gauge_mc declares.

A page may have three kinds of places, each on a line of its own:

- ``<!-- generated: NAME -->`` is replaced by what the function of that name in `PARTS` returns;
- ``<!-- attributes: MODULE.CLASS -->`` is replaced by a table of the attributes of a class, as its
  docstring describes them;
- ``<!-- notebook: PATH -->`` is replaced by the cells of a notebook and their stored outputs.

The pages of ``runs/`` become pages of the site, where the pages of ``docs/`` are beside them.
"""

from __future__ import annotations

import importlib
import inspect
import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gauge_mc import cli, defaults
from gauge_mc.actions import ACTIONS
from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.cli.command import Chooser
from gauge_mc.cli.document import (
    LEAVES,
    VOCABULARY,
    Heading,
    attributes,
    documents,
    keys_of,
    vocabulary,
)
from gauge_mc.cli.help import (
    COMMON,
    DEFAULT,
    description,
    is_argument,
    placeholder,
    usage,
)
from gauge_mc.devices import BACKENDS
from gauge_mc.exports import EXPORTS
from gauge_mc.extensions.publishing.papers import (
    UNREAD,
    ComparedEntry,
    Comparison,
    PaperCard,
    known_cards,
    read_comparison,
    read_paper,
)
from gauge_mc.extensions.publishing.papers.reproduce import compare_kept
from gauge_mc.files.columns import SWEEP
from gauge_mc.fits import FITS
from gauge_mc.flows import FLOWS
from gauge_mc.formats import FORMATS
from gauge_mc.groups import GROUPS
from gauge_mc.observables import OBSERVABLES, Observable, table_name
from gauge_mc.options import Option
from gauge_mc.plots.drawing import find_plot, plot_names
from gauge_mc.random import GENERATORS, Generator
from gauge_mc.registry import Registry
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters, known_options
from gauge_mc.run.results import Average
from gauge_mc.run.settings import Execution
from gauge_mc.run.settings import options_of as settings_of
from gauge_mc.scans.averages import NUMBERS, column_of
from gauge_mc.scans.batch_systems import BATCH_SYSTEMS
from gauge_mc.smearing import SMEARINGS
from gauge_mc.temporal_links import TEMPORAL_LINKS
from gauge_mc.updates import chain_steps
from gauge_mc.updates.integrators import INTEGRATORS
from gauge_mc.updates.monomials import MONOMIALS

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
"""The folder that has ``docs``, ``gauge_mc`` and ``runs``."""

PUBLISHED = ("README.md", "*.toml", "bench/README.md", "bench/*.json", "results/**/*.png")
"""Files of ``runs`` that become part of the site."""

MERMAID = "vendor/mermaid/mermaid.tiny.js"
"""The library that draws diagrams, as the site has it."""

GENERATED = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
NOTEBOOK = re.compile(r"^<!-- notebook: ([\w./-]+) -->$", re.MULTILINE)
ATTRIBUTES = re.compile(r"^<!-- attributes: ([\w.]+)\.(\w+) -->$", re.MULTILINE)

TOML_TYPES = {int: "integer", float: "float", str: "string", bool: "boolean"}
"""Types of Python as TOML calls them."""

PARTS: dict[str, Callable[[], str]] = {}
"""What a page can ask for, by name."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of ``runs``, with the files that they link to."""
    from mkdocs.structure.files import File

    for pattern in PUBLISHED:
        for path in sorted((ROOT / "runs").glob(pattern)):
            uri = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Fill the places of a page, and let links between ``docs`` and ``runs`` be those of the site.

    In the repository they are folders beside each other; on the site ``runs`` is within ``docs``.
    """
    up = "../" * page.file.src_uri.count("/")
    linked = filled(markdown).replace(f"](../{up}runs/", f"]({up}runs/")
    return linked.replace("](../docs/", "](../")


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Give Mermaid, which is large, to the pages with diagrams, before the theme asks for it."""
    if 'class="mermaid"' not in output:
        return output
    from mkdocs.utils import get_relative_url

    script = f'<script src="{get_relative_url(MERMAID, page.url)}"></script>'
    return output.replace("</head>", script + "</head>", 1)


def filled(markdown: str) -> str:
    """Return the text of a page with its places filled.

    Raises
    ------
    KeyError
        If the page asks for an unknown part.
    """
    markdown = NOTEBOOK.sub(lambda match: notebook(ROOT / "docs" / match[1]), markdown)
    markdown = GENERATED.sub(lambda match: PARTS[match[1]](), markdown)
    return ATTRIBUTES.sub(lambda match: attribute_table(match[1], match[2]), markdown)


def notebook(path: Path) -> str:
    """Return the cells of a notebook with their stored outputs as Markdown."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts += [f"```python\n{source}\n```", *map(cell_output, cell["outputs"])]
    return "\n\n".join(parts)


def cell_output(output: dict[str, Any]) -> str:
    """Return an output of a cell as Markdown, as HTML on one line if it has HTML."""
    data = output.get("data", {})
    if "text/html" not in data:
        text = "".join(output.get("text") or data["text/plain"]).rstrip("\n")
        return f"```text\n{text}\n```"
    shown = "".join(data["text/html"]).replace("\n", "&#10;")
    return f'<div class="output">{shown}</div>'


def part(function: Callable[[], str]) -> Callable[[], str]:
    """Let pages ask for what a function returns."""
    PARTS[function.__name__] = function
    return function


# Markdown


def plain(text: object) -> str:
    """Return text in which nothing is taken for Markdown, HTML or a formula."""
    return re.sub(r"([\\`*_\[\]<>|$])", r"\\\1", str(text)).replace("\\<", "&lt;")


def code(text: object) -> str:
    """Return text as code, or nothing if there is none."""
    return f"`{text}`" if str(text) else ""


def prose(text: str) -> str:
    """Return a part of a docstring as Markdown: names in two backticks or one are code."""
    pieces = re.split(r"(``.+?``|`.+?`)", " ".join(text.split()))
    return "".join(code(one.strip("`")) if one[:1] == "`" else plain(one) for one in pieces)


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table."""
    titles = list(headings)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def paragraphs(docstring: str | None) -> list[str]:
    """Return the paragraphs of a docstring before its sections, as Markdown."""
    text = re.split(r"\n\n[A-Z]\w+\n-{3,}\n", inspect.cleandoc(docstring or ""))[0]
    return [prose(one) for one in text.split("\n\n")]


def literal_block(docstring: str | None) -> str:
    """Return the block of a docstring that follows ``::``, as code."""
    block = inspect.cleandoc(docstring or "").partition("::\n")[2]
    return f"```text\n{textwrap.dedent(block).strip()}\n```\n"


# Classes


def attribute_table(module: str, name: str) -> str:
    """Return a table of the attributes of a class."""
    kind = getattr(importlib.import_module(module), name)
    rows = [
        (", ".join(map(code, names)), plain(type_), prose(meaning))
        for names, type_, meaning in attributes(kind)
    ]
    return table(("key", "type", "meaning"), rows)


# Commands


def default_and_meaning(parameter: Any) -> tuple[str, str]:
    """Return the default of an option or argument in words, and its description, as Markdown."""
    text = description(parameter)
    found = DEFAULT.search(text)
    return plain(found[1] if found else ""), plain(DEFAULT.sub("", text))


def option_tables(parameters: Iterable[Any]) -> Iterator[str]:
    """Yield a table of the options in each section of a command's help."""
    sections: dict[str, list[tuple[str, ...]]] = {}
    for one in parameters:
        default, text = default_and_meaning(one)
        row = (code(one.opts[0]), code(placeholder(one)), default, text)
        sections.setdefault(one.rich_help_panel or "Options", []).append(row)
    for section, rows in sections.items():
        yield table((section, "value", "default", "meaning"), rows)


def call(words: str, command: Any) -> str:
    """Return a block with how a command is called, and examples."""
    lines = [usage(f"gauge-mc {words}", command.params), "", *command.examples]
    return "```text\n{}\n```\n".format("\n".join(lines))


def command_section(name: str) -> str:
    """Return the description of a command, and of those of the things that it chooses from."""
    command = cli.load_command(name)
    first, *rest = paragraphs(command.help)
    rows = [
        (code(placeholder(one)), *default_and_meaning(one))
        for one in command.params
        if is_argument(one)
    ]
    options = option_tables(one for one in command.params if not is_argument(one))
    parts = [f"### gauge-mc {name} {{ #{name} }}\n", first, call(name, command), *rest]
    parts += [table(("argument", "default", "meaning"), rows)] if rows else []
    chooses = isinstance(command, Chooser)
    for title, entries in command.lists().items():
        links = (f"[`{one}`](#{name}-{one})" if chooses else code(one) for one, *_ in entries)
        summaries = (plain(summary) for *_, summary in entries)
        parts += [table((title, "what it is"), zip(links, summaries, strict=True))]
    if isinstance(command, Chooser):
        options = (one.replace("| Options |", "| Options of all |", 1) for one in options)
        return "\n\n".join([*parts, *options, *thing_sections(name, command)])
    return "\n\n".join([*parts, *options])


def thing_sections(name: str, command: Chooser) -> Iterator[str]:
    """Yield the descriptions of the commands of things, with their own options."""
    for thing in command.kind.names():
        one = command.subcommand(thing)
        own: list[Any] = [each for each in one.params if not is_argument(each)]
        yield f"#### gauge-mc {name} {thing} {{ #{name}-{thing} }}\n"
        yield prose(one.help or "")
        yield from option_tables(each for each in own if each.rich_help_panel != COMMON)


@part
def commands() -> str:
    """Describe all commands, under the headings of ``gauge-mc --help``."""
    sections, panel = [], ""
    for name, command in cli.COMMANDS.items():
        if command.panel != panel:
            panel = command.panel
            sections.append(f"## {panel}\n")
        sections.append(command_section(name))
    return "\n\n".join(sections)


@part
def command_list() -> str:
    """List all commands with links to their descriptions."""
    rows = [(f"[`{name}`](#{name})", plain(one.help)) for name, one in cli.COMMANDS.items()]
    return table(("command", "purpose"), rows)


@part
def global_options() -> str:
    """Describe the options of ``gauge-mc`` itself."""
    from typer.main import get_command

    options = [one for one in get_command(cli.app).params if one.name != "help"]
    return "\n\n".join(option_tables(options))


@part
def batch_systems() -> str:
    """List the batch systems of ``--submit``."""
    rows = [
        (f"`{name}`", one.title, f"`{one.program}`", plain(one.stopped))
        for name, one in BATCH_SYSTEMS.items()
    ]
    return table(("`--submit`", "batch system", "submitted by", "jobs that are stopped"), rows)


# Comparisons with papers


@part
def paper_averages() -> str:
    """Compare averages with those of papers and other programs, with the settings."""
    rows = []
    for found, card in comparisons():
        for one, entry in zip(found.entries, card.entries, strict=True):
            if entry.average and one.pull is not None:
                shown = (settings_of_ensemble(found, one.ensemble), entry.average)
                rows.append((*shown, *compared(one), paper_link(found.paper), plain(one.note)))
    heads = ("ensemble", "average", "here", "published", "pull", "by", "remark")
    return table(heads, rows)


@part
def paper_results() -> str:
    """Compare results of fits with those of papers, with the settings."""
    rows = []
    for found, card in comparisons():
        for one, entry in zip(found.entries, card.entries, strict=True):
            if entry.fit and one.pull is not None:
                ensemble = settings_of_ensemble(found, one.ensemble)
                own = (code(found.card), ensemble, cost(found, one.ensemble))
                by = paper_link(found.paper)
                rows.append((plain(one.name), *own, *compared(one), by, plain(one.note)))
    heads = ("quantity", "card", "ensemble", "took", "here", "published", "pull", "by", "remark")
    return table(heads, rows)


@part
def paper_totals() -> str:
    """Say how the pulls of all entries are distributed."""
    entries = [one for found, _ in comparisons() for one in found.entries if one.pull is not None]
    counted = [one for one in entries if one.counted]
    pulls = [one.pull for one in counted if one.pull is not None and not one.note]
    chi2 = sum(one**2 for one in pulls)
    return (
        f"{len(entries)} numbers of {len(comparisons())} cards are compared. "
        f"{len(entries) - len(counted)} of them are marked as {UNREAD}, because no text with the "
        f"published number could be read, and {len(counted) - len(pulls)} of the others have a "
        f"remark. For the remaining {len(pulls)}, χ² is {chi2:.1f}, the spread of the pulls "
        f"{math.sqrt(chi2 / len(pulls)):.2f}, and the largest one {max(map(abs, pulls)):.1f}."
    )


@part
def paper_sources() -> str:
    """Say of every card where its published numbers were read."""
    rows = []
    for card in map(read_paper, known_cards().values()):
        ours = "none: ensembles of ours are compared with each other"
        sources = dict.fromkeys(ours if one.against else one.read or UNREAD for one in card.entries)
        words = map(plain, (card.title, card.where, "; ".join(sources)))
        rows.append((code(card.name), *words))
    return table(("card", "what", "table or figure", "read in"), rows)


@cache
def comparisons() -> list[tuple[Comparison, PaperCard]]:
    """Return the comparisons that are kept, or that follow from kept results, with their cards."""
    found = []
    for path in known_cards().values():
        card = read_paper(path)
        made = ROOT / "runs" / "results" / "papers" / f"{card.name}.json"
        if made.exists():
            found.append((read_comparison(made), card))
        elif any(one.results for one in card.ensembles.values()):
            found.append((compare_kept(card), card))
    return found


def compared(one: ComparedEntry) -> tuple[str, str, str]:
    """Return the cells of an entry: our value, the published one, and the pull."""
    return one.text, one.published_text, f"{one.pull:+.1f}".replace("-", "−")


def settings_of_ensemble(found: Comparison, name: str) -> str:
    """Return group, action, couplings, lattice and algorithm of an ensemble in words."""
    (used,) = [one for one in found.ensembles if one.name == name]
    values = {key: str(value) for key, value in used.parameters.items()}
    (card,) = [one for _, one in comparisons() if one.name == found.card]
    ensemble = card.ensembles[name]
    if ensemble.scan:
        values |= {key: str(ensemble.values[key]) for key in ("beta", "lattice")}
    parameters = ensemble.parameters
    words = [GROUPS[parameters.group].label, str(parameters.action), f"β = {values['beta']}"]
    words += [values["lattice"], parameters.algorithm.name]
    updates = "" if used.updates is None else f"{used.updates} updates"
    return plain(", ".join([*words, *([updates] if updates else [])]))


def cost(found: Comparison, name: str) -> str:
    """Return the device, the minutes and the energy of a kept run, as far as they are known."""
    (used,) = [one for one in found.ensembles if one.name == name]
    run = Run(ROOT / "runs" / used.path)
    sessions = run.read()[1] if used.kept and run.exists() else []
    if not sessions:
        return ""
    words = [sessions[0].device.partition(" (")[0]]
    if all(one.seconds for one in sessions):
        words.append(f"{sum(one.seconds or 0.0 for one in sessions) / 60:.1f} min")
    if joules := sum(one.joules or 0.0 for one in sessions):
        words.append(f"{joules / 1000:.3g} kJ")
    return plain(", ".join(words))


def paper_link(paper: str) -> str:
    """Return a link to a paper if it has an address."""
    if paper.startswith("https://"):
        return f"[{paper.rpartition('/')[2]}]({paper})"
    at_arxiv = re.fullmatch(r"[\w.-]+/\d+|\d+\.\d+", paper)
    return f"[{paper}](https://arxiv.org/abs/{paper})" if at_arxiv else plain(paper)


# Documents


def key_table(kind: type[Any]) -> str:
    """Return a table of the keys of a document."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, entry in keys_of(kind).items():
        groups.setdefault(entry, []).append(name)
    rows = [
        (", ".join(map(code, names)), json_type(type_), prose(text))
        for (type_, text), names in groups.items()
    ]
    return table(("key", "type", "meaning"), rows)


def json_type(words: str) -> str:
    """Return a type as JSON calls it."""
    for one in LEAVES:
        words = words.replace(one.__name__, "str")
    return plain(words.replace("None", "null"))


@part
def json_heading() -> str:
    """Describe the keys with which every document begins."""
    return key_table(Heading)


@part
def json_average() -> str:
    """Describe the keys of an average."""
    return key_table(Average)


@part
def json_version() -> str:
    """State the version of the vocabulary."""
    return f"This is version {VOCABULARY} of the vocabulary."


@part
def json_documents() -> str:
    """Describe the documents of all commands."""
    sections = []
    for name in cli.COMMANDS:
        sections.append(f"### {name} {{ #{name} }}\n")
        for kind in documents(name):
            sections += [paragraphs(kind.__doc__)[0], key_table(kind)]
    return "\n\n".join(sections)


@part
def json_vocabulary() -> str:
    """List all keys with their meanings."""
    rows = []
    for name, word in vocabulary([kind for one in cli.COMMANDS for kind in documents(one)]).items():
        several = len(word.meanings) > 1
        meanings = [
            f"{prose(text)} ({', '.join(map(code, classes))})" if several else prose(text)
            for text, classes in word.meanings.items()
        ]
        types = "; ".join(map(json_type, word.types))
        rows.append((code(name), types, "<br>".join(meanings)))
    return table(("key", "type", "meaning"), rows)


# Files


def setting_rows(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return rows of a table with the key, type, default and meaning of settings of a run."""
    known = known_options()
    return [
        (code(name), TOML_TYPES[one.kind], plain(one.default_in_words), plain(one.help))
        for name, one in known.items()
        if name in names
    ]


@part
def parameter_keys() -> str:
    """Describe the keys of `Parameters`, and of the options of actions."""
    names = known_options().keys() - settings_of(Execution).keys()
    return table(("key", "type", "default", "meaning"), setting_rows(names))


@part
def execution_keys() -> str:
    """Describe the keys of `Execution`."""
    rows = setting_rows(settings_of(Execution))
    return table(("key", "type", "default", "meaning"), rows)


@part
def run_folder() -> str:
    """Show the files of a run."""
    return literal_block(importlib.import_module("gauge_mc.run.directory").__doc__)


@part
def scan_folder() -> str:
    """Show the files of a scan."""
    return literal_block(importlib.import_module("gauge_mc.scans.scan").__doc__)


def header_of(observable: type[Observable]) -> dict[str, str]:
    """Return the header of the table that a default run makes of an observable."""
    parameters = Parameters()
    return {**observable.for_lattice(parameters.lattice).header, **parameters.provenance}


@part
def table_header() -> str:
    """Show the header of a table."""
    first = OBSERVABLES[defaults.MEASURE[0]]
    lines = [f"# {key}: {value}" for key, value in header_of(first).items()]
    return "```text\n" + "\n".join([*lines, ",".join((SWEEP, *first.columns.names))]) + "\n```\n"


@part
def observable_tables() -> str:
    """Describe the table of every observable."""
    sections = []
    for name, one in OBSERVABLES.items():
        rows = [(code(column.name), plain(column.meaning)) for column in one.columns]
        text = f"{plain(one.summary[0].upper() + one.summary[1:])}. "
        text += f"Normalisation: {plain(one.normalisation)}. Units: {plain(one.units)}."
        sections += [f"### `{table_name(name)}.csv`\n", text, table(("column", "meaning"), rows)]
        for other in one.secondary_tables:
            rows = [(code(column.name), plain(column.meaning)) for column in other.columns]
            text = f"`{table_name(name)}_{other.name}.csv`, which `measure` writes beside it, has "
            sections += [f"{text}{plain(other.summary)}.", table(("column", "meaning"), rows)]
    return "\n\n".join(sections)


@part
def exchange_columns() -> str:
    """Describe the columns of the table of exchanges."""
    rows = [(code(column.name), plain(column.meaning)) for column in chain_steps.COLUMNS]
    return table(("column", "meaning"), rows)


@part
def scan_columns() -> str:
    """Describe the columns of the table of a scan."""
    average, error, tau = NUMBERS
    rows = []
    for one in OBSERVABLES.values():
        for column in one.columns if one.columns.averaged else ():
            name = column_of(one, column.name)
            rows.append((code(name + average), f"{one.name}: {plain(column.meaning)}"))
        for derived in one.derived:
            rows.append((code(column_of(one, derived.name)), plain(derived.help)))
    rows += [(f"…`{error}`", "statistical error"), (f"…`{tau}`", "τ_int in updates, of averages")]
    return table(("column", "meaning"), rows)


def kind_of(thing: Any) -> type[Any]:
    """Return the class of a thing, which may be the thing itself."""
    return thing if isinstance(thing, type) else type(thing)


def home_of(thing: Any) -> str:
    """Return the docstring of the module that declares a thing."""
    return sys.modules[kind_of(thing).__module__].__doc__ or ""


@part
def format_descriptions() -> str:
    """Describe the formats of configuration files, each as its module does."""
    sections = []
    for name, one in FORMATS.items():
        suffix = f"written with the ending `{one.suffix}`" if one.suffix else "only read"
        first, *rest = paragraphs(home_of(one))
        text = f"`{name}`, {suffix}. {first}"
        sections += [f"### {plain(one.title)} {{ #{name} }}\n", text, *rest]
    return "\n\n".join(sections)


@part
def export_descriptions() -> str:
    """Describe the exports, each as its class does."""
    sections = []
    for one in EXPORTS.values():
        sections += [f"### `{one.ending}`\n", *paragraphs(kind_of(one).__doc__)]
    return "\n\n".join(sections)


# Choices


def first_paragraph(thing: Any) -> str:
    """Return the first paragraph of the docstring of a thing's class."""
    return paragraphs(kind_of(thing).__doc__)[0]


def described(registry: Registry[Any], *more: str) -> str:
    """Return a table of the things of a kind: names, summaries, and further attributes."""
    rows = []
    for name, one in registry.items():
        summary = getattr(one, "summary", "")
        words = plain(summary) if summary else first_paragraph(one)
        rows.append((code(name), words, *(plain(getattr(one, key)) for key in more)))
    return table(("name", "what it is", *more), rows)


def options_of(registry: Registry[Any]) -> str:
    """Return a table of the options that the things of a kind declare."""
    rows = []
    for name, one in registry.items():
        for option in one.options:
            rows.append((code(name), *option_row(option)))
    return table(("of", "option", "value", "default", "meaning"), rows) if rows else ""


def option_row(option: Option) -> tuple[str, ...]:
    """Return a declared option as cells of a table."""
    return code(option.flag), code(option.placeholder), plain(option.default), plain(option.help)


@part
def actions() -> str:
    """List the gauge actions."""
    rows = [
        (
            code(name),
            plain(one.formula),
            plain(one.beta_is),
            ", ".join(code(option.flag) for option in one.options),
        )
        for name, one in ACTIONS.items()
    ]
    return table(("name", "S", "β", "options"), rows)


@part
def algorithms() -> str:
    """List the algorithms of updates."""
    rows = [
        (
            code(name),
            plain(one.summary),
            ", ".join(code(option.flag) for option in one.options),
            ", ".join(map(code, one.columns.names)),
        )
        for name, one in ALGORITHMS.items()
    ]
    return table(("name", "an update", "options", "columns of its table"), rows)


@part
def integrators() -> str:
    """List the integrators of hybrid Monte Carlo."""
    rows = [
        (code(name), plain(one.summary), str(one.order), str(one.forces))
        for name, one in INTEGRATORS.items()
    ]
    return table(("name", "what it is", "order", "forces per step"), rows)


@part
def monomials() -> str:
    """List the terms of the action of hybrid Monte Carlo."""
    rows = [
        (code(name), plain(one.summary), code(f"--{one.chosen_by}"))
        for name, one in MONOMIALS.items()
    ]
    return table(("name", "what it is", "chosen with"), rows)


@part
def flows() -> str:
    """List the gradient flows."""
    rows = [(code(name), first_paragraph(one), plain(one.formula)) for name, one in FLOWS.items()]
    return table(("name", "what it is", "dV/dt V⁻¹"), rows)


@part
def groups() -> str:
    """List the gauge groups."""
    rows = [
        (code(name), plain(one.label), str(one.components), f"{one.beta:g}")
        for name, one in GROUPS.items()
    ]
    return table(("name", "group", "stored reals per link", "default β"), rows)


def levels_of(one: Generator) -> str:
    """Return the quality levels of a generator in words."""
    return f"0 to {len(one.levels) - 1}" if one.levels else "none"


@part
def generators() -> str:
    """List the random number generators."""
    rows = [
        (
            code(name),
            first_paragraph(one),
            str(32 * one.state_words),
            levels_of(one),
            plain(one.caution),
        )
        for name, one in GENERATORS.items()
    ]
    return table(("name", "what it is", "bits of state per site", "levels", "caution"), rows)


@part
def backends() -> str:
    """List the kinds of devices."""
    rows = [(code(name), first_paragraph(one), plain(one.label)) for name, one in BACKENDS.items()]
    return table(("name", "what it is", "called"), rows)


@part
def plots() -> str:
    """List the plots, those of observables included."""
    rows = [(code(name), plain(find_plot(name).summary)) for name in plot_names()]
    return table(("name", "what it shows"), rows)


@part
def fit_files() -> str:
    """List the files of the results of fits."""
    rows = [
        (code(one.file), plain(one.summary), ", ".join(code(kind) for kind in one.columns))
        for one in FITS.values()
    ]
    return table(("file", "content", "columns of the table that is fitted"), rows)


PARTS |= {
    "exports": partial(described, EXPORTS, "ending"),
    "fits": partial(described, FITS),
    "formats": partial(described, FORMATS, "suffix"),
    "observables": partial(described, OBSERVABLES),
    "smearings": partial(described, SMEARINGS),
    "temporal_links": partial(described, TEMPORAL_LINKS),
    "smearing_options": partial(options_of, SMEARINGS),
}

"""Mutations are small mistakes in code, and tests of a copy of the checkout run with them."""

import ast
import csv
import io
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

import pytest

from tests.tools import changes, mutations
from tests.tools.changes import CHECKOUT
from tests.tools.mutations import NUMBER, of_file


@pytest.fixture(scope="module")
def found():
    return mutations.mutations(seed=0)


@pytest.mark.slow
def test_mutations_are_deterministic_and_in_many_files(found):
    assert mutations.mutations(seed=0) == found != mutations.mutations(seed=1)
    assert len({*found}) == len(found) == 2 * NUMBER
    counts = Counter(Path(one.file).parts[0] for one in found)
    assert counts == {"gauge_mc": NUMBER, "cuda_src": NUMBER}
    assert len({Path(one.file).parent for one in found}) > NUMBER
    assert len({one.kind for one in found}) > 10


def comments(text):
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [one.string for one in tokens if one.type == tokenize.COMMENT]


def texts(tree):
    """The constants of a module that are text, docstrings among them."""
    nodes = (getattr(node, "value", None) for node in ast.walk(tree))
    return sorted(value for value in nodes if isinstance(value, str))


@pytest.mark.slow
def test_all_mutations_of_a_module_change_code():
    name = "gauge_mc/quoting.py"
    text = (CHECKOUT / name).read_text()
    tree = ast.parse(text)
    every = [one.applied(text) for one in of_file(name, text)]
    assert len(every) > 20
    for mutated in filter(mutations.compiles, every):
        other = ast.parse(mutated)
        assert ast.dump(other) != ast.dump(tree)
        assert texts(other) == texts(tree)
        assert comments(mutated) == comments(text)


@pytest.mark.slow
def test_mutations_differ_from_the_source_and_leave_comments_alone(found):
    for one in found:
        text = (CHECKOUT / one.file).read_text()
        assert text[one.start :].startswith(one.before)
        assert text.count("\n", 0, one.start) + 1 == one.line
        mutated = one.applied(text)
        assert mutated != text
        if one.file.endswith(".py"):
            assert texts(ast.parse(mutated)) == texts(ast.parse(text))
            assert comments(mutated) == comments(text)
        else:
            begin = text.rfind("\n", 0, one.start) + 1
            assert "//" not in text[begin : one.start]
            assert text[begin:].lstrip()[0] != "#"
            assert text.count("/*", 0, one.start) == text.count("*/", 0, one.start)


def words(text, name="a.py"):
    return [(one.before, one.after) for one in of_file(name, text)]


def test_what_is_changed_in_python():
    assert words("a + b * -c < 2\n") == [("+", "-"), ("*", "/"), ("-", ""), ("<", "<="), ("2", "3")]
    assert words("x = not a and min(b, 0.5)\n") == [
        *(("not", ""), ("and", "or"), ("min", "max"), ("0.5", "1.5"))
    ]
    assert words("for mu in range(4): y[mu] == nu\n") == [
        *(("mu", "nu"), ("4", "5"), ("mu", "nu"), ("==", "!="), ("nu", "mu"))
    ]
    text = '"""1 + 1"""\n@cache(1)\ndef f(a: Literal[1] = True, *b) -> Literal[2]:  # 3\n'
    assert words(f'{text}    return f"{{a + 1}} and " + "b" + \'c\'\n') == [("True", "False")]
    assert words("zip(a, b, strict=True)\n") == []


def test_what_is_changed_in_kernels():
    text = "#include <a>  // 1\ntemplate <int N = 3> real f(const T* mu, real& x) { /* 2 */\n"
    assert words(text, "a.h") == []
    text += "static_assert(N == 3);  \n  if (!a && b < 0x0f) return -c * 2u - d[mu] + nu->mu;\n}\n"
    assert words(text, "a.h") == [
        *(
            ("!", ""),
            ("&&", "||"),
            ("<", "<="),
            ("0x0f", "16"),
            ("-", ""),
            ("*", "/"),
            ("2u", "3u"),
        ),
        *(("-", "+"), ("mu", "nu"), ("+", "-"), ("nu", "mu")),
    ]


TEST = """
from pathlib import Path
import gauge_mc
from gauge_mc.quoting import listed

def test_small():
    assert Path(gauge_mc.__file__).parents[1] == Path(__file__).parents[1]
    assert {0} == 1
"""

KERNEL = """
from gauge_mc.kernel import NUMBER

def test_all():
    assert NUMBER == 1, "The compiler c++ failed on the kernel 'copy': expected ';'. Run"
"""


@pytest.mark.slow
def test_tests_run_with_the_sources_of_the_copy(tmp_path, monkeypatch, capsys):
    """A mutation is caught, or survives, or breaks what failed before; and results are kept."""
    source = tmp_path / "checkout"
    for name, text in (
        ("gauge_mc/__init__.py", ""),
        ("gauge_mc/quoting.py", "def listed():\n    return 1\n"),
        ("gauge_mc/unused.py", "NUMBER = 1\n"),
        ("tests/test_numbers.py", TEST.format("listed()")),
        ("gauge_mc/kernel.py", "NUMBER = 1\n"),
        ("tests/test_unused.py", "def test_all():\n    assert True\n"),
        ("tests/test_kernel.py", KERNEL),
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=source, check=True)
    subprocess.run(["git", "add", "."], cwd=source, check=True)
    for module in (mutations, changes):
        monkeypatch.setattr(module, "CHECKOUT", source)
    names = ("gauge_mc/quoting.py", "gauge_mc/unused.py", "gauge_mc/kernel.py")
    every = [one for name in names for one in of_file(name, (source / name).read_text())]
    monkeypatch.setattr(mutations, "mutations", lambda seed: every)
    results = tmp_path / "results.csv"
    monkeypatch.setattr(sys, "argv", ["mutations.py", "--run", "--out", str(results), "-q"])
    mutations.main()
    rows = [*csv.reader(results.open())]
    assert [row[6] for row in rows] == ["caught", "survived", "does not compile"]
    assert rows[0][7] == "tests/test_numbers.py::test_small"
    capsys.readouterr()
    mutations.main()
    assert "1 caught tests/test_numbers.py::test_small (" in capsys.readouterr().out
    assert [*csv.reader(results.open())] == rows
    (source / "tests/test_numbers.py").write_text(TEST.format(3))
    results.unlink()
    monkeypatch.setattr(sys, "argv", ["mutations.py", "--run", "1", "--out", str(results)])
    mutations.main()
    assert next(csv.reader(results.open()))[6] == "fails without it, too"

"""The documentation: its code runs, its output is what it says, its API page is complete.

The blocks of a page run from top to bottom, in one folder and one namespace: ``python`` and
``pycon`` as they are, ``dualtap`` lines of ``sh`` blocks through the command. A ``text`` block is
what the block before it prints. Links and pictures are checked by ``make docs``.
"""

import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

import dualtap
import libraries

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
# What pages may tell a reader to type that a test cannot.
NOT_RUN = (
    "make ",
    "pip install ",
    "python -m benchmarks",
    "dualtap --install-completion",
    "dualtap reproduce ",
    "dualtap bench ",
    "dualtap fit data.zarr --dask tcp:",
)
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    language: str
    source: str
    line: int


def blocks(text):
    """Return the blocks of code of a page, those in other languages left out."""
    found = re.finditer(r"^```(python|pycon|sh|text)\n(.*?)^```$", text, flags=re.M | re.S)
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 1) for m in found]


def commands(source):
    """Return the lines of a shell block, continued ones joined, comments and blanks left out."""
    lines = source.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if shlex.split(line, comments=True)]


class Reader:
    """Does what a page says."""

    def __init__(self, page, run, capfd):
        self.page, self.run, self.capfd = page, run, capfd
        self.namespace = {"__name__": "__main__"}
        self.printed = None

    def read(self, block):
        getattr(self, block.language)(block)

    def python(self, block):
        if "import torch" in block.source:
            libraries.library("torch")
        source = "\n" * block.line + block.source  # tracebacks tell the line of the page
        exec(compile(source, self.page, "exec"), self.namespace)  # the pages are ours
        self.printed = self.capfd.readouterr().out

    def pycon(self, block):
        test = doctest.DocTestParser().get_doctest(
            block.source, self.namespace, self.page, self.page, block.line
        )
        result = doctest.DocTestRunner(optionflags=LOOSELY).run(test, clear_globs=False)
        assert not result.failed, self.capfd.readouterr().out
        self.namespace |= test.globs
        self.printed = None

    def sh(self, block):
        self.printed = ""
        for line in commands(block.source):
            if line.startswith(NOT_RUN):
                continue
            command, *words = shlex.split(line, comments=True)
            assert command == "dualtap", f"{self.page}: neither run nor known: {line}"
            code, out, err = self.run(*words)
            assert code == 0, f"{self.page}: {line}\n{err}"
            self.printed += out

    def text(self, block):
        where = f"{self.page}, line {block.line}"
        assert self.printed is not None, f"{where}: output of what?"
        right = doctest.OutputChecker().check_output(block.source, self.printed, LOOSELY)
        assert right, f"{where}: this is printed:\n{self.printed}"
        self.printed = None


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=libraries.TORCH if p == "scaling.md" else ()) for p in PAGES]
)
def test_a_page_does_what_it_says(page, run, capfd):
    reader = Reader(page, run, capfd)
    for block in blocks((DOCS / page).read_text(encoding="utf-8")):
        reader.read(block)


def test_a_page_that_is_wrong_is_caught(run, capfd):
    reader = Reader("page", run, capfd)
    page = "```python\nprint(1 + 1)\n```\n\n```text\n2\n```\n\n```sh\nrm -r here\n```\n"
    sum_, output, shell = blocks(page)
    reader.read(sum_)
    reader.read(output)
    with pytest.raises(AssertionError, match="output of what"):
        reader.read(output)
    reader.read(sum_)
    with pytest.raises(AssertionError, match="this is printed"):
        reader.read(output._replace(source="3\n"))
    with pytest.raises(AssertionError, match="neither run nor known"):
        reader.read(shell)
    with pytest.raises(AssertionError, match="there is no file"):
        reader.read(shell._replace(source="dualtap show no-model.npz\n"))


def public_modules():
    """Return every module of the package that says what is public in it."""
    names = [name for _, name, _ in pkgutil.iter_modules(dualtap.__path__) if name[0] != "_"]
    modules = [importlib.import_module(f"dualtap.{name}") for name in names]
    return [module for module in (dualtap, *modules) if hasattr(module, "__all__")]


def documented():
    """Return what the API page lists, by full name; a name that is not there is an error."""
    found = {}
    module = None
    for line in (DOCS / "api.md").read_text(encoding="utf-8").splitlines():
        if here := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = importlib.import_module(here[1])
        elif entry := re.match(r"   ([A-Za-z_][\w.]*)$", line):
            item = module
            for part in entry[1].split("."):
                item = getattr(item, part)
            found[f"{module.__name__}.{entry[1]}"] = item
    return found


def test_the_api_page_is_complete():
    listed = {id(item) for item in documented().values()}
    missing = [
        f"{module.__name__}.{name}"
        for module in public_modules()
        for name in module.__all__
        if (inspect.isclass(item := getattr(module, name)) or inspect.isfunction(item))
        and id(item) not in listed
    ]
    assert not missing


def test_the_api_page_has_a_section_for_every_module_that_users_import():
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    for module in public_modules():
        for name in module.__all__:
            if inspect.ismodule(item := getattr(module, name)):
                assert f".. automodule:: {item.__name__}\n" in page


def test_files_of_the_api_do_not_differ_in_capitals_alone():
    conf = (DOCS / "conf.py").read_text(encoding="utf-8")
    seen = {}
    for name in documented():
        if f'"{name}":' not in conf:  # those have a file name of their own
            assert seen.setdefault(name.lower(), name) == name


def formulas():
    """Return the formulas of all pages."""
    kinds = (r"\{math\}`([^`]+)`", r"^```\{math\}\n(?::label: [^\n]*\n)?(.*?)^```$")
    text = "\n\n".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
    found = [match for kind in kinds for match in re.findall(kind, text, flags=re.M | re.S)]
    return sorted({" ".join(formula.split()) for formula in found})


def test_formulas_are_drawn_or_refused(monkeypatch):
    pytest.importorskip("ziamath")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    drawn_math = importlib.import_module("drawn_math")
    drawn, aligned = drawn_math.drawn, drawn_math.aligned
    assert len(formulas()) > 50
    for formula in formulas():
        assert drawn(aligned(formula), inline=False).startswith("<svg ")
    assert 'aria-label="a &lt; b"' in drawn("a < b", inline=True)
    with pytest.raises(ValueError, match="unheardof cannot be drawn"):
        drawn(r"x + \unheardof", inline=False)


def test_tables_that_were_not_measured_are_named(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    with_tables = importlib.import_module("measured").with_tables
    (tmp_path / "there.md").write_text("# Table\n")
    page = "# Page\n\n```{measured} there\n```\n\n```{measured} gone\n:heading-offset: 3\n```\n"
    assert with_tables(page, tmp_path) == (
        "# Page\n\n```{include} ../benchmarks/results/there.md\n:heading-offset: 2\n```\n\n"
        "`benchmarks/results/gone.md` is not part of this build.\n"
    )
    names = re.findall(r"^```\{measured\} (\S+)$", (DOCS / "benchmarks.md").read_text(), flags=re.M)
    assert {"recovery", "general", "nulls", "real", "fits", "sensitivity"} <= set(names)

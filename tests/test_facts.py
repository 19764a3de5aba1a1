"""Numbers in the README and the docs: those of the code and of the tables they are taken from."""

import re
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

from dualtap import DualTAP, HopfieldRBM
from dualtap.io import SampleFile
from dualtap.schemes import SequentialAMP
from dualtap.theory import paramagnetic_limit

ROOT = Path(__file__).parent.parent
POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def rows_of(name):
    """Return the rows of all tables of a page, as lists of cells."""
    lines = text_of(name).splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]


def test_the_readme_is_short():
    assert len(text_of("README.md").splitlines()) <= 150


def test_overlaps_in_the_readme_are_those_of_the_benchmarks():
    head, *measured = (row for row in rows_of("benchmarks/results/recovery.md") if len(row) > 6)
    columns = [head.index(name) for name in ("ours", "k-means", "PCA + ICA", "paper")]
    cases = {row[0]: [row[k].split(" ")[0] for k in columns] for row in measured}
    found = [(re.search(r"\((β=.*)\)$", row[0]), row[1:]) for row in rows_of("README.md")]
    shown = {match[1]: values for match, values in found if match}
    assert len(shown) >= 6
    assert shown == {case: cases[case] for case in shown}


def test_counts_of_data_sets_in_the_readme_are_those_of_the_benchmarks():
    readme = " ".join(text_of("README.md").split())
    summary = text_of("benchmarks/results/real.md")
    mixture = re.search(r"At least the mixture - 0\.005: (\d+ of \d+) sets", summary)[1]
    pairwise = re.search(r"within 0\.02 of pairwise: (\d+ of \d+) sets", summary)[1]
    assert f"Bernoulli mixture on {mixture} data sets" in readme
    assert f"pairwise couplings on only {pairwise}" in readme


# A pattern with one group, and where the number that it finds is kept.
JUDGED = "recovery.calibration.JUDGED_ENTRIES"
CONSTANTS = [
    ("docs/scaling.md", r"at most (2[⁰-⁹¹²³]+) entries \(`JUDGED_ENTRIES`", JUDGED),
    ("docs/architecture.md", r"`JUDGED_ENTRIES` = (2[⁰-⁹¹²³]+)", JUDGED),
    ("docs/scaling.md", r"17 million entries \((2[⁰-⁹¹²³]+)\)", "spins.builder.DENSE"),
    ("docs/scaling.md", r"no more than\s+(\d+), it takes one", "subspace.singular.SMALL"),
    ("docs/architecture.md", r"no more than (\d+),\s+the spectrum", "subspace.singular.SMALL"),
    ("docs/architecture.md", r"A group of (\d+) shares", "published.deflate.GROUP"),
]


@pytest.mark.parametrize(("page", "pattern", "name"), CONSTANTS)
def test_constants_in_the_docs_are_those_of_the_code(page, pattern, name):
    (text,) = re.findall(pattern, text_of(page))
    if "*" in text:
        factors = [int(factor) for factor in re.split(r"\*\*|\*", text)]
        value = factors[0] * factors[1] ** factors[2]
    elif not text.isascii():
        value = 2 ** int(text[1:].translate(POWERS))
    else:
        value = int(text)
    module, constant = f"dualtap.{name}".rsplit(".", 1)
    assert value == getattr(import_module(module), constant)


def test_how_long_the_benchmarks_take_is_said_once():
    pages = ("README.md", "CONTRIBUTING.md", "docs/benchmarks.md")
    lines = [line for page in pages for line in text_of(page).splitlines() if "make bench" in line]
    said = [
        found[1] for line in lines if (found := re.search(r"(\w+ \w+ \w+ hours?|of an hour)", line))
    ]
    assert said == ["more than two hours"] * 2


def test_samples_that_are_needed_are_those_of_the_theory():
    rows = {row[0]: row[1:] for row in rows_of("docs/when-it-works.md")}
    betas = [float(beta) for beta in rows["β"]]
    for beta, threshold in zip(betas, rows["{math}`M_c/N`"], strict=True):
        assert float(threshold) == pytest.approx(
            (1 / beta - 1) ** 2, abs=0.05 if beta < 0.6 else 0.005
        )
    needed = rows["M/N for an overlap of 0.9, at best"]
    for beta, alpha in zip(betas, needed, strict=True):
        assert paramagnetic_limit(beta=beta, alpha=float(alpha)).sign == pytest.approx(
            0.9, abs=0.01
        )


def test_what_the_changelog_says_to_use_now_is_there():
    (table,) = re.findall(r"\| 0\.1\.0 \| 0\.2\.0 \|\n.*?\n((?:\|.*\n)+)", text_of("CHANGELOG.md"))
    rows = [line.strip("|").split(" | ") for line in table.splitlines()]
    assert all(len(row) == 2 for row in rows)
    names = {name for _, now in rows for name in re.findall(r"`dualtap\.([\w.]+)`", now)}
    assert len(names) >= 2
    for name in names:
        module, _, last = f"dualtap.{name}".rpartition(".")
        assert hasattr(import_module(module), last)
    options = {option for _, now in rows for option in re.findall(r"(\w+)=", now)}
    assert {"damping", "start", "damps", "tempering", "label_columns"} <= options
    assert options <= {
        name
        for function in (DualTAP, HopfieldRBM.sample, SampleFile, SequentialAMP)
        for name in signature(function).parameters
    }

"""A small form of ``make attack``: the same cases, a few of them."""

import sys
import time
from pathlib import Path

import pytest

import dualtap as dt

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.attack import arrays, faults, files


# From 789 on: fits given P that returned a pattern twice, or scored below independent spins; 2584,
# 6756: rows with few entries, whose mean score is lower, and the score of all entries is not.
@pytest.mark.parametrize(
    "seed", [*range(5), 789, 892, 2584, 6756, 20107, 20229, 20473, 20848, 20909, 20985]
)
def test_random_arrays(seed):
    assert arrays.attempt(seed) in arrays.GOOD


def test_what_fits_given_a_number_of_patterns_promise_is_checked():
    X = dt.HopfieldModel.random(12, 2, beta=2.0, random_state=0).sample(20, random_state=1)
    model = dt.HopfieldPatterns(2, random_state=0).fit(X)
    arrays._check(model, X)
    model.patterns_[1] = -model.patterns_[0]
    with pytest.raises(AssertionError, match=r"two of 2 patterns have the .cosine. 1\.00"):
        arrays._check(model, X)
    model.patterns_[1, ::2] *= -1
    model.strengths_[:] = -1
    with pytest.raises(AssertionError, match="2 patterns score"):
        arrays._check(model, X)
    model.strengths_[:] = 50
    with pytest.raises(AssertionError, match="fields of patterns"):
        arrays._check(model, X)


@pytest.mark.skipif(sys.platform == "win32", reason="memory is read by POSIX")
def test_mutated_files(tmp_path):
    seeds = dict.fromkeys(files.FORMATS, range(3))
    cases = list(files.attempts(tmp_path, seeds, time.monotonic() + 600))
    assert len(cases) == 3 * len(files.FORMATS)
    wrong = [case for case in cases if case.outcome not in ("read", "refused")]
    assert not wrong
    assert {case.outcome for case in cases} == {"read", "refused"}


def test_mutations_can_be_repeated(tmp_path):
    source = files.original(tmp_path, ".csv")
    for name, seed in (("a.csv", 3), ("b.csv", 3), ("c.csv", 4)):
        files.mutated(source, tmp_path / name, seed)
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_two_writers(tmp_path):
    assert faults.two_writers(tmp_path, 0) == "one winner each"

"""Entries set together, by means over draws from their posterior; the path over fewer patterns."""

import numpy as np
import pytest

from dualtap import HopfieldModel, as_spins
from dualtap.metrics import match
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import of_one_strength, with_patterns
from dualtap.recovery.path import _numbers
from dualtap.recovery.refinement import drawn
from dualtap.recovery.refit import HOPFIELD
from dualtap.recovery.steps import Search
from dualtap.spins.matrix import blocks_of


@pytest.fixture(scope="module")
def teacher():
    return HopfieldModel.random(n_spins=200, n_patterns=8, beta=0.8, random_state=0)


@pytest.fixture(scope="module")
def search(teacher):
    spins = as_spins(teacher.sample(800, random_state=1))
    return Search(spins, blocks_of(spins), Judge(spins))


def with_wrong_bits(patterns, share):
    wrong = np.random.default_rng(2).random(patterns.shape) < share
    return np.where(wrong, -patterns, patterns).astype(np.float32)


def test_many_wrong_bits_are_set_together(teacher, search):
    start = of_one_strength(search.judge, with_wrong_bits(teacher.patterns, 0.2))
    found = drawn(search, start)
    assert found.objective < start.objective - 100
    before, after = (match(state.fit.Z, teacher.patterns) for state in (start, found))
    assert before.mean_overlap < 0.7
    assert after.mean_overlap > before.mean_overlap + 0.15


def test_only_models_of_one_strength_are_drawn(teacher, search):
    start = with_patterns(search.judge, with_wrong_bits(teacher.patterns, 0.2), search.nothing)
    assert start.fit.parameters != HOPFIELD
    assert drawn(search, start) is start


def test_the_path_goes_down_to_none_in_a_dozen_steps_at_most():
    assert _numbers(0) == []
    assert _numbers(4) == [3, 2, 1, 0]
    many = _numbers(90)
    assert len(many) == 12
    assert many[-1] == 0
    assert 90 - 90 // 12 - 1 <= many[0] < 90

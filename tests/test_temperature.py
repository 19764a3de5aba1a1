"""β of a model with fields; without them it is tested in test_recovery."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from dualtap.hopfield import HopfieldModel
from dualtap.metrics import pseudo_likelihood
from dualtap.metrics.likelihoods import field_blocks
from dualtap.recovery import temperature
from dualtap.recovery.temperature import BETA_RANGE, best_temperature, fit_beta, fit_fields


def biased(beta, n_spins=300, n_samples=300, start="auto"):
    b = np.random.default_rng(1).normal(0.2, 0.5, size=n_spins)
    teacher = HopfieldModel.random(n_spins, 3, beta, random_state=0, fields=b)
    return teacher, teacher.sample(n_samples, start=start, random_state=2)


@pytest.mark.parametrize("beta", [1.2, 1.5, 2.0, 2.5])
def test_beta_of_a_teacher_with_fields_is_recovered(beta):
    teacher, X = biased(beta)
    found = fit_beta(X, teacher.patterns, teacher.fields)
    assert found == pytest.approx(beta, rel=0.05)
    # The fields matter: without them β is another one.
    assert fit_beta(X, teacher.patterns) != pytest.approx(beta, rel=0.1)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_beta_with_fields_maximises_the_pseudo_likelihood(missing):
    teacher, X = biased(1.5, n_samples=50)
    X[np.random.default_rng(3).random(X.shape) < missing] = 0
    best = minimize_scalar(
        lambda beta: -pseudo_likelihood(X, teacher.patterns, beta, teacher.fields),
        bounds=(0.1, 10),
        method="bounded",
        options={"xatol": 1e-6},
    )
    assert fit_beta(X, teacher.patterns, teacher.fields) == pytest.approx(best.x, rel=2e-3)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("beta", [0.5, 1.5, 3.0])
def test_beta_and_likelihood_are_those_of_the_maximum(beta, missing):
    teacher = HopfieldModel.random(200, 3, beta, random_state=0)
    X = teacher.sample(50, random_state=1)
    X[np.random.default_rng(3).random(X.shape) < missing] = 0
    found, value = best_temperature(X, teacher.patterns)
    best = minimize_scalar(
        lambda x: -pseudo_likelihood(X, teacher.patterns, x),
        bounds=(0.1, 10),
        method="bounded",
        options={"xatol": 1e-6},
    )
    # The histogram's bins are 7e-4 wide, and it scales for missing entries by N/n instead of
    # (N-1)/(n-1).
    assert found == pytest.approx(best.x, rel=5e-3 if missing else 2e-3)
    assert value == pytest.approx(-best.fun, abs=1e-4 if missing else 1e-5)


@pytest.mark.parametrize("with_fields", [False, True])
def test_blocks_make_no_difference(with_fields, monkeypatch):
    teacher, X = biased(1.5, n_samples=100)
    X[np.random.default_rng(3).random(X.shape) < 0.2] = 0
    b = teacher.fields if with_fields else None
    whole = best_temperature(X, teacher.patterns, b)
    monkeypatch.setattr(temperature, "_BLOCK", 300 * 7)
    assert best_temperature(X, teacher.patterns, b) == pytest.approx(whole, rel=1e-5)
    beta, fields = fit_fields(X, teacher.patterns)
    monkeypatch.undo()
    expected = fit_fields(X, teacher.patterns)
    assert beta == pytest.approx(expected[0], rel=1e-5)
    np.testing.assert_allclose(fields, expected[1], atol=1e-5)


def test_the_histogram_counts_every_observed_spin():
    teacher, X = biased(1.5, n_samples=40)
    X[np.random.default_rng(3).random(X.shape) < 0.3] = 0
    zeta = teacher.patterns.astype(np.float32)
    ((centres, _, counts),) = temperature._histogram(X, zeta).blocks
    ((_, aligned),) = field_blocks(X, zeta)
    values = aligned[X != 0]
    assert counts.sum() == values.size == np.count_nonzero(X)
    # Each within half a bin of 2 * 3 / 8192 of its own value.
    placed = np.repeat(centres, counts.astype(int))
    np.testing.assert_allclose(placed, np.sort(values), atol=4e-4)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.5, 3.0), st.integers(2, 40), st.integers(0, 2**32 - 1))
def test_fields_of_zero_give_the_beta_without(beta, n_samples, seed):
    teacher = HopfieldModel.random(50, 2, beta, random_state=seed)
    X = teacher.sample(n_samples, n_sweeps=10, random_state=seed)
    found = fit_beta(X, teacher.patterns, np.zeros(50))
    # The histogram's bins are 5e-4 wide; near the ends of the range β hardly matters.
    if BETA_RANGE[0] * 2 < found < BETA_RANGE[1] / 5:
        assert found == pytest.approx(fit_beta(X, teacher.patterns), rel=0.02)


def test_many_entries_are_thinned_to_whole_samples(monkeypatch):
    teacher, X = biased(1.5, n_samples=600)
    gaps = np.zeros((50, 300), dtype=np.int8)  # never chosen: they have nothing to say
    padded = np.concatenate([gaps, X])
    every = fit_beta(padded, teacher.patterns, teacher.fields)
    monkeypatch.setattr(temperature, "_MAX_ENTRIES", 300 * 200)
    some = fit_beta(padded, teacher.patterns, teacher.fields)
    assert some != every
    assert some == pytest.approx(every, rel=0.05)
    assert some == fit_beta(padded, teacher.patterns, teacher.fields)  # always the same ones
    monkeypatch.setattr(temperature, "_MAX_ENTRIES", 10)  # less than a sample: one
    assert BETA_RANGE[0] < fit_beta(padded, teacher.patterns, teacher.fields) < BETA_RANGE[1]


def test_beta_with_fields_stays_in_its_range():
    pattern = np.where(np.arange(100) % 3, 1, -1)[None]
    b = np.full(100, 0.1)
    cold = fit_beta(np.repeat(pattern, 5, axis=0), pattern, b)
    assert 5 < cold <= BETA_RANGE[1]
    against = np.where(np.arange(100) % 2, pattern, -pattern)
    assert fit_beta(against, pattern, b) == pytest.approx(BETA_RANGE[0], rel=0.1)


@pytest.mark.parametrize("fields", [None, np.zeros(4)])
def test_beta_of_nothing_is_an_error(fields):
    with pytest.raises(ValueError, match="no observed entry"):
        fit_beta(np.zeros((2, 4)), np.ones((1, 4)), fields)


def test_beta_with_bad_fields():
    X = np.ones((2, 4))
    with pytest.raises(ValueError, match=r"fields must have shape \(4,\)"):
        fit_beta(X, X[:1], np.zeros(3))
    with pytest.raises(ValueError, match="fields must be finite"):
        fit_beta(X, X[:1], [0, math.inf, 0, 0])

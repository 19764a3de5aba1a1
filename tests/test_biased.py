"""Spins with means of their own: fields and patterns fitted together."""

import numpy as np
import pytest
from scipy.optimize import minimize

import dualtap as dt
from dualtap.datasets import load_digits
from dualtap.metrics import match, pseudo_likelihood
from dualtap.metrics.likelihoods import field_blocks
from dualtap.recovery.biased import _numbers, description_gain, recover_biased
from dualtap.recovery.temperature import fit_fields
from dualtap.spins import as_spins, builder
from dualtap.spins.blocks import Blocks


def biased_teacher(n_spins=200, n_patterns=3, beta=1.0, n_samples=1500, seed=0, width=1.0):
    b = np.random.default_rng(seed + 7).uniform(-width, width, n_spins)
    teacher = dt.HopfieldModel.random(n_spins, n_patterns, beta=beta, random_state=seed, fields=b)
    return teacher, teacher.sample(n_samples, random_state=seed + 1)


# --- β and the fields ---------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_fields_and_temperature_are_at_their_common_maximum(missing):
    teacher, X = biased_teacher()
    X = X.copy()
    X[np.random.default_rng(0).random(X.shape) < missing] = 0
    beta, b = fit_fields(X, teacher.patterns)
    s, aligned = (np.concatenate(x) for x in zip(*field_blocks(X, teacher.patterns), strict=True))
    s, h = s.astype(float), (s * aligned).astype(float)
    curvature = (np.abs(s) - np.square(np.tanh(beta * h + b) * s)).sum(axis=0)
    precision = 1 / (np.mean(b**2) + np.mean(1 / (curvature + 1)))

    def cost(x):
        argument = s * (x[0] * h + x[1:])
        penalty = 0.5 * precision * np.sum(x[1:] ** 2)
        return np.logaddexp(0, -2 * argument)[s != 0].sum() + penalty

    def gradient(x):
        residual = (s - np.tanh(x[0] * h + x[1:])) * np.abs(s)
        return -np.concatenate([[np.sum(h * residual)], residual.sum(axis=0) - precision * x[1:]])

    best = minimize(cost, np.r_[1.0, np.zeros(len(b))], jac=gradient, method="L-BFGS-B").x
    assert beta == pytest.approx(best[0], rel=0.01)
    np.testing.assert_allclose(b, best[1:], atol=0.01)
    # Each alone could still move if the other were wrong: the joint gradient vanishes.
    scale = np.concatenate([[np.sum(h**2)], curvature + precision])
    np.testing.assert_allclose(gradient(np.r_[beta, b]) / scale, 0, atol=3e-3)


def test_a_given_temperature_is_kept_and_fields_follow_it():
    teacher, X = biased_teacher()
    beta, b = fit_fields(X, teacher.patterns, beta=0.3)
    assert beta == 0.3
    free, other = fit_fields(X, teacher.patterns)
    assert free == pytest.approx(1.0, abs=0.1)
    assert pseudo_likelihood(X, teacher.patterns, free, other) > pseudo_likelihood(
        X, teacher.patterns, beta, b
    )


def test_temperature_stays_within_its_range():
    X = np.ones((20, 10), dtype=np.int8)
    X[::2] = -1
    beta, b = fit_fields(X, np.ones((1, 10)))
    assert 0.01 <= beta <= 50
    assert np.isfinite(b).all()


# --- The number of patterns ---------------------------------------------------------------------


def test_a_pattern_costs_a_bit_a_spin_and_a_field_half_a_logarithm():
    assert description_gain(-0.4, 0, 100, with_fields=False) == -0.4
    assert description_gain(-0.4, 5, 100, with_fields=False) == pytest.approx(
        -0.4 - 0.05 * np.log(2)
    )
    assert description_gain(-0.4, 0, 100, with_fields=True) == pytest.approx(
        -0.4 - 0.005 * np.log(100)
    )


@pytest.mark.parametrize(
    ("most", "numbers"), [(1, [1]), (2, [1, 2]), (5, [1, 2, 3, 4, 5]), (9, [1, 2, 3, 4, 6, 8, 9])]
)
def test_numbers_that_are_tried(most, numbers):
    assert list(_numbers(most)) == numbers


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_means_alone_are_no_pattern(seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, size=150)
    X = (rng.random((800, 150)) < p).astype(int)
    assert recover_biased(Blocks(as_spins(X)), rng) is None
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    assert model.n_patterns_ == 0
    assert model.score(X) > -0.6


@pytest.mark.parametrize("seed", [0, 1])
def test_patterns_behind_strong_fields(seed):
    teacher, X = biased_teacher(seed=seed)
    found = recover_biased(Blocks(as_spins(X)), np.random.default_rng(0))
    assert len(found.m) == 3
    assert match(np.sign(found.m), teacher.patterns).mean_overlap > 0.9
    assert found.beta == pytest.approx(1.0, rel=0.1)
    assert np.corrcoef(found.fields, teacher.fields)[0, 1] > 0.97
    told = recover_biased(Blocks(as_spins(X)), np.random.default_rng(0), 2, beta=0.7)
    assert (len(told.m), told.beta) == (2, 0.7)


def test_turning_sites_turns_bits_and_fields():
    _, X = biased_teacher()
    turn = np.random.default_rng(3).choice([-1, 1], size=X.shape[1])
    a, b = (recover_biased(Blocks(as_spins(x)), np.random.default_rng(0)) for x in (X, X * turn))
    assert b.beta == pytest.approx(a.beta, rel=0.02)
    # Starts are random, so a bit in doubt may come out otherwise, and its field with it.
    assert np.mean(np.abs(b.fields * turn - a.fields) < 0.05) > 0.98
    assert match(np.sign(b.m) * turn, np.sign(a.m)).mean_overlap > 0.98


# --- Real pictures ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    X = load_digits().X
    order = np.random.default_rng(0).permutation(len(X))
    return X[order[:1300]], X[order[1300:]]


def test_digits_are_explained_where_no_fit_has_looked(digits):
    train, test = digits
    model = dt.HopfieldPatterns(random_state=0).fit(train)
    p = (1 + train.sum(axis=0) / (len(train) + 2)) / 2
    independent = np.where(test > 0, np.log(p), np.log(1 - p)).mean()
    assert model.score(test) > independent + 0.08  # -0.39 and -0.29
    assert 8 <= model.n_patterns_ <= 32
    assert model.score(train) - model.score(test) < 0.01
    assert "pays for itself" in model.reason_
    assert model.fields_.any()


def test_digits_as_bits_are_the_same(digits, monkeypatch):
    train, test = digits
    dense = dt.HopfieldPatterns(8, random_state=0).fit(train)
    monkeypatch.setattr(builder, "DENSE", 0)
    packed = dt.HopfieldPatterns(8, random_state=0).fit(train)
    assert packed.score(test) == pytest.approx(dense.score(test), abs=0.01)


def test_every_pattern_is_kept_even_without_samples(digits):
    train, _ = digits
    model = dt.HopfieldPatterns(30, random_state=0).fit(train[:200])
    assert len(model.patterns_) == len(model.weights_) == model.n_patterns_


def test_more_patterns_than_a_hopfield_model_holds_are_not_searched_one_by_one(digits, monkeypatch):
    from dualtap.recovery import joint

    asked = []
    real = joint.search

    def spy(*arguments, **options):
        asked.append(options["one_by_one"])
        return real(*arguments, **options)

    monkeypatch.setattr(joint, "search", spy)
    dt.HopfieldPatterns(random_state=0).fit(digits[0])
    X = dt.HopfieldModel.random(300, 4, beta=1.2, random_state=0).sample(300, random_state=1)
    dt.HopfieldPatterns(random_state=0).fit(X)
    assert asked == [False, True]


def test_most_samples_have_the_sign_of_their_pattern(digits):
    model = dt.HopfieldPatterns(random_state=0).fit(digits[0])
    nearest = model.assign(digits[0])
    for k in range(model.n_patterns_):
        assert nearest.sign[nearest.label == k].sum() >= 0

"""What patterns mean and what they leave: sides, effects, and pairs that they do not explain."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualtap as dt
from dualtap.baselines import PseudoLikelihood
from dualtap.edges import ModelMismatchWarning
from dualtap.fitted.meaning import CHANCE, FEWEST, profiles
from dualtap.fitted.unexplained import LARGEST_SHARE, pair_share


def by_hand(S, zeta):
    """Sides of one pattern, sample by sample and spin by spin."""
    n_spins = len(zeta)
    counts = np.zeros((2, n_spins, 2))
    for i in range(n_spins):
        others = [j for j in range(n_spins) if j != i and zeta[j]]
        for s in S:
            n = sum(s[j] != 0 for j in others)
            total = sum(zeta[j] * s[j] for j in others)
            if s[i] == 0 or n == 0:
                continue
            side = int(total < 0)
            if abs(total) / n >= min(2 / np.sqrt(n), 0.5) - 1e-12:
                counts[side, i, int(s[i] < 0)] += 1
    return counts


@settings(max_examples=25)
@given(st.integers(2, 9), st.integers(0, 2**32 - 1), st.booleans())
def test_sides_are_counted_without_the_spin_itself(n_spins, seed, gaps):
    rng = np.random.default_rng(seed)
    S = rng.choice([-1, 0, 1] if gaps else [-1, 1], size=(60, n_spins)).astype(np.int8)
    zeta = rng.choice([-1, 0, 1], size=(1, n_spins)).astype(np.int8)
    counts = by_hand(S, zeta[0])
    found = profiles(S, zeta).up[0]
    totals = counts.sum(axis=2)
    for i in range(n_spins):
        few = totals[:, i] < np.maximum(FEWEST, CHANCE * totals[::-1, i])
        if not few.any():
            np.testing.assert_allclose(found[:, i], counts[:, i, 0] / totals[:, i], rtol=1e-5)
        elif few.all():
            assert np.isnan(found[:, i]).all()


def test_a_side_without_samples_is_compared_with_all_others():
    rng = np.random.default_rng(0)
    zeta = rng.choice([-1, 1], size=(1, 64)).astype(np.int8)
    S = rng.choice([-1, 1], size=(400, 64)).astype(np.int8)
    S[:100] = zeta
    found = profiles(S, zeta)
    assert found.share[0, 0] > 0.25
    others = (S[100:] > 0).mean(axis=0)
    np.testing.assert_allclose(found.effect[0], (zeta[0] > 0) - others, atol=0.12)


def test_an_independent_spin_has_no_effect():
    """Were it part of the overlap, it would always seem to agree with itself."""
    S = np.random.default_rng(1).choice([-1, 1], size=(20_000, 9)).astype(np.int8)
    found = profiles(S, np.ones((1, 9), dtype=np.int8))
    assert np.abs(found.effect).max() < 0.06


@pytest.fixture(scope="module")
def named():
    import pandas as pd

    teacher = dt.HopfieldModel.random(40, 2, beta=1.4, random_state=0)
    X = pd.DataFrame(teacher.sample(300, random_state=1), columns=[f"q{k}" for k in range(40)])
    return dt.HopfieldPatterns(2, random_state=0).fit(X)


def test_a_summary_says_what_patterns_mean(named, tmp_path):
    text = named.summary()
    best = named._profiles.strongest(0, named.patterns_[0], 1)[0]
    effect = named._profiles.effect[0, best]
    assert f"effect: q{best} {effect:+.2f}".replace("-", "−") in text
    assert "of samples on its + side" in text
    assert "hardly any" not in text
    dt.save(named, tmp_path / "model.npz")
    assert dt.load(tmp_path / "model.npz").summary() == text


def test_patterns_without_samples_are_named(named):
    import copy

    model = copy.deepcopy(named)
    model.weights_ = np.array([1.0, 0.0])
    assert "hardly any sample (< 1 %) is nearest to pattern 1" in model.summary()


def sparse_graph(n_spins, degree, size, n_samples, seed):
    """Samples of an Ising model with couplings ±size on a random graph, by Gibbs sampling."""
    rng = np.random.default_rng(seed)
    J = np.triu(rng.random((n_spins, n_spins)) < degree / (n_spins - 1), 1) * size
    J = J + J.T
    S = rng.choice([-1.0, 1.0], size=(n_samples, n_spins))
    for _ in range(60):
        for i in range(n_spins):
            p = 1 / (1 + np.exp(-2 * S @ J[i]))
            S[:, i] = np.where(rng.random(n_samples) < p, 1, -1)
    return J, S.astype(np.int8)


def test_couplings_that_are_not_of_low_rank_are_left_to_a_baseline():
    J, S = sparse_graph(60, 4, 0.2, 3000, seed=1)
    model = dt.HopfieldPatterns(random_state=0).fit(S)

    def error(couplings):
        return np.linalg.norm(couplings - J)

    baseline = error(PseudoLikelihood(0.02).fit(S).couplings())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        own = error(model.couplings())
    said = [str(w.message) for w in caught if w.category is ModelMismatchWarning]
    assert own < 1.2 * baseline or said
    assert not said or "dualtap.baselines.PseudoLikelihood instead" in said[0]
    if said:
        assert f"warning: {said[0]}" in model.summary()
        with pytest.warns(ModelMismatchWarning):
            model.edges(3)


def test_as_many_patterns_as_spins_are_no_low_rank(named):
    import copy

    model = copy.deepcopy(named)
    repeats = 20
    model.patterns_ = np.repeat(named.patterns_, repeats, axis=0)
    model.strengths_ = np.repeat(named.strengths_, repeats)
    with pytest.warns(ModelMismatchWarning, match="40 patterns on 40 spins are not a low-rank"):
        model.couplings()


@pytest.mark.parametrize(
    ("n_spins", "n_patterns", "beta", "n_samples"),
    [(60, 2, 0.8, 1000), (60, 3, 1.2, 1000), (40, 2, 1.5, 400), (60, 1, 0.8, 400)],
)
def test_hopfield_teachers_raise_no_doubt(n_spins, n_patterns, beta, n_samples):
    teacher = dt.HopfieldModel.random(n_spins, n_patterns, beta=beta, random_state=2)
    X = teacher.sample(n_samples, random_state=3)
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    assert model._pair_share < LARGEST_SHARE / 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.couplings()


def test_pairs_gain_what_a_missing_pattern_explains():
    """Without one of two patterns, pairs gain much; with both nothing. Gaps change neither."""
    teacher = dt.HopfieldModel.random(40, 2, beta=0.8, random_state=0)
    X, zeta = teacher.sample(2000, random_state=1), teacher.patterns
    X[np.random.default_rng(0).random(X.shape) < 0.05] = 0
    g, means = np.array([0.8, 0.8]), np.zeros(40)
    assert pair_share(X, zeta, g, None, means) < 0.02
    assert pair_share(X, zeta[:1], g[:1], None, means) > 0.3
    assert np.isnan(pair_share(X[:30], zeta, g, None, means))
    assert np.isnan(pair_share(X, zeta[:0], g[:0], None, means))

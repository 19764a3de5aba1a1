"""Stability over halves of the samples, and the comparison of two groups by permutation."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import dualtap as dt
from dualtap import as_spins, resampling
from dualtap.baselines import NaiveMeanField, PseudoLikelihood
from dualtap.comparison import _together
from dualtap.resampling import finished, matched_patterns


def fit(X):
    return dt.HopfieldPatterns(random_state=0).fit(X)


@pytest.fixture(scope="module")
def taught():
    teacher = dt.HopfieldModel.random(100, 3, beta=2.0, random_state=0)
    X = teacher.sample(60, random_state=1)
    model = fit(X)
    return teacher, X, model, dt.stability(model, X, 6, top=None, random_state=3)


def test_partners_are_turned_to_the_sign_of_theirs():
    rng = np.random.default_rng(0)
    patterns = rng.choice([-1, 0, 1], size=(4, 40)).astype(np.int8)
    order, signs = rng.permutation(4), np.array([1, -1, -1, 1], dtype=np.int8)
    cosine, entries = matched_patterns((patterns * signs[:, None])[order], patterns)
    np.testing.assert_allclose(cosine, 1)
    np.testing.assert_array_equal(entries, patterns)
    cosine, entries = matched_patterns(np.zeros((0, 40), dtype=np.int8), patterns)
    assert not cosine.any()
    assert not entries.any()


def test_what_is_there_comes_back(taught):
    teacher, _, model, found = taught
    assert model.n_patterns_ == 3
    assert dt.metrics.n_recovered(model.patterns_, teacher.patterns) == 3
    assert (found.returned == 1).all()
    assert found.stable.mean() > 0.9
    assert found.agreement.max() <= 1
    table = pd.DataFrame(found.patterns)
    assert list(table["stable_bits"]) == found.stable.sum(axis=1).tolist()
    assert (table["bits"] == 100).all()
    assert pd.DataFrame(found.bits).shape == (100, 7)
    assert "3 of 3 patterns come back" in found.summary()


def test_what_is_not_there_does_not_come_back(taught):
    """Refits to independent random spins find nothing of it: every interval includes 0."""
    _, _, model, _ = taught
    noise = np.random.default_rng(0).choice([-1, 1], size=(60, 100))
    found = dt.stability(model, noise, 4, random_state=0)
    assert not found.returned.any()
    assert not found.stable.any()
    assert (found.edges.low * found.edges.high < 0).all()


def test_the_answer_does_not_depend_on_the_number_of_workers(taught):
    _, X, model, _ = taught
    before = model.get_params()
    found, again = (dt.stability(model, X, 2, random_state=3, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(again.agreement, found.agreement)
    np.testing.assert_array_equal(again.edges.low, found.edges.low)
    assert model.get_params() == before


def test_intervals_are_those_of_the_refits(taught, monkeypatch):
    """Couplings of known refits to m = 45 of 60 samples: J ± t √(3 × mean squared deviation)."""
    _, X, model, _ = taught
    J, shifts = model.couplings(), iter(np.repeat([0.01, -0.01], 8) / np.sqrt(3))
    sizes = []

    def known(other, i, j):
        sizes.append(other.n_samples_)
        return J[i, j] + next(shifts)

    class Refit(dt.HopfieldPatterns):
        def fit(self, X, y=None, sample_weight=None):
            self.n_features_in_, self.n_samples_ = X.n_spins, X.total_weight
            self.patterns_ = model.patterns_
            return self

    monkeypatch.setattr(resampling, "clone", lambda model: Refit())
    monkeypatch.setattr(resampling, "_couplings_of", known)
    found = dt.stability(model, X, 16, top=20)
    t = 2.1199  # of 16 degrees of freedom
    np.testing.assert_allclose(found.edges.high - found.edges.J, 0.01 * t, rtol=1e-4)
    np.testing.assert_allclose(found.edges.J - found.edges.low, 0.01 * t, rtol=1e-4)
    assert len(found.edges) == 20
    assert sizes == [45] * 16


def test_intervals_cover_the_couplings_of_teachers():
    """All couplings of a teacher share one strength: many teachers, few refits of each."""
    covered = []
    for seed in range(12):
        teacher = dt.HopfieldModel.random(150, 2, beta=2.0, random_state=seed)
        X = teacher.sample(40, random_state=seed + 100)
        model = fit(X)
        if dt.metrics.n_recovered(model.patterns_, teacher.patterns) < 2:
            continue
        edges = dt.stability(model, X, 10, top=None, random_state=seed).edges
        J = 2.0 * teacher.couplings()[edges.i, edges.j]
        covered.append(((edges.low <= J) & (edges.high >= J)).mean())
    assert len(covered) > 6
    assert np.mean(covered) > 0.8


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_model_with_couplings_has_intervals():
    """A ring: couplings of neighbours are above 0, and most intervals of the others hold 0."""
    ring = 0.5 * np.eye(10)[(np.arange(10) + 1) % 10]
    J = ring + ring.T
    states = np.array(np.meshgrid(*[[-1, 1]] * 10)).reshape(10, -1).T
    p = np.exp(0.5 * np.einsum("ai,ij,aj->a", states, J, states))
    rows = np.random.default_rng(0).choice(len(states), 400, p=p / p.sum())
    models = [
        PseudoLikelihood(0.01),
        NaiveMeanField(0.1),
        dt.HopfieldRBM(2, max_updates=30, batch_size=100, early_stopping=False, random_state=0),
    ]
    for model in models:
        model.fit(states[rows])
        found = dt.stability(model, states[rows], 8, top=None, random_state=0)
        edges = found.edges
        np.testing.assert_allclose(edges.J, model.edges().J)
        assert (edges.low < edges.J).all()
        assert found.entries.shape[1] == 10
        if not isinstance(model, dt.HopfieldRBM):
            neighbours = J[edges.i, edges.j] > 0
            assert (edges.low[neighbours] > 0).all()
            assert np.mean(edges.low[~neighbours] < 0) > 0.8
            assert found.summary().count("\n") == 1


def test_what_cannot_be_done_is_said(taught):
    _, X, model, _ = taught
    with pytest.raises(ValueError, match="needs n >= 2 refits, got 1"):
        dt.stability(model, X, 1)
    with pytest.raises(TypeError, match="needs a model with couplings, got PatternImputer"):
        dt.stability(dt.PatternImputer(), X)
    with pytest.raises(NotFittedError):
        dt.stability(dt.HopfieldRBM(), X)
    with pytest.raises(ValueError, match="X has 3 samples"):
        dt.stability(model, X[:3])
    with pytest.raises(ValueError, match="features"):
        dt.stability(model, X[:, :7])


def test_weights_are_repeated_samples(taught):
    _, X, model, _ = taught
    w = np.random.default_rng(0).integers(0, 4, len(X))
    one = dt.stability(model, X, 3, sample_weight=w, random_state=1)
    two = dt.stability(model, np.repeat(X, w, axis=0), 3, random_state=1)
    np.testing.assert_array_equal(one.agreement, two.agreement)
    np.testing.assert_array_equal(one.edges.low, two.edges.low)
    with pytest.raises(ValueError, match="X has 3 samples"):
        dt.stability(model, X[:4], sample_weight=[1, 1, 1, 0])


def test_an_interruption_goes_through():
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(finished([(interrupt, (), {})], n_jobs=1))


@pytest.fixture(scope="module")
def groups():
    """Samples of three patterns, of the same again, and of the same with the third one weaker."""
    zeta = dt.HopfieldModel.random(50, 3, beta=1.2, random_state=0).patterns
    same = dt.HopfieldModel(zeta, strengths=np.full(3, 1.2))
    weaker = dt.HopfieldModel(zeta, strengths=np.array([1.2, 1.2, 0.7]))
    return zeta, *(m.sample(250, random_state=k) for k, m in enumerate((same, same, weaker)))


def test_groups_of_one_law_do_not_differ(groups):
    _, X, Y, _ = groups
    found = dt.compare(fit(X), fit(Y), X, Y, 39, random_state=0)
    assert found.p_couplings > 0.05
    assert found.p_any > 0.02
    assert (found.p_patterns > 0.05).all()
    assert (found.cosines_a > 0.9).all()


def test_a_weaker_pattern_is_found_and_named(groups):
    zeta, X, _, Y = groups
    found = dt.compare(fit(X), fit(Y), X, Y, 39, random_state=0)
    assert found.p_any == found.p_couplings == 1 / 40
    (k,) = np.flatnonzero(found.p_patterns <= 0.05)
    assert abs(found.model.patterns_[k] @ zeta[2]) == 50
    assert found.strengths_b[k] < 0.9 < 1.1 < found.strengths_a[k]
    assert f"(p < 0.05, adjusted): {k}" in found.summary()
    assert list(pd.DataFrame(found.patterns)["pattern"]) == [0, 1, 2]


def test_rows_that_stand_for_samples_are_dealt_as_these(groups):
    """A group and its histogram have the same strengths; a difference is found in either."""
    _, X, _, Y = groups
    w = np.random.default_rng(0).integers(0, 4, len(X))
    a, b = (dt.HopfieldPatterns(3, random_state=0).fit(group) for group in (X, Y))
    found = dt.compare(a, b, X, Y, 19, sample_weight_a=w, random_state=0)
    unrolled = dt.compare(a, b, np.repeat(X, w, axis=0), Y, 19, random_state=0)
    np.testing.assert_array_equal(unrolled.model.patterns_, found.model.patterns_)
    np.testing.assert_allclose(unrolled.strengths_a, found.strengths_a, atol=1e-3)
    assert found.p_couplings == unrolled.p_couplings == 1 / 20
    with pytest.raises(ValueError, match="one weight for each of the 250 samples is needed"):
        dt.compare(a, b, X, Y, 19, sample_weight_b=[1, 2])


def test_other_means_are_no_other_couplings(groups):
    zeta, *_ = groups
    fields = np.random.default_rng(0).normal(0, 0.4, 50)
    a = dt.HopfieldModel(zeta, strengths=np.full(3, 0.8))
    b = dt.HopfieldModel(zeta, strengths=np.full(3, 0.8), fields=fields)
    X, Y = a.sample(300, random_state=1), b.sample(300, random_state=2)
    model = dt.HopfieldPatterns(3, random_state=0).fit(X)
    found = dt.compare(model, model, X, Y, 39, random_state=0)
    assert found.p_any == 1 / 40
    assert found.p_couplings > 0.05


def test_groups_of_one_law_differ_at_the_level_of_the_test():
    """The p-values are exact: at most 10 % of 80 pairs are at 0.1 or below, within three errors."""
    found = []
    for seed in range(80):
        teacher = dt.HopfieldModel.random(24, 2, beta=1.3, random_state=seed)
        X, Y = (teacher.sample(40, random_state=k) for k in (seed + 1000, seed + 2000))
        model = dt.HopfieldPatterns(2, random_state=0).fit(X)
        result = dt.compare(model, model, X, Y, 9, random_state=seed)
        found.append([result.p_any, result.p_couplings, result.p_patterns.min()])
    shares = (np.array(found) <= 0.1).mean(axis=0)
    assert (shares <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 80)).all()
    assert (np.mean(found, axis=0) > 0.45).all()  # 0.55 if the ten values are equally frequent


def test_the_order_of_samples_does_not_say_who_is_in_which_group():
    """Sorted groups: without shuffling, the common fit would see one group first."""
    a, b = (as_spins(np.full((30, 4), sign)) for sign in (1, -1))
    both = _together(a, b, np.random.default_rng(0)).values[:, 0]
    assert both.sum() == 0
    assert (np.diff(both) != 0).sum() > 15
    b = b.weighted(np.full(30, 2.0))
    weights = _together(a, b, np.random.default_rng(0)).weights
    np.testing.assert_array_equal(weights, np.where(both > 0, 1, 2))


def test_patterns_of_different_means_are_pointed_at():
    """Two groups of one pattern, and strong fields in one of them."""
    zeta = dt.HopfieldModel.random(40, 1, beta=1.2, random_state=0).patterns
    fields = np.random.default_rng(1).normal(0, 1, 40)
    a = dt.HopfieldModel(zeta, strengths=np.ones(1)).sample(300, random_state=1)
    b = dt.HopfieldModel(zeta, strengths=np.ones(1), fields=fields).sample(300, random_state=2)
    found = dt.compare(fit(a), fit(b), a, b, 19, random_state=0)
    assert "patterns are found in neither group alone" in found.summary()
    same = dt.compare(fit(a), fit(a), a, a, 19, random_state=0)
    assert same.doubt == ""


def test_comparisons_do_not_depend_on_workers_and_refuse_what_does_not_fit(groups):
    _, X, Y, _ = groups
    a, b = fit(X), fit(Y)
    one, two = (dt.compare(a, b, X, Y, 6, random_state=5, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.p_patterns, two.p_patterns)
    assert one.p_couplings == two.p_couplings
    with pytest.raises(ValueError, match="the models have 50 and 20 spins"):
        dt.compare(a, fit(Y[:, :20]), X, Y[:, :20])
    with pytest.raises(ValueError, match="n_permutations must be at least 1, got 0"):
        dt.compare(a, b, X, Y, 0)
    with pytest.raises(ValueError, match="each group needs at least 8 samples"):
        dt.compare(a, b, X[:3], Y)
    with pytest.raises(TypeError, match="compare needs HopfieldPatterns or DualTAP"):
        dt.compare(a, None, X, Y)
    noise = np.random.default_rng(1).choice([-1, 1], size=(60, 50))
    with pytest.raises(ValueError, match="no pattern was found"):
        dt.compare(a, b, noise[:30], noise[30:])

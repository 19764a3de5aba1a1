"""`DualTAP`, the published algorithm: recovery, rounds, history."""

from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dualtap import DualTAP, metrics
from teachers import data, smallest_overlap

SEEDS = [0, 1, 2]


@cache
def paper_fit(n_patterns, n_samples, seed, n_steps=None):
    """The published algorithm at N = 1000, β = 2, with P given."""
    _, X = data(1000, n_patterns, 2.0, n_samples, seed)
    model = DualTAP(n_patterns, beta=2.0, n_steps=n_steps, random_state=seed)
    return model.fit(X)


# --- The published algorithm --------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n_patterns", "n_samples"), [(20, 200), (10, 100)])
def test_paper_finds_every_pattern_in_as_many_rounds(n_patterns, n_samples, seed):
    teacher, _ = data(1000, n_patterns, 2.0, n_samples, seed)
    model = paper_fit(n_patterns, n_samples, seed)
    assert model.history_.magnetizations.shape == (n_patterns, 1000)
    assert smallest_overlap(model, teacher) > 0.97
    np.testing.assert_allclose(model.history_.gammas, n_samples / n_patterns)
    assert model.beta_ == 2.0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n_patterns", "n_samples"), [(20, 200), (10, 100)])
def test_kink_stops_at_the_number_of_patterns(n_patterns, n_samples, seed):
    teacher, X = data(1000, n_patterns, 2.0, n_samples, seed)
    model = DualTAP(beta=2.0, random_state=seed).fit(X)
    assert model.n_patterns_ == n_patterns
    assert len(model.history_.gains) == n_patterns + 1  # the round that found nothing
    assert smallest_overlap(model, teacher) > 0.97


def test_the_defaults_are_the_published_algorithm():
    model = DualTAP(7, 1.5)
    assert (model.start, model.damping, model.n_students) == ("random", None, None)


def test_beta_is_fitted_if_not_given():
    teacher, X = data(1000, 5, 1.5, 200)
    model = DualTAP(5, random_state=0).fit(X)
    assert smallest_overlap(model, teacher) > 0.97
    assert model.beta_ == pytest.approx(1.5, rel=0.05)
    assert model.beta is None  # parameters are left as they were


def test_couplings_from_many_samples():
    """M = 1000. The late patterns keep a few wrong bits, in some teachers more than in others."""
    signs, soft = [], []
    for seed in range(4):
        teacher, _ = data(1000, 20, 2.0, 1000, seed)
        model = paper_fit(20, 1000, seed)
        signs.append(metrics.coupling_error(model.patterns_, teacher.patterns).relative)
        soft.append(metrics.coupling_error(model.magnetizations_, teacher.patterns).relative)
    assert max(signs) < 0.06
    assert max(soft) < 0.06
    assert np.mean(soft) < 0.04


def test_likelihood_per_sample_hardly_depends_on_the_number_of_samples():
    few = paper_fit(20, 100, 0).history_.likelihood / 100
    many = paper_fit(20, 1000, 0).history_.likelihood / 1000
    assert few.shape == many.shape == (20,)
    np.testing.assert_allclose(few, many, rtol=0.1)


def test_rounds_beyond_the_last_pattern_can_be_looked_at():
    teacher, X = data(1000, 20, 2.0, 200)
    model = paper_fit(20, 200, 0, n_steps=25)
    history = model.history_
    assert model.n_patterns_ == len(model.patterns_) == 20
    for field in ("magnetizations", "scores", "likelihood", "gains", "gammas"):
        assert len(getattr(history, field)) == 25
    assert len(history.n_converged) == len(history.n_iter) == 25
    np.testing.assert_array_equal(history.magnetizations[:20], model.magnetizations_)
    best = history.overlaps(teacher).max(axis=1)
    assert best[:20].min() > 0.97
    assert best[20:].max() < 0.7  # noise
    # Without P the same rounds are made, and the kink still says where the patterns end.
    blind = DualTAP(beta=2.0, n_steps=23, random_state=0).fit(X)
    assert len(blind.history_.gains) == 23
    assert blind.n_patterns_ == 20


def test_fewer_rounds_than_patterns():
    _, X = data(300, 5, 2.0, 100)
    model = DualTAP(5, 2.0, n_steps=2, random_state=0).fit(X)
    assert model.n_patterns_ == len(model.patterns_) == 2


def test_a_variant_with_a_spectral_start_and_safe_damping():
    teacher, X = data(1000, 5, 2.0, 200)
    model = DualTAP(5, 2.0, start="spectral", damping="auto", random_state=0).fit(X)
    assert smallest_overlap(model, teacher) > 0.97


# --- History ------------------------------------------------------------------------------------


def test_history_measures_itself_against_the_teacher():
    teacher, _ = data(1000, 20, 2.0, 200)
    history = paper_fit(20, 200, 0, n_steps=25).history_
    m = history.magnetizations.astype(np.float64)

    found = history.overlaps(teacher)
    expected = np.abs(np.where(m < 0, -1, 1) @ teacher.patterns.T.astype(float)) / 1000
    assert found.shape == (25, 20)
    np.testing.assert_allclose(found, expected, atol=1e-12)

    errors = history.coupling_errors(teacher)
    assert errors.shape == (25,)
    off = ~np.eye(1000, dtype=bool)
    J = teacher.couplings()
    for k in (1, 10, 20, 25):
        difference = (m[:k].T @ m[:k] / 1000 - J)[off]
        relative = np.linalg.norm(difference) / np.linalg.norm(J[off])
        assert errors[k - 1] == pytest.approx(relative, rel=1e-6)
    assert np.all(np.diff(errors[:20]) < 0)  # every pattern helps
    assert errors[19] < 0.1


def test_history_scores_and_likelihood_are_those_of_the_data():
    _, X = data(1000, 20, 2.0, 200)
    history = paper_fit(20, 200, 0, n_steps=25).history_
    m = history.magnetizations.astype(np.float64)
    np.testing.assert_allclose(history.scores, np.square(X @ m.T).sum(axis=0), rtol=1e-4)
    for k in (1, 7, 25):
        expected = metrics.simplified_likelihood(X, m[:k])
        assert history.likelihood[k - 1] == pytest.approx(expected, rel=1e-4)
    # Gains are what earlier rounds left of the increments.
    assert history.gains[0] == pytest.approx(history.scores[0] / 2000, rel=1e-4)
    assert np.all(history.gains <= history.scores / 2000 * (1 + 1e-4))
    assert (history.n_converged[:20] > 0).all()


def test_no_kink_is_said():
    _, X = data(1000, 20, 2.0, 200)
    with pytest.warns(ConvergenceWarning, match="no kink within 5 rounds") as caught:
        model = DualTAP(beta=2.0, n_students=5, random_state=0).fit(X)
    assert model.n_patterns_ == 5
    assert "no kink" in model.reason_
    assert caught[0].filename == __file__  # points at the caller's line

"""Every example runs as a reader would run it, and what it compares by is exact."""

import importlib
import itertools
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.neural_network import BernoulliRBM

from dualtap import HopfieldPatterns
from dualtap.datasets import load_digits

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("plot_*.py"))
sys.path.append(str(EXAMPLES))
comparison = importlib.import_module("comparison")
ALL_STATES = np.array(list(itertools.product([-1, 1], repeat=5)))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example_draws_a_figure(script, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    plt.close("all")
    runpy.run_path(str(script))  # a warning is an error, as in every test
    (figure,) = map(plt.figure, plt.get_fignums())
    assert figure.axes
    figure.savefig("figure.png")
    plt.close("all")
    out, err = capfd.readouterr()
    assert out
    assert err == ""
    assert Path("figure.png").stat().st_size > 10_000


def test_there_are_five_of_them():
    names = {path.stem.removeprefix("plot_") for path in SCRIPTS}
    assert names == {"questionnaire", "digits", "mnist", "cells", "physics"}


def _by_enumeration(log_weight, X):
    """Return the mean of log P(s_i | rest), from weights of both states of every spin."""
    terms = []
    for s in X:
        for i in range(len(s)):
            flipped = s.copy()
            flipped[i] *= -1
            terms.append(-np.logaddexp(0, log_weight(flipped) - log_weight(s)))
    return np.mean(terms)


def test_the_score_of_a_mixture_is_its_conditional_likelihood():
    rng = np.random.default_rng(0)
    mixture = comparison.Mixture(np.array([0.2, 0.5, 0.3]), rng.uniform(0.05, 0.95, (3, 5)))

    def log_weight(s):
        return np.log(mixture.weights @ np.where(s > 0, mixture.up, 1 - mixture.up).prod(axis=1))

    assert mixture.score(ALL_STATES) == pytest.approx(_by_enumeration(log_weight, ALL_STATES))
    total = np.exp([log_weight(s) for s in ALL_STATES]).sum()
    assert total == pytest.approx(1)


def test_a_missing_entry_is_summed_out_of_a_mixture():
    mixture = comparison.Mixture(np.array([0.4, 0.6]), np.array([[0.9, 0.2, 0.7], [0.1, 0.6, 0.3]]))
    first_two = comparison.Mixture(mixture.weights, mixture.up[:, :2])
    X = np.array([[1, -1, np.nan], [-1, 1, np.nan]])
    assert mixture.score(X) == pytest.approx(first_two.score(X[:, :2]))


def test_the_score_of_an_rbm_is_its_conditional_likelihood():
    rng = np.random.default_rng(0)
    W, b, c = rng.normal(size=(3, 5)), rng.normal(size=5), rng.normal(size=3)
    rbm = SimpleNamespace(components_=W, intercept_visible_=b, intercept_hidden_=c)

    def log_weight(s):  # all hidden states summed, one by one
        v = (s + 1) / 2
        hidden = itertools.product([0, 1], repeat=3)
        return np.logaddexp.reduce([b @ v + h @ (c + W @ v) for h in map(np.array, hidden)])

    assert comparison.rbm_score(rbm, ALL_STATES) == pytest.approx(
        _by_enumeration(log_weight, ALL_STATES)
    )


def test_an_rbm_of_one_rate_is_scikit_learns():
    X = np.where(np.random.default_rng(0).random((60, 5)) < 0.7, 1, -1)
    ours = comparison.fit_rbm(X, 2)
    theirs = BernoulliRBM(2, learning_rate=0.1, n_iter=100, batch_size=20, random_state=0)
    assert np.array_equal(ours.components_, theirs.fit((X + 1) / 2).components_)
    assert comparison.rbm_score(comparison.fit_rbm(X, 2, (0.01, 0.1)), X) > -np.log(2)


def test_em_finds_the_groups_that_were_drawn():
    rng = np.random.default_rng(0)
    up = np.array([[0.9] * 6 + [0.1] * 6, [0.1] * 6 + [0.9] * 6])
    y = rng.integers(0, 2, size=400)
    X = np.where(rng.random((400, 12)) < up[y], 1.0, -1.0)
    X[rng.random(X.shape) < 0.1] = np.nan
    mixture = comparison.fit_mixture(X, 2)
    order = np.argsort(-mixture.up[:, 0])
    assert np.abs(mixture.up[order] - up).max() < 0.1
    assert mixture.score(X) > comparison.independent_spins(X).score(X) + 0.1


def test_independent_spins_score_their_entropy():
    X = np.array([[1, 1], [1, -1], [1, 1], [1, -1]])
    # Means are smoothed by one flip of a coin: 4.5 of 5, and 2.5 of 5.
    expected = (np.log(0.9) + np.log(0.5)) / 2
    assert comparison.independent_spins(X).score(X) == pytest.approx(expected)


def test_a_sample_is_put_together_from_what_the_model_foretells():
    X = load_digits().X
    model = HopfieldPatterns(random_state=0).fit(X[:300])
    assert model.fields_.any()
    new = X[300:400]
    steps = np.stack([comparison.put_together(model, X[:300], s, [0, 2, 8]) for s in new], axis=1)
    likelihood = np.log((1 + new * steps) / 2).mean(axis=(1, 2))
    assert (np.diff(likelihood) > 0.02).all()  # the more patterns, the better a pixel is foretold
    whole = comparison.put_together(model, X[:300], new[0], [model.n_patterns_])
    assert np.log((1 + new[0] * whole) / 2).mean() == pytest.approx(model.score(new[:1]))
    # Before any pattern is added, it is the mean of all samples.
    assert np.corrcoef(steps[0, 0], X[:300].mean(axis=0))[0, 1] > 0.95


def test_groups_are_drawn_beside_the_labels_they_hold():
    ax = Figure().subplots()
    labels = np.array([0, 0, 1, 1, 2, 2])
    comparison.draw_groups(ax, labels, [4, 4, 7, 7, 1, 1], "abc", "three")
    assert np.array_equal(ax.images[0].get_array(), np.eye(3))
    comparison.draw_groups(ax, labels, [0, 1, 1, 1, 2, 3], "abc", "more groups than labels")
    assert np.array_equal(ax.images[1].get_array().argmax(axis=1), [0, 1, 2])

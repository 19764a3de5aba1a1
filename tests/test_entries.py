"""The law by which entries are predicted: of patterns alone, or of pairs drawn towards them."""

import numpy as np
import pytest
from scipy.optimize import check_grad

import dualtap as dt
from dualtap.fitted.entries import (
    CouplingConditionals,
    LossNearPatterns,
    pairs_beside,
    patterns_law,
)
from dualtap.gaps import LinearConditionals, entry_probabilities

N = 16


def chains(n_rows, seed):
    """Samples of a chain in which neighbours agree in three of four cases."""
    rng = np.random.default_rng(seed)
    turns = rng.choice([1, 1, 1, -1], (n_rows, N))
    turns[:, 0] = rng.choice([1, -1], n_rows)
    return np.cumprod(turns, axis=1).astype(np.int8)


@pytest.fixture(scope="module")
def model():
    return dt.HopfieldPatterns(random_state=0).fit(chains(600, 0))


@pytest.fixture(scope="module")
def teacher():
    return dt.HopfieldModel.random(40, 2, strengths=[1.4, 1.1], random_state=0)


@pytest.fixture(scope="module")
def taught(teacher):
    return dt.HopfieldPatterns(random_state=0).fit(teacher.sample(600, random_state=1))


def holes(X, share=0.2):
    hidden = np.random.default_rng(5).random(X.shape) < share
    return np.where(hidden, np.nan, X), hidden


def loss(p, X, where):
    return -np.log(np.where(X > 0, p, 1 - p))[where].mean()


def test_pairs_predict_what_patterns_do_not_know(model):
    X = chains(1000, 1)
    Y, hidden = holes(X)
    S = np.nan_to_num(Y).astype(np.float32)
    truth = np.zeros((N, N), np.float32)
    truth[np.arange(N - 1), np.arange(1, N)] = np.arctanh(0.5)
    by_truth = CouplingConditionals(truth + truth.T, np.zeros(N, np.float32))
    best = loss(entry_probabilities(S, by_truth), X, hidden)
    patterns = loss(entry_probabilities(S, patterns_law(model)), X, hidden)
    found = loss(model.predict_entries(Y, random_state=0), X, hidden)
    assert found < best + 0.02
    assert found < patterns - 0.005


def test_patterns_stand_alone_where_they_are_the_model(taught):
    assert taught._beside is None


def test_patterns_stand_alone_under_gaps(teacher):
    """Couplings fitted with gaps at zero are too large; hidden entries tell."""
    X, _ = holes(teacher.sample(600, random_state=2), share=0.5)
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    assert model._beside is None


def test_independent_spins_have_no_pairs():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((400, 20)) < np.linspace(0.1, 0.9, 20), 1, -1)
    assert dt.HopfieldPatterns(random_state=0).fit(X)._beside is None


def test_few_rows_or_many_spins_have_none(model, taught):
    law = patterns_law(model)
    assert pairs_beside(chains(19, 0), law, dt.HopfieldPatterns()) is None
    wide = np.ones((100, 1025), np.int8)
    assert pairs_beside(wide, law, dt.HopfieldPatterns()) is None


def test_one_gap_is_exact(model):
    """Of a row with one gap the probability is that of the gap given the others."""
    X = chains(50, 2)
    Y = X.astype(float)
    gaps = np.random.default_rng(0).integers(N, size=50)
    Y[np.arange(50), gaps] = np.nan
    found = model.predict_entries(Y)[np.arange(50), gaps]
    np.testing.assert_allclose(found, model.predict_entries(X)[np.arange(50), gaps], atol=1e-6)


def test_rows_without_information_are_undecided(model):
    X = chains(2, 4).astype(float)
    X[0] = np.nan
    found = [model.predict_entries(X, random_state=seed)[0] for seed in range(8)]
    np.testing.assert_allclose(np.mean(found, axis=0), 0.5, atol=0.1)
    np.testing.assert_allclose(found, 0.5, atol=0.25)


def test_weights_are_repeated_rows():
    X = chains(300, 3)
    w = np.random.default_rng(0).integers(1, 4, 300)
    Y, _ = holes(chains(20, 4))
    one, other = (dt.HopfieldPatterns(random_state=0) for _ in range(2))
    one.fit(X, sample_weight=w)
    other.fit(np.repeat(X, w, axis=0))
    assert one._beside is not None
    found = [model.predict_entries(Y, random_state=0) for model in (one, other)]
    np.testing.assert_allclose(*found, atol=1e-6)


def test_pairs_come_back_from_a_file(model, taught, tmp_path):
    Y, _ = holes(chains(20, 4))
    assert model._beside is not None
    dt.save(model, tmp_path / "pairs.npz")
    again = dt.load(tmp_path / "pairs.npz")
    np.testing.assert_array_equal(
        again.predict_entries(Y, random_state=0), model.predict_entries(Y, random_state=0)
    )
    dt.save(taught, tmp_path / "patterns.npz")
    assert dt.load(tmp_path / "patterns.npz")._beside is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("beside_couplings", np.zeros((3, 3), np.float32)),
        ("beside_couplings", np.full((N, N), np.nan, np.float32)),
        ("beside_fields", np.zeros(N + 1, np.float32)),
        ("beside_fields", None),
    ],
)
def test_damaged_pairs_are_refused(model, tmp_path, name, value):
    dt.save(model, tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        arrays = dict(file)
    arrays.pop(name)
    if value is not None:
        arrays[name] = value
    np.savez(tmp_path / "damaged.npz", **arrays)
    with pytest.raises(ValueError, match=r"damaged|incomplete"):
        dt.load(tmp_path / "damaged.npz")


def test_laws_of_the_same_couplings_are_the_same():
    rng = np.random.default_rng(0)
    V = rng.choice(np.array([-1, 0, 1], np.float32), (3, N))
    c, b = np.array([0.2, -0.1, 0.15], np.float32), rng.normal(0, 0.3, N).astype(np.float32)
    linear = LinearConditionals(V, c, b)
    J = (V.T * c) @ V
    np.fill_diagonal(J, 0)
    pairs = CouplingConditionals(J, b)
    S = rng.choice(np.array([-1, 0, 1], np.float32), (30, N))
    found = [entry_probabilities(S, law, n_draws=16) for law in (linear, pairs)]
    np.testing.assert_allclose(*found, atol=1e-5)


def test_gradient_of_the_loss():
    rng = np.random.default_rng(0)
    S = rng.choice([-1.0, 0.0, 1.0], (20, 4))
    near = rng.normal(size=(5, 4))
    near[:4] += near[:4].T.copy()
    np.fill_diagonal(near, 0)
    loss = LossNearPatterns(S, near, 0.3)
    i, j = np.triu_indices(4, 1)

    def weights(w):
        W = np.zeros((5, 4))
        W[i, j] = W[j, i] = w[:6]
        W[4] = w[6:]
        return W

    def gradient(w):
        G = loss(weights(w).ravel())[1].reshape(5, 4)
        return np.concatenate([2 * G[i, j], G[4]])

    w = rng.normal(size=10)
    assert check_grad(lambda w: loss(weights(w).ravel())[0], gradient, w) < 1e-5

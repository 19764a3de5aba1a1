"""Entries given the others of their row: against enumeration, calibration, encodings."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualtap as dt
from dualtap.gaps import LinearConditionals, entry_probabilities
from dualtap.rbm.effective import HiddenConditionals
from dualtap.rbm.model import RBM
from dualtap.rbm.priors import BinaryPrior
from dualtap.spins import PackedSpins, as_spins, builder

N = 7
STATES = np.array(list(itertools.product([-1, 1], repeat=N)), dtype=float)
RNG = np.random.default_rng(0)


def linear():
    """Attractive, repulsive and diluted patterns in fields."""
    V = RNG.integers(-1, 2, size=(4, N)).astype(np.float32)
    c = np.array([0.4, -0.3, 0.25, 0.1], np.float32)
    b = RNG.normal(0, 0.4, N).astype(np.float32)
    log_p = (STATES @ V.T) ** 2 @ c / 2 + STATES @ b
    return LinearConditionals(V, c, b), log_p


def binary():
    W = RNG.normal(0, 0.7, (3, N)).astype(np.float32)
    b = RNG.normal(0, 0.4, N).astype(np.float32)
    model = RBM(W, b, BinaryPrior())
    return HiddenConditionals(model), -model.free_energy(STATES.astype(np.float32)).astype(float)


LAWS = {"linear": linear(), "binary": binary()}


def enumerated(row, log_p):
    """P(s_i = 1 | observed others of the row), by all states."""
    result = np.empty(N)
    p = np.exp(log_p - log_p.max())
    for i in range(N):
        others = [k for k in range(N) if k != i and row[k]]
        weight = p * (STATES[:, others] == row[others]).all(axis=1)
        result[i] = weight[STATES[:, i] == 1].sum() / weight.sum()
    return result


def rows(n_gaps, n_rows=12, seed=1):
    rng = np.random.default_rng(seed)
    S = rng.choice(np.array([-1, 1], np.float32), size=(n_rows, N))
    for s in S:
        s[rng.permutation(N)[:n_gaps]] = 0
    return S


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n_gaps", [0, 1, 4, N])
def test_rows_with_few_states_are_exact(law, n_gaps):
    conditionals, log_p = LAWS[law]
    S = rows(n_gaps)
    found = entry_probabilities(S, conditionals, n_draws=max(2**n_gaps, 1))
    expected = [enumerated(row, log_p) for row in S]
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n_gaps", [5, N])
def test_draws_are_right_within_their_error(law, n_gaps):
    """Fewer draws than there are states, each time with another seed."""
    conditionals, log_p = LAWS[law]
    S = rows(n_gaps, n_rows=4)
    expected = np.array([enumerated(row, log_p) for row in S])
    n_draws, n_seeds = 2**n_gaps - 1, 2000 // 2**n_gaps
    found = [entry_probabilities(S, conditionals, n_draws, seed) for seed in range(n_seeds)]
    error = np.std(found, axis=0).max()
    # Odds and weights are ratios of means, which have a bias of 1/n_draws.
    allowed = 4 * error / np.sqrt(n_seeds) + 0.3 / n_draws
    assert np.abs(np.mean(found, axis=0) - expected).max() < allowed


def test_more_draws_have_smaller_errors():
    conditionals, log_p = LAWS["linear"]
    S = rows(N, n_rows=2)
    expected = np.array([enumerated(row, log_p) for row in S])

    def error(n_draws):
        found = [entry_probabilities(S, conditionals, n_draws, seed) for seed in range(20)]
        return np.sqrt(np.mean(np.square(np.array(found) - expected)))

    assert error(120) < 0.06
    assert error(8) > 2 * error(120)


def test_modes_that_no_single_spin_connects_have_their_weights():
    """One of ten spins is up: a chain at the temperature of the law would keep the first."""
    n = 10
    b = np.full(n, -(n - 2) * 3, np.float32) + np.linspace(0, 1, n, dtype=np.float32)
    law = LinearConditionals(np.ones((1, n), np.float32), np.array([-3], np.float32), b)
    found = entry_probabilities(np.zeros((1, n), np.float32), law, n_draws=200)[0]
    exact = entry_probabilities(np.zeros((1, n), np.float32), law, n_draws=2**n)[0]
    odds = np.exp(2 * np.linspace(0, 1, n))
    np.testing.assert_allclose(exact, odds / odds.sum(), atol=0.01)
    np.testing.assert_allclose(found, exact, atol=0.06)


def test_rows_of_any_number_of_gaps_do_not_depend_on_each_other():
    conditionals, _ = LAWS["linear"]
    S = np.concatenate([rows(n, 3, seed=n) for n in (5, 3, 0, 1, 7, 2)])
    together = entry_probabilities(S, conditionals, n_draws=10)
    alone = [entry_probabilities(row[None], conditionals, n_draws=10)[0] for row in S]
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_a_row_without_information_is_undecided():
    """Far below the transition a chain never leaves the pattern it falls into."""
    V = RNG.choice(np.array([-1, 1], np.float32), size=(3, 60))
    law = LinearConditionals(V, np.full(3, 4 / 60, np.float32), np.zeros(60, np.float32))
    found = entry_probabilities(np.zeros((1, 60), np.float32), law, n_draws=500)
    np.testing.assert_allclose(found, 0.5, atol=0.25)


def test_draws_must_be_some():
    with pytest.raises(ValueError, match="n_draws must be at least 1, got 0"):
        entry_probabilities(rows(2), LAWS["linear"][0], n_draws=0)


@pytest.fixture(scope="module")
def teacher():
    rng = np.random.default_rng(4)
    return dt.HopfieldModel.random(
        60, 4, strengths=[1.5, 1.2, 1.0, 0.8], fields=rng.normal(0, 0.2, 60), random_state=0
    )


@pytest.fixture(scope="module")
def model(teacher):
    return dt.HopfieldPatterns(random_state=0).fit(teacher.sample(1500, random_state=1))


@pytest.fixture(scope="module")
def holes(teacher):
    """Samples of the teacher, and the same with a fifth of their entries hidden."""
    X = teacher.sample(1000, random_state=2)
    hidden = np.random.default_rng(5).random(X.shape) < 0.2
    return X, np.where(hidden, np.nan, X), hidden


def calibration_error(p, up):
    bins = np.minimum((10 * p).astype(int), 9)
    counts = np.bincount(bins, minlength=10)
    gap = np.abs(np.bincount(bins, p, 10) - np.bincount(bins, up, 10))
    return gap.sum() / counts.sum()


def test_probabilities_of_gaps_are_calibrated(model, holes):
    X, Y, hidden = holes
    p = model.predict_entries(Y, random_state=0)
    assert calibration_error(p[hidden], X[hidden] > 0) < 0.02
    assert calibration_error(p[~hidden], X[~hidden] > 0) < 0.02
    right = (p[hidden] > 0.5) == (X[hidden] > 0)
    means = (model.means_ > 0)[None].repeat(len(X), 0)[hidden] == (X[hidden] > 0)
    assert right.mean() > means.mean() + 0.15


def test_complete_samples_have_the_score_of_their_entries(model, holes):
    X = holes[0]
    p = model.predict_entries(X)
    log_p = np.log(np.where(X > 0, p, 1 - p))
    assert log_p.mean() == pytest.approx(model.score(X), abs=1e-6)
    np.testing.assert_allclose(log_p.mean(axis=1), model.score_samples(X), atol=1e-5)


def test_a_seed_decides_whatever_the_threads_and_the_storage(model, holes, monkeypatch):
    Y = holes[1][:100]
    p = model.predict_entries(Y, random_state=3)
    np.testing.assert_array_equal(model.predict_entries(Y, random_state=3), p)
    assert (model.predict_entries(Y, random_state=4) != p).any()
    monkeypatch.setattr(builder, "DENSE", 0)
    packed = as_spins(Y)
    assert isinstance(packed, PackedSpins)
    np.testing.assert_array_equal(model.predict_entries(packed, random_state=3), p)
    np.testing.assert_array_equal(
        model.impute(packed, random_state=3), model.impute(Y, random_state=3)
    )


@pytest.mark.parametrize("hidden", ["gaussian", "binary"])
def test_machines_fill_gaps_too(teacher, holes, hidden):
    options = {"max_updates": 400, "early_stopping": False, "random_state": 0}
    rbm = dt.HopfieldRBM.paper(6, hidden=hidden, **options)
    rbm.fit(teacher.sample(1000, random_state=1))
    X, Y, gaps = (a[:200] for a in holes)
    p = rbm.predict_entries(Y, random_state=0)
    assert ((p[gaps] > 0.5) == (X[gaps] > 0)).mean() > 0.65
    whole = rbm.predict_entries(X)
    log_p = np.log(np.where(X > 0, whole, 1 - whole))
    assert log_p.mean() == pytest.approx(rbm.score(X), abs=1e-5)
    np.testing.assert_allclose(rbm.score_samples(X), log_p.mean(axis=1), atol=1e-5)
    filled = rbm.impute(Y, random_state=0)
    np.testing.assert_array_equal(filled[~gaps], X[~gaps])
    np.testing.assert_array_equal(filled[gaps] > 0, p[gaps] >= 0.5)


# --- Encodings ----------------------------------------------------------------------------------

KINDS = ["-1/+1", "0/1", "bool"]


@pytest.fixture(scope="module")
def small():
    X = dt.HopfieldModel.random(6, 1, beta=2.0, random_state=0).sample(60, random_state=1)
    return {
        "-1/+1": dt.HopfieldPatterns(1, random_state=0).fit(X),
        "0/1": dt.HopfieldPatterns(1, random_state=0).fit((X + 1) // 2),
        "bool": dt.HopfieldPatterns(1, random_state=0).fit(X > 0),
    }


def in_container(S, kind, container):
    """S is ±1 and 0 for a gap; return it as a user may have it."""
    low = -1 if kind == "-1/+1" else 0
    values = np.where(S == 0, np.nan, np.where(S < 0, low, S))
    objects = np.where(S == 0, None, (S > 0) if kind == "bool" else np.where(S < 0, low, 1))
    names = [f"v{k}" for k in range(S.shape[1])]
    if container == "array":
        return (S > 0) if kind == "bool" and (S != 0).all() else values
    if container == "objects":
        return objects
    nullable = "boolean" if kind == "bool" else "Int8"
    if container == "pandas":
        return pd.DataFrame(objects, columns=names).astype(nullable)
    if container == "pandas objects":
        return pd.DataFrame(objects, columns=names, dtype=object)
    if container == "pandas floats":
        return pd.DataFrame(values, columns=names, index=np.arange(len(S)) + 7)
    columns = {name: column.tolist() for name, column in zip(names, objects.T, strict=True)}
    return pl.DataFrame(
        columns, schema=dict.fromkeys(names, pl.Boolean if nullable == "boolean" else pl.Int8)
    )


matrices = st.lists(
    st.lists(st.sampled_from([-1, 0, 1, 1]), min_size=6, max_size=6), min_size=1, max_size=4
).filter(lambda S: any(map(any, S)))


@settings(max_examples=80)
@given(
    matrices,
    st.sampled_from(KINDS),
    st.sampled_from(["array", "objects", "pandas", "pandas objects", "pandas floats", "polars"]),
)
def test_what_comes_back_is_what_came_in(small, S, kind, container):
    S = np.array(S)
    X = in_container(S, kind, container)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dualtap._validation._check_columns", lambda *_, **__: None)
        filled = small[kind].impute(X, random_state=0)
    if hasattr(X, "columns"):
        assert type(filled) is type(X)
        assert list(filled.columns) == list(X.columns)
    if container == "polars":
        assert filled.schema == X.schema
    elif hasattr(X, "columns"):
        assert filled.dtypes.tolist() == X.dtypes.tolist()
        assert filled.index.tolist() == X.index.tolist()
    elif container == "array":
        assert filled.dtype == X.dtype
    back = np.asarray(filled.to_numpy() if hasattr(filled, "to_numpy") else filled)
    low = -1 if kind == "-1/+1" else 0
    assert set(np.unique(back.astype(float))) <= {low, 1}
    np.testing.assert_array_equal(back[S != 0].astype(float) > 0, S[S != 0] > 0)
    if kind == "bool" and container in ("pandas", "pandas objects", "polars"):
        assert all(isinstance(value, (bool, np.bool_)) for value in back.ravel().tolist())


def test_ones_alone_are_written_as_in_training(small):
    X = np.array([[1, 1, 1, np.nan, np.nan, 1]])
    for kind, low in (("-1/+1", -1), ("0/1", 0), ("bool", 0)):
        assert set(small[kind].impute(X).ravel()) <= {low, 1.0}
    assert (small["0/1"].impute(X) >= 0).all()


def test_spins_and_lists_come_back_as_bytes(small):
    for X in ([[1, 0, None, 1, 0, 1]], as_spins([[1, 0, None, 1, 0, 1]])):
        filled = small["0/1"].impute(X)
        assert filled.dtype == np.int8
        assert set(filled.ravel()) == {0, 1}


# --- Overlaps -----------------------------------------------------------------------------------


def test_overlaps_and_back(teacher, model):
    X = teacher.sample(300, random_state=8)
    back = model.inverse_transform(model.transform(X))
    assert back.dtype == np.int8
    assert set(np.unique(back)) == {-1, 1}
    means = np.where(model.means_ > 0, 1, -1)
    assert (back == X).mean() > (means == X).mean() + 0.1
    np.testing.assert_array_equal(
        model.inverse_transform(np.full((1, model.n_patterns_), np.nan))[0], means
    )
    needed = rf"overlaps must have shape \(n_samples, {model.n_patterns_}\)"
    with pytest.raises(ValueError, match=needed):
        model.inverse_transform([[1.0, 0.0]])


def test_patterns_come_back_from_their_own_overlaps():
    teacher = dt.HopfieldModel.random(300, 5, beta=2.0, random_state=1)
    model = dt.HopfieldPatterns(random_state=0).fit(teacher.sample(100, random_state=2))
    o = model.transform(model.patterns_)
    np.testing.assert_array_equal(model.inverse_transform(o), model.patterns_)

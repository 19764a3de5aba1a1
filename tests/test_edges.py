"""Couplings and edges: against enumeration and against draws from the posterior of the entries."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualtap as dt
from dualtap import edges as edges_module
from dualtap.baselines import NaiveMeanField, PseudoLikelihood
from dualtap.edges import low_rank_rows, pattern_intervals, strongest_pairs
from dualtap.fitted.training import prior_precision, strength_covariance
from dualtap.rbm.effective import even_series, two_body_factors
from dualtap.rbm.priors import PRIORS
from dualtap.recovery.refit import strength_precision

STATES = np.array(list(itertools.product([-1, 1], repeat=6)))
NAMES = [f"gene {k}" for k in range(40)]


def two_body(log_p):
    """The coefficients of s_i s_j in the expansion of a function of six spins."""
    J = (STATES.T * log_p) @ STATES / len(STATES)
    np.fill_diagonal(J, 0)
    return J


@pytest.fixture(scope="module")
def fitted():
    teacher = dt.HopfieldModel.random(40, 2, beta=1.5, random_state=0)
    X = pd.DataFrame(teacher.sample(300, random_state=1), columns=NAMES)
    return teacher, X, dt.HopfieldPatterns(random_state=0).fit(X)


def models(X):
    short = {"max_updates": 30, "n_chains": 10, "early_stopping": False, "random_state": 0}
    yield dt.HopfieldPatterns(2, random_state=0).fit(X)
    yield dt.DualTAP(2, beta=1.5, random_state=0).fit(X)
    yield dt.HopfieldRBM.paper(3, **short).fit(X)
    yield dt.HopfieldRBM.paper(3, hidden="binary", **short).fit(X)
    yield NaiveMeanField().fit(X)
    yield PseudoLikelihood(0.1).fit(X)


def test_couplings_are_the_two_body_terms_of_the_log_probability():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], size=(20, 6))
    for model in models(X):
        J = model.couplings()
        if isinstance(model, dt.HopfieldRBM):
            log_p = -model.model().free_energy(STATES.astype(np.float32)).astype(float)
        elif hasattr(model, "couplings_"):
            log_p = np.einsum("ai,ij,aj->a", STATES, model.couplings_, STATES) / 2
        else:
            log_p = (STATES @ model.patterns_.T) ** 2 @ model.strengths_ / 12
        np.testing.assert_allclose(J, two_body(log_p), atol=2e-6)
        assert not np.diag(J).any()
        np.testing.assert_array_equal(J, J.T)


@pytest.mark.parametrize("size", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("name", PRIORS)
def test_two_body_couplings_are_exact_for_any_prior(name, size):
    W = size * np.random.default_rng(1).standard_normal((3, 6))
    log_p = PRIORS[name].log_normalizer(STATES @ W.T).sum(axis=1)
    J = low_rank_rows(*two_body_factors(W, PRIORS[name]))(slice(0, 6))
    np.fill_diagonal(J, 0)
    np.testing.assert_allclose(J, two_body(log_p), atol=1e-7, rtol=1e-7)


def test_two_body_couplings_of_weights_with_a_right_angle():
    """A term of the series where a cosine vanishes loses nothing."""
    w = np.array([[0.5, 0.5, 0.5, 0.5, 0.5, 2.0]])
    omega = even_series(PRIORS["binary"], 2**2.5)[1]
    w[0, 2] = np.pi / 2 / omega[9]
    assert 4 < np.abs(w).sum() <= 2**2.5
    x = STATES @ w.T
    J = low_rank_rows(*two_body_factors(w, PRIORS["binary"]))(slice(0, 6))
    np.fill_diagonal(J, 0)
    np.testing.assert_allclose(J, two_body(np.logaddexp(x, -x).sum(axis=1)), atol=1e-10)


def test_couplings_of_the_teacher_are_recovered(fitted):
    teacher, X, model = fitted
    J = 1.5 * teacher.couplings()
    np.fill_diagonal(J, 0)
    error = np.linalg.norm(model.couplings() - J) / np.linalg.norm(J)
    assert error < 0.15
    for baseline in (PseudoLikelihood(0.1).fit(X),):
        np.testing.assert_array_equal(baseline.couplings(), baseline.couplings_)
        baseline.couplings()[0, 1] = 7  # a copy
        assert baseline.couplings_[0, 1] != 7


@settings(max_examples=60)
@given(
    st.integers(2, 12),
    st.integers(0, 3),
    st.one_of(st.none(), st.integers(1, 80)),
    st.sampled_from([1, 5, 40]),
    st.integers(0, 2**32 - 1),
)
def test_the_strongest_pairs_are_those_of_a_sort_in_any_blocks(n, p, top, block, seed):
    rng = np.random.default_rng(seed)
    V, c = rng.integers(-1, 2, size=(p, n)), rng.integers(-3, 4, size=p) / 7
    rows_of = low_rank_rows(V, c)
    J = rows_of(slice(0, n))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if J[i, j]]
    pairs.sort(key=lambda pair: (-round(abs(J[pair]), 9), pair))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges_module, "_BLOCK", block)
        i, j, found = strongest_pairs(rows_of, n, top)
    nonzero = [pair for pair in pairs if abs(J[pair]) > 1e-12]
    if len(nonzero) == len(pairs):  # 3/7 - 2/7 - 1/7 may leave a rounding error
        assert list(zip(i.tolist(), j.tolist(), strict=True)) == pairs[:top]
    np.testing.assert_array_equal(found, J[i, j])


def test_large_models_have_no_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    V = rng.choice([-1.0, 1.0], size=(3, 3000))
    rows_of, seen = low_rank_rows(V, np.array([1.0, 0.5, 0.25])), []

    def watched(rows):
        seen.append(rows.stop - rows.start)
        return rows_of(rows)

    monkeypatch.setattr(edges_module, "_BLOCK", 2**18)
    i, _j, J = strongest_pairs(watched, 3000, 10)
    assert max(seen) * 3000 <= 2**18
    assert (np.abs(J) == 1.75).all()
    assert (i == 0).all()  # of equal ones the first
    with pytest.raises(ValueError, match="top must be at least 1, got 0"):
        strongest_pairs(rows_of, 3000, 0)


@pytest.mark.parametrize("uncertain", [False, True])
def test_intervals_are_those_of_draws_from_the_posterior(uncertain):
    rng = np.random.default_rng(2)
    n, strengths = 30, np.array([2.0, 1.0, -1.5, 0.7])
    m = np.tanh(2 * rng.standard_normal((4, n)))
    m[:, ::5] = 0
    zeta = np.sign(m).astype(np.int8)
    i, j, J = strongest_pairs(low_rank_rows(zeta, strengths / n), n)
    C = np.diag([0.04, 0.01, 0.02, 0.03]) if uncertain else np.zeros((4, 4))
    C[0, 1] = C[1, 0] = -0.015 * uncertain
    low, high = pattern_intervals(i, j, zeta, m, strengths, C)
    drawn = np.where(rng.random((4000, 4, n)) < (1 + m) / 2, 1, -1) * (zeta != 0)
    g = rng.multivariate_normal(strengths, C, size=4000) / n
    values = np.einsum("dm,dmk,dmk->dk", g, drawn[..., i], drawn[..., j])
    assert (low <= J).all()
    assert (high >= J).all()
    inside = ((values >= low - 1e-12) & (values <= high + 1e-12)).mean(axis=0)
    assert 0.95 < inside.mean() < 0.995
    assert inside.min() > 0.8  # sums of few signs are not normal
    free = (low < J) & (high > J)  # not widened
    assert free.mean() > 0.5
    np.testing.assert_allclose(((low + high) / 2)[free], values.mean(axis=0)[free], atol=0.01)
    np.testing.assert_allclose(((high - low) / 3.92)[free], values.std(axis=0)[free], rtol=0.1)


def test_edges_of_a_fit(fitted):
    _, _, model = fitted
    table = model.edges(top=5)
    assert len(table) == 5
    J = model.couplings()
    everything = model.edges()
    assert len(everything) == np.count_nonzero(np.triu(J))
    np.testing.assert_allclose(everything.J, J[everything.i, everything.j])
    np.testing.assert_array_equal(table.J, everything.J[:5])
    assert table.names.tolist() == [
        [NAMES[i], NAMES[j]] for i, j in zip(table.i, table.j, strict=True)
    ]
    assert (table.low <= table.J).all()
    assert (table.high >= table.J).all()
    frame = pd.DataFrame(table.columns())
    assert frame.columns.tolist() == ["i", "j", "name_i", "name_j", "J", "low", "high"]


def test_models_without_patterns_or_posterior():
    rng = np.random.default_rng(3)
    X = rng.choice([-1, 1], size=(60, 20))
    none = dt.HopfieldPatterns(random_state=0).fit(X)
    assert none.n_patterns_ == 0
    assert not none.couplings().any()
    assert len(none.edges()) == 0
    table = PseudoLikelihood(0.1).fit(X).edges(top=3)
    assert table.names is None
    assert np.isnan(table.low).all()
    assert np.isnan(table.high).all()
    assert next(iter(table.to_networkx().edges(data=True)))[2] == {"J": table.J[0]}


def test_a_graph_has_names_and_intervals(fitted):
    _, _, model = fitted
    table = model.edges(top=7)
    graph = table.to_networkx()
    assert graph.number_of_edges() == 7
    i, j = int(table.i[0]), int(table.j[0])
    assert graph.nodes[i] == {"name": NAMES[i]}
    assert graph.edges[i, j] == {"J": table.J[0], "low": table.low[0], "high": table.high[0]}


def test_a_graph_without_networkx_says_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "networkx", None)
    with pytest.raises(ImportError, match=r"pip install 'dualtap\[graph\]'"):
        fitted[2].edges(top=1).to_networkx()


@pytest.mark.parametrize("method", ["couplings", "edges"])
def test_unfitted_models_say_so(method):
    with pytest.raises(ValueError, match="not fitted"):
        getattr(dt.HopfieldPatterns(), method)()


# --- Errors of strengths ------------------------------------------------------------------------


def maximum(S, zeta, *, tied, with_fields):
    """Strengths and fields of largest pseudo-likelihood, by Newton steps on dense arrays."""
    n_samples, n = S.shape
    phi = zeta.T * ((S @ zeta.T)[:, None] - S[..., None] * zeta.T) / n
    phi = phi.sum(axis=2, keepdims=True) if tied else phi
    if with_fields:
        ones = np.broadcast_to(np.eye(n), (n_samples, n, n))
        phi = np.concatenate([phi, ones], axis=2)
    theta = np.zeros(phi.shape[2])
    for _ in range(8):
        t = np.tanh(phi @ theta)
        H = np.einsum("ai,aik,ail->kl", 1 - t * t, phi, phi, optimize=True)
        theta += np.linalg.solve(H, np.einsum("ai,aik->k", S - t, phi))
    k = 1 if tied else len(zeta)
    return np.broadcast_to(theta[:k], len(zeta)), theta[k:] if with_fields else None


@pytest.mark.parametrize(("tied", "with_fields"), [(True, False), (False, False), (False, True)])
def test_errors_of_strengths_are_those_of_repeated_fits(tied, with_fields):
    rng = np.random.default_rng(6)
    n, repeats = 15, 150
    b = rng.normal(0.3, 0.2, n) if with_fields else None
    g = [1.1, 1.1] if tied else [1.1, 0.6]
    teacher = dt.HopfieldModel.random(n, 2, strengths=g, fields=b, random_state=0)
    X = teacher.sample(repeats * 200, random_state=1).reshape(repeats, 200, n)
    zeta = teacher.patterns.astype(float)
    fits = [maximum(S.astype(float), zeta, tied=tied, with_fields=with_fields) for S in X]
    spread = np.cov(np.array([found[0] for found in fits]).T)
    told = [
        strength_covariance(S, 200, teacher.patterns, *found, np.zeros(n), tied=tied)
        for S, found in zip(X[:40], fits, strict=False)
    ]
    told = np.mean(told, axis=0)
    np.testing.assert_allclose(np.sqrt(np.diag(told)), np.sqrt(np.diag(spread)), rtol=0.15)
    np.testing.assert_allclose(told[0, 1], spread[0, 1], atol=0.25 * spread[0, 0])


def test_errors_of_strengths_fall_with_samples_and_need_not_all_of_them():
    teacher = dt.HopfieldModel.random(30, 2, strengths=[1.0, 0.7], random_state=0)
    X = teacher.sample(4000, random_state=1)
    parts = (teacher.patterns, teacher.strengths, None, np.zeros(30))
    whole = strength_covariance(X, 4000, *parts, tied=False)
    some = strength_covariance(X[::16], 4000, *parts, tied=False)
    np.testing.assert_allclose(some, whole, atol=0.3 * whole.max())
    few = strength_covariance(X[:1000], 1000, *parts, tied=False)
    np.testing.assert_allclose(few[0, 0] / whole[0, 0], 4, rtol=0.3)


def test_a_strength_that_samples_do_not_determine_is_as_uncertain_as_its_prior():
    """Its curvature vanishes, and once that passed for certainty: a covariance of zero."""
    rng = np.random.default_rng(3)
    n, n_samples = 40, 500
    zeta = rng.choice(np.array([-1, 1], dtype=np.int8), size=(2, n))
    zeta[0, n // 2 :] = zeta[1, : n // 2] = 0  # patterns of different spins
    X = rng.choice(np.array([-1, 1], dtype=np.int8), size=(n_samples, n))
    X[:, n // 2 :] = zeta[1, n // 2 :]  # spins of the second never change: fields explain them
    b, g = np.repeat([0.0, 6.0], n // 2) * zeta[1], np.array([0.2, 0.5])
    C = strength_covariance(X, n_samples, zeta, g, b, X.mean(axis=0), tied=False)
    prior = 1 / prior_precision(zeta)
    assert np.diag(C)[0] < 0.05 * prior[0]
    assert np.diag(C)[1] == pytest.approx(prior[1], rel=0.05)
    i, j = np.array([0, n // 2]), np.array([1, n // 2 + 1])
    low, high = pattern_intervals(i, j, zeta, zeta.astype(float), g, C)
    width = (high - low) * n / 2
    assert width[1] == pytest.approx(1.96 * np.sqrt(prior[1]), rel=0.05)
    assert width[0] < 0.2 * width[1]


def test_certain_spins_leave_strengths_uncertain():
    """All samples are one pattern: any large strength would do, up to the prior."""
    zeta = np.ones((1, 30), dtype=np.int8)
    X = np.repeat(zeta, 200, axis=0)
    for g in (3.0, 8.0, 30.0, 1e4):  # from a curvature above that of the prior to none
        C = strength_covariance(X, 200, zeta, np.array([g]), None, np.zeros(30), tied=False)
        prior = 1 / prior_precision(zeta)[0]
        assert 0 < C[0, 0] <= prior * (1 + 1e-12)
    assert C[0, 0] == pytest.approx(prior)


@pytest.mark.parametrize("tied", [False, True])
def test_no_covariance_exceeds_that_of_the_prior(tied):
    """Not even where the model is wrong and its spins are certain of it."""
    rng = np.random.default_rng(4)
    zeta = rng.choice(np.array([-1, 0, 1], dtype=np.int8), size=(3, 20))
    X = rng.choice(np.array([-1, 0, 1], dtype=np.int8), size=(50, 20))
    g = np.full(3, 40.0) if tied else np.array([40.0, -60.0, 5.0])
    C = strength_covariance(X, 50, zeta, g, None, np.zeros(20), tied=tied)
    prior = 1 / prior_precision(zeta)
    prior = np.full(3, 1 / prior_precision(zeta).mean()) if tied else prior
    assert (np.diag(C) > 0).all()
    assert (np.diag(C) <= prior * (1 + 1e-9)).all()


def test_the_prior_is_that_of_the_fit():
    rng = np.random.default_rng(5)
    zeta = rng.choice(np.array([-1, 0, 1], dtype=np.int8), size=(3, 20))
    expected = strength_precision(zeta.astype(np.float32))
    np.testing.assert_array_equal(prior_precision(zeta), expected)


def test_a_given_temperature_has_no_error(fitted):
    _, X, model = fitted
    assert (np.diag(model._strength_covariance) > 0).all()
    assert not dt.DualTAP(2, beta=1.5, random_state=0).fit(X)._strength_covariance.any()
    table = model.edges(top=20)
    assert (table.high > table.low).all()
    model._strength_covariance = None  # as in a file of 0.1.0
    assert np.isnan(model.edges(top=2).low).all()

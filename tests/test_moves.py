"""Changes of a model: predictions to second order against refits, and what is chosen."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualtap._kernels.entries import best_entries
from dualtap.hopfield import HopfieldModel
from dualtap.recovery.independent import null
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import (
    distinct,
    enlarged,
    freed,
    halved,
    of_one_strength,
    of_sites,
    simplest,
    stated,
    turning,
    with_patterns,
    worthwhile,
)
from dualtap.recovery.refit import Parameters, information, refit
from dualtap.recovery.selection import chosen, described_costs, named_costs, no_costs
from dualtap.spins import as_spins


def general(n_spins=40, seed=0, n_samples=3000, strengths=(1.2, -3.0, 0.8), width=0.5):
    """Samples of attractive and repulsive patterns with zeros, in fields."""
    rng = np.random.default_rng(seed)
    Z = rng.choice([-1, 0, 1], size=(len(strengths), n_spins), p=[0.4, 0.2, 0.4])
    fields = width * rng.normal(size=n_spins)
    model = HopfieldModel(Z, fields=fields, strengths=strengths)
    judge = Judge(as_spins(model.sample(n_samples, random_state=seed + 1)))
    return model, judge


def fitted(judge, Z, parameters=Parameters()):  # noqa: B008
    Z = np.asarray(Z, np.float32)
    return refit(judge, Z, np.full(len(Z), 0.5), np.zeros(judge.n_spins), parameters)


def test_leaving_a_weak_pattern_out_costs_what_second_order_says():
    rng = np.random.default_rng(1)
    model, judge = general(strengths=(0.25, -0.4, 0.2))
    Z = np.concatenate([model.patterns, rng.choice([-1, 1], size=(1, 40))])
    fit = fitted(judge, Z)
    fit = refit(judge, fit.Z, fit.g, fit.b, fit.parameters)  # with the curvature there
    K = information(fit)
    for mu in range(4):
        others = np.delete(np.arange(4), mu)
        without = fitted(judge, Z[others])
        predicted = fit.g[mu] ** 2 / (2 * K[mu, mu])
        assert pytest.approx(predicted, rel=0.05, abs=0.2) == fit.L - without.L
        moved = fit.g - K[:, mu] * fit.g[mu] / K[mu, mu]
        np.testing.assert_allclose(without.g, moved[others], atol=0.05)


def test_patterns_that_are_there_pay_and_others_do_not():
    rng = np.random.default_rng(2)
    model, judge = general()
    Z = np.concatenate([rng.choice([-1, 0, 1], size=(2, 40)), model.patterns])
    kept, g = worthwhile(stated(judge, fitted(judge, Z)), judge)
    assert kept.tolist() == [False, False, True, True, True]
    np.testing.assert_allclose(g[kept], fitted(judge, model.patterns).g, atol=0.05)
    assert worthwhile(stated(judge, fitted(judge, Z)), judge, least=4)[0].sum() == 4
    assert worthwhile(stated(judge, fitted(judge, Z)), judge, most=1)[0].sum() == 1
    state = with_patterns(judge, Z.astype(np.float32), null(judge))
    np.testing.assert_array_equal(state.fit.Z, model.patterns)
    assert with_patterns(judge, Z.astype(np.float32), null(judge), least=5).fit.g.shape == (5,)


def test_nearly_equal_patterns_are_one():
    rng = np.random.default_rng(0)
    Z = rng.choice([-1.0, 1.0], size=(3, 200)).astype(np.float32)
    near = -Z[1]
    near[:4] *= -1
    lone = np.zeros_like(near)
    lone[3] = 1
    np.testing.assert_array_equal(distinct(np.stack([Z[0], Z[1], near, lone, Z[2]])), Z)
    np.testing.assert_array_equal(distinct(Z), Z)
    sparse = np.zeros((2, 200), np.float32)
    sparse[0, :10] = sparse[1, 5:15] = 1
    assert len(distinct(sparse)) == 2
    assert len(distinct(Z[:0])) == 0


@pytest.mark.parametrize("fields", [True, False])
def test_derivatives_along_bits(fields):
    model, judge = general(n_spins=8, n_samples=60, strengths=(1.2, -2.0))
    fit = fitted(judge, model.patterns, Parameters(fields=fields))
    A, c, r = of_sites(judge, fit)

    def value(Z, i):
        """L of spin i given the others, in double precision."""
        S, N = judge.rows.astype(float), 8
        J = (Z.T * fit.g) @ Z / N
        np.fill_diagonal(J, 0)
        h = S @ J[:, i] + fit.b[i]
        return -np.logaddexp(0, -2 * S[:, i] * h).sum()

    e = 1e-4
    for mu, i in np.ndindex(fit.Z.shape):
        d = np.zeros(fit.Z.shape)
        d[mu, i] = e
        slope = (value(fit.Z + d, i) - value(fit.Z - d, i)) / (2 * e)
        assert A[mu, i] == pytest.approx(slope, abs=1e-2)
    overlaps = judge.rows @ fit.Z.T * fit.g
    assert r == pytest.approx(
        overlaps.T @ overlaps / np.outer(*2 * [np.linalg.norm(overlaps, axis=0)])
    )
    # c is the part of the curvature from the spin's own field: w x², x the field per entry
    S, N = judge.rows.astype(float), 8
    for mu, i in np.ndindex(fit.Z.shape):
        others = np.delete(np.arange(N), i)
        x = fit.g[mu] / N * (S[:, others] @ fit.Z[mu, others])
        J = (fit.Z.T * fit.g) @ fit.Z / N
        np.fill_diagonal(J, 0)
        w = 1 - np.square(np.tanh(S @ J + fit.b))[:, i]
        own = (fit.g[mu] / N) ** 2 * w.sum()
        assert c[mu, i] == pytest.approx((w * x * x).sum(), abs=own + 1e-2)


def test_turned_bits_improve_a_model():
    model, judge = general(n_spins=60, n_samples=4000)
    Z = model.patterns.astype(np.float32)
    Z[0, :3] = np.where(Z[0, :3] == 0, 1, 0)
    Z[1, 3:6] = np.where(Z[1, 3:6] == 0, 1, -Z[1, 3:6])
    wrong = stated(judge, fitted(judge, Z))
    new = turning(judge, wrong).Z
    repaired = (model.patterns != Z) & (new == model.patterns)
    assert repaired.sum() >= 5
    assert np.count_nonzero(new != model.patterns) <= 8
    after = stated(judge, fitted(judge, new))
    assert after.fit.L > wrong.fit.L
    assert after.objective < wrong.objective
    assert set(np.unique(new)) <= {-1, 0, 1}


def test_a_pattern_without_zeros_stays_so():
    model = HopfieldModel.random(50, 2, beta=0.8, random_state=0)
    judge = Judge(as_spins(model.sample(300, random_state=1)))
    rng = np.random.default_rng(0)
    Z = model.patterns * np.where(rng.random((2, 50)) < 0.2, -1, 1)
    new = turning(judge, stated(judge, fitted(judge, Z))).Z
    assert (new != 0).all()
    assert (new != Z).any()


def test_the_sites_that_gain_most_come_first():
    model, judge = general(n_spins=60, n_samples=4000)
    Z = model.patterns.astype(np.float32)
    Z[0, :6] = np.where(Z[0, :6] == 0, 1, -Z[0, :6])
    turns = turning(judge, stated(judge, fitted(judge, Z)))
    changed = (turns.Z != Z).any(axis=0)
    assert ((turns.gain > 0) == changed).all()
    two = turns.first(Z, 2)
    assert set(np.flatnonzero((two != Z).any(axis=0))) == set(np.argsort(-turns.gain)[:2])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_entries_of_a_site_end_where_no_single_or_pair_gains(seed):
    rng = np.random.default_rng(seed)
    P = 4
    x = rng.normal(size=(20, P)) + rng.normal(size=(20, 1))
    H = x.T @ x
    A, start = 20 * rng.normal(size=P), rng.choice([-1.0, 0.0, 1.0], size=P)
    entry, free = rng.uniform(0, 3, size=P), rng.random(P) < 0.5
    root = np.sqrt(np.diag(H))
    z, gain = start[None].copy(), np.zeros(1)
    given_c = np.diag(H)[None].copy()
    best_entries(z, A[None].copy(), given_c, H / np.outer(root, root), entry, free, gain, 50)

    def value(new):
        d = new - start
        return A @ d - 0.5 * d @ H @ d - entry @ np.abs(new)

    assert gain[0] == pytest.approx(value(z[0]) - value(start), abs=1e-6)
    for mu in range(P):
        for new in (-1.0, 0.0, 1.0):
            if new or free[mu] or start[mu] == 0:
                other = z[0].copy()
                other[mu] = new
                if new == 0 and not free[mu]:
                    continue
                assert value(other) <= value(z[0]) + 1e-6


# --- the null ---


def independent(p, n_samples=500, n_spins=40, seed=0):
    X = np.random.default_rng(seed).random((n_samples, n_spins)) < p
    return Judge(as_spins(X))


def test_fair_spins_are_fair():
    judge = independent(0.5)
    state = null(judge)
    assert not state.fit.b.any()
    assert state.objective == pytest.approx(500 * 40 * np.log(2))


@pytest.mark.parametrize("p", [0.02, 0.3, np.linspace(0.1, 0.9, 40)])
def test_other_spins_have_means_of_their_own(p):
    judge = independent(p)
    state = null(judge)
    assert np.abs(np.tanh(state.fit.b) - judge.mean).mean() < 0.03
    assert state.objective < 500 * 40 * np.log(2)


def test_equal_means_are_one_number():
    judge = independent(0.02)
    n_up = judge.n_up.sum()
    L = n_up * np.log(n_up / 20_000) + (20_000 - n_up) * np.log(1 - n_up / 20_000)
    shortest = -L + np.log(2) + 0.5 * np.log(500)
    assert shortest - 1 < null(judge).objective < shortest + 25  # a field each is 100 nats more


# --- how many numbers ---


def test_a_teacher_has_one_strength_and_no_fields():
    model = HopfieldModel.random(100, 4, beta=0.9, random_state=0)
    judge = Judge(as_spins(model.sample(2000, random_state=1)))
    state = of_one_strength(judge, model.patterns.astype(np.float32))
    assert enlarged(judge, state) is state
    free = stated(judge, fitted(judge, model.patterns))
    simple = simplest(judge, free)
    assert simple.fit.parameters == Parameters(tied=True, fields=False)
    assert simple.objective < free.objective
    assert simple.fit.g[0] == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize(
    ("strengths", "width", "expected"),
    [
        ((1.0, 0.6, 0.8), 0.0, Parameters(fields=False)),
        ((0.8, 0.8, 0.8), 0.5, Parameters(tied=True)),
        ((1.0, 0.6, 0.8), 0.5, Parameters()),
    ],
)
def test_strengths_and_fields_where_they_are_there(strengths, width, expected):
    rng = np.random.default_rng(0)
    Z = rng.choice([-1, 1], size=(3, 100))
    model = HopfieldModel(Z, fields=width * rng.normal(size=100), strengths=strengths)
    judge = Judge(as_spins(model.sample(8000, random_state=1)))
    state = enlarged(judge, of_one_strength(judge, Z.astype(np.float32)))
    assert state.fit.parameters == expected
    free = stated(judge, fitted(judge, Z))
    assert simplest(judge, free).fit.parameters == expected
    np.testing.assert_allclose(state.fit.g, strengths, atol=0.1)


def test_freed_keeps_the_length_to_beat():
    model = HopfieldModel.random(50, 2, beta=0.9, random_state=0)
    judge = Judge(as_spins(model.sample(300, random_state=1)))
    state = of_one_strength(judge, model.patterns.astype(np.float32))
    free = freed(judge, state)
    assert free.fit.parameters == Parameters()
    assert free.objective == state.objective
    assert free.fit.L >= state.fit.L - 0.5
    assert freed(judge, free) is free


# --- the same couplings with fewer entries ---


def test_two_patterns_become_their_halves():
    Z = np.zeros((2, 40), np.float32)
    Z[0, :8], Z[1, 8:16] = 1, np.tile([1, -1], 4)
    model = HopfieldModel(Z.astype(int), strengths=np.array([6.0, 6.0]))
    judge = Judge(as_spins(model.sample(3000, random_state=0)))
    mixed = np.stack([Z[0] + Z[1], Z[0] - Z[1]])
    start = with_patterns(judge, mixed, null(judge), least=2)
    after = halved(judge, start)
    assert after.objective < start.objective
    np.testing.assert_array_equal(np.sort(np.abs(after.fit.Z @ Z.T), axis=None), [0, 0, 8, 8])
    assert halved(judge, after) is after


# --- which of many ---


def test_chosen_candidates_are_there_and_not_twice():
    model, judge = general(n_samples=5000)
    rng = np.random.default_rng(3)
    flipped = model.patterns * np.where(rng.random((3, 40)) < 0.05, -1, 1)
    others = rng.choice([-1, 0, 1], size=(30, 40))
    pool = np.concatenate([others, -model.patterns, model.patterns, flipped, -flipped])
    named = partial(named_costs, judge, np.log(len(pool)) + 0.5 * np.log(5000))
    state = freed(judge, null(judge))
    new = chosen(judge, state, pool.astype(np.float32), named)
    size = np.sqrt((new**2).sum(axis=1))
    cosine = np.abs(new @ new.T) / np.outer(size, size)
    assert (cosine[np.triu_indices(len(new), 1)] < 0.9).all()
    overlap = np.abs(new @ model.patterns.T.astype(float)) / (model.patterns != 0).sum(axis=1)
    assert (overlap.max(axis=0) > 0.85).all()
    assert len(new) <= 5
    one = with_patterns(judge, model.patterns.astype(np.float32), state)
    assert len(chosen(judge, one, pool.astype(np.float32), named)) <= 1


def test_nothing_is_chosen_of_noise():
    judge = independent(np.linspace(0.1, 0.9, 40), n_samples=2000)
    pool = np.random.default_rng(0).choice([-1, 0, 1], size=(100, 40)).astype(np.float32)
    state = freed(judge, null(judge))
    assert len(chosen(judge, state, pool, partial(named_costs, judge, np.log(100) + 2))) == 0
    assert len(chosen(judge, state, pool, partial(described_costs, judge, state))) == 0
    assert len(chosen(judge, state, pool[:0], no_costs)) == 0
    assert 0 < len(chosen(judge, state, pool, no_costs)) <= 24
    assert len(chosen(judge, state, pool, no_costs, most=3)) == 3


def test_the_first_chosen_is_the_one_that_is_there():
    model, judge = general(strengths=(0.5,), n_samples=4000)
    pool = np.concatenate([model.patterns, np.random.default_rng(0).choice([-1, 1], size=(5, 40))])
    state = freed(judge, null(judge))
    new = chosen(judge, state, pool.astype(np.float32), partial(named_costs, judge, np.log(6) + 4))
    np.testing.assert_array_equal(np.abs(new @ model.patterns[0]), [(model.patterns != 0).sum()])
    after = stated(judge, fitted(judge, new))
    assert after.objective < state.objective

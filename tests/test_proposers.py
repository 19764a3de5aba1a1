"""Proposers: each finds what is planted for it; supports against a plain loop."""

from types import SimpleNamespace

import numpy as np
import pytest

from dualtap._kernels.atoms import best_supports
from dualtap.hopfield import HopfieldModel
from dualtap.recovery.independent import null
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import freed, of_one_strength
from dualtap.recovery.proposers.flat import flat_directions, has_flat
from dualtap.recovery.proposers.rotation import (
    agree,
    plain_directions,
    responds_linearly,
    rotated,
    rotations,
    share_direction,
    simple_structure,
    sparse,
    varimax,
)
from dualtap.recovery.proposers.students import _pairs, residual_couplings, students
from dualtap.recovery.refit import Parameters, refit
from dualtap.recovery.residuals import leaves_only_noise, residual_of, unexplained
from dualtap.spins import as_spins
from dualtap.spins.blocks import Blocks
from dualtap.subspace.rotate import row_basis
from dualtap.subspace.spectrum import spectrum


def support_by_loops(G, C, w, y, sign, costs):
    """The prefix of the entries by |y|/w that gains most, each looked at from scratch."""
    order = np.argsort(-np.abs(y) / w, kind="stable")
    best, result = -np.inf, np.zeros(len(y))
    for n in range(2, len(y) + 1):
        z = np.zeros(len(y))
        z[order[:n]] = np.where(y[order[:n]] >= 0, 1, -1)
        slope = sum(z[i] * G[i, j] * z[j] for i in range(len(y)) for j in range(i))
        curvature = 0.0
        for i in np.flatnonzero(z):
            others = z.copy()
            others[i] = 0
            curvature += w[i] * (others @ C @ others)
        if sign * slope > 0 and curvature > 0:
            gain = slope**2 / (2 * curvature) - costs[n - 1]
            if gain > best:
                best, result = gain, z
    return result


@pytest.mark.parametrize("seed", range(5))
def test_supports_by_loops(seed):
    rng = np.random.default_rng(seed)
    N, k = 9, 12
    G = 20 * rng.normal(size=(N, N))
    G += G.T
    np.fill_diagonal(G, 0)
    S = rng.normal(size=(40, N))
    C, w = S.T @ S / 40, rng.uniform(10, 200, size=N)
    Y, sign = rng.normal(size=(k, N)), rng.choice([-1.0, 1.0], size=k)
    costs = 3 + 2 * np.arange(N)
    Z = np.full((k, N), np.nan)
    best_supports(G, C, w, Y, sign, costs, Z)
    expected = [support_by_loops(G, C, w, y, s, costs) for y, s in zip(Y, sign, strict=True)]
    np.testing.assert_array_equal(Z, expected)


def test_nothing_that_goes_the_wrong_way():
    G = np.array([[0.0, 5.0], [5.0, 0.0]])
    Z = np.empty((2, 2))
    costs = np.ones(2)
    best_supports(G, np.eye(2), np.ones(2), np.ones((2, 2)), np.array([1.0, -1.0]), costs, Z)
    np.testing.assert_array_equal(Z, [[1, 1], [0, 0]])


def cosines(a, b):
    a, b = np.asarray(a, float), np.asarray(b, float)
    size = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    return np.abs(a @ b.T) / size


def test_sparse_vectors_in_a_mixed_space():
    rng = np.random.default_rng(0)
    planted = np.zeros((4, 120), np.float32)
    for row, k in zip(planted, range(0, 48, 12), strict=True):
        row[k : k + 15] = rng.choice([-1, 1], size=15)  # each shares some entries with the next
    mixed = rng.normal(size=(4, 4)) @ planted + 0.02 * rng.normal(size=(4, 120))
    found = sparse(row_basis(mixed.astype(np.float32)), rng)
    assert set(np.unique(found)) <= {-1, 0, 1}
    assert (cosines(planted, found).max(axis=1) > 0.95).all()


def test_varimax_is_a_rotation_to_simple_structure():
    rng = np.random.default_rng(0)
    simple = np.zeros((3, 60))
    simple[0, :20] = simple[1, 20:40] = simple[2, 40:] = 1
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    V = (Q @ simple).astype(np.float32)
    Y = varimax(V)
    np.testing.assert_allclose(Y.T @ Y, V.T @ V, atol=1e-4)
    np.testing.assert_allclose(cosines(simple, Y).max(axis=1), 1, atol=1e-3)


def linear_case(n_samples=800):
    model = HopfieldModel.random(200, 3, beta=0.8, random_state=0)
    blocks = Blocks(as_spins(model.sample(n_samples, random_state=1)))
    return model, blocks


def test_rotations_to_binary_vectors():
    model, blocks = linear_case()
    rng = np.random.default_rng(0)
    whole = spectrum(blocks, rng)
    assert whole.n_signal == 3
    assert responds_linearly(whole, blocks)
    assert not share_direction(blocks, whole)
    answers = list(rotated(blocks, np.ones(200, np.float32), whole.vectors[:3], rng))
    assert 1 <= len(answers) <= 6
    for m in answers:
        assert np.abs(m).max() <= 1
    best = max(cosines(model.patterns, np.sign(m)).max(axis=1).min() for m in answers)
    assert best > 0.8
    assert agree(answers[0], -answers[0][::-1])


def test_samples_on_one_side_share_a_direction():
    X = np.where(np.random.default_rng(0).random((300, 50)) < 0.9, 1, -1).astype(np.int8)
    blocks = Blocks(as_spins(X))
    assert share_direction(blocks, spectrum(blocks, np.random.default_rng(0)))


def test_residuals_of_the_truth_are_noise():
    model, blocks = linear_case()
    judge = Judge(blocks._spins)
    rng = np.random.default_rng(0)
    none = null(judge)
    before = residual_of(blocks, none.fit, rng)
    assert before.n_signal == 3
    pool = rotations(before, rng)
    assert set(np.unique(pool)) <= {-1, 0, 1}
    assert (cosines(model.patterns, pool[(pool != 0).any(axis=1)]).max(axis=1) > 0.8).all()
    fit = refit(judge, model.patterns.astype(np.float32), np.ones(3), np.zeros(200), Parameters())
    after = residual_of(blocks, fit, rng)
    assert after.n_signal == 0
    assert after.with_at_least(2).n_signal == min(2, len(after.spectrum.vectors))


def scales(n_scales, n_items, n_samples, seed):
    """Answers to a questionnaire: items load on one scale, a little on others; and its keys."""
    rng = np.random.default_rng(seed)
    N = n_scales * n_items
    keys = np.repeat(np.eye(n_scales), n_items, axis=1) * rng.choice([-1, 1], size=N)
    loadings = keys * rng.uniform(0.4, 0.9, N) + (keys == 0) * rng.normal(0, 0.15, (n_scales, N))
    x = rng.normal(size=(n_samples, n_scales)) @ loadings + rng.logistic(size=(n_samples, N)) * 0.7
    return np.where(x > 0, 1, -1).astype(np.int8), keys


def test_scales_have_simple_structure():
    X, keys = scales(4, 12, 3000, seed=0)
    judge, blocks = Judge(as_spins(X)), Blocks(as_spins(X))
    left = residual_of(blocks, null(judge).fit, np.random.default_rng(0))
    Z = simple_structure(left)
    assert set(np.unique(Z)) <= {-1, 0, 1}
    assert len(Z) == left.n_signal >= 4
    assert (cosines(keys, Z).max(axis=1) > 0.8).all()


def populations(n_samples, seed):
    """Sites of a genome that differ in how common an allele is, in two groups of people."""
    rng = np.random.default_rng(seed)
    side = np.repeat([-1, 1], 20)
    common, apart = rng.normal(0, 1, (n_samples, 1)), rng.normal(0, 0.7, (n_samples, 1))
    x = common + apart * side + rng.logistic(size=(n_samples, 40)) * 0.7
    return np.where(x > 0, 1, -1).astype(np.int8), side


def test_what_all_spins_share_and_what_tells_groups_apart_need_no_rotation():
    X, side = populations(1000, seed=0)
    judge, blocks, rng = Judge(as_spins(X)), Blocks(as_spins(X)), np.random.default_rng(0)
    none = np.empty((0, 40), np.float32)
    left = residual_of(blocks, null(judge).fit, rng)
    plain = plain_directions(left, none)
    np.testing.assert_array_equal(plain[0], np.ones(40))
    with_all = refit(judge, plain[:1], np.ones(1), np.zeros(40), Parameters())
    left = residual_of(blocks, with_all, rng)
    (found,) = plain_directions(left, plain[:1])
    assert abs(found @ side) == 40
    # Rotated together, they would be the two groups.
    both = simple_structure(residual_of(blocks, null(judge).fit, rng))
    assert (np.count_nonzero(both, axis=1) <= 22).all()


def test_scales_are_no_plain_directions():
    X, _ = scales(4, 12, 3000, seed=0)
    left = residual_of(Blocks(as_spins(X)), null(Judge(as_spins(X))).fit, np.random.default_rng(0))
    assert len(plain_directions(left, np.empty((0, 48), np.float32))) == 0


def test_weak_directions_do_not_disturb_simple_structure():
    X, keys = scales(4, 12, 3000, seed=1)
    blocks = Blocks(as_spins(X))
    left = residual_of(blocks, null(Judge(as_spins(X))).fit, np.random.default_rng(0), 10)
    more = left._replace(least=10)
    assert more.n_signal == 10
    Z = simple_structure(more)
    assert (cosines(keys, Z[(Z != 0).any(axis=1)]).max(axis=1) > 0.75).all()


def test_residual_couplings_are_slopes_along_pairs():
    rng = np.random.default_rng(0)
    X = rng.choice(np.array([-1, 1], np.int8), size=(60, 7))
    judge = Judge(as_spins(X))
    state = freed(judge, null(judge))
    couplings = residual_couplings(judge, state)
    Z = np.zeros((1, 7), np.float32)
    Z[0, [1, 4]] = 1, -1
    slope = judge.statistics(Z, np.zeros(1), state.fit.b).slope[0]
    assert 7 * slope == pytest.approx(-couplings.G[1, 4], rel=1e-4)
    np.testing.assert_allclose(couplings.G, couplings.G.T)
    assert not np.diag(couplings.G).any()
    np.testing.assert_allclose(couplings.C, np.cov(X.T, bias=True), atol=0.02)


def proposed(X):
    judge = Judge(as_spins(X))
    return students(judge, freed(judge, null(judge)))


@pytest.mark.parametrize("sign", [1, -1])
def test_students_find_a_planted_pair(sign):
    rng = np.random.default_rng(0)
    X = rng.choice(np.array([-1, 1], np.int8), size=(400, 30))
    X[:, 7] = np.where(rng.random(400) < 0.8, sign * X[:, 3], -sign * X[:, 3])
    pair = np.zeros(30)
    pair[[3, 7]] = 1, sign
    assert (proposed(X) == pair).all(axis=1).any()


def test_students_find_a_repulsive_group():
    rng = np.random.default_rng(1)
    X = rng.choice(np.array([-1, 1], np.int8), size=(1000, 24))
    X[:, :6] = -1
    X[np.arange(1000), rng.integers(6, size=1000)] = 1  # one of six
    group = np.zeros(24)
    group[:6] = 1
    assert (cosines(group[None], proposed(X)).max()) > 0.99


def test_pairs_that_gain_most_are_proposed_with_either_sign():
    n_spins = 60
    gain = np.random.default_rng(0).random((n_spins, n_spins))
    G = np.where(np.random.default_rng(1).random(gain.shape) < 0.5, -1.0, 1.0)
    Z, sign = _pairs(SimpleNamespace(G=G, pairs=gain))
    n = len(Z) // 2
    assert 0 < n < n_spins * (n_spins - 1) // 2
    assert sign.tolist() == [1.0] * n + [-1.0] * n
    i, j = np.triu_indices(n_spins, 1)
    best = np.argsort(-gain[i, j])[:n]
    for z, other, a, b in zip(Z[:n], Z[n:], i[best], j[best], strict=True):
        assert np.flatnonzero(z).tolist() == [a, b]
        assert z[a] * z[b] == G[a, b]
        np.testing.assert_array_equal(np.abs(z), np.abs(other))
        assert other[a] * other[b] == -G[a, b]


def test_students_of_too_many_spins_are_none(monkeypatch):
    from dualtap.recovery.proposers import students as module

    monkeypatch.setattr(module, "MOST_SPINS", 10)
    X = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), size=(20, 11))
    assert proposed(X).shape == (0, 11)


# --- what a model leaves ---


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("beta", "n_samples"), [(1.5, 90), (1.5, 700), (2.0, 90)])
def test_patterns_leave_noise_if_none_is_missing(beta, n_samples, missing):
    teacher = HopfieldModel.random(400, 4, beta, random_state=0)
    X, rng = teacher.sample(n_samples, random_state=1), np.random.default_rng(3)
    X[rng.random(X.shape) < missing] = 0
    spins = as_spins(np.where(X == 0, np.nan, X.astype(float)) if missing else X)
    judge, blocks = Judge(spins), Blocks(spins)
    whole, zeta = spectrum(blocks, rng), teacher.patterns.astype(np.float32)

    def explain(Z):
        return leaves_only_noise(blocks, of_one_strength(judge, Z).fit, whole)

    assert explain(zeta)
    assert explain(-zeta[::-1])
    for mu in range(4):
        assert not explain(np.delete(zeta, mu, axis=0))
    half = zeta.copy()
    half[0, :200] = rng.choice([-1, 1], size=200)
    assert not explain(half)


def test_samples_of_no_state_are_noise_and_lacking_patterns_beside_them_are_not():
    teacher = HopfieldModel.random(400, 5, 2.0, random_state=0)
    rng = np.random.default_rng(3)
    X = np.concatenate([teacher.sample(100, random_state=1), rng.choice([-1, 1], size=(25, 400))])
    spins = as_spins(X)
    judge, blocks = Judge(spins), Blocks(spins)
    whole, zeta = spectrum(blocks, rng), teacher.patterns.astype(np.float32)
    assert leaves_only_noise(blocks, of_one_strength(judge, zeta).fit, whole)
    for mu in range(5):
        fit = of_one_strength(judge, np.delete(zeta, mu, axis=0)).fit
        assert not leaves_only_noise(blocks, fit, whole)


def test_weak_patterns_show_beside_a_strong_one():
    """Spins that the weak patterns drag vary in variance, which must not pass for directions."""
    strengths = np.array([1.3, 0.8, 0.8, 0.8])
    rng = np.random.default_rng(0)
    zeta = rng.choice([-1, 1], size=(4, 300))
    X = HopfieldModel(zeta, strengths=strengths).sample(5000, random_state=1)
    spins = as_spins(X)
    blocks, judge = Blocks(spins), Judge(spins)
    strong = of_one_strength(judge, zeta[:1].astype(np.float32)).fit
    assert not leaves_only_noise(blocks, strong, spectrum(blocks, rng))
    assert residual_of(blocks, strong, rng).n_signal == 3
    every = refit(judge, zeta.astype(np.float32), strengths, np.zeros(300), Parameters())
    assert leaves_only_noise(blocks, every, spectrum(blocks, rng))


def test_repulsive_patterns_make_flat_directions():
    rng = np.random.default_rng(0)
    zeta = rng.choice([-1, 1], size=(3, 100))
    for strengths, flat in (
        ((0.8, 0.8, -3.0), True),
        ((0.8, 0.8, 0.8), False),
        ((2.0,) * 3, False),
    ):
        model = HopfieldModel(zeta, strengths=np.array(strengths))
        blocks = Blocks(as_spins(model.sample(3000, random_state=1)))
        whole = spectrum(blocks, rng)
        assert has_flat(blocks, whole) == flat, strengths


def test_the_patterns_of_a_model_are_no_flat_directions():
    """Residuals vary little along patterns that spins follow, and these are in the model."""
    rng = np.random.default_rng(0)
    zeta = rng.choice([-1, 1], size=(6, 200)).astype(np.float32)
    strengths = np.array([1.3] * 5 + [-3.0])
    X = HopfieldModel(zeta, strengths=strengths).sample(2000, random_state=1)
    blocks, judge = Blocks(as_spins(X)), Judge(as_spins(X))
    found = []
    for n in (5, 6):
        fit = refit(judge, zeta[:n], strengths[:n], np.zeros(200), Parameters())
        left, variance = unexplained(blocks, fit)
        assert len(flat_directions(left, variance, zeta[:0])) > 1  # as if none were in the model
        found.append(flat_directions(left, variance, fit.Z))
    assert [len(flat) for flat in found] == [1, 0]
    assert abs(found[0][0] @ zeta[5]) / np.sqrt(200) > 0.7

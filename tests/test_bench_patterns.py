"""What the benchmarks of recovery measure with: peers, matching, checks. No fit of ours."""

import itertools
import json

import numpy as np
import pytest
from benchmarks import fits, nulls, real, real_peers, recovery, sensitivity, structure
from benchmarks.ours import counts, spread, support


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def enumerated_score(mixture, X):
    """Mean log P(s_i | rest) with missing entries summed over, by adding up whole states."""
    states = np.array(list(itertools.product([-1, 1], repeat=X.shape[1])))
    p = np.exp(mixture.log_joint(states)).sum(axis=1)
    assert p.sum() == pytest.approx(1)
    total = 0.0
    for row in X:
        for i in np.flatnonzero(row):
            rest = row.copy()
            rest[i] = 0
            agree = ((states == rest) | (rest == 0)).all(axis=1)
            total += np.log(p[agree & (states[:, i] == row[i])].sum() / p[agree].sum())
    return total / np.count_nonzero(X)


def test_the_pseudo_likelihood_of_a_mixture_is_exact(rng):
    mixture = real_peers.Mixture(np.array([0.2, 0.5, 0.3]), rng.uniform(0.05, 0.95, (3, 5)))
    X = rng.choice([-1, 0, 1], size=(12, 5)).astype(np.int8)
    assert mixture.score(X) == pytest.approx(enumerated_score(mixture, X))


def test_em_finds_two_clusters_and_the_size_is_chosen_inside(rng):
    centres = np.array([[1] * 10, [-1] * 10])
    X = centres[rng.integers(2, size=150)] * np.where(rng.random((150, 10)) < 0.05, -1, 1)
    X = X.astype(np.int8)
    X[rng.random(X.shape) < 0.1] = 0
    peer = real_peers.mixture(X[:100], 0)
    assert peer.size in real_peers.MIXTURE_SIZES
    assert peer.model.score(X[100:]) > real_peers.site_means(X[:100]).score(X[100:]) + 0.3


@pytest.mark.parametrize("name", ["pairwise", "regressions"])
def test_couplings_are_symmetric_only_where_they_are_said_to_be(name, rng):
    X = rng.choice([-1, 1], size=(80, 6)).astype(np.int8)
    X[:, 1] = X[:, 0] * np.where(rng.random(80) < 0.1, -1, 1)
    peer = real_peers.PEERS[name](X, 0)
    J = peer.model.J
    assert np.allclose(J, J.T, atol=1e-6) == (name == "pairwise")
    assert not J.diagonal().any()
    assert peer.regularization in real_peers.REGULARIZATIONS
    assert peer.model.score(X) > real_peers.site_means(X).score(X)


def test_inner_splits_part_the_samples(rng):
    few, many = real_peers.inner_splits(50, rng), real_peers.inner_splits(5000, rng)
    assert (len(few), len(many)) == (5, 1)
    for fitted, held_out in (*few, *many):
        assert not set(fitted) & set(held_out)
    assert set(np.concatenate([held_out for _, held_out in few])) == set(range(50))


def test_scores_are_kept_and_not_measured_again(tmp_path, rng):
    np.savez(tmp_path / "toy.npz", X=rng.choice([-1, 1], size=(30, 4)).astype(np.int8))
    path = tmp_path / "scores.json"
    store = real.Store(path)
    store.add(real.measure("toy", tmp_path, 1, "site means"))
    again = real.Store(path)
    assert again.scores == store.scores
    (tmp_path / "toy.npz").unlink()
    again.fill([("toy", 1, "site means")], tmp_path, again=False)  # reads no data
    assert json.loads(path.read_text())[0]["method"] == "site means"


def test_the_summary_names_the_sets_that_fall_short():
    def one(name, method, score):
        return {"set": name, "seed": 0, "method": method, "score": score, "seconds": 1.0} | {
            "size": 2,
            "regularization": None,
        }

    scores = [
        *(one("a", m, -0.5) for m in (real.OURS, *real_peers.PEERS)),
        one("b", real.OURS, -0.5),
        *(one("b", m, -0.4) for m in real_peers.PEERS),
    ]
    mixture, *_, means = real.summary(scores, ["a", "b"])
    assert mixture == "at least the mixture - 0.005: 1 of 2 sets (not: b)"
    assert means.endswith("1 of 2 sets (not: b)")
    assert real.table(scores, ["a", "b"])[0][real.OURS] == "-0.500"


def test_patterns_are_matched_up_to_sign_and_order():
    truth = np.array([[1, -1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]])
    result = support(-truth[[1, 0]], truth, np.array([3.0, 2.0]))
    assert result.overlap.tolist() == [1, 1, 0]
    assert result.recall.tolist() == [1, 1, 0]
    assert result.strength[:2].tolist() == [2.0, 3.0]
    assert np.isnan(result.strength[2])
    assert support(truth[:0], truth).means == (0, 0, 0)


def test_precision_and_recall_of_assemblies():
    case = structure.Assemblies(30, 2, 6, n_bins=4000)
    X, members = structure.spikes(case, 0)
    assert members.sum(axis=1).tolist() == [6, 6]
    assert not (members[0] & members[1]).any()
    up = (X > 0).mean(axis=0)
    assert up[~members.any(axis=0)].mean() == pytest.approx(0.02, abs=0.003)
    assert up[members.any(axis=0)].mean() == pytest.approx(0.02 + 0.98 * 0.008, abs=0.003)
    patterns = np.vstack([members[0], np.ones(30)]).astype(np.int8)
    quality = structure.precision_recall(patterns, members)
    np.testing.assert_allclose(quality, [[1, 1], [0.2, 1]])
    assert not structure.precision_recall(patterns[:0], members).any()


def test_the_leading_signs_are_the_two_groups(rng):
    label = np.repeat([1, -1], 20)
    X = np.where(rng.random((200, 1)) < 0.5, label, 1)
    X = (X * np.where(rng.random(X.shape) < 0.1, -1, 1)).astype(np.int8)
    assert structure.best_overlap(structure.leading_signs(X)[None], label) == 1


@pytest.mark.parametrize("kind", fits.KINDS)
def test_random_data_of_every_kind(kind):
    for seed in range(3):
        X = fits.draw(kind, seed)
        np.testing.assert_array_equal(X, fits.draw(kind, seed))
        assert X.dtype == np.int8
        assert np.isin(X, [-1, 0, 1]).all()
        assert kind == "missing" or X.all()
        assert X.any(axis=0).all()
        assert X.any(axis=1).all()


def test_independent_spins_and_duplicates():
    X = np.array([[1, 1], [1, -1], [1, -1], [1, 0]], dtype=np.int8)
    expected = (np.log(1 / 3) + 2 * np.log(2 / 3)) / 7
    assert fits.independent_score(X) == pytest.approx(expected)
    assert fits.independent_score(X, prior=1) < expected
    assert fits.largest_cosine(np.array([[1, 1, 0], [-1, -1, 0]])) == pytest.approx(1)
    assert fits.largest_cosine(np.zeros((0, 3))) == 0


def test_means_of_the_nulls():
    for means, expected in (("0.1", 0.1), ("uniform(0.02, 0.98)", 0.5)):
        X = nulls.draw(means, 500, 300, 0)
        assert (X > 0).mean() == pytest.approx(expected, abs=0.05)


def test_constants_are_moved():
    assert sensitivity.moved(3, 0.8) == 2
    assert sensitivity.moved((1, 10), 1.2) == (2, 12)
    assert sensitivity.moved(0.95, 1.2) < 1
    assert sensitivity.moved(2.0, 0.8) == 1.6


def test_names_of_cases_and_numbers_in_tables():
    assert recovery.named(["β=2 P=20 M=200"]) == ["β=2 P=20 M=200"]
    assert len(recovery.named(["P=1 ", "β=0.8 P=1 M=125"])) == 7
    with pytest.raises(SystemExit, match="unknown case"):
        recovery.named(["β=17"])
    assert spread([1.0, 3.0], 1) == "2.0 ± 1.0"
    assert spread([np.nan]) == "–"
    assert (counts([2, 2]), counts([2, 3])) == ("2", "2, 3")

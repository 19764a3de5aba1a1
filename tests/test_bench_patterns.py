"""What the benchmarks of recovery measure with: peers, matching, checks. No fit of ours."""

import itertools
import json

import numpy as np
import pytest
from benchmarks import fits, nulls, real, real_others, real_peers, recovery, sensitivity, structure
from benchmarks.ours import counts, spread, support
from benchmarks.peers import PeerError
from benchmarks.real_tables import OURS, TABLES
from scipy.special import logsumexp


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


@pytest.mark.parametrize("name", ["mixture", "pairwise", "regressions", "site means"])
def test_what_a_peer_has_chosen_is_not_chosen_again(name, rng, monkeypatch):
    X = rng.choice([-1, 1], size=(80, 6)).astype(np.int8)
    X[:, 1] = X[:, 0]
    before = real_peers.PEERS[name](X, 0)
    monkeypatch.setattr(real_peers, "chosen", None)
    known = real_peers.Choice(before.size, before.regularization)
    again = real_peers.PEERS[name](X, 0, known=known)
    assert again[1:] == before[1:]
    assert again.model.score(X) == pytest.approx(before.model.score(X), abs=0.05)


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


def filled_exactly(log_weight, X):
    """Return P(+1 | observed entries) of every missing entry, by enumeration."""
    states = np.array(list(itertools.product([-1, 1], repeat=X.shape[1])), dtype=np.int8)
    weight = np.exp([log_weight(s) for s in states])
    p = np.full(X.shape, np.nan)
    for a, row in enumerate(X):
        agree = weight * ((states == row) | (row == 0)).all(axis=1)
        p[a] = agree @ (states > 0) / agree.sum()
    return p


def test_gaps_are_filled_as_the_law_says(rng):
    X = rng.choice([-1, 0, 1], size=(12, 5)).astype(np.int8)
    gaps = X == 0
    mixture = real_peers.Mixture(np.array([0.2, 0.5, 0.3]), rng.uniform(0.05, 0.95, (3, 5)))
    exact = filled_exactly(lambda s: logsumexp(mixture.log_joint(s[None])), X)
    np.testing.assert_allclose(mixture.fill(X, 0)[gaps], exact[gaps])
    J = rng.normal(size=(5, 5)) / 2
    J = np.triu(J, 1) + np.triu(J, 1).T
    couplings = real_peers.Couplings(J, rng.normal(size=5) / 2)
    exact = filled_exactly(lambda s: s @ J @ s / 2 + couplings.b @ s, X)
    np.testing.assert_allclose(couplings.fill(X, 0)[gaps], exact[gaps], atol=0.05)
    W, b, c = rng.normal(size=(3, 5)), rng.normal(size=5), rng.normal(size=3)
    machine = real_others.Machine(W, b, c, np.full(5, 0.5))

    def free(s):
        v = (s + 1) / 2
        return b @ v + np.logaddexp(0, c + W @ v).sum()

    exact = filled_exactly(free, X)
    np.testing.assert_allclose(machine.fill(X, 0)[gaps], exact[gaps], atol=0.12)
    whole = np.where(gaps, 1, X).astype(np.int8)
    scores = [np.where(np.arange(5) == i, 0, whole).astype(np.int8) for i in range(5)]
    each = [filled_exactly(free, one)[:, i] for i, one in enumerate(scores)]
    log_p = [np.log(np.where(whole[:, i] > 0, p, 1 - p)).mean() for i, p in enumerate(each)]
    assert machine.score(whole) == pytest.approx(np.mean(log_p))


def test_clusters_do_not_look_at_the_entry_they_predict(rng):
    X = rng.choice([-1, 0, 1], size=(9, 6)).astype(np.int8)
    clusters = real_others.fit_clusters(rng.choice([-1, 1], size=(40, 6)).astype(np.int8), 3, 0)
    total = []
    for row in X:
        for i in np.flatnonzero(row):
            rest = np.where(np.arange(6) == i, 0, row).astype(np.int8)
            p = clusters.fill(rest[None], 0)[0, i]
            total.append(np.log(p if row[i] > 0 else 1 - p))
    assert clusters.score(X) == pytest.approx(np.mean(total))


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("peer", [real_others.k_means, real_others.neighbours])
def test_what_users_would_pick_predicts_two_clusters(peer, rng, monkeypatch):
    monkeypatch.setattr(real_others, "MIXTURE_SIZES", (2, 3))
    centres = np.array([[1] * 10, [-1] * 10])
    X = centres[rng.integers(2, size=150)] * np.where(rng.random((150, 10)) < 0.05, -1, 1)
    X = X.astype(np.int8)
    fitted = peer(X[:100], 0)
    shown, hidden = real_others.hide(X[100:], 0.3, 0)
    p = fitted.model.fill(shown, 0)[hidden]
    assert -np.log(np.where(X[100:][hidden] > 0, p, 1 - p)).mean() < 0.3
    assert 0.2 < hidden.mean() < 0.4
    assert np.array_equal(shown != 0, ~hidden)


def test_plain_files_are_read(tmp_path, rng):
    X = rng.choice([-1, 1], size=(30, 4)).astype(np.int8)
    X[3, 1] = 0
    np.savez(tmp_path / "signs.npz", X=X, label=np.arange(30) % 3)
    np.savez(tmp_path / "plain.npz", answers=np.where(X == 0, np.nan, X > 0), weights=np.ones(5))
    np.savez(tmp_path / "two.npz", a=X, b=X)
    for name in ("signs", "plain"):
        np.testing.assert_array_equal(real.samples(name, tmp_path).X, X)
    assert real.samples("signs", tmp_path).labels.tolist()[:4] == [0, 1, 2, 0]
    assert real.samples("plain", tmp_path).labels is None
    np.testing.assert_array_equal(real.samples("signs, transposed", tmp_path).X, X.T)
    with pytest.raises(ValueError, match=r"two\.npz: name the samples X"):
        real.samples("two", tmp_path)
    assert real.sets_of(tmp_path) == ("digits", "plain", "signs", "two")


def test_scores_are_kept_and_not_measured_again(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(real_others, "MIXTURE_SIZES", (2, 3))
    X = rng.choice([-1, 1], size=(30, 4)).astype(np.int8)
    np.savez(tmp_path / "toy.npz", X=X, label=X[:, 0])
    path = tmp_path / "scores.json"
    store = real.Store(path)
    score = real.measure("toy", tmp_path, 1, "site means")
    assert {"score", "loss_10", "accuracy_30", "bins_10", "seconds", "megabytes"} <= set(score)
    assert score["loss_30"] == pytest.approx(-score["score"], abs=0.1)
    grouped = real.measure("toy", tmp_path, 1, "k-means")
    assert -1 <= grouped["agreement"] <= 1
    store.add(score)
    again = real.Store(path)
    assert again.scores == store.scores
    (tmp_path / "toy.npz").unlink()
    again.fill([("toy", 1, "site means")], tmp_path, again=False)  # reads no data
    assert json.loads(path.read_text())[0]["method"] == "site means"
    assert not real.Store(path)._has(("toy", 2, "site means"))


def test_a_peer_that_cannot_be_installed_is_an_entry(tmp_path, rng, monkeypatch):
    np.savez(tmp_path / "toy.npz", X=rng.choice([-1, 1], size=(30, 4)).astype(np.int8))

    def refused(name):
        raise PeerError("not installed: no registry")

    monkeypatch.setattr(real_others, "python_of", refused)
    for method in ("StepMix", "logisticpca"):
        score = real.measure("toy", tmp_path, 1, method)
        assert score["error"] == "not installed: no registry"
        assert "score" not in score


def test_the_tables_name_the_sets_that_are_lost():
    def one(name, method, score):
        bins = [[0] * 9 + [10], [0] * 9 + [9.5], [0] * 9 + [9]]
        filled = {"loss_10": -score, "accuracy_10": 0.9, "bins_10": bins}
        return {"set": name, "seed": 0, "method": method, "score": score, **filled}

    scores = [
        *(one("a", method, -0.5) for method in (OURS, "mixture", "pairwise")),
        one("b", OURS, -0.5),
        *(one("b", method, -0.42) for method in ("mixture", "pairwise")),
        {"set": "b", "seed": 0, "method": "StepMix", "error": "not installed"},
    ]
    told = "Ours is the best or within 0.01 of the best on 1 of 2 sets; it loses on b (mixture, by "
    assert TABLES["real"].summary(scores, ["a", "b"]) == (
        f"{told}0.080). At least the mixture - 0.005: 1 of 2 sets; within 0.02 of pairwise: 1 of 2 "
        "sets; not below the site means: 0 of 0 sets."
    )
    line = TABLES["real-imputation"].summary(scores, ["a", "b"])
    assert "calibration error of ours on a set, 10 % hidden: 0.050 (a, where" in line
    assert line.endswith("would give 0.055).")  # √(2 · 0.95 · 0.05 / 10π)
    rows = TABLES["real-imputation"].rows(scores, ["a", "b"])
    assert [row["method"] for row in rows if row["data"] == "b"] == ["mixture", "pairwise", OURS]
    assert rows[0]["calibration 10"] == "0.050"
    assert TABLES["real-labels"].summary(scores, ["a", "b"]) == ""


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


def test_archived_trials_are_run_again_and_adopted_if_they_agree(tmp_path, capsys):
    from benchmarks import archive

    from dualtap.experiments import load
    from dualtap.experiments.archive import Archive, write_archive
    from dualtap.experiments.experiment import Results, Row, Task
    from dualtap.experiments.versions import code_version

    experiment = load("theory1")
    parameters, _ = experiment.points(False)[0]
    task = Task("theory1", "", parameters, 0)
    results = {
        name: value
        for name, value in experiment.trial(parameters, task.seed).items()
        if isinstance(value, int | float | str)
    }

    def archived(results):
        row = Row(parameters, 0, task.seed, results, None, 0.1, "0.1.0")
        write_archive(tmp_path, {"theory1": ("c0", Results([row]))}, {"rule": "mark"})
        archive.run(["--results", str(tmp_path), "--adopt"])
        return Archive(tmp_path).made["theory1"].code

    assert archived(results) == code_version(experiment.trial)
    assert "| theory1 | 1 | 1 | 1 | 1 | changed since |" in capsys.readouterr().out
    name = next(key for key, value in results.items() if isinstance(value, float))
    assert archived({**results, name: results[name] + 0.01}) == "c0"
    assert Archive(tmp_path).rules == {"rule": "mark"}
    timed = Row(parameters, 0, task.seed, {"error": 1.0, "fit_seconds": 2.0}, None, 0.1, "")
    assert archive.agrees(timed, {"error": 1.0, "fit_seconds": 7.0})  # times are not results
    assert not archive.agrees(timed, {"error": 1.1, "fit_seconds": 2.0})


def test_time_of_all_trials_is_extrapolated():
    from benchmarks.archive import extrapolated, systematic

    from dualtap.experiments.experiment import Row

    assert extrapolated([2.0, 3.0, 7.0], 3) == (12.0, 0.0)  # all were run
    seconds = np.repeat([0.1, 1.0, 5.0, 0.3], 50) * np.random.default_rng(0).gamma(4, 1 / 4, 200)
    rows = [Row({}, k, 0, {}, None, second, "") for k, second in enumerate(seconds)]
    found = []
    for seed in range(200):
        some = systematic(rows, 37, seed)
        assert len({row.index for row in some}) == 37
        found.append(extrapolated([row.seconds for row in some], len(rows)))
    totals, errors = np.transpose(found)
    assert totals.mean() == pytest.approx(seconds.sum(), rel=0.05)
    assert 0.6 < errors.mean() / totals.std() < 2

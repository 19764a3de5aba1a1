"""The whole recovery: what every fit must keep to, and what it finds."""

import numpy as np
import pytest
from benchmarks import fits
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dualtap import HopfieldModel, HopfieldPatterns, as_spins
from dualtap.metrics import match
from dualtap.recovery import calibration, loop
from dualtap.recovery.independent import null
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import stated
from dualtap.recovery.refit import at
from dualtap.recovery.steps import steps
from dualtap.spins.storage import spread


def teacher(n_spins, n_patterns, beta, n_samples, seed=0, **options):
    model = HopfieldModel.random(n_spins, n_patterns, beta=beta, random_state=seed, **options)
    return model, model.sample(n_samples, random_state=seed + 100)


def fitted(X, n_patterns=None, seed=0):
    return HopfieldPatterns(n_patterns, random_state=seed).fit(X)


def smallest_overlap(model, patterns):
    return match(model.patterns_, patterns).overlaps.min()


def independent_score(X):
    """Mean log-likelihood per observed entry of independent spins, each with its mean."""
    X = np.array(X, dtype=float)
    up, n = (X == 1).sum(axis=0), (~np.isnan(X)).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = up / n
        terms = up * np.log(np.where(up, p, 1)) + (n - up) * np.log(np.where(n - up, 1 - p, 1))
    return np.nan_to_num(terms).sum() / n.sum()


# --- the trace ---


@pytest.fixture(scope="module")
def digits():
    sklearn = pytest.importorskip("sklearn.datasets")
    return np.where(sklearn.load_digits().data[:600] > 7, 1, -1).astype(np.int8)


def test_the_trace_tells_what_was_accepted(digits):
    seen = []
    spins = as_spins(digits)
    found = loop.recover(spins, None, np.random.default_rng(0), watch=seen.append)
    trace = list(steps(found.search))
    assert [info._asdict() for info in seen] == trace
    assert [step["step"] for step in trace] == list(range(len(trace)))
    assert all((step["gain"] > 0) == step["accepted"] for step in trace if abs(step["gain"]) > 1)
    best = null(Judge(spins)).objective
    for step in trace:
        if step["accepted"]:
            assert step["gain"] > 0
            best = min(best, step["objective"])
    assert found.state.objective <= best + 0.01 * abs(best)
    assert list(trace[0]) == [
        *("step", "move", "source", "n_patterns", "objective", "gain", "accepted")
    ]


@pytest.mark.parametrize("kind", ["teacher", "digits"])
def test_the_same_seed_gives_the_same_answer(kind, digits):
    X = digits if kind == "digits" else teacher(200, 4, 0.8, 600)[1]
    one, other = fitted(X, seed=3), fitted(X, seed=3)
    for name in ("patterns_", "strengths_", "fields_", "magnetizations_", "labels_", "means_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.trace_ == other.trace_
    assert one.objective_ == other.objective_


# --- a given number ---


@pytest.mark.parametrize(
    "kind",
    [
        "teacher",
        "digits",
    ],
)
def test_the_training_score_does_not_fall_with_the_number_of_patterns(kind, digits):
    X = digits if kind == "digits" else teacher(100, 4, 1.5, 200)[1]
    scores = []
    for n_patterns in (1, 3, 6):
        model = fitted(X, n_patterns)
        assert model.n_patterns_ == n_patterns
        scores.append(model.score(X))
    assert (np.diff(scores) > -1e-3).all(), scores


def test_more_patterns_than_the_data_allow():
    X = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, 1, -1, 1]], np.int8)
    model = fitted(X, 50)
    assert model.n_patterns_ < 50
    assert "50 requested" in model.reason_
    assert np.isfinite(model.score(X))


# --- phases ---


@pytest.mark.parametrize(
    ("n_patterns", "beta", "n_samples", "least"),
    [(5, 2.0, 60, 0.95), (4, 1.3, 300, 0.95), (3, 0.8, 1500, 0.9), (3, 0.95, 800, 0.9)],
)
@pytest.mark.parametrize("given", [False, True])
def test_patterns_of_a_teacher(n_patterns, beta, n_samples, least, given):
    model, X = teacher(300, n_patterns, beta, n_samples)
    found = fitted(X, n_patterns if given else None)
    assert found.n_patterns_ == n_patterns
    assert smallest_overlap(found, model.patterns) > least
    assert found.beta_ == pytest.approx(beta, rel=0.1)
    assert given or not found.fields_.any()  # of given P the likeliest model is returned


@pytest.mark.parametrize("missing", [0.2, 0.4])
def test_missing_entries(missing):
    model, X = teacher(300, 3, 2.0, 90)
    X = np.where(np.random.default_rng(0).random(X.shape) < missing, np.nan, X)
    found = fitted(X)
    assert found.n_patterns_ == 3
    assert smallest_overlap(found, model.patterns) > 0.95


def test_sparse_assemblies():
    rng = np.random.default_rng(0)
    X = rng.random((10_000, 60)) < 0.02
    for k in range(3):
        active = rng.random(10_000) < 0.02
        X[:, 8 * k : 8 * k + 8] |= active[:, None] & (rng.random((10_000, 8)) < 0.8)
    found = fitted(X)
    supports = [set(np.flatnonzero(z)) for z in found.patterns_]
    for k in range(3):
        assert set(range(8 * k, 8 * k + 8)) in supports


def test_scales_of_a_questionnaire_are_patterns():
    """Each by one: mixtures of scales describe the answers as briefly, and read worse."""
    rng = np.random.default_rng(2)
    keys = np.repeat(np.eye(4), 12, axis=1) * rng.choice([-1, 1], size=48)
    loadings = keys * rng.uniform(0.4, 0.9, 48) + (keys == 0) * rng.normal(0, 0.15, (4, 48))
    x = rng.normal(size=(3000, 4)) @ loadings + 0.7 * rng.logistic(size=(3000, 48))
    Z = fitted(np.where(x > 0, 1, -1)).patterns_.astype(float)
    cosine = np.abs(Z @ keys.T) / np.sqrt(np.outer((Z != 0).sum(axis=1), np.full(4, 12)))
    assert (cosine.max(axis=0) > 0.8).all()


def test_two_groups_are_told_apart_by_one_pattern():
    """Not each described by its own: what all have in common is a pattern, too."""
    rng = np.random.default_rng(0)
    side = np.repeat([-1, 1], [18, 22])
    common, apart = rng.normal(0, 1, (500, 1)), rng.normal(0, 0.7, (500, 1))
    x = common + apart * side + 0.7 * rng.logistic(size=(500, 40))
    Z = fitted(np.where(x > 0, 1, -1)).patterns_
    assert np.abs(Z @ side).max() == 40


@pytest.mark.parametrize("missing", [0.3, 0.8])
def test_entries_do_not_explain_themselves_through_gaps(missing):
    """The score of samples with gaps is what exact conditional probabilities give."""
    rng = np.random.default_rng(0)
    ideal = rng.normal(size=(2000, 2)) + 1.5 * np.outer(rng.choice([-1, 1], 2000), [1, 0])
    x = ideal @ rng.normal(size=(2, 45)) + rng.normal(size=45) + rng.logistic(size=(2000, 45))
    X = np.where(rng.random(x.shape) < missing, np.nan, np.where(x > 0, 1, -1))
    train, test = X[:1700], X[1700:]
    model, seen = fitted(train), ~np.isnan(test)
    p = model.predict_entries(test)
    exact = np.log(np.where(test > 0, p, 1 - p)[seen]).mean()
    means = (1 + np.nanmean(train, axis=0)) / 2
    independent = np.log(np.where(test > 0, means, 1 - means)[seen]).mean()
    assert model.score(test) == pytest.approx(exact, abs=0.02)  # 0.16 off before
    assert exact > independent + 0.05


def test_a_weak_sparse_pattern_beside_strong_ones():
    """Its direction is below the noise edge; students find it among the entries."""
    rng = np.random.default_rng(1)
    zeta = rng.choice([-1, 1], size=(6, 120)) * (rng.random((6, 120)) < 0.25)
    X = HopfieldModel(zeta, strengths=np.linspace(1.2, 3, 6)).sample(6000, random_state=1)
    found = fitted(X)
    size = np.sqrt(np.outer((found.patterns_ != 0).sum(axis=1), (zeta != 0).sum(axis=1)))
    cosine = np.abs(found.patterns_.astype(float) @ zeta.T) / size
    assert found.n_patterns_ == 6
    best = cosine.max(axis=0)
    assert best[0] > 0.5  # 0.15 if there is none for it
    assert (best[1:] > 0.9).all()


@pytest.mark.parametrize(
    ("kind", "seed"), [("sparse", 10128), ("uneven teacher", 10496), ("uneven teacher", 10914)]
)
def test_a_short_description_is_not_below_independent_spins(kind, seed):
    """A pattern without fields may be shorter than a field per spin, and fit the samples worse."""
    X = fits.draw(kind, seed)
    up = ((X == 1).sum(axis=0) + 0.5) / (len(X) + 1)
    independent = np.where(X == 1, np.log(up), np.log(1 - up)).mean()
    assert fitted(X).score(X) >= independent - 1e-6


# --- independent spins ---

MEANS = {
    "uniform": lambda rng: rng.uniform(0.02, 0.98, 100),
    "0.02": lambda rng: 0.02,
    "0.1": lambda rng: 0.1,
    "0.3": lambda rng: 0.3,
    "0.5": lambda rng: 0.5,
    "0.9": lambda rng: 0.9,
    "beta": lambda rng: rng.beta(0.3, 0.3, 100),
}


@pytest.mark.parametrize("name", MEANS)
def test_independent_spins_have_no_pattern(name):
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.random((1000, 100)) < MEANS[name](rng)
        model = fitted(X)
        found.append(model.n_patterns_)
        assert "0 patterns" in model.reason_ or model.n_patterns_ or "no pattern" in model.reason_
        signs = np.where(X, 1, -1)
        assert model.score(X) >= independent_score(signs) - 1e-3
    assert found.count(0) >= 3


# --- any data ---


def small(kind, rng, n_samples, n_spins):
    """Return a small matrix of a kind, ±1 and NaN."""
    X = np.where(rng.random((n_samples, n_spins)) < rng.uniform(0, 1, n_spins), 1.0, -1.0)
    if kind == "fair":
        X = rng.choice([-1.0, 1.0], size=X.shape)
    elif kind == "one-hot":
        X = np.where(np.eye(n_spins)[rng.integers(n_spins, size=n_samples)], 1.0, -1.0)
    elif kind == "columns":
        X = X[:, rng.integers(n_spins, size=n_spins)] * rng.choice([-1, 1], size=n_spins)
    elif kind == "rows":
        X = X[rng.integers(min(n_samples, 3), size=n_samples)]
    elif kind == "equal":
        X = np.repeat(X[:1], n_samples, axis=0)
    elif kind == "constant":
        X[:, ::2] = 1
    elif kind == "missing":
        X[rng.random(X.shape) < 0.4] = np.nan
    elif kind == "empty":
        X[rng.random(X.shape) < 0.2] = np.nan
        X[rng.integers(n_samples)] = np.nan
        X[:, rng.integers(n_spins)] = np.nan
    elif kind == "states":
        zeta = rng.choice([-1.0, 1.0], size=(2, n_spins))
        X = zeta[rng.integers(2, size=n_samples)] * rng.choice([-1, 1], size=(n_samples, 1))
    return X


KINDS = (
    *("means", "fair", "one-hot", "columns", "rows", "equal", "constant", "missing", "empty"),
    "states",
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.sampled_from(KINDS),
    st.integers(1, 40),
    st.integers(2, 25),
    st.sampled_from([None, None, 1, 3]),
    st.integers(0, 2**32 - 1),
)
@example("one-hot", 30, 6, None, 0)
@example("equal", 1, 5, 3, 0)
@example("empty", 30, 12, None, 1)
@example("states", 20, 20, None, 2)
def test_any_data_give_a_sound_answer(kind, n_samples, n_spins, n_patterns, seed):
    X = small(kind, np.random.default_rng(seed), n_samples, n_spins)
    if np.isnan(X).all():
        with pytest.raises(ValueError, match="observed"):
            fitted(X, n_patterns)
        return
    model = fitted(X, n_patterns)
    Z = model.patterns_.astype(float)
    for value in (Z, model.magnetizations_, model.strengths_, model.fields_, model.means_):
        assert np.isfinite(value).all()
    assert np.isfinite(model.objective_)
    assert np.abs(model.magnetizations_).max(initial=0) <= 1
    assert (np.abs(Z).sum(axis=1) > 1).all()
    size = np.linalg.norm(Z, axis=1)
    alike = np.abs(Z @ Z.T) / np.outer(size, size)
    assert (alike[np.triu_indices(len(Z), 1)] <= 0.95).all()
    assert model.n_patterns_ <= (n_patterns or np.inf)
    empty = np.isnan(X).all(axis=1)
    assert (model.labels_[empty] == -1).all()
    assert np.isnan(model.score_samples(X))[empty].all()
    assert np.isfinite(model.score_samples(X)[~empty]).all()
    assert model.score(X) >= null_score(X) - 1e-3


def null_score(X):
    """Return the score of independent spins as they are fitted to the same data."""
    judge = Judge(as_spins(X[~np.isnan(X).all(axis=1)]))
    return null(judge).fit.L / judge.n_entries


def test_nothing_observed_is_an_error():
    with pytest.raises(ValueError, match="observed"):
        fitted(np.full((3, 4), np.nan))


# --- other models ---


def general(strengths, fields=0.0, support=1.0, n_samples=4000, n_spins=200, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.choice([-1, 1], size=(len(strengths), n_spins))
    Z = np.where(rng.random(Z.shape) < support, Z, 0)
    model = HopfieldModel(
        Z, fields=fields * rng.choice([-1.0, 1.0], size=n_spins), strengths=strengths
    )
    return model, model.sample(n_samples, random_state=seed + 1)


def overlaps(found, patterns):
    """Return the largest |cosine| of each pattern with one that was found."""
    a, b = patterns.astype(float), found.patterns_.astype(float)
    size = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    return (np.abs(a @ b.T) / size).max(axis=1)


def test_own_strengths_in_fields():
    strengths = np.linspace(0.6, 0.95, 5)
    model, X = general(strengths, fields=0.5)
    found = fitted(X)
    assert found.n_patterns_ == 5
    assert overlaps(found, model.patterns).min() > 0.9
    np.testing.assert_allclose(np.sort(found.strengths_), strengths, rtol=0.15)
    assert np.corrcoef(found.fields_, model.fields)[0, 1] > 0.95


def test_diluted_patterns():
    model, X = general([3.0] * 5, support=0.3)
    found = fitted(X)
    assert found.n_patterns_ == 5
    assert overlaps(found, model.patterns).min() > 0.9
    np.testing.assert_allclose(found.strengths_, 3.0, rtol=0.15)


def test_repulsive_patterns():
    model, X = general([0.8, 0.8, 0.8, -3.0, -3.0], n_samples=10_000)
    found = fitted(X)
    assert overlaps(found, model.patterns).min() > 0.9
    assert (found.strengths_ < 0).sum() == 2
    assert found.n_patterns_ == 5


def test_weak_patterns_beside_a_strong_one():
    strengths = np.array([1.3, 0.9, 0.85, 0.8])
    zeta = np.random.default_rng(1).choice([-1, 1], size=(4, 300))
    X = HopfieldModel(zeta, strengths=strengths).sample(6000, random_state=1)
    model = HopfieldPatterns(random_state=0).fit(X)
    assert model.n_patterns_ == 4
    found = match(model.patterns_, zeta)
    assert found.overlaps.min() > 0.95
    np.testing.assert_allclose(np.sort(model.strengths_), np.sort(strengths), rtol=0.1)


@pytest.mark.parametrize("kind", ["digits", "teacher"])
def test_the_seed_changes_nothing_that_is_found(kind, digits):
    X = digits if kind == "digits" else teacher(100, 4, 1.5, 200)[1]
    models = [HopfieldPatterns(random_state=seed).fit(X) for seed in (0, 1)]
    assert models[0].n_patterns_ == models[1].n_patterns_
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-3)


def test_models_are_compared_on_the_same_samples(monkeypatch):
    """By few rows a model may look shorter than a better one does by all of them."""
    monkeypatch.setattr(loop, "MOST_SPINS", 10)
    monkeypatch.setattr("dualtap.recovery.calibration.JUDGED_ENTRIES", 1)  # 256 samples
    zeta = np.random.default_rng(0).choice([-1, 1], size=(3, 100))
    X = HopfieldModel(zeta, strengths=np.array([1.3, 0.8, 0.8])).sample(4000, random_state=0)
    easy = np.argsort(-np.abs(X @ zeta[0]))  # those that the strong pattern explains best
    first = spread(4000, 256)
    order = np.empty(4000, dtype=np.int64)
    order[first] = easy[:256]
    order[np.setdiff1d(np.arange(4000), np.arange(4000)[first])] = easy[256:]
    found = loop.recover(as_spins(X[order]), None, np.random.default_rng(0))
    fit, judge = found.state.fit, found.search.judge
    again = stated(judge, at(judge, fit.Z, fit.g, fit.b, fit.parameters, fit.spread))
    assert again.objective == pytest.approx(found.state.objective, abs=1)
    assert len(fit.Z) >= 3


@pytest.mark.parametrize("seed", range(4))
def test_rare_spins_of_one_rate_are_no_pattern_where_few_rows_are_judged(monkeypatch, seed):
    """A pattern of all spins saves fields, which are not as good for rows that are not judged."""
    monkeypatch.setattr(calibration, "JUDGED_ENTRIES", 300 * 60)
    X = np.where(np.random.default_rng(seed).random((4000, 60)) < 0.05, 1, -1)
    assert fitted(X).n_patterns_ == 0


def test_draws_that_leave_the_model_are_not_reported(monkeypatch):
    """Means of bits have the signs of the patterns: of draws that went astray, nothing is kept."""
    X = HopfieldModel.random(200, 3, beta=1.5, random_state=0).sample(200, random_state=1)

    def astray(blocks, judge, state, rng, pools):
        wrong = np.roll(state.fit.Z, 1, axis=1)
        return 0.9 * wrong, wrong

    monkeypatch.setattr(loop, "magnetizations", astray)
    model = HopfieldPatterns(random_state=0).fit(X)
    assert model.n_patterns_ == 3
    assert (np.sign(model.magnetizations_) * model.patterns_ >= 0).all()
    assert np.abs(model.magnetizations_).mean() > 0.9


@pytest.mark.parametrize("seed", [3, 7])
def test_many_patterns_are_found_when_their_number_is_known(seed):
    """Where a space of P directions alone shows few of them, or none."""
    teacher = HopfieldModel.random(720, 60, beta=4.0, random_state=seed)
    X = teacher.sample(500, n_sweeps=20, random_state=seed + 1)
    found = HopfieldPatterns(60, random_state=0).fit(X).patterns_
    assert match(found, teacher.patterns).mean_overlap > 0.9


def test_draws_that_strayed_leave_no_surer_entries_than_halves_allow():
    model, X = teacher(60, 2, beta=1.5, n_samples=200)
    spins = as_spins(X)
    search = loop.Search(spins, loop.blocks_of(spins), Judge(spins))
    state = loop.freed(search.judge, loop.with_all(search.judge, model.patterns.astype(np.float32)))
    Z = state.fit.Z
    other = Z.copy()
    other[:, ::3] *= -1  # a half that says the opposite of every third entry
    search.pools.one.append(Z)
    search.pools.other.append(other)
    strayed = Z.copy()
    strayed[:, :30] *= -1
    kept, m = loop._at_means(search, state, strayed, strayed)
    assert kept is state
    assert (m[:, ::3] == 0).all()
    assert (np.abs(m) <= search.pools.reliability(Z) + 1e-6).all()
    assert np.abs(m).max() > 0.3


def test_draws_longer_than_their_entropy_allows_do_not_replace_a_model():
    model, X = teacher(200, 2, beta=0.8, n_samples=1000)
    spins = as_spins(X)
    search = loop.Search(spins, loop.blocks_of(spins), Judge(spins))
    state = loop.with_all(search.judge, model.patterns.astype(np.float32))
    strayed = state.fit.Z.copy()
    strayed[0, :3] *= -1  # and certain of it
    other = loop.with_all(search.judge, strayed)
    longer = other.objective - state.objective
    assert 10 < longer < 1e-3 * X.size  # little per entry, and far too much for three bits
    assert loop._at_means(search, state, strayed, strayed)[0] is state
    doubtful = np.where(strayed == state.fit.Z, 0.1, 0.01).astype(np.float32) * strayed
    assert loop._at_means(search, state, doubtful, strayed)[0].fit.Z[0, 0] == strayed[0, 0]

"""`HopfieldPatterns` and `DualTAP`: what they recover, memory, and scikit-learn conventions."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from dualtap import DualTAP, HopfieldModel, HopfieldPatterns, as_spins, metrics
from dualtap.fitted.nearest import Assignment
from dualtap.recovery.refit import fit_beta
from dualtap.theory import paramagnetic_limit
from teachers import data, smallest_overlap

SEEDS = [0, 1, 2]


@pytest.fixture(scope="module")
def small():
    """An easy case, fitted: five patterns of 300 spins."""
    teacher, X = data(300, 5, 2.0, 100)
    return teacher, X, HopfieldPatterns(random_state=0).fit(X)


# --- Defaults: β unknown, P unknown -------------------------------------------------------------


@pytest.mark.parametrize("beta", [1.5, 2.0, 3.0])
def test_everything_unknown(beta):
    teacher, X = data(1000, 5, beta, 200)
    model = HopfieldPatterns(random_state=0).fit(X)
    assert model.n_patterns_ == 5
    assert smallest_overlap(model, teacher) > 0.98
    assert model.beta_ == pytest.approx(beta, rel=0.05)
    assert model.beta_ == pytest.approx(fit_beta(as_spins(X), model.patterns_), rel=0.02)
    assert model.n_patterns is None  # parameters are left as they were


def test_defaults_on_the_papers_case():
    teacher, X = data(1000, 20, 2.0, 200)
    model = HopfieldPatterns(random_state=0).fit(X)
    assert model.n_patterns_ == 20
    assert smallest_overlap(model, teacher) > 0.97
    assert model.beta_ == pytest.approx(2.0, rel=0.05)


def test_patterns_where_samples_do_not_cluster():
    """β < 1: k-means and the published algorithm find none of these."""
    teacher, X = data(1000, 5, 0.8, 2000)
    model = HopfieldPatterns(random_state=0).fit(X)
    assert model.n_patterns_ == 5
    assert smallest_overlap(model, teacher) > 0.95
    assert model.beta_ == pytest.approx(0.8, rel=0.05)
    assert metrics.calibration(model.magnetizations_, teacher.patterns).error < 0.02
    assert "median overlap with the nearest pattern: 0." in model.summary()
    assert "samples per pattern: " in model.summary()


def test_patterns_in_mixed_states():
    teacher, X = data(1000, 10, 1.2, 2000)
    model = HopfieldPatterns(random_state=0).fit(X)
    assert model.n_patterns_ == 10
    assert smallest_overlap(model, teacher) > 0.9
    assert model.beta_ == pytest.approx(1.2, rel=0.1)


def test_many_samples_give_the_couplings_exactly():
    teacher, X = data(1000, 20, 2.0, 1000)
    model = HopfieldPatterns(random_state=0).fit(X)
    assert metrics.coupling_error(model.patterns_, teacher.patterns).relative == 0


def test_noise_is_not_made_into_patterns():
    X = np.random.default_rng(0).choice([-1, 1], size=(150, 250))
    model = HopfieldPatterns(random_state=0).fit(X)
    assert model.n_patterns_ == 0
    assert model.patterns_.shape == model.magnetizations_.shape == (0, 250)
    assert np.isnan(model.beta_)
    assert "of the noise edge: no pattern, or β below 0.56" in model.reason_
    assert model.summary() == f"no pattern: {model.reason_}"
    assert model.transform(X).shape == model.predict_proba(X).shape == (150, 0)
    assert set(model.predict(X)) == set(model.labels_) == {-1}
    assert -np.log(2) <= model.score(X) < 0.01 - np.log(2)  # of spins with their own means
    np.testing.assert_allclose(model.score_samples(X), -np.log(2), atol=0.02)
    assert model.strengths_.shape == (0,)
    np.testing.assert_allclose(model.sample(400, random_state=0).mean(), 0, atol=0.01)


def test_patterns_with_most_samples_come_first():
    teacher, _ = data(500, 4, 2.0, 10)
    start = np.repeat(teacher.patterns, [5, 60, 15, 30], axis=0)
    X = teacher.sample(110, start=start, random_state=1)
    model = HopfieldPatterns(random_state=0).fit(X)
    np.testing.assert_allclose(model.weights_, np.array([60, 30, 15, 5]) / 110)
    partner = metrics.match(model.patterns_, teacher.patterns).index
    np.testing.assert_array_equal(partner, [3, 0, 2, 1])


def test_fields_are_told_from_patterns():
    b = np.random.default_rng(3).uniform(-0.5, 0.5, size=1000)
    teacher = HopfieldModel.random(1000, 5, beta=2.0, random_state=0, fields=b)
    X = teacher.sample(400, random_state=1)
    model = HopfieldPatterns(random_state=0).fit(X)
    assert model.n_patterns_ == 5
    assert smallest_overlap(model, teacher) > 0.98
    assert np.corrcoef(model.fields_, b)[0, 1] > 0.8
    assert model.score(X) == pytest.approx(
        metrics.pseudo_likelihood(X, model.patterns_, model.beta_, model.fields_)
    )
    assert "fields" in model.summary()
    assert model.sample(5, random_state=2).shape == (5, 1000)


def test_probabilities_of_patterns(small):
    _, X, model = small
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(p.argmax(axis=1), model.predict(X))
    assert p.max(axis=1).min() > 0.99  # 300 spins leave no doubt
    # A sample halfway between two patterns on the sites where they differ belongs to both.
    a, b = model.patterns_[:2].astype(float)
    different = np.flatnonzero(a != b)
    between = a.copy()
    between[different[::2]] = b[different[::2]]
    half = model.predict_proba(between[None])[0]
    assert half[:2].sum() > 0.95
    np.testing.assert_allclose(model.predict_proba(-X), p)


def test_unlike_samples_score_low(small):
    _, X, model = small
    fair_spins = np.random.default_rng(0).choice([-1, 1], size=(50, 300))
    assert model.score_samples(fair_spins).max() < model.score_samples(X).min()
    assert model.score_samples(X).mean() == pytest.approx(model.score(X))


# --- One pattern --------------------------------------------------------------------------------


def one_pattern(beta, n_samples):
    """Sign overlap and soft overlap of five teachers with P = 1, N = 1000."""
    signs, soft = [], []
    for seed in range(5):
        teacher, X = data(1000, 1, beta, n_samples, seed)
        model = HopfieldPatterns(1, random_state=seed).fit(X)
        signs.append(metrics.match(model.patterns_, teacher.patterns).overlaps[0])
        soft.append(metrics.match(model.magnetizations_, teacher.patterns).overlaps[0])
    return np.array(signs), np.array(soft)


def test_one_pattern_in_the_paramagnet_reaches_the_bayes_limit():
    signs, soft = one_pattern(0.8, 1000)
    limit = paramagnetic_limit(0.8, 1.0)
    assert signs.mean() == pytest.approx(limit.sign, abs=0.05)
    assert soft.mean() == pytest.approx(limit.magnetization, abs=0.05)


def test_one_pattern_just_above_the_threshold():
    """M = 4 M_c, where random starts often end at m = 0: the spectral start does not."""
    signs, soft = one_pattern(0.8, 250)
    assert soft.min() > 0.25
    assert signs.mean() == pytest.approx(paramagnetic_limit(0.8, 0.25).sign, abs=0.1)


def test_one_pattern_below_the_threshold_is_not_made_up():
    """M = M_c / 2: nothing can be known, and the magnetizations say so."""
    threshold = 1000 * (1 / 0.8 - 1) ** 2
    _, soft = one_pattern(0.8, int(threshold / 2))
    assert soft.max() < 0.25


def test_one_sample_is_enough_in_the_retrieval_phase():
    signs, _ = one_pattern(2.0, 1)
    assert signs.mean() > 0.9


def test_equal_samples_and_nothing_known():
    """Means explain everything, and so does one pattern; with a number given it is that one."""
    for n_spins in (10, 16, 100):
        for n_samples in (1, 2, 8):
            X = np.tile(np.where(np.arange(n_spins) % 3, 1, -1), (n_samples, 1))
            blind = HopfieldPatterns(random_state=0).fit(X)
            assert blind.n_patterns_ <= 1
            assert blind.score(X) >= -np.log(2) - 1e-6
            model = HopfieldPatterns(1, random_state=0).fit(X)
            assert model.n_patterns_ == 1
            np.testing.assert_array_equal(np.abs(model.transform(X)), 1)


def test_only_the_published_algorithm_has_rounds(small):
    _, X, model = small
    assert not hasattr(model, "history_")
    assert not hasattr(model, "n_iter_")
    rounds = DualTAP(5, 2.0, random_state=0).fit(X)
    assert rounds.n_iter_ == rounds.history_.n_iter.max()
    assert (rounds.trace_, rounds.path_) == ([], None)
    assert rounds.reason_ == "5 were asked for"
    assert not rounds.fields_.any()
    np.testing.assert_array_equal(rounds.strengths_, np.full(5, 2.0))


# --- Symmetries and encodings -------------------------------------------------------------------


def test_gauge_transformed_data_give_gauge_transformed_patterns():
    teacher, X = data(1000, 10, 2.0, 100)
    xi = np.random.default_rng(5).choice(np.array([-1, 1], dtype=np.int8), size=1000)
    model = DualTAP(10, beta=2.0, random_state=0).fit(X * xi)
    assert metrics.match(model.patterns_, teacher.patterns * xi).overlaps.min() > 0.97
    assert metrics.match(model.patterns_, teacher.patterns).overlaps.max() < 0.3


def test_a_random_sign_for_every_sample_changes_nothing():
    """J = SᵀS/N does not see it, so neither may the result."""
    _, X = data(300, 5, 2.0, 100)
    flips = np.random.default_rng(5).choice(np.array([-1, 1], dtype=np.int8), size=(100, 1))
    options = {"start": "spectral", "damping": "auto", "random_state": 0}
    plain = DualTAP(5, 2.0, **options).fit(X)
    flipped = DualTAP(5, 2.0, **options).fit(X * flips)
    np.testing.assert_array_equal(flipped.patterns_, plain.patterns_)
    np.testing.assert_allclose(flipped.magnetizations_, plain.magnetizations_, atol=1e-4)
    np.testing.assert_array_equal(flipped.labels_, plain.labels_)


@pytest.mark.parametrize(
    "encode",
    [
        lambda X: (X + 1) // 2,
        lambda X: X > 0,
        lambda X: X.astype(np.float64),
        lambda X: X.tolist(),
        lambda X: pd.DataFrame((X + 1) // 2),
    ],
    ids=["0/1", "boolean", "float", "lists", "frame"],
)
def test_the_encoding_does_not_matter(small, encode):
    _, X, expected = small
    model = HopfieldPatterns(random_state=0).fit(encode(X))
    np.testing.assert_array_equal(model.magnetizations_, expected.magnetizations_)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.transform(encode(X)), expected.transform(X))
    assert model.score(encode(X)) == expected.score(X)


# --- Missing entries ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def incomplete():
    """30 % of the entries missing at M = 200, P = 5."""
    teacher, X = data(1000, 5, 2.0, 200)
    holes = np.random.default_rng(7).random(X.shape) < 0.3
    return teacher, np.where(holes, np.nan, X), holes


@pytest.mark.parametrize("options", [{"n_patterns": 5}, {}], ids=["given", "unknown"])
def test_missing_entries(incomplete, options):
    teacher, X, _ = incomplete
    model = HopfieldPatterns(random_state=0, **options).fit(X)
    assert model.n_patterns_ == 5
    assert smallest_overlap(model, teacher) > 0.95
    assert model.beta_ == pytest.approx(2.0, rel=0.05)


def test_zeros_for_missing_entries_are_as_good(incomplete):
    _, X, _ = incomplete
    spins = as_spins(np.nan_to_num(X), zero_is_missing=True)
    expected = HopfieldPatterns(random_state=0).fit(X)
    found = HopfieldPatterns(random_state=0).fit(spins)
    np.testing.assert_array_equal(found.magnetizations_, expected.magnetizations_)
    np.testing.assert_array_equal(found.transform(spins), expected.transform(X))
    assert found.n_features_in_ == 1000


def test_transform_averages_over_observed_entries(incomplete):
    _, X, holes = incomplete
    model = HopfieldPatterns(random_state=0).fit(X)
    found = model.transform(X)
    for a in (0, 17, 199):
        seen = ~holes[a]
        expected = (X[a, seen] * model.patterns_[:, seen]).mean(axis=1)
        np.testing.assert_allclose(found[a], expected, atol=1e-6)
    # A sample that agrees wherever it was seen has overlap one, however little was seen.
    sample = np.where(np.arange(1000) < 50, model.patterns_[2], np.nan)[None]
    assert model.transform(sample)[0, 2] == pytest.approx(1)
    assert model.predict(sample).tolist() == [2]


# --- Reproducibility ----------------------------------------------------------------------------


def test_same_random_state_same_result(small):
    _, X, expected = small
    model = HopfieldPatterns(random_state=0)
    for _ in range(2):  # a second fit starts afresh
        model.fit(X)
        np.testing.assert_array_equal(model.magnetizations_, expected.magnetizations_)
    other = DualTAP(5, beta=2.0, random_state=1).fit(X)
    another = DualTAP(5, beta=2.0, random_state=2).fit(X)
    assert not np.array_equal(other.magnetizations_, another.magnetizations_)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_are_accepted(small, make):
    _, X, _ = small
    for estimator in (HopfieldPatterns(), DualTAP(5, beta=2.0)):
        first = clone(estimator).set_params(random_state=make(4)).fit(X)
        second = clone(estimator).set_params(random_state=make(4)).fit(X)
        np.testing.assert_array_equal(first.magnetizations_, second.magnetizations_)


def test_the_number_of_threads_does_not_matter():
    _, X = data(1000, 10, 2.0, 100)
    models = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            models.append(DualTAP(10, beta=2.0, random_state=0).fit(X))
    one, two = models
    np.testing.assert_array_equal(one.patterns_, two.patterns_)
    np.testing.assert_allclose(one.magnetizations_, two.magnetizations_, atol=1e-3)


# --- Attributes and methods ---------------------------------------------------------------------


def test_fitted_attributes(small):
    teacher, _, model = small
    assert model.patterns_.shape == model.magnetizations_.shape == (5, 300)
    assert model.patterns_.dtype == np.int8
    assert set(np.unique(model.patterns_)) == {-1, 1}
    np.testing.assert_array_equal(model.patterns_, np.where(model.magnetizations_ < 0, -1, 1))
    assert np.abs(model.magnetizations_).max() <= 1
    assert model.n_patterns_ == 5
    assert model.n_features_in_ == 300
    assert not hasattr(model, "feature_names_in_")
    assert model.labels_.shape == (100,)
    assert model.weights_.shape == (5,)
    assert model.weights_.sum() == pytest.approx(1)
    np.testing.assert_allclose(model.weights_, [(model.labels_ == k).mean() for k in range(5)])
    # Chain a was started at pattern a mod P.
    partner = metrics.match(model.patterns_, teacher.patterns).index
    np.testing.assert_array_equal(model.labels_, partner[np.arange(100) % 5])


def test_transform_gives_overlaps(small):
    _, X, model = small
    found = model.transform(X)
    assert found.shape == (100, 5)
    np.testing.assert_allclose(found, X @ model.patterns_.T.astype(float) / 300, atol=1e-6)
    assert np.abs(model.transform(model.patterns_)).max() == 1
    np.testing.assert_allclose(np.diag(model.transform(-model.patterns_)), -1)


def test_predict_and_assign(small):
    _, X, model = small
    label, sign, overlap = model.assign(X)
    o = model.transform(X)
    np.testing.assert_array_equal(label, np.abs(o).argmax(axis=1))
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_array_equal(label, model.labels_)
    chosen = o[np.arange(100), label]
    np.testing.assert_array_equal(sign, np.sign(chosen))
    np.testing.assert_allclose(overlap, np.abs(chosen))
    flipped = model.assign(-X)
    np.testing.assert_array_equal(flipped.label, label)
    np.testing.assert_array_equal(flipped.sign, -sign)
    np.testing.assert_allclose(flipped.overlap, overlap)
    # The state that a sample was drawn near to.
    nearest = sign[:, None] * model.patterns_[label]
    assert (nearest == X).mean() > 0.95
    np.testing.assert_array_equal(HopfieldPatterns(random_state=0).fit_predict(X), label)


def test_score_is_the_pseudo_likelihood(small):
    teacher, X, model = small
    assert model.score(X) == metrics.pseudo_likelihood(X, model.patterns_, model.beta_)
    fresh = teacher.sample(50, random_state=99)
    assert model.score(fresh) > -0.25  # a fair coin: -0.69
    rng = np.random.default_rng(0)
    shuffled = rng.permuted(fresh, axis=0)  # every spin on its own: correlations gone
    assert model.score(shuffled) < model.score(fresh) - 0.1


def test_samples_of_the_recovered_model(small):
    _, _, model = small
    drawn = model.sample(20, random_state=3)
    assert drawn.shape == (20, 300)
    assert drawn.dtype == np.int8
    assert set(np.unique(drawn)) == {-1, 1}
    np.testing.assert_array_equal(drawn, model.sample(20, random_state=3))
    assert not np.array_equal(drawn, model.sample(20, random_state=4))
    assert model.assign(drawn).overlap.min() > 0.8
    assert model.sample().shape == (1, 300)


def test_progress_is_silent_off_a_terminal(capfd):
    _, X = data(300, 5, 2.0, 100)
    HopfieldPatterns(random_state=0, verbose=True).fit(X)
    out, err = capfd.readouterr()
    assert out == err == ""


# --- scikit-learn -------------------------------------------------------------------------------


def test_parameters_can_be_read_set_and_cloned(small):
    _, X, fitted = small
    assert HopfieldPatterns(3).get_params() == {
        "n_patterns": 3,
        "random_state": None,
        "verbose": False,
    }
    model = DualTAP(3, beta=1.5, n_students=7, n_steps=4, tol=1e-4, max_iter=50)
    params = model.get_params()
    assert params == {
        "n_patterns": 3,
        "beta": 1.5,
        "start": "random",
        "n_students": 7,
        "n_steps": 4,
        "scheme": "tap",
        "alpha": "samples",
        "damping": None,
        "tol": 1e-4,
        "max_iter": 50,
        "random_state": None,
        "verbose": False,
    }
    model.set_params(beta=2.5, damping=0.5)
    assert (model.beta, model.damping) == (2.5, 0.5)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "patterns_")
    np.testing.assert_array_equal(copy.fit(X).magnetizations_, fitted.magnetizations_)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(gamma=1)


@pytest.mark.parametrize(
    "method", ["transform", "predict", "predict_proba", "assign", "score", "score_samples"]
)
def test_wrong_number_of_features(small, method):
    _, X, model = small
    with pytest.raises(
        ValueError, match="X has 299 features, but HopfieldPatterns is expecting 300"
    ):
        getattr(model, method)(X[:, :299])


@pytest.mark.parametrize("method", ["transform", "predict", "assign", "score"])
def test_not_fitted(small, method):
    _, X, _ = small
    with pytest.raises(NotFittedError):
        getattr(HopfieldPatterns(), method)(X)


def test_nothing_to_sample_from_before_a_fit():
    with pytest.raises(NotFittedError):
        HopfieldPatterns().sample(3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_patterns", 0),
        ("n_patterns", 2.5),
        ("beta", 0.0),
        ("beta", -1.0),
        ("beta", "hot"),
        ("n_students", 0),
        ("n_steps", 0),
        ("start", "warm"),
        ("start", "samples"),
        ("damping", 1.0),
        ("damping", -0.1),
        ("damping", "none"),
        ("tol", 0.0),
        ("max_iter", 0),
        ("random_state", "seed"),
    ],
)
def test_bad_parameters_are_named(small, name, value):
    _, X, _ = small
    with pytest.raises(ValueError, match=f"The '{name}' parameter of DualTAP must be"):
        DualTAP(**{name: value}).fit(X)
    if hasattr(HopfieldPatterns(), name):
        with pytest.raises(ValueError, match=f"'{name}' parameter of HopfieldPatterns must be"):
            HopfieldPatterns(**{name: value}).fit(X)


def test_bad_data_are_refused():
    with pytest.raises(ValueError, match="third value"):
        HopfieldPatterns().fit([[1, 2, -1], [1, 1, -1]])
    with pytest.raises(ValueError, match="2D"):
        HopfieldPatterns().fit([1, -1, 1])


def test_in_a_pipeline(small):
    teacher, X, _ = small
    y = np.arange(100) % 5
    model = make_pipeline(HopfieldPatterns(random_state=0), LogisticRegression())
    assert model.fit(X, y).score(teacher.sample(50, random_state=9), np.arange(50) % 5) == 1
    overlaps = make_pipeline(HopfieldPatterns(random_state=0)).fit_transform(X)
    assert overlaps.shape == (100, 5)


def test_cross_validation_tells_the_right_number_of_patterns():
    _, X = data(100, 3, 2.0, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        right = cross_val_score(HopfieldPatterns(3, random_state=0), X, cv=3)
        wrong = cross_val_score(HopfieldPatterns(1, random_state=0), X, cv=3)
    assert right.shape == (3,)
    assert right.min() > -0.25
    assert right.min() > wrong.max()


# --- Memory -------------------------------------------------------------------------------------


def peak_of_fit(model, X):
    """Largest number of bytes that a fit holds at once, beyond what was there before."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        model.fit(X)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_nothing_of_size_n_squared_is_allocated():
    teacher, X = data(20_000, 3, 2.0, 60)
    model = HopfieldPatterns(random_state=0)
    assert peak_of_fit(model, X) < 200e6  # N² in single precision: 1.6 GB
    assert model.n_patterns_ == 3
    assert smallest_overlap(model, teacher) > 0.98


@pytest.mark.parametrize("start", ["random", "spectral"])
def test_memory_is_that_of_the_data_and_one_round_of_students(start):
    _, X = data(1000, 20, 2.0, 200)
    model = DualTAP(4, 2.0, n_steps=25, start=start, damping="auto", random_state=0)
    model.fit(X)  # imports and caches
    in_single_precision = X.size * 4
    students = 25 * 1000 * 4
    # A step of TAP holds seven arrays of students at its peak: states, fields, differences.
    # What patterns mean is read off the samples after the fit, in single precision.
    assert peak_of_fit(model, X) < 4 * in_single_precision + 8 * students


def test_order_and_signs_do_not_depend_on_how_patterns_were_found():
    label = np.array([2, 0, 1, 0, 1, 2])
    sign = np.array([-1, 1, -1, -1, -1, 1])
    order, signs = Assignment(label, sign, np.ones(6)).canonical(4)
    # As many samples each: by their first; the fourth pattern has none.
    np.testing.assert_array_equal(order, [2, 0, 1, 3])
    # Pattern 1 has its negative twice; 0 and 2 draw, and their first sample decides.
    np.testing.assert_array_equal(signs, [1, -1, -1, 1])
    renamed = Assignment(np.append(label, -1), np.append(sign, 1), np.ones(7)).renamed(order)
    np.testing.assert_array_equal(renamed.label, [0, 1, 2, 1, 2, 0, -1])
    none = Assignment(np.full(3, -1), np.ones(3), np.zeros(3))
    order, signs = none.canonical(0)
    assert len(order) == len(signs) == 0
    np.testing.assert_array_equal(none.renamed(order).label, [-1, -1, -1])


def test_patterns_come_in_the_order_of_their_samples():
    teacher = HopfieldModel.random(300, 4, beta=2.0, random_state=0)
    X = teacher.sample(40, random_state=1)
    for seed in range(3):
        model = HopfieldPatterns(random_state=seed).fit(X)
        np.testing.assert_array_equal(model.labels_[:4], np.arange(4))
        np.testing.assert_array_equal(model.patterns_, teacher.patterns)


def test_labels_are_those_of_predict_also_where_samples_lie_between_patterns():
    """Ties go to the first pattern, whose place is known only once the samples are counted."""
    teacher = HopfieldModel.random(20, 3, beta=1.5, random_state=3)
    X = teacher.sample(400, random_state=4)
    model = HopfieldPatterns(n_patterns=3, random_state=0).fit(X)
    overlaps = np.abs(X.astype(int) @ model.patterns_.T.astype(int))
    assert (np.sort(overlaps)[:, -1] == np.sort(overlaps)[:, -2]).any()
    np.testing.assert_array_equal(model.labels_, model.predict(X))

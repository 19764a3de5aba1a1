"""Data that show little or nothing: defined answers, and the same with empty rows and columns."""

import warnings

import numpy as np
import pytest

import dualtap as dt
from dualtap.fitted import checks
from dualtap.fitted.checks import check_learned, independent_score, without_duplicates
from dualtap.recovery import path, steps
from dualtap.spins import builder
from dualtap.spins.parts import observed_part

NAN = np.nan
TEACHER = dt.HopfieldModel.random(40, 2, beta=2.0, random_state=0)


def with_gaps(X, n_rows, n_columns, seed=0):
    """Return X among empty rows and columns, and where it is."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(X) + n_rows)[: len(X)])
    columns = np.sort(rng.permutation(X.shape[1] + n_columns)[: X.shape[1]])
    wide = np.full((len(X) + n_rows, X.shape[1] + n_columns), np.nan)
    wide[np.ix_(rows, columns)] = X
    return wide, rows, columns


@pytest.mark.parametrize(("packed", "n_rows", "n_columns"), [(False, 20, 12), (True, 20, 12)])
def test_empty_rows_and_columns_change_nothing(monkeypatch, packed, n_rows, n_columns):
    if packed:
        monkeypatch.setattr(builder, "DENSE", 0)
    X = TEACHER.sample(30, random_state=1)
    wide, rows, columns = with_gaps(X, n_rows, n_columns)
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    other = dt.HopfieldPatterns(random_state=0).fit(wide)
    assert other.patterns_.shape == (model.n_patterns_, 40 + n_columns)
    np.testing.assert_array_equal(other.patterns_[:, columns], model.patterns_)
    np.testing.assert_array_equal(other.magnetizations_[:, columns], model.magnetizations_)
    np.testing.assert_allclose(
        other.couplings()[np.ix_(columns, columns)], model.couplings(), rtol=1e-6
    )
    for learned in (other.patterns_, other.magnetizations_, other.fields_, other.means_):
        assert not np.delete(learned, columns, axis=-1).any()
    np.testing.assert_array_equal(other.labels_[rows], model.labels_)
    assert (np.delete(other.labels_, rows) == -1).all()
    assert other.objective_ == model.objective_


@pytest.mark.parametrize(("n_rows", "n_columns"), [(50, 0), (0, 10)])
def test_empty_rows_and_columns_are_no_patterns(n_rows, n_columns):
    X = np.random.default_rng(3).choice([-1, 1], size=(60, 40))
    wide, _, _ = with_gaps(X, n_rows, n_columns)
    assert dt.HopfieldPatterns(random_state=0).fit(wide).n_patterns_ == 0


def test_one_column_with_values_stays_among_the_others():
    part = observed_part(dt.as_spins([[1, None], [None, None], [0, None]]))
    assert part.spins.shape == (2, 2)
    assert part.columns.tolist() == [0, 1]


DEGENERATE = {
    "one row": np.ones((1, 8)),
    "two rows": np.array([[1] * 8, [-1] * 8]),
    "equal rows": np.tile([1, -1, 1, 1, -1], (9, 1)),
    "ones": np.ones((20, 6)),
    "ones with a single -1": np.where(np.arange(200).reshape(20, 10) == 57, -1, 1),
    "constant columns": np.c_[np.ones((30, 4)), np.tile([[1, -1], [-1, 1]], (15, 1))],
    "one value": np.array([[1, np.nan], [np.nan, np.nan]]),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("n_patterns", [None, 3])
def test_degenerate_data_have_a_model(tmp_path, name, n_patterns):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = dt.HopfieldPatterns(n_patterns, random_state=0).fit(DEGENERATE[name])
    assert np.isfinite(model.score(DEGENERATE[name]))
    dt.save(model, tmp_path / "m.npz")  # the file is checked as a whole
    back = dt.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(back.patterns_, model.patterns_)


@pytest.mark.parametrize("name", ["one row", "equal rows", "ones", "constant columns"])
def test_equal_values_have_a_finite_mean_and_field(name):
    X = DEGENERATE[name]
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    constant = np.ptp(X, axis=0) == 0
    means = X[0] * len(X) / (len(X) + 1)
    assert not model.n_patterns_ or name == "constant columns"
    np.testing.assert_allclose(model.means_[constant], means[constant], rtol=1e-6)
    if not model.n_patterns_:
        assert (np.abs(model.fields_) < 3).all()
        assert (model.fields_ * means >= 0).all()
        assert (model.labels_ == -1).all()


def test_nothing_observed_is_refused():
    with pytest.raises(ValueError, match="no observed entry: every value is missing"):
        dt.HopfieldPatterns().fit(np.full((3, 4), NAN))


@pytest.mark.parametrize("model", [dt.HopfieldPatterns(), dt.DualTAP(1), dt.HopfieldRBM(2)])
def test_nothing_observed_where_weights_are_is_refused(model):
    """It was a division by zero."""
    X = np.array([[1, 1, 0], [NAN, NAN, NAN], [0, 1, 1]])
    with pytest.raises(ValueError, match="X has no observed entry"):
        model.fit(X, sample_weight=[0, 3, 0])


def rows_repeated(rng):
    return np.repeat(rng.choice([-1, 1], size=(7, 50)), 5, axis=0)


def one_hot(rng):
    levels = rng.integers(4, size=(2000, 10))[:, :, None]
    return np.where(levels == np.arange(4), 1, -1).reshape(2000, 40)


def columns_twice(rng):
    return np.tile(rng.choice([-1, 1], size=(100, 12)), 2)


def fair_spins(rng):
    return rng.choice([-1, 1], size=(100, 30))


def a_single_one(rng):
    return DEGENERATE["ones with a single -1"]


@pytest.mark.parametrize(
    ("make", "n_patterns"),
    [
        (rows_repeated, None),
        (one_hot, None),
        (columns_twice, None),
        (fair_spins, 5),
        (a_single_one, 8),
    ],
)
def test_no_fit_is_below_independent_spins(make, n_patterns):
    """Each was, or ended in an error."""
    X = make(np.random.default_rng(0)).astype(np.int8)
    model = dt.HopfieldPatterns(n_patterns, random_state=0).fit(X)
    assert model.score(X) > independent_score(X, X.mean(axis=0)) - 0.01
    assert without_duplicates(model.patterns_)
    assert n_patterns in (None, model.n_patterns_)


# --- The check of what a fit returns


def learned():
    """Return what a sound fit has learned of 20 rows of 6 spins."""
    rows = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=(20, 6))
    return rows, {
        "patterns": np.array([[1, 1, -1, -1, 1, 0], [1, -1, 1, -1, 1, 1]], dtype=np.int8),
        "magnetizations": np.ones((2, 6), dtype=np.float32),
        "strengths": np.array([1.0, 0.5]),
        "fields": np.zeros(6),
        "means": np.zeros(6),
        "objective": np.array(80.0),
        "labels": np.zeros(20, dtype=np.int64),
        "weights": np.array([1.0, 0.0]),
        "typical_overlaps": np.array([0.4, 0.0]),
        "median_overlap": np.array(0.4),
        "training_scores": np.full(20, -0.69),
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strengths": np.array([1.0, np.nan])}, "strengths has the value nan"),
        ({"magnetizations": np.full((2, 6), 1.5)}, "magnetizations has the value 1.5"),
        ({"fields": np.full(6, np.inf)}, "fields has the value inf"),
        ({"patterns": np.zeros((2, 6), dtype=np.int8)}, "a pattern has no entry"),
        ({"patterns": np.array([[1] * 6, [-1] * 6])}, "a pattern comes twice"),
    ],
)
def test_what_cannot_be_right_is_raised_as_our_mistake(changes, message):
    rows, arrays = learned()
    check_learned(arrays, rows, scoring(rows, -0.69), best=True)
    with pytest.raises(RuntimeError, match=f"mistake in dualtap: .*{message}"):
        check_learned(arrays | changes, rows, scoring(rows, -0.69), best=True)


def scoring(rows, score):
    """Log pseudo-likelihoods and numbers of entries of rows that all score alike."""
    n = np.count_nonzero(rows, axis=1)
    return np.column_stack([score * n, n])


def test_less_likely_than_independent_spins_is_our_mistake():
    rows, arrays = learned()
    with pytest.raises(RuntimeError, match=r"score -0\.800 per spin, and -0\.693"):
        check_learned(arrays, rows, scoring(rows, -0.8), best=True)


def test_a_covariance_that_cannot_be_right_is_our_mistake(monkeypatch):
    X = dt.HopfieldModel.random(40, 1, beta=2.0, random_state=0).sample(20, random_state=1)
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    monkeypatch.setattr(checks, "strength_covariance", lambda *a, **k: np.full((1, 1), np.nan))
    with pytest.raises(RuntimeError, match="mistake in dualtap: strength_covariance has the value"):
        model.edges(top=1)


def test_the_published_algorithm_promises_less():
    rows, arrays = learned()
    twice = {"patterns": np.array([[1] * 6, [1] * 6])}
    check_learned(arrays | twice, rows, scoring(rows, -3.0), best=False)


@pytest.mark.parametrize(
    ("n_patterns", "X", "weights"),
    [
        (2, [[-1, NAN], [NAN, -1], [1, -1]], None),
        (1, [[-1, 1, 1]], [0.2]),
        (1, [[-1, 1, -1], [-1, -1, -1]], [6.1, 0.0065]),
        (1, [[-1, 1, 1, NAN], [NAN, NAN, 1, -1], [1, NAN, NAN, 1]], [0.0028, 16.8, 14.2]),
    ],
)
def test_strengths_that_samples_do_not_determine(n_patterns, X, weights):
    """Curvature that is nothing but rounding once made a covariance of 1e13."""
    model = dt.HopfieldPatterns(n_patterns, random_state=0).fit(np.array(X), sample_weight=weights)
    assert np.abs(model._strength_covariance).max() < 1e3


@pytest.mark.parametrize(("module", "name"), [(steps, "null"), (path, "with_fewer")])
def test_flags_that_products_raise_are_no_warnings_of_a_fit(monkeypatch, module, name):
    usual, calls = getattr(module, name), []

    def alarming(*arguments):
        calls.append(np.subtract(np.inf, np.inf))  # as a product may on some processors
        return usual(*arguments)

    monkeypatch.setattr(module, name, alarming)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = dt.HopfieldPatterns(random_state=0).fit(TEACHER.sample(60, random_state=1))
        assert model.path_ is not None
    assert calls


# --- A number of patterns that the data do not suggest


def independent(X, model):
    """Return the score of independent spins with the means of the model's training samples."""
    p = (1 + model.means_) / 2
    return np.nanmean(np.where(np.isnan(X), np.nan, np.log(np.where(X > 0, p, 1 - p))))


@pytest.mark.parametrize(
    ("n_patterns", "X"),
    [
        (1, [[-1, -1], [-1, -1], [-1, 1]]),
        (3, np.c_[np.r_[np.ones(6), -np.ones(10)], np.full(16, NAN)]),
        (3, [[1, 1], [NAN, 1], [1, NAN], [1, 1], [1, 1], [NAN, 1], [1, 1], [1, 1], [1, NAN]]),
        (2, np.random.default_rng(0).choice([-1, 1], size=(5, 4))),
    ],
)
def test_requested_patterns_are_no_worse_than_the_means(tmp_path, n_patterns, X):
    X = np.array(X, dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = dt.HopfieldPatterns(n_patterns, random_state=0).fit(X)
    assert 0 < model.n_patterns_ <= n_patterns
    assert np.abs(model.fields_).max() < 100
    assert model.score(X) > independent(X, model) - 0.02
    dt.save(model, tmp_path / "m.npz")
    assert dt.load(tmp_path / "m.npz").n_patterns_ == model.n_patterns_

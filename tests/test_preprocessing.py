"""Thresholds: what becomes +1, what -1, what stays missing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from dualtap import HopfieldPatterns, as_spins
from dualtap.preprocessing import BinarizeSpins

numbers = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=8),
    elements=st.floats(-1e6, 1e6),
)


@parametrize_with_checks([BinarizeSpins(), BinarizeSpins("mean"), BinarizeSpins(0.5)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_a_value_at_the_threshold_is_down():
    X = np.array([[0.4, 1.0], [0.5, 2.0], [0.6, 3.0]])
    S = BinarizeSpins(0.5).fit_transform(X)
    assert S.dtype == np.int8
    assert S[:, 0].tolist() == [-1, -1, 1]


def test_one_threshold_a_column():
    X = np.array([[1.0, 10.0], [2.0, 30.0]])
    to_spins = BinarizeSpins([1.5, 40.0]).fit(X)
    assert to_spins.thresholds_.tolist() == [1.5, 40.0]
    assert to_spins.transform(X).tolist() == [[-1, -1], [1, -1]]


def test_thresholds_are_those_of_the_fit():
    to_spins = BinarizeSpins("mean").fit([[0.0], [1.0]])
    assert to_spins.transform([[100.0], [0.4]]).tolist() == [[1], [-1]]


def test_missing_entries_stay_missing_and_do_not_count():
    X = np.array([[1.0, np.nan], [2.0, 5.0], [9.0, 7.0], [np.nan, 6.0]])
    for threshold, expected in (("median", [2.0, 6.0]), ("mean", [4.0, 6.0])):
        to_spins = BinarizeSpins(threshold).fit(X)
        assert to_spins.thresholds_.tolist() == expected
        S = to_spins.transform(X)
        assert S.dtype == np.float32
        assert (np.isnan(S) == np.isnan(X)).all()
    assert as_spins(S).summary.n_missing == 2


def test_none_is_missing():
    assert np.isnan(BinarizeSpins(0).fit_transform([[1, None], [-1, 2]])[0, 1])


def test_sparse_counts_become_any_or_none():
    counts = np.array([[0], [0], [0], [3], [1]])
    assert BinarizeSpins().fit_transform(counts)[:, 0].tolist() == [-1, -1, -1, 1, 1]


def test_a_column_of_mostly_ones_keeps_its_zeros():
    X = np.array([[1], [1], [0], [1]])
    assert BinarizeSpins().fit_transform(X)[:, 0].tolist() == [1, 1, -1, 1]


@pytest.mark.parametrize("threshold", ["median", "mean"])
def test_a_constant_column_is_down(threshold):
    X = np.full((7, 1), 0.1)  # whose mean rounding could put on either side
    assert (BinarizeSpins(threshold).fit_transform(X) == -1).all()


@given(numbers)
def test_at_the_median_no_column_that_varies_is_lost(X):
    S = BinarizeSpins().fit_transform(X)
    varies = X.min(axis=0) < X.max(axis=0)
    assert ((S.min(axis=0) < S.max(axis=0)) == varies).all()


@given(numbers, st.sampled_from(["median", "mean"]))
def test_larger_values_are_never_lower_spins(X, threshold):
    S = BinarizeSpins(threshold).fit_transform(X)
    order = np.argsort(X, axis=0, kind="stable")
    assert (np.diff(np.take_along_axis(S, order, axis=0), axis=0) >= 0).all()


def test_the_median_halves_what_has_no_ties():
    X = np.random.default_rng(0).normal(3, 2, size=(100, 5))
    assert (BinarizeSpins().fit_transform(X).sum(axis=0) == 0).all()


def test_frames_keep_their_names():
    frame = pd.DataFrame({"height": [1.0, 2.0, 3.0], "weight": [5.0, None, 7.0]})
    to_spins = BinarizeSpins().fit(frame)
    assert to_spins.get_feature_names_out().tolist() == ["height", "weight"]
    out = to_spins.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == ["height", "weight"]
    assert out["weight"].isna().tolist() == [False, True, False]
    out = to_spins.set_output(transform="polars").transform(pl.from_pandas(frame))
    assert out.columns == ["height", "weight"]


def test_it_leads_a_pipeline():
    X = np.random.default_rng(0).normal(size=(40, 6))
    X[:20] += 3
    model = make_pipeline(BinarizeSpins(), HopfieldPatterns(n_patterns=1, random_state=0)).fit(X)
    sides = model[-1].assign(model[0].transform(X)).sign
    assert abs(sides[:20].sum()) == abs(sides[20:].sum()) == 20
    assert sides[0] != sides[-1]


@pytest.mark.parametrize(
    ("threshold", "X", "text"),
    [
        ("median", [[1.0, np.inf], [0.0, 1.0]], "infinity"),
        ("median", [["yes", 1], ["no", 2]], "X holds text"),
        ("median", np.array([["yes"], ["no"]], dtype=object), "'yes'"),
        ("median", [[np.nan, 1.0], [np.nan, 2.0]], "column 0 has no value, so it has no median"),
        (
            [1.0, 2.0, 3.0],
            [[1.0, 2.0], [3.0, 4.0]],
            r"shape \(2,\), one per column, got shape \(3,\)",
        ),
        ([np.nan, 1.0], [[1.0, 2.0], [3.0, 4.0]], "finite"),
        ("mode", [[1.0], [2.0]], "threshold"),
        (np.inf, [[1.0], [2.0]], "threshold"),
    ],
)
def test_what_cannot_be_is_said(threshold, X, text):
    with pytest.raises(ValueError, match=text):
        BinarizeSpins(threshold).fit(X)


def test_an_empty_column_is_called_by_its_name():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [None, None]}, dtype=float)
    with pytest.raises(ValueError, match="column 'b' has no value"):
        BinarizeSpins("mean").fit(frame)

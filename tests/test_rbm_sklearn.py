"""`HopfieldRBM` refuses what it cannot use, and behaves as scikit-learn asks of an estimator."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils._param_validation import InvalidParameterError

from dualtap import HopfieldRBM
from rbm_cases import assert_same, data, easy_case, short

pytestmark = pytest.mark.usefixtures("one_kernel_thread")


@pytest.fixture(scope="module")
def small():
    return easy_case()


# --- Bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_hidden", 0),
        ("n_hidden", 2.5),
        ("hidden", "x"),
        ("beta", 0.0),
        ("beta", -1.0),
        ("beta", "hot"),
        ("fields", "yes"),
        ("learning_rate", 0),
        ("learning_rate", -1),
        ("learning_rate", "fast"),
        ("batch_size", 0),
        ("batch_size", 0.5),
        ("n_chains", 0),
        ("n_steps", 0),
        ("estimate", "ml"),
        ("momentum", 1),
        ("momentum", -0.1),
        ("weight_decay", -1),
        ("centering", "yes"),
        ("max_updates", 0),
        ("early_stopping", "yes"),
        ("look_every", 0),
        ("random_state", "seed"),
        ("verbose", "loud"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_named(name, value, method):
    _, X = data()
    with pytest.raises(
        InvalidParameterError, match=f"The '{name}' parameter of HopfieldRBM must be"
    ):
        getattr(HopfieldRBM.paper(**{name: value}), method)(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1, 2, -1], [1, 1, -1]], "third value: 2 at row 0, column 1"),
        ([[1, 0, -1], [1, 1, -1]], "zero_is_missing=True"),
        ([1, -1, 1], "Expected 2D array, got 1D"),
        (np.empty((0, 3)), "X is empty"),
        ([[1], [-1]], "at least two"),
        ([[np.nan, np.nan], [np.nan, np.nan]], "every value is missing"),
        ([[1, np.inf], [1, -1]], "infinity, at row 0, column 1"),
        ([["a", "b"], ["b", "a"]], "spins are numbers or booleans"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_data_are_refused(X, message, method):
    model = HopfieldRBM()
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X)
    assert not hasattr(model, "components_")


@pytest.mark.parametrize("method", ["transform", "score", "log_likelihood", "mode_errors"])
def test_wrong_number_of_features(small, method):
    _, X, model = small
    with pytest.raises(ValueError, match="X has 299 features, but HopfieldRBM is expecting 300"):
        getattr(model, method)(X[:, :299])


@pytest.mark.parametrize("method", ["transform", "score", "log_likelihood", "mode_errors"])
def test_not_fitted(small, method):
    with pytest.raises(NotFittedError, match="HopfieldRBM instance is not fitted yet"):
        getattr(HopfieldRBM(), method)(small[1])


@pytest.mark.parametrize("method", ["sample", "couplings", "log_partition", "model"])
def test_nothing_to_ask_before_a_fit(method):
    with pytest.raises(NotFittedError, match="HopfieldRBM instance is not fitted yet"):
        getattr(HopfieldRBM(), method)()


@pytest.mark.parametrize(
    "name",
    [
        "history_",
        "n_updates_",
        "stop_reason_",
        "learning_rate_",
        "singular_values_",
        "n_patterns_",
        "patterns_",
        "beta_",
    ],
)
def test_no_attribute_before_a_fit(name):
    assert not hasattr(HopfieldRBM(), name)
    with pytest.raises(NotFittedError, match="HopfieldRBM instance is not fitted yet"):
        getattr(HopfieldRBM(), name)


def test_a_refused_fit_is_no_fit(small):
    model = short(centering=True)
    with pytest.raises(ValueError, match="centering"):
        model.fit(small[1])
    with pytest.raises(NotFittedError, match="HopfieldRBM instance is not fitted yet"):
        model.score(small[1])


# --- scikit-learn -------------------------------------------------------------------------------


def test_parameters_can_be_read_set_and_cloned(small):
    _, X, fitted = small
    model = HopfieldRBM.paper(3, hidden="binary", momentum=0.5)
    assert model.get_params() == {
        "n_hidden": 3,
        "hidden": "binary",
        "beta": None,
        "fields": False,
        "learning_rate": "paper",
        "batch_size": 100,
        "n_chains": 100,
        "n_steps": 10,
        "estimate": "pcd",
        "momentum": 0.5,
        "weight_decay": 0.0,
        "centering": False,
        "validation": None,
        "max_updates": 2000,
        "max_seconds": None,
        "early_stopping": True,
        "look_every": 10,
        "random_state": None,
        "verbose": False,
    }
    model.set_params(n_hidden=5, hidden="gaussian")
    assert (model.n_hidden, model.hidden) == (5, "gaussian")
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "components_")
    assert_same(copy.fit(X), fitted)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(gamma=1)


def test_feature_names(small):
    _, X, fitted = small
    names = [f"spin {i}" for i in range(300)]
    frame = pd.DataFrame(X, columns=names)
    model = short().fit(frame)
    assert model.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame[names[::-1]])
    assert fitted.get_feature_names_out().tolist() == [f"hopfieldrbm{k}" for k in range(8)]
    framed = model.set_output(transform="pandas").transform(frame)
    assert framed.columns.tolist() == [f"hopfieldrbm{k}" for k in range(4)]
    np.testing.assert_array_equal(framed.to_numpy(), short().fit(X).transform(X))


def test_in_a_pipeline():
    teacher, X = data()
    y = np.arange(200) % 3  # chain a was started at pattern a mod P
    model = make_pipeline(HopfieldRBM.paper(8, random_state=0), LogisticRegression())
    fresh = teacher.sample(60, random_state=9)
    assert model.fit(X, y).score(fresh, np.arange(60) % 3) == 1


def test_grid_search_tells_that_one_unit_is_too_few():
    _, X = data()
    search = GridSearchCV(HopfieldRBM.paper(random_state=0), {"n_hidden": [1, 6]}, cv=2).fit(X)
    few, enough = search.cv_results_["mean_test_score"]
    assert enough > few + 0.1
    assert search.best_estimator_.n_patterns_ == 3


def test_pickle_round_trip(small, tmp_path):
    _, X, model = small
    joblib.dump(model, tmp_path / "model.joblib")
    back = joblib.load(tmp_path / "model.joblib")
    assert_same(back, model)
    np.testing.assert_array_equal(back.transform(X), model.transform(X))
    np.testing.assert_array_equal(back.patterns_, model.patterns_)
    np.testing.assert_array_equal(
        back.partial_fit(X).components_, clone(model).fit(X).partial_fit(X).components_
    )

"""Model files: what is saved is loaded, files of earlier versions too; others are refused."""

import json
from copy import copy

import numpy as np
import pytest

import dualtap as dt
from dualtap.io import read_samples, write_samples


@pytest.fixture(scope="module")
def teacher():
    return dt.HopfieldModel.random(60, 2, beta=2.0, random_state=0)


@pytest.fixture(scope="module")
def model(teacher):
    return dt.HopfieldPatterns(random_state=0).fit(teacher.sample(20, random_state=1))


@pytest.fixture(scope="module")
def by_deflation(teacher):
    model = dt.DualTAP(random_state=0, start="spectral", damping="auto")
    return model.fit(teacher.sample(20, random_state=1))


@pytest.fixture(scope="module")
def empty():
    """A model that has found nothing."""
    fair = np.random.default_rng(3).choice(np.array([-1, 1], dtype=np.int8), size=(50, 60))
    model = dt.HopfieldPatterns(random_state=0).fit(fair)
    assert model.n_patterns_ == 0
    return model


LEARNED = (
    "patterns_",
    "magnetizations_",
    "n_patterns_",
    "beta_",
    "fields_",
    "means_",
    "objective_",
    "weights_",
    "labels_",
    "_typical_overlaps",
    "_median_overlap",
    "strengths_",
    "trace_",
    "path_",
    "reason_",
    "n_features_in_",
)


@pytest.mark.parametrize("name", ["model", "by_deflation", "empty"])
def test_model_round_trip(tmp_path, request, teacher, name):
    model = request.getfixturevalue(name)
    path = tmp_path / "model.npz"
    dt.save(model, path)
    back = dt.load(path)
    assert back.get_params() == model.get_params()
    later = {name for name in vars(model) if name.startswith("_kept_")}
    assert vars(back).keys() | later == vars(model).keys() | later
    for attribute in set(LEARNED) - {"path_"}:
        np.testing.assert_array_equal(getattr(back, attribute), getattr(model, attribute))
    assert (back.path_ is None) == (model.path_ is None)
    for key, values in (model.path_ or {}).items():
        np.testing.assert_array_equal(back.path_[key], values)
    assert type(back) is type(model)
    kinds = [type(value) for value in (back.beta_, back.objective_, back.reason_)]
    assert kinds == [float, float, str]
    assert back.means_.shape == (model.n_features_in_,)
    X = teacher.sample(5, random_state=9)
    for method in ("predict", "predict_proba", "score_samples", "transform"):
        np.testing.assert_array_equal(getattr(back, method)(X), getattr(model, method)(X))
    assert back.score(X) == model.score(X)
    assert back.summary() == model.summary()


def test_spectrum_and_history_round_trip(tmp_path, model, by_deflation):
    dt.save(model, tmp_path / "joint.npz")
    np.testing.assert_array_equal(dt.load(tmp_path / "joint.npz").spectrum_, model.spectrum_)
    dt.save(by_deflation, tmp_path / "rounds.npz")
    back, expected = dt.load(tmp_path / "rounds.npz").history_, by_deflation.history_
    for name in ("magnetizations", "scores", "likelihood", "gains", "gammas", "n_iter"):
        np.testing.assert_array_equal(getattr(back, name), getattr(expected, name))


def test_fields_round_trip(tmp_path):
    fields = np.random.default_rng(0).normal(scale=0.7, size=400)
    teacher = dt.HopfieldModel.random(400, 3, beta=1.5, random_state=0, fields=fields)
    model = dt.HopfieldPatterns(random_state=0).fit(teacher.sample(300, random_state=1))
    assert model.fields_.any()
    dt.save(model, tmp_path / "model.npz")
    np.testing.assert_array_equal(dt.load(tmp_path / "model.npz").fields_, model.fields_)


def _first_schema(model):
    """Return the arrays that the first version of this package wrote."""
    old = (
        *("n_patterns", "beta", "n_students", "n_steps", "damping", "tol", "max_iter"),
        *("random_state", "verbose"),
    )
    parameters = {name: model.get_params()[name] for name in old} | {"start": "spectral"}
    history = model.history_
    names = ("scores", "likelihood", "gains", "gammas", "n_converged", "n_iter", "magnetizations")
    return {
        "schema": np.array(1),
        "provenance": np.array(json.dumps({"dualtap": "0.1.0", "parameters": parameters})),
        "patterns": model.patterns_,
        "magnetizations": model.magnetizations_,
        "beta": np.array(model.beta_),
        "labels": model.labels_,
        "weights": model.weights_,
        **{f"history_{name}": getattr(history, name) for name in names},
    }


def test_models_of_the_first_schema_are_read(tmp_path, by_deflation, teacher):
    path = tmp_path / "old.npz"
    np.savez_compressed(path, **_first_schema(by_deflation))
    back = dt.load(path)
    assert type(back) is dt.DualTAP
    assert (back.start, back.reason_) == ("spectral", "")
    assert not back.means_.any()
    assert np.isnan(back.objective_)
    np.testing.assert_array_equal(back.strengths_, by_deflation.strengths_)
    for attribute in ("patterns_", "magnetizations_", "beta_", "labels_", "weights_", "fields_"):
        np.testing.assert_array_equal(getattr(back, attribute), getattr(by_deflation, attribute))
    np.testing.assert_array_equal(back.history_.gains, by_deflation.history_.gains)
    assert not hasattr(back, "spectrum_")
    X = teacher.sample(5, random_state=9)
    np.testing.assert_array_equal(back.predict(X), by_deflation.predict(X))
    # How near samples come to patterns was not kept, but follows from β.
    np.testing.assert_allclose(
        back._typical_overlaps, by_deflation._typical_overlaps, rtol=0, atol=0.05
    )
    np.testing.assert_allclose(back.predict_proba(X), by_deflation.predict_proba(X), atol=1e-3)
    dt.save(back, tmp_path / "new.npz")
    assert dt.load(tmp_path / "new.npz").get_params() == back.get_params()


def _second_schema(model, scheme, start):
    """Return the arrays that dualtap 0.1.0 wrote."""
    parameters = {
        "n_patterns": None,
        "beta": None,
        "scheme": scheme,
        "start": start,
        "effort": 1,
        "n_students": None,
        "n_steps": None,
        "damping": "auto",
        "tol": 1e-3,
        "max_iter": 200,
        "random_state": 0,
        "verbose": False,
    }
    arrays = {
        "schema": np.array(2),
        "provenance": np.array(json.dumps({"dualtap": "0.1.0", "parameters": parameters})),
        "patterns": model.patterns_,
        "magnetizations": model.magnetizations_,
        "beta": np.array(model.beta_),
        "fields": model.fields_,
        "labels": model.labels_,
        "weights": model.weights_,
        "typical_overlaps": model._typical_overlaps,
        "regime": np.array("clustered"),
        "reason": np.array(model.reason_),
        "n_passes": np.array(model.n_passes_),
    }
    if scheme == "joint":
        return arrays | {"spectrum": model.spectrum_}
    return arrays | {f"history_{name}": value for name, value in vars(model.history_).items()}


@pytest.mark.parametrize(
    ("name", "scheme", "start"),
    [
        ("model", "joint", "auto"),
        ("empty", "joint", "samples"),
        ("by_deflation", "deflation", "auto"),
        ("by_deflation", "deflation", "random"),
    ],
)
def test_models_of_the_second_schema_are_read(tmp_path, request, teacher, name, scheme, start):
    model = request.getfixturevalue(name)
    np.savez_compressed(tmp_path / "old.npz", **_second_schema(model, scheme, start))
    back = dt.load(tmp_path / "old.npz")
    assert type(back) is type(model)
    assert back.random_state == 0
    if scheme == "deflation":
        assert (back.start, back.damping) == ("random" if start == "random" else "spectral", "auto")
        np.testing.assert_array_equal(back.history_.gains, model.history_.gains)
    else:
        assert back.get_params() == model.get_params()
        np.testing.assert_array_equal(back.spectrum_, model.spectrum_)
    new = {"_median_overlap", "means_", "objective_", "path_", "trace_"}
    for attribute in set(LEARNED) - new:
        np.testing.assert_array_equal(getattr(back, attribute), getattr(model, attribute))
    assert back.trace_ == []
    assert back.path_ is None
    assert back.means_.shape == back.fields_.shape
    assert not back.means_.any()
    assert np.isnan(back.objective_)
    X = teacher.sample(5, random_state=9)
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    assert back.score(X) == model.score(X)
    assert "nan" not in back.summary()  # the median overlap was not kept
    dt.save(back, tmp_path / "new.npz")
    assert dt.load(tmp_path / "new.npz").summary() == back.summary()


def test_trace_and_path_round_trip(tmp_path, model):
    changed = copy(model)
    step = {"step": 1, "move": "add", "source": "rotation", "n_patterns": 2}
    changed.trace_ = [
        step | {"objective": -10.5, "gain": 3.25, "accepted": True},
        step | {"objective": -10.5, "gain": float("nan"), "accepted": False},
    ]
    changed.path_ = {
        "n_patterns": np.array([0, 1, 2]),
        "objective": np.array([0.0, -3.0, -10.5]),
        "held_out": np.array([-0.69, -0.5, np.nan]),
    }
    changed.strengths_ = np.linspace(0.5, 1.5, model.n_patterns_)
    dt.save(changed, tmp_path / "model.npz")
    back = dt.load(tmp_path / "model.npz")
    assert str(back.trace_) == str(changed.trace_)  # nan is not nan
    assert [type(value) for value in back.trace_[0].values()] == [
        *(int, str, str, int, float, float, bool)
    ]
    assert back.path_.keys() == changed.path_.keys()
    for name, values in changed.path_.items():
        np.testing.assert_array_equal(back.path_[name], values)
    np.testing.assert_array_equal(back.strengths_, changed.strengths_)
    assert np.isnan(back.beta_)


def test_model_keeps_feature_names(tmp_path, teacher):
    pandas = pytest.importorskip("pandas")
    X = teacher.sample(20, random_state=1)
    frame = pandas.DataFrame(X, columns=[f"gene{i}" for i in range(X.shape[1])])
    rng = np.random.default_rng(0)  # a generator cannot be stored, and is not
    path = tmp_path / "model.npz"
    dt.save(dt.HopfieldPatterns(random_state=rng).fit(frame), path)
    back = dt.load(path)
    assert list(back.feature_names_in_) == list(frame.columns)
    assert back.random_state is None


def test_load_refuses_what_is_not_a_model(tmp_path, model):
    samples = tmp_path / "data.npz"
    write_samples(samples, np.ones((2, 2), dtype=np.int8))
    with pytest.raises(ValueError, match="not a dualtap model"):
        dt.load(samples)
    with pytest.raises(ValueError, match=r"'model\.csv' must end in \.npz"):
        dt.load(tmp_path / "model.csv")
    path = tmp_path / "model.npz"
    dt.save(model, path)
    with pytest.raises(ValueError, match="is a model, not samples"):
        read_samples(path)
    contents = dict(np.load(path))
    np.savez(path, **(contents | {"schema": np.array(99)}))
    with pytest.raises(ValueError, match=r"model schema 99, .* reads up to 3; upgrade dualtap"):
        dt.load(path)
    del contents["patterns"]
    np.savez(path, **contents)
    with pytest.raises(ValueError, match="incomplete: it lacks patterns"):
        dt.load(path)


def test_save_refuses_other_suffixes_and_unfitted_models(tmp_path, model):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(ValueError, match=r"\.npz"):
        dt.save(model, tmp_path / "model.pkl")
    with pytest.raises(NotFittedError):
        dt.save(dt.HopfieldPatterns(), tmp_path / "model.npz")


def test_existing_files_are_kept_without_force(tmp_path, model):
    path = tmp_path / "model.npz"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match="force=True"):
        dt.save(model, path)
    assert path.read_text() == "precious"
    dt.save(model, path, force=True)
    assert dt.load(path).n_patterns_ == model.n_patterns_

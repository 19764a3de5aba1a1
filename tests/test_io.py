"""Files: what goes in comes out, and bad files say what is wrong with them."""

import json
import os
import pickle
import stat

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualtap as dt
from dualtap._files import atomic_write, check_free
from dualtap.io import read_samples, write_samples


@pytest.fixture(scope="module")
def teacher():
    return dt.HopfieldModel.random(60, 2, beta=2.0, random_state=0)


@pytest.fixture(scope="module")
def model(teacher):
    return dt.DualTAP(beta=2.0, random_state=0).fit(teacher.sample(20, random_state=1))


@pytest.fixture(scope="module")
def by_deflation(teacher):
    model = dt.DualTAP(scheme="deflation", random_state=0)
    return model.fit(teacher.sample(20, random_state=1))


@pytest.fixture(scope="module")
def empty():
    """A model that has found nothing."""
    coins = np.random.default_rng(3).choice(np.array([-1, 1], dtype=np.int8), size=(50, 60))
    model = dt.DualTAP(random_state=0).fit(coins)
    assert model.n_patterns_ == 0
    return model


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".tsv"])
@settings(max_examples=15)
@given(
    X=hnp.arrays(
        np.int8, st.tuples(st.integers(1, 6), st.integers(2, 7)), elements=st.sampled_from([-1, 1])
    )
)
def test_samples_round_trip(tmp_path_factory, suffix, X):
    path = tmp_path_factory.mktemp("io") / f"data{suffix}"
    write_samples(path, X)
    np.testing.assert_array_equal(dt.as_spins(read_samples(path).X).values, X)


def test_npz_keeps_the_teacher(tmp_path, teacher):
    path = tmp_path / "data.npz"
    X = teacher.sample(3, random_state=0)
    write_samples(path, X, teacher=teacher, parameters={"seed": 3})
    file = read_samples(path)
    np.testing.assert_array_equal(file.teacher.patterns, teacher.patterns)
    assert file.teacher.beta == teacher.beta
    assert file.teacher.fields is None
    provenance = json.loads(str(np.load(path)["provenance"]))
    assert provenance == {"dualtap": dt.__version__, "parameters": {"seed": 3}}


def test_npz_keeps_the_fields_of_the_teacher(tmp_path):
    path = tmp_path / "data.npz"
    fields = np.linspace(-1, 1, 60)
    teacher = dt.HopfieldModel.random(60, 2, beta=2.0, random_state=0, fields=fields)
    write_samples(path, teacher.sample(3, random_state=0), teacher=teacher)
    np.testing.assert_array_equal(read_samples(path).teacher.fields, fields)


def test_npz_with_one_array_of_any_name(tmp_path):
    path = tmp_path / "votes.npz"
    np.savez(path, votes=np.array([[0, 1], [1, 1]]))
    np.testing.assert_array_equal(read_samples(path).X, [[0, 1], [1, 1]])


def test_npz_with_several_arrays_names_them(tmp_path):
    path = tmp_path / "two.npz"
    np.savez(path, a=np.eye(2), b=np.eye(2))
    with pytest.raises(ValueError, match=r"holds the arrays a, b; name the samples X"):
        read_samples(path)


@pytest.mark.parametrize(
    ("text", "values", "names"),
    [
        ("1,-1\n-1,1\n", [[1, -1], [-1, 1]], None),
        ("a,b\n1,0\n", [[1, 0]], ("a", "b")),
        ('"a","b"\n"1","0"\n', [[1, 0]], ("a", "b")),
        ("1,\nNA,0\nnan,null\n", [[1, np.nan], [np.nan, 0], [np.nan, np.nan]], None),
        ("True,False\nfalse,TRUE\n", [[1, 0], [0, 1]], None),
        ("\ufeffa,b\n1,0\n", [[1, 0]], ("a", "b")),  # as spreadsheets write it
        ("1,0\r\n0,1\r\n", [[1, 0], [0, 1]], None),
    ],
)
def test_text_files(tmp_path, text, values, names):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    file = read_samples(path)
    np.testing.assert_array_equal(file.X, values)
    assert file.names == names


def test_text_errors_name_file_row_and_column(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("1,0\n1,yes\n")
    with pytest.raises(ValueError, match=r"data\.csv.*'yes'.*row 1, column 2"):
        read_samples(path)
    path.write_text("1,0\n1,0,1\n")
    with pytest.raises(ValueError, match=r"data\.csv.*columns"):
        read_samples(path)
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ValueError, match="not a text file"):
        read_samples(path)


@pytest.mark.filterwarnings("ignore:.*input contained no data")
def test_empty_text_file(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("")
    with pytest.raises(ValueError, match="empty"):
        dt.as_spins(read_samples(path).X)


def test_unknown_suffix_lists_the_known(tmp_path):
    with pytest.raises(
        ValueError, match=r"'data\.xlsx' must end in \.npz or \.npy or \.csv or \.tsv"
    ):
        read_samples(tmp_path / "data.xlsx")


class _Bomb:
    def __reduce__(self):
        return os.abort, ()


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_pickles_are_never_loaded(tmp_path, suffix):
    path = tmp_path / f"evil{suffix}"
    array = np.array([_Bomb()], dtype=object)
    np.save(path, array) if suffix == ".npy" else np.savez(path, X=array)
    with pytest.raises(ValueError, match="not a readable"):
        read_samples(path)
    path.write_bytes(pickle.dumps(_Bomb()))
    with pytest.raises(ValueError, match="not a readable"):
        read_samples(path)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_truncated_numpy_files(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    write_samples(path, np.ones((50, 50), dtype=np.int8))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="not a readable"):
        read_samples(path)


LEARNED = (
    "patterns_",
    "magnetizations_",
    "n_patterns_",
    "beta_",
    "fields_",
    "weights_",
    "labels_",
    "_typical_overlaps",
    "regime_",
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
    assert vars(back).keys() == vars(model).keys()
    for attribute in LEARNED:
        np.testing.assert_array_equal(getattr(back, attribute), getattr(model, attribute))
    assert [type(value) for value in (back.beta_, back.regime_, back.reason_)] == [float, str, str]
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
    model = dt.DualTAP(random_state=0).fit(teacher.sample(300, random_state=1))
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
    assert (back.scheme, back.start, back.regime_, back.reason_) == (
        *("deflation", "spectral"),
        *("clustered", ""),
    )
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


def test_model_keeps_feature_names(tmp_path, teacher):
    pandas = pytest.importorskip("pandas")
    X = teacher.sample(20, random_state=1)
    frame = pandas.DataFrame(X, columns=[f"gene{i}" for i in range(X.shape[1])])
    rng = np.random.default_rng(0)  # a generator cannot be stored, and is not
    path = tmp_path / "model.npz"
    dt.save(dt.DualTAP(beta=2.0, random_state=rng).fit(frame), path)
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
    with pytest.raises(ValueError, match="schema 99, this version of dualtap reads 1 and 2"):
        dt.load(path)
    del contents["patterns"]
    np.savez(path, **contents)
    with pytest.raises(ValueError, match="incomplete: patterns"):
        dt.load(path)


def test_save_refuses_other_suffixes_and_unfitted_models(tmp_path, model):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(ValueError, match=r"\.npz"):
        dt.save(model, tmp_path / "model.pkl")
    with pytest.raises(NotFittedError):
        dt.save(dt.DualTAP(), tmp_path / "model.npz")


def test_existing_files_are_kept_without_force(tmp_path, model):
    path = tmp_path / "model.npz"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match="--force"):
        dt.save(model, path)
    assert path.read_text() == "precious"
    dt.save(model, path, force=True)
    assert dt.load(path).n_patterns_ == model.n_patterns_


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(b"old")

    def fail_half_way():
        with atomic_write(path, force=True) as file:
            file.write(b"half of the new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    path = tmp_path / "data.bin"

    def be_overtaken():
        with atomic_write(path) as file:
            file.write(b"mine")
            path.write_bytes(b"theirs")

    with pytest.raises(FileExistsError):
        be_overtaken()
    assert path.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_written_files_have_ordinary_permissions(tmp_path):
    path = tmp_path / "data.bin"
    with atomic_write(path) as file:
        file.write(b"x")
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


def test_check_free(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        check_free(tmp_path / "no" / "model.npz")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_free(tmp_path, force=True)

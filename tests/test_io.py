"""Files: what goes in comes out, and bad files say what is wrong with them."""

import gzip
import json
import os
import pickle
import sys

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualtap as dt
from dualtap.io import FORMATS, read_samples, write_samples


@pytest.fixture(scope="module")
def teacher():
    return dt.HopfieldModel.random(60, 2, beta=2.0, random_state=0)


TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".arrow", ".feather")
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=6).map(
    lambda text: ("g" + text).strip()
)


def _samples(draw, missing):
    shape = draw(st.tuples(st.integers(1, 6), st.integers(2, 7)))
    entries = st.sampled_from([-1.0, 1.0] + [np.nan] * missing)
    X = draw(hnp.arrays(np.float64, shape, elements=entries))
    X[0, 0] = 1  # something is observed
    return X if draw(st.booleans()) else np.where(X == -1, 0, X)


@st.composite
def sample_files(draw):
    X = _samples(draw, missing=draw(st.booleans()))
    n_samples, n_spins = X.shape

    def texts(n, unique=True):
        return draw(st.none() | st.lists(NAMES, min_size=n, max_size=n, unique=unique))

    return X, texts(n_spins), texts(n_samples), texts(n_samples, unique=False)


@pytest.mark.parametrize("suffix", FORMATS)
@settings(max_examples=25)
@given(contents=sample_files())
def test_samples_round_trip(tmp_path_factory, suffix, contents):
    X, names, sample_names, labels = contents
    path = tmp_path_factory.mktemp("io") / f"data{suffix}"
    if suffix == ".npy":
        names = sample_names = labels = None
    write_samples(path, X, names=names, sample_names=sample_names, labels=labels)
    file = read_samples(path, labels=None if labels is None else "label")
    spins = dt.as_spins(X)
    np.testing.assert_array_equal(file.spins.values, spins.values)
    if (X == 0).any() or (X == -1).any():
        assert file.spins.encoding == spins.encoding
    assert file.sample_names == (None if sample_names is None else tuple(sample_names))
    assert (None if file.labels is None else file.labels.tolist()) == labels
    if names is not None or suffix not in TABLES:
        assert file.names == (None if names is None else tuple(names))


@pytest.mark.parametrize("suffix", FORMATS)
def test_transposed_files(tmp_path, suffix):
    X = np.array([[1, -1, np.nan], [1, 1, -1], [-1, 1, 1], [1, -1, -1]])
    path = tmp_path / f"data{suffix}"
    if suffix in TABLES:
        write_samples(path, X.T, names="abcd", sample_names="xyz")
    else:
        write_samples(path, X.T)
    file = read_samples(path, transpose=True)
    np.testing.assert_array_equal(file.spins.values, dt.as_spins(X).values)
    if suffix in TABLES:
        assert (file.names, file.sample_names) == (tuple("xyz"), tuple("abcd"))


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


@pytest.mark.parametrize("beta", [1.5, None])
def test_npz_keeps_strengths_and_zeros_of_the_teacher(tmp_path, beta):
    path = tmp_path / "data.npz"
    zeta = dt.as_spins([[1, 1, 0, 0], [0, 1, 1, 1]], zero_is_missing=True)  # not a -1 in it
    teacher = dt.HopfieldModel(zeta, beta, strengths=None if beta else [2.0, -0.5])
    write_samples(path, teacher.sample(3, random_state=0), teacher=teacher)
    found = read_samples(path).teacher
    np.testing.assert_array_equal(found.patterns, zeta.values)
    np.testing.assert_array_equal(found.strengths, teacher.strengths)
    assert found.beta == teacher.beta


def test_npz_with_one_array_of_any_name(tmp_path):
    path = tmp_path / "votes.npz"
    np.savez(path, votes=np.array([[0, 1], [1, 1]]))
    np.testing.assert_array_equal(read_samples(path).spins.values, [[-1, 1], [1, 1]])


def test_npz_with_several_arrays_names_them(tmp_path):
    path = tmp_path / "two.npz"
    np.savez(path, a=np.eye(2), b=np.eye(2))
    with pytest.raises(ValueError, match=r"holds the arrays a, b; name the samples X"):
        read_samples(path)


@pytest.mark.parametrize(
    ("text", "values", "names"),
    [
        ("1,-1\n-1,1\n", [[1, -1], [-1, 1]], None),
        ("a,b\n1,0\n", [[1, -1]], ("a", "b")),
        ('"a","b"\n"1","0"\n', [[1, -1]], ("a", "b")),
        ('"a, or ""A""","b\nc"\n1,0\n', [[1, -1]], ('a, or "A"', "b\nc")),
        ("1,\nNA,0\nnan,null\n?,None\n", [[1, 0], [0, -1], [0, 0], [0, 0]], None),
        ("True,False\nfalse,TRUE\n", [[1, -1], [-1, 1]], None),
        ("\ufeffa,b\n1,0\n", [[1, -1]], ("a", "b")),  # as spreadsheets write it
        ("1,0\r\n0,1\r\n", [[1, -1], [-1, 1]], None),
        ("1,0\n0,1", [[1, -1], [-1, 1]], None),  # no newline at the end
        ("1,0\n\n0,1\n\n\n", [[1, -1], [-1, 1]], None),
        (" 1, 0\n0 ,+1.0\n", [[1, -1], [-1, 1]], None),
        ("1.0,0e0\n-0,1.000\n", [[1, -1], [-1, 1]], None),
        ("0,1,2\n1,0,1\n", [[1, -1, 1]], ("0", "1", "2")),  # pandas counts columns
        ("a,1\n1,0\n", [[1, -1]], ("a", "1")),
    ],
)
@pytest.mark.parametrize("pack", [False, True])
def test_text_files(tmp_path, text, values, names, pack):
    path = tmp_path / ("data.csv.gz" if pack else "data.csv")
    path.write_bytes(gzip.compress(text.encode()) if pack else text.encode())
    file = read_samples(path)
    np.testing.assert_array_equal(file.spins.values, values)
    assert (file.names, file.sample_names, file.labels) == (names, None, None)


@pytest.mark.parametrize(
    ("text", "names", "sample_names"),
    [
        (",a,b\n0,1,0\n1,0,0\n", ("a", "b"), ("0", "1")),  # pandas: index without a name
        ("Unnamed: 0,a,b\n0,1,0\n1,0,0\n", ("a", "b"), ("0", "1")),
        (",0,1\nx,1,0\ny,0,0\n", ("0", "1"), ("x", "y")),
        (",0,1,2\nx,1,0,1\ny,0,0,1\n", ("0", "1", "2"), ("x", "y")),
        ("a,b\ns1,1,0\ns2,0,0\n", ("a", "b"), ("s1", "s2")),  # R: a header one shorter
        ('"a","b"\n"1",1,0\n"2",0,0\n', ("a", "b"), ("1", "2")),
        ("s1,1,0\ns2,0,0\n", None, ("s1", "s2")),
        ("id,a,b\n7,1,0\n8,0,0\n", ("a", "b"), ("7", "8")),
        ("id,a,b\n1,1,0\n0,0,0\n", ("a", "b"), ("1", "0")),  # all different
        ("id,a,b\n1,1,0\n1,0,0\n", ("id", "a", "b"), None),  # spins
        ("who,a,b\nAnn,1,0\nBob,0,0\n", ("a", "b"), ("Ann", "Bob")),
        ("who,a,b\nAnn,1,0\n,0,0\n", ("a", "b"), ("Ann", "")),
    ],
)
def test_names_of_samples(tmp_path, text, names, sample_names):
    path = tmp_path / "data.csv"
    path.write_text(text)
    file = read_samples(path)
    assert (file.names, file.sample_names) == (names, sample_names)
    last = [float(line.split(",")[-1]) for line in text.splitlines()[-2:]]
    np.testing.assert_array_equal(file.spins.values[:, -1], 2 * np.array(last) - 1)


VOTES = "who,tax,party,school\nAnn,1,green,0\nBob,,blue,1\nEve,1,green,1\n"


def test_labels_are_kept_and_never_fitted(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    file = read_samples(path, labels="party")
    assert (file.names, file.sample_names) == (("tax", "school"), ("Ann", "Bob", "Eve"))
    assert file.labels.tolist() == ["green", "blue", "green"]
    np.testing.assert_array_equal(file.spins.values, [[1, -1], [0, 1], [1, 1]])
    with pytest.raises(ValueError, match=r"no column is named 'Prty'; the nearest: 'party'"):
        read_samples(path, labels="Prty")
    message = (
        r"column 'party' \(3rd\) holds text such as 'green'; "
        r"labels='party' keeps it for evaluation, drop='party' leaves it out"
    )
    with pytest.raises(ValueError, match=message):
        read_samples(path)
    path.write_text("1,0\n0,1\n")
    with pytest.raises(ValueError, match="does not name its columns"):
        read_samples(path, labels="party")


def test_labels_in_the_first_column(tmp_path):
    path = tmp_path / "votes.tsv"
    path.write_text("party\ttax\tschool\nred\t1\t0\nblue\t0\t0\n")
    file = read_samples(path, labels="party")
    assert (file.labels.tolist(), file.sample_names) == (["red", "blue"], None)
    assert file.names == ("tax", "school")


def test_numbers_can_be_labels(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("a,b,class\n1,0,7\n0,1,8\n")
    assert read_samples(path, labels="class").labels.tolist() == ["7", "8"]
    with pytest.raises(ValueError, match=r"line 2, column 3 \('class'\) holds a third value, '7'"):
        read_samples(path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_transposed_tables(tmp_path, suffix):
    """Rows are votes, columns are members; a row of text holds their parties."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"Ann": ["1", "green", None], "Bob": ["0", "blue", "1"]}, index=["tax", "party", "school"]
    )
    path = tmp_path / f"votes{suffix}"
    if suffix == ".csv":
        frame.to_csv(path)
    elif suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.reset_index().to_feather(path)
    file = read_samples(path, transpose=True, labels="party")
    assert (file.names, file.sample_names) == (("tax", "school"), ("Ann", "Bob"))
    assert file.labels.tolist() == ["green", "blue"]
    np.testing.assert_array_equal(file.spins.values, [[1, 0], [-1, 1]])
    with pytest.raises(ValueError, match="row 'party' holds text such as 'green'; labels='party'"):
        read_samples(path, transpose=True)


def test_a_row_of_labels_needs_names_of_rows(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("1,0\n0,1\n")
    with pytest.raises(ValueError, match="does not name its rows"):
        read_samples(path, transpose=True, labels="party")
    path.write_text("tax,1,0\nparty,1,0\n")
    with pytest.raises(ValueError, match="no row is named 'prty'; the nearest: 'party'"):
        read_samples(path, transpose=True, labels="prty")
    path.write_text("1\n0\n0\n")  # one sample
    assert read_samples(path, transpose=True).spins.shape == (1, 3)


def test_pandas_index(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 0], "b": [True, None], "c": [0.0, np.nan]})
    for index, expected in (
        (None, None),
        (["x", "y"], ("x", "y")),
        ([3.5, 5], ("3.5", "5.0")),
        (pandas.MultiIndex.from_tuples([("x", 1), ("y", 2)]), ("x 1", "y 2")),
    ):
        path = tmp_path / "data.parquet"
        (frame if index is None else frame.set_axis(index, axis=0)).to_parquet(path)
        file = read_samples(path)
        assert (file.names, file.sample_names) == (("a", "b", "c"), expected)
        np.testing.assert_array_equal(file.spins.values, [[1, 1, -1], [-1, 0, 0]])


def test_columns_of_many_types(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from decimal import Decimal

    columns = {
        "bool": pa.array([True, None]),
        "uint8": pa.array([1, 0], pa.uint8()),
        "decimal": pa.array([Decimal("1.0"), None]),
        "category": pa.array(["1", "NA"]).dictionary_encode(),
        "number": pa.array([1, 0]).dictionary_encode(),
        "null": pa.nulls(2),
        "text": pa.array(["true", None]),
    }
    path = tmp_path / "data.arrow"
    with pa.ipc.new_file(path, pa.table(columns).schema) as writer:
        writer.write_table(pa.table(columns))
    expected = [[1, 1, 1, 1, 1, 0, 1], [0, -1, 0, 0, -1, 0, 0]]
    np.testing.assert_array_equal(read_samples(path).spins.values, expected)


def test_arrays_beside_the_samples(tmp_path):
    X = np.array([[0, 1, 1], [1, 0, 0]])
    path = tmp_path / "data.npz"
    beside = {"names": ["a", "b", "c"], "sample_names": np.array([b"s", b"t"]), "y": [0.5, 1.0]}
    np.savez(path, X=X, **beside)
    file = read_samples(path, labels="y")
    assert (file.names, file.sample_names) == (("a", "b", "c"), ("s", "t"))
    assert file.labels.tolist() == ["0.5", "1.0"]
    with pytest.raises(ValueError, match=r"no array is named 'z'; there are 'names'"):
        read_samples(path, labels="z")
    np.savez(path, X=X.T, **beside)
    assert read_samples(path, labels="y", transpose=True).spins.shape == (2, 3)
    with pytest.raises(ValueError, match="there are 3 names where 2 are needed"):
        read_samples(path)
    np.savez(path, X=X, y=X)
    with pytest.raises(ValueError, match=r"'y' has shape \(2, 3\)"):
        read_samples(path, labels="y")
    np.save(tmp_path / "data.npy", X)
    with pytest.raises(ValueError, match="holds no labels"):
        read_samples(tmp_path / "data.npy", labels="y")


def test_datasets_of_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    X = np.array([[0, 1, 1], [1, 0, 0]], dtype=np.int8)
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a/b", data=X, chunks=(1, 3), compression="gzip")
        file["a/names"] = ["x", "y", "z"]
        file["party"] = [1, 2]
    read = read_samples(path, labels="party")
    np.testing.assert_array_equal(read.spins.values, 2 * X - 1)
    assert (read.names, read.labels.tolist()) == (("x", "y", "z"), ["1", "2"])
    with h5py.File(path, "a") as file:
        file["c"] = X
    with pytest.raises(ValueError, match=r"a/b \(2, 3\), a/names \(3,\), c \(2, 3\), party"):
        read_samples(path)
    with h5py.File(path, "a") as file:
        file.move("c", "X")
    assert read_samples(path).names is None


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("shape", [(40, 30), (2500, 3)])
def test_fortran_order(tmp_path, monkeypatch, suffix, transpose, shape):
    monkeypatch.setattr("dualtap.io.arrays.CHUNK_BYTES", 2000)
    X = np.random.default_rng(0).choice([-1.0, 1.0, np.nan], size=shape)
    path = tmp_path / f"data{suffix}"
    np.save(path, np.asfortranarray(X)) if suffix == ".npy" else np.savez(path, X.copy(order="F"))
    expected = dt.as_spins(X).values
    spins = read_samples(path, transpose=transpose).spins
    np.testing.assert_array_equal(spins.values, expected.T if transpose else expected)
    X[7, 2] = 3
    np.save(path, np.asfortranarray(X)) if suffix == ".npy" else np.savez(path, X.copy(order="F"))
    with pytest.raises(ValueError, match=r"third value: 3\.0 at row 7, column 2"):
        read_samples(path)


def test_blocks_of_text_meet_without_a_seam(tmp_path, monkeypatch):
    """Lines, quotes and names of rows that lie across the ends of blocks."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], size=(50, 9))
    path = tmp_path / "data.csv"
    names = [f'a "{k}",\nb' for k in range(50)]
    write_samples(path, X, sample_names=names, labels=range(50))
    np.savetxt(tmp_path / "plain.csv", (X + 1) // 2, fmt="%d", delimiter=",")
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr("dualtap.io.lines._BLOCK", size)
        file = read_samples(path, labels="label")
        np.testing.assert_array_equal(file.spins.values, X)
        assert file.sample_names == tuple(names)
        assert file.labels.tolist() == [str(k) for k in range(50)]
        np.testing.assert_array_equal(read_samples(tmp_path / "plain.csv").spins.values, X)


def test_text_errors_name_file_line_and_column(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("1,0\n1,yes\n")
    with pytest.raises(ValueError, match=r"data\.csv: line 2, column 2 holds 'yes'"):
        read_samples(path)
    path.write_text("a,b\n1,0\n\n1,2.5\n")
    with pytest.raises(ValueError, match=r"line 4, column 2 \('b'\) holds a third value, '2.5'"):
        read_samples(path)
    path.write_text("1,0\n" * 5 + "1,0,1\n")
    with pytest.raises(ValueError, match=r"data\.csv: line 6 has 3 fields, and 2 columns"):
        read_samples(path)
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ValueError, match="not a text file"):
        read_samples(path)


@pytest.mark.parametrize(
    ("suffix", "package", "extra"),
    [
        (".h5", "h5py", "hdf5"),
        (".parquet", "pyarrow", "parquet"),
        (".arrow", "pyarrow", "parquet"),
    ],
)
def test_missing_packages_are_named(tmp_path, monkeypatch, suffix, package, extra):
    path = tmp_path / f"data{suffix}"
    write_samples(path, np.eye(2))
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"needs {package}; install it with: pip install 'dualtap\[{extra}\]'"
    with pytest.raises(ImportError, match=message):
        read_samples(path)
    with pytest.raises(ImportError, match=message):
        write_samples(path, np.eye(2), force=True)


def test_zero_is_missing(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("1,0\n-1,1\n")
    with pytest.raises(ValueError, match=r"data\.csv: X holds -1, 0 and \+1.*zero_is_missing"):
        read_samples(path)
    spins = read_samples(path, zero_is_missing=True).spins
    np.testing.assert_array_equal(spins.values, [[1, 0], [-1, 1]])


def test_writing_checks_what_goes_with_the_samples(tmp_path):
    X = np.ones((2, 3), dtype=np.int8)
    for texts in ({"names": "ab"}, {"sample_names": "abc"}, {"labels": [1]}):
        with pytest.raises(ValueError, match="are needed"):
            write_samples(tmp_path / "data.csv", X, **texts)
    assert not list(tmp_path.iterdir())


def test_unknown_suffix_lists_the_known(tmp_path):
    with pytest.raises(
        ValueError, match=r"'data\.xlsx' must end in \.npz or \.npy or \.csv or \.tsv or \.csv\.gz"
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

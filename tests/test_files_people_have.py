"""Tables as people keep them (ids, codes, columns to leave out), genotypes of PLINK, cells."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualtap as dt
from dualtap import datasets
from dualtap.cli.reading import as_options
from dualtap.io import read_samples, write_samples

SURVEY = """\
respondent,age,q1,q2,q3,sex,town
101,31,yes,No,yes,f,Ulm
102,27,no,NO,,m,Bern
103,31,YES,yes,no,f,Ulm
104,64,no,no,NA,m,Bonn
"""
ANSWERS = [[1, -1, 1], [-1, -1, 0], [1, 1, -1], [-1, -1, 0]]
CODES = {"true": "yes", "false": "no"}


def table(path, text):
    """Write a table of text as what the file's name says."""
    if path.suffix == ".csv":
        path.write_text(text)
        return path
    pandas = pytest.importorskip("pandas")
    import io

    frame = pandas.read_csv(io.StringIO(text))
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_feather(path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_a_survey_as_it_comes(tmp_path, suffix):
    path = table(tmp_path / f"survey{suffix}", SURVEY)
    file = read_samples(path, id="respondent", drop="age", labels=["sex", "town"], **CODES)
    np.testing.assert_array_equal(file.spins.values, ANSWERS)
    assert file.names == ("q1", "q2", "q3")
    assert file.sample_names == ("101", "102", "103", "104")
    assert {name: values.tolist() for name, values in file.label_columns.items()} == {
        "sex": ["f", "m", "f", "m"],
        "town": ["Ulm", "Bern", "Ulm", "Bonn"],
    }
    assert file.labels.tolist() == ["f", "m", "f", "m"]
    some = read_samples(path, columns=["q3", "q1"], **CODES)
    np.testing.assert_array_equal(some.spins.values, np.array(ANSWERS)[:, [2, 0]])
    assert some.names == ("q3", "q1")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_every_error_leads_to_the_option_that_helps(tmp_path, suffix):
    """A newcomer follows the messages one by one, and arrives."""
    path = table(tmp_path / f"survey{suffix}", SURVEY)
    remedies = {
        r"column 'age' .* numbers such as '27'; labels='age' .* drop='age'": {"drop": "age"},
        r"'q1' \(3rd\) holds 'yes' and 'no'; true='yes', false='no' makes them spins": CODES,
        r"'sex' .* labels='sex' keeps it": {"labels": ["sex"]},
        r"'town' .* labels='town' keeps it": {"labels": ["sex", "town"]},
    }
    options = {}
    while remedies:
        with pytest.raises(ValueError, match="|".join(remedies)) as caught:
            read_samples(path, **options)
        helps = [told for told in remedies if re.search(told, str(caught.value))]
        assert len(helps) == 1, caught.value
        options |= remedies.pop(helps[0])
    np.testing.assert_array_equal(read_samples(path, **options).spins.values, ANSWERS)


@settings(max_examples=40)
@given(
    codes=st.sampled_from([("1", "2"), ("2", "1"), ("yes", "no"), ("1", "-9"), ("+", "-")]),
    values=st.lists(st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3), min_size=1),
    names=st.booleans(),
)
def test_codes_are_what_they_are_said_to_be(tmp_path_factory, codes, values, names):
    spelling = {1: codes[0], -1: codes[1], 0: "NA"}
    lines = ["a,b,c"] if names else []
    lines += [",".join(spelling[v] for v in row) for row in values]
    path = tmp_path_factory.mktemp("codes") / "data.csv"
    path.write_text("\n".join(lines))
    if not np.any(values):
        return
    file = read_samples(path, true=codes[0], false=[codes[1]])
    np.testing.assert_array_equal(file.spins.values, values)


def test_codes_of_numbers_in_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "data.parquet"
    frame = pandas.DataFrame({"a": [1, 2, 1, 2], "b": [2.0, np.nan, 1.0, 2.0]})
    frame.to_parquet(path)
    with pytest.raises(ValueError, match=r"'a' \(1st\) holds '1' and '2'; true='1', false='2'"):
        read_samples(path)
    file = read_samples(path, true="1", false="2")
    np.testing.assert_array_equal(file.spins.values, [[1, -1], [-1, 0], [1, 1], [-1, -1]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (CODES, r"line 3, column 2 \('b'\) holds 'maybe'; spins are yes \(\+1\) or no \(-1\)"),
        ({"true": "yes"}, r"true='…' and false='…' must be given together"),
        ({"true": "yes", "false": ["no", "Yes"]}, "'yes' cannot be both true and false"),
        ({"id": "who"}, "no column is named 'who'"),
        ({"drop": ["a", "Bee"]}, "no column is named 'Bee'"),
        ({"columns": ["a", "a"]}, "column 'a' is named twice, in columns"),
        ({"labels": "a", "drop": "a"}, "column 'a' is named twice, in labels and drop"),
        ({"drop": ["a", "b"]}, "1 column of spins"),
    ],
)
def test_wrong_options(tmp_path, options, message):
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\nyes,no,no\nno,maybe,no\nno,no,yes\nyes,yes,yes\n")
    with pytest.raises(ValueError, match=message):
        read_samples(path, **options)


def test_options_of_tables_are_refused_elsewhere(tmp_path):
    path = tmp_path / "data.npz"
    write_samples(path, np.eye(3), names="abc")
    with pytest.raises(ValueError, match=r"id, drop, .* are for tables: \.csv"):
        read_samples(path, drop="a")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("header", ["id", "case number", "V1"])
@pytest.mark.parametrize("first", [0, 1, 5000])
def test_numbers_of_rows_are_never_fitted(tmp_path, suffix, header, first):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(30, 3))
    rows = [f"{first + k},{','.join(map(str, row))}" for k, row in enumerate(X)]
    path = table(tmp_path / f"data{suffix}", "\n".join([f"{header},a,b,c", *rows]))
    file = read_samples(path)
    assert file.names == ("a", "b", "c")
    assert file.sample_names == tuple(str(first + k) for k in range(30))
    (note,) = file.notes
    assert note == f"column {header!r} (1st) holds whole numbers and names the samples; it is " + (
        "not fitted"
    )
    if suffix == ".csv":  # also without a line of names
        path.write_text("\n".join(rows))
        assert read_samples(path).spins.shape == (30, 3)


def test_numbers_of_rows_elsewhere_are_pointed_at(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b,code\n" + "".join(f"{k % 2},1,{k + 7}\n" for k in range(9)))
    message = r"column 'code' \(3rd\) holds whole numbers, all different; id='code' takes it"
    with pytest.raises(ValueError, match=message):
        read_samples(path)
    assert read_samples(path, id="code").sample_names == tuple(map(str, range(7, 16)))


def test_transposed_tables_leave_out_columns(tmp_path):
    path = tmp_path / "genes.csv"
    path.write_text("gene,chromosome,Ann,Bob\nG1,7,1,0\nG2,8,0,0\nsex,NA,f,m\nage,NA,31,27\n")
    file = read_samples(path, transpose=True, drop="chromosome", labels=["age", "sex"])
    assert (file.names, file.sample_names) == (("G1", "G2"), ("Ann", "Bob"))
    assert file.label_columns["sex"].tolist() == ["f", "m"]
    assert file.labels.tolist() == ["31", "27"]
    np.testing.assert_array_equal(file.spins.values, [[1, -1], [-1, -1]])


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".h5", ".zarr", ".parquet"])
def test_several_labels_round_trip(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    labels = {"sex": ["f", "m"], "town": ["Ulm", "Bern"]}
    write_samples(path, np.eye(2), names="ab", labels=labels)
    file = read_samples(path, labels=["town", "sex"])
    assert {name: found.tolist() for name, found in file.label_columns.items()} == labels
    assert list(file.label_columns) == ["town", "sex"]
    with pytest.raises(ValueError, match="labels cannot be called 'names'"):
        write_samples(path, np.eye(2), labels={"names": ["a", "b"]}, force=True)


def test_messages_speak_of_options():
    said = "true=\"it's\", false='no' makes; drop='a b' leaves; pass zero_is_missing=True"
    assert as_options(said) == (
        "--true 'it'\"'\"'s' --false no makes; --drop 'a b' leaves; pass --zero-is-missing"
    )


def test_the_command_reads_a_survey(run, tmp_path):
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, 60)
    answers = np.where(rng.random((60, 6)) < 0.1, 1 - side[:, None], side[:, None])
    lines = ['nr,age,sex,town,"likes tea, or coffee",b,c,d,e,f']
    for k, row in enumerate(answers):
        words = ",".join("ja" if v else "nein" for v in row)
        lines.append(f"{k + 1},{20 + k % 50},{'fm'[k % 2]},{'UB'[side[k]]},{words}")
    lines[5] = lines[5].replace("nein", "", 1).replace("ja", "", 1)
    (tmp_path / "survey.csv").write_text("\n".join(lines) + "\n")
    code, _, err = run("fit", "survey.csv", "-o", "m.npz", "--drop", "age", "--labels", "sex,town")
    assert code == 2
    assert "--true ja --false nein makes them spins" in err
    how = ["--drop", "age", "--labels", "sex,town", "--true", "ja", "--false", "nein"]
    code, out, err = run("fit", "survey.csv", "-o", "m.npz", "--json", *how)
    assert code == 0, err
    assert "column 'nr' (1st) holds whole numbers and names the samples" in err
    found = json.loads(out)
    assert found["adjusted_rand_index_town"] > found["adjusted_rand_index_sex"]
    assert dt.load("m.npz").feature_names_in_[0] == "likes tea, or coffee"
    assert run("predict", "m.npz", "survey.csv", "-o", "rows.csv", *how)[0] == 0
    assert Path("rows.csv").read_text().startswith("sample,known_sex,known_town,")
    some = ["--columns", '"likes tea, or coffee",b,c', *how[4:]]
    assert run("fit", "survey.csv", "-o", "some.npz", *some)[0] == 0
    assert run("impute", "survey.csv", "m.npz", "-o", "filled.csv", *how)[0] == 0
    words = {"true": "ja", "false": "nein"}  # as they were read
    filled = read_samples(tmp_path / "filled.csv", labels=["sex", "town"], **words)
    assert filled.spins.complete
    assert filled.sample_names[:2] == ("1", "2")


# --- Genotypes ----------------------------------------------------------------------------------


def bed(path, copies, **properties):
    to_bed = pytest.importorskip("bed_reader").to_bed
    to_bed(path, copies, properties=properties)
    return path


@pytest.mark.parametrize("transpose", [False, True])
def test_who_carries_an_allele(tmp_path, monkeypatch, transpose):
    monkeypatch.setattr("dualtap.io.arrays.CHUNK_BYTES", 400)  # several variants at a time
    rng = np.random.default_rng(0)
    copies = rng.choice([0.0, 1.0, 2.0, np.nan], size=(31, 17))
    people, variants = [f"P{k}" for k in range(31)], [f"rs{k}" for k in range(17)]
    alleles = rng.choice(list("ACGT"), 17)
    path = bed(
        tmp_path / "people.bed", copies, iid=people, sid=variants, allele_1=alleles, sex=[1] * 31
    )
    labels = None if transpose else "sex"
    file = read_samples(path, transpose=transpose, labels=labels)
    expected = np.where(np.isnan(copies), 0, np.where(copies > 0, 1, -1))
    np.testing.assert_array_equal(file.spins.values, expected.T if transpose else expected)
    named = tuple(f"{v}_{a}" for v, a in zip(variants, alleles, strict=True)), tuple(people)
    assert (file.names, file.sample_names) == (named[::-1] if transpose else named)
    if not transpose:
        assert set(file.labels) == {"1"}
        with pytest.raises(ValueError, match=r"no column of \.fam is named 'phen'.*'pheno'"):
            read_samples(path, labels="phen")


def test_damaged_genotypes_are_one_error(tmp_path):
    path = bed(tmp_path / "people.bed", np.array([[0, 1, 2], [2, 1, 0.0]]))
    for content in (b"", b"chr1\t10\t20\n" * 9, path.read_bytes()[:-1]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"people\.bed is not a readable \.bed file"):
            read_samples(path)
    path.with_suffix(".bim").unlink()
    with pytest.raises(FileNotFoundError, match=r"people\.bim"):
        read_samples(path)


# --- Cells --------------------------------------------------------------------------------------


def h5ad(path, X, compressed=None):
    """Write what anndata writes, whatever versions of pandas it knows."""
    h5py, sparse = pytest.importorskip("h5py"), pytest.importorskip("scipy.sparse")
    pytest.importorskip("anndata")
    frame = {"encoding-type": "dataframe", "encoding-version": "0.2.0"}
    text = {"encoding-type": "string-array", "encoding-version": "0.2.0"}
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        for axis, n, columns in (("obs", len(X), ["type"]), ("var", X.shape[1], [])):
            group = file.create_group(axis)
            group.attrs.update(frame | {"_index": "_index"})
            group.attrs["column-order"] = np.array(columns, dtype=h5py.string_dtype())
            group["_index"] = [f"{axis}{k}" for k in range(n)]
            group["_index"].attrs.update(text)
        file["obs/type"] = [f"T{k % 3}" for k in range(len(X))]
        file["obs/type"].attrs.update(text)
        if compressed is None:
            file["X"] = X
            file["X"].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
            return path
        packed = sparse.csr_array(X) if compressed == "csr" else sparse.csc_array(X)
        group = file.create_group("X")
        group.attrs.update({"encoding-type": f"{compressed}_matrix", "encoding-version": "0.1.0"})
        group.attrs["shape"] = X.shape
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(packed, name)
    return path


@pytest.mark.parametrize("compressed", [None, "csr", "csc"])
@pytest.mark.parametrize("transpose", [False, True])
def test_genes_detected_in_cells(tmp_path, monkeypatch, compressed, transpose):
    monkeypatch.setattr("dualtap.io.arrays.CHUNK_BYTES", 200)
    counts = np.random.default_rng(0).poisson(0.7, size=(31, 12)).astype(np.float32)
    path = h5ad(tmp_path / "cells.h5ad", counts, compressed)
    file = read_samples(path, transpose=transpose, labels=None if transpose else "type")
    expected = np.where(counts > 0, 1, -1)
    np.testing.assert_array_equal(file.spins.values, expected.T if transpose else expected)
    cells, genes = (tuple(f"{axis}{k}" for k in range(n)) for axis, n in (("obs", 31), ("var", 12)))
    assert (file.sample_names, file.names) == ((genes, cells) if transpose else (cells, genes))
    if not transpose:
        assert file.labels[:4].tolist() == ["T0", "T1", "T2", "T0"]
        with pytest.raises(ValueError, match=r"no column of obs is named 'typ'.*'type'"):
            read_samples(path, labels="typ")


def test_cells_that_ship_with_scanpy(tmp_path):
    folder = Path(importlib.util.find_spec("scanpy").submodule_search_locations[0], "datasets")
    file = read_samples(folder / "10x_pbmc68k_reduced.h5ad", labels="bulk_labels")
    known = datasets.load_pbmc()
    np.testing.assert_array_equal(file.spins.values, known.X)
    assert file.names == known.names
    assert file.labels.tolist() == [known.target_names[k] for k in known.y]
    assert file.notes == ("X is scaled: raw.X was read",)


def test_cells_that_cannot_be_read(tmp_path):
    X = np.random.default_rng(0).normal(size=(5, 4))
    with pytest.raises(ValueError, match=r"X holds negative numbers: it is scaled"):
        read_samples(h5ad(tmp_path / "scaled.h5ad", X))
    path = h5ad(tmp_path / "damaged.h5ad", np.eye(5), "csr")
    import h5py

    with h5py.File(path, "a") as file:
        file["X/indices"][2] = 10**6
    with pytest.raises(ValueError, match=r"damaged\.h5ad is not a readable \.h5ad file"):
        read_samples(path)
    path.write_bytes(b"no HDF5")
    with pytest.raises(ValueError, match=r"damaged\.h5ad is not a readable \.h5ad file"):
        read_samples(path)


@pytest.mark.parametrize("size", [2**64 - 16, 2**40])
def test_damaged_heaps_of_cells(tmp_path, monkeypatch, size):
    """With the first of these sizes anndata never returned, and no signal ended it."""
    monkeypatch.setattr("dualtap.io.h5_texts._SECONDS", 2)
    path = h5ad(tmp_path / "cells.h5ad", np.eye(5))
    data = bytearray(path.read_bytes())
    at = data.index(b"GCOL") + 24
    data[at : at + 8] = size.to_bytes(8, "little")
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"cells\.h5ad is not a readable \.h5ad file"):
        read_samples(path)


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [("bed_reader", "bed-reader", "genotypes"), ("anndata", "anndata", "cells")],
)
def test_missing_packages_are_named(tmp_path, monkeypatch, package, name, extra):
    path = tmp_path / ("data.bed" if package == "bed_reader" else "data.h5ad")
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"needs {name}; .* 'dualtap\[{extra}\]'"):
        read_samples(path)

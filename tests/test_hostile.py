"""Files made to do harm: each of them did, once."""

import gzip
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualtap.io import read_samples, write_samples
from dualtap.io.codes import spin_code
from dualtap.io.collecting import Request
from dualtap.io.spellings import spelled_codes

h5py = pytest.importorskip("h5py")
X = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=(40, 12))
SECRET = b"secret of another file: " * 3


def refused(run, *words, part):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("dualtap: ")
    assert err.count("\n") == 1
    assert part in err
    assert "secret" not in err


# --- A file that leads to other files


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret.txt"
    path.write_bytes(SECRET)
    return path


def external(path, secret, name):
    with h5py.File(path, "w") as file:
        if name != "X":
            file["X"] = X
        shape, dtype = ((12,), "S6") if name == "names" else ((6, 12), "u1")
        file.create_dataset(name, shape, dtype, external=[(str(secret), 0, 72)])


def virtual(path, secret, name):
    source = path.with_name("source.h5")
    with h5py.File(source, "w") as file:
        file["d"] = np.array([SECRET[:6]] * 12) if name == "names" else X
    with h5py.File(path, "w") as file:
        if name != "X":
            file["X"] = X
        with h5py.File(source) as other:
            layout = h5py.VirtualLayout(other["d"].shape, other["d"].dtype)
            layout[...] = h5py.VirtualSource(source, "d", other["d"].shape)
        file.create_virtual_dataset(name, layout)


@pytest.mark.parametrize("name", ["X", "names", "label"])
@pytest.mark.parametrize("make", [external, virtual])
def test_hdf5_that_leads_elsewhere(run, tmp_path, secret, make, name):
    make(tmp_path / "d.h5", secret, "names" if name == "label" else name)
    words = ("--labels", "names") if name == "label" else ()
    refused(run, "fit", "d.h5", "-o", "m.npz", *words, part="are in other files")
    assert not (tmp_path / "m.npz").exists()


def test_hdf5_links_are_not_followed(run, tmp_path, secret):
    virtual(tmp_path / "d.h5", secret, "X")
    with h5py.File(tmp_path / "linked.h5", "w") as file:
        file["X"] = h5py.ExternalLink("source.h5", "d")
    refused(run, "fit", "linked.h5", "-o", "m.npz", part="holds the datasets (none)")


@pytest.mark.parametrize("what", ["chunk", "metadata", "folder"])
@pytest.mark.parametrize("array", ["X", "names"])
def test_links_inside_a_zarr_store(run, tmp_path, what, array):
    pytest.importorskip("zarr")
    for name in ("d.zarr", "other.zarr"):
        write_samples(tmp_path / name, X, names=[f"{name} {k}" for k in range(12)])
    inside = {"chunk": "c", "metadata": "zarr.json", "folder": ""}[what]
    there = tmp_path / "d.zarr" / array / inside
    if what == "chunk":
        there = next(path for path in there.rglob("*") if path.is_file())
    there.rename(tmp_path / "aside")
    there.symlink_to(tmp_path / "other.zarr" / there.relative_to(tmp_path / "d.zarr"))
    if (what, array) == ("folder", "names"):  # as if it were not there
        assert read_samples(tmp_path / "d.zarr").names is None
        return
    part = "holds the arrays" if what == "folder" else "links inside a store are not followed"
    refused(run, "fit", "d.zarr", "-o", "m.npz", part=part)


# --- HDF5 that is damaged, or as large as it says


def with_names(path, names):
    with h5py.File(path, "w") as file:
        file["X"] = X
        file["names"] = names


def test_texts_of_variable_length_are_read(tmp_path):
    names = ["ä", "", *(f"spin {k}" for k in range(10))]
    with_names(tmp_path / "d.h5", names)
    assert read_samples(tmp_path / "d.h5").names == tuple(names)


@pytest.mark.parametrize("size", [2**64 - 16, 2**40])
def test_damaged_heaps_of_texts(run, tmp_path, size, monkeypatch):
    """The first of these sizes made the HDF5 library loop for ever."""
    monkeypatch.setattr("dualtap.io.h5_texts._SECONDS", 2)
    with_names(tmp_path / "d.h5", [f"spin {k}" for k in range(12)])
    data = bytearray((tmp_path / "d.h5").read_bytes())
    at = data.index(b"GCOL") + 24
    data[at : at + 8] = size.to_bytes(8, "little")
    (tmp_path / "d.h5").write_bytes(data)
    refused(run, "fit", "d.h5", "-o", "m.npz", part="d.h5 is not a readable .h5 file")


def test_values_of_variable_length_are_refused(run, tmp_path):
    lists = np.empty(12, dtype=object)
    lists[:] = [np.arange(k) for k in range(12)]
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file["X"] = X
        file.create_dataset("names", data=lists, dtype=h5py.vlen_dtype(int))
    refused(run, "fit", "d.h5", "-o", "m.npz", part="values of variable length")


def test_huge_chunks_are_refused(run, tmp_path):
    with h5py.File(tmp_path / "d.h5", "w") as file:
        shape = (14_000, 12_000)
        file.create_dataset("X", shape, "i1", chunks=shape, compression="gzip")[0, 0] = 1
    refused(run, "fit", "d.h5", "-o", "m.npz", part="take 160 MB each; store smaller ones")


def test_tall_chunks_are_read_by_columns(tmp_path, monkeypatch):
    """Chunks as tall as the matrix would be unpacked again for every few rows."""
    monkeypatch.setattr("dualtap.io.hdf5._BAND", 2**12)
    monkeypatch.setattr("dualtap.io.collecting.CHUNK_BYTES", 2**9)
    monkeypatch.setattr("dualtap.io.arrays.CHUNK_BYTES", 2**9)
    tall = np.random.default_rng(1).integers(0, 2, size=(1000, 40))
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file.create_dataset("X", data=tall, chunks=(1000, 1), compression="gzip")
    spins = read_samples(tmp_path / "d.h5").spins
    np.testing.assert_array_equal(spins.values > 0, tall)


WRITER = """
import resource, sys
import numpy as np
from dualtap.io import write_samples
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
X = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=(3000, 1000))
for path in sys.argv[1:]:
    try:
        write_samples(path, X, names=[f"spin {k}" for k in range(1000)], force=True)
    except OSError as error:
        print("refused", error.errno)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_full_disk(tmp_path):
    """HDF5 ended in a segmentation fault."""
    paths = [tmp_path / f"d{suffix}" for suffix in (".h5", ".npz", ".csv", ".parquet", ".zarr")]
    for path in paths:
        write_samples(path, X)
    done = subprocess.run(
        [sys.executable, "-c", WRITER, *map(str, paths)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert done.stdout.count("refused 27") == len(paths)
    for path in paths:
        np.testing.assert_array_equal(read_samples(path).spins.values, X)
    assert set(tmp_path.iterdir()) == set(paths)


# --- Files that claim far more than their size, and slow ones


@pytest.fixture
def small_limit(monkeypatch):
    """More than 1 MB is large."""
    monkeypatch.setattr("dualtap._files._LARGE", 2**20)


ZEROS = np.zeros((4000, 2000), dtype=np.int8)
ZEROS[0] = 1


def npz_of_zeros(path):
    np.savez_compressed(path, X=ZEROS)


def text_of_zeros(path):
    path.write_bytes(gzip.compress(b"0,0,0,1\n" * 2**20))


def parquet_of_zeros(path):
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(
        pa.table({name: np.zeros(2**21, dtype=np.int8) for name in "ab"}), path
    )


def arrow_of_zeros(path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({name: np.zeros(2**21, dtype=np.int8) for name in "ab"})
    pytest.importorskip("pyarrow.feather").write_feather(table, path, "zstd", chunksize=2**21)


def hdf5_of_zeros(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=ZEROS, compression="gzip", compression_opts=9)


def zarr_of_zeros(path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(path, shape=(2**12, 2**12), chunks=(2**9, 2**9), dtype="i1")


SWOLLEN = {
    "d.npz": npz_of_zeros,
    "d.csv.gz": text_of_zeros,
    "d.parquet": parquet_of_zeros,
    "d.feather": arrow_of_zeros,
    "d.h5": hdf5_of_zeros,
    "d.zarr": zarr_of_zeros,
}


@pytest.mark.parametrize("name", SWOLLEN)
def test_files_that_unpack_to_far_more(run, tmp_path, small_limit, name):
    SWOLLEN[name](tmp_path / name)
    refused(run, "fit", name, "-o", "m.npz", part="pass --allow-expansion if that is right")
    spins = read_samples(tmp_path / name, allow_expansion=True).spins
    assert spins.n_entries >= 2**22


@pytest.mark.parametrize("length", [300, 2**20])
def test_long_texts_that_rows_share(tmp_path, length):
    """In twenty thousand rows; an array of the longer ones would take 78 GB."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    words = pa.DictionaryArray.from_arrays(
        np.arange(20_000, dtype=np.int32) % 100 // 99, ["a", "x" * length]
    )
    spins = np.arange(20_000) % 2
    pq.write_table(pa.table({"a": spins, "b": spins, "label": words}), tmp_path / "d.parquet")
    if length == 300:
        labels = read_samples(tmp_path / "d.parquet", labels="label").labels
        assert labels[[0, 99]].tolist() == ["a", "x" * 300]
        return
    with pytest.raises(ValueError, match="one of the labels has 1048576 characters"):
        read_samples(tmp_path / "d.parquet", labels="label")


def test_names_beyond_unicode(run, tmp_path):
    names = np.array(["a\ud800", *"bcdefghijkl"])
    np.savez(tmp_path / "d.npz", X=X, names=names)
    refused(run, "fit", "d.npz", "-o", "m.npz", part="is not Unicode text")


def test_many_spellings_take_linear_time(tmp_path):
    """Comparisons are counted: every spelling was compared with all fields that were left."""
    rows = [",".join(f"1.{'0' * k}" for k in range(j % 7, 3000, 7)) for j in range(7)]
    rows = [row for row in rows if row.count(",") == rows[-1].count(",")]
    (tmp_path / "d.csv").write_text("\n".join(rows) + "\n" + rows[0].replace("1.", "-1.") + "\n")
    start = time.process_time()
    spins = read_samples(tmp_path / "d.csv").spins
    assert time.process_time() - start < 5  # CPU time, 0.05 s as a rule
    assert spins.values[:-1].all()
    assert (spins.values[-1] == -1).all()


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["1", "-1", "+1", "1.0", "-1e0", "NA", "", '"1"']), min_size=4))
def test_spellings_are_the_same_sorted_or_compared(words):
    data = ",".join(words).encode() + b"\n"
    ends = np.array([k for k, byte in enumerate(data) if byte in b",\n"])
    starts = np.concatenate([[0], ends[:-1] + 1])
    request = Request(Path("data.csv"))
    compared = spelled_codes(request, data, starts, ends)
    with patch("dualtap.io.spellings._FEW", 0):
        np.testing.assert_array_equal(spelled_codes(request, data, starts, ends), compared)
    np.testing.assert_array_equal(compared, [spin_code(word) for word in words])


def test_names_of_numbers_that_are_no_characters(tmp_path):
    names = np.array(["ab", "cd"])
    names.view(np.uint32)[0] = 0x110000  # one beyond the last
    np.savez(tmp_path / "d.npz", X=np.eye(2), names=names)
    with pytest.raises(ValueError, match=r"d\.npz: 'names' is not Unicode text"):
        read_samples(tmp_path / "d.npz")

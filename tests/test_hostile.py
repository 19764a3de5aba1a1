"""Files made to do harm: each of them did, once."""

import subprocess
import sys

import numpy as np
import pytest

from dualtap.io import read_samples, write_samples

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


@pytest.mark.parametrize("size", [2**64 - 16, 2**64 - 1, 2**40])
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

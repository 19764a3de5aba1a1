"""Files are whole or not there; large ones take little memory."""

import io
import os
import stat
import tracemalloc

import numpy as np
import pytest

import dualtap as dt
from dualtap._files import atomic_write, check_free, known_suffix, open_regular
from dualtap._npy import npy_header, read_arrays
from dualtap.io import FORMATS, read_samples, write_samples
from peak_memory import on_linux, readings


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


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.csv", ".csv"),
        ("a.b.CSV", ".csv"),
        ("a.csv.gz", ".csv.gz"),
        ("a.v1.2.tsv.GZ", ".tsv.gz"),
        ("a.tar.npz", ".npz"),
    ],
)
def test_known_suffix(tmp_path, name, suffix):
    assert known_suffix(tmp_path / name, FORMATS) == suffix


@pytest.mark.parametrize("name", ["a", "a.gz", "csv", "a.csv.zip", "a.npz.gz"])
def test_unknown_suffix(tmp_path, name):
    with pytest.raises(ValueError, match=r"must end in \.npz or \.npy or .* or \.feather"):
        known_suffix(tmp_path / name, FORMATS)


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["i1", ">i4", "<f8", "?", "U3"])
def test_arrays_of_every_layout(tmp_path, version, order, dtype):
    array = np.asarray(np.arange(6).reshape(2, 3) % 2, dtype=dtype, order=order)
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    (tmp_path / "a.npy").write_bytes(file.getvalue())
    read = read_arrays(tmp_path / "a.npy")
    np.testing.assert_array_equal(read, array)
    assert read.dtype == array.dtype
    assert read.flags.writeable
    file.seek(0)
    assert npy_header(file, len(file.getvalue()), exact=True).shape == (2, 3)
    file.seek(0)
    with pytest.raises(ValueError, match="declares an array of shape"):
        npy_header(file, len(file.getvalue()) + 1, exact=True)


def test_open_regular_follows_links(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "b").symlink_to("a")
    with open_regular(tmp_path / "b") as file:
        assert file.read() == b"x"


# Memory: what is read is kept at one bit per spin, and passes through in small pieces.

ROWS = np.random.default_rng(0).integers(0, 2, size=(20, 1000), dtype=np.int8)


def _large(path, n_rows):
    """Write a large file of zeros and ones, the same twenty rows again and again."""
    shape, repeats = (n_rows, ROWS.shape[1]), n_rows // len(ROWS)
    if path.suffix == ".npy":
        order = "columns" in path.name
        out = np.lib.format.open_memmap(path, "w+", np.int8, shape, fortran_order=order)
        out[:] = np.tile(ROWS, (repeats, 1))
        out.flush()
    elif path.suffix == ".csv":
        text = io.BytesIO()
        np.savetxt(text, ROWS, fmt="%d", delimiter=",")
        path.write_bytes(text.getvalue() * repeats)
    else:
        write_samples(path, np.tile(ROWS, (repeats, 1)))


@on_linux
def test_large_files_take_little_memory(tmp_path):
    """Thirty million entries: 4 MB packed, 30 MB as bytes, 120 MB as floats; 60 MB of text."""
    n_rows = 30_000
    names = (
        "a.csv",
        "rows.npy",
        "columns.npy",
        "turned.npy",
        "a.npz",
        "a.h5",
        "a.arrow",
        "a.parquet",
    )
    paths = [tmp_path / name for name in names]
    for path in paths:
        _large(path, n_rows)
    _large(tmp_path / "small.csv", 20)
    found = readings(tmp_path / "small.csv", paths, libraries=("h5py", "pyarrow.parquet"))
    assert [reading.path for reading in found] == list(map(str, paths))
    spins = 2 * ROWS.astype(int) - 1
    for path, growth, shape, total in found:
        upright = n_rows, 1000
        turned = path.endswith("turned.npy")
        assert shape == (upright[::-1] if turned else upright)
        assert total == (spins[:, :7].sum() * n_rows // 20 if turned else spins[:7].sum())
        assert growth < 90, path


def test_no_copy_of_a_text_file_is_held(tmp_path):
    path = tmp_path / "d.csv"
    _large(path, 20_000)  # 40 MB, 80 MB as floats
    tracemalloc.start()
    try:
        spins = read_samples(path).spins
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 75e6
    assert spins.shape == (20_000, 1000)


def test_written_spins_need_not_be_unpacked(tmp_path, monkeypatch):
    """Packed spins are written a block at a time, and come back as they were."""
    monkeypatch.setattr("dualtap.spins.builder.DENSE", 0)
    X = np.random.default_rng(0).choice([-1, 1, np.nan], size=(300, 13), p=[0.4, 0.5, 0.1])
    packed = dt.as_spins(X)
    expected = packed.values
    monkeypatch.setattr(type(packed), "values", property(lambda self: pytest.fail("unpacked")))
    for suffix in FORMATS:
        write_samples(tmp_path / f"d{suffix}", packed)
        back = read_samples(tmp_path / f"d{suffix}").spins
        np.testing.assert_array_equal(back.block(slice(None)), expected)

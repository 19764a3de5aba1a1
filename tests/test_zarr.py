"""Zarr stores: samples in chunks of any layout, and stores that are damaged or not stores."""

import json
import os
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualtap as dt
from dualtap._files import atomic_folder, check_free
from dualtap.io import read_samples, write_samples
from dualtap.io.zarr_store import open_array
from peak_memory import on_linux, readings

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
vlen_utf8 = pytest.importorskip("zarr.codecs.vlen_utf8")

X = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=(200, 30))


def store(path, data, **options):
    """Write a store whose root is an array."""
    array = zarr.create_array(path, shape=data.shape, dtype=data.dtype, **options)
    array[...] = data
    return path


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("chunks", [(200, 30), (7, 30), (200, 1), (13, 4), (1000, 1000)])
@pytest.mark.parametrize("transpose", [False, True])
def test_every_layout_of_chunks(tmp_path, monkeypatch, zarr_format, chunks, transpose):
    """In bands of rows, in bands of columns, and in pieces of bands that are too large."""
    path = store(tmp_path / "d.zarr", X, chunks=chunks, zarr_format=zarr_format)
    for band, piece in ((2**25, 2**22), (500, 100), (0, 900)):
        monkeypatch.setattr("dualtap.io.zarr_store._BAND", band)
        monkeypatch.setattr("dualtap.io.arrays.CHUNK_BYTES", piece)
        spins = read_samples(path, transpose=transpose).spins
        np.testing.assert_array_equal(spins.values, X.T if transpose else X)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float64"])
def test_types(tmp_path, dtype):
    low = -1 if np.dtype(dtype).kind in "if" else 0
    data = np.where(X > 0, 1, low).astype(dtype)
    spins = read_samples(store(tmp_path / "d.zarr", data)).spins
    np.testing.assert_array_equal(spins.values, X)
    assert spins.encoding == ("boolean" if dtype == "bool" else "0/1" if low == 0 else "-1/+1")


def test_missing_entries(tmp_path):
    data = X.astype(np.float32)
    data[::7, ::3] = np.nan
    spins = read_samples(store(tmp_path / "d.zarr", data, chunks=(50, 7))).spins
    np.testing.assert_array_equal(spins.values, np.nan_to_num(data).astype(np.int8))
    zeros = np.nan_to_num(data).astype(np.int8)
    path = store(tmp_path / "zeros.zarr", zeros)
    with pytest.raises(ValueError, match="zero_is_missing"):
        read_samples(path)
    np.testing.assert_array_equal(read_samples(path, zero_is_missing=True).spins.values, zeros)


def test_chunks_that_were_left_out_hold_the_fill_value(tmp_path):
    array = zarr.create_array(tmp_path / "d.zarr", shape=(4, 4), chunks=(2, 2), dtype="f4")
    array[:2] = 1
    array[2:, :2] = np.nan
    expected = np.array([[1, 1, 1, 1]] * 2 + [[0, 0, -1, -1]] * 2)
    np.testing.assert_array_equal(read_samples(tmp_path / "d.zarr").spins.values, expected)


def test_names_in_groups(tmp_path):
    group = zarr.create_group(tmp_path / "d.zarr")
    group.create_array("a/b/spikes", data=(X > 0))
    group.create_array("a/b/names", data=np.arange(30))
    group.create_array("party", data=np.array([f"p{k % 3}" for k in range(200)], dtype="T"))
    group.create_array("a/other", data=np.ones((2, 2, 2)))
    file = read_samples(tmp_path / "d.zarr", labels="party")
    np.testing.assert_array_equal(file.spins.values, X)
    assert file.names == tuple(map(str, range(30)))
    assert file.labels[:4].tolist() == ["p0", "p1", "p2", "p0"]
    group.create_array("c", data=X)
    with pytest.raises(ValueError, match=r"a/b/spikes \(200, 30\), a/other .* name the samples X"):
        read_samples(tmp_path / "d.zarr")
    group.create_array("samples", data=X[:5])
    assert read_samples(tmp_path / "d.zarr").spins.shape == (5, 30)
    group.create_array("X", data=X[:4])
    assert read_samples(tmp_path / "d.zarr").spins.shape == (4, 30)
    with pytest.raises(ValueError, match=r"no array is named 'prty'; the nearest: 'party'"):
        read_samples(tmp_path / "d.zarr", labels="prty")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["<U3", "|S3", "T"])
@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
def test_texts_of_every_type(tmp_path, zarr_format, dtype):
    group = zarr.create_group(tmp_path / "d.zarr", zarr_format=zarr_format)
    group.create_array("votes", data=X)
    names = np.array([f"n{k}" for k in range(30)]).astype(dtype)
    group.create_array("names", shape=(30,), dtype="string" if dtype == "T" else dtype)[:] = names
    assert read_samples(tmp_path / "d.zarr").names == tuple(f"n{k}" for k in range(30))


def texts_of_number(path, claimed, *codecs, shards=None):
    """Write 30 texts in a store, of which their first chunk claims another number."""

    def encode(self, texts):
        return claimed.to_bytes(4, "little") + bytes(numcodecs.VLenUTF8().encode(texts))[4:]

    with pytest.MonkeyPatch.context() as patch:
        codec = type("Lying", (), {"encode": encode})()
        patch.setattr(vlen_utf8, "_vlen_utf8_codec", codec)
        options = {"shape": (30,), "chunks": (30,), "shards": shards, "dtype": "string"}
        array = zarr.create_array(path, compressors=codecs, **options)
        array[:] = np.array([f"n{k}" for k in range(30)])


@pytest.mark.parametrize("shards", [None, (30,)])
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("codec", [None, "Zstd", "Blosc", "Gzip"])
@pytest.mark.parametrize("claimed", [29, 30, 2**31])
@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
def test_chunks_hold_as_many_texts_as_they_claim(tmp_path, shards, checked, codec, claimed):
    """Memory is taken by that number, 32 GB of it, before a text is read."""
    path = tmp_path / "d.zarr"
    zarr.create_group(path).create_array("X", data=X)
    codecs = [getattr(zarr.codecs, f"{codec}Codec")()] if codec else []
    codecs += [zarr.codecs.Crc32cCodec()] if checked else []
    texts_of_number(path / "names", claimed, *codecs, shards=shards)
    if claimed == 30:
        assert read_samples(path).names == tuple(f"n{k}" for k in range(30))
        return
    with pytest.raises(ValueError, match=f"a chunk of 30 texts, '0', claims {claimed}"):
        read_samples(path)


def test_shards_and_compressors(tmp_path):
    path = store(tmp_path / "s.zarr", X, chunks=(10, 10), shards=(50, 30))
    np.testing.assert_array_equal(read_samples(path).spins.values, X)
    for k, codec in enumerate((zarr.codecs.BloscCodec(), zarr.codecs.GzipCodec(), None)):
        path = store(tmp_path / f"{k}.zarr", X, chunks=(10, 10), compressors=codec)
        np.testing.assert_array_equal(read_samples(path).spins.values, X)


def test_the_array_inside(tmp_path):
    """It is opened, not read: a damaged chunk does not matter until it is needed."""
    write_samples(tmp_path / "d.zarr", X, names=range(30))
    array = open_array(tmp_path / "d.zarr")
    assert (array.shape, array.chunks, array.dtype) == ((200, 30), (200, 30), np.int8)
    np.testing.assert_array_equal(array[3:9], X[3:9])
    (tmp_path / "d.zarr" / "X" / "c" / "0" / "0").write_bytes(b"damaged")
    assert open_array(tmp_path / "d.zarr").shape == (200, 30)
    with pytest.raises(ValueError, match=r"holds the arrays \(3,\); name the samples X"):
        open_array(store(tmp_path / "v.zarr", np.ones(3)))


def test_the_array_inside_for_dask(tmp_path):
    da = pytest.importorskip("dask.array")
    path = store(tmp_path / "d.zarr", X, chunks=(60, 30))
    lazy = da.from_zarr(open_array(path))
    assert lazy.chunks == ((60, 60, 60, 20), (30,))
    np.testing.assert_array_equal(lazy[50:70].compute(scheduler="synchronous"), X[50:70])


# Writing


def test_stores_are_replaced_only_by_force(tmp_path):
    path = tmp_path / "d.zarr"
    write_samples(path, X, labels=range(200))
    with pytest.raises(FileExistsError, match="exists; pass force=True"):
        write_samples(path, X[:5])
    assert read_samples(path).spins.shape == (200, 30)
    write_samples(path, X[:5], force=True)
    assert read_samples(path).spins.shape == (5, 30)
    assert not (path / "label").exists()
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o777 & ~_umask()


def _umask():
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_a_failure_leaves_the_older_store(tmp_path, monkeypatch):
    path = tmp_path / "d.zarr"
    write_samples(path, X)
    monkeypatch.setattr("dualtap.io.zarr_store.written_numbers", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_samples(path, X[:5], force=True)
    monkeypatch.undo()
    assert read_samples(path).spins.shape == (200, 30)
    renamed = Path.rename
    monkeypatch.setattr("dualtap._swap._exchanged", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", lambda old, new: _refuse_tmp(renamed, old, new))
    with pytest.raises(OSError, match="full"):
        write_samples(path, X[:5], force=True)
    monkeypatch.undo()
    assert read_samples(path).spins.shape == (200, 30)
    assert list(tmp_path.iterdir()) == [path]


def _refuse_tmp(rename, old, new):
    if old.suffix == ".tmp":
        raise OSError("full")
    return rename(old, new)


def test_folders_that_are_no_stores_are_never_replaced(tmp_path):
    path = tmp_path / "holiday.zarr"
    path.mkdir()
    (path / "photo.jpg").touch()
    for act in (check_free, lambda path, force: write_samples(path, X, force=force)):
        with pytest.raises(IsADirectoryError, match="is a folder"):
            act(path, force=True)
    assert (path / "photo.jpg").exists()
    plain = tmp_path / "model.npz"
    zarr.create_group(plain)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_free(plain, force=True)


def test_links_and_files_in_the_way_are_replaced_themselves(tmp_path):
    write_samples(tmp_path / "real.zarr", X)
    (tmp_path / "link.zarr").symlink_to("real.zarr")
    assert read_samples(tmp_path / "link.zarr").spins.shape == (200, 30)
    (tmp_path / "file.zarr").touch()
    for name in ("link.zarr", "file.zarr"):
        with atomic_folder(tmp_path / name, force=True) as folder:
            (folder / "zarr.json").touch()
        assert (tmp_path / name).is_dir()
        assert not (tmp_path / name).is_symlink()
    assert read_samples(tmp_path / "real.zarr").spins.shape == (200, 30)
    assert len(list(tmp_path.iterdir())) == 3


def test_missing_package_is_named(tmp_path, monkeypatch):
    write_samples(tmp_path / "d.zarr", X)
    monkeypatch.setitem(sys.modules, "zarr", None)
    message = r"needs zarr; install it with: pip install 'dualtap\[zarr\]'"
    with pytest.raises(ImportError, match=message):
        read_samples(tmp_path / "d.zarr")
    with pytest.raises(ImportError, match=message):
        write_samples(tmp_path / "d.zarr", X, force=True)
    assert list(tmp_path.iterdir()) == [tmp_path / "d.zarr"]


# The command


def test_commands(run, tmp_path):
    sample = ("sample", "--spins", 100, "--patterns", 2, "--samples", 30, "-o", "d.zarr", "-q")
    assert run(*sample) == (0, "", "")
    assert run("fit", "d.zarr", "-o", "m.npz", "-q") == (0, "", "")
    code, out, _ = run("show", "m.npz", "--data", "d.zarr", "--json")
    assert (code, json.loads(out)["n_patterns"]) == (0, 2)
    assert "use --force" in run(*sample)[2]
    assert run(*sample, "--force") == (0, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.zarr", "m.npz"]


# Malformed stores

CASES = {}
"""Name of the case: what makes the store, part of the message."""


def case(message):
    def keep(make):
        CASES[make.__name__] = make, message
        return make

    return keep


def changed(path, inside="zarr.json", **changes):
    """Write a store and change its metadata; None removes an entry."""
    if not path.exists():
        store(path, X, chunks=(50, 30), zarr_format=2 if inside == ".zarray" else 3)
    metadata = json.loads((path / inside).read_text()) | changes
    kept = {key: value for key, value in metadata.items() if value is not None}
    (path / inside).write_text(json.dumps(kept))


@case("this folder is not a Zarr store")
def _empty_folder(path):
    path.mkdir()


@case("this is none")
def _text_file(path):
    path.write_text("1,0\n")


@case("this is none")
def _pipe(path):
    os.mkfifo(path)


@case("cannot be opened: Too many levels")
def _loop(path):
    path.symlink_to(path.name)


@case("there is no file")
def _nothing(path):
    pass


@case("holds the arrays (none)")
def _empty_group(path):
    zarr.create_group(path)


@case("links inside a store are not followed")
def _metadata_are_a_device(path):
    path.mkdir()
    (path / "zarr.json").symlink_to("/dev/zero")


@case("'0' is a link")
def _chunk_is_a_device(path):
    changed(path)
    (path / "c" / "1" / "0").unlink()
    (path / "c" / "1" / "0").symlink_to("/dev/zero")


@case("'c' is a link")
def _chunks_in_a_circle(path):
    changed(path)
    shutil.rmtree(path / "c")
    (path / "c").symlink_to(".")


for k, text in enumerate(("", "{", "[]", "[" * 100_000, "null", '"array"', "\xff")):
    CASES[f"metadata {k}"] = (
        lambda path, text=text: (changed(path), (path / "zarr.json").write_text(text)),
        "is not a readable .zarr file",
    )


@case("too long")
def _long_metadata(path):
    path.mkdir()
    (path / "zarr.json").touch()
    os.truncate(path / "zarr.json", 10**10)


for name, changes, message in (
    ("no shape", {"shape": None}, "holds the arrays ()"),
    ("shape of text", {"shape": ["a", "b"]}, "readable"),
    ("negative shape", {"shape": [-3, 4]}, "readable"),
    ("cube", {"shape": [2, 2, 2]}, "holds the arrays (2, 2, 2)"),
    ("no rows", {"shape": [0, 30]}, "0 rows"),
    ("shape of 10^14", {"shape": [10**7, 10**7]}, "and only"),
    ("shape of 10^30", {"shape": [10**15, 10**15]}, "and only"),
    ("many left out", {"shape": [10**8, 30]}, "only"),
    ("no chunks", {"chunk_grid": None}, "readable"),
    ("chunks of nothing", {"chunk_grid": {"name": "regular"}}, "readable"),
    ("unknown type", {"data_type": "int9"}, "readable"),
    ("complex", {"data_type": "complex128", "fill_value": [0.0, 0.0]}, "complex128"),
    ("unknown codec", {"codecs": [{"name": "dance"}]}, "packed by 'dance'"),
    ("no codecs", {"codecs": []}, "readable"),
    ("format 9", {"zarr_format": 9}, "readable"),
):
    CASES[name] = lambda path, changes=changes: changed(path, **changes), message


def _chunks(*shape):
    return {"name": "regular", "configuration": {"chunk_shape": shape}}


for name, shape, message in (
    ("chunks of zero", (0, 30), "readable"),
    ("chunks of one side", (5,), "readable"),
    ("chunks of 10^10", (10**5, 10**5), "store smaller ones"),
):
    CASES[name] = lambda path, s=shape: changed(path, chunk_grid=_chunks(*s)), message


class _Bomb:
    def __reduce__(self):
        return os.abort, ()


@case("packed by 'pickle'")
def _pickle(path):
    import pickle

    changed(path, ".zarray", filters=[{"id": "pickle"}], compressor=None)
    (path / "0.0").write_bytes(pickle.dumps(_Bomb()))


@case("packed by 'numcodecs.pickle'")
def _pickle_in_shards(path):
    inner = [{"name": "bytes"}, {"name": "numcodecs.pickle"}]
    grid = {"name": "sharding_indexed", "configuration": {"chunk_shape": [5, 5], "codecs": inner}}
    changed(path, codecs=[grid])


@case("is not a readable .zarr file")
def _damaged_chunk(path):
    changed(path)
    (path / "c" / "2" / "0").write_bytes(b"hello, world")


@case("is not a readable .zarr file")
def _cut_chunk(path):
    changed(path)
    chunk = path / "c" / "2" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-9])


@case("is stored in 100000")
def _swollen_chunk(path):
    changed(path)
    (path / "c" / "2" / "0").write_bytes(bytes(100_000))


@case("'names' has shape (3,)")
def _short_names(path):
    write_samples(path, X)
    zarr.open_group(path, mode="a").create_array("names", data=np.arange(3))


@case("200 names where 30")
def _names_of_samples(path):
    write_samples(path, X)
    zarr.open_group(path, mode="a").create_array("names", data=np.arange(200))


@case("third value: 7 at row 150, column 2")
def _third_value(path):
    data = X.copy()
    data[150, 2] = 7
    store(path, data, chunks=(40, 7))


@case("third value: 7 at row 150, column 2")
def _third_value_in_tall_chunks(path):
    data = np.ones((200_000, 300), dtype=np.int8)
    data[150, 2] = 7
    store(path, data, chunks=(200_000, 2))


@case("every value is missing")
def _only_missing(path):
    store(path, np.full((3, 3), np.nan))


def _lying(codec):
    """Return a case: a chunk that unpacks to two megabytes where six kilobytes are declared."""

    def make(path):
        filters = numcodecs.get_codec({"id": codec})
        array = zarr.create_array(
            path, shape=X.shape, dtype="i1", chunks=X.shape, compressors=filters, zarr_format=2
        )
        array[...] = X
        (path / "0.0").write_bytes(filters.encode(bytes(2**21)))

    return make


for codec in ("gzip", "zlib", "bz2", "lzma", "blosc", "zstd", "lz4"):
    CASES[f"chunk of {codec}"] = _lying(codec), "unpacks to more than"


@case("unpacks to more than")
def _lying_inner_chunk(path):
    store(path, X, chunks=(50, 30), shards=(200, 30))
    bomb = numcodecs.Zstd().encode(bytes(2**21))
    index = struct.pack("<8Q", *[2**64 - 1] * 6, 0, len(bomb))  # of three left out, and this one
    (path / "c" / "0" / "0").write_bytes(bomb + index + bytes(4))


@case("packed more than once")
def _packed_twice(path):
    twice = [zarr.codecs.GzipCodec(), zarr.codecs.ZstdCodec()]
    store(path, X, compressors=twice)


@case("does not say how long it is")
def _chunk_of_unknown_length(path):
    store(path, X, chunks=X.shape)
    frame = b"\x28\xb5\x2f\xfd\x00\x58" + b"\x01\x00\x00" + bytes(9)
    (path / "c" / "0" / "0").write_bytes(frame)


@case("is stored in 10000000000")
def _texts_in_a_file_of_nothing(path):
    zarr.create_group(path).create_array("X", data=X)
    texts_of_number(path / "names", 30)
    os.truncate(path / "names" / "c" / "0", 10**10)


@case("a chunk of 30 texts, '0', claims 4294967295")
def _more_texts_than_a_chunk_holds(path):
    zarr.create_group(path).create_array("X", data=X)
    texts_of_number(path / "names", 2**32 - 1, zarr.codecs.ZstdCodec())


@pytest.mark.skipif(os.name != "posix", reason="files of POSIX")
@pytest.mark.parametrize("name", CASES)
def test_malformed_stores(run, tmp_path, name):
    make, message = CASES[name]
    make(tmp_path / "d.zarr")
    before = sorted(tmp_path.iterdir())
    code, out, err = run("fit", "d.zarr", "-o", "m.npz")
    assert (code, out) == (2, "")
    assert err.startswith("dualtap: ")
    assert err.count("\n") == 1
    assert len(err) < 800
    assert message in err
    assert "d.zarr" in err
    assert sorted(tmp_path.iterdir()) == before


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "d.zarr"
    write_samples(path, X[:20, :9], names="abcdefghi", labels=range(20))
    return {file.relative_to(path): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@settings(max_examples=100)
@given(data=st.data(), new=st.binary(min_size=1, max_size=8))
def test_damage_anywhere(tmp_path_factory, small, data, new):
    """Whichever file is damaged, the store is read or refused, in one line."""
    path = tmp_path_factory.mktemp("damage") / "d.zarr"
    place = data.draw(st.sampled_from(sorted(small)))
    at = data.draw(st.integers(0, len(small[place]) - 1))
    for file, content in small.items():
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).write_bytes(content)
    (path / place).write_bytes(small[place][:at] + new + small[place][at + len(new) :])
    message = path.name
    try:
        read_samples(path, labels="label")
    except ValueError as error:
        message = str(error)
    assert path.name in message
    assert "\n" not in message


# Memory


@on_linux
def test_large_stores_take_little_memory(tmp_path):
    """Thirty million entries: 4 MB packed, 30 MB as bytes, 240 MB as they are stored here."""
    shape, rows = (10_000, 3000), np.random.default_rng(0).integers(0, 2, size=(7, 3000))
    layouts = {"rows": (100, 3000), "columns": (10_000, 20), "tiles": (1000, 1000)}
    for name, chunks in layouts.items():
        array = zarr.create_array(tmp_path / f"{name}.zarr", shape=shape, chunks=chunks, dtype="i8")
        array[:] = 1
        array[:7] = rows
    store(tmp_path / "small.zarr", X)
    paths = [tmp_path / f"{name}.zarr" for name in layouts]
    found = readings(tmp_path / "small.zarr", paths)
    assert [reading.path for reading in found] == list(map(str, paths))
    for reading in found:
        assert (reading.shape, reading.total) == (shape, (2 * rows - 1).sum())
        assert reading.growth < 120, reading.path


def test_large_samples_are_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("dualtap.spins.builder.DENSE", 0)
    packed = dt.as_spins(X)
    monkeypatch.setattr(type(packed), "values", property(lambda self: pytest.fail("unpacked")))
    write_samples(tmp_path / "d.zarr", packed)
    back = read_samples(tmp_path / "d.zarr").spins
    np.testing.assert_array_equal(back.block(slice(None)), X)

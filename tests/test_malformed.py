"""Malformed files of every kind: one line that says what is wrong, at once, and nothing written."""

import gzip
import io
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualtap as dt
from dualtap.io import read_samples, write_samples

X = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=(200, 30))
CASES = {}
"""Name of the case: name of the file, what makes its bytes, part of the message."""


def case(name, file, make, message=""):
    assert name not in CASES
    CASES[name] = file, make if callable(make) else lambda: make, message


def written(suffix, array=X, **more):
    """Return the bytes of a file as dualtap writes it."""

    def make():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"data{suffix}")
            write_samples(path, array, **more)
            return path.read_bytes()

    return make


def cut(make, kept):
    """Return the first bytes: a number of them, or a share, or all but some."""
    return lambda: (data := make())[: int(kept * len(data)) if isinstance(kept, float) else kept]


def damaged(make, place, new):
    def changed():
        data = bytearray(make())
        at = place if isinstance(place, int) else data.index(place)
        data[at : at + len(new)] = new
        return bytes(data)

    return changed


for suffix in (".npy", ".npz", ".parquet", ".h5", ".arrow", ".feather", ".csv.gz", ".tsv.gz"):
    short = (0, 4, 9, 0.3, 0.6, -1) if suffix != ".h5" else (0, 4, 9, 60, 0.3, 0.6)
    for kept in short:
        case(f"{suffix} cut at {kept}", f"d{suffix}", cut(written(suffix), kept), "d" + suffix)
    case(f"{suffix} of garbage", f"d{suffix}", np.random.default_rng(1).bytes(5000), "d" + suffix)
    case(f"{suffix} of text", f"d{suffix}", b"hello, world\n" * 9, "d" + suffix)


# NumPy's own files


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def npy_header(text, version=1, length=None, body=b""):
    text = text.encode()
    size = len(text) if length is None else length
    start = b"\x93NUMPY" + bytes([version, 0])
    return start + size.to_bytes(2 if version == 1 else 4, "little") + text + body


def declared(shape, descr="'|i1'", order="False"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


UNREADABLE = "is not a readable .npy file"
for name, data, message in (
    ("other magic", b"\x93NUMPZ\1\0" + bytes(200), UNREADABLE),
    ("version 9", b"\x93NUMPY\x09\0" + bytes(200), UNREADABLE),
    ("version 3", npy_header(declared((2, 2)), 3, body=b"\1" * 4), UNREADABLE),
    ("claimed header", npy_header("{}", 2, length=100_000_000), "too long"),
    ("claimed header of 4 GB", npy_header("{}", 2, length=2**32 - 1), "too long"),
    ("header of brackets", npy_header("(" * 9000), "header is damaged"),
    ("header of code", npy_header("__import__('os').abort()"), "header is damaged"),
    ("header that is no dict", npy_header("[1, 2]"), "header is damaged"),
    ("header without shape", npy_header("{'descr': '|i1'}"), "header is damaged"),
    ("header of zero bytes", npy_header("\0" * 100), "header is damaged"),
    ("negative shape", npy_header(declared((-2, -2)), body=b"\1" * 4), "(-2, -2)"),
    ("shape of 10^12", npy_header(declared((10**6, 10**6)), body=b"\1" * 50), "1000000"),
    ("shape of 10^30", npy_header(declared((10**15, 10**15)), body=b"\1" * 50), "declares"),
    ("shape of text", npy_header(declared("'ab'")), "header is damaged"),
    ("unknown type", npy_header(declared((2, 2), "'|q9'")), "header is damaged"),
    ("fortran cut", npy_header(declared((9, 9), order="True"), body=b"\1" * 80), "(9, 9)"),
):
    case(f"npy: {name}", "d.npy", data, message)


class _Bomb:
    def __reduce__(self):
        return os.abort, ()


structured = np.zeros(3, dtype=[("a", "i1"), ("b", "f4")])
for name, array, message in (
    ("pickle", np.array([[_Bomb(), 1]], dtype=object), "pickle"),
    ("objects", np.array([[1, None], [0, 1]], dtype=object), "pickle"),
    ("structure", structured, "shape (3,)"),
    ("matrix of structures", structured.reshape(3, 1), "spins are numbers"),
    ("scalar", np.array(1), "shape ()"),
    ("vector", np.ones(5), "shape (5,)"),
    ("cube", np.ones((2, 2, 2)), "shape (2, 2, 2)"),
    ("complex", np.ones((2, 2), dtype=complex), "complex128"),
    ("strings", np.array([["1", "0"]]), "<U1"),
    ("bytes", np.array([[b"1", b"0"]]), "|S1"),
    ("dates", np.zeros((2, 2), dtype="M8[s]"), "datetime64"),
    ("no rows", np.ones((0, 5)), "0 rows"),
    ("no columns", np.ones((5, 0)), "0 columns"),
    ("one column", np.ones((5, 1)), "at least two"),
    ("infinity", np.array([[1, np.inf], [0, 1]]), "infinity, at row 0, column 1"),
    ("minus infinity", np.array([[1, 0], [-np.inf, 1]]), "infinity, at row 1, column 0"),
    ("third value", np.array([[1, 0], [0, 7]]), "third value: 7 at row 1, column 1"),
    ("almost one", np.array([[1, 0], [0, 1 + 1e-9]]), "third value: 1.000000001"),
    ("late third value", np.r_[np.ones((9999, 4)), np.full((1, 4), 3)], "row 9999, column 0"),
    ("three values", np.array([[1, 0], [-1, 1]]), "0 marks a missing entry"),
    ("only missing", np.full((3, 3), np.nan), "every value is missing"),
):
    for suffix in (".npy", ".npz"):
        make = (lambda a=array: npy(a)) if suffix == ".npy" else (lambda a=array: npz(X=npy(a)))
        case(f"{suffix}: {name}", f"d{suffix}", make, message)


def npz(**members):
    """Return an archive of these members, given as bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def bomb(name, header, n_bytes, **others):
    """Return an archive with one member that swells to so many zero bytes after its header."""
    file = io.BytesIO()
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = packer.compress(header) + packer.flush(zlib.Z_FULL_FLUSH)
    zeros = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    data = start + zeros * (n_bytes // 2**20) + packer.flush()
    with zipfile.ZipFile(file, "w") as archive:
        for other, content in others.items():
            archive.writestr(f"{other}.npy", content)
        info = zipfile.ZipInfo(f"{name}.npy")
        archive.writestr(info, data)
        info.compress_type, info.file_size = zipfile.ZIP_DEFLATED, len(header) + n_bytes
        archive.start_dir = file.tell()
    contents = bytearray(file.getvalue())
    local = contents.rindex(b"PK\3\4" + contents[4:6])
    contents[local + 8 : local + 10] = b"\x08\0"
    return bytes(contents)


GOOD = npy(X)
two_gb = 2**31
for name, make, message in (
    ("empty archive", lambda: npz(), "holds the arrays (none)"),
    ("two arrays", lambda: npz(a=GOOD, b=GOOD), "name the samples X"),
    ("member of garbage", lambda: npz(X=b"garbage"), "does not begin"),
    ("empty member", lambda: npz(X=b""), "does not begin"),
    ("short member", lambda: npz(X=GOOD[:-7]), "declares an array of shape (200, 30)"),
    ("long member", lambda: npz(X=GOOD + b"\1"), "declares an array of shape (200, 30)"),
    ("member of 10^12", lambda: npz(X=npy_header(declared((10**6, 10**6)))), "10000000"),
    ("claimed header", lambda: npz(X=npy_header("{}", 2, length=10**8)), "too long"),
    ("short names", lambda: npz(X=GOOD, names=npy(["a"])), "1 names where 30"),
    ("matrix of names", lambda: npz(X=GOOD, names=npy(X)), "'names' has shape (200, 30)"),
    ("complex names", lambda: npz(X=GOOD, names=npy(np.ones(30) * 1j)), "complex128"),
    ("names cut", lambda: npz(X=GOOD, names=npy(["a"] * 30)[:-9]), "declares an array"),
    ("short sample names", lambda: npz(X=GOOD, sample_names=npy(["a"])), "1 sample_names"),
    (
        "teacher of text",
        lambda: npz(X=GOOD, teacher_patterns=npy(["a"]), teacher_beta=npy(1.0)),
        "teacher is damaged",
    ),
    (
        "teacher with many temperatures",
        lambda: npz(X=GOOD, teacher_patterns=npy(X[:2]), teacher_beta=npy([1.0, 2.0])),
        "teacher is damaged",
    ),
    ("checksum", lambda: damaged(lambda: npz(X=GOOD), 60, b"\xff\0\xff")(), "readable"),
    ("bomb beside", lambda: bomb("names", npy_header(""), two_gb, X=GOOD), "2.0 GB"),
    ("bomb as samples", lambda: bomb("X", npy(X)[:-6000], two_gb), "declares an array"),
    (
        "bomb of third values",
        lambda: bomb("X", npy_header(declared((2**21, 2**10)), body=b"\7"), two_gb),
        "declares an array of shape (2097152, 1024)",
    ),
):
    case(f"npz: {name}", "d.npz", make, message)


def encrypted():
    data = bytearray(npz(X=GOOD))
    for signature, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(signature) + at] |= 1
    return bytes(data)


def method_97():
    data = bytearray(npz(X=GOOD))
    for signature, at in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        data[data.index(signature) + at] = 97
    return bytes(data)


case("npz: encrypted", "d.npz", encrypted, "encrypted")
case("npz: unknown compression", "d.npz", method_97, "compression")

# Text

LONG = 50_000_000
for name, data, message in (
    ("empty", b"", "is empty"),
    ("newlines", b"\n\r\n\n", "is empty"),
    ("only names", b"a,b,c\n", "no line of values"),
    ("only names, no newline", b"a,b,c", "no line of values"),
    ("only missing", b"a,b\n,NA\nnan,?\n", "every value is missing"),
    ("one column", b"1\n0\n1\n", "at least two"),
    ("one named column", b"a\n1\n0\n", "at least two"),
    ("one column and names of rows", b",a\ns,1\nt,0\n", "at least two"),
    ("semicolons", b"a;b\n1;0\n", "separated by commas"),
    ("short line", b"1,0,1\n1,0\n1,1,1\n", "line 2 has 2 fields"),
    ("long line", b"1,0,1\n1,0,1,1\n", "line 2 has 4 fields"),
    ("short line in the middle", b"1,0,1\n" * 50 + b"1\n" + b"1,1,0\n" * 50, "line 51 has 1"),
    ("long line late", b"1,0,1\n" * 400_000 + b"1,0,1,0\n", "line 400001 has 4 fields"),
    ("unfinished line", b"1,0,1\n" * 400_000 + b"1,0", "line 400001 has 2 fields"),
    ("names longer than lines", b"a,b,c\n1,0\n0,1\n", "line 2 has 2 fields"),
    ("names shorter than lines", b"a,b\n1,0,1\n0,1,1\n", "line 2 has 3 fields"),
    ("latin-1 names", "café,b\n1,0\n".encode("latin-1"), "line 1 is not text in UTF-8"),
    ("latin-1 value", "a,b\n1,é\n".encode("latin-1"), "line 2 is not text in UTF-8"),
    ("utf-16", "a,b\n1,0\n".encode("utf-16"), "not a text file"),
    ("utf-32", "a,b\n1,0\n".encode("utf-32"), "not a text file"),
    ("zero bytes", b"1,0\n\0,1\n", "zero bytes"),
    ("late zero bytes", b"1,0\n" * 599_999 + b"\0,1\n", "zero bytes"),
    ("garbage", np.random.default_rng(2).bytes(9999), "d.csv"),
    ("garbage without zeros", bytes(range(1, 256)) * 99, "d.csv"),
    ("spreadsheet", b"PK\3\4" + np.random.default_rng(3).bytes(9999), "d.csv"),
    ("open quote", b'a,b\n1,"0\n1,1\n', "quote opened in line 2"),
    ("open quote in names", b'"a,b\n1,0\n1,1\n', "quote opened in line 1"),
    ("third value", b"a,b\n1,0\n1,2\n", "line 3, column 2 ('b') holds a third value, '2'"),
    ("quoted third value", b'1,0\n"3",1\n', "line 2, column 1 holds a third value, '3'"),
    ("almost one", b"1,0\n1.000000001,1\n", "third value"),
    ("huge number", b"1,0\n1,1e999\n", "infinity"),
    ("infinity", b"1,0\n1,inf\n", "line 2, column 2 holds infinity"),
    ("minus infinity", b"1,0\n-Infinity,1\n", "infinity"),
    ("word", b"1,0\n1,yes\n", "line 2, column 2 holds 'yes'"),
    ("late word", b"1,0\n" * 599_999 + b"0,maybe\n", "line 600000, column 2 holds 'maybe'"),
    ("column of text", b"a,b,party\n1,0,red\n0,1,blue\n", "--labels party keeps it"),
    ("column of text without names", b"1,1,red\n0,1,blue\n", "holds text such as 'blue'"),
    ("three values", b"1,0\n-1,1\n", "0 marks a missing entry"),
    ("late third value", b"1,0\n" * 599_999 + b"-1,1\n", "0 marks a missing entry"),
    ("JSON", b'{"a": [1, 0],\n "b": [0, 1]}\n', "d.csv"),
    ("web page", b"<!doctype html>\n<html><body>404</body></html>\n", "d.csv"),
    ("long line of letters", lambda: b"a" * LONG, "longer than 16 MB"),
    ("long line of fields", lambda: b"ab," * (LONG // 3), "longer than 16 MB"),
    ("long line below names", lambda: b"a,b\n" + b"1" * LONG, "line 2 is longer than 16 MB"),
    ("long field", lambda: b"1,0\n" + b"1" * 10_000_000 + b",0\n", "line 2, column 1 holds"),
    ("many names", lambda: b"a," * 4_000_000 + b"b\n", "no line of values"),
):
    case(f"csv: {name}", "d.csv", data, message)
case("tsv: commas", "d.tsv", b"1,0\n0,1\n", "by tabs in .tsv")
case("tsv: word", "d.tsv", b"a\tb\n1\t0\n1\tno\n", "line 3, column 2 ('b') holds 'no'")


def gzip_bomb(line, size=2**30):
    """Return a gzip file that swells to a gigabyte."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(line * (2**20 // len(line))) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + block * (size // 2**20) + packer.flush()


packed = lambda data: lambda: gzip.compress(data)  # noqa: E731
for name, make, message in (
    ("checksum", damaged(packed(b"1,0\n0,1\n" * 9), -8, b"\0\0\0\0"), "CRC"),
    ("length", damaged(packed(b"1,0\n0,1\n" * 9), -4, b"\0\0\0\0"), "ncorrect length"),
    ("method", damaged(packed(b"1,0\n" * 9), 2, b"\x07"), "compression method"),
    ("trailing garbage", lambda: gzip.compress(b"1,0\n") + b"garbage", "Not a gzipped file"),
    ("empty inside", packed(b""), "is empty"),
    ("not packed", b"1,0\n0,1\n", "Not a gzipped file"),
    ("packed twice", packed(gzip.compress(b"1,0\n" * 99)), "d.csv.gz"),
    ("bomb of letters", lambda: gzip_bomb(b"a"), "longer than 16 MB"),
    ("bomb of lines", lambda: gzip_bomb(b"\n"), "empty lines"),
    ("bomb of words", lambda: gzip_bomb(b"garbage\n"), "at least two"),
    ("bomb of ones", lambda: gzip_bomb(b"1\n"), "at least two"),
    ("bomb of quotes", lambda: gzip_bomb(b'",'), "d.csv.gz"),
    ("bomb of zeros", lambda: gzip_bomb(b"\0"), "zero bytes"),
):
    case(f"gz: {name}", "d.csv.gz", make, message)

# Columns


def columns(suffix, **values):
    def make():
        pa = pytest.importorskip("pyarrow")
        from pyarrow.feather import write_feather
        from pyarrow.parquet import write_table

        write = write_table if suffix == ".parquet" else write_feather
        file = io.BytesIO()
        write(pa.table(values), file)
        return file.getvalue()

    return make


good = [1, 0, 1]
for suffix in (".parquet", ".feather"):
    for name, values, message in (
        ("no column", {}, "is empty"),
        ("no row", {"a": [], "b": []}, "is empty"),
        ("one column", {"a": good}, "at least two"),
        ("text", {"a": good, "party": ["x", "y", "z"]}, "column 'party' (2nd) holds text"),
        ("lists", {"a": good, "b": [[1], [0], [1]]}, "column 'b' holds values of type list"),
        ("structures", {"a": good, "b": [{"c": 1}] * 3}, "holds values of type struct"),
        ("first lists", {"a": [[1], [0], [1]], "b": good, "c": good}, "values of type list"),
        ("bytes", {"a": good, "b": [b"1", b"0", b"1"]}, "values of type binary"),
        ("dates", {"a": good, "b": np.zeros(3, "M8[s]")}, "holds values of type timestamp"),
        ("third value", {"a": good, "b": [1, 0, 5]}, "third value: 5"),
        ("spelled third value", {"a": good, "b": ["1", "0", "5"]}, "third value, '5'"),
        ("infinity", {"a": good, "b": [1.0, 0.0, np.inf]}, "infinity"),
        ("three values", {"a": good, "b": [-1, 1, 1]}, "0 marks a missing entry"),
        ("nothing", {"a": [None] * 3, "b": [None] * 3}, "every value is missing"),
        ("mixed words", {"a": good, "b": ["1", "0", "maybe"]}, "holds 'maybe'"),
    ):
        case(f"{suffix}: {name}", f"d{suffix}", columns(suffix, **values), message)
HUGE = struct.pack("<I", 2**31 - 1)
case("parquet: long footer", "d.parquet", damaged(written(".parquet"), -8, HUGE), "d.parquet")
case("arrow: long footer", "d.arrow", damaged(written(".arrow"), -10, HUGE), "d.arrow")
case("arrow: damaged", "d.arrow", damaged(written(".arrow"), -80, b"\xff" * 40), "d.arrow")
case("parquet: damaged", "d.parquet", damaged(written(".parquet"), 4, b"\xff" * 400), "d.parquet")

# HDF5


def datasets(**arrays):
    def make():
        h5py = pytest.importorskip("h5py")
        file = io.BytesIO()
        with h5py.File(file, "w") as out:
            for name, array in arrays.items():
                if isinstance(array, dict):
                    out.create_dataset(name, **array)
                else:
                    out[name] = array
        return file.getvalue()

    return make


unallocated = {"shape": (10**7, 10**7), "dtype": "i1", "chunks": (1000, 1000)}
for name, arrays, message in (
    ("nothing", {}, "holds the datasets (none)"),
    ("two matrices", {"a": X, "b": X}, "name the samples X"),
    ("vector", {"X": np.ones(5)}, "shape (5,)"),
    ("scalar", {"X": 1}, "shape ()"),
    ("cube", {"X": np.ones((2, 2, 2))}, "shape (2, 2, 2)"),
    ("vectors", {"a": np.ones(5), "b": np.ones(5)}, "a (5,), b (5,)"),
    ("complex", {"X": np.ones((2, 2)) * 1j}, "complex128"),
    ("strings", {"X": [["1", "0"], ["0", "1"]]}, "spins are numbers"),
    ("structures", {"X": structured.reshape(3, 1)}, "spins are numbers"),
    ("no rows", {"X": np.ones((0, 4))}, "0 rows"),
    ("one column", {"X": np.ones((4, 1))}, "at least two"),
    ("third value", {"X": [[1, 0], [0, 9]]}, "third value: 9"),
    ("infinity", {"X": [[1, 0], [0, np.inf]]}, "infinity"),
    ("three values", {"X": [[1, 0], [0, -1]]}, "0 marks a missing entry"),
    ("only missing", {"X": np.full((3, 3), np.nan)}, "every value is missing"),
    ("shape of 10^14", {"X": unallocated}, "even at one bit"),
    (
        "never written",
        {"X": unallocated | {"shape": (10**6, 10**3)}},
        "0.0 MB of it unpack to 0.9 GB",
    ),
    ("short names", {"X": X, "names": ["a"]}, "'names' has shape (1,)"),
    ("names of samples", {"X": X, "names": ["a"] * 200}, "200 names where 30"),
    ("matrix of names", {"X": X, "names": X}, "'names' has shape (200, 30)"),
):
    case(f"h5: {name}", "d.h5", datasets(**arrays), message)
case("h5: damaged", "d.h5", damaged(written(".h5"), 100, b"\xff" * 3000), "d.h5")

# Names

for name in ("data", "data.xlsx", "data.gz", "data.npz.gz", "data.pkl", "data.csv.zip", ".csv"):
    case(f"called {name}", name, b"1,0\n0,1\n", "must end in .npz or .npy or .csv")

RISKY = [
    name
    for name in CASES
    if any(word in name for word in ("bomb", "10^", "claimed", "long", "many", "late", "cut at"))
]


def one_line(result, *parts):
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("dualtap: ")
    assert err.count("\n") == 1
    assert len(err) < 800
    assert "Traceback" not in err
    for part in parts:
        assert part in err


def test_there_are_many():
    assert len(CASES) > 200


@pytest.mark.parametrize("name", CASES)
def test_malformed_samples(run, tmp_path, name):
    file, make, message = CASES[name]
    (tmp_path / file).write_bytes(make())
    one_line(run("fit", file, "-o", "m.npz"), message, *([] if message == file else [file]))
    assert list(tmp_path.iterdir()) == [tmp_path / file]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read off /proc")
def test_memory_stays_small(tmp_path):
    """What could swell is read in one process, which grows by less than 200 MB."""
    files = []
    for k, name in enumerate(RISKY):
        file, make, _ = CASES[name]
        files.append(tmp_path / str(k) / file)
        files[-1].parent.mkdir()
        files[-1].write_bytes(make())
    header = tmp_path / "header.npy"  # a header that really is 100 MB long
    header.write_bytes(npy_header(" ", 2, length=100_000_000))
    os.truncate(header, 100_000_012)
    sparse = tmp_path / "sparse.npy"  # a file that really has 10^13 bytes
    sparse.write_bytes(npy_header(declared((10**7, 10**6))))
    try:
        os.truncate(sparse, 10**13 + 100)
    except OSError:  # not every file system can
        os.truncate(sparse, 10**9)
    reader = (
        "import sys\n"
        "import h5py, pyarrow.parquet\n"
        "from dualtap.io import read_samples\n"
        "def peak():\n"  # of this process alone: ru_maxrss begins with that of its parent
        "    with open('/proc/self/status') as status:\n"
        "        return int(status.read().split('VmHWM:')[1].split()[0])\n"
        "before = peak()\n"
        "for path in sys.stdin.read().splitlines():\n"
        "    try:\n"
        "        read_samples(path)\n"
        "    except ValueError:\n"
        "        continue\n"
        "    sys.exit(f'{path} was read')\n"
        "print((peak() - before) / 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", reader],
        input="\n".join(map(str, [*files, header, sparse])),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert float(done.stdout) < 200


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".csv.gz", ".parquet", ".arrow", ".h5"])
@settings(max_examples=40)
@given(
    places=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=4),
    new=st.binary(min_size=1, max_size=8),
)
def test_damage_anywhere(tmp_path_factory, suffix, places, new):
    """Wherever bytes are changed, the file is read or refused, in one line."""
    texts = {} if suffix == ".npy" else {"names": "abcdefghi", "labels": range(20)}
    data = bytearray(written(suffix, X[:20, :9], **texts)())
    for place in places:
        at = int(place * len(data))
        data[at : at + len(new)] = new
    path = tmp_path_factory.mktemp("damage") / f"d{suffix}"
    path.write_bytes(data)
    message = path.name
    try:
        read_samples(path, labels="label" if texts else None)
    except ValueError as error:
        message = str(error)
    assert path.name in message
    assert "\n" not in message


# What is not a file


def loop(path):
    path.symlink_to(path.name)


def dangling(path):
    path.symlink_to("nowhere.csv")


def to_device(path):
    path.symlink_to("/dev/zero")


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(path.name)


@pytest.mark.skipif(os.name != "posix", reason="files of POSIX")
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".npy", ".npz", ".parquet", ".h5", ".arrow"])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (loop, "cannot be opened: Too many levels"),
        (dangling, "there is no file"),
        (os.mkdir, "is a folder"),
        (os.mkfifo, "is not a regular file"),
        (to_device, "is not a regular file"),
        (bound_socket, "is not a regular file"),
        (lambda path: None, "there is no file"),
    ],
    ids=["loop", "dangling", "folder", "pipe", "device", "socket", "nothing"],
)
def test_what_is_not_a_file(run, tmp_path, suffix, make, message):
    file = f"d{suffix}"
    make(tmp_path / file)
    one_line(run("fit", file, "-o", "m.npz"), message, file)
    assert not (tmp_path / "m.npz").exists()


def test_long_names(run):
    one_line(run("fit", "a" * 300 + ".csv", "-o", "m.npz"), "File name too long")


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".npz", ".parquet", ".h5", ".arrow"])
def test_unreadable_files(run, tmp_path, monkeypatch, suffix):
    """The administrator reads everything, so the refusal is put where the system would raise it."""
    file = tmp_path / f"d{suffix}"
    file.write_bytes(written(suffix)())

    def refuse(path, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.open", refuse)
    one_line(run("fit", file.name, "-o", "m.npz"), "ermission denied", file.name)


def test_links_to_files_are_followed(run, tmp_path):
    (tmp_path / "real.csv").write_bytes(written(".csv")())
    (tmp_path / "link.csv").symlink_to("real.csv")
    assert run("fit", "link.csv", "-o", "m.npz", "-q")[0] == 0


# Models


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.npz"
    teacher = dt.HopfieldModel.random(60, 2, beta=2.0, random_state=0)
    dt.save(dt.HopfieldPatterns(random_state=0).fit(teacher.sample(20, random_state=1)), path)
    return path


def provenance(**parameters):
    return np.array(json.dumps({"dualtap": "9", "parameters": parameters}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": np.array(99)}, "schema 99, this version of dualtap reads up to 3; upgrade"),
        ({"schema": np.array("new")}, "unknown model schema"),
        ({"schema": np.array([2, 2])}, "unknown model schema"),
        ({"schema": np.array(-1)}, "unknown model schema"),
        ({"schema": None}, "is not a dualtap model"),
        ({"provenance": None}, "it lacks provenance"),
        ({"provenance": np.array("{broken")}, "is damaged"),
        ({"provenance": np.array("[]")}, "is damaged"),
        ({"provenance": np.array("{}")}, "it lacks parameters"),
        ({"provenance": provenance(colour="red")}, "colour"),
        ({"patterns": None}, "it lacks patterns"),
        ({"magnetizations": None}, "it lacks magnetizations"),
        ({"strengths": None}, "it lacks strengths"),
        ({"estimator": None}, "it lacks estimator"),
        ({"estimator": np.array("KMeans")}, "unknown estimator KMeans"),
        ({"trace": np.array("[{}]")}, "it lacks step"),
        ({"trace": np.array("{broken")}, "is damaged"),
        ({"path_objective": None}, "it lacks path_objective"),
        ({"patterns": np.ones(60)}, "is damaged"),
        ({"fields": np.ones(3)}, "fields has shape (3,) where (60,) is needed"),
        ({"strengths": np.ones(7)}, "strengths has shape (7,)"),
        ({"median_overlap": np.array("near")}, "is damaged"),
        ({"schema": np.array(2)}, "it lacks beta"),
        ({"schema": np.array(1), "patterns": np.ones(3)}, "is damaged"),
    ],
)
def test_malformed_models(run, tmp_path, model, changes, message):
    contents = dict(np.load(model)) | changes
    kept = {name: array for name, array in contents.items() if array is not None}
    np.savez(tmp_path / "m.npz", **kept)
    one_line(run("show", "m.npz"), "m.npz", message)


@pytest.mark.parametrize("kept", [0, 3, 0.1, 0.5, 0.9, -1])
def test_models_cut_short(run, tmp_path, model, kept):
    (tmp_path / "m.npz").write_bytes(cut(model.read_bytes, kept)())
    one_line(run("show", "m.npz"), "m.npz is not a readable .npz file")


def test_models_are_not_samples_nor_the_other_way_round(run, tmp_path, model):
    one_line(run("fit", model, "-o", "m.npz"), "is a model, not samples")
    (tmp_path / "d.npz").write_bytes(written(".npz")())
    one_line(run("show", "d.npz"), "d.npz is not a dualtap model")
    one_line(run("show", "d.csv"), "'d.csv' must end in .npz")


def test_a_bomb_as_a_model(run, tmp_path):
    data = bomb("patterns", npy_header(declared((2**11, 2**20))), two_gb, schema=npy(2))
    (tmp_path / "m.npz").write_bytes(data)
    one_line(run("show", "m.npz"), "the array patterns would take 2.0 GB")

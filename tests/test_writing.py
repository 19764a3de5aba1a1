"""Writing where something is in the way: other writers, kills, full and read-only disks."""

import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import dualtap as dt
from dualtap import _swap
from dualtap._files import atomic_folder, atomic_write
from dualtap.experiments.experiment import Task
from dualtap.experiments.store import Store
from dualtap.io import read_samples, write_samples

X = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=(40, 12))
on_posix = pytest.mark.skipif(os.name != "posix", reason="locks and signals of POSIX")


def unwritable(monkeypatch, folder):
    """Refuse temporary files there, as the system would: the administrator may write anywhere."""
    made = _swap.tempfile.TemporaryFile

    def refuse(*args, dir=None, **kwargs):
        if Path(dir or "/") == folder:
            raise PermissionError(30, "Read-only file system", str(folder))
        return made(*args, dir=dir, **kwargs)

    monkeypatch.setattr("dualtap._files.tempfile.TemporaryFile", refuse)


def test_a_folder_that_cannot_be_written_to_is_noticed_before_the_fit(run, tmp_path, monkeypatch):
    np.save(tmp_path / "d.npy", X)
    (tmp_path / "there").mkdir()
    unwritable(monkeypatch, Path("there"))
    monkeypatch.setattr("dualtap.HopfieldPatterns.fit", lambda self, X: pytest.fail("fitted"))
    code, out, err = run("fit", "d.npy", "-o", "there/m.npz")
    assert (code, out) == (2, "")
    assert err == (
        "dualtap: 'm.npz' cannot be written into the folder 'there': Read-only file system\n"
    )


def test_a_model_that_cannot_be_written_goes_elsewhere(run, tmp_path, monkeypatch):
    np.save(tmp_path / "d.npy", X)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    save = dt.io.models.save

    def full(model, path, **options):
        if Path(path).name == "m.npz" and Path(path).parent == Path():
            raise OSError(28, "No space left on device")
        save(model, path, **options)

    monkeypatch.setattr("dualtap.io.save", full)
    code, out, err = run("fit", "d.npy", "-o", "m.npz", "-q")
    assert (code, out) == (1, "")
    assert "No space left on device; the model was written to" in err
    assert dt.load(err.split("'")[1]).n_features_in_ == 12


# --- Two writers


def overtaken(path, write):
    with pytest.raises(FileExistsError, match="exists; pass force=True"):
        write()


@pytest.mark.parametrize("links", [True, False])
def test_the_second_of_two_writers_is_told(tmp_path, monkeypatch, links):
    """Both looked, and nothing was there."""
    if not links:

        def refuse(*args):
            raise OSError(1, "Operation not permitted")

        monkeypatch.setattr("os.link", refuse)
    path = tmp_path / "m.npz"

    def write():
        with atomic_write(path) as file:
            file.write(b"second")
            with atomic_write(path) as first:
                first.write(b"first")

    overtaken(path, write)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_the_second_of_two_writers_of_a_folder_is_told(tmp_path):
    path = tmp_path / "d.zarr"

    def write():
        with atomic_folder(path) as folder:
            (folder / "zarr.json").write_text("second")
            with atomic_folder(path) as first:
                (first / "zarr.json").write_text("first")

    overtaken(path, write)
    assert (path / "zarr.json").read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_at_once(tmp_path):
    """Without force, each name is won by one of them."""

    def write_all(me):
        won = set()
        for k in range(200):
            try:
                with atomic_write(tmp_path / str(k)) as file:
                    file.write(me)
                won.add(k)
            except FileExistsError:
                pass
        return won

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(write_all, (b"a", b"b"))
    assert not one & other
    assert one | other == set(range(200))
    for k in range(200):
        assert (tmp_path / str(k)).read_bytes() == (b"a" if k in one else b"b")
    assert len(list(tmp_path.iterdir())) == 200


# --- Killed writers


@pytest.mark.parametrize("at_once", [True, False])
def test_a_store_is_replaced(tmp_path, monkeypatch, at_once):
    pytest.importorskip("zarr")
    if not at_once:
        monkeypatch.setattr("dualtap._swap._exchanged", lambda one, other: False)
    path = tmp_path / "d.zarr"
    write_samples(path, X)
    write_samples(path, -X, force=True)
    np.testing.assert_array_equal(read_samples(path).spins.values, -X)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is of Linux")
def test_names_are_exchanged_in_one_step(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    assert _swap._exchanged(tmp_path / "a", tmp_path / "b")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


KILLED = """
import sys, time
from pathlib import Path
from dualtap._files import atomic_folder, atomic_write
folder = Path(sys.argv[1])
with atomic_folder(folder / "d.zarr", force=True), atomic_write(folder / "m.npz", force=True):
    print("half", flush=True)
    time.sleep(60)
"""


@on_posix
def test_what_a_killed_writer_left_is_removed(tmp_path):
    def remaining():
        for name in ("d.zarr", "m.npz"):
            _swap.remove_stale(tmp_path / name)
        return len(list(tmp_path.iterdir()))

    writer = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], stdout=subprocess.PIPE)
    assert writer.stdout.readline() == b"half\n"
    assert remaining() == 2  # of a writer that lives
    writer.kill()
    writer.communicate()
    assert len(list(tmp_path.iterdir())) == 2
    assert remaining() == 0


# --- Stores of trials


TASK = Task("coin", "c1", {"p": 0.5}, 0)


def test_a_store_in_use_is_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setattr("dualtap.experiments.store._SECONDS", 0.1)
    with Store(tmp_path) as store:
        other = sqlite3.connect(tmp_path / "trials.sqlite", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TimeoutError, match="in use by another process"):
            store.add(TASK, {"heads": 3}, seconds=0.1)
        other.execute("ROLLBACK")
        store.add(TASK, {"heads": 3}, seconds=0.1)
        assert TASK in store
        other.close()


def test_a_full_store_is_said_to_be(tmp_path):
    with Store(tmp_path) as store:
        pages = store._database.execute("PRAGMA page_count").fetchone()[0]
        store._database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(OSError, match="cannot be written: database or disk is full"):
            store.add(TASK, {"note": "x" * 100_000}, seconds=0.1)


def test_a_file_that_is_no_store_is_said_to_be_none(tmp_path):
    (tmp_path / "trials.sqlite").write_bytes(b"hello, world\n" * 999)
    with pytest.raises(ValueError, match="is not a store of trials"):
        Store(tmp_path)

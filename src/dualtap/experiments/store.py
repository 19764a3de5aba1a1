"""Finished trials in a folder: a row each in SQLite, their arrays beside it.

A row is committed when its trial ends, after its arrays are on the disk: whatever kills the
process, what is there is whole. One process writes. An archive of earlier trials may stand beside
the folder; it is only read.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from dualtap._files import atomic_write, known_suffix
from dualtap.experiments.archive import Archive
from dualtap.experiments.experiment import Arrays, Outcome, Results, Row, Task

_TABLE = """
CREATE TABLE IF NOT EXISTS trials (
    experiment TEXT NOT NULL,
    version TEXT NOT NULL,
    point TEXT NOT NULL,
    trial INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    results TEXT NOT NULL,
    arrays TEXT,
    seconds REAL NOT NULL,
    dualtap TEXT NOT NULL,
    PRIMARY KEY (experiment, version, point, trial)
)
"""
_RULES = "CREATE TABLE IF NOT EXISTS rules (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL)"
EXPORT_FORMATS = (".csv", ".parquet")
_SECONDS = 60
"""How long to wait for another process that writes."""
_OF_THE_DISK = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
)


class Store:
    """Trials that are done.

    Parameters
    ----------
    folder : str or Path
        Made when it is missing.
    archive : Archive, optional
        Where trials are looked for that the folder does not have.

    Examples
    --------
    >>> import tempfile
    >>> from dualtap.experiments.experiment import Task
    >>> from dualtap.experiments.store import Store
    >>> task = Task("coin", "c1", {"p": 0.5}, 0)
    >>> with Store(tempfile.mkdtemp()) as store:
    ...     store.add(task, {"heads": 3}, seconds=0.1)
    ...     task in store, store.results([task]).column("heads", p=0.5)
    (True, array([3]))
    """

    def __init__(self, folder: str | Path, archive: Archive | None = None) -> None:
        self.folder = Path(folder)
        self.archive = archive
        self.folder.mkdir(parents=True, exist_ok=True)
        with _told(self._path):
            self._database = sqlite3.connect(self._path, timeout=_SECONDS)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute(_TABLE)
            self._database.execute(_RULES)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()

    def __contains__(self, task: Task) -> bool:
        return self._find(task) is not None

    def add(self, task: Task, outcome: Outcome, seconds: float) -> None:
        """Commit a finished trial; an earlier one of the same task is replaced."""
        from dualtap import __version__

        arrays = {k: v for k, v in outcome.items() if isinstance(v, np.ndarray) and v.ndim > 0}
        results = {k: _plain(v) for k, v in outcome.items() if k not in arrays}
        name = self._write_arrays(task, arrays) if arrays else None
        with _told(self._path), self._database:
            self._database.execute(
                "INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    task.experiment,
                    task.version,
                    task.point,
                    task.index,
                    task.seed,
                    json.dumps(results, sort_keys=True),
                    name,
                    seconds,
                    __version__,
                ),
            )

    def results(self, tasks: Iterable[Task], *, of_any_code: bool = False) -> Results:
        """Return the rows of these tasks, those that are there.

        Parameters
        ----------
        tasks : iterable of Task
        of_any_code : bool
            Take archived rows of other versions of the code, too.
        """
        found = [self._find(task, of_any_code=of_any_code) for task in tasks]
        return Results([row for row in found if row is not None])

    def seconds(self, tasks: Sequence[Task]) -> float | None:
        """Return how long trials will take one after the other, by those made before.

        Trials at the same point count, whatever their version; else all of the experiment with
        as many spins. None if there are none.
        """
        means: dict[str, float | None] = {}
        for task in tasks:
            if task.point not in means:
                means[task.point] = self._mean_seconds(task)
        expected = [means[task.point] for task in tasks]
        known = [seconds for seconds in expected if seconds is not None]
        return sum(known) if len(known) == len(expected) else None

    def fix_rules(self, fingerprints: Mapping[str, str]) -> None:
        """Note the rules by which trials will be judged; those noted before stay as they were."""
        with _told(self._path), self._database:
            self._database.executemany(
                "INSERT OR IGNORE INTO rules VALUES (?, ?)", fingerprints.items()
            )

    def fixed_rules(self) -> dict[str, str]:
        """Return the fingerprints of rules noted before the trials, the archive's included."""
        with _told(self._path):
            noted = dict(self._database.execute("SELECT name, fingerprint FROM rules").fetchall())
        return noted | ({} if self.archive is None else self.archive.rules)

    def export(self, tasks: Iterable[Task], path: Path, *, force: bool = False) -> None:
        """Write parameters and results, a line per trial, as ``.csv`` or ``.parquet``."""
        suffix = known_suffix(path, EXPORT_FORMATS)
        lines: list[dict[str, Any]] = [
            {**row.parameters, "trial": row.index, "seed": row.seed, **row.results}
            | {"seconds": row.seconds, "dualtap": row.dualtap}
            for row in self.results(tasks)
        ]
        with atomic_write(path, force=force) as file:
            if suffix == ".csv":
                text = io.StringIO()
                titles = dict.fromkeys(title for line in lines for title in line)
                writer = csv.DictWriter(text, titles, lineterminator="\n")
                writer.writeheader()
                writer.writerows(lines)
                file.write(text.getvalue().encode())
            else:
                _parquet(lines, file)

    def _find(self, task: Task, *, of_any_code: bool = False) -> Row | None:
        """Return the row of a task, from the folder or else from the archive."""
        row = self._one(
            "SELECT seed, results, arrays, seconds, dualtap FROM trials "
            "WHERE experiment = ? AND version = ? AND point = ? AND trial = ?",
            (task.experiment, task.version, task.point, task.index),
        )
        if row is None:
            archive = self.archive
            return None if archive is None else archive.find(task, of_any_code=of_any_code)
        seed, results, arrays, seconds, version = row
        read = None if arrays is None else partial(_arrays, self.folder / arrays)
        return Row(task.parameters, task.index, seed, json.loads(results), read, seconds, version)

    def _one(self, query: str, given: tuple[Any, ...]) -> Any:
        """Return one row."""
        with _told(self._path):
            return self._database.execute(query, given).fetchone()

    @property
    def _path(self) -> Path:
        return self.folder / "trials.sqlite"

    def _mean_seconds(self, task: Task) -> float | None:
        query = "SELECT avg(seconds) FROM trials WHERE experiment = ?"
        seconds = self._one(f"{query} AND point = ?", (task.experiment, task.point))[0]
        if seconds is None and self.archive is not None:
            seconds = self.archive.mean_seconds(task)
        if seconds is None:
            same_size = f"{query} AND json_extract(point, '$.N') IS ?"
            given = (task.experiment, task.parameters.get("N"))
            seconds = self._one(same_size, given)[0]
        return None if seconds is None else float(seconds)

    def _write_arrays(self, task: Task, arrays: dict[str, np.ndarray[Any, Any]]) -> str:
        name = Path("arrays", task.experiment, f"{task.key}.npz")
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.folder / name, force=True) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        return name.as_posix()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say what is wrong with the file of a store: in use, full, or none at all."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of it says more
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise TimeoutError(
                f"{path} is in use by another process, for more than {_SECONDS} s: wait for it, "
                "or choose another folder with --out"
            ) from None
        if code in _OF_THE_DISK:
            raise OSError(f"{path} cannot be written: {error}") from None
        raise ValueError(f"{path} is not a store of trials: {error}") from None


def _arrays(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python one, which JSON knows."""
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


def _parquet(lines: list[dict[str, Any]], file: Any) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ValueError("Parquet needs pyarrow: pip install 'dualtap[parquet]'") from None
    parquet.write_table(pyarrow.Table.from_pylist(lines), file)

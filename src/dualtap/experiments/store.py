"""Finished trials in a folder: a row each in SQLite, their arrays beside it.

A row is committed when its trial ends, after its arrays are on the disk: whatever kills the
process, what is there is whole. One process writes.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from dualtap._files import atomic_write, known_suffix
from dualtap.experiments.experiment import Outcome, Results, Row, Task

_TABLE = """
CREATE TABLE IF NOT EXISTS trials (
    experiment TEXT NOT NULL,
    version INTEGER NOT NULL,
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
EXPORT_FORMATS = (".csv", ".parquet")


class Store:
    """Trials that are done.

    Parameters
    ----------
    folder : str or Path
        Made when it is missing.

    Examples
    --------
    >>> import tempfile
    >>> from dualtap.experiments.experiment import Task
    >>> from dualtap.experiments.store import Store
    >>> task = Task("coin", 1, {"p": 0.5}, 0)
    >>> with Store(tempfile.mkdtemp()) as store:
    ...     store.add(task, {"heads": 3}, seconds=0.1)
    ...     task in store, store.results([task]).column("heads", p=0.5)
    (True, array([3]))
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "trials.sqlite"
        try:
            self._database = sqlite3.connect(path)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute(_TABLE)
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{path} is not a store of trials: {error}") from None

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
        return self._row(task) is not None

    def add(self, task: Task, outcome: Outcome, seconds: float) -> None:
        """Commit a finished trial; an earlier one of the same task is replaced."""
        from dualtap import __version__

        arrays = {k: v for k, v in outcome.items() if isinstance(v, np.ndarray) and v.ndim > 0}
        results = {k: _plain(v) for k, v in outcome.items() if k not in arrays}
        name = self._write_arrays(task, arrays) if arrays else None
        with self._database:
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

    def results(self, tasks: Iterable[Task]) -> Results:
        """Return the rows of these tasks, those that are there."""
        found = ((task, self._row(task)) for task in tasks)
        return Results([self._rebuild(task, row) for task, row in found if row is not None])

    def export(self, tasks: Iterable[Task], path: Path, *, force: bool = False) -> None:
        """Write parameters and results, a line a trial, as ``.csv`` or ``.parquet``."""
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

    def _row(self, task: Task) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._database.execute(
            "SELECT seed, results, arrays, seconds, dualtap FROM trials "
            "WHERE experiment = ? AND version = ? AND point = ? AND trial = ?",
            (task.experiment, task.version, task.point, task.index),
        ).fetchone()
        return row

    def _rebuild(self, task: Task, row: tuple[Any, ...]) -> Row:
        seed, results, arrays, seconds, version = row
        path = None if arrays is None else self.folder / arrays
        return Row(task.parameters, task.index, seed, json.loads(results), path, seconds, version)

    def _write_arrays(self, task: Task, arrays: dict[str, np.ndarray[Any, Any]]) -> str:
        name = Path("arrays", task.experiment, f"{task.key}.npz")
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.folder / name, force=True) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        return name.as_posix()


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

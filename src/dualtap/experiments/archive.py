"""Trials in a compact form, fit for a repository: a table per experiment, its arrays beside it.

``fig4.csv`` has a line per trial: its parameters, ``trial`` and ``seed``, its results, ``seconds``.
``fig4.npz`` has the arrays of trials that have any, equal shapes stacked. ``archive.json`` says
which code made them, and by which rules they are judged.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._files import atomic_write
from dualtap._npy import read_arrays
from dualtap.experiments.experiment import Arrays, Results, Row, Task
from dualtap.experiments.settings import number_or_text

CONTENTS = "archive.json"
_DIGITS = 7


class Made(NamedTuple):
    """Where the rows of an experiment come from."""

    code: str
    """Version of the code, as in :mod:`dualtap.experiments.versions`."""
    dualtap: str
    n_trials: int


class Archive:
    """Archived trials, to be read.

    Parameters
    ----------
    folder : str or Path

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dualtap.experiments.archive import Archive, write_archive
    >>> from dualtap.experiments.experiment import Results, Row, Task
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = Results([Row({"p": 0.5}, 0, 7, {"heads": 3}, None, 0.1, "0.1.0")])
    >>> _ = write_archive(folder, {"coin": ("c1", rows)}, rules={})
    >>> Archive(folder).find(Task("coin", "c1", {"p": 0.5}, 0)).results
    {'heads': 3}
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        path = self.folder / CONTENTS
        try:
            contents = json.loads(path.read_text())
            self.made = {name: Made(*made) for name, made in contents["experiments"].items()}
            self.rules: dict[str, str] = contents["rules"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self.folder} is no archive of trials: {error}") from None
        self._rows = cache(self._read)

    def find(self, task: Task, *, of_any_code: bool = False) -> Row | None:
        """Return the row of a task, None if it is not there or of other code."""
        made = self.made.get(task.experiment)
        if made is None or not (of_any_code or made.code == task.version):
            return None
        return self._rows(task.experiment).get((task.point, task.index))

    def rows(self, experiment: str) -> list[Row]:
        """Return all rows of an experiment."""
        return list(self._rows(experiment).values())

    def mean_seconds(self, task: Task) -> float | None:
        """Return what a trial took here: at the same point, else with as many spins."""
        if task.experiment not in self.made:
            return None
        rows = self._rows(task.experiment)
        here = [row.seconds for (point, _), row in rows.items() if point == task.point]
        size = task.parameters.get("N")
        some = here or [r.seconds for r in rows.values() if r.parameters.get("N") == size]
        return float(np.mean(some)) if some else None

    def _read(self, experiment: str) -> dict[tuple[str, int], Row]:
        """Return the rows of an experiment by point and number."""
        path = self.folder / f"{experiment}.csv"
        dualtap = self.made[experiment].dualtap
        with path.open(newline="") as file:
            titles, *lines = csv.reader(file)
        trial, seed, seconds = (titles.index(name) for name in ("trial", "seed", "seconds"))
        stacks = cache(partial(_read_stacks, path.with_suffix(".npz")))
        found = {}
        for number, line in enumerate(lines):
            cells = [number_or_text(cell) if cell else None for cell in line]
            parameters = _present(titles[:trial], cells[:trial])
            results = _present(titles[seed + 1 : seconds], cells[seed + 1 : seconds])
            task = Task(experiment, "", parameters, int(line[trial]))
            arrays = partial(_arrays_of, stacks, number)
            row = Row(
                parameters, task.index, int(line[seed]), results, arrays, float(line[seconds]),
                dualtap,
            )  # fmt: skip
            found[task.point, task.index] = row
        return found


def _present(titles: Sequence[str], cells: Sequence[Any]) -> dict[str, Any]:
    return {t: cell for t, cell in zip(titles, cells, strict=True) if cell is not None}


def _read_stacks(path: Path) -> list[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Return names, the rows that have an array of this name and shape, and the arrays."""
    contents = read_arrays(path) if path.exists() else {}
    if not isinstance(contents, dict):
        raise ValueError(f"{path} is no file of stacked arrays")
    keys = [key for key in contents if not key.endswith(".rows")]
    return [(key.rpartition(".")[0], contents[f"{key}.rows"], contents[key]) for key in keys]


def _arrays_of(stacks: Any, number: int) -> Arrays:
    """Return the arrays of one row."""
    return {
        name: stack[int(np.searchsorted(rows, number))]
        for name, rows, stack in stacks()
        if number in rows
    }


def write_archive(
    folder: Path, results: Mapping[str, tuple[str, Results]], rules: Mapping[str, str]
) -> list[Path]:
    """Write the trials of experiments, each with the version of its code.

    Parameters
    ----------
    folder : Path
        Made when it is missing. Experiments that it has and that are not given stay.
    results : mapping
        Version of the code, and rows, by experiment.
    rules : mapping
        Fingerprints of the rules fixed before these trials.

    Returns
    -------
    list of Path
        Files written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    made: dict[str, Any] = {}
    if (folder / CONTENTS).exists():
        made = dict(Archive(folder).made)
    for name, (code, rows) in results.items():
        written += [_write_table(folder / f"{name}.csv", rows)]
        written += _write_stacks(folder / f"{name}.npz", rows)
        made[name] = Made(code, rows.rows[0].dualtap if rows else "", len(rows))
    return [*written, _write_contents(folder, made, rules)]


def adopt(folder: Path, codes: Mapping[str, str]) -> Path:
    """Say that rows are what another version of the code gives, after that has been checked.

    Parameters
    ----------
    folder : Path
        Of an archive.
    codes : mapping
        Versions of the code by experiment, as in :mod:`dualtap.experiments.versions`.

    Returns
    -------
    Path
        The file written.
    """
    archive = Archive(folder)
    made = dict(archive.made)
    made.update({name: made[name]._replace(code=code) for name, code in codes.items()})
    return _write_contents(folder, made, archive.rules)


def _write_contents(folder: Path, made: Mapping[str, Made], rules: Mapping[str, str]) -> Path:
    """Write which code made the rows, and by which rules they are judged."""
    contents = {"rules": dict(sorted(rules.items())), "experiments": dict(sorted(made.items()))}
    with atomic_write(folder / CONTENTS, force=True) as file:
        file.write((json.dumps(contents, indent=1) + "\n").encode())
    return folder / CONTENTS


def _write_table(path: Path, rows: Results) -> Path:
    parameters = list(dict.fromkeys(name for row in rows for name in row.parameters))
    results = list(dict.fromkeys(name for row in rows for name in row.results))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*parameters, "trial", "seed", *results, "seconds"])
    for row in rows:
        given = [row.parameters.get(name) for name in parameters]
        got = [_short(row.results.get(name)) for name in results]
        writer.writerow([*given, row.index, row.seed, *got, f"{row.seconds:.3g}"])
    with atomic_write(path, force=True) as file:
        file.write(text.getvalue().encode())
    return path


def _short(value: Any) -> Any:
    """Return a number to as many digits as matter."""
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _write_stacks(path: Path, rows: Results) -> list[Path]:
    """Write arrays of equal name and shape as one, with the numbers of their rows."""
    groups: dict[tuple[str, tuple[int, ...]], list[tuple[int, NDArray[Any]]]] = {}
    for number, row in enumerate(rows):
        for name, array in ({} if row.arrays is None else row.arrays()).items():
            groups.setdefault((name, array.shape), []).append((number, array))
    if not groups:
        path.unlink(missing_ok=True)
        return []
    stacks: dict[str, NDArray[Any]] = {}
    for k, ((name, _), members) in enumerate(groups.items()):
        stack = np.array([array for _, array in members])
        is_double = stack.dtype == np.float64
        stacks[f"{name}.{k}"] = stack.astype(np.float32) if is_double else stack
        stacks[f"{name}.{k}.rows"] = np.array([number for number, _ in members])
    with atomic_write(path, force=True) as file:
        np.savez_compressed(file, **stacks)  # type: ignore[arg-type]
    return [path]

"""Real tables of yes and no: from OpenML through scikit-learn, and a questionnaire from PyPI."""

from __future__ import annotations

import csv
import io
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.datasets._dataset import Dataset, package_folder

_YES = frozenset({"y", "yes", "t", "true", "1"})


class _Table(NamedTuple):
    """A data set of OpenML."""

    data_id: int
    name: str
    """At OpenML, to be sure that the number means it."""
    description: str
    left_out: tuple[str, ...] = ()
    """Columns that are neither traits nor labels."""


TABLES = {
    "votes": _Table(
        56,
        "vote",
        "435 members of the US House of Representatives of 1984, 16 key votes, +1 for yes, missing "
        "where a member took no side. Labels are parties.",
    ),
    "zoo": _Table(
        62,
        "zoo",
        "101 animals, 15 traits, +1 where an animal has it. Labels are classes such as mammals.",
        ("animal", "legs"),
    ),
    "mushroom": _Table(
        24,
        "mushroom",
        "8124 descriptions of mushrooms. Labels say which are edible.",
    ),
    "chess": _Table(
        3,
        "kr-vs-kp",
        "3196 positions of an end game, king and rook against king and pawn. Labels say whether "
        "white can win.",
    ),
    "soybean": _Table(
        42,
        "soybean",
        "683 soybean plants and their symptoms. Labels are diseases.",
    ),
    "spect": _Table(
        336,
        "SPECT",
        "267 images of hearts by SPECT, 22 features. Labels are diagnoses.",
    ),
}


def load_openml(name: str = "votes", data_home: str | Path | None = None) -> Dataset:
    """Return a table of OpenML, which scikit-learn downloads once and keeps.

    A trait with two values is one spin, +1 for yes or else for the second value of the table's own
    list; a trait with more is one spin per value, +1 where a sample has it. Values that never
    occur, and traits that are always the same, are left out.

    Parameters
    ----------
    name : {"votes", "zoo", "mushroom", "chess", "soybean", "spect"}
        House votes of 1984, animals, mushrooms, a chess end game, diseases of soybeans, heart
        images.
    data_home : str or Path, optional
        Folder of the downloads; scikit-learn's own if not given.

    Returns
    -------
    Dataset
        With labels, which are never fitted.

    Raises
    ------
    OSError
        If it is neither kept nor to be downloaded.

    Examples
    --------
    >>> from dualtap.datasets import load_openml
    >>> load_openml("cats")
    Traceback (most recent call last):
    ...
    ValueError: unknown table 'cats'; known are: votes, zoo, mushroom, chess, soybean, spect
    """
    from sklearn.datasets import fetch_openml

    if name not in TABLES:
        raise ValueError(f"unknown table {name!r}; known are: {', '.join(TABLES)}")
    table = TABLES[name]
    try:
        found = fetch_openml(
            data_id=table.data_id,
            data_home=None if data_home is None else str(data_home),
            as_frame=False,
            parser="liac-arff",
        )
    except OSError as error:
        raise OSError(
            f"the data set {name!r} comes from openml.org, and was not downloaded: {error}"
        ) from error
    if found.details["name"] != table.name:
        raise ValueError(
            f"data set {table.data_id} of OpenML is {found.details['name']!r}, not {table.name!r}"
        )
    X, names = _spins(found, table.left_out)
    labels, y = np.unique(np.asarray(found.target, dtype=str), return_inverse=True)
    return Dataset(
        X=X.astype(np.int8) if not np.isnan(X).any() else X,
        names=tuple(names),
        description=f"{table.description} (OpenML {table.data_id}, {table.name}.)",
        y=y.astype(np.int64),
        target_names=tuple(labels.tolist()),
    )


def _spins(found: Any, left_out: tuple[str, ...]) -> tuple[NDArray[np.float32], list[str]]:
    """Return traits as ±1, NaN where one is missing, and what the spins are called."""
    columns, names = [], []
    for k, trait in enumerate(found.feature_names):
        if trait in left_out:
            continue
        column = np.asarray(found.data[:, k], dtype=np.float64)
        missing = np.isnan(column)
        codes = np.unique(column[~missing]).astype(int)
        values = {str(found.categories[trait][code]): code for code in codes}
        if len(values) == 2:
            yes = next((value for value in values if value.lower() in _YES), list(values)[-1])
            shown = {trait if yes.lower() in _YES else f"{trait}={yes}": values[yes]}
        else:
            shown = {f"{trait}={value}": code for value, code in values.items()}
        for name, code in shown.items() if len(values) > 1 else ():
            columns.append(np.where(missing, np.nan, np.where(column == code, 1, -1)))
            names.append(name)
    return np.column_stack(columns).astype(np.float32), names


def load_questionnaire() -> Dataset:
    """Return 3570 answers to the Eysenck Personality Inventory, which come with pydataset.

    57 questions, +1 for yes. The data were collected at Northwestern University in the early
    1990s, and are ``epi`` of the R package psych. The package is not imported: that would unpack
    all its data into the home folder.

    Returns
    -------
    Dataset
        ``names`` are the questions. Without labels.

    Examples
    --------
    >>> from dualtap.datasets import load_questionnaire
    >>> answers = load_questionnaire()
    >>> answers.X.shape, answers.names[29]
    ((3570, 57), 'Do you sometimes gossip?')
    >>> bool((answers.X[:, 29] == 1).mean() > 0.8)
    True
    """
    packed = package_folder("pydataset", "the questionnaire") / "resources.tar.gz"
    with tarfile.open(packed) as archive:
        answers, questions = (_csv(archive, name) for name in ("epi", "epi.dictionary"))
    codes = {"1": 1, "2": -1, "NA": np.nan}
    X = np.array([[codes[word] for word in row[1:]] for row in answers[1:]], dtype=np.float32)
    return Dataset(
        X=X,
        names=tuple(row[1] for row in questions[1:]),
        description="3570 students, 57 questions of the Eysenck Personality Inventory, +1 for yes, "
        "missing where a question was left out (psych, pydataset).",
    )


def _csv(archive: tarfile.TarFile, name: str) -> list[list[str]]:
    member = archive.extractfile(f"resources/rdata/csv/psych/{name}.csv")
    assert member is not None
    with member, io.TextIOWrapper(member, encoding="utf-8") as lines:
        return list(csv.reader(lines))

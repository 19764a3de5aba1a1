"""What all readers share: what is asked for, which part of a table is not spins, the result."""

from __future__ import annotations

import difflib
import importlib
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._files import check_expansion
from dualtap.hopfield import HopfieldModel
from dualtap.io.codes import Codes, spin_code
from dualtap.spins import Spins, SpinsBuilder

NamedTexts = list[tuple[str, list[str]]]

CHUNK_BYTES = 2**22
"""Most bytes of a file that are looked at together, unless one row is longer."""
_LONG_TEXTS = 2**24


@dataclass(frozen=True)
class SampleFile:
    """What a sample file holds.

    Attributes
    ----------
    spins : Spins
        The samples.
    names : tuple of str or None
        Names of the spins.
    sample_names : tuple of str or None
        Names of the samples.
    label_columns : dict of str to arrays of shape (n_samples,), text
        What is known about each sample, for evaluation, by name. Never used to fit.
    weights : array of shape (n_samples,) or None
        Number of samples that each row stands for, if a column was named for it.
    teacher : HopfieldModel or None
        The model that made the samples, in files of ``dualtap sample``. Never used to fit.
    notes : tuple of str
        What was recognised in the file, and a reader should know.

    Examples
    --------
    >>> from dualtap.io import SampleFile
    >>> from dualtap.spins import as_spins
    >>> SampleFile(as_spins([[1, 0]]), names=("tax", "school")).spins.n_spins
    2
    """

    spins: Spins
    names: tuple[str, ...] | None = None
    sample_names: tuple[str, ...] | None = None
    label_columns: Mapping[str, NDArray[np.str_]] = field(default_factory=dict)
    teacher: HopfieldModel | None = None
    notes: tuple[str, ...] = ()
    weights: NDArray[np.float64] | None = None

    @property
    def labels(self) -> NDArray[np.str_] | None:
        """The first of the labels; None if there are none."""
        return next(iter(self.label_columns.values()), None)


class Request(NamedTuple):
    """Which file to read, and how."""

    path: Path
    labels: tuple[str, ...] = ()
    transpose: bool = False
    zero_is_missing: bool = False
    on_workers: bool = False
    allow_expansion: bool = False
    id: str | None = None
    drop: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    codes: Codes | None = None

    def code(self, word: str) -> int | None:
        """Return -1, 0, 1 or MISSING for a word; None for text, ValueError for what is wrong."""
        return spin_code(word) if self.codes is None else self.codes.code(word)

    @property
    def of_tables(self) -> bool:
        """Whether something is asked for that only tables know."""
        return bool(self.id or self.drop or self.columns or self.codes)

    @property
    def spellings(self) -> str:
        """What values may look like, for messages."""
        if self.codes is None:
            return "-1/+1, 0/1 or true/false"
        return f"{', '.join(self.codes.true)} (+1) or {', '.join(self.codes.false)} (-1)"

    def error(self, message: str) -> ValueError:
        """Return an error that names the file."""
        return ValueError(f"{self.path}: {message}")

    def check_expansion(self, stored: int, unpacked: int) -> None:
        """Raise if bytes of the file claim to hold far more than their number, unless allowed."""
        try:
            check_expansion(stored, unpacked, allowed=self.allow_expansion)
        except ValueError as error:
            raise self.error(str(error)) from None


Beside = Mapping[str, NDArray[Any]]
"""Texts that are written with samples, by name: ``names``, ``sample_names``, and labels."""


class Format(NamedTuple):
    """How files with some ending are read and written."""

    read: Callable[[Request], SampleFile]
    write: Callable[[Any, Spins, Beside], None] | None = None
    """To an open file, or into an empty folder; None if they are only read."""
    table: bool = False
    """It has columns, which ``id``, ``drop``, ``columns``, ``true`` and ``false`` are about."""
    folder: bool = False
    keeps_teacher: bool = False
    """It also takes arrays of numbers: how the samples were made."""
    spelled: Callable[..., None] | None = None
    """As ``write``, with ``spellings``: the words for -1 and for +1."""


class Collector:
    """Rows of a file on their way to spins.

    Parameters
    ----------
    request : Request
    n_rows : int, optional
        If known, memory is taken once.
    exchanged : bool
        What comes are the columns of the matrix, not its rows.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io.collecting import Collector, Request
    >>> collector = Collector(Request(pathlib.Path("votes.csv"), transpose=True))
    >>> collector.add([[1, 0, 0], [1, 1, 0]])
    >>> collector.finish().values
    array([[ 1,  1],
           [-1,  1],
           [-1, -1]], dtype=int8)
    """

    def __init__(
        self, request: Request, n_rows: int | None = None, *, exchanged: bool = False
    ) -> None:
        self._request = request
        self._exchanged = exchanged
        self._builder = SpinsBuilder(zero_is_missing=request.zero_is_missing, n_samples=n_rows)

    def add(self, rows: Any) -> None:
        """Take in some rows, numbers of any type with NaN where one is missing."""
        try:
            self._builder.add(rows)
        except ValueError as error:
            raise self._named(error) from None

    def finish(self) -> Spins:
        """Return all rows, as samples or as spins, as was asked for."""
        try:
            return self._builder.finish(transpose=self._request.transpose != self._exchanged)
        except ValueError as error:
            raise self._named(error) from None

    def _named(self, error: ValueError) -> ValueError:
        message = str(error)
        if self._exchanged:
            message = re.sub(r"row (\d+), column (\d+)", r"row \2, column \1", message)
        return self._request.error(message)


def result(
    request: Request,
    spins: Spins,
    *,
    columns: Sequence[str] | None,
    rows: Sequence[str] | None,
    labels: Mapping[str, Iterable[Any]],
    notes: tuple[str, ...] = (),
) -> SampleFile:
    """Return the contents of a table whose columns and rows have these names.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io.collecting import Request, result
    >>> from dualtap.spins import as_spins
    >>> request = Request(pathlib.Path("votes.csv"), transpose=True)
    >>> spins = as_spins([[1, 0]])
    >>> result(request, spins, columns=["Ann"], rows=["tax", "school"], labels={}).names
    ('tax', 'school')
    """
    if request.transpose:
        columns, rows = rows, columns
    names = {"names": (columns, spins.n_spins), "sample_names": (rows, spins.n_samples)}
    for what, (found, needed) in names.items():
        if found is not None and len(found) != needed:
            raise request.error(f"there are {len(found)} {what} where {needed} are needed")
    told = {}
    for name, values in labels.items():
        words = [str(value) for value in values]
        if len(words) != spins.n_samples:
            raise request.error(
                f"there are {len(words)} labels {name!r} of {spins.n_samples} samples"
            )
        _check_texts(request, "labels", words)
        told[name] = np.array(words, dtype=np.str_)
    for what, (found, _) in names.items():
        _check_texts(request, what, found or [])
    return SampleFile(
        spins,
        names=None if columns is None else tuple(columns),
        sample_names=None if rows is None else tuple(rows),
        label_columns=told,
        notes=notes,
    )


def _check_texts(request: Request, what: str, texts: Sequence[str]) -> None:
    """Raise for texts that files or arrays cannot hold: no Unicode, or one far too long."""
    longest = max(map(len, texts), default=0)
    if len(texts) * longest > max(_LONG_TEXTS, 64 * sum(map(len, texts))):
        raise request.error(
            f"one of the {what.replace('_', ' ')} has {longest} characters, and room for as many "
            f"is needed {len(texts)} times; shorten it"
        )
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise request.error(
                f"one of the {what.replace('_', ' ')}, {text[:40]!r}, is not Unicode text"
            ) from None


def nearest(wanted: str, names: Sequence[str]) -> str:
    """Return the names that are most like the one wanted, or the first few.

    Examples
    --------
    >>> from dualtap.io.collecting import nearest
    >>> nearest("prty", ["party", "tax"])
    "the nearest: 'party'"
    """
    lower = {name.lower(): name for name in names}
    near = [lower[name] for name in difflib.get_close_matches(wanted.lower(), list(lower)[:10_000])]
    if near:
        return f"the nearest: {', '.join(map(repr, near))}"
    some = ", ".join(repr(name[:40]) for name in names[:5])
    return f"there are {some}{', …' if len(names) > 5 else ''}" if some else "there are none"


def default_names(spins: Spins) -> list[str]:
    """Return names for the spins of a table that must have some.

    Examples
    --------
    >>> from dualtap.io.collecting import default_names
    >>> from dualtap.spins import as_spins
    >>> default_names(as_spins([[1, 0]]))
    ['spin0', 'spin1']
    """
    return [f"spin{k}" for k in range(spins.n_spins)]


def needed(module: str, extra: str, what: str) -> Any:
    """Return a module of an optional package, or say how to install it.

    Examples
    --------
    >>> from dualtap.io.collecting import needed
    >>> needed("no_such_package", "hdf5", "reading and writing HDF5 files")
    Traceback (most recent call last):
    ...
    ImportError: reading and writing HDF5 files needs no-such-package; install it with:
    pip install 'dualtap[hdf5]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(
            f"{what} needs {module.replace('_', '-')}; install it with: "
            f"pip install 'dualtap[{extra}]'"
        ) from None


def columns_beside(beside: Beside, spins: Spins) -> tuple[list[str] | None, NamedTexts, NamedTexts]:
    """Return the names of spins, and the columns of text before and after them, for a table.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.io.collecting import columns_beside
    >>> from dualtap.spins import as_spins
    >>> columns_beside({"party": np.array(["green"])}, as_spins([[1, 0]]))
    (['spin0', 'spin1'], [], [('party', ['green'])])
    """
    names = beside["names"].tolist() if "names" in beside else None
    before = [("", beside["sample_names"].tolist())] if "sample_names" in beside else []
    known = ("names", "sample_names")
    after = [(name, texts.tolist()) for name, texts in beside.items() if name not in known]
    if names is None and (before or after):
        names = default_names(spins)
    return names, before, after


def check_memory(request: Request, shape: tuple[int, ...]) -> None:
    """Raise if even one bit for each declared entry is more than this machine has.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io.collecting import Request, check_memory
    >>> check_memory(Request(pathlib.Path("data.npy")), (10**9, 10**9))
    Traceback (most recent call last):
    ...
    ValueError: data.npy: it declares shape (1000000000, 1000000000), which takes 116415322 GB
    even at one bit per entry
    """
    needed = math.prod(shape) // 8
    if hasattr(os, "sysconf") and needed > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise request.error(
            f"it declares shape {shape}, which takes {needed / 2**30:.0f} GB even at one bit "
            "per entry"
        )


def check_matrix(request: Request, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise unless an array can be samples.

    Examples
    --------
    >>> import pathlib, numpy as np
    >>> from dualtap.io.collecting import Request, check_matrix
    >>> check_matrix(Request(pathlib.Path("data.npy")), (5,), np.dtype(float))
    Traceback (most recent call last):
    ...
    ValueError: data.npy: it holds an array of shape (5,); samples are a matrix of
    (samples, spins)
    """
    if len(shape) != 2:
        raise request.error(
            f"it holds an array of shape {shape}; samples are a matrix of (samples, spins)"
        )
    if dtype.kind not in "biuf":
        raise request.error(f"it holds values of type {dtype}; spins are numbers or booleans")
    if 0 in shape:
        raise request.error(f"it is empty: {shape[0]} rows and {shape[1]} columns")
    check_memory(request, shape)

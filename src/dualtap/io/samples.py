"""Samples in files of every format, streamed into packed spins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap._files import atomic_folder, atomic_write, known_suffix
from dualtap._validation import checked_weights
from dualtap.hopfield import HopfieldModel
from dualtap.io.arrays import read_npy, read_npz, write_npy, write_npz
from dualtap.io.cells import read_h5ad
from dualtap.io.codes import Words, as_words, codes
from dualtap.io.collecting import Format, Request, SampleFile
from dualtap.io.columnar import read_columns, write_columns
from dualtap.io.genotypes import read_bed
from dualtap.io.hdf5 import read_h5, write_h5
from dualtap.io.models import provenance
from dualtap.io.text import read_text, write_text
from dualtap.io.zarr_store import read_zarr, write_zarr
from dualtap.spins import Spins, as_spins


def _text(delimiter: str, *, gzipped: bool = False) -> Format:
    write = partial(write_text, delimiter=delimiter, gzipped=gzipped)
    return Format(partial(read_text, delimiter=delimiter), write, table=True, spelled=write)


def _columns(*, parquet: bool) -> Format:
    write = partial(write_columns, parquet=parquet)
    return Format(partial(read_columns, parquet=parquet), write, table=True)


_HDF5, _ARROW = Format(read_h5, write_h5), _columns(parquet=False)
REGISTRY: dict[str, Format] = {
    ".npz": Format(read_npz, write_npz, keeps_teacher=True),
    ".npy": Format(read_npy, lambda file, spins, beside: write_npy(file, spins)),
    ".csv": _text(","),
    ".tsv": _text("\t"),
    ".csv.gz": _text(",", gzipped=True),
    ".tsv.gz": _text("\t", gzipped=True),
    ".parquet": _columns(parquet=True),
    ".h5": _HDF5,
    ".hdf5": _HDF5,
    ".arrow": _ARROW,
    ".feather": _ARROW,
    ".zarr": Format(read_zarr, write_zarr, folder=True),
    ".bed": Format(read_bed),
    ".h5ad": Format(read_h5ad),
}
"""What samples are read from and written as: another format is another line."""
READ_FORMATS = tuple(REGISTRY)
FORMATS = tuple(suffix for suffix, known in REGISTRY.items() if known.write is not None)
"""What samples are written as."""
LABELS_NAME = "label"
"""The column or array in which labels are written that have no name."""
Labels = Mapping[str, Sequence[Any] | NDArray[Any]] | Sequence[Any] | NDArray[Any] | None


def read_samples(
    path: str | Path,
    *,
    labels: Words = None,
    transpose: bool = False,
    zero_is_missing: bool = False,
    on_workers: bool = False,
    allow_expansion: bool = False,
    id: str | None = None,
    drop: Words = None,
    columns: Words = None,
    true: Words = None,
    false: Words = None,
    weights: str | None = None,
) -> SampleFile:
    r"""Read samples from a file; memory holds them at one bit per spin, whatever their size.

    An ``.npz``, an HDF5 file or a Zarr store holds one matrix, or the samples under the name
    ``X``; ``names`` and ``sample_names`` beside it are read too. In tables (text, Parquet, Arrow) a
    first line that is not made of values is a line of names, and a first column of text, of whole
    numbers that are all different, without a name, or called index, id, sample or name and not made
    of spins, names the rows. In text, empty fields, NA, NaN, None, null and ``?`` are missing
    entries.

    Of a PLINK ``.bed``, a spin is +1 where a person carries at least one copy of the allele A1
    (column 5 of the ``.bim`` file, usually the minor one), and is called after variant and allele,
    ``rs123_A``. Of an ``.h5ad``, a spin is +1 where the value of ``X`` is above 0: a gene was
    detected in a cell. If ``X`` holds negative numbers, and is scaled, ``raw.X`` is taken.

    Parameters
    ----------
    path : str or Path
        Ends in ``.npz``, ``.npy``, ``.csv``, ``.tsv``, ``.csv.gz``, ``.tsv.gz``, ``.parquet``,
        ``.h5``, ``.hdf5``, ``.arrow``, ``.feather``, ``.zarr``, ``.bed`` or ``.h5ad``.
    labels : str or sequence of str, optional
        Columns (with ``transpose``, rows) of a table, or arrays with one entry per sample, that are
        kept as text for evaluation and never fitted. Of a ``.bed``: fid, father, mother, sex or
        pheno; of an ``.h5ad``: columns of ``obs``.
    transpose : bool
        Rows of the file are spins, and its columns samples.
    zero_is_missing : bool
        The data are -1/+1 and 0 marks a missing entry.
    on_workers : bool
        Samples of a Zarr store are read by the workers of the present Dask client and stay there.
    allow_expansion : bool
        Read a file also if it unpacks to more than 256 MB and 200 times its size.
    id : str, optional
        The column of a table that names its rows.
    drop, columns : str or sequence of str, optional
        Columns of a table to leave out, or the only ones to take for spins.
    true, false : str or sequence of str, optional
        What stands for +1 and for -1 in a table, as in ``true="yes", false="no"`` or
        ``true="1", false="2"``, in lower or upper case. Only these, and missing ones, are then
        allowed.
    weights : str, optional
        A column of a table (with ``transpose``, a row), or an array, with the number of samples
        that each row stands for.

    Returns
    -------
    SampleFile

    Raises
    ------
    ValueError
        For whatever is wrong with the contents of the file, in one line that names it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from dualtap.io import read_samples
    >>> path = pathlib.Path(tempfile.mkdtemp(), "votes.csv")
    >>> _ = path.write_text("tax,school\n1,0\n,1\n")
    >>> file = read_samples(path)
    >>> file.spins.values.tolist(), file.names
    ([[1, -1], [0, 1]], ('tax', 'school'))
    """
    path = Path(path)
    suffix = known_suffix(path, tuple(REGISTRY))
    request = Request(
        path,
        as_words(labels) + as_words(weights),
        transpose,
        zero_is_missing,
        on_workers,
        allow_expansion,
        id,
        as_words(drop),
        as_words(columns),
        codes(true, false),
    )
    if request.of_tables and not REGISTRY[suffix].table:
        tables = ", ".join(ending for ending, known in REGISTRY.items() if known.table)
        raise request.error(f"id, drop, columns, true and false are for tables: {tables}")
    if on_workers and (suffix != ".zarr" or transpose):
        raise request.error(
            "workers read Zarr stores (.zarr), each its own chunks of samples as they are; write "
            "one with write_samples, or with `dualtap sample -o data.zarr`"
        )
    file = REGISTRY[suffix].read(request)
    return file if weights is None else _with_weights(request, file, weights)


def _with_weights(request: Request, file: SampleFile, name: str) -> SampleFile:
    """Return the contents of a file with one of its labels as weights."""
    columns = dict(file.label_columns)
    words = columns.pop(name).tolist()
    try:
        weights = checked_weights([float(word or "nan") for word in words], len(words))
    except ValueError as error:
        message = str(error)
        if "sample_weight" not in message:
            wrong = next(k for k, word in enumerate(words) if not _is_number(word))
            message = f"sample_weight is {words[wrong][:40]!r} at sample {wrong}, not a number"
        raise request.error(message.replace("sample_weight", f"weight {name!r}")) from None
    return replace(file, label_columns=columns, weights=weights)


def _is_number(word: str) -> bool:
    try:
        float(word or "nan")
    except ValueError:
        return False
    return True


def write_samples(
    path: str | Path,
    X: Any,
    *,
    names: Sequence[str] | None = None,
    sample_names: Sequence[str] | None = None,
    labels: Labels = None,
    teacher: HopfieldModel | None = None,
    parameters: dict[str, Any] | None = None,
    spellings: tuple[str, str] | None = None,
    force: bool = False,
) -> None:
    """Write samples; an ``.npz`` also keeps the teacher and how the samples were made.

    Parameters
    ----------
    path : str or Path
        Ends as :func:`read_samples` knows it. An ``.npy`` keeps the samples only.
    X : Spins or array-like of shape (n_samples, n_spins)
        Written in its own encoding, 0/1 or -1/+1.
    names, sample_names : sequence of str, optional
        Of spins and of samples. Tables with labels or names of samples need names of spins as
        well: spin0, spin1, … if none are given.
    labels : sequence, or dict of sequences, optional
        One text or number per sample, in a column or array called ``label``, or in several with
        the names of the dict.
    teacher : HopfieldModel, optional
    parameters : dict, optional
        Anything JSON can hold, kept beside the samples.
    spellings : tuple of two str, optional
        What stands for -1 and for +1 in text, as in ``("no", "yes")``. Other formats hold numbers.
    force : bool
        Overwrite an existing file.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from dualtap.io import read_samples, write_samples
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.npy")
    >>> write_samples(path, np.array([[1, -1], [-1, -1]], dtype=np.int8))
    >>> read_samples(path).spins.values
    array([[ 1, -1],
           [-1, -1]], dtype=int8)
    """
    path = Path(path)
    writable = tuple(suffix for suffix, known in REGISTRY.items() if known.write is not None)
    known = REGISTRY[known_suffix(path, writable)]
    assert known.write is not None
    spins = as_spins(X)
    if not isinstance(labels, Mapping):
        labels = {} if labels is None else {LABELS_NAME: labels}
    beside = _beside(spins, names, sample_names, labels)
    if known.keeps_teacher:
        beside |= _made_by(teacher, parameters or {})
    with (atomic_folder if known.folder else atomic_write)(path, force=force) as target:
        if spellings is None or known.spelled is None:
            known.write(target, spins, beside)
        else:
            known.spelled(target, spins, beside, spellings=spellings)


def _beside(
    spins: Spins,
    names: Sequence[str] | None,
    sample_names: Sequence[str] | None,
    labels: Mapping[str, Sequence[Any] | NDArray[Any]],
) -> dict[str, NDArray[Any]]:
    """Return the texts that go with samples, checked."""
    given: dict[str, tuple[Sequence[Any] | NDArray[Any] | None, int]] = {
        "names": (names, spins.n_spins),
        "sample_names": (sample_names, spins.n_samples),
    }
    taken = {*given, "X", "provenance"} & set(labels)
    if taken:
        raise ValueError(f"labels cannot be called {sorted(taken)[0]!r}")
    given |= {name: (values, spins.n_samples) for name, values in labels.items()}
    texts: dict[str, NDArray[Any]] = {}
    for what, (values, needed) in given.items():
        if values is None:
            continue
        if len(values) != needed:
            raise ValueError(f"there are {len(values)} {what} where {needed} are needed")
        texts[what] = np.array([str(value) for value in values], dtype=np.str_)
    return texts


def _made_by(teacher: HopfieldModel | None, parameters: dict[str, Any]) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {"provenance": provenance(parameters)}
    if teacher is not None:
        arrays |= {
            "teacher_patterns": np.asarray(teacher.patterns),
            "teacher_beta": np.asarray(teacher.beta),
        }
        if np.any(teacher.strengths != teacher.beta):
            arrays["teacher_strengths"] = np.asarray(teacher.strengths)
        if teacher.fields is not None:
            arrays["teacher_fields"] = np.asarray(teacher.fields)
    return arrays

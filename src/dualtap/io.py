"""Files: samples in and out, models in and out. No pickle is ever read or written.

Everything is written to a temporary file in the same folder and renamed when it is complete, so
that a reader never sees half a file and a failure leaves an older one untouched.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dualtap.hopfield import HopfieldModel
from dualtap.recovery import DualTAP, History

__all__ = ["SampleFile", "atomic_write", "load", "read_samples", "save", "write_samples"]

FORMATS = (".npz", ".npy", ".csv", ".tsv")
MODEL_FORMATS = (".npz",)
MODEL_SCHEMA = 1
_MISSING_TEXT = frozenset({"", "na", "nan", "none", "null", "?"})
_LOGICAL_TEXT = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class SampleFile:
    """What a sample file holds.

    Attributes
    ----------
    X : array of shape (n_samples, n_spins)
        The values as they are in the file; :func:`dualtap.as_spins` interprets them.
    names : tuple of str or None
        Column names, from the header of a text file.
    teacher : HopfieldModel or None
        The model that made the samples, in files of ``dualtap sample``. Never used to fit.
    """

    X: NDArray[Any]
    names: tuple[str, ...] | None = None
    teacher: HopfieldModel | None = None


def read_samples(path: str | Path) -> SampleFile:
    r"""Read a sample matrix from ``.npz``, ``.npy``, ``.csv`` or ``.tsv``.

    An ``.npz`` file holds one array, or the samples under the name ``X``. In text files a first
    line that is not made of values is taken as a header, and empty fields, NA, NaN, None, null
    and ``?`` are missing entries.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    SampleFile

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from dualtap.io import read_samples
    >>> path = pathlib.Path(tempfile.mkdtemp(), "votes.csv")
    >>> _ = path.write_text("tax,school\n1,0\n,1\n")
    >>> read_samples(path)
    SampleFile(X=array([[ 1.,  0.],
           [nan,  1.]]), names=('tax', 'school'), teacher=None)
    """
    path = Path(path)
    suffix = _known_suffix(path, FORMATS)
    if suffix in (".csv", ".tsv"):
        return _read_text(path, "," if suffix == ".csv" else "\t")
    contents = _read_numpy(path)
    if isinstance(contents, np.ndarray):
        return SampleFile(contents)
    if "schema" in contents:
        raise ValueError(f"{path} is a model, not samples")
    name = "X" if "X" in contents else next(iter(contents), None)
    if name is None or ("X" not in contents and len(contents) > 1):
        raise ValueError(
            f"{path} holds the arrays {', '.join(contents) or '(none)'}; "
            "name the samples X, or store one array"
        )
    teacher = None
    if "teacher_patterns" in contents and "teacher_beta" in contents:
        teacher = HopfieldModel(contents["teacher_patterns"], float(contents["teacher_beta"]))
    return SampleFile(contents[name], teacher=teacher)


def write_samples(
    path: str | Path,
    X: NDArray[np.int8],
    *,
    teacher: HopfieldModel | None = None,
    parameters: dict[str, Any] | None = None,
    force: bool = False,
) -> None:
    """Write samples; an ``.npz`` also keeps the teacher and how the samples were made.

    Parameters
    ----------
    path : str or Path
        Ends in ``.npz``, ``.npy``, ``.csv`` or ``.tsv``.
    X : array of shape (n_samples, n_spins)
    teacher : HopfieldModel, optional
    parameters : dict, optional
        Anything JSON can hold, kept beside the samples.
    force : bool
        Overwrite an existing file.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from dualtap.io import read_samples, write_samples
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.npy")
    >>> write_samples(path, np.array([[1, -1], [-1, -1]], dtype=np.int8))
    >>> read_samples(path).X
    array([[ 1, -1],
           [-1, -1]], dtype=int8)
    """
    path = Path(path)
    suffix = _known_suffix(path, FORMATS)
    with atomic_write(path, force=force) as file:
        if suffix == ".npy":
            np.save(file, X, allow_pickle=False)
        elif suffix == ".npz":
            extra: dict[str, Any] = {"provenance": _provenance(parameters or {})}
            if teacher is not None:
                extra |= {"teacher_patterns": teacher.patterns, "teacher_beta": teacher.beta}
            np.savez_compressed(file, X=X, **extra)
        else:
            np.savetxt(file, X, fmt="%d", delimiter="," if suffix == ".csv" else "\t")


def save(model: DualTAP, path: str | Path, *, force: bool = False) -> None:
    """Write a fitted model to an ``.npz`` file that :func:`load` reads back.

    Parameters
    ----------
    model : DualTAP
        Fitted.
    path : str or Path
        Ends in ``.npz``.
    force : bool
        Overwrite an existing file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import dualtap as dt
    >>> teacher = dt.HopfieldModel.random(100, 2, beta=2.0, random_state=0)
    >>> model = dt.DualTAP(beta=2.0, random_state=0).fit(teacher.sample(20, random_state=1))
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.npz")
    >>> dt.save(model, path)
    >>> bool((dt.load(path).patterns_ == model.patterns_).all())
    True
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    path = Path(path)
    _known_suffix(path, MODEL_FORMATS)
    parameters = model.get_params()
    if not isinstance(parameters["random_state"], (int, type(None))):
        parameters["random_state"] = None  # a generator has moved on; its state explains nothing
    arrays = {f"history_{name}": value for name, value in asdict(model.history_).items()}
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names"] = model.feature_names_in_.astype(str)
    with atomic_write(path, force=force) as file:
        np.savez_compressed(
            file,
            schema=np.array(MODEL_SCHEMA),
            provenance=_provenance(parameters),
            patterns=model.patterns_,
            magnetizations=model.magnetizations_,
            beta=np.array(model.beta_),
            labels=model.labels_,
            weights=model.weights_,
            **arrays,
        )


def load(path: str | Path) -> DualTAP:
    """Read a model written by :func:`save`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DualTAP
        Fitted.
    """
    path = Path(path)
    _known_suffix(path, MODEL_FORMATS)
    contents = _read_numpy(path)
    if not isinstance(contents, dict) or "schema" not in contents:
        raise ValueError(f"{path} is not a dualtap model; `dualtap fit` writes them")
    schema = int(contents["schema"])
    if schema != MODEL_SCHEMA:
        raise ValueError(
            f"{path} has model schema {schema}, this version of dualtap reads {MODEL_SCHEMA}"
        )
    try:
        return _rebuild(contents)
    except KeyError as error:
        raise ValueError(f"{path} is incomplete: {error.args[0]}") from None


def _rebuild(contents: dict[str, NDArray[Any]]) -> DualTAP:
    provenance = json.loads(str(contents["provenance"]))
    model = DualTAP(**provenance["parameters"])
    model.patterns_ = contents["patterns"]
    model.magnetizations_ = contents["magnetizations"]
    model.n_patterns_ = len(model.patterns_)
    model.beta_ = float(contents["beta"])
    model.labels_ = contents["labels"]
    model.weights_ = contents["weights"]
    model.history_ = History(**{f.name: contents[f"history_{f.name}"] for f in fields(History)})
    model.n_features_in_ = model.patterns_.shape[1]
    if "feature_names" in contents:
        model.feature_names_in_ = contents["feature_names"].astype(object)
    return model


def _provenance(parameters: dict[str, Any]) -> NDArray[np.str_]:
    """Return version and parameters as a JSON text, which .npz stores without pickle."""
    from dualtap import __version__

    return np.array(json.dumps({"dualtap": __version__, "parameters": parameters}))


@contextmanager
def atomic_write(path: Path, *, force: bool = False) -> Iterator[IO[bytes]]:
    """Yield a file that becomes ``path`` when the block ends well, and vanishes when not.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from dualtap.io import atomic_write
    >>> path = pathlib.Path(tempfile.mkdtemp(), "note.txt")
    >>> with atomic_write(path) as file:
    ...     _ = file.write(b"whole or not at all")
    >>> path.read_text()
    'whole or not at all'
    """
    check_free(path, force=force)
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.name}.", suffix=".tmp", delete=False
    ) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            Path(file.name).chmod(0o666 & ~umask)  # temporary files are private; results are not
            check_free(path, force=force)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def check_free(path: Path, *, force: bool = False, formats: Sequence[str] = ()) -> None:
    """Raise if ``path`` cannot be written to, or not in these formats; call it before long work.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io import check_free
    >>> check_free(pathlib.Path("nowhere", "model.npz"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: there is no folder 'nowhere' to write 'model.npz' into
    """
    if formats:
        _known_suffix(path, formats)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {str(path.parent)!r} to write {path.name!r} into"
        )
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder")
    if path.exists() and not force:
        raise FileExistsError(f"{str(path)!r} exists; use --force (force=True) to overwrite it")


def _known_suffix(path: Path, formats: Sequence[str]) -> str:
    suffix = path.suffix.lower()
    if suffix not in formats:
        raise ValueError(f"{path.name!r} must end in {' or '.join(formats)}")
    return suffix


def _read_numpy(path: Path) -> NDArray[Any] | dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            return {name: loaded[name] for name in loaded.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a readable {path.suffix} file: {error}") from None


def _read_text(path: Path, delimiter: str) -> SampleFile:
    try:
        with path.open(encoding="utf-8-sig") as file:
            first = file.readline().rstrip("\r\n").split(delimiter)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text file: {error}") from None
    header = not all(_is_value(field) for field in first)
    try:
        X = np.loadtxt(
            path,
            delimiter=delimiter,
            skiprows=int(header),
            converters=_value,
            comments=None,
            ndmin=2,
            encoding="utf-8-sig",
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    names = tuple(field.strip().strip('"') for field in first) if header else None
    return SampleFile(X, names=names)


def _value(text: str) -> float:
    word = text.strip().strip('"').lower()
    if word in _MISSING_TEXT:
        return float("nan")
    if word in _LOGICAL_TEXT:
        return _LOGICAL_TEXT[word]
    return float(word)


def _is_value(text: str) -> bool:
    try:
        _value(text)
    except ValueError:
        return False
    return True

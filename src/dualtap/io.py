"""Files: samples in and out, models in and out. No pickle is ever read or written."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap._files import atomic_write, known_suffix, read_arrays, stored_parameters
from dualtap.hopfield import HopfieldModel
from dualtap.rbm import HopfieldRBM
from dualtap.recovery import DualTAP, History

__all__ = ["SampleFile", "load", "read_samples", "save", "write_samples"]

FORMATS = (".npz", ".npy", ".csv", ".tsv")
MODEL_FORMATS = (".npz",)
MODEL_SCHEMA = 2
_FIRST_SCHEMA = 1  # no fields, no regime, no spectrum: always deflation
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
    suffix = known_suffix(path, FORMATS)
    if suffix in (".csv", ".tsv"):
        return _read_text(path, "," if suffix == ".csv" else "\t")
    contents = read_arrays(path)
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
        teacher = HopfieldModel(
            contents["teacher_patterns"],
            float(contents["teacher_beta"]),
            contents.get("teacher_fields"),
        )
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
    suffix = known_suffix(path, FORMATS)
    with atomic_write(path, force=force) as file:
        if suffix == ".npy":
            np.save(file, X, allow_pickle=False)
        elif suffix == ".npz":
            extra: dict[str, Any] = {"provenance": _provenance(parameters or {})}
            if teacher is not None:
                extra |= {"teacher_patterns": teacher.patterns, "teacher_beta": teacher.beta}
                if teacher.fields is not None:
                    extra["teacher_fields"] = teacher.fields
            np.savez_compressed(file, X=X, **extra)
        else:
            np.savetxt(file, X, fmt="%d", delimiter="," if suffix == ".csv" else "\t")


def save(model: DualTAP | HopfieldRBM, path: str | Path, *, force: bool = False) -> None:
    """Write a fitted model to an ``.npz`` file that :func:`load` reads back.

    Parameters
    ----------
    model : DualTAP or HopfieldRBM
        Fitted. The file of an RBM holds the whole training run: ``fit`` can go on from it.
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
    known_suffix(path, MODEL_FORMATS)
    if isinstance(model, HopfieldRBM):
        model.write(path, force=force)
        return
    arrays = _learned(model)
    with atomic_write(path, force=force) as file:
        np.savez_compressed(
            file,
            schema=np.array(MODEL_SCHEMA),
            provenance=_provenance(stored_parameters(model)),
            **arrays,
        )


def load(path: str | Path) -> DualTAP | HopfieldRBM:
    """Read a model written by :func:`save`, or a checkpoint of :meth:`HopfieldRBM.fit`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DualTAP or HopfieldRBM
        Fitted.
    """
    path = Path(path)
    known_suffix(path, MODEL_FORMATS)
    contents = read_arrays(path)
    if not isinstance(contents, dict) or "schema" not in contents:
        raise ValueError(f"{path} is not a dualtap model; `dualtap fit` writes them")
    if "kind" in contents and contents["kind"] == "rbm":
        return HopfieldRBM.read(path)
    schema = int(contents["schema"])
    if schema not in (_FIRST_SCHEMA, MODEL_SCHEMA):
        raise ValueError(
            f"{path} has model schema {schema}, this version of dualtap reads {_FIRST_SCHEMA} "
            f"and {MODEL_SCHEMA}"
        )
    try:
        return _rebuild(_from_first(contents) if schema == _FIRST_SCHEMA else contents)
    except KeyError as error:
        raise ValueError(f"{path} is incomplete: {error.args[0]}") from None


def _learned(model: DualTAP) -> dict[str, Any]:
    """Return what a model has learned, as arrays that need no pickle."""
    arrays: dict[str, Any] = {
        "patterns": model.patterns_,
        "magnetizations": model.magnetizations_,
        "beta": model.beta_,
        "fields": model.fields_,
        "labels": model.labels_,
        "weights": model.weights_,
        "typical_overlaps": model._typical_overlaps,
        "regime": model.regime_,
        "reason": model.reason_,
    }
    if hasattr(model, "spectrum_"):
        arrays["spectrum"] = model.spectrum_
    if hasattr(model, "history_"):
        arrays |= {f"history_{name}": value for name, value in asdict(model.history_).items()}
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names"] = model.feature_names_in_.astype(str)
    return {name: np.asarray(value) for name, value in arrays.items()}


def _from_first(contents: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return a file of the first schema with what later ones hold as well."""
    from dualtap.theory import curie_weiss_magnetization

    provenance = json.loads(str(contents["provenance"]))
    provenance["parameters"]["scheme"] = "deflation"
    n_patterns, n_spins = contents["patterns"].shape
    # The first schema did not keep how near samples come to their patterns; deflation works where
    # each lies in the state of one pattern, whose overlap is that of a ferromagnet.
    overlap = curie_weiss_magnetization(contents["beta"])
    return contents | {
        "provenance": np.array(json.dumps(provenance)),
        "fields": np.zeros(n_spins),
        "typical_overlaps": np.full(n_patterns, overlap),
        "regime": np.array("clustered"),
        "reason": np.array(""),
    }


def _rebuild(contents: dict[str, NDArray[Any]]) -> DualTAP:
    provenance = json.loads(str(contents["provenance"]))
    model = DualTAP(**provenance["parameters"])
    model.patterns_ = contents["patterns"]
    model.magnetizations_ = contents["magnetizations"]
    model.n_patterns_ = len(model.patterns_)
    model.beta_ = float(contents["beta"])
    model.fields_ = contents["fields"]
    model.labels_ = contents["labels"]
    model.weights_ = contents["weights"]
    model._typical_overlaps = contents["typical_overlaps"]
    model.regime_ = str(contents["regime"])
    model.reason_ = str(contents["reason"])
    model.n_features_in_ = model.patterns_.shape[1]
    if "spectrum" in contents:
        model.spectrum_ = contents["spectrum"]
    if any(name.startswith("history_") for name in contents):
        model.history_ = History(**{f.name: contents[f"history_{f.name}"] for f in fields(History)})
    if "feature_names" in contents:
        model.feature_names_in_ = contents["feature_names"].astype(object)
    return model


def _provenance(parameters: dict[str, Any]) -> NDArray[np.str_]:
    """Return version and parameters as a JSON text, which .npz stores without pickle."""
    from dualtap import __version__

    return np.array(json.dumps({"dualtap": __version__, "parameters": parameters}))


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

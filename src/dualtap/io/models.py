"""Models in files: what a fit has learned, as arrays in an ``.npz``.

Files of every earlier schema are read; those of a later one say that dualtap must be upgraded.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap._files import atomic_write, known_suffix, read_arrays, stored_parameters
from dualtap.io.old_models import upgraded
from dualtap.rbm import HopfieldRBM
from dualtap.recovery import DualTAP, History, HopfieldPatterns
from dualtap.spins.storage import ENCODINGS, Encoding

Model = HopfieldPatterns | DualTAP | HopfieldRBM

MODEL_FORMATS = (".npz",)
MODEL_SCHEMA = 3
_ESTIMATORS: dict[str, type[HopfieldPatterns] | type[DualTAP]] = {
    "HopfieldPatterns": HopfieldPatterns,
    "DualTAP": DualTAP,
}
_TRACE = {
    "step": int,
    "move": str,
    "source": str,
    "n_patterns": int,
    "objective": float,
    "gain": float,
    "accepted": bool,
}
_PATH = {"n_patterns": np.int64, "objective": np.float64, "held_out": np.float64}


def save(model: Model, path: str | Path, *, force: bool = False) -> None:
    """Write a fitted model to an ``.npz`` file that :func:`load` reads back.

    Parameters
    ----------
    model : HopfieldPatterns, DualTAP or HopfieldRBM
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
    >>> model = dt.HopfieldPatterns(random_state=0).fit(teacher.sample(20, random_state=1))
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
            estimator=np.array(type(model).__name__),
            provenance=provenance(stored_parameters(model)),
            **arrays,
        )


def load(path: str | Path) -> Model:
    """Read a model written by :func:`save`, or a checkpoint of :meth:`HopfieldRBM.fit`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    HopfieldPatterns, DualTAP or HopfieldRBM
        Fitted. Files of dualtap 0.1.0 give the estimator that has the method they were fitted by.

    Examples
    --------
    >>> import dualtap as dt
    >>> dt.load("model.csv")
    Traceback (most recent call last):
    ...
    ValueError: 'model.csv' must end in .npz
    """
    path = Path(path)
    known_suffix(path, MODEL_FORMATS)
    contents = read_arrays(path)
    if not isinstance(contents, dict) or "schema" not in contents:
        raise ValueError(f"{path} is not a dualtap model; `dualtap fit` writes them")
    if "kind" in contents and contents["kind"] == "rbm":
        return HopfieldRBM.read(path)
    schema = _schema(contents["schema"], path)
    try:
        return _rebuild(contents if schema == MODEL_SCHEMA else upgraded(contents, schema))
    except KeyError as error:
        raise ValueError(f"{path} is incomplete: it lacks {error.args[0]}") from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _schema(stored: NDArray[Any], path: Path) -> int:
    """Return the schema of a file, if this version of dualtap can read it."""
    if stored.shape != () or stored.dtype.kind not in "iu" or int(stored) < 1:
        raise ValueError(f"{path} is damaged: unknown model schema {stored}")
    schema = int(stored)
    if schema > MODEL_SCHEMA:
        raise ValueError(
            f"{path} has model schema {schema}, this version of dualtap reads up to "
            f"{MODEL_SCHEMA}; upgrade dualtap"
        )
    return schema


def _learned(model: HopfieldPatterns | DualTAP) -> dict[str, Any]:
    """Return what a model has learned, as arrays that need no pickle."""
    arrays: dict[str, Any] = {
        "patterns": model.patterns_,
        "magnetizations": model.magnetizations_,
        "strengths": model.strengths_,
        "fields": model.fields_,
        "means": model.means_,
        "objective": model.objective_,
        "labels": model.labels_,
        "weights": model.weights_,
        "typical_overlaps": model._typical_overlaps,
        "median_overlap": model._median_overlap,
        "trace": json.dumps([_step(step) for step in model.trace_]),
        "reason": model.reason_,
    }
    if model.path_ is not None:
        arrays |= {f"path_{name}": model.path_[name] for name in _PATH}
    if hasattr(model, "n_passes_"):
        arrays["n_passes"] = model.n_passes_
    if hasattr(model, "_encoding"):
        arrays["encoding"] = model._encoding
        arrays["training_scores"] = model._training_scores
        arrays["strength_covariance"] = model._strength_covariance
    if hasattr(model, "spectrum_"):
        arrays["spectrum"] = model.spectrum_
    if isinstance(model, DualTAP):
        arrays |= {f"history_{name}": value for name, value in asdict(model.history_).items()}
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names"] = model.feature_names_in_.astype(str)
    return {name: np.asarray(value) for name, value in arrays.items()}


def _step(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step of the trace as plain values, which JSON takes."""
    return {name: kind(step[name]) for name, kind in _TRACE.items()}


def _rebuild(contents: dict[str, NDArray[Any]]) -> HopfieldPatterns | DualTAP:
    stored = json.loads(str(contents["provenance"]))
    name = str(contents["estimator"])
    if name not in _ESTIMATORS:
        raise ValueError(f"unknown estimator {name}")
    _check_shapes(contents)
    model = _ESTIMATORS[name](**stored["parameters"])
    model.patterns_ = contents["patterns"]
    model.magnetizations_ = contents["magnetizations"]
    model.strengths_ = contents["strengths"]
    model.fields_ = contents["fields"]
    model.means_ = contents["means"]
    model.objective_ = float(contents["objective"])
    model.labels_ = contents["labels"]
    model.weights_ = contents["weights"]
    model._typical_overlaps = contents["typical_overlaps"]
    model._median_overlap = float(contents["median_overlap"])
    model.trace_ = [_step(step) for step in json.loads(str(contents["trace"]))]
    model.path_ = None
    if any(name.startswith("path_") for name in contents):
        model.path_ = {name: contents[f"path_{name}"].astype(kind) for name, kind in _PATH.items()}
    model.reason_ = str(contents["reason"])
    model.n_features_in_ = model.patterns_.shape[1]
    if "n_passes" in contents:
        model.n_passes_ = float(contents["n_passes"])
    if "encoding" in contents:
        model._encoding = _encoding(str(contents["encoding"]))
        model._training_scores = contents["training_scores"].astype(np.float64)
        model._strength_covariance = contents["strength_covariance"].astype(np.float64)
    if isinstance(model, DualTAP):
        model.history_ = History(**{f.name: contents[f"history_{f.name}"] for f in fields(History)})
    elif "spectrum" in contents:
        model.spectrum_ = contents["spectrum"]
    if "feature_names" in contents:
        model.feature_names_in_ = contents["feature_names"].astype(object)
    return model


def _encoding(stored: str) -> Encoding:
    for known in ENCODINGS:
        if stored == known:
            return known
    raise ValueError(f"unknown encoding {stored!r}")


def _check_shapes(contents: dict[str, NDArray[Any]]) -> None:
    n_patterns, n_spins = contents["patterns"].shape
    needed: dict[str, tuple[int, ...]] = {
        "magnetizations": (n_patterns, n_spins),
        "strengths": (n_patterns,),
        "fields": (n_spins,),
        "means": (n_spins,),
        "objective": (),
        "weights": (n_patterns,),
        "typical_overlaps": (n_patterns,),
        "median_overlap": (),
    }
    optional: dict[str, tuple[int, ...]] = {
        "feature_names": (n_spins,),
        "n_passes": (),
        "encoding": (),
    }
    if "encoding" in contents:
        needed["training_scores"] = contents["training_scores"].shape[:1]
        needed["strength_covariance"] = (n_patterns, n_patterns)
    if any(name.startswith("path_") for name in contents):
        needed |= {f"path_{name}": contents["path_n_patterns"].shape[:1] for name in _PATH}
    needed |= {name: shape for name, shape in optional.items() if name in contents}
    for name, shape in needed.items():
        if contents[name].shape != shape:
            raise ValueError(f"{name} has shape {contents[name].shape} where {shape} is needed")


def provenance(parameters: dict[str, Any]) -> NDArray[np.str_]:
    """Return version and parameters as a JSON text, which ``.npz`` stores without pickle.

    Parameters
    ----------
    parameters : dict
        Anything JSON can hold.

    Examples
    --------
    >>> from dualtap.io.models import provenance
    >>> provenance({"seed": 3})
    array('{"dualtap": "...", "parameters": {"seed": 3}}', dtype='<U...')
    """
    from dualtap import __version__

    return np.array(json.dumps({"dualtap": __version__, "parameters": parameters}))

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

from dualtap._files import atomic_write, known_suffix, stored_parameters
from dualtap._npy import read_arrays
from dualtap._schema import Entry, checked_arrays, parsed, parsed_fields, with_fields
from dualtap.fitted.checks import COVARIANCE, LEARNED, ROUNDED, SCORES, learned_arrays
from dualtap.fitted.entries import CouplingConditionals
from dualtap.fitted.meaning import Profiles
from dualtap.io.old_models import upgraded
from dualtap.published import DualTAP, History
from dualtap.rbm import HopfieldRBM
from dualtap.recovery import HopfieldPatterns
from dualtap.spins.storage import ENCODINGS, Encoding

Model = HopfieldPatterns | DualTAP | HopfieldRBM

MODEL_FORMATS = (".npz",)
MODEL_SCHEMA = 3
_ESTIMATORS: dict[str, type[HopfieldPatterns] | type[DualTAP]] = {
    "HopfieldPatterns": HopfieldPatterns,
    "DualTAP": DualTAP,
}
_TRACE: dict[str, type] = {
    "step": int,
    "move": str,
    "source": str,
    "n_patterns": int,
    "objective": float,
    "gain": float,
    "accepted": bool,
}
_PATH = ("n_patterns", "objective", "held_out")
_SCHEMA = {
    "provenance": Entry("U"),
    "estimator": Entry("U"),
    **LEARNED,
    "trace": Entry("U"),
    "reason": Entry("U"),
    "n_passes": Entry("f", (), 0, optional=True),
    "total_weight": Entry("f", (), 0, optional=True),
    "spectrum": Entry("f", ("singular values",), 0, optional=True),
    "feature_names": Entry("U", ("N",), optional=True),
}
_OF_MEANING = {
    "side_share": Entry("f", ("P", 2), 0, ROUNDED),
    "side_up": Entry("f", ("P", 2, "N"), 0, ROUNDED, nan=True),
    "pair_share": Entry("f", nan=True),
}
_OF_PAIRS = {
    "beside_couplings": Entry("f", ("N", "N")),
    "beside_fields": Entry("f", ("N",)),
}
_OF_PATH = {
    "path_n_patterns": Entry("i", ("steps",), 0),
    "path_objective": Entry("f", ("steps",)),
    "path_held_out": Entry("f", ("steps",), nan=True),
}
_OF_ROUNDS = {
    "history_magnetizations": Entry("f", ("rounds", "N"), -1.001, 1.001),
    "history_scores": Entry("f", ("rounds",), nan=True),
    "history_likelihood": Entry("f", ("rounds",), nan=True),
    "history_gains": Entry("f", ("rounds",), nan=True),
    "history_gammas": Entry("f", ("rounds",), nan=True),
    "history_n_converged": Entry("i", ("rounds",), 0),
    "history_n_iter": Entry("i", ("rounds",), 0),
}


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
    except (TypeError, ValueError, AttributeError) as error:
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
    arrays: dict[str, Any] = learned_arrays(model) | {
        "trace": json.dumps([_step(step) for step in model.trace_]),
        "reason": model.reason_,
    }
    if model._strength_covariance is not None:
        arrays["strength_covariance"] = model._strength_covariance
    if model.path_ is not None:
        arrays |= {f"path_{name}": model.path_[name] for name in _PATH}
    if hasattr(model, "n_passes_"):
        arrays["n_passes"] = model.n_passes_
    if hasattr(model, "_encoding"):
        arrays["encoding"] = model._encoding
    if model._profiles is not None:
        arrays |= {"side_share": model._profiles.share, "side_up": model._profiles.up}
        arrays["pair_share"] = model._pair_share
    if model._beside is not None:  # of symmetric couplings the half above the diagonal
        arrays["beside_couplings"] = np.triu(model._beside.couplings, 1)
        arrays["beside_fields"] = model._beside.own_fields
    if hasattr(model, "_total_weight"):
        arrays["total_weight"] = float(model._total_weight)
    if hasattr(model, "spectrum_"):
        arrays["spectrum"] = model.spectrum_
    if isinstance(model, DualTAP):
        arrays |= {f"history_{name}": value for name, value in asdict(model.history_).items()}
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names"] = model.feature_names_in_.astype(str)
    return {name: np.asarray(value) for name, value in arrays.items()}


def _step(step: Any) -> dict[str, Any]:
    """Return a step of the trace as plain values, which JSON takes."""
    return {name: kind(step[name]) for name, kind in _TRACE.items()}


def _rebuild(contents: dict[str, NDArray[Any]]) -> HopfieldPatterns | DualTAP:
    """Return the model in a file, all of which is checked before."""
    arrays = _checked(contents)
    parameters = parsed_fields(arrays["provenance"], parameters=dict)["parameters"]
    trace = parsed(arrays["trace"])
    if not isinstance(trace, list):
        raise ValueError("trace is not a list")
    model = _ESTIMATORS[str(arrays["estimator"])](**parameters)
    model._validate_params()
    model.patterns_ = arrays["patterns"].astype(np.int8)
    model.magnetizations_ = arrays["magnetizations"]
    model.strengths_ = arrays["strengths"]
    model.fields_ = arrays["fields"]
    model.means_ = arrays["means"]
    model.objective_ = float(arrays["objective"])
    model.labels_ = arrays["labels"]
    model.weights_ = arrays["weights"]
    model._typical_overlaps = arrays["typical_overlaps"]
    model._median_overlap = float(arrays["median_overlap"])
    model.trace_ = [_step(with_fields(step, **_TRACE)) for step in trace]
    model.path_ = None
    if "path_n_patterns" in arrays:
        model.path_ = {name: arrays[f"path_{name}"] for name in _PATH}
    model.reason_ = str(arrays["reason"])
    model.n_features_in_ = model.patterns_.shape[1]
    if "n_passes" in arrays:
        model.n_passes_ = float(arrays["n_passes"])
    if "encoding" in arrays:
        model._encoding = _encoding(str(arrays["encoding"]))
        model._training_scores = arrays["training_scores"].astype(np.float64)
        model._strength_covariance = arrays["strength_covariance"].astype(np.float64)
    if "side_share" in arrays:
        model._profiles = Profiles(arrays["side_share"], arrays["side_up"])
        model._pair_share = float(arrays["pair_share"])
    if "beside_couplings" in arrays:
        half = np.triu(arrays["beside_couplings"].astype(np.float32), 1)
        fields_beside = arrays["beside_fields"].astype(np.float32)
        model._beside = CouplingConditionals(half + half.T, fields_beside)
    if "total_weight" in arrays:
        model._total_weight = float(arrays["total_weight"])
    if isinstance(model, DualTAP):
        model.history_ = History(**{f.name: arrays[f"history_{f.name}"] for f in fields(History)})
    elif "spectrum" in arrays:
        model.spectrum_ = arrays["spectrum"]
    if "feature_names" in arrays:
        model.feature_names_in_ = arrays["feature_names"].astype(object)
    return model


def _checked(contents: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, if they are a model."""
    estimator = str(contents["estimator"])
    if estimator not in _ESTIMATORS:
        raise ValueError(f"unknown estimator {estimator[:40]}")
    schema = dict(_SCHEMA)
    if "encoding" in contents:
        schema |= {"encoding": Entry("U"), **SCORES, **COVARIANCE}
    if "side_share" in contents:
        schema |= _OF_MEANING
    if any(name.startswith("beside_") for name in contents):
        schema |= _OF_PAIRS
    if any(name.startswith("path_") for name in contents):
        schema |= _OF_PATH
    if estimator == "DualTAP":
        schema |= _OF_ROUNDS
    arrays = checked_arrays(contents, schema, least={"N": 2, "rounds": 1})
    if not arrays["patterns"].any(axis=1).all():
        raise ValueError("one of the patterns has no entry")
    if (arrays["labels"] >= len(arrays["patterns"])).any():
        raise ValueError(f"labels name more than the {len(arrays['patterns'])} patterns")
    if estimator == "DualTAP" and (arrays["strengths"] <= 0).any():
        raise ValueError(f"strengths has the value {arrays['strengths'].min()}; β is positive")
    return arrays


def _encoding(stored: str) -> Encoding:
    for known in ENCODINGS:
        if stored == known:
            return known
    raise ValueError(f"unknown encoding {stored[:40]!r}")


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

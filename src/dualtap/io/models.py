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
from dualtap.rbm import HopfieldRBM
from dualtap.recovery import DualTAP, History

MODEL_FORMATS = (".npz",)
MODEL_SCHEMA = 2
_FIRST_SCHEMA = 1  # no fields, no regime, no spectrum: always deflation


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
            provenance=provenance(stored_parameters(model)),
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
        return _rebuild(_from_first(contents) if schema == _FIRST_SCHEMA else contents)
    except KeyError as error:
        raise ValueError(f"{path} is incomplete: it lacks {error.args[0]}") from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _schema(stored: NDArray[Any], path: Path) -> int:
    """Return the schema of a file, if this version of dualtap can read it."""
    if stored.shape != () or stored.dtype.kind not in "iu" or int(stored) < _FIRST_SCHEMA:
        raise ValueError(f"{path} is damaged: its schema is not a number of one")
    schema = int(stored)
    if schema > MODEL_SCHEMA:
        raise ValueError(
            f"{path} has model schema {schema}, this version of dualtap reads up to "
            f"{MODEL_SCHEMA}; upgrade dualtap"
        )
    return schema


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
    if hasattr(model, "n_passes_"):
        arrays["n_passes"] = model.n_passes_
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

    stored = json.loads(str(contents["provenance"]))
    stored["parameters"]["scheme"] = "deflation"
    n_patterns, n_spins = contents["patterns"].shape
    # The first schema did not keep how near samples come to their patterns; deflation works where
    # each lies in the state of one pattern, whose overlap is that of a ferromagnet.
    overlap = curie_weiss_magnetization(contents["beta"])
    return contents | {
        "provenance": np.array(json.dumps(stored)),
        "fields": np.zeros(n_spins),
        "typical_overlaps": np.full(n_patterns, overlap),
        "regime": np.array("clustered"),
        "reason": np.array(""),
    }


def _rebuild(contents: dict[str, NDArray[Any]]) -> DualTAP:
    stored = json.loads(str(contents["provenance"]))
    _check_shapes(contents)
    model = DualTAP(**stored["parameters"])
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
    if "n_passes" in contents:
        model.n_passes_ = float(contents["n_passes"])
    if "spectrum" in contents:
        model.spectrum_ = contents["spectrum"]
    if any(name.startswith("history_") for name in contents):
        model.history_ = History(**{f.name: contents[f"history_{f.name}"] for f in fields(History)})
    if "feature_names" in contents:
        model.feature_names_in_ = contents["feature_names"].astype(object)
    return model


def _check_shapes(contents: dict[str, NDArray[Any]]) -> None:
    n_patterns, n_spins = contents["patterns"].shape
    needed = {
        "magnetizations": (n_patterns, n_spins),
        "beta": (),
        "fields": (n_spins,),
        "weights": (n_patterns,),
        "typical_overlaps": (n_patterns,),
    }
    optional = {"feature_names": (n_spins,), "n_passes": ()}
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

"""Training runs in files: written whole or not at all, read with every array checked."""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dualtap._chains import LANES
from dualtap._files import atomic_write, check_free, known_suffix
from dualtap._npy import read_arrays
from dualtap._schema import Entry, checked_arrays, parsed_fields, with_fields
from dualtap.rbm.gibbs import Chains, Ladder
from dualtap.rbm.monitors import LearningCurve
from dualtap.rbm.pcd import Gradient, Training
from dualtap.rbm.priors import PRIORS, Prior, prior_name
from dualtap.rbm.run import Best, Run

SCHEMA = 2


def write_run(
    path: Path,
    run: Run,
    parameters: dict[str, Any],
    feature_names: NDArray[Any] | None = None,
    *,
    force: bool = False,
) -> None:
    """Write a run and the parameters it was made with to an ``.npz`` file, atomically."""
    from dualtap import __version__

    known_suffix(path, (".npz",))
    state = run.on_host().state
    provenance: dict[str, Any] = {
        "dualtap": __version__,
        "parameters": parameters,
        "run": {name: getattr(run, name) for name in (*_SCALARS, "grown_from")},
    }
    columns = [column.name for column in fields(LearningCurve)]
    arrays = {f"curve_{name}": getattr(run.curve, name) for name in columns}
    arrays |= _arrays_of(state)
    if run.best is not None:
        provenance["run"]["best_update"] = run.best.update
        arrays["best_scores"] = run.best.scores
        arrays |= {f"best_{name}": array for name, array in _arrays_of(run.best.state).items()}
    if run.patterns is not None:
        arrays["patterns"] = run.patterns
    if feature_names is not None:
        arrays["feature_names"] = np.asarray(feature_names).astype(str)
    with atomic_write(path, force=force) as file:
        np.savez(
            file,
            schema=np.array(SCHEMA),
            kind=np.array("rbm"),
            provenance=np.array(json.dumps(provenance)),
            **arrays,
        )


_SCALARS: dict[str, type] = {
    "update": int,
    "seed": int,
    "learning_rate": float,
    "fields_rate": float,
    "data": str,
    "stop_reason": str,
    "stage": int,
    "cuts": int,
    "prior": str,
}


def _entries(prefix: str = "", *, optional: bool = False) -> dict[str, Entry]:
    """Return the schema of a state; sides other than N have the prefix."""
    entries = {
        "weights": Entry("float32", (f"{prefix}hidden", "N")),
        "fields": Entry("float32", ("N",)),
        "velocity_weights": Entry("float32", (f"{prefix}hidden", "N")),
        "velocity_fields": Entry("float32", ("N",)),
        "chains": Entry("int8", (f"{prefix}chains", "N"), -1, 1, smallest=1),
        "generators": Entry("uint32", (f"{prefix}generators", 4, LANES)),
        "imputing": Entry("uint32", (f"{prefix}batch", 4, LANES)),
    }
    if optional:
        entries = {name: replace(entry, optional=True) for name, entry in entries.items()}
    entries |= {
        "ladder_scales": Entry("f", (f"{prefix}rungs",), 0, 1, optional=True),
        "ladder_base": Entry("float32", ("N",), optional=True),
        "ladder_rejections": Entry("f", (f"{prefix}gaps",), 0, 1, optional=True),
        "ladder_exchanges": Entry("iu", (), 0, optional=True),
    }
    return {prefix + name: entry for name, entry in entries.items()}


_LADDER = ("ladder_scales", "ladder_base", "ladder_rejections", "ladder_exchanges")
_ARRAYS = {
    "provenance": Entry("U"),
    **_entries(),
    "curve_update": Entry("i", ("looks",), 0),
    "curve_pseudo_likelihood": Entry("f", ("looks",), nan=True),
    "curve_pseudo_likelihood_one_step": Entry("f", ("looks",), nan=True),
    "curve_singular_values": Entry("f", ("looks", "values"), 0),
    "curve_error": Entry("f", ("looks",), nan=True),
    "curve_validation": Entry("f", ("looks",), nan=True),
    "curve_validation_error": Entry("f", ("looks",), nan=True),
    **_entries("best_", optional=True),
    "best_scores": Entry("f", ("held_out", 2), optional=True),
    "patterns": Entry("i", ("n_patterns", "N"), -1, 1, smallest=1, optional=True),
    "feature_names": Entry("U", ("N",), optional=True),
}


def _arrays_of(state: Training) -> dict[str, NDArray[Any]]:
    """Return the arrays of a state by the names that files give them."""
    ladder = state.chains.ladder
    of_ladder = {} if ladder is None else dict(zip(_LADDER, map(np.asarray, ladder), strict=True))
    return of_ladder | {
        "weights": state.weights,
        "fields": state.fields,
        "velocity_weights": state.velocity.weights,
        "velocity_fields": state.velocity.fields,
        "chains": state.chains.spins.astype(np.int8),
        "generators": state.chains.generators,
        "imputing": state.imputing,
    }


def read_run(path: Path) -> tuple[Run, dict[str, Any], NDArray[np.str_] | None]:
    """Read what :func:`write_run` wrote: the run, its parameters and names of spins if any."""
    known_suffix(path, (".npz",))
    contents = read_arrays(path)
    if not isinstance(contents, dict) or contents.get("kind") != "rbm" or "schema" not in contents:
        raise ValueError(f"{path} is not a training run of an RBM; HopfieldRBM writes them")
    try:
        schema = int(checked_arrays(contents, {"schema": Entry("iu")})["schema"])
        if schema == 1:
            contents = _of_schema_2(contents)
        if 1 <= schema <= SCHEMA:
            return _rebuild(checked_arrays(contents, _ARRAYS, least={"N": 2, "hidden": 1}))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is incomplete or damaged: {error}") from None
    raise ValueError(
        f"{path} has schema {schema}, this version of dualtap reads up to {SCHEMA}; upgrade dualtap"
    )


def resumed_run(path: Path, data: str, parameters: dict[str, Any], may_differ: Set[str]) -> Run:
    """Read a run and check that it is one of these data and parameters, to go on with."""
    run, stored, _ = read_run(path)
    for name in sorted(parameters.keys() - may_differ):
        if stored.get(name) != parameters[name]:
            raise ValueError(
                f"{path} was trained with {name}={stored.get(name)!r}, not {parameters[name]!r}; "
                "a run goes on with the parameters it began with"
            )
    if run.data != data:
        raise ValueError(f"{path} was trained on other data ({run.data}) than these ({data})")
    if len(run.state.imputing) < parameters["batch_size"]:
        raise ValueError(f"{path} is damaged: it has too few random generators")
    return replace(run, stop_reason="", patterns=None)


def check_checkpoint(path: Path, resume_from: Path | None) -> None:
    """Raise unless the file can be written without the loss of another run."""
    again = resume_from is not None and resume_from.resolve() == path.resolve()
    check_free(path, force=True, formats=(".npz",))
    if path.exists() and not again:
        raise FileExistsError(
            f"the checkpoint {str(path)!r} exists: go on from it with resume_from (--resume), or "
            "remove it"
        )


def _rebuild(
    contents: dict[str, NDArray[Any]],
) -> tuple[Run, dict[str, Any], NDArray[np.str_] | None]:
    provenance = parsed_fields(contents["provenance"], run=dict, parameters=dict)
    scalars = with_fields(provenance["run"], **_SCALARS)
    told = {name: scalars[name] for name in _SCALARS}
    if min(told["update"], told["seed"], told["fields_rate"]) < 0 or told["learning_rate"] <= 0:
        raise ValueError("a number of the run is negative")
    grown_from = scalars.get("grown_from")
    if grown_from is not None and not isinstance(grown_from, float):
        raise ValueError(f"grown_from is {grown_from!r} where a number or null is needed")
    best = None
    if "best_scores" in contents:
        update = with_fields(scalars, best_update=int)["best_update"]
        best = Best(_state_of(contents, "best_"), update, contents["best_scores"])
    curve = LearningCurve(*(contents[f"curve_{column.name}"] for column in fields(LearningCurve)))
    state = _state_of(contents, "")
    if curve.singular_values.shape[1] < len(state.weights):
        raise ValueError(
            f"curve_singular_values has shape {curve.singular_values.shape} where "
            f"({len(curve.update)}, {len(state.weights)}) is needed"
        )
    patterns = contents.get("patterns")
    run = Run(state, curve, best=best, grown_from=grown_from, patterns=patterns, **told)
    return run, provenance["parameters"], contents.get("feature_names")


def _state_of(contents: dict[str, NDArray[Any]], prefix: str) -> Training:
    """Return the state whose arrays have these names, if its chains can move."""
    a = {name: contents[prefix + name] for name in _entries() if name not in _LADDER}
    generators, chains = a["generators"], a["chains"]
    if len(generators) < len(chains) or not len(chains):
        raise ValueError(f"there are {len(generators)} generators for {len(chains)} chains")
    for name in ("generators", "imputing"):
        if not a[name].any(axis=1).all():  # such a one would never move
            raise ValueError(f"one of the random generators in {prefix}{name} is zero")
    return Training(
        weights=a["weights"],
        fields=a["fields"],
        velocity=Gradient(a["velocity_weights"], a["velocity_fields"]),
        chains=Chains(chains.astype(np.float32), generators, _ladder_of(contents, prefix, chains)),
        imputing=a["imputing"],
    )


def _ladder_of(
    contents: dict[str, NDArray[Any]], prefix: str, chains: NDArray[np.int8]
) -> Ladder | None:
    """Return the ladder of tempered chains, None for others."""
    if prefix + _LADDER[0] not in contents:
        return None
    scales, base, rejections, exchanges = (contents[prefix + name] for name in _LADDER)
    is_ladder = len(scales) >= 2 and scales[0] == 1 and scales[-1] == 0 and np.all(scales[:-1] > 0)
    if not is_ladder or len(rejections) != len(scales) - 1 or len(chains) % len(scales):
        raise ValueError(
            f"{prefix}ladder_scales has {len(scales)} rungs, which do not suit "
            f"{len(chains)} chains and {len(rejections)} rejection rates"
        )
    return Ladder(scales, base, rejections, int(exchanges))


def _of_schema_2(contents: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return a file of the first schema, which held out no samples, as one of the second."""
    provenance = parsed_fields(contents["provenance"], run=dict, parameters=dict)
    parameters = provenance["parameters"]
    if parameters.get("learning_rate") == "auto":
        is_gaussian = parameters.get("hidden") == "gaussian"
        parameters["learning_rate"] = "paper" if is_gaussian else 0.05
    parameters |= {"validation": None, "max_seconds": None}
    provenance["run"] |= {"stage": 0, "cuts": 0, "prior": ""}
    none = np.full(len(contents["curve_update"]), np.nan)
    return contents | {
        "provenance": np.array(json.dumps(provenance)),
        "curve_validation": none,
        "curve_validation_error": none,
    }


def prior_in_files(hidden: str | Prior) -> str | dict[str, Any]:
    """Return what a file says of a prior: its name, and its parameters if it has any.

    Examples
    --------
    >>> from dualtap.rbm.run_files import prior_in_files
    >>> from dualtap.rbm.priors import SpikeSlabPrior
    >>> prior_in_files(SpikeSlabPrior(0.2))
    {'prior': 'spike_slab', 'share': 0.2}
    """
    if isinstance(hidden, str):
        return hidden
    parameters: dict[str, Any] = asdict(cast(Any, hidden)) if is_dataclass(hidden) else {}
    return {"prior": prior_name(hidden), **parameters}


def prior_from_file(stored: str | dict[str, Any]) -> str | Prior:
    """Return the prior that a file names; raise for one that is not of this package.

    Examples
    --------
    >>> from dualtap.rbm.run_files import prior_from_file
    >>> prior_from_file({"prior": "spike_slab", "share": 0.2})
    SpikeSlabPrior(share=0.2)
    """
    if isinstance(stored, str):
        return stored
    if not isinstance(stored, dict) or not isinstance(stored.get("prior"), str):
        raise ValueError(f"{str(stored)[:40]!r} is no prior of hidden units")
    name, parameters = stored["prior"], {k: v for k, v in stored.items() if k != "prior"}
    if name not in PRIORS:
        raise ValueError(
            f"the hidden units have a prior of their own, {name}: read the file with "
            "HopfieldRBM.read(path, hidden=...), the prior that it was trained with"
        )
    return type(PRIORS[name])(**parameters)

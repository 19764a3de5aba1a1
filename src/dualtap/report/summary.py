"""What a fitted model says, as plain values ready for JSON and for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap.fitted.learned import LearnedPatterns
from dualtap.fitted.summary import UNCERTAIN, samples_per_pattern
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import CouplingError, coupling_error, match
from dualtap.published import DualTAP
from dualtap.rbm import HopfieldRBM
from dualtap.recovery import HopfieldPatterns
from dualtap.report.labels import adjusted_rand
from dualtap.report.material import Model
from dualtap.spins import Spins

_LEADING = 40
_MOST_NAMED = 4


def describe(model: Model) -> dict[str, Any]:
    """Return what a fitted model has found."""
    return _describe_rbm(model) if isinstance(model, HopfieldRBM) else _describe_patterns(model)


def _describe_patterns(model: HopfieldPatterns | DualTAP) -> dict[str, Any]:
    result: dict[str, Any] = {
        "method": type(model).__name__,
        "n_patterns": model.n_patterns_,
        "n_spins": model.n_features_in_,
        "beta": None if np.isnan(model.beta_) else model.beta_,  # JSON has no NaN
        "beta_was_given": getattr(model, "beta", None) is not None,
        "reason": model.reason_,
    }
    if (model.strengths_ < 0).any():
        result["n_repulsive"] = int((model.strengths_ < 0).sum())
    if model.n_patterns_:
        result["samples_per_pattern"] = samples_per_pattern(model)
        if not np.isnan(model._median_overlap):  # as in an old file
            result["median_overlap_with_the_nearest_pattern"] = model._median_overlap
    if isinstance(model, DualTAP):
        result["rounds"] = len(model.history_.scores)
    if hasattr(model, "n_passes_"):
        result["passes"] = model.n_passes_
    result["has_fields"] = bool(model.fields_.any())
    if result["has_fields"]:
        result["rms_field"] = _rms(model.fields_)
    result |= {
        "weights": model.weights_.tolist(),
        "strengths": model.strengths_.tolist(),
        **_confidence(model),
    }
    result |= _meaning(model)
    if hasattr(model, "feature_names_in_") and model._profiles is not None:
        effect, names = model._profiles.effect, model.feature_names_in_
        result["carried_by"] = carrying_spins(effect, model.patterns_, names)
    if hasattr(model, "spectrum_"):
        result["spectrum"] = model.spectrum_[:_LEADING].tolist()
    if model.trace_:
        result["trace"] = [dict(step) for step in model.trace_]
    if model.path_ is not None:
        result["path"] = {name: _plain(values) for name, values in model.path_.items()}
    return result


def _meaning(model: LearnedPatterns) -> dict[str, Any]:
    """Return shares of samples on either side of the patterns, and what is left of pairs."""
    result: dict[str, Any] = {}
    if model._profiles is not None:
        share = model._profiles.share.astype(float)
        result |= {"share_plus": share[:, 0].tolist(), "share_minus": share[:, 1].tolist()}
    if not np.isnan(model._pair_share):
        result["unexplained_share_of_pairs"] = model._pair_share
    doubt = model._doubt_about_couplings()
    return result | ({"warning": doubt} if doubt else {})


def drawn_magnetizations(model: Model) -> NDArray[np.floating]:
    """Return magnetizations, NaN where a spin is not in a pattern.

    Parameters
    ----------
    model : HopfieldPatterns, DualTAP or HopfieldRBM
        Fitted. The magnetizations of an RBM are the signs of its patterns.

    Returns
    -------
    array of shape (n_patterns, n_spins)
    """
    m = np.asarray(getattr(model, "magnetizations_", model.patterns_), dtype=np.float32)
    result: NDArray[np.floating] = np.where(model.patterns_ == 0, np.float32(np.nan), m)
    return result


def _confidence(model: LearnedPatterns) -> dict[str, list[Any]]:
    """Return what is known of the bits of each pattern, those that are 0 left out."""
    size, support = np.abs(model.magnetizations_), model.patterns_ != 0
    n_bits = support.sum(axis=1)
    found = {
        "mean_confidence": (np.where(support, size, 0).sum(axis=1) / n_bits.clip(1)).tolist(),
        "uncertain_bits": ((size < UNCERTAIN) & support).sum(axis=1).tolist(),
    }
    return found if support.all() else {"support": n_bits.tolist(), **found}


def carrying_spins(
    effect: NDArray[np.floating], patterns: NDArray[np.int8], names: Sequence[str]
) -> list[dict[str, list[tuple[str, float]]]]:
    """Return for each pattern the names of the spins that carry it, by effect.

    Parameters
    ----------
    effect : array of shape (n_patterns, n_spins)
        By how much the probability of +1 differs between the sides of the pattern.
    patterns : array of shape (n_patterns, n_spins)
        Spins whose entry is 0 are left out.
    names : sequence of n_spins str

    Returns
    -------
    list of dict
        ``plus`` (likelier +1 on the + side) and ``minus``: a few names with their effects, the
        largest first.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.report.summary import carrying_spins
    >>> effect = np.array([[0.5, -0.75, 1.0, -0.25]])
    >>> carrying_spins(effect, np.array([[1, -1, 0, -1]]), ["a", "b", "c", "d"])
    [{'plus': [('a', 0.5)], 'minus': [('b', -0.75), ('d', -0.25)]}]
    """
    found = []
    for values, pattern in zip(effect, patterns, strict=True):
        order = np.argsort(-np.abs(values), kind="stable")
        order = order[pattern[order] != 0]
        signs = {"plus": order[values[order] > 0], "minus": order[values[order] < 0]}
        found.append(
            {
                key: [(str(names[i]), round(float(values[i]), 3)) for i in which[:_MOST_NAMED]]
                for key, which in signs.items()
            }
        )
    return found


def _describe_rbm(model: HopfieldRBM) -> dict[str, Any]:
    curve = model.history_
    result: dict[str, Any] = {
        "n_patterns": model.n_patterns_,
        "n_spins": model.n_features_in_,
        "n_hidden": len(model.components_),
        "hidden": model.hidden_,
        "updates": model.n_updates_,
        "stopped_because": model.stop_reason_ or "still training",
        "learning_rate": model.learning_rate_,
    }
    if model.hidden_ == "gaussian":
        result |= {"beta": model.beta_, "beta_was_given": model.beta is not None}
    result["singular_values"] = model.singular_values_.tolist()
    result["learning_curve"] = {
        "update": curve.update.tolist(),
        "pseudo_likelihood": curve.pseudo_likelihood.tolist(),
        "one_step_estimate": curve.pseudo_likelihood_one_step.tolist(),
    }
    if not np.isnan(curve.error).any():
        result["learning_curve"]["error_of_J"] = curve.error.tolist()
    return result


def explain(
    model: Model, spins: Spins, weights: NDArray[np.float64] | None = None
) -> dict[str, Any]:
    """Return how well a model explains samples, rows of some weight counting as so many."""
    score = float(model.score(spins, sample_weight=weights))
    result: dict[str, Any] = {"data": str(spins.summary), "score": score}
    if isinstance(model, LearnedPatterns):
        totals = model.assign(spins).totals(model.n_patterns_, weights)
        M = spins.n_samples if weights is None else float(weights.sum())
        result["weights"] = (totals.n_nearest / M).tolist()
    return result


def agreement(
    model: Model,
    spins: Spins,
    label_columns: Mapping[str, NDArray[np.str_]],
    weights: NDArray[np.float64] | None = None,
) -> dict[str, Any]:
    """Compare the states that samples are nearest to with labels that were never fitted."""
    if not isinstance(model, LearnedPatterns) or not label_columns:
        return {}
    nearest = model.assign(spins)
    state = 2 * nearest.label + (nearest.sign > 0)  # a pattern and its negative are two states
    index = {}
    for name, labels in label_columns.items():
        (rows, row), (columns, column) = (
            np.unique(x, return_inverse=True) for x in (state, labels)
        )
        counts = np.zeros((len(rows), len(columns)))
        np.add.at(counts, (row, column), 1 if weights is None else weights)
        index[name] = adjusted_rand(counts)
    if len(index) == 1:
        return {"adjusted_rand_index": index.popitem()[1]}
    return {f"adjusted_rand_index_{name}": value for name, value in index.items()}


def against(model: Model, teacher: HopfieldModel) -> dict[str, Any]:
    """Compare with the teacher that the file or the demo knows."""
    matched = match(model.patterns_, teacher.patterns)
    result: dict[str, Any] = {"true_patterns": teacher.n_patterns, "true_beta": teacher.beta}
    if teacher.fields is not None:
        result["true_rms_field"] = _rms(teacher.fields)
    result |= {
        "recovered": matched.n_recovered(),
        "mean_overlap": matched.mean_overlap,
        "min_overlap": float(matched.overlaps.min()),
    }
    error = _coupling_error(model, teacher)
    if error is not None:
        result |= {"relative_coupling_error": error.relative, "epsilon": error.printed}
    return result


def _coupling_error(model: Model, teacher: HopfieldModel) -> CouplingError | None:
    if isinstance(model, LearnedPatterns):
        return coupling_error(model.magnetizations_, teacher.patterns)
    if model.hidden_ != "gaussian":
        return None
    factors = np.sqrt(teacher.n_spins / teacher.beta) * model.components_
    return coupling_error(factors, teacher.patterns)


def _plain(values: NDArray[Any]) -> list[float | None]:
    """Return numbers as a list; JSON has no NaN."""
    return [None if np.isnan(value) else value for value in np.asarray(values).tolist()]


def _rms(fields: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(np.square(fields))))


def headline(result: dict[str, Any]) -> str:
    """Say what was found in one line.

    Examples
    --------
    >>> from dualtap.report.summary import headline
    >>> headline({"n_patterns": 3, "beta": 1.987, "beta_was_given": False})
    '3 patterns found, β = 1.99 (fitted)'
    >>> headline({"n_patterns": 0, "beta": None, "reason": "the data are consistent with noise"})
    'no pattern found: the data are consistent with noise'
    """
    if not result["n_patterns"] and "reason" in result:
        return f"no pattern found: {result['reason']}"
    if "recovered" in result:
        return (
            f"{result['recovered']} of {result['true_patterns']} hidden patterns recovered "
            f"(mean overlap {result['mean_overlap']:.3f})"
        )
    n_patterns = result["n_patterns"]
    found = f"{n_patterns} pattern{'' if n_patterns == 1 else 's'} found"
    if result.get("beta") is None:
        return found
    source = "given" if result["beta_was_given"] else "fitted"
    return f"{found}, β = {result['beta']:.3g} ({source})"

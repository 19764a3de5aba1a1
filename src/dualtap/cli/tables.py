"""Tables that commands write: a row per sample, a row per spin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap.fitted.learned import LearnedPatterns
from dualtap.report.material import Model
from dualtap.spins import Spins


def rows_table(model: Model, spins: Spins) -> dict[str, NDArray[Any]]:
    """Return what a model says of every sample, as columns of a table.

    Parameters
    ----------
    model : HopfieldPatterns, DualTAP or HopfieldRBM
        Fitted.
    spins : Spins

    Returns
    -------
    dict of arrays of shape (n_samples,)
        ``label`` (of the nearest pattern, -1 if there is none), ``sign``, ``overlap_0``, … and
        ``probability`` of the label; of an RBM ``hidden_0``, … instead, the means of its hidden
        units. Then ``score``, the log pseudo-likelihood per spin, and ``typicality``, the share of
        training samples (of an RBM: of its chains) that score lower: near 0 for unusual samples,
        NaN if the model does not know it.

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.cli.tables import rows_table
    >>> X = dt.HopfieldModel.random(90, 2, beta=2.0, random_state=0).sample(20, random_state=1)
    >>> model = dt.HopfieldPatterns(random_state=0).fit(X)
    >>> list(rows_table(model, dt.as_spins(X)))
    ['label', 'sign', 'overlap_0', 'overlap_1', 'probability', 'score', 'typicality']
    """
    columns: dict[str, NDArray[Any]] = {}
    if isinstance(model, LearnedPatterns):
        nearest = model.assign(spins)
        columns |= {"label": nearest.label, "sign": nearest.sign}
        columns |= _numbered("overlap", model.transform(spins))
        known = nearest.label >= 0
        probability = np.full(spins.n_samples, np.nan)
        probability[known] = model.predict_proba(spins)[known, nearest.label[known]]
        columns["probability"] = probability
    else:
        columns |= _numbered("hidden", model.transform(spins))
    score, usual = model.score_samples(spins), model._usual_scores()
    share = np.searchsorted(usual, score) / len(usual) if len(usual) else np.nan
    return columns | {"score": score, "typicality": np.where(np.isnan(score), np.nan, share)}


def units_table(model: Model) -> dict[str, NDArray[Any]]:
    """Return what a model says of every unit, as columns of a table.

    Parameters
    ----------
    model : HopfieldPatterns, DualTAP or HopfieldRBM
        Fitted.

    Returns
    -------
    dict of arrays of shape (n_spins,)
        ``name`` (or number), ``field``, and for every pattern its entry, ``pattern_0``, and the
        probability that the entry has this sign, ``confidence_0``: NaN where the entry is 0; and
        ``effect_0``, by how much the probability of +1 differs between the two sides of the
        pattern. An RBM has neither confidences nor effects.

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.cli.tables import units_table
    >>> X = dt.HopfieldModel.random(90, 1, beta=2.0, random_state=0).sample(20, random_state=1)
    >>> list(units_table(dt.HopfieldPatterns(random_state=0).fit(X)))
    ['name', 'field', 'pattern_0', 'confidence_0', 'effect_0']
    """
    names = getattr(model, "feature_names_in_", np.arange(model.n_features_in_))
    columns: dict[str, NDArray[Any]] = {"name": np.asarray(names), "field": model.fields_}
    m = getattr(model, "magnetizations_", None)
    for k, pattern in enumerate(model.patterns_):
        columns[f"pattern_{k}"] = pattern
        if m is not None:
            confidence = (1 + pattern * m[k].astype(np.float64)) / 2
            columns[f"confidence_{k}"] = np.where(pattern == 0, np.nan, confidence)
        if isinstance(model, LearnedPatterns) and model._profiles is not None:
            columns[f"effect_{k}"] = model._profiles.effect[k].astype(np.float64)
    return columns


def _numbered(name: str, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return {f"{name}_{k}": column for k, column in enumerate(values.T)}

"""What patterns mean and how stable they are, as a report shows it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from dualtap.fitted.learned import LearnedPatterns
from dualtap.fitted.meaning import HARDLY_ANY, Profiles, n_profiled, profiles
from dualtap.fitted.training import spread_rows
from dualtap.fitted.unexplained import unexplained_pairs
from dualtap.report.encode import quantised
from dualtap.report.material import Material
from dualtap.resampling import STABLE

_MOST_ENTRIES = 1_000_000
"""Entries of patterns whose effects a page can hold, three bytes each."""
_PAIRS = 10


def sides_of(material: Material) -> Profiles | None:
    """Return the two sides of the patterns in the samples shown, or in those of the fit.

    None if they are not known, or would not fit a page.
    """
    model = material.model
    if model.patterns_.size > _MOST_ENTRIES:
        return None
    if material.spins is not None:
        rows = spread_rows(material.spins, n_profiled(material.n_spins))
        return profiles(rows, model.patterns_)
    return model._profiles if isinstance(model, LearnedPatterns) else None


def meaning(material: Material, sides: Profiles | None, k: int, n_top: int) -> dict[str, Any]:
    """Return what a card says of the two sides of a pattern."""
    if sides is None:
        return {}
    pattern = material.model.patterns_[k]
    return {
        "side_share": sides.share[k],
        "effect": quantised(sides.effect[k]),
        "up": [quantised(side) for side in sides.up[k]],
        "top": sides.strongest(k, pattern, n_top),
        "hardly_any": HARDLY_ANY,
    }


def stability_of(material: Material) -> dict[str, Any] | None:
    """Return in how many refits patterns are found again."""
    found = material.stability
    if found is None:
        return None
    return {
        "n_refits": found.n_refits,
        "returned": found.returned,
        "stable_bits": found.stable.sum(axis=1),
        "level": STABLE,
        "summary": found.summary().split("\n"),
    }


def stable_bits(material: Material, k: int) -> dict[str, Any]:
    """Return in how many refits a pattern is found again, and each of its bits."""
    found = material.stability
    if found is None:
        return {}
    share: dict[str, Any] = {"returned": float(found.returned[k])}
    share["n_stable"] = int(found.stable[k].sum())
    if found.entries.size <= _MOST_ENTRIES:
        share["agreement"] = quantised(found.agreement[k])
    return share


def unexplained_of(material: Material) -> dict[str, Any] | None:
    """Return the pairs of spins with the largest residual correlations."""
    model = material.model
    if material.spins is None or not isinstance(model, LearnedPatterns) or not model.n_patterns_:
        return None
    rows = spread_rows(material.spins, n_profiled(material.n_spins))
    found = unexplained_pairs(rows, **model._model(), means=model.means_, top=_PAIRS)
    names = material.names or [f"spin {i}" for i in range(material.n_spins)]
    n_pairs = material.n_spins * (material.n_spins - 1) // 2
    return {
        "pairs": [(names[i], names[j]) for i, j in zip(found.i, found.j, strict=True)],
        "z": np.round(found.z, 2).tolist(),
        "n_pairs": n_pairs,
        "expected": float(norm.isf(0.5 / max(n_pairs, 1))),
    }

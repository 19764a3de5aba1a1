"""A fitted model of patterns in a few lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualtap.fitted.meaning import HARDLY_ANY, Profiles

if TYPE_CHECKING:
    from dualtap.fitted.learned import LearnedPatterns

UNCERTAIN = 0.8
"""A bit with a smaller absolute magnetization is wrong in more than one case of ten."""

_MOST_PATTERNS = 8
_MOST_SPINS = 4


def summary(model: LearnedPatterns) -> str:
    """Return what a model has found, and what its first patterns mean, in lines.

    Parameters
    ----------
    model : HopfieldPatterns or DualTAP
        Fitted.
    """
    if not model.n_patterns_:
        return f"no pattern: {model.reason_}"
    found = "1 pattern" if model.n_patterns_ == 1 else f"{model.n_patterns_} patterns"
    sure = np.abs(model.magnetizations_[model.patterns_ != 0])
    lines = [
        f"{found}, {_strengths(model)}" + (f": {model.reason_}" if model.reason_ else ""),
        f"median overlap with the nearest pattern: {model._median_overlap:.3f}",
        f"samples per pattern: {samples_per_pattern(model)}",
        f"bits: mean |m| {sure.mean():.3f}, {(sure < UNCERTAIN).sum()} of {sure.size} "
        f"uncertain (|m| < {UNCERTAIN})",
    ]
    if np.isnan(model._median_overlap):  # of a model from an old file
        del lines[1]
    if model.fields_.any():
        size = np.sqrt(np.mean(np.square(model.fields_)))
        lines.append(f"fields: root mean square {size:.2g}")
    return "\n".join(lines + _meanings(model) + _doubts(model))


def samples_per_pattern(model: LearnedPatterns) -> str:
    """Return the range of the numbers of samples nearest to each pattern."""
    M = getattr(model, "_total_weight", len(model.labels_))  # as in files without weights
    counts = np.round(model.weights_ * M).astype(int)
    few, many = counts.min(), counts.max()
    return str(few) if few == many else f"{few}–{many}"


def _strengths(model: LearnedPatterns) -> str:
    if np.isnan(model.beta_):
        return f"strengths {model.strengths_.min():.3g}–{model.strengths_.max():.3g}"
    return f"β = {model.beta_:.3g}"


def _meanings(model: LearnedPatterns) -> list[str]:
    """Return a line for each of the first patterns."""
    sides = model._profiles
    if sides is None:
        return []
    names = getattr(model, "feature_names_in_", None)
    lines = [
        _meaning(sides, k, pattern, names)
        for k, pattern in enumerate(model.patterns_[:_MOST_PATTERNS])
    ]
    left = model.n_patterns_ - len(lines)
    return lines + ([f"and {left} more"] if left else [])


def _meaning(
    sides: Profiles, k: int, pattern: NDArray[np.int8], names: NDArray[np.object_] | None
) -> str:
    """Return the sides of a pattern and the spins on which it has the largest effect.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.fitted.meaning import Profiles
    >>> from dualtap.fitted.summary import _meaning
    >>> sides = Profiles(np.array([[0.4, 0.25]]), np.array([[[0.9, 0.2], [0.2, 0.3]]]))
    >>> _meaning(sides, 0, np.array([1, -1]), None)
    'pattern 0: 40 % of samples on its + side, 25 % on its − side; effect: 0 +0.70, 1 −0.10'
    """
    plus, minus = (f"{100 * share:.0f} %" for share in sides.share[k])
    effect = sides.effect[k]
    shown = [
        f"{i if names is None else names[i]} {_signed(effect[i])}"
        for i in sides.strongest(k, pattern, _MOST_SPINS)
    ]
    return (
        f"pattern {k}: {plus} of samples on its + side, {minus} on its − side; "
        f"effect: {', '.join(shown)}"
    )


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _doubts(model: LearnedPatterns) -> list[str]:
    """Return patterns to which hardly any sample is nearest, and what is left of the pairs."""
    lines = []
    rare = np.flatnonzero(model.weights_ < HARDLY_ANY)
    if len(rare):
        which = ", ".join(map(str, rare[:_MOST_PATTERNS]))
        more = f" and {len(rare) - _MOST_PATTERNS} more" if len(rare) > _MOST_PATTERNS else ""
        plural = "s" if len(rare) > 1 else ""
        lines.append(
            f"hardly any sample (< {100 * HARDLY_ANY:.0f} %) is nearest to "
            f"pattern{plural} {which}{more}"
        )
    doubt = model._doubt_about_couplings()
    return [*lines, f"warning: {doubt}"] if doubt else lines

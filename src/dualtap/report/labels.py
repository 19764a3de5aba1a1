"""Patterns against labels that the samples have: who is where, and how well the two agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_LABELS = 30
OTHERS = "other labels"


def label_table(
    pattern: NDArray[np.int64],
    sign: NDArray[np.int64],
    labels: Sequence[str],
    n_patterns: int,
    weights: NDArray[np.float64] | None = None,
) -> dict[str, Any]:
    """Count samples by state and label; samples without a label or a pattern do not count.

    A pattern and its negative are two states, if samples are near to both.

    Parameters
    ----------
    pattern : array of shape (n_samples,), int
        The pattern of each sample, -1 for none.
    sign : array of shape (n_samples,), ±1
        -1 where a sample is near to the negative of its pattern.
    labels : sequence of n_samples strings
        Empty for unknown ones.
    n_patterns : int
    weights : array of shape (n_samples,), optional
        Samples that a row stands for, 1 by default.

    Returns
    -------
    dict
        ``states`` (rows), ``labels`` (columns), ``counts`` of shape (n_states, n_labels),
        ``majority`` (the label of most samples of each pattern, with its share, or None),
        ``state_majority`` (the same of each state), ``rand`` (adjusted Rand index of states and
        labels), ``purity`` (share of samples that have their state's majority label), ``n``
        counted.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.report.labels import label_table
    >>> sign = np.array([1, 1, 1, -1])
    >>> table = label_table(np.array([0, 0, 1, 1]), sign, ["a", "a", "b", "a"], 2)
    >>> table["states"], table["labels"], table["counts"].tolist(), table["purity"]
    (['0', '1 +', '1 −'], ['a', 'b'], [[2, 0], [0, 1], [1, 0]], 1.0)
    """
    given = np.array(labels, dtype=object)
    counted_rows = (pattern >= 0) & (given != "")
    kinds = sorted(set(given[counted_rows]), key=_natural)
    column = {label: j for j, label in enumerate(kinds)}
    y = np.array([column[label] for label in given[counted_rows]], dtype=np.int64)
    state = 2 * pattern[counted_rows] + (sign[counted_rows] < 0)
    signed = np.zeros((2 * n_patterns, len(kinds)))
    np.add.at(signed, (state, y), 1 if weights is None else weights[counted_rows])
    n, n_all = signed.sum(), len(given) if weights is None else weights.sum()
    states, counts = _states(signed)
    shown_kinds, shown = _fewer(kinds, counts)
    return {
        "states": states,
        "labels": shown_kinds,
        "counts": whole_numbers(shown),
        "majority": [_majority(row, kinds) for row in signed[::2] + signed[1::2]],
        "state_majority": [_majority(row, kinds) for row in counts],
        "rand": adjusted_rand(signed) if n else None,
        "purity": float(signed.max(axis=1).sum() / n) if n else None,
        "n": whole_number(n),
        "n_left_out": whole_number(n_all - n),
    }


def adjusted_rand(counts: NDArray[np.number[Any]]) -> float:
    """Return the adjusted Rand index of two groupings, from the table of their counts.

    As ``sklearn.metrics.adjusted_rand_score``, which takes no weights.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.report.labels import adjusted_rand
    >>> adjusted_rand(np.array([[2, 0], [0, 3]]))
    1.0
    >>> round(adjusted_rand(np.array([[2, 1], [1, 2]])), 3)
    -0.111
    """
    table = np.asarray(counts, dtype=np.float64)
    both, rows, columns, whole = (
        float((n * (n - 1) / 2).sum())
        for n in (table, table.sum(axis=1), table.sum(axis=0), table.sum(keepdims=True))
    )
    expected, most = rows * columns / whole if whole else 0.0, (rows + columns) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


def whole_numbers(counts: NDArray[Any]) -> NDArray[Any]:
    """Return numbers of samples, as integers if all are whole."""
    return counts.astype(np.int64) if (counts == np.round(counts)).all() else np.round(counts, 2)


def whole_number(n: float) -> int | float:
    """Return a number of samples, whole if it is."""
    return int(n) if float(n).is_integer() else round(float(n), 2)


def _states(signed: NDArray[Any]) -> tuple[list[str], NDArray[Any]]:
    """Return names and counts of states; a pattern whose samples have one sign is one state."""
    names, rows = [], []
    for k, (plus, minus) in enumerate(zip(signed[::2], signed[1::2], strict=True)):
        if plus.any() and minus.any():
            names += [f"{k} +", f"{k} −"]
            rows += [plus, minus]
        else:
            names.append(str(k))
            rows.append(plus + minus)
    return names, np.array(rows, dtype=signed.dtype).reshape(len(rows), signed.shape[1])


def _natural(label: str) -> tuple[int, float, str]:
    """Sort numbers as numbers, before words."""
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label


def _majority(row: NDArray[Any], kinds: list[str]) -> dict[str, Any] | None:
    if not row.any():
        return None
    return {"label": kinds[int(row.argmax())], "share": float(row.max() / row.sum())}


def _fewer(kinds: list[str], counts: NDArray[Any]) -> tuple[list[str], NDArray[Any]]:
    """Join all but the most frequent labels, so that the table can be read."""
    if len(kinds) <= _MOST_LABELS:
        return kinds, counts
    frequent = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[: _MOST_LABELS - 1])
    rest = counts.sum(axis=1, keepdims=True) - counts[:, frequent].sum(axis=1, keepdims=True)
    return [*(kinds[j] for j in frequent), OTHERS], np.hstack([counts[:, frequent], rest])

"""A described model as labelled values, the same words on a terminal and in a report."""

from __future__ import annotations

from typing import Any

_LABELS = {
    "n_patterns": "patterns",
    "n_spins": "spins",
    "n_repulsive": "repulsive patterns",
    "n_hidden": "hidden units",
    "beta": "β",
    "hidden": "hidden prior",
    "rounds": "rounds of deflation",
    "unexplained_share_of_pairs": "gain of pair couplings beyond the patterns",
    "score": "log pseudo-likelihood per spin",
    "stopped_because": "training stopped by",
    "true_beta": "true β",
    "true_rms_field": "true fields, root mean square",
    "recovered": "true patterns recovered",
    "mean_overlap": "mean overlap with the true patterns",
    "min_overlap": "smallest overlap with the true patterns",
    "relative_coupling_error": "relative error of the couplings",
    "epsilon": "ε, as printed in the paper",
    "adjusted_rand_index": "adjusted Rand index",
    "patterns_of_refits": "patterns per refit",
    "encoding": "read as",
    "n_samples": "samples",
    "n_missing": "missing entries",
    "n_constant": "constant spins",
    "n_duplicates": "duplicate samples",
    "pseudo_likelihood": "log pseudo-likelihood",
    "error_of_J": "error of J",
}
_RAND = "adjusted_rand_index_"
_HIDDEN = ("beta_was_given", "has_fields", "rms_field")


def label(key: str) -> str:
    """Return how a value is called.

    Examples
    --------
    >>> from dualtap.report.facts import label
    >>> label("n_spins"), label("samples_per_pattern")
    ('spins', 'samples per pattern')
    """
    if key.startswith(_RAND):
        return f"adjusted Rand index, {key.removeprefix(_RAND)}"
    return _LABELS.get(key, key.replace("_", " "))


def text(value: Any) -> str:
    """Return a value as text: four digits, yes or no.

    Examples
    --------
    >>> from dualtap.report.facts import text
    >>> text(0.123456), text(True), text(None)
    ('0.1235', 'yes', 'unknown')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "unknown"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def facts(described: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the scalars of a described model with their labels; lists are left to tables.

    Parameters
    ----------
    described : dict
        As :func:`dualtap.report.summary.describe` returns it, or a part of it.

    Examples
    --------
    >>> from dualtap.report.facts import facts
    >>> facts({"n_patterns": 2, "beta": 1.5, "beta_was_given": False})
    [('patterns', '2'), ('β', '1.5 (fitted)')]
    """
    found = []
    for key, value in described.items():
        if key == "has_fields":
            size = f"root mean square {text(described.get('rms_field'))}"
            found.append(("fields", size if value else "none"))
        elif key == "unexplained_share_of_pairs":
            found.append((label(key), f"{100 * value:.1f} %"))
        elif key == "beta":
            found.append((label(key), _beta(described)))
        elif key not in _HIDDEN and not isinstance(value, (list, dict)) and value != "":
            found.append((label(key), text(value)))
    return found


def _beta(described: dict[str, Any]) -> str:
    """Return β and where it is from, or why there is none."""
    beta, strengths = described["beta"], described.get("strengths", [])
    if beta is not None:
        given = described.get("beta_was_given")  # not of samples
        return text(beta) + ("" if given is None else " (given)" if given else " (fitted)")
    if len(set(strengths)) > 1:
        return f"not one value: strengths {min(strengths):.3g} to {max(strengths):.3g}"
    return text(None)

"""The tables of the benchmark on real data, and a sentence on where ours loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from benchmarks.ours import counts, spread
from benchmarks.real_peers import MIXTURE_SIZES, REGULARIZATIONS

OURS = "ours"
N_BINS = 10


class Score(TypedDict, total=False):
    """One method on one split; without what could not be measured."""

    set: str
    seed: int
    method: str
    error: str
    score: float
    loss_10: float
    accuracy_10: float
    bins_10: list[list[float]]
    loss_30: float
    accuracy_30: float
    bins_30: list[list[float]]
    agreement: float
    seconds: float
    megabytes: float
    size: int | None
    regularization: float | None


METHODS = f"""Mean ± standard error over random splits of the samples, 70 % to fit and 30 % to
predict. "ours" is HopfieldPatterns with default parameters. Site means: independent spins. Mixture:
Bernoulli mixture by EM, five starts, K of {MIXTURE_SIZES[0]} … {MIXTURE_SIZES[-1]}. Pairwise:
pairwise Ising model with fields, L2-regularised maximum pseudo-likelihood, λ of
{REGULARIZATIONS[0]:g} … {REGULARIZATIONS[-1]:g}. Regressions: the same with couplings that need not
be symmetric. StepMix: latent classes, their number by BIC. k-means: means of the nearest cluster.
BernoulliRBM: scikit-learn's. logisticpca: components by its own cross-validation. Neighbours:
scikit-learn's KNNImputer. HopfieldRBM: default parameters. Sizes and λ are chosen inside the
training part. k-means, BernoulliRBM and logisticpca see gaps of the training part filled by column
means. Seconds are medians of one fit, choice of the size included, on one thread, two fits side by
side; MB is the most memory that a fit took beyond the data and the libraries."""


@dataclass(frozen=True)
class Table:
    """One quantity of all methods on all sets.

    Attributes
    ----------
    title : str
    keys : tuple of str
        Of :class:`Score`; the first decides who loses.
    larger_is_better : bool
    slack : float
        What is within it of the best counts as the best.
    """

    title: str
    keys: tuple[str, ...]
    larger_is_better: bool
    slack: float

    def rows(self, scores: list[Score], names: Sequence[str]) -> list[dict[str, Any]]:
        """Return one row per set and method, the best first."""
        rows = []
        for name in names:
            means = self.means(scores, name)
            order = sorted(means, key=lambda m: means[m], reverse=self.larger_is_better)
            for method in order:
                own = _of(scores, name, method)
                row: dict[str, Any] = {"data": name, "method": method}
                row |= dict(_cell(own, key) for key in self.keys)
                row["size"] = counts(s["size"] for s in own if s.get("size") is not None) or "–"
                row |= {"s": _median(_known(own, "seconds"))}
                row |= {"MB": _median(_known(own, "megabytes"))}
                rows.append(row)
        return rows or [{"data": "–"}]

    def means(self, scores: list[Score], name: str) -> dict[str, float]:
        """Return the mean of the first key for each method that has one."""
        methods = dict.fromkeys(s["method"] for s in scores if s["set"] == name)
        known = {m: _known(_of(scores, name, m), self.keys[0]) for m in methods}
        return {m: float(np.mean(values)) for m, values in known.items() if values}

    def losses(self, scores: list[Score], names: Sequence[str]) -> dict[str, tuple[str, float]]:
        """Return the sets on which ours is not within the slack of the best: by whom, how much."""
        lost = {}
        for name in names:
            means = self.means(scores, name)
            if OURS not in means or len(means) < 2:
                continue
            sign = 1 if self.larger_is_better else -1
            best = max((m for m in means if m != OURS), key=lambda m: sign * means[m])
            gap = sign * (means[best] - means[OURS])
            if gap > self.slack:
                lost[name] = best, gap
        return lost

    def summary(self, scores: list[Score], names: Sequence[str]) -> str:
        """Return a sentence on where ours loses; empty without anything to compare."""
        judged = [n for n in names if OURS in (m := self.means(scores, n)) and len(m) > 1]
        if not judged:
            return ""
        lost = self.losses(scores, names)
        line = (
            f"Ours is the best or within {self.slack:g} of the best on {len(judged) - len(lost)} "
            f"of {len(judged)} sets"
        )
        told = [f"{name} ({best}, by {gap:.3f})" for name, (best, gap) in lost.items()]
        line += f"; it loses on {', '.join(told)}." if told else "."
        if self.larger_is_better and "score" in self.keys:
            line += " " + self._against(scores, judged)
        if "bins_10" in self.keys:
            line += " " + self._worst(scores, names)
        return line

    def _against(self, scores: list[Score], names: Sequence[str]) -> str:
        """Return on how many sets ours predicts nearly as well as each of some peers."""
        parts = []
        for words, peer, slack in RIVALS:
            gaps = [m[OURS] - m[peer] for n in names if peer in (m := self.means(scores, n))]
            n_near = sum(gap >= -slack for gap in gaps)
            parts.append(f"{words}: {n_near} of {len(gaps)} sets")
        return "; ".join(parts) + "."

    def _worst(self, scores: list[Score], names: Sequence[str]) -> str:
        """Say where probabilities are farthest from frequencies, and what chance does there."""
        of = {name: _of(scores, name, OURS) for name in names}
        errors = {name: calibration_error(fits, "bins_10") for name, fits in of.items()}
        worst = max((n for n in names if np.isfinite(errors[n])), key=errors.__getitem__)
        return (
            f"Largest calibration error of ours on a set, 10 % hidden: {errors[worst]:.3f} "
            f"({worst}, where entries drawn from the probabilities themselves would give "
            f"{calibration_by_chance(of[worst], 'bins_10'):.3f})."
        )


RIVALS = (
    ("At least the mixture - 0.005", "mixture", 0.005),
    ("within 0.02 of pairwise", "pairwise", 0.02),
    ("not below the site means", "site means", 0.0),
)
"""Words, peer, and nats per entry by which ours may be behind."""
TABLES = {
    "real": Table(
        f"""Real data: held-out log pseudo-likelihood per observed entry

Every observed entry of a held-out sample is predicted from the rest of its row (logisticpca: one
entry per row). {METHODS}""",
        ("score",),
        larger_is_better=True,
        slack=0.01,
    ),
    "real-imputation": Table(
        f"""Real data: entries filled in

10 % or 30 % of the entries of held-out samples are hidden at random, and predicted from the others
by the fit to the training samples: mean log-loss, accuracy, and calibration error (distance of
probabilities from frequencies over ten bins). Pairwise and regressions average over gaps as ours
does. Peers without a row were not measured. {METHODS}""",
        ("loss_10", "accuracy_10", "bins_10", "loss_30", "accuracy_30", "bins_30"),
        larger_is_better=False,
        slack=0.01,
    ),
    "real-labels": Table(
        f"""Real data: agreement of groups with labels

Adjusted Rand index on held-out samples, given the number of labels: components of a mixture, latent
classes, clusters; for methods without groups, clusters (k-means) of their features. {METHODS}""",
        ("agreement",),
        larger_is_better=True,
        slack=0.05,
    ),
}


def calibration_error(scores: list[Score], key: str) -> float:
    """Return the mean distance of probabilities from frequencies, all splits taken together.

    Examples
    --------
    >>> from benchmarks.real_tables import calibration_error
    >>> calibration_error([{"bins_10": [[10, 0], [7.0, 0], [6, 0]]}], "bins_10")
    0.1
    """
    known: list[Any] = [s[key] for s in scores if key in s]  # type: ignore[literal-required]
    if not known:
        return float("nan")
    n, expected, seen = np.sum(known, axis=0)
    return float(np.abs(expected - seen).sum() / n.sum())


def calibration_by_chance(scores: list[Score], key: str) -> float:
    r"""Return the calibration error of entries that follow the probabilities, in the mean.

    A bin of n entries of probability p is off by :math:`\sqrt{2 n p (1 - p) / \pi}` entries.

    Examples
    --------
    >>> from benchmarks.real_tables import calibration_by_chance
    >>> round(calibration_by_chance([{"bins_10": [[100, 0], [50.0, 0], [40, 0]]}], "bins_10"), 3)
    0.04
    """
    n, expected, _ = np.sum([s[key] for s in scores if key in s], axis=0)  # type: ignore[literal-required]
    p = expected / np.maximum(n, 1)
    return float(np.sqrt(2 / np.pi * n * p * (1 - p)).sum() / n.sum())


def _cell(scores: list[Score], key: str) -> tuple[str, str]:
    """Return the title of a column, and what it says of these splits."""
    if key.startswith("bins"):
        return key.replace("bins_", "calibration "), f"{calibration_error(scores, key):.3f}"
    return key.replace("_", " "), spread(_known(scores, key))


def _of(scores: list[Score], name: str, method: str) -> list[Score]:
    return [s for s in scores if s["set"] == name and s["method"] == method]


def _known(scores: list[Score], key: str) -> list[float]:
    values = [s.get(key) for s in scores]
    return [float(v) for v in values if isinstance(v, int | float) and np.isfinite(v)]


def _median(values: list[float]) -> str:
    return f"{np.median(values):.2g}" if values else "–"

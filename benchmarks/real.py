"""Real data: digits, MNIST, blood cells; ours against k-means, a mixture and scikit-learn's RBM.

``python -m benchmarks real`` runs everything. One data set alone::

    from benchmarks import real
    rows = real.table(["digits"], seeds=range(2))
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from examples.comparison import (
    Split,
    fit_mixture,
    fit_rbm,
    independent_spins,
    mixture_of_groups,
    rbm_score,
    spins,
    split,
    unit,
)
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from benchmarks.harness import threads
from dualtap import DualTAP, HopfieldRBM, datasets

SIZES = {"digits": (1300, 497), "pbmc": (500, 200), "mnist": (1000, 500)}
"""Samples to fit and to judge."""
N_SEEDS = 5
N_HIDDEN = 20
RATES = (0.02, 0.05, 0.1)

TITLE = f"""Real data: groups and held-out likelihood

Five splits, labels in equal proportions; mean ± standard deviation over the splits. ARI: adjusted
Rand index with the labels, on samples no fit has seen. "+ k-means": as many clusters as there are
labels, by k-means on what ``transform`` returns; "predict": the pattern of greatest overlap, sign
left out. Score: mean log pseudo-likelihood per spin on the same samples, exact for every method;
k-means is read as a mixture with smoothed means. All but the blind fit are told the number of
labels (10), or have {N_HIDDEN} hidden units; BernoulliRBM has the best of the learning rates
{RATES} on a fifth of the training part, 40 epochs each, choosing included in its time. HopfieldRBM
has 20 ±1 hidden units and fields because that did best of four variants on held-out digits of
another split of the same data: on digits it is chosen with hindsight. DualTAP has its defaults.
Blind DualTAP does not run on MNIST: it takes each of some 300 directions for a pattern, and
minutes. Seconds are medians, two splits side by side on one thread each."""


class Fit(NamedTuple):
    """How one method did on one split."""

    ari: float
    score: float
    seconds: float
    n_patterns: int | None = None


def _dual_tap(data: Split, seed: int, n_patterns: int | None) -> dict[str, Fit]:
    """Fit once, judge what ``predict`` and what all overlaps together say."""
    start = time.perf_counter()
    model = DualTAP(n_patterns, random_state=seed).fit(data.X)
    seconds = time.perf_counter() - start
    name = "DualTAP, blind" if n_patterns is None else f"DualTAP, told {n_patterns}"
    together = 0.0
    if model.n_patterns_:
        together = data.k_means(model.transform(data.X), model.transform(data.X_test))
    score, count = model.score(data.X_test), model.n_patterns_
    return {
        f"{name}, predict": Fit(data.agreement(model.predict(data.X_test)), score, seconds, count),
        f"{name} + k-means": Fit(together, score, seconds, count),
    }


def _hopfield_rbm(data: Split, seed: int) -> Fit:
    start = time.perf_counter()
    rbm = HopfieldRBM(N_HIDDEN, hidden="binary", fields=True, random_state=seed).fit(data.X)
    seconds = time.perf_counter() - start
    ari = data.k_means(rbm.transform(data.X), rbm.transform(data.X_test))
    return Fit(ari, rbm.score(data.X_test), seconds)


def _k_means(data: Split, seed: int) -> Fit:
    start = time.perf_counter()
    k_means = KMeans(data.n_groups, n_init=10, random_state=seed).fit(spins(data.X))
    seconds = time.perf_counter() - start
    ari = data.agreement(k_means.predict(spins(data.X_test)))
    return Fit(ari, mixture_of_groups(data.X, k_means.labels_).score(data.X_test), seconds)


def _mixture(data: Split, seed: int) -> Fit:
    start = time.perf_counter()
    mixture = fit_mixture(data.X, data.n_groups, random_state=seed)
    seconds = time.perf_counter() - start
    return Fit(data.agreement(mixture.predict(data.X_test)), mixture.score(data.X_test), seconds)


def _bernoulli_rbm(data: Split, seed: int) -> Fit:
    """Fit scikit-learn's machine; its seed is fixed, the data are not."""
    start = time.perf_counter()
    rbm = fit_rbm(data.X, N_HIDDEN, RATES)
    seconds = time.perf_counter() - start
    ari = data.k_means(rbm.transform(unit(data.X)), rbm.transform(unit(data.X_test)))
    return Fit(ari, rbm_score(rbm, data.X_test), seconds)


def _independent(data: Split, seed: int) -> Fit:
    return Fit(np.nan, independent_spins(data.X).score(data.X_test), np.nan)


OTHERS: dict[str, Callable[[Split, int], Fit]] = {
    "HopfieldRBM, ±1 hidden, fields, + k-means": _hopfield_rbm,
    "k-means": _k_means,
    "Bernoulli mixture": _mixture,
    "BernoulliRBM + k-means": _bernoulli_rbm,
    "independent spins": _independent,
}


def trial(name: str, seed: int, sizes: tuple[int, int] | None = None) -> dict[str, Fit]:
    """Judge every method on one split of a data set.

    Parameters
    ----------
    name : str
        Of the data set, a key of `SIZES`.
    seed : int
    sizes : tuple of int, optional
        Samples to fit and to judge.

    Returns
    -------
    dict of Fit
    """
    whole = datasets.load(name)
    if whole.y is None:
        raise ValueError(f"data set {name!r} has no labels to compare with")
    data = split(whole.X, whole.y, *(sizes or SIZES[name]), seed=seed)
    told: tuple[int | None, ...] = (10,) if name == "mnist" else (None, 10)
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        DualTAP(2, random_state=0).fit(data.X[:50, :100])  # compiled before anything is timed
        fits = {key: fit for n in told for key, fit in _dual_tap(data, seed, n).items()}
        return fits | {key: method(data, seed) for key, method in OTHERS.items()}


def table(
    names: Iterable[str] = tuple(SIZES),
    seeds: Iterable[int] = range(N_SEEDS),
    sizes: tuple[int, int] | None = None,
) -> list[dict[str, Any]]:
    """Measure and return a row for each data set and method; two splits run at a time.

    Parameters
    ----------
    names : iterable of str
    seeds : iterable of int
        One split each.
    sizes : as in :func:`trial`

    Returns
    -------
    list of dict
    """
    seeds, rows = list(seeds), []
    for name in names:
        fits = Parallel(n_jobs=2)(delayed(trial)(name, seed, sizes) for seed in seeds)
        print(f"{name}: {len(seeds)} splits", file=sys.stderr, flush=True)
        rows += [_row(name, method, [fit[method] for fit in fits]) for method in fits[0]]
    return rows


def _row(name: str, method: str, fits: list[Fit]) -> dict[str, Any]:
    counts = [str(fit.n_patterns) for fit in fits if fit.n_patterns is not None]
    seconds = float(np.median([fit.seconds for fit in fits]))
    return {
        "data": name,
        "method": method,
        "ARI": _spread(np.array([fit.ari for fit in fits])),
        "score": _spread(np.array([fit.score for fit in fits])),
        "patterns": ", ".join(counts) or "–",
        "seconds": "–" if np.isnan(seconds) else f"{seconds:.2g}",
    }


def _spread(values: NDArray[np.float64]) -> str:
    if np.isnan(values).any():
        return "–"
    spread = values.std(ddof=1) if len(values) > 1 else 0.0
    return f"{values.mean():.3f} ± {spread:.3f}"

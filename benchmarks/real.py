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
from typing import Any, NamedTuple, TypeVar

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
from dualtap import HopfieldPatterns, HopfieldRBM, datasets

SIZES = {
    "digits": (1300, 497),
    "digits, few": (100, 497),
    "pbmc": (500, 200),
    "mnist": (1000, 500),
}
"""Samples to fit and to judge; what stands before the comma names the data set."""
N_SEEDS = 5
N_TOLD = 10
N_HIDDEN = 20
RATES = (0.05, 0.1, 0.2)
N_EPOCHS = 100
OURS = "DualTAP, blind + k-means"
T = TypeVar("T")

TITLE = f"""Real data: groups and held-out likelihood

Five splits, labels in equal proportions; mean ± standard deviation over the splits. Score: mean log
pseudo-likelihood per spin, on samples no fit has seen, exact for every method; k-means is read as a
mixture with smoothed means. ARI: adjusted Rand index with the labels, on the same samples.
"Nearest": the pattern of greatest overlap, with its sign. "+ k-means": as many clusters as there
are labels, by k-means on what ``transform`` returns. K: patterns, groups or hidden units; P is how
many patterns blind DualTAP found on the same split. "ARI won", "score won": splits on which a
method beats "{OURS}".

DualTAP has its defaults; its rule for the number of patterns was written with these data in view.
BernoulliRBM has the best of the rates {RATES} on a fifth of the training part,
{N_EPOCHS} epochs each, choosing included in its time. HopfieldRBM has {N_HIDDEN} ±1 hidden units
and fields because that did best of four variants on held-out digits of another split of the same
data: on digits it is chosen with hindsight. Where K = labels, the number of labels is told. Of
MNIST {SIZES["mnist"][0]} of 5000 pictures are fitted, in "digits, few" {SIZES["digits, few"][0]}.
Seconds are medians, two splits side by side on one thread each."""


class Fit(NamedTuple):
    """How one method did on one split."""

    ari: float
    score: float
    seconds: float = np.nan
    size: int | None = None
    """Patterns, groups or hidden units."""


def _timed(fit: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    return fit(), time.perf_counter() - start


def _dual_tap(data: Split, seed: int, n_patterns: int | None) -> dict[str, Fit]:
    """Fit once, judge what the nearest pattern and what all overlaps together say."""
    model, seconds = _timed(lambda: HopfieldPatterns(n_patterns, random_state=seed).fit(data.X))
    name = "DualTAP, blind" if n_patterns is None else f"DualTAP, told {n_patterns}"
    together = 0.0
    if model.n_patterns_:
        together = data.k_means(model.transform(data.X), model.transform(data.X_test))
    state = model.assign(data.X_test)
    nearest = data.agreement(2 * state.label + (state.sign > 0))
    rest = model.score(data.X_test), seconds, model.n_patterns_
    return {f"{name}, nearest": Fit(nearest, *rest), f"{name} + k-means": Fit(together, *rest)}


def _hopfield_rbm(data: Split, seed: int) -> Fit:
    rbm = HopfieldRBM(N_HIDDEN, hidden="binary", fields=True, random_state=seed)
    _, seconds = _timed(lambda: rbm.fit(data.X))
    ari = data.k_means(rbm.transform(data.X), rbm.transform(data.X_test))
    return Fit(ari, rbm.score(data.X_test), seconds, N_HIDDEN)


def _k_means(data: Split, seed: int) -> Fit:
    k_means = KMeans(data.n_groups, n_init=10, random_state=seed)
    _, seconds = _timed(lambda: k_means.fit(spins(data.X)))
    ari = data.agreement(k_means.predict(spins(data.X_test)))
    score = mixture_of_groups(data.X, k_means.labels_).score(data.X_test)
    return Fit(ari, score, seconds, data.n_groups)


def _mixture(data: Split, seed: int, n_groups: int) -> Fit:
    mixture, seconds = _timed(lambda: fit_mixture(data.X, n_groups, random_state=seed))
    ari = data.agreement(mixture.predict(data.X_test))
    return Fit(ari, mixture.score(data.X_test), seconds, n_groups)


def _bernoulli_rbm(data: Split, n_hidden: int) -> Fit:
    """Fit scikit-learn's machine; its seed is fixed, the data are not."""
    rbm, seconds = _timed(lambda: fit_rbm(data.X, n_hidden, RATES, N_EPOCHS))
    ari = data.k_means(rbm.transform(unit(data.X)), rbm.transform(unit(data.X_test)))
    return Fit(ari, rbm_score(rbm, data.X_test), seconds, n_hidden)


def trial(name: str, seed: int, sizes: tuple[int, int] | None = None) -> dict[str, Fit]:
    """Judge every method on one split of a data set.

    Parameters
    ----------
    name : str
        A key of `SIZES`.
    seed : int
    sizes : tuple of int, optional
        Samples to fit and to judge.

    Returns
    -------
    dict of Fit
    """
    whole = datasets.load(name.partition(",")[0])
    if whole.y is None:
        raise ValueError(f"data set {name!r} has no labels to compare with")
    data = split(whole.X, whole.y, *(sizes or SIZES[name]), seed=seed)
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        HopfieldPatterns(random_state=0).fit(
            data.X[:200, :300]
        )  # compiled before anything is timed
        blind = _dual_tap(data, seed, None)
        n_found = max(blind[OURS].size or 0, 1)
        return {
            **blind,
            **_dual_tap(data, seed, N_TOLD),
            "HopfieldRBM, ±1 hidden, fields, + k-means": _hopfield_rbm(data, seed),
            "BernoulliRBM, K = P, + k-means": _bernoulli_rbm(data, n_found),
            "Bernoulli mixture, K = P": _mixture(data, seed, n_found),
            "Bernoulli mixture, K = labels": _mixture(data, seed, data.n_groups),
            "k-means, K = labels": _k_means(data, seed),
            "independent spins": Fit(np.nan, independent_spins(data.X).score(data.X_test)),
        }


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
        rows += [_row(name, method, fits) for method in fits[0]]
    _say_where_we_lose(rows, len(seeds))
    return rows


def _row(name: str, method: str, trials: list[dict[str, Fit]]) -> dict[str, Any]:
    fits = [trial[method] for trial in trials]
    sizes = [str(fit.size) for fit in fits if fit.size is not None]
    seconds = float(np.median([fit.seconds for fit in fits]))
    won = [
        (fit.ari > trial[OURS].ari, fit.score > trial[OURS].score)
        for fit, trial in zip(fits, trials, strict=True)
    ]
    ari_won, score_won = (int(count) for count in np.sum(won, axis=0))
    return {
        "data": name,
        "method": method,
        "ARI": _spread(np.array([fit.ari for fit in fits])),
        "score": _spread(np.array([fit.score for fit in fits])),
        "K": ", ".join(sizes if len(set(sizes)) > 1 else sizes[:1]) or "–",
        "seconds": "–" if np.isnan(seconds) else f"{seconds:.2g}",
        "ARI won": ari_won,
        "score won": score_won,
    }


def _say_where_we_lose(rows: list[dict[str, Any]], n_splits: int) -> None:
    """Print what of others beats the blind fit on most of the splits."""
    for row in rows:
        if row["method"].startswith("DualTAP"):
            continue
        for measure in ("ARI", "score"):
            won = row[f"{measure} won"]
            if 2 * won > n_splits:
                better = f"{row['data']}: {row['method']} has the better {measure}, {row[measure]}"
                print(f"{better}, on {won} of {n_splits} splits", file=sys.stderr)


def _spread(values: NDArray[np.float64]) -> str:
    if np.isnan(values).any():
        return "–"
    spread = values.std(ddof=1) if len(values) > 1 else 0.0
    return f"{values.mean():.3f} ± {spread:.3f}"

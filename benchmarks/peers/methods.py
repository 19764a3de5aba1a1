"""What scikit-learn and a mixture model make of the samples, each in its best configuration.

Every function takes ±1 samples with 0 for missing entries, the true number of patterns and a seed,
and returns that many patterns. Nothing but NumPy and scikit-learn: it also runs where dualtap is
not installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.decomposition import NMF, PCA, FastICA
from sklearn.neural_network import BernoulliRBM

Bits = NDArray[np.int8]
F32 = NDArray[np.float32]
_N_INIT = 10
_EM_STEPS = 100


def signs(values: NDArray[Any]) -> Bits:
    """Return ±1, +1 for zero."""
    return np.where(values < 0, -1, 1).astype(np.int8)


def k_means(spins: Bits, n_patterns: int, seed: int) -> Bits:
    """Cluster the samples as they are."""
    means = KMeans(n_patterns, n_init=_N_INIT, random_state=seed)
    return signs(means.fit(spins.astype(np.float32)).cluster_centers_)


def k_means_both_signs(spins: Bits, n_patterns: int, seed: int) -> Bits:
    """Cluster the samples together with their negatives, and join opposite clusters."""
    S = spins.astype(np.float32)
    means = KMeans(2 * n_patterns, n_init=_N_INIT, random_state=seed)
    return linkage(signs(means.fit(np.vstack([S, -S])).cluster_centers_), n_patterns, seed)


def linkage(spins: Bits, n_patterns: int, seed: int) -> Bits:
    """Cluster by average linkage on 1 - |overlap|; deterministic, so no use is made of ``seed``."""
    S = spins.astype(np.float32)
    overlap = S @ S.T / S.shape[1]
    distance = np.maximum(1 - np.abs(overlap), 0)
    np.fill_diagonal(distance, 0)
    clusters = AgglomerativeClustering(n_patterns, metric="precomputed", linkage="average").fit(
        distance
    )
    sums = []
    for k in range(n_patterns):
        own = np.flatnonzero(clusters.labels_ == k)
        within = overlap[np.ix_(own, own)]
        centre = np.argmax(np.abs(within).sum(axis=0))
        sums.append(signs(within[centre]) @ S[own])
    return signs(np.array(sums))


def ica(spins: Bits, n_patterns: int, seed: int) -> Bits:
    """Reduce sites to P dimensions, turn those to independent ones, take signs."""
    sites = spins.T.astype(np.float64)
    reduced = PCA(n_patterns, random_state=seed).fit_transform(sites)
    # The default contrast: "cube", made for ±1 sources, did worse on these.
    ica = FastICA(whiten="unit-variance", max_iter=1000, random_state=seed)
    return signs(ica.fit_transform(reduced).T)


def nmf(spins: Bits, n_patterns: int, seed: int) -> Bits:
    """Factorise 0/1 data; a pattern is + where its part is above its own median."""
    parts = NMF(n_patterns, init="nndsvda", max_iter=500, random_state=seed)
    H = parts.fit((1 + spins.astype(np.float32)) / 2).components_
    return signs(H - np.median(H, axis=1, keepdims=True))


def rbm(spins: Bits, n_patterns: int, seed: int) -> Bits:
    """Train 0/1 units, one a pattern; a pattern is + where its weights are above their median."""
    machine = BernoulliRBM(n_patterns, learning_rate=0.01, n_iter=50, random_state=seed)
    W = machine.fit((1 + spins.astype(np.float32)) / 2).components_
    return signs(W - np.median(W, axis=1, keepdims=True))


def mixture(spins: Bits, n_patterns: int, seed: int) -> Bits:
    r"""Fit a mixture of independent bits by EM, a component and its negative tied together.

    .. math:: P(s) = \sum_k \frac{\pi_k}2 \sum_\pm \prod_i \frac{1 \pm m_{ki} s_i}2,

    the best of several starts by likelihood. Missing entries are left out of every product.
    """
    S = spins.astype(np.float32)
    seen = np.abs(S)
    runs = [_em(S, seen, n_patterns, np.random.default_rng([seed, k])) for k in range(_N_INIT)]
    return signs(max(runs, key=lambda run: run[0])[1])


def _em(S: F32, seen: F32, n_patterns: int, rng: np.random.Generator) -> tuple[float, F32]:
    theta = 0.5 * _far_apart(S, seen, n_patterns, rng)
    share = np.full(n_patterns, 1 / n_patterns, dtype=np.float32)
    last = -np.inf
    for _ in range(_EM_STEPS):
        along = S @ theta.T
        size = np.abs(along) + np.log1p(np.exp(-2 * np.abs(along)))
        score = size - seen @ np.logaddexp(theta, -theta).T + np.log(share)
        top = score.max(axis=1, keepdims=True)
        weight = np.exp(score - top)
        total = weight.sum(axis=1, keepdims=True)
        likelihood = float(np.mean(top + np.log(total)))
        weight /= total
        if likelihood - last < 1e-6 * abs(likelihood):
            break
        last = likelihood
        # One pseudo-sample of fair coins keeps the odds finite.
        m = (weight * np.tanh(along)).T @ S / (weight.T @ seen + 1)
        theta = np.arctanh(np.clip(m, -0.999, 0.999))
        share = weight.mean(axis=0) + np.float32(1e-9)
    return likelihood, theta


def _far_apart(S: F32, seen: F32, n_patterns: int, rng: np.random.Generator) -> F32:
    """Draw samples as k-means++ does, at distances that do not see the sign."""
    chosen = [int(rng.integers(len(S)))]
    distance = np.ones(len(S))
    for _ in range(n_patterns - 1):
        overlap = np.abs(S @ S[chosen[-1]]) / np.maximum(seen @ seen[chosen[-1]], 1)
        distance = np.minimum(distance, np.maximum(1 - overlap, 1e-12))
        chosen.append(int(rng.choice(len(S), p=distance**2 / np.sum(distance**2))))
    return S[chosen]


METHODS: dict[str, Callable[[Bits, int, int], Bits]] = {
    "KMeans": k_means,
    "KMeans of ±samples": k_means_both_signs,
    "AgglomerativeClustering": linkage,
    "FastICA over sites": ica,
    "NMF": nmf,
    "Bernoulli mixture": mixture,
    "BernoulliRBM": rbm,
}

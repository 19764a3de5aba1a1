"""What scikit-learn and a mixture model make of the samples, each in its best configuration.

Every method takes ±1 samples with 0 for missing entries and a seed, and returns patterns: as many
as it is told, or, where its name begins with ``blind``, as many as its users would choose. Nothing
but scikit-learn and what that needs: it also runs where dualtap is not installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.decomposition import NMF, PCA, FastICA
from sklearn.metrics import silhouette_score
from sklearn.neural_network import BernoulliRBM
from sklearn.preprocessing import StandardScaler

Bits = NDArray[np.int8]
F32 = NDArray[np.float32]
_N_INIT = 10
_N_INIT_BLIND = 3  # of every P that is tried
_EM_STEPS = 100
_MOST_CLUSTERS = 150
_MIXTURE_SIZES = (2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135)


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
    clusters = AgglomerativeClustering(n_patterns, metric="precomputed", linkage="average")
    return _centres(S, overlap, clusters.fit_predict(_distances(overlap)))


def blind_linkage(spins: Bits, seed: int) -> Bits:
    """Cut the tree of :func:`linkage` where the silhouette is best; no use is made of ``seed``."""
    S = spins.astype(np.float32)
    overlap = S @ S.T / S.shape[1]
    distance = _distances(overlap)
    tree = hierarchy.linkage(squareform(distance, checks=False), "average")

    def silhouette(labels: NDArray[np.int32]) -> float:
        if labels.max() == 1:  # where heights are equal, a cut gives fewer clusters than asked for
            return -1.0
        return float(silhouette_score(distance, labels, metric="precomputed"))

    sizes = cluster_numbers(min(len(S) // 2, _MOST_CLUSTERS))
    cuts = [hierarchy.fcluster(tree, size, "maxclust") for size in sizes]
    return _centres(S, overlap, max(cuts, key=silhouette))


def cluster_numbers(most: int) -> list[int]:
    """Return the P to try: all from 2 to 30, then in steps of 10 %.

    Examples
    --------
    >>> from benchmarks.peers.methods import cluster_numbers
    >>> cluster_numbers(40)[-5:]
    [29, 30, 33, 36, 39]
    """
    sizes = [2]
    while (size := sizes[-1] + (sizes[-1] // 10 if sizes[-1] >= 30 else 1)) <= most:
        sizes.append(size)
    return sizes


def _distances(overlap: F32) -> F32:
    distance: F32 = np.maximum(1 - np.abs(overlap), 0)
    np.fill_diagonal(distance, 0)
    return distance


def _centres(S: F32, overlap: F32, labels: NDArray[Any]) -> Bits:
    """Sum every cluster with the signs of its samples against the most central one."""
    sums = []
    for k in np.unique(labels):
        own = np.flatnonzero(labels == k)
        within = overlap[np.ix_(own, own)]
        centre = np.argmax(np.abs(within).sum(axis=0))
        sums.append(signs(within[centre]) @ S[own])
    return signs(np.array(sums))


def ica(spins: Bits, n_patterns: int, seed: int) -> Bits:
    """Reduce sites to P dimensions, turn those to independent ones, take signs."""
    sites = spins.T.astype(np.float64)
    return _independent(PCA(n_patterns, random_state=seed).fit_transform(sites), seed)


def blind_ica(spins: Bits, seed: int) -> Bits:
    """Do as :func:`ica`, with as many dimensions as Minka's estimate says.

    It needs as many sites as samples; where there are fewer, those above noise are taken.
    """
    if spins.shape[1] < len(spins):
        return blind_ica_above_noise(spins, seed)
    sites = spins.T.astype(np.float64)
    return _independent(PCA("mle", svd_solver="full").fit_transform(sites), seed)


def blind_ica_above_noise(spins: Bits, seed: int) -> Bits:
    """Do as :func:`ica`, with as many dimensions as are above noise."""
    return ica(spins, n_above_noise(spins.T.astype(np.float64)), seed)


def n_above_noise(values: NDArray[np.float64]) -> int:
    r"""Return how many eigenvalues of the correlation matrix of the columns are above noise.

    Noise ends at :math:`(1 + \sqrt{d/n})^2` (Marchenko and Pastur) for n rows and d columns. At
    least 1.
    """
    n, d = values.shape
    Z = StandardScaler().fit_transform(values)
    # The same eigenvalues but for zeros, from the smaller matrix.
    spectrum = np.linalg.eigvalsh((Z @ Z.T if n < d else Z.T @ Z) / n)
    return max(1, int(np.sum(spectrum > (1 + np.sqrt(d / n)) ** 2)))


def _independent(reduced: NDArray[np.float64], seed: int) -> Bits:
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
    return signs(_best_mixture(spins.astype(np.float32), n_patterns, seed, _N_INIT)[1])


def blind_mixture(spins: Bits, seed: int) -> Bits:
    """Fit :func:`mixture` with many P and take that of the best BIC."""
    S = spins.astype(np.float32)
    sizes = [size for size in _MIXTURE_SIZES if size <= max(2, len(S) // 2)]
    fits = [_best_mixture(S, size, seed, _N_INIT_BLIND) for size in sizes]
    return signs(min(fits, key=lambda fit: bic(fit[0], fit[1], len(S)))[1])


def bic(likelihood: float, theta: F32, n_samples: int) -> float:
    """Return Schwarz's criterion of a mixture, the likelihood being that of one sample."""
    n_parameters = theta.size + len(theta) - 1  # the shares sum to 1
    return n_parameters * float(np.log(n_samples)) - 2 * n_samples * likelihood


def _best_mixture(S: F32, n_patterns: int, seed: int, n_init: int) -> tuple[float, F32]:
    seen = np.abs(S)
    runs = [_em(S, seen, n_patterns, np.random.default_rng([seed, k])) for k in range(n_init)]
    return max(runs, key=lambda run: run[0])


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


def _untold(find: Callable[[Bits, int], Bits]) -> Callable[[Bits, int, int], Bits]:
    """Keep the number of patterns from a method that is not to know it."""
    return lambda spins, n_patterns, seed: find(spins, seed)


METHODS: dict[str, Callable[[Bits, int, int], Bits]] = {
    "KMeans": k_means,
    "KMeans of ±samples": k_means_both_signs,
    "AgglomerativeClustering": linkage,
    "FastICA over sites": ica,
    "NMF": nmf,
    "Bernoulli mixture": mixture,
    "BernoulliRBM": rbm,
    "linkage, P by silhouette": _untold(blind_linkage),
    "FastICA over sites, P by PCA(mle)": _untold(blind_ica),
    "FastICA over sites, P above noise": _untold(blind_ica_above_noise),
    "Bernoulli mixture, P by BIC": _untold(blind_mixture),
}

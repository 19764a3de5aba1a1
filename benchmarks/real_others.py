"""What users of other packages would pick for real binary data.

scikit-learn's k-means, BernoulliRBM and nearest neighbours run in this environment; StepMix (latent
classes) and logisticpca in environments of their own (``.peers``). Sizes are chosen inside the
training part, as ``real_peers`` does, or by the criterion of the package where it has one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.cluster import KMeans
from sklearn.impute import KNNImputer
from sklearn.neural_network import BernoulliRBM

from benchmarks.ours import with_gaps
from benchmarks.peers import Peer as Process
from benchmarks.peers import python_of
from benchmarks.real_peers import (
    MIXTURE_SIZES,
    N_FOLDS,
    Floats,
    Mixture,
    Peer,
    Spins,
    chosen,
    inner_splits,
    site_means,
)

NEIGHBOURS = (3, 5, 10, 20, 40)
HIDDEN_UNITS = (16, 64)
RATES = (0.1, 0.01)
EPOCHS, UPDATES, BATCH = 30, 5000, 10  # at least as many of either
N_CHAINS, N_SWEEPS, BURN_IN = 4, 60, 10
SHARE_HIDDEN = 0.1
ENOUGH = 2000  # entries that logisticpca is scored by
LIMIT = 3600.0  # seconds that a package in its own environment may take


class Clusters(NamedTuple):
    """Centres of k-means, and the probability of +1 in each cluster."""

    centres: Floats
    up: Floats

    def score(self, X: Spins) -> float:
        """Return the mean log-likelihood of an entry in the cluster nearest by the others."""
        distances, total = self._distances(X), 0.0
        for i in range(X.shape[1]):
            seen = X[:, i] != 0
            own = np.square(X[seen, i, None] - self.centres[:, i])
            p = self.up[np.argmin(distances[seen] - own, axis=1), i]
            total += float(np.log(np.where(X[seen, i] > 0, p, 1 - p)).sum())
        return total / np.count_nonzero(X)

    def fill(self, X: Spins, seed: int) -> Floats:
        """Return the means of the nearest cluster."""
        return self.up[self.groups(X)]

    def groups(self, X: Spins) -> NDArray[np.int64]:
        """Return the nearest cluster by the observed entries."""
        return np.asarray(np.argmin(self._distances(X), axis=1))

    def _distances(self, X: Spins) -> Floats:
        """Return Σ (s_i - c_i)² over observed entries, (n_samples, n_clusters)."""
        S, seen = X.astype(float), (X != 0).astype(float)
        result: Floats = seen @ np.square(self.centres).T - 2 * S @ self.centres.T
        result += np.square(S).sum(axis=1, keepdims=True)
        return result


def fit_clusters(X: Spins, n_clusters: int, seed: int) -> Clusters:
    """Run k-means; missing entries are the mean of their column."""
    mean = site_means(X).up[0]
    filled = np.where(X == 0, 2 * mean - 1, X)
    model = KMeans(n_clusters, n_init=5, random_state=seed).fit(filled)
    member = np.eye(n_clusters)[model.labels_].T
    up = (member @ (X > 0) + mean) / (member @ (X != 0) + 1)
    return Clusters(model.cluster_centers_, up)


def k_means(X: Spins, seed: int) -> Peer:
    """Choose the number of clusters by validation inside X, then fit all of it."""
    sizes = [size for size in MIXTURE_SIZES if size <= len(X) * (1 - 1 / N_FOLDS) - 1]

    def scores(fitted: Spins, held_out: Spins) -> list[float]:
        return [fit_clusters(fitted, size, seed).score(held_out) for size in sizes]

    best = sizes[chosen(X, np.random.default_rng(seed), scores)]
    return Peer(fit_clusters(X, best, seed), size=best)


class Machine(NamedTuple):
    """A BernoulliRBM: 0/1 units of both kinds."""

    W: Floats
    visible: Floats
    hidden: Floats
    mean: Floats
    """What missing entries are in a score, (n_spins,)."""

    def score(self, X: Spins) -> float:
        """Return the mean log pseudo-likelihood per observed entry, from free energies."""
        total = 0.0
        for s, v in zip(X, self._units(X), strict=True):
            x = (self.hidden + self.W @ v)[:, None]
            on, off = x + self.W * (1 - v), x - self.W * v
            rise = np.logaddexp(0, on).sum(axis=0) - np.logaddexp(0, off).sum(axis=0)
            field = s * (self.visible + rise)
            total -= float(np.logaddexp(0, -field)[s != 0].sum())
        return total / np.count_nonzero(X)

    def fill(self, X: Spins, seed: int) -> Floats:
        """Average over hidden units and missing entries by block Gibbs sampling."""
        rng = np.random.default_rng(seed)
        total = np.zeros(X.shape)
        for _ in range(N_CHAINS):
            v = np.where(X == 0, rng.random(X.shape) < self.mean, X > 0).astype(float)
            for sweep in range(N_SWEEPS):
                p_hidden = expit(v @ self.W.T + self.hidden)
                on = rng.random(p_hidden.shape) < p_hidden
                p = expit(on @ self.W + self.visible)
                v = np.where(X == 0, rng.random(X.shape) < p, X > 0).astype(float)
                if sweep >= BURN_IN:
                    total += p
        return total / (N_CHAINS * (N_SWEEPS - BURN_IN))

    def features(self, X: Spins) -> Floats:
        """Return the means of hidden units."""
        result: Floats = expit(self._units(X) @ self.W.T + self.hidden)
        return result

    def _units(self, X: Spins) -> Floats:
        return np.where(X == 0, self.mean, (X > 0).astype(float))


def fit_machine(X: Spins, n_hidden: int, rate: float, seed: int) -> Machine:
    """Train scikit-learn's machine; missing entries are the mean of their column.

    In whole batches only: against a last batch that is smaller it sets as many chains as in the
    others, and learns something else.
    """
    X = X[: len(X) // BATCH * BATCH]
    mean = site_means(X).up[0]
    units = np.where(X == 0, mean, (X > 0).astype(float))
    n_epochs = max(EPOCHS, UPDATES * BATCH // len(X))
    rbm = BernoulliRBM(
        n_hidden, learning_rate=rate, batch_size=BATCH, n_iter=n_epochs, random_state=seed
    ).fit(units)
    return Machine(rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_, mean)


def bernoulli_rbm(X: Spins, seed: int) -> Peer:
    """Choose hidden units and learning rate on a fifth of X, then fit all of it."""
    fitted, held_out = inner_splits(len(X), np.random.default_rng(seed))[0]
    grid = [(n_hidden, rate) for n_hidden in HIDDEN_UNITS for rate in RATES]
    scores = [fit_machine(X[fitted], *one, seed).score(X[held_out]) for one in grid]
    best = grid[int(np.argmax(scores))]
    return Peer(fit_machine(X, *best, seed), size=best[0])


class Neighbours(NamedTuple):
    """scikit-learn's imputer by nearest neighbours: it fills, and scores no observed entry."""

    imputer: Any
    n_neighbours: int
    mean: Floats

    def score(self, X: Spins) -> float:
        """Say that there is none."""
        return float("nan")

    def fill(self, X: Spins, seed: int) -> Floats:
        """Return the mean over neighbours, one imaginary one having the means of all."""
        up = (self.imputer.transform(_floats(X)) + 1) / 2
        result: Floats = (self.n_neighbours * up + self.mean) / (self.n_neighbours + 1)
        return result


def neighbours(X: Spins, seed: int) -> Peer:
    """Choose the number of neighbours on a fifth of X, by the log-loss of hidden entries."""
    fitted, held_out = inner_splits(len(X), np.random.default_rng(seed))[0]
    shown, hidden = hide(X[held_out], SHARE_HIDDEN, seed)
    losses = []
    sizes = [size for size in NEIGHBOURS if size < len(fitted)]
    for size in sizes:
        p = _neighbours(X[fitted], size).fill(shown, seed)[hidden]
        losses.append(-np.log(np.where(X[held_out][hidden] > 0, p, 1 - p)).mean())
    best = sizes[int(np.argmin(losses))]
    return Peer(_neighbours(X, best), size=best)


def _neighbours(X: Spins, n_neighbours: int) -> Neighbours:
    imputer = KNNImputer(n_neighbors=n_neighbours, keep_empty_features=True).fit(_floats(X))
    return Neighbours(imputer, n_neighbours, site_means(X).up[0])


def _floats(X: Spins) -> Floats:
    return np.where(X == 0, np.nan, X.astype(float))


def hide(X: Spins, share: float, seed: int) -> tuple[Spins, NDArray[np.bool_]]:
    """Return X with some of its observed entries missing, and which they are."""
    rng = np.random.default_rng([seed, round(1000 * share)])
    hidden = (rng.random(X.shape) < share) & (X != 0)
    return np.where(hidden, 0, X).astype(np.int8), hidden


class Estimator(NamedTuple):
    """One of our own estimators."""

    model: Any

    def score(self, X: Spins) -> float:
        """Return the mean log pseudo-likelihood per observed entry."""
        return float(self.model.score(with_gaps(X)))

    def fill(self, X: Spins, seed: int) -> Floats:
        """Return what ``predict_entries`` says."""
        return np.asarray(self.model.predict_entries(with_gaps(X), random_state=seed))

    def features(self, X: Spins) -> Floats:
        """Return what ``transform`` says, 0 where a sample says nothing."""
        features: Floats = np.nan_to_num(
            np.asarray(self.model.transform(with_gaps(X)), dtype=float)
        )
        return features


def hopfield_rbm(X: Spins, seed: int) -> Peer:
    """Fit our RBM with default parameters."""
    from dualtap import HopfieldRBM

    model = HopfieldRBM(random_state=seed).fit(with_gaps(X))
    return Peer(Estimator(model), size=len(model.components_))


def latent_classes(X: Spins, seed: int, n_classes: int | None = None) -> Peer:
    """Fit StepMix's latent classes, their number by BIC unless it is given."""
    found, measured = asked("stepmix", "stepmix_classes.py", X, seed, n_classes=n_classes)
    # A class that is certain of a value would be infinitely wrong about the first exception.
    up = np.clip(found[:, 1:], 0.5 / len(X), 1 - 0.5 / len(X))
    return Peer(Mixture(found[:, 0], up), size=len(found), measured=measured)


class Projection(NamedTuple):
    """logisticpca, which answers for the rows it is asked about together with its fit."""

    X: Spins
    seed: int
    n_components: int

    def score(self, X: Spins) -> float:
        """Return the mean over some observed entries, drawn at random, the same number per row."""
        rng = np.random.default_rng(self.seed)
        X = np.tile(X, (min(max(ENOUGH // len(X), 1), X.shape[1]), 1))
        order = np.argmax(np.where(X == 0, -1.0, rng.random(X.shape)), axis=1)
        hidden = (np.arange(X.shape[1]) == order[:, None]) & (X != 0)
        p = self.fill(np.where(hidden, 0, X).astype(np.int8), self.seed)[hidden]
        return float(np.log(np.where(X[hidden] > 0, p, 1 - p)).mean())

    def fill(self, X: Spins, seed: int) -> Floats:
        """Return the probabilities at the scores that the observed entries of a row make likely."""
        return self._answer(X)[:, : X.shape[1]]

    def features(self, X: Spins) -> Floats:
        """Return the scores."""
        return self._answer(X)[:, X.shape[1] :]

    def _answer(self, X: Spins) -> Floats:
        settings = {"n_components": self.n_components}
        return asked("logisticpca", "logisticpca_entries.py", self.X, self.seed, X, **settings)[0]


def logistic_pca(X: Spins, seed: int) -> Peer:
    """Choose the number of components by the package's own cross-validation, and fit."""
    found, measured = asked("logisticpca", "logisticpca_entries.py", X, seed)
    n_components = int(found[0, 0])
    return Peer(Projection(X, seed, n_components), size=n_components, measured=measured)


def asked(
    package: str, script: str, X: Spins, seed: int, queries: Spins | None = None, **settings: Any
) -> tuple[Floats, tuple[float, float]]:
    """Return what a package says in its own environment, with seconds and megabytes it took."""
    with tempfile.TemporaryDirectory() as folder:
        request: dict[str, Any] = {"seed": seed, **settings}
        for name, rows in (("samples", X), ("queries", queries)):
            if rows is not None:
                request[name] = str(Path(folder, f"{name}.npy"))
                np.save(request[name], rows)
        with Process(python_of(package), script, {"threads": 1}, LIMIT) as process:
            answer = process.ask(request)
            with np.load(answer["answer"]) as file:
                found: Floats = file["answer"]
    return found, (answer["seconds"], answer["grown_mb"])

"""What blind recovery is compared with on real data: site means, a mixture, pairwise couplings.

Each peer takes training samples (±1, 0 for a missing entry) and a seed, chooses its own size or
regularization on a part of them, is fitted again on all of them, and then predicts entries of other
samples, observed ones and missing ones, from the rest of their row. Peers that other packages
provide are in ``real_others``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from dualtap.baselines.regressions import (
    PenalisedLoss,
    ising_pseudo_likelihood,
    minimise,
)
from dualtap.fitted.entries import CouplingConditionals
from dualtap.gaps import entry_probabilities

Floats = NDArray[np.float64]
F32 = NDArray[np.float32]
Spins = NDArray[np.int8]
Rows = NDArray[np.int64]
Scores = Callable[[Spins, Spins], list[float]]
MIXTURE_SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
N_STARTS = 5
EM_STEPS = 300
EM_GAIN = 1e-4  # nats per sample: EM stops when a step gains less
REGULARIZATIONS = tuple(float(x) for x in np.logspace(1, -5, 13))
TOLERANCE = 1e-7  # share of the loss by which a step of L-BFGS must lower it
PATIENCE = 2  # values of λ in a row without a better score, after which smaller ones are not tried
N_FOLDS = 5  # sizes and regularizations are chosen on a fifth of the training samples, ...
FEW = 1000  # ... on each fifth in turn if there are fewer samples than this


class Model(Protocol):
    """Predicts a spin from the others."""

    def score(self, X: Spins) -> float:
        """Return the mean log pseudo-likelihood per observed entry; NaN if it cannot say."""

    def fill(self, X: Spins, seed: int) -> Floats:
        """Return the probability of +1 for the missing entries of X, given the others."""


class Choice(NamedTuple):
    """What a peer has chosen before, for the same samples: it need not be chosen again."""

    size: int | None = None
    regularization: float | None = None


class Peer(NamedTuple):
    """A fitted peer and what it chose."""

    model: Model
    size: int | None = None
    """Components, classes, clusters, hidden units or neighbours."""
    regularization: float | None = None
    measured: tuple[float, float] | None = None
    """Seconds and megabytes of the fit, if another process made it."""


class Mixture(NamedTuple):
    """Components in each of which spins are independent: P(s) = Σ_k w_k Π_i p_ki(s_i)."""

    weights: Floats
    up: Floats
    """P(s_i = +1) in each component, (n_components, n_spins)."""

    def log_joint(self, X: Spins) -> Floats:
        """Return log w_k + Σ_i log p_ki(s_i) over observed entries, (n_samples, n_components)."""
        up, down = (X > 0).astype(float), (X < 0).astype(float)
        result: Floats = up @ np.log(self.up).T + down @ np.log1p(-self.up).T
        return result + np.log(self.weights)

    def score(self, X: Spins) -> float:
        """Return the exact mean log pseudo-likelihood per observed entry.

        P(s_i | rest) = Σ_k r_k p_ki(s_i), r_k the responsibilities without entry i.
        """
        joint = self.log_joint(X)
        total = 0.0
        for i in range(X.shape[1]):
            seen = X[:, i] != 0
            s = X[seen, i, None]
            log_p = np.where(s > 0, np.log(self.up[:, i]), np.log1p(-self.up[:, i]))
            rest = joint[seen] - log_p
            total += float((logsumexp(joint[seen], axis=1) - logsumexp(rest, axis=1)).sum())
        return total / np.count_nonzero(X)

    def fill(self, X: Spins, seed: int) -> Floats:
        """Return Σ_k r_k p_ki, r_k the responsibilities by the observed entries."""
        filled: Floats = softmax(self.log_joint(X), axis=1) @ self.up
        return filled

    def groups(self, X: Spins) -> NDArray[np.int64]:
        """Return the likeliest component of each sample."""
        return np.asarray(np.argmax(self.log_joint(X), axis=1))


def site_means(X: Spins) -> Mixture:
    """Return independent spins, their means smoothed by Laplace's rule."""
    up = ((X > 0).sum(axis=0) + 1) / (np.count_nonzero(X, axis=0) + 2)
    return Mixture(np.ones(1), up[None])


def fit_mixture(X: Spins, n_components: int, rng: np.random.Generator) -> Mixture:
    """Return the Bernoulli mixture of the largest likelihood of five starts of EM."""
    fits = [_expectation_maximisation(X, n_components, rng) for _ in range(N_STARTS)]
    return max(fits, key=lambda fit: fit[1])[0]


def _expectation_maximisation(
    X: Spins, n_components: int, rng: np.random.Generator
) -> tuple[Mixture, float]:
    """Run EM from random members, and return the mixture with its mean log-likelihood."""
    mean = site_means(X).up[0]
    centres = X[rng.choice(len(X), n_components, replace=False)]
    start = np.where(centres == 0, mean, 0.5 * mean + 0.25 * (1 + centres))
    mixture = Mixture(np.full(n_components, 1 / n_components), start)
    up, seen = (X > 0).astype(float), (X != 0).astype(float)
    value = -np.inf
    for _ in range(EM_STEPS):
        joint = mixture.log_joint(X)
        evidence = logsumexp(joint, axis=1, keepdims=True)
        before, value = value, float(evidence.mean())
        if value - before < EM_GAIN:
            break
        member = np.exp(joint - evidence)
        # One imaginary sample with the means of all: no component is ever certain.
        p = (member.T @ up + mean) / (member.T @ seen + 1)
        weights = (member.sum(axis=0) + 0.5) / (len(X) + 0.5 * n_components)
        mixture = Mixture(weights, p)
    return mixture, value


def mixture(X: Spins, seed: int, known: Choice | None = None) -> Peer:
    """Choose the number of components by validation inside X, then fit all of it."""
    rng = np.random.default_rng(seed)
    if known is not None and known.size is not None:
        return Peer(fit_mixture(X, known.size, rng), size=known.size)
    sizes = [size for size in MIXTURE_SIZES if size <= len(X) * (1 - 1 / N_FOLDS) - 1]

    def scores(fitted: Spins, held_out: Spins) -> list[float]:
        return [fit_mixture(fitted, size, rng).score(held_out) for size in sizes]

    best = sizes[chosen(X, rng, scores)]
    return Peer(fit_mixture(X, best, rng), size=best)


class Couplings(NamedTuple):
    """Field on spin i: Σ_j J_ij s_j + b_i."""

    J: Floats
    b: Floats

    def score(self, X: Spins) -> float:
        """Return the mean log pseudo-likelihood per observed entry."""
        return ising_pseudo_likelihood(X, self.J, self.b)

    def fill(self, X: Spins, seed: int) -> Floats:
        """Average over the missing entries as our own models do."""
        law = CouplingConditionals(self.J.astype(np.float32), self.b.astype(np.float32))
        return entry_probabilities(X.astype(np.float32), law, seed=seed)


class SymmetricLoss(PenalisedLoss):
    """The same loss on symmetric couplings: its gradient is that of J_ij = J_ji as one number."""

    def __call__(self, w: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient at ``w``, symmetric if ``w`` is."""
        value, gradient = super().__call__(w)
        G = gradient.reshape(self.shape)
        n_spins = self.shape[1]
        G[:n_spins] = (G[:n_spins] + G[:n_spins].T) / 2
        return value, G.ravel()


def couplings_path(
    X: Spins, loss: type[PenalisedLoss], regularizations: tuple[float, ...]
) -> Iterator[Couplings]:
    """Yield the couplings for each λ, from large to small, each started at the last."""
    objective = loss(X.astype(np.float32), True, regularizations[0])
    weights: Floats | None = None
    for value in regularizations:
        objective.regularization = value
        weights = minimise(objective, weights, TOLERANCE).weights
        yield Couplings(weights[:-1].T, weights[-1])


def path_scores(fitted: Spins, held_out: Spins, loss: type[PenalisedLoss]) -> list[float]:
    """Return the held-out score for each λ, -inf for those behind two that did not improve."""
    scores: list[float] = []
    for one in couplings_path(fitted, loss, REGULARIZATIONS):
        scores.append(one.score(held_out))
        if len(scores) - 1 - int(np.argmax(scores)) >= PATIENCE:
            break
    return scores + [-np.inf] * (len(REGULARIZATIONS) - len(scores))


def _pairwise(X: Spins, seed: int, loss: type[PenalisedLoss], known: Choice | None) -> Peer:
    """Choose λ inside X, then fit all of it; λ is per sample, as in the objective."""
    if known is not None and known.regularization in REGULARIZATIONS:
        best = REGULARIZATIONS.index(known.regularization)
    else:
        best = chosen(X, np.random.default_rng(seed), partial(path_scores, loss=loss))
    *_, last = couplings_path(X, loss, REGULARIZATIONS[: best + 1])
    return Peer(last, regularization=REGULARIZATIONS[best])


def pairwise(X: Spins, seed: int, known: Choice | None = None) -> Peer:
    """Fit a pairwise Ising model: symmetric couplings, one pseudo-likelihood."""
    return _pairwise(X, seed, SymmetricLoss, known)


def regressions(X: Spins, seed: int, known: Choice | None = None) -> Peer:
    """Fit a logistic regression for each spin, couplings not symmetric: no longer one model."""
    return _pairwise(X, seed, PenalisedLoss, known)


def chosen(X: Spins, rng: np.random.Generator, scores: Scores) -> int:
    """Return which candidate has the best mean score over the inner splits of X."""
    totals = [scores(X[fitted], X[held_out]) for fitted, held_out in inner_splits(len(X), rng)]
    return int(np.argmax(np.mean(totals, axis=0)))


def inner_splits(n_samples: int, rng: np.random.Generator) -> list[tuple[Rows, Rows]]:
    """Return rows to fit and rows to choose on: five folds of few samples, one of many."""
    order = rng.permutation(n_samples)
    folds = np.array_split(order, N_FOLDS)
    used = folds if n_samples < FEW else folds[:1]
    return [(np.setdiff1d(order, fold), fold) for fold in used]


PEERS: dict[str, Callable[..., Peer]] = {
    "site means": lambda X, seed, known=None: Peer(site_means(X)),
    "mixture": mixture,
    "pairwise": pairwise,
    "regressions": regressions,
}

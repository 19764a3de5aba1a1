"""Straightforward NumPy versions of what the package does: what it is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap.published.starts import random_students

FloatArray = NDArray[np.floating[Any]]


def numpy_glauber(
    patterns: NDArray[np.int8],
    start: NDArray[np.int8],
    beta: float,
    n_sweeps: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Run sequential Glauber, vectorised over chains, with rank-P overlaps."""
    zeta = np.ascontiguousarray(patterns.T, dtype=np.float64)  # (N, P)
    n_spins, n_patterns = zeta.shape
    s = np.ascontiguousarray(start.T, dtype=np.float64)  # (N, chains): a site is contiguous
    overlaps = s.T @ zeta
    for _ in range(n_sweeps):
        uniform = rng.random(s.shape)
        for i in range(n_spins):
            field = (overlaps @ zeta[i] - n_patterns * s[i]) / n_spins
            new = np.where(uniform[i] < 1 / (1 + np.exp(-2 * beta * field)), 1.0, -1.0)
            overlaps += np.outer(new - s[i], zeta[i])
            s[i] = new
    return s.T


def dense_paper(
    X: NDArray[np.int8], beta: float, n_patterns: int, n_students: int, rng: np.random.Generator
) -> FloatArray:
    """Run the published algorithm with a dense float64 J; same starts, same rules."""
    S = X.astype(np.float64)
    n_samples, n_spins = S.shape
    alpha = n_samples / n_spins
    J = S.T @ S / n_spins
    found = []
    for _ in range(n_patterns):
        m = random_students(n_students, n_spins, rng).astype(np.float64)
        for _ in range(200):
            q = np.mean(m**2, axis=1, keepdims=True)
            new = np.tanh(beta * m @ J - alpha * beta / (1 - beta * (1 - q)) * m)
            change = np.mean(np.abs(new - m), axis=1)
            m = new
            if np.all(change < 1e-3):
                break
        score = np.where(change < 1e-3, np.sum((m @ S.T) ** 2, axis=1), -np.inf)
        best = m[np.argmax(score)]
        J -= n_samples / n_patterns / n_spins * np.outer(best, best)
        found.append(best)
    return np.array(found)


class NumpyPCD:
    """PCD of a Gaussian RBM in float32 NumPy: two products and the random numbers a step."""

    def __init__(
        self, X: NDArray[np.int8], n_hidden: int, n_chains: int, rate: float, seed: int
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.X = X.astype(np.float32)
        self.rate = np.float32(rate)
        n_spins = X.shape[1]
        scale = np.float32(0.03 / np.sqrt(n_spins))
        self.W = scale * self.rng.standard_normal((n_hidden, n_spins), dtype=np.float32)
        self.chains = np.sign(self.rng.random((n_chains, n_spins), dtype=np.float32) - 0.5)

    def update(self, batch_size: int, n_steps: int) -> None:
        """Make one update on a random mini-batch."""
        W, rng, s = self.W, self.rng, self.chains
        for _ in range(n_steps):
            x = s @ W.T
            x += rng.standard_normal(x.shape, dtype=np.float32)
            odds = np.exp(-2 * (x @ W))
            s = np.where(rng.random(s.shape, dtype=np.float32) * (1 + odds) < 1, 1, -1)
            s = s.astype(np.float32)
        data = self.X[rng.permutation(len(self.X))[:batch_size]]
        up = (data @ W.T).T @ data / np.float32(len(data))
        down = (s @ W.T).T @ s / np.float32(len(s))
        self.chains = s
        self.W = W + self.rate * (up - down)

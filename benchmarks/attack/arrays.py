"""Fits of random and degenerate matrices: each returns a sound model, or says what is wrong.

Half of them are told a number of patterns, which the data need not have; some have weights.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dualtap as dt
from dualtap.fitted.checks import independent_score

Generator = np.random.Generator
GOOD = ("sound", "sound given P", "less likely than with a pattern fewer", "refused")
"""Outcomes that break no promise. The third is not promised, and counted apart."""
_REFUSED = ("no observed entry", "sample_weight is zero for all samples")
_ALIKE = 0.95
"""|cosine| above which two patterns are the same."""
_BELOW = 0.02
"""Nats per spin that a model may be less likely than independent spins with the same means."""
_LESS_LIKELY = 0.01
"""Nats per spin that count as less likely than with a pattern fewer."""
_LARGEST = 20.0
"""Largest field, g n/N of a pattern with n entries or b of a spin: ten times its usual prior."""


def matrix(seed: int) -> NDArray[Any]:
    """Return a matrix of spins: random, structured or degenerate, complete or with gaps."""
    rng = np.random.default_rng(seed)
    n_samples, n_spins = int(rng.integers(1, 24)), int(rng.integers(2, 16))
    makers = (_coins, _biased, _teacher, _repeated, _one_hot, _constant, _twice, _few_signs)
    X = makers[int(rng.integers(len(makers)))](rng, n_samples, n_spins).astype(float)
    gaps = rng.choice([0.0, 0.0, 0.1, 0.6])
    X[rng.random(X.shape) < gaps] = np.nan
    if rng.random() < 0.2:
        X[rng.random(len(X)) < 0.3] = np.nan
    if rng.random() < 0.2:
        X[:, rng.random(X.shape[1]) < 0.3] = np.nan
    return (X + 1) / 2 if rng.random() < 0.3 else X


def _coins(rng: Generator, n_samples: int, n_spins: int) -> NDArray[Any]:
    return rng.choice([-1, 1], size=(n_samples, n_spins))


def _biased(rng: Generator, n_samples: int, n_spins: int) -> NDArray[Any]:
    return np.where(rng.random((n_samples, n_spins)) < rng.random(n_spins), 1, -1)


def _teacher(rng: Generator, n_samples: int, n_spins: int) -> NDArray[Any]:
    beta, n_patterns = float(rng.uniform(0.1, 4)), int(rng.integers(1, 4))
    teacher = dt.HopfieldModel.random(n_spins, n_patterns, beta, random_state=rng)
    return teacher.sample(n_samples, n_sweeps=20, random_state=rng)


def _repeated(rng: Generator, n_samples: int, n_spins: int) -> NDArray[Any]:
    rows = _coins(rng, max(1, n_samples // 5), n_spins)
    return rows[rng.integers(len(rows), size=n_samples)]


def _one_hot(rng: Generator, n_samples: int, n_spins: int) -> NDArray[Any]:
    levels = max(2, n_spins // 4)
    chosen = rng.integers(levels, size=(n_samples, max(1, n_spins // levels)))
    hot = chosen[:, :, None] == np.arange(levels)
    return np.where(hot, 1, -1).reshape(n_samples, -1)


def _constant(rng: Generator, n_samples: int, n_spins: int) -> NDArray[Any]:
    X = _coins(rng, n_samples, n_spins)
    X[:, rng.random(n_spins) < 0.7] = 1
    return X


def _twice(rng: Generator, n_samples: int, n_spins: int) -> NDArray[Any]:
    half = _coins(rng, n_samples, max(1, n_spins // 2))
    return np.hstack([half, half])


def _few_signs(rng: Generator, n_samples: int, n_spins: int) -> NDArray[Any]:
    X = np.ones((n_samples, n_spins))
    X.flat[rng.integers(X.size, size=int(rng.integers(0, 3)))] = -1
    return X


def attempt(seed: int) -> str:
    """Fit one matrix and use the model; return what came of it, one of ``GOOD``, or raise.

    Parameters
    ----------
    seed : int
    """
    X, rng = matrix(seed), np.random.default_rng([seed, 1])
    n_patterns = None if rng.random() < 0.5 else int(rng.integers(1, 9))
    weights = rng.integers(0, 4, len(X)) if rng.random() < 0.15 else None
    model: Any = dt.HopfieldPatterns(n_patterns, random_state=0)
    if seed % 10 == 0:
        model = dt.DualTAP(n_patterns or 2, 2.0, max_iter=30, random_state=0)
    elif seed % 10 == 1:
        model = dt.HopfieldRBM(3, max_updates=10, batch_size=16, n_chains=8, random_state=0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, sample_weight=weights)
            used = model.score(X), *model.sample(2, random_state=0).ravel(), model.summary()
            if not isinstance(model, dt.HopfieldPatterns):
                fewer = None
            elif n_patterns in (None, 1):
                fewer = model
            else:
                fewer = dt.HopfieldPatterns(n_patterns - 1, random_state=0)
                fewer.fit(X, sample_weight=weights)
    except ValueError as error:
        if any(words in str(error) for words in _REFUSED):
            return "refused"
        raise
    if not np.isfinite(used[0]) or not set(used[1:-1]) <= {-1, 1}:
        raise AssertionError(f"the model scores {used[0]}, or draws no spins")
    if fewer is None:
        return "sound"
    seen = X if weights is None else np.repeat(X, weights, axis=0)
    _check(model, seen)
    if n_patterns is None:
        return "sound"
    falls = model.n_patterns_ > fewer.n_patterns_ and (
        model.score(seen) < fewer.score(seen) - _LESS_LIKELY
    )
    return "less likely than with a pattern fewer" if falls else "sound given P"


def _check(model: dt.HopfieldPatterns, X: NDArray[Any]) -> None:
    """Raise if a pattern comes twice, strengths run away, or independent spins are likelier.

    More is asked than of every fit by :mod:`dualtap.fitted.checks`, and of a given number of
    patterns, too, which need not describe the data well.
    """
    Z = model.patterns_ / np.linalg.norm(model.patterns_, axis=1, keepdims=True)
    alike = np.abs(Z @ Z.T - np.eye(len(Z))).max(initial=0)
    if alike > _ALIKE:
        raise AssertionError(f"two of {len(Z)} patterns have the |cosine| {alike:.2f}")
    largest = np.abs(model.strengths_) * np.count_nonzero(Z, axis=1) / Z.shape[1]
    if max(*largest, *np.abs(model.fields_)) > _LARGEST:
        raise AssertionError(f"fields of patterns {largest}, and {model.fields_} beside them")
    score = model.score(X)
    independent = independent_score(dt.as_spins(X).values, model.means_)
    if score < independent - _BELOW:
        raise AssertionError(f"{len(Z)} patterns score {score:.3f}, the means {independent:.3f}")

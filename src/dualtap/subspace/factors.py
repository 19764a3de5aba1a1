r"""Logistic factor analysis: the linear space behind the data, whatever the phase.

Given the overlaps :math:`x_a` of sample a with the patterns (times β), its spins are independent:
:math:`P(s_i | x) \propto e^{s_i \theta_i}`, :math:`\theta_i = x_a \cdot \zeta_i`. This holds
in every phase; only the distribution of x changes. Here the patterns are any real vectors V, and
x is Gaussian with a covariance learned from the data. Singular vectors span the same space as
long as θ is small; where it is not (samples deep in a state), tanh bends the space and this
straightens it.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.spins.weights import weighted

F64 = NDArray[np.float64]
_DEEPEST = 0.98  # size of tanh θ beyond which it says nothing of θ
_NEAR_ZERO = np.float32(1e-4)
_FLOOR = 1e-6  # of variances, relative to the largest


class Factors(NamedTuple):
    """A factor model of the samples."""

    V: F32
    """Vectors over sites, shape (k, n_spins)."""
    X: F32
    """Posterior means of the coefficients x, shape (n_samples, k)."""
    prior: F64
    """Covariance of x over the samples, shape (k, k)."""


class _Statistics(NamedTuple):
    """What a block of samples contributes to the next step."""

    XX: F64
    posterior: F64
    gradient: F32
    curvature: float
    response: float


def start_factors(blocks: SampleMatrix, V: F32, products: F32 | None = None) -> Factors:
    r"""Return the model with coefficients by least squares.

    They are fitted to spins, which are tanh θ on average, and scaled so that θ has the size that
    :math:`\tanh \theta` of the size r of the fit belongs to: by :math:`\mathrm{arctanh}(r) / r`.

    Parameters
    ----------
    blocks : SampleMatrix
    V : array of shape (k, n_spins)
    products : array of shape (n_samples, k), optional
        S Vᵀ, if it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.spins.matrix import blocks_of
    >>> from dualtap.subspace.factors import start_factors
    >>> S = np.array([[1, 1, -1, -1], [-1, -1, 1, -1]])
    >>> start_factors(blocks_of(as_spins(S)), S[:1].astype(np.float32)).X.ravel().round(2)
    array([ 2.34, -0.55], dtype=float32)
    """
    K = (V @ V.T).astype(np.float64)
    K += 1e-6 * max(np.trace(K), 1e-6) / len(V) * np.eye(len(V))
    share = (blocks.n_observed / blocks.n_spins)[:, None]
    SV = blocks.dot(V) if products is None else products
    fit = np.linalg.solve(K, SV.T.astype(np.float64)).T / share
    r = np.sqrt(np.einsum("ak,ak->a", fit @ K, fit) / blocks.n_spins)
    r = np.clip(r, 1e-3, _DEEPEST)
    X = (fit * (np.arctanh(r) / r)[:, None]).astype(np.float32)
    prior = (weighted(X, blocks.weights).T @ X / blocks.total_weight).astype(np.float64)
    return Factors(V, X, prior)


def iterate(blocks: SampleMatrix, factors: Factors, n_steps: int, *, n_fixed: int = 0) -> Factors:
    r"""Improve coefficients, vectors and prior in turn, ``n_steps`` times.

    x takes a Newton step with the curvature :math:`\langle\tanh\theta/\theta\rangle` of the
    quadratic bound on log cosh, which cannot overshoot; V likewise, with the posterior
    covariance of x counted in, so that weak directions do not fit noise.

    Parameters
    ----------
    blocks : SampleMatrix
    factors : Factors
    n_steps : int
    n_fixed : int
        Leading rows of V that stay as they are.

    Returns
    -------
    Factors

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.spins.matrix import blocks_of
    >>> from dualtap.subspace.factors import iterate, start_factors
    >>> teacher = HopfieldModel.random(200, 2, beta=2.0, random_state=0)
    >>> blocks = blocks_of(as_spins(teacher.sample(100, random_state=1)))
    >>> factors = start_factors(blocks, teacher.patterns.astype(np.float32))
    >>> x = iterate(blocks, factors, 5, n_fixed=2).X
    >>> bool(1.5 < abs(x).max(axis=1).mean() < 2.5)  # β times the overlap with one of the patterns
    True
    """
    for _ in range(n_steps):
        factors = _step(blocks, factors, n_fixed)
    return factors


def _step(blocks: SampleMatrix, factors: Factors, n_fixed: int) -> Factors:
    V, prior = factors.V, factors.prior
    n_samples, k = blocks.total_weight, factors.X.shape[1]
    kappa, Q, PQ = _common_axes((V @ V.T).astype(np.float64), prior)
    update = partial(_block_step, V=V, axes=(kappa, Q, PQ), complete=blocks.complete)
    X, total = blocks.map_sum(update, factors.X, blocks.weights, add=_added)
    C = (Q * (total.posterior / n_samples)) @ Q.T
    n_observed = blocks.total_observed
    curvature, response = total.curvature / n_observed, total.response / n_observed
    share = n_observed / (n_samples * blocks.n_spins)
    if n_fixed < k:
        A = share * (curvature * total.XX + n_samples * response * C)[n_fixed:, n_fixed:]
        G = total.gradient - share * n_samples * response * (C @ V)
        A += 1e-9 * np.trace(A) * np.eye(len(A))
        V = V.copy()
        V[n_fixed:] += np.linalg.solve(A, G[n_fixed:]).astype(np.float32)
    return Factors(V, X, prior=total.XX / n_samples + C)


def _added(a: _Statistics, b: _Statistics) -> _Statistics:
    sums: list[Any] = [operator.add(x, y) for x, y in zip(a, b, strict=True)]
    return _Statistics(*sums)


def _common_axes(K: F64, prior: F64) -> tuple[F64, F64, F64]:
    """Return κ, Q and ΛQ with QᵀKQ = diag(κ) and QᵀΛQ = 1, Λ the inverse of the prior."""
    variance, U = np.linalg.eigh(prior)
    root = np.sqrt(np.maximum(variance, _FLOOR * max(float(variance[-1]), _FLOOR)))
    kappa, W = np.linalg.eigh((U * root).T @ K @ (U * root))
    return np.maximum(kappa, 0), (U * root) @ W, (U / root) @ W


def _block_step(
    S: F32,
    x: F32,
    weights: F32 | None,
    *,
    V: F32,
    axes: tuple[F64, F64, F64],
    complete: bool,
) -> tuple[F32, _Statistics]:
    """Return the coefficients of a block after a step, and its statistics there."""
    kappa, Q, PQ = axes
    n = S.shape[1]
    observed = np.full(len(S), float(n)) if complete else np.square(S).sum(axis=1)
    T, curvature = _response(S, x @ V, complete)
    response = observed - np.einsum("ai,ai->a", T, T)
    step = curvature.sum(axis=1)[:, None] / n * kappa + 1
    force = (S - T) @ V.T @ Q - x @ PQ
    x = x + ((force / step) @ Q.T).astype(np.float32)
    posterior = weighted(1 / (response[:, None] / n * kappa + 1), weights).sum(axis=0)
    T, curvature = _response(S, x @ V, complete)
    R, squares = weighted(S - T, weights), np.einsum("ai,ai->a", T, T)
    return x, _Statistics(
        XX=(weighted(x, weights).T @ x).astype(np.float64),
        posterior=posterior,
        gradient=x.T @ R,
        curvature=float(weighted(curvature.sum(axis=1), weights).sum(dtype=np.float64)),
        response=float(
            weighted(observed, weights).sum() - weighted(squares, weights).sum(dtype=np.float64)
        ),
    )


def _response(S: F32, theta: F32, complete: bool) -> tuple[F32, F32]:
    """Return tanh θ and tanh θ / θ, zero where a spin is missing."""
    np.copyto(theta, _NEAR_ZERO, where=np.abs(theta) < _NEAR_ZERO)
    T: F32 = np.tanh(theta)
    ratio: F32 = T / theta
    if not complete:
        observed = S != 0
        T *= observed
        ratio *= observed
    return T, ratio

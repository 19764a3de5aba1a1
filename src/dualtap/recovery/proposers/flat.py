"""Repulsive patterns: directions in which samples vary less than noise does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf

from dualtap.recovery import calibration
from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.spins.weights import weighted
from dualtap.subspace.rotate import binary, polish, row_basis, unmixed
from dualtap.subspace.singular import SMALL
from dualtap.subspace.spectrum import Spectrum


def flattest(n_samples: float, n_spins: int) -> float:
    """Return the squared singular value below which a direction varies less than noise does.

    Below the lower edge of the law of noise, (√M - √N)², by some widths of its fluctuations.
    """
    a, b = np.sqrt(n_samples), np.sqrt(n_spins)
    width = (a - b) * abs(1 / a - 1 / b) ** (1 / 3)
    return float((a - b) ** 2 - calibration.FLAT * width)


def has_flat(blocks: SampleMatrix, whole: Spectrum) -> bool:
    """Say whether samples vary less than noise in some direction, if their Gram matrix is known.

    The noise is what the leading directions leave.
    """
    M, N, k = blocks.total_weight, blocks.n_spins, whole.n_signal
    if not blocks.knows_gram or M < 2 * N:
        return False
    noise = (whole.total - float(whole.values[:k].sum())) / (M * max(N - k, 1))
    return not is_above(blocks.gram(), noise * flattest(M, N))


def is_above(G: NDArray[np.floating[Any]], least: float) -> bool:
    """Say whether all eigenvalues of a matrix are above a number: a third of the work of them."""
    shifted = G.astype(np.float64)
    shifted[np.diag_indices(len(G))] -= least
    _, minor = dpotrf(shifted, overwrite_a=True)
    return bool(minor == 0)


def flat_directions(residual: SampleMatrix, variance: F32, Z: F32) -> F32:
    """Return directions in which residuals vary less than noise does, orthonormal rows.

    Beside those of the model's own patterns: where s has the covariance C, what is left of a spin
    given the others is proportional to C⁻¹ s, which varies least where s varies most.

    Parameters
    ----------
    residual : SampleMatrix
    variance : array of shape (n_spins,)
        Of the residuals.
    Z : array of shape (n_patterns, n_spins)
    """
    N, M = residual.n_spins, residual.total_weight
    none = np.empty((0, N), np.float32)
    if N > SMALL or M < 2 * N:
        return none
    scale = np.sqrt(variance)
    G = residual.sum(lambda s, w: weighted(s, w).T @ s, residual.weights).astype(np.float64)
    G /= np.outer(scale, scale)
    Q = row_basis(Z * scale).astype(np.float64) if len(Z) else none
    most = flattest(M, N)
    along = Q @ G
    G += Q.T @ ((along @ Q.T + M * np.eye(len(Q))) @ Q - along) - along.T @ Q
    if is_above(G, most):
        return none
    U = eigh(G, subset_by_value=(-np.inf, most), check_finite=False)[1]
    return np.ascontiguousarray(U.T[: N // calibration.DIMENSIONS]).astype(np.float32)


def flat_set(residual: SampleMatrix, variance: F32, Z: F32, rng: np.random.Generator) -> F32:
    """Return ±1 vectors for the directions that vary less than noise: repulsive patterns."""
    flat = flat_directions(residual, variance, Z)
    if not len(flat):
        return flat
    u = row_basis(flat / np.sqrt(variance))
    return polish(binary(unmixed(u, int(rng.integers(2**31)))), u)

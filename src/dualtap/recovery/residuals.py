"""What a model leaves of the samples, and whether that is more than noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dualtap.local_fields import observed_fields
from dualtap.recovery import calibration
from dualtap.recovery.derivatives import Features
from dualtap.recovery.refit import Fit
from dualtap.spins.protocol import F32, SampleMatrix
from dualtap.spins.weights import weighted
from dualtap.subspace.noise import (
    LEVEL,
    balanced,
    edge_of_unequal,
    mean_sizes,
    noise_edge,
)
from dualtap.subspace.spectrum import Spectrum, spectrum


class Residual(NamedTuple):
    """What a model leaves of the samples."""

    blocks: SampleMatrix
    variance: F32
    """Mean over the samples, shape (n_spins,)."""
    spectrum: Spectrum
    least: int = 0
    """Directions to take for signals whatever the noise edge says."""

    @property
    def n_signal(self) -> int:
        """Directions above the noise edge, no more than a share of the number of spins."""
        most = max(len(self.variance) // calibration.DIMENSIONS, 1)
        return max(min(self.spectrum.n_signal, most), min(self.least, len(self.spectrum.vectors)))

    def with_at_least(self, n: int) -> Residual:
        """Return the same with so many directions taken for signals."""
        return self._replace(least=n)


def residual_of(
    blocks: SampleMatrix, fit: Fit, rng: np.random.Generator, n_least: int = 1
) -> Residual:
    """Return what a model leaves of the samples, and its directions above the noise."""
    t = np.tanh(fit.b).astype(np.float32)
    M = blocks.total_weight
    least = min(calibration.FEWEST_EVENTS / M, 1)
    D = np.maximum(1 - np.square(t), least).astype(np.float32)
    if not len(fit.Z):
        around = blocks.minus(t) if t.any() else blocks
        return Residual(around, D, spectrum(around, rng, n_least, D if t.any() else None))
    response, Z = _response(fit), fit.Z
    residual, D = unexplained(blocks, fit)
    expected = blocks.sum(
        lambda S, w: weighted(np.square(S) - np.square(response(S)), w).sum(axis=0), blocks.weights
    )
    # What a model that lacks a pattern expects of a spin is not what the spin does.
    ratio = (D * M / np.maximum(expected, least)).astype(np.float32)
    variance = blocks.changed(lambda S: ratio * (np.square(S) - np.square(response(S))))
    left = spectrum(balanced(residual, variance), rng, n_least, n_removed=len(Z))
    return Residual(residual, D, left)


def unexplained(blocks: SampleMatrix, fit: Fit) -> tuple[SampleMatrix, F32]:
    """Return what patterns leave of the samples, and its mean square at each spin."""
    response, M = _response(fit), blocks.total_weight
    residual = blocks.changed(lambda S: S - response(S))
    total = residual.sum(lambda R, w: weighted(np.square(R), w).sum(axis=0), residual.weights)
    return residual, np.maximum(total / M, min(calibration.FEWEST_EVENTS / M, 1)).astype(np.float32)


def _response(fit: Fit) -> Callable[[F32], F32]:
    """Return what a model expects of spins given the others, 0 where they are missing."""
    Z, g, b = fit.Z, fit.g, fit.b

    def response(S: F32) -> F32:
        if S.all():
            return np.tanh(Features(S, Z).fields(g, b))
        T: F32 = np.tanh(observed_fields(S, Z, g, b))
        return T

    return response


def leaves_only_noise(blocks: SampleMatrix, fit: Fit, whole: Spectrum) -> bool:
    """Say whether a model leaves nothing but noise in the leading directions of the samples.

    A pattern that the model lacks lies in that space, as the others do. Each spin is scaled by the
    variance that its residuals show. Noise of samples that differ in size reaches further, which
    counts only where some belong to no state of the model: in weak states all patterns show in
    every sample, and one that is missing makes samples differ, too.
    """
    residual, D = unexplained(blocks, fit)
    V = (whole.vectors / np.sqrt(D)).astype(np.float32)
    y = residual.dot(V)
    largest = float(np.linalg.eigvalsh(weighted(y, blocks.weights).T @ y)[-1])
    k = len(fit.Z)
    M, N = max(blocks.total_weight - k, 1), max(blocks.n_spins - k, 1)
    centre, width = noise_edge(M, N)
    if largest < centre + LEVEL * width:
        return True
    sizes = residual.map(lambda R: (np.square(R) / D).sum(axis=1)) / N
    small, large = mean_sizes(sizes, blocks.weights)
    edge = edge_of_unequal(sizes, blocks.weights, N)
    return large > calibration.APART * small and largest < edge * (1 + LEVEL * width / centre)

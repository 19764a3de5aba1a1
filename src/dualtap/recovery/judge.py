r"""The samples on which models are compared, and what one pass over them says of a model.

The model is :math:`P(s) \propto \exp(\frac12 \sum_\mu \frac{g_\mu}N (\zeta^\mu \cdot s)^2 +
\sum_i b_i s_i)`. Its log pseudo-likelihood L is concave in strengths g and fields b; a pass gives
L, its gradient and its curvature there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.local_fields import filled, local_fields
from dualtap.recovery import calibration
from dualtap.spins import Spins
from dualtap.spins.blocks import F32

F64 = NDArray[np.float64]

_CHUNK = 2**17
"""Entries looked at together: half a megabyte of floats, which stays in the cache."""
_FEWEST_ROWS = 256
_PRODUCTS = 2**26


class Statistics(NamedTuple):
    """What one pass over the samples says of a model, in nats for all samples."""

    L: float
    """Log pseudo-likelihood, summed over all observed entries."""
    residual: F64
    """dL/db, shape (n_spins,)."""
    variance: F64
    """-d²L/db², shape (n_spins,)."""
    slope: F64
    """dL/dg, shape (n_patterns,)."""


class Curvature(NamedTuple):
    """Second derivatives of L, all from the same rows, in nats for all samples."""

    H: F64
    """-d²L/dg², shape (n_patterns, n_patterns)."""
    mixed: F64
    """-d²L/dg db, shape (n_patterns, n_spins)."""
    variance: F64
    """-d²L/db², shape (n_spins,)."""

    def around(self, A: F64) -> Curvature:
        """Return the same at fixed mean fields b + g A in place of fixed fields b."""
        cross = self.mixed @ A.T
        H = self.H - cross - cross.T + (A * self.variance) @ A.T
        return self._replace(H=H, mixed=self.mixed - A * self.variance)

    def without_fields(self, v: float) -> F64:
        """Return that of the strengths, fields of prior variance v following them."""
        result: F64 = self.H - (self.mixed / (self.variance + 1 / v)) @ self.mixed.T
        return result


class Common(NamedTuple):
    """The same for patterns of one strength, without fields."""

    L: float
    slope: float
    curvature: float
    residual: F64
    variance: F64


class Judge:
    """Samples as bytes, at most as many as judging needs.

    Parameters
    ----------
    spins : Spins
        Without empty rows.

    Attributes
    ----------
    rows : array of shape (n_rows, n_spins), int8
        Evenly spread over the samples.
    weight : float
        Samples that a row stands for.
    n_samples, n_spins : int
    n_seen : int
        Directions above the noise edge, set by whoever has looked.
    mean : array of shape (n_spins,)
        Of every spin over the observed rows, as if each had been seen up and down half a time more.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.recovery.judge import Judge
    >>> judge = Judge(as_spins(np.ones((3, 4))))
    >>> none = np.empty((0, 4), np.float32)
    >>> round(judge.statistics(none, np.empty(0), np.zeros(4)).L / 12, 4)
    -0.6931
    """

    def __init__(self, spins: Spins) -> None:
        n_rows = max(calibration.JUDGED_ENTRIES // spins.n_spins, _FEWEST_ROWS)
        self.rows = spins.some(n_rows).values
        self.n_samples, self.n_spins = spins.shape
        self.weight = self.n_samples / len(self.rows)
        total = self.rows.sum(axis=0, dtype=np.float64)
        self.n_observed = np.full(self.n_spins, float(len(self.rows)))
        if not spins.complete:
            self.n_observed = np.count_nonzero(self.rows, axis=0).astype(np.float64)
        self.n_up = (self.n_observed + total) / 2
        self.mean = total / (self.n_observed + 1)
        self.n_entries = self.weight * float(self.n_observed.sum())
        self.n_seen = 0
        self._filled: F32 | None = None
        if not spins.complete:
            mean = self.mean.astype(np.float32)
            self._filled = np.where(self.rows == 0, mean, self.rows)

    def shift(self, Z: F32) -> F64:
        """Return the field that a pattern of strength 1 puts on each spin at its mean overlap."""
        result: F64 = Z * (self.mean @ Z.T / self.n_spins)[:, None]
        return result

    def fill(self, Z: F32, g: F64, b: F64) -> None:
        """Take missing spins at their means given the others, by a few steps of mean field."""
        if self._filled is None:
            return
        step = self._step
        for k in range(0, len(self.rows), step):
            self._filled[k : k + step] = filled(self.rows[k : k + step], Z, g, b, self.mean)

    @property
    def _step(self) -> int:
        return max(1, _CHUNK // self.n_spins)

    def chunks(self, most: int | None = None) -> Iterator[tuple[F32, F32 | None]]:
        """Yield blocks of rows, missing spins filled in, and which were seen (None: all).

        Parameters
        ----------
        most : int, optional
            Yield evenly spread blocks of about so many entries.
        """
        step = self._step
        n_chunks = -(-len(self.rows) // step)
        every = 1 if most is None else max(1, self.rows.size // max(most, step * self.n_spins))
        for k in range(0, n_chunks, every):
            rows = slice(k * step, (k + 1) * step)
            if self._filled is None:
                yield self.rows[rows].astype(np.float32), None
            else:
                yield self._filled[rows], np.abs(self.rows[rows]).astype(np.float32)

    def null_fields(self) -> F64:
        """Return the fields that explain the mean of every spin."""
        result: F64 = np.arctanh(self.mean)
        return result

    def statistics(self, Z: F32, g: F64, b: F64) -> Statistics:
        """Return what a pass over the rows says of patterns, strengths and fields."""
        P, N = Z.shape
        L, residual, variance = 0.0, np.zeros(N), np.zeros(N)
        slope = np.zeros(P)
        for S, seen in self.chunks():
            features = Features(S, Z)
            part, T = log_likelihood(S, features.fields(g, b), seen)
            L += part
            R, W = _residuals(S, T, seen)
            residual += R.sum(axis=0)
            variance += W.sum(axis=0)
            if P:
                slope += features.slope(R)
        w = self.weight
        return Statistics(w * L, w * residual, w * variance, w * slope)

    def log_likelihood(self, Z: F32, g: F64, b: F64) -> float:
        """Return L alone."""
        total = 0.0
        for S, seen in self.chunks():
            total += log_likelihood(S, Features(S, Z).fields(g, b), seen)[0]
        return self.weight * total

    def common(self, Z: F32, beta: float, b: F64, most: int | None = None) -> Common:
        """Return what a pass says of one strength for all patterns."""
        one, N = np.ones(len(Z)), self.n_spins
        sums, sites, n_rows = np.zeros(3), np.zeros((2, N)), 0
        for S, seen in self.chunks(most):
            f = Features(S, Z).fields(one, np.zeros(N))
            L, T = log_likelihood(S, np.float32(beta) * f + b.astype(np.float32), seen)
            R, W = _residuals(S, T, seen)
            sites += R.sum(axis=0), W.sum(axis=0)
            R *= f
            W *= f
            W *= f
            sums += L, R.sum(dtype=np.float64), W.sum(dtype=np.float64)
            n_rows += len(S)
        L, slope, curvature = (sums * (self.n_samples / n_rows)).tolist()
        return Common(L, slope, curvature, *(sites * (self.n_samples / n_rows)))

    def residuals(self, Z: F32, g: F64, b: F64) -> Iterator[tuple[F32, F32, F32]]:
        """Yield samples, what the model leaves of them, and the variance of that, in blocks."""
        for S, seen in self.chunks():
            yield S, *_residuals(S, np.tanh(Features(S, Z).fields(g, b)), seen)

    def curvature(self, Z: F32, g: F64, b: F64) -> Curvature:
        """Return the second derivatives, by as many rows as are needed."""
        P, N = Z.shape
        H, mixed, variance, n_rows = np.zeros((P, P)), np.zeros((P, N)), np.zeros(N), 0
        most = max(calibration.CURVATURE_ENTRIES, _PRODUCTS // max(P, 1) ** 2)
        every = max(1, self.rows.size // most)
        for S, seen in self.chunks():
            S, seen = S[::every], None if seen is None else seen[::every]
            features = Features(S, Z)
            W = _residuals(S, np.tanh(features.fields(g, b)), seen)[1]
            H += features.curvature(W)
            mixed += features.mixed(W)
            variance += W.sum(axis=0)
            n_rows += len(S)
        w = self.n_samples / max(n_rows, 1)
        return Curvature(w * H, w * mixed, w * variance)


class Features:
    r"""The derivatives :math:`\partial h_{ai} / \partial g_\mu` of the fields on a block of spins.

    :math:`x_{ai}^\mu = \zeta_i^\mu (F_{a\mu} - \zeta_i^\mu s_{ai} / N)` with
    :math:`F = S \zeta^\top / N`.
    """

    def __init__(self, S: F32, Z: F32) -> None:
        self.S, self.Z, self.Z2 = S, Z, np.square(Z)
        self.N = np.float32(S.shape[1])
        self.O: F32 = S @ Z.T
        self.F: F32 = self.O / self.N

    def fields(self, g: F64, b: F64) -> F32:
        """Return the leave-one-out fields h."""
        return local_fields(self.S, self.Z, g, b, overlaps=self.O)

    def slope(self, R: F32) -> F64:
        """Return dL/dg."""
        total = np.einsum("ap,ap->p", self.F, R @ self.Z.T, dtype=np.float64)
        own = (R * self.S).sum(axis=0, dtype=np.float64) @ self.Z2.T / self.N
        result: F64 = total - own
        return result

    def mixed(self, W: F32) -> F32:
        """Return -d²L/dg db."""
        result: F32 = self.Z * (self.F.T @ W)
        result -= self.Z2 * ((W * self.S).sum(axis=0) / self.N)
        return result

    def own_curvature(self, W: F32) -> F64:
        """Return the diagonal of -d²L/dg²."""
        along = W @ self.Z2.T
        squares = (np.square(self.F) + 1 / self.N**2) * along
        squares -= 2 * self.F / self.N * ((W * self.S) @ self.Z.T)
        result: F64 = squares.sum(axis=0, dtype=np.float64)
        return result

    def curvature(self, W: F32) -> F64:
        """Return -d²L/dg²."""
        Z, Z2, F = self.Z, self.Z2, self.F
        H = np.zeros((len(Z), len(Z)))
        for mu in range(len(Z)):
            products = (F[:, mu:] * F[:, mu : mu + 1]).T @ W
            products *= Z[mu:]
            H[mu, mu:] = H[mu:, mu] = products @ Z[mu]
        cross = (Z * (F.T @ (W * self.S))) @ Z2.T / self.N
        H -= cross + cross.T
        H += (Z2 * W.sum(axis=0)) @ Z2.T / self.N**2
        return H


def log_likelihood(S: F32, h: F32, seen: F32 | None) -> tuple[float, F32]:
    """Return Σ log σ(2 s h) over the observed entries, and tanh h."""
    size = np.abs(h)
    e = np.exp(-2 * size)
    T: F32 = np.copysign((1 - e) / (1 + e), h)
    cost = np.log(1 + e)
    cost += size
    cost -= S * h
    if seen is not None:
        cost *= seen
    return -float(cost.sum(dtype=np.float64)), T


def _residuals(S: F32, T: F32, seen: F32 | None) -> tuple[F32, F32]:
    R, W = S - T, 1 - np.square(T)
    if seen is not None:
        R *= seen
        W *= seen
    return R, W

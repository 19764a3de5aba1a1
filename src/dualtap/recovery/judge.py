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

from dualtap.local_fields import filled, second_half
from dualtap.recovery import calibration
from dualtap.recovery.derivatives import F64, curvature_of_pairs
from dualtap.spins import DenseSpins, Spins
from dualtap.spins.protocol import F32
from dualtap.spins.weights import weighted

_CHUNK = 2**17
"""Entries looked at together: half a megabyte of floats, which stays in the cache."""
_FEWEST_ROWS = 256
_PRODUCTS = 2**24
_ROWS_PER_PATTERN = 4  # from fewer, a pattern of few samples seems to explain nothing


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


class OneStrength:
    """Some of the samples, as the strength that patterns have in common sees them.

    Parameters
    ----------
    x : array of shape (n_rows, n_spins)
        Fields that patterns of strength 1 put on the spins, times the spins; 0 for a missing one.
    weight : float
        Samples for each one that is looked at.
    weights : array of shape (n_rows,)
        Samples looked at that each row stands for.
    """

    def __init__(self, x: F32, weight: float, weights: F32) -> None:
        self.x, self.weight, self.weights = x, weight, weights

    def derivatives(self, beta: float) -> tuple[float, float]:
        """Return dL/dβ and -d²L/dβ² of all samples, without fields."""
        from dualtap._kernels.fields import along_one_strength

        slope, curvature = along_one_strength(self.x, self.weights, np.float32(beta))
        return self.weight * slope, self.weight * curvature


class Judge:
    """Samples as bytes, at most as many as judging needs.

    Parameters
    ----------
    spins : Spins
        Without empty rows.
    n_entries : int, optional
        Entries to look at, at most; as many as the search needs when not given.

    Attributes
    ----------
    rows : array of shape (n_rows, n_spins), int8
        Evenly spread over the samples.
    weights : array of shape (n_rows,), float32, or None
        Samples looked at that each row stands for; None if each is one.
    n_judged : int or float
        Number of samples looked at.
    weight : float
        Samples for each one that is looked at.
    n_samples : int or float
        M, the sum of the weights of all samples.
    n_spins : int
    n_seen : int
        Directions above the noise edge, set by the search.
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

    def __init__(self, spins: Spins, n_entries: int | None = None) -> None:
        some = spins.subsample(n_entries or calibration.JUDGED_ENTRIES, least=_FEWEST_ROWS)
        self.rows = np.ascontiguousarray(some.values)
        self.weights = None if some.weights is None else some.weights.astype(np.float32)
        self.n_samples, self.n_spins = spins.total_weight, spins.n_spins
        self.n_judged = some.total_weight
        self.weight = self.n_samples / self.n_judged
        total, self.n_observed = _counts(some, spins.complete)
        self.n_up = (self.n_observed + total) / 2
        self.mean = total / (self.n_observed + 1)
        self.n_entries = self.weight * float(self.n_observed.sum())
        self.n_seen = 0
        self._scored = self.rows
        self._counts = np.ones(len(self.rows), np.float32)
        if self.weights is not None:
            self._counts = self.weights
        self._gaps: _Gaps | None = None
        if not spins.complete:
            self._gaps = _Gaps(self.rows, self.mean)
            self._scored = self._gaps.scored
            self._counts = self._counts[self._gaps.source]
        self._patterns = np.empty((0, self.n_spins), np.float32)
        self._overlaps = np.empty((len(self._scored), 0), np.float32)
        self._known: set[int] = set()  # first rows of the blocks whose overlaps are there
        self._memory = np.empty((2, self._step, self.n_spins), np.float32)

    def as_spins(self) -> DenseSpins:
        """Return the rows with their weights as samples of their own."""
        weights = None if self.weights is None else self.weights.astype(np.float64)
        return DenseSpins(self.rows, "-1/+1").weighted(weights)

    def shift(self, Z: F32) -> F64:
        """Return the field that a pattern of strength 1 puts on each spin at its mean overlap."""
        result: F64 = Z * (self.mean @ Z.T / self.n_spins)[:, None]
        return result

    def fill(self, Z: F32, g: F64, b: F64, most: int | None = None) -> None:
        """Take missing spins at their means given the others, by a few steps of mean field.

        Parameters
        ----------
        Z, g, b : arrays
        most : int, optional
            As in :meth:`blocks`.
        """
        if self._gaps is None:
            return
        for rows in self.blocks(most):
            self._gaps.fill(rows, Z, g, b, self.mean)
            self._known.discard(rows.start)

    @property
    def _step(self) -> int:
        return min(max(1, _CHUNK // self.n_spins), len(self._scored))

    @property
    def has_gaps(self) -> bool:
        """Whether entries are missing."""
        return self._gaps is not None

    def blocks(self, most: int | None = None) -> list[slice]:
        """Return blocks of rows that are looked at together.

        Parameters
        ----------
        most : int, optional
            Return evenly spread blocks of about so many entries.
        """
        step, n = self._step, len(self._scored)
        every = 1 if most is None else max(1, self._scored.size // max(most, step * self.n_spins))
        return [slice(k, min(k + step, n)) for k in range(0, n, every * step)]

    def _spread(self, every: int) -> list[NDArray[np.int64]]:
        """Return one of so many rows of each block, as many together as a block has."""
        some = np.concatenate([np.arange(r.start, r.stop, every) for r in self.blocks()])
        return [some[k : k + self._step] for k in range(0, len(some), self._step)]

    def samples(self, rows: slice) -> F32:
        """Return some of the rows, missing spins filled in."""
        return self.rows[rows].astype(np.float32) if self._gaps is None else self._gaps.whole[rows]

    def null_fields(self) -> F64:
        """Return the fields that explain the mean of every spin."""
        result: F64 = np.arctanh(self.mean)
        return result

    def _overlaps_with(self, Z: F32, blocks: list[slice]) -> F32:
        """Return the products of rows with patterns, which are kept until either changes."""
        if not np.array_equal(self._patterns, Z):
            self._patterns, self._known = Z.copy(), set()
            self._overlaps = np.empty((len(self._scored), len(Z)), np.float32)
        for rows in blocks:
            if rows.start not in self._known:
                np.dot(self.samples(rows), Z.T, out=self._overlaps[rows])
                self._known.add(rows.start)
        return self._overlaps

    def statistics(self, Z: F32, g: F64, b: F64) -> Statistics:
        """Return what a pass over the rows says of patterns, strengths and fields."""
        from dualtap._kernels.fields import statistics_of

        P, N = Z.shape
        blocks, sites = self.blocks(), _Sites(Z, g, b)
        overlaps = self._overlaps_with(Z, blocks)
        L, slope, sums = 0.0, np.zeros(P), np.zeros((3, len(sites.own)))
        for rows in blocks:
            R = sites.fields(overlaps[rows], self._memory[0])
            weights = self._counts[rows]
            L += statistics_of(self._scored[rows], R, sites.own, sites.b, weights, sums)
            slope += np.einsum("ap,ap->p", overlaps[rows], R @ Z.T, dtype=np.float64)
        residual, variance, turned = self.weight * sums.reshape(3, -1, N).sum(axis=1)
        slope = (self.weight * slope - turned @ np.square(Z).T) / N
        return Statistics(self.weight * L, residual, variance, slope)

    def log_likelihood(self, Z: F32, g: F64, b: F64) -> float:
        """Return L alone; of independent spins, which needs no pass, by their counts."""
        from dualtap._kernels.fields import log_likelihood_of

        if not len(Z):
            down = self.n_observed - self.n_up
            cost = self.n_up @ np.logaddexp(0, -2 * b) + down @ np.logaddexp(0, 2 * b)
            return -self.weight * float(cost)
        blocks, sites, total = self.blocks(), _Sites(Z, g, b), 0.0
        overlaps = self._overlaps_with(Z, blocks)
        for rows in blocks:
            f = sites.fields(overlaps[rows], self._memory[0])
            weights = self._counts[rows]
            total += log_likelihood_of(self._scored[rows], f, sites.own, sites.b, weights)
        return self.weight * total

    def one_strength(self, Z: F32, most: int | None = None) -> OneStrength:
        """Return what one strength for all patterns needs to know of the samples."""
        from dualtap._kernels.fields import align

        blocks, sites = self.blocks(most), _Sites(Z, np.ones(len(Z)), np.zeros(self.n_spins))
        overlaps = self._overlaps_with(Z, blocks)
        x = np.empty((sum(rows.stop - rows.start for rows in blocks), self.n_spins), np.float32)
        n, n_entries = 0, 0.0
        for rows in blocks:
            f = sites.fields(overlaps[rows], x[n:])
            align(self._scored[rows].ravel(), f.ravel(), sites.own)
            n, n_entries = n + len(f), n_entries + self._n_entries(rows)
        weights = np.concatenate([self._counts[rows] for rows in blocks])
        return OneStrength(x, self.n_entries / n_entries, weights)

    def residuals(self, Z: F32, g: F64, b: F64) -> Iterator[tuple[F32, F32, F32, F32 | None]]:
        """Yield samples, what the model leaves of them, the variance of that, and weights.

        Residuals and variances are times the weights, for sums of them. The memory of a block is
        used again for the next one.
        """
        from dualtap._kernels.fields import residuals_of

        blocks, sites = self.blocks(), _Sites(Z, g, b)
        overlaps = self._overlaps_with(Z, blocks)
        for rows in blocks:
            R = sites.fields(overlaps[rows], self._memory[0])
            W = self._memory[1][: len(R)]
            residuals_of(self._scored[rows].ravel(), R.ravel(), sites.own, sites.b, W.ravel())
            w = None if self.weights is None else self._counts[rows]
            yield self.samples(rows), weighted(R, w), weighted(W, w), w

    def _n_entries(self, rows: slice | NDArray[np.int64]) -> float:
        """Return the number of entries of some rows, each as often as its row counts."""
        counts = self._counts[rows].astype(np.float64)
        return float(counts @ np.count_nonzero(self._scored[rows], axis=1))

    def curvature(self, Z: F32, g: F64, b: F64) -> Curvature:
        """Return the second derivatives, by as many rows as are needed."""
        from dualtap._kernels.fields import variances_of

        (P, N), Z2, blocks, sites = Z.shape, np.square(Z), self.blocks(), _Sites(Z, g, b)
        overlaps = self._overlaps_with(Z, blocks)
        fewest = max(calibration.CURVATURE_ENTRIES, _ROWS_PER_PATTERN * P * N)
        most = max(fewest, _PRODUCTS // max(P, 1) ** 2)
        every = max(1, self._scored.size // most)
        H, sums, along = np.zeros((P, P)), np.zeros((2, N)), np.zeros((2, P, N))
        n_entries = 0.0
        for rows in blocks if every == 1 else self._spread(every):
            W = sites.fields(overlaps[rows], self._memory[0])
            signed = self._memory[1][: len(W)]
            variances_of(self._scored[rows].ravel(), W.ravel(), sites.own, sites.b, signed.ravel())
            w = None if self.weights is None else self._counts[rows]
            W, signed = weighted(W, w), weighted(signed, w)
            F = overlaps[rows] / np.float32(N)
            H += curvature_of_pairs(F, W, Z)
            sums += W.sum(axis=0), signed.sum(axis=0)
            along += F.T @ W, F.T @ signed
            n_entries += self._n_entries(rows)
        cross = (Z * along[1]) @ Z2.T / N
        H += (Z2 * sums[0]) @ Z2.T / N**2 - cross - cross.T
        scale = self.n_entries / n_entries
        mixed = Z * along[0] - Z2 * sums[1] / N
        return Curvature(scale * H, scale * mixed, scale * sums[0])


class _Gaps:
    """Rows with gaps, each twice: one half of its entries, and gaps filled given the other half.

    Filled given all entries, gaps would explain those that they were filled by.

    Parameters
    ----------
    rows : array of shape (n_rows, n_spins), int8
    mean : array of shape (n_spins,)
        Where gaps start from.

    Attributes
    ----------
    source : array of shape (n_looks,)
        The row of each look at one.
    scored : array of shape (n_looks, n_spins), int8
        The entries of one half, 0 elsewhere; of a row without gaps, all.
    whole : array of shape (n_looks, n_spins), float32
        All entries of the row, and the filled ones.
    """

    def __init__(self, rows: NDArray[np.int8], mean: F64) -> None:
        second = second_half(rows)
        twice = second.any(axis=1)
        self.source = np.repeat(np.arange(len(rows)), 1 + twice)
        half = second[self.source]
        first = np.append(True, self.source[1:] != self.source[:-1])
        half[first] = ~half[first]
        self._rows = rows[self.source]
        self.scored = np.where(half, self._rows, 0).astype(np.int8)
        self._incomplete = (self._rows == 0).any(axis=1)
        self.whole = self._rows.astype(np.float32)
        np.copyto(self.whole, mean, where=self._rows == 0, casting="same_kind")

    def fill(self, rows: slice, Z: F32, g: F64, b: F64, mean: F64) -> None:
        """Take the gaps of some rows at their means given the half that is not scored."""
        k = np.arange(rows.start, rows.stop)[self._incomplete[rows]]
        given = filled(self._rows[k] - self.scored[k], Z, g, b, mean)
        self.whole[k] = np.where(self._rows[k] == 0, given, self._rows[k])


def _counts(spins: Spins, complete: bool) -> tuple[F64, F64]:
    """Return the sum of each spin over the samples, and in how many of these it was observed."""
    rows, weights = spins.values, spins.weights
    if weights is not None:
        # Products by BLAS would need all rows as doubles.
        total, n = (np.einsum("a,ai->i", weights, values) for values in (rows, rows != 0))
        return total, n
    total = rows.sum(axis=0, dtype=np.float64)
    if complete:
        return total, np.full(spins.n_spins, float(len(rows)))
    return total, np.count_nonzero(rows, axis=0).astype(np.float64)


class _Sites:
    """What the fields on spins need to know of a model, repeated for the loops over them."""

    def __init__(self, Z: F32, g: F64, b: F64) -> None:
        from dualtap._kernels.fields import TOGETHER

        N = Z.shape[1]
        n_times = max(1, TOGETHER // N)
        self.Z, self.scale = Z, (g / N).astype(np.float32)
        self.own = np.tile(self.scale @ np.square(Z), n_times)
        self.b = np.tile(b.astype(np.float32), n_times)

    def fields(self, overlaps: F32, memory: F32) -> F32:
        """Return the fields of patterns on spins, with what each adds to its own."""
        return np.dot(overlaps * self.scale, self.Z, out=memory[: len(overlaps)])

r"""What a pattern means: the samples on its two sides, and how their spins differ.

A sample is on the + side of a pattern of n spins if its overlap with it is above
:math:`\min(2/\sqrt n, 1/2)`: beyond what independent random spins reach by chance, or three of four
spins agree. It is on the - side if the overlap is below minus that, and on neither side otherwise.
The effect of the pattern on a spin is by how much the probability of +1 differs between the sides.
A spin is left out of the overlap that puts samples on sides for it, because it would always seem to
agree with itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.spins.protocol import F32

FEWEST, CHANCE = 5, 0.1
"""Samples of a side, at least, for it to be compared with the other one, and share of those."""
HARDLY_ANY = 0.01
"""Share of the samples nearest to a pattern below which hardly any sample is."""
_DEVIATIONS, _MOST_AGREE = 2.0, 0.5
_ENTRIES = 2**21


class Profiles(NamedTuple):
    """The two sides of every pattern."""

    share: F32
    """Share of the samples on the + and on the - side, shape (n_patterns, 2)."""
    up: F32
    """Probability of +1 of every spin on the + and on the - side, shape (n_patterns, 2, n_spins).

    If fewer than five samples are on one side, or a tenth of those on the other, that of all
    samples which are not on the other side. NaN where nothing is known.
    """

    @property
    def effect(self) -> F32:
        """Difference between the sides, shape (n_patterns, n_spins); 0 where it is not known."""
        result: F32 = np.nan_to_num(self.up[:, 0] - self.up[:, 1])
        return result

    def strongest(self, k: int, pattern: NDArray[np.int8], n_most: int) -> NDArray[np.int64]:
        """Return the spins of pattern k, those on which it has the largest effect first."""
        spins = np.flatnonzero(pattern)
        order = np.argsort(-np.abs(self.effect[k, spins]), kind="stable")
        return spins[order[:n_most]]


def n_profiled(n_spins: int) -> int:
    """Return how many samples profiles are taken from at most."""
    return max(_ENTRIES // n_spins, 256)


def profiles(rows: NDArray[np.int8], patterns: NDArray[np.int8]) -> Profiles:
    """Return the two sides of every pattern.

    Parameters
    ----------
    rows : array of shape (n_rows, n_spins)
        Samples: ±1, or 0 for a missing entry.
    patterns : array of shape (n_patterns, n_spins)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel
    >>> from dualtap.fitted.meaning import profiles
    >>> teacher = HopfieldModel.random(60, 1, beta=1.5, random_state=0)
    >>> X = teacher.sample(400, random_state=1)
    >>> sides = profiles(X, teacher.patterns)
    >>> bool((np.sign(sides.effect) == teacher.patterns).all())
    True
    >>> sides.share.shape, sides.up.shape
    ((1, 2), (1, 2, 60))
    """
    S, Z = rows.astype(np.float32), patterns.astype(np.float32)
    total, n = S @ Z.T, np.abs(S) @ np.abs(Z).T
    share = np.stack([_beyond(sign * total, n).mean(axis=0) for sign in (1, -1)], axis=1)
    counts = np.stack([_counts(S, Z, sign, total, n) for sign in (1, -1)], axis=1)
    return Profiles(share.astype(np.float32), _up(counts, S))


def _beyond(total: F32, n: F32) -> F32:
    """Return 1 for samples whose overlap, a sum over n spins, puts them on a side, else 0."""
    threshold = np.minimum(_DEVIATIONS * np.sqrt(n), _MOST_AGREE * n)
    there: NDArray[np.bool_] = (total >= threshold) & (n > 0)
    return there.astype(np.float32)


def _counts(S: F32, Z: F32, sign: int, total: F32, n: F32) -> F32:
    """Return samples with +1 and -1 at each spin on a side, shape (n_patterns, 2, n_spins).

    A spin is taken out of the overlap that puts samples on a side.
    """
    with_pattern, against = (
        _beyond(sign * (total - own), np.maximum(n - 1, 0)).T for own in (1, -1)
    )
    result = []
    for value in (1, -1):
        at = np.equal(S, value).astype(np.float32)
        count = np.where(value * Z > 0, with_pattern @ at, against @ at)
        result.append(np.where(Z == 0, _beyond(sign * total, n).T @ at, count))
    return np.stack(result, axis=1)


def _up(counts: F32, S: F32) -> F32:
    """Return the probability of +1 from counts by side and value."""
    n_side = counts.sum(axis=2, keepdims=True)
    few = n_side < np.maximum(FEWEST, CHANCE * n_side[:, ::-1])
    everywhere = np.stack([(S > 0).sum(axis=0), (S < 0).sum(axis=0)])
    counts = np.where(few, everywhere - counts[:, ::-1], counts)
    counts = np.where(few.all(axis=1, keepdims=True), 0, counts)
    n = counts.sum(axis=2)
    up: F32 = np.full(n.shape, np.nan, np.float32)
    np.divide(counts[:, :, 0], n, out=up, where=n > 0, casting="same_kind")
    return up

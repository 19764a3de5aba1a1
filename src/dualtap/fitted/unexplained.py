r"""What patterns leave of the pairs of spins, judged on held-out samples.

A free coupling :math:`\delta_{ij}` beside the patterns changes the log pseudo-likelihood by
:math:`\delta_{ij} G_{ij} - \frac12 \delta_{ij}^2 H_{ij}`, with :math:`R = S - \tanh h`,
:math:`G = R^\top S + S^\top R` and :math:`H_{ij} = \sum_a (w_{ai} + w_{aj})`,
:math:`w = 1 - \tanh^2 h`. Where the patterns are the right model, G is noise: the
:math:`\delta = G/H` of one half of the samples gain nothing in the other. Where they are not, as
for sparse couplings of full rank, they gain as much as the patterns did or nearly so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.local_fields import log_likelihoods, observed_fields
from dualtap.spins.protocol import F32

LARGEST_SHARE = 0.05
"""Share of the gain of the patterns that pairs may gain beside them.

Set by looking at these: Hopfield teachers whose patterns were recovered leave up to 0.001, five
real data sets up to 0.02, sparse graphs (N = 60, M = 3000) 0.1 and more, unless there are so many
patterns that these absorb nearly all, and their number gives them away.
"""
_MOST_SPINS = 1024
_FEWEST_ROWS = 2  # per spin, below which couplings of single pairs are noise


def pair_share(
    rows: NDArray[np.int8],
    patterns: NDArray[np.int8],
    strengths: NDArray[np.float64],
    fields: NDArray[np.float64] | None,
    means: NDArray[np.float64],
) -> float:
    """Return what a free coupling for every pair would gain, over the gain of the patterns.

    Both in log pseudo-likelihood: of the patterns over independent spins with their means, of the
    couplings beside the patterns. Couplings of every other row are judged by the remaining rows,
    and the other way round, each with the common factor that suits them best there.

    Parameters
    ----------
    rows : array of shape (n_rows, n_spins)
        Some of the samples that the model was fitted to: ±1, or 0 for a missing entry.
    patterns : array of shape (n_patterns, n_spins)
    strengths : array of shape (n_patterns,)
    fields : array of shape (n_spins,), or None
    means : array of shape (n_spins,)

    Returns
    -------
    float
        NaN without patterns, for more than 1024 spins, or fewer than two rows per spin.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel
    >>> from dualtap.fitted.unexplained import pair_share
    >>> teacher = HopfieldModel.random(60, 2, beta=1.2, random_state=0)
    >>> X = teacher.sample(500, random_state=1)
    >>> share = pair_share(X, teacher.patterns, teacher.strengths, None, np.zeros(60))
    >>> bool(abs(share) < 0.01)
    True
    """
    n_rows, n_spins = rows.shape
    if not len(patterns) or n_spins > _MOST_SPINS or n_rows < _FEWEST_ROWS * n_spins:
        return np.nan
    S = rows.astype(np.float32)
    h = observed_fields(S, patterns.astype(np.float32), strengths, fields, means)
    t, observed = np.tanh(h), S != 0
    R, w = (S - t) * observed, (1 - t * t) * observed
    halves = [_derivatives(R[k::2], w[k::2], S[k::2]) for k in (0, 1)]
    gain = _held_out_gain(*halves) + _held_out_gain(*halves[::-1])
    alone = np.arctanh(np.clip(means, -1 + 1e-3, 1 - 1e-3)).astype(np.float32)
    L = log_likelihoods(S, h).sum() - log_likelihoods(S, np.broadcast_to(alone, S.shape)).sum()
    return gain / float(L) if L > 0 else np.nan


class Pairs(NamedTuple):
    """Pairs of spins that a model explains least, the worst first."""

    i: NDArray[np.int64]
    j: NDArray[np.int64]
    z: NDArray[np.float64]
    """Standard errors by which the two go together more than the model says."""


def unexplained_pairs(
    rows: NDArray[np.int8],
    patterns: NDArray[np.int8],
    strengths: NDArray[np.float64],
    fields: NDArray[np.float64] | None,
    means: NDArray[np.float64],
    top: int,
) -> Pairs:
    r"""Return the pairs of spins whose correlation a model explains least.

    :math:`z_{ij} = \sum_a u_{aij} / \sqrt{\sum_a u_{aij}^2}`,
    :math:`u_{aij} = r_{ai} s_{aj} + r_{aj} s_{ai}`, is about normal where the model is right.

    Parameters
    ----------
    rows, patterns, strengths, fields, means : as in :func:`pair_share`
    top : int
        So many pairs; none for more than 1024 spins.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.fitted.unexplained import unexplained_pairs
    >>> X = np.random.default_rng(0).choice([-1, 1], size=(500, 8)).astype(np.int8)
    >>> X[:, 5] = X[:, 2]  # which a model without patterns does not know
    >>> none = np.empty((0, 8), dtype=np.int8)
    >>> unexplained_pairs(X, none, np.empty(0), None, np.zeros(8), 1)[:2]
    (array([2]), array([5]))
    """
    if rows.shape[1] > _MOST_SPINS:
        nothing = np.empty(0, dtype=np.int64)
        return Pairs(nothing, nothing, np.empty(0))
    S = rows.astype(np.float32)
    h = observed_fields(S, patterns.astype(np.float32), strengths, fields, means)
    R = (S - np.tanh(h)) * (S != 0)
    G, own = R.T @ S, R * S
    V = np.square(R).T @ np.square(S)
    i, j = np.triu_indices(S.shape[1], 1)
    total = (G + G.T)[i, j].astype(np.float64)
    variance = (V + V.T + 2 * own.T @ own)[i, j].astype(np.float64)
    z = np.divide(total, np.sqrt(variance), out=np.zeros_like(total), where=variance > 0)
    worst = np.argsort(-np.abs(z), kind="stable")[:top]
    return Pairs(i[worst], j[worst], z[worst])


def doubt_about_couplings(n_patterns: int, n_spins: int, share: float) -> str:
    """Return why couplings should not be taken from patterns; nothing if they may be.

    Either pairs would gain much beside the patterns, or there are more patterns than half of the
    spins: as many entries as there are couplings.

    Parameters
    ----------
    n_patterns, n_spins : int
    share : float
        Of :func:`pair_share`; NaN if it is not known.

    Examples
    --------
    >>> from dualtap.fitted.unexplained import doubt_about_couplings
    >>> doubt_about_couplings(3, 60, 0.001)
    ''
    >>> print(doubt_about_couplings(11, 60, 0.74))
    patterns do not explain the couplings: on held-out samples, a free coupling for every pair adds
    74 % to the gain in log pseudo-likelihood of the 11 patterns (limit: 5 %); estimate couplings
    with dualtap.baselines.PseudoLikelihood instead
    """
    if 2 * n_patterns > n_spins:
        what = f"{n_patterns} patterns on {n_spins} spins are not a low-rank coupling matrix"
    elif share > LARGEST_SHARE:
        what = (
            f"on held-out samples, a free coupling for every pair adds {share:.0%} to the gain in "
            f"log pseudo-likelihood of the {n_patterns} pattern{'' if n_patterns == 1 else 's'} "
            f"(limit: {LARGEST_SHARE:.0%})"
        ).replace("%", " %")
    else:
        return ""
    return (
        f"patterns do not explain the couplings: {what}; estimate couplings with "
        "dualtap.baselines.PseudoLikelihood instead"
    )


def _derivatives(R: F32, w: F32, S: F32) -> tuple[F32, F32]:
    """Return G and H of all pairs, symmetric, 0 on the diagonal."""
    G, seen = R.T @ S, np.square(S)
    H = np.broadcast_to(w.sum(axis=0)[:, None], G.shape) if seen.all() else w.T @ seen
    G, H = G + G.T, H + H.T
    np.fill_diagonal(G, 0)
    np.fill_diagonal(H, 0)
    return G, H


def _held_out_gain(here: tuple[F32, F32], there: tuple[F32, F32]) -> float:
    """Return what pairs fitted here gain there, times the best factor; 0 if that is negative."""
    (G, H), (slope, curvature) = here, there
    delta = np.divide(G, H, out=np.zeros_like(G), where=H > 0)
    # Every pair stands twice.
    first = 0.5 * float(np.einsum("ij,ij->", delta, slope, dtype=np.float64))
    second = 0.5 * float(np.einsum("ij,ij,ij->", delta, delta, curvature, dtype=np.float64))
    return max(first, 0.0) ** 2 / (2 * second) if second > 0 else 0.0

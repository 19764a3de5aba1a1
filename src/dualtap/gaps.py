r"""Probabilities of entries given the others of their row, and rows with their gaps filled.

Without gaps in a row it is a formula, :math:`P(s_i | s_{\setminus i}) = \sigma(2 s_i h_i)`. Gaps g
have to be averaged over, given the observed entries o of the row. For a gap,

.. math:: P(s_k = 1 | o) = \langle \sigma(2 h_k(g)) \rangle_{g | o}

(Rao-Blackwell: the mean of the conditional probability, not of the spin). For an observed entry its
own value must not be used, and the average over g uses it; the odds need no second average, because

.. math:: \frac{P(-s_i | o_{\setminus i})}{P(s_i | o_{\setminus i})}
          = \langle e^{-2 s_i h_i(g)} \rangle_{g | o} .

The average is over all states of the gaps where these are few, and exact. Otherwise weighted states
are drawn by annealing: Gibbs sampling in many chains, from random spins at infinite temperature to
the law itself, :math:`P_t \propto P^t` with t from 0 to 1. Each step multiplies the weight of a
chain by :math:`P^{\Delta t}`, as far as half of the chains keep their weight, and heavy chains are
continued in place of light ones (sequential Monte Carlo). Chains at t = 1 alone would stay in the
mode they start in: one-hot columns have modes that no change of a single spin connects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted

from dualtap._random import RandomState, as_generator
from dualtap._validation import validated_spins
from dualtap.local_fields import local_fields
from dualtap.spins import DenseSpins, Spins
from dualtap.spins.encodings import as_given, shown_encoding
from dualtap.spins.matrix import blocks_of
from dualtap.spins.protocol import F32
from dualtap.spins.storage import Encoding

__all__ = ["Conditionals", "LinearConditionals", "entry_probabilities"]

IntArray = NDArray[np.int64]
_DRAWS = 128
"""States of the gaps of a row that are averaged over: all of them for up to seven gaps."""
_STEPS = 100
"""Temperatures from infinity to that of the law, at most."""
_BISECTIONS = 12
"""Of the share of the way to the law, to find the next temperature."""
_FEWEST = 0.75
"""Share of the chains worth their weight, below which heavy ones are continued."""
_LARGEST_EXPONENT = 80.0
"""e to this is a float32, and the sum of many as well."""
_HELD = 2**21
"""Spins of states that are held at a time."""
_SIGNS = np.array([1, -1], dtype=np.float32)


class Conditionals(Protocol):
    """The law of a spin given the others, P(s_i) = 1 / (1 + exp(-2 s_i h_i))."""

    @property
    def factors(self) -> F32:
        """What the fields depend on: x = V s, of shape (n_factors, n_spins)."""
        ...

    def log_weights(self, x: F32, S: F32) -> F32:
        """Return log P of complete samples up to a constant, given their x; of any shape before."""
        ...

    def fields(self, S: F32) -> F32:
        """Return h of every spin of complete samples, of their shape."""
        ...

    def site_fields(self, x: F32, sites: IntArray, s: F32) -> F32:
        """Return h of one spin per row, given x of the row and the spin's present value.

        Shapes: (n_chains, n_rows, n_factors), (n_rows,) and (n_chains, n_rows).
        """
        ...


@dataclass(frozen=True)
class LinearConditionals:
    r"""Fields linear in the other spins, :math:`h = b + \sum_\mu c_\mu v^\mu (x_\mu - v^\mu s)`.

    Patterns with strengths are of this kind, and RBMs with Gaussian hidden units.

    Attributes
    ----------
    factors : array of shape (n_factors, n_spins), float32
        The v.
    scales : array of shape (n_factors,), float32
        The c.
    own_fields : array of shape (n_spins,), float32
        The b.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.gaps import LinearConditionals
    >>> V = np.array([[1, 1, -1, -1]], np.float32)
    >>> law = LinearConditionals(V, np.full(1, 0.5, np.float32), np.zeros(4, np.float32))
    >>> law.fields(np.array([[1, 1, -1, 1]], np.float32))
    array([[ 0.5,  0.5, -0.5, -1.5]], dtype=float32)
    """

    factors: F32
    scales: F32
    own_fields: F32

    def log_weights(self, x: F32, S: F32) -> F32:
        """Return log P up to a constant."""
        result: F32 = np.square(x) @ (self.scales / 2) + S @ self.own_fields
        return result

    def fields(self, S: F32) -> F32:
        """Return h of every spin."""
        return local_fields(S, self.factors, self.scales * S.shape[1], self.own_fields)

    def site_fields(self, x: F32, sites: IntArray, s: F32) -> F32:
        """Return h of one spin per row."""
        v = self.factors[:, sites].T
        own = np.square(v) @ self.scales
        h: F32 = np.einsum("cak,ak->ca", x, v * self.scales)
        h -= own * s
        h += self.own_fields[sites]
        return h


def entry_probabilities(
    S: F32, law: Conditionals, n_draws: int = _DRAWS, seed: int = 0
) -> NDArray[np.float64]:
    """Return the probability that each entry is +1, given the other observed ones of its row.

    Parameters
    ----------
    S : array of shape (n_samples, n_spins)
        ±1, or 0 for a gap.
    law : Conditionals
    n_draws : int
        States of the gaps that are averaged over. Rows whose gaps have no more states, and rows
        with one gap, are exact (to single precision).
    seed : int
        For the draws. Rows share their random numbers: what is said of a row does not depend on
        the rows beside it.

    Returns
    -------
    array of shape (n_samples, n_spins)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.gaps import LinearConditionals, entry_probabilities
    >>> V = np.array([[1, 1, -1, -1]], np.float32)
    >>> law = LinearConditionals(V, np.full(1, 0.5, np.float32), np.zeros(4, np.float32))
    >>> entry_probabilities(np.array([[1, 1, -1, 0]], np.float32), law).round(3)
    array([[0.939, 0.939, 0.061, 0.047]])
    """
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, got {n_draws}")
    n_gaps = np.count_nonzero(S == 0, axis=1)
    most = max(n_draws.bit_length() - 1, 1)
    result = np.empty(S.shape)
    for n in np.unique(np.minimum(n_gaps, most + 1)):
        few = n <= most
        rows = np.flatnonzero(n_gaps == n if few else n_gaps > most)
        rows = rows[np.argsort(-n_gaps[rows], kind="stable")]
        step = max(1, _HELD // ((2**n if few else n_draws) * S.shape[1]))
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            found = _all_states(S[some], law) if few else _drawn(S[some], law, n_draws, seed)
            result[some] = _averaged(S[some], law, *found)
    return result


def _averaged(S: F32, law: Conditionals, T: F32, log_w: F32) -> NDArray[np.float64]:
    """Return the probabilities of rows, given weighted states of their gaps."""
    w = softmax(log_w.astype(np.float64), axis=0)
    h = law.fields(T.reshape(-1, S.shape[1])).reshape(T.shape)
    up = np.einsum("ca,cai->ai", w, expit(2 * h))
    odds = np.einsum("ca,cai->ai", w, np.exp(np.minimum(-2 * S * h, _LARGEST_EXPONENT)))
    result: NDArray[np.float64] = np.where(S == 0, up, expit(-S * np.log(odds)))
    return result


def _all_states(S: F32, law: Conditionals) -> tuple[F32, F32]:
    """Return all states of rows with as many gaps each, and the logarithms of their weights.

    Shapes: (n_states, n_rows, n_spins) and (n_states, n_rows).
    """
    row, site = np.nonzero(S == 0)
    n_gaps = len(row) // len(S)
    states = _SIGNS[np.arange(2**n_gaps)[:, None] >> np.arange(n_gaps) & 1]
    T = np.repeat(S[None], len(states), axis=0)
    T[:, row, site] = np.tile(states, len(S))
    return T, law.log_weights(T @ law.factors.T, T)


def _drawn(S: F32, law: Conditionals, n_draws: int, seed: int) -> tuple[F32, F32]:
    """Return states drawn by annealing and the logarithms of their weights, as `_all_states`.

    Rows come in descending order of their gaps: those that are still to be visited are together.
    A row that has reached its law is left alone, so that no row depends on the others.
    """
    gaps = S == 0
    result = np.repeat(np.where(gaps, _SIGNS[0], S)[None], n_draws, axis=0)
    log_weights = np.zeros(result.shape[:2], np.float32)
    moving, T, t = np.arange(len(S)), result.copy(), np.zeros(len(S), np.float32)
    x, log_w = T @ law.factors.T, log_weights.copy()
    for step in range(_STEPS):
        rng = np.random.default_rng([seed, step])
        start = rng.random()
        _sweep(T, x, gaps[moving], law, rng, t)
        done = t == 1
        if done.any():
            result[:, moving[done]], log_weights[:, moving[done]] = T[:, done], log_w[:, done]
            moving, T, x, log_w, t = (
                moving[~done],
                T[:, ~done],
                x[:, ~done],
                log_w[:, ~done],
                t[~done],
            )
        if not len(moving):
            return result, log_weights
        log_p = law.log_weights(x, T)
        dt = _next_step(log_w, log_p, 1 - t) if step < _STEPS - 2 else 1 - t
        t, log_w = np.where(dt == 1 - t, np.float32(1), t + dt), log_w + dt * log_p
        _continue_heaviest(T, x, log_w, start)
    return result, log_weights


def _next_step(log_w: F32, log_p: F32, left: F32) -> F32:
    """Return for each row the largest step that leaves half of the chains their weight."""
    low, high = np.zeros_like(left), left.copy()
    enough = _effective(log_w + high * log_p) >= len(log_w) / 2
    low[enough] = left[enough]
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        enough = _effective(log_w + middle * log_p) >= len(log_w) / 2
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    # Chains of one weight in the smallest step: at least that, or it would not end.
    return np.where(low > 0, low, high).astype(np.float32)


def _effective(log_w: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return how many chains of equal weight those of each row are worth."""
    result: NDArray[np.float64] = 1 / np.square(softmax(log_w.astype(np.float64), axis=0)).sum(0)
    return result


def _continue_heaviest(T: F32, x: F32, log_w: F32, start: float) -> None:
    """Put copies of heavy chains in place of light ones, in rows where many are light."""
    w, n = softmax(log_w, axis=0), len(T)
    for row in np.flatnonzero(_effective(log_w) < _FEWEST * n):
        ends = np.cumsum(w[:, row], dtype=np.float64)
        kept = np.searchsorted(ends, (np.arange(n) + start) / n * ends[-1])
        T[:, row], x[:, row], log_w[:, row] = T[kept, row], x[kept, row], 0


def _sweep(
    T: F32, x: F32, gaps: NDArray[np.bool_], law: Conditionals, rng: np.random.Generator, t: F32
) -> None:
    """Visit the gaps of all rows once; T and x change."""
    n_gaps = np.count_nonzero(gaps, axis=1)
    sites = np.argsort(~gaps, axis=1, kind="stable")  # of each row: its gaps, then the rest
    for k in range(n_gaps[0]):
        u = rng.random((len(T), 1), dtype=np.float32)
        n_left = np.count_nonzero(n_gaps > k)
        _visit(T, x, sites[:n_left, k], law, u, t[:n_left])


def _visit(T: F32, x: F32, sites: IntArray, law: Conditionals, u: F32, t: F32) -> None:
    """Draw one spin of each of the first rows given the others, in all chains; T and x change."""
    rows = np.arange(len(sites))
    s, inputs = T[:, rows, sites], x[:, : len(sites)]
    p = expit(2 * t * law.site_fields(inputs, sites, s))
    drawn = np.where(u < p, _SIGNS[0], _SIGNS[1])
    T[:, rows, sites] = drawn
    inputs += (drawn - s)[..., None] * law.factors[:, sites].T


class FillsGaps(ABC):
    """What every estimator with a law of its spins says of single entries."""

    _encoding: Encoding
    """How the training samples were written, for samples that do not show it."""

    @abstractmethod
    def _conditionals(self) -> Conditionals:
        """Return the law of a spin given the others."""

    def predict_entries(
        self, X: Any, *, n_draws: int = _DRAWS, random_state: RandomState = None
    ) -> NDArray[np.float64]:
        """Return the probability that each entry is +1, given the other entries of its row.

        For an observed entry its own value is not used, so that ``predict_entries`` of complete
        samples says how well every entry follows from the others. Models of patterns use couplings
        of pairs beside them where these predict better (:mod:`dualtap.fitted.entries`).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            NaN or None where a value is missing.
        n_draws : int
            States of the missing entries of a row that are averaged over; errors fall as
            1/√``n_draws``. The answer is exact for rows that have no more states: with 128, for up
            to seven missing entries.
        random_state : int, RandomState, Generator or None
            For draws of states where there are more.

        Returns
        -------
        array of shape (n_samples, n_spins)
            In [0, 1]. A row does not depend on the rows beside it.
        """
        check_is_fitted(self)
        return self._probabilities(validated_spins(self, X), n_draws, random_state)

    def impute(self, X: Any, *, random_state: RandomState = None) -> Any:
        """Return X with every missing entry replaced by its likelier value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            NaN or None where a value is missing; such an entry becomes the value that
            :meth:`predict_entries` finds likelier.
        random_state : int, RandomState, Generator or None
            For rows with many missing entries, see :meth:`predict_entries`.

        Returns
        -------
        array or DataFrame of shape (n_samples, n_spins)
            In the encoding of X: -1/+1, 0/1 or boolean; in that of the training samples if X holds
            only ones. A pandas or polars DataFrame for one, with its column types; an array of the
            same type for an array of numbers; int8 otherwise.
        """
        check_is_fitted(self)
        spins = validated_spins(self, X)
        usual = getattr(self, "_encoding", spins.encoding)
        return as_given(X, self._imputed(spins, random_state), shown_encoding(spins, usual))

    def _probabilities(
        self, spins: Spins, n_draws: int, random_state: RandomState
    ) -> NDArray[np.float64]:
        seed = int(as_generator(random_state).integers(2**31))
        probability = partial(
            entry_probabilities, law=self._conditionals(), n_draws=n_draws, seed=seed
        )
        return blocks_of(spins, held=False).map(probability)

    def _imputed(self, spins: Spins, random_state: RandomState) -> NDArray[np.int8]:
        """Return the samples as ±1, gaps filled."""
        values = np.array(spins.values)
        rows = np.flatnonzero(spins.n_observed < spins.n_spins)
        if len(rows):
            some = DenseSpins(values[rows], spins.encoding)
            likely = self._probabilities(some, _DRAWS, random_state) >= 0.5
            values[rows] = np.where(some.values == 0, np.where(likely, 1, -1), some.values)
        return values

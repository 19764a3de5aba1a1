r"""Probabilities of entries given the others of their row, and rows with their gaps filled.

Without gaps in a row it is a formula, :math:`P(s_i | s_{\setminus i}) = \sigma(2 s_i h_i)`. Gaps g
have to be averaged over, given the observed entries o of the row. For a gap,

.. math:: P(s_k = 1 | o) = \langle \sigma(2 h_k(g)) \rangle_{g | o}

(Rao-Blackwell: the mean of the conditional probability, not of the spin). For an observed entry its
own value must not be used, and the average over g uses it; the odds need no second average, because

.. math:: \frac{P(-s_i | o_{\setminus i})}{P(s_i | o_{\setminus i})}
          = \langle e^{-2 s_i h_i(g)} \rangle_{g | o} .

One gap has two values, and the averages are exact. Several are drawn by Gibbs sampling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from dualtap._random import RandomState, as_generator
from dualtap._validation import validated_spins
from dualtap.local_fields import local_fields
from dualtap.spins import DenseSpins, Spins
from dualtap.spins.blocks import F32
from dualtap.spins.cluster import blocks_of
from dualtap.spins.encodings import as_given, shown_encoding
from dualtap.spins.storage import Encoding

__all__ = ["Conditionals", "LinearConditionals", "entry_probabilities", "random_draws"]

_CHAINS = 16
"""Chains per row: as many modes can be seen, and half of the chains mirror others."""
_BURN_IN = 10
_DRAWS = 200
_LARGEST_EXPONENT = 80.0
"""e to this is a float32, and the sum of many as well."""


class Conditionals(Protocol):
    """The law of a spin given the others, P(s_i) = 1 / (1 + exp(-2 s_i h_i))."""

    @property
    def factors(self) -> F32:
        """What the fields depend on: x = V s, of shape (n_factors, n_spins)."""
        ...

    def fields(self, S: F32) -> F32:
        """Return h of every spin of complete samples, of their shape."""
        ...

    def site_fields(self, x: F32, sites: NDArray[np.int64], s: F32) -> F32:
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

    def fields(self, S: F32) -> F32:
        """Return h of every spin."""
        return local_fields(S, self.factors, self.scales * S.shape[1], self.own_fields)

    def site_fields(self, x: F32, sites: NDArray[np.int64], s: F32) -> F32:
        """Return h of one spin per row."""
        v = self.factors[:, sites].T
        own = np.square(v) @ self.scales
        h: F32 = np.einsum("cak,ak->ca", x, v * self.scales)
        h -= own * s
        h += self.own_fields[sites]
        return h


def random_draws(n_draws: int, n_spins: int, rng: np.random.Generator) -> F32:
    """Return the uniform numbers of all chains, for their start and every sweep.

    Rows share them: what is said of a row does not depend on the rows beside it. Over the chains of
    one spin and sweep they are stratified, and half of the chains has 1 - u where the others have
    u, so that rows which nothing tells from their negatives come out undecided.

    Parameters
    ----------
    n_draws : int
        Draws of the gaps that are averaged over, at least.
    n_spins : int
    rng : Generator

    Returns
    -------
    array of shape (n_sweeps + 1, n_chains, n_spins), float32

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.gaps import random_draws
    >>> u = random_draws(100, 4, np.random.default_rng(0))
    >>> u.shape, bool(np.allclose(u.mean(axis=1), 0.5))
    ((18, 16, 4), True)
    """
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, got {n_draws}")
    n_sweeps, half = _BURN_IN + -(-n_draws // _CHAINS), _CHAINS // 2
    strata = np.arange(half, dtype=np.float32)[:, None]
    order = rng.permuted(np.broadcast_to(strata, (n_sweeps + 1, half, n_spins)), axis=1)
    u = (order + rng.random(order.shape, dtype=np.float32)) / np.float32(half)
    return np.concatenate([u, 1 - u], axis=1)


def entry_probabilities(S: F32, law: Conditionals, draws: F32) -> NDArray[np.float64]:
    """Return the probability that each entry is +1, given the other observed ones of its row.

    Parameters
    ----------
    S : array of shape (n_samples, n_spins)
        ±1, or 0 for a gap.
    law : Conditionals
    draws : array
        From :func:`random_draws`.

    Returns
    -------
    array of shape (n_samples, n_spins)
        Exact (to single precision) in rows with one gap at most.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.gaps import LinearConditionals, entry_probabilities, random_draws
    >>> V = np.array([[1, 1, -1, -1]], np.float32)
    >>> law = LinearConditionals(V, np.full(1, 0.5, np.float32), np.zeros(4, np.float32))
    >>> draws = random_draws(100, 4, np.random.default_rng(0))
    >>> entry_probabilities(np.array([[1, 1, -1, 0]], np.float32), law, draws).round(3)
    array([[0.939, 0.939, 0.061, 0.047]])
    """
    gaps = S == 0
    count = np.count_nonzero(gaps, axis=1)
    result = np.empty(S.shape)
    whole, one, more = count == 0, count == 1, count > 1
    if whole.any():
        result[whole] = expit(2 * law.fields(S[whole]).astype(np.float64))
    if one.any():
        result[one] = _of_one_gap(S[one], gaps[one], law)
    if more.any():
        # The rows with most gaps first: those that are still to be visited are then together.
        rows = np.argsort(-count, kind="stable")[: np.count_nonzero(more)]
        result[rows] = _of_several_gaps(S[rows], gaps[rows], law, draws)
    return result


def _of_one_gap(S: F32, gaps: NDArray[np.bool_], law: Conditionals) -> NDArray[np.float64]:
    """Return the probabilities of rows with one gap each, by its two values."""
    up, down = (law.fields(np.where(gaps, value, S)).astype(np.float64) for value in _SIGNS)
    h = np.sum(up, axis=1, where=gaps, keepdims=True)  # of the gap: the same in both
    against = np.logaddexp(
        -np.logaddexp(0, -2 * h) - 2 * S * up, -np.logaddexp(0, 2 * h) - 2 * S * down
    )
    result: NDArray[np.float64] = expit(np.where(gaps, 2 * h, -S * against))
    return result


_SIGNS = np.array([1, -1], dtype=np.float32)


def _of_several_gaps(
    S: F32, gaps: NDArray[np.bool_], law: Conditionals, draws: F32
) -> NDArray[np.float64]:
    """Return the probabilities of rows in descending order of the number of gaps, by sampling."""
    # Random starts would fall into modes of the gaps among themselves that the observed entries
    # speak against: the more gaps, the likelier.
    first: F32 = expit(2 * law.fields(S))
    T = np.where(gaps, np.where(draws[0][:, None] < first, _SIGNS[0], _SIGNS[1]), S)
    x = T @ law.factors.T
    order = np.argsort(~gaps, axis=1, kind="stable")  # of each row: its gaps, then the rest
    n_left = np.count_nonzero(gaps, axis=1)
    up, odds = np.zeros(S.shape), np.zeros(S.shape)
    for sweep, u in enumerate(draws[1:], start=-_BURN_IN):
        for k in range(n_left[0]):
            sites = order[: np.count_nonzero(n_left > k), k]
            p = _visit(T, x, sites, law, u)
            if sweep >= 0:
                up[np.arange(len(sites)), sites] += p.sum(axis=0, dtype=np.float64)
        if sweep >= 0:
            odds += _odds_against(T, law)
    n_draws = (len(draws) - 1 - _BURN_IN) * len(T)
    up, odds = up / n_draws, odds / n_draws
    against = odds / (1 + odds)
    return np.where(gaps, up, np.where(S > 0, 1 - against, against))


def _visit(T: F32, x: F32, sites: NDArray[np.int64], law: Conditionals, u: F32) -> F32:
    """Draw one spin of each of the first rows given the others, in all chains; T and x change.

    Returns the probabilities of +1, of shape (n_chains, n_rows).
    """
    rows = np.arange(len(sites))
    s = T[:, rows, sites]
    inputs = x[:, : len(sites)]
    p: F32 = expit(2 * law.site_fields(inputs, sites, s))
    drawn = np.where(u[:, sites] < p, _SIGNS[0], _SIGNS[1])
    T[:, rows, sites] = drawn
    inputs += (drawn - s)[..., None] * law.factors[:, sites].T
    return p


def _odds_against(T: F32, law: Conditionals) -> NDArray[np.float64]:
    """Return the odds against every spin as it is, given the others, summed over chains."""
    total = np.zeros(T.shape[1:])
    for S in T:
        x = -2 * S * law.fields(S)
        total += np.exp(np.minimum(x, _LARGEST_EXPONENT, out=x), out=x)
    return total


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
        samples says how well every entry follows from the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            NaN or None where a value is missing.
        n_draws : int
            Draws of the missing entries of a row that has several; errors fall as
            1/√``n_draws``. The answer is exact for rows with one missing entry at most.
        random_state : int, RandomState, Generator or None
            For these draws. They start from the odds of each entry given the observed ones alone;
            where these leave several modes apart, each is seen about as often as such starts lead
            to it.

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
            For rows with several missing entries.

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
        draws = random_draws(n_draws, spins.n_spins, as_generator(random_state))
        probability = partial(entry_probabilities, law=self._conditionals(), draws=draws)
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

r"""What to watch while an RBM learns: pseudo-likelihood both ways, singular values, their curves.

Every pseudo-likelihood here is a mean **per spin**: -log 2 for a fair spin, 0 for a
certain one. The paper's :math:`\mathcal S` sums over spins; it is N times these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap._eigen import shorter_gram
from dualtap.hopfield import HopfieldModel
from dualtap.local_fields import log_sigmoid
from dualtap.metrics import coupling_error
from dualtap.rbm.model import RBM
from dualtap.rbm.priors import FloatArray, GaussianPrior

_BLOCK_ENTRIES = 2**16  # what the elementwise passes touch stays in the cache
HELD_OUT_ENTRIES = 1280
"""Entries scored at a look if hidden units are not Gaussian, so that looks take a small share of
the time. Set by ``python -m benchmarks rbm-looks``."""
_WATCHED_ENTRIES = HELD_OUT_ENTRIES // 3
_WINDOW = 0.1
_FLAT = 0.04
_LEAST_RISE = 1e-3
_ACTIVE = 0.4


def pseudo_likelihood(model: RBM, X: NDArray[Any]) -> float:
    r"""Return the exact mean log pseudo-likelihood per spin.

    .. math:: \frac1{MN}\sum_{a,i} \log P(s_i^a \,|\, s^a_{\setminus i}),
              \qquad P(s_i | s_{\setminus i}) = \frac1{1+e^{-2 s_i h_i}}.

    Missing entries take no part: neither in the mean nor in the fields of others.

    Parameters
    ----------
    model : RBM
    X : array of shape (n_samples, n_spins), ±1 with 0 for missing

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> from dualtap.rbm.monitors import pseudo_likelihood
    >>> model = RBM(np.zeros((1, 3)), np.zeros(3), GaussianPrior())
    >>> round(pseudo_likelihood(model, np.array([[1, -1, 1]])), 4)
    -0.6931
    """
    return _mean(_summed(X, model.aligned_fields))


def pseudo_likelihood_one_step(model: RBM, X: NDArray[Any], rng: np.random.Generator) -> float:
    r"""Return the paper's one-step Monte Carlo estimate of the same, per spin.

    One :math:`\lambda \sim P(\lambda | s^a)` for each sample, then the mean of
    :math:`\log P(s_i^a | \lambda)`. Here λ has seen s_i itself, and the mean is outside the
    logarithm: the estimate is biased, and the gap stays when samples are many.

    Parameters
    ----------
    model : RBM
    X : array of shape (n_samples, n_spins), ±1 with 0 for missing
    rng : Generator

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> from dualtap.rbm.monitors import pseudo_likelihood_one_step
    >>> model = RBM(np.zeros((1, 3)), np.zeros(3), GaussianPrior())
    >>> X = np.array([[1, -1, 1]])
    >>> round(pseudo_likelihood_one_step(model, X, np.random.default_rng(0)), 4)
    -0.6931
    """
    return _mean(_summed(X, lambda s: s * model.visible_fields(model.sample_hidden(s, rng))))


def sample_scores(S: NDArray[np.float32], model: RBM) -> NDArray[np.float64]:
    """Return Σ log P(s_i | rest) over the observed entries of each sample, and their number.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.monitors import sample_scores
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> model = RBM(np.zeros((1, 3)), np.zeros(3), GaussianPrior())
    >>> sample_scores(np.array([[1, -1, 0]]), model).round(4)
    array([[-1.3863,  2.    ]])
    """
    return _summed(S, model.aligned_fields)


def _summed(
    S: NDArray[Any], aligned_fields: Callable[[NDArray[Any]], FloatArray]
) -> NDArray[np.float64]:
    """Return Σ log 1/(1 + exp(-2 s_i h_i)) over the observed entries of each row, and how many."""
    rows, parts = max(1, _BLOCK_ENTRIES // S.shape[1]), []
    for first in range(0, max(len(S), 1), rows):
        s = S[first : first + rows]
        terms = log_sigmoid(2 * aligned_fields(s))
        total = terms.sum(axis=1, dtype=np.float64, where=s != 0)
        parts.append(np.column_stack([total, np.count_nonzero(s, axis=1)]))
    return np.concatenate(parts)


def _mean(scores: NDArray[np.float64]) -> float:
    """Return the mean per entry."""
    if not scores[:, 1].any():
        raise ValueError("X has no observed entry")
    return mean_score(scores, np.ones(len(scores)))


def scores_at_a_look(
    S: NDArray[np.float32], model: RBM, n_entries: int = HELD_OUT_ENTRIES
) -> NDArray[np.float64]:
    """Return the scores of samples from some of their entries, the same ones at every look.

    An entry costs a function per hidden unit, unless these are Gaussian: then all are taken. Every
    sample has as many entries, drawn at random; those that are missing do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.monitors import scores_at_a_look
    >>> from dualtap.rbm.priors import BinaryPrior
    >>> model = RBM(np.zeros((1, 500)), np.zeros(500), BinaryPrior())
    >>> scores_at_a_look(np.ones((64, 500), np.float32), model)[0].round(1)
    array([-13.9,  20. ])
    """
    if isinstance(model.prior, GaussianPrior):
        return sample_scores(S, model)
    n_sites = max(1, n_entries // len(S))
    if n_sites >= S.shape[1]:
        n_sites = S.shape[1]
        sites = np.tile(np.arange(n_sites), len(S))
    else:
        sites = np.random.default_rng(S.shape).integers(S.shape[1], size=len(S) * n_sites)
    rows = np.repeat(np.arange(len(S)), n_sites)
    terms = log_sigmoid(2 * model.aligned_fields_at(S, rows, sites)).reshape(len(S), -1)
    observed = S[rows, sites].reshape(len(S), -1) != 0
    total = terms.sum(axis=1, dtype=np.float64, where=observed)
    return np.column_stack([total, np.count_nonzero(observed, axis=1)])


def mean_score(scores: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the mean log pseudo-likelihood per entry of weighted samples.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.monitors import mean_score
    >>> mean_score(np.array([[-1.0, 2.0], [-4.0, 2.0]]), np.array([1.0, 3.0]))
    -1.625
    """
    total, n_entries = weights @ scores
    return float(total / max(n_entries, 1))


def error_of_difference(
    scores: NDArray[np.float64], others: NDArray[np.float64], weights: NDArray[np.float64]
) -> float:
    """Return the standard error of the difference of two mean scores of the same samples.

    They may be of different numbers of entries, as those of different priors are.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.monitors import error_of_difference
    >>> scores = np.array([[-1.0, 2.0], [-4.0, 2.0]])
    >>> error_of_difference(scores, scores - [1.0, 0.0], np.ones(2))
    0.0
    """
    n_entries = scores[:, 1] / np.maximum(others[:, 1], 1)
    difference = scores[:, 0] - n_entries * others[:, 0]
    mean = weights @ difference / max(weights.sum(), 1e-300)
    n = np.count_nonzero(weights)
    spread = np.square(weights * (difference - mean)).sum() * n / max(n - 1, 1)
    return float(np.sqrt(spread) / max(weights @ scores[:, 1], 1))


def singular_values(weights: FloatArray) -> NDArray[np.float64]:
    """Return the N_h singular values of W in descending order, by way of WWᵀ or WᵀW.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.monitors import singular_values
    >>> singular_values(np.array([[3.0, 0.0, 0.0], [0.0, 0.0, 4.0]]))
    array([4., 3.])
    """
    W = weights.astype(np.float64)
    squares = np.linalg.eigvalsh(shorter_gram(W))[::-1]
    values = np.zeros(len(W))
    values[: len(squares)] = np.sqrt(np.maximum(squares, 0))
    return values


def weights_error(weights: FloatArray, teacher: HopfieldModel) -> float:
    r"""Return the relative error of :math:`J^r = W^\top W / \beta` at the teacher's β.

    The paper's ε is this divided by N(N-1)/2.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.hopfield import HopfieldModel
    >>> from dualtap.rbm.monitors import weights_error
    >>> teacher = HopfieldModel.random(100, 2, beta=2.0, random_state=0)
    >>> round(weights_error(np.sqrt(2.0 / 100) * teacher.patterns, teacher), 6)
    0.0
    """
    factors = np.sqrt(weights.shape[1] / teacher.beta) * weights
    return coupling_error(factors, teacher.patterns).relative


@dataclass(frozen=True)
class LearningCurve:
    """What was seen at each look, from the start on.

    Attributes
    ----------
    update : array of shape (looks,), int
        Updates made before the look.
    pseudo_likelihood : array of shape (looks,)
        Exact, per spin, over the same few entries of training samples each time.
    pseudo_likelihood_one_step : array of shape (looks,)
        The paper's estimate of it, per spin.
    error : array of shape (looks,)
        Relative error of the couplings; NaN when no teacher was given, or for ±1 hidden units.
    singular_values : array of shape (looks, n_hidden)
        Zeros for hidden units that were not there yet.
    validation : array of shape (looks,)
        Exact pseudo-likelihood of held-out samples, per spin; NaN if none are held out.
    validation_error : array of shape (looks,)
        Standard error of its difference from the best so far.
    """

    update: NDArray[np.int64]
    pseudo_likelihood: NDArray[np.float64]
    pseudo_likelihood_one_step: NDArray[np.float64]
    error: NDArray[np.float64]
    singular_values: NDArray[np.float64]
    validation: NDArray[np.float64]
    validation_error: NDArray[np.float64]

    @classmethod
    def empty(cls, n_hidden: int) -> LearningCurve:
        """Return the curve before the first look."""
        none = np.empty(0)
        start = np.empty(0, dtype=np.int64)
        return cls(start, none, none, none, np.empty((0, n_hidden)), none, none)

    def after_look(
        self,
        update: int,
        model: RBM,
        X: NDArray[Any],
        rng: np.random.Generator,
        teacher: HopfieldModel | None,
        validation: tuple[float, float] = (np.nan, np.nan),
    ) -> LearningCurve:
        """Measure everything and return the curve with it."""
        exact = mean_score(scores_at_a_look(X, model, _WATCHED_ENTRIES), np.ones(len(X)))
        values = singular_values(model.weights)
        width = max(len(values), self.singular_values.shape[1])
        seen = (
            update,
            exact,
            pseudo_likelihood_one_step(model, X, rng),
            np.nan if teacher is None else weights_error(model.weights, teacher),
            _widened(values[None], width)[0],
            *validation,
        )
        curve = replace(self, singular_values=_widened(self.singular_values, width))
        columns = (getattr(curve, column.name) for column in fields(self))
        return LearningCurve(
            *(np.append(old, [new], axis=0) for old, new in zip(columns, seen, strict=True))
        )

    def __str__(self) -> str:
        if not len(self.update):
            return ""
        error = "" if np.isnan(self.error[-1]) else f"  error of J {self.error[-1]:.3f}"
        held_out = "" if np.isnan(self.validation[-1]) else f"  held out {self.validation[-1]:.4f}"
        return f"S {self.pseudo_likelihood[-1]:.4f}{held_out}{error}"

    def is_over(self) -> bool:
        """Tell whether the last look saw a flat likelihood and no mode on its way up."""
        flat = is_flat(self.update, self.pseudo_likelihood)
        emerging = is_emerging(self.update, self.singular_values)
        return bool(flat[-1] and not emerging[-1])


def _widened(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return rows of singular values filled up with zeros."""
    return np.pad(values, ((0, 0), (0, width - values.shape[1])))


def is_flat(update: NDArray[np.int64], likelihood: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return at which looks the likelihood had stopped rising.

    Over the last tenth of the updates it rose by less than 4 % of its whole rise, which is at
    least 0.001: before that there is nothing to flatten.

    Parameters
    ----------
    update, likelihood : array of shape (looks,)

    Returns
    -------
    array of shape (looks,), bool

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.monitors import is_flat
    >>> update = np.arange(0, 500, 10)
    >>> int(update[np.argmax(is_flat(update, np.tanh(update / 100)))])
    160
    """
    before = _window(update)
    rise = likelihood - likelihood[0]
    flat: NDArray[np.bool_] = (rise > _LEAST_RISE) & (rise - rise[before] < _FLAT * rise)
    return flat & (before >= 0) & (before < np.arange(len(update)))


def is_emerging(
    update: NDArray[np.int64], singular_values: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return at which looks a singular value was on its way up.

    It is below 0.4 of the largest and grew by more than a tenth over the last tenth of the
    updates. Such a mode hardly acts yet: the likelihood cannot tell.

    Parameters
    ----------
    update : array of shape (looks,)
    singular_values : array of shape (looks, n_hidden)

    Returns
    -------
    array of shape (looks,), bool

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.monitors import is_emerging
    >>> update = np.arange(0, 50, 10)
    >>> values = np.column_stack([np.ones(5), 0.05 * 1.5 ** np.arange(5)])
    >>> is_emerging(update, values)
    array([False,  True,  True,  True,  True])
    """
    small = singular_values < _ACTIVE * singular_values[:, :1]
    before = _window(update)
    grown = singular_values > (1 + _WINDOW) * singular_values[before]
    emerging: NDArray[np.bool_] = np.any(small & grown, axis=1)
    return emerging & (before >= 0)


def _window(update: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each look the last one that is a tenth of the updates older, or -1."""
    return np.searchsorted(update, (1 - _WINDOW) * update, side="right") - 1

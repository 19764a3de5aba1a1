r"""The law by which entries are predicted: couplings of pairs, drawn towards those of the patterns.

Patterns are the fewest numbers that describe the samples. To predict an entry they are not always
enough: what they leave of every pair is little and adds up, and where some entries are missing
others say the same. Couplings and fields W of all pairs minimise

.. math:: -\frac1M \sum_{a,i} \log\sigma(2 s_{ai} h_{ai})
          + \frac\lambda4 \|W\|^2 + \frac\lambda4 \|W - C\|^2

with C those of the patterns: the couplings are small, and near those of the patterns. λ is that of
the best prediction of samples held out, by patterns of the others. If patterns alone predict these
as well, as where they are the right model, it is them alone. Otherwise both laws predict samples
held out of which a tenth of the entries is hidden, as :mod:`dualtap.gaps` predicts any, and
this one has to be better by more than a standard error.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dualtap._threads import FALSE_ALARMS
from dualtap.baselines.regressions import PenalisedLoss, ising_pseudo_likelihood, minimise
from dualtap.gaps import Conditionals, LinearConditionals, entry_probabilities
from dualtap.spins import as_spins
from dualtap.spins.protocol import F32

FloatArray = NDArray[np.float64]
Rows = NDArray[np.int8]
_GRID = np.logspace(0.5, -4, 10)
"""The λ that are tried, from large to small, until one predicts worse than the last."""
_TOLERANCE = 1e-5
"""Share of the loss by which a step must lower it; more exact minima predict no better."""
_MOST_SPINS, _FEWEST_ROWS = 1024, 20
"""Of samples that have such couplings: N² numbers, and samples enough to hold some out."""
_FOLDS, _ENOUGH = 5, 5000
"""A fifth is held out, and another one, until so many entries were."""
_JUDGED, _HIDDEN = 2**15, 0.1
"""Entries of a part held out by which the laws are compared, and the share that is hidden."""
_VISITED, _FEWEST_JUDGED = 2**21, 10
"""Visits of a gap times spins that it acts on, which takes the time, unless rows become too few."""
_SUREST = 1e-6
"""Smallest probability of an entry in a comparison."""


class CouplingConditionals(NamedTuple):
    r"""The law of a spin given the others, :math:`h = J s + b`, for couplings of any rank.

    Attributes
    ----------
    couplings : array of shape (n_spins, n_spins), float32
        Of J_ij and J_ji that differ, as separate regressions have them, the mean counts in
        probabilities of whole samples. Zero diagonal.
    own_fields : array of shape (n_spins,), float32

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.fitted.entries import CouplingConditionals
    >>> from dualtap.gaps import entry_probabilities
    >>> J = np.array([[0, 1], [1, 0]], np.float32)
    >>> law = CouplingConditionals(J, np.zeros(2, np.float32))
    >>> entry_probabilities(np.array([[1, 0]], np.float32), law).round(3)
    array([[0.5  , 0.881]])
    """

    couplings: F32
    own_fields: F32

    @property
    def factors(self) -> F32:
        """The couplings: what fields depend on is what spins receive from the others."""
        return self.couplings

    def log_weights(self, x: F32, S: F32) -> F32:
        """Return log P up to a constant."""
        result: F32 = np.einsum("...i,...i->...", x / 2 + self.own_fields, S)
        return result

    def fields(self, S: F32) -> F32:
        """Return h of every spin."""
        return S @ self.couplings.T + self.own_fields

    def site_fields(self, x: F32, sites: NDArray[np.int64], s: F32) -> F32:
        """Return h of one spin per row."""
        h: F32 = x[:, np.arange(len(sites)), sites] + self.own_fields[sites]
        return h


class LossNearPatterns(PenalisedLoss):
    r"""The loss of symmetric couplings, with penalties that draw them to zero and to others.

    The two penalties, :math:`\frac\lambda4 (\|W\|^2 + \|W - C\|^2)`, are
    :math:`\frac\lambda2 \|W - \frac12 C\|^2` and a constant.

    Parameters
    ----------
    S : array of shape (n_samples, n_spins)
        ±1 with 0 for missing.
    near : array of shape (n_spins + 1, n_spins)
        C: symmetric couplings, and a last row of fields.
    regularization : float
        λ; may be changed between calls.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.baselines.regressions import minimise
    >>> from dualtap.fitted.entries import LossNearPatterns
    >>> near = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    >>> loss = LossNearPatterns(np.array([[1.0, 1.0], [1.0, -1.0]]), near, 1e6)
    >>> minimise(loss, near).weights[:2].round(3)
    array([[0. , 0.5],
           [0.5, 0. ]])
    """

    def __init__(self, S: F32 | FloatArray, near: FloatArray, regularization: float = 1.0) -> None:
        super().__init__(S, fields=True, regularization=regularization)
        self._middle = near / 2

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss and its gradient at ``w``, symmetric if ``w`` is."""
        W = w.reshape(self.shape)
        values, gradient = self.columns(W)
        couplings = gradient[: self.shape[1]]
        couplings += couplings.T.copy()
        couplings /= 2
        away = W - self._middle
        gradient += self.regularization * away
        penalty = self.regularization / 2 * float(np.vdot(away, away))
        return float(values.sum()) + penalty, gradient.ravel()


class _Part(NamedTuple):
    """Samples held out, and what the others say of them."""

    held_out: Rows
    score: float
    """Of patterns alone, gaps filled by their means."""
    law: LinearConditionals
    loss: LossNearPatterns

    @property
    def n_entries(self) -> int:
        """How many were observed of the samples held out."""
        return int(np.count_nonzero(self.held_out))


def patterns_law(model: Any) -> LinearConditionals:
    """Return the law of the patterns of a fitted model.

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.fitted.entries import patterns_law
    >>> X = dt.HopfieldModel.random(30, 2, beta=2.0, random_state=0).sample(20, random_state=1)
    >>> patterns_law(dt.HopfieldPatterns(2, random_state=0).fit(X)).factors.shape
    (2, 30)
    """
    scales = (model.strengths_ / model.patterns_.shape[1]).astype(np.float32)
    zeta, b = model.patterns_.astype(np.float32), model.fields_.astype(np.float32)
    return LinearConditionals(zeta, scales, b)


def pairs_beside(
    rows: Rows, law: LinearConditionals, estimator: Any
) -> CouplingConditionals | None:
    """Return couplings of pairs that predict entries better than patterns alone.

    Parameters
    ----------
    rows : array of shape (n_rows, n_spins)
        Some of the samples that the model was fitted to: ±1, or 0 for a missing entry.
    law : LinearConditionals
        Of the patterns of all samples.
    estimator : estimator of patterns
        Not fitted; of the parameters of the model.

    Returns
    -------
    CouplingConditionals or None
        None if patterns alone predict as well; also for fewer than 20 rows or more than 1024
        spins, and for a Hopfield model: where one strength without fields is all that the samples
        ask for, there is nothing to compare.

    Examples
    --------
    Couplings along a chain are no patterns:

    >>> import numpy as np
    >>> import dualtap as dt
    >>> from dualtap.fitted.entries import pairs_beside, patterns_law
    >>> turns = np.random.default_rng(0).choice([1, 1, 1, -1], (400, 8))
    >>> X = np.cumprod(turns, axis=1).astype(np.int8)
    >>> model = dt.HopfieldPatterns(random_state=0).fit(X)
    >>> law = pairs_beside(X, patterns_law(model), dt.HopfieldPatterns())
    >>> abs(law.couplings[0, 1:3]).round(1)
    array([0.5, 0.1], dtype=float32)
    """
    if len(rows) < _FEWEST_ROWS or rows.shape[1] > _MOST_SPINS or not rows.any():
        return None
    if len(law.scales) and np.ptp(law.scales) == 0 and not law.own_fields.any():
        return None
    with np.errstate(**FALSE_ALARMS):
        parts = _parts(rows, estimator)
        regularization, score, found = _best(parts)
        if score <= sum(part.n_entries * part.score for part in parts):
            return None
        if not _is_better(parts, found):
            return None
        near = _weights(law)
        loss = LossNearPatterns(rows.astype(np.float32), near, regularization)
        return _law(minimise(loss, near, _TOLERANCE).weights)


def _parts(rows: Rows, estimator: Any) -> list[_Part]:
    """Return parts held out, with the patterns of the other samples."""
    folds = np.array_split(np.random.default_rng(0).permutation(len(rows)), _FOLDS)
    again = clone(estimator).set_params(random_state=0, verbose=False)
    parts: list[_Part] = []
    for fold in folds:
        if not rows[fold].any():
            continue
        others = np.delete(rows, fold, axis=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there is to say was said of all samples
            again.fit(as_spins(others, zero_is_missing=True))
        law = patterns_law(again)
        score = again.score(as_spins(rows[fold], zero_is_missing=True))
        loss = LossNearPatterns(others.astype(np.float32), _weights(law))
        parts.append(_Part(rows[fold], score, law, loss))
        if sum(part.n_entries for part in parts) >= _ENOUGH:
            break
    return parts


def _best(parts: list[_Part]) -> tuple[float, float, list[CouplingConditionals]]:
    """Return the λ that predicts best what was held out, its score, and couplings by it."""
    best, score = float(_GRID[0]), -np.inf
    weights = [_weights(part.law) for part in parts]
    laws: list[CouplingConditionals] = []
    for regularization in _GRID:
        total = 0.0
        for k, part in enumerate(parts):
            part.loss.regularization = float(regularization)
            W = weights[k] = minimise(part.loss, weights[k], _TOLERANCE).weights
            total += part.n_entries * ising_pseudo_likelihood(part.held_out, W[:-1], W[-1])
        if total <= score:
            break
        best, score, laws = float(regularization), total, [_law(W) for W in weights]
    return best, score, laws


def _is_better(parts: list[_Part], found: list[CouplingConditionals]) -> bool:
    """Whether the couplings predict samples with hidden entries better than patterns alone."""
    gains = []
    for k, (part, law) in enumerate(zip(parts, found, strict=True)):
        n_spins = part.held_out.shape[1]
        n_gaps = n_spins - (1 - _HIDDEN) * part.n_entries / len(part.held_out)
        n_rows = min(_JUDGED / n_spins, _VISITED / (n_spins * n_gaps))
        rows = part.held_out[: max(int(n_rows), _FEWEST_JUDGED)].astype(np.float32)
        hidden = np.random.default_rng([k]).random(rows.shape) < _HIDDEN
        gains.append(_losses(rows, hidden, part.law) - _losses(rows, hidden, law))
    gain = np.concatenate(gains)
    return bool(gain.sum() > np.sqrt(len(gain)) * gain.std())


def _losses(rows: F32, hidden: NDArray[np.bool_], law: Conditionals) -> FloatArray:
    """Return the log-loss of the entries of each row, hidden or not, given the others."""
    p = entry_probabilities(np.where(hidden, 0, rows).astype(np.float32), law)
    right = np.clip(np.where(rows > 0, p, 1 - p), _SUREST, 1)
    result: FloatArray = -np.log(right).sum(axis=1, where=rows != 0)
    return result


def _weights(law: LinearConditionals) -> FloatArray:
    """Return the couplings of patterns, and a last row of their fields."""
    V = law.factors.astype(np.float64)
    J = (V.T * law.scales) @ V
    np.fill_diagonal(J, 0)
    return np.vstack([J, law.own_fields])


def _law(W: FloatArray) -> CouplingConditionals:
    """Return the law of couplings with a last row of fields."""
    return CouplingConditionals(W[:-1].astype(np.float32), W[-1].astype(np.float32))

"""`NaiveMeanField`: couplings of a pairwise Ising model from the inverse of the covariance."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.covariance import shrunk_covariance

from dualtap._threads import one_blas_thread
from dualtap._validation import Interval, StrOptions
from dualtap.baselines._pairwise import PairwiseIsing, few_samples
from dualtap.baselines.regressions import FloatArray
from dualtap.spins import Spins
from dualtap.spins.weights import weighted


def spin_means(X: ArrayLike, weights: ArrayLike | None = None) -> FloatArray:
    """Return the mean of every spin, kept half a flip away from ±1.

    A spin that is the same in all of n samples gets ±(1 - 1/n), so that its field is finite.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins), ±1 with 0 for missing
    weights : array-like of shape (n_samples,), optional
        Number of samples that each row stands for, 1 by default.

    Returns
    -------
    array of shape (n_spins,)
        Means over observed entries, 0 where there are none.

    Examples
    --------
    >>> from dualtap.baselines.mean_field import spin_means
    >>> spin_means([[1, 1], [1, -1], [1, -1], [1, 0]])
    array([ 0.75      , -0.33333333])
    """
    S = np.asarray(X)
    w = np.ones(len(S)) if weights is None else np.asarray(weights, np.float64)
    n = np.maximum(w @ (S != 0), 1)
    m: FloatArray = np.clip(w @ S / n, 1 / n - 1, 1 - 1 / n)
    return m


def centred(X: ArrayLike, weights: ArrayLike | None = None) -> FloatArray:
    """Return the samples minus the mean of every spin, 0 where an entry is missing.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins), ±1 with 0 for missing
    weights : array-like of shape (n_samples,), optional
        Number of samples that each row stands for, 1 by default.

    Returns
    -------
    array of shape (n_samples, n_spins)

    Examples
    --------
    >>> from dualtap.baselines.mean_field import centred
    >>> centred([[1, 1], [1, -1], [-1, 0], [-1, 0]])
    array([[ 1.,  1.],
           [ 1., -1.],
           [-1.,  0.],
           [-1.,  0.]])
    """
    S = np.asarray(X)
    w = np.ones(len(S)) if weights is None else np.asarray(weights, np.float64)
    observed = S != 0
    n = w @ observed
    mean = w @ S / np.where(n > 0, n, 1)
    return np.where(observed, S - mean, 0.0)


def ledoit_wolf(x: FloatArray, weights: FloatArray | None = None) -> float:
    r"""Return the shrinkage of smallest mean square error, by the estimate of Ledoit and Wolf.

    :math:`\delta = \min(b, d) / d` with :math:`d = |C - \mu 1|^2`, μ the mean of the diagonal of
    C, and :math:`b = \frac1{M^2} \sum_a |x_a x_a^\top - C|^2`.

    Parameters
    ----------
    x : array of shape (n_samples, n_spins)
        Centred samples.
    weights : array of shape (n_samples,), optional
        Number of samples that each row stands for, 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.covariance import ledoit_wolf_shrinkage
    >>> from dualtap.baselines.mean_field import ledoit_wolf
    >>> x = np.random.default_rng(0).normal(size=(50, 4))
    >>> expected = ledoit_wolf_shrinkage(x, assume_centered=True)
    >>> bool(np.isclose(ledoit_wolf(x), expected))
    True
    """
    w = np.ones(len(x)) if weights is None else weights
    M, square = w.sum(), np.square(x).sum(axis=1)
    C = (x * w[:, None]).T @ x / M
    mu = np.trace(C) / len(C)
    d = float(np.square(C - mu * np.eye(len(C))).sum())
    b = (float(w @ np.square(square)) / M - float(np.square(C).sum())) / M
    return min(b, d) / d if min(b, d) > 0 else 0.0


def mean_field_couplings(covariance: FloatArray) -> FloatArray:
    r"""Return :math:`J = -C^{-1}` with the diagonal set to zero.

    Parameters
    ----------
    covariance : array of shape (n_spins, n_spins)
        Symmetric and positive definite.

    Returns
    -------
    array of shape (n_spins, n_spins)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.baselines.mean_field import mean_field_couplings
    >>> mean_field_couplings(np.array([[1.0, 0.6], [0.6, 1.0]]))
    array([[0.    , 0.9375],
           [0.9375, 0.    ]])
    """
    values, vectors = eigh(covariance)
    if values[0] <= len(values) * np.finfo(np.float64).eps * values[-1]:
        raise ValueError(
            f"the covariance of the {len(values)} spins is singular (fewer samples than spins, or "
            "spins that never change or always agree), and naive mean field inverts it: raise "
            "shrinkage (above 0), and leave out constant spins"
        )
    J: FloatArray = -(vectors / values) @ vectors.T
    J = (J + J.T) / 2  # the product is symmetric up to rounding
    np.fill_diagonal(J, 0)
    return J


class NaiveMeanField(PairwiseIsing):
    r"""Couplings of a pairwise Ising model by naive mean field (inverse covariance).

    For :math:`P(s) \propto \exp(\sum_{i<j} J_{ij} s_i s_j + \sum_i h_i s_i)`, β included in J
    and h, linear response of the equations :math:`m_i = \tanh(h_i + \sum_j J_{ij} m_j)` gives

    .. math:: J_{ij} = -(C^{-1})_{ij} \quad (i \ne j), \qquad
              h_i = \operatorname{artanh} m_i - \sum_j J_{ij} m_j,

    right to first order in the couplings. With fewer samples than spins C is singular, so it is
    shrunk: :math:`(1-\delta)\, C + \delta\, \frac{\operatorname{tr} C}{N}\, 1`.

    A missing entry counts as the mean of its spin: it adds nothing to any covariance. With a share
    p of entries missing at random, variances come out smaller by 1-p and covariances by (1-p)².

    Parameters
    ----------
    shrinkage : "ledoit-wolf" or float in [0, 1]
        δ. "ledoit-wolf" estimates the one of smallest mean square error of C. The inverse needs
        more where the data have few directions: deep in a retrieval phase couplings come out far
        too large.

    Attributes
    ----------
    couplings_ : array of shape (n_spins, n_spins)
        Symmetric, zero diagonal.
    fields_ : array of shape (n_spins,)
        A spin that is the same in all n samples counts as magnetized ±(1 - 1/n).
    shrinkage_ : float
        δ, given or estimated.
    n_features_in_ : int
        Number of spins.
    feature_names_in_ : array of str
        Only when X has string column names.

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.baselines import NaiveMeanField
    >>> teacher = dt.HopfieldModel.random(n_spins=20, n_patterns=1, beta=0.5, random_state=0)
    >>> X = teacher.sample(5000, random_state=1)
    >>> model = NaiveMeanField().fit(X)
    >>> J = teacher.beta * teacher.couplings()
    >>> bool(abs(model.couplings_ - J).mean() < abs(J).mean())
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "shrinkage": [StrOptions({"ledoit-wolf"}), Interval(Real, 0, 1, closed="both")],
    }

    def __init__(self, shrinkage: float | Literal["ledoit-wolf"] = "ledoit-wolf") -> None:
        self.shrinkage = shrinkage

    def _learn(self, spins: Spins) -> None:
        S, w, M = spins.values, spins.weights, spins.total_weight
        if few := few_samples(spins):
            raise ValueError(
                f"X has {few}, so the covariance of the {S.shape[1]} spins is singular "
                "whatever the shrinkage: give at least two samples"
            )
        with one_blas_thread():
            x = centred(S, w)
            estimated = self.shrinkage == "ledoit-wolf"
            self.shrinkage_ = ledoit_wolf(x, w) if estimated else float(self.shrinkage)
            C = shrunk_covariance(weighted(x, w).T @ x / M, shrinkage=self.shrinkage_)
            self.couplings_ = mean_field_couplings(C)
            m = spin_means(S, w)
            self.fields_ = np.arctanh(m) - self.couplings_ @ m

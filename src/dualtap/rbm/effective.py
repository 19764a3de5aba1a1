r"""What hidden units make of the spins: couplings of pairs, and the law of one given the others.

With hidden units summed out, :math:`\log P(s) = \sum_i b_i s_i + \sum_\mu K(W^\mu\cdot s)`, K the
prior's ``log_normalizer``: for other than Gaussian units there are terms of every order. In the
expansion in products of spins the coefficient of :math:`s_i s_j` is the mean of
:math:`s_i s_j \log P(s)` over independent fair spins, to which the even part of K alone adds. With

.. math:: \tfrac12\big(K(x) + K(-x)\big) = c x^2 + \sum_k a_k \cos\omega_k x

that mean factorises:

.. math:: J_{ij} = \sum_\mu 2 c W^\mu_i W^\mu_j - \sum_\mu \sum_k a_k
          \Big[\prod_l \cos\omega_k W^\mu_l\Big] \tan\omega_k W^\mu_i\, \tan\omega_k W^\mu_j .
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dualtap.rbm.model import RBM
from dualtap.rbm.priors import FloatArray, GaussianPrior, Prior
from dualtap.spins.protocol import F32

_DEVIATIONS = 11.0
"""Standard deviations of W·s that fair spins never exceed."""
_PERIOD = 4.0
"""Of the cosines, in units of the range: a series twice as wide as a function has no edge there."""
_LARGEST_FREQUENCY = 24.0
"""Functions of scale one, as the shipped priors have, are smooth to rounding errors beyond."""
_MORE_TERMS, _MOST_TERMS = 30, 1500
_LEAST_SINGULAR_VALUE = 1e-13


def two_body_factors(
    weights: FloatArray, prior: Prior
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return v_k and c_k of the two-body couplings :math:`J = \sum_k c_k v_k v_k^\top`.

    Parameters
    ----------
    weights : array of shape (n_hidden, n_spins)
        W.
    prior : Prior

    Returns
    -------
    factors : array of shape (n_factors, n_spins)
    scales : array of shape (n_factors,)
        The diagonal of the product is no coupling.

    Examples
    --------
    Of two spins there is no other term, and J is ½ log cosh(w₁ + w₂) - ½ log cosh(w₁ - w₂):

    >>> import numpy as np
    >>> from dualtap.rbm.effective import two_body_factors
    >>> from dualtap.rbm.priors import BinaryPrior
    >>> V, c = two_body_factors(np.array([[0.5, 2.0]]), BinaryPrior())
    >>> round(float((c * V[:, 0] * V[:, 1]).sum()), 10)
    0.4790639985
    >>> round(float(np.log(np.cosh(2.5) / np.cosh(1.5)) / 2), 10)
    0.4790639985
    """
    W = np.asarray(weights, dtype=np.float64)
    if isinstance(prior, GaussianPrior):
        return W, np.ones(len(W))
    factors, scales = [np.empty((0, W.shape[1]))], [np.empty(0)]
    series = cache(lambda reach: even_series(prior, reach))
    for w in W:
        largest = min(float(np.abs(w).sum()), _DEVIATIONS * float(np.linalg.norm(w)))
        # Powers of √2, so that units of about the same size share a series.
        curvature, omega, a = series(2 ** (math.ceil(2 * math.log2(max(largest, 0.5))) / 2))
        angles = omega[:, None] * w
        factors += [w[None], np.tan(angles)]
        scales += [np.array([2 * curvature]), -a * np.prod(np.cos(angles), axis=1)]
    return np.vstack(factors), np.concatenate(scales)


def even_series(
    prior: Prior, reach: float
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    r"""Return c, ω_k and a_k with :math:`(K(x) + K(-x))/2 = c x^2 + \sum_k a_k\cos\omega_k x`.

    For :math:`|x|` up to ``reach``; a fit by least squares with a period of twice that range,
    which converges faster than any power of the number of terms where K is smooth.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.effective import even_series
    >>> from dualtap.rbm.priors import BinaryPrior
    >>> c, omega, a = even_series(BinaryPrior(), 8.0)
    >>> x = np.array([0.3, 5.0])
    >>> np.abs(c * x**2 + np.cos(np.outer(x, omega)) @ a - np.log(np.cosh(x))).max() < 1e-10
    np.True_
    """
    step = 2 * np.pi / (_PERIOD * reach)
    n_terms = min(int(_LARGEST_FREQUENCY / step) + _MORE_TERMS, _MOST_TERMS)
    x = reach * np.sin(np.linspace(0, np.pi / 2, 2 * n_terms + 1))  # closer towards the end
    omega = step * np.arange(n_terms, dtype=np.float64)
    terms = np.column_stack([np.square(x), np.cos(np.outer(x, omega))])
    even = (prior.log_normalizer(x) + prior.log_normalizer(-x)) / 2
    c, *a = np.linalg.lstsq(terms, even, rcond=_LEAST_SINGULAR_VALUE)[0]
    return float(c), omega, np.array(a)


@dataclass(frozen=True)
class HiddenConditionals:
    r"""The law of a spin given the others, hidden units of any prior summed over.

    .. math:: h_i = b_i + \frac12 \sum_\mu K(x_\mu - W^\mu_i s_i + W^\mu_i)
              - K(x_\mu - W^\mu_i s_i - W^\mu_i), \qquad x_\mu = W^\mu\cdot s

    Attributes
    ----------
    model : RBM

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.effective import HiddenConditionals
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import BinaryPrior
    >>> W = np.array([[0.5, 2.0]], dtype=np.float32)
    >>> law = HiddenConditionals(RBM(W, np.zeros(2, np.float32), BinaryPrior()))
    >>> law.fields(np.array([[1, -1]], np.float32)).round(3)
    array([[-0.479,  0.479]], dtype=float32)
    """

    model: RBM

    @property
    def factors(self) -> F32:
        """The weights."""
        return self.model.weights.astype(np.float32, copy=False)

    def log_weights(self, x: F32, S: F32) -> F32:
        """Return log P up to a constant."""
        log_p = self.model.prior.log_normalizer(x).sum(axis=-1) + S @ self.model.fields
        result: F32 = log_p.astype(np.float32, copy=False)
        return result

    def fields(self, S: F32) -> F32:
        """Return h of every spin."""
        return (S * self.model.aligned_fields(S)).astype(np.float32, copy=False)

    def site_fields(self, x: F32, sites: NDArray[np.int64], s: F32) -> F32:
        """Return h of one spin per row."""
        w = self.factors[:, sites].T
        rest, K = x - s[..., None] * w, self.model.prior.log_normalizer
        rise = K(rest + w) - K(rest - w)
        h: F32 = (rise.sum(axis=-1) / 2 + self.model.fields[sites]).astype(np.float32, copy=False)
        return h

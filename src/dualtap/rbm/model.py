r"""The model: ±1 visible units, independent hidden units with a prior, couplings between them.

.. math:: P(s, \lambda) \propto \prod_\mu dP(\lambda_\mu)\,
          \exp\Big(\sum_i b_i s_i + \sum_{\mu i} \lambda_\mu W^\mu_i s_i\Big)

With Gaussian hidden units and :math:`W = \sqrt{\beta/N}\,\xi` the visible units are a Hopfield
model of the patterns ξ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap._namespace import is_foreign, like, namespace, to_numpy
from dualtap.local_fields import log_sigmoid
from dualtap.rbm.priors import (
    BinaryPrior,
    FloatArray,
    GaussianPrior,
    Prior,
)

_ENTRIES_AT_ONCE = 512  # with 64 units they stay in the second cache
_UNITS_PER_LOGARITHM = 64  # their product is at most 2^64, which float32 holds


@dataclass(frozen=True)
class RBM:
    r"""An RBM with given parameters. Spins are ±1; 0 marks an entry without a value.

    An entry without a value takes no part in the inputs of hidden units; sampling gives it one.
    Inputs, means and fields of units are found where the arrays are, in any namespace; the rest is
    for NumPy.

    Parameters
    ----------
    weights : array of shape (n_hidden, n_spins)
        W.
    fields : array of shape (n_spins,)
        b, of the visible units; zero in the paper.
    prior : Prior
        The law of a hidden unit.

    Examples
    --------
    A single Gaussian hidden unit makes a Curie-Weiss model:

    >>> import numpy as np
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> model = RBM(np.full((1, 4), 0.5), np.zeros(4), GaussianPrior())
    >>> model.free_energy(np.array([[1, 1, 1, 1], [1, 1, 1, -1]]))
    array([-2. , -0.5])
    """

    weights: FloatArray
    fields: FloatArray
    prior: Prior

    @property
    def n_hidden(self) -> int:
        """Number of hidden units N_h."""
        return int(self.weights.shape[0])

    @property
    def n_spins(self) -> int:
        """Number of visible units N."""
        return int(self.weights.shape[1])

    def inputs(self, s: NDArray[Any]) -> FloatArray:
        r"""Return the inputs of the hidden units, :math:`x_\mu = \sum_i W^\mu_i s_i`."""
        s = namespace(s).astype(s, self.weights.dtype, copy=False)
        x: FloatArray = s @ self.weights.T
        return x

    def energy(self, s: NDArray[Any], hidden: FloatArray) -> FloatArray:
        r"""Return :math:`E(s, \lambda) = -b\cdot s - \sum_\mu \lambda_\mu x_\mu` of each row.

        The prior of the hidden units is a measure of its own, not a part of the energy.
        """
        result: FloatArray = -(s @ self.fields) - np.sum(hidden * self.inputs(s), axis=1)
        return result

    def free_energy(self, s: NDArray[Any]) -> FloatArray:
        r"""Return :math:`F(s) = -b\cdot s - \sum_\mu \log\int dP(\lambda)e^{\lambda x_\mu}`."""
        result: FloatArray = -(s @ self.fields) - self.prior.log_normalizer(self.inputs(s)).sum(
            axis=1
        )
        return result

    def hidden_means(self, s: NDArray[Any]) -> FloatArray:
        """Return ⟨λ⟩ given the spins, of shape (n_samples, n_hidden)."""
        return mean_given(self.prior, self.inputs(s))

    def sample_hidden(self, s: NDArray[Any], rng: np.random.Generator) -> FloatArray:
        """Draw the hidden units given the spins."""
        return self.prior.sample(self.inputs(s), rng)

    def visible_fields(self, hidden: FloatArray) -> FloatArray:
        r"""Return the fields on spins given the hidden units, :math:`b_i + \lambda\cdot W_i`."""
        result: FloatArray = hidden @ self.weights + self.fields
        return result

    def aligned_fields(self, s: NDArray[Any]) -> FloatArray:
        r"""Return :math:`s_i h_i`, where :math:`P(s_i | s_{\setminus i}) = 1/(1+e^{-2 s_i h_i})`.

        Exact: half the rise of the free energy when spin i alone is turned, which is
        :math:`s_i b_i + \frac12\sum_\mu K(x_\mu) - K(x_\mu - 2 s_i W^\mu_i)`, K the prior's
        ``log_normalizer``. For Gaussian hidden units
        :math:`h_i = b_i + \sum_{j\ne i} (W^\top W)_{ij} s_j`.
        """
        s = s.astype(self.weights.dtype, copy=False)
        W, x = self.weights, self.inputs(s)
        if isinstance(self.prior, GaussianPrior):
            gaussian: FloatArray = s * (x @ W + self.fields) - np.square(W).sum(axis=0)
            return gaussian
        aligned: FloatArray = s * self.fields
        for first in range(0, self.n_hidden, _UNITS_PER_LOGARITHM):
            units = slice(first, first + _UNITS_PER_LOGARITHM)
            aligned += self._rise(x[:, units], W[units], s) / 2
        return aligned

    def aligned_fields_at(
        self, s: NDArray[Any], rows: NDArray[np.int64], sites: NDArray[np.int64]
    ) -> FloatArray:
        """Return the same of single entries, each given by its row and its site."""
        s = s.astype(self.weights.dtype, copy=False)
        x, chosen = np.ascontiguousarray(self.inputs(s).T), s[rows, sites]
        aligned: FloatArray = chosen * self.fields[sites]
        for first in range(0, self.n_hidden, _UNITS_PER_LOGARITHM):
            units = slice(first, first + _UNITS_PER_LOGARITHM)
            before = self._total(x[units])[rows]
            for one in range(0, len(sites), _ENTRIES_AT_ONCE):
                at = slice(one, one + _ENTRIES_AT_ONCE)
                turned = self.weights[units].take(sites[at], axis=1)
                turned *= -2 * chosen[at]
                turned += x[units].take(rows[at], axis=1)
                aligned[at] += (before[at] - self._total(turned)) / 2
        return aligned

    def _total(self, x: FloatArray) -> FloatArray:
        """Return Σ_μ K(x_μ) of at most 64 units, with one logarithm per column for ±1 units."""
        if not isinstance(self.prior, BinaryPrior):
            total: FloatArray = self.prior.log_normalizer(x).sum(axis=0)
            return total
        size = np.abs(x)
        odds = np.exp(-2 * size)
        odds += 1
        product = np.prod(odds, axis=0)
        log_cosh: FloatArray = np.log(product) + size.sum(axis=0) - len(x) * math.log(2)
        return log_cosh

    def _rise(self, x: FloatArray, w: FloatArray, s: FloatArray) -> FloatArray:
        """Return Σ_μ K(x_μ) - K(x_μ - 2 s_i w_μi)."""
        if isinstance(self.prior, BinaryPrior):
            return _rise_of_log_cosh(x, w, s)
        K = self.prior.log_normalizer
        rise = np.repeat(K(x).sum(axis=1)[:, None], s.shape[1], axis=1)
        for mu, weights in enumerate(w):
            rise -= K(x[:, mu, None] - 2 * s * weights)
        return rise


def _rise_of_log_cosh(x: FloatArray, w: FloatArray, s: FloatArray) -> FloatArray:
    """Return Σ_μ log cosh x_μ - log cosh(x_μ - 2 s_i w_μi), with one logarithm a spin.

    log cosh y is |y| + log(1 + e^{-2|y|}) - log 2: the first parts are subtracted unit by unit, and
    the second are a product of numbers between 1 and 2.
    """
    size = np.abs(x)
    rest = -log_sigmoid(2 * size).sum(axis=1)
    rise = np.zeros_like(s)
    product = np.ones_like(s)
    for mu, weights in enumerate(w):
        turned = np.abs(x[:, mu, None] - 2 * s * weights)
        rise += size[:, mu, None] - turned
        product *= 1 + np.exp(-2 * turned)
    result: FloatArray = rise + rest[:, None] - np.log(product)
    return result


def mean_given(prior: Prior, x: FloatArray) -> FloatArray:
    """Return ⟨λ⟩ given the input, where x is; priors compute on the host unless they can there.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.model import mean_given
    >>> from dualtap.rbm.priors import BinaryPrior
    >>> mean_given(BinaryPrior(), np.array([0.0]))
    array([0.])
    """
    if is_foreign(x) and not isinstance(prior, GaussianPrior | BinaryPrior):
        there: FloatArray = like(x, prior.mean(to_numpy(x)))
        return there
    return prior.mean(x)

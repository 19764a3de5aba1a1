r"""What ±1 hidden units make of the spins: couplings of pairs, and the law of one given the others.

The spins of an RBM with ±1 hidden units have terms of every even order:
:math:`\log P(s) = \sum_i b_i s_i + \sum_\mu \log\cosh(W^\mu\cdot s)`. In its expansion in products
of spins the coefficient of :math:`s_i s_j` is the mean of :math:`s_i s_j \log P(s)` over
independent fair spins. With

.. math:: \log\cosh x = \int_0^\infty \frac{1 - \cos\omega x}{\omega\sinh(\pi\omega/2)}\, d\omega

that mean factorises:

.. math:: J_{ij} = \sum_\mu \int_0^\infty \frac{d\omega}{\omega\sinh(\pi\omega/2)}
          \Big[\prod_k \cos\omega W^\mu_k\Big] \tan\omega W^\mu_i\, \tan\omega W^\mu_j .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualtap.rbm.model import PRIORS, RBM, FloatArray
from dualtap.spins.blocks import F32

_LARGEST_FREQUENCY = 22.0
"""Beyond, 1/sinh(πω/2) is below rounding errors."""
_TAIL = 18.0
"""log cosh x is |x| - log 2 to rounding errors beyond."""
_DEVIATIONS = 11.0
"""Standard deviations of W·s that fair spins never exceed."""


def two_body_factors(weights: FloatArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return v_k and c_k of the two-body couplings :math:`J = \sum_k c_k v_k v_k^\top`.

    The integral over ω is a sum over equal steps h, one factor each. Its error is the value that
    the integrand's Fourier transform has at 2π/h, which is below rounding errors if 2π/h is larger
    than any W·s that fair spins make.

    Parameters
    ----------
    weights : array of shape (n_hidden, n_spins)
        W.

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
    >>> V, c = two_body_factors(np.array([[0.5, 2.0]]))
    >>> round(float((c * V[:, 0] * V[:, 1]).sum()), 12)
    0.479063998458
    >>> round(float(np.log(np.cosh(2.5) / np.cosh(1.5)) / 2), 12)
    0.479063998458
    """
    factors, scales = [], []
    for w in np.asarray(weights, dtype=np.float64):
        largest = min(float(np.abs(w).sum()), _DEVIATIONS * float(np.linalg.norm(w)))
        step = 2 * np.pi / (largest + _TAIL)
        omega = step * np.arange(1, int(_LARGEST_FREQUENCY / step) + 2)
        angles = omega[:, None] * w
        factors.append(np.vstack([w, np.tan(angles)]))
        common = np.prod(np.cos(angles), axis=1) * step / (omega * np.sinh(np.pi * omega / 2))
        # At ω = 0 the integrand is 2 w_i w_j / π, and half a step belongs to it.
        scales.append(np.concatenate([[step / np.pi], common]))
    return np.vstack(factors), np.concatenate(scales)


@dataclass(frozen=True)
class BinaryConditionals:
    r"""The law of a spin given the others, hidden units of ±1 summed over.

    .. math:: h_i = b_i + \frac12 \sum_\mu \log\frac{\cosh(x_\mu - W^\mu_i s_i + W^\mu_i)}
              {\cosh(x_\mu - W^\mu_i s_i - W^\mu_i)}, \qquad x_\mu = W^\mu\cdot s

    Attributes
    ----------
    model : RBM
        With ±1 hidden units.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.effective import BinaryConditionals
    >>> from dualtap.rbm.model import RBM, BinaryPrior
    >>> W = np.array([[0.5, 2.0]], dtype=np.float32)
    >>> law = BinaryConditionals(RBM(W, np.zeros(2, np.float32), BinaryPrior()))
    >>> law.fields(np.array([[1, -1]], np.float32)).round(3)
    array([[-0.479,  0.479]], dtype=float32)
    """

    model: RBM

    @property
    def factors(self) -> F32:
        """The weights."""
        return self.model.weights.astype(np.float32, copy=False)

    def fields(self, S: F32) -> F32:
        """Return h of every spin."""
        return (S * self.model.aligned_fields(S)).astype(np.float32, copy=False)

    def site_fields(self, x: F32, sites: NDArray[np.int64], s: F32) -> F32:
        """Return h of one spin per row."""
        w = self.factors[:, sites].T
        rest = x - s[..., None] * w
        rise = _LOG_COSH(rest + w) - _LOG_COSH(rest - w)
        h: F32 = (rise.sum(axis=-1) / 2 + self.model.fields[sites]).astype(np.float32, copy=False)
        return h


_LOG_COSH = PRIORS["binary"].log_normalizer

r"""The law P(λ) of a hidden unit: three functions of its input x = W·s are all that is asked of it.

A prior is any object with the methods of :class:`Prior`. The model, its chains, scores, couplings
and log Z are written with them alone; Gaussian and ±1 units have compiled chains besides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, expit, log_ndtr, ndtri_exp

from dualtap._namespace import namespace
from dualtap.local_fields import log_sigmoid

FloatArray = NDArray[np.floating[Any]]

_NEAR_ZERO = 1e-4  # a tilt below cannot be seen in draws
_SERIES = 0.02  # below, three terms of a series are exact to rounding
_LOG_2 = math.log(2)


class Prior(Protocol):
    r"""What the model asks of the law of one hidden unit, given its input x = W·s.

    Arrays have any shape, float32 or float64; answers have the same. A law needs Gaussian tails
    at most: :math:`\int dP(\lambda)\, e^{\lambda x}` must be finite for every x.

    Examples
    --------
    λ = ±2 with equal odds:

    >>> import numpy as np
    >>> import dualtap as dt
    >>> class Twos:
    ...     def log_normalizer(self, x):
    ...         return np.logaddexp(2 * x, -2 * x) - np.log(2).astype(x.dtype)
    ...     def mean(self, x):
    ...         return 2 * np.tanh(2 * x)
    ...     def sample(self, x, rng):
    ...         return np.where(rng.random(x.shape) < 1 / (1 + np.exp(-4 * x)), 2, -2)
    >>> X = dt.HopfieldModel.random(50, 2, beta=2.0, random_state=0).sample(200, random_state=1)
    >>> rbm = dt.HopfieldRBM.paper(4, hidden=Twos(), max_updates=200, random_state=0).fit(X)
    >>> rbm.score(X) > -0.5
    True
    """

    def log_normalizer(self, x: FloatArray) -> FloatArray:
        r"""Return :math:`K(x) = \log\int dP(\lambda)\, e^{\lambda x}`."""
        ...

    def mean(self, x: FloatArray) -> FloatArray:
        """Return its slope, ⟨λ⟩ given the input."""
        ...

    def sample(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        r"""Draw λ given the input, from :math:`dP(\lambda)\, e^{\lambda x - K(x)}`."""
        ...


@dataclass(frozen=True)
class GaussianPrior:
    """λ ~ N(0, 1), the paper's: given the input, λ ~ N(x, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> GaussianPrior().log_normalizer(np.array([2.0]))
    array([2.])
    """

    name: ClassVar[str] = "gaussian"

    def mean(self, x: FloatArray) -> FloatArray:
        """Return x."""
        return x

    def sample(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw from N(x, 1)."""
        return x + rng.standard_normal(x.shape).astype(x.dtype)

    def log_normalizer(self, x: FloatArray) -> FloatArray:
        """Return x²/2."""
        return np.square(x) / 2


@dataclass(frozen=True)
class BinaryPrior:
    """λ = ±1 with equal odds: given the input, P(λ = 1) = 1 / (1 + exp(-2x)).

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.priors import BinaryPrior
    >>> BinaryPrior().mean(np.array([0.0, 100.0]))
    array([0., 1.])
    """

    name: ClassVar[str] = "binary"

    def mean(self, x: FloatArray) -> FloatArray:
        """Return tanh x."""
        mean: FloatArray = namespace(x).tanh(x)
        return mean

    def sample(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw ±1."""
        return random_signs(x, rng)

    def log_normalizer(self, x: FloatArray) -> FloatArray:
        """Return log cosh x."""
        size = np.abs(x)
        result: FloatArray = size - log_sigmoid(2 * size) - np.log(2).astype(x.dtype)
        return result


@dataclass(frozen=True)
class ZeroOnePrior:
    """λ = 0 or 1 with equal odds: given the input, P(λ = 1) = 1 / (1 + exp(-x)).

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.priors import ZeroOnePrior
    >>> ZeroOnePrior().mean(np.array([0.0, 100.0]))
    array([0.5, 1. ])
    """

    name: ClassVar[str] = "zero_one"

    def mean(self, x: FloatArray) -> FloatArray:
        """Return 1 / (1 + e^-x)."""
        mean: FloatArray = expit(x)
        return mean

    def sample(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw 0 or 1."""
        return (rng.random(x.shape) < expit(x)).astype(x.dtype)

    def log_normalizer(self, x: FloatArray) -> FloatArray:
        """Return log((1 + e^x) / 2)."""
        result: FloatArray = np.logaddexp(0, x) - np.log(2).astype(x.dtype)
        return result


@dataclass(frozen=True)
class UniformPrior:
    """λ uniform between -√3 and √3, which has variance 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.priors import UniformPrior
    >>> UniformPrior().mean(np.array([0.0, 1e6])).round(3)
    array([0.   , 1.732])
    """

    name: ClassVar[str] = "uniform"
    _end: ClassVar[float] = math.sqrt(3)

    def mean(self, x: FloatArray) -> FloatArray:
        """Return √3 (coth y - 1/y) at y = √3 x."""
        y = self._end * np.abs(x)
        z = np.maximum(y, _SERIES)
        large = (1 + np.exp(-2 * z)) / -np.expm1(-2 * z) - 1 / z
        small = y / 3 - y**3 / 45 + 2 * y**5 / 945  # where the two parts would cancel
        mean = self._end * np.sign(x) * np.where(y < _SERIES, small, large)
        return mean.astype(x.dtype, copy=False)

    def sample(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Invert the distribution function."""
        u, size = rng.random(x.shape), np.abs(x.astype(np.float64))
        tilted = np.log(u + (1 - u) * np.exp(-2 * self._end * size))
        distance = np.where(
            size > _NEAR_ZERO, tilted / np.maximum(size, _NEAR_ZERO), 2 * self._end * (u - 1)
        )
        return (np.where(x < 0, -1, 1) * (self._end + distance)).astype(x.dtype)

    def log_normalizer(self, x: FloatArray) -> FloatArray:
        """Return log(sinh y / y) at y = √3 x."""
        y = self._end * np.abs(x)
        z = np.maximum(y, _SERIES)
        large = z + np.log(-np.expm1(-2 * z) / (2 * z))
        small = y**2 / 6 - y**4 / 180 + y**6 / 2835
        return np.where(y < _SERIES, small, large).astype(x.dtype, copy=False)


@dataclass(frozen=True)
class ReluPrior:
    """λ ≥ 0, half of a normal law: given the input, N(x, 1) cut off below zero.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.priors import ReluPrior
    >>> ReluPrior().mean(np.array([-100.0, 0.0, 100.0])).round(3)
    array([1.00e-02, 7.98e-01, 1.00e+02])
    """

    name: ClassVar[str] = "relu"

    def mean(self, x: FloatArray) -> FloatArray:
        """Return x + φ(x)/Φ(x)."""
        return _half_mean(x).astype(x.dtype, copy=False)

    def sample(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Invert the distribution function."""
        return _half_sample(x, rng).astype(x.dtype)

    def log_normalizer(self, x: FloatArray) -> FloatArray:
        """Return log 2Φ(x) + x²/2."""
        result: FloatArray = (_LOG_2 + _half_log_normalizer(x)).astype(x.dtype, copy=False)
        return result


@dataclass(frozen=True)
class LaplacePrior:
    r"""λ of density :math:`\propto e^{-|\lambda| - \lambda^2/2}`: most units are close to zero.

    The Gaussian factor bounds the tails. Without it the integral of :math:`e^{\lambda x}` would be
    infinite from \|x\| = 1 on, and so would the weights that training may not pass.

    Examples
    --------
    Given the input, λ is close to what is left of x beyond ±1:

    >>> import numpy as np
    >>> from dualtap.rbm.priors import LaplacePrior
    >>> LaplacePrior().mean(np.array([-10.0, 0.5, 10.0])).round(2)
    array([-9.  ,  0.24,  9.  ])
    """

    name: ClassVar[str] = "laplace"
    _log_total: ClassVar[float] = _LOG_2 + float(log_ndtr(-1.0)) + 0.5

    def _log_sides(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the logarithms of the integrals over λ > 0 and λ < 0."""
        return _half_log_normalizer(x - 1), _half_log_normalizer(-x - 1)

    def mean(self, x: FloatArray) -> FloatArray:
        """Return the mean of both sides by their weights."""
        above, below = self._log_sides(x)
        up = expit(above - below)
        mean: FloatArray = up * _half_mean(x - 1) - (1 - up) * _half_mean(-x - 1)
        return mean.astype(x.dtype, copy=False)

    def sample(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the side, then the size."""
        above, below = self._log_sides(x)
        side = np.where(rng.random(x.shape) < expit(above - below), 1, -1)
        return (side * _half_sample(side * x - 1, rng)).astype(x.dtype)

    def log_normalizer(self, x: FloatArray) -> FloatArray:
        """Return the logarithm of the sum of both sides, 0 at x = 0."""
        result: FloatArray = np.logaddexp(*self._log_sides(x)) - self._log_total
        return result.astype(x.dtype, copy=False)


@dataclass(frozen=True)
class SpikeSlabPrior:
    """λ = 0, or with probability ``share`` normal of variance 1/``share``: variance 1 in all.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.priors import SpikeSlabPrior
    >>> SpikeSlabPrior(0.5).mean(np.array([0.1, 3.0])).round(2)
    array([0.1, 6. ])
    """

    share: float = 0.5
    name: ClassVar[str] = "spike_slab"

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"share must be between 0 and 1, got {self.share}")

    def _log_odds(self, x: FloatArray) -> FloatArray:
        """Return the logarithm of the odds that λ is not zero."""
        result: FloatArray = np.square(x) / (2 * self.share) + math.log(
            self.share / (1 - self.share)
        )
        return result

    def mean(self, x: FloatArray) -> FloatArray:
        """Return the slab's mean by its probability."""
        mean: FloatArray = expit(self._log_odds(x)) * x / self.share
        return mean

    def sample(self, x: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw zero or from the slab."""
        slab = x / self.share + rng.standard_normal(x.shape) / math.sqrt(self.share)
        on = rng.random(x.shape) < expit(self._log_odds(x))
        return np.where(on, slab, 0).astype(x.dtype)

    def log_normalizer(self, x: FloatArray) -> FloatArray:
        """Return log(1 - p + p exp(x²/2p))."""
        result: FloatArray = np.logaddexp(0, self._log_odds(x)) + math.log(1 - self.share)
        return result.astype(x.dtype, copy=False)


PRIORS: dict[str, Prior] = {
    "gaussian": GaussianPrior(),
    "binary": BinaryPrior(),
    "zero_one": ZeroOnePrior(),
    "uniform": UniformPrior(),
    "relu": ReluPrior(),
    "laplace": LaplacePrior(),
    "spike_slab": SpikeSlabPrior(),
}


def as_prior(hidden: str | Prior) -> Prior:
    """Return the prior of that name, or the object itself if it has the methods of one.

    Examples
    --------
    >>> from dualtap.rbm.priors import as_prior
    >>> as_prior("binary")
    BinaryPrior()
    """
    if isinstance(hidden, str):
        if hidden not in PRIORS:
            raise ValueError(
                f"unknown hidden prior {hidden!r}: choose from {', '.join(map(repr, PRIORS))}, or "
                "give an object with log_normalizer, mean and sample"
            )
        return PRIORS[hidden]
    lacking = [
        name
        for name in ("log_normalizer", "mean", "sample")
        if not callable(getattr(hidden, name, None))
    ]
    if lacking:
        raise TypeError(
            f"hidden={hidden!r} is no prior of hidden units: it has no method {lacking[0]}; see "
            "dualtap.rbm.Prior"
        )
    return hidden


def prior_name(prior: Prior) -> str:
    """Return what to call a prior: its name, or that of its class.

    Examples
    --------
    >>> from dualtap.rbm.priors import ReluPrior, prior_name
    >>> prior_name(ReluPrior())
    'relu'
    """
    return str(getattr(prior, "name", type(prior).__name__))


def random_signs(field: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw ±1 with P(+1) = 1 / (1 + exp(-2 field)).

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.priors import random_signs
    >>> random_signs(np.array([-50.0, 50.0]), np.random.default_rng(0))
    array([-1.,  1.])
    """
    up = rng.random(field.shape) < expit(2 * field)
    return np.where(up, 1, -1).astype(field.dtype)


def _half_log_normalizer(y: FloatArray) -> NDArray[np.float64]:
    """Return log ∫₀^∞ dλ exp(-λ²/2 + λy), without the constant log √(2π)."""
    y = y.astype(np.float64)
    result: NDArray[np.float64] = log_ndtr(y) + np.square(y) / 2
    return result


def _half_mean(y: FloatArray) -> NDArray[np.float64]:
    """Return the mean of N(y, 1) above zero, y + φ(y)/Φ(y)."""
    y = y.astype(np.float64)
    mean: NDArray[np.float64] = y + math.sqrt(2 / math.pi) / erfcx(-y / math.sqrt(2))
    return mean


def _half_sample(y: FloatArray, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw from N(y, 1) above zero."""
    y = y.astype(np.float64)
    draws: NDArray[np.float64] = y - ndtri_exp(log_ndtr(y) + np.log1p(-rng.random(y.shape)))
    return np.maximum(draws, 0)
